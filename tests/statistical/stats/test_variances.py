"""Intervals of variances hold as often as stated, whatever the values are and however large the noise is.

The check raises a false alarm with a probability below one in a million, over the choice of the seeds, which are fixed;
intervals of draws that are taken for what they are, with fewer rows than one or around their own mean, fail it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from scipy import stats as classical

from tacit import Budget, stats
from tacit.measuring import intervals
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.moments import Moments
from tests.statistical.evidence import Refuted, accept

REPEATS: Final = 600
LEVEL: Final = 0.9
BOUNDS: Final = (0, 120)
SHAPES: Final = {
    "skewed": np.clip(np.random.default_rng(3).gamma(4, 10, 20), *BOUNDS),
    "at both bounds": np.repeat([0.0, 120.0], 50),
    "a third at a bound": np.tile([0.0, 0.0, 120.0], 20),
    "equal": np.full(50, 60.0),
}


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "DRAWS", 300)


def accept_coverage(ask: Any, shape: str, epsilon: float) -> None:
    values = SHAPES[shape]
    plan = ask(values[:3], bounds=BOUNDS, epsilon=epsilon, budget=Budget(epsilon=10.0)).plan
    assert isinstance(plan, Moments)
    rows = ArrayRows(read_arrays({"value": values})[0])
    true = float(values.var(ddof=1) if ask is stats.variance else values.std(ddof=1))
    missed = 0
    for seed in range(REPEATS):
        noisy = tuple(map(np.asarray, plan.measure(rows, SeededSource(seed))))
        span = plan.interval(noisy, LEVEL)
        assert span is not None
        missed += not span.low - 1e-9 <= true <= span.high + 1e-9
    accept(float(classical.binom.sf(missed - 1, REPEATS, 1 - LEVEL)), "an interval of the level 0.9")


@pytest.mark.sampled(5, each="shape")
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_interval_of_a_variance_holds_whatever_the_values_are(shape: str, epsilon: float) -> None:
    accept_coverage(stats.variance, shape, epsilon)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_interval_of_a_standard_deviation_holds_whatever_the_values_are(shape: str) -> None:
    accept_coverage(stats.std, shape, 0.05)


@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_draws_of_the_variance_itself_are_noticed(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moments, "_draws", lambda plan, sums, _: iter([(plan.compute(*sums),) * 2]))
    with pytest.raises(Refuted):
        accept_coverage(stats.variance, "at both bounds", epsilon)
