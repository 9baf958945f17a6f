"""Allocation of a query's cost over its measures, and disjoint measures that share one part.

Conditions that no row meets both of, proved from their text alone.

Two conditions are disjoint if all of the parts of one cannot hold with all of the parts of the other: one has a part
that is the negation of a part of the other, or both compare the same value with constants in ways that leave no room.
A proof that is not found costs accuracy, never privacy.

The fifth pass: how the cost of a question is shared among what it releases, and which noise that takes.

Promise: `event` records all that an answer releases, and its price in the ledger is at most what was asked for. One
epsilon pays for the whole answer, whatever number of aggregates it holds.

What is shared: measures (noise on whole numbers), choices (quantiles, modes: the exponential mechanism) and the
selection of groups whose keys are not public. Each gets a part in proportion to its weight, and measures the narrower
noise of two (`measuring.allocation`). Choices and the selection are made in every group, and a unit is in so many
groups at most: their events are repeated that often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
from sqlglot import exp

from tacit.measuring.allocation import MARGIN, Allocation, Noise, noises
from tacit.mechanisms import ApproximateBounds, Exponential, KeySelection, Laplace
from tacit.mechanisms.approximate_bounds import LEARNING_WEIGHT
from tacit.privacy.errors import InvalidInput, NeedsDelta, OutOfRange
from tacit.privacy.events import Composed, Event, Repeated
from tacit.privacy.numbers import DEFAULT_LEVEL, positive, rounded_down, rounded_up
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.query.contribution import Bounding
from tacit.query.expressions import Expression
from tacit.query.learned_bounds import WEIGHT
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


WANTED_MAX: Final = 1e18
"""The largest price that is computed with; far above any budget."""
EPSILON_MIN, EPSILON_MAX = 1e-6, 1e6


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a budget allows: its relation, and the delta that one question may take of it (0: none)."""

    relation: Relation = Relation.ADD_REMOVE
    delta: float = 0.0
    way_to_delta: str = field(default="", compare=False)
    """How a budget without a delta gets one, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the caller asked for: epsilon, rho, or a half-width of the interval; exactly one of them.

    `delta` is for the selection of groups, if the budget's usual share of it is not wanted.
    """

    epsilon: float | None = None
    rho: float | None = None
    error: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "error") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput("a question is asked for epsilon=, rho= or error=: exactly one of them", name="epsilon")
        wanted = float(positive(given[0], getattr(self, given[0])))
        if wanted > WANTED_MAX:
            raise OutOfRange(f"{given[0]} is at most {WANTED_MAX:g}; no budget is as large", name=given[0])
        object.__setattr__(self, given[0], wanted)
        if self.delta is not None:
            delta = float(positive("delta", self.delta))
            if delta >= 1:
                raise OutOfRange("delta is far below 1", name="delta", value=self.delta)
            object.__setattr__(self, "delta", delta)


@dataclass(frozen=True, slots=True)
class Choice:
    """A private choice in every group: how far one unit moves a score in one group."""

    label: str
    sensitivity: int


@dataclass(frozen=True)
class Items:
    """All that a question releases, before it is priced."""

    measures: tuple[Measure, ...]
    weights: tuple[float, ...]
    choices: tuple[Choice, ...]
    selects_keys: bool
    bounding: Bounding
    learnt: int = 0
    """For how many values bounds are learnt."""
    times: int = 1
    """How often all measures are taken: once for each grouping set that is measured by itself."""

    @cached_property
    def families(self) -> list[int]:
        """The family of each measure: rows of one family are disjoint, and where rows are added up as they are, a row
        moves one measure of a family only, so that its measures share one part of the cost (parallel composition)."""
        if self.bounding.whole_rows is None:
            return list(range(len(self.measures)))
        return families(self.measures)

    @property
    def family_weights(self) -> list[float]:
        """The weight of each family: that of its most important measure."""
        found = [0.0] * (max(self.families, default=-1) + 1)
        for family, weight in zip(self.families, self.weights, strict=True):
            found[family] = max(found[family], weight)
        return found


@dataclass(frozen=True, slots=True)
class QueryPrice:
    """The mechanisms of a question, in the order of its items, and the event that is charged."""

    noises: tuple[Noise, ...]
    choices: tuple[Exponential, ...]
    selection: KeySelection | None
    bounds: tuple[ApproximateBounds, ...]
    event: Event

    def scaled(self, measures: Sequence[Measure], choices: Sequence[Choice], bounding: Bounding) -> QueryPrice:
        """Return the same price for measures and choices whose ranges, and so sensitivities, have become known."""
        noises = tuple(
            replace(noise, sensitivity=bounding.l1(one) if isinstance(noise, Laplace) else bounding.l2(one))
            for noise, one in zip(self.noises, measures, strict=True)
        )
        chosen = tuple(
            replace(mechanism, sensitivity=bounding.per_group(one.sensitivity))
            for mechanism, one in zip(self.choices, choices, strict=True)
        )
        return replace(self, noises=noises, choices=chosen)

    def half_width(self, index: int, level: float = DEFAULT_LEVEL) -> float:
        """Return the half-width of the interval of a measure, in its steps."""
        interval = self.noises[index].interval(level, np.zeros(1, dtype=np.int64))
        return float((interval.high - interval.low)[0]) / 2


def priced(items: Items, target: Target, tariff: Tariff, width: Callable[[QueryPrice], float]) -> QueryPrice:
    """Share what was asked for; `width` gives the half-width that `error` is about."""
    if items.selects_keys and not tariff.delta:
        raise NeedsDelta(
            "the keys of this query are not public, and showing them needs a budget with a delta above 0",
            accepted='list them (keys={"city": ["Bern", "Basel"]}, --keys city=Bern,Basel) or declare the categories '
            f"of their columns{tariff.way_to_delta}",
        )
    delta = tariff.delta if target.delta is None else target.delta
    if target.rho is not None:
        return _for(items, Allocation(items.bounding.relation, rho=target.rho * MARGIN), delta)

    def for_epsilon(epsilon: float) -> QueryPrice:
        return _for(items, Allocation(items.bounding.relation, Fraction(epsilon), delta=tariff.delta), delta)

    if target.epsilon is not None:
        return for_epsilon(target.epsilon)
    wanted = float(target.error or 0)
    low, high = math.log(EPSILON_MIN), math.log(EPSILON_MAX)
    if width(for_epsilon(EPSILON_MAX)) > wanted:
        raise OutOfRange(
            f"no epsilon below {EPSILON_MAX:g} gives an interval of ±{wanted:g}", name="error", value=wanted
        )
    while high - low > 1e-4:
        middle = (low + high) / 2
        enough = width(for_epsilon(math.exp(middle))) <= wanted
        low, high = (low, middle) if enough else (middle, high)
    return for_epsilon(_readable(math.exp(high)))


def _for(items: Items, allocation: Allocation, delta: float) -> QueryPrice:
    """Divide an allocation over all items; `delta` is for the selection of keys."""
    groups, relation = items.bounding.groups_changed, items.bounding.relation
    weights = items.family_weights
    others = [1.0] * len(items.choices) + [LEARNING_WEIGHT] * items.learnt + [1.0] * items.selects_keys
    parts = iter(allocation.divided(*weights, *others) if weights or others else ())
    sensitivities = [(items.bounding.l1(measure), items.bounding.l2(measure)) for measure in items.measures]
    paid = list(islice(parts, len(weights)))
    measured = noises(paid, weights, sensitivities, places=items.families, times=items.times)
    by_family = {family: noise.event for family, noise in zip(items.families, measured, strict=True)}
    events: list[Event] = [_often(event, items.times) for event in by_family.values()]
    choices = []
    for choice, part in zip(items.choices, islice(parts, len(items.choices)), strict=True):
        sensitivity = items.bounding.per_group(choice.sensitivity)
        choices.append(Exponential(sensitivity, part.repeated(groups).choice_epsilon, relation=relation))
        events.append(_often(choices[-1].event, groups))
    bounds = tuple(
        ApproximateBounds.learning(items.bounding.per_group(WEIGHT), part.pure_epsilon, relation)
        for part in islice(parts, items.learnt)
    )
    events += [one.event for one in bounds]
    selection = None
    for part in parts:
        one = part.repeated(groups).pure_epsilon
        selection = KeySelection(one, rounded_down(Fraction(delta) / groups), relation=relation)
        events.append(_often(selection.event, items.bounding.groups))  # which counts both groups of a replaced unit
    event = events[0] if len(events) == 1 else Composed(tuple(events))
    return QueryPrice(measured, tuple(choices), selection, bounds, event)


def _often(event: Event, count: int) -> Event:
    return event if count == 1 else Repeated(event, count)


def _readable(epsilon: float) -> float:
    """Round an epsilon up to four digits."""
    digits = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
    return rounded_up(Fraction(math.ceil(epsilon / digits)) * Fraction(digits))
