"""Units that are dates or times, with units far outside of the years 1 to 9999 as neighbours.

Such a unit belongs to nobody: every statement returns what it returns without it, and none fails. It is not clamped,
which would make it one with other units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.engines import UNIT, SparkEngine
from tacit.engines.duckdb import engine as duckdb_engine
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import ForeignKey, Unit
from tacit.query import BudgetTerms, Plan
from tacit.query.allocation import Target
from tests.conformance.engines.conftest import PLACES, Place
from tests.support.plans import plan_sql

QUESTIONS = [
    "SELECT COUNT(*) AS n, COUNT(DISTINCT born) AS d FROM people",
    "SELECT key, COUNT(*) AS n FROM people GROUP BY key",
    "SELECT COUNT(*) AS n FROM people WHERE EXTRACT(year FROM born) > 2000",
    "SELECT COUNT(*) AS n FROM people WHERE DATE_DIFF('day', born, DATE '2000-01-02') > 3",
    "SELECT COUNT(*) AS n FROM people WHERE DATE_TRUNC('month', born) > DATE '2000-01-02'",
    "SELECT COUNT(*) AS n FROM people WHERE born + INTERVAL 5 DAY > DATE '2000-01-02'",
    "SELECT COUNT(*) AS n FROM people WHERE CAST(born AS VARCHAR) > '2'",
    "SELECT COUNT(*) AS n, SUM(n) AS s FROM (SELECT born, COUNT(*) AS n FROM few GROUP BY born) AS q",
    "SELECT COUNT(*) AS n FROM few WHERE EXTRACT(year FROM born) > 2000",
    "SELECT COUNT(*) AS n, COUNT(DISTINCT cost) AS d FROM visits",
    "SELECT COUNT(*) AS n FROM visits JOIN people ON visits.key = people.key WHERE EXTRACT(year FROM born) > 2000",
]
SOME = [QUESTIONS[1], QUESTIONS[2], QUESTIONS[3], QUESTIONS[7], QUESTIONS[9]]
"""What is asked of Spark, which takes a second over a question."""

NEAR = {
    Kind.DATE: [date.min, *(date(2000, 1, 1) + timedelta(days=day) for day in range(6)), date.max],
    Kind.TIME: [datetime.min, *(datetime(2000, 1, 1) + timedelta(hours=hour) for hour in range(6)), datetime.max],
}
FAR = ["infinity", "-infinity", "10000-01-01", "0044-03-15 BC"]
TYPES = {Kind.INTEGER: "BIGINT", Kind.DATE: "DATE", Kind.TIME: "TIMESTAMP"}


def schema(kind: Kind) -> Schema:
    """Return people who are identified by a date or time, the same with a limit, and visits that lead to them."""
    born = (Column("key", Kind.INTEGER), Column("born", kind))
    visits = (Column("key", Kind.INTEGER), Column("cost", Kind.INTEGER))
    return Schema(
        (
            Table("people", born, Unit("born")),
            Table("few", born, Unit("born"), Limits(rows_per_unit=1)),
            Table("visits", visits, Unit("born", (ForeignKey("key", "people", "key"),))),
        )
    )


def rows(kind: Kind, far: Sequence[Any]) -> Mapping[str, list[list[Any]]]:
    """Return two rows of each person, and their visits; the people of `far` come last."""
    people = [[2 * place + again, one] for place, one in enumerate([*NEAR[kind], *far]) for again in (0, 1)]
    return {"people": people, "few": people, "visits": [[key, key % 3] for key, _ in people]}


def show(place: Place, kind: Kind, far: Sequence[str]) -> None:
    for table in schema(kind).tables.values():
        types = {column.name: TYPES[column.kind] for column in table.columns}
        place.engine.register(table, place.put(table.name, types, rows(kind, far)[table.name]), schema(kind).tables)


@pytest.fixture(params=["stored", "live", "duckdb over a database", "postgres", "spark"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    if request.param == "live":
        monkeypatch.setattr(duckdb_engine, "ROWS_STORED_MAX", -1)
    made = PLACES.get(request.param, PLACES["duckdb over parquet"])(tmp_path)
    yield made
    made.engine.close()


def results(plan: Plan, place: Place) -> list[list[tuple[Any, ...]]]:
    found = []
    for statement in plan.statements:
        columns = place.engine.run(statement.sql(place.engine.write), {"salt": 5} if statement.is_salted else None)
        plain = [one.tolist() if hasattr(one, "tolist") else list(one) for one in columns.values()]
        found.append(sorted(zip(*plain, strict=True), key=repr))
    return found


@pytest.mark.sampled(5, each="place")
@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIME])
def test_a_unit_outside_of_the_years_1_to_9999_changes_no_result(place: Place, kind: Kind) -> None:
    is_slow = isinstance(place.engine, SparkEngine)
    far = FAR if "postgres" in type(place.engine).__module__ else [one.replace("BC", "(BC)") for one in FAR]
    questions, terms = SOME if is_slow else QUESTIONS, BudgetTerms(delta=1e-6)
    plans = [plan_sql(sql, schema(kind), Target(epsilon=1.0), terms) for sql in questions]
    show(place, kind, [])
    expected = [results(plan, place) for plan in plans]
    for odd in [far] if is_slow else [[one] for one in far]:
        show(place, kind, odd)
        assert [results(plan, place) for plan in plans] == expected, odd


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIME])
def test_units_at_the_ends_of_the_years_stay_units_of_their_own(place: Place, kind: Kind) -> None:
    show(place, kind, ["infinity", "-infinity"])
    near = sorted([(one, 2) for one in NEAR[kind]], key=repr)
    for table in ("people", "visits"):
        assert place.rows(f"SELECT {UNIT}, COUNT(*) AS n FROM tacit_data.{table} GROUP BY {UNIT}") == near
    assert place.rows(f"SELECT born FROM tacit_data.few WHERE born = {UNIT}") == [one[:1] for one in near]
