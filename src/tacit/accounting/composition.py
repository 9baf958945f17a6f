"""Composing a plan's parts by their privacy loss: which lattice, which direction, which worst case.

Promise: bounds hold for a plan whose parameters were fixed before any answer was seen; questions may adapt. Removal and
addition of a unit are composed apart, and the worse is taken at the end. Where parts ran on disjoint data, every way to
lie in one of them is composed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from tacit.accounting.conversions import delta_of_rho, epsilon_of_renyi, epsilon_of_rho
from tacit.accounting.dominating import is_exact, lower_pair, upper_pair
from tacit.accounting.loss import (
    Curve,
    Focus,
    Lattice,
    focus_on_delta,
    focus_on_epsilon,
    on_lattice,
    rough_delta,
    spread,
    total_variation,
    window,
)
from tacit.accounting.measures import concentrated
from tacit.accounting.pairs import Floats, GaussianPair, Pair, curve_pair
from tacit.accounting.parts import attained, parts
from tacit.accounting.pure import pure_epsilon
from tacit.accounting.renyi import ORDERS, curve, delta_of_curve
from tacit.privacy import events
from tacit.privacy.events import Event

Counted: TypeAlias = list[tuple[Pair, int]]

WAYS_MAX: Final = 64
COUNT_MAX: Final = 2**46
"""How many parts a lattice can compose: the errors of the transform grow with them."""

WIDTH: Final = 0.007
"""How far apart the two bounds on epsilon may be, relatively, as far as the lattice decides it."""

ETA_SHARE: Final = 1e-3
"""The lower bound's failure probability, as a share of delta."""

POINTS: Final = 1 << 21
COARSE_POINTS: Final = 4096
COARSENED_MAX: Final = 5
REFOCUSED_MAX: Final = 4
VAIN_MAX: Final = 3
"""How many curves may turn out to be imprecise at their own focus before no more are made."""

PROFILE_POINTS: Final = 1024
PROFILE_DELTAS: Final = (1e-45, 1e-30, 1e-20, 1e-12, 1e-8, 1e-5, 1e-3, 0.1)
PROFILE_EPSILON_MAX: Final = 600.0
STEP_MIN: Final = 1e-18
TAIL_MIN: Final = 1e-300


class Plan:
    """The composed parts of an event, ready to be asked for epsilon at delta or for delta at epsilon."""

    def __init__(self, ways: Sequence[Mapping[Event, int]], attained_ways: Sequence[Mapping[Event, int]]) -> None:
        self._ways, self._attained_ways = ways, attained_ways

    @classmethod
    def of(cls, event: Event) -> Plan | None:
        """Take an event apart, or return None where some part has no pair or there are too many of them."""
        ways = _ways(event)
        if ways is None or max(sum(way.values()) for way in ways) > COUNT_MAX:
            return None
        if not all(_pairs(way, addition=False, lower=False) for way in ways):
            return None
        certain = attained(event)
        return cls(ways, (_ways(certain) or []) if certain is not None else [])

    @property
    def is_exact(self) -> bool:
        """Whether every part's pair is that of a mechanism which the event describes."""
        return self._ways == self._attained_ways and all(is_exact(part) for way in self._ways for part in way)

    def epsilon(self, delta: float, width: float = WIDTH) -> tuple[float, float]:
        """Return certified bounds on epsilon at `delta`."""
        return self._worst(lambda pairs, enough: _epsilon(pairs, delta, width, enough), math.inf)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return certified bounds on delta at `epsilon`."""
        return self._worst(lambda pairs, _: _delta(pairs, epsilon), 1.0)

    def deltas(self, epsilons: Sequence[float]) -> list[float]:
        """Return upper bounds on delta at rising epsilons, at little more than the price of one."""
        highest = [0.0] * len(epsilons)
        for way in self._ways:
            for addition in _directions(way):
                pairs = _pairs(way, addition=addition, lower=False)
                found = [1.0] * len(epsilons) if pairs is None else _deltas(pairs, epsilons)
                highest = list(map(max, highest, found))
        return highest

    def _worst(self, solve: Callable[[Counted, float], tuple[float, float]], most: float) -> tuple[float, float]:
        low = high = 0.0
        exact = self.is_exact
        for way in self._ways:
            for addition in _directions(way):
                pairs = _pairs(way, addition=addition, lower=False)
                if pairs is None:
                    return low, most
                bounds = solve(pairs, high)
                low, high = max(low, bounds[0] if exact else 0.0), max(high, bounds[1])
        for way in self._attained_ways if not exact else ():
            for addition in _directions(way, lower=True):
                witness = _pairs(way, addition=addition, lower=True)
                if witness:
                    low = max(low, solve(witness, low)[0])
        return min(low, high), high


def _ways(event: Event) -> list[Mapping[Event, int]] | None:
    """Return every composition that a unit may have been part of, one for each way to lie in disjoint data."""
    fixed: dict[Event, int] = {}
    choices: list[list[dict[Event, int]]] = []
    for part, count in parts(event).items():
        if not isinstance(part, events.Disjoint):
            fixed[part] = fixed.get(part, 0) + count
            continue
        inside = [_ways(one) for one in dict.fromkeys(part.events)]
        if count > 1 or any(one is None for one in inside):
            return None
        choices.append([dict(way) for one in inside if one is not None for way in one])
    if math.prod(len(choice) for choice in choices) > WAYS_MAX:
        return None
    ways: list[Mapping[Event, int]] = []
    for chosen in itertools.product(*choices):
        together = dict(fixed)
        for one in chosen:
            for part, count in one.items():
                together[part] = together.get(part, 0) + count
        ways.append(together)
    return ways


def _directions(way: Mapping[Event, int], *, lower: bool = False) -> tuple[bool, ...]:
    """Return removal alone where every pair is symmetric, otherwise removal and addition."""
    sampled = events.Sampled | events.SampledWithoutReplacement if lower else events.Sampled
    return (False, True) if any(isinstance(part, sampled) for part in way) else (False,)


def _pairs(way: Mapping[Event, int], *, addition: bool, lower: bool) -> Counted | None:
    """Return the pairs of all parts, Gaussian ones as one: their precisions add up.

    None where an upper pair is not known; parts without a lower pair are left out, since more parts never cost less.
    """
    counted: Counted = []
    squared = 0.0
    for part, count in way.items():
        find = lower_pair if lower else _upper_pair
        pair = find(part, addition=addition)
        if pair is None:
            if lower:
                continue
            return None
        if isinstance(pair, GaussianPair):
            squared += count * pair.mu * pair.mu
        else:
            counted.append((pair, count))
    if squared:
        counted.append((GaussianPair(math.sqrt(squared) * (1 + 2.0**-50)), 1))
    return counted


@lru_cache(maxsize=64)
def _profile(event: Event) -> Pair | None:
    """Return a pair that dominates a composition, or an event of which only a curve is known, from bounds on the curve.

    Those are of the lattice and of the event's rho and Rényi curve, each for both directions, so the pair is symmetric.
    """
    plan, (rho, given), values = Plan.of(event), concentrated(event), curve(event)
    pure = pure_epsilon(event)
    top = min(pure, _farthest(plan, values, rho, given))
    if not 0 < top < PROFILE_EPSILON_MAX:
        return None
    epsilons = np.linspace(0, top, PROFILE_POINTS)
    deltas = np.array(plan.deltas(epsilons.tolist()) if plan is not None else [1.0] * PROFILE_POINTS)
    for index, epsilon in enumerate(epsilons.tolist()):
        moments = min(delta_of_rho(rho, epsilon) + given, delta_of_curve(values, epsilon))
        deltas[index] = 0.0 if epsilon >= pure else min(deltas[index], moments)
    return curve_pair(epsilons, np.minimum.accumulate(deltas))


def _farthest(plan: Plan | None, values: Floats, rho: float, given: float) -> float:
    """Return an epsilon at which little is left of delta, where one can be found."""
    finite = np.isfinite(values)
    for delta in PROFILE_DELTAS:
        found = [epsilon_of_renyi(*at, delta) for at in zip(ORDERS[finite], values[finite], strict=True)]
        found += [epsilon_of_rho(rho, delta - given)] if given < delta else []
        least = min((float(one) for one in found), default=math.inf)
        if math.isinf(least) and plan is not None:
            least = plan.epsilon(delta, 0.2)[1]
        if math.isfinite(least):
            return least
    return math.inf


def _upper_pair(part: Event, *, addition: bool) -> Pair | None:
    return upper_pair(part, addition=addition, otherwise=_profile)


def _epsilon(pairs: Counted, delta: float, width: float, enough: float = 0.0) -> tuple[float, float]:
    """Return bounds on epsilon at `delta`; an upper bound of `enough` need not be made smaller."""
    tail = max(delta * 1e-7, TAIL_MIN) / sum(count for _, count in pairs)
    coarse = _coarse_step(pairs, tail)
    rough = _lattices(pairs, coarse, tail)
    if total_variation(rough, coarse) <= delta:
        return 0.0, 0.0
    focus = focus_on_delta(rough, coarse, delta)
    if focus.epsilon < enough < math.inf:
        there = _curve(pairs, coarse, tail, focus_on_epsilon(rough, coarse, enough))
        if there is not None and there.delta(enough, upper=True) <= delta:
            return 0.0, enough
    eta = delta * ETA_SHARE
    for _ in range(REFOCUSED_MAX):
        step = _step(pairs, tail, max(focus.epsilon, spread(rough, coarse) / 10), eta, width)
        curve = _curve(pairs, step, tail, focus)
        if curve is None:
            return 0.0, math.inf
        upper = curve.epsilon_upper(delta)
        lower = curve.epsilon_lower(delta, upper, eta)
        if upper == 0 or upper > 0.7 * focus.epsilon:
            break
        focus = focus_on_epsilon(rough, coarse, upper)  # the focus came from a Rényi bound, far off for few steps
    if lower == 0 < upper < math.inf:  # below a great mass at the top of the losses the tilt was too steep
        gentle = _curve(pairs, step, tail, Focus(upper, min(focus.tilt, 10 / (width * upper))))
        lower = gentle.epsilon_lower(delta, upper, eta) if gentle is not None else 0.0
    return lower, upper


def _delta(pairs: Counted, epsilon: float) -> tuple[float, float]:
    curve = _curve_at(pairs, epsilon)
    if curve is None:
        return 0.0, 1.0
    upper = curve.delta(epsilon, upper=True)
    if upper == 0:
        return 0.0, 0.0
    eta = upper * ETA_SHARE
    return max(0.0, curve.delta(epsilon + curve.shift(eta), upper=False) - eta), upper


def _deltas(pairs: Counted, epsilons: Sequence[float]) -> list[float]:
    """Return upper bounds at rising epsilons; a curve serves below its focus for as long as its error stays small."""
    found: list[float] = []
    curve, vain = None, 0
    for epsilon in reversed(epsilons):
        if vain < VAIN_MAX and (curve is None or not _is_precise(curve, epsilon)):
            curve = _curve_at(pairs, epsilon)
            vain += curve is None or not _is_precise(curve, epsilon)
        found.append(curve.delta(epsilon, upper=True) if curve is not None else 1.0)
    return found[::-1]


def _is_precise(curve: Curve, epsilon: float) -> bool:
    upper = curve.delta(epsilon, upper=True)
    return 0 <= upper - curve.delta(epsilon, upper=False) <= ETA_SHARE * upper


def _curve_at(pairs: Counted, epsilon: float) -> Curve | None:
    """Return the curve that is precise at `epsilon`, or None where its lattice would have too many points."""
    count = sum(number for _, number in pairs)
    tail = TAIL_MIN / count
    coarse = _coarse_step(pairs, tail)
    rough = _lattices(pairs, coarse, tail)
    focus = focus_on_epsilon(rough, coarse, epsilon)
    expected = max(rough_delta(rough, coarse, focus), TAIL_MIN)
    tail = min(max(expected * 1e-7, TAIL_MIN), 1e-24) / count
    step = _step(pairs, tail, max(epsilon, spread(rough, coarse) / 10), expected * ETA_SHARE, WIDTH)
    return _curve(pairs, step, tail, focus)


def _curve(pairs: Counted, step: float, tail: float, focus: Focus) -> Curve | None:
    """Return the curve around a focus, on a coarser lattice where the composed one would have too many points.

    None where that does not help: on a coarser lattice very many parts spread out further.
    """
    for _ in range(COARSENED_MAX):
        lattices = _lattices(pairs, step, tail)
        within = window(lattices, step, focus)
        if within.high - within.low <= POINTS * step:
            return Curve(lattices, step, focus, within)
        step = 1.1 * (within.high - within.low) / POINTS
    return None


def _lattices(pairs: Counted, step: float, tail: float) -> list[Lattice]:
    return [on_lattice(pair, step, tail, count) for pair, count in pairs]


def _coarse_step(pairs: Counted, tail: float) -> float:
    widest = max(high - low for low, high in (pair.span(tail) for pair, _ in pairs))
    return max(widest / COARSE_POINTS, STEP_MIN)


def _step(pairs: Counted, tail: float, epsilon: float, eta: float, width: float) -> float:
    """Choose a step for which the lower bound's shift is `width` of epsilon, and no lattice has too many points."""
    count = sum(number for _, number in pairs)
    fine = width * epsilon / max(math.sqrt(count * -math.log(eta) / 2), 8.0)
    widest = max(high - low for low, high in (pair.span(tail) for pair, _ in pairs))
    return max(fine, widest / POINTS, STEP_MIN)
