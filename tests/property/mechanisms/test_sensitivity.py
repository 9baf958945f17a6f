"""Rounding to the grid never moves neighbours further apart than the noise was made for."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms import Gaussian, Laplace

values = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6)
moves = st.lists(st.floats(-1, 1), min_size=6, max_size=6)


@given(values=values, moves=moves, sensitivity=st.floats(1e-6, 1e6), epsilon=st.floats(1e-4, 1e2))
def test_neighbours_within_the_l1_sensitivity_stay_within_the_steps_of_laplace_noise(
    values: list[float], moves: list[float], sensitivity: float, epsilon: float
) -> None:
    start = [Fraction(value) * Fraction(sensitivity) for value in values]
    size = sum(abs(Fraction(move)) for move in moves[: len(values)]) or Fraction(1)
    steps = [Fraction(move) / size * Fraction(sensitivity) for move in moves[: len(values)]]
    noise = Laplace(sensitivity, epsilon)._grid_noise(len(values))
    first = [_steps(value, noise.grid.step) for value in start]
    second = [_steps(value + step, noise.grid.step) for value, step in zip(start, steps, strict=True)]
    apart = sum(abs(one - other) for one, other in zip(first, second, strict=True))
    assert apart <= noise.law.scale * Fraction(epsilon)


@given(values=values, moves=moves, sensitivity=st.floats(1e-6, 1e6), sigma=st.floats(1e-2, 1e4))
def test_neighbours_within_the_l2_sensitivity_stay_within_the_steps_of_gaussian_noise(
    values: list[float], moves: list[float], sensitivity: float, sigma: float
) -> None:
    start = [Fraction(value) * Fraction(sensitivity) for value in values]
    size = math.sqrt(sum(move * move for move in moves[: len(values)])) * (1 + 1e-12) or 1.0
    steps = [Fraction(move / size) * Fraction(sensitivity) for move in moves[: len(values)]]
    noise = Gaussian(sensitivity, sigma=sigma)._grid_noise(len(values))
    first = [_steps(value, noise.grid.step) for value in start]
    second = [_steps(value + step, noise.grid.step) for value, step in zip(start, steps, strict=True)]
    apart_squared = sum((one - other) ** 2 for one, other in zip(first, second, strict=True))
    assert apart_squared * Fraction(sigma) ** 2 <= noise.law.variance


@given(value=st.floats(-1e6, 1e6))
def test_a_scalar_and_an_array_are_encoded_alike(value: float) -> None:
    grid = Laplace(1, 1)._grid_noise(1).grid
    assert grid.encode_one(value) == int(grid.encode(np.array([value]))[0])


@given(value=st.integers(-(10**30), 10**30))
def test_integers_stay_integers(value: int) -> None:
    assert type(Laplace(1, 1).release(value)) is int
    assert type(Gaussian(1, sigma=2).release(value)) is int


def _steps(value: Fraction, step: Fraction) -> int:
    return round(value / step)
