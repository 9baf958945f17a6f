"""The noises of a fit: of sums that are released at once, and of rounds of which each may depend on earlier results.

Promise: the noises together cost no more than was allocated, whatever is asked in later rounds. Epsilons of Laplace
noise add up (basic composition, also adaptive). Gaussian noises of sigma_i, over their L2 sensitivities, are together
as one of sigma with 1 / sigma^2 = the sum of 1 / sigma_i^2, also where they are chosen adaptively (Dong, Roth, Su 2019,
corollary 3.3 and theorem 3.2), so that sigma is found by the exact curve of one Gaussian (Balle, Wang 2018) and the
event is counted at the delta of the allocation (`ModelPlan.delta`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tacit.accounting.closed_forms import sigma_for, sigma_for_rho
from tacit.learn.estimators.model_plan import ModelPlan, deviation
from tacit.measuring.allocation import MARGIN, Allocation, Noise, NoiseFamily, is_gaussian_narrower
from tacit.mechanisms import Gaussian
from tacit.privacy.events import Event, Repeated, composed

ROUNDING: Final = 1 + 2.0**-40
"""Factor on sigma, above all rounding of square roots."""


@dataclass(frozen=True)
class Measurement:
    """A measurement that is taken `times` times: its share of the budget, and how far one row moves it.

    `length` is the distance in L1 for Laplace noise and in L2 for Gaussian noise, in steps.
    """

    share: float
    times: int
    length: int


@dataclass(frozen=True)
class RoundNoises:
    """The noise of each measurement."""

    noises: tuple[Noise, ...]
    times: tuple[int, ...]

    @classmethod
    def of(cls, allocation: Allocation, laplace: Sequence[Measurement], gaussian: Sequence[Measurement]) -> RoundNoises:
        """Return the noise with the smaller variance of the last measurement, on average over its rounds."""
        if allocation.epsilon is not None and not allocation.delta:
            return cls.laplace(allocation, laplace)
        normal = cls.gaussian(allocation, gaussian)
        if allocation.epsilon is None:
            return normal
        pure = cls.laplace(allocation, laplace)
        return min(pure, normal, key=lambda one: deviation(one.noises[-1]) ** 2 / one.times[-1])

    @classmethod
    def laplace(cls, allocation: Allocation, measurements: Sequence[Measurement]) -> RoundNoises:
        """Return Laplace noise for an epsilon."""
        parts = allocation.divided(*(one.share for one in measurements))
        noises = [part.repeated(one.times).noise(one.length) for part, one in zip(parts, measurements, strict=True)]
        return cls(tuple(noises), tuple(one.times for one in measurements))

    @classmethod
    def gaussian(cls, allocation: Allocation, measurements: Sequence[Measurement]) -> RoundNoises:
        """Return Gaussian noise for an epsilon at the allocation's delta, or for a rho."""
        sigma = total_sigma(allocation)
        whole = math.fsum(one.share for one in measurements)
        noises = []
        for one in measurements:
            own = sigma * math.sqrt(one.times * whole / one.share) * ROUNDING
            noises.append(Gaussian(one.length * allocation.row_sensitivity, sigma=own, relation=allocation.relation))
        return cls(tuple(noises), tuple(one.times for one in measurements))

    @property
    def law(self) -> NoiseFamily:
        """The law of all noises."""
        return "Gaussian" if isinstance(self.noises[0], Gaussian) else "Laplace"

    @property
    def order(self) -> Literal[1, 2]:
        """The norm in which sensitivities are measured: 1 for Laplace, 2 for Gaussian noise."""
        return 2 if self.law == "Gaussian" else 1

    @property
    def event(self) -> Event:
        """The event of all measurements."""
        return composed(
            [
                noise.event if times == 1 else Repeated(noise.event, times)
                for noise, times in zip(self.noises, self.times, strict=True)
            ]
        )


@dataclass(frozen=True)
class RoundsPlan(ModelPlan):
    """The plan of a model that is found in rounds of measurements."""

    noises: RoundNoises

    @property
    def noises_event(self) -> Event:
        return self.noises.event


def least_noises(
    allocation: Allocation, reaches: Sequence[int], weights: Sequence[float] | None = None
) -> tuple[Noise, ...]:
    """Return the narrower noise for several sums, each of which one row moves by at most its reach."""
    if allocation.epsilon is None or not allocation.delta or not reaches:
        return allocation.noises(reaches, weights)
    pure = allocation.without_delta().noises(reaches, weights)
    rho = MARGIN / (2 * total_sigma(allocation) ** 2)
    normal = replace(allocation, epsilon=None, rho=rho).noises(reaches, weights)
    return normal if is_gaussian_narrower(normal, pure) else pure


def total_sigma(allocation: Allocation) -> float:
    """Return the sigma of one Gaussian that takes the whole allocation, an epsilon at its delta or a rho."""
    if allocation.epsilon is None:
        return sigma_for_rho(allocation.rho)
    return sigma_for(allocation.epsilon, allocation.delta)
