"""Rows that are read live may get keys that lead to two units, or two rows where one was stated, after the check.

Neighbours differ in one unit, whose rows in a parent table repeat the keys of others. Whatever the keys are, what a
statement returns moves by no more than the plan's sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tacit.engines import SparkEngine
from tacit.engines.duckdb import engine as duckdb_engine
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import ForeignKey, Unit
from tacit.query import BudgetTerms, Plan
from tacit.query.allocation import Target
from tests.conformance.engines.conftest import PLACES, Place
from tests.property.query.neighbours import Pair
from tests.support.plans import plan_sql

WORDS = ("x", "y", "z")
TYPES = {Kind.INTEGER: "BIGINT", Kind.TEXT: "VARCHAR", Kind.REAL: "DOUBLE"}
PEOPLE = Table("people", (Column("key", Kind.INTEGER), Column("person", Kind.INTEGER)), Unit("person"))
CARDS = Table(
    "cards",
    (Column("card", Kind.INTEGER), Column("holder", Kind.INTEGER)),
    Unit("person", (ForeignKey("holder", "people", "key"),)),
)
WARDS = Table("wards", (Column("ward", Kind.TEXT), Column("beds", Kind.INTEGER, Bounds(0, 9))), identified_by=("ward",))
FACTS = (
    Column("card", Kind.INTEGER),
    Column("ward", Kind.TEXT, Categories(WORDS)),
    Column("cost", Kind.REAL, Bounds(-1, 10)),
)
THROUGH = (ForeignKey("card", "cards", "card"), ForeignKey("holder", "people", "key"))
VISITS = Table("visits", FACTS, Unit("person", THROUGH))
FEW = Table("few", FACTS, Unit("person", THROUGH), Limits(rows_per_unit=3))
SCHEMA = Schema((PEOPLE, CARDS, WARDS, VISITS, FEW))

QUESTIONS = [
    "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits",
    "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT card) AS c FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n, SUM(cost) AS s FROM few",
    "SELECT ward, COUNT(*) AS n, AVG(cost) AS a FROM few GROUP BY ward",
    "SELECT COUNT(*) AS n FROM few JOIN wards ON few.ward = wards.ward",
    "SELECT SUM(beds) AS n FROM few LEFT JOIN wards ON few.ward = wards.ward",
    "SELECT COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward",
    "SELECT COUNT(*) AS n FROM visits JOIN cards ON visits.card = cards.card",
    "SELECT COUNT(*) AS n FROM few JOIN cards ON few.card = cards.card",
    "SELECT COUNT(*) AS n FROM few WHERE card IN (SELECT card FROM cards)",
    "SELECT MEDIAN(cost) AS m FROM few",
]
SOME = [QUESTIONS[3], QUESTIONS[4]]
"""What is asked of Spark, which takes a second over a question."""

Rows = Mapping[str, Sequence[Sequence[Any]]]


def world(more: bool, repeated: int) -> Rows:
    """Return rows of twelve people, and of one `more` whose rows in parents have the keys of others, `repeated`."""
    people = [[key, key] for key in range(12)]
    cards = [[100 + card, card % 12] for card in range(24)]
    visits = [[100 + visit % 24, WORDS[visit % 3], float(visit % 9)] for visit in range(96)]
    wards = [[word, 1 + place] for place, word in enumerate(WORDS)] * repeated
    if more:
        people += [[key, 99] for key in [*range(6), 50]] * repeated
        cards += [[100 + card, 50] for card in range(24)] * repeated
    return {"people": people, "cards": cards, "wards": wards, "visits": visits, "few": visits}


def show(place: Place, rows: Rows) -> None:
    """Show rows as they are read after they were checked in an earlier state."""
    for table in SCHEMA.tables.values():
        types = {column.name: TYPES[column.kind] for column in table.columns}
        place.engine.register(table, place.put(table.name, types, rows[table.name]), SCHEMA.tables, repr(rows))


@pytest.fixture(params=["duckdb over parquet", "postgres", "spark"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(duckdb_engine, "ROWS_STORED_MAX", -1)
    monkeypatch.setattr(duckdb_engine, "_require_unchanged", lambda *_: None)  # as if rows changed after their check
    monkeypatch.setattr(duckdb_engine.DuckDBEngine, "_check_keys", lambda *_: None)
    made = PLACES[request.param](tmp_path)
    yield made
    made.engine.close()


def plan_of(sql: str) -> Plan:
    return plan_sql(sql, SCHEMA, Target(epsilon=1.0), BudgetTerms())


def results(plan: Plan, place: Place) -> list[dict[str, list[Any]]]:
    return [
        {
            name: [int(one) if name[0] in "mwu" else one for one in values]
            for name, values in place.engine.run(
                statement.sql(place.engine.write), {"salt": 5} if statement.is_salted else None
            ).items()
        }
        for statement in plan.statements
    ]


def test_a_unit_that_repeats_the_keys_of_others_moves_results_by_no_more_than_the_sensitivity(place: Place) -> None:
    is_slow = isinstance(place.engine, SparkEngine)
    plans = [plan_of(sql) for sql in (SOME if is_slow else QUESTIONS)]
    for repeated in (2,) if is_slow else (1, 2):
        found = []
        for more in (False, True):
            show(place, world(more, repeated))
            found.append([results(plan, place) for plan in plans])
        for plan, without, with_one in zip(plans, *found, strict=True):
            Pair(plan, without, with_one, [], []).check()
        assert found[0] != found[1]
