"""Answers about no rows, or too few to be seen through the noise, say so; from released numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit import Budget, stats
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays

EMPTY = np.array([], dtype=np.float64)
MANY = np.random.default_rng(1).normal(50, 10, 5000)
ASKS: dict[str, Any] = {
    "mean": lambda values, **asked: stats.mean(values, bounds=(0, 100), **asked),
    "variance": lambda values, **asked: stats.variance(values, bounds=(0, 100), **asked),
    "median": lambda values, **asked: stats.median(values, bounds=(0, 100), **asked),
    "median by a tree": lambda values, **asked: stats.median(values, bounds=(0, 100), method="tree", **asked),
    "quantile": lambda values, **asked: stats.quantile(values, 0.9, bounds=(0, 100), **asked),
    "box plot": lambda values, **asked: stats.box_plot(values, bounds=(0, 100), **asked),
    "cdf": lambda values, **asked: stats.cdf(values, bounds=(0, 100), **asked),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_answer_about_no_rows_warns_and_one_about_many_does_not(ask: Any, delta: float) -> None:
    """Noise alone passes for rows in 1 of 40 answers; that it does in 4 of 8 has a probability below one in 30,000."""
    asked = {"epsilon": 1.0, "budget": Budget(epsilon=100.0, delta=delta) if delta else Budget(epsilon=100.0)}
    warned = [ask(EMPTY, **asked) for _ in range(8)]
    assert sum("may be no rows at all" in one.card for one in warned) > 4
    answer = ask(MANY, **asked)
    assert answer.warnings == ()
    assert "Warning" not in answer.card


@pytest.mark.parametrize("name", ["mean", "median", "cdf"])
def test_a_warning_names_the_groups_without_rows(name: str) -> None:
    groups = np.where(np.arange(len(MANY)) % 2, "a", "b")
    asked: Any = {"by": groups, "keys": ["a", "b", "c"], "epsilon": 1.0, "budget": Budget(epsilon=100.0)}
    found = [ASKS[name](MANY, **asked).warnings for _ in range(5)]
    assert sum(any("at all for c:" in one for one in each) for each in found) > 2


def test_the_interval_of_a_median_of_no_rows_spans_the_bounds() -> None:
    spans = [stats.median(EMPTY, bounds=(0, 100), epsilon=1, budget=Budget(epsilon=1)).interval() for _ in range(20)]
    assert np.mean([span.high - span.low for span in spans if span is not None]) > 80


def relation(ask: Any, count: int, seed: int, releases: int = 60) -> list[tuple[float, tuple[str, ...]]]:
    """Return values and warnings for a true slope of 0.5 over times of deviation 5, within 0 to 100."""
    generator = np.random.default_rng(seed)
    times = np.clip(generator.normal(45, 5, count), 0, 100)
    values = np.clip(0.5 * times + generator.normal(20, 5, count), 0, 100)
    rows, source = ArrayRows(*read_arrays({"value": values, "other": times})), SeededSource(seed)
    bounds = {"bounds": (0, 100), "time_bounds" if ask is stats.trend else "other_bounds": (0, 100)}
    plan = ask(values[:2], times[:2], **bounds, epsilon=1.0, budget=Budget(epsilon=1.0)).plan
    found = [plan.measure(rows, source) for _ in range(releases)]
    return [(plan.value(one), plan.warnings(one)) for one in found]


def test_a_slope_over_times_whose_variance_may_be_0_warns() -> None:
    """Two of five slopes are above 100; one without a warning, or none above 100, has a probability below 10^-6."""
    found = relation(stats.trend, 300, seed=1)
    absurd = [warnings for slope, warnings in found if abs(slope) > 100]
    assert absurd
    assert all("all values of other may be equal" in " ".join(warnings) for warnings in absurd)
    assert not any(warnings for _, warnings in relation(stats.trend, 100_000, seed=2, releases=5))


def test_a_correlation_with_a_column_whose_variance_may_be_0_warns() -> None:
    """Nine of ten releases warn; that fewer than half of 60 do has a probability below 10^-12."""
    found = relation(stats.correlation, 300, seed=3)
    assert sum(any("may be equal" in one for one in warnings) for _, warnings in found) > 30
    assert not any(warnings for _, warnings in relation(stats.correlation, 100_000, seed=4, releases=5))


def test_a_warning_names_the_groups_whose_variance_may_be_0() -> None:
    """One of 20 releases does not warn of a variance of 0; that 10 of 20 do not has a probability below 10^-6."""
    groups = np.repeat(["a", "b"], 20_000)
    times = np.where(groups == "a", 50.0, np.arange(40_000) % 101)
    asked: Any = {"by": groups, "keys": ["a", "b"], "epsilon": 1, "budget": Budget(epsilon=1)}
    plan = stats.trend(times, times, bounds=(0, 100), time_bounds=(0, 100), **asked).plan
    rows, source = ArrayRows(*read_arrays({"value": times, "other": times, "group": groups})), SeededSource(5)
    found = [plan.warnings(plan.measure(rows, source)) for _ in range(20)]
    assert sum("may be equal for a:" in " ".join(one) for one in found) > 10
    assert not any("b:" in one for each in found for one in each)
