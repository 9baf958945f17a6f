"""Intervals of sums of many noises, from their variance and their kurtosis.

A sum of Gaussian noises is Gaussian. A sum of Laplace noises lies between: one of them is Laplace, many are nearly
Gaussian, and its excess kurtosis, 3 times the sum of a^4 v^2 over (the sum of a^2 v)^2 for coefficients a and
variances v, says how far between. The quantile is taken at that place between those of the two laws, both of which are
met exactly at the ends; in between it is off by less than a hundredth of the level (tests/statistical/stats).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAPLACE_KURTOSIS = 3.0


def half_widths(variance: Any, kurtosis: Any, level: float) -> NDArray[np.float64]:
    """Return the half-widths of the intervals that hold sums of noises with probability `level`."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    laplace = -math.log(1 - level) / math.sqrt(2)
    place = np.clip(np.asarray(kurtosis, dtype=np.float64) / LAPLACE_KURTOSIS, 0.0, 1.0)
    return np.asarray(np.sqrt(np.asarray(variance, dtype=np.float64)) * (normal + (laplace - normal) * place))
