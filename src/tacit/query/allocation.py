"""Allocation: how the cost of a question is divided over what it releases, and which noise that gives.

Promise: `event` records all that an answer releases, and its price in the ledger is at most what was asked for. One
epsilon pays for the whole answer, whatever number of aggregates it holds.

The cost is divided over measures (noise on whole numbers), private choices (quantiles, modes: the exponential
mechanism) and the selection of groups whose keys are not public. Each gets a part in proportion to its weight, and
measures the narrower noise of two (`measuring.allocation`). Choices and the selection are made in every group, and a
unit is in a limited number of groups: their events are repeated that often.

Two ways to measure grouping sets under one charge, and which of them has the lower error.

apart      Each set is measured like a question of its own. The cost is divided evenly over the sets, and the event is
           that of all of them (basic composition, or zero-concentrated where noise is Gaussian). Ten keys have more
           finest groups than can be measured well, while their tables by two keys are small.
together   The finest groups are measured once and added up, which is better where there are few of them.

The choice is by the mean variance over all numbers shown, which follows from public facts: sizes of domains and noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np

from tacit.measuring.allocation import Allocation, BudgetTerms, Noise, noises
from tacit.mechanisms import ApproximateBounds, Exponential, KeySelection, Laplace
from tacit.mechanisms.approximate_bounds import LEARNING_WEIGHT
from tacit.privacy.errors import InvalidInput, NeedsDelta, OutOfRange
from tacit.privacy.events import Event, Repeated, composed
from tacit.privacy.numbers import DEFAULT_LEVEL, positive, rounded_down, rounded_up
from tacit.query.contribution import Bounding
from tacit.query.disjoint_conditions import disjoint_families
from tacit.query.keys import Domain
from tacit.query.measures import Measure, QueryMeasures
from tacit.query.private_choices import WEIGHT, PrivateChoice

WANTED_MAX: Final = 1e18
"""The largest price that is computed with; far above any budget."""
EPSILON_MIN, EPSILON_MAX = 1e-6, 1e6


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
            raise InvalidInput("pass exactly one of epsilon=, rho= and error=", name="epsilon")
        wanted = float(positive(given[0], getattr(self, given[0])))
        if wanted > WANTED_MAX:
            raise OutOfRange(f"{given[0]} must be at most {WANTED_MAX:g}", name=given[0])
        object.__setattr__(self, given[0], wanted)
        if self.delta is not None:
            delta = float(positive("delta", self.delta))
            if delta >= 1:
                raise OutOfRange("delta must be below 1", name="delta", value=self.delta)
            object.__setattr__(self, "delta", delta)


@dataclass(frozen=True)
class ReleaseItems:
    """What a question releases, to be priced."""

    measures: tuple[Measure, ...]
    weights: tuple[float, ...]
    choices: tuple[PrivateChoice, ...]
    selects_keys: bool
    bounding: Bounding
    learned: int = 0
    """For how many values bounds are learnt."""
    times: int = 1
    """How often all measures are taken: once for each grouping set that is measured by itself."""

    @cached_property
    def families(self) -> list[int]:
        """The family of each measure; measures of one family share one part of the cost (parallel composition).

        Their rows are disjoint, and where rows are added up as they are, a row moves one measure of a family only.
        """
        if self.bounding.whole_rows is None:
            return list(range(len(self.measures)))
        return disjoint_families(self.measures)

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

    def rescale(self, measured: QueryMeasures, bounding: Bounding) -> QueryPrice:
        """Return the same price for measures and choices whose ranges, and so sensitivities, have become known."""
        noises = tuple(
            replace(noise, sensitivity=bounding.l1(one) if isinstance(noise, Laplace) else bounding.l2(one))
            for noise, one in zip(self.noises, measured.measures, strict=True)
        )
        chosen = tuple(
            replace(mechanism, sensitivity=_score_sensitivity(choice, bounding))
            for mechanism, choice in zip(self.choices, measured.choices, strict=True)
        )
        return replace(self, noises=noises, choices=chosen)

    def half_width(self, index: int, level: float = DEFAULT_LEVEL) -> float:
        """Return the half-width of the interval of a measure, in its steps."""
        interval = self.noises[index].interval(level, np.zeros(1, dtype=np.int64))
        return float((interval.high - interval.low)[0]) / 2


def allocate(
    items: ReleaseItems, target: Target, terms: BudgetTerms, width: Callable[[QueryPrice], float]
) -> QueryPrice:
    """Return the price of a question for what was asked; `width` gives the half-width that `error` is about."""
    if items.selects_keys and not terms.delta:
        raise NeedsDelta(
            "the keys of this query are not public, and showing them needs a budget with a delta above 0",
            accepted='list them (keys={"city": ["Bern", "Basel"]}, --keys city=Bern,Basel) or declare the categories '
            f"of their columns{terms.way_to_delta}",
        )
    delta = terms.delta if target.delta is None else target.delta
    if target.rho is not None:
        return _divide(items, Allocation.within(terms, rho=target.rho), delta)

    def for_epsilon(epsilon: float) -> QueryPrice:
        return _divide(items, Allocation.within(terms, epsilon), delta)

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
    return for_epsilon(_round_up(math.exp(high)))


def _divide(items: ReleaseItems, allocation: Allocation, delta: float) -> QueryPrice:
    """Divide an allocation over all items; `delta` is for the selection of keys."""
    groups, relation = items.bounding.groups_changed, items.bounding.relation
    weights = items.family_weights
    others = [1.0] * len(items.choices) + [LEARNING_WEIGHT] * items.learned + [1.0] * items.selects_keys
    parts = iter(allocation.divided(*weights, *others) if weights or others else ())
    sensitivities = [(items.bounding.l1(measure), items.bounding.l2(measure)) for measure in items.measures]
    paid = list(islice(parts, len(weights)))
    measured = noises(paid, weights, sensitivities, places=items.families, times=items.times)
    by_family = {family: noise.event for family, noise in zip(items.families, measured, strict=True)}
    events: list[Event] = [_repeat(event, items.times) for event in by_family.values()]
    choices = []
    for choice, part in zip(items.choices, islice(parts, len(items.choices)), strict=True):
        sensitivity = _score_sensitivity(choice, items.bounding)
        choices.append(Exponential(sensitivity, part.repeated(groups).choice_epsilon, relation=relation))
        events.append(_repeat(choices[-1].event, groups))
    bounds = tuple(
        ApproximateBounds.for_unknown_values(items.bounding.per_group(WEIGHT), part.pure_epsilon, relation)
        for part in islice(parts, items.learned)
    )
    events += [one.event for one in bounds]
    selection = None
    for part in parts:
        one = part.repeated(groups).pure_epsilon
        selection = KeySelection(one, rounded_down(Fraction(delta) / groups), relation=relation)
        events.append(_repeat(selection.event, items.bounding.groups))  # which counts both groups of a replaced unit
    return QueryPrice(measured, tuple(choices), selection, bounds, composed(events))


def _score_sensitivity(choice: PrivateChoice, bounding: Bounding) -> int:
    """Return how far neighbours are apart in a score of a private choice in one group."""
    return bounding.per_group(choice.sensitivity(bounding.rows_per_group))


def _repeat(event: Event, count: int) -> Event:
    return event if count == 1 else Repeated(event, count)


def _round_up(epsilon: float) -> float:
    """Round an epsilon up to four digits."""
    digits = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
    return rounded_up(Fraction(math.ceil(epsilon / digits)) * Fraction(digits))


Sets = Sequence[tuple[int, ...]]


def group_counts(domains: Sequence[Domain], sets: Sets) -> list[int]:
    """Return how many groups each set has."""
    return [math.prod(len(domains[index].values) for index in kept) for kept in sets]


def is_better_apart(apart: QueryPrice, together: QueryPrice, domains: Sequence[Domain], sets: Sets) -> bool:
    """Whether measuring each set by itself has the lower mean variance, on (geometric) average over measures."""
    cells = group_counts(domains, sets)
    finest = math.prod(len(one.values) for one in domains)
    summed = len(sets) * finest / sum(cells)  # how many finest groups are added up for a number, on average
    pairs = zip(apart.noises, together.noises, strict=True)
    return math.fsum(math.log(_smooth_variance(one) / (_smooth_variance(other) * summed)) for one, other in pairs) < 0


def _smooth_variance(noise: Noise) -> float:
    """Return the variance of a noise of real numbers; `measuring.intervals.variance` is that of noise on whole numbers.

    The two differ where epsilon is far above 1. Plans are chosen by this one, and their digests are stored.
    """
    return float(noise.scale) ** 2 * (2 if isinstance(noise, Laplace) else 1)
