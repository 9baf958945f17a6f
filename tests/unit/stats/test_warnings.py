"""Answers about no rows, or too few to be seen through the noise, say so; from released numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit import Budget, stats

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
