"""Data-dependent Rényi bounds of PATE's aggregators: what the answers to given votes cost.

Promise: for the votes of a data set D, the bounds are on the Rényi divergence of the answer on D from that on any
neighbour. They depend on the votes, so they are as private as these; `sanitised_epsilon` releases them.

- GNMax: Papernot et al. 2018, theorem 6 with q of proposition 7; `smooth_sensitivity.GNMaxBound` says where it applies.
- Confident-GNMax as it is run (`confident_renyi`): test and label are one answer. With probability P of an answer on D
  and Q on a neighbour, and a bound b on the divergence of the label,
  e^((a - 1) R) <= P^a Q^(1 - a) e^((a - 1) b) + (1 - P)^a (1 - Q)^(1 - a), where Q is that of a greatest count which
  is 1 more, 1 less or the same. The papers' tables add P b to the bound of the test; that is an expectation over the
  coins, and no bound on a divergence: it is below this one by Jensen's inequality.

Arrays: `votes` are queries x classes.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

SLACK: Final = 1e-6
"""Rényi divergence, for each query, that covers the distance of the noise on the grid from the continuous Gaussian.

On a grid of 2^-30 votes, noise on up to 256 counts is wider than the stated one by a factor of at most 1 + 2^-26 and
moves a comparison by at most 2^-30 votes. So the logarithm of a probability p with standard score z moves by less than
(1 + z^2) 2^-26. In the divergence it counts with weight p, apart from factors below 3 alpha, and p (1 + z^2) < 2.
For orders up to 64 that is below 1e-6 / 0.15.
"""


def gnmax_log_q(votes: NDArray[Any], sigma: float) -> Floats:
    """Return the logarithm of a bound on the probability that GNMax does not answer with the greatest count."""
    ordered = np.sort(np.atleast_2d(votes), axis=1)
    scores = (ordered[:, :-1] - ordered[:, -1:]) / (math.sqrt(2) * sigma)
    return np.asarray(np.minimum(special.logsumexp(special.log_ndtr(scores), axis=1), math.log1p(-1 / votes.shape[-1])))


def gnmax_bound(log_q: Any, sigma: float, order: Any) -> Floats:
    """Return the bound of theorem 6 without checking that it applies."""
    mu2 = sigma * np.sqrt(-log_q)
    first, second = (mu2 + 1) / sigma**2, mu2 / sigma**2
    rest = log1mexp(log_q)
    likely = rest + (order - 1) * (rest - log1mexp((log_q + second) * (1 - 1 / mu2)))
    unlikely = log_q + (order - 1) * (first - log_q / mu2)
    return np.asarray(np.logaddexp(likely, unlikely) / (order - 1))


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


def log1mexp(logs: Any) -> Floats:
    """Return ln(1 - e^x) for x < 0 without cancellation."""
    return np.asarray(np.where(logs < -1, np.log1p(-np.exp(logs)), np.log(-np.expm1(logs))))
