"""Conditions that no row meets both of, proved from their text alone.

Two conditions are disjoint if all of the parts of one cannot hold with all of the parts of the other: one has a part
that is the negation of a part of the other, or both compare the same value with constants in ways that leave no room.
A proof that is not found costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.measures import How, Measure
from tacit.query.scalars import negate
from tacit.query.scalars.trees import is_constant
from tacit.query.scalars.trees import value as constant_value


def families(measures: Sequence[Measure]) -> list[int]:
    """Return the family of each measure: those of one family are about rows that are pairwise disjoint."""
    found: list[list[int]] = []
    places = []
    for index, measure in enumerate(measures):
        for place, family in enumerate(found):
            if all(_apart(measure, measures[other]) for other in family):
                family.append(index)
                places.append(place)
                break
        else:
            places.append(len(found))
            found.append([index])
    return places


def _apart(one: Measure, other: Measure) -> bool:
    summed = {How.ROWS, How.SUM, How.MEAN}
    if one.how not in summed or other.how not in summed or one.condition is None or other.condition is None:
        return False
    return disjoint(one.condition, other.condition)


def disjoint(one: Expression, other: Expression) -> bool:
    """Whether no row can meet both conditions."""
    mine, theirs = list(_parts(one.tree)), list(_parts(other.tree))
    opposite = {_negation(part) for part in mine}
    if any(part.sql(dialect="duckdb") in opposite for part in theirs):
        return True
    spans: dict[str, _Span] = {}
    for part in [*mine, *theirs]:
        compared = _compared(part)
        if compared is not None:
            name, span = compared
            spans[name] = spans.get(name, _Span()).within(span)
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

    def within(self, other: _Span) -> _Span:
        lower, lower_open = _tighter((self.lower, self.lower_open), (other.lower, other.lower_open), above=True)
        upper, upper_open = _tighter((self.upper, self.upper_open), (other.upper, other.upper_open), above=False)
        return _Span(lower, upper, lower_open, upper_open)

    @property
    def is_empty(self) -> bool:
        if self.lower is None or self.upper is None or not _comparable(self.lower, self.upper):
            return False
        return bool(self.lower > self.upper or (self.lower == self.upper and (self.lower_open or self.upper_open)))


def _tighter(one: tuple[Any, bool], other: tuple[Any, bool], *, above: bool) -> tuple[Any, bool]:
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


def _parts(tree: exp.Expression) -> Iterator[exp.Expression]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And):
            waiting += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            waiting.append(node.this)
        else:
            yield node


def _negation(part: exp.Expression) -> str:
    return negate(Expression(part, Kind.BOOLEAN)).text


def _compared(part: exp.Expression) -> tuple[str, _Span] | None:
    """Return what a part compares with a constant, and the interval that it leaves."""
    if not isinstance(part, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE) or not is_constant(part.expression):
        return None
    name, value = part.this.sql(dialect="duckdb"), constant_value(part.expression)
    if isinstance(part, exp.EQ):
        return name, _Span(value, value)
    if isinstance(part, exp.LT | exp.LTE):
        return name, _Span(upper=value, upper_open=isinstance(part, exp.LT))
    return name, _Span(lower=value, lower_open=isinstance(part, exp.GT))
