"""Intervals of statistics hold the value without noise as often as they say, and not much more often.

False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are fixed. Intervals
made for half of the noise are refuted by the same checks. Intervals of quantiles end at cells and bins, and so hold the
value somewhat more often than stated: between 95 % and 99 % on average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as laws

import tacit
from tacit import stats
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.quantiles import ChosenQuantiles, TreeQuantiles
from tacit.stats.statistic import StatisticPlan
from tests.statistical.evidence import Refuted, accept

LEVEL = 0.95
VALUES = np.random.default_rng(21).normal(50, 10, 2000)
WHOLE = np.random.default_rng(22).integers(0, 500, 3000)


def rows(values: Any) -> ArrayRows:
    return ArrayRows(*read_arrays({"value": values}), source=SeededSource(0))


def plan(ask: Callable[..., stats.Answer], values: Any, **asked: Any) -> StatisticPlan:
    """Return the plan of a statistic."""
    return ask(values, **asked, budget=tacit.Budget(epsilon=1000.0)).plan


def held(
    made: StatisticPlan, values: Any, truth: Any, *, told: StatisticPlan | None = None, trials: int = 400, seed: int = 1
) -> float:
    """Return the share of numbers that lie in their intervals; `told` is the plan that the intervals are made by."""
    source, data, found = SeededSource(seed), rows(values), []
    for _ in range(trials):
        noisy = tuple(map(np.asarray, made.measure(data, source)))
        span = (told or made).known(noisy).interval(noisy, LEVEL)
        assert span is not None
        found.append((np.asarray(span.low) <= truth) & (truth <= np.asarray(span.high)))
    return float(np.mean(found))


def too_rarely_p(share: float, trials: int = 400) -> float:
    """Return how likely so few of independent trials are, if the level is kept."""
    return float(laws.binom.cdf(round(share * trials), trials, LEVEL))


@pytest.mark.parametrize("method", ["exponential", "tree"])
def test_intervals_of_medians_hold_them(method: str) -> None:
    values, bounds = (VALUES, (0, 100)) if method == "exponential" else (WHOLE, (0, 499))
    made = plan(stats.median, values, bounds=bounds, method=method, epsilon=0.2)
    share = held(made, values, np.quantile(values, 0.5, method="inverted_cdf"))
    accept(too_rarely_p(share))
    assert share < 0.995


def test_intervals_of_outer_quantiles_hold_them() -> None:
    made = plan(lambda values, **asked: stats.quantile(values, 0.9, **asked), VALUES, bounds=(0, 100), epsilon=0.2)
    share = held(made, VALUES, np.quantile(VALUES, 0.9, method="inverted_cdf"), seed=2)
    accept(too_rarely_p(share))
    assert share < 0.995


def test_intervals_for_half_the_noise_of_a_choice_are_noticed() -> None:
    made = plan(stats.median, VALUES, bounds=(0, 100), epsilon=0.2)
    assert isinstance(made, ChosenQuantiles)
    told = replace(made, noise=plan(stats.median, VALUES, bounds=(0, 100), epsilon=0.4).noise)  # type: ignore[attr-defined]
    share = held(made, VALUES, np.quantile(VALUES, 0.5, method="inverted_cdf"), told=told)
    with pytest.raises(Refuted):
        accept(too_rarely_p(share))


def test_intervals_for_half_the_noise_of_a_tree_are_noticed() -> None:
    asked: Any = {"bounds": (0, 499), "method": "tree"}
    made, told = (plan(stats.median, WHOLE, epsilon=epsilon, **asked) for epsilon in (0.1, 0.2))
    assert isinstance(made, TreeQuantiles)
    share = held(made, WHOLE, np.quantile(WHOLE, 0.5, method="inverted_cdf"), told=told)
    with pytest.raises(Refuted):
        accept(too_rarely_p(share))


def test_intervals_of_a_distribution_hold_its_shares() -> None:
    made = plan(stats.cdf, VALUES, bounds=(0, 100), bins=20, epsilon=0.1)
    truth = (np.arange(1, 21)[:, None] * 5 > VALUES).mean(axis=1)
    inside = slice(6, 14)  # where neither 0 nor 1 cuts the intervals off
    source, data, found = SeededSource(3), rows(VALUES), []
    for _ in range(400):
        noisy = made.measure(data, source)
        span = made.interval(noisy, LEVEL)
        assert span is not None
        found.append(((span.low <= truth) & (truth <= span.high))[inside])
    shares = np.mean(found, axis=0)
    accept(min(1.0, len(shares) * min(too_rarely_p(share) for share in shares)))
    assert 0.93 < shares.mean() < 0.985


@pytest.mark.parametrize("count", [30, 100])
def test_intervals_of_a_distribution_hold_its_shares_where_rows_are_few(count: int) -> None:
    """The noisy number of rows is often within its noise of 0: intervals divided by it held 79 to 91 %."""
    values = np.where(np.arange(count) < 0.92 * count, 0.0, 60.0)
    made = plan(stats.cdf, values, bounds=(0, 100), bins=20, epsilon=0.1)
    truth = (np.arange(1, 21)[:, None] * 5 > values).mean(axis=1)
    source, data, found = SeededSource(7), rows(values), []
    for _ in range(1000):
        noisy = made.measure(data, source)
        span = made.interval(noisy, LEVEL)
        assert span is not None
        assert np.all((span.low >= 0) & (span.low <= made.value(noisy)) & (made.value(noisy) <= span.high))
        assert np.all(span.high <= 1)
        found.append((span.low <= truth) & (truth <= span.high))
    shares = np.mean(found, axis=0)
    accept(min(1.0, len(shares) * min(too_rarely_p(share, 1000) for share in shares)))


@pytest.mark.parametrize(
    ("ask", "truth"),
    [(stats.mean, VALUES.mean()), (stats.variance, VALUES.var(ddof=1)), (stats.sum, VALUES.sum())],
)
def test_intervals_of_moments_hold_them(ask: Callable[..., stats.Answer], truth: float) -> None:
    made = plan(ask, VALUES, bounds=(0, 100), epsilon=0.5)
    share = held(made, VALUES, truth, seed=4)
    accept(too_rarely_p(share))
    assert share < 0.995


def test_intervals_of_the_greatest_counts_hold_them_although_they_were_picked() -> None:
    keys = [f"k{place}" for place in range(50)]
    values = keys * 40
    made = plan(lambda column, **asked: stats.top_k(column, 1, keys=keys, **asked), values, epsilon=0.2)
    accept(too_rarely_p(held(made, values, 40)))


def test_intervals_of_counts_that_forget_the_picking_are_noticed() -> None:
    keys = [f"k{place}" for place in range(50)]
    counts = plan(lambda column, **asked: stats.histogram(column, keys=keys, **asked), keys * 40, epsilon=0.2)
    source, data, found = SeededSource(5), rows(keys * 40), []
    for _ in range(400):
        noisy = counts.measure(data, source)
        span, picked = counts.interval(noisy, LEVEL), int(np.argmax(noisy[0]))
        assert span is not None
        found.append(span.low[picked] <= 40 <= span.high[picked])
    with pytest.raises(Refuted):
        accept(too_rarely_p(float(np.mean(found))))


def test_intervals_of_means_are_not_narrowed_by_the_draws_they_are_made_of() -> None:
    """The draws have a fixed seed: an interval is compared with errors of 6,000 releases, once for all of them."""
    made, source, data = plan(stats.mean, VALUES, bounds=(0, 100), epsilon=1), SeededSource(6), rows(VALUES)
    noisy = [made.measure(data, source) for _ in range(6000)]
    off = np.array([made.value(one) for one in noisy]) - VALUES.mean()
    span = made.interval(noisy[0], LEVEL)
    assert span is not None
    low, high = span.low - made.value(noisy[0]), span.high - made.value(noisy[0])
    assert np.mean((-high <= off) & (off <= -low)) > 0.945
