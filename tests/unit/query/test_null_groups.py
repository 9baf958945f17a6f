"""NULL as a group: one of the public groups where the query makes it, left out and said so where it is stored."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.accounting.conversions import Cost
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Release, Target, run
from tacit.query.explain import explain
from tests.support.memory_engine import MemoryEngine
from tests.support.plans import plan_sql

PEOPLE = Table(
    "people",
    (
        Column("uid", Kind.INTEGER, nullable=False),
        Column("age", Kind.INTEGER, Bounds(0, 100), nullable=False),
        Column("town", Kind.INTEGER, Bounds(1, 3), nullable=False),
        Column("sex", Kind.TEXT, Categories(["F", "M"])),
        Column("known", Kind.TEXT, Categories(["a", "b", None])),
        Column("s", Kind.TEXT),
    ),
    Unit("uid"),
    Limits(rows_per_unit=2),
)
VISITS = Table(
    "visits",
    (
        Column("uid", Kind.INTEGER, nullable=False),
        Column("place", Kind.TEXT, Categories(["in", "out"]), nullable=False),
    ),
    Unit("uid"),
    Limits(rows_per_unit=2),
)
TOWNS = Table(
    "towns",
    (
        Column("id", Kind.INTEGER, Bounds(1, 3), nullable=False),
        Column("size", Kind.TEXT, Categories(["big", "small"]), nullable=False),
    ),
    identified_by=("id",),
)
SCHEMA = Schema([PEOPLE, VISITS, TOWNS])


def planned(sql: str, **settings: Any) -> Plan:
    return plan_sql(sql, SCHEMA, Target(epsilon=1e6), BudgetTerms(delta=1e-6), PlanSettings(**settings))


def shown(plan: Plan) -> dict[Any, int]:
    """Return the counts of the groups, almost without noise."""
    held = MemoryEngine()
    held.fill(
        PEOPLE, [(u, 10 * u, u % 3 + 1, "F" if u < 4 else None, "a", "true" if u < 3 else "?", u) for u in range(8)]
    )
    held.fill(VISITS, [(u, "in", u) for u in range(5)])
    held.fill(TOWNS, [(1, "big"), (2, "small")])
    rows = Release(plan, run(plan, held, 1), Cost(1.0, 0.0, 1.0), ()).rows
    return {row["k"]: row["n"] for row in rows}


@pytest.mark.parametrize(
    ("sql", "counts"),
    [
        ("SELECT CASE WHEN age >= 40 THEN 'old' END AS k, COUNT(*) AS n FROM people GROUP BY k", {"old": 4, None: 4}),
        ("SELECT NULLIF(town, 2) AS k, COUNT(*) AS n FROM people GROUP BY k", {1: 3, 3: 2, None: 3}),
        (
            "SELECT size AS k, COUNT(*) AS n FROM people LEFT JOIN towns ON town = id GROUP BY size",
            {"big": 3, "small": 3, None: 2},
        ),
        (
            "SELECT size AS k, COUNT(*) AS n FROM towns RIGHT JOIN people ON town = id GROUP BY size",
            {"big": 3, "small": 3, None: 2},
        ),
        (
            "SELECT place AS k, COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.uid = v.uid GROUP BY place",
            {"in": 5, "out": 0, None: 3},
        ),
        ("SELECT CAST(s AS BOOLEAN) AS k, COUNT(*) AS n FROM people GROUP BY k", {False: 0, True: 3, None: 5}),
        (
            "SELECT CASE WHEN age > 60 THEN 1 WHEN age > 30 THEN NULL ELSE 2 END AS k, COUNT(*) AS n FROM people "
            "GROUP BY k",
            {1: 1, 2: 4, None: 3},
        ),
        ("SELECT known AS k, COUNT(*) AS n FROM people GROUP BY known", {"a": 8, "b": 0, None: 0}),
        ("SELECT age // 50 // (town - 1) AS k, COUNT(*) AS n FROM people GROUP BY k", {0: 4, 1: 1, 2: 0, None: 3}),
    ],
)
def test_a_missing_value_that_the_query_makes_is_a_group(sql: str, counts: dict[Any, int]) -> None:
    plan = planned(sql)
    found = shown(plan)
    assert {key: round(number) for key, number in found.items() if number > 0.5 or key in counts} == counts
    assert not any("missing" in line.text for line in explain(plan) if line.label == "keys")


@pytest.mark.parametrize("key", ["sex", "UPPER(sex)", "sex = 'F'"])
def test_a_missing_value_that_is_stored_and_not_listed_is_left_out_with_a_sentence(key: str) -> None:
    plan = planned(f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY k")
    assert None not in shown(plan)
    lines = [line.text for line in explain(plan) if line.label == "keys"]
    assert "rows in which k is missing or not listed are left out" in lines
    card = Release(plan, run(plan, _empty(), 1), Cost(1.0, 0.0, 1.0), ()).card
    assert "Rows in which k is missing or not listed are left out; None among the categories or keys" in card


@pytest.mark.parametrize("key", ["known", "place"])
def test_values_outside_the_categories_are_said_to_be_left_out_where_nothing_can_be_missing(key: str) -> None:
    source = "people" if key == "known" else "visits"
    plan = planned(f"SELECT {key} AS k, COUNT(*) AS n FROM {source} GROUP BY k")
    lines = [line.text for line in explain(plan) if line.label == "keys"]
    assert "rows in which k is not listed are left out" in lines


def test_each_key_says_what_is_left_out_of_it() -> None:
    plan = planned("SELECT sex, known, age > 50 AS old, COUNT(*) AS n FROM people GROUP BY sex, known, old")
    assert plan.left_out == ["sex is missing or not listed", "known is not listed"]


def test_what_the_caller_lists_is_what_is_shown() -> None:
    sql = "SELECT CASE WHEN age >= 40 THEN 'old' END AS k, COUNT(*) AS n FROM people GROUP BY k"
    assert set(shown(planned(sql, keys={"k": ["old"]}))) == {"old"}
    assert set(shown(planned(sql, keys={"k": ["old", None]}))) == {"old", None}


def test_groups_that_cannot_be_missing_need_no_sentence() -> None:
    lines = explain(planned("SELECT town AS k, COUNT(*) AS n FROM people GROUP BY town"))
    assert [line.text for line in lines if line.label == "keys"] == ["public, 3 shown"]


def _empty() -> MemoryEngine:
    held = MemoryEngine()
    for table in (PEOPLE, VISITS, TOWNS):
        held.fill(table, [])
    return held
