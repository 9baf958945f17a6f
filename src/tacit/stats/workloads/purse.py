"""What a workload may spend, under one law of noise, and the noises that this buys.

Laplace noise is paid in epsilon, which is shared among measurements by its sum; Gaussian noise is paid in rho, likewise
(Bun and Steinke 2016). The law is chosen by the caller from the expected errors: with unit noise a workload has the
mean squared error `error`; with Laplace noise that is times 2 (moved / epsilon)^2, with Gaussian noise times
moved^2 / (2 rho), `moved` being how many rows differ between neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal

from tacit.accounting.conversions import rho_for
from tacit.accounting.gaussian import sigma_for_rho
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.gaussian import SMOOTHING_VARIANCE, fineness_for
from tacit.privacy.numbers import Real
from tacit.stats.funds import Funds, Noise

Law = Literal["Laplace", "Gaussian"]
_KEPT: Final = 1 - 2.0**-40
"""Sums of rho in doubles may lose so much, so that the price is never above what was asked for."""
_LEAST: Final = 2.0**-30
"""Variances below this are taken for this one: noise that is hardly ever anything but 0."""


@dataclass(frozen=True, slots=True)
class Purse:
    """An amount of epsilon or of rho, and how many rows differ between neighbours."""

    law: Law
    funds: Funds
    rho: float
    moved: int

    @classmethod
    def ways(cls, funds: Funds, per_unit: int) -> tuple[Purse, ...]:
        """Return the laws that the funds allow."""
        moved = per_unit * funds.touched
        if funds.rho is not None:
            return (cls("Gaussian", funds, funds.rho * _KEPT, moved),)
        pure = cls("Laplace", funds, 0.0, moved)
        if not funds.delta:
            return (pure,)
        return pure, cls("Gaussian", funds, rho_for(float(funds.epsilon or 0) * _KEPT, funds.delta) * _KEPT, moved)

    @property
    def unit(self) -> float:
        """The variance of noise that takes the whole purse, on something that a row moves by 1."""
        if self.law == "Laplace":
            return 2 * (self.moved / float(self.funds.epsilon or 1)) ** 2
        return self.moved**2 / (2 * self.rho)

    def parted(self, weights: Sequence[float]) -> tuple[Purse, ...]:
        """Part the purse in proportion to weights."""
        if self.law == "Laplace":
            return tuple(replace(self, funds=one) for one in self.funds.shares(*weights))
        total = math.fsum(weights)  # the same in every version of Python, as is the event
        return tuple(replace(self, rho=self.rho * (weight / total) * _KEPT) for weight in weights)

    def noise(self, length: Real = 1) -> Noise:
        """Return the noise for sums of which one row moves all together by `length`: in L1 (Laplace), L2 (Gaussian)."""
        reach = Fraction(length) * self.moved
        if self.law == "Laplace":
            return Laplace(reach, self.funds.epsilon or 0, relation=self.funds.relation)
        return Gaussian(reach, sigma=sigma_for_rho(self.rho), relation=self.funds.relation)

    def noises(self, weights: Sequence[float]) -> tuple[Noise, ...]:
        """Return the noises of several vectors, of each of which one row moves one number by 1."""
        return tuple(one.noise() for one in self.parted(weights))


def cheapest(purses: Sequence[Purse], error: Callable[[Law], float]) -> Purse:
    """Return the purse under whose law the expected error is least."""
    return min(purses, key=lambda purse: purse.unit * error(purse.law))


def variance(noise: Noise) -> float:
    """Return the variance of a noise on whole numbers, nearly."""
    if isinstance(noise, Laplace):
        inverse = 1 / float(noise.scale)
        if inverse > 50:
            return _LEAST
        return max(1 / (math.cosh(inverse) - 1), _LEAST) if inverse > 1e-6 else 2 / inverse**2
    deviation = Fraction(noise.sigma or 0) * Fraction(noise.sensitivity)
    fineness = fineness_for(deviation)
    return float(deviation**2) + SMOOTHING_VARIANCE / fineness**2 + (1 - 1 / fineness**2) / 12
