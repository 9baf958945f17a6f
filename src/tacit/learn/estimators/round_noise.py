"""Noise of several rounds of measurements, of which each may depend on the results of earlier ones.

Promise: the noises of all rounds together cost no more than was allocated, whatever is asked in later rounds. Epsilons
of Laplace noise add up (basic composition, also adaptive). Gaussian noises of sigma_i, over their L2 sensitivities, are
together as one of sigma with 1 / sigma^2 = the sum of 1 / sigma_i^2, also where they are chosen adaptively (Dong, Roth,
Su 2019, corollary 3.3 and theorem 3.2), so that sigma is found by the exact curve of one Gaussian (Balle, Wang 2018)
and the event is counted at its delta (`Converted`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from tacit.accounting.closed_forms import sigma_for, sigma_for_rho
from tacit.learn.estimators.model_plan import deviation
from tacit.ledger.accounts import DELTA_SHARE
from tacit.measuring.allocation import Allocation, Noise, NoiseFamily
from tacit.mechanisms import Gaussian
from tacit.privacy.events import Converted, Event, Repeated, composed
from tacit.privacy.numbers import rounded_down
from tacit.stats.preparation import StatisticInputs

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
    """The noise of each measurement, and the delta at which Gaussian noise is counted (None: by its rho)."""

    noises: tuple[Noise, ...]
    times: tuple[int, ...]
    delta: float | None = None

    @classmethod
    def of(
        cls, allocation: Allocation, delta: float, laplace: Sequence[Measurement], gaussian: Sequence[Measurement]
    ) -> RoundNoises:
        """Return the noise with the smaller variance of the last measurement, on average over its rounds.

        `delta` is what the rounds may take of the budget, 0 for none.
        """
        if allocation.epsilon is not None and not delta:
            return cls.laplace(allocation, laplace)
        normal = cls.gaussian(allocation, gaussian, delta)
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
    def gaussian(cls, allocation: Allocation, measurements: Sequence[Measurement], delta: float) -> RoundNoises:
        """Return Gaussian noise for an epsilon at delta, or for a rho."""
        sigma = total_sigma(allocation, delta)
        whole = math.fsum(one.share for one in measurements)
        noises = []
        for one in measurements:
            own = sigma * math.sqrt(one.times * whole / one.share) * ROUNDING
            noises.append(Gaussian(one.length * allocation.row_sensitivity, sigma=own, relation=allocation.relation))
        return cls(tuple(noises), tuple(one.times for one in measurements), None if allocation.rho else delta)

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
        parts = [
            noise.event if times == 1 else Repeated(noise.event, times)
            for noise, times in zip(self.noises, self.times, strict=True)
        ]
        return composed(parts) if self.delta is None else Converted(composed(parts), self.delta)


def total_sigma(allocation: Allocation, delta: float) -> float:
    """Return the sigma of one Gaussian that takes the whole allocation, an epsilon at delta or a rho."""
    if allocation.epsilon is None:
        return sigma_for_rho(allocation.rho)
    return sigma_for(allocation.epsilon, delta)


def delta_for(inputs: StatisticInputs, shared: Any) -> float:
    """Return the delta of a fit: all that the sum of its own budget has, or one release's share of a `shared` one."""
    if shared is None and not inputs.is_registered:
        return rounded_down(Fraction(inputs.budget.cap.delta) * DELTA_SHARE)
    return inputs.allocation.delta
