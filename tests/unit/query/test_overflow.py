"""Overflow as an oracle: numbers so large that an engine fails, or an answer wraps, exactly if one unit is there."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.accounting.conversions import Cost
from tacit.measuring.moments import SATURATION
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Noisy, Plan, PlanSettings, Release, Target, run
from tacit.query.answer_intervals import without_noise
from tacit.query.contribution import Bounding
from tacit.query.measures import How, Measure
from tacit.query.run import add_noise
from tacit.query.whole_numbers import HUGE_MAX, axis_sums, group_sums, require_exact
from tests.support.memory_engine import MemoryEngine, named
from tests.support.plans import plan_sql

COLUMNS = (
    Column("uid", Kind.INTEGER, nullable=False),
    Column("i", Kind.INTEGER),
    Column("wide", Kind.INTEGER, Bounds(0, 2**50 - 1)),
    Column("sex", Kind.TEXT, Categories(["F", "M"])),
    Column("town", Kind.TEXT),
)
ROWS = Table("rows", COLUMNS, Unit("uid"))
FEW = Table("few", COLUMNS, Unit("uid"), Limits(rows_per_unit=2))
SCHEMA = Schema([ROWS, FEW])


def planned(sql: str, *, epsilon: float = 1.0, **settings: object) -> Plan:
    return plan_sql(sql, SCHEMA, Target(epsilon=epsilon), BudgetTerms(delta=1e-6), PlanSettings(**settings))  # type: ignore[arg-type]


def engine(count: int, value: int, *, units: int = 1, counted: bool = True) -> MemoryEngine:
    """Return an engine with `count` rows of the same value, shared evenly by some units."""
    held = MemoryEngine()
    for table in (ROWS, FEW):
        held.connection.execute(
            f"CREATE OR REPLACE TABLE {named(table)} AS SELECT n % {units} AS uid, CAST({value} AS BIGINT) AS i, "
            f"CAST({value} AS BIGINT) AS wide, 'F' AS sex, 'x' AS town, n % {units} AS _unit, "
            f"CAST({count // units if counted else 'NULL'} AS BIGINT) AS _rows FROM range({count}) AS r(n)"
        )
    return held


@pytest.mark.parametrize("counted", [True, False])
def test_an_average_far_from_zero_is_computed_however_many_rows_there_are(counted: bool) -> None:
    low, high = 2**40 - 2**20, 2**40
    average = f"SELECT AVG(LEAST(GREATEST(i, {low}), {high})) AS m FROM"
    plans = [planned(f"{average} {table}", epsilon=100.0) for table in ("rows", "few")]
    for count in (0, 1, 9_000_000):
        held = engine(count, 2**40, counted=counted)
        for plan in plans:
            noisy = run(plan, held, 1, source=SeededSource(1))
            shown = Release(plan, noisy, Cost(1.0, 0.0, 1.0), ()).rows[0]["m"]
            assert low <= shown <= high


def test_weights_of_cells_are_computed_however_many_rows_one_unit_has() -> None:
    plan = planned("SELECT MEDIAN(LEAST(GREATEST(i, 0), 5)) FROM rows", limits=Limits(rows_per_group=1_000_000))
    held = engine(3, 2)
    held.connection.execute(f"CREATE TABLE many AS SELECT * FROM {named(ROWS)}")
    sql = plan.statements[0].sql().replace("COUNT(*) AS n", "COUNT(*) * 9000000000 AS n")
    assert sql != plan.statements[0].sql()
    assert held.run(sql, {"salt": 1} if "$salt" in sql else None)["w"][0] == 1_000_000 * 1024


@pytest.mark.parametrize("value", [2**49, 2**50 - 1])
def test_a_sum_of_large_whole_numbers_is_shown_as_it_is(value: int) -> None:
    plan = planned("SELECT SUM(wide) AS s, SUM(wide) + 1 AS t FROM rows", epsilon=1e4)
    noisy = run(plan, engine(40_000, value, units=40_000), 1, source=SeededSource(1))
    answer = Release(plan, noisy, Cost(1.0, 0.0, 1.0), ())
    total, row = 40_000 * value, answer.rows[0]
    assert total > 2**64
    assert row["s"] == pytest.approx(total, rel=1e-3)
    assert row["t"] == pytest.approx(total, rel=1e-3)
    span = answer.intervals()[0]["s"]
    assert span is not None
    assert span.low <= row["s"] <= span.high


def test_a_sum_that_shares_its_measures_with_an_average_is_shown_as_it_is() -> None:
    plan = planned("SELECT SUM(wide) AS s, AVG(wide) AS m FROM rows", epsilon=1e4)
    noisy = run(plan, engine(40_000, 2**49, units=40_000), 1, source=SeededSource(1))
    assert Release(plan, noisy, Cost(1.0, 0.0, 1.0), ()).rows[0]["s"] == pytest.approx(40_000 * 2**49, rel=1e-2)


def test_totals_of_grouping_sets_and_of_the_rest_do_not_wrap() -> None:
    near = np.array([SATURATION, SATURATION, SATURATION, -SATURATION], dtype=np.int64)
    assert group_sums(2, np.array([0, 0, 0, 1]), near).tolist() == [SATURATION, -SATURATION]
    assert group_sums(1, np.zeros(4, dtype=np.int64), near).tolist() == [SATURATION]
    assert axis_sums(near.reshape(2, 2), (0, 1)).tolist() == SATURATION
    assert axis_sums(near.reshape(2, 2), (0,)).tolist() == [SATURATION, 0]
    plan = plan_sql(
        "SELECT town, COUNT(*) FROM rows GROUP BY town", SCHEMA, Target(epsilon=1.0), BudgetTerms(delta=1e-6),
        PlanSettings(other=True),
    )  # fmt: skip
    found = [{"k0": ["a", "b", "c", "d"], "m0": np.full(4, SATURATION), "units": np.array([1, 1, 1, 1])}]
    assert add_noise(plan, found, SeededSource(3)).measures[0][-1] > 2**61  # type: ignore[arg-type]


@pytest.mark.parametrize("sql", ["SELECT sex, SUM(wide) FROM rows GROUP BY ROLLUP (sex)", "SELECT SUM(wide) FROM rows"])
def test_measures_at_the_ends_are_shown_and_have_intervals(sql: str) -> None:
    plan = planned(sql)
    groups = plan.groups or 1
    keys = tuple(list(domain.values) for domain in plan.domains or ())
    for end in (SATURATION + 2**50, -SATURATION - 2**50):
        if plan.sets_apart:
            keys = ([*keys[0], None],)
        noisy = Noisy(keys, tuple(np.full(groups, end, dtype=np.int64) for _ in plan.measures), ())
        answer = Release(plan, noisy, Cost(1.0, 0.0, 1.0), ())
        shown = [row["SUM(wide)"] for row in answer.rows]
        assert all(abs(value) >= 2**62 and (value > 0) == (end > 0) for value in shown)
        assert len(answer.intervals()) == len(shown)


def test_noise_that_is_drawn_again_for_intervals_does_not_wrap() -> None:
    column = np.array([-SATURATION - 2**50, SATURATION], dtype=np.int64)
    noise = axis_sums(np.full((3, 1, 1000), 2**58, dtype=np.int64), (2,))
    found = without_noise(column, np.concatenate([noise, noise // 1000], axis=1))
    assert (found[:, 0] < -SATURATION).all()
    assert (found[:, 1] > 0).all()


def test_what_could_pass_the_widest_type_is_refused_at_planning() -> None:
    small = Measure(How.MEAN, "x", low=-5, high=5, shift=2**40)
    require_exact([small], Bounding(1, 10**6))
    with pytest.raises(TacitError):
        require_exact([Measure(How.MEAN, "x", low=-(2**61), high=2**61)], Bounding(1, 10**6))
    with pytest.raises(TacitError):
        require_exact([Measure(How.SUM, "x", high=2**63)], Bounding(1, 1))


@pytest.mark.parametrize("value", ["wide", "i", "CAST(i AS DOUBLE)"])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-14])
def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_charged(value: str, epsilon: float) -> None:
    refused: list[str] = []
    for function in ("SUM", "AVG", "MEDIAN", "MAX"):
        try:
            plan = planned(
                f"SELECT sex, {function}({value}) FROM rows GROUP BY sex",
                epsilon=epsilon,
                limits=Limits(groups_per_unit=2, rows_per_group=1_000_000),
            )
        except TacitError:
            refused.append(function)
            continue
        for rows in (0, 3):
            Release(plan, run(plan, engine(rows, 7), 1), Cost(1.0, 0.0, 1.0), ()).intervals()
    choices = [] if epsilon == 1e-9 or value == "wide" else ["MEDIAN", "MAX"]
    assert refused == ["SUM", "AVG", *choices]


def test_a_sum_of_truth_values_beside_their_average_is_not_lost() -> None:
    inner = "SELECT uid, CASE WHEN i > 0 THEN 1 ELSE 0 END AS x FROM rows"
    plan = planned(f"SELECT SUM(x) AS s, AVG(x) AS m FROM ({inner}) AS p", epsilon=100.0)
    noisy = run(plan, engine(1000, 7, units=1000), 1, source=SeededSource(1))
    assert Release(plan, noisy, Cost(1.0, 0.0, 1.0), ()).rows[0]["s"] == pytest.approx(1000, abs=20)


def test_the_widest_intermediate_fits_into_the_integers_of_every_engine() -> None:
    assert min(2**127, 10**38) > 2 * HUGE_MAX


def test_saturated_sums_are_clamped_at_both_ends() -> None:
    at, most = np.zeros(8, dtype=np.int64), SATURATION
    for sign in (1, -1):
        assert group_sums(1, at, [sign * (most - 1)] * 8).tolist() == [sign * most]
