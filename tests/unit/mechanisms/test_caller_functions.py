"""Functions of the caller get arrays of their own: what they do to them changes neither a release nor the data."""

from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import ExponentialDensity, SubsampleAggregate
from tacit.mechanisms.simulation import SeededSource


@pytest.mark.parametrize("private", [20.25, 20.75])
def test_a_log_density_that_changes_its_points_leaves_the_release_on_the_public_points(private: float) -> None:
    mechanism = ExponentialDensity(1.0, 0.1, 0.0, 100.0, cells=100)

    def log_density(points: Any) -> Any:
        points -= private
        return -np.minimum(np.abs(points), 1.0)

    public = set(mechanism.points.tolist())
    assert all(mechanism.release(log_density) in public for _ in range(20))
    assert {mechanism.interval(0.9, log_density).low, mechanism.interval(0.9, log_density).high} <= public


def test_a_log_density_that_returns_its_points_changed_draws_as_one_that_returns_others() -> None:
    mechanism = ExponentialDensity(1.0, 1.0, 0.0, 10.0, cells=10)

    def in_place(points: Any) -> Any:
        points *= -1
        return points

    one, two = (
        [float(mechanism.release(density, source=source)) for _ in range(50)]
        for density, source in ((in_place, SeededSource(1)), (np.negative, SeededSource(1)))
    )
    assert one == two


@pytest.mark.parametrize("records", [np.arange(30.0), np.arange(60.0).reshape(30, 2), list(range(30))], ids=type)
def test_an_estimate_that_changes_its_block_leaves_the_records_as_they_were(records: Any) -> None:
    before = np.array(records)

    def estimate(block: Any) -> float:
        block[:] = 7
        return float(block.mean())

    SubsampleAggregate(1, 0, 10, 3).release(records, estimate)
    assert np.array_equal(np.array(records), before)
