"""The public grid on which real numbers are released.

Promise: every released float is a whole multiple of a power of two that depends on public parameters alone, and is
below 2^53 multiples, so that a double holds it exactly and its low bits tell nothing (Mironov 2012; Haney et al. 2022).
Values are rounded to the grid before noise is added as integers; rounding moves two neighbours at most one step further
apart in each coordinate, and callers include that in the sensitivity. Where the grid is not given, this widens the
noise by less than one part in a thousand, or the release is refused (`Grid.fitting`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.laws import SCALE_MAX
from tacit.privacy.errors import OutOfRange, TooLarge
from tacit.privacy.numbers import exact, positive

STEP_MAX: Final = 2**900
VALUE_STEPS_MAX: Final = 2**52
RELEASED_STEPS_MAX: Final = 2**53 - 1
SENSITIVITY_STEPS: Final = 2**12
"""Steps in one sensitivity, so that rounding widens the noise by less than one part in four thousand."""

SENSITIVITY_STEPS_MIN: Final = 2**10
"""The least number of steps in one sensitivity, for noise so wide that finer steps would leave no room for values.
Rounding and smoothing together then widen the noise by less than one part in a thousand."""

SCALE_STEPS_MIN: Final = 2**10
SCALE_STEPS_MAX: Final = 2**40
"""Steps in one scale of the noise, which leaves values 2^12 scales on both sides of 0."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Multiples of `step`, a power of two."""

    step: Fraction

    def __post_init__(self) -> None:
        step = positive("grid", self.step)
        if step.numerator & (step.numerator - 1) or step.denominator & (step.denominator - 1):
            raise OutOfRange(f"a grid is a power of two, such as 1/1024 or 8, not {float(step):g}", name="grid")
        if not 2**-1000 <= step <= STEP_MAX:
            raise TooLarge("a grid lies between 2^-1000 and 2^900", name="grid", value=self.step)
        object.__setattr__(self, "step", step)

    @classmethod
    def fitting(cls, sensitivity: Fraction, scale: Fraction, spread: int, *, can_be_given: bool = False) -> Grid:
        """Return the grid for noise of `scale` on values of which rounding moves neighbours `spread` steps apart.

        Raise, by these public numbers alone, if rounding would widen the noise by more than one part in a thousand;
        where a grid `can_be_given`, the error names one that accepts this.
        """
        fine = min(sensitivity / (spread * SENSITIVITY_STEPS), scale / SCALE_STEPS_MIN)
        step = _power_below(max(fine, scale / SCALE_STEPS_MAX))
        if spread * step * SENSITIVITY_STEPS_MIN <= sensitivity:
            return cls(step)
        accepted = ""
        if can_be_given and step <= STEP_MAX and (sensitivity / step + spread) * scale <= SCALE_MAX * sensitivity:
            accepted = f", or accept wider noise with grid={float(step)!r}"
        raise OutOfRange(
            "rounding to a grid that doubles can hold would widen this noise by more than 1/1000; "
            f"use a larger epsilon, or release fewer numbers at once{accepted}",
            name="epsilon",
        )

    @classmethod
    def below(cls, length: Fraction) -> Grid:
        """Return the grid of the greatest power of two that is not above `length`."""
        return cls(_power_below(length))

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest multiples, as integers; raise for values outside of the grid's range."""
        with np.errstate(over="ignore"):
            steps = values / float(self.step)
        np.rint(steps, out=steps)
        if steps.size and not (steps.max() <= VALUE_STEPS_MAX and steps.min() >= -VALUE_STEPS_MAX):
            raise self._too_large()
        return steps.astype(np.int64)

    def encode_one(self, value: float) -> int:
        """Return the nearest multiple of one finite number, as `encode` does without the cost of arrays."""
        steps = value / float(self.step)
        if not abs(steps) <= VALUE_STEPS_MAX:
            raise self._too_large()
        return round(steps)

    def decode(self, steps: NDArray[np.int64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the floats of integer multiples, clamped to what a double holds exactly."""
        step = float(self.step)
        limit = RELEASED_STEPS_MAX * step  # a double exactly, as everything below it on the grid is
        values = np.multiply(steps, step, out=out)
        return np.clip(values, -limit, limit, out=values)

    def decode_one(self, steps: int) -> float:
        """Return the float of one integer multiple, clamped as `decode` does."""
        return max(-RELEASED_STEPS_MAX, min(steps, RELEASED_STEPS_MAX)) * float(self.step)

    def _too_large(self) -> TooLarge:
        limit = float(VALUE_STEPS_MAX * self.step)
        return TooLarge(f"values on a grid of {float(self.step):g} must lie within ±{limit:g}; give a coarser grid")


def grid_step(name: str, value: object) -> Fraction:
    """Return the step of a grid that a caller gives; raise unless it is a power of two within range."""
    return Grid(exact(name, value)).step


def _power_below(length: Fraction) -> Fraction:
    """Return the greatest power of two that is not above `length`."""
    power = Fraction(2) ** (length.numerator.bit_length() - length.denominator.bit_length())
    return power if power <= length else power / 2
