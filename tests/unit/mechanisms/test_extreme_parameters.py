"""Parameters at the ends of what a number can be: used, or refused with an error of the project's own tree."""

import contextlib
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import mechanisms as m
from tacit.accounting.closed_forms import sigma_for_rho
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import OutOfRange, TacitError, TooLarge, WrongType

TINY = Fraction(1, 10**400)
SIZES: list[Any] = [TINY, 5e-324, 1e-320, 1e-300, 1e-15, 0.5, 50, 1e15, 1e300, 2**999, 1.7e308]
CHANCES: list[Any] = [TINY, 5e-324, 1e-300, 1e-12, 0.5, 1 - 1e-16, 1 - Fraction(1, 10**30)]
SENSITIVITIES: list[Any] = [1, 1.0, TINY, 1e-300, 2**999]
SCORES: list[Any] = [[1, 2, 3], [1.0, 2.0, 1e300], [-(2**62), 2**62]]


def density(points: Any) -> Any:
    return -np.abs(points)


def used(make: Callable[[], Any], *calls: Callable[[Any], object]) -> None:
    """Make a mechanism and use it; errors outside the tree come through."""
    with contextlib.suppress(TacitError):
        mechanism = make()
        for call in (lambda one: one.event, *calls):
            with contextlib.suppress(TacitError):
                call(mechanism)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=lambda one: f"{float(one):.3g}")
@pytest.mark.parametrize("size", SIZES, ids=lambda one: f"{float(one):.3g}")
def test_sensitivity_and_epsilon_at_the_ends_raise_nothing_else(size: Any, sensitivity: Any) -> None:
    numeric = (lambda one: one.release(3), lambda one: one.release([1.5]), lambda one: one.interval(0.9))
    chosen = (*(lambda one, at=at: one.release(at) for at in SCORES), lambda one: one.interval(0.9, 3))
    used(lambda: m.Laplace(sensitivity, size), *numeric)
    used(lambda: m.Geometric(sensitivity, size), *numeric)
    used(lambda: m.Gaussian(sensitivity, sigma=size), *numeric)
    used(lambda: m.DiscreteGaussian(sensitivity, rho=size), *numeric)
    for kind in (m.Exponential, m.PermuteAndFlip, m.ReportNoisyMax, lambda *given: m.TopK(*given, 2)):
        used(lambda kind=kind: kind(sensitivity, size), *chosen)  # type: ignore[misc]
    used(lambda: m.SparseVector(sensitivity, size, 1, 2), *chosen)
    used(lambda: m.ApproximateBounds(sensitivity, size, bins=2), lambda one: one.release([1] * 4))
    used(
        lambda: m.ExponentialDensity(sensitivity, size, 0, 1, 16),
        lambda one: one.release(density),
        lambda one: one.interval(0.9, density),
    )


@pytest.mark.parametrize(
    ("size", "chance"), list(itertools.product(SIZES, CHANCES)), ids=lambda one: f"{float(one):.3g}"
)
def test_epsilon_and_delta_at_the_ends_raise_nothing_else(size: Any, chance: Any) -> None:
    used(lambda: m.Gaussian(1, size, chance), lambda one: one.release(3))
    used(lambda: m.KeySelection(size, chance), lambda one: one.release([1, 2]), lambda one: one.chance(3))
    used(lambda: m.StableMode(size, chance), lambda one: one.release([1, 2, 3]))
    used(lambda: m.InterquartileRange(size, chance), lambda one: one.release(list(range(100))))
    reports = (lambda one: one.release([0, 1]), lambda one: one.estimate([0, 1]), lambda one: one.interval(0.9, [0, 1]))
    used(lambda: m.RandomizedResponse(size), *reports, lambda one: one.posterior(0.5))
    used(lambda: m.RandomizedResponse(truth=chance), *reports)
    used(lambda: m.ApproximateBounds(1, 1, bins=2, success=chance), lambda one: one.release([1] * 4))


LEVELS: dict[str, Callable[[Any], Any]] = {
    "Laplace": m.Laplace(1, 1).interval,
    "Gaussian": m.Gaussian(1, sigma=1).interval,
    "SmoothMedian": m.SmoothMedian(1, 0, 1).interval,
    "Exponential": lambda level: m.Exponential(1, 1).interval(level, 3),
    "SparseVector": lambda level: m.SparseVector(1, 1, 0).interval(level, 3),
    "RandomizedResponse": lambda level: m.RandomizedResponse(1).interval(level, [0, 1]),
    "KeySelection": m.KeySelection(1, 0.01).interval,
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_level_that_doubles_take_for_one_is_refused_and_the_highest_is_not(name: str) -> None:
    for level in (1 - 1e-16, 1 - 2.0**-41, 1 - Fraction(1, 10**30)):
        with pytest.raises(OutOfRange, match="at most 1 - 2\\^-40"):
            LEVELS[name](level)
    for level in (1 - 2.0**-40, TINY):
        assert all(math.isfinite(end) for end in LEVELS[name](level))


def test_a_high_level_over_many_candidates_is_not_rounded_to_certainty() -> None:
    candidates = 10**9
    for mechanism in (m.ReportNoisyMax(1, 1), m.TopK(1, 1, 5), m.SparseVector(1, 1, 0)):
        assert all(math.isfinite(end) for end in mechanism.interval(1 - 2.0**-40, candidates))


def test_estimates_from_reports_of_a_small_epsilon_do_not_divide_by_zero() -> None:
    small = m.RandomizedResponse(1e-18)
    assert small._preference == pytest.approx(0.5e-18)
    assert m.RandomizedResponse(truth=Fraction(3, 4))._preference == 0.5
    assert m.RandomizedResponse(1.0, 5)._preference == pytest.approx(
        m.RandomizedResponse(1.0, 5).truth_probability - m.RandomizedResponse(1.0, 5).lie_probability
    )


@pytest.mark.parametrize("rho", [1.7e308, 1e300, 2.0**-1000])
def test_the_sigma_of_an_extreme_rho_is_found(rho: float) -> None:
    assert 2 * Fraction(rho) * Fraction(sigma_for_rho(rho)) ** 2 >= 1
    assert sigma_for_rho(rho) == pytest.approx(math.sqrt(0.5 / rho))


def test_other_wrong_values_are_refused_as_such() -> None:
    with pytest.raises(TooLarge, match="below 2\\^256"):
        SeededSource(2**256)
    assert SeededSource(2**256 - 1).read(1)
    for values in (5, None, {"a": 1}):
        with pytest.raises(WrongType, match="one for each query"):
            m.SparseVector(1, 1, 0).release(values)
    for density_like in ([1.0, 2.0], np.zeros(3), None):
        with pytest.raises(WrongType, match="a log-density is a function"):
            m.ExponentialDensity(1, 1, 0, 1).release(density_like)  # type: ignore[arg-type]
