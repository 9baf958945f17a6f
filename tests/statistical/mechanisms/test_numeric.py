"""Numeric mechanisms: the noise that was promised, and intervals that cover as often as they say.

False alarms: one in a million for each check; seeds are fixed.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.accounting.closed_forms import log_delta
from tacit.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace
from tacit.mechanisms.additive import Noise
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import FALSE_ALARM, Refuted, accept, binomial_p

DRAWS = 100_000

CASES: list[tuple[Any, Any]] = [
    (Laplace(1, 0.1), 0),
    (Laplace(1, 0.1), 0.0),
    (Laplace(0.003, 2), 0.0),
    (Laplace(1000, 1e-3), 0.0),
    (Geometric(3, 0.5), 0),
    (Gaussian(1, 1, 1e-6), 0),
    (Gaussian(1, 1, 1e-6), 0.0),
    (Gaussian(2, rho=0.125), 0.0),
    (Gaussian(1, sigma=0.3), 0),
    (Gaussian(1, sigma=1000), 0),
    (DiscreteGaussian(1, sigma=0.7), 0),
    (DiscreteGaussian(1, sigma=50), 0),
]


@pytest.mark.parametrize(("mechanism", "zero"), CASES, ids=str)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_an_interval_covers_as_often_as_it_says(mechanism: Any, zero: Any, level: float) -> None:
    released = mechanism.release(np.full(DRAWS, zero), source=SeededSource(21))
    low, high = mechanism.interval(level, np.full(DRAWS, zero))
    covered = int(np.count_nonzero((released >= low) & (released <= high)))
    assert stats.binom.cdf(covered, DRAWS, level) > FALSE_ALARM, "the interval is too narrow"
    narrower = int(np.count_nonzero((released > low) & (released < high)))
    if zero == 0 and isinstance(zero, int):
        assert stats.binom.sf(narrower, DRAWS, level) > FALSE_ALARM, "the interval is too wide"
    else:
        assert stats.binom.sf(covered, DRAWS, level + 0.001) > FALSE_ALARM, "the interval is too wide"


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (0.003, 2), (1000, 1e-3), (7, 0.01)])
def test_laplace_on_floats_is_laplace_to_the_eye(sensitivity: float, epsilon: float) -> None:
    released = np.asarray(Laplace(sensitivity, epsilon).release(np.zeros(2000), source=SeededSource(22)))
    half = np.asarray(Laplace(sensitivity / 2, epsilon).release(np.zeros(2000), source=SeededSource(22)))
    law = stats.laplace(scale=sensitivity / epsilon * (1 + 2**-12))
    accept(stats.kstest(released, law.cdf).pvalue)
    with pytest.raises(AssertionError):
        accept(stats.kstest(half, law.cdf).pvalue)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_gaussian_noise_is_calibrated_to_the_analytic_curve(epsilon: float, delta: float) -> None:
    mechanism = Gaussian(2.0, epsilon, delta)
    sigma = mechanism.event.sigma  # type: ignore[attr-defined]
    assert log_delta(1 / sigma, epsilon, 1) <= math.log(delta)
    assert log_delta(1 / (sigma * (1 - 1e-6)), epsilon, -1) > math.log(delta)
    released = np.asarray(mechanism.release(np.zeros(4000), source=SeededSource(23)))
    accept(stats.kstest(released, stats.norm(scale=2 * sigma).cdf).pvalue)
    with pytest.raises(AssertionError):
        accept(stats.kstest(released, stats.norm(scale=sigma).cdf).pvalue)


def zeros_p(sigma: float, rounded: Any = None) -> float:
    """How likely zeros as many or as few as were drawn are under a deviation of 300."""
    draws = 1_000_000
    with pytest.MonkeyPatch.context() as patch:
        if rounded is not None:
            patch.setattr(Noise, "rounded", rounded)
        released = Gaussian(1, sigma=sigma).release(np.zeros(draws, dtype=np.int64), source=SeededSource(27))
    chance = stats.norm.cdf(0.5 / 300) - stats.norm.cdf(-0.5 / 300)
    return binomial_p(int(np.count_nonzero(released == 0)), draws, chance)


def test_zero_is_as_likely_as_its_neighbours_in_integer_noise() -> None:
    accept(zeros_p(300))
    for wrong in (150, 600):
        with pytest.raises(Refuted):
            accept(zeros_p(wrong))
    with pytest.raises(Refuted):  # half away from zero: the cell at 0 gets one lattice point fewer
        accept(zeros_p(300, lambda _, drawn: np.sign(drawn) * ((np.abs(drawn) + 1) // 2)))


def test_gaussian_noise_on_integers_is_the_rounded_normal_law() -> None:
    released = np.asarray(Gaussian(1, sigma=0.8).release(np.zeros(DRAWS, dtype=int), source=SeededSource(24)))
    for k in range(-2, 3):
        chance = stats.norm.cdf((k + 0.5) / 0.8) - stats.norm.cdf((k - 0.5) / 0.8)
        accept(binomial_p(int(np.count_nonzero(released == k)), DRAWS, chance))


def test_coordinates_of_a_vector_get_independent_noise() -> None:
    released = np.asarray(Laplace(1, 1).release(np.zeros((3, 20_000)), source=SeededSource(25)))
    correlations = np.corrcoef(released)[np.triu_indices(3, 1)]
    assert np.all(np.abs(correlations) < stats.norm.isf(FALSE_ALARM) / math.sqrt(20_000))


def test_the_noise_on_a_vector_of_floats_covers_the_rounding_of_every_coordinate() -> None:
    noise = Laplace(1, 1)._grid_noise(1000)
    apart = 1 / noise.grid.step + 1000
    assert noise.law.scale >= apart - 1
    assert Fraction(1000) * noise.grid.step < Fraction(1, 1000)
