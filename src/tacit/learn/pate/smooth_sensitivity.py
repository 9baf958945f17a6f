"""How far one person can move the data-dependent bounds of PATE: local and smooth sensitivity.

Promise, at one order, if `GNMaxBound.require_conditions` raises nothing: `GNMaxBound.local` at distance d is at least
the change of the GNMax bound between any two neighbours that are reached from the votes by moving d votes (Papernot et
al. 2018, algorithms 3 to 5, propositions 13 to 17), `confident_local` the same for test and label together (below), and
`smooth_bound` of their sum over queries is a beta-smooth upper bound on the local sensitivity of the sum (Nissim,
Raskhodnikova, Smith 2007).

One person moves one vote in every query at once. So the local sensitivities of queries are added, at equal distance,
and each must not decrease with the distance, or the sum would not be smooth: at distance d + 1 of a neighbour some
queries are where they were at distance d, and others are not. The reference code adds the sequences as they are.
`smooth_bound` takes running maxima as a guard: where the conditions below hold, no sequence was seen to decrease.

Confident-GNMax: let h(v, b) be the bound of `bounds.confident_renyi` for a greatest count v and a label bound b. With
a neighbour's v' = v - 1, v, v + 1 and b', |h(v', b') - h(v, b)| <= |h(v', b') - h(v', b)| + |h(v', b) - h(v, b)|.
The derivative of h in b is the weight of the answered outcome, greatest at the greatest b, alpha / sigma^2. The second
difference is a maximum of (ln (w' x + r') - ln (w x + r)) / (alpha - 1), x = e^((alpha - 1) b): monotonic in x, so it
is greatest at one end of the range of b.

Assumed for each noise, number of classes and order, not proved in general, checked on a grid of ln q, and refused where
a point does not pass:

- C5, the bound grows with q up to q0, and C6, so does its increase when a vote moves, up to q1 = B_L(q0).
- The bound is continuous at q0. With little noise the data-dependent bound ends, where its theorem does, below the
  independent one. One vote can then change the bound by the height of that jump more than `change` says at q1, which is
  taken for the greatest change.
- The change by one moved vote grows with q up to q1, is nowhere greater than there, and falls from q0 on. So distances
  at which q0 or q1 is reached have the greatest local sensitivity.

That moving votes between the two greatest counts reaches q0 and q1 first is taken from the paper (algorithms 4 and 5).
`tests/unit/learn/pate/test_bounds.py` compares the neighbours of all votes of small ensembles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from tacit.learn.pate.bounds import Floats, gnmax_bound, gnmax_log_q
from tacit.privacy.errors import OutOfRange

CHECKED_POINTS: Final = 20_000
LOG_Q_MIN: Final = -600.0
"""The least ln q to which conditions are checked; below it, q counts as e^-600."""
_NOISE_FLOOR: Final = 1e-9
"""Relative decrease between neighbouring points that rounding explains."""


@dataclass(frozen=True)
class GNMaxBound:
    """The data-dependent bound of GNMax at one order, as a function of ln q."""

    sigma: float
    classes: int
    order: float

    @property
    def independent(self) -> float:
        """The bound that holds for all votes."""
        return self.order / self.sigma**2

    @cached_property
    def log_q0(self) -> float:
        """ln q0, below which the data-dependent bound is less than the independent one."""
        sigma, order = self.sigma, self.order
        top = min(-((1 + 1 / sigma) ** 2), -(((order - 0.99) / sigma) ** 2), -1 / sigma**2)

        def excess(log_q: float) -> float:
            return float(gnmax_bound(log_q, sigma, order)) - self.independent

        if not self._applies(top):
            raise OutOfRange(f"no data-dependent bound is known for sigma {sigma:g} at order {order:g}", name="order")
        if excess(top) < 0:
            return top
        low = 2 * top
        while excess(low) > 0:
            low *= 1.5
            if low < -10_000:
                raise OutOfRange(f"the data-dependent bound never helps at order {order:g}", name="order")
        return float(optimize.brentq(excess, low, top))

    def _applies(self, log_q: float) -> bool:
        mu2 = self.sigma * math.sqrt(-log_q)
        mu1, second = mu2 + 1, mu2 / self.sigma**2
        if mu1 < self.order or mu2 <= 1:
            return False
        return log_q <= (mu2 - 1) * second - mu2 * math.log(mu1 / (mu1 - 1) * mu2 / (mu2 - 1))

    @cached_property
    def log_q1(self) -> float:
        """ln q1, from which one moved vote reaches q0."""
        return float(self.moved(self.log_q0, -1))

    def moved(self, log_q: Any, direction: int) -> Floats:
        """Return ln q after one vote has moved to the detriment (1) or in favour (-1) of the greatest count, at most.

        That is B_U and B_L of the paper, in logarithms: q <= (m - 1) Phi(-t), and t moves by sqrt(2) / sigma.
        """
        share = math.log(self.classes - 1)
        score = special.ndtri_exp(np.minimum(np.asarray(log_q) - share, -1e-300))
        return np.asarray(np.minimum(0.0, share + special.log_ndtr(score + direction * math.sqrt(2) / self.sigma)))

    def renyi(self, log_q: Any) -> Floats:
        """Return the bound: data-dependent below q0, independent from there on."""
        logs = np.asarray(log_q, dtype=np.float64)
        below = np.minimum(logs, self.log_q0)
        return np.where(logs < self.log_q0, gnmax_bound(below, self.sigma, self.order), self.independent)

    def change(self, log_q: Any) -> Floats:
        """Return how far one moved vote changes the bound, at most (algorithm 3)."""
        logs = np.asarray(log_q, dtype=np.float64)
        at = np.where((self.log_q1 <= logs) & (logs <= self.log_q0), self.log_q1, logs)
        here = self.renyi(at)
        return np.maximum(self.renyi(self.moved(at, 1)) - here, here - self.renyi(self.moved(at, -1)))

    @cached_property
    def conditions(self) -> tuple[bool, bool]:
        """Whether C5 and C6 hold at every point of a grid of ln q from LOG_Q_MIN to q0, and to B_L(q0)."""
        logs = np.linspace(LOG_Q_MIN, self.log_q0, CHECKED_POINTS)
        logs = np.unique(np.concatenate([logs, self.log_q0 - np.geomspace(1e-6, 30, CHECKED_POINTS)]))
        bound = gnmax_bound(logs, self.sigma, self.order)
        if not _is_increasing(bound):
            return False, False
        logs = logs[logs <= self.log_q1]
        gain = gnmax_bound(self.moved(logs, 1), self.sigma, self.order) - gnmax_bound(logs, self.sigma, self.order)
        return True, _is_increasing(gain)

    @cached_property
    def is_continuous(self) -> bool:
        """Whether the data-dependent bound meets the independent one at q0."""
        reached = float(gnmax_bound(self.log_q0, self.sigma, self.order))
        return abs(reached - self.independent) <= _NOISE_FLOOR * self.independent

    @cached_property
    def is_greatest_at_q1(self) -> bool:
        """Whether the change by one moved vote grows up to q1, and falls from q0 on, at every point of a grid."""
        fine = np.geomspace(1e-6, 30, CHECKED_POINTS)
        below = np.unique(np.append(np.linspace(LOG_Q_MIN, self.log_q1, CHECKED_POINTS), self.log_q1 - fine))
        above = np.unique(np.append(np.linspace(self.log_q0, 0.0, CHECKED_POINTS), self.log_q0 + fine))
        return _is_increasing(self.change(below)) and _is_increasing(self.change(above[above <= 0])[::-1])

    def require_conditions(self) -> None:
        """Raise unless the conditions of the module hold."""
        grows, grows_more = self.conditions
        if not grows:
            failed, remedy = "condition C5 does not hold", "take a lower order, or more noise"
        elif not grows_more:
            failed, remedy = "condition C6 does not hold", "take a lower order, or more noise"
        elif not self.is_continuous:
            failed, remedy = "the bound jumps to the independent one", "take more noise"
        elif not self.is_greatest_at_q1:
            failed, remedy = "the greatest change by one vote is not where it is taken from", "take more noise"
        else:
            return
        raise OutOfRange(
            f"the smooth sensitivity analysis is not valid for sigma {self.sigma:g}, {self.classes} classes and order "
            f"{self.order:g}: {failed}; {remedy}",
            name="order",
            value=self.order,
        )

    def local(self, votes: NDArray[Any], distances: int) -> Floats:
        """Return local sensitivities at distances from 0 on (algorithms 4 and 5): queries x distances."""
        counts = -np.sort(-np.atleast_2d(votes), axis=1)
        logs = np.maximum(gnmax_log_q(counts, self.sigma), LOG_Q_MIN)
        found = np.full((len(counts), distances), float(self.change(self.log_q1)))
        improves = logs > self.log_q0
        moving = improves | (logs < self.log_q1)
        found[moving, 0] = self.change(logs[moving])
        for distance in range(1, distances):
            moving &= np.where(improves, (logs > self.log_q0) & (counts[:, 1] > 0), logs < self.log_q1)
            if not moving.any():
                break
            step = np.where(improves[moving], 1, -1)
            counts[moving, 0] += step
            counts[moving, 1] -= step
            counts[moving, 1:] = -np.sort(-counts[moving, 1:], axis=1)
            logs[moving] = np.maximum(gnmax_log_q(counts[moving], self.sigma), LOG_Q_MIN)
            found[moving, distance] = self.change(logs[moving])
        return np.asarray(found)


@lru_cache(maxsize=64)
def gnmax_bound_at(sigma: float, classes: int, order: float) -> GNMaxBound:
    """Return the bound for one noise, number of classes and order, from a cache."""
    return GNMaxBound(sigma, classes, order)


def _is_increasing(values: Floats) -> bool:
    return bool(np.isfinite(values).all() and (np.diff(values) >= -_NOISE_FLOOR * np.abs(values[1:])).all())


def confident_local(
    label: Floats, top: NDArray[Any], greatest: float, moments: tuple[Floats, Floats], order: float
) -> Floats:
    """Return local sensitivities of `bounds.confident_renyi` from those of the label bound: queries x distances.

    `greatest` is the independent label bound; `moments` are those of `bounds.confident_moments`.
    """
    answered, silent = moments
    most = (order - 1) * greatest
    weight = _dilated(special.expit(answered + most - silent).max(axis=0))
    ends = np.stack([np.logaddexp(answered + end, silent) / (order - 1) for end in (0.0, most)])
    steps = np.abs(np.diff(ends, axis=2)).max(axis=(0, 1))
    shift = np.maximum(np.pad(steps, (1, 0)), np.pad(steps, (0, 1)))
    found = np.empty_like(label)
    for distance in range(label.shape[1]):
        found[:, distance] = weight[top] * label[:, distance] + shift[top]
        weight, shift = _dilated(weight), _dilated(shift)
    return found


def _dilated(values: Floats) -> Floats:
    """Return the maximum of each value and its two neighbours."""
    padded = np.pad(values, 1, mode="edge")
    return np.maximum(np.maximum(padded[:-2], padded[1:-1]), padded[2:])


def smooth_bound(local: Floats, beta: float) -> float:
    """Return the beta-smooth bound of local sensitivities of queries, at distances 0 to the number of teachers.

    At the last one every sequence has its greatest value; with fewer, a neighbour could have it within them alone. Each
    sequence is replaced by its running maximum, as a guard (see the module).
    """
    total = np.maximum.accumulate(local, axis=1).sum(axis=0)
    return float((total * np.exp(-beta * np.arange(total.size))).max())
