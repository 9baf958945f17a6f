"""Warnings of floating point, which depend on private rows, are not shown by a release."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import learn, stats
from tacit.stats.array_sums import ArrayRows
from tests.support.estimators import EXAMPLES


def overflowing(measure: Any) -> Any:
    def measuring(*given: Any) -> Any:
        if isinstance(given[1], ArrayRows):
            np.exp(np.array([1e9]))
            np.array([np.nan, 1e300]).astype(np.int32)
            np.zeros(1) / np.zeros(1)
        return measure(*given)

    return measuring


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@pytest.mark.parametrize("bounds", ["stated", "learn"])
def test_a_fit_shows_no_warning_of_its_rows(name: str, bounds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    example = EXAMPLES[name]
    learns = {"bounds": "learn"} if bounds == "learn" and "bounds" in example.stated else {}
    model = example.estimator(**learns)
    plan = type(model.prepare(example.X, example.y).plan)
    monkeypatch.setattr(plan, "measure", overflowing(plan.measure))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(example.X, example.y)


def test_a_statistic_shows_no_warning_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Any = {"bounds": (0, 1), "epsilon": 1.0, "budget": tacit.Budget(2.0)}
    plan = type(stats.prepare(stats.mean, [0.5], **asked).plan)
    monkeypatch.setattr(plan, "measure", overflowing(plan.measure))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stats.mean([0.5], **asked)


def test_scores_of_any_size_are_probabilities_without_a_warning() -> None:
    """A search scores models on private rows, whose scores have no bound."""
    rows = np.array([[1.0], [9.0]] * 20)
    model = learn.HistGradientBoostingClassifier(
        epsilon=100.0, bounds=(0, 10), classes=[0, 1], max_iter=20, n_bins=8, learning_rate=1000.0
    ).fit(rows, [0, 1] * 20)
    assert np.abs(model.decision_function(rows)).max() > 710  # of which exp overflows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict_proba(rows)
    assert found.sum(axis=1) == pytest.approx(np.ones(40))
