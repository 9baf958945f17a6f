"""Smooth bounds and what is made of them, on small data where everything can be tried.

Neighbours replace one value. The bound must lie above the local sensitivity, and move between neighbours by a factor
of e^(0.35 epsilon) at most; then the density of the noise, compared at the extremes, must keep to epsilon.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.mechanisms import SmoothMedian, SmoothSensitivity, SubsampleAggregate
from tacit.mechanisms.grid import Grid
from tacit.mechanisms.simulation import SeededSource
from tacit.mechanisms.smooth_sensitivity import _quantile, median_smooth_bound
from tests.statistical.evidence import Refuted

LOWER, UPPER = -1.0, 10.0
Bound = Callable[[list[float], float], float]

values_within = st.sampled_from([LOWER, 0.0, 0.5, 3.0, 9.999, UPPER]) | st.floats(LOWER, UPPER)
data_sets = st.lists(values_within, min_size=1, max_size=9)
epsilons = st.sampled_from([0.01, 0.5, 4.0, 40.0, 400.0, 4000.0])


def smooth_bound(values: list[float], epsilon: float) -> float:
    ordered = np.sort(np.array(values))
    return median_smooth_bound(ordered, LOWER, UPPER, SmoothSensitivity(epsilon, 1).beta)


def local_bound(values: list[float], epsilon: float) -> float:
    """Wrong as a bound: the local sensitivity itself, which is 0 next to data where it is the whole range."""
    here = statistics.median_low(values)
    return max(
        abs(statistics.median_low([*values[:place], other, *values[place + 1 :]]) - here)
        for place in range(len(values))
        for other in (LOWER, UPPER, *values)
    )


def require_smooth(bound: Bound, values: list[float], place: int, other: float, epsilon: float) -> None:
    neighbour = [*values[:place], other, *values[place + 1 :]]
    one, two = bound(values, epsilon), bound(neighbour, epsilon)
    if one <= 0 or two <= 0:
        if one != two:
            raise Refuted("a bound of 0 has neighbours with other bounds")
        return
    if abs(math.log(one / two)) > 0.35 * epsilon:
        raise Refuted(f"bounds {one:g} and {two:g} of neighbours differ by more than e^{0.35 * epsilon:g}")


@given(data_sets, epsilons)
def test_the_bound_is_never_below_the_local_sensitivity(values: list[float], epsilon: float) -> None:
    assert smooth_bound(values, epsilon) >= local_bound(values, epsilon)


@given(data_sets, st.integers(0), values_within, epsilons)
@example([0.0] * 5, 0, 10.0, 4000.0)
@example([0.0, 0.0, 10.0], 0, 10.0, 4000.0)
def test_neighbours_have_bounds_within_the_promised_factor(
    values: list[float], place: int, other: float, epsilon: float
) -> None:
    require_smooth(smooth_bound, values, place % len(values), other, epsilon)


@given(st.integers(20, 60), st.integers(0), values_within, st.sampled_from([4.0, 40.0]), st.randoms())
def test_bounds_stay_smooth_where_the_window_is_shorter_than_the_data(
    count: int, place: int, other: float, epsilon: float, random: Any
) -> None:
    values = [random.choice([LOWER, 0.0, random.uniform(LOWER, UPPER), UPPER]) for _ in range(count)]
    require_smooth(smooth_bound, values, place % count, other, epsilon)


def test_the_local_sensitivity_in_place_of_the_smooth_bound_is_noticed() -> None:
    with pytest.raises(Refuted):
        require_smooth(local_bound, [0.0, 0.0, 0.0, 0.0, 10.0], 0, 10.0, 1.0)


def greatest_loss(mechanism: SmoothSensitivity) -> float:
    """The greatest log-ratio of densities: the value moved by the smaller bound, the bound by e^±(0.35 epsilon)."""
    standard = np.concatenate([np.linspace(-40, 40, 40_001), np.logspace(2, 9, 200), -np.logspace(2, 9, 200)])

    def log_density(places: Any, value: float, bound: float) -> Any:
        scale = bound / float(mechanism._sharpness)
        return -1.5 * np.log(2 + ((places - value) / scale) ** 2) - math.log(scale)

    greatest = 0.0
    for bound in (math.exp(0.35 * float(mechanism.epsilon)), 1.0, math.exp(-0.35 * float(mechanism.epsilon))):
        places = standard * max(1.0, bound) / float(mechanism._sharpness)
        for shift in (-1.0, -0.5, 0.0, 0.5, 1.0):
            moved = log_density(places, shift * min(1.0, bound), bound)
            greatest = max(greatest, float(np.abs(moved - log_density(places, 0.0, 1.0)).max()))
    if greatest > float(mechanism.epsilon):
        raise Refuted(f"densities of neighbours differ by {greatest:.6g} in the logarithm")
    return greatest


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0])
def test_the_densities_of_neighbours_are_within_epsilon(epsilon: float) -> None:
    assert greatest_loss(SmoothSensitivity(epsilon, 1)) > 0.7 * epsilon
    assert greatest_loss(SmoothSensitivity(0.01, 1)) > 0.0099


def test_half_the_noise_breaks_the_promise() -> None:
    class HalfTheNoise(SmoothSensitivity):
        @property
        def _sharpness(self) -> Fraction:
            return Fraction(self.epsilon) * Fraction(12, 10)

    with pytest.raises(Refuted):
        greatest_loss(HalfTheNoise(1.0, 1))


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1, 20])
def test_moving_and_widening_together_cost_no_more_than_epsilon(epsilon: float) -> None:
    """The rate of change at z along the way from one neighbour to the other, greatest over a fine grid of z."""
    mechanism = SmoothSensitivity(epsilon, 1)
    sharpness, beta = float(mechanism._sharpness), mechanism.beta
    z = np.concatenate([np.linspace(0, 20, 400_001), np.logspace(1.3, 9, 1000)])
    rates = (3 * sharpness * z + 2 * beta * np.abs(1 - z**2)) / (2 + z**2)
    assert rates.max() <= epsilon
    assert rates.max() > 0.999 * epsilon
    with mpmath.workdps(60):
        s, b = mpmath.mpf(mechanism._sharpness.numerator) / mechanism._sharpness.denominator, mpmath.mpf(beta)
        assert b / 2 + mpmath.sqrt(4 * b**2 + 2 * s**2) * 3 / 4 <= mpmath.mpf(epsilon)


@given(st.integers(1, 200).flatmap(lambda size: st.tuples(st.integers(1, 2**size - 1), st.just(size))))
def test_quantiles_are_enclosed(uniform: tuple[int, int]) -> None:
    number, size = uniform
    with mpmath.workdps(100):
        u = mpmath.mpf(number) / 2**size
        quantile = (2 * u - 1) / mpmath.sqrt(2 * u * (1 - u))
        low, high = (_quantile(number, size, up=up) for up in (False, True))
        assert mpmath.mpf(low.numerator) / low.denominator <= quantile <= mpmath.mpf(high.numerator) / high.denominator
        assert high - low <= (abs(high) + 1) * Fraction(1, 2**60)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=9))
def test_what_gets_noise_is_the_median_of_the_clamped_values(values: list[float]) -> None:
    with patch.object(SmoothSensitivity, "release", autospec=True, return_value=0.0) as release:
        SmoothMedian(1, LOWER, UPPER).release(values)
    _, value, bound = release.call_args.args
    clamped = [min(max(number, LOWER), UPPER) for number in values]
    assert value == statistics.median_low(clamped)
    assert bound == smooth_bound(clamped, 1)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=9), st.sampled_from([0.01, 1, 100]), st.integers(0, 2**32))
def test_the_noisy_median_is_on_the_public_grid_and_within_the_bounds(
    values: list[float], epsilon: float, seed: int
) -> None:
    mechanism = SmoothMedian(epsilon, -1 / 3, 10)
    released = mechanism.release(values, source=SeededSource(seed))
    assert -1 / 3 <= released <= 10
    step = Grid.below(Fraction(31, 3) / 2**30).step
    assert mechanism._noise.grid == step
    assert released in (-1 / 3, 10) or Fraction(float(released)) % step == 0


@given(st.integers(3, 8), st.integers(8, 30), st.integers(0), st.floats(-5, 20), st.integers(0, 2**32))
def test_one_replaced_record_changes_the_estimate_of_one_block_at_most(
    blocks: int, count: int, place: int, other: float, seed: int
) -> None:
    seen: list[list[float]] = []

    def estimate(block: Any) -> float:
        seen[-1].append(float(block.sum()))
        return float(block.mean())

    records = np.arange(count, dtype=float)
    replaced = records.copy()
    replaced[place % count] = other
    for data in (records, replaced):
        seen.append([])
        SubsampleAggregate(1, 0.0, 30.0, blocks).release(data, estimate, source=SeededSource(seed))
    one, two = seen
    assert len(one) == len(two) == blocks
    assert sum(left != right for left, right in zip(one, two, strict=True)) <= 1
    assert sum(one) == records.sum(), "every record is in exactly one block"


@given(st.lists(st.sampled_from(["raise", "nan", "inf", "none", "text", "1e300", "2"]), min_size=3, max_size=8))
def test_whatever_an_estimate_does_shows_in_no_error_and_no_value_outside_the_bounds(deeds: list[str]) -> None:
    returned = {"nan": math.nan, "inf": -math.inf, "none": None, "text": "five", "1e300": 1e300, "2": 2}
    left: list[str] = []

    def estimate(block: Any) -> Any:
        deed = left.pop()
        if deed == "raise":
            raise RuntimeError("this block is special")
        return returned[deed]

    records = np.arange(len(deeds) * 2)
    for lower in (-1.0, Fraction(-1, 3)):
        left = list(deeds)
        mechanism = SubsampleAggregate(1, lower, 3, len(deeds))  # type: ignore[arg-type]
        assert lower <= mechanism.release(records, estimate, source=SeededSource(1)) <= 3
        assert not left


@pytest.mark.parametrize("other", ["x", None, 2**80, 0.5, [1, 2], object()])
def test_whatever_one_record_of_a_list_is_it_moves_one_estimate(other: Any) -> None:
    """A list that numpy reads as one array takes its type from all records: one text makes all of them texts."""
    seen: list[list[float]] = []

    def released(self: SmoothMedian, values: Any, *, source: Any) -> float:
        seen.append(np.asarray(values).tolist())
        return 0.0

    mechanism = SubsampleAggregate(1, 0, 10, 5)
    records: list[Any] = [7, 8, 9, 7, 8, 9, 7, 8, 9, 7]
    with patch.object(SmoothMedian, "release", released):
        for one in (records, [*records[:4], other, *records[5:]]):
            mechanism.release(one, lambda block: float(block.sum()) / len(block), source=SeededSource(5))
    before, after = seen
    assert sum(one != two for one, two in zip(before, after, strict=True)) <= 1
