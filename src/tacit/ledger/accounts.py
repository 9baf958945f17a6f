"""Accounts: each adds up one measure of privacy loss, by a filter that is sound under full adaptivity.

    sum       epsilon and delta of each event (basic composition: Rogers, Roth, Ullman, Vadhan 2016); of a `Converted`
              event, whose parameters are fixed before it is run, the epsilon of its loss distribution at its delta
    zcdp      rho and delta, delta-approximate zero-concentrated privacy (Whitehouse, Ramdas, Rogers, Wu 2023)
    renyi     Rényi divergence at one order fixed in advance (Feldman, Zrnic 2021)
    gdp       mu squared (Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2022)

The price of an event in an account is a function of the event and of the cap alone, never of earlier charges. A
negative number or NaN from an accountant, for an event or for any of its parts, counts as no bound. Noise is never
free: a price that was rounded to 0 is raised to `least_units`. Privacy loss distributions (PLD) never decide when a run
is stopped, because one that is stopped by them can lose more than they say (tests/unit/ledger/test_counterexample.py);
of one event with fixed parameters they are a valid (epsilon, delta).

How delta is shared: a tenth for the deltas in `sum`, a tenth for those in `zcdp`, the rest for the one conversion from
the named measure. The conversion leaves out 2^-40 of its share, which pays for the widening of the delta caps.

Caps that people wrote are widened by 2^-44 of themselves. Decimals have no exact doubles (ten times 0.1 is above 1 by
5.6e-17) and every composition is rounded up, so without it the last of ten charges of 0.1 would not fit into 1. The
promise for epsilon is therefore kept to thirteen digits; for delta it is kept exactly, as said above. A `guarantee` is
never below the amounts that it stands for; only texts for people round it to a decimal nearby (`figures.at_most`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from tacit.accounting import epsilon as epsilon_at
from tacit.accounting.conversions import (
    epsilon_of_mu,
    epsilon_of_renyi,
    epsilon_of_rho,
    mu_for,
    renyi_for,
    rho_for,
)
from tacit.accounting.measures import approximate_zcdp, gaussian_mu, pure_epsilon, renyi
from tacit.accounting.parts import parts
from tacit.ledger.amounts import Amount, ceil_float, ceil_square_units, ceil_units, floor_units, is_within
from tacit.ledger.caps import ORDER_MAX, Cap
from tacit.privacy.errors import OutOfRange, TacitError
from tacit.privacy.events import Approximate, Composed, CompoundEvent, Converted, Event, Grouped, Repeated
from tacit.privacy.numbers import rounded_down, rounded_up

Computed = TypeVar("Computed")

WIDENING: Final = Fraction(1, 2**44)
DELTA_SHARE: Final = Fraction(1, 10)
CONVERSION_LOSS: Final = 1 - Fraction(1, 2**40)
ROUNDING_SHARE: Final = Fraction(1, 100)
"""The share of delta that `epsilon_admitting` leaves out, so that a cap admits its rho despite rounding."""
SLICES: Final = 1024
"""How many parts the delta share of `sum` has; an event that has only a rho takes one."""

RHO_MAX: Final = 2.0**40
"""Above any cap; beyond it conversions are not accurate."""
FAILURES: Final = (ArithmeticError, ValueError, TacitError)
"""Errors of arithmetic that fails for parameters of extreme size."""


class Measured:
    """The measures of one event, each computed once.

    Where an accountant fails, or returns a number that is no cost, the measure is infinite. There is no lock: prices
    are computed while a store's write lock is held, and a forked child would inherit it locked (before Python 3.12
    `functools.cached_property` has one, shared by all objects). Two threads may compute the same measure.
    """

    def __init__(self, event: Event) -> None:
        self.event = event
        self._known: dict[object, Any] = {}

    @property
    def pure(self) -> float:
        """Pure epsilon, or infinity."""
        return self._once("pure", lambda: _measure(lambda event: (pure_epsilon(event),), self.event)[0])

    @property
    def concentrated(self) -> tuple[float, float]:
        """(rho, delta) of approximate zero-concentrated privacy, or (infinity, 0)."""

        def compute() -> tuple[float, float]:
            rho, *delta = _measure(approximate_zcdp, self.event)
            return (rho, delta[0]) if rho <= RHO_MAX else (math.inf, 0.0)

        return self._once("concentrated", compute)

    @property
    def mu(self) -> float:
        """Mu of Gaussian privacy, or infinity."""
        return self._once("mu", lambda: _measure_quietly(lambda event: (gaussian_mu(event),), self.event)[0])

    def renyi(self, order: float) -> float:
        """Rényi divergence at an order, or infinity."""
        return self._once(order, lambda: _measure_quietly(lambda event: (renyi(event, order),), self.event)[0])

    def _once(self, name: object, compute: Callable[[], Computed]) -> Computed:
        if name not in self._known:
            self._known[name] = compute()
        known: Computed = self._known[name]
        return known


def _measure(measure: Callable[[Event], tuple[float, ...]], event: Event) -> tuple[float, ...]:
    """Return a measure of an event, or infinity if it fails or is no cost.

    It is computed for every part as well: a sum may hide that one of its terms is negative.
    """
    try:
        said = [measure(one) for one in _with_parts(event)]
    except FAILURES:
        return (math.inf,)
    return said[0] if all(number >= 0 for numbers in said for number in numbers) else (math.inf,)


def _measure_quietly(measure: Callable[[Event], tuple[float, ...]], event: Event) -> tuple[float, ...]:
    """Return the same without numpy's warnings: an overflow is infinite or NaN."""
    with np.errstate(all="ignore"):
        return _measure(measure, event)


def _with_parts(event: Event) -> Sequence[Event]:
    """Return an event and all of its parts, each once."""
    if not isinstance(event, CompoundEvent):
        return (event,)
    found: dict[Event, None] = {event: None}
    waiting = [event]
    while waiting:
        new = dict.fromkeys(part for part in waiting.pop().parts if part not in found)
        found |= new
        waiting += [part for part in new if isinstance(part, CompoundEvent)]
    return tuple(found)


def least_units(event: Event) -> int:
    """Return the least number of units that an event is charged: one for each noise in it that is not free.

    So no release is free because its cost was rounded to 0, however often it is repeated. Noise is free if its epsilon,
    delta and rho are exactly 0.
    """
    if not isinstance(event, CompoundEvent):
        numbers = [getattr(event, name) for name in ("epsilon", "delta", "rho") if hasattr(event, name)]
        return int(any(numbers) or not numbers)
    match event:
        case Repeated(inner, count) | Grouped(inner, count):
            return count * least_units(inner)
        case Composed(several):
            return sum(map(least_units, several))
        case _:
            return max(map(least_units, event.parts))


@dataclass(frozen=True, slots=True)
class Account(ABC):
    """The sum of one measure of privacy loss, with the caps on its total."""

    name: ClassVar[str]
    caps: tuple[int, ...]

    @abstractmethod
    def price(self, measured: Measured) -> Amount:
        """Return the cost of an event in this account, or None where no bound is known."""

    @abstractmethod
    def guarantee(self, total: tuple[int, ...]) -> tuple[float, float]:
        """Return the (epsilon, delta) of a total, rounded up."""

    def holds(self, total: Amount) -> bool:
        """Whether a total is within the cap."""
        return is_within(total, self.caps)


@dataclass(frozen=True, slots=True)
class SumAccount(Account):
    """Sums of epsilon and of delta; an event that has only a rho or a divergence is converted at the delta `slice`."""

    name = "sum"
    slice: float
    order: float | None = None

    @classmethod
    def of(cls, cap: Cap) -> SumAccount:
        """Return the account of any cap."""
        share = DELTA_SHARE * Fraction(cap.delta)
        caps = (floor_units(Fraction(cap.epsilon) * (1 + WIDENING)), floor_units(share * (1 + WIDENING)))
        return cls(caps, slice=rounded_down(share / SLICES), order=cap.order)

    def price(self, measured: Measured) -> Amount:
        epsilon, delta = self.approximate(measured)
        units, delta_units = ceil_units(epsilon), ceil_units(delta)
        return None if units is None or delta_units is None else (units, delta_units)

    def approximate(self, measured: Measured) -> tuple[float, float]:
        """Return the (epsilon, delta) that an event is charged, epsilon possibly infinite.

        The least of several valid prices: that of the whole, or the sum over its parts (basic composition), where parts
        with an epsilon of their own are added as they are and all others are converted together.
        """
        if math.isfinite(measured.pure) and not (self.slice and isinstance(measured.event, Converted)):
            return measured.pure, 0.0
        if isinstance(measured.event, Approximate):
            return measured.event.epsilon, measured.event.delta
        is_simple = not isinstance(measured.event, CompoundEvent)
        own, rest = ((0.0, 0.0), measured.event) if is_simple else _split_stated(measured.event)
        if rest is None:
            return own
        if not self.slice:
            return math.inf, 0.0
        whole = self._converted(measured)
        if own == (0.0, 0.0):
            return whole
        others = self._converted(Measured(rest))
        summed = math.nextafter(own[0] + others[0], math.inf), math.nextafter(own[1] + others[1], 1.0)
        return min(whole, summed)

    def _converted(self, measured: Measured) -> tuple[float, float]:
        """Return the (epsilon, delta) of a rho or a divergence, at the delta `slice`."""
        rho, delta = measured.concentrated
        converted = (epsilon_of_rho(rho, self.slice), math.nextafter(delta + self.slice, 1.0))
        if self.order is None:
            return converted
        divergence = measured.renyi(self.order)
        return min(converted, (epsilon_of_renyi(self.order, divergence, self.slice), self.slice))

    def guarantee(self, total: tuple[int, ...]) -> tuple[float, float]:
        epsilon, delta = total
        return ceil_float(epsilon), min(ceil_float(delta), 1.0)


@lru_cache(maxsize=256)
def _epsilon_of_converted(event: Converted) -> float:
    """Return the epsilon of an event's loss distribution at its delta; cached, as computing it may take seconds."""
    found = epsilon_at(event.event, event.delta).upper
    return found if found >= 0 else math.inf


def _split_stated(event: Event) -> tuple[tuple[float, float], Event | None]:
    """Return the total (epsilon, delta) of the parts that have one of their own, and the other parts as one event."""
    epsilon, delta, rest = Fraction(0), Fraction(0), []
    try:
        for part, count in steps(event).items():
            if isinstance(part, Converted):
                epsilon += count * Fraction(_epsilon_of_converted(part))
                delta += count * Fraction(part.delta)
            else:
                rest.append(part if count == 1 else Repeated(part, count))
        more, others = _split_parts(Composed(tuple(rest))) if rest else ((0.0, 0.0), None)
        return (rounded_up(epsilon + Fraction(more[0])), rounded_up(delta + Fraction(more[1]))), others
    except FAILURES:
        return (math.inf, 0.0), event


def steps(event: Event) -> Counter[Event]:
    """Return the events that are run one after another, with how often: repetition and composition are flattened."""
    counts: Counter[Event] = Counter()
    waiting = [(event, 1)]
    while waiting:
        one, count = waiting.pop()
        if isinstance(one, Repeated):
            waiting.append((one.event, count * one.count))
        elif isinstance(one, Composed):
            waiting += [(part, count) for part in one.events]
        else:
            counts[one] += count
    return counts


def _split_parts(event: Event) -> tuple[tuple[float, float], Event | None]:
    """Return the same for an event without parts that are converted."""
    epsilon, delta, others = Fraction(0), Fraction(0), []
    try:
        for part, count in parts(event).items():
            if isinstance(part, Approximate):
                epsilon, delta = epsilon + count * Fraction(part.epsilon), delta + count * Fraction(part.delta)
            elif math.isfinite(pure := Measured(part).pure):
                epsilon += count * Fraction(pure)
            else:
                others.append(part if count == 1 else Repeated(part, count))
    except FAILURES:
        return (math.inf, 0.0), event
    rest = Composed(tuple(others)) if others else None
    return (rounded_up(epsilon), rounded_up(delta)), rest


@dataclass(frozen=True, slots=True)
class NamedAccount(Account):
    """The account of a cap's filter; its total is converted to epsilon once, at `delta`."""

    delta: float = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class ConcentratedAccount(NamedAccount):
    """Rho and delta of approximate zero-concentrated privacy."""

    name = "zcdp"

    @classmethod
    def of(cls, cap: Cap) -> ConcentratedAccount:
        """Return the account of a zcdp cap."""
        share = DELTA_SHARE * Fraction(cap.delta)
        delta = rounded_down((1 - 2 * DELTA_SHARE) * Fraction(cap.delta) * CONVERSION_LOSS)
        caps = (floor_units(Fraction(rho_for(cap.epsilon, delta))), floor_units(share * (1 + WIDENING)))
        return cls(caps, delta=delta)

    def price(self, measured: Measured) -> Amount:
        rho, delta = map(ceil_units, measured.concentrated)
        return None if rho is None or delta is None else (rho, delta)

    def guarantee(self, total: tuple[int, ...]) -> tuple[float, float]:
        rho, delta = map(ceil_float, total)
        return (epsilon_of_rho(rho, self.delta), min(self.delta + delta, 1.0)) if rho else (0.0, min(delta, 1.0))


def epsilon_admitting(rho: float, delta: float) -> float:
    """Return the epsilon of a zcdp cap with this delta that admits exactly one event of `rho`.

    It is converted at 79/100 of delta, a little less than the share at which the account converts its cap to rho. At a
    smaller delta epsilon is larger, so the cap admits the rho despite rounding.
    """
    share = 1 - 2 * DELTA_SHARE - ROUNDING_SHARE
    return epsilon_of_rho(rho, rounded_down(share * Fraction(delta)))


@dataclass(frozen=True, slots=True)
class RenyiAccount(NamedAccount):
    """Rényi divergence at one order."""

    name = "renyi"
    order: float = field(kw_only=True)

    @classmethod
    def of(cls, cap: Cap) -> RenyiAccount:
        """Return the account of a renyi cap."""
        delta = rounded_down((1 - DELTA_SHARE) * Fraction(cap.delta) * CONVERSION_LOSS)
        order = cap.order or 0.0
        divergence_max = renyi_for(order, cap.epsilon, delta)
        if divergence_max <= 0:
            enough = 1 - math.log(delta) / cap.epsilon
            way_out = f"no order up to {ORDER_MAX:g} does: use a larger epsilon or delta"
            if enough <= ORDER_MAX:
                way_out = f"use an order of {math.ceil(enough)} or more"
            raise OutOfRange(
                f"order {order:g} admits no event within epsilon {cap.epsilon:g}; {way_out}", name="order", value=order
            )
        return cls((floor_units(Fraction(divergence_max)),), delta=delta, order=order)

    def price(self, measured: Measured) -> Amount:
        divergence = ceil_units(measured.renyi(self.order))
        return None if divergence is None else (divergence,)

    def guarantee(self, total: tuple[int, ...]) -> tuple[float, float]:
        divergence = ceil_float(total[0])
        return (epsilon_of_renyi(self.order, divergence, self.delta), self.delta) if divergence else (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class GaussianAccount(NamedAccount):
    """Mu squared of Gaussian privacy."""

    name = "gdp"

    @classmethod
    def of(cls, cap: Cap) -> GaussianAccount:
        """Return the account of a gdp cap."""
        delta = rounded_down((1 - DELTA_SHARE) * Fraction(cap.delta) * CONVERSION_LOSS)
        return cls((floor_units(Fraction(mu_for(cap.epsilon, delta)) ** 2),), delta=delta)

    def price(self, measured: Measured) -> Amount:
        squared = ceil_square_units(measured.mu)
        return None if squared is None else (squared,)

    def guarantee(self, total: tuple[int, ...]) -> tuple[float, float]:
        mu = math.nextafter(math.sqrt(ceil_float(total[0])), math.inf) if total[0] else 0.0
        return (epsilon_of_mu(mu, self.delta), self.delta) if mu else (0.0, 0.0)
