"""Exact amounts of privacy loss, in whole units of 2^-120.

Promise: what an event costs is rounded up to units, a cap is rounded down, and totals are sums of Python integers. So
the order of charges does not change a total, storing an amount loses nothing, and a refund returns exactly what was
charged. An amount is one or more numbers of units (epsilon and delta, or rho and delta), or None for infinity, where
no bound is known; a sum with infinity is infinite.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from tacit.privacy.errors import LedgerCorrupt
from tacit.privacy.numbers import rounded_down, rounded_up

Amount: TypeAlias = tuple[int, ...] | None
Amounts: TypeAlias = tuple[Amount, ...]
"""One amount for each account of a filter, in the filter's order."""

UNIT_BITS: Final = 120
"""Fine enough for a delta of 10^-30; doubles above 2^-67 have no digit that is finer."""

NUMBER_MAX: Final = 2.0**64
"""A larger cost is not distinguished from infinity."""

_UNITS: Final = 1 << UNIT_BITS
_UNITS_MAX: Final = int(NUMBER_MAX) * _UNITS


def ceil_units(number: float) -> int | None:
    """Return the least number of units that is not below `number`; None for infinity, negative numbers and NaN.

    A negative cost or NaN is a failed computation, so no bound is known; it is never taken for 0.
    """
    return math.ceil(math.ldexp(number, UNIT_BITS)) if 0 <= number <= NUMBER_MAX else None


def ceil_square_units(number: float) -> int | None:
    """Return the least number of units that is not below the square of `number`, or None as `ceil_units` does."""
    if not 0 <= number <= math.sqrt(NUMBER_MAX):
        return None
    numerator, denominator = number.as_integer_ratio()
    return -(-(numerator * numerator << UNIT_BITS) // (denominator * denominator))


def floor_units(number: Fraction) -> int:
    """Return the greatest number of units that is not above `number`."""
    return math.floor(number * _UNITS)


def ceil_float(units: int) -> float:
    """Return the least float that is not below a number of units."""
    near = math.ldexp(units, -UNIT_BITS)
    return near if math.ldexp(near, UNIT_BITS) == units else rounded_up(Fraction(units, _UNITS))


def floor_float(units: int) -> float:
    """Return the greatest float that is not above a number of units."""
    return rounded_down(Fraction(units, _UNITS)) + 0.0  # never -0.0


def nearest_float(units: int) -> float:
    """Return the float that is nearest to a number of units."""
    return float(Fraction(units, _UNITS))


def add_amounts(one: Amounts, other: Amounts) -> Amounts:
    """Return the sum, account by account; infinity stays infinite."""
    return tuple(
        None if left is None or right is None else tuple(map(operator.add, left, right))
        for left, right in zip(one, other, strict=True)
    )


def add_charge(totals: Amounts, amounts: Amounts) -> Amounts:
    """Return totals with a charge added; raise LedgerCorrupt if a total would be lower."""
    after = add_amounts(totals, amounts)
    for before, now in zip(totals, after, strict=True):
        if now is not None and before is not None and not all(map(operator.ge, now, before)):
            raise LedgerCorrupt("a charge must not lower a total; nothing was charged", differs="amount")
    return after


def subtract_amounts(one: Amounts, other: Amounts) -> Amounts:
    """Return the difference, account by account; infinity stays infinite, so such an account never admits again."""
    return tuple(
        left if left is None or right is None else tuple(map(operator.sub, left, right))
        for left, right in zip(one, other, strict=True)
    )


def covers(one: Amounts, other: Amounts) -> bool:
    """Whether `other` can be subtracted from `one` without a negative number."""
    return len(one) == len(other) and all(
        left is None or (right is not None and len(left) == len(right) and all(map(operator.ge, left, right)))
        for left, right in zip(one, other, strict=True)
    )


def multiply_amounts(one: Amounts, count: int) -> Amounts:
    """Return the sum of `count` equal charges; above `NUMBER_MAX` it is infinite."""
    return tuple(
        None if amount is None or count * max(amount) > _UNITS_MAX else tuple(count * units for units in amount)
        for amount in one
    )


def raise_to(amount: Amount, least: int) -> Amount:
    """Return an amount with at least `least` units, set in its first number if all of them are smaller."""
    if amount is None or max(amount) >= least:
        return amount
    return (least, *amount[1:]) if least <= _UNITS_MAX else None


def is_within(amount: Amount, caps: Sequence[int]) -> bool:
    """Whether every number of an amount is at most its cap."""
    return amount is not None and all(map(operator.le, amount, caps))


def amounts_to_json(amounts: Amounts) -> list[list[str] | None]:
    """Return the stored form: decimal texts, since many JSON readers keep only 53 bits of a number."""
    return [None if amount is None else [str(units) for units in amount] for amount in amounts]


def amounts_from_json(record: object) -> Amounts:
    """Read the stored form; raise LedgerCorrupt for anything that `amounts_to_json` does not write."""
    if not isinstance(record, list):
        raise _damaged(record)
    return tuple(None if amount is None else _read_amount(amount) for amount in record)


def _read_amount(record: object) -> tuple[int, ...]:
    try:
        numbers = tuple(map(int, record))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise _damaged(record) from None
    if list(map(str, numbers)) != record or min(numbers, default=0) < 0:
        raise _damaged(record)
    return numbers


def _damaged(record: object) -> LedgerCorrupt:
    return LedgerCorrupt(f"{record!r} is not an amount that the ledger wrote", differs="amount")
