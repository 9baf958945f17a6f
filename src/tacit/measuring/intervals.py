"""Confidence intervals: of sums of noises by variance and kurtosis, of values computed from them by simulation.

A sum of Gaussian noises is Gaussian. A sum of Laplace noises lies between: one of them is Laplace, many are nearly
Gaussian, and its excess kurtosis, 3 times the sum of a^4 v^2 over (the sum of a^2 v)^2 for coefficients a and
variances v, says how far between. The quantile is interpolated there between those of the two distributions, and is
exact at both ends; in between it is off by less than a hundredth of the level (tests/statistical/stats).

That takes noises for continuous. Those of a scale near 1 or less are mostly 0, and intervals by their variance cover
the true value too seldom; for sums of a few of them the distribution is computed instead (`discrete_half_width`): its
characteristic function is a product of known ones, and its inverse Fourier transform is the distribution itself.

Values that are computed from several noisy sums (a mean is a ratio of two) have simulated intervals: fresh noise is
subtracted from the released numbers many times, and the value computed again. Why these cover often enough is argued in
`moments`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import Noise
from tacit.mechanisms import Laplace
from tacit.mechanisms.gaussian import SMOOTHING_VARIANCE, fineness_for
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.simulation import SeededSource

LAPLACE_KURTOSIS: Final = 3.0
DISCRETE_BELOW: Final = 64.0
"""Below this variance the distribution of a sum is computed exactly."""
STEPS: Final = 2**7
"""The resolution of coefficients in that computation: 1/128."""
DRAWS: Final = 4_000
DRAWS_MIN: Final = 200
DRAWN_MAX: Final = 4_000_000
"""Upper bound on the numbers drawn for the intervals of one answer."""
VARIANCE_MIN: Final = 2.0**-30
"""Lower bound on variances: noise that is almost always 0."""

Compute: TypeAlias = Callable[[Sequence[NDArray[np.float64]], float], Iterator[tuple[Any, Any]]]
"""From draws of sums and the probability beyond either end to pairs of the least and the greatest value per draw."""


@dataclass(frozen=True, slots=True)
class Summand:
    """The sum of `count` independent discrete Laplace noises of one scale, times a coefficient."""

    coefficient: float
    scale: float
    count: int

    @property
    def ratio(self) -> float:
        """The ratio of the probabilities of consecutive numbers, away from 0."""
        return math.exp(-1 / self.scale) if self.scale else 0.0

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        return self.count * self.coefficient**2 * 2 * self.ratio / (1 - self.ratio) ** 2


@lru_cache(maxsize=4096)
def discrete_half_width(summands: tuple[Summand, ...], level: float) -> float:
    """Return the least half-width, slightly rounded up, that covers a sum of discrete Laplace noises at `level`.

    Coefficients are rounded to 1/128, and the half-width is widened by what that moves the sum, on average.
    """
    spread = math.sqrt(math.fsum(one.variance for one in summands))
    reach = 1 + 10 * spread + 30 * max(one.coefficient * one.scale for one in summands)
    size = 2 ** math.ceil(math.log2(2 * reach * STEPS))
    angles = 2 * math.pi / size * np.arange(size // 2 + 1)
    transform = np.ones_like(angles)
    for one in summands:
        wave = np.cos(angles * round(one.coefficient * STEPS))
        transform *= ((1 - one.ratio) ** 2 / (1 - 2 * one.ratio * wave + one.ratio**2)) ** one.count
    law = np.fft.irfft(transform, size)
    held = law[0] + 2 * np.cumsum(law[1 : size // 2])
    within = 0 if law[0] >= level else 1 + int(np.searchsorted(held, level - 1e-12))
    moved = math.fsum(one.count * 2 * one.ratio / (1 - one.ratio**2) for one in summands) / 2
    return (within + moved + 1) / STEPS


def half_widths(variance: Any, kurtosis: Any, level: float) -> NDArray[np.float64]:
    """Return the half-widths of intervals that cover sums of noises with probability `level`."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    laplace = -math.log(1 - level) / math.sqrt(2)
    place = np.clip(np.asarray(kurtosis, dtype=np.float64) / LAPLACE_KURTOSIS, 0.0, 1.0)
    return np.asarray(np.sqrt(np.asarray(variance, dtype=np.float64)) * (normal + (laplace - normal) * place))


def whole_half_widths(variance: Any, kurtosis: Any, level: float) -> NDArray[np.float64]:
    """Return half-widths for counts, rounded up where noise has few values and the next one may lie just beyond.

    Coefficients of noises in a count are at most 1, so the error is at most one number. Where noises are almost always
    0 (a variance below a sixteenth of 1 - level), nothing is rounded.
    """
    width, spread = half_widths(variance, kurtosis, level), np.asarray(variance, dtype=np.float64)
    is_coarse = (np.asarray(kurtosis) > 0) & (spread < DISCRETE_BELOW) & (spread > (1 - level) / 16)
    return np.where(is_coarse, np.ceil(width), width)


def variance(noise: Noise) -> float:
    """Return the approximate variance of a noise on whole numbers."""
    if isinstance(noise, Laplace):
        inverse = 1 / float(noise.scale)
        if inverse > 50:
            return VARIANCE_MIN
        return max(1 / (math.cosh(inverse) - 1), VARIANCE_MIN) if inverse > 1e-6 else 2 / inverse**2
    deviation = Fraction(noise.sigma or 0) * Fraction(noise.sensitivity)
    fineness = fineness_for(deviation)
    return float(deviation**2) + SMOOTHING_VARIANCE / fineness**2 + (1 - 1 / fineness**2) / 12


def simulated_interval(
    noises: Sequence[Noise], released: Sequence[NDArray[Any]], level: float, compute: Compute
) -> Interval | None:
    """Return the interval of what `compute` returns for arrays with a first axis of draws; None for too many numbers.

    The noise that is subtracted has a fixed seed: it protects nothing, and the same answer has the same interval.
    """
    draws = min(DRAWS, DRAWN_MAX // max(1, sum(int(one.size) for one in released)))
    if draws < DRAWS_MIN:
        return None
    source = SeededSource(1)
    again = []
    for noise, one in zip(noises, released, strict=True):
        drawn = noise.release(np.zeros((draws, *one.shape), dtype=np.int64), source=source)
        again.append(np.asarray(one, dtype=np.float64)[None] - np.asarray(drawn, dtype=np.float64))
    tail = (1 - level) / 2
    # less one standard error of the draws: their seed is fixed, so an error would be common to all answers
    tail = max(tail - math.sqrt(tail * (1 - tail) / draws), tail / 2)
    ends = [
        (np.quantile(least, tail, axis=0), np.quantile(greatest, 1 - tail, axis=0))
        for least, greatest in compute(again, tail)
    ]
    low, high = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
    return Interval(low, high) if np.ndim(low) else Interval(low.item(), high.item())
