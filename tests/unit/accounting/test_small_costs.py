"""Releases that cost next to nothing still cost what they do: no measure rounds a price to zero, or below."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from tacit import accounting
from tacit.accounting import conversions, measures, renyi
from tacit.privacy import events
from tests.unit.accounting import truth

TINY = [1e-17, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 0.03, 0.999, 1.001, 7.0, 29.0]
ORDERS = np.array([1.01, 1.5, 2.0, 10.0, 100.0, 1000.0, 4096.0])


def exact_renyi(kind: type[events.Event], epsilon: float, order: float) -> mpf:
    """Return the divergence in closed form (Mironov 2017), with as many digits as cancel and forty more."""
    with mpmath.workdps(120):
        a, e = mpf(order), mpf(epsilon)
        if kind is events.Laplace:
            moment = a / (2 * a - 1) * mpmath.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
        elif kind is events.Pure:
            p = 1 / (1 + mpmath.exp(-e))
            moment = p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)
        else:
            high = mpmath.log(
                (a - 1) / a * mpmath.exp(e) * mpmath.expm1(-a * e) / mpmath.expm1(-(a - 1) * e)
            )  # where the moment peaks
            p = (mpmath.exp(e) - mpmath.exp(high)) / mpmath.expm1(e)
            moment = p * mpmath.exp((a - 1) * high) + (1 - p) * mpmath.exp((a - 1) * (high - e))
        return mpmath.log(moment) / (a - 1)


@pytest.mark.parametrize("kind", [events.Pure, events.Laplace, events.Exponential])
@pytest.mark.parametrize("epsilon", TINY)
def test_the_divergence_is_never_below_the_exact_one(kind: type[events.Pure], epsilon: float) -> None:
    for order, value in zip(ORDERS, renyi.renyi_curve(kind(epsilon), ORDERS), strict=True):
        exact = exact_renyi(kind, epsilon, float(order))
        assert exact <= mpf(value)
        assert value <= 1.6 * exact + 1e-14 * float(order / (order - 1))


@pytest.mark.parametrize("epsilon", TINY)
def test_mu_of_pure_privacy_is_never_below_the_exact_one(epsilon: float) -> None:
    with mpmath.workdps(60):
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(mpf(epsilon) / 2))
        found = mpf(measures.mu_of_pure(epsilon))
        assert exact <= found <= exact * (1 + mpf(10) ** -11)


@pytest.mark.parametrize("epsilon", TINY)
def test_rho_of_pure_privacy_is_never_below_the_exact_one(epsilon: float) -> None:
    exact = mpf(epsilon) * mpmath.tanh(mpf(epsilon) / 2)
    assert exact <= measures.rho_of_pure(epsilon) <= exact * (1 + mpf(10) ** -12)
    orders = [1 + mpf(10) ** -power for power in (6, 3, 1)] + [mpf(order) for order in (2, 5, 30, 1000)]
    assert all(exact_renyi(events.Pure, epsilon, order) <= order * exact * (1 + mpf(10) ** -30) for order in orders)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.1, 1.0, 5.0])
def test_the_trade_off_of_pure_privacy_lies_above_that_of_its_mu(epsilon: float) -> None:
    """At every share of false alarms, a test of N(0, 1) against N(mu, 1) misses no more."""
    mu = mpf(measures.mu_of_pure(epsilon))
    for share in (1e-9, 1e-4, 0.01, 0.2, 0.4, 0.5, 0.6, 0.9, 0.999):
        alarms = mpf(share)
        point = -mpmath.sqrt(2) * mpmath.erfinv(2 * alarms - 1)
        gaussian = 1 - truth.upper_normal(point - mu)
        pure = max(mpf(0), 1 - mpmath.exp(epsilon) * alarms, mpmath.exp(-epsilon) * (1 - alarms))
        assert gaussian <= pure * (1 + mpf(10) ** -30)


@pytest.mark.parametrize("count", [10**3, 10**6, 2**50])
def test_many_releases_of_next_to_nothing_are_counted(count: int) -> None:
    event = events.Repeated(events.Pure(1e-9), count)
    assert measures.approximate_zcdp(event)[0] >= count * 0.5e-18 * (1 - 1e-9)
    assert measures.gaussian_mu(event) >= math.sqrt(count * math.pi / 2) * 1e-9 * (1 - 1e-9)
    assert measures.renyi(event, 8.0) >= count * 4e-18 * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-160, 700.0, 1e5])
def test_no_epsilon_is_too_small_or_too_large_to_be_measured(epsilon: float) -> None:
    for kind in (events.Pure, events.Laplace, events.Exponential, events.DiscreteLaplace, events.RandomizedResponse):
        values = renyi.renyi_curve(kind(epsilon), ORDERS)
        assert np.all((values > 0) == (epsilon > 0))
        assert np.all(values <= epsilon * (1 + 1e-9) + 1e-300)


@pytest.mark.parametrize("sigma", [1e-300, 1e-160, 1e-9, 1e100])
def test_no_noise_is_too_narrow_or_too_wide_to_be_measured(sigma: float) -> None:
    for event in (events.Gaussian(sigma), events.DiscreteGaussian(sigma), events.Sampled(0.1, events.Gaussian(sigma))):
        assert measures.renyi(event, 3.0) >= 0
        assert measures.approximate_zcdp(event)[0] >= 0
        assert measures.gaussian_mu(event) > 0


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("rho", [1e-12, 1e-3, 0.5, 20.0])
def test_the_delta_of_rho_is_that_of_the_best_order(rho: float, epsilon: float) -> None:
    orders = 1 + np.geomspace(1e-6, 1e9, 60_000)
    logs = (orders - 1) * (orders * rho - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    best, found = min(0.0, float(logs.min())), math.log(max(conversions.delta_of_rho(rho, epsilon), 1e-320))
    assert best - 1e-6 * abs(best) <= found
    assert found <= max(best + 0.02 * abs(best), -700.0) + 1e-6


def test_conversions_move_with_what_they_convert() -> None:
    deltas = [1e-12, 1e-6, 1e-2]
    for one in (conversions.epsilon_of_rho, conversions.epsilon_of_mu, conversions.least_epsilon_of_mu):
        for amounts in ([one(0.3, delta) for delta in deltas], [one(size, 1e-6) for size in (2.0, 0.7, 0.1)]):
            assert amounts == sorted(amounts, reverse=True)
    assert conversions.epsilon_of_renyi(8.0, 0.1, 1e-6) < conversions.epsilon_of_renyi(8.0, 0.2, 1e-6)


@pytest.mark.parametrize("size", [1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12])
def test_bounds_of_one_tiny_release_enclose_its_closed_form(size: float) -> None:
    """Of Laplace noise delta(e) = 1 - e^((e - epsilon) / 2): sums that nearly cancel would say less."""
    for share in range(1, 40, 3):
        delta = -math.expm1(-size / 2) * share / 40
        true = max(0.0, size + 2 * math.log1p(-delta))
        found = accounting.epsilon(events.Laplace(size), delta)
        assert found.lower * (1 - 1e-14) - 1e-15 * size <= true <= found.upper * (1 + 1e-14) + 1e-15 * size, share
