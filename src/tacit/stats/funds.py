"""What a statistic may spend, and the noise that this buys.

Noise on several sums at once is Laplace or Gaussian, whichever gives the narrower intervals (on geometric average) for
the same price; Gaussian noise needs a delta in the budget. The rule is that of private SQL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

from tacit.accounting.conversions import rho_for
from tacit.accounting.gaussian import sigma_for_rho
from tacit.ledger import Budget
from tacit.ledger.accounts import Sum
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy.errors import InvalidInput, NeedsDelta
from tacit.privacy.numbers import positive, rounded_down
from tacit.privacy.relations import Relation

LEVEL: Final = 0.95
_KEPT: Final = 1 - 2.0**-40
"""Conversions between rho and epsilon may lose so much, so that the price is never above what was asked for."""

Noise: TypeAlias = Laplace | Gaussian


@dataclass(frozen=True, slots=True)
class Funds:
    """An epsilon or a rho, under a relation, with the delta that one question may take of its budget (0: none)."""

    relation: Relation
    epsilon: Fraction | None = None
    rho: float | None = None
    delta: float = 0.0

    @classmethod
    def of(cls, budget: Budget, epsilon: object = None, rho: object = None) -> Funds:
        """Return what may be spent of a budget: exactly one of epsilon and rho says how much."""
        if (epsilon is None) == (rho is None):
            raise InvalidInput("a statistic is asked for epsilon= or rho=: exactly one of them", name="epsilon")
        cap = budget.cap
        delta = Sum.of(cap).slice
        if rho is not None:
            return cls(cap.relation, rho=float(positive("rho", rho)), delta=delta)
        return cls(cap.relation, epsilon=Fraction(rounded_down(positive("epsilon", epsilon))), delta=delta)

    @property
    def touched(self) -> int:
        """How many units differ between neighbours: replacing one takes one away and adds one."""
        return 2 if self.relation is Relation.REPLACE_ONE else 1

    @property
    def pure(self) -> float:
        """The epsilon that a choice may have: under rho, of which a choice takes epsilon^2 / 8."""
        if self.epsilon is not None:
            return float(self.epsilon)
        assert self.rho is not None
        return math.sqrt(8 * self.rho) * _KEPT

    @property
    def pure_noise(self) -> float:
        """The epsilon that any pure mechanism may have: under rho, of which it takes epsilon^2 / 2."""
        if self.epsilon is not None:
            return float(self.epsilon)
        assert self.rho is not None
        return math.sqrt(2 * self.rho) * _KEPT

    def shares(self, *weights: float) -> tuple[Funds, ...]:
        """Part the funds in proportion to weights; together the parts cost no more than the whole."""
        total = Fraction(sum(map(Fraction, weights)))
        if self.rho is not None:
            return tuple(replace(self, rho=self.rho * _KEPT * float(Fraction(one) / total)) for one in weights)
        assert self.epsilon is not None
        parts = [Fraction(rounded_down(self.epsilon * Fraction(one) / total)) for one in weights[:-1]]
        parts.append(Fraction(rounded_down(self.epsilon - sum(parts))))
        return tuple(replace(self, epsilon=part) for part in parts)

    def without_delta(self) -> Funds:
        """Return the same funds for mechanisms that are pure: a question takes its delta only once."""
        return replace(self, delta=0.0)

    def need_delta(self, why: str) -> float:
        """Return the delta, or refuse for want of one."""
        if not self.delta:
            raise NeedsDelta(
                why, accepted="list them (keys=[...]), or ask from a budget that was set with a delta above 0"
            )
        return self.delta

    def noises(self, reaches: Sequence[int], weights: Sequence[float] | None = None) -> tuple[Noise, ...]:
        """Return the noise of several measurements, of each of which the reach is how far one unit moves it (L1, L2).

        The funds are parted by weights. Laplace noise everywhere, or Gaussian noise everywhere.
        """
        shared = [1.0] * len(reaches) if weights is None else list(weights)
        moved = [reach * self.touched for reach in reaches]
        if self.rho is not None:
            return self._gaussians(moved, shared, self.rho * _KEPT)
        assert self.epsilon is not None
        parts = self.shares(*shared)
        laplace = tuple(
            Laplace(reach, part.epsilon or 0, relation=self.relation) for reach, part in zip(moved, parts, strict=True)
        )
        if not self.delta:
            return laplace
        rho = rho_for(float(self.epsilon) * _KEPT, self.delta)
        # Compared at a reach of 1 each, so that what is chosen, and with it the event, does not depend on bounds.
        alike = tuple(Laplace(1, part.epsilon or 0, relation=self.relation) for part in parts)
        if _narrower(self._gaussians([1] * len(moved), shared, rho), alike):
            return self._gaussians(moved, shared, rho)
        return laplace

    def _gaussians(self, reaches: Sequence[int], weights: Sequence[float], rho: float) -> tuple[Noise, ...]:
        total = math.fsum(weights)  # the same in every version of Python, as is the event
        return tuple(
            Gaussian(reach, sigma=sigma_for_rho(rho * weight / total), relation=self.relation)
            for reach, weight in zip(reaches, weights, strict=True)
        )


def half_width(noise: Noise, level: float = LEVEL) -> float:
    """Return the half-width of the interval of one number with this noise, nearly."""
    if isinstance(noise, Laplace):
        return -math.log(1 - level) * float(noise.scale)
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2)) * float(noise.scale)


def _narrower(one: Sequence[Noise], other: Sequence[Noise]) -> bool:
    pairs = zip(one, other, strict=True)
    return math.fsum(math.log(half_width(a) / half_width(b)) for a, b in pairs) < 0
