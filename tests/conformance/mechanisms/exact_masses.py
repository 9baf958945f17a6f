"""The exact law of what an additive mechanism releases, and the privacy that follows from it.

The mechanism's own `release` runs with its sampler replaced by a tape of chosen lattice points, so that the code's own
encoding, rounding and decoding decide which points end in which released number (a cell). A point weighs e^-exponent
under the law that the mechanism asked for; `delta` is the hockey-stick divergence between the cells of two inputs.

- Few points: every lattice point up to an exponent of `EXPONENT_MAX` is put through `release`. What lies beyond
  weighs less than 10^-43 of the whole.
- Many points: `shifted_by` sees on windows of points that a release is its input moved by the point, in whole steps
  of one size; the divergence is then that of two shifted copies of the law, whose tails have closed forms.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias
from unittest.mock import patch

import mpmath
import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import additive
from tacit.mechanisms.additive import Additive
from tacit.mechanisms.laws import GaussianLaw, LaplaceLaw
from tests.statistical.evidence import Refuted

EXPONENT_MAX: Final = 100
BITS: Final = 1024
"""Weights are whole numbers of 2^-1024; the recurrence of `weights` loses less than 2^-980."""

RELATIVE: Final = 1e-9
ABSOLUTE: Final = mpmath.mpf(10) ** -35
"""What is cut off weighs below 10^-42, and the smoothing argument of `gaussian` leaves out less than 10^-135."""

AnyLaw: TypeAlias = GaussianLaw | LaplaceLaw
Cells: TypeAlias = Counter[Any]
"""Released numbers, and the weight of the lattice points that end there."""


class Tape:
    """Lattice points to be handed out one after another, and the laws that they were drawn for."""

    def __init__(self, points: NDArray[np.int64]) -> None:
        self.laws: set[AnyLaw] = set()
        self._points = points
        self._at = 0

    def next(self, count: int, law: AnyLaw) -> NDArray[np.int64]:
        """Return the next points."""
        self.laws.add(law)
        self._at += count
        part = self._points[self._at - count : self._at]
        assert len(part) == count, "the tape is long enough"
        return part.copy()


@dataclass(frozen=True)
class TapeSampler:
    """What stands where the sampler of a law would."""

    law: AnyLaw
    tape: Tape

    def draw(self, count: int, source: object) -> NDArray[np.int64]:
        """Return the next points of the tape."""
        return self.tape.next(count, self.law)

    def draw_one(self, source: object) -> int:
        """Return the next point of the tape."""
        return int(self.tape.next(1, self.law)[0])


@contextmanager
def taped(points: NDArray[np.int64]) -> Iterator[Tape]:
    """Let every additive mechanism draw from a tape."""
    tape = Tape(points)
    additive._cached_noise.cache_clear()
    try:
        with patch.object(additive, "sampler_for", lambda law: TapeSampler(law, tape)):
            yield tape
    finally:
        additive._cached_noise.cache_clear()


@dataclass(frozen=True)
class Route:
    """A way through `release`: what a value is turned into, and how many numbers go at once (0: one Python number)."""

    name: str
    given: Callable[[Any], Any]
    length: int = 0
    is_whole: bool = False

    def released(self, mechanism: Additive, value: Any, points: NDArray[np.int64]) -> tuple[AnyLaw, list[Any]]:
        """Return the law that was asked for, and what each point leads to."""
        length = self.length or 1
        padded = np.concatenate([points, np.zeros(-len(points) % length, dtype=np.int64)])
        with taped(padded) as tape:
            found: list[Any] = []
            for _ in range(len(padded) // length):
                one = mechanism.release(self.given(value))
                found += one.tolist() if self.length else [one]
        (law,) = tape.laws
        return law, found[: len(points)]


ONE_INT: Final = Route("one int", int)
ONE_FLOAT: Final = Route("one float", float)
ONE_NUMPY_INT: Final = Route("one numpy int", np.int64)
ONE_NUMPY_FLOAT: Final = Route("one numpy float", np.float64)


def ints(length: int) -> Route:
    """Return the route of int64 arrays of a length."""
    return Route(f"{length} ints", lambda value: np.full(length, value, dtype=np.int64), length, is_whole=True)


def floats(length: int) -> Route:
    """Return the route of float64 arrays of a length."""
    return Route(f"{length} floats", lambda value: np.full(length, value, dtype=np.float64), length)


def listed(length: int) -> Route:
    """Return the route of lists of a length."""
    return Route(f"a list of {length}", lambda value: [value] * length, length)


def law_of(mechanism: Additive, route: Route, value: Any) -> AnyLaw:
    """Return the law that a release asks for."""
    return route.released(mechanism, value, np.zeros(1, dtype=np.int64))[0]


def all_points(law: AnyLaw, apart: int, points_max: int) -> NDArray[np.int64] | None:
    """Return every lattice point that matters for inputs so many points apart, or None where they are too many."""
    reach = law.reach(EXPONENT_MAX) + apart
    return np.arange(-reach, reach + 1) if 2 * reach < points_max else None


def cells_of(mechanism: Additive, route: Route, value: Any, points: NDArray[np.int64]) -> Cells:
    """Return what a release gives, with its weight."""
    law, found = route.released(mechanism, value, points)
    weight = weights(law, int(np.abs(points).max()))
    cells: Cells = Counter()
    for released, run in groupby(zip(found, points.tolist(), strict=True), key=itemgetter(0)):
        cells[released] += sum(weight[abs(point)] for _, point in run)
    return cells


@lru_cache(maxsize=8)
def weights(law: AnyLaw, reach: int) -> list[int]:
    """Return e^-exponent of every magnitude up to a reach, times 2^BITS: a progression with a steady bend."""
    first, second, third = (law.exponent(magnitude) for magnitude in range(3))
    weight, ratio, bend = (_exp(-one) for one in (first, second - first, third - 2 * second + first))
    found = []
    for _ in range(reach + 1):
        found.append(weight)
        weight, ratio = weight * ratio >> BITS, ratio * bend >> BITS
    return found


def _exp(exponent: Fraction | float) -> int:
    with mpmath.workprec(BITS + 64):
        rational = Fraction(exponent)
        return int(mpmath.exp(mpmath.mpf(rational.numerator) / rational.denominator) * 2**BITS)


def delta(left: Cells, right: Cells, epsilon: float) -> mpmath.mpf:
    """Return the least delta under which two laws over the same weights are neighbours at epsilon, both ways."""
    factor = _exp(epsilon)
    over = [
        sum(max(0, mass - (factor * other[cell] >> BITS)) for cell, mass in one.items())
        for one, other in ((left, right), (right, left))
    ]
    return mpmath.mpf(max(over)) / left.total()


def delta_of_pairs(first: tuple[Cells, Cells], second: tuple[Cells, Cells], epsilon: float) -> mpmath.mpf:
    """Return the same for two independent releases: `first` and `second` are each a pair of neighbours."""
    return max(
        _one_way(first, second, epsilon),
        _one_way((first[1], first[0]), (second[1], second[0]), epsilon),
    )


def _one_way(first: tuple[Cells, Cells], second: tuple[Cells, Cells], epsilon: float) -> mpmath.mpf:
    ranked = sorted((_loss(mass, second[1][cell]), mass, second[1][cell]) for cell, mass in second[0].items())
    losses = [loss for loss, *_ in ranked]
    over, under = [0], [0]
    for _, mass, other in reversed(ranked):
        over.append(over[-1] + mass)
        under.append(under[-1] + other)
    factor, total = _exp(epsilon), 0
    for cell, mass in first[0].items():
        other = first[1][cell]
        above = len(losses) - bisect_right(losses, epsilon - _loss(mass, other))
        total += mass * over[above] - (factor * other * under[above] >> BITS)
    return mpmath.mpf(total) / first[0].total() / second[0].total()


def _loss(mass: int, other: int) -> float:
    return math.log(mass) - math.log(other) if mass and other else math.inf if mass else -math.inf


def shifted_by(
    mechanism: Additive, route: Route, value: Any, neighbour: Any, points: NDArray[np.int64]
) -> tuple[AnyLaw, int]:
    """Return the law, and how many steps apart two inputs are, having seen that points move both by whole steps."""
    around = np.concatenate([np.array([0, 1]), points])
    law, found = route.released(mechanism, value, around)
    step = Fraction(found[1]) - Fraction(found[0])
    other_law, others = route.released(mechanism, neighbour, around)
    if law != other_law:
        raise Refuted("the law depends on the value")
    for released in (found, others):
        moved = [(Fraction(one) - Fraction(released[0])) / step for one in released]
        for point, steps in zip(around.tolist(), moved, strict=True):
            if steps != point:
                raise Refuted(f"{route.name}: the point {point} moves the release by {steps} steps")
    apart = (Fraction(others[0]) - Fraction(found[0])) / step
    assert apart.denominator == 1, "both lie on one grid"
    return law, abs(int(apart))


def windows(law: AnyLaw, apart: int) -> NDArray[np.int64]:
    """Return runs of points around 0, around the distance of neighbours, and at every power of two within reach."""
    reach = law.reach(40)
    centres = [0, apart, *(2**power for power in range(8, reach.bit_length()))]
    runs = [np.arange(-width, width + 1) + centre for centre in centres for width in (100 if centre == 0 else 2,)]
    return np.unique(np.concatenate([*runs, *(-run for run in runs)]))


def delta_of_shift(law: AnyLaw, apart: int, epsilon: float) -> mpmath.mpf:
    """Return the hockey-stick divergence between a law and its copy `apart` steps away.

    Where the exponents differ by more than epsilon is a half-line; both laws' weights there are tails.
    """
    if not apart:
        return mpmath.mpf(0)
    with mpmath.workprec(BITS):
        if isinstance(law, LaplaceLaw):
            # Loss (|x + apart| - |x|) / scale, greater than epsilon from x > (epsilon scale - apart) / 2 on.
            if Fraction(epsilon) >= law.exponent(apart):
                return mpmath.mpf(0)
            least = math.floor((Fraction(epsilon) * law.scale - apart) / 2) + 1
        else:
            least = math.floor(Fraction(epsilon) * law.variance / apart - Fraction(apart, 2)) + 1
        return max(_tail(law, least) - mpmath.exp(epsilon) * _tail(law, least + apart), mpmath.mpf(0))


def _tail(law: AnyLaw, least: int) -> mpmath.mpf:
    """Return P(X >= least)."""
    if isinstance(law, LaplaceLaw):
        ratio = mpmath.exp(-mpmath.mpf(law.scale.denominator) / law.scale.numerator)
        outer = ratio ** abs(least if least > 0 else 1 - least) / (1 + ratio)
        return outer if least > 0 else 1 - outer
    if law.variance < 2**20:
        whole = weights(law, law.reach(EXPONENT_MAX))
        at_least = sum(whole[max(0, least) :]) + sum(whole[1 : max(0, -least) + 1])
        return mpmath.mpf(at_least) / (2 * sum(whole) - whole[0])
    return _smooth_tail(law, least)


def _smooth_tail(law: GaussianLaw, least: int) -> mpmath.mpf:
    """Return the tail of a wide law: the integral from least - 1/2 on, with the midpoint rule's first corrections.

    The next one is below (|z| / deviation)^6 / 3 * 10^4 of the tail; the law's sum is its integral up to e^(-2 pi^2 v).
    """
    deviation = mpmath.sqrt(mpmath.mpf(law.variance.numerator) / law.variance.denominator)
    z = (least - mpmath.mpf(1) / 2) / deviation
    density = mpmath.npdf(z)
    third = -(z**3 - 3 * z) * density / deviation**3
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2 - z * density / deviation / 24 / deviation - 7 * third / 5760 / deviation


def require_delta(needed: mpmath.mpf, promised: float, what: str) -> None:
    """Raise `Refuted` unless a divergence is within what was promised."""
    if needed > promised * (1 + RELATIVE) + ABSOLUTE:
        raise Refuted(f"{what}: neighbours need a delta of {mpmath.nstr(needed, 6)}, and {promised:.6g} was promised")


def require_even(cells: Cells, allowed: Callable[[int], Fraction], cells_max: int, what: str) -> None:
    """Raise `Refuted` if two neighbouring cells differ by more in ln(mass) than `allowed` for the inner one's place."""
    middle = max(cells, key=lambda cell: cells[cell])
    ordered = sorted(cells)
    centre = ordered.index(middle)
    for place in range(-cells_max, cells_max):
        if not 0 <= centre + place < len(ordered) - 1:
            continue
        one, other = cells[ordered[centre + place]], cells[ordered[centre + place + 1]]
        if min(one, other) < max(cells.values()) >> 100:
            continue
        with mpmath.workprec(256):
            apart = abs(mpmath.log(mpmath.mpf(one) / other))
            bound = allowed(min(abs(place), abs(place + 1)))
            if apart > mpmath.mpf(bound.numerator) / bound.denominator * (1 + RELATIVE) + ABSOLUTE:
                raise Refuted(
                    f"{what}: the cells {place} and {place + 1} from the middle differ by {mpmath.nstr(apart, 6)}, "
                    f"and {float(bound):.6g} is allowed"
                )


def most_apart(grid: Fraction, sensitivity: Fraction) -> tuple[float, float]:
    """Return two floats at most `sensitivity` apart that rounding to a grid moves furthest away from each other."""
    middles = [float((place + Fraction(1, 2)) * grid) for place in (-4097, -1, 0, 1, 12_345)]
    starts = [one for middle in middles for one in (math.nextafter(middle, -math.inf), middle)]
    found = (0, 0.0, 0.0)
    for low in starts:
        far = float(Fraction(low) + sensitivity)
        for high in (far, math.nextafter(far, -math.inf)):
            if 0 <= Fraction(high) - Fraction(low) <= sensitivity:
                steps = round(Fraction(high) / grid) - round(Fraction(low) / grid)
                found = max(found, (steps, low, high))
    return found[1], found[2]
