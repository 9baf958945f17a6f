"""Data-dependent Rényi bounds of PATE's aggregators: what the answers to given votes cost.

Promise: for the votes of a data set D, each function bounds the Rényi divergence of the answer on D from that on any
neighbour, at each order. The bounds depend on the votes, so they are as private as these; `report` releases them.

- GNMax: Papernot et al. 2018, theorem 6 with q of proposition 7 and orders of proposition 10; never above
  alpha / sigma^2.
- threshold test: the same with the less likely of the two outcomes and sigma -> sqrt(2) sigma (sensitivity 1).
- LNMax: Papernot et al. 2017, theorem 3 and lemma 4, with epsilon = 2 / lambda; never above epsilon^2 alpha / 2.
- Confident-GNMax as it is run (`confident_renyi`): test and label are one answer. With probability P of an answer on D
  and Q on a neighbour, and a bound b on the divergence of the label,
  e^((a - 1) R) <= P^a Q^(1 - a) e^((a - 1) b) + (1 - P)^a (1 - Q)^(1 - a), where Q is that of a greatest count which
  is 1 more, 1 less or the same. The papers' tables add P b to the bound of the test; that is an expectation over the
  coins, and no bound on a divergence: it is below this one by Jensen's inequality.

Arrays: `votes` are queries x classes, results queries x orders.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit.accounting.conversions import epsilon_of_renyi

Floats = NDArray[np.float64]

ORDERS: Final[Floats] = np.concatenate([np.arange(2, 100.5, 0.5), np.logspace(2, math.log10(500), 100)])
"""The orders of the published tables."""

SLACK: Final = 1e-6
"""Rényi divergence, for each query, that covers the distance of the noise on the grid from the continuous Gaussian.

On a grid of 2^-30 votes, noise on up to 256 counts is wider than the stated one by a factor of at most 1 + 2^-26 and
moves a comparison by at most 2^-30 votes. So the logarithm of a probability p with standard score z moves by less than
(1 + z^2) 2^-26. In the divergence it counts with weight p, apart from factors below 3 alpha, and p (1 + z^2) < 2.
For orders up to 64 that is below 1e-6 / 0.15.
"""


def gnmax_log_q(votes: NDArray[Any], sigma: float) -> Floats:
    """Return the logarithm of a bound on the probability that GNMax does not answer with the greatest count."""
    return _capped(special.log_ndtr(-_gaps(votes) / (math.sqrt(2) * sigma)), votes.shape[-1])


def lnmax_log_q(votes: NDArray[Any], scale: float) -> Floats:
    """Return the logarithm of a bound on the probability that LNMax does not answer with the greatest count."""
    gaps = _gaps(votes) / scale
    return _capped(np.log(2 + gaps) - math.log(4) - gaps, votes.shape[-1])


def _gaps(votes: NDArray[Any]) -> Floats:
    """Return how far each other count is below the greatest one: queries x (classes - 1)."""
    ordered = np.sort(np.atleast_2d(votes), axis=1)
    return np.asarray(ordered[:, -1:] - ordered[:, :-1], dtype=np.float64)


def _capped(logs: Floats, classes: int) -> Floats:
    return np.asarray(np.minimum(special.logsumexp(logs, axis=1), math.log1p(-1 / classes)))


def gnmax_renyi(log_q: Any, sigma: float, orders: Any) -> Floats:
    """Return the divergence of GNMax at each order for each logarithm of q."""
    logs, at = np.atleast_1d(np.asarray(log_q, dtype=np.float64))[:, None], _orders(orders)
    independent = np.broadcast_to(at / sigma**2, np.broadcast_shapes(logs.shape, at.shape))
    with np.errstate(all="ignore"):  # where the bound does not apply, it is not taken
        mu2 = sigma * np.sqrt(-logs)
        mu1 = mu2 + 1
        second = mu2 / sigma**2
        within = (mu2 - 1) * second - mu2 * (np.log1p(1 / (mu1 - 1)) + np.log1p(1 / (mu2 - 1)))
        is_valid = (mu1 > at) & (mu2 > 1) & (-logs > second) & (logs <= within)
        bound = gnmax_bound(logs, sigma, at)
    dependent = np.where(is_valid, np.fmin(bound, independent), independent)
    return np.where(np.isneginf(logs), 0.0, dependent)


def gnmax_bound(log_q: Any, sigma: float, order: Any) -> Floats:
    """Return the bound of theorem 6 without checking that it applies."""
    mu2 = sigma * np.sqrt(-log_q)
    first, second = (mu2 + 1) / sigma**2, mu2 / sigma**2
    rest = _log1mexp(log_q)
    likely = rest + (order - 1) * (rest - _log1mexp((log_q + second) * (1 - 1 / mu2)))
    unlikely = log_q + (order - 1) * (first - log_q / mu2)
    return np.asarray(np.logaddexp(likely, unlikely) / (order - 1))


def lnmax_renyi(log_q: Any, epsilon: float, orders: Any) -> Floats:
    """Return the divergence of an epsilon-private choice at each order for each logarithm of q."""
    logs, at = np.atleast_1d(np.asarray(log_q, dtype=np.float64))[:, None], _orders(orders)
    with np.errstate(all="ignore"):
        rest = _log1mexp(logs)
        likely = rest + (rest - _log1mexp(epsilon + logs)) * (at - 1)
        bound = np.logaddexp(likely, logs + epsilon * (at - 1)) / (at - 1)
        dependent = np.where(logs <= -np.logaddexp(0, epsilon), bound, np.inf)
    return np.minimum(np.minimum(epsilon**2 * at / 2, dependent), epsilon)


def log_probability_answered(top: Any, threshold: float, sigma: float) -> Floats:
    """Return the logarithm of the probability that a greatest count with noise reaches the threshold."""
    return np.asarray(special.log_ndtr((np.asarray(top, dtype=np.float64) - threshold) / sigma))


def threshold_renyi(log_answered: Any, sigma: float, orders: Any) -> Floats:
    """Return the divergence of the threshold test at each order, given the probability that it passes."""
    log_q = np.minimum(log_answered, _log1mexp(np.asarray(log_answered, dtype=np.float64)))
    return gnmax_renyi(log_q, math.sqrt(2) * sigma, orders)


def confident_moments(teachers: int, threshold: float, sigma: float, order: float) -> tuple[Floats, Floats]:
    """Return ln P^a Q^(1-a) and ln (1-P)^a (1-Q)^(1-a): a column for each greatest count from 0 to `teachers`.

    The rows are for neighbours whose greatest count is 1 less, the same and 1 more. That no neighbour of a unanimous
    vote has more is not used: the bound would jump there, and its sensitivity would be larger.
    """
    counts = np.arange(teachers + 1)
    scores = (np.arange(-1, teachers + 2) - threshold) / sigma
    passing, failing = special.log_ndtr(scores), special.log_ndtr(-scores)
    others = counts + np.array([[0], [1], [2]])
    answered = order * passing[counts + 1] + (1 - order) * passing[others]
    silent = order * failing[counts + 1] + (1 - order) * failing[others]
    return answered, silent


def confident_renyi(moments: tuple[Floats, Floats], top: Any, label: Any, order: float) -> Floats:
    """Return the divergence of test and label together, for greatest counts and bounds on that of the label."""
    answered, silent = (one[:, np.asarray(top)] for one in moments)
    return np.asarray((np.logaddexp(answered + (order - 1) * np.asarray(label), silent) / (order - 1)).max(axis=0))


def loose_epsilon(orders: Floats, renyi: Floats, delta: float) -> tuple[float, float]:
    """Return the least epsilon and its order by Mironov's conversion, which the published tables use."""
    found = renyi - math.log(delta) / (orders - 1)
    best = int(np.argmin(found))
    return float(found[best]), float(orders[best])


def tight_epsilon(orders: Floats, renyi: Floats, delta: float) -> tuple[float, float]:
    """Return the least epsilon and its order by the conversion of Canonne, Kamath, Steinke 2020."""
    found = [epsilon_of_renyi(float(order), float(one), delta) for order, one in zip(orders, renyi, strict=True)]
    best = int(np.argmin(found))
    return found[best], float(orders[best])


def _orders(orders: Any) -> Floats:
    return np.atleast_1d(np.asarray(orders, dtype=np.float64))


def _log1mexp(logs: Any) -> Floats:
    """Return ln(1 - e^x) for x < 0 without cancellation."""
    return np.asarray(np.where(logs < -1, np.log1p(-np.exp(logs)), np.log(-np.expm1(logs))))
