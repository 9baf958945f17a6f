"""The classic worked examples of the field, as they are taught."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.mechanisms import ExponentialDensity, Geometric, Laplace, RandomizedResponse
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy import events
from tacit.privacy.units import Relation

TWO_COINS = RandomizedResponse(truth=Fraction(3, 4))


def test_two_coins_turn_a_prior_of_two_percent_into_a_posterior_of_under_six() -> None:
    assert TWO_COINS.posterior(0.02) == pytest.approx(0.058, abs=0.0005)


def test_two_coins_are_ln_3_private() -> None:
    event = TWO_COINS.event
    assert isinstance(event, events.RandomizedResponse)
    assert math.log(3) <= event.epsilon <= math.log(3) * (1 + 1e-12)


def test_randomized_response_needs_four_times_the_people_where_laplace_adds_next_to_nothing() -> None:
    """The estimate's variance is q (1 - q) / (N (2p - 1)^2), at p = 3/4 at least four times the truthful one."""
    people, share = 2000, 0.3
    truth = np.arange(people) < share * people
    source = SeededSource(31)
    estimates = [TWO_COINS.estimate(TWO_COINS.release(truth, source=source)) for _ in range(2000)]
    truthful_variance = share * (1 - share) / people
    reported = share * 0.75 + (1 - share) * 0.25
    sampling_and_coins = np.var(estimates) + truthful_variance
    assert np.mean(estimates) == pytest.approx(share, abs=5 * np.std(estimates) / math.sqrt(2000))
    assert reported * (1 - reported) / people * 4 >= 4 * truthful_variance
    assert sampling_and_coins == pytest.approx(4 * reported * (1 - reported) / people, rel=0.15)
    assert sampling_and_coins >= 4 * truthful_variance

    means = Laplace(Fraction(1, people), math.log(3)).release(np.full(4000, share), source=source)
    assert np.size(means) == 4000
    one_by_one = [Laplace(1 / people, math.log(3)).release(share, source=source) for _ in range(4000)]
    assert np.var(one_by_one) == pytest.approx(2 / (people * math.log(3)) ** 2, rel=0.2)
    assert np.var(one_by_one) < truthful_variance / 100


def counts(people: tuple[str, ...]) -> np.ndarray:
    return np.array([people.count("ill"), people.count("well")])


def test_two_disjoint_counts_have_l1_sensitivity_2_when_one_person_is_replaced_and_scale_20_at_a_tenth() -> None:
    worst = max(
        int(np.abs(counts(people) - counts((other, *people[1:]))).sum())
        for people in itertools.product(("ill", "well"), repeat=3)
        for other in ("ill", "well")
    )
    assert worst == 2
    mechanism = Laplace(worst, Fraction(1, 10), relation=Relation.REPLACE_ONE)
    assert mechanism.scale == 20
    assert mechanism.event.relation is Relation.REPLACE_ONE


def test_a_disjoint_histogram_has_sensitivity_1_when_one_person_is_removed() -> None:
    worst = max(
        int(np.abs(counts(people) - counts(people[1:])).sum())
        for people in itertools.product(("ill", "well"), repeat=3)
    )
    assert worst == 1
    assert Laplace(worst, Fraction(1, 10)).scale == 10


def test_laplace_noise_of_scale_1_exceeds_7_less_than_once_in_a_thousand() -> None:
    assert Laplace(1.0, 1).interval(0.999).high < 7


def log_likelihood(heads: int, tails: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda bias: heads * np.log(bias) + tails * np.log(1 - bias)


def test_the_exponential_mechanism_on_a_coins_bias_draws_a_truncated_beta() -> None:
    """One toss replaced moves the log-likelihood on (0.1, 0.9) by ln 9 at most, so draws have density
    bias^(heads / k) (1 - bias)^(tails / k) with k = 2 ln 9 / epsilon: a Beta law, cut off at both ends."""
    heads, tails, epsilon = 600, 400, 0.1
    mechanism = ExponentialDensity(math.log(9), epsilon, 0.1, 0.9, relation=Relation.REPLACE_ONE)
    factor = epsilon / (2 * math.log(9))
    beta = stats.beta(heads * factor + 1, tails * factor + 1)
    low, high = beta.cdf([0.1, 0.9])
    source = SeededSource(32)
    drawn = [mechanism.release(log_likelihood(heads, tails), source=source) for _ in range(1500)]
    assert stats.kstest(drawn, lambda bias: (beta.cdf(bias) - low) / (high - low)).pvalue > 1e-6
    halved = stats.beta(2 * heads * factor + 1, 2 * tails * factor + 1)
    low, high = halved.cdf([0.1, 0.9])
    assert stats.kstest(drawn, lambda bias: (halved.cdf(bias) - low) / (high - low)).pvalue < 1e-6

    by_count = np.asarray([Laplace(1, epsilon).release(heads, source=source) for _ in range(1500)]) / 1000
    assert np.std(by_count - 0.6) * 4 < np.std(np.asarray(drawn) - 0.6)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_group_of_k_people_is_protected_with_k_times_epsilon(size: int) -> None:
    """The exact log-ratio of the geometric law at inputs k apart is k epsilon, and no more anywhere."""
    epsilon = 0.3
    mechanism = Geometric(1, epsilon)
    ratio = math.exp(-float(1 / mechanism.scale))
    support = np.arange(-200, 201)
    log_mass = np.abs(support) * math.log(ratio)
    worst = np.max(np.abs(log_mass[size:] - log_mass[:-size]))
    assert worst == pytest.approx(size * epsilon)
    assert events.Grouped(mechanism.event, size).size == size


def test_coins_need_a_greater_delta_than_discrete_gaussian_noise_of_the_same_variance() -> None:
    places = np.arange(-230, 231)
    coins = stats.binom.pmf(places + 200, 400, 0.5)
    weights = np.exp(-(places**2) / 200)
    needed = []
    for law in (coins, weights / weights.sum()):
        here, there = law[1:], law[:-1]
        needed.append(max(np.maximum(0, p - math.exp(0.605) * q).sum() for p, q in ((here, there), (there, here))))
    assert needed == pytest.approx([3.6e-11, 1.5e-11], rel=0.02)
