"""Sums, means and their kin: what they are without noise, and what is refused before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit import stats
from tacit.measuring.allocation import Allocation
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy.errors import TacitError
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayColumn, ArrayRows, UnitColumn
from tacit.stats.moments import Moments

EXACT = 100_000.0
"""An epsilon at which noise is far below what is compared."""

GENERATOR = np.random.default_rng(7)
AGES = GENERATOR.uniform(20, 90, 400)
PULSE = 50 + AGES / 3 + GENERATOR.normal(0, 5, 400)
WARDS = GENERATOR.choice(["north", "south"], 400)


def budget(**settings: Any) -> tacit.Budget:
    return tacit.Budget(**{"epsilon": 1e6, **settings})


def noises(answer: stats.Answer) -> list[Laplace | Gaussian]:
    assert isinstance(answer.plan, Moments)
    return [part.noise for part in answer.plan.parts]


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (stats.count, len(AGES)),
        (stats.sum, AGES.sum()),
        (stats.mean, AGES.mean()),
        (stats.variance, AGES.var(ddof=1)),
        (stats.std, AGES.std(ddof=1)),
    ],
)
def test_without_noise_a_statistic_is_what_numpy_says(statistic: Callable[..., stats.Answer], expected: float) -> None:
    bounds = {} if statistic is stats.count else {"bounds": (0, 120)}
    answer = statistic(AGES, **bounds, epsilon=EXACT, budget=budget())
    assert answer.value == pytest.approx(expected, rel=2e-3)
    span = answer.interval(0.95)
    assert span is not None
    assert span.low <= answer.value <= span.high


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (stats.covariance, np.cov(AGES, PULSE)[0, 1]),
        (stats.correlation, np.corrcoef(AGES, PULSE)[0, 1]),
    ],
)
def test_without_noise_two_columns_are_what_numpy_says(statistic: Callable[..., stats.Answer], expected: float) -> None:
    answer = statistic(AGES, PULSE, bounds=(0, 120), other_bounds=(0, 150), epsilon=EXACT, budget=budget())
    assert answer.value == pytest.approx(expected, rel=5e-3)


def test_without_noise_a_trend_is_the_slope_of_the_line() -> None:
    slope = np.polyfit(AGES, PULSE, 1)[0]
    answer = stats.trend(PULSE, AGES, bounds=(0, 150), time_bounds=(0, 120), epsilon=EXACT, budget=budget())
    assert answer.value == pytest.approx(slope, rel=5e-3)


def test_values_beyond_the_bounds_are_clamped_to_them() -> None:
    answer = stats.sum(np.array([-5, 3, 1000]), bounds=(0, 10), epsilon=EXACT, budget=budget())
    assert answer.value == 13


def test_groups_are_those_that_were_listed_in_their_order() -> None:
    answer = stats.mean(
        AGES, bounds=(0, 120), by=WARDS, keys=["south", "north", "east"], epsilon=EXACT, budget=budget()
    )
    assert answer.keys == [("south",), ("north",), ("east",)]
    assert answer.value[:2] == pytest.approx([AGES[WARDS == "south"].mean(), AGES[WARDS == "north"].mean()], rel=1e-3)


def test_two_groupings_make_a_number_for_each_pair() -> None:
    answer = stats.count(
        AGES, by={"ward": WARDS, "old": AGES > 50}, keys=[["north", "south"], None], epsilon=EXACT, budget=budget()
    )
    assert answer.key_names == ("ward", "old")
    assert answer.value[1] == int(((WARDS == "north") & (AGES > 50)).sum())


def test_of_a_unit_no_more_rows_are_counted_than_was_said() -> None:
    units = np.repeat([1, 2, 3], [50, 2, 1])
    answer = stats.count(np.ones(53), unit=units, rows_per_unit=5, epsilon=EXACT, budget=budget())
    assert answer.value == 5 + 2 + 1
    assert "at most 5 rows are counted" in answer.card


def test_rows_of_a_unit_are_chosen_anew_by_chance_alone() -> None:
    rows = ArrayRows({"x": ArrayColumn("x", [1, 2, 3, 4])}, UnitColumn([7, 7, 7, 7]), 1)
    chosen = {int(np.flatnonzero(rows.kept_rows(["x"]))[0]) for _ in range(200)}
    assert chosen == {0, 1, 2, 3}


def test_noise_grows_with_the_rows_of_a_unit() -> None:
    one = stats.count(AGES, unit=np.arange(400), rows_per_unit=1, epsilon=1, budget=budget())
    five = stats.count(AGES, unit=np.arange(400), rows_per_unit=5, epsilon=1, budget=budget())
    assert noises(five)[0].scale == 5 * noises(one)[0].scale


def test_under_replace_one_the_noise_is_twice_as_large() -> None:
    asked = {"bounds": (0, 120), "epsilon": 1}
    one = stats.mean(AGES, **asked, budget=budget())
    other = stats.mean(AGES, **asked, budget=budget(relation=Relation.REPLACE_ONE))
    assert [noise.scale for noise in noises(other)] == [2 * noise.scale for noise in noises(one)]
    assert {noise.relation for noise in noises(other)} == {Relation.REPLACE_ONE}


def test_missing_values_are_left_out() -> None:
    values = [1.0, None, 3.0, float("nan")]
    assert stats.count(values, epsilon=EXACT, budget=budget()).value == 2
    assert stats.mean(values, bounds=(0, 4), epsilon=EXACT, budget=budget()).value == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array, pa.chunked_array])
def test_columns_of_every_frame_are_read(make: Callable[[Any], Any]) -> None:
    values = [[20, 30, 100]] if make is pa.chunked_array else [20, 30, 100]
    answer = stats.mean(make(values), bounds=(0, 120), epsilon=EXACT, budget=budget())
    assert answer.value == pytest.approx(50, abs=0.1)


@pytest.mark.parametrize("make", [pd.Series, pl.Series])
def test_a_column_keeps_its_own_name(make: Callable[..., Any]) -> None:
    ages, wards = make([20, 30], name="age") if make is pd.Series else make("age", [20, 30]), ["n", "s"]
    answer = stats.mean(ages, bounds=(0, 120), by=wards, keys=["n", "s"], epsilon=1, budget=budget())
    assert answer.label == "mean of age"
    assert answer.key_names == ("group",)
    twice = stats.covariance(ages, ages, bounds=(0, 120), other_bounds=(0, 120), epsilon=1, budget=budget())
    assert twice.label == "covariance of age and age (other)"


def test_a_rho_is_spent_as_gaussian_noise() -> None:
    paying = tacit.Budget(epsilon=10.0, delta=1e-6, filter="zcdp")
    answer = stats.mean(AGES, bounds=(0, 120), rho=0.01, budget=paying)
    assert all(isinstance(noise, Gaussian) for noise in noises(answer))
    assert answer.cost.rho == pytest.approx(0.01, rel=1e-9)
    assert answer.cost.rho <= 0.01


def test_with_a_delta_many_sums_get_gaussian_noise_and_few_get_laplace_noise() -> None:
    allocation = Allocation.of(tacit.Budget(epsilon=100.0, delta=1e-3), epsilon=1.0)
    assert all(isinstance(noise, Gaussian) for noise in allocation.noises([1] * 30))
    assert all(isinstance(noise, Laplace) for noise in allocation.noises([1] * 3))
    assert all(isinstance(noise, Laplace) for noise in allocation.without_delta().noises([1] * 30))


def test_what_is_asked_is_what_is_charged() -> None:
    paying = tacit.Budget(epsilon=1.0)
    for _ in range(10):
        stats.variance(AGES, bounds=(0, 120), epsilon=0.1, budget=paying)
    assert paying.spent().epsilon == pytest.approx(1.0)
    with pytest.raises(tacit.BudgetExceeded):
        stats.count(AGES, epsilon=0.01, budget=paying)


REFUSED: list[tuple[str, Callable[[tacit.Budget], object]]] = [
    ("T104", lambda b: stats.mean("12", bounds=(0, 1), epsilon=1, budget=b)),
    ("T104", lambda b: stats.mean(np.array([[1, 2]]), bounds=(0, 1), epsilon=1, budget=b)),
    ("T104", lambda b: stats.mean(np.array([1j, 2]), bounds=(0, 1), epsilon=1, budget=b)),
    ("T104", lambda b: stats.mean([1, 2], bounds=7, epsilon=1, budget=b)),
    ("T104", lambda b: stats.mean([1, 2], bounds="0..1", epsilon=1, budget=b)),
    ("T104", lambda b: stats.covariance([1, 2], [1], bounds=(0, 1), other_bounds=(0, 1), epsilon=1, budget=b)),
    ("T104", lambda b: stats.count([1, 2], unit=[1], rows_per_unit=1, epsilon=1, budget=b)),
    ("T132", lambda b: stats.mean(np.array(["a", "b"]), bounds=(0, 1), epsilon=1, budget=b)),
    ("T132", lambda b: stats.mean(np.array(["a", "b"]), bounds="learn", epsilon=1, budget=b)),
    ("T204", lambda b: stats.mean([1, 2], epsilon=1, budget=b)),
    ("T204", lambda b: stats.count([1, 2], unit=[1, 2], epsilon=1, budget=b)),
    ("T204", lambda b: stats.count([1, 2], by=["a", "b"], epsilon=1, budget=b)),
    ("T204", lambda b: stats.sum([1, 2], bounds=(0, 2.0**60), epsilon=1, budget=b)),
    ("T103", lambda b: stats.mean([1, 2], bounds=(1, 0), epsilon=1, budget=b)),
    ("T102", lambda b: stats.mean([1, 2], bounds=(0, float("nan")), epsilon=1, budget=b)),
    ("T101", lambda b: stats.count([1, 2], epsilon=-1, budget=b)),
    ("T100", lambda b: stats.count([1, 2], budget=b)),
    ("T100", lambda b: stats.count([1, 2], epsilon=1, rho=1, budget=b)),
    ("T100", lambda b: stats.count([1, 2], epsilon=1, budget=b, analyst="ana")),
]


@pytest.mark.parametrize(("code", "ask"), REFUSED)
def test_what_cannot_be_answered_is_refused_and_costs_nothing(code: str, ask: Callable[[tacit.Budget], object]) -> None:
    paying = budget()
    with pytest.raises(TacitError) as refused:
        ask(paying)
    assert refused.value.code == code
    assert paying.spent().epsilon == 0


def test_without_a_budget_nothing_is_answered() -> None:
    with pytest.raises(TacitError) as refused:
        stats.count([1, 2], epsilon=1)
    assert refused.value.code == "T104"
