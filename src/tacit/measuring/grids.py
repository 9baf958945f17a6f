"""The public grid on which values are added up: whole steps of a size that follows from declared bounds alone.

Steps are powers of two, so that dividing by one is exact in doubles. The number of steps that a statistic gives to its
greatest value trades the error of rounding, which is far below the noise, against the size of sums of squares.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from tacit.mechanisms.grid import Grid

SUM_STEPS: Final = 2**20
MEAN_STEPS: Final = 2**20
SQUARE_STEPS: Final = 2**12
"""The number of steps of the greatest value: for sums, for means, for squares and products."""

SATURATION: Final = 2**62
"""The greatest sum; clamping moves no two neighbours further apart."""

TINY: Final = Fraction(1, 2**60)
HALVES_BELOW: Final = 16
"""Up to here a short range of whole numbers is counted in halves where its middle is not a whole number."""


def grid_step(lower: Fraction, upper: Fraction, steps: int, *, is_whole: bool, centred: bool) -> Fraction:
    """Return the step for values between two bounds, so that the greatest distance to their origin has `steps`.

    The origin is the middle of the bounds if `centred`, otherwise 0. Whole numbers get whole steps, and halves where
    their middle lies between two of few.
    """
    size = half = max(abs(lower), abs(upper))
    if centred:
        half = max((upper - lower) / 2, size / 2**20)
    if not is_whole:
        return Grid.below(max(half, TINY) / steps).step
    if half > steps:
        return 2 * Grid.below(half / steps).step
    is_half = centred and half <= HALVES_BELOW and half.denominator == 2
    return Fraction(1, 2) if is_half else Fraction(1)
