"""Sums over arrays are exact up to 2^62 and clamped beyond, so that one row never moves one by more than its term."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit import stats
from tacit.measuring.moments import SATURATION
from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayRows, _sum_by_cell, read_arrays
from tacit.stats.rows import REACH_MAX, ColumnSteps, Cut, Term


def clamped(number: int) -> int:
    return max(-SATURATION, min(number, SATURATION))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-REACH_MAX, REACH_MAX), st.integers(0, 2)), max_size=30),
    st.integers(1, 2**24),
)
def test_sums_are_those_of_whole_numbers(rows: list[tuple[int, int]], times: int) -> None:
    """Many rows are put for by few large ones, which add up to as much."""
    large = [(max(-(2**50), min(number * times, 2**50)), cell) for number, cell in rows]
    numbers, cells = (np.array([row[place] for row in large], dtype=np.int64) for place in (0, 1))
    for count in (1, 3):
        at = np.zeros_like(cells) if count == 1 else cells
        exact = [clamped(sum(n for n, c in zip(numbers.tolist(), at.tolist(), strict=True) if c == place))
                 for place in range(count)]  # fmt: skip
        assert _sum_by_cell(numbers, at, count).tolist() == exact


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_greatest_terms_of_millions_of_rows_do_not_wrap_around(count: int, sign: int) -> None:
    rows = 2**23 + 5  # 2^63 and more
    numbers = np.full(rows, sign * REACH_MAX, dtype=np.int64)
    cells = np.zeros(rows, dtype=np.int64)
    assert _sum_by_cell(numbers, cells, count)[0] == sign * SATURATION
    assert _sum_by_cell(numbers[: 2**22], cells[: 2**22], count)[0] == sign * SATURATION
    assert _sum_by_cell(numbers[: 2**22 - 1], cells[: 2**22 - 1], count)[0] == sign * (SATURATION - REACH_MAX)


@pytest.mark.parametrize("end", [-SATURATION, SATURATION])
def test_near_the_end_of_sums_one_row_moves_them_by_no_more_than_its_term(end: int) -> None:
    near = [end + step for step in (-(2**20) - 1, -(2**20), -1, 0, 1, 2**20 - 1, 2**20, 2**20 + 1)]
    found = [int(_sum_by_cell(np.array([one], dtype=np.int64), np.zeros(1, dtype=np.int64), 1)[0]) for one in near]
    assert found == [clamped(one) for one in near]


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.REAL])
@pytest.mark.parametrize("steps", [2**12, 2**16, 2**20])
@pytest.mark.parametrize("bounds", [(-(2**49), 2**49), (2**49, 2**49 + 1), (0, 0), (-1e-300, 1e-300), (0.1, 0.3)])
def test_no_value_gives_a_term_beyond_its_ends(bounds: tuple[float, float], steps: int, kind: Kind) -> None:
    values = np.array([*bounds, np.inf, -np.inf, 1e308, -1e308, 0.0, -0.0, 5e-324, np.nextafter(bounds[1], np.inf)])
    for centred in (True, False):
        scale = ColumnSteps.of("x", Bounds(*bounds), kind, steps, centred=centred)
        try:
            terms = [Term((scale,)), Term((scale, scale), scale.reach**2 // 2)]
        except tacit.TacitError:
            continue
        rows = ArrayRows(*read_arrays({"x": values}))
        for term in terms:
            numbers = rows._numbers(term)
            assert term.ends[0] <= numbers.min()
            assert numbers.max() <= term.ends[1]


def test_many_large_values_add_up() -> None:
    budget: Any = tacit.Budget(1e6)
    rows = 2**20
    found = stats.sum(np.full(rows, 2**49), bounds=(0, 2**49), epsilon=1000.0, budget=budget)
    assert found.value == pytest.approx(rows * 2.0**49, rel=1e-3)
    assert (
        ArrayRows(*read_arrays({"x": np.ones(rows)})).sums([Term()], (Cut("x", edges=(0.0, 1.0, 2.0)),)).sum() == rows
    )
