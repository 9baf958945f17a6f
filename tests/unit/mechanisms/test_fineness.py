"""The factor by which the lattice of integer Gaussian noise is finer than the integers."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms import Gaussian
from tacit.mechanisms.additive import Noise
from tacit.mechanisms.gaussian import FINENESS_MAX, fineness_for
from tacit.mechanisms.laws import GaussianLaw


@pytest.mark.parametrize("deviation", [Fraction(512, part) for part in (1, 2, 3, 4, 5, 7, 1024, 12_345)])
def test_it_is_the_least_odd_one_that_leaves_512_steps(deviation: Fraction) -> None:
    for near in (deviation, deviation * (1 - Fraction(1, 10**9)), deviation * (1 + Fraction(1, 10**9))):
        fineness = fineness_for(near)
        assert fineness % 2 == 1
        assert near * fineness >= 512
        assert fineness == 1 or near * (fineness - 2) < 512
    assert fineness_for(Fraction(512)) == fineness_for(Fraction(2**45)) == 1


def test_noise_too_small_for_any_factor_is_zero() -> None:
    mechanism = Gaussian(1, sigma=Fraction(1, 2**900))
    assert fineness_for(Fraction(1, 2**900)) == FINENESS_MAX
    assert mechanism.release(7) == 7
    assert mechanism.release(np.arange(4)).tolist() == [0, 1, 2, 3]
    assert mechanism.interval(0.999, np.int64(7)) == (7, 7)


@pytest.mark.parametrize("half", [0, 1, 2, 5120])
def test_rounding_gives_every_step_the_same_lattice_points_and_moves_with_the_value(half: int) -> None:
    noise = Noise(GaussianLaw(Fraction(2**20)), half=half)
    points = np.arange(-3 * noise.fineness - half, 3 * noise.fineness + half + 1)
    steps, counts = np.unique(noise.rounded(points), return_counts=True)
    assert steps.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert set(counts.tolist()) == {noise.fineness}
    assert noise.rounded(points).tolist() == [noise.rounded(int(point)) for point in points]
    assert np.array_equal(noise.rounded(-points), -noise.rounded(points))
    for value in (-9, 1, 10**6):
        assert np.array_equal(noise.rounded(value * noise.fineness + points), value + noise.rounded(points))
