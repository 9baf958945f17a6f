"""Tests of hypotheses: what they answer, what they cost, what they say, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as classical

from tacit import Budget, stats
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy.errors import InvalidInput, OutOfRange, TooWide
from tacit.stats import null_distributions
from tacit.stats.monte_carlo import MonteCarlo, interval_where
from tacit.stats.rows import Term
from tacit.stats.statistic import NoisySums

GENERATOR = np.random.default_rng(5)
ROWS = 400
VALUES = np.clip(GENERATOR.normal(52, 10, ROWS), 0, 100)
GROUPS = np.where(np.arange(ROWS) % 3 == 0, "a", "b")
OTHERS = np.clip(0.4 * VALUES + GENERATOR.normal(10, 8, ROWS), 0, 100)
LABELS = np.where(GENERATOR.random(ROWS) < np.where(GROUPS == "a", 0.35, 0.25), "x", "y")
LARGE = 1e5
"""An epsilon so large that the noise is nothing, and a test is the classical one."""


def asked(epsilon: float = LARGE, **options: Any) -> dict[str, Any]:
    return {"epsilon": epsilon, "budget": Budget(epsilon=2 * epsilon), **options}


def mean_test(popmean: float = 51.0, **options: Any) -> Any:
    return stats.t_test(VALUES, bounds=(0, 100), popmean=popmean, **asked(**options))


def relation(ask: Any, **options: Any) -> Any:
    other = "time_bounds" if ask is stats.trend_test else "other_bounds"
    return ask(VALUES, OTHERS, bounds=(0, 100), **{other: (0, 100)}, **asked(**options))


@pytest.fixture
def _all_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what is allowed for rows that chance kept out of the data."""
    monkeypatch.setattr(null_distributions, "UNSEEN", 0.0)


def test_without_noise_a_test_of_few_skewed_rows_is_less_sure_than_the_classical_one() -> None:
    skewed = 55 - (VALUES[:30] - 50) ** 2 / 20
    expected = classical.ttest_1samp(skewed, 51)
    test = stats.t_test(skewed, bounds=(0, 100), popmean=51, **asked())
    assert test.pvalue > expected.pvalue
    low, high = test.interval(0.9)
    assert low < expected.confidence_interval(0.9).low
    assert high > expected.confidence_interval(0.9).high


@pytest.mark.usefixtures("_all_seen")
def test_without_noise_a_test_of_one_mean_is_the_classical_one() -> None:
    test, expected = mean_test(), classical.ttest_1samp(VALUES, 51)
    assert test.pvalue == test.value == pytest.approx(expected.pvalue, abs=0.03)
    assert test.statistic == pytest.approx(expected.statistic, rel=0.02)
    assert test.estimate == pytest.approx(VALUES.mean(), rel=1e-4)
    assert test.interval(0.9) == pytest.approx(tuple(expected.confidence_interval(0.9)), abs=0.1)


@pytest.mark.usefixtures("_all_seen")
@pytest.mark.parametrize("as_arrays", [False, True])
def test_without_noise_a_test_of_two_means_is_welchs(as_arrays: bool) -> None:
    first, second = VALUES[GROUPS == "a"], VALUES[GROUPS == "b"] - 1
    expected = classical.ttest_ind(first, second, equal_var=False)
    if as_arrays:
        test = stats.t_test(first, second, bounds=(0, 100), **asked())
    else:
        values = VALUES - (GROUPS == "b")
        test = stats.t_test(values, by=GROUPS, keys=["a", "b"], bounds=(0, 100), **asked())
    assert test.pvalue == pytest.approx(expected.pvalue, abs=0.03)
    assert test.statistic == pytest.approx(expected.statistic, rel=0.02)
    assert test.estimate == pytest.approx(first.mean() - second.mean(), rel=1e-3)
    assert test.interval() == pytest.approx(tuple(expected.confidence_interval()), abs=0.2)


def test_without_noise_a_test_of_a_table_is_the_classical_one() -> None:
    test = stats.chi_squared(GROUPS, LABELS, keys=["a", "b"], other_keys=["x", "y"], **asked())
    table = [[int(((one == GROUPS) & (other == LABELS)).sum()) for other in "xy"] for one in "ab"]
    expected = classical.chi2_contingency(table, correction=False)
    assert test.pvalue == pytest.approx(expected.pvalue, abs=0.02)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-3)
    assert test.estimate is None
    assert test.interval() is None


@pytest.mark.parametrize("expected", [None, [3, 7], {"y": 0.7, "x": 0.3}])
def test_without_noise_a_test_of_shares_is_the_classical_one(expected: Any) -> None:
    test = stats.chi_squared(LABELS, keys=["x", "y"], expected=expected, **asked())
    counts = np.array([(LABELS == "x").sum(), (LABELS == "y").sum()])
    shares = np.array([0.5, 0.5] if expected is None else [0.3, 0.7])
    known = classical.chisquare(counts, shares * ROWS)
    assert test.statistic == pytest.approx(known.statistic, rel=1e-3)
    assert known.pvalue - 0.01 <= test.pvalue <= known.pvalue + 0.08  # counts are whole: the next one is as likely


def test_without_noise_a_test_of_correlation_is_the_classical_one() -> None:
    test, expected = relation(stats.correlation_test), classical.pearsonr(VALUES, OTHERS)
    assert test.estimate == pytest.approx(expected.statistic, abs=1e-3)
    assert test.interval() == pytest.approx(tuple(expected.confidence_interval()), abs=0.02)
    assert test.pvalue < 0.001


def test_without_noise_a_test_of_the_slope_estimates_the_classical_line() -> None:
    test, expected = relation(stats.trend_test), classical.linregress(OTHERS, VALUES)
    assert test.estimate == pytest.approx(expected.slope, abs=2e-3)
    low, high = test.interval()
    assert high - low == pytest.approx(2 * 1.966 * expected.stderr, rel=0.1)
    assert low < expected.slope < high


def test_independent_columns_have_a_p_value_like_that_of_the_classical_test() -> None:
    shuffled = GENERATOR.permutation(OTHERS)
    test = stats.correlation_test(VALUES, shuffled, bounds=(0, 100), other_bounds=(0, 100), **asked())
    assert test.pvalue == pytest.approx(classical.pearsonr(VALUES, shuffled).pvalue, abs=0.04)


@pytest.mark.parametrize("ask", [mean_test, lambda **given: relation(stats.correlation_test, **given)])
def test_a_test_costs_its_epsilon_and_no_more(ask: Any) -> None:
    test = ask(epsilon=0.5)
    assert test.cost.epsilon == pytest.approx(0.5)
    assert test.cost.epsilon <= 0.5


def test_the_same_answer_has_the_same_p_value_and_another_draws_anew() -> None:
    test = mean_test(epsilon=1.0)
    assert test.plan.outcome(test.noisy) == test.plan.outcome(test.noisy)
    moved = (test.noisy[0] + 1, *test.noisy[1:])
    draws = [MonteCarlo(5, noisy).normal().tolist() for noisy in (test.noisy, moved)]
    assert draws[0] != draws[1]


def test_the_card_says_what_was_tested_and_that_the_noise_is_counted() -> None:
    card = mean_test(epsilon=1.0).card
    assert "Tested is whether the mean of value is 51." in card
    assert "The p-value counts the noise as well as chance." in card


def test_a_test_is_shown_as_one_row_and_as_a_plot_of_its_estimate() -> None:
    test = mean_test(epsilon=1.0)
    (row,) = test.rows
    assert row["value"] == test.pvalue
    assert (row["estimate_low"], row["estimate_high"]) == tuple(test.interval())
    assert "estimate" in test._repr_html_()
    assert test.plot().spec["data"]["values"][0]["value"] == test.estimate
    assert isinstance(test, stats.TestAnswer)


def test_registered_or_not_rows_of_one_unit_are_not_taken_for_independent_people() -> None:
    units = np.arange(ROWS) // 4
    with pytest.raises(OutOfRange, match="not independent"):
        mean_test(unit=units, rows_per_unit=4)
    test = mean_test(unit=units, rows_per_unit=1, epsilon=100.0)
    assert float(test.noisy[0]) == pytest.approx(ROWS / 4, abs=5)


def test_a_unit_whose_row_has_no_group_does_not_take_the_place_of_one_that_has() -> None:
    units, groups = np.repeat(np.arange(100), 2), np.array(["a", None] * 50 + ["b", None] * 50, dtype=object)
    values = np.full(200, 30.0)
    answer = stats.t_test(
        values, by=groups, keys=["a", "b"], bounds=(0, 100), unit=units, rows_per_unit=1, **asked(epsilon=1000.0)
    )
    assert answer.noisy[0].tolist() == pytest.approx([50, 50], abs=1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: stats.t_test(VALUES, bounds=(0, 100), **asked()),
        lambda: stats.t_test(VALUES, bounds=(0, 100), popmean=3, by=GROUPS, keys=["a", "b"], **asked()),
        lambda: stats.t_test(VALUES, bounds=(0, 100), popmean=101, **asked()),
        lambda: stats.t_test(VALUES, bounds="learn", popmean=50, **asked()),
        lambda: stats.correlation_test(VALUES, OTHERS, bounds=(0, 100), other_bounds="learn", **asked()),
        lambda: stats.t_test(VALUES, bounds=(0, 100), popmean="x", **asked()),
        lambda: stats.t_test(VALUES, bounds=(0, 100), by=GROUPS, keys=["a", "b", "c"], **asked()),
        lambda: stats.t_test(VALUES, VALUES, bounds=(0, 100), by=GROUPS, **asked()),
        lambda: stats.t_test(VALUES, VALUES, bounds=(0, 100), unit=GROUPS, rows_per_unit=1, **asked()),
        lambda: stats.chi_squared(GROUPS, LABELS, keys=["a"], other_keys=["x", "y"], **asked()),
        lambda: stats.chi_squared(GROUPS, LABELS, keys=["a", "b"], other_keys=["x", "y"], expected=[1, 1], **asked()),
        lambda: stats.chi_squared(GROUPS, keys=["a", "b"], expected=[1], **asked()),
        lambda: stats.chi_squared(GROUPS, keys=["a", "b"], expected=[1, 0], **asked()),
        lambda: stats.chi_squared(GROUPS, keys=["a", "b"], expected={"a": 1, "c": 1}, **asked()),
    ],
)
def test_what_cannot_be_tested_is_refused(ask: Any) -> None:
    with pytest.raises(InvalidInput):
        ask()


def test_a_table_with_too_many_cells_is_refused() -> None:
    names = [str(one) for one in range(100)]
    with pytest.raises(TooWide, match="cells"):
        stats.chi_squared(GROUPS, LABELS, keys=names, other_keys=names, **asked())


@pytest.mark.parametrize("noise", [Laplace(1, 0.1), Gaussian(1, sigma=10.0)])
@pytest.mark.parametrize("released", [-300.0, -20.0, 0.0, 5.0, 400.0])
def test_what_was_there_before_the_noise_is_drawn_by_its_law_above_what_is_certain(noise: Any, released: float) -> None:
    part = NoisySums(Term(), noise)
    sample = MonteCarlo(20_000, (np.array(3),))
    drawn = sample.before_noise(part, released, at_least=1.0)
    assert drawn.min() >= 1.0
    law = classical.laplace(scale=10) if isinstance(noise, Laplace) else classical.norm(scale=10)
    tail = law.sf(1.0 - released)
    if tail > 1e-300:
        pvalue = classical.kstest(drawn, lambda x: 1 - law.sf(x - released) / tail).pvalue
        assert pvalue > 1e-6  # a false alarm in a million seeds


@pytest.mark.parametrize("expected", [0.0, 0.3, 4.0, 11.9, 12.1, 60.0, 5_000.0])
def test_counts_are_drawn_by_poissons_law(expected: float) -> None:
    drawn = MonteCarlo(20_000, (np.array(4),)).poisson(np.full(20_000, expected))
    if expected == 0:
        assert not drawn.any()
        return
    assert drawn.mean() == pytest.approx(expected, abs=5 * np.sqrt(expected / 20_000))
    grid = np.quantile(drawn, [0.01, 0.1, 0.5, 0.9, 0.99])
    for point in grid:
        share = float(classical.poisson.cdf(point, expected))
        assert (drawn <= point).mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 20_000) + 1e-3)


def test_where_something_holds_is_found_to_the_ends() -> None:
    assert interval_where(lambda x: 0.2 <= x <= 0.7, 0.0, 1.0, 0.5) == pytest.approx((0.2, 0.7), abs=1e-6)
    assert interval_where(lambda _: True, 0.0, 1.0, 0.5) == (0.0, 1.0)
    assert interval_where(lambda x: abs(x - 0.3333) < 1e-4, 0.0, 1.0, 0.3333) == pytest.approx(
        (0.3332, 0.3334), abs=1e-6
    )
    assert interval_where(lambda _: False, 0.0, 1.0, 0.5) == (0.5, 0.5)


def test_fewer_draws_give_a_coarser_p_value() -> None:
    test = mean_test(popmean=90)
    assert replace(test.plan, draws=99).outcome(test.noisy).pvalue == pytest.approx(0.01)


@pytest.mark.parametrize(("ask", "estimate"), [(stats.correlation_test, "correlation"), (stats.trend_test, "slope")])
def test_intervals_of_relations_say_for_which_values_they_hold(ask: Any, estimate: str) -> None:
    test = relation(ask)
    (warning,) = test.warnings
    assert f"the interval of the {estimate}" in warning
    assert "nearly bivariate normal" in warning
    assert warning in test.card
    assert mean_test().warnings == ()
