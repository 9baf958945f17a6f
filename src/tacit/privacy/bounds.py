"""Public facts about a column, stated by its owner: bounds of its values, or the list of its categories.

Values outside of bounds are clamped to them; values outside of categories belong to none of them. Both limit how far
one unit can move an answer, so they must be chosen without looking at the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, TypeAlias

from tacit.privacy.errors import EmptyInput, InvalidInput, NotFinite, OutOfRange, TooLarge, WrongType
from tacit.privacy.figures import exactly
from tacit.privacy.numbers import Real, exact
from tacit.privacy.texts import is_unicode

Category: TypeAlias = str | int | bool | date | None

CATEGORIES_MAX = 1_000_000
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d([T ].+)?", re.ASCII)


@dataclass(frozen=True, slots=True, init=False)
class Bounds:
    """The closed interval in which a column's values are taken to lie: numbers, dates or times.

    Dates and times may be given as text in ISO form, such as "2024-12-31" or "2024-12-31T12:00:00Z".
    """

    lower: Real | date
    upper: Real | date

    def __init__(self, lower: Real | date | str, upper: Real | date | str) -> None:
        first, last = _bound(lower), _bound(upper)
        if _kind(first) != _kind(last):
            raise WrongType("both bounds must be of one kind: two numbers, two dates or two times", name="bounds")
        if not first <= last:  # type: ignore[operator]
            raise OutOfRange(
                f"the lower bound must not lie above the upper bound, and {first} > {last}",
                name="bounds",
                value=(first, last),
            )
        object.__setattr__(self, "lower", first)
        object.__setattr__(self, "upper", last)


@dataclass(frozen=True, slots=True, init=False)
class Categories:
    """The values that a column can take, in the order in which they are shown."""

    values: tuple[Category, ...]

    def __init__(self, values: Iterable[Category]) -> None:
        given: object = values
        if isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
            what = "text" if isinstance(given, str) else type(given).__name__
            raise WrongType(f"categories are a list of values, not one {what}", name="categories", value=values)
        listed = tuple(values)
        if not listed:
            raise EmptyInput("categories must list at least one value", name="categories")
        if len(listed) > CATEGORIES_MAX:
            raise TooLarge(f"at most {CATEGORIES_MAX:,} categories can be declared", name="categories")
        for value in listed:
            if not isinstance(value, str | int | date | None):
                raise WrongType(
                    f"a category is a text, an integer, a truth value or a date, not {type(value).__name__}",
                    name="categories",
                    value=value,
                )
            if isinstance(value, str) and not is_unicode(value):
                raise InvalidInput(
                    "a category must be a text that can be written as UTF-8", name="categories", value=value
                )
        seen: set[tuple[type, Category]] = set()
        for value in listed:
            if (type(value), value) in seen:
                raise OutOfRange(f"duplicate category {value!r}", name="categories", value=value)
            seen.add((type(value), value))
        object.__setattr__(self, "values", listed)


def clamping_in_words(columns: Iterable[tuple[str, Bounds]]) -> str:
    """Return that values of columns beyond their bounds are clamped; empty without columns."""
    parts: list[str] = []
    for name, bounds in columns:
        low, high = (str(one) if isinstance(one, date) else exactly(float(one)) for one in (bounds.lower, bounds.upper))
        parts.append(f"of {name} below {low} or above {high} {'as' if parts else 'count as'} {low} or {high}")
    return f"values {', '.join(parts)}; intervals do not include the effect of this" if parts else ""


def _bound(value: Real | date | str) -> Real | date:
    if not isinstance(value, str):
        return value
    if _ISO.fullmatch(value):
        try:
            return date.fromisoformat(value) if len(value) == len("2024-12-31") else datetime.fromisoformat(value)
        except ValueError:
            pass
    raise WrongType(f"a bound is a number, a date or a time, not the text {value!r}", name="bounds", value=value)


def _kind(bound: object) -> str:
    if isinstance(bound, datetime):
        return "time" if bound.tzinfo is None else "time with its zone"
    if isinstance(bound, date):
        return "date"
    try:
        exact("a bound", bound)
    except NotFinite as error:
        raise NotFinite(f"bounds must be finite: {error.message}", name="bounds", value=bound) from None
    return "number"
