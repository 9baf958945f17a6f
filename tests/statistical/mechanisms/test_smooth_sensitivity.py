"""Smooth sensitivity's noise is Student's t of two degrees of freedom, scaled by the bound, and nothing less.

False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are fixed.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.mechanisms import SmoothMedian, SmoothSensitivity, SubsampleAggregate
from tacit.mechanisms.simulation import SeededSource, is_simulated
from tacit.mechanisms.smooth_sensitivity import median_smooth_bound
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p

DRAWS = 3_000


class HalfTheNoise(SmoothSensitivity):
    """Wrong: as if epsilon were twice as large."""

    @property
    def _sharpness(self) -> Fraction:
        return 2 * SmoothSensitivity._sharpness.fget(self)  # type: ignore[attr-defined,no-any-return]


def check(mechanism: SmoothSensitivity, value: float, bound: float, seed: int) -> None:
    source = SeededSource(seed)
    released = np.array([mechanism.release(value, bound, source=source) for _ in range(DRAWS)])
    scale = bound / (0.6 * float(mechanism.epsilon))
    accept(stats.kstest((released - value) / scale, stats.t(df=2).cdf).pvalue, "Student's t")


@pytest.mark.parametrize(("epsilon", "value", "bound"), [(1.0, 5.0, 2.0), (0.1, -3.25, 1e-3), (7.5, 0.0, 1e6)])
def test_noise_is_students_t_of_two_degrees_scaled_by_the_bound(epsilon: float, value: float, bound: float) -> None:
    check(SmoothSensitivity(epsilon, 2.0**-30), value, bound, seed=1)


def test_half_the_noise_is_noticed() -> None:
    with pytest.raises(Refuted):
        check(HalfTheNoise(1.0, 2.0**-30), 5.0, 2.0, seed=2)


def test_far_tails_are_there() -> None:
    mechanism, source = SmoothSensitivity(1.0, 2.0**-10), SeededSource(3)
    scale = 1 / 0.6
    far = sum(abs(mechanism.release(0.0, 1.0, source=source)) > 20 * scale for _ in range(20_000))
    accept(binomial_p(far, 20_000, 2 * stats.t(df=2).sf(20)))


def test_on_a_coarse_grid_each_multiple_has_the_weight_of_its_surroundings() -> None:
    mechanism, source = SmoothSensitivity(3.0, 2), SeededSource(4)
    value, scale = 0.75, 4 / (0.6 * 3.0)
    released = [mechanism.release(value, 4.0, source=source) for _ in range(DRAWS)]
    edges = np.concatenate([[-np.inf], np.arange(-15, 16, 2.0), [np.inf]])
    counts = np.histogram(released, bins=np.clip(edges, -1e300, 1e300))[0]
    accept(chi_square_p(counts, np.diff(stats.t(df=2).cdf((edges - value) / scale))))
    assert all(number % 2 == 0 for number in released)


def test_a_bound_of_zero_releases_the_value_rounded_to_the_grid() -> None:
    assert SmoothSensitivity(1, 0.25).release(1.3, 0, source=SeededSource(5)) == 1.25


def test_the_interval_holds_the_noise_at_its_level() -> None:
    mechanism, source = SmoothSensitivity(1.0, 2.0**-10), SeededSource(6)
    low, high = mechanism.interval(0.9, 2.0)
    inside = sum(low <= mechanism.release(0.0, 2.0, source=source) <= high for _ in range(2_000))
    accept(binomial_p(inside, 2_000, 0.9))


def check_median(mechanism: SmoothMedian, values: list[float], bound: float, seed: int) -> None:
    source = SeededSource(seed)
    released = np.array([mechanism.release(values, source=source) for _ in range(DRAWS)])
    value = float(np.sort(values)[(len(values) - 1) // 2])
    law = stats.t(df=2, loc=value, scale=bound / (0.6 * float(mechanism.epsilon)))
    edges = np.concatenate([[-np.inf], np.linspace(mechanism.lower, mechanism.upper, 12)[1:-1], [np.inf]])
    counts = np.histogram(released, bins=np.clip(edges, -1e300, 1e300))[0]
    accept(chi_square_p(counts, np.diff(law.cdf(edges))), "the median with smooth noise")


SPREAD_OUT = [1.0, 2.0, 4.0, 4.5, 5.0, 5.5, 6.0, 8.0, 9.0]


def test_the_noisy_median_has_noise_of_its_smooth_bound() -> None:
    bound = median_smooth_bound(np.array(SPREAD_OUT), 0.0, 10.0, 0.35 * 2.0 * (1 - 2**-10))
    assert bound > 0.7  # the local sensitivity is 0.5
    check_median(SmoothMedian(2.0, 0.0, 10.0), SPREAD_OUT, bound, seed=7)


def test_a_median_with_noise_of_the_local_sensitivity_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = median_smooth_bound(np.array(SPREAD_OUT), 0.0, 10.0, 0.35 * 2.0 * (1 - 2**-10))

    def local(ordered: Any, lower: float, upper: float, beta: float) -> float:
        middle = (len(ordered) - 1) // 2
        return float(max(ordered[middle + 1] - ordered[middle], ordered[middle] - ordered[middle - 1]))

    monkeypatch.setattr("tacit.mechanisms.smooth_sensitivity.median_smooth_bound", local)
    with pytest.raises(Refuted):
        check_median(SmoothMedian(2.0, 0.0, 10.0), SPREAD_OUT, bound, seed=8)


def test_many_values_in_one_place_give_a_median_with_little_noise() -> None:
    values = np.concatenate([np.full(500, 3.0), np.linspace(0, 10, 100)])
    source = SeededSource(9)
    released = [SmoothMedian(1.0, 0.0, 10.0).release(values, source=source) for _ in range(50)]
    assert max(abs(number - 3.0) for number in released) < 1e-3


@pytest.mark.parametrize("number", [int, Fraction, Decimal, np.float32, np.int64])
def test_bounds_can_be_numbers_of_any_kind(number: Any) -> None:
    released = SmoothMedian(1.0, number(0), number(2)).release([0, 1, 2], source=SeededSource(11))
    assert released == SmoothMedian(1.0, 0.0, 2.0).release([0, 1, 2], source=SeededSource(11))


def test_subsample_and_aggregate_finds_an_estimate_that_the_blocks_agree_on() -> None:
    records = np.random.default_rng(1).normal(5.0, 1.0, (5_000, 2))
    mechanism = SubsampleAggregate(2.0, 0.0, 10.0, blocks=100)
    released = mechanism.release(records, lambda block: block[:, 0].mean(), source=SeededSource(10))
    assert released == pytest.approx(5.0, abs=0.5)
    assert is_simulated(released)
