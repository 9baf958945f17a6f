"""Composing a plan's parts by their privacy loss: which lattice, which direction, which worst case.

Promise: bounds hold for a plan whose parameters were fixed before any answer was seen; questions may adapt. Removal and
addition of a unit are composed apart, and the worse is taken at the end. Where parts ran on disjoint data, every way to
lie in one of them is composed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from tacit.accounting.dominating import is_exact, lower_pair, upper_pair
from tacit.accounting.loss import Curve, Focus, Lattice, focus_on_delta, focus_on_epsilon, on_lattice
from tacit.accounting.pairs import GaussianPair, Pair
from tacit.accounting.parts import parts
from tacit.privacy import events
from tacit.privacy.events import Event

Counted: TypeAlias = list[tuple[Pair, int]]

WAYS_MAX: Final = 64
WIDTH: Final = 0.007
"""How far apart the two bounds on epsilon may be, relatively, as far as the lattice decides it."""

ETA_SHARE: Final = 1e-3
"""The lower bound's failure probability, as a share of delta."""

POINTS: Final = 1 << 21
COARSE_POINTS: Final = 4096


class Plan:
    """The composed parts of an event, ready to be asked for epsilon at delta or for delta at epsilon."""

    def __init__(self, ways: Sequence[Mapping[Event, int]]) -> None:
        self._ways = ways

    @classmethod
    def of(cls, event: Event) -> Plan | None:
        """Take an event apart, or return None where some part has no pair."""
        ways = _ways(event)
        if ways is None or not all(_pairs(way, addition=False, lower=False) for way in ways):
            return None
        return cls(ways)

    @property
    def is_exact(self) -> bool:
        """Whether every part's pair is that of a mechanism which it describes."""
        return all(is_exact(part) for way in self._ways for part in way)

    def epsilon(self, delta: float, width: float = WIDTH) -> tuple[float, float]:
        """Return certified bounds on epsilon at `delta`."""
        return self._worst(lambda pairs: _epsilon(pairs, delta, width), math.inf)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return certified bounds on delta at `epsilon`."""
        return self._worst(lambda pairs: _delta(pairs, epsilon), 1.0)

    def _worst(self, solve: Callable[[Counted], tuple[float, float]], most: float) -> tuple[float, float]:
        low = high = 0.0
        for way in self._ways:
            exact = all(is_exact(part) for part in way)
            for addition in _directions(way):
                pairs = _pairs(way, addition=addition, lower=False)
                if pairs is None:
                    return low, most
                bounds = solve(pairs)
                high = max(high, bounds[1])
                witness = pairs if exact else _pairs(way, addition=addition, lower=True)
                if witness:
                    low = max(low, bounds[0] if exact else solve(witness)[0])
        return low, high


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


def _directions(way: Mapping[Event, int]) -> tuple[bool, ...]:
    """Return removal alone where every pair is symmetric, otherwise removal and addition."""
    return (False, True) if any(isinstance(part, events.Sampled) for part in way) else (False,)


def _pairs(way: Mapping[Event, int], *, addition: bool, lower: bool) -> Counted | None:
    """Return the pairs of all parts, Gaussian ones as one: their precisions add up."""
    choose = lower_pair if lower else upper_pair
    counted: Counted = []
    squared = 0.0
    for part, count in way.items():
        pair = choose(part, addition=addition)
        if pair is None:
            return None
        if isinstance(pair, GaussianPair):
            squared += count * pair.mu**2
        else:
            counted.append((pair, count))
    if squared:
        counted.append((GaussianPair(math.sqrt(squared) * (1 + 2.0**-50)), 1))
    return counted


def _epsilon(pairs: Counted, delta: float, width: float) -> tuple[float, float]:
    tail = delta * 1e-7 / sum(count for _, count in pairs)
    coarse = _coarse_step(pairs, tail)
    focus = focus_on_delta(_lattices(pairs, coarse, tail), coarse, delta)
    if focus.epsilon == 0:
        focus = Focus(coarse, focus.tilt)
    eta = delta * ETA_SHARE
    step = _step(pairs, tail, focus.epsilon, eta, width)
    curve = Curve(_lattices(pairs, step, tail), step, focus)
    upper = curve.epsilon_upper(delta)
    return curve.epsilon_lower(delta, upper, eta), upper


def _delta(pairs: Counted, epsilon: float) -> tuple[float, float]:
    tail = 1e-24 / sum(count for _, count in pairs)
    coarse = _coarse_step(pairs, tail)
    focus = focus_on_epsilon(_lattices(pairs, coarse, tail), coarse, epsilon)
    step = _step(pairs, tail, max(epsilon, 0.1), 1e-10, WIDTH)
    curve = Curve(_lattices(pairs, step, tail), step, focus)
    upper = curve.delta(epsilon, upper=True)
    if upper == 0:
        return 0.0, 0.0
    eta = upper * ETA_SHARE
    return max(0.0, curve.delta(epsilon + curve.shift(eta), upper=False) - eta), upper


def _lattices(pairs: Counted, step: float, tail: float) -> list[Lattice]:
    return [on_lattice(pair, step, tail, count) for pair, count in pairs]


def _coarse_step(pairs: Counted, tail: float) -> float:
    widest = max(high - low for low, high in (pair.span(tail) for pair, _ in pairs))
    return max(widest / COARSE_POINTS, 1e-12)


def _step(pairs: Counted, tail: float, epsilon: float, eta: float, width: float) -> float:
    """Choose a step for which the lower bound's shift is `width` of epsilon, and no lattice has too many points."""
    count = sum(number for _, number in pairs)
    fine = width * epsilon / max(math.sqrt(count * -math.log(eta) / 2), 8.0)
    widest = max(high - low for low, high in (pair.span(tail) for pair, _ in pairs))
    return max(fine, widest / POINTS, 1e-15)
