"""Intervals of SQL answers hold the number without noise also where values lie at their bounds and noise is large.

False alarms: each test calls `accept` once over independent trials, so at most 1e-6 each over the choice of seeds,
which are fixed. Draws that are taken for what they are, with fewer rows than one and around their own mean, are
refuted.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as laws

from bench.sql_intervals import LEVEL, WARDS, World
from tacit.engines.protocol import SCHEMA
from tacit.measuring.moments import FUNCTIONS
from tacit.query import answer_intervals
from tests.statistical.evidence import Refuted, accept

RELEASES = 12
ROWS = 60
MOVING = "AVG(AVG(cost)) OVER (ORDER BY ward ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
CHANGE = "AVG(cost) - LAG(AVG(cost)) OVER (ORDER BY ward)"


class ExtremeWorld(World):
    """Wards of equal size, in which a share of the costs is 1,000, the upper bound, and all others are 0."""

    def __init__(self, share: float) -> None:
        people = np.arange(ROWS * WARDS)
        cost = np.where(people % ROWS < share * ROWS, 1000.0, 0.0)
        columns = {"uid": people, "ward": 1 + people // ROWS, "age": people % 100, "cost": cost, "_unit": people}
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._connection.register("columns", columns)
        self._connection.execute(f"CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.people AS SELECT * FROM columns")


def held(y: str, share: float, epsilon: float) -> NDArray[np.bool]:
    """Return which intervals hold, of those that are given."""
    asked = ExtremeWorld(share).asked(f"SELECT ward, {y} AS y FROM people GROUP BY ward", epsilon)
    return np.array(asked.held(RELEASES, first=300))


def too_rarely_p(found: NDArray[np.bool]) -> float:
    """Return how likely so few of independent trials are, if the level is kept."""
    return float(laws.binom.cdf(int(found.sum()), found.size, LEVEL))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("y", ["VARIANCE(cost)", "VAR_POP(cost)", "STDDEV(cost)"])
def test_intervals_of_spreads_hold(y: str, share: float, epsilon: float) -> None:
    found = held(y, share, epsilon)
    assert found.size == RELEASES * WARDS
    accept(too_rarely_p(found))


@pytest.mark.parametrize("epsilon", [0.01, 0.03, 1.0])
def test_intervals_of_ratios_of_moments_hold_where_they_are_given(epsilon: float) -> None:
    found = held("STDDEV(cost) / AVG(cost)", 0.1, epsilon)
    assert found.size or epsilon < 1.0  # a mean that may be 0 leaves the ratio without an end
    accept(too_rarely_p(found))


@pytest.mark.parametrize("y", [MOVING, CHANGE])
@pytest.mark.parametrize("epsilon", [0.01, 0.03])
def test_intervals_of_windows_over_means_hold(y: str, epsilon: float) -> None:
    found = held(y, 0.1, epsilon).reshape(RELEASES, -1)
    accept(too_rarely_p(found[:, 2::3]))  # of windows that share no ward


@pytest.mark.parametrize(("y", "share"), [("VARIANCE(cost)", 0.5), ("STDDEV(cost) / AVG(cost)", 0.1), (MOVING, 0.1)])
def test_draws_of_the_estimates_themselves_are_noticed(y: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        answer_intervals,
        "draws_of",
        lambda function, scales, sums, _tail: iter([(FUNCTIONS[function](scales, sums),) * 2]),
    )
    found = held(y, share, 0.01)
    with pytest.raises(Refuted):
        accept(too_rarely_p(found.reshape(RELEASES, -1)[:, 2::3] if y == MOVING else found))
