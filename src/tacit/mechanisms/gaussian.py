"""Gaussian noise on a public grid, and discrete Gaussian noise on the integers.

Promise of `Gaussian`: if neighbours (of either relation) differ by at most `sensitivity` in L2, one `release` is a
function of Gaussian noise with standard deviation sigma * sensitivity, and so has that privacy curve (analytic
calibration: Balle and Wang 2018), that of rho = 1 / (2 sigma^2) zero-concentrated privacy among others.

Why the grid costs nothing: let Y = x + N(0, s^2), and Z be an integer drawn with weight e^(-(z - Y)^2 / (2 r^2)).
Summing over the lattice is integrating, up to a factor 1 ± e, e = 2 * sum_k exp(-2 pi^2 r^2 k^2) (Poisson summation;
Peikert 2010, theorem 3.1), so Z - x has the discrete Gaussian law of variance s^2 + r^2 up to a factor within
1 ± 4 e. With r = 4 steps e is below 10^-136: below what any accountant resolves, also for 10^12 coordinates. So a
variance of (sigma * steps apart)^2 + r^2 is noise made from the continuous one, whatever direction in L2 moves.
The argument needs r = 4 steps of the lattice on which the noise is drawn and nothing of s. Integers are drawn on a
lattice finer by an odd factor, so that r is small beside s, and rounded to the nearest, which is post-processing
(`additive.Noise`).

Promise of `DiscreteGaussian`: the discrete Gaussian law on the integers itself, which is rho-zero-concentrated for the
same rho (Canonne, Kamath, Steinke 2020, theorem 15); its privacy curve is its own, and the event says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np

from tacit.accounting.closed_forms import sigma_for, sigma_for_rho
from tacit.mechanisms.additive import Additive, Noise
from tacit.mechanisms.grid import Grid, grid_step
from tacit.mechanisms.laws import GaussianLaw
from tacit.mechanisms.values import declared_sensitivity
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import Real, exact, failure_probability, native_number, parameter, rounded_down

SMOOTHING_VARIANCE: Final = 16
"""r^2 of the module's docstring, in steps."""

FINENESS_MAX: Final = 2**50 + 1


@dataclass(frozen=True, slots=True)
class Gaussian(Additive):
    """Gaussian noise given by epsilon and delta, by rho, or by sigma (the standard deviation over the sensitivity).

    `sensitivity` is how far apart, in L2, one unit can move everything that is released together: for an array, the
    root of the sum over all its numbers of how far each can move, squared. It is 1 for a count, and 120 for a sum of
    ages of which a unit adds or removes one; a column of people's own ages is not to be released (see `Laplace`).
    A sensitivity of a whole-number type (`Gaussian(1, ...)`) declares integers; write `Gaussian(1.0, ...)` for real
    numbers.

    `grid` overrides the step chosen for real numbers. Without it, rounding to the grid and smoothing widen their noise
    by less than one part in a thousand, or the release is refused: for d numbers at once, above a sigma of about
    10^9 / sqrt(d). A given grid accepts any widening.
    """

    sensitivity: Real
    epsilon: Real | None = None
    delta: Real | None = None
    rho: Real | None = field(default=None, kw_only=True)
    sigma: Real | None = field(default=None, kw_only=True)
    grid: Real | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        Additive.__post_init__(self)
        self._normalize(sensitivity=declared_sensitivity)
        object.__setattr__(self, "integers", isinstance(self.sensitivity, int) and self.grid is None)
        if self.grid is not None:
            self._normalize(grid=grid_step)
        object.__setattr__(self, "sigma", self._given_sigma())

    def _given_sigma(self) -> Real:
        """Return sigma as given, or the sigma that epsilon and delta, or rho, need.

        Beside these the sigma that they need may be given too, as a copy by `dataclasses.replace` does.
        """
        ways = (self.epsilon is not None and self.delta is not None, self.rho is not None)
        if sum(ways) > 1 or (self.epsilon is None) != (self.delta is None) or not (any(ways) or self.sigma is not None):
            raise InvalidInput("Gaussian noise is given by epsilon and delta, by rho, or by sigma: exactly one of them")
        if not any(ways):
            return native_number(parameter("sigma", self.sigma))
        if self.rho is None:
            self._normalize(epsilon=parameter, delta=failure_probability)
            needed = sigma_for(self.epsilon, self.delta)
        else:
            self._normalize(rho=parameter)
            needed = sigma_for_rho(self.rho)
        if self.sigma is not None and exact("sigma", self.sigma) != Fraction(needed):
            raise InvalidInput(
                "Gaussian noise is given by epsilon and delta, by rho, or by sigma: exactly one of them; a copy with "
                "another epsilon, delta or rho needs sigma=None"
            )
        return needed

    @property
    def scale(self) -> float:
        """The standard deviation of the noise, without the widening for the grid."""
        return float(Fraction(self.sigma or 0) * Fraction(self.sensitivity))

    @property
    def event(self) -> Event:
        return events.Gaussian(sigma=rounded_down(Fraction(self.sigma or 0)), under=self.relation)

    def _integer_noise(self) -> Noise:
        deviation = Fraction(self.sigma or 0) * Fraction(self.sensitivity)
        fineness = fineness_for(deviation)
        return Noise(GaussianLaw((deviation * fineness) ** 2 + SMOOTHING_VARIANCE), half=fineness // 2)

    def _grid_noise(self, dimension: int) -> Noise:
        sensitivity, sigma = Fraction(self.sensitivity), Fraction(self.sigma or 0)
        spread = math.isqrt(dimension - 1) + 1
        if self.grid is None:
            grid = Grid.fitting(sensitivity, sigma * sensitivity, spread, can_be_given=True)
        else:
            grid = Grid(Fraction(self.grid))
        steps_apart = sensitivity / grid.step + spread
        return Noise(GaussianLaw((sigma * steps_apart) ** 2 + SMOOTHING_VARIANCE), grid)

    def _half_width(self, level: float, noise: Noise) -> int:
        assert isinstance(noise.law, GaussianLaw)
        return noise.rounded(gaussian_half_width(noise.law.variance, level))


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Gaussian):
    """Discrete Gaussian noise for integers, given by rho or sigma: the law on the integers itself."""

    def __post_init__(self) -> None:
        if self.epsilon is not None or self.delta is not None or self.grid is not None:
            raise InvalidInput("discrete Gaussian noise is given by rho or sigma alone; use Gaussian for anything else")
        Gaussian.__post_init__(self)
        object.__setattr__(self, "integers", True)

    @property
    def event(self) -> Event:
        return events.DiscreteGaussian(
            sigma=rounded_down(Fraction(self.sigma or 0)),
            sensitivity=rounded_down(Fraction(self.sensitivity)),
            under=self.relation,
        )

    def _integer_noise(self) -> Noise:
        return Noise(GaussianLaw((Fraction(self.sigma or 0) * Fraction(self.sensitivity)) ** 2))

    def _grid_noise(self, dimension: int) -> Noise:
        raise self._integers_only_error()

    def _integers_only_error(self) -> WrongType:
        return WrongType("discrete Gaussian noise is for integers; use Gaussian for real numbers", name="value")


def fineness_for(deviation: Fraction) -> int:
    """Return the least odd factor that makes a standard deviation 512 steps or more.

    The smoothing then widens the noise by less than one part in 30,000. Factors end at 2^50 + 1: noise that needs a
    greater one is all but surely 0 after rounding, and a sampler's int64 holds the lattice points.
    """
    least = -(-512 // deviation)
    return min(int(least) | 1, FINENESS_MAX)


def gaussian_half_width(variance: Fraction, level: float) -> int:
    """Return the least k with P(|X| <= k) >= level, or one step more where the lattice is too fine to sum over."""
    law = GaussianLaw(variance)
    if law.block_bits:
        return math.ceil(-NormalDist().inv_cdf((1 - level) / 2) * math.sqrt(variance)) + 1
    weights = np.exp(-law.exponents(np.arange(law.reach(50) + 1, dtype=np.float64)))
    within = 2 * np.cumsum(weights) - 1
    return int(np.searchsorted(within, level * within[-1], side="left"))
