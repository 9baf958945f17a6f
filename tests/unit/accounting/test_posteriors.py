"""What is said of posteriors, against posteriors that are worked out exactly."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.accounting import meaning
from tacit.privacy import events
from tacit.privacy.events import Event
from tacit.privacy.units import Relation
from tests.unit.accounting import truth
from tests.unit.accounting.truth import Real

PRIORS = (0.001, 0.1, 0.5, 0.9)
LEVELS = (0.2, 0.6, 0.73, 0.9, 0.999)

Laws = tuple[NDArray[np.float64], NDArray[np.float64]]


def response(epsilon: float, categories: int = 2) -> Laws:
    """Return how likely each report is for the true answers 0 and 1."""
    lie = 1 / (math.exp(epsilon) + categories - 1)
    first, second = np.full(categories, lie), np.full(categories, lie)
    first[0] = second[1] = math.exp(epsilon) * lie
    return first, second


def leaky(epsilon: float, delta: float) -> Laws:
    """Return randomized response that gives the truth away with probability delta."""
    first, second = response(epsilon)
    return np.append((1 - delta) * first, [delta, 0.0]), np.append((1 - delta) * second, [0.0, delta])


def geometric(epsilon: float, steps: int) -> Laws:
    """Return two-sided geometric noise on 0 and on `steps`, as far out as doubles hold it."""
    reach = round(300 * steps / epsilon)
    points = np.arange(-reach, reach + steps + 1)
    weights = [np.exp(-np.abs(points - start) * epsilon / steps) for start in (0, steps)]
    return weights[0] / weights[0].sum(), weights[1] / weights[1].sum()


def gaussian(sigma: float) -> Laws:
    """Return Gaussian noise on 0 and 1 in fine cells: post-processing of the noise itself."""
    edges = [*np.linspace(-8 * sigma, 8 * sigma + 1, 1001).tolist(), math.inf]
    cells = [np.diff([0.0, *(float(mpmath.ncdf((edge - mean) / sigma)) for edge in edges)]) for mean in (0, 1)]
    return cells[0] + 1e-30, cells[1] + 1e-30


CASES: list[tuple[Event, float, Laws]] = [
    (events.RandomizedResponse(1.0), 0.3, response(1.0)),
    (events.RandomizedResponse(1.0), 0, response(1.0)),
    (events.RandomizedResponse(3.0, 5), 1e-3, response(3.0, 5)),
    (events.Approximate(1.0, 0.3), 0.3, leaky(1.0, 0.3)),
    (events.Approximate(0.5, 1e-6), 1e-6, leaky(0.5, 1e-6)),
    (events.Approximate(0.5, 1e-2), 1e-1, leaky(0.5, 1e-2)),
    (events.DiscreteLaplace(2.0, 4), 1e-2, geometric(2.0, 4)),
    (events.DiscreteLaplace(1.0, 64), 1e-5, geometric(1.0, 64)),
    (events.Gaussian(1.0), 1e-5, gaussian(1.0)),
    (events.Gaussian(0.4), 1e-2, gaussian(0.4)),
]
cases = pytest.mark.parametrize(("event", "delta", "laws"), CASES, ids=[f"{one[0].kind} {one[1]:g}" for one in CASES])


def posteriors(laws: Laws, prior: float) -> Laws:
    """Return the belief in the first law after each outcome, and how likely the outcome is under it."""
    first, second = laws
    return prior * first / (prior * first + (1 - prior) * second), first


@cases
@pytest.mark.parametrize("prior", PRIORS)
def test_every_posterior_lies_where_it_is_said_to_lie(event: Event, delta: float, laws: Laws, prior: float) -> None:
    low, high = meaning(event, delta).posterior(prior)
    beliefs, masses = posteriors(laws, prior)
    assert low * (1 - 1e-9) <= beliefs.min()
    assert beliefs[masses > 0].max() <= high * (1 + 1e-9)


@cases
@pytest.mark.parametrize("prior", PRIORS)
def test_the_mean_posterior_is_below_its_bound_and_near_it(
    event: Event, delta: float, laws: Laws, prior: float
) -> None:
    beliefs, masses = posteriors(laws, prior)
    mean = float(beliefs @ masses)
    bound = meaning(event, delta).expected_posterior(prior)
    assert mean * (1 - 1e-9) <= bound
    assert bound - prior <= 1.2 * (mean - prior) + 2 * delta


@pytest.mark.sampled(80)
@cases
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("level", LEVELS)
def test_large_posteriors_are_no_likelier_than_said(
    event: Event, delta: float, laws: Laws, prior: float, level: float
) -> None:
    beliefs, masses = posteriors(laws, prior)
    chance = float(masses[beliefs > level * (1 + 1e-9)].sum())
    assert chance <= meaning(event, delta).posterior_chance(prior, level) * (1 + 1e-6)


@pytest.mark.parametrize("level", [0.6, 0.73])
def test_the_chance_of_a_posterior_is_met_by_randomized_response(level: float) -> None:
    told = meaning(events.RandomizedResponse(1.0), 0.3).posterior_chance(0.5, level)
    truth = math.e / (1 + math.e)
    assert truth <= told <= (1.4 if level == 0.6 else 1.01) * truth


def test_a_posterior_beyond_pure_epsilon_never_happens() -> None:
    assert meaning(events.RandomizedResponse(1.0), 0.3).posterior_chance(0.5, 0.74) == 0


def test_merging_outcomes_makes_no_posterior_likelier_than_said() -> None:
    """Whoever merges outcomes into one, the largest set that is still convincing, keeps within the chance."""
    told = meaning(events.Gaussian(1.0), 1e-6)
    first, second = gaussian(1.0)
    convincing = np.cumsum(first) / np.maximum(np.cumsum(second), 1e-300)
    for level in (0.6, 0.8, 0.95):
        merged = float(np.cumsum(first)[convincing > level / (1 - level)].max())
        assert merged <= told.posterior_chance(0.5, level) <= 1.1 * merged


def greatest_chance(delta: Callable[[Real], Real], rise: Real) -> float:
    """Return the least of delta(e) / (1 - e^(e - rise)) over e below the rise: what merged outcomes reach."""

    def chance(epsilon: Real) -> Real:
        at = delta(epsilon) if epsilon >= 0 else 1 - mpmath.exp(epsilon) * (1 - delta(-epsilon))
        return at / -mpmath.expm1(epsilon - rise)

    low, high = rise - 60, rise - mpmath.mpf(10) ** -9
    for _ in range(50):
        third = (high - low) / 3
        low, high = (low, high - third) if chance(low + third) <= chance(high - third) else (low + third, high)
    return min(1.0, float(chance((low + high) / 2)))


CURVES: list[tuple[Event, Callable[[Real], Real]]] = [
    (events.Gaussian(1 / 0.3), lambda at: truth.gaussian_delta(1 / truth.mpf(1 / 0.3), at)),
    (events.Gaussian(1.0), lambda at: truth.gaussian_delta(1, at)),
    (events.Repeated(events.Laplace(0.437), 3), lambda at: truth.laplace_fold(0.437, 3, at)),
    (events.Repeated(events.Pure(0.3), 7), lambda at: truth.pure_fold(0.3, 7, at)),
]


@pytest.mark.parametrize(
    ("rise", "prior"), [(-0.4, 0.5), (0.1, 0.001), (1.2, 0.5), (2.0, 0.9), (5.0, 0.5), (12.0, 0.001)]
)
@pytest.mark.parametrize(("event", "curve"), CURVES, ids=[one[0].kind for one in CURVES])
def test_the_chance_of_a_posterior_is_never_below_the_greatest_that_is_reached_and_near_it(
    event: Event, curve: Callable[[Real], Real], rise: float, prior: float
) -> None:
    odds = prior / (1 - prior) * math.exp(rise)
    level = odds / (1 + odds)
    start, end = (mpmath.log(one / (1 - one)) for one in map(truth.mpf, (prior, level)))
    is_reached = end - start <= meaning(event, 1e-6).pure_epsilon
    chance = greatest_chance(curve, end - start) if is_reached else 0.0
    for delta in (1e-2, 1e-6):
        told = meaning(event, delta).posterior_chance(prior, level)
        assert chance * (1 - 1e-6) <= told <= chance * 1.01 + 1e-300 * is_reached


@cases
@pytest.mark.parametrize(
    ("prior", "level"), [(0.3, 0.3), (1e-300, 1 - 2.0**-53), (1 - 2.0**-53, 1e-300), (0.5, 5e-324)]
)
def test_the_chance_of_a_posterior_is_a_chance_for_extreme_beliefs(
    event: Event, delta: float, laws: Laws, prior: float, level: float
) -> None:
    assert 0 <= meaning(event, delta).posterior_chance(prior, level) <= 1


def test_beliefs_with_and_without_a_person_differ_by_the_squared_factor_at_most() -> None:
    """Two data sets, a prior over them, and the belief after an answer about the data with and without the person."""
    first, second = response(0.7)
    told = meaning(events.RandomizedResponse(0.7), 0).posterior_factor
    assert told == pytest.approx(math.exp(1.4))
    for prior in PRIORS:
        with_person = np.array([prior * first, (1 - prior) * second])
        without = np.array([prior * second, (1 - prior) * first])
        ratios = (with_person / with_person.sum(axis=0)) / (without / without.sum(axis=0))
        assert ratios.max() <= told * (1 + 1e-9)
        assert ratios.min() >= (1 - 1e-9) / told
    assert meaning(events.Gaussian(1.0), 1e-6).posterior_factor == math.inf


def test_records_are_spoken_of_under_replace_one() -> None:
    told = meaning(events.Pure(1.0, under=Relation.REPLACE_ONE), 0).sentence
    assert "record" in told
    assert "in the data" not in told


def test_no_sentence_claims_anything_where_no_bound_is_known() -> None:
    assert "may become certain" in meaning(events.Approximate(1.0, 0.5), 0).sentence


def test_what_is_said_of_an_attack_does_not_depend_on_a_delta_that_has_no_epsilon() -> None:
    none, small = (meaning(events.Gaussian(1.0), delta) for delta in (0, 1e-9))
    assert none.epsilon.upper == math.inf
    assert none.curve == small.curve
    assert none.sentence == small.sentence


@pytest.mark.parametrize(
    ("event", "prior", "said"),
    [
        (events.Pure(1.0), 0.2, "a prior of 20% that a person is in the data has a posterior between 8.4% and 40.5%"),
        (events.Gaussian(1.5), 0.07, "a prior of 7% that a person is in the data has a posterior of at most 10.1%"),
        (events.Gaussian(1.5), 0.95, "has a posterior of at most 95.2% on average after seeing the answers about a"),
    ],
)
def test_a_sentence_is_about_the_prior_that_is_given(event: Event, prior: float, said: str) -> None:
    told = meaning(event, 1e-6).sentence_for(prior)
    assert said in told
    assert ("above 90%" in told) == (prior == 0.07)
