"""Epsilon at delta, and delta at epsilon: the cheapest accountant that is good enough.

Closed forms first (Gaussian noise, one sampled event, delta of zero), then privacy loss distributions, and Rényi bounds
where those know more or there is no pair. An upper bound is the least of all that apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from tacit.accounting.bounds import Bound
from tacit.accounting.composition import WIDTH, Plan
from tacit.accounting.conversions import (
    UP,
    delta_of_rho,
    epsilon_of_mu,
    epsilon_of_renyi,
    epsilon_of_rho,
    least_epsilon_of_mu,
)
from tacit.accounting.gaussian import Side, log_delta, total_mu
from tacit.accounting.measures import concentrated
from tacit.accounting.parts import attained, parts
from tacit.accounting.pure import amplified, pure_epsilon, summed
from tacit.accounting.renyi import ORDERS, Floats, curve, delta_of_curve
from tacit.accounting.sampling import Sample, inner_delta, inner_epsilon, sole_sample
from tacit.accounting.variation import total_variation
from tacit.privacy import events
from tacit.privacy.errors import OutOfRange, UnknownEvent
from tacit.privacy.events import Event
from tacit.privacy.numbers import TINY, inside_unit_interval, not_negative, positive
from tacit.privacy.relations import Relation

ORDERS_SKIPPED: Final = 8


def epsilon(event: Event, delta: float, *, width: float = WIDTH) -> Bound:
    """Return bounds on the epsilon for which an event is (epsilon, delta)-private, delta of at least 0 and below 1.

    `width` is how far apart the two ends may be, relatively, where a lattice decides it.
    """
    check_supported(event)
    width = float(positive("width", width))
    if not_negative("delta", delta) == 0:
        exact = pure_epsilon(event)
        plan = Plan.of(event)
        rounded = exact if isinstance(event, events.SimpleEvent) else exact * (1 - 2.0**-44)
        return Bound(rounded if plan is not None and plan.is_exact else 0.0, exact, "sum of pure epsilons")
    target = float_of_delta(delta)
    mu = gaussian_mu_exactly(event)
    if mu is not None:
        lower = least_epsilon_of_mu(_attained_mu(event), target)
        return Bound(lower, epsilon_of_mu(mu, target), "closed form of Gaussian noise")
    if total_variation(event) <= target:
        return Bound(0.0, 0.0, "total variation")
    if (sample := sole_sample(event)) is not None:
        return _sampled_epsilon(sample, target, width)
    total, given = _sums(event)
    bounds = [Bound(0.0, pure_epsilon(event), "sum of pure epsilons")]
    if given <= target:
        bounds.append(Bound(0.0, total, "sum of epsilons and deltas"))
    plan = Plan.of(event)
    if plan is not None:
        found = unless_it_fails(lambda: plan.epsilon(target, width), math.inf)
        bounds.append(Bound(*found, "privacy loss distribution"))
    if plan is None or not plan.is_exact or not _is_tight(bounds[-1], width):
        bounds += _by_moments(event, target)
    best = min(bounds, key=lambda bound: bound.upper)
    return Bound(min(max(bound.lower for bound in bounds), best.upper), best.upper, best.method)


def delta(event: Event, epsilon: float) -> Bound:
    """Return bounds on the delta for which an event is (epsilon, delta)-private."""
    check_supported(event)
    target = float(not_negative("epsilon", epsilon))
    if target >= pure_epsilon(event):
        return Bound(0.0, 0.0, "sum of pure epsilons")
    mu = gaussian_mu_exactly(event)
    if mu is not None:
        least = _attained_mu(event)
        lower = math.exp(log_delta(least, target, -1)) if least else 0.0
        return Bound(lower, max(math.exp(log_delta(mu, target, 1)), TINY), "closed form of Gaussian noise")
    if (sample := sole_sample(event)) is not None:
        return _sampled_delta(sample, target)
    bounds = _closed_deltas(_sums(event), target)
    bounds.append(Bound(0.0, total_variation(event), "total variation"))
    plan = Plan.of(event)
    if plan is not None:
        bounds.append(Bound(*unless_it_fails(lambda: plan.delta(target), 1.0), "privacy loss distribution"))
    if plan is None or not plan.is_exact or not _is_tight(bounds[-1]):
        bounds += _deltas_by_moments(concentrated(event), curve(event), target)
    best = min(bounds, key=lambda bound: bound.upper)
    return Bound(min(max(bound.lower for bound in bounds), best.upper), best.upper, best.method)


def deltas(event: Event, epsilons: Sequence[float]) -> list[float]:
    """Return upper bounds on delta at rising epsilons, at little more than the price of one."""
    check_supported(event)
    if gaussian_mu_exactly(event) is not None:
        return [delta(event, one).upper for one in epsilons]
    if (sample := sole_sample(event)) is not None:
        return [
            one * sample.rate * UP
            for one in deltas(sample.event, [inner_epsilon(sample.rate, one) / UP for one in epsilons])
        ]
    plan, pure = Plan.of(event), pure_epsilon(event)
    by_lattice = [1.0] * len(epsilons) if plan is None else plan.deltas(epsilons)
    sums, approximate, values = _sums(event), concentrated(event), curve(event)
    most = total_variation(event)
    found = []
    for one, least in zip(epsilons, by_lattice, strict=True):
        others = [*_closed_deltas(sums, one), *_deltas_by_moments(approximate, values, one)]
        found.append(0.0 if one >= pure else min(least, most, *(bound.upper for bound in others)))
    return list(accumulate(found, min))  # delta never rises with epsilon, so what holds at one holds at all above it


def float_of_delta(delta: object) -> float:
    """Return a delta strictly between zero and one as a float that is, too."""
    target = float(inside_unit_interval("delta", delta))
    if not 0 < target < 1:
        raise OutOfRange("delta must be a double, from 5e-324 to 1 - 2^-53, or 0", name="delta", value=delta)
    return target


def unless_it_fails(solve: Callable[[], tuple[float, float]], most: float) -> tuple[float, float]:
    """Return two bounds, or none where a lattice's arithmetic fails, as it may for parameters of absurd size."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            low, high = solve()
    except (ArithmeticError, ValueError):
        return 0.0, most
    return (low, high) if 0 <= low <= high else (0.0, most)


def check_supported(event: Event) -> None:
    """Refuse an event that no accountant can bound, naming the part."""
    if not isinstance(event, Event):
        raise UnknownEvent(f"accountants read events, not {events.named_instead(event)}")
    add_remove = event.relation is Relation.ADD_REMOVE
    if isinstance(event, events.Disjoint) and not add_remove:
        raise UnknownEvent(
            "disjoint events are priced under add-remove: a replaced unit may move from one part to another"
        )
    if isinstance(event, events.Sampled) and event.rate < 1 and not add_remove:
        raise UnknownEvent("Poisson sampling is priced under add-remove; state the event under that relation")
    if isinstance(event, events.Shuffled) and add_remove:
        raise UnknownEvent("shuffled reports are priced under replace-one, since their number is public")
    if isinstance(event, events.CompoundEvent):
        for part in dict.fromkeys(event.parts):
            check_supported(part)


def gaussian_mu_exactly(event: Event, side: Side = 1) -> float | None:
    """Return mu where every part is Gaussian noise, rounded up or down."""
    noises = [(part.sigma, count) for part, count in parts(event).items() if isinstance(part, events.Gaussian)]
    return total_mu(noises, side) if len(noises) == len(parts(event)) else None


def _sampled_epsilon(sample: Sample, delta: float, width: float) -> Bound:
    """Amplify what the sampled event costs at the delta that becomes `delta`."""
    inner = epsilon(sample.event, inner_delta(sample.rate, delta), width=width)
    lower = amplified(sample.rate, inner.lower) * (1 - 2.0**-36) if sample.is_attained else 0.0
    return Bound(lower, amplified(sample.rate, inner.upper) * UP, "amplification by sampling")


def _sampled_delta(sample: Sample, epsilon: float) -> Bound:
    """Return the rate times the sampled event's own delta, at the epsilon that becomes `epsilon`."""
    at = inner_epsilon(sample.rate, epsilon)
    lower = delta(sample.event, at * UP).lower * sample.rate / UP if sample.is_attained else 0.0
    return Bound(lower, delta(sample.event, at / UP).upper * sample.rate * UP, "amplification by sampling")


def _attained_mu(event: Event) -> float:
    """Return mu of those parts that are Gaussian noise and nothing less, where all parts are bounded by such noise."""
    certain = attained(event)
    return (gaussian_mu_exactly(certain, -1) or 0.0) if certain is not None else 0.0


def _sums(event: Event) -> tuple[float, float]:
    """Return the sums of epsilons and of deltas: basic composition (Dwork and others 2006)."""
    epsilons: list[tuple[int, float]] = []
    deltas: list[tuple[int, float]] = []
    for part, count in parts(event).items():
        if isinstance(part, events.Approximate):
            epsilons.append((count, part.epsilon))
            deltas.append((count, part.delta))
        else:
            epsilons.append((count, pure_epsilon(part)))
    return summed(epsilons), summed(deltas)


def _closed_deltas(sums: tuple[float, float], epsilon: float) -> list[Bound]:
    """Return what sums of epsilons and deltas give."""
    total, given = sums
    return [Bound(0.0, min(given, 1.0), "sum of epsilons and deltas")] if epsilon >= total else []


def _deltas_by_moments(approximate: tuple[float, float], values: Floats, epsilon: float) -> list[Bound]:
    """Return what zero-concentrated privacy and Rényi bounds on the grid of orders give."""
    rho, given = approximate
    return [
        Bound(0.0, min(1.0, delta_of_rho(rho, epsilon) + given), "zero-concentrated"),
        Bound(0.0, delta_of_curve(values, epsilon), "Rényi"),
    ]


def _is_tight(bound: Bound, width: float = WIDTH) -> bool:
    return bound.upper <= (1.1 + 2 * width) * bound.lower or bound.upper == 0


def _by_moments(event: Event, delta: float) -> list[Bound]:
    """Return what zero-concentrated privacy and Rényi bounds give, at some orders and at all around the best."""
    rho, given = concentrated(event)
    bounds = []
    if given < delta:
        bounds.append(Bound(0.0, epsilon_of_rho(rho, delta - given), "zero-concentrated"))
    some = _epsilons_by_order(event, ORDERS[::ORDERS_SKIPPED], delta)
    best = ORDERS_SKIPPED * min(range(len(some)), key=some.__getitem__)
    near = ORDERS[max(best - ORDERS_SKIPPED + 1, 0) : best + ORDERS_SKIPPED]
    return [*bounds, Bound(0.0, min(some + _epsilons_by_order(event, near, delta)), "Rényi")]


def _epsilons_by_order(event: Event, orders: Floats, delta: float) -> list[float]:
    values = curve(event, orders).tolist()
    return [epsilon_of_renyi(order, value, delta) for order, value in zip(orders.tolist(), values, strict=True)]
