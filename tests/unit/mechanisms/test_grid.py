"""The public grid: powers of two, exact both ways, and refusals at its edges."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.grid import RELEASED_STEPS_MAX, VALUE_STEPS_MAX, Grid
from tacit.privacy.errors import OutOfRange, TooLarge


@pytest.mark.parametrize("step", [Fraction(1, 1024), Fraction(8), Fraction(1, 2**300), 0.25])
def test_powers_of_two_are_grids(step: Fraction | float) -> None:
    assert Grid(step).step == Fraction(step)


@pytest.mark.parametrize("step", [Fraction(1, 3), 0.1, 6])
def test_other_steps_are_refused(step: Fraction | float) -> None:
    with pytest.raises(OutOfRange, match="power of two"):
        Grid(step)


def test_encoding_rounds_to_the_nearest_multiple_and_decoding_gives_it_back() -> None:
    grid = Grid(Fraction(1, 8))
    values = np.array([0.0, 0.06, 0.07, -0.07, 1e6 + 0.125])
    assert grid.encode(values).tolist() == [0, 0, 1, -1, 8_000_001]
    assert grid.decode(grid.encode(values)).tolist() == [0.0, 0.0, 0.125, -0.125, 1e6 + 0.125]
    assert [grid.encode_one(value) for value in values.tolist()] == grid.encode(values).tolist()


def test_values_beyond_the_grid_are_refused_and_noise_beyond_it_is_clamped() -> None:
    grid = Grid(Fraction(1))
    with pytest.raises(TooLarge, match="coarser grid"):
        grid.encode(np.array([float(VALUE_STEPS_MAX) * 2]))
    with pytest.raises(TooLarge, match="coarser grid"):
        grid.encode_one(-float(VALUE_STEPS_MAX) * 2)
    assert grid.decode(np.array([2**60]))[0] == RELEASED_STEPS_MAX
    assert grid.decode_one(-(2**60)) == -RELEASED_STEPS_MAX


def test_the_largest_double_over_a_tiny_grid_is_refused_without_a_warning() -> None:
    with pytest.raises(TooLarge):
        Laplace(1, 1).release(np.array([1.7e308]))


def test_rounding_widens_the_noise_by_less_than_one_part_in_two_thousand() -> None:
    for dimension in (1, 1000, 10**6):
        noise = Laplace(1, 0.5)._grid_noise(dimension)
        assert 1 <= noise.law.scale * noise.grid.step / 2 < 1 + Fraction(1, 2000)
        gaussian = Gaussian(3, sigma=2)._grid_noise(dimension)
        assert 1 <= gaussian.law.variance * gaussian.grid.step**2 / 36 < 1 + Fraction(1, 900)


def test_the_grid_depends_on_public_parameters_alone() -> None:
    mechanism = Laplace(1.0, 0.5)
    assert mechanism.grid is None
    released = [mechanism.release(value) for value in (0.0, 1e-9, 123.456, 1e9)]
    step = float(mechanism._grid_noise(1).grid.step)
    assert all(number % step == 0 for number in released)


def test_a_given_grid_is_kept() -> None:
    released = Laplace(1, 0.5, grid=1 / 64).release(np.zeros(500))
    assert np.all(released % (1 / 64) == 0)
    assert np.any(released % (1 / 32) != 0)
