"""Privacy loss distributions: composed on a lattice, with both ends certified.

A pair's loss L is put on multiples of a step h so that the likelihood ratio e^L keeps its mean under Q: each loss goes
up or down to a multiple ("connect the dots"; Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022). That only spreads the
ratio, so every delta computed from it is an upper bound, and composition (adding independent losses, by one power of
one Fourier transform) keeps it one.

The same lattice gives a lower bound. Given L = k h + x, the move to the lattice lies in an interval of length h and has
the mean h (1 - e^-x) / (1 - e^-h) - x, between 0 and h^2 (1 + h) / 8. With N = ln(1/eta), n moves together exceed n h^2
(1 + h) / 8 by more than h sqrt(n N / 2) with probability eta at most (Hoeffding), and for a variance of v each by more
than h N / 3 + sqrt((h N / 3)^2 + 2 n v N) (Bernstein), which is less where losses are small against h. So the true
delta at epsilon is at least the lattice's at epsilon plus the lesser of the two, less eta.

Precision: before transforming, masses are tilted by e^(tilt L), the tilt being the saddle point of the tail that is
asked for, so that rounding errors are small against the wanted delta itself and not against 1. What lies outside the
window that is kept is bounded by Chernoff's inequality and added to (or taken from) delta, as is the transform's error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.bisection import narrowed
from tacit.accounting.pairs import Floats, Pair
from tacit.accounting.special import irfft, next_fast_len, rfft

Spectrum: TypeAlias = NDArray[np.complex128]

TILTED_TAIL: Final = 1e-15
"""How much tilted mass may lie beyond each end of the window, for one part; as much as rounding errors for many."""

TILT_MAX: Final = 2.0**36
"""The greatest tilt times the greatest loss: beyond it, exponents keep too few digits."""

EXPONENT_MAX: Final = 300.0
GATHERED_MIN: Final = 32
HALVED_MIN: Final = 16
POINTS_SUMMED: Final = 1 << 15
"""Curves of so many points are summed up anew at every step of a search."""

SQUARED_MAX: Final = 1 << 12
SKETCH_POINTS: Final = 512
SKETCH_POINTS_MAX: Final = 1 << 15
_DOUBT: Final = 2.0**-50


class Lattice(NamedTuple):
    """One pair on multiples of a step: P's finite masses from `start` on, and how many times it is composed.

    `infinite` is P's own mass at infinity, `given_away` what was added to it from the upper tail, `below` what was
    moved up from the lower tail, `moved` what rounding doubts may have added to the mean loss, and `variance` a bound
    on that of one move.
    """

    start: int
    masses: Floats
    infinite: float
    given_away: float
    below: float
    moved: float
    variance: float
    times: int


def on_lattice(pair: Pair, step: float, tail: float, count: int) -> Lattice:
    """Put a pair on multiples of `step`; of the mass above, at most about `tail` is given away as infinite."""
    low, high = pair.span(tail)
    start, stop = math.floor(low / step), math.ceil(high / step) + 1
    edges = step * np.arange(start, stop + 1, dtype=np.float64)
    masses = np.zeros(len(edges))
    p, q = pair.cells(edges)
    doubt = _DOUBT * np.minimum(np.cumsum(p), np.cumsum(p[::-1])[::-1])
    up = _upward(p, q * np.exp(np.clip(edges[:-1], -700, 700)), step, doubt)
    masses[:-1] += p - up
    masses[1:] += up
    spread_out = _dot(up, 1 - up / np.maximum(p, 1e-300))
    below = float(pair.cells(np.array([-np.inf, edges[0]]))[0][0])
    above = float(pair.cells(np.array([edges[-1], np.inf]))[0][0])
    losses, atoms = pair.atoms
    if losses.size:
        above += float(atoms[losses > edges[-1]].sum())
        below += float(atoms[losses < edges[0]].sum())
        inside = (losses >= edges[0]) & (losses <= edges[-1])
        losses, atoms = losses[inside], atoms[inside]
        cells = np.clip(np.floor(losses / step).astype(np.int64) - start, 0, len(masses) - 2)
        up = _upward(atoms, atoms * np.exp((cells + start) * step - losses), step, _DOUBT * atoms)
        np.add.at(masses, cells, atoms - up)
        np.add.at(masses, cells + 1, up)
        spread_out += _dot(up, 1 - up / np.maximum(atoms, 1e-300))
    masses[0] += below
    held = np.flatnonzero(masses)
    masses = masses[held[0] : held[-1] + 1]
    moved = (float(doubt.sum()) + _DOUBT) * (1 + step)
    return Lattice(
        start=start + int(held[0]),
        masses=masses,
        infinite=pair.only_p,
        given_away=above * (1 + 1e-6),
        below=below * (1 + 1e-6),
        moved=moved,
        variance=step**2 * (spread_out + step**2 * (1 + step) ** 2 / 128) + 2 * step * moved,
        times=count,
    )


def _dot(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return a scalar product, in one thread: several that wait for one another take longer than the product."""
    return float(np.einsum("i,i->", first, second))


def _upward(p: Floats, scaled_q: Floats, step: float, doubt: Floats) -> Floats:
    """Return how much of each cell's mass goes to its upper end so that P and Q keep their totals; doubts go up."""
    return np.clip((p - scaled_q + doubt) / -math.expm1(-step), 0.0, p)


class Window(NamedTuple):
    """Losses between which all but a little of the tilted mass lies on either side, and the log-moment."""

    low: float
    high: float
    log_moment: float


class Focus(NamedTuple):
    """Where a curve is wanted: around `epsilon`, with the tilt that makes that part of it precise."""

    epsilon: float
    tilt: float


class Curve:
    """delta as a function of epsilon around a focus, from lattices composed once."""

    def __init__(self, lattices: Sequence[Lattice], step: float, focus: Focus, within: Window | None = None) -> None:
        self.step, self.focus = step, focus
        self._count = sum(lattice.times for lattice in lattices)
        low, high, log_moment = within or window(lattices, step, focus)
        tilted, start = _power(lattices, step, focus.tilt, low, high)
        self._losses = step * (start + np.arange(len(tilted)))
        transforms = self._count * (2 if len(lattices) >= GATHERED_MIN else 1)  # a gathered one goes there and back
        self._error = 3 * _tilted_tail(lattices) + transforms * 2.0**-50 * math.log2(len(tilted))
        smallest, self._largest = _ends(lattices, step)
        # sums of losses are rounded, and so are exponents, which are large where losses or the tilt are
        self._blur = _DOUBT * max(-smallest, self._largest)
        self._slack = 1e-12 + 2 * _DOUBT * focus.tilt * max(-smallest, self._largest, focus.epsilon)
        self._log_moment = log_moment
        masses = tilted * np.exp(np.minimum(log_moment - focus.tilt * self._losses, EXPONENT_MAX))
        self._masses, self._above = masses, np.cumsum(masses[::-1])[::-1]
        ratios = np.exp(np.minimum(focus.epsilon - self._losses, EXPONENT_MAX))  # of Q's masses, times e^focus
        self._above_q = np.cumsum((masses * ratios)[::-1])[::-1]
        infinite = -math.expm1(sum(one.times * math.log1p(-one.infinite) for one in lattices))
        lost = 2.0**-52 * (4 + len(lattices))  # by rounding in that sum
        self._infinite, self._infinite_least = infinite * (1 + lost), infinite * (1 - lost)
        self._given_away = sum(one.times * one.given_away for one in lattices)
        self._below = sum(one.times * one.below for one in lattices)
        self._moved = sum(one.times * one.moved for one in lattices)
        self._variance = sum(one.times * one.variance for one in lattices)

    @property
    def points(self) -> int:
        """How many points the composed lattice has."""
        return len(self._losses)

    def shift(self, eta: float) -> float:
        """Return how far the moves to the lattice lead together, except with probability `eta`."""
        drift = self._count * self.step**2 * (1 + self.step) / 8 + self._moved
        nats = -math.log(eta)
        most = self.step * nats / 3
        bernstein = most + math.sqrt(most**2 + 2 * self._variance * nats)
        return drift + min(bernstein, self.step * math.sqrt(self._count * nats / 2))

    def delta(self, epsilon: float, *, upper: bool) -> float:
        """Return the lattice's delta at `epsilon`, with all that may have been lost added or taken away."""
        return self._delta(epsilon, upper, self._finite)

    def _nearly(self, epsilon: float, *, upper: bool) -> float:
        """Return about the same sooner, to search by: differences of long sums lose digits."""
        return self._delta(epsilon, upper, self._finite if self.points <= POINTS_SUMMED else self._nearly_finite)

    def _delta(self, epsilon: float, upper: bool, finite_from: Callable[[float, int], float]) -> float:
        epsilon += -self._blur if upper else self._blur
        if epsilon >= self._largest:
            return min(1.0, self._infinite + self._given_away) if upper else self._infinite_least
        log_most = self._log_moment - self.focus.tilt * epsilon  # what the tilted mass is multiplied with, at most
        if log_most > EXPONENT_MAX or self._slack > 1:
            return 1.0 if upper else self._infinite_least
        index = int(np.searchsorted(self._losses, epsilon, side="right"))
        finite = finite_from(epsilon, index) if index < len(self._losses) else 0.0
        error = self._error * math.exp(log_most + self._slack)
        if upper:
            finite = max(finite, 0.0) * math.exp(self._slack)
            return min(1.0, self._infinite + self._given_away + finite + error)
        return max(0.0, self._infinite_least + max(finite, 0.0) * math.exp(-self._slack) - error - self._below)

    def _finite(self, epsilon: float, index: int) -> float:
        """Return P's mass less e^epsilon times Q's from a point on that is above `epsilon`: a sum of positive terms."""
        return float((self._masses[index:] * -np.expm1(epsilon - self._losses[index:])).sum())

    def _nearly_finite(self, epsilon: float, index: int) -> float:
        beyond = epsilon - self.focus.epsilon
        if beyond < -EXPONENT_MAX:
            return self._finite(epsilon, index)
        return float(self._above[index]) - math.exp(min(beyond, 700.0)) * float(self._above_q[index])

    def epsilon_upper(self, delta: float) -> float:
        """Return an epsilon, of at least 0, at which the curve is at most `delta` for certain."""
        if self.delta(0.0, upper=True) <= delta:
            return 0.0
        most = max(self._largest + 2 * self._blur, 0.0)
        if self.delta(most, upper=True) > delta:
            return math.inf
        _, high = narrowed(0.0, most, lambda epsilon: self._nearly(epsilon, upper=True) > delta, 1e-13)
        further = 1e-12
        while self.delta(high, upper=True) > delta and high < most:
            high, further = min(high * (1 + further), most), 10 * further
        return high

    def epsilon_lower(self, delta: float, upper: float, eta: float) -> float:
        """Return an epsilon at which the true curve is above `delta` for certain; `upper` is one where it is not.

        Below the focus the error of the lower side grows, so the search goes back from `upper` no further than needed.
        """
        high = min(upper, max(self._largest, 0.0))
        for part in (1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5):
            low = high * (1 - part)
            if self.delta(low, upper=False) >= delta + eta:
                near, _ = narrowed(low, high, lambda at: self._nearly(at, upper=False) >= delta + eta, 1e-12)
                found = near if self.delta(near, upper=False) >= delta + eta else low
                return max(0.0, found - self.shift(eta))
        return 0.0


def focus_on_delta(lattices: Sequence[Lattice], step: float, delta: float) -> Focus:
    """Return where the composed curve is about `delta`: the best Rényi bound and its order less one, nearly."""
    moments = _Sketch(lattices, step)

    def epsilon_at(tilt: float) -> float:
        order = tilt + 1
        return moments.log_moment(tilt) / tilt + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / tilt

    tilt = _valley(epsilon_at, _tilt_max(lattices, step))
    return Focus(max(epsilon_at(tilt), 0.0), tilt)


def focus_on_epsilon(lattices: Sequence[Lattice], step: float, epsilon: float) -> Focus:
    """Return the tilt under which the composed curve is precise at `epsilon`."""
    moments = _Sketch(lattices, step)
    most = _tilt_max(lattices, step)
    return Focus(epsilon, _valley(lambda tilt: _log_delta(moments.log_moment(tilt), tilt, epsilon), most))


def _tilt_max(lattices: Sequence[Lattice], step: float) -> float:
    smallest, largest = _ends(lattices, step)
    return TILT_MAX / max(-smallest, largest, step)


def rough_delta(lattices: Sequence[Lattice], step: float, focus: Focus) -> float:
    """Return about the Rényi bound on delta at a focus; nothing is promised from it."""
    moment = _Sketch(lattices, step).log_moment(focus.tilt)
    return math.exp(min(0.0, _log_delta(moment, focus.tilt, focus.epsilon)))


def total_variation(lattices: Sequence[Lattice], step: float) -> float:
    """Return an upper bound on delta at epsilon 0: those of the parts, added up."""
    total = 0.0
    for one in lattices:
        losses = step * (one.start + np.arange(len(one.masses)))
        finite = _dot(one.masses, -np.expm1(-np.maximum(losses, 0.0)))
        total += one.times * (finite + one.infinite + one.given_away)
    return total * (1 + 1e-9)


def spread(lattices: Sequence[Lattice], step: float) -> float:
    """Return the standard deviation of the composed loss."""
    total = 0.0
    for one in lattices:
        losses = step * (one.start + np.arange(len(one.masses)))
        mean = _dot(one.masses, losses)
        total += one.times * _dot(one.masses, (losses - mean) ** 2)
    return math.sqrt(total)


def _log_delta(log_moment: float, tilt: float, epsilon: float) -> float:
    return log_moment - tilt * epsilon + tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)


def _valley(function: Callable[[float], float], most: float) -> float:
    """Return where a function of a positive number with one valley is least, by golden section over the logarithm."""
    low, high = math.log(1e-4), math.log(max(most, 1e-3))
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(math.exp(left)), function(math.exp(right))
    while high - low > 1e-2:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(math.exp(right))
    return math.exp((low + high) / 2)


class _Sketch:
    """Lattices thinned out, least around a loss of 0, to choose a focus by; nothing is promised from it."""

    def __init__(self, lattices: Sequence[Lattice], step: float) -> None:
        points = max(16, min(SKETCH_POINTS, SKETCH_POINTS_MAX // len(lattices)))
        logs, means, counts = [], [], []
        for one in lattices:
            groups = _groups(one, points)
            masses = np.add.reduceat(one.masses, groups)
            indices = one.start + np.arange(len(one.masses), dtype=np.float64)
            kept = masses > 0
            logs.append(np.log(masses[kept]))
            means.append(step * np.add.reduceat(one.masses * indices, groups)[kept] / masses[kept])
            counts.append(one.times)
        self._logs, self._losses = np.concatenate(logs), np.concatenate(means)
        lengths = np.array([len(one) for one in logs])
        self._starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self._owners, self._counts = np.repeat(np.arange(len(logs)), lengths), np.array(counts, dtype=np.float64)

    def log_moment(self, tilt: float) -> float:
        """Return about the logarithm of the mean of e^(tilt L) of the composed loss."""
        powers = self._logs + tilt * self._losses
        tops = np.maximum.reduceat(powers, self._starts)
        sums = np.add.reduceat(np.exp(powers - tops[self._owners]), self._starts)
        return _dot(self._counts, tops + np.log(sums))


def _groups(one: Lattice, points: int) -> NDArray[np.int64]:
    """Return where groups of a lattice's points start: some evenly, some in proportion to the distance from 0."""
    length = len(one.masses)
    if length <= 2 * points:
        return np.arange(length)
    ladder = np.geomspace(1, length, points // 2)
    starts = np.concatenate([np.linspace(0, length - 1, points), ladder - one.start, -ladder - one.start, [-one.start]])
    inside = starts[(starts >= 0) & (starts < length)]
    return np.unique(np.append(inside, 0.0).astype(np.int64))


def _log_moment(lattices: Sequence[Lattice], step: float, tilt: float) -> float:
    """Return the logarithm of the mean of e^(tilt L) of the composed loss on the lattice."""
    total = 0.0
    for one in lattices:
        powers, top = _powers(one, step, tilt)
        total += one.times * (top + math.log(_dot(np.exp(powers), one.masses)))
    return total


def _powers(one: Lattice, step: float, tilt: float) -> tuple[Floats, float]:
    """Return tilt times each loss, less their greatest, and that."""
    powers = tilt * step * (one.start + np.arange(len(one.masses), dtype=np.float64))
    top = float(max(powers[0], powers[-1]))
    powers -= top
    return powers, top


def window(lattices: Sequence[Lattice], step: float, focus: Focus) -> Window:
    """Return what has to be kept around a focus.

    Chernoff's inequality, at exponents that are best for the sketch and hold for the lattice; the focus is inside.
    """
    sketch, nats = _Sketch(lattices, step), -math.log(_tilted_tail(lattices))
    near = sketch.log_moment(focus.tilt)
    most = _tilt_max(lattices, step)
    up = _valley(lambda theta: (sketch.log_moment(focus.tilt + theta) - near + nats) / theta, most)
    down = _valley(lambda theta: (sketch.log_moment(focus.tilt - theta) - near + nats) / theta, most)
    value = _log_moment(lattices, step, focus.tilt)
    high = (_log_moment(lattices, step, focus.tilt + up) - value + nats) / up
    low = (value - _log_moment(lattices, step, focus.tilt - down) - nats) / down
    smallest, largest = _ends(lattices, step)
    high = min(max(high, focus.epsilon), largest)
    return Window(max(min(low, focus.epsilon, high), smallest), high, value)


def _tilted_tail(lattices: Sequence[Lattice]) -> float:
    return max(TILTED_TAIL, 2.0**-54 * sum(one.times for one in lattices))


def _ends(lattices: Sequence[Lattice], step: float) -> tuple[float, float]:
    """Return the smallest and the largest finite loss of the composed lattices."""
    smallest = sum(one.times * one.start for one in lattices) * step
    return smallest, sum(one.times * (one.start + len(one.masses) - 1) for one in lattices) * step


def _power(lattices: Sequence[Lattice], step: float, tilt: float, low: float, high: float) -> tuple[Floats, int]:
    """Return the tilted masses of the composed loss within a window, and the index of the first."""
    start = math.floor(low / step)
    length = next_fast_len(math.ceil(high / step) - start + 2, real=True)
    spectrum = np.ones(length // 2 + 1, dtype=np.complex128)
    origin = 0
    for tilted, first, times in _gathered([_tilted(one, step, tilt) for one in lattices], length // 4):
        folded = np.bincount(np.arange(len(tilted)) % length, tilted, length) if len(tilted) > length else tilted
        spectrum *= _raised(rfft(folded, length), times)
        origin += times * first
    masses = np.maximum(irfft(spectrum, length), 0.0)
    return np.roll(masses, (origin - start) % length), start


class Tilted(NamedTuple):
    """A lattice's tilted masses, which add up to 1, the index of the first, and how many times it is composed."""

    masses: Floats
    start: int
    times: int


def _tilted(one: Lattice, step: float, tilt: float) -> Tilted:
    powers = tilt * step * (one.start + np.arange(len(one.masses)))
    tilted = one.masses * np.exp(powers - powers.max())
    return Tilted(tilted / tilted.sum(), one.start, one.times)


def _gathered(lattices: Sequence[Tilted], longest: int) -> list[Tilted]:
    """Return lattices of which many short ones are composed beforehand, by shorter transforms.

    A lattice that is composed n times is one for each binary digit of n; those of one digit are composed once and all
    of them raised to its power.
    """
    if len(lattices) < GATHERED_MIN:
        return list(lattices)
    gathered = [one for one in lattices if len(one.masses) > longest // 2]
    digits: dict[int, list[Tilted]] = {}
    for one in lattices:
        if len(one.masses) <= longest // 2:
            for place in range(one.times.bit_length()):
                if one.times >> place & 1:
                    digits.setdefault(1 << place, []).append(one)
    for times, members in digits.items():
        group, length = list[Tilted](), 1
        for one in members:
            if length + len(one.masses) - 1 > longest:
                gathered.append(_composed(group, length, times))
                group, length = [], 1
            group.append(one)
            length += len(one.masses) - 1
        gathered.append(_composed(group, length, times))
    return gathered


def _composed(group: Sequence[Tilted], length: int, times: int) -> Tilted:
    """Return lattices that are composed once each as one of so many points, itself composed so many times.

    More than a few are halved first, as the transforms of halves are shorter. All in all that is one transform more for
    each lattice at most: two for every half, which has at least half of HALVED_MIN, and none for a lattice alone.
    """
    if len(group) == 1:
        return group[0]._replace(times=times)
    if len(group) > HALVED_MIN:
        middle = len(group) // 2
        halves = group[:middle], group[middle:]
        group = [_composed(half, 1 + sum(len(one.masses) - 1 for one in half), 1) for half in halves]
    size = next_fast_len(length, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for one in group:
        spectrum *= rfft(one.masses, size)
    masses = np.maximum(irfft(spectrum, size)[:length], 0.0)
    return Tilted(masses, sum(one.start for one in group), times)


def _raised(spectrum: Spectrum, times: int) -> Spectrum:
    """Return a spectrum to a power: by squaring, or, where that would take longer, by its logarithm."""
    if times <= SQUARED_MAX:
        power, rest = spectrum, times - 1
        square = spectrum
        while rest:
            power = power * square if rest & 1 else power
            rest >>= 1
            square = square * square if rest else square
        return power
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = np.asarray(np.exp(times * np.log(spectrum)))
    raised[spectrum == 0] = 0
    return raised
