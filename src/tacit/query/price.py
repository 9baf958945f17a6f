"""The fifth pass: how the cost of a question is shared among what it releases, and which noise that takes.

Promise: `event` records all that an answer releases, and its price in the ledger is at most what was asked for. One
epsilon pays for the whole answer, whatever number of aggregates it holds.

What is shared: measures (noise on whole numbers), choices (quantiles, modes: the exponential mechanism) and the
selection of groups whose keys are not public. Each gets a part in proportion to its weight. Measures get Laplace noise
scaled to their L1 sensitivity, or Gaussian noise scaled to their L2 sensitivity, whichever gives the narrower intervals
for this question; Gaussian noise needs a delta in the budget. Choices and the selection are made in every group, and a
unit is in so many groups at most: their events are repeated that often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from tacit.accounting.conversions import rho_for
from tacit.accounting.gaussian import sigma_for_rho
from tacit.mechanisms import ApproximateBounds, Exponential, Gaussian, KeySelection, Laplace
from tacit.privacy.errors import InvalidInput, NeedsDelta, OutOfRange
from tacit.privacy.events import Composed, Event, Repeated
from tacit.privacy.numbers import positive, rounded_down, rounded_up
from tacit.privacy.relations import Relation
from tacit.query.bound import Bounding
from tacit.query.disjoint import families
from tacit.query.learn import BINS, SCALE, WEIGHT
from tacit.query.measures import Measure

WANTED_MAX: Final = 1e18
"""The largest price that is computed with; far above any budget."""
LEVEL: Final = 0.95
LEARNING: Final = 0.5
"""The weight of learning one pair of bounds, beside 1 for a measure."""

EPSILON_MIN, EPSILON_MAX = 1e-6, 1e6


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a budget allows: its relation, and the delta that one question may take of it (0: none)."""

    relation: Relation = Relation.ADD_REMOVE
    delta: float = 0.0


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
class Price:
    """The mechanisms of a question, in the order of its items, and the event that is charged."""

    noises: tuple[Laplace | Gaussian, ...]
    choices: tuple[Exponential, ...]
    selection: KeySelection | None
    bounds: tuple[ApproximateBounds, ...]
    event: Event

    def scaled(self, measures: Sequence[Measure], choices: Sequence[Choice], bounding: Bounding) -> Price:
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

    def half_width(self, index: int, level: float = LEVEL) -> float:
        """Return the half-width of the interval of a measure, in its steps."""
        interval = self.noises[index].interval(level, np.zeros(1, dtype=np.int64))
        return float((interval.high - interval.low)[0]) / 2


def priced(items: Items, target: Target, tariff: Tariff, width: Callable[[Price], float]) -> Price:
    """Share what was asked for; `width` gives the half-width that `error` is about."""
    if items.selects_keys and not tariff.delta:
        raise NeedsDelta(
            "the keys of this question are not public, and showing them needs a delta, which the budget has not",
            accepted='list them (keys={"city": ["Bern", "Basel"]}, --keys city=Bern,Basel) or declare the categories '
            "of their columns; the delta of a budget is chosen when the budget is set, and does not change",
        )
    delta = tariff.delta if target.delta is None else target.delta
    if target.rho is not None:
        return _for_rho(items, target.rho, delta)
    if target.epsilon is not None:
        return _for_epsilon(items, target.epsilon, delta, tariff)
    wanted = float(target.error or 0)
    low, high = math.log(EPSILON_MIN), math.log(EPSILON_MAX)
    if width(_for_epsilon(items, EPSILON_MAX, delta, tariff)) > wanted:
        raise OutOfRange(
            f"no epsilon below {EPSILON_MAX:g} gives an interval of ±{wanted:g}", name="error", value=wanted
        )
    while high - low > 1e-4:
        middle = (low + high) / 2
        enough = width(_for_epsilon(items, math.exp(middle), delta, tariff)) <= wanted
        low, high = (low, middle) if enough else (middle, high)
    return _for_epsilon(items, _readable(math.exp(high)), delta, tariff)


def _for_epsilon(items: Items, epsilon: float, delta: float, tariff: Tariff) -> Price:
    shares = _shares(items, Fraction(epsilon))
    laplace = tuple(
        Laplace(items.bounding.l1(measure), _part(share, items.times), relation=items.bounding.relation)
        for measure, share in zip(items.measures, shares.measures, strict=True)
    )
    noises: tuple[Laplace | Gaussian, ...] = laplace
    if tariff.delta and items.measures:
        summed = float(sum(dict(zip(items.families, shares.measures, strict=True)).values())) * (1 - 2.0**-40)
        if _narrower(_gaussians(items, _at_most_rho(summed, tariff.delta)), laplace):
            noises = _gaussians(items, rho_for(summed, tariff.delta))
            noises = noises if _narrower(noises, laplace) else laplace
    return _assembled(items, noises, shares, delta)


def _at_most_rho(epsilon: float, delta: float) -> float:
    """Return a rho that is not below the one for epsilon at delta, found once for all epsilons nearby."""
    return _rho_of(float(f"{epsilon * 1.01:.2e}"), delta)


_rho_of = lru_cache(maxsize=1024)(rho_for)


def _for_rho(items: Items, rho: float, delta: float) -> Price:
    """Share a rho: noise takes its own, a choice with epsilon in g groups takes g epsilon^2 / 8, others
    half of g epsilon^2.

    (Exponential: Cesar, Rogers 2021, lemma 3.1 and Bun, Steinke 2016; the ledger prices the event itself.)
    """
    total = math.fsum(_weights(items))
    groups = items.bounding.groups_touched
    part = rho * (1 - 2.0**-40) / total
    shares = _Shares(
        (),
        tuple(Fraction(math.sqrt(8 * part / groups)) for _ in items.choices),
        Fraction(math.sqrt(2 * part / groups)) if items.selects_keys else None,
        tuple(Fraction(math.sqrt(2 * part * LEARNING)) for _ in range(items.learnt)),
    )
    noises = _gaussians(items, part * math.fsum(items.family_weights)) if items.measures else ()
    return _assembled(items, noises, shares, delta, repeated=True)


@dataclass(frozen=True, slots=True)
class _Shares:
    measures: tuple[Fraction, ...]
    choices: tuple[Fraction, ...]
    selection: Fraction | None
    bounds: tuple[Fraction, ...] = ()


def _weights(items: Items) -> list[float]:
    """Return the weights of all items: measures, choices, learnt bounds, the selection of keys."""
    others = [1.0] * len(items.choices) + [LEARNING] * items.learnt + [1.0] * items.selects_keys
    return [*items.family_weights, *others]


def _shares(items: Items, epsilon: Fraction) -> _Shares:
    weights = [Fraction(weight) for weight in _weights(items)]
    total = sum(weights)
    parts = [Fraction(rounded_down(epsilon * weight / total)) for weight in weights]
    if parts:
        parts[-1] = Fraction(rounded_down(epsilon - sum(parts[:-1])))
    measures = len(items.family_weights)
    choices = measures + len(items.choices)
    bounds = choices + items.learnt
    return _Shares(
        tuple(parts[family] for family in items.families),
        tuple(parts[measures:choices]),
        parts[bounds] if items.selects_keys else None,
        tuple(parts[choices:bounds]),
    )


def _gaussians(items: Items, rho: float) -> tuple[Gaussian, ...]:
    weights = items.family_weights
    total = math.fsum(weights)  # the same in every version of Python, as is the event
    return tuple(
        Gaussian(
            items.bounding.l2(measure),
            sigma=sigma_for_rho(rho * weights[family] / total / items.times),
            relation=items.bounding.relation,
        )
        for measure, family in zip(items.measures, items.families, strict=True)
    )


def _narrower(one: Sequence[Laplace | Gaussian], other: Sequence[Laplace | Gaussian]) -> bool:
    """Whether the first noises have the narrower intervals, on (geometric) average."""
    pairs = zip(one, other, strict=True)
    return math.fsum(math.log(_width(a) / _width(b)) for a, b in pairs) < 0


def _width(noise: Laplace | Gaussian) -> float:
    try:
        scale = float(noise.scale)
    except OverflowError:
        raise OutOfRange("so little noise budget gives noise beyond any number; ask for more", name="epsilon") from None
    return scale * (-math.log(1 - LEVEL) if isinstance(noise, Laplace) else 1.96)


def _assembled(
    items: Items, noises: tuple[Laplace | Gaussian, ...], shares: _Shares, delta: float, *, repeated: bool = False
) -> Price:
    """Return the mechanisms and their event; shares of choices are for one group if `repeated`, else for all."""
    groups, relation = items.bounding.groups_touched, items.bounding.relation
    by_family = {family: noise.event for family, noise in zip(items.families, noises, strict=True)}
    events: list[Event] = [_often(event, items.times) for event in by_family.values()]
    choices = []
    for choice, share in zip(items.choices, shares.choices, strict=True):
        sensitivity = items.bounding.per_group(choice.sensitivity)
        one = share if repeated else Fraction(rounded_down(share / groups))
        choices.append(Exponential(sensitivity, one, relation=relation))
        events.append(_often(choices[-1].event, groups))
    bounds = tuple(
        ApproximateBounds(items.bounding.per_group(WEIGHT), share, bins=BINS, scale=SCALE, relation=relation)
        for share in shares.bounds
    )
    events += [one.event for one in bounds]
    selection = None
    if shares.selection is not None:
        one = shares.selection if repeated else Fraction(rounded_down(shares.selection / groups))
        selection = KeySelection(one, rounded_down(Fraction(delta) / groups), relation=relation)
        events.append(_often(selection.event, items.bounding.groups))  # which counts both groups of a replaced unit
    event = events[0] if len(events) == 1 else Composed(tuple(events))
    return Price(noises, tuple(choices), selection, bounds, event)


def _part(share: Fraction, times: int) -> Fraction:
    return share if times == 1 else Fraction(rounded_down(share / times))


def _often(event: Event, count: int) -> Event:
    return event if count == 1 else Repeated(event, count)


def _readable(epsilon: float) -> float:
    """Round an epsilon up to four digits."""
    digits = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
    return rounded_up(Fraction(math.ceil(epsilon / digits)) * Fraction(digits))
