"""Public facts about a column, stated by its owner and never read off the data.

Bounds say between which numbers values lie (what lies outside is clamped), categories say which values exist (others
count as none of them). Both limit how far one unit can move an answer, so both are chosen without looking.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

from tacit.privacy.errors import EmptyInput, NotFinite, OutOfRange, TooLarge, WrongType
from tacit.privacy.numbers import Real, exact

Category: TypeAlias = str | int | bool | date | None

CATEGORIES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """The closed interval in which a column's values are taken to lie: numbers, dates or times."""

    lower: Real | date
    upper: Real | date

    def __post_init__(self) -> None:
        if _kind(self.lower) != _kind(self.upper):
            raise WrongType("both bounds must be of one kind: two numbers, two dates or two times", name="bounds")
        if not self.lower <= self.upper:  # type: ignore[operator]
            raise OutOfRange(
                f"the lower bound must not lie above the upper bound, and {self.lower} > {self.upper}",
                name="bounds",
                value=(self.lower, self.upper),
            )


@dataclass(frozen=True, slots=True, init=False)
class Categories:
    """The values that a column can take, in the order in which they are shown."""

    values: tuple[Category, ...]

    def __init__(self, values: Iterable[Category]) -> None:
        if isinstance(values, str):
            raise WrongType("categories are a list of values, not one text", name="categories", value=values)
        listed = tuple(values)
        if not listed:
            raise EmptyInput("categories must list at least one value", name="categories")
        if len(listed) > CATEGORIES_MAX:
            raise TooLarge(f"at most {CATEGORIES_MAX:,} categories can be declared", name="categories")
        for value in listed:
            if not isinstance(value, str | int | date | None):
                raise WrongType(
                    f"a category is a text, a whole number, a truth value or a date, not {type(value).__name__}",
                    name="categories",
                    value=value,
                )
        seen: set[tuple[type, Category]] = set()
        for value in listed:
            if (type(value), value) in seen:
                raise OutOfRange(f"categories must differ, and {value!r} stands twice", name="categories", value=value)
            seen.add((type(value), value))
        object.__setattr__(self, "values", listed)


def _kind(bound: object) -> str:
    if isinstance(bound, datetime):
        return "time"
    if isinstance(bound, date):
        return "date"
    try:
        exact("a bound", bound)
    except NotFinite as error:
        raise NotFinite(f"bounds must be finite: {error.message}", name="bounds", value=bound) from None
    return "number"
