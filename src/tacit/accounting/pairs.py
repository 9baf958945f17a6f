"""Dominating pairs: for each event, two laws P and Q that are at least as far apart as those of any two neighbours.

A pair is given by the law of its privacy loss L = ln(dP/dQ): the mass that P and Q put between given losses, atoms, and
what only one of the two can produce. Whatever is dominated by a pair stays dominated under composition, also when the
next mechanism is chosen by earlier answers (Zhu, Dong, Wang 2022, theorem 10); parameters are fixed beforehand.

For each event there is a pair for the removal of a unit (P with it, Q without) and one for its addition (`dominating`
chooses it). Composing pairs is left to `loss`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.numerics import ndtr, ndtri

Floats = NDArray[np.float64]
EMPTY: Floats = np.zeros(0)


class Atoms(NamedTuple):
    """Single losses and the mass that P puts on each; Q's is e^-loss times that."""

    losses: Floats
    masses: Floats


class Pair(Protocol):
    """Two laws, given by their privacy loss."""

    @property
    def atoms(self) -> Atoms:
        """Single losses with positive mass."""
        ...

    @property
    def only_p(self) -> float:
        """P's mass where Q has none: a loss of infinity."""
        ...

    @property
    def only_q(self) -> float:
        """Q's mass where P has none."""
        ...

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """Return the masses of P and of Q, without atoms, between each two neighbouring edges."""
        ...

    def span(self, tail: float) -> tuple[float, float]:
        """Return losses between which all but `tail` of P's finite mass lies."""
        ...


@dataclass(frozen=True, slots=True)
class GaussianPair:
    """N(mu, 1) against N(0, 1): the loss is N(mu^2 / 2, mu^2) under P and N(-mu^2 / 2, mu^2) under Q."""

    mu: float
    atoms = Atoms(EMPTY, EMPTY)
    only_p = only_q = 0.0

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        half = self.mu / 2
        return normal_masses(edges / self.mu - half), normal_masses(edges / self.mu + half)

    def span(self, tail: float) -> tuple[float, float]:
        width = -float(ndtri(min(tail, 0.5))) * self.mu
        return self.mu * self.mu / 2 - width, self.mu * self.mu / 2 + width


@dataclass(frozen=True, slots=True)
class LaplacePair:
    """Lap(1) at 0 against at epsilon: half of P has the loss epsilon, e^-epsilon / 2 has -epsilon, and between them
    P(L <= l) = e^(-(epsilon - l) / 2) / 2."""

    epsilon: float
    only_p = only_q = 0.0

    @property
    def atoms(self) -> Atoms:
        ends = np.array([-self.epsilon, self.epsilon])
        return Atoms(ends, np.array([math.exp(-self.epsilon) / 2, 0.5]))

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(edges, -self.epsilon, self.epsilon)
        start, width = inside[:-1], np.diff(inside)
        p = np.exp((start - self.epsilon) / 2) / 2 * np.expm1(width / 2)
        q = np.exp(-(start + self.epsilon) / 2) / 2 * -np.expm1(-width / 2)
        return p, q

    def span(self, tail: float) -> tuple[float, float]:
        return -self.epsilon, self.epsilon


@dataclass(frozen=True, slots=True)
class BoundedRangePair:
    """The envelope of all pairs whose losses lie in an interval of length epsilon.

    For the split t the two losses t and t - epsilon give delta_t(e) = p (1 - e^(e - t)), p = (e^epsilon - e^t) /
    (e^epsilon - 1), greatest at t = (epsilon + e) / 2: delta(e) = (e^(epsilon/2) - e^(e/2))^2 / (e^epsilon - 1). A
    supremum of convex curves is convex, so this is the curve of a pair, with P(L > l) = e^(epsilon/2) (e^(epsilon/2) -
    e^(l/2)) / (e^epsilon - 1) and Q(L > l) = e^(-l/2) (e^(epsilon/2) - e^(l/2)) / (e^epsilon - 1).

    One release costs exactly that. For several, the bound holds for adaptive composition: the pair dominates every
    mechanism of bounded range, and dominating pairs compose adaptively (Zhu, Dong, Wang 2022, theorem 10). It is not
    the optimum. Dong, Durfee, Rogers 2020 have that, on the same reduction to two losses, for mechanisms fixed in
    advance in a form that is fast to compute (section 5), and for mechanisms chosen by earlier answers, which cost more
    (section 6), as a recursion: delta_k(e) = max over t of p delta_(k-1)(e - t) + (1 - p) delta_(k-1)(e - t + epsilon).
    The former does not hold for adaptive questions, so it is not used. The latter is one curve for a fixed list of
    epsilons and no pair that composes with other parts, so it serves as a reference in tests. The envelope takes the
    worst split at every loss at once, and `curves` takes the lesser of that and of the Rényi bound. The result was up
    to 14 % above the adaptive optimum: `test_many_choices_cost_little_more_than_the_least_that_holds`.
    """

    epsilon: float
    atoms = Atoms(EMPTY, EMPTY)
    only_p = only_q = 0.0

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(edges, -self.epsilon, self.epsilon)
        start, width = inside[:-1], np.diff(inside)
        whole = -math.expm1(-self.epsilon)
        p = np.exp((start - self.epsilon) / 2) * np.expm1(width / 2) / whole
        q = np.exp(-(start + self.epsilon) / 2) * -np.expm1(-width / 2) / whole
        return p, q

    def span(self, tail: float) -> tuple[float, float]:
        return -self.epsilon, self.epsilon


@dataclass(frozen=True, slots=True)
class AtomPair:
    """A pair with finitely many losses, and the masses that only P or only Q has."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    only_p: float = 0.0
    only_q: float = 0.0

    @property
    def atoms(self) -> Atoms:
        return Atoms(np.array(self.losses), np.array(self.masses))

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        nothing = np.zeros(len(edges) - 1)
        return nothing, nothing

    def span(self, tail: float) -> tuple[float, float]:
        order = np.argsort(self.losses)
        losses, masses = np.array(self.losses)[order], np.array(self.masses)[order]
        last = len(losses) - 1
        low = losses[min(int(np.searchsorted(np.cumsum(masses), tail / 2)), last)]
        high = losses[max(last - int(np.searchsorted(np.cumsum(masses[::-1]), tail / 2)), 0)]
        if low > high:  # all of it is less than `tail`
            return float(losses[0]), float(losses[-1])
        return float(max(losses[0], min(low, -high))), float(high)  # what Q alone reaches stays inside


@dataclass(frozen=True, slots=True)
class PoissonSampledPair:
    """A pair after Poisson sampling at `rate`, for a removal: (1 - rate) Q + rate P against Q, or the same turned round
    for an addition (Zhu, Dong, Wang 2022, theorem 11). The loss is ln(1 - rate + rate e^L), or minus that."""

    rate: float
    base: Pair
    addition: bool

    @property
    def atoms(self) -> Atoms:
        losses, masses = self.base.atoms
        if not losses.size and not self.base.only_q:
            return Atoms(EMPTY, EMPTY)
        mixed = self._mixed(losses)
        if self.addition:
            missing = np.full(int(self.base.only_q > 0), -math.log1p(-self.rate))
            unchanged = np.full(missing.size, self.base.only_q)
            return Atoms(np.append(-mixed, missing), np.append(masses * np.exp(-losses), unchanged))
        missing = np.full(int(self.base.only_q > 0), math.log1p(-self.rate))
        unchanged = np.full(missing.size, (1 - self.rate) * self.base.only_q)
        return Atoms(np.append(mixed, missing), np.append(masses * np.exp(mixed - losses), unchanged))

    @property
    def only_p(self) -> float:
        return 0.0 if self.addition else self.rate * self.base.only_p

    @property
    def only_q(self) -> float:
        return self.rate * self.base.only_p if self.addition else 0.0

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        if not self.addition:
            p, q = self.base.cells(self._unmixed(edges))
            return (1 - self.rate) * q + self.rate * p, q
        p, q = self.base.cells(self._unmixed(-edges[::-1]))
        return q[::-1], ((1 - self.rate) * q + self.rate * p)[::-1]

    def span(self, tail: float) -> tuple[float, float]:
        low, high = self.base.span(tail)
        # the mixture also has Q's losses, which reach from about -high to -low, as Q's law is that of P turned round
        ends = self._mixed(np.array([min(low, -high), high, -low]))
        least = math.log1p(-self.rate) if self.base.only_q else float(ends[0])
        return (-float(ends[1:].max()), -least) if self.addition else (least, float(ends[1]))

    def _mixed(self, losses: Floats) -> Floats:
        return np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + losses)

    def _unmixed(self, losses: Floats) -> Floats:
        """Invert `_mixed`: ln((e^l - (1 - rate)) / rate), minus infinity where nothing is below."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = losses + np.log(-np.expm1(math.log1p(-self.rate) - losses)) - math.log(self.rate)
        return np.where(losses > math.log1p(-self.rate), inner, -np.inf)


@dataclass(frozen=True, slots=True)
class WithoutReplacementPair:
    """A symmetric pair after sampling without replacement at `rate`.

    delta'(e') = rate delta(e) at e^e' = 1 + rate (e^e - 1) for e' >= 0 (Balle, Barthe, Gaboardi 2018, theorem 9), and
    by symmetry below. So above 0 the loss is that of a Poisson sample, below 0 its mirror image, and the rest is 0.
    """

    rate: float
    base: Pair

    @property
    def _upper(self) -> PoissonSampledPair:
        return PoissonSampledPair(self.rate, self.base, addition=False)

    @property
    def atoms(self) -> Atoms:
        losses, masses = self._upper.atoms
        above = losses > 0
        p_above, q_above = self._upper.cells(np.array([0.0, np.inf]))
        rising, p_rising = losses[above], masses[above]
        q_rising = p_rising * np.exp(-rising)
        at_zero = 1 - self.only_p - float(p_above[0] + q_above[0] + p_rising.sum() + q_rising.sum())
        return Atoms(
            np.concatenate([-rising, [0.0], rising]), np.concatenate([q_rising, [max(at_zero, 0.0)], p_rising])
        )

    @property
    def only_p(self) -> float:
        return self.rate * self.base.only_p

    @property
    def only_q(self) -> float:
        return self.only_p

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        p_above, q_above = self._upper.cells(np.maximum(edges, 0.0))
        p_below, q_below = self._upper.cells(np.maximum(-edges[::-1], 0.0))
        return p_above + q_below[::-1], q_above + p_below[::-1]

    def span(self, tail: float) -> tuple[float, float]:
        high = max(self._upper.span(tail)[1], 0.0)
        return -high, high


def symmetric_pair(grid: Floats, losses: Floats, masses: Floats, only: float = 0.0) -> AtomPair:
    """Return a pair on a rising grid from 0 that dominates the symmetric one with these positive losses under P.

    Each atom goes to its two neighbours on the grid so that P and Q keep their totals ("connect the dots"), its mirror
    image likewise; `only` is what either law has alone, and the rest has the loss 0. The grid ends above all losses.
    """
    cells = np.clip(np.searchsorted(grid, losses, side="right") - 1, 0, len(grid) - 2)
    share = np.expm1(grid[cells] - losses) / np.expm1(grid[cells] - grid[cells + 1])
    up = np.clip(masses * share * (1 + 2.0**-48), 0.0, masses)
    gathered = np.bincount(cells, masses - up, len(grid)) + np.bincount(cells + 1, up, len(grid))
    held = np.flatnonzero(gathered[1:]) + 1
    rising, p = grid[held], gathered[held]
    q = p * np.exp(-rising)
    rest = max(0.0, 1 - only - float(p.sum() + q.sum()))
    at = np.concatenate([-rising[::-1], [0.0], rising])
    return AtomPair(tuple(at.tolist()), tuple(np.concatenate([q[::-1], [rest], p]).tolist()), only, only)


def curve_pair(epsilons: Floats, deltas: Floats) -> AtomPair:
    """Return a symmetric pair whose delta is not below a privacy curve, from upper bounds at rising epsilons from 0.

    In x = e^epsilon the curve of two laws is convex, and any convex curve that falls from 1 at 0 with a slope of at
    least -1 is that of a pair (Zhu, Dong, Wang 2022, proposition 8). A curve that is the same in both directions is 1 -
    x + x delta(1 / x). So the chords between bounds, and between each bound and its mirror image, lie above the curve,
    and their lower convex hull does; where it bends there is an atom. Beyond the last epsilon delta is given away.
    """
    growth = np.expm1(epsilons)
    bounds = np.minimum(deltas * (1 + 2.0**-44), 1.0)
    bounds[0] = min(bounds[0], float(((2 * bounds + growth) / (2 + growth)).min()))
    corners = _convex_corners(growth, bounds)
    slopes = np.append(-np.diff(bounds[corners]) / np.diff(growth[corners]), 0.0)
    masses = np.maximum(-np.diff(slopes), 0.0) * np.exp(epsilons[corners[1:]]) * (1 + 2.0**-40)
    grid = np.concatenate([epsilons, [epsilons[-1] * (1 + 2.0**-40)]])
    return symmetric_pair(grid, epsilons[corners[1:]], masses, float(bounds[-1]))


def _convex_corners(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Return the indices of the vertices of the lower convex hull of points."""
    corners: list[int] = []
    for index in range(len(x)):
        while len(corners) > 1:
            first, second = corners[-2:]
            if (y[second] - y[first]) * (x[index] - x[first]) < (y[index] - y[first]) * (x[second] - x[first]):
                break
            corners.pop()
        corners.append(index)
    return np.array(corners)


def pure_pair(epsilon: float, delta: float = 0.0) -> AtomPair:
    """Return randomized response at epsilon with an infinite loss of mass delta, the worst (epsilon, delta)-private."""
    likely = (1 - delta) / (1 + math.exp(-epsilon))
    return AtomPair((-epsilon, epsilon), (likely * math.exp(-epsilon), likely), delta, delta)


def lattice_pair(epsilon: float, steps: int) -> AtomPair:
    """Return two-sided geometric noise, neighbours `steps` apart: losses epsilon (1 - 2 j / steps), j = 0 … steps."""
    ratio = math.exp(-epsilon / steps)
    j = np.arange(steps + 1)
    masses = np.exp(-(j / steps) * epsilon) * math.tanh(epsilon / steps / 2)
    masses[0], masses[-1] = 1 / (1 + ratio), math.exp(-epsilon) / (1 + ratio)
    return AtomPair(tuple((epsilon * (1 - 2 * j / steps)).tolist()), tuple(masses.tolist()))


def normal_masses(edges: Floats) -> Floats:
    """Return the standard normal mass between neighbouring edges, which rise, precise in both tails."""
    tails = np.asarray(ndtr(-np.abs(edges)))
    masses: Floats = np.abs(np.diff(tails))
    across = int(np.searchsorted(edges, 0.0, side="right")) - 1
    if 0 <= across < len(masses):
        masses[across] = 1 - tails[across] - tails[across + 1]
    return masses
