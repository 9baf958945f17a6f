"""Windows take time in proportion to the rows of a unit, with and without FILTER and ORDER BY, as they are planned.

The time of a statement would otherwise tell whether one unit with many rows is there. A window passes if eight times
the rows take at most 24 times as long, above a floor; quadratic time takes 64 times as long.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

import pytest
from sqlglot import exp

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import NotAllowed, NotSQL
from tacit.privacy.tables import Column, Kind, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Target, per_unit
from tacit.query.expressions import Expression
from tests.support.memory_engine import MemoryEngine, named
from tests.support.plans import plan_sql

COLUMNS = (Column("uid", Kind.INTEGER), Column("v", Kind.INTEGER, Bounds(0, 1000)), Column("w", Kind.REAL))
TABLES = [Table(f"rows_{size}", COLUMNS, Unit("uid")) for size in (10_000, 80_000)]
FUNCTIONS = ("COUNT(*)", "COUNT(w)", "COUNT(DISTINCT v)", "SUM(v)", "AVG(v)", "MIN(w)", "MAX(w)", "MEDIAN(v)")
FUNCTIONS += ("BOOL_OR(v > 3)", "BOOL_AND(v > 3)", "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "LAG(v, 9)", "LEAD(w)")
ITEMS = [
    f"{function}{kept} OVER (PARTITION BY uid{ordered})"
    for function, kept, ordered in product(FUNCTIONS, ("", " FILTER (WHERE w > 0.5)"), ("", " ORDER BY w"))
]
FLOOR_S = 0.05


@pytest.fixture(scope="module")
def engine() -> Iterator[MemoryEngine]:
    """Return an engine in which each table is one unit, whose values are missing now and then and shared by 64 rows."""
    held = MemoryEngine()
    for table in TABLES:
        held.create(table)
        rows = int(table.name.removeprefix("rows_"))
        w = f"CASE WHEN i % 10 > 0 THEN (hash(i % {rows // 64}) % 1000003) / 1000003.0 END"
        held.connection.execute(
            f"INSERT INTO {named(table)} SELECT 1, i * 7919 % 1001, {w}, 1 FROM range({rows}) AS r(i)"
        )
        held.declare(table)
    yield held
    held.close()


def seconds(engine: MemoryEngine, item: str, table: Table) -> float:
    """Return the processor time of a question with a window over one table."""
    sql = f"SELECT COUNT(*) FROM (SELECT {item} AS z FROM {table.name}) AS q WHERE z IS NOT NULL"
    [statement] = plan_sql(sql, Schema([table]), Target(epsilon=1.0), BudgetTerms(delta=1e-6)).statements
    started_s = time.process_time()
    engine.run(statement.sql())
    return time.process_time() - started_s


def grows_too_fast(engine: MemoryEngine, item: str) -> bool:
    few_s, many_s = (seconds(engine, item, table) for table in TABLES)
    return many_s > 24 * max(few_s, FLOOR_S / 8)


def accepted() -> list[str]:
    """Return the windows that are not refused."""
    found = []
    for item in ITEMS:
        sql = f"SELECT COUNT(*) FROM (SELECT {item} AS z FROM rows_10000) AS q WHERE z IS NOT NULL"
        try:
            plan_sql(sql, Schema(TABLES), Target(epsilon=1.0), BudgetTerms(delta=1e-6))
        except (NotAllowed, NotSQL):
            continue
        found.append(item)
    return found


def test_every_window_takes_time_in_proportion_to_the_rows_of_a_unit(engine: MemoryEngine) -> None:
    items = accepted()
    assert len(items) >= 35
    assert [item for item in items if grows_too_fast(engine, item)] == []


def test_a_running_count_with_filter_is_noticed(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def filtered(value: Expression | None, condition: Expression | None) -> exp.Expression:
        assert condition is not None
        where = exp.Where(this=condition.tree.copy())
        return exp.Filter(this=exp.Count(this=exp.Star() if value is None else value.tree.copy()), expression=where)

    monkeypatch.setattr(per_unit, "_counted", filtered)
    assert grows_too_fast(engine, "COUNT(*) FILTER (WHERE w > 0.5) OVER (PARTITION BY uid ORDER BY w)")
