"""Aggregators answer with the probabilities of their noise, and half the noise is noticed.

False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are fixed. The law of
two classes is exact: the difference of two Gaussian noises is Gaussian, that of two discrete Laplace noises is summed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from tacit.learn.pate import aggregators
from tacit.learn.pate.aggregators import Aggregator, ConfidentGNMax, GNMax, LNMax
from tacit.learn.pate.sanitised_epsilon import SanitisedReport, data_dependent
from tacit.learn.pate.smooth_sensitivity import smooth_bound
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p

DRAWS = 6_000
VOTES = np.array([60, 40])


def gaussian_error(sigma: float) -> float:
    return float(special.ndtr(-20 / (math.sqrt(2) * sigma)))


def laplace_error(scale: float) -> float:
    """P(X - Y > 20): ties fall to the first class."""
    numbers = np.arange(-4000, 4001)
    law = np.exp(-np.abs(numbers) / scale)
    law /= law.sum()
    tails = np.append(np.cumsum(law[::-1])[::-1], 0)  # tails[i] = P(X >= numbers[i])
    return float(sum(law[index] * tails[min(index + 21, len(numbers))] for index in range(len(numbers))))


def errors(aggregator: Aggregator, seed: int) -> int:
    source = SeededSource(seed)
    return sum(int(aggregator.release(VOTES, source=source)) for _ in range(DRAWS))


def test_gnmax_errs_as_often_as_its_noise_says() -> None:
    accept(binomial_p(errors(GNMax(20), 1), DRAWS, gaussian_error(20)))


def test_lnmax_errs_as_often_as_its_noise_says() -> None:
    accept(binomial_p(errors(LNMax(20), 2), DRAWS, laplace_error(20)))


@pytest.mark.parametrize(
    ("half", "error"), [(GNMax(10), gaussian_error(20)), (LNMax(10), laplace_error(20))], ids=["gaussian", "laplace"]
)
def test_half_the_noise_is_noticed(half: Aggregator, error: float) -> None:
    with pytest.raises(Refuted):
        accept(binomial_p(errors(half, 3), DRAWS, error))


def test_forgotten_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregators, "_gaussian", lambda sigma, counts, source: np.asarray(counts, dtype=float))
    with pytest.raises(Refuted):
        accept(binomial_p(errors(GNMax(20), 4), DRAWS, gaussian_error(20)))


def confident_counts(aggregator: ConfidentGNMax, seed: int) -> list[int]:
    source = SeededSource(seed)
    found = [aggregator.release(VOTES, source=source) for _ in range(DRAWS)]
    return [sum(one is None for one in found), sum(one == 0 for one in found), sum(one == 1 for one in found)]


def confident_law(sigma: float, test_sigma: float) -> list[float]:
    passing = float(special.ndtr((60 - 70) / test_sigma))
    wrong = gaussian_error(sigma)
    return [1 - passing, passing * (1 - wrong), passing * wrong]


def test_a_confident_query_has_its_three_outcomes_as_often_as_its_noise_says() -> None:
    counts = confident_counts(ConfidentGNMax(20, threshold=70, test_sigma=20), 5)
    accept(chi_square_p(counts, confident_law(20, 20)))


@pytest.mark.parametrize("half", [ConfidentGNMax(10, 70, 20), ConfidentGNMax(20, 70, 10)], ids=["label", "test"])
def test_half_the_noise_of_either_step_is_noticed(half: ConfidentGNMax) -> None:
    with pytest.raises(Refuted):
        accept(chi_square_p(confident_counts(half, 6), confident_law(20, 20)))


REPORT = SanitisedReport(order=10, sigma=6, beta=0.025, scale_sigma=6, level=0.9)
AGGREGATOR = ConfidentGNMax(40, threshold=200, test_sigma=150)
ASKED = np.random.default_rng(1).multinomial(250, [0.9, 0.08, 0.02], size=60)


VALUE, LOCAL = data_dependent(AGGREGATOR, ASKED, REPORT.order)
SMOOTH = smooth_bound(LOCAL, REPORT.beta)
RUNS = 1_000
SHIFT = 5.0
"""Added to the bound, so that none is negative, where estimates end."""


def spread_p(report: SanitisedReport, seed: int) -> float:
    """Return how likely the number of estimates within one standard deviation of the stated noise is."""
    source, deviation = SeededSource(seed), SMOOTH * REPORT.sigma
    middle = report._epsilon(SHIFT, -50.0, 1e-5, True).estimate
    found = np.array([report._release(SHIFT, SMOOTH, 1e-5, source).estimate for _ in range(RUNS)])
    return binomial_p(int((np.abs(found - middle) <= deviation).sum()), RUNS, 0.6826895)


def test_the_report_has_the_noise_that_it_states() -> None:
    accept(spread_p(REPORT, 7))


def test_half_the_noise_of_the_report_is_noticed() -> None:
    with pytest.raises(Refuted):
        accept(spread_p(SanitisedReport(order=10, sigma=3, beta=0.025, scale_sigma=6), 8))


def test_the_upper_end_of_the_report_covers_the_bound_at_least_as_often_as_it_says() -> None:
    true, source = REPORT._epsilon(VALUE, -50.0, 1e-5, True).estimate, SeededSource(9)
    covered = sum(REPORT._release(VALUE, SMOOTH, 1e-5, source).epsilon >= true for _ in range(RUNS))
    accept(1.0 if covered >= RUNS * REPORT.level else binomial_p(covered, RUNS, REPORT.level))
