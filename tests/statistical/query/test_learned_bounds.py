"""Bounds that a question learns reach beyond the values as seldom as stated.

False alarms: one in a million over the choice of seeds, which are fixed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from scipy import stats as laws

from tacit.curator import Curator
from tacit.mechanisms import ApproximateBounds
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Target
from tacit.query.learned_bounds import BINS, learn_range
from tacit.query.private_choices import WEIGHT
from tests.statistical.evidence import Refuted, accept
from tests.support.plans import plan_sql

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
    ranges = [learn_range(mechanism, columns, SeededSource(seed))[0] for seed in range(TRIALS)]
    return sum((one.lower, one.upper) != edges for one in ranges)


def p_of(found: int) -> float:
    return float(laws.binom.sf(found - 1, TRIALS, 1e-6))


def test_an_empty_bin_is_taken_for_a_filled_one_as_seldom_as_stated() -> None:
    plan = plan_sql("SELECT AVG(income) FROM people", Schema([TABLE]), Target(epsilon=1.0), BudgetTerms())
    (mechanism,) = plan.price.bounds
    assert mechanism.bins == BINS
    accept(p_of(too_wide(mechanism)))
    with pytest.raises(Refuted):
        accept(p_of(too_wide(replace(mechanism, success=0.99))))


@pytest.mark.parametrize(("rows", "is_guess"), [(20, True), (2_000, False)])
def test_an_answer_with_guessed_bounds_says_so_also_when_it_is_read_again(
    tmp_path: Path, rows: int, is_guess: bool
) -> None:
    """At epsilon 0.1, a sixth of which goes into bounds, the threshold is 1,120 rows and the noise has a scale of 60.

    Both cases are wrong in fewer than one of 10^6 runs, which draw from the operating system.
    """
    frame = pa.table({"uid": list(range(rows)), "income": [500.0] * rows})
    with Curator(tmp_path) as curator:
        curator.add_table("people", frame, unit="uid", limits=Limits(rows_per_unit=1))
        curator.set_budget("people", 1.0)
        first, again = (curator.sql("SELECT AVG(income) AS a, COUNT(*) AS n FROM people", 0.1) for _ in range(2))
    assert (first.cost.epsilon, again.cost.epsilon) == (0.1, 0.0)
    assert first.warnings == again.warnings
    assert "bounds" in first.warnings[0]
    assert ("256 to 512" in first.warnings[0]) is not is_guess
    assert ("bounds are a guess" in first.card) is is_guess
    for answer in (first, again):
        assert (answer.intervals()[0]["a"] is None) is is_guess
        assert answer.intervals()[0]["n"] is not None


def test_bounds_that_zeros_alone_support_are_called_a_guess(tmp_path: Path) -> None:
    """About 750 units of one bin stand out: 4,980 zeros always do, 20 others in fewer than one of 10^6 runs."""
    frame = pa.table({"uid": list(range(5_000)), "income": [0.0] * 4_980 + [10_000.0] * 20})
    with Curator(tmp_path) as curator:
        curator.add_table("people", frame, unit="uid", limits=Limits(rows_per_unit=1))
        curator.set_budget("people", 1.0)
        warnings = curator.sql("SELECT AVG(income) FROM people", 0.1).warnings
    assert "are a guess: nearly all values are 0, or too few others were found" in warnings[0]
    assert "(about 7" in warnings[0]
