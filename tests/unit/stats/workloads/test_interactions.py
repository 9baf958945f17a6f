"""Interactions: tables put together from them agree, and their variances are those of least squares."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from tacit.stats.workloads import interactions
from tacit.stats.workloads.interactions import ColumnSet, MeasuredShares, Sizes

SIZES = (3, 2, 4)
FULL = (0, 1, 2)
CELLS = list(product(*(range(size) for size in SIZES)))
Array = np.ndarray[Any, np.dtype[np.float64]]


def margin(columns: ColumnSet) -> Array:
    """The matrix that takes the whole table to the one by some columns."""
    places = list(product(*(range(SIZES[one]) for one in columns)))
    return np.array([[tuple(cell[one] for one in columns) == place for cell in CELLS] for place in places], dtype=float)


def least_squares(measured: dict[ColumnSet, float], table: ColumnSet) -> Array:
    """The covariance of a table by least squares on the full domain, the slow way."""
    rows = np.vstack([margin(one) / np.sqrt(spread) for one, spread in measured.items()])
    asked = margin(table)
    return asked @ np.linalg.pinv(rows.T @ rows) @ asked.T


def test_a_table_is_the_sum_of_its_interactions() -> None:
    table = np.sin(np.arange(24.0)).reshape(SIZES)
    parts = {}
    for one in interactions.subsets(FULL):
        dropped = tuple(axis for axis in FULL if axis not in one)
        parts[one] = interactions.centre(table.sum(axis=dropped))
    np.testing.assert_allclose(interactions.assemble_table(SIZES, parts, FULL), table, atol=1e-12)
    np.testing.assert_allclose(interactions.assemble_table(SIZES, parts, (0, 2)), table.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("table", [(), (0,), (1,), (0, 1), (0, 2)])
def test_variances_after_least_squares_are_those_of_the_full_matrix(table: ColumnSet) -> None:
    measured = {(0, 1): 2.0, (0, 2): 0.7, (1,): 5.0}
    known = interactions.interaction_variances(SIZES, measured, interactions.closure(measured))
    spread = interactions.cell_variance(SIZES, known, table)
    np.testing.assert_allclose(np.diag(least_squares(measured, table)), spread)


def test_estimates_are_those_of_least_squares_and_agree_in_their_margins() -> None:
    measured = {(0, 1): 2.0, (0, 2): 0.7, (1,): 5.0}
    noisy = {
        one: np.cos(np.arange(float(interactions.cells(SIZES, one)))).reshape([SIZES[c] for c in one])
        for one in measured
    }
    found = interactions.estimate_interactions(SIZES, noisy, measured, interactions.closure(measured))
    rows = np.vstack([margin(one) / np.sqrt(spread) for one, spread in measured.items()])
    values = np.concatenate([noisy[one].ravel() / np.sqrt(spread) for one, spread in measured.items()])
    cells = np.linalg.pinv(rows.T @ rows) @ rows.T @ values
    for table in ((0, 1), (0, 2), (1,), (0,), ()):
        np.testing.assert_allclose(
            interactions.assemble_table(SIZES, found, table).ravel(), margin(table) @ cells, atol=1e-10
        )


def test_the_kurtosis_of_a_cell_is_that_of_its_coefficients() -> None:
    measured = {(0, 1): 2.0, (0, 2): 0.7, (1,): 5.0}
    rows = np.vstack([margin(one) for one in measured])
    weights = np.concatenate([np.full(interactions.cells(SIZES, one), 1 / spread) for one, spread in measured.items()])
    known = interactions.interaction_variances(SIZES, measured, interactions.closure(measured))
    for table in ((0, 1), (0, 2), (2,), ()):
        inverse = np.linalg.pinv(rows.T @ (weights[:, None] * rows))
        shares = (margin(table) @ inverse @ rows.T * weights)[0]
        expected = 3 * np.sum(shares**4 / weights**2) / np.sum(shares**2 / weights) ** 2
        assert interactions.kurtosis(SIZES, measured, known, table) == pytest.approx(expected)


def test_gaussian_shares_have_the_least_error_of_all_shares() -> None:
    sets = ((0, 1), (0, 2), (1, 2))
    found = interactions.choose_interactions(SIZES, sets)
    asked = dict.fromkeys(sets, 1 / 3)

    def error(shares: dict[ColumnSet, float]) -> float:
        return sum(
            interactions.interaction_weight(SIZES, asked, one) * interactions.kept_share(SIZES, one) / share
            for one, share in shares.items()
        )

    shares = dict(found.shares)
    assert sum(shares.values()) == pytest.approx(1)
    assert error(shares) == pytest.approx(found.error)
    for one in shares:
        moved = {other: share * (1.1 if other == one else 1.0) for other, share in shares.items()}
        total = sum(moved.values())
        assert error({other: share / total for other, share in moved.items()}) > found.error


def least_squares_error(sizes: Sizes, sets: tuple[ColumnSet, ...], found: MeasuredShares) -> float:
    variances = {one: 1 / share**2 for one, share in found.shares}
    known = interactions.interaction_variances(sizes, variances, interactions.closure(sets))
    asked = dict.fromkeys(sets, 1 / len(sets))
    return math.fsum(interactions.interaction_weight(sizes, asked, one) * known[one] for one in known)


def test_laplace_shares_beat_measuring_each_table_alone_and_the_full_table() -> None:
    sizes, sets = (8, 9, 10, 8, 9), tuple((i, j) for i in range(5) for j in range(i + 1, 5))
    found = interactions.choose_tables(sizes, sets)
    assert sum(share for _, share in found.shares) == pytest.approx(1)
    assert least_squares_error(sizes, sets, found) == pytest.approx(found.error)
    assert found.error < len(sets) ** 2
    small, every = (2, 2, 2), tuple((i, j) for i in range(3) for j in range(i + 1, 3))
    assert interactions.choose_tables(small, every).shares == (
        ((0, 1, 2), 1.0),
    )  # 2 cells of noise, and not 9 times one


def test_a_column_with_one_cell_is_no_interaction() -> None:
    found = interactions.choose_interactions((1, 3), ((0, 1),))
    assert [one for one, _ in found.shares] == [(), (1,)]
