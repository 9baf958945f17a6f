"""Tables large enough to be read by several threads: what is measured does not depend on how many there are."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tacit.engines.protocol import ROWS, SCHEMA, UNIT
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, PlanSettings, Target
from tests.support.plans import plan_sql

COUNT = 300_000
TABLE = Table(
    "visits",
    (
        Column("uid", Kind.INTEGER),
        Column("kg", Kind.REAL, Bounds(-1e6, 1e6)),
        Column("age", Kind.INTEGER, Bounds(0, 120)),
        Column("sex", Kind.TEXT, Categories(["F", "M"])),
        Column("s", Kind.TEXT),
    ),
    Unit("uid"),
)
QUESTIONS = [
    "SELECT COUNT(*), SUM(kg), AVG(kg), VAR_POP(kg), CORR(kg, age) FROM visits",
    "SELECT sex, SUM(kg), COUNT(DISTINCT s), COUNT(DISTINCT uid) FROM visits GROUP BY sex",
    "SELECT s, SUM(kg), MEDIAN(kg), MODE(sex) FROM visits GROUP BY s",
    "SELECT SUM(x), MAX(x) FROM (SELECT uid, AVG(kg) AS x FROM visits GROUP BY uid) AS v",
    "SELECT SUM(x) FROM (SELECT LAG(kg) OVER (PARTITION BY uid ORDER BY age DESC, s) AS x FROM visits) AS v",
    "SELECT SUM(x) FROM (SELECT SUM(kg) OVER (PARTITION BY uid ORDER BY age) AS x FROM visits) AS v",
]


@pytest.fixture(scope="module")
def databases() -> list[duckdb.DuckDBPyConnection]:
    made = []
    for threads, order in ((1, "i"), (2, "i"), (4, "hash(i)")):
        connection = duckdb.connect(":memory:", config={"threads": threads})
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        values = "(hash(i, 1) % 20000)::BIGINT AS uid, ((hash(i, 2) % 2000003)::DOUBLE - 1000001) / 1.7 AS kg"
        values += ", (hash(i, 3) % 121)::BIGINT AS age, CASE WHEN hash(i, 4) % 3 = 0 THEN 'M' ELSE 'F' END AS sex"
        values += ", 'city ' || (hash(i, 5) % 40) AS s"
        rows = f"SELECT * EXCLUDE i FROM (SELECT i, {values} FROM range({COUNT}) AS r(i)) ORDER BY {order}"
        clamped = "GREATEST(LEAST(kg, 1e6), -1e6) AS kg"
        counted = (
            f"SELECT * REPLACE ({clamped}), uid AS {UNIT}, COUNT(*) OVER (PARTITION BY uid) AS {ROWS} FROM ({rows})"
        )
        connection.execute(f"CREATE TABLE {SCHEMA}.visits AS {counted}")
        made.append(connection)
    return made


@pytest.mark.parametrize("limits", [Limits(), Limits(groups_per_unit=2, rows_per_group=3)], ids=["usual", "narrow"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_number_of_threads_changes_nothing(
    sql: str, limits: Limits, databases: list[duckdb.DuckDBPyConnection]
) -> None:
    plan = plan_sql(sql, Schema([TABLE]), Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings(limits))
    for statement in plan.statements:
        text = statement.sql()
        parameters: dict[str, Any] = {"salt": 11} if "$salt" in text else {}
        first, *others = [sorted(one.execute(text, parameters).fetchall(), key=repr) for one in databases]
        assert first
        for other in others:
            assert other == first
