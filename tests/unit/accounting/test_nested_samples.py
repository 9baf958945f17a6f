"""Samples of samples: lower bounds carry over only where the removal of a unit costs what its addition does."""

import math

import mpmath
import pytest
from mpmath import mpf

from tacit.accounting import delta, epsilon
from tacit.accounting.curves import single_sample
from tacit.privacy import Relation, events
from tacit.privacy.events import Event
from tests.unit.accounting import checker, truth


def mixed(law: truth.Finite, rate: float) -> truth.Finite:
    """Return a finite law after a Poisson sample, when a unit is removed."""
    share = mpf(rate)
    return truth.Finite(tuple(((1 - share) * q + share * p, q) for p, q in law.outcomes))


@pytest.mark.parametrize(
    ("size", "inner_rate", "times", "rate", "at"),
    [(1.0, 0.5, 2, 0.3, 0.1), (0.5, 0.5, 3, 0.5, 0.2), (2.0, 0.8, 2, 0.5, 0.4), (1.0, 0.8, 3, 0.9, 1.0)],
)
def test_a_sample_of_composed_samples_lies_between_its_bounds(
    size: float, inner_rate: float, times: int, rate: float, at: float
) -> None:
    """An addition costs more inside than a removal here, and sampling amplifies it by more than the formula."""
    inside = truth.all_together([mixed(truth.response(size), inner_rate)] * times)
    inner_at = mpmath.log(1 + mpmath.expm1(at) / mpf(rate))
    assert inside.turned().delta(inner_at) > inside.delta(inner_at) * 1.1
    outside = mixed(inside, rate)
    inner = events.Repeated(events.Sampled(inner_rate, events.RandomizedResponse(size)), times)
    case = checker.Case(events.Sampled(rate, inner), [outside.delta, outside.turned().delta])
    checker.check_delta(case, delta(case.event, at), at)
    true = float(case.delta(at))
    checker.check_epsilon(case, epsilon(case.event, true), true)


COMPOSED = events.Repeated(events.Sampled(0.5, events.Laplace(1.0)), 2)
FIXED = events.SampledWithoutReplacement(1, 2, events.Laplace(1.0))
REPLACED = events.SampledWithoutReplacement(1, 2, events.Laplace(1.0, under=Relation.REPLACE_ONE))


@pytest.mark.parametrize(
    "event",
    [
        events.Sampled(0.5, COMPOSED),
        events.Sampled(0.5, FIXED),
        events.Sampled(0.5, events.Repeated(FIXED, 2)),
        events.SampledWithoutReplacement(1, 2, COMPOSED),
        events.SampledWithoutReplacement(1, 2, REPLACED),
        events.Sampled(0.5, events.NoisyMax(1.0)),
        events.SampledWithoutReplacement(1, 2, events.NoisyMax(1.0, under=Relation.REPLACE_ONE)),
        events.SampledWithoutReplacement(1, 2, events.RandomizedResponse(1.0)),
    ],
)
def test_no_lower_bound_is_taken_from_a_sample_of_what_is_itself_only_bounded(event: Event) -> None:
    sample = single_sample(event)
    assert sample is not None
    assert not sample.is_attained
    assert epsilon(event, 1e-3).lower == 0
    assert delta(event, 0.1).lower == 0


@pytest.mark.parametrize("at", [1e-2, 1e-5])
@pytest.mark.parametrize(
    ("inner", "base"),
    [
        (events.Laplace(0.5), truth.Laplace(1.0)),
        (events.Gaussian(2.0), truth.Gaussian(1.0)),
        (events.Laplace(0.5, under=Relation.REPLACE_ONE), truth.Laplace(0.5)),
    ],
)
def test_composed_samples_of_fixed_size_pay_for_an_exchange(inner: Event, base: truth.Base, at: float) -> None:
    """Where a unit is added or removed, an exchange moves the event by two units."""
    curves = checker.sampled_twice(base, events.Laplace(1.0), 0.5).curves
    event = events.Repeated(events.SampledWithoutReplacement(1, 2, inner), 2)
    checker.check(checker.Case(event, curves, is_worst=False), at)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.7, 1e-6])
@pytest.mark.parametrize("given", [1e-3, 1e-9])
def test_a_sample_gives_away_its_share_of_what_the_event_gives_away_and_no_less(rate: float, given: float) -> None:
    event = events.Sampled(rate, events.Approximate(1.0, given))
    assert epsilon(event, rate * given * (1 - 2.0**-44)).upper == math.inf
    assert epsilon(event, rate * given * (1 + 2.0**-44)).upper < math.inf


@pytest.mark.parametrize(
    ("size", "population", "given", "times"), [(1, 2, 0.1, 2), (3, 10, 1e-3, 5), (1, 100, 1e-6, 3)]
)
def test_composed_samples_of_fixed_size_give_away_their_shares(
    size: int, population: int, given: float, times: int
) -> None:
    inner = events.Approximate(0.5, given, under=Relation.REPLACE_ONE)
    event = events.Repeated(events.SampledWithoutReplacement(size, population, inner), times)
    whole = 1 - (1 - mpf(size) / population * mpf(given)) ** times
    assert delta(event, 5.0).upper >= whole * (1 - mpf(10) ** -15)
    assert epsilon(event, float(whole) * 0.99).upper == math.inf
