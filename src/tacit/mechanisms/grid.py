"""The public grid on which real numbers are released.

Promise: every released float is a whole multiple of a power of two that depends on public parameters alone, and is
below 2^53 multiples, so that a double holds it exactly and its low bits tell nothing (Mironov 2012; Haney et al. 2022).
Values are rounded to the grid before noise is added as integers; rounding moves two neighbours at most one step further
apart in each coordinate, and callers put that into the sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.errors import OutOfRange, TooLarge
from tacit.privacy.numbers import positive

VALUE_STEPS_MAX: Final = 2**52
RELEASED_STEPS_MAX: Final = 2**53 - 1
SENSITIVITY_STEPS: Final = 2**12
"""Steps in one sensitivity, so that rounding widens the noise by less than one part in four thousand."""

SCALE_STEPS_MIN: Final = 2**10
SCALE_STEPS_MAX: Final = 2**40


@dataclass(frozen=True, slots=True)
class Grid:
    """Multiples of `step`, a power of two."""

    step: Fraction

    def __post_init__(self) -> None:
        step = positive("grid", self.step)
        if step.numerator & (step.numerator - 1) or step.denominator & (step.denominator - 1):
            raise OutOfRange(f"a grid is a power of two, such as 1/1024 or 8, and not {float(step):g}", name="grid")
        if not 2**-1000 <= step <= 2**900:
            raise TooLarge("a grid lies between 2^-1000 and 2^900", name="grid", value=self.step)
        object.__setattr__(self, "step", step)

    @classmethod
    def fitting(cls, sensitivity: Fraction, scale: Fraction, spread: int) -> Grid:
        """Choose the grid for noise of `scale` on values of which rounding moves neighbours `spread` steps apart."""
        fine = min(sensitivity / (spread * SENSITIVITY_STEPS), scale / SCALE_STEPS_MIN)
        return cls.below(max(fine, scale / SCALE_STEPS_MAX))

    @classmethod
    def below(cls, length: Fraction) -> Grid:
        """Choose the greatest power of two that is not above `length`."""
        exponent = length.numerator.bit_length() - length.denominator.bit_length()
        power = Fraction(2) ** exponent
        return cls(power if power <= length else power / 2)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest multiples, as integers; refuse what is out of the grid's range."""
        with np.errstate(over="ignore"):
            steps = values / float(self.step)
        np.rint(steps, out=steps)
        if steps.size and not (steps.max() <= VALUE_STEPS_MAX and steps.min() >= -VALUE_STEPS_MAX):
            raise self._too_large()
        return steps.astype(np.int64)

    def encode_one(self, value: float) -> int:
        """Return the nearest multiple of one finite number; the same as `encode` without the cost of arrays."""
        steps = value / float(self.step)
        if not abs(steps) <= VALUE_STEPS_MAX:
            raise self._too_large()
        return round(steps)

    def decode(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return integers as the floats that they stand for, clamped to what a double holds exactly."""
        values = np.clip(steps, -RELEASED_STEPS_MAX, RELEASED_STEPS_MAX).astype(np.float64)
        values *= float(self.step)
        return values

    def decode_one(self, steps: int) -> float:
        """Return one integer as the float that it stands for, clamped as `decode` does."""
        return max(-RELEASED_STEPS_MAX, min(steps, RELEASED_STEPS_MAX)) * float(self.step)

    def _too_large(self) -> TooLarge:
        limit = float(VALUE_STEPS_MAX * self.step)
        return TooLarge(f"values on a grid of {float(self.step):g} must lie within ±{limit:g}; give a coarser grid")
