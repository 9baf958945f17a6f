"""Epsilon and delta of compositions whose exact curve is known: both ends of every bound are on the right side."""

import pytest

from tacit.accounting import epsilon
from tacit.privacy import events
from tests.unit.accounting import checker, truth

DELTAS = [0.1, 1e-3, 1e-5, 1e-12, 1e-30]


@pytest.mark.parametrize("at", DELTAS)
@pytest.mark.parametrize(
    ("count", "size"), [(1, 1e-3), (1, 5.0), (2, 1.0), (5, 0.1), (30, 1.0), (200, 1e-3), (200, 0.1)]
)
def test_pure_releases_cost_what_the_optimal_composition_theorem_says(count: int, size: float, at: float) -> None:
    bound = checker.check(checker.pure(count, size), at)
    assert bound.upper <= count * size * (1 + 1e-12)


@pytest.mark.parametrize("at", [1e-5, 1e-30])
def test_a_thousand_pure_releases_cost_what_the_theorem_says(at: float) -> None:
    checker.check(checker.pure(1000, 0.05), at)


@pytest.mark.parametrize("at", [1e-2, 1e-6, 1e-20])
def test_pure_releases_of_many_sizes_cost_what_going_through_all_outcomes_says(at: float) -> None:
    sizes = [0.02, 0.11, 0.3, 0.57, 0.9, 1.3, 0.31, 0.3, 2.0]
    together = truth.all_together([truth.response(size) for size in sizes])
    event = events.Composed(tuple(events.Pure(size) for size in sizes))
    checker.check(checker.Case(event, [together.delta]), at)


@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize("at", [1e-2, 1e-6, 1e-20])
def test_randomized_response_costs_what_its_outcomes_say(categories: int, at: float) -> None:
    size = truth.mpf(0.7)
    weight = truth.mpmath.exp(size) + categories - 1
    likely, other = truth.mpmath.exp(size) / weight, 1 / weight
    one = truth.Finite(((likely, other), (other, likely), ((categories - 2) * other, (categories - 2) * other)))
    event = events.Repeated(events.RandomizedResponse(0.7, categories), 4)
    checker.check(checker.Case(event, [truth.all_together([one] * 4).delta]), at)


@pytest.mark.parametrize(("given", "at"), [(1e-6, 1e-5), (1e-6, 2.1e-6), (1e-3, 1e-2), (1e-9, 1e-8)])
def test_what_is_given_away_is_given_away_again_and_again(given: float, at: float) -> None:
    likely = (1 - truth.mpf(given)) / (1 + truth.mpmath.exp(-truth.mpf(0.5)))
    other = 1 - truth.mpf(given) - likely
    together = truth.all_together([truth.Finite(((likely, other), (other, likely)))] * 2)
    lost = 1 - (1 - truth.mpf(given)) ** 2
    event = events.Repeated(events.Approximate(0.5, given), 2)
    checker.check(checker.Case(event, [lambda epsilon: together.delta(epsilon) + lost]), at)


@pytest.mark.parametrize("event", [events.Approximate(1.0, 1e-6), events.Pure(1.0), events.Approximate(1.0, 0.0)])
def test_an_event_that_states_its_epsilon_costs_no_more_than_it_states(event: events.Event) -> None:
    assert epsilon(event, 1e-6).upper <= 1.0


@pytest.mark.parametrize("at", DELTAS)
@pytest.mark.parametrize(("count", "sigma"), [(1, 100.0), (1, 1.0), (1, 0.2), (100, 30.0), (10_000, 40.0)])
def test_gaussian_noise_on_the_lattice_costs_what_its_closed_form_says(count: int, sigma: float, at: float) -> None:
    checker.check(checker.gaussian(count, sigma), at)


@pytest.mark.parametrize("at", DELTAS)
@pytest.mark.parametrize(
    ("sigma", "count"), [(1e-3, 1), (0.05, 3), (0.3, 1), (1.0, 7), (50.0, 1000), (1e6, 1), (3e5, 9)]
)
def test_the_closed_form_of_gaussian_noise_is_the_exact_curve(sigma: float, count: int, at: float) -> None:
    mu = truth.mpmath.sqrt(count) / truth.mpf(sigma)
    case = checker.Case(events.Repeated(events.Gaussian(sigma), count), [lambda eps: truth.gaussian_delta(mu, eps)])
    bound = checker.check(case, at)
    assert bound.method == "closed form of Gaussian noise"
    assert bound.upper <= bound.lower * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("below", [1e-2, 1e-5, 1e-8, 1e-11, 1e-13])
@pytest.mark.parametrize("mu", [1e-7, 1e-3, 0.5, 1.0, 3.0])
def test_the_closed_form_holds_where_epsilon_is_next_to_nothing(mu: float, below: float) -> None:
    at = float(truth.gaussian_delta(mu, 0) * (1 - truth.mpf(below)))
    event = events.Gaussian(1 / mu)
    checker.check(checker.Case(event, [lambda eps: truth.gaussian_delta(1 / truth.mpf(1 / mu), eps)]), at)


@pytest.mark.parametrize("at", [0.05, 1e-3, 1e-9, 1e-25])
@pytest.mark.parametrize(("count", "size"), [(1, 1e-3), (1, 5.0), (2, 0.1), (3, 1e-3), (3, 1.0), (3, 5.0)])
def test_laplace_noise_costs_what_exact_convolution_says(count: int, size: float, at: float) -> None:
    checker.check(checker.laplace(count, size), at)


@pytest.mark.parametrize("at", [1e-2, 1e-6, 1e-20])
def test_different_releases_cost_what_integrating_one_over_the_other_says(at: float) -> None:
    gaussian, laplace, answer = truth.Whole(truth.Gaussian(0.8)), truth.Whole(truth.Laplace(0.6)), truth.response(0.9)
    for case in (
        checker.mixed(gaussian, laplace, events.Gaussian(1.25), events.Laplace(0.6)),
        checker.mixed(answer, gaussian, events.Gaussian(1.25), events.Pure(0.9)),
        checker.mixed(answer, laplace, events.Pure(0.9), events.Laplace(0.6)),
    ):
        checker.check(case, at)


@pytest.mark.parametrize("moved", [(0.5, 0.5), (0.3, 0.7), (0.1, 0.9)])
@pytest.mark.parametrize("at", [0.0, 0.2, 0.5, 0.8])
def test_laplace_noise_on_two_coordinates_costs_no_more_than_on_one(moved: tuple[float, float], at: float) -> None:
    first, second = (truth.Whole(truth.Laplace(one)) for one in moved)
    assert truth.twice(first, second, at) <= truth.laplace_fold(sum(moved), 1, at) * (1 + checker.QUADRATURE)
