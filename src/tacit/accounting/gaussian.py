"""The Gaussian mechanism's privacy curve, in closed form.

Promise: `log_delta` bounds the exact curve of Gaussian noise (Balle and Wang 2018, theorem 8) from above or from below,
to about nine digits, also where delta is far below the smallest difference of two doubles; `sigma_for` returns a noise
that keeps the target. Noise is told by mu, the L2 sensitivity over its standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from tacit.accounting.bisection import narrowed
from tacit.accounting.special import erfcx, ndtr
from tacit.privacy.numbers import TINY, inside_unit_interval, not_negative, positive, rounded_down, rounded_up

Side: TypeAlias = Literal[-1, 1]
"""1 for a number that is not below the true one, -1 for one that is not above it."""

_SMALL_MU: Final = 1e-5
_PRECISION: Final = 2.0**-29
"""What the formulas lose of ln(delta), at most, beside the blur of their argument."""

_BLUR: Final = 2.0**-50

SAFETY: Final = 1 + 2.0**-30
"""Noise is widened by this factor, more than the curve's rounding errors could narrow it."""


def log_delta(mu: float, epsilon: float, side: Side) -> float:
    """Return a bound on ln(delta) at `epsilon`.

    With y = epsilon / mu - mu / 2: delta = Phi(-y) - e^epsilon Phi(-y - mu). The second term is the density at y times
    Mills' ratio at y + mu. For y > -5 the first is the same at y, which keeps their difference from cancelling; for a
    mu so small that it would, it is taken from the ratio's slope half-way. y is the difference of two numbers that may
    be far larger, and delta falls with it: it is moved by what their rounding may have changed it.
    """
    scaled = epsilon / mu
    near = scaled - mu / 2 - side * _BLUR * (scaled + mu / 2)
    if near < -40:  # delta lies within 10^-300 of 1
        return 0.0 if side > 0 else -_PRECISION
    if near == math.inf:
        return -math.inf
    lost = side * _PRECISION
    if near < -5:
        second = math.exp(-near * near / 2) / math.sqrt(2 * math.pi) * _mills(near + mu)
        return min(0.0, math.log(float(ndtr(-near)) - second) + lost)
    gap = _mills(near) - _mills(near + mu) if mu > _SMALL_MU else mu * (1 - scaled * _mills(scaled))
    if gap <= 0:  # cancelled: Phi(-y) alone is at most e^(-y^2 / 2) / 2
        return -near * near / 2 if side > 0 else -math.inf
    return min(0.0, -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(gap) + lost)


def total_mu(noises: Iterable[tuple[float, int]], side: Side) -> float:
    """Return mu of Gaussian noises composed, each told by sigma and how often: mu^2 is the sum of count / sigma^2.

    Scaled by the greatest, so that neither large counts nor large sigmas overflow or vanish.
    """
    rounded = rounded_up if side > 0 else rounded_down
    ones = [max(rounded(_root(count, side) / Fraction(sigma)), TINY) for sigma, count in noises]
    greatest = max(ones)
    if math.isinf(greatest):
        return math.inf
    return greatest * math.sqrt(math.fsum((one / greatest) ** 2 for one in ones)) * (1 + side * 2.0**-48)


def precision(sigma: float) -> float:
    """Return 1 / sigma^2 rounded up, infinity where that is too large for a float."""
    return max((1 / sigma) * (1 / sigma) * (1 + 2.0**-50), TINY)


def _root(count: int, side: Side) -> Fraction:
    """Return the root of a whole number as a rational of 64 bits or more, rounded to one side."""
    shift = max(0, 128 - count.bit_length()) // 2
    return Fraction(math.isqrt(count << 2 * shift) + (side > 0), 1 << shift)


def _mills(point: float) -> float:
    """Return Mills' ratio: the normal tail beyond a point over the density there; its slope is point * ratio - 1."""
    return math.sqrt(math.pi / 2) * float(erfcx(point / math.sqrt(2)))


def sigma_for(epsilon: object, delta: object) -> float:
    """Return the least noise, over the L2 sensitivity, that is (epsilon, delta)-differentially private."""
    target_epsilon = float(not_negative("epsilon", epsilon))
    target = math.log(float(inside_unit_interval("delta", delta)))

    def keeps(sigma: float) -> bool:
        return log_delta(1 / sigma, target_epsilon, 1) <= target

    low = high = 1.0
    while not keeps(high):
        high *= 2
    while keeps(low) and low > 1e-100:
        low /= 2
    return narrowed(low, high, lambda sigma: not keeps(sigma), 2.0**-45)[1] * SAFETY


def sigma_for_rho(rho: object) -> float:
    """Return the noise, over the L2 sensitivity, that is rho-zero-concentrated: 1 / sqrt(2 rho), rounded up."""
    number = positive("rho", rho)
    doubled = 2 * float(number)
    root = math.sqrt(doubled) if doubled < math.inf else math.sqrt(2) * math.sqrt(float(number))
    guess = math.nextafter(1 / root, math.inf)
    while 2 * number * Fraction(guess) ** 2 < 1:
        guess = math.nextafter(guess, math.inf)
    return guess
