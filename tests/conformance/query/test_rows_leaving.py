"""What leaves an engine is a row a group, and never a row of a unit."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.privacy.tables import Schema
from tacit.query import BudgetTerms, PlanSettings, Target, run
from tests.conformance.query.engines import OTHERS, place
from tests.conformance.query.rows_leaving import (
    CITIES,
    QUESTIONS,
    ROWS,
    TABLE,
    TYPES,
    check_as_many_rows_leave_the_engine_as_there_are_groups,
)
from tests.support.plans import plan_sql


@pytest.mark.parametrize("engine", ["duckdb", *OTHERS])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_as_many_rows_leave_the_engine_as_there_are_groups(sql: str, engine: str) -> None:
    check_as_many_rows_leave_the_engine_as_there_are_groups(sql, engine)


def test_the_driver_fetches_no_more_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    there = place("postgres")
    there.engine.register(TABLE, there.put("people", TYPES, ROWS), {})
    fetched: list[int] = []
    fetch = psycopg.Cursor.fetchall

    def counted(cursor: Any) -> list[Any]:
        rows = list(fetch(cursor))
        fetched.append(len(rows))
        return rows

    monkeypatch.setattr(psycopg.Cursor, "fetchall", counted)
    sql = "SELECT city, COUNT(*), SUM(age) FROM people GROUP BY city"
    run(plan_sql(sql, Schema([TABLE]), Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings()), there.engine, 7)
    assert fetched == [CITIES]
