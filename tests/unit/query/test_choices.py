"""Private choices come to the truth where many rows share a value: extremes, quantiles among zeros, medians.

Weights of cells are made up, noise is drawn from fixed seeds, and what is asserted held with a wide margin.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tacit.query.private_choices import BEYOND, WEIGHT
from tests.support.plans import plan_sql

TABLE = Table(
    "people",
    (
        Column("uid", Kind.INTEGER, nullable=False),
        Column("age", Kind.INTEGER, Bounds(0, 120), nullable=False),
        Column("gain", Kind.REAL, Bounds(0, 100_000), nullable=False),
    ),
    Unit("uid"),
    Limits(rows_per_unit=1),
)
RNG = np.random.default_rng(4)
AGES = np.concatenate([np.full(400, 17), RNG.integers(17, 91, 20_000)])
GAINS = np.where(RNG.random(20_000) < 0.92, 0.0, RNG.uniform(0, 99_999, 20_000))


def planned(sql: str, epsilon: float = 1.0) -> Plan:
    return plan_sql(
        f"SELECT {sql} FROM people", Schema([TABLE]), Target(epsilon=epsilon), BudgetTerms(), PlanSettings()
    )


def chosen(plan: Plan, values: NDArray[np.float64] | NDArray[np.int64], draws: int = 60) -> NDArray[np.float64]:
    """Return what is chosen again and again over the same values."""
    (choice,), (mechanism,), source = plan.choices, plan.price.choices, SeededSource(5)
    width = float(choice.cells.width)
    places = np.minimum((values - float(choice.cells.lower)) // width, choice.cells.count - 1).astype(np.int64)
    cells, rows = np.unique(places, return_counts=True)
    weights = rows.astype(np.int64) * WEIGHT
    return np.array([float(choice.choose(cells.tolist(), weights, mechanism, source)) for _ in range(draws)])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("aggregate", "truth"), [("MIN(age)", 17), ("MAX(age)", 90)])
def test_an_extreme_that_many_rows_share_is_found(aggregate: str, truth: int, epsilon: float) -> None:
    found = chosen(planned(aggregate, epsilon), AGES)
    assert np.mean(found == truth) > 0.9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_quantile_among_zeros_is_in_their_cell(share: float, epsilon: float) -> None:
    found = chosen(planned(f"QUANTILE(gain, {share})", epsilon), GAINS)
    assert found.max() < 100_000 / 1024


def test_an_extreme_lies_beyond_all_rows_as_seldom_as_stated() -> None:
    beyond = np.mean(chosen(planned("MAX(age)", 0.5), np.full(5_000, 3), draws=2_000) > 3)
    assert 0.2 / BEYOND < beyond < 1.3 / BEYOND  # the other candidates, nearly all, are empty and above


def test_a_quantile_between_two_values_may_be_any_value_between_them() -> None:
    found = chosen(planned("MEDIAN(age)", 10.0), np.repeat([20, 60], 500), draws=400)
    assert set(found) == {float(age) for age in range(20, 61)}
