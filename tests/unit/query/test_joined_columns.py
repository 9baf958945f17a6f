"""USING merges two columns into one: the value is that of the side whose rows are kept, as SQL has it."""

from __future__ import annotations

from typing import Any

import pytest

from bench.queries.exact_results import exact
from tacit.privacy.tables import Column, Kind, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, PlanSettings, Target
from tests.support.memory_engine import MemoryEngine
from tests.support.plans import plan_sql

PRIVATE = Table("priv", (Column("uid", Kind.INTEGER), Column("k", Kind.INTEGER)), Unit("uid"))
PUBLIC = Table("pub", (Column("k", Kind.INTEGER), Column("name", Kind.TEXT)), identified_by=("k",))
SCHEMA = Schema([PRIVATE, PUBLIC])


def counted(sql: str) -> dict[tuple[Any, ...], list[int]]:
    held = MemoryEngine()
    held.fill(PRIVATE, [(1, 7, 1), (2, 7, 2), (3, 8, 3), (4, None, 4)])
    held.fill(PUBLIC, [(7, "seven"), (9, "nine")])
    plan = plan_sql(
        sql, SCHEMA, Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings(keys={"k": [7, 8, 9, None]})
    )
    statements = plan.statements
    return exact(plan, [held.run(one.sql(), {"salt": 1} if one.is_salted else None) for one in statements])


@pytest.mark.parametrize(
    "join",
    ["pub RIGHT JOIN priv USING (k)", "priv LEFT JOIN pub USING (k)", "pub RIGHT OUTER JOIN priv USING (k)"],
)
def test_a_merged_column_has_the_value_of_the_side_that_is_kept(join: str) -> None:
    assert counted(f"SELECT k, COUNT(*) FROM {join} GROUP BY k") == {(7,): [2], (8,): [1], (None,): [1]}


def test_both_sides_can_still_be_named() -> None:
    sides = "SELECT pub.k AS k, COUNT(*) FROM pub RIGHT JOIN priv USING (k) GROUP BY pub.k"
    assert counted(sides) == {(7,): [2], (None,): [2]}
    starred = "SELECT k, COUNT(*) FROM (SELECT * FROM pub RIGHT JOIN priv USING (k)) AS p GROUP BY k"
    assert counted(starred) == {(7,): [2], (8,): [1], (None,): [1]}
