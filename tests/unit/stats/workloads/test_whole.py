"""Counts that could be true: whole, not negative, adding up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.stats.workloads.estimation import (
    project_to_simplex,
    round_cells,
    round_tables,
    round_to_total,
    round_with_margins,
)
from tacit.stats.workloads.interactions import closure
from tacit.stats.workloads.strategy_matrices import Tree

Array = np.ndarray[Any, np.dtype[np.float64]]
NUMBERS = st.lists(st.floats(-50, 200, allow_nan=False), min_size=1, max_size=12)


@given(NUMBERS, st.integers(0, 500))
def test_numbers_are_put_onto_the_simplex_and_rounded_with_their_sum(values: list[float], total: int) -> None:
    near = project_to_simplex(np.array(values), total)
    assert near.min() >= 0
    assert near.sum() == pytest.approx(total, abs=1e-6)
    whole = round_to_total(near, total)
    assert whole.sum() == total
    assert whole.min() >= 0
    assert np.abs(whole - near).max() <= 1


def test_what_is_on_the_simplex_stays() -> None:
    np.testing.assert_allclose(project_to_simplex(np.array([3.0, 1.0, 0.0]), 4), [3, 1, 0])


@given(st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_cells_are_whole_and_near_in_every_node(seed: int) -> None:
    generator = np.random.default_rng(seed)
    tree = Tree.balanced(30, (5, 15))
    estimate = generator.normal(20, 5, 30)
    found = round_cells(estimate, tree)
    assert found.min() >= 0
    assert found.dtype == np.int64
    for exact, near in zip(tree.sums(found), tree.level_sums(estimate), strict=True):
        if near.min() > 6:
            assert np.abs(exact - near).max() <= 3


def test_empty_cells_do_not_push_sums_up() -> None:
    generator = np.random.default_rng(1)
    estimate = generator.normal(0, 10, 1024)
    estimate[512] += 5000
    found = round_cells(estimate, Tree.balanced(1024, (4, 16, 64, 256)))
    clamped = np.maximum(np.rint(estimate), 0)
    assert abs(found.sum() - estimate.sum()) <= 1
    assert clamped.sum() > estimate.sum() + 3000


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_a_two_way_table_has_the_margins_that_are_stated(seed: int, height: int, width: int) -> None:
    generator = np.random.default_rng(seed)
    true = generator.integers(0, 30, (height, width)) * generator.integers(0, 2, (height, width))
    rows, columns = true.sum(axis=1), true.sum(axis=0)
    found = round_with_margins(true + generator.normal(0, 20, true.shape), rows, columns)
    assert found.min() >= 0
    np.testing.assert_array_equal(found.sum(axis=1), rows)
    np.testing.assert_array_equal(found.sum(axis=0), columns)
    np.testing.assert_array_equal(round_with_margins(true.astype(float), rows, columns), true)


def test_tables_agree_as_is_promised() -> None:
    generator = np.random.default_rng(3)
    sizes = (3, 4, 2, 5)
    order = closure([(0, 1, 2), (1, 3), (2, 3)])
    full = generator.poisson(3.0, sizes).astype(float)
    estimates = {}
    for columns in order:
        dropped = tuple(axis for axis in range(4) if axis not in columns)
        exact = full.sum(axis=dropped)
        estimates[columns] = exact + generator.normal(0, 8, exact.shape)
    found = round_tables(estimates, order)
    total = int(found[()])
    for columns, table in found.items():
        assert table.min() >= 0
        assert table.sum() == total
        if len(columns) == 2:
            np.testing.assert_array_equal(table.sum(axis=1), found[columns[:1]])
            np.testing.assert_array_equal(table.sum(axis=0), found[columns[1:]])
        if len(columns) == 3:
            np.testing.assert_array_equal(table.sum(axis=2), found[columns[:2]])
