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

A second lower bound is short by h^2 and not by h (`Curve._before_moves`). Given all losses, whose sum is S, the moves'
sum D is independent two-point moves, so D = m + D' with m in [0, d], d = n h^2 (1 + h) / 8, and E e^(l D') <=
e^(l^2 t^2 / 2) for every l, t = h sqrt(n) / 2 (Hoeffding's lemma). Let f(x) = max(0, 1 - e^(epsilon - x)), so that
delta(epsilon) = E_P f of the loss, and T = S + d, so that the true delta at epsilon - d is E f(T). As f rises, the
lattice's delta at epsilon is at most E f(T + D'). With x = T - epsilon:
- for x <= 0, f(T) = 0 and f(T + D') <= max(0, D' - |x|);
- for x > 0, f(y) = 1 - e^(epsilon - y) + max(0, e^(epsilon - y) - 1), of which the first part is concave: Jensen's
  inequality leaves E f(T + D') - f(T) <= E max(0, e^(-D' - x) - 1).
For l > 1 both max(0, u) and max(0, e^u - 1) are at most e^(l u) / (e (l - 1)), by their greatest ratio to e^(l u). So
given S, moves add at most c e^(-l |x|), c = e^(l^2 t^2 / 2 - 1) / (l - 1). The law of T is not known, but that of the
lattice's loss Y is, and E e^(-l |Y - epsilon|) >= E e^(-l |x|) e^(-l E[|Y - T| | S]) by Jensen, where the mean of
|Y - T| = |D' + m - d| is at most t + d. With l = 1 / t: moves add at most e^(1/2 + l d) / (l - 1) times
E e^(-l |Y - epsilon|), which is t^2 times the density of Y around epsilon, nearly.
What doubts moved up besides, at most twice `moved` on average, adds no more than its mean to E f, as the slope of f is
at most 1, and takes no more than l times its mean from E e^(-l |Y - epsilon|): 2 (1 + e^(1/2 + l d) l / (l - 1)) times
`moved` in all, which is less than DOUBTS for l of at least 2 and l d of at most 1.

Precision: before transforming, masses are tilted by e^(tilt L), the tilt being the saddle point of the requested tail,
so that rounding errors are small against the wanted delta itself and not against 1. What lies outside the window that
is kept is bounded by Chernoff's inequality and added to (or taken from) delta, as is the transform's error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.numerics import bisect, golden_section
from tacit.accounting.pairs import Floats, Pair
from tacit.accounting.transforms import GATHERED_MIN, Tilted, compose

TILTED_TAIL: Final = 1e-13
"""The tilted mass that may lie beyond each end of the window, for one part; for many, as much as rounding errors."""

TILT_MAX: Final = 2.0**36
"""The limit of the tilt times the greatest loss: beyond it, exponents keep too few digits."""

DOUBTS: Final = 32.0
EXPONENT_MAX: Final = 300.0
EXPONENT_KEPT: Final = 40.0
SHARED_MAX: Final = 200.0
"""The range of exponents in one table of powers; masses times the least power are still normal floats."""

POINTS_SUMMED: Final = 1 << 15
"""Curves of at most so many points are summed up anew at every step of a search."""

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


def discretize(pair: Pair, step: float, tail: float, count: int) -> Lattice:
    """Return a pair's losses on multiples of `step`; about `tail` of the mass above counts as an infinite loss."""
    low, high = pair.span(tail)
    start, stop = math.floor(low / step), math.ceil(high / step) + 1
    edges = step * np.arange(start, stop + 1, dtype=np.float64)
    masses = np.zeros(len(edges))
    p, q = pair.cells(np.concatenate([[-np.inf], edges, [np.inf]]))
    below, above = float(p[0]), float(p[-1])
    p, q = p[1:-1], q[1:-1]
    doubt = _DOUBT * np.minimum(np.cumsum(p), np.cumsum(p[::-1])[::-1])
    up = _mass_moved_up(p, q * np.exp(np.clip(edges[:-1], -700, 700)), step, doubt)
    masses[:-1] += p - up
    masses[1:] += up
    spread_out = _dot(up, 1 - up / np.maximum(p, 1e-300))
    losses, atoms = pair.atoms
    if losses.size:
        above += float(atoms[losses > edges[-1]].sum())
        below += float(atoms[losses < edges[0]].sum())
        inside = (losses >= edges[0]) & (losses <= edges[-1])
        losses, atoms = losses[inside], atoms[inside]
        cells = np.clip(np.floor(losses / step).astype(np.int64) - start, 0, len(masses) - 2)
        up = _mass_moved_up(atoms, atoms * np.exp((cells + start) * step - losses), step, _DOUBT * atoms)
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
    """Return a scalar product in one thread: synchronizing several would take longer than the product."""
    return float(np.einsum("i,i->", first, second))


def _mass_moved_up(p: Floats, scaled_q: Floats, step: float, doubt: Floats) -> Floats:
    """Return the part of each cell's mass that goes to its upper end so that P and Q keep their totals.

    Rounding doubts go up.
    """
    return np.clip((p - scaled_q + doubt) / -math.expm1(-step), 0.0, p)


class Window(NamedTuple):
    """The range of losses that holds nearly all tilted mass, and the log-moment."""

    low: float
    high: float
    log_moment: float


class Focus(NamedTuple):
    """The point around which a curve is wanted, and the tilt that makes it precise there."""

    epsilon: float
    tilt: float


class Curve:
    """Delta as a function of epsilon around a focus, from lattices composed once."""

    def __init__(self, lattices: Sequence[Lattice], step: float, focus: Focus, within: Window) -> None:
        self.step, self.focus = step, focus
        self._count = sum(lattice.times for lattice in lattices)
        low, high, log_moment = within
        tilted, start = _compose_tilted(lattices, step, focus.tilt, low, high)
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
        self._drift = self._count * step**2 * (1 + step) / 8
        self._deviation = step * math.sqrt(self._count) / 2

    @property
    def points(self) -> int:
        """The number of points of the composed lattice."""
        return len(self._losses)

    def shift(self, eta: float) -> float:
        """Return a bound on the sum of all moves to the lattice, which fails with probability `eta` at most."""
        drift = self._drift + 2 * self._moved
        nats = -math.log(eta)
        most = self.step * nats / 3
        bernstein = most + math.sqrt(most**2 + 2 * self._variance * nats)
        return drift + min(bernstein, self.step * math.sqrt(self._count * nats / 2))

    @property
    def lag(self) -> float:
        """About the distance of the lower bound by `_before_moves` from the upper bound on epsilon."""
        return self._drift + 2 * math.exp(0.5) * (1 + self.focus.tilt) * self._deviation**2

    def delta_lower(self, epsilon: float, eta: float) -> float:
        """Return a lower bound on the true delta at `epsilon`, the better of the module's two."""
        shifted = self.delta(epsilon + self.shift(eta), upper=False) - eta
        return max(0.0, shifted, self._before_moves(epsilon + self._drift, self.delta))

    def _before_moves(self, epsilon: float, delta: Callable[..., float]) -> float:
        """Return a lower bound on the true delta at `epsilon` less the drift: the lattice's less what moves added.

        The weight e^(-rate |Y - epsilon|) falls faster than the tilt is undone, so errors of tilted masses count for
        no more than at `epsilon` itself, and all masses further off than `reach` for e^-EXPONENT_KEPT of that.
        """
        tilt, rate = self.focus.tilt, 1 / max(self._deviation, 1e-300)
        log_most = self._log_moment - tilt * (epsilon - self._blur)
        if (
            rate < max(2.0, 2 * tilt)
            or rate * self._drift > 1
            or log_most > EXPONENT_MAX - EXPONENT_KEPT
            or self._slack > 1
        ):
            return 0.0
        reach = EXPONENT_KEPT / (rate - tilt) + self._blur
        first, last = np.searchsorted(self._losses, [epsilon - reach, epsilon + reach])
        apart = np.maximum(np.abs(self._losses[first:last] - epsilon) - self._blur, 0.0)
        inside = _dot(self._masses[first:last], np.exp(-rate * apart))
        outside = (self._error + math.exp(-EXPONENT_KEPT)) * math.exp(log_most)
        added = (inside + outside) * math.exp(0.5 + rate * self._drift + self._slack) / (rate - 1)
        return delta(epsilon, upper=False) - added - DOUBTS * self._moved

    def delta(self, epsilon: float, *, upper: bool) -> float:
        """Return the lattice's delta at `epsilon`, with all errors added or subtracted."""
        return self._delta(epsilon, upper, self._finite)

    def approximate_delta(self, epsilon: float, *, upper: bool) -> float:
        """Return about the same faster, for searches: differences of long sums lose digits."""
        return self._delta(epsilon, upper, self._finite if self.points <= POINTS_SUMMED else self._approximate_finite)

    def _delta(self, epsilon: float, upper: bool, finite_from: Callable[[float, int], float]) -> float:
        epsilon += -self._blur if upper else self._blur
        if epsilon >= self._largest:
            return min(1.0, self._infinite + self._given_away) if upper else self._infinite_least
        log_most = self._log_moment - self.focus.tilt * epsilon  # of the greatest factor on tilted masses
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
        """Return P's mass less e^epsilon times Q's from a point above `epsilon` on: a sum of positive terms."""
        return float((self._masses[index:] * -np.expm1(epsilon - self._losses[index:])).sum())

    def _approximate_finite(self, epsilon: float, index: int) -> float:
        beyond = epsilon - self.focus.epsilon
        if beyond < -EXPONENT_MAX:
            return self._finite(epsilon, index)
        return float(self._above[index]) - math.exp(min(beyond, 700.0)) * float(self._above_q[index])

    def epsilon_upper(self, delta: float) -> float:
        """Return an epsilon of at least 0 at which the curve is certainly at most `delta`."""
        if self.delta(0.0, upper=True) <= delta:
            return 0.0
        most = max(self._largest + 2 * self._blur, 0.0)
        if self.delta(most, upper=True) > delta:
            return math.inf
        _, high = bisect(0.0, most, lambda epsilon: self.approximate_delta(epsilon, upper=True) > delta, 1e-13)
        further = 1e-12
        while self.delta(high, upper=True) > delta and high < most:
            high, further = min(high * (1 + further), most), 10 * further
        return high

    def epsilon_lower(self, delta: float, upper: float, eta: float) -> float:
        """Return an epsilon at which the true curve is certainly above `delta`; at `upper` it is not.

        Below the focus the error of the lower bound grows, so the search goes back from `upper` no further than needed.
        """
        high = min(upper, max(self._largest, 0.0))
        by_shift = _last_point(high, lambda at, find: find(at, upper=False) >= delta + eta, self)
        by_moves = _last_point(high, lambda at, find: self._before_moves(at, find) >= delta, self)
        return max(0.0, by_shift - self.shift(eta), by_moves - self._drift)


def _last_point(high: float, holds: Callable[[float, Callable[..., float]], bool], curve: Curve) -> float:
    """Return about the last point up to `high` at which a comparison with delta certainly holds, or 0."""
    for part in (1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5):
        low = high * (1 - part)
        if holds(low, curve.delta):
            near, _ = bisect(low, high, lambda at: holds(at, curve.approximate_delta), 1e-9)
            return near if holds(near, curve.delta) else low
    return 0.0


def focus_on_delta(moments: Sketch, delta: float) -> Focus:
    """Return the focus at which the composed curve is about `delta`: the best Rényi bound, and its order less one."""

    def epsilon_at(tilt: float) -> float:
        order = tilt + 1
        return moments.log_moment(tilt) / tilt + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / tilt

    tilt = _minimize(epsilon_at, moments.tilt_max)
    return Focus(max(epsilon_at(tilt), 0.0), tilt)


def saddle_point_epsilon(moments: Sketch, focus: Focus) -> float:
    """Return about the epsilon of a focus by the saddle point, which is sharper than its Rényi bound; not a bound.

    With s the deviation under the tilt t, delta is about e^(K - t epsilon) / (t (t + 1) s sqrt(2 pi)), while the bound
    has t^t / (t + 1)^(t + 1) in place of the second factor: nearly t s times as much.
    """
    return focus.epsilon - math.log(max(focus.tilt * moments.spread(focus.tilt), 1.0)) / focus.tilt


def focus_on_epsilon(moments: Sketch, epsilon: float) -> Focus:
    """Return the focus with the tilt under which the composed curve is precise at `epsilon`."""
    most = moments.tilt_max
    return Focus(epsilon, _minimize(lambda tilt: _log_delta(moments.log_moment(tilt), tilt, epsilon), most))


def rough_delta(moments: Sketch, focus: Focus) -> float:
    """Return about the Rényi bound on delta at a focus; an estimate, not a bound."""
    return math.exp(min(0.0, _log_delta(moments.log_moment(focus.tilt), focus.tilt, focus.epsilon)))


def lattice_total_variation(lattices: Sequence[Lattice], step: float) -> float:
    """Return an upper bound on delta at epsilon 0: the sum of those of the parts."""
    total = 0.0
    for one in lattices:
        losses = step * (one.start + np.arange(len(one.masses)))
        finite = _dot(one.masses, -np.expm1(-np.maximum(losses, 0.0)))
        total += one.times * (finite + one.infinite + one.given_away)
    return total * (1 + 1e-9)


def _log_delta(log_moment: float, tilt: float, epsilon: float) -> float:
    return log_moment - tilt * epsilon + tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)


def _minimize(function: Callable[[float], float], most: float) -> float:
    """Return about where a function of a positive number with one minimum is least, searched over the logarithm."""
    low, high = math.log(1e-4), math.log(max(most, 1e-3))
    return math.exp(golden_section(lambda log: function(math.exp(log)), low, high, 1e-2)[0])


class Sketch:
    """Thinned lattices, densest around a loss of 0, for choosing a focus; estimates, not bounds."""

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
        smallest, largest = _ends(lattices, step)
        self.tilt_max = TILT_MAX / max(-smallest, largest, step)
        self._owners, self._counts = np.repeat(np.arange(len(logs)), lengths), np.array(counts, dtype=np.float64)

    def log_moment(self, tilt: float) -> float:
        """Return about the logarithm of the mean of e^(tilt L) of the composed loss."""
        powers = self._logs + tilt * self._losses
        tops = np.maximum.reduceat(powers, self._starts)
        sums = np.add.reduceat(np.exp(powers - tops[self._owners]), self._starts)
        return _dot(self._counts, tops + np.log(sums))

    def spread(self, tilt: float = 0.0) -> float:
        """Return about the standard deviation of the composed loss under a tilt."""
        powers = self._logs + tilt * self._losses
        weights = np.exp(powers - np.maximum.reduceat(powers, self._starts)[self._owners])
        weights /= np.add.reduceat(weights, self._starts)[self._owners]
        means = np.add.reduceat(weights * self._losses, self._starts)
        squares = weights * (self._losses - means[self._owners]) ** 2
        return math.sqrt(_dot(self._counts, np.add.reduceat(squares, self._starts)))


def _groups(one: Lattice, points: int) -> NDArray[np.int64]:
    """Return the starts of groups of a lattice's points: some evenly spaced, some in proportion to the loss."""
    length = len(one.masses)
    if length <= 2 * points:
        return np.arange(length)
    ladder = length ** (np.arange(points // 2) / (points // 2 - 1))
    evenly = np.arange(points) * ((length - 1) / (points - 1))
    starts = np.concatenate([evenly, ladder - one.start, -ladder - one.start, [-one.start]])
    inside = starts[(starts >= 0) & (starts < length)]
    return np.unique(np.append(inside, 0.0).astype(np.int64))


class _Powers:
    """e^(tilt L) for the losses of some lattices, divided by the greatest of them.

    Lattices of one step share their losses, so one table serves all, unless its range is too wide for floats.
    """

    def __init__(self, lattices: Sequence[Lattice], step: float, tilt: float) -> None:
        self._scale = tilt * step
        self._first = min(one.start for one in lattices)
        points = max(one.start + len(one.masses) for one in lattices) - self._first
        shared = len(lattices) > 1 and abs(self._scale) * points < SHARED_MAX and points <= _point_count(lattices)
        self._table = self._of(self._first, points)[0] if shared else None

    def __call__(self, one: Lattice) -> tuple[Floats, float]:
        """Return the powers of one lattice, and the logarithm of their divisor."""
        if self._table is None:
            return self._of(one.start, len(one.masses))
        offset = one.start - self._first
        ends = self._scale * self._first, self._scale * (self._first + len(self._table) - 1)
        return self._table[offset : offset + len(one.masses)], max(ends)

    def _of(self, start: int, points: int) -> tuple[Floats, float]:
        powers = self._scale * (start + np.arange(points, dtype=np.float64))
        top = float(max(powers[0], powers[-1]))
        powers -= top
        return np.exp(powers, out=powers), top


def _point_count(lattices: Sequence[Lattice]) -> int:
    return sum(len(one.masses) for one in lattices)


def _log_moment(lattices: Sequence[Lattice], step: float, tilt: float) -> float:
    """Return the logarithm of the mean of e^(tilt L) of the composed loss on the lattice."""
    total, powers_of = 0.0, _Powers(lattices, step, tilt)
    for one in lattices:
        powers, top = powers_of(one)
        total += one.times * (top + math.log(_dot(powers, one.masses)))
    return total


def find_window(lattices: Sequence[Lattice], step: float, focus: Focus, sketch: Sketch) -> Window:
    """Return the range of losses to keep around a focus, which lies inside.

    By Chernoff's inequality, which holds for the lattice at any exponents; the best for the sketch are taken.
    """
    nats, most = -math.log(_tilted_tail(lattices)), sketch.tilt_max
    near = sketch.log_moment(focus.tilt)
    up = _minimize(lambda theta: (sketch.log_moment(focus.tilt + theta) - near + nats) / theta, most)
    down = _minimize(lambda theta: (sketch.log_moment(focus.tilt - theta) - near + nats) / theta, most)
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


def _compose_tilted(
    lattices: Sequence[Lattice], step: float, tilt: float, low: float, high: float
) -> tuple[Floats, int]:
    """Return the tilted masses of the composed loss within a window, and the index of the first."""
    start = math.floor(low / step)
    powers_of = _Powers(lattices, step, tilt)
    tilted = [_tilt(one, powers_of(one)[0]) for one in lattices]
    return compose(tilted, start, math.ceil(high / step) - start + 2), start


def _tilt(one: Lattice, powers: Floats) -> Tilted:
    tilted = one.masses * powers
    return Tilted(tilted / tilted.sum(), one.start, one.times)
