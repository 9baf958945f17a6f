"""Whether bounds enclose the truth: the one checker for accountants, and for accountants with a planted bug.

A case is an event together with the curves of its worst neighbours, worked out in `truth`. An upper epsilon is sound
when no curve is above delta there, a lower one when some curve is; nothing has to be inverted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mpmath import mpf

from tacit.accounting import Bound, delta, epsilon
from tacit.accounting.composition import Composition
from tacit.privacy import events
from tacit.privacy.events import Event
from tests.unit.accounting import truth
from tests.unit.accounting.truth import Law, Real

QUADRATURE = mpf(10) ** -13
"""How much of a delta is left to the rounding of the integrals in `truth`."""

Curve = Callable[[Real], mpf]


class Unsound(AssertionError):
    """A bound lies on the wrong side of the truth."""


@dataclass(frozen=True)
class Case:
    """An event and the curves of neighbours: of the worst ones, or, where `is_worst` is false, of some."""

    event: Event
    curves: Sequence[Curve] = field(repr=False)
    is_worst: bool = True

    def delta(self, at: Real) -> mpf:
        """Return the true delta at an epsilon."""
        return max(curve(at) for curve in self.curves)

    @cached_property
    def pure(self) -> float:
        """Where the curves end, nearly; infinity where they do not."""
        return epsilon(self.event, 0).upper


def check_epsilon(case: Case, bound: Bound, at: float) -> None:
    """Refuse an upper epsilon at which the true delta is above `at`, and a lower one at which it is below."""
    if not 0 <= bound.lower <= bound.upper:
        raise Unsound(f"{case.event}: {bound} is no interval")
    if math.isfinite(bound.upper) and (true := case.delta(bound.upper)) > at * (1 + QUADRATURE):
        raise Unsound(f"{case.event}: delta at {bound.upper} is {float(true)}, above {at}")
    if case.is_worst and bound.lower and (true := case.delta(bound.lower)) < at * (1 - QUADRATURE):
        raise Unsound(f"{case.event}: delta at {bound.lower} is {float(true)}, below {at}")


def check_delta(case: Case, bound: Bound, at: float) -> None:
    """Refuse bounds on delta at epsilon `at` that do not enclose the true one."""
    true = case.delta(at)
    if bound.upper < true * (1 - QUADRATURE):
        raise Unsound(f"{case.event}: delta at {at} is {float(true)}, above {bound}")
    if case.is_worst and bound.lower > true * (1 + QUADRATURE):
        raise Unsound(f"{case.event}: delta at {at} is {float(true)}, below {bound}")


def check(case: Case, at: float) -> Bound:
    """Hold both questions to the truth, epsilon at delta `at` and delta in the middle of what was found."""
    bound = epsilon(case.event, at)
    check_epsilon(case, bound, at)
    if 0 < bound.upper < math.inf:
        check_delta(case, delta(case.event, bound.upper * 0.75), bound.upper * 0.75)
    return bound


def by_lattice(event: Event) -> Event:
    """Return the same event with nothing added to it, but no longer in closed form."""
    return events.Composed((event, events.Pure(0.0, under=event.relation)))


def plan(event: Event) -> Composition:
    """Return the plan of an event that has one."""
    made = Composition.of(event)
    assert made is not None
    return made


def pure(count: int, size: float) -> Case:
    """Pure releases: the optimal composition theorem."""
    return Case(events.Repeated(events.Pure(size), count), [lambda at: truth.pure_fold(size, count, at)])


def laplace(count: int, size: float) -> Case:
    """Laplace noise, by exact convolution."""
    return Case(events.Repeated(events.Laplace(size), count), [lambda at: truth.laplace_fold(size, count, at)])


def gaussian(count: int, sigma: float) -> Case:
    """Gaussian noise on the lattice, against its closed form."""
    mu = truth.mpf(count) ** truth.mpf(0.5) / truth.mpf(sigma)
    event = by_lattice(events.Repeated(events.Gaussian(sigma), count))
    return Case(event, [lambda at: truth.gaussian_delta(mu, at)])


def sampled(base: truth.Base, inner: Event, rate: float) -> Case:
    """One release on a Poisson sample, in both directions."""
    laws = [truth.Sampled(base, rate, addition) for addition in (False, True)]
    return Case(events.Sampled(rate, inner), [law.delta for law in laws])


def sampled_twice(base: truth.Base, inner: Event, rate: float) -> Case:
    """Two releases, each on a Poisson sample, in both directions."""
    laws = [truth.Sampled(base, rate, addition) for addition in (False, True)]
    return Case(events.Repeated(events.Sampled(rate, inner), 2), [_twice(law, law) for law in laws])


def mixed(first: Law, second: Law, *parts: Event) -> Case:
    """Two different releases."""
    return Case(events.Composed(parts), [_twice(first, second)])


def _twice(first: Law, second: Law) -> Curve:
    return lambda at: truth.twice(first, second, at)
