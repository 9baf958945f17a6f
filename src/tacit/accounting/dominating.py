"""The dominating pair of each event, and the pair of a mechanism that attains it.

Promise: `upper_pair` dominates the event between any two neighbours, for the removal or the addition of a unit.
`lower_pair` is the pair of some mechanism that the event describes, so that its cost is a lower bound on the cost of
the event. Both are None where no pair is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.measures import smoothed_mu
from tacit.accounting.pairs import (
    AtomPair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonSampledPair,
    WithoutReplacementPair,
    lattice_pair,
    pure_pair,
)
from tacit.accounting.parts import replacement_event, simplify
from tacit.accounting.shuffling import shuffled_pair, witness_pair
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.units import Relation

STEPS_MAX = 4096
LOSS_MAX = 690.0
DEVIATION_MIN, DEVIATION_MAX = 0.01, 64.0
"""The standard deviations, in steps, of discrete Gaussian noise that is listed point by point; above, smoothing costs
0.05 %."""

NATS = 700.0
"""Points less likely than e^-NATS times the likeliest are not listed."""

Finder: TypeAlias = Callable[[Event], Pair | None]


def upper_pair(event: Event, *, addition: bool, otherwise: Finder = lambda _: None) -> Pair | None:
    """Return a pair that dominates one part of an event.

    `otherwise` finds a pair, the same in both directions, for sampled events that have none of their own.
    """

    def base(inner: Event) -> Pair | None:
        own = _pair(inner, lambda _: None, addition=False, lower=False)
        found = otherwise(inner) if own is None else None
        return found if found is not None else upper_pair(inner, addition=False)

    pair = _pair(event, base, addition=addition, lower=False)
    if pair is None and math.isfinite(epsilon := pure_epsilon(event)):
        pair = pure_pair(epsilon)
    return pair if pair is not None and _is_within_reach(pair) else None


def lower_pair(event: Event, *, addition: bool) -> Pair | None:
    """Return the pair of a mechanism that one part of an event describes."""
    pair = _pair(event, lambda inner: lower_pair(inner, addition=False), addition=addition, lower=True)
    return pair if pair is not None and _is_within_reach(pair) else None


def _is_within_reach(pair: Pair) -> bool:
    """Return whether e^loss is a float for all losses of the pair, so that Q's masses follow from P's."""
    return max(map(abs, pair.span(1e-20))) < LOSS_MAX


def is_exact(event: Event) -> bool:
    """Return whether the dominating pair of a part is that of a mechanism which the part describes."""
    upper = upper_pair(event, addition=False)
    return upper is not None and upper == lower_pair(event, addition=False)


def _pair(event: Event, base: Finder, *, addition: bool, lower: bool) -> Pair | None:
    match event:
        case events.Exponential(epsilon=epsilon) if epsilon:
            return _two_point_pair(epsilon) if lower else BoundedRangePair(epsilon)
        case events.DiscreteGaussian(sigma=sigma, sensitivity=sensitivity, scalar=scalar):
            if lower:
                return _scalar_pair(sigma * sensitivity, sensitivity)
            if scalar and sensitivity.is_integer() and DEVIATION_MIN <= sigma * sensitivity <= DEVIATION_MAX:
                return _dominating_scalar_pair(sigma * sensitivity, int(sensitivity))
            mu = smoothed_mu(sigma, sensitivity)
            return GaussianPair(mu) if math.isfinite(mu) else None
        case events.Gaussian(sigma=sigma):
            return GaussianPair(1 / sigma)
        case events.DiscreteLaplace(epsilon=epsilon, steps=steps):
            if lower and steps > STEPS_MAX:
                return LaplacePair(epsilon) if epsilon else pure_pair(0.0)
            return lattice_pair(epsilon, _divisor(steps))
        case events.RandomizedResponse(epsilon=epsilon, categories=categories):
            return _response_pair(epsilon, categories)
        case events.Laplace(epsilon=epsilon) if epsilon:
            return LaplacePair(epsilon)
        case events.Pure(epsilon=epsilon):
            return pure_pair(epsilon)
        case events.Approximate(epsilon=epsilon, delta=delta):
            return pure_pair(epsilon, delta)
        case events.Shuffled(epsilon=epsilon, count=count) if 0 < epsilon < LOSS_MAX:
            return witness_pair(epsilon, count) if lower else shuffled_pair(epsilon, count)
        case events.Sampled() | events.SampledWithoutReplacement():
            return _sampled_pair(event, base, addition=addition, lower=lower)
        case _:
            return None


def _sampled_pair(
    event: events.Sampled | events.SampledWithoutReplacement, base_of: Finder, *, addition: bool, lower: bool
) -> Pair | None:
    """Return the pair of a sampled event.

    Without replacement no pair of data sets attains the dominating pair in both directions at once; what is attained,
    where all other units are alike, is that of a Poisson sample.
    """
    inner = simplify(event.event)
    if isinstance(event, events.Sampled):
        base = base_of(inner) if event.relation is Relation.ADD_REMOVE else None
        return PoissonSampledPair(event.rate, base, addition) if base is not None else None
    exchanged, rate = replacement_event(inner), event.size / event.population
    if isinstance(exchanged, events.Sampled):
        return None  # not symmetric
    base = base_of(exchanged)
    if base is None or rate == 1:
        return base
    return PoissonSampledPair(rate, base, addition) if lower else WithoutReplacementPair(rate, base)


def _two_point_pair(epsilon: float) -> AtomPair:
    """Return two outcomes whose log-ratios are ±epsilon / 2: the exponential mechanism on two opposite scores."""
    likely = 1 / (1 + math.exp(-epsilon / 2))
    return AtomPair((-epsilon / 2, epsilon / 2), (1 - likely, likely))


def _divisor(steps: int) -> int:
    """Return the greatest divisor of at most STEPS_MAX; noise of a divisor of the steps never costs less."""
    return next(number for number in range(min(steps, STEPS_MAX), 0, -1) if steps % number == 0)


def _response_pair(epsilon: float, categories: int) -> AtomPair:
    truth = 1 / (1 + (categories - 1) * math.exp(-epsilon))
    lie = truth * math.exp(-epsilon)
    return AtomPair((-epsilon, 0.0, epsilon), (lie, (categories - 2) * lie, truth))


def _scalar_pair(deviation: float, sensitivity: float) -> AtomPair | None:
    """Return discrete Gaussian noise of a deviation on one integer that moves by the whole part of the sensitivity."""
    move = math.floor(sensitivity)
    if move < 1 or deviation > STEPS_MAX:
        return None
    reach = math.ceil(40 * deviation) + move
    points = np.arange(-reach, reach + 1)
    weights = np.exp(-(points**2) / (2 * deviation**2))
    losses = (move * move - 2 * move * points) / (2 * deviation**2)
    kept = weights > 0
    return AtomPair(tuple(losses[kept].tolist()), tuple((weights[kept] / weights.sum()).tolist()))


def _dominating_scalar_pair(deviation: float, move: int) -> AtomPair:
    """Return a pair that dominates discrete Gaussian noise on one integer that moves by `move` steps or fewer.

    The law is log-concave, so shifts of it have a monotone likelihood ratio: the best test between two of them is a
    threshold, and its power grows with the shift. So the greatest move is the worst. Points that are not listed are
    given away, P's mass there to P alone and Q's to Q alone. A greater mass or a greater loss of any point never lowers
    delta, also in composition, so both are rounded up by more than their arithmetic may have lost.
    """
    reach = math.floor(math.sqrt(2 * NATS) * deviation)
    points = np.arange(-reach, reach + 1, dtype=np.float64)
    exponents = points**2 / (2 * deviation**2)
    weights = np.exp(-exponents)
    losses = (move * move - 2.0 * move * points) / (2 * deviation**2)
    doubts = 2.0**-48 * (4 + exponents + np.abs(losses))
    masses = weights / weights.sum() * (1 + doubts)
    unseen = math.exp(5 - NATS)
    only_q = min(1.0, float(masses[points > reach - move].sum()) + unseen)
    return AtomPair(tuple((losses + 2.0**-48 * np.abs(losses)).tolist()), tuple(masses.tolist()), unseen, only_q)
