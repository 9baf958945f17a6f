"""Allocation: the budget of one release, its division over measurements, and the noise of each part.

Promise: the events of noise and of pure mechanisms that are made from the parts of an allocation cost no more than
was asked for. Epsilon is divided in exact fractions, each part rounded down to a double, and parts add up (basic
composition); rho likewise (Bun, Steinke 2016). A rho that is asked for, and an epsilon that is converted to rho, is
first reduced by `MARGIN`: a part of rho is off by a few roundings of 2^-53, however many parts there are.

Several measurements get Laplace noise scaled to their L1 sensitivity or Gaussian noise scaled to their L2 sensitivity,
all of them the same, whichever gives the narrower intervals on geometric average; Gaussian noise needs a delta in the
budget. The choice depends on shares and on ratios of sensitivities alone, not on bounds, so that the event is known
before bounds are learnt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

from tacit.accounting.closed_forms import sigma_for_rho
from tacit.accounting.conversions import rho_for
from tacit.ledger import Budget
from tacit.ledger.accounts import SumAccount
from tacit.ledger.caps import Cap
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy.errors import InvalidInput, NeedsDelta
from tacit.privacy.numbers import DEFAULT_LEVEL, Real, positive, rounded_down
from tacit.privacy.units import Relation

MARGIN: Final = 1 - 2.0**-40
"""Factor on a rho, and on an epsilon that is converted to rho, so that rounding never exceeds what was asked for."""

NoiseFamily: TypeAlias = Literal["Laplace", "Gaussian"]
Noise: TypeAlias = Laplace | Gaussian


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """What a budget allows one release: its relation, and the delta that the release may take of it (0: none)."""

    relation: Relation = Relation.ADD_REMOVE
    delta: float = 0.0
    way_to_delta: str = field(default="", compare=False)
    """How a budget without a delta gets one, as the end of a sentence."""

    @classmethod
    def of(cls, cap: Cap, way_to_delta: str = "") -> BudgetTerms:
        """Return the terms of a budget with a cap."""
        return cls(cap.relation, SumAccount.of(cap).slice, way_to_delta)


@dataclass(frozen=True, slots=True)
class Allocation:
    """An epsilon or a rho under a relation, and the delta that one release may take of its budget (0 for none)."""

    relation: Relation
    epsilon: Fraction | None = None
    rho: float | None = None
    delta: float = 0.0
    rows_per_unit: int = 1
    """Contribution bound: the number of rows of one unit that are counted."""

    @classmethod
    def of(cls, budget: Budget, epsilon: object = None, rho: object = None, rows_per_unit: int = 1) -> Allocation:
        """Return the allocation of a release that asks a budget for either epsilon or rho."""
        return cls.within(BudgetTerms.of(budget.cap), epsilon, rho, rows_per_unit)

    @classmethod
    def within(
        cls, terms: BudgetTerms, epsilon: object = None, rho: object = None, rows_per_unit: int = 1
    ) -> Allocation:
        """Return the allocation of a release that asks for either epsilon or rho, rounded down."""
        if (epsilon is None) == (rho is None):
            raise InvalidInput("pass exactly one of epsilon= and rho=", name="epsilon")
        whole = cls(terms.relation, delta=terms.delta, rows_per_unit=rows_per_unit)
        if rho is not None:
            return replace(whole, rho=float(positive("rho", rho)) * MARGIN)
        return replace(whole, epsilon=Fraction(rounded_down(positive("epsilon", epsilon))))

    @property
    def row_sensitivity(self) -> int:
        """The sensitivity of a count of rows; replacing a unit removes its rows and adds as many."""
        return self.rows_per_unit * (2 if self.relation is Relation.REPLACE_ONE else 1)

    @property
    def choice_epsilon(self) -> Fraction:
        """The epsilon of an exponential mechanism, which costs rho = epsilon^2 / 8 (Cesar, Rogers 2021, lemma 3.1)."""
        return self.epsilon if self.epsilon is not None else Fraction(math.sqrt(8 * self._rho))

    @property
    def pure_epsilon(self) -> Fraction:
        """The epsilon of any pure mechanism, which costs rho = epsilon^2 / 2 (Bun, Steinke 2016)."""
        return self.epsilon if self.epsilon is not None else Fraction(math.sqrt(2 * self._rho))

    @property
    def _rho(self) -> float:
        assert self.rho is not None
        return self.rho

    @property
    def law(self) -> NoiseFamily:
        """The noise distribution: Laplace for epsilon, Gaussian for rho."""
        return "Laplace" if self.rho is None else "Gaussian"

    @property
    def variance(self) -> float:
        """The variance of the noise on a count of rows that takes the whole allocation."""
        if self.epsilon is not None:
            return 2 * (self.row_sensitivity / float(self.epsilon)) ** 2
        return self.row_sensitivity**2 / (2 * self._rho)

    def divided(self, *weights: float) -> tuple[Allocation, ...]:
        """Return parts in proportion to weights; together they cost no more than the whole."""
        if self.rho is not None:
            total = math.fsum(weights)  # the same in every version of Python, as is the event
            return tuple(replace(self, rho=self.rho * weight / total) for weight in weights)
        assert self.epsilon is not None
        exact = [Fraction(weight) for weight in weights]
        each = self.epsilon / sum(exact)
        parts = [Fraction(rounded_down(each * weight)) for weight in exact[:-1]]
        parts.append(Fraction(rounded_down(self.epsilon - sum(parts))))
        return tuple(replace(self, epsilon=part) for part in parts)

    def repeated(self, times: int) -> Allocation:
        """Return the allocation of each of `times` equal mechanisms."""
        if times == 1:
            return self
        if self.rho is not None:
            return replace(self, rho=self.rho / times)
        return replace(self, epsilon=Fraction(rounded_down(Fraction(self.epsilon or 0) / times)))

    def without_delta(self) -> Allocation:
        """Return the allocation for pure mechanisms: a release takes its delta only once."""
        return replace(self, delta=0.0)

    def require_delta(self, why: str) -> float:
        """Return the delta, or raise NeedsDelta."""
        if not self.delta:
            raise NeedsDelta(
                why, accepted="list them (keys=[...]), or ask from a budget that was set with a delta above 0"
            )
        return self.delta

    def least_error(self, error: Callable[[NoiseFamily], float]) -> Allocation:
        """Return the allocation, as epsilon or converted to rho, with the least expected error.

        `error` is the mean squared error where the noise of a count has a variance of 1.
        """
        found = [self]
        if self.epsilon is not None and self.delta:
            found.append(replace(self, epsilon=None, rho=rho_for(float(self.epsilon) * MARGIN, self.delta)))
        return min(found, key=lambda one: one.variance * error(one.law))

    def noise(self, length: Real = 1) -> Noise:
        """Return the noise for sums that one row moves together by `length`, in L1 (Laplace) or L2 (Gaussian)."""
        sensitivity = Fraction(length) * self.row_sensitivity
        if self.epsilon is not None:
            return Laplace(sensitivity, self.epsilon, relation=self.relation)
        return Gaussian(sensitivity, sigma=sigma_for_rho(self._rho), relation=self.relation)

    def noises(self, reaches: Sequence[int], weights: Sequence[float] | None = None) -> tuple[Noise, ...]:
        """Return the narrower noise for several sums, each of which one row moves by at most its reach."""
        shared = [1.0] * len(reaches) if weights is None else weights
        moved = [reach * self.row_sensitivity for reach in reaches]
        return noises(self.divided(*shared), shared, list(zip(moved, moved, strict=True)))


def noises(
    parts: Sequence[Allocation],
    weights: Sequence[float],
    sensitivities: Sequence[tuple[Real, Real]],
    *,
    places: Sequence[int] | None = None,
    times: int = 1,
) -> tuple[Noise, ...]:
    """Return the noise of measurements from their sensitivities in L1 and L2, all Laplace or all Gaussian.

    `parts` are the allocations by `weights`; `places` is the index of the part that pays for each measurement, if some
    share one (parallel composition); each measurement is taken `times` times.
    """
    if not parts:
        return ()
    relation, delta = parts[0].relation, parts[0].delta
    paid = list(zip(sensitivities, range(len(parts)) if places is None else places, strict=True))

    def gaussian(rhos: Sequence[float]) -> tuple[Noise, ...]:
        return tuple(Gaussian(l2, sigma=sigma_for_rho(rhos[at] / times), relation=relation) for (_, l2), at in paid)

    def of_sum(rho: float) -> tuple[Noise, ...]:
        return gaussian([one.rho or 0.0 for one in Allocation(relation, rho=rho).divided(*weights)])

    if parts[0].rho is not None:
        return gaussian([part.rho or 0.0 for part in parts])
    epsilons = [part.repeated(times).epsilon or 0 for part in parts]
    laplace = tuple(Laplace(l1, epsilons[at], relation=relation) for (l1, _), at in paid)
    if not delta:
        return laplace
    epsilon = float(sum(part.epsilon or 0 for part in parts)) * MARGIN
    # an upper bound on rho, cached for all epsilons nearby, rules out most cases
    if not is_gaussian_narrower(of_sum(_rho_for(float(f"{epsilon * 1.01:.2e}"), delta)), laplace):
        return laplace
    found = of_sum(rho_for(epsilon, delta))
    return found if is_gaussian_narrower(found, laplace) else laplace


def is_gaussian_narrower(gaussian: Sequence[Noise], laplace: Sequence[Noise]) -> bool:
    """Whether Gaussian noises have narrower intervals than Laplace noises, on geometric average."""
    normal = NormalDist().inv_cdf((1 + DEFAULT_LEVEL) / 2)
    by_scale = normal / -math.log(1 - DEFAULT_LEVEL)
    logarithms = []
    for one, other in zip(gaussian, laplace, strict=True):
        assert isinstance(one, Gaussian)
        assert isinstance(other, Laplace)
        spread = Fraction(one.sensitivity) / Fraction(other.sensitivity)
        logarithms.append(math.log(by_scale * float(one.sigma or 0)) + math.log(spread * Fraction(other.epsilon)))
    return math.fsum(logarithms) < 0


_rho_for = lru_cache(maxsize=1024)(rho_for)
