"""The data-dependent bounds of the published tables of PATE, as the authors' reference code computes them.

They compare our figures with published ones; tacit releases none of them (`tacit.learn.pate.sanitised_epsilon` says
what it does release). They depend on the votes and are as private as these.

- GNMax: Papernot et al. 2018, theorem 6 with orders of proposition 10; never above alpha / sigma^2.
- threshold test: the same with the less likely of the two outcomes and sigma -> sqrt(2) sigma (sensitivity 1).
- LNMax: Papernot et al. 2017, theorem 3 and lemma 4, with epsilon = 2 / lambda; never above epsilon^2 alpha / 2.

Arrays: `votes` are queries x classes, results queries x orders.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit.accounting.conversions import epsilon_of_renyi
from tacit.learn.pate.bounds import Floats, gnmax_bound, log1mexp

ORDERS: Final[Floats] = np.concatenate([np.arange(2, 100.5, 0.5), np.logspace(2, math.log10(500), 100)])
"""The orders of the published tables."""


def lnmax_log_q(votes: NDArray[Any], scale: float) -> Floats:
    """Return the logarithm of a bound on the probability that LNMax does not answer with the greatest count."""
    ordered = np.sort(np.atleast_2d(votes), axis=1)
    gaps = (ordered[:, -1:] - ordered[:, :-1]) / scale
    logs = special.logsumexp(np.log(2 + gaps) - math.log(4) - gaps, axis=1)
    return np.asarray(np.minimum(logs, math.log1p(-1 / votes.shape[-1])))


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


def lnmax_renyi(log_q: Any, epsilon: float, orders: Any) -> Floats:
    """Return the divergence of an epsilon-private choice at each order for each logarithm of q."""
    logs, at = np.atleast_1d(np.asarray(log_q, dtype=np.float64))[:, None], _orders(orders)
    with np.errstate(all="ignore"):
        rest = log1mexp(logs)
        likely = rest + (rest - log1mexp(epsilon + logs)) * (at - 1)
        bound = np.logaddexp(likely, logs + epsilon * (at - 1)) / (at - 1)
        dependent = np.where(logs <= -np.logaddexp(0, epsilon), bound, np.inf)
    return np.minimum(np.minimum(epsilon**2 * at / 2, dependent), epsilon)


def log_probability_answered(top: Any, threshold: float, sigma: float) -> Floats:
    """Return the logarithm of the probability that a greatest count with noise reaches the threshold."""
    return np.asarray(special.log_ndtr((np.asarray(top, dtype=np.float64) - threshold) / sigma))


def threshold_renyi(log_answered: Any, sigma: float, orders: Any) -> Floats:
    """Return the divergence of the threshold test at each order, given the probability that it passes."""
    log_q = np.minimum(log_answered, log1mexp(np.asarray(log_answered, dtype=np.float64)))
    return gnmax_renyi(log_q, math.sqrt(2) * sigma, orders)


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


def published_gnss_renyi(beta: float, sigma: float, order: float) -> float:
    """Return what theorem 23 states for GNSS, which is too low for little noise (`pate.sanitised_epsilon`)."""
    if not 1 < order < 1 / (2 * beta):
        return math.inf
    growth = (order * beta - math.log1p(-2 * order * beta) / 2) / (order - 1)
    return order * math.exp(2 * beta) / sigma**2 + growth
