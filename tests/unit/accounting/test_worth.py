"""Calibration at its edges, and the meaning of a cost against attacks that are worked out exactly."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from tacit.accounting import calibrate, epsilon, meaning
from tacit.accounting.calibration import PARAMETER_MAX
from tacit.accounting.meaning import delta_warning
from tacit.privacy import events
from tacit.privacy.errors import OutOfRange
from tests.unit.accounting import truth


@pytest.mark.parametrize(("target", "at"), [(0.01, 1e-12), (1.0, 1e-6), (30.0, 1e-3)])
def test_gaussian_noise_for_a_target_is_the_least_there_is(target: float, at: float) -> None:
    sigma = calibrate(lambda sigma: events.Repeated(events.Gaussian(sigma), 9), target, at)
    mu = 3 / mpf(sigma)
    assert truth.gaussian_delta(mu, target) <= at
    assert truth.gaussian_delta(mu * (1 + mpf(10) ** -7), target) > at


@pytest.mark.parametrize("target", [0.2, 3.0])
def test_laplace_noise_for_a_target_is_nearly_the_least_there_is(target: float) -> None:
    size = calibrate(lambda size: events.Repeated(events.Laplace(size), 3), target, 1e-4)
    assert truth.laplace_fold(size, 3, target) <= 1e-4
    assert truth.laplace_fold(size * 1.002, 3, target) > 1e-4


@pytest.mark.parametrize(
    "make",
    [
        lambda sigma: events.Composed((events.Approximate(0.1, 1e-3), events.Gaussian(sigma))),
        lambda _: events.Pure(2.0),
        lambda sigma: events.Composed((events.Pure(1.5), events.Gaussian(sigma))),
    ],
)
def test_a_target_that_no_noise_keeps_is_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(OutOfRange):
        calibrate(make, 1.0, 1e-6)


def test_a_target_without_delta_is_kept_by_pure_noise_and_by_no_other() -> None:
    size = calibrate(lambda size: events.Repeated(events.Laplace(size), 7), 1.0, 0)
    assert 1 - 1e-3 <= 7 * size <= 1
    with pytest.raises(OutOfRange):
        calibrate(events.Gaussian, 1.0, 0)
    assert size < PARAMETER_MAX


@pytest.mark.parametrize("sigma", [0.5, 2.0, 20.0])
def test_the_bound_on_true_positives_lies_above_the_best_test_and_near_it(sigma: float) -> None:
    told, mu = meaning(events.Gaussian(sigma), 1e-9), 1 / mpf(sigma)
    for rate in (0.01, 0.1, 0.5, 0.9):
        point = -mpmath.sqrt(2) * mpmath.erfinv(2 * mpf(rate) - 1)
        best = truth.upper_normal(point - mu)
        assert best <= told.true_positive_rate(rate) <= best * 1.05
    exact = 1 - 2 * truth.upper_normal(mu / 2)
    assert exact <= told.advantage <= exact * (1 + mpf(10) ** -6)


def test_the_bound_on_true_positives_holds_in_both_directions() -> None:
    """A sampled release: testing for the unit and testing against it differ, and one curve covers both."""
    event = events.Sampled(0.3, events.Gaussian(0.7))
    told = meaning(event, 1e-6)
    for addition in (False, True):
        law = truth.Sampled(truth.Gaussian(1 / 0.7), 0.3, addition)
        for rate in (0.01, 0.2, 0.7):
            best = min(float(law.delta(at)) + math.exp(at) * rate for at in np.linspace(-4, 4, 161))
            assert min(best, 1.0) <= told.true_positive_rate(rate) + 1e-12


def test_pure_privacy_moves_odds_by_no_more_than_its_factor() -> None:
    told = meaning(events.Pure(math.log(3)), 0)
    assert told.posterior(0.5) == pytest.approx((0.25, 0.75))
    assert told.posterior(0.4) == pytest.approx((0.4 / 2.2, 1.2 / 1.8))
    assert told.risk_factor == pytest.approx(3)


def test_what_has_no_bound_means_nothing() -> None:
    told = meaning(events.Approximate(1.0, 0.5), 0)
    assert told.posterior(0.3) == (0.0, 1.0)
    assert told.advantage == 1
    assert told.true_positive_rate(0.01) == 1


@pytest.mark.parametrize(
    ("delta", "warned"), [(1 / 500, True), (1e-3, True), (2e-6, True), (1e-6, False), (0.0, False)]
)
def test_a_delta_is_measured_against_the_number_of_units(delta: float, warned: bool) -> None:
    assert (delta_warning(delta, 1000) is not None) == warned


def test_an_upper_bound_is_kept_by_the_parameter_that_calibration_found_at_any_width() -> None:
    def make(sigma: float) -> events.Event:
        return events.Repeated(events.Sampled(0.02, events.Gaussian(sigma)), 300)

    sigma = calibrate(make, 1.5, 1e-6)
    for width in (0.2, 0.02, 0.007):
        assert epsilon(make(sigma), 1e-6, width=width).lower <= 1.5
    assert epsilon(make(sigma), 1e-6).upper <= 1.5
