"""Intervals of sums of many noises, from their variance and their kurtosis.

A sum of Gaussian noises is Gaussian. A sum of Laplace noises lies between: one of them is Laplace, many are nearly
Gaussian, and its excess kurtosis, 3 times the sum of a^4 v^2 over (the sum of a^2 v)^2 for coefficients a and
variances v, says how far between. The quantile is taken at that place between those of the two laws, both of which are
met exactly at the ends; in between it is off by less than a hundredth of the level (tests/statistical/stats).

That takes noises for continuous. Those of a scale near 1 or less are mostly 0, and intervals by their variance hold the
truth too seldom; the law of a sum of a few of them is computed instead (`discrete_half_width`): its characteristic
function is a product of known ones, and its inverse Fourier transform is the law itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAPLACE_KURTOSIS = 3.0
DISCRETE_BELOW = 64.0
"""Sums of a variance below this have their law computed."""
STEPS = 2**7
"""In how many parts of a whole number coefficients are counted there."""


@dataclass(frozen=True, slots=True)
class Summand:
    """A number of independent discrete Laplace noises of a scale, each times a coefficient."""

    coefficient: float
    scale: float
    count: int

    @property
    def ratio(self) -> float:
        """The probability of a number over that of the one before, away from 0."""
        return math.exp(-1 / self.scale) if self.scale else 0.0

    @property
    def variance(self) -> float:
        """The variance of all of them together."""
        return self.count * self.coefficient**2 * 2 * self.ratio / (1 - self.ratio) ** 2


@lru_cache(maxsize=4096)
def discrete_half_width(summands: tuple[Summand, ...], level: float) -> float:
    """Return the least half-width that holds a sum of discrete Laplace noises with probability `level`, or a bit more.

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
    """Return the half-widths of the intervals that hold sums of noises with probability `level`."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    laplace = -math.log(1 - level) / math.sqrt(2)
    place = np.clip(np.asarray(kurtosis, dtype=np.float64) / LAPLACE_KURTOSIS, 0.0, 1.0)
    return np.asarray(np.sqrt(np.asarray(variance, dtype=np.float64)) * (normal + (laplace - normal) * place))


def whole_half_widths(variance: Any, kurtosis: Any, level: float) -> NDArray[np.float64]:
    """Return half-widths for counts: rounded up where noise has few values, of which the next one may lie just beyond.

    Coefficients of noises in a count are at most 1, so that nothing is off by more than one number. Where noises are
    hardly ever anything but 0, that is, below a sixteenth of what may be missed in variance, nothing is rounded.
    """
    width, spread = half_widths(variance, kurtosis, level), np.asarray(variance, dtype=np.float64)
    is_coarse = (np.asarray(kurtosis) > 0) & (spread < DISCRETE_BELOW) & (spread > (1 - level) / 16)
    return np.where(is_coarse, np.ceil(width), width)
