"""A training that states the delta of its budget is counted at what the budget leaves for it, and not refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import tacit
from tacit import learn
from tacit.learn.counted_delta import counted_delta
from tacit.privacy.errors import BudgetExceeded

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(200, 3)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.int64)


def train(budget: tacit.Budget, epsilon: float) -> tacit.Cost:
    model = torch.nn.Linear(3, 2)
    return learn.make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (ROWS, LABELS),
        epsilon=epsilon,
        delta=1e-5,
        batch_size=20,
        epochs=1,
        budget=budget,
    ).cost


def test_several_trainings_state_the_whole_delta_of_their_budget() -> None:
    budget = tacit.Budget(epsilon=3.0, delta=1e-5)
    costs = [train(budget, 0.5) for _ in range(3)]
    assert all(0.49 < one.epsilon <= 0.5 for one in costs)
    assert [one.delta for one in costs] == pytest.approx([5e-7, 2.5e-7, 1.25e-7])
    assert budget.spent().delta <= 1e-6


def test_many_fits_that_state_the_whole_delta_never_use_it_up() -> None:
    """Once a delta did not fit, the sum of epsilons was left for good, and 4 of 5 epsilons were gone."""
    budget = tacit.Budget(epsilon=5.0, delta=1e-5)
    for count in range(1, 7):
        model = learn.LinearRegression(epsilon=0.5, delta=3e-6, bounds=(-9, 9), target_bounds=(0, 1), budget=budget)
        model.fit(ROWS, LABELS)
        assert budget.remaining().epsilon == pytest.approx(5.0 - 0.5 * count)


def test_an_estimator_and_a_student_state_the_whole_delta_of_their_budget() -> None:
    budget = tacit.Budget(epsilon=8.0, delta=1e-6)
    model = learn.LogisticRegression(epsilon=1.0, delta=1e-6, bounds=(-3, 3), classes=[0, 1], budget=budget)
    model.fit(ROWS, LABELS)
    assert (model.cost_.epsilon, model.cost_.delta) == (pytest.approx(1.0), pytest.approx(5e-8))
    student = learn.PATE(
        teacher=lambda x, y: lambda queries: (queries[:, 0] > 0).astype(int),
        teachers=5,
        classes=[0, 1],
        aggregator=learn.GNMax(4.0),
        budget=budget,
        delta=1e-6,
        queries=2,
    )
    assert student.preview().delta <= 5.1e-8


def test_a_delta_that_is_left_is_counted_as_it_is() -> None:
    assert counted_delta(tacit.Budget(1.0, 1e-4), 1e-5) == 1e-5


def test_a_budget_without_delta_refuses_a_training() -> None:
    with pytest.raises(BudgetExceeded, match="delta"):
        train(tacit.Budget(3.0), 1.0)


def test_a_training_on_a_table_takes_an_eighth_of_the_stated_deltas_at_most_and_leaves_pure_epsilons(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame({"person": range(200), "x": ROWS[:, 0], "y": LABELS})
    columns = {"x": tacit.Bounds(-3, 3), "y": tacit.Categories([0, 1])}
    with tacit.Curator(tmp_path / "folder") as curator:
        curator.add_table("t", frame, unit="person", limits=tacit.Limits(rows_per_unit=1), columns=columns)
        curator.set_budget("t", epsilon=6.0, delta=1e-5)
        model = learn.LogisticRegression()
        trained = curator.train("t", model, features=["x"], target="y", epsilon=1.0, delta=1e-3)
        again = curator.train("t", model, features=["x"], target="y", epsilon=1.0, delta=1e-3)
        assert trained.cost.delta == pytest.approx(1e-6 / 8)
        assert again.cost.epsilon == 0
        assert curator.budget("t").remaining().epsilon == pytest.approx(5.0)
