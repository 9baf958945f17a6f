"""The laws (distributions) of noise on the integers, as exact exponents.

A law gives every integer x the weight e^-exponent(|x|), the exponent 0 at 0, increasing, convex, and a polynomial of
degree two at most with rational coefficients. The exact sampler (`integer_sampler`) uses it in two forms: rational for
the undecided sliver, double for the rest.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.errors import TooLarge

SCALE_MAX: Final = 2**50
BLOCKS_PER_SCALE: Final = 128
"""A scale is cut into 128 to 255 blocks, so that about 99 of 100 uniform proposals within a block are accepted."""

Doubles = TypeVar("Doubles", float, NDArray[np.float64])


class Law(Hashable, Protocol):
    """Weights e^-exponent(|x|) on the integers."""

    @property
    def block_bits(self) -> int:
        """The binary logarithm of the number of neighbouring integers that the sampler proposes together."""
        ...

    def exponent(self, magnitude: int) -> Fraction:
        """Return the exact exponent at a magnitude."""
        ...

    def exponents(self, magnitudes: Doubles) -> Doubles:
        """Return the exponents in double precision, off by less than 8 units in the last place."""
        ...

    def rises(self, magnitudes: Doubles, offsets: Doubles) -> Doubles:
        """Return exponent(magnitude + offset) - exponent(magnitude), as precisely as `exponents`."""
        ...

    def reach(self, exponent: int) -> int:
        """Return a magnitude from which on the exponent is at least `exponent`."""
        ...


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """Discrete Laplace: exponent |x| / scale."""

    scale: Fraction

    @property
    def block_bits(self) -> int:
        return _block_bits(int(self.scale))

    def exponent(self, magnitude: int) -> Fraction:
        return magnitude / self.scale

    def exponents(self, magnitudes: Doubles) -> Doubles:
        return magnitudes / _divisor(self.scale)

    def rises(self, magnitudes: Doubles, offsets: Doubles) -> Doubles:
        return offsets / _divisor(self.scale)

    def reach(self, exponent: int) -> int:
        return int(exponent * self.scale) + 1


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """Discrete Gaussian: exponent x^2 / (2 variance)."""

    variance: Fraction

    @property
    def block_bits(self) -> int:
        return _block_bits(math.isqrt(int(self.variance)))

    def exponent(self, magnitude: int) -> Fraction:
        return magnitude * magnitude / (2 * self.variance)

    def exponents(self, magnitudes: Doubles) -> Doubles:
        return magnitudes * magnitudes / _divisor(2 * self.variance)

    def rises(self, magnitudes: Doubles, offsets: Doubles) -> Doubles:
        return offsets * (2 * magnitudes + offsets) / _divisor(2 * self.variance)

    def reach(self, exponent: int) -> int:
        return math.isqrt(int(2 * exponent * self.variance)) + 1


def _divisor(number: Fraction) -> float:
    """Return a number as a double of at least 2^-1022: below it, only 0 has a weight that matters."""
    return max(float(number), sys.float_info.min)


def _block_bits(scale: int) -> int:
    if scale > SCALE_MAX:
        raise TooLarge(f"noise of a scale above 2^50 steps is not sampled, and this one has {scale}; coarsen the grid")
    return max(0, (scale // BLOCKS_PER_SCALE).bit_length() - 1)
