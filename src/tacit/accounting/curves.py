"""Epsilon at delta and delta at epsilon, by the cheapest accountant that is tight enough.

Closed forms come first (Gaussian noise, one sampled event, delta of zero), then privacy loss distributions, and Rényi
bounds where these are tighter or no dominating pair is known. An upper bound is the least of all that apply. The
theorems for one sampled event and for total variation stand at `Sample` and `total_variation`.

The bounds of every accountant for one event, side by side.

Each is a valid bound by itself, and `curves.epsilon` returns the least. The comparison shows what a tighter accountant
is worth, and reproduces the numbers that textbooks and other tools report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from tacit.accounting.closed_forms import Side, amplified_epsilon, log_delta, pure_epsilon, sum_rounded_up, total_mu
from tacit.accounting.composition import WIDTH, Composition
from tacit.accounting.conversions import (
    UP,
    Bound,
    delta_of_rho,
    epsilon_of_mu,
    epsilon_of_renyi,
    epsilon_of_rho,
    least_epsilon_of_mu,
)
from tacit.accounting.measures import approximate_zcdp, gaussian_mu
from tacit.accounting.pairs import Floats
from tacit.accounting.parts import attained_part, parts, replacement_event
from tacit.accounting.renyi import ORDERS, delta_of_renyi_curve, renyi_curve
from tacit.privacy import events
from tacit.privacy.errors import OutOfRange, UnknownEvent
from tacit.privacy.events import Event
from tacit.privacy.numbers import TINY, inside_unit_interval, not_negative, positive
from tacit.privacy.units import Relation

ORDERS_SKIPPED: Final = 8


def epsilon(event: Event, delta: float, *, width: float = WIDTH) -> Bound:
    """Return bounds on the epsilon for which an event is (epsilon, delta)-private, for a delta in [0, 1).

    `width` is the relative distance that the two bounds may have where a lattice decides it.
    """
    check_supported(event)
    width = float(positive("width", width))
    if not_negative("delta", delta) == 0:
        exact = pure_epsilon(event)
        plan = Composition.of(event)
        rounded = exact if isinstance(event, events.SimpleEvent) else exact * (1 - 2.0**-44)
        return Bound(rounded if plan is not None and plan.is_exact else 0.0, exact, "sum of pure epsilons")
    target = float_of_delta(delta)
    mu = exact_gaussian_mu(event)
    if mu is not None:
        lower = least_epsilon_of_mu(_attained_mu(event), target)
        return Bound(lower, epsilon_of_mu(mu, target), "closed form of Gaussian noise")
    if total_variation(event) <= target:
        return Bound(0.0, 0.0, "total variation")
    if (sample := single_sample(event)) is not None:
        return _sampled_epsilon(sample, target, width)
    total, given = _basic_composition(event)
    bounds = [Bound(0.0, pure_epsilon(event), "sum of pure epsilons")]
    if given <= target:
        bounds.append(Bound(0.0, total, "sum of epsilons and deltas"))
    plan = Composition.of(event)
    if plan is not None:
        found = bounds_or_trivial(lambda: plan.epsilon(target, width), math.inf)
        bounds.append(Bound(*found, "privacy loss distribution"))
    if plan is None or not plan.is_exact or not _is_tight(bounds[-1], width):
        bounds += _moment_epsilons(event, target)
    return _intersection(bounds)


def delta(event: Event, epsilon: float) -> Bound:
    """Return bounds on the delta for which an event is (epsilon, delta)-private."""
    check_supported(event)
    target = float(not_negative("epsilon", epsilon))
    if target >= pure_epsilon(event):
        return Bound(0.0, 0.0, "sum of pure epsilons")
    mu = exact_gaussian_mu(event)
    if mu is not None:
        least = _attained_mu(event)
        lower = math.exp(log_delta(least, target, -1)) if least else 0.0
        return Bound(lower, max(math.exp(log_delta(mu, target, 1)), TINY), "closed form of Gaussian noise")
    if (sample := single_sample(event)) is not None:
        return _sampled_delta(sample, target)
    bounds = _basic_deltas(_basic_composition(event), target)
    bounds.append(Bound(0.0, total_variation(event), "total variation"))
    plan = Composition.of(event)
    if plan is not None:
        bounds.append(Bound(*bounds_or_trivial(lambda: plan.delta(target), 1.0), "privacy loss distribution"))
    if plan is None or not plan.is_exact or not _is_tight(bounds[-1]):
        bounds += _moment_deltas(approximate_zcdp(event), renyi_curve(event), target)
    return _intersection(bounds)


def deltas(event: Event, epsilons: Sequence[float]) -> list[float]:
    """Return upper bounds on delta at rising epsilons, in little more time than one takes."""
    check_supported(event)
    if exact_gaussian_mu(event) is not None:
        return [delta(event, one).upper for one in epsilons]
    if (sample := single_sample(event)) is not None:
        return [
            one * sample.rate * UP
            for one in deltas(sample.event, [inner_epsilon(sample.rate, one) / UP for one in epsilons])
        ]
    plan, pure = Composition.of(event), pure_epsilon(event)
    by_lattice = [1.0] * len(epsilons) if plan is None else plan.deltas(epsilons)
    sums, approximate, values = _basic_composition(event), approximate_zcdp(event), renyi_curve(event)
    most = total_variation(event)
    found = []
    for one, least in zip(epsilons, by_lattice, strict=True):
        others = [*_basic_deltas(sums, one), *_moment_deltas(approximate, values, one)]
        found.append(0.0 if one >= pure else min(least, most, *(bound.upper for bound in others)))
    return list(accumulate(found, min))  # delta never rises with epsilon, so what holds at one holds at all above it


def float_of_delta(delta: object) -> float:
    """Return a delta strictly between zero and one as a float, which must lie between them as well."""
    target = float(inside_unit_interval("delta", delta))
    if not 0 < target < 1:
        raise OutOfRange("delta must be a double, from 5e-324 to 1 - 2^-53, or 0", name="delta", value=delta)
    return target


def bounds_or_trivial(solve: Callable[[], tuple[float, float]], most: float) -> tuple[float, float]:
    """Return the bounds of `solve`, or (0, `most`) if its arithmetic fails, as it may for extreme parameters."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            low, high = solve()
    except (ArithmeticError, ValueError):
        return 0.0, most
    return (low, high) if 0 <= low <= high else (0.0, most)


def check_supported(event: Event) -> None:
    """Raise if no accountant can bound the event or one of its parts."""
    if not isinstance(event, Event):
        raise UnknownEvent(f"accountants read events, not {events.describe_non_event(event)}")
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


def exact_gaussian_mu(event: Event, side: Side = 1) -> float | None:
    """Return mu of the composition if every part is Gaussian noise, rounded up or down; otherwise None."""
    noises = [(part.sigma, count) for part, count in parts(event).items() if isinstance(part, events.Gaussian)]
    return total_mu(noises, side) if len(noises) == len(parts(event)) else None


def _sampled_epsilon(sample: Sample, delta: float, width: float) -> Bound:
    """Return bounds on epsilon: those of the event before sampling, amplified."""
    inner = epsilon(sample.event, inner_delta(sample.rate, delta), width=width)
    lower = amplified_epsilon(sample.rate, inner.lower) * (1 - 2.0**-36) if sample.is_attained else 0.0
    return Bound(lower, amplified_epsilon(sample.rate, inner.upper) * UP, "amplification by sampling")


def _sampled_delta(sample: Sample, epsilon: float) -> Bound:
    """Return bounds on delta: the rate times that of the event before sampling."""
    at = inner_epsilon(sample.rate, epsilon)
    lower = delta(sample.event, at * UP).lower * sample.rate / UP if sample.is_attained else 0.0
    return Bound(lower, delta(sample.event, at / UP).upper * sample.rate * UP, "amplification by sampling")


def _attained_mu(event: Event) -> float:
    """Return mu of the parts that attain their bound, for a lower bound, if all parts are bounded by Gaussian noise."""
    certain = attained_part(event)
    return (exact_gaussian_mu(certain, -1) or 0.0) if certain is not None else 0.0


def _basic_composition(event: Event) -> tuple[float, float]:
    """Return the sums of epsilons and of deltas: basic composition (Dwork and others 2006)."""
    epsilons: list[tuple[int, float]] = []
    deltas: list[tuple[int, float]] = []
    for part, count in parts(event).items():
        if isinstance(part, events.Approximate):
            epsilons.append((count, part.epsilon))
            deltas.append((count, part.delta))
        else:
            epsilons.append((count, pure_epsilon(part)))
    return sum_rounded_up(epsilons), sum_rounded_up(deltas)


def _basic_deltas(sums: tuple[float, float], epsilon: float) -> list[Bound]:
    """Return the bound on delta from sums of epsilons and deltas, if it applies at `epsilon`."""
    total, given = sums
    return [Bound(0.0, min(given, 1.0), "sum of epsilons and deltas")] if epsilon >= total else []


def _moment_deltas(approximate: tuple[float, float], values: Floats, epsilon: float) -> list[Bound]:
    """Return the bounds on delta from zero-concentrated privacy and from Rényi divergences on the grid of orders."""
    rho, given = approximate
    return [
        Bound(0.0, min(1.0, delta_of_rho(rho, epsilon) + given), "zero-concentrated"),
        Bound(0.0, delta_of_renyi_curve(values, epsilon), "Rényi"),
    ]


def _intersection(bounds: list[Bound]) -> Bound:
    """Return the greatest lower and the least upper bound, with the method of the latter."""
    best = min(bounds, key=lambda bound: bound.upper)
    return Bound(min(max(bound.lower for bound in bounds), best.upper), best.upper, best.method)


def _is_tight(bound: Bound, width: float = WIDTH) -> bool:
    return bound.upper <= (1.1 + 2 * width) * bound.lower or bound.upper == 0


def _moment_epsilons(event: Event, delta: float) -> list[Bound]:
    """Return the bounds on epsilon from zero-concentrated privacy and from Rényi divergences.

    Orders are searched coarsely first, then all those around the best.
    """
    rho, given = approximate_zcdp(event)
    bounds = []
    if given < delta:
        bounds.append(Bound(0.0, epsilon_of_rho(rho, delta - given), "zero-concentrated"))
    some = _epsilons_by_order(event, ORDERS[::ORDERS_SKIPPED], delta)
    best = ORDERS_SKIPPED * min(range(len(some)), key=some.__getitem__)
    near = ORDERS[max(best - ORDERS_SKIPPED + 1, 0) : best + ORDERS_SKIPPED]
    return [*bounds, Bound(0.0, min(some + _epsilons_by_order(event, near, delta)), "Rényi")]


def _epsilons_by_order(event: Event, orders: Floats, delta: float) -> list[float]:
    values = renyi_curve(event, orders).tolist()
    return [epsilon_of_renyi(order, value, delta) for order, value in zip(orders.tolist(), values, strict=True)]


SAMPLES = events.Sampled | events.SampledWithoutReplacement


class Sample(NamedTuple):
    """One event on a random sample, whose privacy curve follows from that of the event.

    At ln(1 + rate (e^epsilon - 1)) the sampled event's delta is at most rate times the event's own delta at epsilon;
    for a Poisson sample under add-remove by Balle, Barthe, Gaboardi 2018, theorem 8, for a sample of fixed size when a
    unit is exchanged by their theorem 9. When a unit is removed it is exactly that, so that lower bounds carry over
    where the event describes a mechanism that costs the same in both directions (`is_attained`).
    """

    rate: float
    event: Event
    is_attained: bool


def single_sample(event: Event) -> Sample | None:
    """Return the event as one sampled event, or None if it is anything else; `composition` handles other samples."""
    inside = parts(event)
    part = next(iter(inside))
    if sum(inside.values()) > 1:
        return None
    certain = attained_part(event) is not None
    match part:
        case events.Sampled(rate, inner):
            return Sample(rate, inner, certain and not _has_samples(inner))
        case events.SampledWithoutReplacement(size, population, inner):
            return Sample(size / population, replacement_event(inner), certain and not _has_samples(inner))
        case _:
            return None


def inner_delta(rate: float, delta: float) -> float:
    """Return the event's own delta that becomes `delta` after sampling, which is below the rate."""
    return min(delta / rate, 1 - 2.0**-53) * (1 - 2.0**-52)


def inner_epsilon(rate: float, epsilon: float) -> float:
    """Return the event's own epsilon that becomes `epsilon` after sampling: ln(1 + (e^epsilon - 1) / rate)."""
    if epsilon < 1:
        return math.log1p(math.expm1(epsilon) / rate)
    return epsilon + math.log1p(-(1 - rate) * math.exp(-epsilon)) - math.log(rate)


def _has_samples(event: Event) -> bool:
    """Return whether an event holds samples, so that removing a unit may cost more or less than adding it."""
    if isinstance(event, events.CompoundEvent):
        return isinstance(event, SAMPLES) or any(_has_samples(part) for part in dict.fromkeys(event.parts))
    return False


def total_variation(event: Event) -> float:
    """Return an upper bound on the total variation distance of an event between any two neighbours.

    That is delta at epsilon 0, and so a bound on delta at every epsilon. Those of composed parts add up, also where a
    part is chosen by earlier answers. A sample has its rate times that of the event, by joint convexity. Of (epsilon,
    delta)-privacy it is delta + (1 - delta) tanh(epsilon / 2) (Kairouz, Oh, Viswanath 2015), of log-ratios in an
    interval of length epsilon tanh(epsilon / 4) (`pairs.BoundedRangePair` at 0), of mu-Gaussian privacy
    erf(mu / sqrt(8)) (Dong, Roth, Su 2022). A Rényi bound R of any order above 1 is one on the relative entropy, and
    gives sqrt(R / 2) (Pinsker) and sqrt(1 - e^-R) (Bretagnolle and Huber 1979).
    """
    return min(sum_rounded_up([(count, _part_variation(part)) for part, count in parts(event).items()]), 1.0)


def _part_variation(event: Event) -> float:
    match event:
        case events.Sampled(rate, inner) if event.relation is Relation.ADD_REMOVE:
            return rate * total_variation(inner)  # at most the rate, also when rounded
        case events.SampledWithoutReplacement(size, population, inner):
            return size / population * total_variation(replacement_event(inner))
        case events.Exponential(epsilon=epsilon):
            return math.tanh(epsilon / 4) * UP
        case events.Approximate(epsilon=epsilon, delta=delta):
            return (delta + (1 - delta) * math.tanh(epsilon / 2)) * UP
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            return max(total_variation(one) for one in several)
        case events.Grouped(inner, size):
            return min(sum_rounded_up([(size, total_variation(inner))]), _variation_by_measures(event))
        case _:
            return _variation_by_measures(event)


def _variation_by_measures(event: Event) -> float:
    mu = gaussian_mu(event)
    if math.isfinite(mu):
        return math.erf(mu / math.sqrt(8)) * UP
    entropy = float(renyi_curve(event).min())
    return min(math.sqrt(entropy / 2), math.sqrt(-math.expm1(-entropy))) * UP


def compare(event: Event, delta: float) -> tuple[Bound, ...]:
    """Return the bound of each accountant on epsilon at `delta`, infinity where it has none."""
    check_supported(event)
    target = float_of_delta(delta)
    rho, given = approximate_zcdp(event)
    orders = zip(ORDERS.tolist(), renyi_curve(event).tolist(), strict=True)
    plan = Composition.of(event)
    found = (0.0, math.inf) if plan is None else bounds_or_trivial(lambda: plan.epsilon(target), math.inf)
    return (
        Bound(0.0, pure_epsilon(event), "sum of pure epsilons"),
        Bound(0.0, advanced_epsilon(event, target), "advanced composition of pure epsilons"),
        *_classical(event, target),
        Bound(0.0, epsilon_of_rho(rho, target - given) if given < target else math.inf, "zero-concentrated"),
        Bound(0.0, min(epsilon_of_renyi(order, value, target) for order, value in orders), "Rényi"),
        Bound(0.0, epsilon_of_mu(gaussian_mu(event), target), "Gaussian"),
        Bound(*found, "privacy loss distribution"),
    )


def advanced_epsilon(event: Event, delta: float) -> float:
    """Return the bound of advanced composition for pure events, or infinity for others.

    The losses of epsilon_i-private parts have means of at most epsilon_i tanh(epsilon_i / 2) and lie within ±epsilon_i,
    so by Hoeffding's inequality their sum exceeds its mean by sqrt(2 ln(1 / delta) sum epsilon_i^2) with probability
    delta at most (Dwork, Rothblum, Vadhan 2010, with the mean of randomized response).
    """
    epsilons = [(count, pure_epsilon(part)) for part, count in parts(event).items()]
    means = sum_rounded_up([(count, epsilon * math.tanh(epsilon / 2)) for count, epsilon in epsilons])
    squares = sum_rounded_up([(count, epsilon * epsilon) for count, epsilon in epsilons])
    return (means + math.sqrt(-2 * math.log(delta) * squares)) * (1 + 2.0**-45)


def _classical(event: Event, delta: float) -> Iterator[Bound]:
    """Yield the bound of the textbook theorems for equal Gaussian releases, which may be sampled."""
    inside = parts(event)
    part, count = next(iter(inside.items()))
    noise, rate = (part.event, part.rate) if isinstance(part, events.Sampled) else (part, 1.0)
    if len(inside) > 1 or not isinstance(noise, events.Gaussian):
        return
    one, whole = classical_epsilons(noise.sigma, rate, count, delta)
    chain = "classical Gaussian" + (", sampled" if rate < 1 else "") + (", advanced composition" if count > 1 else "")
    if one < 1:
        yield Bound(0.0, whole, chain)
    else:
        flaw = f"{whole:.4g} is no bound, since a release has epsilon {one:.3g} and the theorem needs one below 1"
        yield Bound(0.0, math.inf, f"{chain}: {flaw}")


def classical_epsilons(sigma: float, rate: float, count: int, delta: float) -> tuple[float, float]:
    """Return the epsilon of one release before sampling, and that of all releases, a bound if the former is below 1.

    Gaussian noise of sigma = sqrt(2 ln(1.25 / delta_0)) / epsilon_0 is (epsilon_0, delta_0)-private for epsilon_0 < 1
    (Dwork, Roth 2014, theorem A.1); on a Poisson sample it is (2 rate epsilon_0, rate delta_0)-private, for
    ln(1 + rate (e^x - 1)) <= 2 rate x where x <= 1; and `count` such releases are (epsilon, delta)-private by advanced
    composition (Dwork, Rothblum, Vadhan 2010): epsilon = sqrt(2 count ln(1 / delta')) epsilon_1 + count epsilon_1
    (e^epsilon_1 - 1), delta = count delta_1 + delta'. Here delta' is a half of delta, and the releases share the rest.
    """
    shared = delta / 2 if count > 1 else delta
    one = math.sqrt(max(0.0, 2 * (math.log(1.25 * rate) + math.log(count) - math.log(shared)))) / sigma
    each = 2 * rate * one if rate < 1 else one
    if count == 1:
        return one, each
    if each > 700:
        return one, math.inf
    return one, math.sqrt(-2 * count * math.log(delta / 2)) * each + count * each * math.expm1(each)
