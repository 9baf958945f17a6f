"""Rounding goes against the spender: no measure is below the exact number, nor above it by more than a hair."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from mpmath import mpf

from tacit.accounting import conversions, measures
from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.curves import total_variation
from tacit.accounting.parts import parts
from tacit.privacy import Relation, events
from tacit.privacy.events import Event
from tests.unit.accounting import truth

ABOVE = Fraction(1, 10**9)
CHANCE = random.Random(11)
SIGMAS = [10 ** CHANCE.uniform(-3, 6) for _ in range(12)]
EPSILONS = [10 ** CHANCE.uniform(-9, 1.2) for _ in range(24)]
RHOS = [10 ** CHANCE.uniform(-6, 0.5) for _ in range(6)]


def enclosed(exact: mpf, distance: float) -> None:
    """Require that a total variation is the exact one, but for the last digits of a float."""
    assert exact * (1 - mpf(10) ** -15) <= distance <= exact * (1 + mpf(10) ** -9)


def precision(sigma: float) -> Fraction:
    return 1 / Fraction(sigma) ** 2


def gaussian_noises() -> list[tuple[Event, Fraction]]:
    """Return events that are Gaussian noise, each with the sum of squared sensitivities over variances, exactly."""
    found: list[tuple[Event, Fraction]] = []
    for sigma, other in pairwise(SIGMAS):
        one = events.Gaussian(sigma)
        found += [
            (one, precision(sigma)),
            (events.Repeated(one, 12_345), 12_345 * precision(sigma)),
            (events.Grouped(one, 7), 49 * precision(sigma)),
            (events.NoisyMax(sigma), 2 * precision(sigma)),
            (events.TreeAggregation(sigma, 100), 8 * precision(sigma)),
            (events.TreeAggregation(sigma, 100, under=Relation.REPLACE_ONE), 15 * precision(sigma)),
            (events.TreeAggregation(sigma, 64), 7 * precision(sigma)),
            (events.TreeAggregation(sigma, 65), 8 * precision(sigma)),
            (events.Repeated(events.Composed((events.Repeated(one, 3), one)), 5), 20 * precision(sigma)),
            (events.Repeated(events.Grouped(events.Repeated(one, 3), 2), 5), 60 * precision(sigma)),
            (events.Composed((one, one, events.Gaussian(other))), 2 * precision(sigma) + precision(other)),
            (
                events.Grouped(events.Composed((one, events.NoisyMax(other))), 3),
                9 * precision(sigma) + 18 * precision(other),
            ),
        ]
    return found


@pytest.mark.parametrize(("event", "exact"), gaussian_noises())
def test_measures_of_gaussian_noise_are_not_below_its_precision(event: Event, exact: Fraction) -> None:
    assert exact <= Fraction(measures.gaussian_mu(event)) ** 2 <= exact * (1 + ABOVE)
    assert exact / 2 <= Fraction(measures.approximate_zcdp(event)[0]) <= exact / 2 * (1 + ABOVE)
    for order in (1.25, 2.0, 33.0):
        assert exact / 2 * Fraction(order) <= Fraction(measures.renyi(event, order)) <= exact * Fraction(order)
    with mpmath.workdps(60):
        distance = mpmath.erf(mpmath.sqrt(mpf(exact.numerator) / exact.denominator / 8))
        assert distance * (1 - mpf(10) ** -15) <= total_variation(event)
        if sum(parts(event).values()) == 1:
            enclosed(distance, total_variation(event))


@pytest.mark.parametrize("size", EPSILONS)
def test_measures_of_pure_privacy_are_not_below_their_closed_forms(size: float) -> None:
    with mpmath.workdps(60):
        exact = mpf(size) * mpmath.tanh(mpf(size) / 2)
        assert exact <= measures.rho_of_pure(size) <= exact * (1 + mpf(10) ** -9)
        distance = mpmath.tanh(mpf(size) / 2)
        assert distance <= mpmath.erf(mpf(measures.mu_of_pure(size)) / mpmath.sqrt(8)) <= distance * (1 + mpf(10) ** -9)
        enclosed(mpmath.tanh(mpf(size) / 4), total_variation(events.Exponential(size)))
        given = mpf(1e-3)
        enclosed(given + (1 - given) * distance, total_variation(events.Approximate(size, 1e-3)))
        narrow = mpf(size) ** 2 / 8
        rho = measures.approximate_zcdp(events.Exponential(size))[0]
        assert min(narrow, exact) <= rho <= min(narrow, exact) * (1 + mpf(10) ** -9)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 30.0])
@pytest.mark.parametrize("share", [(1, 1000), (1, 3), (9, 10)])
def test_the_total_variation_of_a_sample_is_its_rate_times_that_of_the_event(
    sigma: float, share: tuple[int, int]
) -> None:
    rate = share[0] / share[1]
    whole, exchanged = (mpmath.erf(move / (mpf(sigma) * mpmath.sqrt(8))) for move in (1, 2))
    noise, fixed = events.Gaussian(sigma), events.Gaussian(sigma, under=Relation.REPLACE_ONE)
    enclosed(rate * whole, total_variation(events.Sampled(rate, noise)))
    enclosed(rate * whole, total_variation(events.SampledWithoutReplacement(*share, fixed)))
    enclosed(rate * exchanged, total_variation(events.SampledWithoutReplacement(*share, noise)))


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.4, 3.0])
def test_the_total_variation_of_zero_concentrated_privacy_is_no_less_than_that_of_noise(rho: float) -> None:
    """Pinsker's bound at the least order for little, Bretagnolle and Huber's for much."""
    found = total_variation(events.ZeroConcentrated(rho))
    assert truth.gaussian_delta(mpmath.sqrt(2 * mpf(rho)), 0) <= found
    assert found <= min(math.sqrt(1.02 * rho / 2), math.sqrt(-math.expm1(-1.02 * rho)))


@pytest.mark.parametrize("size", [2, 3, 10, 1001])
def test_what_a_group_costs_is_not_below_the_theorem(size: int) -> None:
    for number in (0.3, 1e-3, 1e-12):
        for kind in (events.Laplace, events.Pure, events.Exponential, events.RandomizedResponse):
            assert Fraction(pure_epsilon(events.Grouped(kind(number), size))) >= size * Fraction(number)
        rho, _ = measures.approximate_zcdp(events.Grouped(events.ZeroConcentrated(number), size))
        assert size**2 * Fraction(number) <= Fraction(rho) <= size**2 * Fraction(number) * (1 + ABOVE)
        ((part, _),) = parts(events.Grouped(events.Approximate(number / size, 1e-9), size)).items()
        assert isinstance(part, events.Approximate)
        with mpmath.workdps(60):
            step = mpf(number / size)
            growth = mpmath.expm1(size * step) / mpmath.expm1(step)
            assert mpf(1e-9) * growth <= part.delta <= mpf(1e-9) * growth * (1 + mpf(10) ** -9)
            assert size * step <= part.epsilon <= size * step * (1 + mpf(10) ** -9)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("at", [1e-3, 1e-6, 1e-12])
def test_conversions_do_not_claim_more_than_their_formula(rho: float, at: float) -> None:
    """Gaussian noise has exactly this rho, and its own curve is below every conversion; both ways are held to it."""
    mu = mpmath.sqrt(2 * mpf(rho))
    size = conversions.epsilon_of_rho(rho, at)
    assert truth.gaussian_delta(mu, size) <= at
    assert truth.gaussian_delta(mu, size / 3) <= conversions.delta_of_rho(rho, size / 3)
    assert conversions.delta_of_rho(rho, size) == pytest.approx(at, rel=1e-3)
    for order in (1.5, 8.0, 100.0):
        with mpmath.workdps(60):
            a = mpf(order)
            gain = mpmath.log1p(-1 / a) - (mpmath.log(mpf(at)) + mpmath.log(a)) / (a - 1)
            found = conversions.epsilon_of_renyi(order, rho * order, at)
            exact = max(mpf(rho * order) + gain, mpf(0))
            assert exact <= found <= exact * (1 + mpf(10) ** -9)
            kept = conversions.renyi_for(order, 2.0, at)
            assert kept == 0 or 2 * (1 - mpf(10) ** -9) <= kept + gain <= 2
    cap = conversions.rho_for(2.0, at)
    assert truth.gaussian_delta(mpmath.sqrt(2 * mpf(cap)), 2.0) <= at


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.7, 5.0, 40.0])
@pytest.mark.parametrize("at", [1e-2, 1e-9])
def test_both_ends_of_gaussian_noise_enclose_its_curve(mu: float, at: float) -> None:
    with mpmath.workdps(80):
        assert truth.gaussian_delta(mu, conversions.epsilon_of_mu(mu, at)) <= at
        lower = conversions.least_epsilon_of_mu(mu, at)
        assert lower == 0 or truth.gaussian_delta(mu, lower) >= at
        assert truth.gaussian_delta(mpf(conversions.mu_for(0.5, at)), 0.5) <= at


def test_a_group_that_gives_everything_away_has_no_price() -> None:
    """Where delta would pass 1, nothing is promised: no rho, and no delta that stands for one."""
    event = events.Grouped(events.Approximate(0.1, 0.4), 3)
    assert measures.approximate_zcdp(event) == (math.inf, 0.0)
    assert measures.approximate_zcdp(events.Repeated(events.Approximate(0.1, 0.4), 3)) == (math.inf, 0.0)
