"""Deltas that are given away beside others: what is left of delta decides, and no bound is taken twice."""

import math
from fractions import Fraction

import mpmath
import pytest

from tacit.accounting import delta, epsilon
from tacit.accounting.curves import deltas
from tacit.privacy import events
from tacit.privacy.events import Event
from tests.unit.accounting import truth


@pytest.mark.parametrize("share", [1.01, 1.5, 10.0])
@pytest.mark.parametrize("given", [1e-2, 1e-5, 1e-9])
def test_concentrated_privacy_beside_a_leak_is_priced_at_what_is_left_of_delta(given: float, share: float) -> None:
    """Gaussian noise keeps the rho, and is composed with a leak of the whole data."""
    event = events.Composed((events.Approximate(0.0, given), events.ZeroConcentrated(0.5)))

    def true_delta(at: float) -> truth.Real:
        return given + (1 - given) * truth.gaussian_delta(1, at)

    upper = epsilon(event, given * share).upper
    assert true_delta(upper) <= given * share
    assert epsilon(event, given).upper == math.inf
    assert delta(event, upper / 2).upper >= true_delta(upper / 2)
    assert deltas(event, [upper / 2])[0] >= true_delta(upper / 2)


@pytest.mark.parametrize("size", [2, 5])
def test_a_sum_of_deltas_that_is_only_a_bound_has_no_lower_end(size: int) -> None:
    event = events.Grouped(events.Approximate(0.5, 1e-3), size)
    bound = delta(event, 0.5 * size + 0.1)
    assert bound.lower == 0 < bound.upper
    assert epsilon(event, 0.1).lower == 0


@pytest.mark.parametrize("others", [1, 2, 7, 40])
@pytest.mark.parametrize("given", [1e-3, 0.3, 1e-12, 3e-17])
def test_deltas_that_are_given_away_are_counted_to_the_last_digit(given: float, others: int) -> None:
    leaks = [given / (index + 1) for index in range(others + 1)]
    event = events.Composed(tuple(events.Approximate(0.5, one) for one in leaks))
    whole = 1 - math.prod(1 - Fraction(one) for one in leaks)
    assert epsilon(event, float(whole) * 0.99).upper == math.inf
    bound = delta(event, 0.5 * len(leaks) + 1)
    assert bound.lower <= whole <= bound.upper
    assert whole <= Fraction(deltas(event, [0.5 * len(leaks) + 1])[0])


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("below", [5e-4, 1e-6, 1e-9])
def test_just_below_the_sum_of_pure_epsilons_there_is_a_delta(below: float, times: int) -> None:
    event = events.Repeated(events.Pure(0.5), times)
    at = 0.5 * times * (1 - below)
    assert delta(event, at).upper >= truth.pure_fold(0.5, times, at) * (1 - truth.mpf(10) ** -6) > 0
    assert deltas(event, [at])[0] >= truth.pure_fold(0.5, times, at) * (1 - truth.mpf(10) ** -6)


@pytest.mark.parametrize(
    "event",
    [
        events.Selected(events.Pure(1.0), 1, 0.5),
        events.Grouped(events.RandomizedResponse(1.0, 3), 2),
        events.Composed((events.Pure(1.0), events.Grouped(events.Approximate(1.0, 0.0), 2))),
    ],
)
def test_a_pure_epsilon_that_is_only_a_bound_has_no_lower_end(event: Event) -> None:
    bound = epsilon(event, 0)
    assert bound.lower == 0 < bound.upper < math.inf


@pytest.mark.parametrize("size", [1e-6, 0.1, 1.0, 5.0])
def test_at_epsilon_zero_delta_is_no_less_than_the_total_variation(size: float) -> None:
    """Randomized response has tanh(size / 2), a choice at its middle split tanh(size / 4)."""
    half, quarter = truth.mpf(size) / 2, truth.mpf(size) / 4
    for event, exact in (
        (events.Pure(size), mpmath.tanh(half)),
        (events.Exponential(size), mpmath.tanh(quarter)),
        (events.Approximate(size, 0.25), 0.25 + 0.75 * mpmath.tanh(half)),
    ):
        assert delta(event, 0.0).upper >= exact
        assert deltas(event, [0.0])[0] >= exact
