"""Bounds that the owner did not declare, learnt privately in a first step that is paid out of the same epsilon.

A value without a range is counted in logarithmic bins (`ApproximateBounds`), each unit with a weight of 1 in all, in
fractions of 1/1024, so that one unit moves the counts by 1 in L1. The range found is public then, and values are
clamped to it. The event of the whole is fixed beforehand, because shares of epsilon do not depend on ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from sqlglot import exp

from tacit.engines.protocol import Columns
from tacit.mechanisms.approximate_bounds import LEARNING_BINS as BINS
from tacit.mechanisms.approximate_bounds import LEARNING_SCALE as SCALE
from tacit.mechanisms.approximate_bounds import UNLEARNED, ApproximateBounds
from tacit.mechanisms.randomness import RandomSource
from tacit.privacy.tables import Kind
from tacit.query.aggregates import MOMENTS, RANKED, Aggregate
from tacit.query.expressions import BOUNDED_BELOW, Expression, Range
from tacit.query.question import Question
from tacit.query.scalars import clamp

UNKNOWN: Final = Range(*map(Fraction, UNLEARNED))
"""The stand-in for a range until it is learnt."""

WIDEST: Final = Range(-SCALE * 2 ** (BINS - 1), SCALE * 2 ** (BINS - 1))
"""The widest range that can be learnt; what holds for it at planning holds for any other."""


@dataclass(frozen=True, slots=True)
class UnboundedValue:
    """A value whose range is to be learnt, and the aggregate that needs it."""

    value: Expression
    label: str

    @property
    def key(self) -> str:
        """The value as text."""
        return self.value.text

    @property
    def bin_tree(self) -> exp.Expression:
        """The engine's tree of a row's bin, between -BINS and BINS - 1, NULL where the value is."""
        value = self.value.tree if self.value.kind is Kind.REAL else exp.cast(self.value.tree.copy(), "DOUBLE")
        size = exp.Abs(this=value.copy())
        largest = _real(float(SCALE * 2 ** (BINS - 1)))
        capped = exp.Case().when(exp.GT(this=size.copy(), expression=largest.copy()), largest).else_(size.copy())
        steps = exp.Anonymous(this="LOG2", expressions=[exp.Div(this=capped, expression=_real(float(SCALE)))])
        place = exp.cast(exp.Ceil(this=steps), "BIGINT")
        near = exp.LTE(this=size.copy(), expression=_real(float(SCALE)))
        where = exp.Case().when(near, exp.Literal.number(0)).when(exp.GT(this=size, expression=_real(0.0)), place)
        negative = exp.Sub(this=exp.Neg(this=exp.Literal.number(1)), expression=exp.paren(where.copy()))
        below = exp.LT(this=value.copy(), expression=_real(0.0))
        return exp.Case().when(below, negative).when(exp.GTE(this=value.copy(), expression=_real(0.0)), where)


def unbounded_values(question: Question) -> tuple[UnboundedValue, ...]:
    """Return the values that need a range and have none, each once."""
    found: dict[str, UnboundedValue] = {}
    for aggregate in question.aggregates:
        for value in aggregate.arguments:
            if _needs_range(aggregate, value):
                found.setdefault(value.text, UnboundedValue(value, aggregate.label))
    return tuple(found.values())


def with_ranges(question: Question, ranges: dict[str, Range]) -> Question:
    """Return the question with learnt ranges in the place of missing ones, values clamped to them."""

    def ranged(aggregate: Aggregate) -> Aggregate:
        arguments = tuple(
            clamp(value, ranges[value.text]) if _needs_range(aggregate, value) else value
            for value in aggregate.arguments
        )
        return replace(aggregate, arguments=arguments)

    return replace(question, aggregates=tuple(map(ranged, question.aggregates)))


def learn_range(mechanism: ApproximateBounds, columns: Columns, source: RandomSource) -> tuple[Range, bool]:
    """Release the range of a value from the weights of its bins, and whether it is a guess."""
    counts = np.zeros(2 * BINS, dtype=np.int64)
    for place, weight in zip(columns["cell"], columns["w"], strict=True):
        counts[int(place) + BINS] = int(weight)
    found, is_guess = mechanism.learn(counts, source)
    return Range(found.lower, found.upper), is_guess


def _needs_range(aggregate: Aggregate, value: Expression) -> bool:
    ranked = aggregate.function in RANKED
    if aggregate.function not in MOMENTS | {"sum"} and not ranked:
        return False
    return value.kind.is_number and (value.range is None or value.range.size >= BOUNDED_BELOW)


def _real(number: float) -> exp.Expression:
    return exp.cast(exp.Literal.string(repr(number)), "DOUBLE")
