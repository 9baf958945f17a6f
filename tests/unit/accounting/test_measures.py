"""The measures that may decide: each a true bound, held against mpmath."""

import math

import mpmath
import numpy as np
import pytest

from tacit import accounting
from tacit.accounting import conversions, measures, renyi
from tacit.accounting.closed_forms import log_delta, sigma_for, sigma_for_rho
from tacit.privacy import events
from tacit.privacy.events import Composed, Repeated
from tests.unit.accounting import truth

ORDERS = np.array([1.01, 1.5, 2.0, 3.0, 8.0, 32.0, 128.0])


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0])
def test_rho_of_pure_privacy_bounds_every_order(epsilon: float) -> None:
    rho = measures.rho_of_pure(epsilon)
    assert rho <= epsilon**2 / 2
    for order in ORDERS:
        assert float(truth.renyi(truth.response(epsilon), float(order))) <= order * rho


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_renyi_curves_lie_just_above_the_divergences(epsilon: float) -> None:
    laplace, response = truth.Whole(truth.Laplace(epsilon)), truth.response(epsilon)
    for event, law in ((events.Laplace(epsilon), laplace), (events.Pure(epsilon), response)):
        for order, value in zip(ORDERS, renyi.renyi_curve(event, ORDERS), strict=True):
            exact = float(truth.renyi(law, float(order)))
            assert exact <= value <= exact * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.5, 2.0), (0.001, 0.5)])
def test_the_sampled_gaussian_has_the_binomial_moments_at_whole_orders(rate: float, sigma: float) -> None:
    for order in (2, 5, 17):
        with mpmath.workdps(60):
            q, s = mpmath.mpf(rate), mpmath.mpf(sigma)
            moment = mpmath.fsum(
                mpmath.binomial(order, k) * (1 - q) ** (order - k) * q**k * mpmath.exp((k * k - k) / (2 * s * s))
                for k in range(order + 1)
            )
            exact = float(mpmath.log(moment) / (order - 1))
        value = float(renyi.sampled_gaussian_curve(rate, sigma, np.array([float(order)]))[0])
        assert exact <= value <= exact * (1 + 1e-6) + 1e-11


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_bounded_range_has_the_divergence_of_its_worst_split(epsilon: float) -> None:
    for order, value in zip(ORDERS, renyi.renyi_curve(events.Exponential(epsilon), ORDERS), strict=True):
        splits = np.linspace(0, epsilon, 4001)[1:-1]
        high = (np.exp(epsilon) - np.exp(splits)) / (np.exp(epsilon) - 1)
        moments = high * np.exp((order - 1) * splits) + (1 - high) * np.exp((order - 1) * (splits - epsilon))
        worst = float(np.log(moments.max()) / (order - 1))
        assert worst <= value * (1 + 1e-12) + 1e-12
        assert value <= max(worst * (1 + 1e-4), 1e-12) or value <= order * epsilon**2 / 8 * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 1.0, 6.0])
def test_mu_of_pure_privacy_makes_gaussian_noise_tell_as_much_at_least(epsilon: float) -> None:
    mu, response = measures.mu_of_pure(epsilon), truth.response(epsilon)
    for at in np.linspace(0, 1.2 * epsilon, 25):
        assert response.delta(at) <= truth.gaussian_delta(mu, at) * (1 + mpmath.mpf(10) ** -9)


def test_measures_add_up_over_compositions() -> None:
    event = Composed([events.Gaussian(2.0), Repeated(events.Laplace(0.1), 3)])
    rho, delta = measures.approximate_zcdp(event)
    assert rho == pytest.approx(1 / 8 + 3 * measures.rho_of_pure(0.1))
    assert delta == 0
    assert measures.gaussian_mu(event) == pytest.approx(math.hypot(0.5, math.sqrt(3) * measures.mu_of_pure(0.1)))
    assert measures.pure_epsilon(event) == math.inf
    assert measures.renyi(event, 4.0) == pytest.approx(4 / 8 + 3 * measures.renyi(events.Laplace(0.1), 4.0))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_caps_turn_back_into_the_epsilon_they_were_made_for(epsilon: float, delta: float) -> None:
    rho, mu = conversions.rho_for(epsilon, delta), conversions.mu_for(epsilon, delta)
    assert epsilon * (1 - 1e-6) < conversions.epsilon_of_rho(rho, delta) <= epsilon
    assert epsilon * (1 - 1e-6) < conversions.epsilon_of_mu(mu, delta) <= epsilon * (1 + 1e-9)
    cap = conversions.renyi_for(32.0, epsilon, delta)
    assert conversions.epsilon_of_renyi(32.0, cap, delta) <= epsilon or cap == 0


@pytest.mark.parametrize("rho", [1e-4, 0.05, 2.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_the_conversion_of_rho_is_nearly_the_best_over_all_orders(rho: float, delta: float) -> None:
    orders = 1 + np.geomspace(1e-3, 1e5, 20_000)
    best = min(conversions.epsilon_of_renyi(float(order), float(order) * rho, delta) for order in orders)
    assert conversions.epsilon_of_rho(rho, delta) <= best * (1 + 1e-4)


@pytest.mark.parametrize("mu", [1e-9, 1e-6, 1e-4, 0.02, 1.0, 20.0, 1e3, 1e5, 1e8, 1e12])
@pytest.mark.parametrize("place", [-8.0, -5.0, -3.0, 0.0, 1.0, 5.0, 20.0])
def test_the_gaussian_curve_is_enclosed_and_precise_in_the_logarithm(mu: float, place: float) -> None:
    epsilon = max(0.0, mu * mu / 2 + mu * place)
    with mpmath.workdps(400):
        exact = mpmath.log(truth.gaussian_delta(mpmath.mpf(mu), mpmath.mpf(epsilon)))
        low, high = log_delta(mu, epsilon, -1), log_delta(mu, epsilon, 1)
        assert low <= exact <= high
    assert high - low <= 1e-8 + 2e-14 * max(mu, 1 / mu if epsilon else 0.0) * max(abs(place), 1.0)


@pytest.mark.parametrize("mu", [3e4, 1.7e5, 2.3e7, 4.1e9])
@pytest.mark.parametrize("place", [-2.0, 0.0, 3.0])
def test_bounds_on_delta_enclose_it_where_mu_is_large(mu: float, place: float) -> None:
    event, at = events.Gaussian(1 / mu), mu * mu / 2 + mu * place
    bound = accounting.delta(event, at)
    with mpmath.workdps(60):
        exact = truth.gaussian_delta(1 / mpmath.mpf(event.sigma), mpmath.mpf(at))
        assert bound.lower <= exact <= bound.upper
        found = accounting.epsilon(event, 0.3)
        assert truth.gaussian_delta(1 / mpmath.mpf(event.sigma), mpmath.mpf(found.lower)) >= mpmath.mpf(0.3)
        assert truth.gaussian_delta(1 / mpmath.mpf(event.sigma), mpmath.mpf(found.upper)) <= mpmath.mpf(0.3)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (0.5, 1e-5), (1.0, 1e-30), (100.0, 1e-10)])
def test_analytic_calibration_keeps_the_target_and_no_more(epsilon: float, delta: float) -> None:
    sigma = sigma_for(epsilon, delta)
    with mpmath.workdps(80):
        assert truth.gaussian_delta(1 / mpmath.mpf(sigma), epsilon) <= delta
        assert truth.gaussian_delta(1 / mpmath.mpf(sigma * (1 - 1e-7)), epsilon) > delta


def test_sigma_for_rho_is_never_too_small() -> None:
    for rho in (1e-9, 0.1, 0.5, 3.0):
        assert 1 / (2 * mpmath.mpf(sigma_for_rho(rho)) ** 2) <= rho
