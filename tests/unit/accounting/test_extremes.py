"""Costs over the whole range of doubles: never negative, never nothing for something, never a raw error."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit import accounting
from tacit.accounting import measures
from tacit.accounting.closed_forms import amplified_epsilon
from tacit.privacy import events as kinds
from tacit.privacy.errors import OutOfRange, TacitError
from tacit.privacy.events import Event
from tacit.privacy.notation import parse, write

NUMBERS = (5e-324, 1e-310, 1e-200, 1e-20, 1e-8, 0.1, 5.0, 36.0, 700.5, 709.9, 1e4, 1e20, 1e100, 1e170, 1e300, 1.7e308)
RATES = (5e-324, 1e-12, 0.5, 1 - 1e-16)
COUNTS = (2, 10**6, 10**300)

Measure = Callable[[Event], float]
MEASURES: dict[str, Measure] = {
    "pure": measures.pure_epsilon,
    "rho": lambda event: measures.approximate_zcdp(event)[0],
    "delta of rho": lambda event: measures.approximate_zcdp(event)[1],
    "mu": measures.gaussian_mu,
    "order 1.01": lambda event: measures.renyi(event, 1.01),
    "order 2": lambda event: measures.renyi(event, 2.0),
    "order 4096": lambda event: measures.renyi(event, 4096.0),
}


def simple_events() -> Iterator[Event]:
    for number in NUMBERS:
        for kind in (kinds.Pure, kinds.Laplace, kinds.Gaussian, kinds.Exponential, kinds.ZeroConcentrated):
            yield kind(number)
        yield kinds.DiscreteLaplace(number, 7)
        yield kinds.DiscreteGaussian(number, 3.0)
        yield kinds.RandomizedResponse(number, 3)
        yield kinds.NoisyMax(number)
        yield kinds.TreeAggregation(number, 100)
        for delta in (5e-324, 1e-9, 1 - 1e-16):
            yield kinds.Approximate(number, delta)


def compound_events(one: Event) -> Iterator[Event]:
    for count in COUNTS:
        yield kinds.Repeated(one, count)
    for rate in RATES:
        yield kinds.Sampled(rate, one)
        yield kinds.Sampled(rate, kinds.Sampled(rate, one))
    yield kinds.Grouped(one, 2)
    yield kinds.Grouped(one, 10**9)
    yield kinds.Repeated(kinds.Sampled(1e-3, one), 1000)
    yield kinds.SampledWithoutReplacement(1, 10**9, one)
    yield kinds.Selected(one, 1.0, 1e-9)
    yield kinds.Composed((one, kinds.Laplace(0.1)))
    yield kinds.Disjoint((one, kinds.Pure(1.0)))


SIMPLE = list(simple_events())


@pytest.mark.parametrize("name", MEASURES)
def test_no_event_has_a_negative_cost_and_none_that_is_not_free_costs_nothing(name: str) -> None:
    measure = MEASURES[name]
    for one in SIMPLE:
        for event in (one, *compound_events(one)):
            cost = measure(event)
            assert cost >= 0, write(event)
            assert cost > 0 or name == "delta of rho", write(event)


@pytest.mark.parametrize("name", MEASURES)
def test_more_of_the_same_never_costs_less(name: str) -> None:
    measure = MEASURES[name]
    for one in SIMPLE:
        costs = [measure(kinds.Repeated(one, count)) for count in (1, *COUNTS)]
        costs.append(measure(kinds.Repeated(kinds.Repeated(one, 10**300), 10**300)))
        if name == "delta of rho":  # infinite rho has no delta beside it
            costs = [cost for cost in costs if cost]
        assert all(more >= less * (1 - 1e-9) for less, more in pairwise(costs)), write(one)


@pytest.mark.parametrize("one", SIMPLE[::9], ids=write)
def test_bounds_of_extreme_events_are_ordered_and_none_ends_in_a_raw_error(one: Event) -> None:
    for event in (one, kinds.Repeated(one, 10**300), kinds.Sampled(1e-12, one), kinds.Composed((one, kinds.Pure(1.0)))):
        for delta in (0.0, 1e-300, 0.5):
            bound = accounting.epsilon(event, delta)
            assert 0 <= bound.lower <= bound.upper, (write(event), delta)
        for epsilon in (0.0, 1.0, 1e300):
            bound = accounting.delta(event, epsilon)
            assert 0 <= bound.lower <= bound.upper <= 1, (write(event), epsilon)


@pytest.mark.parametrize("rate", [*RATES, 1e-320, 1e-3])
def test_amplification_by_sampling_encloses_the_truth_at_every_epsilon(rate: float) -> None:
    for epsilon in NUMBERS:
        with mpmath.workdps(700):
            exact = mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(epsilon)) if epsilon < 1e5 else None
            found = amplified_epsilon(rate, epsilon)
            if exact is not None:
                assert exact <= found <= exact * (1 + 1e-11) + 1e-320
            assert 0 < found <= epsilon


def test_neither_many_releases_nor_much_noise_underflow_to_nothing() -> None:
    event = kinds.Repeated(kinds.Gaussian(1e170), 10**300)  # mu is 10^-20
    assert accounting.delta(event, 0.0).upper == pytest.approx(1e-20 / math.sqrt(2 * math.pi), rel=1e-6)
    assert measures.gaussian_mu(event) == pytest.approx(1e-20)
    assert measures.approximate_zcdp(event)[0] >= 5e-41


@pytest.mark.parametrize("leaves", [1, 2, 3, 8, 13])
def test_a_unit_that_changes_its_leaf_moves_no_more_nodes_than_were_priced(leaves: int) -> None:
    """Every tree of counts in which one unit moves from leaf to leaf, or its value turns within a leaf."""
    size = 1 << (leaves - 1).bit_length()
    levels = size.bit_length()

    def tree(leaf: int, value: np.ndarray) -> np.ndarray:
        nodes = np.zeros((2 * size, 2))
        place = size + leaf
        while place:
            nodes[place] += value
            place //= 2
        return nodes

    first, turned = np.array([1.0, 0.0]), np.array([0.5, math.sqrt(3) / 2])  # both of length 1, and 1 apart
    moves = [
        float(((tree(old, first) - tree(new, turned)) ** 2).sum()) for old in range(leaves) for new in range(leaves)
    ]
    priced = accounting.epsilon(kinds.TreeAggregation(10.0, leaves, under="replace-one"), 1e-5).upper
    worst = accounting.epsilon(kinds.Gaussian(10 / math.sqrt(max(moves)), under="replace-one"), 1e-5).upper
    assert worst * (1 - 1e-9) <= priced
    assert max(moves) <= 2 * levels - 1 + 1e-9
    single = max(float((tree(leaf, first) ** 2).sum()) for leaf in range(leaves))
    added = accounting.epsilon(kinds.TreeAggregation(10.0, leaves), 1e-5).upper
    assert accounting.epsilon(kinds.Gaussian(10 / math.sqrt(single)), 1e-5).upper * (1 - 1e-9) <= added


def test_calibration_never_overspends_where_noise_is_only_nearly_in_proportion() -> None:
    """Beside the noise that is sought there is a little that stays: at 1 it hardly counts, at the answer it does."""
    for target in (1e-3, 1e-6, 1e-9):
        floor = target / 2

        def make(sigma: float, floor: float = floor) -> Event:
            return kinds.Composed((kinds.Gaussian(sigma), kinds.Gaussian(10 / floor)))

        try:
            sigma = accounting.calibrate(make, target, 1e-6)
        except TacitError:
            continue
        assert accounting.epsilon(make(sigma), 1e-6).upper <= target


@pytest.mark.parametrize(
    "text",
    ["selected(gaussian(10),700,5e-324)", "selected(gaussian(10),0,5e-324)", "approximate(1,0.9999999999999999)"],
)
def test_parameters_that_underflow_give_bounds_and_no_other_error(text: str) -> None:
    event = parse(text)
    assert accounting.epsilon(event, 1e-6).upper > 0
    assert 0 < accounting.delta(event, 1.0).upper <= 1
    assert any(bound.upper > 0 for bound in accounting.compare(event, 1e-6))


@pytest.mark.parametrize("call", [accounting.epsilon, accounting.compare])
@pytest.mark.parametrize("delta", [Fraction(1, 10**400), 1 - Fraction(1, 10**30)])
def test_a_delta_that_no_double_holds_is_refused(call: Any, delta: Any) -> None:
    for text in ("discrete_laplace(1,3)", "gaussian(1)", "100 x laplace(0.1)"):
        with pytest.raises(OutOfRange, match="delta must be a double"):
            call(parse(text), delta)
