"""A value computed from one row: what the engine evaluates, and what is public about the result.

Promise: an `Expression` is total (evaluating it never fails, whatever the row holds), depends on one row alone, and
its facts hold for every row: a value is NULL only if `nullable`, otherwise inside `range`, one of `domain`, and a text
of at most `length` characters. The tree is made of the nodes that this package builds, never of the analyst's, so
nothing reaches an engine by accident.

NULL propagates as in SQL; NaN does not exist (it is turned into NULL where a column is read, and functions that could
make one give NULL); infinities exist in reals without a range and are clamped where a range is declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.privacy.errors import NotBounded
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind

Constant: TypeAlias = str | int | float | bool | date | None
"""What a literal holds; a datetime is a date, too."""

DERIVED_TEXT_MAX: Final = 65_536
"""How many characters a text has at most that is computed; a longer one is refused."""

EXACT_MAX: Final = 2**53
"""Whole numbers up to here are exact in doubles, so that both kinds of arithmetic agree."""

BOUNDED_BELOW: Final = 2**50
"""Ranges that reach further are useless: noise for them would drown any answer."""


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval of numbers; dates are counted in days since 1970, times in microseconds since then."""

    lower: Fraction
    upper: Fraction

    @classmethod
    def of(cls, lower: int | float | Fraction | date, upper: int | float | Fraction | date) -> Range:
        """Return the interval between two numbers, dates or times."""
        return cls(position(lower), position(upper))

    @property
    def size(self) -> Fraction:
        """The greatest absolute value."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def middle(self) -> Fraction:
        """The point half-way."""
        return (self.lower + self.upper) / 2

    def union(self, other: Range) -> Range:
        """The least interval that holds both."""
        return Range(min(self.lower, other.lower), max(self.upper, other.upper))


@dataclass(frozen=True, slots=True)
class Expression:
    """A row's value: its tree for the engine, its kind, and public facts.

    `domain` lists every value that is not NULL, in the order in which they are shown. `unit` marks the unit's own
    column and whatever is computed from it: such values are compared and joined, never shown or added up.
    """

    tree: exp.Expression
    kind: Kind
    range: Range | None = None
    domain: tuple[Constant, ...] | None = None
    nullable: bool = True
    unit: bool = False
    listed: tuple[Constant, ...] | None = None
    """The categories that the owner listed, NULL among them if it is a group of its own; rows may hold others, which
    are in none of the groups that are shown."""
    link: str | None = None
    """Of a key that leads to the unit, what it leads to: rows with equal keys of one link belong to one unit."""
    length: int = TEXT_LENGTH_MAX
    """How many characters a text has at most; of no meaning for other kinds."""
    makes_null: bool = False
    """Whether NULL can come of the query itself (an outer join, a CASE without ELSE, a cast that fails), and not only
    of a value that is missing in storage: it is then one of the values of a key."""
    is_stored: bool = False
    """Whether this is a column of a registered table, which the engine shows clamped to its bounds. What is computed is
    clamped to its range once more where it is added up, so that no sum depends on the rules of ranges alone."""

    @property
    def text(self) -> str:
        """The tree as text: equal for equal expressions, whatever way they were written."""
        return self.tree.sql(dialect="duckdb")


def position(value: int | float | Fraction | date) -> Fraction:
    """Return a number as it is, a date in days and a time in microseconds since 1970."""
    if isinstance(value, datetime):
        return Fraction((value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1))
    if isinstance(value, date):
        return Fraction(value.toordinal() - date(1970, 1, 1).toordinal())
    return Fraction(value)


def require_range(value: Expression, label: str = "") -> Range:
    """Return the range of a value; raise NotBounded if it has none, or one that is too wide to be of use."""
    if value.range is None or (value.kind.is_number and value.range.size >= BOUNDED_BELOW):
        raise NotBounded(
            f"{label or value.text} has no public bounds",
            accepted="declare bounds for its columns, or clamp it with LEAST and GREATEST",
        )
    return value.range
