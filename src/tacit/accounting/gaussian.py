"""The Gaussian mechanism's privacy curve, in closed form.

Promise: `log_delta` is the exact curve of Gaussian noise (Balle and Wang 2018, theorem 8) to about nine digits, also
where delta is far below the smallest difference of two doubles; `sigma_for` returns a noise that keeps the target.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from tacit.accounting.special import erfcx, ndtr
from tacit.privacy.numbers import inside_unit_interval, not_negative, positive

_SMALL_MU: Final = 1e-5

SAFETY: Final = 1 + 2.0**-30
"""Noise is widened by this factor, more than the curve's rounding errors could narrow it."""


def log_delta(sigma: float, epsilon: float) -> float:
    """Return ln(delta) at `epsilon` for noise of standard deviation `sigma` times the L2 sensitivity.

    With mu = 1 / sigma and y = epsilon / mu - mu / 2: delta = Phi(-y) - e^epsilon Phi(-y - mu). The second term is
    the density at y times Mills' ratio at y + mu. For y > -5 the first is the same at y, which keeps their
    difference from cancelling; for a mu so small that it would, it is taken from the ratio's slope half-way.
    """
    mu = 1 / sigma
    near = epsilon / mu - mu / 2
    if near < -5:
        return math.log(float(ndtr(-near)) - math.exp(-near * near / 2) / math.sqrt(2 * math.pi) * _mills(near + mu))
    gap = _mills(near) - _mills(near + mu) if mu > _SMALL_MU else mu * (1 - epsilon / mu * _mills(epsilon / mu))
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(gap) if gap > 0 else -math.inf


def precision(sigma: float) -> float:
    """Return 1 / sigma^2, infinity where that is too large for a float."""
    return (1 / sigma) * (1 / sigma)


def _mills(point: float) -> float:
    """Return Mills' ratio: the normal tail beyond a point over the density there; its slope is point * ratio - 1."""
    return math.sqrt(math.pi / 2) * float(erfcx(point / math.sqrt(2)))


def sigma_for(epsilon: object, delta: object) -> float:
    """Return the least noise, over the L2 sensitivity, that is (epsilon, delta)-differentially private."""
    target_epsilon = float(not_negative("epsilon", epsilon))
    target = math.log(float(inside_unit_interval("delta", delta)))
    low = high = 1.0
    while log_delta(high, target_epsilon) > target:
        high *= 2
    while log_delta(low, target_epsilon) <= target and low > 1e-100:
        low /= 2
    while high - low > low * 2**-45:
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle, target_epsilon) > target else (low, middle)
    return high * SAFETY


def sigma_for_rho(rho: object) -> float:
    """Return the noise, over the L2 sensitivity, that is rho-zero-concentrated: 1 / sqrt(2 rho), rounded up."""
    number = positive("rho", rho)
    guess = math.nextafter(1 / math.sqrt(2 * float(number)), math.inf)
    while 2 * number * Fraction(guess) ** 2 < 1:
        guess = math.nextafter(guess, math.inf)
    return guess
