"""Running totals have the stated noise at every step: the right variance, and intervals that hold what they say.

False alarms: one in a million for each check (evidence.FALSE_ALARM); seeds are fixed. Half the noise must be noticed in
the same check.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit import Budget
from tacit.measuring.intervals import STEPS, Summand, discrete_half_width
from tacit.mechanisms import Laplace
from tacit.mechanisms.simulation import SeededSource
from tacit.stats import RunningCount
from tests.statistical.evidence import Refuted, accept, binomial_p

HORIZON = 24
STREAMS = 400


def errors(delta: float) -> tuple[Any, Any, Any]:
    """Distances from the true totals, stated variances, and whether 90 % intervals hold the truth, by step."""
    true = 1000 * np.arange(1, HORIZON + 1)
    source = SeededSource(4)
    distances, spreads, inside = [], [], []
    for _ in range(STREAMS):
        price = {"rho": 0.005} if delta else {"epsilon": 0.2}
        running = RunningCount(HORIZON, budget=Budget(1.0, delta), source=source, **price)  # type: ignore[arg-type]
        totals = [running.add(1000) for _ in range(HORIZON)]
        distances.append([one.estimate - at for one, at in zip(totals, true, strict=True)])
        spreads = [one.variance for one in totals]
        spans = [one.interval(0.9) for one in totals]
        inside.append([low <= at <= high for (low, high), at in zip(spans, true, strict=True)])
    return np.array(distances), np.array(spreads), np.array(inside)


def check(distances: Any, spreads: Any) -> None:
    """The mean squared distance at the first, a middle and the last step, against its stated variance."""
    for at in (0, 10, HORIZON - 1):
        squares = distances[:, at] ** 2 / spreads[at]
        off = (squares.mean() - 1) / (squares.std(ddof=1) / math.sqrt(STREAMS))
        accept(2 * float(stats.norm.sf(abs(off))), f"the stated variance at step {at}")


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
def test_totals_have_the_stated_variance_and_coverage(delta: float) -> None:
    distances, spreads, inside = errors(delta)
    check(distances, spreads)
    for at in (0, 10, HORIZON - 1):
        hits = int(inside[:, at].sum())
        accept(max(binomial_p(hits, STREAMS, share) for share in (0.89, 0.9, 0.91)), "a coverage of 0.9")
    with pytest.raises(Refuted):
        check(distances / 2, spreads)


def coverage(epsilon: float, streams: int = 60) -> tuple[int, int]:
    """How many of the 95 % intervals over 24 steps hold the truth, and how many there are."""
    source, held = SeededSource(6), 0
    for _ in range(streams):
        running = RunningCount(HORIZON, budget=Budget(epsilon), source=source, epsilon=epsilon)
        spans = [running.add(1000).interval(0.95) for _ in range(HORIZON)]
        held += sum(low <= 1000 * (at + 1) <= high for at, (low, high) in enumerate(spans))
    return held, streams * HORIZON


@pytest.mark.parametrize("epsilon", [2.0, 3.0, 5.0, 7.0, 10.0, 50.0])
def test_intervals_hold_as_often_where_the_noise_is_mostly_nothing(epsilon: float) -> None:
    """Totals of one stream share noise, about eight steps each; so an eighth of them is counted as independent."""
    held, trials = coverage(epsilon)
    accept(float(stats.binom.cdf(held // 8, trials // 8, 0.95)), "a coverage of at least 0.95")
    assert held >= 0.94 * trials


def test_the_law_of_a_sum_is_that_of_its_draws() -> None:
    summands = (Summand(1.0, 0.6, 3), Summand(0.75, 0.4, 2), Summand(0.25, 0.6, 8))
    source = SeededSource(8)
    drawn = sum(
        one.coefficient
        * np.asarray(Laplace(1, 1 / one.scale).release(np.zeros((20_000, one.count), dtype=int), source=source)).sum(1)
        for one in summands
    )
    for level in (0.5, 0.9, 0.95, 0.99):
        width = discrete_half_width(summands, level)
        inside, narrower = (int((np.abs(drawn) <= at).sum()) for at in (width, width - 0.2))
        accept(float(stats.binom.cdf(inside, 20_000, level)), f"a coverage of at least {level}")
        accept(float(stats.binom.sf(narrower - 1, 20_000, level + 0.01)), f"the least width for {level}")


@pytest.mark.parametrize(
    ("beyond", "scale", "level"),
    [(0.49, 0.6, 0.8), (0.45, 1.0, 0.95), (0.3, 2.0, 0.95), (-0.49, 0.6, 0.8)],
)
def test_a_half_width_holds_the_sum_whose_coefficient_lies_between_two_steps(
    beyond: float, scale: float, level: float
) -> None:
    """The law of one noise is known, and nothing is drawn: without the margin its last value would lie just beyond."""
    one = Summand((43 + beyond) / STEPS, scale, 1)
    last = math.floor(discrete_half_width((one,), level) / one.coefficient)
    assert 1 - 2 * one.ratio ** (last + 1) / (1 + one.ratio) >= level
