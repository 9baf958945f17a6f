"""Numbers are drawn from an interval with the stated density.

False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are fixed.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.mechanisms import ExponentialDensity
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import Refuted, accept, chi_square_p
from tests.statistical.exact_laws import exponential_law, require_pure

DRAWS = 5_000


def peak(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return -np.abs(points - 0.3) * 8


def check(mechanism: ExponentialDensity, epsilon: float, seed: int) -> None:
    source = SeededSource(seed)
    points = mechanism.points
    drawn = [mechanism.release(peak, source=source) for _ in range(DRAWS)]
    counts = [sum(number == point for number in drawn) for point in points]
    assert sum(counts) == DRAWS, "every release is the middle of a cell"
    accept(chi_square_p(counts, exponential_law(peak(points).tolist(), epsilon / 2)), "the law of the density")


def test_cells_are_drawn_with_the_density_at_their_middles() -> None:
    check(ExponentialDensity(1, 1.0, -1.0, 1.0, cells=8), 1.0, seed=1)


def test_a_density_at_twice_the_epsilon_is_noticed() -> None:
    with pytest.raises(Refuted):
        check(ExponentialDensity(1, 2.0, -1.0, 1.0, cells=8), 1.0, seed=2)


@pytest.mark.parametrize("moves", [(1, -1, 1, -1), (1, -1, -1, -1), (-1, 1, 1, 1)])
def test_log_densities_that_differ_by_the_sensitivity_are_within_epsilon(moves: tuple[int, ...]) -> None:
    scores = np.array([-6.0, 0.0, 0.0, 0.0])
    left, right = (exponential_law((scores + move).tolist(), 0.5) for move in (np.zeros(4), np.array(moves)))
    assert require_pure(left, right, 1.0) > 0.4


def test_the_interval_holds_the_stated_share_of_the_draws() -> None:
    mechanism, source = ExponentialDensity(1, 1.0, -1.0, 1.0, cells=64), SeededSource(3)
    low, high = mechanism.interval(0.8, peak)
    inside = sum(low <= mechanism.release(peak, source=source) <= high for _ in range(2_000))
    assert inside > 0.75 * 2_000
    assert -1 < low < 0.3 < high < 1


@pytest.mark.parametrize("number", [int, Fraction, Decimal, np.float32, np.int64])
def test_ends_can_be_numbers_of_any_kind(number: Any) -> None:
    mechanism = ExponentialDensity(number(1), number(1), number(0), number(2), cells=4)
    assert mechanism.points.tolist() == [0.25, 0.75, 1.25, 1.75]
    assert 0 < mechanism.release(peak) < 2


def test_releases_lie_strictly_inside_the_interval() -> None:
    mechanism = ExponentialDensity(1, 1.0, 10.0, 11.0, cells=2)

    def towards_the_end(points: NDArray[np.float64]) -> Any:
        return points * 1e6

    assert mechanism.points.tolist() == [10.25, 10.75]
    assert mechanism.release(towards_the_end, source=SeededSource(4)) == 10.75
