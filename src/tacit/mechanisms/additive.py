"""Noise added to numbers: integers on the integers, floats on a public grid.

Integers in give integers out, floats give floats that are multiples of the grid; a scalar gives a scalar, an array an
array of its shape. Lists are taken for arrays. NaN, infinity and values beyond the grid's range are refused.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.grid import Grid
from tacit.mechanisms.inversion import prepared
from tacit.mechanisms.laws import Law
from tacit.mechanisms.mechanism import Interval, Mechanism
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.simulation import marked
from tacit.mechanisms.values import numbers_of
from tacit.privacy.errors import NotFinite
from tacit.privacy.numbers import inside_unit_interval

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
        self._sampler = prepared(law)

    def draw(self, count: int, source: Source) -> NDArray[np.int64]:
        """Return `count` independent noises, in steps."""
        return self.rounded(self._sampler.draw(count, source))

    def draw_one(self, source: Source) -> int:
        """Return one noise, in steps."""
        return self.rounded(self._sampler.draw_one(source))

    def rounded(self, drawn: Steps) -> Steps:
        """Return the steps nearest to lattice points."""
        return (drawn + self.half) // self.fineness if self.half else drawn


@dataclass(frozen=True, slots=True)
class Additive(Mechanism):
    """A mechanism that adds independent noise to each number."""

    _zero: ClassVar[int | float] = 0.0

    @abstractmethod
    def _integer_noise(self) -> Noise:
        """Return the noise for integers."""

    @abstractmethod
    def _grid_noise(self, dimension: int) -> Noise:
        """Return the noise for a vector of floats of a public length."""

    @abstractmethod
    def _half_width(self, level: float, noise: Noise) -> int:
        """Return the least number of steps within which the noise stays with probability `level`."""

    def release(self, value: Any, *, source: Source = SYSTEM) -> Any:
        """Return `value` with noise."""
        released = self._release(value, source)
        return marked(released) if source.simulated else released

    def _release(self, value: Any, source: Source) -> Any:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            return int(value) + _noise(self, None).draw_one(source)
        if isinstance(value, float | np.floating):
            noise = _noise(self, 1)
            return noise.grid.decode_one(noise.grid.encode_one(_finite(float(value))) + noise.draw_one(source))
        array = numbers_of(value)
        if array.dtype == np.int64:
            return array + _noise(self, None).draw(array.size, source).reshape(array.shape)
        noise = _noise(self, max(1, array.size))
        steps = noise.grid.encode(array)
        steps += noise.draw(array.size, source).reshape(array.shape)
        return noise.grid.decode(steps)

    def interval(self, level: float, value: Any = None) -> Interval:
        """Return where the value without noise lies, for each released number by itself, with probability `level`.

        `value` is what was released; without it the interval is around zero, that is, of the noise.
        Around integers the interval is of integers; around floats it covers the rounding to the grid as well.
        """
        share = float(inside_unit_interval("level", level))
        if value is None:
            value = self._zero
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            width = self._half_width(share, _noise(self, None))
            return Interval(int(value) - width, int(value) + width)
        if isinstance(value, float | np.floating):
            real_width = self._real_half_width(share, 1)
            return Interval(float(value) - real_width, float(value) + real_width)
        array = numbers_of(value)
        if array.dtype == np.int64:
            width = self._half_width(share, _noise(self, None))
            return Interval(array - width, array + width)
        real_width = self._real_half_width(share, max(1, array.size))
        return Interval(array - real_width, array + real_width)

    def _real_half_width(self, level: float, dimension: int) -> float:
        noise = _noise(self, dimension)
        return float((self._half_width(level, noise) + Fraction(1, 2)) * noise.grid.step)


@lru_cache(maxsize=256)
def _noise(mechanism: Additive, dimension: int | None) -> Noise:
    """Return a mechanism's noise for integers, or for vectors of `dimension` floats, from those used lately."""
    return mechanism._integer_noise() if dimension is None else mechanism._grid_noise(dimension)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NotFinite("values must be finite: drop or replace NaN and infinity before the release", name="value")
    return value
