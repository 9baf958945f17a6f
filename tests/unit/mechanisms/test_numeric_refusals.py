"""Wrong use of numeric mechanisms: one code each, and nothing becomes NaN."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace
from tacit.privacy.errors import InvalidInput, NotFinite, NotPositive, OutOfRange, TooLarge, WrongType


@pytest.mark.parametrize("epsilon", [0, -1, 0.0, -0.5])
def test_an_epsilon_that_is_not_positive_is_refused(epsilon: float) -> None:
    with pytest.raises(NotPositive, match="epsilon must be above 0"):
        Laplace(1, epsilon)


@pytest.mark.parametrize("sensitivity", [0, -1, -1e-9])
def test_a_sensitivity_that_is_not_positive_is_refused(sensitivity: float) -> None:
    with pytest.raises(NotPositive, match="sensitivity must be above 0"):
        Laplace(sensitivity, 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_parameters_that_are_not_finite_are_refused(bad: float) -> None:
    for make in (lambda: Laplace(bad, 1), lambda: Laplace(1, bad), lambda: Gaussian(1, sigma=bad)):
        with pytest.raises(NotFinite):
            make()


@pytest.mark.parametrize("bad", ["1", None, True, [1], 1j])
def test_parameters_that_are_not_numbers_are_refused(bad: Any) -> None:
    with pytest.raises(WrongType):
        Laplace(1, bad)


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, math.nan], np.array([math.inf])])
def test_values_that_are_not_finite_are_refused(value: Any) -> None:
    for mechanism in (Laplace(1.0, 1), Gaussian(1.0, sigma=1)):
        with pytest.raises(NotFinite):
            mechanism.release(value)


@pytest.mark.parametrize("value", ["a", None, True, [True], ["a"], 1j, object(), [[1], [1, 2]]])
def test_values_that_are_not_numbers_are_refused(value: Any) -> None:
    with pytest.raises(WrongType):
        Laplace(1, 1).release(value)


@pytest.mark.parametrize("value", [np.array([2**63], dtype=np.uint64), np.array([-(2**63)])])
def test_integers_that_would_overflow_are_refused(value: Any) -> None:
    with pytest.raises(TooLarge, match="2\\^62"):
        Laplace(1, 1).release(value)


def test_a_python_integer_of_any_size_is_released() -> None:
    assert abs(Laplace(1, 1).release(10**40) - 10**40) < 1000


def test_noise_too_wide_to_sample_is_refused() -> None:
    with pytest.raises(TooLarge, match="coarsen"):
        Laplace(2**60, 1).release(5)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1},
        {"delta": 1e-6},
        {"epsilon": 1, "delta": 1e-6, "rho": 1},
        {"rho": 1, "sigma": 1},
        {"epsilon": 1, "sigma": 1},
    ],
)
def test_gaussian_noise_is_given_in_exactly_one_way(arguments: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Gaussian(1, **arguments)


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 2])
def test_a_delta_outside_zero_and_one_is_refused(delta: float) -> None:
    with pytest.raises(OutOfRange, match="delta"):
        Gaussian(1, 1, delta)


def test_integer_mechanisms_refuse_floats_and_grids() -> None:
    for mechanism in (Geometric(1, 1), DiscreteGaussian(1, sigma=1)):
        with pytest.raises(WrongType, match="integers"):
            mechanism.release(1.5)
    with pytest.raises(WrongType):
        Geometric(1.5, 1)
    with pytest.raises(WrongType):
        Geometric(1, 1, grid=1)
    with pytest.raises(InvalidInput):
        DiscreteGaussian(1, 1, 1e-6)


@pytest.mark.parametrize("level", [0, 1, -1, 1.5, math.nan])
def test_an_interval_needs_a_level_between_zero_and_one(level: float) -> None:
    with pytest.raises(InvalidInput):
        Laplace(1, 1).interval(level)


def test_mechanisms_are_frozen() -> None:
    mechanism = Laplace(1, 1)
    with pytest.raises(AttributeError):
        mechanism.epsilon = 2  # type: ignore[misc]


def test_a_value_at_the_end_of_a_doubles_range_is_too_large_and_not_infinite() -> None:
    with pytest.raises(TooLarge):
        Laplace(1.0, 1).release([1.7e308, 1.7e308])


def test_an_array_without_axes_is_released_as_a_scalar() -> None:
    assert isinstance(Laplace(1, 1).release(np.array(5)), np.int64)
    assert isinstance(Laplace(1.0, 1).release(np.array(5.0)), np.float64)


def test_an_empty_array_is_released_as_an_empty_array() -> None:
    assert Laplace(1, 1).release(np.array([], dtype=int)).shape == (0,)
    assert Laplace(1, 1).release(np.zeros((0, 3))).shape == (0, 3)


def test_a_copy_of_gaussian_noise_keeps_what_it_was_given_by() -> None:
    for given, changed in (({"epsilon": 0.5, "delta": 1e-6}, {"epsilon": 1.0}), ({"rho": 0.1}, {"rho": 0.2})):
        mechanism = Gaussian(1.0, **given)  # type: ignore[arg-type]
        wider = replace(mechanism, sensitivity=2.0)
        assert wider == Gaussian(2.0, **given)  # type: ignore[arg-type]
        assert wider.scale == 2 * mechanism.scale
        with pytest.raises(InvalidInput, match="sigma=None"):
            replace(mechanism, **changed)  # type: ignore[arg-type]
        assert replace(mechanism, sigma=None, **changed).sigma < mechanism.sigma  # type: ignore[arg-type,operator]
    with pytest.raises(InvalidInput):
        Gaussian(1.0, 0.5, 1e-6, sigma=0.001)
