"""Samplers against their exact probability mass functions.

False alarms: each check raises one in a million times on a right sampler; all seeds are fixed, so in fact never.
Each check must raise for half the noise and for a sign that falls 51 to 49.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.mechanisms.exact_sampling import biased_coins, exponential_coins
from tacit.mechanisms.integer_sampler import sampler_for
from tacit.mechanisms.laws import GaussianLaw, LaplaceLaw
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import accept, binomial_p, chi_square_p

DRAWS = 200_000
BINS = 48

Cumulative = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def discrete_laplace(scale: Fraction, seed: int) -> NDArray[np.int64]:
    return sampler_for(LaplaceLaw(scale)).draw(DRAWS, SeededSource(seed))


def discrete_gaussian(variance: Fraction, seed: int) -> NDArray[np.int64]:
    return sampler_for(GaussianLaw(variance)).draw(DRAWS, SeededSource(seed))


def laplace_cumulative(scale: Fraction) -> Cumulative:
    """P(X <= k) of the discrete Laplace law, in closed form."""
    ratio = math.exp(-1 / scale)

    def cumulative(k: NDArray[np.float64]) -> NDArray[np.float64]:
        below = np.exp(np.minimum(k, 0) / float(scale)) / (1 + ratio)
        above = 1 - np.exp(-(np.maximum(k, 0) + 1) / float(scale)) / (1 + ratio)
        return np.where(k < 0, below, above)

    return cumulative


def gaussian_cumulative(variance: Fraction) -> Cumulative:
    """P(X <= k) of the discrete Gaussian: by summing, or by the normal law where the lattice is fine.

    At deviations above 1000, P(X <= k) and Phi((k + 1/2) / sigma) differ by less than 10^-7, far below what shows here.
    """
    sigma = math.sqrt(variance)
    if sigma > 1000:
        return lambda k: ndtr((k + 0.5) / sigma)
    reach = math.ceil(12 * sigma) + 2
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / float(2 * variance))
    sums = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return lambda k: sums[np.clip(k + reach + 1, 0, 2 * reach + 1).astype(int)]


def check_law(drawn: NDArray[np.int64], cumulative: Cumulative) -> None:
    """Compare with the exact law over bins that hold equal shares of the draws' range, and over each small integer."""
    quantiles = np.quantile(drawn, np.linspace(0, 1, BINS + 1)[1:-1], method="inverted_cdf")
    edges = np.unique(np.concatenate([quantiles, [-3, -2, -1, 0, 1, 2]]).astype(np.int64))
    # the edges come from the data, so half of it chooses them and the other half is judged
    counts = np.bincount(np.searchsorted(edges, drawn[1::2]), minlength=len(edges) + 1)
    bounds = np.concatenate([[0.0], cumulative(edges.astype(np.float64)), [1.0]])
    accept(chi_square_p(counts, np.diff(bounds)))


def check_low_bits(drawn: NDArray[np.int64]) -> None:
    """On a wide law the remainders of small divisors are all equally likely: blocks leave no trace."""
    for divisor in (2, 3, 16, 1000):
        accept(chi_square_p(np.bincount(drawn % divisor, minlength=divisor), np.full(divisor, 1 / divisor)))


def check_sign(drawn: NDArray[np.int64]) -> None:
    nonzero = drawn[drawn != 0]
    accept(binomial_p(int(np.count_nonzero(nonzero > 0)), nonzero.size, 0.5))


SCALES = [Fraction(1, 4), Fraction(1), Fraction(10), Fraction(1) / Fraction(0.1), Fraction(255), Fraction(256)]
WIDE_SCALES = [Fraction(12345, 7), Fraction(10**6), Fraction(2**40), Fraction(10**12)]


@pytest.mark.parametrize("scale", SCALES + WIDE_SCALES, ids=str)
def test_discrete_laplace_has_its_law(scale: Fraction) -> None:
    drawn = discrete_laplace(scale, 1)
    check_law(drawn, laplace_cumulative(scale))
    check_sign(drawn)


@pytest.mark.parametrize("scale", SCALES + WIDE_SCALES, ids=str)
def test_discrete_gaussian_has_its_law(scale: Fraction) -> None:
    drawn = discrete_gaussian(scale**2, 3)
    check_law(drawn, gaussian_cumulative(scale**2))
    check_sign(drawn)


@pytest.mark.parametrize("scale", WIDE_SCALES[1:], ids=str)
def test_wide_laws_have_uniform_low_bits(scale: Fraction) -> None:
    check_low_bits(discrete_laplace(scale, 4))
    check_low_bits(discrete_gaussian(scale**2, 5))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10), Fraction(10**6)], ids=str)
def test_single_draws_have_the_law_too(scale: Fraction) -> None:
    source = SeededSource(6)
    laplace = np.array([sampler_for(LaplaceLaw(scale)).draw_one(source) for _ in range(20_000)])
    check_law(laplace, laplace_cumulative(scale))
    gaussian = np.array([sampler_for(GaussianLaw(scale**2)).draw_one(source) for _ in range(20_000)])
    check_law(gaussian, gaussian_cumulative(scale**2))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10), Fraction(10**6)], ids=str)
def test_half_the_noise_is_noticed(scale: Fraction) -> None:
    halved = discrete_laplace(scale / 2, 7)
    with pytest.raises(AssertionError):
        check_law(halved, laplace_cumulative(scale))
    halved = discrete_gaussian(scale**2 / 4, 8)
    with pytest.raises(AssertionError):
        check_law(halved, gaussian_cumulative(scale**2))


@pytest.mark.parametrize("scale", [Fraction(10), Fraction(10**6)], ids=str)
def test_a_sign_that_falls_51_to_49_is_noticed(scale: Fraction) -> None:
    drawn = discrete_laplace(scale, 10)
    biased = np.where(biased_coins(Fraction(2, 100), DRAWS, SeededSource(9)), np.abs(drawn), drawn)
    with pytest.raises(AssertionError):
        check_sign(biased)


def test_a_lost_low_bit_is_noticed() -> None:
    drawn = discrete_laplace(Fraction(10**6), 11)
    with pytest.raises(AssertionError):
        check_low_bits(drawn & ~1)


def test_a_tiny_scale_draws_only_zeros() -> None:
    assert not discrete_laplace(Fraction(1, 10**6), 12).any()


@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 10**6), Fraction(1, 3), Fraction(2), Fraction(7)], ids=str
)
def test_exponential_coins_have_their_probability(exponent: Fraction) -> None:
    coins = exponential_coins(np.full(DRAWS, float(exponent)), lambda _: exponent, SeededSource(13))
    heads = int(np.count_nonzero(coins))
    accept(binomial_p(heads, DRAWS, math.exp(-exponent)))
