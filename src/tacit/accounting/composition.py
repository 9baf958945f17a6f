"""Composition of a plan's parts by their privacy loss: the choice of lattices, directions and worst cases.

Promise: bounds hold for a plan whose parameters were fixed before any answer was seen; questions may adapt. Removal and
addition of a unit are composed separately, and the worse is taken at the end. Where parts ran on disjoint data, every
alternative, in which the unit lies in one of them, is composed.
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
    discretize,
    find_window,
    focus_on_delta,
    focus_on_epsilon,
    lattice_total_variation,
    rough_delta,
    saddle_point_epsilon,
)
from tacit.accounting.measures import approximate_zcdp
from tacit.accounting.pairs import Floats, GaussianPair, Pair, curve_pair
from tacit.accounting.parts import attained_part, parts
from tacit.accounting.renyi import ORDERS, delta_of_renyi_curve, renyi_curve
from tacit.privacy import events
from tacit.privacy.events import Event

Alternative: TypeAlias = Mapping[Event, int]
"""Simple events that are composed on the data of one unit, and how often each."""

CountedPairs: TypeAlias = list[tuple[Pair, int]]
Aim: TypeAlias = Callable[[Sketch], Focus]

ALTERNATIVES_MAX: Final = 64
COUNT_MAX: Final = 2**46
"""The greatest number of parts on a lattice: the errors of the transform grow with them."""

WIDTH: Final = 0.001
"""The relative distance that the two bounds on epsilon may have, as far as the lattice decides it."""

ETA_SHARE: Final = 1e-3
"""The lower bound's failure probability, as a share of delta."""

TAIL_SHARE: Final = 1e-6
"""The mass above all lattices that is counted as an infinite loss, as a share of delta."""

POINTS: Final = 1 << 20
COARSE_POINTS: Final = 1 << 13
CELLS: Final = 1 << 21
"""Where lattices have more points than this in total, bounds may be four times as far apart as was requested."""

COARSENED_MAX: Final = 5
REFINED_MAX: Final = 5
IMPRECISE_CURVES_MAX: Final = 3
"""After this many curves that are imprecise at their own focus, no more are made."""

PROFILE_POINTS: Final = 1024
PROFILE_DELTAS: Final = (1e-45, 1e-30, 1e-20, 1e-12, 1e-8, 1e-5, 1e-3, 0.1)
PROFILE_EPSILON_MAX: Final = 600.0
REPRESENTATIVES: Final = 64
STEP_MIN: Final = 1e-18
TAIL_MIN: Final = 1e-300


class Composition:
    """The composed parts of an event, with bounds on epsilon at delta and on delta at epsilon."""

    def __init__(self, alternatives: Sequence[Alternative], attained: Sequence[Alternative]) -> None:
        self._alternatives, self._attained = alternatives, attained

    @classmethod
    def of(cls, event: Event) -> Composition | None:
        """Return the composition of an event's parts, or None if a part has no pair or there are too many of them."""
        alternatives = _alternatives(event)
        if alternatives is None or max(sum(alternative.values()) for alternative in alternatives) > COUNT_MAX:
            return None
        if not all(_pairs(alternative, addition=False, lower=False) for alternative in alternatives):
            return None
        certain = attained_part(event)
        return cls(alternatives, (_alternatives(certain) or []) if certain is not None else [])

    @cached_property
    def is_exact(self) -> bool:
        """Whether every part's dominating pair is that of a mechanism which the event describes."""
        return self._alternatives == self._attained and all(
            is_exact(part) for alternative in self._alternatives for part in alternative
        )

    def epsilon(self, delta: float, width: float = WIDTH) -> tuple[float, float]:
        """Return certified bounds on epsilon at `delta`."""
        return self._worst(lambda pairs, enough: _epsilon(pairs, delta, width, enough), math.inf)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return certified bounds on delta at `epsilon`."""
        return self._worst(lambda pairs, _: _delta(pairs, epsilon), 1.0)

    def deltas(self, epsilons: Sequence[float]) -> list[float]:
        """Return upper bounds on delta at rising epsilons, in little more time than one takes."""
        highest = [0.0] * len(epsilons)
        for alternative in self._alternatives:
            for addition in _directions(alternative):
                pairs = _pairs(alternative, addition=addition, lower=False)
                found = [1.0] * len(epsilons) if pairs is None else _deltas(pairs, epsilons)
                highest = list(map(max, highest, found))
        return highest

    def _worst(self, solve: Callable[[CountedPairs, float], tuple[float, float]], most: float) -> tuple[float, float]:
        low = high = 0.0
        exact = self.is_exact
        for alternative in self._alternatives:
            for addition in _directions(alternative):
                pairs = _pairs(alternative, addition=addition, lower=False)
                if pairs is None:
                    return low, most
                bounds = solve(pairs, high)
                low, high = max(low, bounds[0] if exact else 0.0), max(high, bounds[1])
        for alternative in self._attained if not exact else ():
            for addition in _directions(alternative, lower=True):
                witness = _pairs(alternative, addition=addition, lower=True)
                if witness:
                    low = max(low, solve(witness, low)[0])
        return min(low, high), high


def _alternatives(event: Event) -> list[Alternative] | None:
    """Return the compositions that a unit may have been part of, one for each choice of disjoint data."""
    fixed: dict[Event, int] = {}
    choices: list[list[dict[Event, int]]] = []
    for part, count in parts(event).items():
        if not isinstance(part, events.Disjoint):
            fixed[part] = fixed.get(part, 0) + count
            continue
        inside = [_alternatives(one) for one in dict.fromkeys(part.events)]
        if count > 1 or any(one is None for one in inside):
            return None
        choices.append([dict(alternative) for one in inside if one is not None for alternative in one])
    if math.prod(len(choice) for choice in choices) > ALTERNATIVES_MAX:
        return None
    alternatives: list[Alternative] = []
    for chosen in itertools.product(*choices):
        together = dict(fixed)
        for one in chosen:
            for part, count in one.items():
                together[part] = together.get(part, 0) + count
        alternatives.append(together)
    return alternatives


def _directions(alternative: Alternative, *, lower: bool = False) -> tuple[bool, ...]:
    """Return removal alone where every pair is symmetric, otherwise removal and addition."""
    sampled = events.Sampled | events.SampledWithoutReplacement if lower else events.Sampled
    return (False, True) if any(isinstance(part, sampled) for part in alternative) else (False,)


def _pairs(alternative: Alternative, *, addition: bool, lower: bool) -> CountedPairs | None:
    """Return the pairs of all parts, Gaussian ones merged: their precisions add up.

    None if an upper pair is not known; parts without a lower pair are left out, since more parts never cost less.
    """
    counted: CountedPairs = []
    squared = 0.0
    for part, count in alternative.items():
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

    The bounds are those of the lattice and of the event's rho and Rényi curve, each for both directions, so the pair is
    symmetric.
    """
    plan, (rho, given), values = Composition.of(event), approximate_zcdp(event), renyi_curve(event)
    pure = pure_epsilon(event)
    top = min(pure, _last_epsilon(plan, values, rho, given))
    if not 0 < top < PROFILE_EPSILON_MAX:
        return None
    epsilons = np.linspace(0, top, PROFILE_POINTS)
    deltas = np.array(plan.deltas(epsilons.tolist()) if plan is not None else [1.0] * PROFILE_POINTS)
    for index, epsilon in enumerate(epsilons.tolist()):
        moments = min(delta_of_rho(rho, epsilon) + given, delta_of_renyi_curve(values, epsilon))
        deltas[index] = 0.0 if epsilon >= pure else min(deltas[index], moments)
    return curve_pair(epsilons, np.minimum.accumulate(deltas))


def _last_epsilon(plan: Composition | None, values: Floats, rho: float, given: float) -> float:
    """Return an epsilon at which delta is small, or infinity if none is found."""
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


def _epsilon(pairs: CountedPairs, delta: float, width: float, enough: float = 0.0) -> tuple[float, float]:
    """Return bounds on epsilon at `delta`; an upper bound of at most `enough` is not refined.

    The lattice starts coarse and is refined until the two bounds are close enough.
    """
    count = sum(number for _, number in pairs)
    tail, eta = max(delta * TAIL_SHARE, TAIL_MIN) / count, delta * ETA_SHARE
    spans = _spans(pairs, tail)
    step, some = max(max(spans) / COARSE_POINTS, STEP_MIN), _representative_pairs(pairs, spans)
    lattices = _lattices(some, step, tail)
    if some is pairs and lattice_total_variation(lattices, step) <= delta:
        return 0.0, 0.0
    aim: Aim = partial(focus_on_delta, delta=delta)
    sketch = Sketch(lattices, step)
    guess = aim(sketch)
    fine = _step_for(max(saddle_point_epsilon(sketch, guess), sketch.spread() / 10), guess.tilt, width, count, eta)
    for coarser in (16, 4) if guess.epsilon < enough < math.inf else ():
        if _certifies(pairs, coarser * max(step / 4, fine), tail, enough, delta):
            return 0.0, enough
    coarsened = _coarsening(spans, fine)
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
            there = _curve(pairs, curve.step, tail, _aim_at(upper, tilt_max=gentle))
            lower = max(lower, there.epsilon_lower(delta, upper, eta) if there is not None else 0.0)
        # the cost of rounding falls with the step or, as soon as a lower bound is found by `lag`, with its square
        wanted = max(width * upper / max(curve.shift(eta), STEP_MIN), math.sqrt(width * upper / gap) if lower else 0.0)
        wanted = min(max(wanted, 1 / 64), 1.0)
        coarsened = _coarsening(spans, curve.step * wanted)
        finer = max(coarsened * curve.step * wanted, max(spans) / POINTS, STEP_MIN)
        far_off = upper < 0.7 * curve.focus.epsilon  # the first focus is a Rényi bound, far off for few parts
        at_limit = curve.step > step and (refocused or not far_off)
        if stalled or at_limit or (not far_off and finer > 0.9 * step):
            break
        step, aim, refocused = finer, _aim_at(upper) if far_off else aim, refocused or far_off
        if upper < enough and _certifies(pairs, step, tail, enough, delta):
            return 0.0, enough
    return lower, upper


def _certifies(pairs: CountedPairs, step: float, tail: float, epsilon: float, delta: float) -> bool:
    """Return whether a lattice of this step proves that delta at `epsilon` is at most `delta`."""
    curve = _curve(pairs, step, tail, _aim_at(epsilon))
    return curve is not None and curve.delta(epsilon, upper=True) <= delta


def _aim_at(epsilon: float, *, tilt_max: float = math.inf) -> Aim:
    """Return an aim at `epsilon`: the tilt that is precise there, or `tilt_max` if that is less."""

    def aim(sketch: Sketch) -> Focus:
        focus = focus_on_epsilon(sketch, epsilon)
        return focus._replace(tilt=min(focus.tilt, tilt_max))

    return aim


def _delta(pairs: CountedPairs, epsilon: float) -> tuple[float, float]:
    curve = _curve_at(pairs, epsilon)
    if curve is None:
        return 0.0, 1.0
    upper = curve.delta(epsilon, upper=True)
    if upper == 0:
        return 0.0, 0.0
    eta = upper * ETA_SHARE
    return curve.delta_lower(epsilon, eta), upper


def _deltas(pairs: CountedPairs, epsilons: Sequence[float]) -> list[float]:
    """Return upper bounds at rising epsilons; a curve is reused below its focus while its error is small."""
    found: list[float] = []
    curve, imprecise = None, 0
    for epsilon in reversed(epsilons):
        if imprecise < IMPRECISE_CURVES_MAX and (curve is None or not _is_precise(curve, epsilon)):
            curve = _curve_at(pairs, epsilon)
            imprecise += curve is None or not _is_precise(curve, epsilon)
        found.append(curve.delta(epsilon, upper=True) if curve is not None else 1.0)
    return found[::-1]


def _is_precise(curve: Curve, epsilon: float) -> bool:
    upper = curve.delta(epsilon, upper=True)
    return 0 <= upper - curve.delta(epsilon, upper=False) <= ETA_SHARE * upper


def _curve_at(pairs: CountedPairs, epsilon: float) -> Curve | None:
    """Return the curve that is precise at `epsilon`, or None if its lattice would have too many points."""
    count = sum(number for _, number in pairs)
    tail = TAIL_MIN / count
    spans = _spans(pairs, tail)
    coarse = max(max(spans) / COARSE_POINTS, STEP_MIN)
    sketch = Sketch(_lattices(_representative_pairs(pairs, spans), coarse, tail), coarse)
    focus = focus_on_epsilon(sketch, epsilon)
    expected = max(rough_delta(sketch, focus), TAIL_MIN)
    tail = min(max(expected * TAIL_SHARE, TAIL_MIN), 1e-24) / count
    wide, eta = max(epsilon, sketch.spread() / 10), expected * ETA_SHARE
    fine = max(_step_for(wide, focus.tilt, WIDTH / 16, count, eta), _step_for(wide, math.inf, 4 * WIDTH, count, eta))
    step = max(_coarsening(spans, fine) * fine, max(spans) / POINTS) if expected > TAIL_MIN else coarse
    return _curve(pairs, step, tail, _aim_at(epsilon))


def _curve(pairs: CountedPairs, step: float, tail: float, aim: Aim) -> Curve | None:
    """Return the curve around a focus, on a coarser lattice if the composed one would have too many points.

    None if that does not help: on a coarser lattice very many parts spread out further.
    """
    for _ in range(COARSENED_MAX):
        lattices = _lattices(pairs, step, tail)
        sketch = Sketch(lattices, step)
        focus = aim(sketch)
        within = find_window(lattices, step, focus, sketch)
        if within.high - within.low <= POINTS * step:
            return Curve(lattices, step, focus, within)
        step = 1.1 * (within.high - within.low) / POINTS
    return None


def _representative_pairs(pairs: CountedPairs, spans: Sequence[float]) -> CountedPairs:
    """Return all pairs, or, of many, the widest and a sample of the others; for choosing a focus, not for bounds."""
    if len(pairs) <= 2 * REPRESENTATIVES:
        return pairs
    order = sorted(range(len(pairs)), key=lambda at: -spans[at])
    every = len(pairs) // REPRESENTATIVES
    others = [(pairs[at][0], pairs[at][1] * every) for at in order[every + every // 2 :: every]]
    return [pairs[at] for at in order[:every]] + others


def _lattices(pairs: CountedPairs, step: float, tail: float) -> list[Lattice]:
    return [discretize(pair, step, tail, count) for pair, count in pairs]


def _step_for(epsilon: float, tilt: float, width: float, count: int, eta: float) -> float:
    """Return a step for which rounding to the lattice costs about `width` of epsilon or less (`Curve.shift`, `lag`)."""
    by_shift = width * epsilon / max(math.sqrt(count * -math.log(eta) / 2), 8.0)
    return max(by_shift, math.sqrt(width * epsilon / (count * (1 + tilt))), STEP_MIN)


def _coarsening(spans: Sequence[float], step: float) -> float:
    """Return a factor between 1 and 2 for a step, so that lattices have about CELLS points at most."""
    return min(max(sum(spans) / (CELLS * step), 1.0), 2.0)


def _spans(pairs: CountedPairs, tail: float) -> list[float]:
    """Return the length of the range of losses that holds all but `tail` of each pair's mass."""
    ends = (pair.span(tail) for pair, _ in pairs)
    return [high - low for low, high in ends]
