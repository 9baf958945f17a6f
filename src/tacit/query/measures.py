"""Measures: the whole numbers that are taken of each group, from which the aggregates of a question are computed.

How far one unit moves a measure follows from the range of one row's part (`contribution`). Quantiles, extremes and
modes are not computed from measures; they are private choices (`private_choices`).

AVG, VAR, STDDEV, COVAR and CORR are computed from moments around the middle of the declared interval (as in the bounded
mean of Wilson et al. 2020): centred values are half as large as the interval, and so is their noise. Moments are
shared: AVG(x), VAR(x) and CORR(x, y) of one question use the same count and the same sum of x.

A value is first put on a public grid of whole steps around a centre, so that sums are exact and do not depend on the
order of rows. Powers and products of steps are whole numbers as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.measuring.moments import MEAN_STEPS, SQUARE_STEPS, SUM_STEPS, TINY, grid_step, square_offset
from tacit.mechanisms.grid import Grid
from tacit.privacy.tables import Kind
from tacit.query.aggregates import MOMENTS, RANKED, Aggregate
from tacit.query.expressions import Expression, Range, require_range
from tacit.query.private_choices import PrivateChoice, private_choice
from tacit.query.scalars import grid_steps
from tacit.query.scalars.value_ranges import half_away

WHOLE_STEPS: Final = 2**30
"""The number of steps of the greatest value in sums of whole numbers."""

SHARED_STEPS: Final = 2**24
"""How many steps a sum may have to be counted on the finer grid of the mean."""


class How(StrEnum):
    """How the rows of one unit in one group become its contribution, R being the limit on rows per group."""

    ROWS = "rows"
    """The number of those whose value is not NULL, at most R."""
    UNITS = "units"
    """1 if there is a row, else 0."""
    SUM = "sum"
    """Their sum, clamped to what R rows can come to."""
    VALUES = "values"
    """The number of different values of a group: a unit brings R at most, and those that others bring count once."""
    MEAN = "mean"
    """Their sum if the unit has at most R rows, otherwise R times their mean."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A value as whole numbers: value / step, rounded, less `shift`, which then lies between `low` and `high`."""

    value: Expression
    step: Fraction
    shift: int
    low: int
    high: int
    tree: exp.Expression
    """The engine's tree of the whole number, before `shift` is taken off."""

    @property
    def reach(self) -> int:
        """The greatest absolute number."""
        return max(abs(self.low), abs(self.high))

    @property
    def centre(self) -> Fraction:
        """The value that is counted as 0."""
        return self.shift * self.step

    @property
    def lower(self) -> float:
        """The lower end of the value's range."""
        return float(require_range(self.value).lower)

    @property
    def upper(self) -> float:
        """The upper end of the value's range."""
        return float(require_range(self.value).upper)

    @property
    def shifted(self) -> exp.Expression:
        """The engine's tree of the whole number."""
        return exp.paren(exp.Sub(this=self.tree.copy(), expression=_whole(self.shift)) if self.shift else self.tree)


@dataclass(frozen=True, slots=True)
class Measure:
    """One whole number for each group: how it is added up, and between which numbers one row's part lies."""

    how: How
    label: str
    condition: Expression | None = None
    tree: exp.Expression | None = None
    """A row's part: a whole number between `low` and `high`, or what is counted; None counts every row."""
    low: int = 0
    high: int = 1
    shift: int = 0
    """What is taken off each row's number; `low` and `high` are without it."""
    step: Fraction = Fraction(1)
    """Size of one grid step in units of the column, for display."""
    most: int | None = None
    """How many different values there are at all, if that is public."""

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the measure for deduplication; does not include the label."""
        return self.how, self.tree, self.shift, self.condition.tree if self.condition else None

    def contribution(self, rows: int) -> int:
        """Return the greatest change that one unit makes in one group, with `rows` rows at most."""
        if self.how is How.UNITS:
            return 1
        if self.how is How.VALUES and self.most is not None:
            return min(rows, self.most)
        reach = max(abs(self.low), abs(self.high))
        return max(1, rows * reach)  # noise has a scale, also where there is nothing to add


@dataclass(frozen=True, slots=True)
class Estimate:
    """How an aggregate is computed from measures, given by their indices among those of the question."""

    function: str
    measures: tuple[int, ...]
    weights: tuple[float, ...]
    """How much each measure's noise matters to the answer, the most important one counted 1."""
    grids: tuple[Steps, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """Where the answer to an aggregate comes from: an estimate from measures, or a private choice by its index."""

    estimate: Estimate | None = None
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class QueryMeasures:
    """What is measured and chosen for the aggregates of a question, and how each of them follows from it."""

    measures: tuple[Measure, ...]
    weights: tuple[float, ...]
    """For each measure, how much its noise matters to the answer that it matters most to."""
    choices: tuple[PrivateChoice, ...]
    answers: tuple[AnswerSource, ...]
    """For each aggregate, where its answer comes from."""


def measure(aggregates: Sequence[Aggregate]) -> QueryMeasures:
    """Return the measures and private choices that aggregates need, equal ones once."""
    collected, choices, answers = _Collector(aggregates), dict[str, PrivateChoice](), list[AnswerSource]()
    for aggregate in aggregates:
        if aggregate.function in RANKED or aggregate.function == "mode":
            choice = private_choice(aggregate)
            choices.setdefault(choice.key, choice)
            answers.append(AnswerSource(choice=list(choices).index(choice.key)))
        else:
            answers.append(AnswerSource(collected.estimate(aggregate)))
    weights = [0.0] * len(collected.measures)
    for answer in answers:
        if answer.estimate is not None:
            for place, weight in zip(answer.estimate.measures, answer.estimate.weights, strict=True):
                weights[place] = max(weights[place], weight)
    return QueryMeasures(tuple(collected.measures), tuple(weights), tuple(choices.values()), tuple(answers))


class _Collector:
    """Collects the measures of a question, each once; a value that is squared somewhere has one grid everywhere."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self.measures: list[Measure] = []
        self._by_key: dict[tuple[object, ...], int] = {}
        self._squared = {
            value.text for one in aggregates if one.function in MOMENTS - {"avg"} for value in one.arguments
        }
        self._averaged = {
            _subject(one) for one in aggregates if one.function in MOMENTS and len(one.arguments) == 1
        }  # their sums follow from what is measured for their means, and need no noise of their own

    def add(self, measure: Measure) -> int:
        """Return the index of a measure, adding it if it is new."""
        key = measure.key
        if key not in self._by_key:
            self._by_key[key] = len(self.measures)
            self.measures.append(measure)
        return self._by_key[key]

    def estimate(self, aggregate: Aggregate) -> Estimate:
        """Return how an aggregate is computed from measures, adding those that it needs."""
        condition = aggregate.condition
        if aggregate.function in ("count", "units"):
            how = How.ROWS if aggregate.function == "count" else How.UNITS
            tree = aggregate.arguments[0].tree if aggregate.arguments else None
            return Estimate(aggregate.function, (self.add(Measure(how, aggregate.label, condition, tree)),), (1.0,))
        if aggregate.function == "distinct":
            value = aggregate.arguments[0]
            most = len(value.domain) if value.domain else None
            measure = Measure(How.VALUES, aggregate.label, condition, value.tree, most=most)
            return Estimate("distinct", (self.add(measure),), (1.0,))
        if aggregate.function == "sum" and _subject(aggregate) not in self._averaged:
            grid = _grid(aggregate.arguments[0], SUM_STEPS, centred=False)
            measure = Measure(How.SUM, aggregate.label, condition, grid.tree, grid.low, grid.high, step=grid.step)
            return Estimate("sum", (self.add(measure),), (1.0,), (grid,))
        counted = aggregate.arguments[0] if len(aggregate.arguments) == 1 and aggregate.arguments[0].nullable else None
        count = self.add(Measure(How.ROWS, f"rows of {aggregate.label}", condition, counted.tree if counted else None))
        if aggregate.function in ("avg", "sum"):
            value = aggregate.arguments[0]
            grid = _grid(value, SQUARE_STEPS if value.text in self._squared else MEAN_STEPS)
            weights = (0.5, 1.0) if aggregate.function == "avg" else (0.8, 1.0)
            return Estimate(aggregate.function, (count, self._first(grid, aggregate)), weights, (grid,))
        if aggregate.function in ("covar_pop", "covar_samp", "corr"):
            return self._second_of_two(aggregate, count)
        grid = _grid(aggregate.arguments[0], SQUARE_STEPS)
        square = self._square(grid, aggregate)
        places = (count, self._first(grid, aggregate), square)
        return Estimate(aggregate.function, places, (0.5, 0.7, 1.0), (grid,))

    def _second_of_two(self, aggregate: Aggregate, count: int) -> Estimate:
        condition = aggregate.condition
        one, other = (_grid(value, SQUARE_STEPS) for value in aggregate.arguments)
        reach = one.reach * other.reach
        tree = exp.Mul(this=one.shifted, expression=other.shifted)
        label = f"products of {aggregate.label}"
        cross = self.add(Measure(How.MEAN, label, condition, tree, -reach, reach, step=one.step * other.step))
        places = [count, self._first(one, aggregate), self._first(other, aggregate), cross]
        weights = [0.5, 0.7, 0.7, 1.0]
        if aggregate.function == "corr":
            places += [self._square(grid, aggregate) for grid in (one, other)]
            weights += [1.0, 1.0]
        return Estimate(aggregate.function, tuple(places), tuple(weights), (one, other))

    def _first(self, grid: Steps, aggregate: Aggregate) -> int:
        label = f"sum of {aggregate.label} around {_shown(grid.centre)}"
        return self.add(
            Measure(How.MEAN, label, aggregate.condition, grid.tree, grid.low, grid.high, grid.shift, grid.step)
        )

    def _square(self, grid: Steps, aggregate: Aggregate) -> int:
        top, shift = grid.reach**2, square_offset(grid)
        squared = exp.Mul(this=grid.shifted, expression=grid.shifted)
        tree = exp.Sub(this=squared, expression=exp.Literal.number(shift))
        label = f"squares of {aggregate.label} around {_shown(grid.centre)}"
        measure = Measure(How.MEAN, label, aggregate.condition, tree, -shift, top - shift, step=grid.step**2)
        return self.add(measure)


def _subject(aggregate: Aggregate) -> tuple[str, str]:
    """Return the value and the condition of an aggregate of one value, as texts."""
    return aggregate.arguments[0].text, aggregate.condition.text if aggregate.condition else ""


def _grid(value: Expression, reach: int, *, centred: bool = True) -> Steps:
    """Choose the grid of a value from its declared range alone: around 0 for sums, around its middle for the others."""
    range_ = require_range(value)
    is_whole = value.kind is Kind.INTEGER
    steps = WHOLE_STEPS if is_whole and not centred else reach
    step = grid_step(range_.lower, range_.upper, steps, is_whole=is_whole, centred=centred)
    if not (is_whole or centred):
        shared = Grid.below(max((range_.upper - range_.lower) / 2, TINY) / MEAN_STEPS).step
        if range_.size / shared <= SHARED_STEPS:
            step = shared  # the grid of the mean, so that both are sums of one column
    tree, low, high = _step_tree(value, range_, step)
    shift = (low + high) // 2 if centred else 0
    return Steps(value, step, shift, low - shift, high - shift, tree)


def _step_tree(value: Expression, range_: Range, step: Fraction) -> tuple[exp.Expression, int, int]:
    """Return the tree of value / step, rounded, and between which numbers it lies."""
    if value.kind is Kind.REAL and value.is_stored and isinstance(value.tree, exp.Column):
        # Multiplying by a power of two is exact and rounding is monotonic, so the ends are those of the range.
        scaled = exp.Mul(
            this=value.tree.copy(), expression=exp.cast(exp.Literal.string(repr(float(1 / step))), "DOUBLE")
        )
        tree = exp.cast(exp.Round(this=scaled), "BIGINT")
        return tree, half_away(range_.lower / step), half_away(range_.upper / step)
    low, high = round(range_.lower / step), round(range_.upper / step)
    if step == Fraction(1, 2) and value.kind is Kind.INTEGER:
        whole = grid_steps(value, Fraction(1), Fraction(0))
        return exp.Mul(this=exp.paren(whole), expression=exp.Literal.number(2)), low, high
    return grid_steps(value, step, Fraction(0)), low, high


def _whole(number: int) -> exp.Expression:
    return exp.Literal.number(number) if number >= 0 else exp.paren(exp.Neg(this=exp.Literal.number(-number)))


def _shown(number: Fraction) -> str:
    return f"{float(number):g}"
