"""Which pair stands for which event.

Promise: `upper_pair` dominates the event between any two neighbours, for the removal or the addition of a unit; None
where no pair is known. `lower_pair` is the pair of some mechanism that the event describes, so that what it costs is a
lower bound on what the event costs; None where none is known.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.accounting.measures import smoothed_mu
from tacit.accounting.pairs import (
    AtomPair,
    BoundedRangePair,
    ExchangedPair,
    GaussianPair,
    LaplacePair,
    Pair,
    SampledPair,
    lattice_pair,
    pure_pair,
)
from tacit.accounting.parts import replaced, simplest
from tacit.accounting.pure import pure_epsilon
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.relations import Relation

STEPS_MAX = 4096


def upper_pair(event: Event, *, addition: bool) -> Pair | None:
    """Return a pair that dominates one part of an event."""
    match event:
        case events.Exponential(epsilon=epsilon) if epsilon:
            return BoundedRangePair(epsilon)
        case events.DiscreteGaussian(sigma=sigma, sensitivity=sensitivity) if math.isfinite(
            mu := smoothed_mu(sigma, sensitivity)
        ):
            return GaussianPair(mu)
        case _:
            pair = _exact_pair(event, addition=addition)
    epsilon = pure_epsilon(event)
    return pure_pair(epsilon) if pair is None and math.isfinite(epsilon) else pair


def lower_pair(event: Event, *, addition: bool) -> Pair | None:
    """Return the pair of a mechanism that one part of an event describes."""
    match event:
        case events.Exponential(epsilon=epsilon) if epsilon:
            likely = 1 / (1 + math.exp(-epsilon / 2))  # the split in the middle: losses ±epsilon / 2
            return AtomPair((-epsilon / 2, epsilon / 2), (1 - likely, likely))
        case events.DiscreteGaussian(sigma=sigma, sensitivity=sensitivity):
            return _scalar_pair(sigma * sensitivity, sensitivity)
        case _:
            return _exact_pair(event, addition=addition)


def is_exact(event: Event) -> bool:
    """Whether the dominating pair of a part is that of a mechanism which it describes."""
    return not isinstance(event, events.Exponential | events.DiscreteGaussian) and (
        _exact_pair(event, addition=False) is not None
    )


def _exact_pair(event: Event, *, addition: bool) -> Pair | None:
    match event:
        case events.Gaussian(sigma=sigma):
            return GaussianPair(1 / sigma)
        case events.DiscreteLaplace(epsilon=epsilon, steps=steps):
            return lattice_pair(epsilon, _divisor(steps))
        case events.RandomizedResponse(epsilon=epsilon, categories=categories):
            return _response_pair(epsilon, categories)
        case events.Laplace(epsilon=epsilon) if epsilon:
            return LaplacePair(epsilon)
        case events.Pure(epsilon=epsilon):
            return pure_pair(epsilon)
        case events.Approximate(epsilon=epsilon, delta=delta):
            return pure_pair(epsilon, delta)
        case events.Sampled(rate, inner) if event.relation is Relation.ADD_REMOVE:
            base = _exact_pair(simplest(inner), addition=False)
            return SampledPair(rate, base, addition) if base is not None else None
        case events.SampledWithoutReplacement(size, population, inner):
            exchanged = replaced(simplest(inner))
            if isinstance(exchanged, events.Sampled):
                return None  # not symmetric
            base = _exact_pair(exchanged, addition=False)
            return ExchangedPair(size / population, base) if base is not None and size < population else base
        case _:
            return None


def _divisor(steps: int) -> int:
    """Return the greatest divisor that is small enough to list; fewer steps in a multiple never cost less."""
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
