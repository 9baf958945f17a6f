"""The two sums of a mean together move by no more than the one noise that they are released with was made for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import Budget, stats
from tacit.mechanisms import Laplace
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.moments import TwoSided

NUMBERS = st.lists(st.floats(-50, 150), min_size=0, max_size=6)
BOUNDS = st.tuples(st.integers(-40, 40), st.integers(1, 90)).map(lambda ends: (ends[0], ends[0] + ends[1]))


def planned(bounds: tuple[int, int], per_unit: int, relation: Relation, **by: Any) -> TwoSided:
    asked: Any = {"unit": [1], "rows_per_unit": per_unit, "budget": Budget(epsilon=3.0, relation=relation)}
    plan = stats.mean([1.0], bounds=bounds, epsilon=0.5, **by, **asked).plan
    assert isinstance(plan, TwoSided)
    return plan


def sums(plan: TwoSided, values: list[float], per_unit: int) -> Any:
    read, unit = read_arrays({"value": np.array(values, dtype=np.float64)}, np.zeros(len(values), dtype=np.int64))
    return ArrayRows(read, unit, per_unit).sums([part.term for part in plan.parts], (), ["value"])


@given(NUMBERS, NUMBERS, BOUNDS, st.integers(1, 3))
def test_adding_or_exchanging_a_unit_moves_both_sums_together_by_no_more_than_was_charged(
    one: list[float], other: list[float], bounds: tuple[int, int], per_unit: int
) -> None:
    for relation, instead in ((Relation.ADD_REMOVE, []), (Relation.REPLACE_ONE, other)):
        plan = planned(bounds, per_unit, relation)
        noise = plan.parts[0].noise
        assert isinstance(noise, Laplace)
        assert all(part.noise == noise for part in plan.parts)
        moved = np.abs(sums(plan, one, per_unit) - sums(plan, instead, per_unit)).sum()
        assert moved <= Fraction(noise.sensitivity)


@pytest.mark.parametrize("value", [0.0, 13.0, 50.0, 100.0])
def test_every_row_moves_them_by_the_width_of_the_bounds_so_less_noise_would_be_noticed(value: float) -> None:
    plan = planned((0, 100), 1, Relation.ADD_REMOVE)
    noise = plan.parts[0].noise
    assert isinstance(noise, Laplace)
    assert np.abs(sums(plan, [value], 1)).sum() == noise.sensitivity


def test_one_epsilon_is_charged_for_both_sums_and_it_is_that_of_their_noise() -> None:
    plan = planned((0, 100), 2, Relation.ADD_REMOVE)
    noise = plan.parts[0].noise
    assert isinstance(noise, Laplace)
    assert plan.event == noise.event
    assert float(noise.epsilon) == 0.5


def test_a_mean_with_gaussian_noise_has_a_sum_and_a_count() -> None:
    answer = stats.mean([1.0, 2.0], bounds=(0, 4), rho=0.1, budget=Budget(epsilon=3.0, delta=1e-6))
    assert not isinstance(answer.plan, TwoSided)
