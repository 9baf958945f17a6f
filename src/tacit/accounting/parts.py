"""Decomposition of events into counted parts of a few simple kinds.

Promise: the parts, composed, cost what the event costs or more. Repetition and composition are flattened into counts;
group privacy moves inwards; kinds that are Gaussian noise by another name become `Gaussian`. What cannot be decomposed
(sampling, parallel composition, selection, groups of these) stays one part.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar, Final

from tacit.accounting.closed_forms import total_mu
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.numbers import TINY, rounded_down, rounded_up
from tacit.privacy.units import Relation

LISTED_MIN: Final = 256
"""The least length of a list of events whose parts are cached, so that they are counted once for one query."""


def parts(event: Event) -> Mapping[Event, int]:
    """Return the composed simple events, and how often each occurs."""
    if isinstance(event, events.SimpleEvent):
        return MappingProxyType({simplify(event): 1})
    kept = _LastList.found
    if kept is not None and kept[0] is event:
        return kept[1]
    counts: Counter[Event] = Counter()
    _collect(event, 1, counts)
    found = MappingProxyType(counts)
    if isinstance(event, events.ListedEvent) and len(event.events) >= LISTED_MIN:
        _LastList.found = (event, found)
    return found


class _LastList:
    """A cache of the last long list of events and its parts; the event is held, so its identity is not reused."""

    found: ClassVar[tuple[Event, Mapping[Event, int]] | None] = None


def _collect(event: Event, count: int, counts: Counter[Event]) -> None:
    match event:
        case events.Repeated(inner, times):
            _collect(inner, count * times, counts)
        case events.Composed(several):
            for one, times in Counter(several).items():
                _collect(one, count * times, counts)
        case events.Converted(inner):
            _collect(inner, count, counts)
        case events.Grouped(inner, size):
            for one, times in parts(inner).items():
                counts[group_event(one, size)] += count * times
        case events.Sampled(rate, inner):
            _collect_sampled(rate, simplify(inner), count, counts)
        case _:
            counts[simplify(event)] += count


def _collect_sampled(rate: float, inner: Event, count: int, counts: Counter[Event]) -> None:
    """Count a Poisson sample; a sample of a sample has the product of their rates."""
    while isinstance(inner, events.Sampled):
        rate, inner = min(1.0, max(rate * inner.rate * (1 + 2**-50), TINY)), simplify(inner.event)
    if rate == 1:
        _collect(inner, count, counts)
    else:
        counts[events.Sampled(rate, inner)] += count


def simplify(event: Event) -> Event:
    """Return an event of a simpler kind that costs the same, or the event itself."""
    match event:
        case events.NoisyMax(sigma=sigma):
            return events.Gaussian(_round_down(sigma / math.sqrt(2)), under=event.relation)
        case events.TreeAggregation(sigma=sigma):
            return events.Gaussian(_round_down(sigma / math.sqrt(_nodes_moved(event))), under=event.relation)
        case events.Converted(inner):
            return simplify(inner)
        case events.Repeated() | events.Composed() | events.Grouped():
            return _merge_gaussians(event)
        case _:
            return event


def _nodes_moved(event: events.TreeAggregation) -> int:
    """Return the greatest number of nodes of a tree that one unit moves, each by the sensitivity of a leaf or less.

    Added or removed, it moves the nodes from its leaf to the root. Replaced, it may leave one leaf and enter another:
    two such paths, which have the root in common at least, and there the two moves come to an exchange.
    """
    levels = (event.leaves - 1).bit_length() + 1
    return levels if event.relation is Relation.ADD_REMOVE else 2 * levels - 1


def attained_part(event: Event) -> Event | None:
    """Return the event without those parts whose pairs are only upper bounds, or None; the rest gives lower bounds.

    The greatest of noisy counts tells less than all of them; a group's epsilon and delta are not those of a mechanism.
    """
    match event:
        case events.Composed(several) | events.Disjoint(several):
            each = {one: attained_part(one) for one in dict.fromkeys(several)}
            if all(found is one for one, found in each.items()):
                return event
            kept = tuple(found for found in map(each.__getitem__, several) if found is not None)
            return type(event)(kept) if kept else None
        case events.Repeated(inner, count):
            rest = attained_part(inner)
            return events.Repeated(rest, count) if rest is not None else None
        case events.Converted(inner):
            return attained_part(inner)
        case _:
            return event if _is_attained(event) else None


def _is_attained(event: Event) -> bool:
    match event:
        case events.NoisyMax():
            return False
        case events.TreeAggregation():
            return event.relation is Relation.ADD_REMOVE
        case events.Grouped(inner, size):
            noise = events.Pure | events.DiscreteLaplace | events.Gaussian
            return _is_attained(inner) and (size == 1 or all(isinstance(part, noise) for part in parts(inner)))
        case events.SampledWithoutReplacement(_, _, inner):
            return _is_attained(inner if event.relation is Relation.REPLACE_ONE else events.Grouped(inner, 2))
        case events.CompoundEvent():
            return all(_is_attained(part) for part in event.parts)
        case _:
            return True


def group_event(event: Event, size: int) -> Event:
    """Return the event that one simple event is to a group of `size` units.

    Noise of L1 or L2 sensitivity s has sensitivity size * s for the group, so Laplace and Gaussian noise stay what they
    are with parameters scaled. The trade-off of pure epsilon, put into itself `size` times (Dong, Roth, Su 2022,
    theorem 2.14), is that of geometric noise whose neighbours lie `size` steps of epsilon apart. Rho is multiplied by
    size^2 (Bun, Steinke 2016, proposition 1.9); an (epsilon, delta) becomes (size epsilon, delta (e^(size epsilon) - 1)
    / (e^epsilon - 1)) (Vadhan 2017, lemma 2.2).
    """
    if size == 1:
        return event
    relation = event.relation
    match event:
        case events.DiscreteLaplace(steps=steps) if (epsilon := _multiply_up(size, event.epsilon)) < math.inf:
            return events.DiscreteLaplace(epsilon, size * steps, under=relation)
        case events.Laplace() if (epsilon := _multiply_up(size, event.epsilon)) < math.inf:
            return events.Laplace(epsilon, under=relation)
        case events.Exponential() if (epsilon := _multiply_up(size, event.epsilon)) < math.inf:
            return events.Exponential(epsilon, under=relation)
        case events.Pure() | events.RandomizedResponse() if (epsilon := _multiply_up(size, event.epsilon)) < math.inf:
            return events.DiscreteLaplace(epsilon, size, under=relation)
        case events.Gaussian(sigma=sigma):
            return events.Gaussian(_divide_down(sigma, size), under=relation)
        case events.DiscreteGaussian(sigma=sigma, scalar=scalar) if _multiply_up(size, event.sensitivity) < math.inf:
            wider = _multiply_up(size, event.sensitivity)
            return events.DiscreteGaussian(_divide_down(sigma, size), wider, scalar, under=relation)
        case events.ZeroConcentrated() if (rho := _multiply_up(size * size, event.rho)) < math.inf:
            return events.ZeroConcentrated(rho, under=relation)
        case events.Approximate(epsilon=epsilon, delta=delta) if delta and _multiply_up(size, epsilon) < 700:
            growth = math.expm1(size * epsilon) / math.expm1(epsilon) if epsilon else _multiply_up(size, 1.0)
            grown = delta * growth * (1 + 2**-40)
            if grown < 1:
                return events.Approximate(_multiply_up(size, epsilon), max(grown, TINY), under=relation)
    return events.Grouped(event, size)


def _multiply_up(size: int, cost: float) -> float:
    """Return a product rounded up, infinity if that is too large for a float."""
    return rounded_up(size * Fraction(cost))


def _divide_down(sigma: float, size: int) -> float:
    """Return a quotient rounded down, but never to 0."""
    return max(rounded_down(Fraction(sigma) / size), TINY)


def replacement_event(event: Event) -> Event:
    """Return the event of exchanging a unit: the event itself under replace-one, else a removal and an addition."""
    return event if event.relation is Relation.REPLACE_ONE else _merge_gaussians(events.Grouped(event, 2))


def _merge_gaussians(event: Event) -> Event:
    """Return a composition of Gaussian noises as one Gaussian (their precisions add up); other events unchanged."""
    inside = parts(event)
    if len(inside) == 1 and next(iter(inside.values())) == 1:
        return next(iter(inside))
    if all(isinstance(part, events.Gaussian) for part in inside):
        mu = total_mu([(part.sigma, count) for part, count in inside.items() if isinstance(part, events.Gaussian)], 1)
        return events.Gaussian(_round_down(min(1 / mu, sys.float_info.max)), under=event.relation)
    return event


def _round_down(number: float) -> float:
    return max(number * (1 - 2**-50), TINY)
