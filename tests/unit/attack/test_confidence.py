"""The bounds of `attack.confidence` against exact intervals of scipy and the formulas of their theorems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.attack.confidence import (
    clopper_pearson,
    epsilon_of_counts,
    one_run_epsilon,
    one_run_gaussian_epsilon,
    one_run_p_value,
)
from tacit.privacy.errors import OutOfRange


@pytest.mark.parametrize("trials", [1, 2, 7, 100, 5_000])
@pytest.mark.parametrize("error", [0.025, 0.001])
def test_clopper_pearson_is_the_exact_interval(trials: int, error: float) -> None:
    for successes in sorted({0, 1, trials // 2, trials - 1, trials}):
        expected = stats.binomtest(successes, trials).proportion_ci(1 - 2 * error, method="exact")
        assert clopper_pearson(successes, trials, error) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("hits", "alarms"), [(900, 10), (40, 2), (999, 700), (1_000, 0), (0, 1_000)])
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.2])
def test_the_bound_of_counts_takes_half_of_the_error_for_each_rate_and_delta_off_both(
    hits: int, alarms: int, delta: float
) -> None:
    runs, confidence = 1_000, 0.9
    found = stats.binomtest(hits, runs).proportion_ci(confidence, method="exact").low
    accused = stats.binomtest(alarms, runs).proportion_ci(confidence, method="exact").high
    ratios = [(found - delta) / accused, (1 - accused - delta) / (1 - found) if found < 1 else 0.0]
    expected = max([0.0, *(math.log(one) for one in ratios if one > 0)])
    assert epsilon_of_counts(hits, runs, alarms, runs, delta, confidence) == pytest.approx(expected, rel=1e-9)


def one_run_formula(secrets: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Theorem 5.2 of Steinke, Nasr, Jagielski 2023, term by term."""
    rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    mass = [stats.binom.pmf(one, guesses, rate) for one in range(guesses + 1)]
    tail = math.fsum(mass[right:])
    most = max((math.fsum(mass[right - back : right]) / back for back in range(1, right + 1)), default=0.0)
    return min(1.0, tail + 2 * secrets * delta * most)


@pytest.mark.parametrize(("secrets", "guesses", "right"), [(100, 20, 18), (1_000, 71, 60), (50, 50, 50), (30, 10, 0)])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_the_p_value_of_one_run_is_that_of_the_theorem(secrets: int, guesses: int, right: int, delta: float) -> None:
    for epsilon in (0.0, 0.5, 2.0):
        expected = one_run_formula(secrets, guesses, right, epsilon, delta)
        assert one_run_p_value(secrets, guesses, right, epsilon, delta) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_a_larger_delta_explains_more_right_guesses() -> None:
    bounds = [one_run_epsilon(1_000, 71, 68, delta) for delta in (0.0, 1e-5, 1e-4, 1e-2)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1]


def test_more_right_guesses_show_more() -> None:
    for bound in (one_run_epsilon, one_run_gaussian_epsilon):
        shown = [bound(1_000, 71, right, 1e-5) for right in range(36, 72, 5)]
        assert shown == sorted(shown)
        assert shown[0] == 0 < shown[-1]


def test_a_prior_of_the_likelier_value_explains_its_guesses() -> None:
    assert one_run_epsilon(200, 200, 180, 0.0) > 1.5
    assert one_run_epsilon(200, 200, 180, 0.0, prior=0.9) == 0


@pytest.mark.parametrize("numbers", [(10, 11, 5), (10, 0, 0), (10, 5, 6), (10, 5, -1)])
def test_counts_that_cannot_be_are_refused(numbers: tuple[int, int, int]) -> None:
    for bound in (one_run_epsilon, one_run_gaussian_epsilon):
        with pytest.raises(OutOfRange):
            bound(*numbers, 1e-5)
    with pytest.raises(OutOfRange):
        epsilon_of_counts(11, 10, 0, 10, 0.0)
    with pytest.raises(OutOfRange):
        clopper_pearson(3, 2, 0.05)


def test_the_bound_of_many_runs_is_tight_for_randomized_response() -> None:
    """The bound exceeds the truth in at most 5 % of runs: of 1,000, more than 75 with probability below 1e-3."""
    random, truth, runs = np.random.default_rng(5), 1.0, 400
    keep = math.exp(truth) / (1 + math.exp(truth))
    hits, alarms = random.binomial(runs, keep, 1_000), random.binomial(runs, 1 - keep, 1_000)

    def above(confidence: float) -> int:
        pairs = zip(hits.tolist(), alarms.tolist(), strict=True)
        return sum(epsilon_of_counts(hit, runs, alarm, runs, 0.0, confidence) > truth for hit, alarm in pairs)

    assert above(0.95) <= 75
    assert above(0.6) > 75
