"""Poisson samples: one and two releases against integrals, when a unit is removed and when one is added."""

import math

import pytest

from tacit.accounting import delta, epsilon
from tacit.accounting.composition import Composition
from tacit.privacy import events
from tests.unit.accounting import checker, truth


@pytest.mark.parametrize("at", [1e-2, 1e-5, 1e-12, 1e-25])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
def test_one_sampled_gaussian_costs_what_its_tails_say(sigma: float, rate: float, at: float) -> None:
    checker.check(checker.sampled(truth.Gaussian(1 / sigma), events.Gaussian(sigma), rate), at)


@pytest.mark.parametrize("at", [1e-2, 1e-5, 1e-12, 1e-25])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5])
@pytest.mark.parametrize("size", [0.1, 1.0, 6.0])
def test_one_sampled_laplace_costs_what_its_tails_say(size: float, rate: float, at: float) -> None:
    checker.check(checker.sampled(truth.Laplace(size), events.Laplace(size), rate), at)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("sigma", "rate", "at"),
    [
        (0.3, 1e-6, 1e-12),
        (0.3, 0.01, 1e-2),
        (0.3, 0.5, 1e-25),
        (1.0, 0.01, 1e-5),
        (1.0, 0.5, 1e-12),
        (5.0, 1e-6, 1e-25),
        (5.0, 0.5, 1e-2),
    ],
)
def test_two_sampled_gaussians_cost_what_their_integral_says(sigma: float, rate: float, at: float) -> None:
    bound = epsilon(events.Repeated(events.Sampled(rate, events.Gaussian(sigma)), 2), at)
    case = checker.sampled_twice(truth.Gaussian(1 / sigma), events.Gaussian(sigma), rate)
    checker.check_epsilon(case, bound, at)
    assert bound.upper <= bound.lower * 1.02


@pytest.mark.parametrize(("size", "rate"), [(0.1, 0.5), (1.0, 1e-6), (1.0, 0.5), (6.0, 0.01)])
@pytest.mark.parametrize("at", [1e-2, 1e-12])
def test_two_sampled_laplace_releases_cost_what_their_integral_says(size: float, rate: float, at: float) -> None:
    checker.check(checker.sampled_twice(truth.Laplace(size), events.Laplace(size), rate), at)


ADDED = [(0.5, 0.5, 0.1), (1.0, 0.9, 0.2), (0.5, 0.1, 0.01)]


@pytest.mark.parametrize(("size", "rate", "at"), ADDED)
def test_adding_a_unit_can_cost_more_than_removing_one_and_is_paid_for(size: float, rate: float, at: float) -> None:
    case = checker.sampled_twice(truth.Laplace(size), events.Laplace(size), rate)
    removed, added = (curve(at) for curve in case.curves)
    assert added > removed * 1.01
    checker.check_delta(case, delta(case.event, at), at)


def test_a_sample_of_randomized_responses_costs_what_their_outcomes_say() -> None:
    rate, answer = truth.mpf(0.3), truth.response(1.2)
    mixed = truth.Finite(tuple(((1 - rate) * q + rate * p, q) for p, q in answer.outcomes))
    laws = [truth.all_together([law] * 3) for law in (mixed, mixed.turned())]
    event = events.Repeated(events.Sampled(0.3, events.Pure(1.2)), 3)
    for at in (1e-2, 1e-4, 1e-10):
        checker.check(checker.Case(event, [law.delta for law in laws]), at)


@pytest.mark.parametrize("at", [1e-2, 1e-4, 1e-10])
def test_a_sample_of_choices_is_paid_for_whatever_their_split(at: float) -> None:
    rate, laws = truth.mpf(0.3), []
    for law in truth.splits(1.2, 12):
        mixed = truth.Finite(tuple(((1 - rate) * q + rate * p, q) for p, q in law.outcomes))
        laws += [truth.all_together([one] * 2) for one in (mixed, mixed.turned())]
    event = events.Repeated(events.Sampled(0.3, events.Exponential(1.2)), 2)
    bound = epsilon(event, at)
    checker.check_epsilon(checker.Case(event, [law.delta for law in laws]), bound, at)
    assert bound.upper < epsilon(events.Repeated(events.Sampled(0.3, events.Pure(1.2)), 2), at).upper


def test_a_sample_of_discrete_gaussian_noise_costs_little_more_than_of_continuous_noise() -> None:
    discrete = epsilon(events.Repeated(events.Sampled(0.01, events.DiscreteGaussian(8.0)), 1000), 1e-6)
    smooth = epsilon(events.Repeated(events.Sampled(0.01, events.Gaussian(8.0)), 1000), 1e-6)
    assert smooth.lower <= discrete.upper <= 1.05 * smooth.upper


def test_what_is_always_sampled_is_not_sampled() -> None:
    inner = events.Composed((events.Gaussian(1.0), events.Laplace(1.0)))
    assert epsilon(events.Sampled(1.0, inner), 1e-5) == epsilon(inner, 1e-5)


def test_a_sample_of_a_sample_is_a_smaller_sample() -> None:
    twice = events.Sampled(0.1, events.Sampled(0.2, events.Gaussian(1.0)))
    once = events.Sampled(0.02, events.Gaussian(1.0))
    assert epsilon(twice, 1e-5).upper == pytest.approx(epsilon(once, 1e-5).upper, rel=1e-9)


@pytest.mark.parametrize(
    "event",
    [
        events.Repeated(events.Pure(1e-3), 200),
        events.Repeated(events.Gaussian(1000.0), 10_000),
        events.Repeated(events.Sampled(1e-5, events.Gaussian(1.0)), 1000),
        events.Repeated(events.Laplace(1e-6), 2**40),
        events.Repeated(events.Sampled(1e-6, events.Gaussian(5.0)), 2**40),
        events.Composed((events.Repeated(events.Pure(1e-7), 2**45), events.Laplace(3.0))),
    ],
)
@pytest.mark.parametrize("at", [0.1, 1e-5, 1e-20])
def test_no_plan_takes_more_than_the_memory_it_was_given(event: events.Event, at: float) -> None:
    """At 0.1 the answer is 0 for some of them, which once asked for a lattice of billions of points."""
    plan = Composition.of(event)
    assert plan is not None
    assert math.isfinite(epsilon(event, at).upper)
