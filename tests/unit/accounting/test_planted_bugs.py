"""Bugs that accountants have had, planted one at a time: the checker that passes ours refuses each of them."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tacit.accounting import composition, conversions, delta, dominating, epsilon, loss, parts
from tacit.accounting.loss import Curve, Lattice
from tacit.accounting.pairs import (
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonSampledPair,
    WithoutReplacementPair,
    pure_pair,
)
from tacit.privacy import Relation, events
from tests.unit.accounting import checker, truth
from tests.unit.accounting.checker import Unsound

on_lattice, lattices = loss.discretize, composition._lattices


def checks() -> Iterator[Callable[[], object]]:
    """Return the checks, each a call that is refused when a bound is unsound; the longest is the last."""
    yield lambda: checker.check(checker.pure(7, 0.1003), 1e-5)
    yield lambda: checker.check(checker.laplace(3, 0.437), 1e-3)
    yield lambda: checker.check(checker.gaussian(10, 3.0), 1e-6)
    added = checker.sampled_twice(truth.Laplace(0.5), events.Laplace(0.5), 0.5)
    yield lambda: checker.check_delta(added, delta(added.event, 0.1), 0.1)
    choices = checker.Case(events.Exponential(1.0), [law.delta for law in truth.splits(1.0, 40)])
    yield lambda: checker.check(choices, 1e-3)
    group = checker.Case(events.Grouped(events.Pure(0.5), 3), [truth.geometric(1.5, 3).delta])
    yield lambda: checker.check(group, 1e-3)
    given = checker.Case(events.Approximate(0.5, 1e-4), [lambda at: truth.mpf(1e-4)])
    yield lambda: checker.check_delta(given, delta(given.event, 0.6), 0.6)
    rough = checker.laplace(3, 0.437)
    yield lambda: checker.check_epsilon(rough, epsilon(rough.event, 1e-3, width=1.0), 1e-3)
    yield responses
    yield lambda: checker.check(checker.sampled_twice(truth.Gaussian(1.0), events.Gaussian(1.0), 0.1), 1e-6)


def responses() -> None:
    inner = events.RandomizedResponse(1.0, under=Relation.REPLACE_ONE)
    bound = epsilon(events.Repeated(events.SampledWithoutReplacement(1, 2, inner), 10), 1e-3)
    if not bound.lower < 5.19 < bound.upper:  # what questions chosen on the way reach: test_without_replacement
        raise Unsound(str(bound))


def refused() -> bool:
    for check in checks():
        try:
            check()
        except Unsound:
            return True
    return False


def to_the_nearest(p: Any, scaled_q: Any, step: float, doubt: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = -np.log(scaled_q / p)
    return np.where(offset > step / 2, p, 0.0)


def without_its_tail(pair: Pair, step: float, tail: float, count: int) -> Lattice:
    return on_lattice(pair, step, 1e6 * tail, count)._replace(given_away=0.0)


def with_a_shorter_tail(pair: Pair, step: float, tail: float, count: int) -> Lattice:
    return on_lattice(pair, step, 1e6 * tail, count)


def one_less(*arguments: Any) -> list[Lattice]:
    return [one._replace(times=max(1, one.times - 1)) for one in lattices(*arguments)]


PLANTED: dict[str, list[tuple[object, str, object]]] = {
    "losses rounded to the nearest": [(loss, "_mass_moved_up", to_the_nearest)],
    "losses rounded down": [(loss, "_mass_moved_up", lambda p, *_: np.zeros_like(p))],
    "the upper tail dropped": [(composition, "discretize", without_its_tail)],
    "removal alone": [(composition, "_directions", lambda way, lower=False: (False,))],
    "addition alone": [(composition, "_directions", lambda way, lower=False: (True,))],
    "half the sensitivity of Gaussian noise": [(dominating, "GaussianPair", lambda mu: GaussianPair(mu / 2))],
    "half the sensitivity of Laplace noise": [(dominating, "LaplacePair", lambda size: LaplacePair(size / 2))],
    "half the rate": [(dominating, "PoissonSampledPair", lambda rate, *rest: PoissonSampledPair(rate / 2, *rest))],
    "one split for all choices": [(dominating, "BoundedRangePair", lambda size: dominating._two_point_pair(size))],
    "choices at half their range": [(dominating, "BoundedRangePair", lambda size: BoundedRangePair(size / 2))],
    "a lower end without the moves": [(Curve, "shift", lambda self, eta: 0.0)],
    "a lower end that keeps what moves added": [
        (Curve, "_before_moves", lambda self, epsilon, delta: delta(epsilon, upper=False))
    ],
    "the exchanged pair as its own witness": [
        (dominating, "PoissonSampledPair", lambda rate, base, _: WithoutReplacementPair(rate, base))
    ],
    "a group as one unit": [(parts, "group_event", lambda event, size: event)],
    "what is given away forgotten": [(dominating, "pure_pair", lambda size, given=0.0: pure_pair(size))],
    "one composition less": [(composition, "_lattices", one_less)],
}


def test_nothing_is_refused_as_long_as_nothing_is_planted() -> None:
    assert not refused()


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name, planted in PLANTED[bug]:
        monkeypatch.setattr(place, name, planted)
    assert refused()


def test_a_tail_that_is_given_away_may_be_as_long_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of "the upper tail dropped"."""
    monkeypatch.setattr(composition, "discretize", with_a_shorter_tail)
    assert not refused()


def over_the_order(order: float, rho: float, delta: float) -> float:
    return order * rho + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / order


@pytest.mark.parametrize("at", [1e-9, 1e-6])
def test_a_conversion_that_forgets_the_order_is_noticed(at: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """ln(1/delta) over the order and not over one less: Gaussian noise by its rho is then cheaper than it is."""

    def check() -> None:
        bound = epsilon(events.ZeroConcentrated(0.5), at)
        checker.check_epsilon(
            checker.Case(events.Gaussian(1.0), [lambda e: truth.gaussian_delta(1, e)], is_worst=False), bound, at
        )

    check()
    monkeypatch.setattr(conversions, "_epsilon_at", over_the_order)
    with pytest.raises(Unsound):
        check()
