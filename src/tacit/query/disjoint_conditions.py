"""Conditions of which no row meets two, proved from their text alone.

Two conditions are disjoint if one has a conjunct that is the negation of a conjunct of the other, or if both compare
the same value with constants and their intervals do not meet. Where no proof is found, both measures pay for
themselves: that costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.measures import How, Measure
from tacit.query.parse import conjuncts
from tacit.query.scalars import negate
from tacit.query.scalars.trees import is_constant
from tacit.query.scalars.trees import value as constant_value


def disjoint_families(measures: Sequence[Measure]) -> list[int]:
    """Return the family of each measure: those of one family are about rows that are pairwise disjoint."""
    found: list[list[int]] = []
    places = []
    for index, measure in enumerate(measures):
        for place, family in enumerate(found):
            if all(_are_apart(measure, measures[other]) for other in family):
                family.append(index)
                places.append(place)
                break
        else:
            places.append(len(found))
            found.append([index])
    return places


def _are_apart(one: Measure, other: Measure) -> bool:
    """Whether no row can count for both measures."""
    summed = {How.ROWS, How.SUM, How.MEAN}
    if one.how not in summed or other.how not in summed or one.condition is None or other.condition is None:
        return False
    return are_disjoint(one.condition, other.condition)


def are_disjoint(one: Expression, other: Expression) -> bool:
    """Whether no row can meet both conditions."""
    mine, theirs = list(conjuncts(one.tree)), list(conjuncts(other.tree))
    opposite = {_negation(part) for part in mine}
    if any(part.sql(dialect="duckdb") in opposite for part in theirs):
        return True
    spans: dict[str, _Span] = {}
    for part in [*mine, *theirs]:
        compared = _interval_of(part)
        if compared is not None:
            name, span = compared
            spans[name] = spans.get(name, _Span()).intersect(span)
            if spans[name].is_empty:
                return True
    return False


@dataclass(frozen=True, slots=True)
class _Span:
    """An interval of constants of one kind; None is no limit."""

    lower: Any = None
    upper: Any = None
    lower_open: bool = False
    upper_open: bool = False

    def intersect(self, other: _Span) -> _Span:
        """Return the interval of the constants that both intervals hold."""
        lower, lower_open = _tighter((self.lower, self.lower_open), (other.lower, other.lower_open), above=True)
        upper, upper_open = _tighter((self.upper, self.upper_open), (other.upper, other.upper_open), above=False)
        return _Span(lower, upper, lower_open, upper_open)

    @property
    def is_empty(self) -> bool:
        """Whether no constant lies in the interval."""
        if self.lower is None or self.upper is None or not _comparable(self.lower, self.upper):
            return False
        return bool(self.lower > self.upper or (self.lower == self.upper and (self.lower_open or self.upper_open)))


def _tighter(one: tuple[Any, bool], other: tuple[Any, bool], *, above: bool) -> tuple[Any, bool]:
    """Return the tighter of two limits, each with whether it is open; `above` for lower limits."""
    if one[0] is None or other[0] is None or not _comparable(one[0], other[0]):
        return other if one[0] is None else one
    if one[0] == other[0]:
        return one[0], one[1] or other[1]
    return max(one, other) if above else min(one, other)


def _comparable(one: Any, other: Any) -> bool:
    numbers = (int, float)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return not (isinstance(one, float) and math.isnan(one)) and not (isinstance(other, float) and math.isnan(other))
    return type(one) is type(other)


def _negation(part: exp.Expression) -> str:
    return negate(Expression(part, Kind.BOOLEAN)).text


def _interval_of(part: exp.Expression) -> tuple[str, _Span] | None:
    """Return the value that a part compares with a constant, as text, and the interval that it allows; None if none."""
    if not isinstance(part, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE) or not is_constant(part.expression):
        return None
    name, value = part.this.sql(dialect="duckdb"), constant_value(part.expression)
    if isinstance(part, exp.EQ):
        return name, _Span(value, value)
    if isinstance(part, exp.LT | exp.LTE):
        return name, _Span(upper=value, upper_open=isinstance(part, exp.LT))
    return name, _Span(lower=value, lower_open=isinstance(part, exp.GT))
