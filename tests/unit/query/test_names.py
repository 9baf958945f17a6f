"""Tables and columns may be called anything: whatever the engine reads as a word of its own is quoted."""

from __future__ import annotations

import duckdb
import pytest

from tacit.privacy.tables import Column, Kind, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Target, run
from tests.support.memory_engine import MemoryEngine, quoted
from tests.support.plans import plan_sql

ODD = [
    "a b",
    'a"b',
    "a'b",
    "ß",
    "Größe",
    "1st",
    "c0",
    "k0",
    "u",
    "n",
    "v0",
    "m0",
    "t0",
    "cell",
    "place",
    "turn",
    "😀",
    "a.b",
]
ODD += [
    "x;y",
    "--",
    "/*",
    "$salt",
    "UPPER",
    "MiXed",
    "_rows_",
    "units",
    "given",
    "noisy",
    "%",
    "\\",
    "row_number_",
    "one",
]
RESERVED = sorted(
    word
    for (word,) in duckdb.sql(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    ).fetchall()
)


def answered(name: str) -> None:
    table = Table(name, (Column("uid", Kind.INTEGER), Column(name, Kind.INTEGER), Column("s", Kind.TEXT)), Unit("uid"))
    engine = MemoryEngine()
    engine.fill(table, [(1, 5, "x", 1), (1, 6, "y", 1), (2, None, "y", 2)])
    called = quoted(name)
    for sql in (
        f"SELECT COUNT({called}), COUNT(DISTINCT {called}) FROM {called}",
        f"SELECT {called}, COUNT(*) FROM {called} GROUP BY {called}",
        f"SELECT COUNT(*) FROM (SELECT MAX({called}) AS {called} FROM {called} GROUP BY uid) AS q WHERE {called} > 1",
        f"SELECT COUNT(*) FROM {called} AS {called} WHERE {called}.{called} IS NOT NULL AND s <> '$salt'",
    ):
        plan = plan_sql(sql, Schema([table]), Target(epsilon=1.0), BudgetTerms(delta=1e-6))
        run(plan, engine, 3)
    engine.close()


@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_is_a_name(name: str) -> None:
    answered(name)


def test_every_word_of_the_engine_may_be_a_name() -> None:
    for word in RESERVED:
        answered(str(word))
