"""Laplace noise on the integers or on a public grid.

Promise: if neighbours (of either relation) differ by at most `sensitivity` in L1, one `release` is epsilon-private
(Dwork, McSherry, Nissim, Smith 2006; on a lattice, as two-sided geometric noise: Ghosh, Roughgarden, Sundararajan
2009). A vector is released by its L1 sensitivity over all coordinates. Rounding floats to the grid is inside the
sensitivity. Computing the sensitivity is left to callers (`query.contribution`), and charging to the ledger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tacit.mechanisms.additive import Additive, Noise
from tacit.mechanisms.grid import Grid, grid_step
from tacit.mechanisms.laws import LaplaceLaw
from tacit.mechanisms.values import declared_sensitivity
from tacit.privacy import events
from tacit.privacy.errors import WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, parameter, rounded_up, whole


@dataclass(frozen=True, slots=True)
class Laplace(Additive):
    """Discrete Laplace noise of scale sensitivity / epsilon; `grid` overrides the step chosen for real numbers.

    `sensitivity` is how far apart, in L1, one unit can move everything that is released together: for an array, the sum
    over all its numbers of how far each can move. It is 1 for a count, and 1 for a histogram of which a unit adds or
    removes one entry. `Laplace(1, 1).release(ages)` over a column of people's ages is not private: replacing a person
    moves an age by up to 120, and adding one shows in the length; release the sum of the ages with a sensitivity of
    120.
    A sensitivity of a whole-number type (`Laplace(1, ...)`) declares integers, and Python floats are refused; write
    `Laplace(1.0, ...)` for real numbers.

    Without a given grid, rounding widens the noise of real numbers by less than one part in a thousand, or the release
    is refused: for d numbers at once, below an epsilon of about d / 10^9. A given grid accepts any widening.
    The event is that of the coarsest lattice, neighbours one step apart, and so holds for integers and floats alike.
    """

    sensitivity: Real
    epsilon: Real
    grid: Real | None = None

    def __post_init__(self) -> None:
        Additive.__post_init__(self)
        self._normalize(sensitivity=declared_sensitivity, epsilon=parameter)
        object.__setattr__(self, "integers", isinstance(self.sensitivity, int) and self.grid is None)
        if self.grid is not None:
            self._normalize(grid=grid_step)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, without the widening for the grid; about its mean absolute value."""
        return Fraction(self.sensitivity) / Fraction(self.epsilon)

    @property
    def event(self) -> Event:
        return events.DiscreteLaplace(epsilon=rounded_up(Fraction(self.epsilon)), under=self.relation)

    def _integer_noise(self) -> Noise:
        return Noise(LaplaceLaw(self.scale))

    def _grid_noise(self, dimension: int) -> Noise:
        sensitivity = Fraction(self.sensitivity)
        if self.grid is None:
            grid = Grid.fitting(sensitivity, self.scale, dimension, can_be_given=True)
        else:
            grid = Grid(Fraction(self.grid))
        steps_apart = sensitivity // grid.step + dimension
        return Noise(LaplaceLaw(steps_apart / Fraction(self.epsilon)), grid)

    def _half_width(self, level: float, noise: Noise) -> int:
        assert isinstance(noise.law, LaplaceLaw)
        return laplace_half_width(noise.law.scale, 1 - level)


@dataclass(frozen=True, slots=True)
class Geometric(Laplace):
    """Two-sided geometric noise for integers whose L1 sensitivity is a whole number, which the event records."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", whole("sensitivity", self.sensitivity))
        if self.grid is not None:
            raise WrongType("geometric noise is for integers and takes no grid", name="grid", value=self.grid)
        Laplace.__post_init__(self)

    @property
    def event(self) -> Event:
        epsilon = rounded_up(Fraction(self.epsilon))
        return events.DiscreteLaplace(epsilon=epsilon, steps=int(self.sensitivity), under=self.relation)

    def _grid_noise(self, dimension: int) -> Noise:
        raise self._integers_only_error()

    def _integers_only_error(self) -> WrongType:
        return WrongType("geometric noise is for integers; use Laplace for real numbers", name="value")


def laplace_half_width(scale: Fraction, missed: float) -> int:
    """Return the least k with P(|X| > k) <= missed: P(|X| > k) = 2 r^(k + 1) / (1 + r), r = e^(-1 / scale)."""
    inverse = float(1 / scale)
    tail = math.log(missed / 2) + math.log1p(math.exp(-inverse))
    return max(0, math.ceil(-tail / inverse * (1 + 2**-48)) - 1)
