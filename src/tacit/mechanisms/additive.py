"""The base class of mechanisms that add noise: to integers on the integers, to real numbers on a public grid.

Integers are released as integers, real numbers as floats that are multiples of the grid; a scalar gives a scalar, an
array an array of its shape. Lists are read as arrays. Which of the two a value is, is declared and does not depend on
the value (`values`): numpy's arrays declare by their dtype, and for scalars and lists the mechanism declares, by the
type of its sensitivity. `Laplace(1, ...)` is for integers and refuses floats, except numpy's: scalars are rounded, and
in lists they must be whole. `Laplace(1.0, ...)` releases ints as floats. A `grid` declares real numbers.
NaN, infinity and values beyond the grid's range are refused.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.grid import Grid
from tacit.mechanisms.integer_sampler import CHUNK, sampler_for
from tacit.mechanisms.laws import Law
from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.mechanisms.values import declared_numbers, integers_only_error, require_exact, require_finite
from tacit.privacy.errors import WrongType
from tacit.privacy.numbers import level_of

INTEGERS: Final = Grid(Fraction(1))


Steps = TypeVar("Steps", int, NDArray[np.int64])


class Noise:
    """Noise on the multiples of `grid`, drawn on a lattice finer by the odd factor 2 half + 1 and rounded to nearest.

    Why rounding the noise is post-processing: let f = 2h + 1 be the factor and R(x) = floor((x + h) / f). R takes every
    whole number from exactly f neighbouring lattice points, symmetric around f times that number and never a tie, and
    R(f v + x) = v + R(x) for whole v. So value + R(noise) = R(f value + noise) is a function of the value, written on
    the fine lattice, with noise of the law: what the law promises for the fine lattice holds for the sum. Rounding that
    looks at the noise alone, such as half away from zero, has no such form: it gives the cells around the value other
    numbers of lattice points, and so shows where the value is.
    """

    def __init__(self, law: Law, grid: Grid = INTEGERS, half: int = 0) -> None:
        self.law: Final = law
        self.grid: Final = grid
        self.half: Final = half
        self.fineness: Final = 2 * half + 1
        self._sampler = sampler_for(law)

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Return `count` independent noises, in steps."""
        return self.rounded(self._sampler.draw(count, source))

    def draw_one(self, source: RandomSource) -> int:
        """Return one noise, in steps."""
        return self.rounded(self._sampler.draw_one(source))

    def add_to(self, values: NDArray[np.float64], source: RandomSource) -> NDArray[np.float64]:
        """Return real numbers with noise, as multiples of the grid; in chunks that fit into the processor's cache."""
        released = np.empty_like(values)
        for start in range(0, values.size, CHUNK):
            part = slice(start, start + CHUNK)
            steps = self.grid.encode(values[part])
            steps += self.draw(steps.size, source)
            self.grid.decode(steps, out=released[part])
        return released

    def rounded(self, drawn: Steps) -> Steps:
        """Return lattice points rounded to the nearest steps."""
        return (drawn + self.half) // self.fineness if self.half else drawn


@dataclass(frozen=True, slots=True)
class Additive(Mechanism):
    """A mechanism that adds independent noise to each number."""

    releases_arrays: ClassVar[bool] = True
    integers: bool = field(default=False, init=False, repr=False)
    """Whether scalars and lists are released as integers; mechanisms that differ in it are not equal."""

    @abstractmethod
    def _integer_noise(self) -> Noise:
        """Return the noise for integers."""

    @abstractmethod
    def _grid_noise(self, dimension: int) -> Noise:
        """Return the noise for a vector of floats of a public length."""

    @abstractmethod
    def _half_width(self, level: float, noise: Noise) -> int:
        """Return the least number of steps within which the noise stays with probability `level`."""

    def release(self, value: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return `value` with noise."""
        number = self._read(value)
        released: Any
        if not isinstance(number, np.ndarray):
            released = self._release_one(number, source)
        elif not number.ndim:
            released = np.asarray(self._release_one(number.item(), source))
            released = released if source.simulated else released[()]
        elif number.dtype == np.int64:
            released = number + self._noise_for(number).draw(number.size, source).reshape(number.shape)
        else:
            released = self._noise_for(number).add_to(number.ravel(), source).reshape(number.shape)
        return mark_simulated(released) if source.simulated else released

    def _release_one(self, number: int | float, source: RandomSource) -> int | float:
        """Release an int or a float, as for arrays but without their cost."""
        noise = self._noise_for(number)
        if isinstance(number, int):
            return number + noise.draw_one(source)
        return noise.grid.decode_one(noise.grid.encode_one(number) + noise.draw_one(source))

    def _noise_for(self, number: Any) -> Noise:
        """Return the noise for numbers as `_read` returns them."""
        if isinstance(number, np.ndarray):
            return _cached_noise(self, None if number.dtype == np.int64 else max(1, number.size))
        return _cached_noise(self, None if isinstance(number, int) else 1)

    def interval(self, level: float, value: Any = None) -> Interval:
        """Return the range of the value without noise, for each released number by itself, with probability `level`.

        `value` is what was released; without it the interval is around zero, that is, of the noise.
        Around integers the interval is of integers; around real numbers it covers the rounding to the grid as well.
        """
        share = level_of(level)
        number = self._read(0 if value is None else value)
        noise = self._noise_for(number)
        steps = self._half_width(share, noise)
        is_whole = np.asarray(number).dtype.kind != "f"
        width = steps if is_whole else float((steps + Fraction(1, 2)) * noise.grid.step)
        return Interval(number - width, number + width)

    def _read(self, value: Any) -> Any:
        """Return numbers as declared: an int or a float for a Python number, an array for anything else."""
        if not isinstance(value, int | float) or isinstance(value, bool | np.generic):
            rounds = Fraction(self.sensitivity).denominator == 1  # type: ignore[attr-defined]
            return declared_numbers(value, integers=self.integers, refusal=self._integers_only_error, rounds=rounds)
        if self.integers:
            if not isinstance(value, int):
                raise self._integers_only_error()
            return int(value)
        if isinstance(value, int):
            require_exact(abs(value))
        return require_finite(float(value))

    def _integers_only_error(self) -> WrongType:
        """Return the error for floats where the mechanism declares integers."""
        return integers_only_error(self.sensitivity)  # type: ignore[attr-defined]


@lru_cache(maxsize=256)
def _cached_noise(mechanism: Additive, dimension: int | None) -> Noise:
    """Return a mechanism's noise for integers, or for vectors of `dimension` floats, from a cache."""
    return mechanism._integer_noise() if dimension is None else mechanism._grid_noise(dimension)
