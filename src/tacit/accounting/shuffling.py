"""Shuffled local reports: the dominating pair for any local randomizer, with its proof, and its Rényi divergence.

Promise: let each of `count` units report through the same epsilon-locally private randomizer, none of them after seeing
another's report. Then the shuffled reports of two data sets that differ in one unit are dominated by this pair: with
C ~ Bin(count - 1, 2 / (e^epsilon + 1)) clones and A ~ Bin(C, 1/2), P shows (A + 1, C - A) with probability e^epsilon /
(e^epsilon + 1) and (A, C - A + 1) otherwise, and Q the other way round.

It is the pair of Feldman, McMillan, Talwar 2023 and of the variation-ratio reduction (Wang, Peng, Li and others 2024).
Errata of the former restrict its proof to some randomizers, so here is one for all of them. Let P and P' be the laws of
the one unit's report, k = e^-epsilon, and W = k max(P, P'), a measure of mass w.

1. Every other unit's law is at least W: it is a draw from W / w with probability w, else from something else, which we
   may show. Written against (W / w)^(c + 1) and averaged over the number c ~ Bin(count - 1, w) of such draws, the
   hockey-stick divergence at a ratio r is E[max(X_1 + … + X_count, 0)] / count, the X_i independent, 0 with probability
   1 - w and else (P - r P') / W at a draw (Balle, Bell, Gascón, Nissim 2019, lemma 5.3, for this blanket).
2. That mean grows with the law of X in the convex order. X is (u - r v) / k, (u, v) = (min(1, P / P'), min(1, P' / P)).
   Now (u, v) = x (1, k) + y (k, 1) with x, y >= 0 and x + y = (u + v) / (1 + k) >= 1. For k <= r <= 1 / k both 0 and
   the value at (u, v) lie between the values at (k, 1) and at (1, k). So a mass of 1 at (u, v), together with one of
   x + y - 1 at 0, grows in the convex order when x of it moves to (1, k) and y of it to (k, 1): the mean is kept.
3. W integrates (u, v) to (k, k) = k / (1 + k) ((1, k) + (k, 1)). So when all of W has moved there is a mass of 1 /
   (e^epsilon + 1) at each end and the rest is at 0: the X of randomized response among clones, which is the pair.

At other ratios r both divergences are 0, or both are 1 - r.

More clones only hide more, since fair coins can be added afterwards. So a block of values of C may be represented by
its least one. Given C, and a + b = C + 1, the ratio at (a, b) is (a e^epsilon + b) / (a + b e^epsilon).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from tacit.accounting.numerics import betainc, logsumexp, xlog1py
from tacit.accounting.pairs import AtomPair, Floats, symmetric_pair
from tacit.privacy.numbers import TINY

CLONES_MAX: Final = 10**9
"""The greatest number of clones that is distinguished; more count as this many."""

BLOCKS: Final = 256
"""The clones of a block are its least number and less than a share of 1 / BLOCKS more."""

EPSILON_MAX: Final = 690.0
"""Beyond it, e^epsilon is no float, and nothing is amplified."""

NATS: Final = 700.0
"""Outcomes less likely than e^-NATS count as the worst, or are left out of a lower bound."""

UNSEEN: Final = math.exp(10 - NATS)
FAR: Final = -600.0
"""Losses beyond which the tail is below e^FAR have Chernoff's bound as their mass, where moments are wanted."""

ATOMS_MAX: Final = 4096
EVENLY: Final = 2561
FAR_RATIO: Final = 1 + 1 / 512
ORDER_RATIO: Final = 1.05
ORDER_MAX: Final = 1e20
"""Orders beyond it are covered by epsilon over it; a smaller rho is not searched for."""

_ROUNDING: Final = 2.0**-51


@lru_cache(maxsize=64)
def shuffled_pair(epsilon: float, count: int) -> AtomPair:
    """Return a pair that dominates `count` shuffled reports of any epsilon-locally private randomizer."""
    starts, chances = _clone_blocks(epsilon, count)
    blocks = [_outcomes(epsilon, clones, chance) for clones, chance in zip(starts, chances, strict=True)]
    losses = np.concatenate([np.array([epsilon]), *(block[0] for block in blocks)])
    masses = np.concatenate([np.array([UNSEEN]), *(block[1] for block in blocks)])
    return symmetric_pair(_grid(epsilon, losses, starts, chances), losses, masses)


def clone_rate(epsilon: float) -> float:
    """Return the probability that another unit is a clone: 2 / (e^epsilon + 1)."""
    return 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon))


def _clone_range(epsilon: float, count: int) -> tuple[int, int]:
    """Return the range of the number of clones: fewer are negligible, more count as the upper end."""
    mean = (count - 1) * clone_rate(epsilon)
    least = max(0, math.floor(mean - math.sqrt(2 * NATS * mean)))
    return least, min(count - 1, math.ceil(mean + 9 * math.sqrt(mean)))


def _clone_blocks(epsilon: float, count: int) -> tuple[Floats, Floats]:
    """Return the least number of clones and the probability of each block, for the smaller ones rounded up."""
    least, most = _clone_range(epsilon, count)
    starts = [least]
    while starts[-1] < most:
        starts.append(min(most, starts[-1] + max(1, starts[-1] // BLOCKS)))
    edges = np.array(starts[1:], dtype=np.float64)
    below = np.maximum.accumulate(betainc(count - edges, edges, 1 - clone_rate(epsilon))) * (1 + 2.0**-28)
    reached = np.concatenate([[0.0], np.minimum(below, 1.0), [1.0]])
    return np.minimum(np.array(starts, dtype=np.float64), CLONES_MAX), np.diff(reached)


def _outcomes(epsilon: float, clones: float, chance: float) -> tuple[Floats, Floats]:
    """Return the positive losses among a number of clones, and the mass of each under P."""
    seen, lie = int(clones) + 1, math.exp(-epsilon)
    first = seen // 2 + 1
    last = min(seen, first + math.ceil(math.sqrt(NATS / 2 * seen)))
    more = np.arange(first, last + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log1p((seen - 1 - 2 * more[:-1]) / (more[:-1] + 1)))])
    shares = np.exp(logs)
    tie = 0.0 if seen % 2 else first / (seen - first + 1)
    shares /= tie + 2 * float(shares.sum())
    fewer = seen - more
    losses = np.log1p((more - fewer) * -math.expm1(-epsilon) / (fewer + more * lie))
    masses = 2 * chance * shares * (more + fewer * lie) / (seen * (1 + lie))
    return losses * (1 + 2.0**-48), masses * (1 + _ROUNDING * (8 + len(logs) * (1 - logs[-1])))


def _grid(epsilon: float, losses: Floats, starts: Floats, chances: Floats) -> Floats:
    """Return the grid of losses: even within forty deviations of the middle block, then in proportion."""
    worst = epsilon * (1 + 2.0**-40)
    if len(losses) <= ATOMS_MAX:
        return np.unique(np.concatenate([[0.0], losses, [worst]]))
    middle = starts[np.searchsorted(np.cumsum(chances), 0.5)]
    near = min(80 * math.tanh(epsilon / 2) / math.sqrt(middle + 1), worst)
    farther = near * np.cumprod(np.full(max(0, math.ceil(64 * math.log(worst / near)) - 1), 1 + 1 / 64))
    return np.concatenate([np.linspace(0, near, EVENLY), farther[farther < worst], [worst]])


@lru_cache(maxsize=64)
def witness_pair(epsilon: float, count: int) -> AtomPair | None:
    """Return the pair of `count` shuffled randomized responses, all other units alike, for lower bounds; or None.

    The number of ones is binomial under Q, and under P that times (e^epsilon ones + e^-epsilon zeros) / count.
    Neighbouring numbers are counted as one outcome, and unlikely ones are left out.
    """
    truth = 1 / (1 + math.exp(-epsilon))
    mean = count * (1 - truth)
    if mean > CLONES_MAX:
        return None
    reach = NATS / 3 + math.sqrt((NATS / 3) ** 2 + 2 * NATS * mean)
    low, high = max(0, math.floor(mean - reach)), min(count, math.ceil(mean + reach))
    ones = np.arange(low, high + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((count - ones[:-1]) / (ones[:-1] + 1)) - epsilon)])
    logs -= logs.max()
    q = np.exp(logs)
    q *= (1 - _ROUNDING * (8 + len(logs) * (1 - logs.min()))) / q.sum()
    p = q * (math.exp(epsilon) * ones + math.exp(-epsilon) * (count - ones)) / count
    together = np.arange(0, len(ones), -(-len(ones) // ATOMS_MAX))
    p, q = np.add.reduceat(p, together), np.add.reduceat(q, together)
    kept = (q > math.exp(-NATS)) & (p > math.exp(-NATS))
    losses = np.log(p[kept] / q[kept])
    return AtomPair(tuple((losses - 2.0**-48 * (1 + np.abs(losses))).tolist()), tuple(p[kept].tolist()))


def shuffled_renyi(epsilon: float, count: int, orders: Floats) -> Floats:
    """Return a bound on the Rényi divergence of shuffled reports at each order above 1.

    The pair is symmetric, so its moment of order a is 1 + sum of p (e^((a - 1) l) - 1) (1 - e^(-a l)) over the positive
    losses l: a sum of positive terms.
    """
    losses, logs = _moment_atoms(epsilon, count)
    found = []
    for order in orders.tolist():
        power = (order - 1) * losses
        terms = logs + power + np.log(-np.expm1(-power)) + np.log(-np.expm1(-order * losses))
        found.append(np.logaddexp(0.0, logsumexp(terms)) / (order - 1))
    return np.minimum(np.array(found) * (1 + 2.0**-36), epsilon)


@lru_cache(maxsize=64)
def _moment_atoms(epsilon: float, count: int) -> tuple[Floats, Floats]:
    """Return positive losses of a dominating pair and the logarithms of their masses, also far out in the tail.

    A loss of l or more needs a + b = m reports with a - b >= y m, y = tanh(l / 2) / tanh(epsilon / 2). For fair coins
    that has a chance of at most e^(-m I), I = ((1 + y) ln(1 + y) + (1 - y) ln(1 - y)) / 2 (Chernoff), and at most twice
    that under P. The mean of e^(-C I) for the binomial C is (1 - rate + rate e^-I)^(count - 1); a block counts no fewer
    than C / (1 + 1 / BLOCKS) clones, or the greatest number that is counted.
    """
    losses, masses = shuffled_pair(epsilon, count).atoms
    losses, logs = losses[losses > 0], np.log(masses[losses > 0])
    ladder = epsilon * FAR_RATIO ** -np.arange(10_000.0)[::-1]
    lean = np.minimum(np.tanh(ladder / 2) / math.tanh(epsilon / 2), 1.0)
    exponent = ((1 + lean) * np.log1p(lean) + xlog1py(1 - lean, -lean)) / 2 * (1 - 2.0**-20)
    each = exponent / (1 + 1 / BLOCKS)
    most = min(_clone_range(epsilon, count)[1], CLONES_MAX)
    drawn = (count - 1) * np.log1p(clone_rate(epsilon) * np.expm1(-each))
    tails = math.log(2) - exponent + np.logaddexp(drawn, -most * each)
    far = np.flatnonzero(tails < FAR)
    if not far.size:
        return losses, logs
    near = int(np.searchsorted(losses, ladder[far[0]])) + 1
    ends = np.append(ladder[far[1:]], epsilon)
    unseen = np.array([math.log(UNSEEN)])
    return (
        np.concatenate([losses[:near], ladder[far[:1]], ends]),
        np.concatenate([logs[:near], unseen, tails[far]]),
    )


@lru_cache(maxsize=256)
def shuffled_rho(epsilon: float, count: int) -> float:
    """Return a rho for which shuffled reports are zero-concentrated private: R(a) <= rho a at every order a above 1.

    (a - 1) R(a) is convex, so between two orders it is below their chord c + d a, and R(a) / a is at most (c + d) /
    (a - 1) - c / a, which is greatest at an end or where its slope is 0. Near 1, R(a) / a is at most R at the first
    order; beyond the last one, at most epsilon over that order.
    """
    if not 0 < epsilon < EPSILON_MAX:
        return epsilon
    first = float(shuffled_renyi(epsilon, count, np.array([1.001]))[0])
    last = min(max(2 * epsilon / max(first, TINY), 10.0), ORDER_MAX)
    steps = math.ceil(math.log(last / 1e-3) / math.log(ORDER_RATIO))
    orders: Floats = 1 + 1e-3 * ORDER_RATIO ** np.arange(steps + 1, dtype=np.float64)
    moments = (orders - 1) * shuffled_renyi(epsilon, count, orders)
    low, high = orders[:-1], orders[1:]
    slope = np.diff(moments) / np.diff(orders)
    start = moments[:-1] - slope * low
    with np.errstate(invalid="ignore", divide="ignore"):
        turn = 1 / (1 - np.sqrt((start + slope) / start))
    most = 0.0
    for at in (low, high, np.clip(np.nan_to_num(turn, nan=2.0), low, high)):
        most = max(most, float(((start + slope * at) / at / (at - 1)).max()))
    return max(most, float(moments[0] / 1e-3), epsilon / float(orders[-1])) * (1 + 2.0**-30)
