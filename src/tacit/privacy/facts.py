"""What an owner states of a column, held against its kind and put into one form.

Whole numbers stay whole, dates are dates, times are UTC without a zone: whichever way a fact was written, in Python, on
the command line or in the catalog's file, the same fact is the same object afterwards.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Final

from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import TooLarge, WrongType
from tacit.privacy.numbers import Real, exact, plain
from tacit.privacy.tables import Kind

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1

EXAMPLES: Final = {
    Kind.BOOLEAN: "true or false",
    Kind.INTEGER: "whole numbers, such as 0 and 120",
    Kind.REAL: "numbers, such as 0 and 99.5",
    Kind.TEXT: 'texts, such as "F" and "M"',
    Kind.DATE: "dates, such as 2020-01-01 and 2024-12-31",
    Kind.TIME: "times, such as 2020-01-01T00:00:00 and 2024-12-31T23:59:59",
}
"""How values of a kind are written, for sentences that refuse another one."""


def fitted(name: str, kind: Kind, facts: Bounds | Categories | None) -> Bounds | Categories | None:
    """Return what is stated of the column `name` in the form of its kind, or refuse what does not fit."""
    if isinstance(facts, Bounds):
        if kind in (Kind.TEXT, Kind.BOOLEAN):
            raise WrongType(
                f"{name} is {kind} and cannot have bounds; state its categories, or give it another kind",
                name=name,
                value=facts,
            )
        return Bounds(_bound(name, kind, facts.lower), _bound(name, kind, facts.upper, is_upper=True))
    if isinstance(facts, Categories):
        return Categories(_category(name, kind, value) for value in facts.values)
    return facts


def _bound(name: str, kind: Kind, value: Real | date, *, is_upper: bool = False) -> Real | date:
    if kind is Kind.TIME and isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time.max if is_upper else time.min)  # a day as a bound is meant as a whole
    if kind in (Kind.DATE, Kind.TIME):
        return _moment(name, kind, value, "bounds")
    if isinstance(value, date):
        raise _misfit(name, kind, value, "bounds")
    number = exact(f"a bound of {name}", value)
    if kind is Kind.INTEGER:
        if number.denominator != 1:
            raise _misfit(name, kind, value, "bounds")
        return _within_64_bits(name, int(number))
    return float(value) if isinstance(value, float) else plain(number)


def _category(name: str, kind: Kind, value: Category) -> Category:
    if value is None:
        return None
    if kind in (Kind.DATE, Kind.TIME):
        return _moment(name, kind, value, "categories")
    if kind is Kind.TEXT and isinstance(value, str):
        return value
    if kind is Kind.BOOLEAN and isinstance(value, bool):
        return value
    if kind.is_number and isinstance(value, int) and not isinstance(value, bool):
        return _within_64_bits(name, int(value))
    raise _misfit(name, kind, value, "categories")


def _moment(name: str, kind: Kind, value: object, what: str) -> date:
    if isinstance(value, datetime):
        if kind is Kind.TIME:
            return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    elif isinstance(value, date) and kind is Kind.DATE:
        return value
    raise _misfit(name, kind, value, what)


def _within_64_bits(name: str, number: int) -> int:
    if not INTEGER_MIN <= number <= INTEGER_MAX:
        raise TooLarge(f"{name} holds whole numbers of 64 bits, and {number} is none", name=name, value=number)
    return number


def _misfit(name: str, kind: Kind, value: object, what: str) -> WrongType:
    shown = value.isoformat() if isinstance(value, date) else repr(value)
    return WrongType(
        f"{name} is {kind}: its {what} are {EXAMPLES[kind]}, not {shown}; or give it another kind",
        name=name,
        value=value,
    )
