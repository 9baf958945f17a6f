"""Privacy curves in closed form: pure events and the Gaussian mechanism.

Promise:
- `pure_epsilon` bounds every log-ratio of an event, or is infinite. Pure events are composed by their sum here; the
  best composition that is possible (Kairouz, Oh, Viswanath 2015), that of randomized responses, is left to `loss`.
- `log_delta` bounds the exact curve of Gaussian noise (Balle and Wang 2018, theorem 8) from above or from below, to
  about nine digits, also where delta is far below the smallest difference of two doubles; `sigma_for` returns a noise
  that keeps the target. Noise is given by mu, the L2 sensitivity over its standard deviation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from tacit.accounting.numerics import bisect, erfcx, ndtr
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.numbers import TINY, inside_unit_interval, not_negative, positive, rounded_down, rounded_up
from tacit.privacy.units import Relation


def pure_epsilon(event: Event) -> float:
    """Return an epsilon for which the event is purely private, or infinity."""
    match event:
        case (
            events.Pure(epsilon=epsilon)
            | events.DiscreteLaplace(epsilon=epsilon)
            | events.RandomizedResponse(epsilon=epsilon)
        ):
            return epsilon
        case events.Shuffled(epsilon=epsilon) if event.relation is Relation.REPLACE_ONE:
            return epsilon
        case events.Approximate(epsilon=epsilon, delta=delta):
            return epsilon if delta == 0 else math.inf
        case events.Repeated(inner, count):
            return sum_rounded_up([(count, pure_epsilon(inner))])
        case events.Converted(inner):
            return pure_epsilon(inner)
        case events.Composed(several):
            return sum_rounded_up([(times, pure_epsilon(one)) for one, times in Counter(several).items()])
        case events.Disjoint(several) if event.relation is Relation.ADD_REMOVE:
            return max(pure_epsilon(one) for one in dict.fromkeys(several))
        case events.Grouped(inner, size):
            return sum_rounded_up([(size, pure_epsilon(inner))])
        case events.Selected(inner, shape, _):
            return _round_up((2 + shape) * pure_epsilon(inner))
        case events.Sampled(rate, inner) if rate == 1 or event.relation is Relation.ADD_REMOVE:
            return amplified_epsilon(rate, pure_epsilon(inner))
        case events.SampledWithoutReplacement(size, population, inner):
            exchanged = pure_epsilon(inner) * (1 if event.relation is Relation.REPLACE_ONE else 2)
            return amplified_epsilon(size / population, exchanged)
        case _:
            return math.inf


def amplified_epsilon(rate: float, epsilon: float) -> float:
    """Return ln(1 + rate (e^epsilon - 1)): a pure epsilon after sampling (Balle, Barthe, Gaboardi 2018)."""
    if rate == 1 or epsilon in (0, math.inf):
        return epsilon
    if epsilon > 700:  # e^epsilon may be no float: ln(1 + rate e^epsilon) is the same and a little more
        power = epsilon + math.log(rate) + 2.0**-40  # more than the rounding of the two
        number = max(power, 0.0) + math.log1p(math.exp(-abs(power)))
    else:
        number = math.log1p(rate * math.expm1(epsilon))
    return min(epsilon, max(_round_up(number), TINY))


def sum_rounded_up(parts: Sequence[tuple[int, float]]) -> float:
    """Return the exact sum of (count, value) products, rounded up once, so that shares of an epsilon add up to it."""
    if any(math.isinf(epsilon) for _, epsilon in parts):
        return math.inf
    if len(parts) == 1 and parts[0][0] == 1 and parts[0][1] >= 0:
        return parts[0][1]
    return rounded_up(sum((count * Fraction(epsilon) for count, epsilon in parts), Fraction(0)))


def _round_up(number: float) -> float:
    return math.nextafter(number * (1 + 2**-50), math.inf) if number else number


Side: TypeAlias = Literal[-1, 1]
"""1 for an upper bound, -1 for a lower bound."""

_SMALL_MU: Final = 1e-5
_PRECISION: Final = 2.0**-29
"""The greatest rounding error of the formulas for ln(delta), besides the blur of their argument."""

_BLUR: Final = 2.0**-50

SAFETY: Final = 1 + 2.0**-30
"""The factor by which noise is widened: more than the curve's rounding errors."""


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
    """Return mu of composed Gaussian noises, given as (sigma, count): mu^2 is the sum of count / sigma^2.

    Terms are scaled by the greatest, so that neither large counts nor large sigmas overflow or vanish.
    """
    rounded = rounded_up if side > 0 else rounded_down
    ones = [max(rounded(_rational_root(count, side) / Fraction(sigma)), TINY) for sigma, count in noises]
    greatest = max(ones)
    if math.isinf(greatest):
        return math.inf
    return greatest * math.sqrt(math.fsum((one / greatest) ** 2 for one in ones)) * (1 + side * 2.0**-48)


def precision(sigma: float) -> float:
    """Return 1 / sigma^2 rounded up, infinity where that is too large for a float."""
    return max((1 / sigma) * (1 / sigma) * (1 + 2.0**-50), TINY)


def _rational_root(count: int, side: Side) -> Fraction:
    """Return the square root of an integer as a rational of 64 bits or more, rounded up or down."""
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
    return bisect(low, high, lambda sigma: not keeps(sigma), 2.0**-45)[1] * SAFETY


def sigma_for_rho(rho: object) -> float:
    """Return the noise, over the L2 sensitivity, that is rho-zero-concentrated: 1 / sqrt(2 rho), rounded up."""
    number = positive("rho", rho)
    doubled = 2 * float(number)
    root = math.sqrt(doubled) if doubled < math.inf else math.sqrt(2) * math.sqrt(float(number))
    guess = math.nextafter(1 / root, math.inf)
    while 2 * number * Fraction(guess) ** 2 < 1:
        guess = math.nextafter(guess, math.inf)
    return guess
