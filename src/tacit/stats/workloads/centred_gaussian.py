"""Gaussian noise on an interaction: of a table of counts, only the centred part is released.

Promise: let the table by some columns be moved by at most `moved` rows between neighbours, each in one cell. What
`release` returns is a function of the centred table with Gaussian noise, whose standard deviation over its L2
sensitivity is `sigma` = deviation / (moved sqrt(p)), p the product of (m - 1) / m over the sizes m of the columns: the
share of a row that centring leaves (Xiao, He, Zhang, Kifer 2023: this is why tables that share their margins cost less
together than alone).

Why integers cost nothing. Let H be the tensor product of m I - J (J all ones): it maps tables to integers, and has the
kernel of centring. Released is H (2^k t + z), z discrete Gaussian of variance s^2 + r^2, s = 2^k deviation. As in
`mechanisms.gaussian`, z is made from Y = N(0, s^2) by drawing a lattice point with weight e^(-|z - Y|^2 / (2 r^2)), up
to a factor that no accountant sees. Given Y, the weight of H z = h is a Gaussian sum over a shifted copy of the lattice
of integer tables in the kernel, and the same for all shifts up to 1 ± e where r sqrt(2 pi) is above the lattice's
smoothing parameter (Micciancio and Regev 2007, lemmas 3.3 and 4.4). So H z is made from H Y alone. That lattice has a
basis of vectors with ones along a single axis, by induction over the axes, each of length at most sqrt(m): with
r^2 = 16 m for the largest m, e is at most 2 N e^(-315) for N cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.additive import Noise
from tacit.mechanisms.gaussian import SMOOTHING_VARIANCE
from tacit.mechanisms.laws import GaussianLaw
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.privacy.arrays import Numbers
from tacit.privacy.errors import TooLarge
from tacit.privacy.numbers import positive, rounded_down

FINE: Final = 2**10
"""The least ratio of the variance of the noise to the variance that smooths the lattice."""
_RELEASED_MAX: Final = 2**62


@dataclass(frozen=True)
class CentredGaussian:
    """Gaussian noise of a standard deviation, in rows, on the centred table of a shape."""

    shape: tuple[int, ...]
    deviation: float

    def __post_init__(self) -> None:
        positive("deviation", self.deviation)
        if self.clamp < 2**20:
            raise TooLarge(
                "this table has more cells than can be counted exactly; choose fewer columns or cells", name="columns"
            )

    @property
    def bits(self) -> int:
        """The bits by which the lattice is finer than rows."""
        needed = FINE * self._smoothing / Fraction(self.deviation) ** 2
        return max(0, math.ceil(math.log2(float(needed)) / 2)) if needed > 1 else 0

    @property
    def variance(self) -> float:
        """The variance of a cell's noise before centring, in rows."""
        return float(Fraction(self.deviation) ** 2 + Fraction(self._smoothing, 4**self.bits))

    @property
    def loss(self) -> Fraction:
        """The squared L2 distance that one row moves the centred table, over the squared deviation."""
        kept = math.prod((Fraction(size - 1, size) for size in self.shape), start=Fraction(1))
        return kept / Fraction(self.deviation) ** 2

    @property
    def clamp(self) -> int:
        """The greatest count, so that no sum passes 62 bits; clamping moves no neighbours apart."""
        return int(_RELEASED_MAX // (2**self.bits * math.prod(2 * size for size in self.shape)) // 2)

    def release(self, table: NDArray[np.int64], source: RandomSource = SYSTEM) -> NDArray[np.int64]:
        """Return the centred table with noise, in steps of 1 / (2^bits * cells)."""
        law = GaussianLaw(Fraction(self.deviation) ** 2 * 4**self.bits + self._smoothing)
        exact = np.clip(np.asarray(table, dtype=np.int64), -self.clamp, self.clamp).reshape(self.shape) << self.bits
        drawn = Noise(law).draw(exact.size, source).reshape(self.shape)
        found: Any = reduce(self._centre_axis, range(len(self.shape)), exact + drawn)
        released: NDArray[np.int64] = mark_simulated(found) if source.simulated else found
        return released

    def centred(self, released: NDArray[Any]) -> Numbers:
        """Return a released table in rows."""
        return np.asarray(released, dtype=np.float64).reshape(self.shape) / (2.0**self.bits * math.prod(self.shape))

    @property
    def _smoothing(self) -> int:
        return SMOOTHING_VARIANCE * max((1, *self.shape))

    @staticmethod
    def _centre_axis(table: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        found: NDArray[np.int64] = table * table.shape[axis] - table.sum(axis=axis, keepdims=True)
        return found


def sigma_of(loss: Fraction) -> float:
    """Return the greatest sigma with 1 / sigma^2 at least `loss`, for one Gaussian event."""
    near = 1 / math.sqrt(float(loss))
    while Fraction(near) ** 2 * loss > 1:
        near = math.nextafter(near, 0.0)
    return rounded_down(Fraction(near))
