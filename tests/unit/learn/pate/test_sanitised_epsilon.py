"""The sanitised report: its cost, its slack for the grid, and its noise are the stated ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

from tacit.accounting.conversions import epsilon_of_renyi
from tacit.accounting.renyi import renyi_curve
from tacit.learn.pate import sanitised_epsilon
from tacit.learn.pate.aggregators import GNMax
from tacit.learn.pate.bounds import SLACK, gnmax_log_q
from tacit.learn.pate.sanitised_epsilon import BETA_SLACK, GRID, SanitisedReport, gnss_renyi
from tacit.learn.pate.smooth_sensitivity import gnmax_bound_at
from tacit.mechanisms.gaussian import SMOOTHING_VARIANCE
from tacit.mechanisms.laws import GaussianLaw
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.events import Approximate, Gaussian, Repeated

REPORT = SanitisedReport(order=4, sigma=6, beta=0.05, scale_sigma=3.0)


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0, 6.0])
def test_the_bound_and_the_scale_of_its_noise_are_both_paid_for(order: float) -> None:
    of_scale = order / (2 * 3.0**2)
    assert REPORT.renyi(order) == gnss_renyi(0.05 * BETA_SLACK, 6.0, order) + of_scale


def test_answers_and_report_are_charged_together_at_the_best_order() -> None:
    answers = Repeated(Gaussian(20.0), 30)
    charged = REPORT.event(answers, 1e-5)
    assert isinstance(charged, Approximate)
    orders = np.append(np.linspace(1.05, 10, 500), REPORT.order)
    costs = renyi_curve(answers, orders) + [
        gnss_renyi(0.05 * BETA_SLACK, 6.0, order) + order / (2 * 3.0**2) for order in orders.tolist()
    ]
    least = min(epsilon_of_renyi(order, cost, 1e-5) for order, cost in zip(orders.tolist(), costs, strict=True))
    assert charged.epsilon == pytest.approx(least, rel=1e-3)
    assert charged.delta == 1e-5


def test_every_query_has_the_slack_for_the_grid_of_its_noise() -> None:
    votes = np.array([[240, 10, 0], [200, 30, 20], [250, 0, 0], [120, 100, 30]])
    value, _ = sanitised_epsilon.data_dependent(GNMax(40.0), votes, 4.0)
    bounds = gnmax_bound_at(40.0, 3, 4.0).renyi(gnmax_log_q(votes, 40.0))
    assert value - bounds.sum() == pytest.approx(4 * SLACK, rel=1e-6)


@pytest.mark.parametrize("smooth", [0.0, 2.0**-20, 1e-3])
def test_the_noise_is_wider_than_smooth_sensitivity_by_the_rounding(
    smooth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    variances: list[Fraction] = []

    def recorded(variance: Any) -> GaussianLaw:
        variances.append(Fraction(variance))
        return GaussianLaw(variance)

    monkeypatch.setattr(sanitised_epsilon, "GaussianLaw", recorded)
    REPORT._release(0.01, smooth, 1e-5, SeededSource(1))
    (variance,) = variances
    widened = (Fraction(smooth) + 2 * GRID) * 6 / GRID
    assert float(variance) == pytest.approx(float(widened**2 + SMOOTHING_VARIANCE), rel=1e-12)


def test_the_upper_end_covers_the_bound_where_both_noises_are_at_the_end_of_their_half_of_the_confidence() -> None:
    bound, smooth, quantile = 0.02, 1e-3, float(special.ndtri(1 - (1 - REPORT.level) / 2))
    noisy_log = math.log(smooth) - quantile * REPORT.beta * REPORT.scale_sigma
    found = REPORT._epsilon(bound - quantile * smooth * REPORT.sigma, noisy_log, 1e-5, True)
    true = epsilon_of_renyi(REPORT.order, bound + REPORT.renyi(REPORT.order), 1e-5)
    assert true <= found.epsilon <= true + 1e-4
    assert found.estimate < true
