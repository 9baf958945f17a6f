"""Partitions of bounds, trees of counts, and quantiles from them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import OutOfRange, WrongKind
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.cells import Partition, edge_of
from tacit.stats.count_tree import consistent_cells, level_counts, level_sizes
from tacit.stats.cumulative_counts import cumulative_counts, isotonic, quantile_cells, quantile_position


@pytest.mark.parametrize(
    ("kind", "bounds", "count", "is_whole"),
    [
        (Kind.INTEGER, Bounds(0, 120), 121, True),
        (Kind.INTEGER, Bounds(0, 4095), 4096, True),
        (Kind.INTEGER, Bounds(0, 4096), 4096, False),
        (Kind.REAL, Bounds(0, 120), 4096, False),
        (Kind.BOOLEAN, Bounds(0, 1), 2, True),
        (Kind.DATE, Bounds("2024-01-01", "2024-12-31"), 366, True),
        (Kind.DATE, Bounds("1924-01-01", "2024-12-31"), 2047, False),
        (Kind.TIME, Bounds("2024-01-01", "2024-12-31"), 2047, False),
    ],
)
def test_short_ranges_have_a_cell_for_each_value(kind: Kind, bounds: Bounds, count: int, is_whole: bool) -> None:
    cells = Partition.of("x", kind, bounds, 4096)
    assert (cells.count, cells.is_whole) == (count, is_whole)
    assert cells.cut.cells == count


@pytest.mark.parametrize("bounds", [Bounds(-3, 17.5), Bounds(0, 1e-9), Bounds(-1e12, 1e12)])
def test_a_value_lies_between_the_ends_of_its_cell(bounds: Bounds) -> None:
    cells = Partition.of("x", Kind.REAL, bounds, 1000)
    values = np.linspace(float(bounds.lower), float(bounds.upper), 777)  # type: ignore[arg-type]
    for value, cell in zip(values, ArrayColumn("x", values).cells(cells.cut), strict=True):
        low, high = cells.span(int(cell), int(cell))
        assert low <= value <= high * (1 + 1e-15)


def test_every_day_lies_in_the_cell_that_is_named_after_it() -> None:
    bounds = Bounds("1990-01-01", "2024-12-31")
    days = np.arange("1990-01-01", "2025-01-01", dtype="datetime64[D]")
    for most in (365, 20_000):
        cells = Partition.of("x", Kind.DATE, bounds, most)
        for day, cell in zip(days.tolist(), ArrayColumn("x", days).cells(cells.cut).tolist(), strict=True):
            low, high = cells.span(cell, cell)
            assert low <= day <= high
        assert cells.at(cells.count) == date(2024, 12, 31)


def test_bounds_must_leave_a_range_and_be_of_the_columns_kind() -> None:
    with pytest.raises(OutOfRange):
        Partition.of("x", Kind.REAL, Bounds(1, 1), 10)
    with pytest.raises(OutOfRange):
        Partition.of("x", Kind.REAL, Bounds(1, 1 + 2**-52), 4096)
    with pytest.raises(WrongKind):
        Partition.of("x", Kind.REAL, Bounds("2024-01-01", "2024-01-02"), 10)
    with pytest.raises(WrongKind):
        Partition.of("x", Kind.TEXT, Bounds(0, 1), 10)


def test_times_with_a_zone_are_turned_into_utc() -> None:
    edge = datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert edge_of("x", Kind.TIME, edge) == datetime(2024, 1, 1, 12)
    assert edge_of("x", Kind.DATE, datetime(2024, 1, 1, 12)) == date(2024, 1, 1)


@pytest.mark.parametrize(
    ("count", "levels"), [(1, (1,)), (64, (64,)), (65, (5, 65)), (4096, (16, 256, 4096)), (10_000, (40, 625, 10_000))]
)
def test_levels_grow_sixteenfold(count: int, levels: tuple[int, ...]) -> None:
    assert level_sizes(count) == levels


@pytest.mark.parametrize("count", [1, 64, 65, 121, 1000, 4096])
def test_exact_counts_are_consistent_with_themselves(count: int) -> None:
    leaves = np.random.default_rng(1).integers(0, 9, (2, count))
    levels = level_counts(leaves)
    assert [level.shape[-1] for level in levels] == list(level_sizes(count))
    assert all(level.sum() == leaves.sum() for level in levels)
    assert consistent_cells([level.astype(float) for level in levels]) == pytest.approx(leaves)


@pytest.mark.parametrize("count", [65, 300])
def test_consistent_counts_are_those_of_least_squares(count: int) -> None:
    noisy = [np.random.default_rng(2).normal(10, 3, size) for size in level_sizes(count)]
    rows = np.vstack([level.T for level in level_counts(np.eye(count, dtype=np.int64))])
    expected = np.linalg.lstsq(rows, np.concatenate(noisy), rcond=None)[0]
    assert consistent_cells(noisy) == pytest.approx(expected, abs=1e-8)


def test_rising_means_are_nearest_by_least_squares() -> None:
    assert isotonic(np.array([1.0, 3.0, 2.0, 2.0, 5.0])).tolist() == pytest.approx([1, 7 / 3, 7 / 3, 7 / 3, 5])
    assert isotonic(np.array([3.0, 2.0, 1.0])).tolist() == [2, 2, 2]


def test_a_share_is_crossed_where_so_many_rows_lie_below() -> None:
    below = cumulative_counts(np.array([0, 4, 0, 4]))
    assert quantile_position(below, 0.25) == pytest.approx(1.5)
    assert quantile_position(below, 0.75) == pytest.approx(3.5)
    assert quantile_position(np.array([0.0, -3.0, -2.0]), 0.5) == 1.0


def test_cells_are_accepted_as_far_as_the_noise_explains() -> None:
    below = cumulative_counts(np.full(10, 10))
    assert quantile_cells(below, np.zeros(11), 0.5) == (4, 5)
    assert quantile_cells(below, np.full(11, 15.0), 0.5) == (3, 6)
    assert quantile_cells(below, np.full(11, 1000.0), 0.5) == (0, 9)
    assert quantile_cells(-below, np.zeros(11), 0.5)[0] >= 0
