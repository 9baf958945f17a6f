"""What is computed from the rows of one unit lies within the range, the values and the NULLs that the planner claims.

Columns have bounds that doubles do not hold, and rows lie on them: a range that leaves out the rounding of a whole
number to a double, or the overflow of a midpoint, is passed by one row, and everything that trusts it (sensitivity,
guards of divisions) is then wrong about a chosen person.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any, Final

import pytest
from sqlglot import exp

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import ask, per_unit
from tacit.query.expressions import Range
from tests.property.query.scalar_sql import fits
from tests.support.memory_engine import MemoryEngine

COLUMNS: Final = (
    Column("a", Kind.INTEGER, Bounds(-7, 9)),
    Column("b", Kind.INTEGER, Bounds(0, 2**53 - 3)),
    Column("c", Kind.INTEGER, Bounds(-(2**63) + 3, 2**63 - 1)),
    Column("x", Kind.REAL, Bounds(0.0, 0.15)),
    Column("y", Kind.REAL, Bounds(-1e15 - 0.1, 1e15 + 0.3)),
    Column("z", Kind.REAL, Bounds(-1.7e308, 1.7e308)),
)
NAMES: Final = [column.name for column in COLUMNS]
VALUES: Final = (
    *("{c}", "{c} + {d}", "{c} * {d}", "COALESCE({c}, {d})", "{c} / 3", "LEAST({c}, {d})", "-{c}", "{c} - 0.1e0"),
    *("CASE WHEN {d} > 0 THEN {c} ELSE 9007199254740989 END", "CASE WHEN {d} > 0 THEN 1.7e308 ELSE -1.7e308 END"),
)
AGGREGATES: Final = ("SUM({v})", "AVG({v})", "MEDIAN({v})", "MIN({v})", "MAX({v})", "COUNT({v})", "COUNT(DISTINCT {v})")
OUTPUTS: Final = (
    "{g}",
    "{g} + 1",
    "{g} * 2",
    "COALESCE({g}, 0)",
    "{g} / 7",
    "ROUND({g})",
    "ABS({g})",
    "{g} - MIN({c})",
)
WINDOWS: Final = ("{g}", "LAG({c})", "LEAD({c}, 2)", "ROW_NUMBER()", "RANK()")
SOURCES: Final = (
    "SELECT uid, {o} AS v FROM t GROUP BY uid",
    "SELECT uid, {g} OVER (PARTITION BY uid) AS v FROM t",
    "SELECT uid, {w} OVER (PARTITION BY uid ORDER BY {d}) AS v FROM t",
    "SELECT uid, {o} AS v FROM (SELECT * FROM t UNION ALL SELECT * FROM t UNION ALL SELECT * FROM t) AS q GROUP BY uid",
)
SEED: Final = 6
WORLDS: Final = 6
QUESTIONS: Final = 40


def _rows(random: Random, rows_max: int) -> list[tuple[Any, ...]]:
    rows = []
    for uid in range(25):
        for _ in range(random.randint(1, rows_max)):
            values: list[Any] = []
            for column in COLUMNS:
                assert isinstance(column.facts, Bounds)
                low, high = column.facts.lower, column.facts.upper
                inside = 1 if column.kind is Kind.INTEGER else math.nextafter(float(high), 0)
                values.append(random.choice([low, high, high, inside, None]))
            rows.append((uid, *values, uid))
    return rows


def _question(random: Random) -> str:
    given = {"c": random.choice(NAMES), "d": random.choice(NAMES)}
    given["v"] = random.choice(VALUES).format(**given)
    given["g"] = random.choice(AGGREGATES).format(**given)
    if random.random() < 0.3:
        given["g"] += " FILTER (WHERE {d} > 0)".format(**given)
    given["o"], given["w"] = (random.choice(one).format(**given) for one in (OUTPUTS, WINDOWS))
    return f"SELECT SUM(v) AS k FROM ({random.choice(SOURCES).format(**given)}) AS s"


def _outside(seed: int) -> tuple[int, list[str]]:
    """Return how many questions were accepted, and those of which a value is not what the planner claims."""
    random = Random(seed)
    accepted, outside = 0, []
    for _ in range(WORLDS):
        rows_max = random.choice([1, 2, 3, 5])
        limits = Limits(rows_per_unit=random.choice([rows_max, None]))
        table = Table("t", (Column("uid", Kind.INTEGER), *COLUMNS), Unit("uid"), limits)
        engine = MemoryEngine()
        engine.fill(table, _rows(random, rows_max))
        for _ in range(QUESTIONS):
            sql = _question(random)
            try:
                outside += _values_outside(sql, table, engine)[:1]
            except TacitError:
                continue
            accepted += 1
    return accepted, outside


def _values_outside(sql: str, table: Table, engine: MemoryEngine) -> list[str]:
    question = ask(sql, Schema([table]))
    [value] = question.aggregates[0].arguments
    statement = question.scope.tree.copy().select(exp.alias_(value.tree.copy(), "v"))
    found = [one for (one,) in engine.connection.execute(statement.sql("duckdb")).fetchall()]
    if value.kind is Kind.INTEGER:
        found = [None if one is None else int(one) for one in found]
    return [f"{sql}: {one!r} is not in {value.range}" for one in found if not fits(one, value)]


def test_values_of_one_unit_are_what_the_planner_claims() -> None:
    accepted, outside = _outside(SEED)
    assert accepted > WORLDS * QUESTIONS / 3
    assert outside == []


@pytest.mark.parametrize("rounding", ["outward", "slack"])
def test_a_range_without_the_rounding_to_doubles_is_noticed(rounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_unit, rounding, Range)
    assert _outside(SEED)[1]


@pytest.mark.parametrize("value", ["1e0 / (m - {end} + 1e-9)", "1e0 / (m - {end})"], ids=["answer", "failure"])
@pytest.mark.parametrize("is_planted", [False, True])
def test_the_rounding_of_a_sum_tells_nothing_about_a_chosen_person(
    value: str, is_planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, end = 2**53 - 3, 3 * 2**53 - 8  # three times `whole` is end - 1, which as a double is end
    sql = f"""
        WITH p AS (SELECT uid, MAX(CASE WHEN a > 0 THEN 1 ELSE 0 END) AS f FROM t WHERE uid = 7 GROUP BY uid),
             q AS (SELECT uid, f FROM p UNION ALL SELECT uid, f FROM p UNION ALL SELECT uid, f FROM p),
             r AS (SELECT uid, SUM(f * {whole}) AS m FROM q GROUP BY uid)
        SELECT SUM(y) AS s FROM (SELECT uid, {value.format(end=end)} AS y FROM r) AS v"""
    table = Table("t", (Column("uid", Kind.INTEGER), COLUMNS[0]), Unit("uid"))
    engine = MemoryEngine()
    engine.fill(table, [(uid, 9, uid) for uid in range(10)])
    if is_planted:
        monkeypatch.setattr(per_unit, "outward", Range)
    assert bool(_values_outside(sql, table, engine)) is is_planted
