"""Intervals of variances hold as often as stated, also where the noise is larger than the number of rows.

The check raises a false alarm with a probability below one in a million; intervals that take noise off the number of
rows without regard to there being any fail it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from scipy import stats as classical

from tacit import Budget, stats
from tacit.mechanisms.simulation import SeededSource
from tacit.stats import moments
from tacit.stats import plan as plan_module
from tacit.stats.arrays import ArrayRows, arrays
from tacit.stats.moments import Moments
from tests.statistical.evidence import Refuted, accept

ROWS: Final = 20
REPEATS: Final = 1_200
LEVEL: Final = 0.9
VALUES: Final = np.clip(np.random.default_rng(3).gamma(4, 10, ROWS), 0, 120)


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "DRAWS", 300)


def accept_coverage() -> None:
    plan = stats.variance(VALUES[:3], bounds=(0, 120), epsilon=0.1, budget=Budget(epsilon=1.0)).plan
    assert isinstance(plan, Moments)
    rows = ArrayRows(arrays({"value": VALUES})[0])
    true = float(VALUES.var(ddof=1))
    missed = 0
    for seed in range(REPEATS):
        noisy = tuple(map(np.asarray, plan.measure(rows, SeededSource(seed))))
        span = plan.interval(noisy, LEVEL)
        assert span is not None
        missed += not span.low <= true <= span.high
    accept(float(classical.binom.sf(missed - 1, REPEATS, 1 - LEVEL)), "an interval of the level 0.9")


def test_the_interval_of_a_variance_holds_where_the_noise_is_larger_than_the_rows() -> None:
    accept_coverage()


def test_taking_off_noise_without_regard_to_there_being_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "SPREADS", ())
    with pytest.raises(Refuted):
        accept_coverage()
