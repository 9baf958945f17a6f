"""Bounds that a question learns reach beyond the values as seldom as stated.

False alarms: one in a million over the choice of seeds, which are fixed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats as laws

from tacit.mechanisms import ApproximateBounds
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import Target, Tariff, compile_
from tacit.query.learn import BINS, WEIGHT, learnt
from tests.statistical.evidence import Refuted, accept

TABLE = Table(
    "people",
    (Column("uid", Kind.INTEGER, nullable=False), Column("income", Kind.REAL)),
    Unit("uid"),
    Limits(rows_per_unit=1),
)
CELL, TRIALS = 30, 3_000


def too_wide(mechanism: ApproximateBounds) -> int:
    """Return how often bounds reach beyond the one bin that holds values."""
    edges, columns = mechanism.edges(CELL), {"cell": [CELL], "w": [1_000 * WEIGHT]}
    ranges = [learnt(mechanism, columns, SeededSource(seed)) for seed in range(TRIALS)]
    return sum((one.lower, one.upper) != edges for one in ranges)


def p_of(found: int) -> float:
    return float(laws.binom.sf(found - 1, TRIALS, 1e-6))


def test_an_empty_bin_is_taken_for_a_filled_one_as_seldom_as_stated() -> None:
    plan = compile_("SELECT AVG(income) FROM people", Schema([TABLE]), Target(epsilon=1.0), Tariff())
    (mechanism,) = plan.price.bounds
    assert mechanism.bins == BINS
    accept(p_of(too_wide(mechanism)))
    with pytest.raises(Refuted):
        accept(p_of(too_wide(replace(mechanism, success=0.99))))
