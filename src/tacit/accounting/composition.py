"""Composing a plan's parts by their privacy loss: which lattice, which direction, which worst case.

Promise: bounds hold for a plan whose parameters were fixed before any answer was seen; questions may adapt. Removal and
addition of a unit are composed apart, and the worse is taken at the end. Where parts ran on disjoint data, every way to
lie in one of them is composed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Final, TypeAlias

import numpy as np

from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.conversions import delta_of_rho, epsilon_of_renyi, epsilon_of_rho
from tacit.accounting.dominating import is_exact, lower_pair, upper_pair
from tacit.accounting.loss import (
    Curve,
    Focus,
    Lattice,
    Sketch,
    focus_on_delta,
    focus_on_epsilon,
    on_lattice,
    rough_delta,
    sharper_epsilon,
    total_variation,
    window,
)
from tacit.accounting.measures import concentrated
from tacit.accounting.pairs import Floats, GaussianPair, Pair, curve_pair
from tacit.accounting.parts import attained, parts
from tacit.accounting.renyi import ORDERS, curve, delta_of_curve
from tacit.privacy import events
from tacit.privacy.events import Event

Counted: TypeAlias = list[tuple[Pair, int]]
Aim: TypeAlias = Callable[[Sketch], Focus]

WAYS_MAX: Final = 64
COUNT_MAX: Final = 2**46
"""How many parts a lattice can compose: the errors of the transform grow with them."""

WIDTH: Final = 0.001
"""How far apart the two bounds on epsilon may be, relatively, as far as the lattice decides it."""

ETA_SHARE: Final = 1e-3
"""The lower bound's failure probability, as a share of delta."""

TAIL_SHARE: Final = 1e-6
"""How much is given away of what lies above all lattices, as a share of delta."""

POINTS: Final = 1 << 20
COARSE_POINTS: Final = 1 << 13
CELLS: Final = 1 << 21
"""Where lattices have more points than this all in all, bounds may be four times as far apart as was asked for."""

COARSENED_MAX: Final = 5
REFINED_MAX: Final = 5
VAIN_MAX: Final = 3
"""How many curves may turn out to be imprecise at their own focus before no more are made."""

PROFILE_POINTS: Final = 1024
PROFILE_DELTAS: Final = (1e-45, 1e-30, 1e-20, 1e-12, 1e-8, 1e-5, 1e-3, 0.1)
PROFILE_EPSILON_MAX: Final = 600.0
SOME_PAIRS: Final = 64
STEP_MIN: Final = 1e-18
TAIL_MIN: Final = 1e-300


class Composition:
    """The composed parts of an event, ready to be asked for epsilon at delta or for delta at epsilon."""

    def __init__(self, ways: Sequence[Mapping[Event, int]], attained_ways: Sequence[Mapping[Event, int]]) -> None:
        self._ways, self._attained_ways = ways, attained_ways

    @classmethod
    def of(cls, event: Event) -> Composition | None:
        """Take an event apart, or return None where some part has no pair or there are too many of them."""
        ways = _ways(event)
        if ways is None or max(sum(way.values()) for way in ways) > COUNT_MAX:
            return None
        if not all(_pairs(way, addition=False, lower=False) for way in ways):
            return None
        certain = attained(event)
        return cls(ways, (_ways(certain) or []) if certain is not None else [])

    @cached_property
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
    plan, (rho, given), values = Composition.of(event), concentrated(event), curve(event)
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


def _farthest(plan: Composition | None, values: Floats, rho: float, given: float) -> float:
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
    """Return bounds on epsilon at `delta`; an upper bound of `enough` need not be made smaller.

    The lattice starts coarse, and gets as fine as the distance between the two bounds asks for.
    """
    count = sum(number for _, number in pairs)
    tail, eta = max(delta * TAIL_SHARE, TAIL_MIN) / count, delta * ETA_SHARE
    spans = _spans(pairs, tail)
    step, some = max(max(spans) / COARSE_POINTS, STEP_MIN), _some(pairs, spans)
    lattices = _lattices(some, step, tail)
    if some is pairs and total_variation(lattices, step) <= delta:
        return 0.0, 0.0
    aim: Aim = partial(focus_on_delta, delta=delta)
    sketch = Sketch(lattices, step)
    guess = aim(sketch)
    fine = _fine(max(sharper_epsilon(sketch, guess), sketch.spread() / 10), guess.tilt, width, count, eta)
    for coarser in (16, 4) if guess.epsilon < enough < math.inf else ():
        if _is_enough(pairs, coarser * max(step / 4, fine), tail, enough, delta):
            return 0.0, enough
    coarsened = _coarsened(spans, fine)
    step = coarsened * fine if 4 * coarsened * fine > step else step
    lower, upper, refocused = 0.0, math.inf, False
    for _ in range(REFINED_MAX):
        curve, wide = _curve(pairs, step, tail, aim), coarsened**2 * width
        if curve is None:
            break
        found = curve.epsilon_upper(delta)
        stalled, upper = lower == 0 and 0.999 * upper < found < math.inf, min(upper, found)
        lower = max(lower, curve.epsilon_lower(delta, found, eta))
        if upper in (0, math.inf) or upper <= (1 + 2 * wide) * lower:
            break
        gentle, gap = 10 / (width * upper), upper - lower
        if 4 * min(curve.shift(eta), curve.lag) < gap and curve.focus.tilt > gentle:  # too steep below a mass on top
            there = _curve(pairs, curve.step, tail, _towards(upper, tilt_max=gentle))
            lower = max(lower, there.epsilon_lower(delta, upper, eta) if there is not None else 0.0)
        # what moves cost falls with the step or, as soon as a lower bound is found by `lag`, with its square
        wanted = max(width * upper / max(curve.shift(eta), STEP_MIN), math.sqrt(width * upper / gap) if lower else 0.0)
        wanted = min(max(wanted, 1 / 64), 1.0)
        coarsened = _coarsened(spans, curve.step * wanted)
        finer = max(coarsened * curve.step * wanted, max(spans) / POINTS, STEP_MIN)
        far_off = upper < 0.7 * curve.focus.epsilon  # the first focus is a Rényi bound, far off for few parts
        at_limit = curve.step > step and (refocused or not far_off)
        if stalled or at_limit or (not far_off and finer > 0.9 * step):
            break
        step, aim, refocused = finer, _towards(upper) if far_off else aim, refocused or far_off
        if upper < enough and _is_enough(pairs, step, tail, enough, delta):
            return 0.0, enough
    return lower, upper


def _is_enough(pairs: Counted, step: float, tail: float, epsilon: float, delta: float) -> bool:
    """Whether delta at `epsilon` is certain to be at most `delta`, as far as a lattice of this step tells."""
    curve = _curve(pairs, step, tail, _towards(epsilon))
    return curve is not None and curve.delta(epsilon, upper=True) <= delta


def _towards(epsilon: float, *, tilt_max: float = math.inf) -> Aim:
    """Return how to find the tilt that is precise at `epsilon`, or a gentler one."""

    def aim(sketch: Sketch) -> Focus:
        focus = focus_on_epsilon(sketch, epsilon)
        return focus._replace(tilt=min(focus.tilt, tilt_max))

    return aim


def _delta(pairs: Counted, epsilon: float) -> tuple[float, float]:
    curve = _curve_at(pairs, epsilon)
    if curve is None:
        return 0.0, 1.0
    upper = curve.delta(epsilon, upper=True)
    if upper == 0:
        return 0.0, 0.0
    eta = upper * ETA_SHARE
    return curve.delta_lower(epsilon, eta), upper


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
    spans = _spans(pairs, tail)
    coarse = max(max(spans) / COARSE_POINTS, STEP_MIN)
    sketch = Sketch(_lattices(_some(pairs, spans), coarse, tail), coarse)
    focus = focus_on_epsilon(sketch, epsilon)
    expected = max(rough_delta(sketch, focus), TAIL_MIN)
    tail = min(max(expected * TAIL_SHARE, TAIL_MIN), 1e-24) / count
    wide, eta = max(epsilon, sketch.spread() / 10), expected * ETA_SHARE
    fine = max(_fine(wide, focus.tilt, WIDTH / 16, count, eta), _fine(wide, math.inf, 4 * WIDTH, count, eta))
    step = max(_coarsened(spans, fine) * fine, max(spans) / POINTS) if expected > TAIL_MIN else coarse
    return _curve(pairs, step, tail, _towards(epsilon))


def _curve(pairs: Counted, step: float, tail: float, aim: Aim) -> Curve | None:
    """Return the curve around a focus, on a coarser lattice where the composed one would have too many points.

    None where that does not help: on a coarser lattice very many parts spread out further.
    """
    for _ in range(COARSENED_MAX):
        lattices = _lattices(pairs, step, tail)
        sketch = Sketch(lattices, step)
        focus = aim(sketch)
        within = window(lattices, step, focus, sketch)
        if within.high - within.low <= POINTS * step:
            return Curve(lattices, step, focus, within)
        step = 1.1 * (within.high - within.low) / POINTS
    return None


def _some(pairs: Counted, spans: Sequence[float]) -> Counted:
    """Return all pairs, or the widest and some of the others in place of all; nothing is promised from it."""
    if len(pairs) <= 2 * SOME_PAIRS:
        return pairs
    order = sorted(range(len(pairs)), key=lambda at: -spans[at])
    every = len(pairs) // SOME_PAIRS
    others = [(pairs[at][0], pairs[at][1] * every) for at in order[every + every // 2 :: every]]
    return [pairs[at] for at in order[:every]] + others


def _lattices(pairs: Counted, step: float, tail: float) -> list[Lattice]:
    return [on_lattice(pair, step, tail, count) for pair, count in pairs]


def _fine(epsilon: float, tilt: float, width: float, count: int, eta: float) -> float:
    """Return a step for which moves to the lattice cost about `width` of epsilon or less (`Curve.shift`, `lag`)."""
    by_shift = width * epsilon / max(math.sqrt(count * -math.log(eta) / 2), 8.0)
    return max(by_shift, math.sqrt(width * epsilon / (count * (1 + tilt))), STEP_MIN)


def _coarsened(spans: Sequence[float], step: float) -> float:
    """Return a factor for a step by which lattices have no more than CELLS points, as far as 2 does."""
    return min(max(sum(spans) / (CELLS * step), 1.0), 2.0)


def _spans(pairs: Counted, tail: float) -> list[float]:
    """Return how far apart the losses are between which all but `tail` of each pair's mass lies."""
    ends = (pair.span(tail) for pair, _ in pairs)
    return [high - low for low, high in ends]
