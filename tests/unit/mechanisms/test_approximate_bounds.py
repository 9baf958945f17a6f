"""Bounds learnt from logarithmic bins: the worked example of Wilson et al. 2020, and what noise may do to it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms import ApproximateBounds
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import OutOfRange, WrongType

EXAMPLE = ApproximateBounds(1, 1, bins=4, base=2, scale=1, success=0.9)
COUNTS = [0, 0, 0, 0, 5, 0, 1, 4]
"""{0, 0, 0, 0, 1, 3, 7, 8, 8, 8} in the bins (-8, -4], ..., [-1, 0), [0, 1], (1, 2], (2, 4], (4, 8]."""


def test_the_worked_example_has_its_threshold_and_its_range() -> None:
    """Bins alone have half of the failures: with a success of 0.8, the threshold of the paper at 0.9."""
    paper = replace(EXAMPLE, success=Fraction(8, 10))
    assert math.isclose(paper.threshold, -math.log((1 - 0.9 ** (1 / 7)) * (1 + math.exp(-1))))
    assert math.isclose(paper.threshold, 3.89, abs_tol=0.005)
    assert paper.bounds_from(COUNTS) == (0, 8)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 5])
@pytest.mark.parametrize("bins", [1, 4, 16, 64])
def test_the_chance_that_no_empty_bin_passes_is_what_was_promised(epsilon: float, bins: int) -> None:
    """Counts get geometric noise: P(X >= t) = r^t / (1 + r) for whole t, r = e^-epsilon."""
    bounds = ApproximateBounds(1, epsilon, bins=bins, success=0.9)
    passes = math.exp(-epsilon * math.ceil(bounds.threshold)) / (1 + math.exp(-epsilon))
    assert (1 - passes) ** (2 * bins - 1) >= 0.9 * (1 - 1e-12)


def test_empty_bins_pass_as_rarely_as_was_promised() -> None:
    """P(no empty bin passes) >= 0.9; of 4,000 runs 3,600 are expected, and 3,520 or fewer once in 10^5 tests."""
    source = SeededSource(1)
    empty = np.zeros(8, dtype=np.int64)
    empty[4] = 10**6
    passing = [np.asarray(EXAMPLE.noise.release(empty, source=source)) > EXAMPLE.threshold for _ in range(4000)]
    kept = sum(one.sum() == 1 for one in passing)
    assert kept > 3520
    half = ApproximateBounds(1, 2, bins=4, success=0.9)  # half the noise under the old threshold would keep far more
    assert half.threshold < EXAMPLE.threshold


def test_negative_values_have_bins_of_their_own() -> None:
    assert EXAMPLE.edges(-1) == (-1, 0)
    assert EXAMPLE.edges(-4) == (-8, -4)
    assert EXAMPLE.bounds_from([0, 9, 0, 0, 0, 0, 9, 0]) == (-4, 4)


def test_where_no_bin_passes_the_fullest_is_taken() -> None:
    assert EXAMPLE.bounds_from([0, 0, 0, 0, 1, 0, 3, 0]) == (2, 4)


def test_scale_and_base_move_the_edges() -> None:
    bounds = ApproximateBounds(1, 1, bins=3, base=10, scale=Fraction(1, 100))
    assert bounds.edges(2) == (Fraction(1, 10), 1)


def test_bad_counts_and_parameters_are_refused() -> None:
    with pytest.raises(WrongType):
        EXAMPLE.release([1, 2, 3])
    with pytest.raises(WrongType):
        EXAMPLE.release([0.5] * 8)
    with pytest.raises(OutOfRange):
        ApproximateBounds(1, 1, base=1)
    with pytest.raises(OutOfRange):
        ApproximateBounds(1, 1, bins=5000)


def test_a_range_grows_over_neighbours_with_half_the_threshold() -> None:
    assert EXAMPLE.bounds_from([0, 0, 0, 3, 9, 3, 0, 3]) == (-1, 2)


def test_counts_that_stand_out_are_told_from_those_that_do_not() -> None:
    assert EXAMPLE.stands_out([0, 0, 0, 0, 9, 0, 0, 0])
    assert not EXAMPLE.stands_out([0, 0, 0, 0, 3, 0, 0, 0])


def test_a_range_of_the_bins_next_to_zero_is_told_from_others() -> None:
    for counts, expected in (
        ([0, 0, 0, 0, 9, 0, 0, 0], True),
        ([0, 0, 0, 9, 9, 0, 0, 0], True),
        ([0, 0, 0, 0, 9, 9, 0, 0], False),
        ([0, 0, 9, 0, 0, 0, 0, 0], False),
    ):
        assert EXAMPLE.is_next_to_zero(EXAMPLE.bounds_from(counts)) is expected


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_a_range_is_absurd_in_one_of_a_million_releases(epsilon: float) -> None:
    """Two or more of 3,000 come up once in 200,000 tests; with a success of 0.99 about 30 do."""
    bounds, counts = ApproximateBounds(1, epsilon), np.zeros(128, dtype=np.int64)
    counts[69] = 10**6
    found = [bounds.release(counts, source=SeededSource(seed)) for seed in range(3000)]
    assert sum(one.lower < 2 or one.upper > 2**8 for one in found) < 2


@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_window_of_empty_bins_passes_as_rarely_as_was_promised(width: int, epsilon: float) -> None:
    """The exact law of the sum of geometric noises, by convolution."""
    bounds = ApproximateBounds(1, epsilon, bins=8, success=0.9)
    reach = math.ceil(60 / epsilon)
    steps = np.arange(-reach, reach + 1)
    one = np.exp(-epsilon * np.abs(steps)) * math.tanh(epsilon / 2)
    law = one
    for _ in range(width - 1):
        law = np.convolve(law, one)
    passes = law[np.arange(-width * reach, width * reach + 1) > bounds.window_threshold(width)].sum()
    assert 0 < passes <= 0.05 / (3 * 16)


def test_values_spread_over_bins_far_from_the_fullest_are_found() -> None:
    """Ten zeros for each other value, none of whose bins passes alone, as in columns of gains."""
    bounds = ApproximateBounds(1, 1.0)
    counts = np.zeros(128, dtype=np.int64)
    counts[64], counts[95:99] = 600, 15
    assert bounds.threshold > 15
    found = [bounds.release(counts, source=SeededSource(seed)) for seed in range(50)]
    assert sum(one.upper >= 2**32 for one in found) >= 45
    assert all(one.lower == 0 and one.upper <= 2**36 for one in found)
