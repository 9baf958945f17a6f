"""One value as large as a database takes it is neither an error nor seconds, whatever it is declared as."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
import sqlglot

from tacit.engines import PostgresEngine, Source
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Table
from tacit.privacy.units import Unit
from tests.support import postgres_server

SCHEMA = f"large_{os.getpid()}"
LETTERS = 270_000_000
"""A pattern is looked for in four bytes a letter, and PostgreSQL has no value of more than 1 GB."""

CUT = (2, TEXT_LENGTH_MAX, TEXT_LENGTH_MAX + 1, 4 * TEXT_LENGTH_MAX, 4 * TEXT_LENGTH_MAX + 9)
"""Lengths of texts below, at and above those at which a text is cut."""

FAST_S = 3.0
"""What it may take to register, refresh and count a thousand small rows and a large one; it was ten, or an error."""


def source(table: str) -> Source:
    return Source("postgres", postgres_server.place(), f"{SCHEMA}.{table}")


@pytest.fixture(scope="module")
def engine() -> Iterator[PostgresEngine]:
    postgres_server.execute(
        f"CREATE SCHEMA {SCHEMA}",
        f"CREATE TABLE {SCHEMA}.t (id int, s text)",
        f"INSERT INTO {SCHEMA}.t SELECT i, i::text FROM generate_series(1, 1000) AS i",
        f"INSERT INTO {SCHEMA}.t VALUES (0, repeat('1', {LETTERS}))",
        f"CREATE TABLE {SCHEMA}.cut (id int, s text, c char(20000), b bytea)",
        *(
            f"INSERT INTO {SCHEMA}.cut SELECT {size}, t, t, convert_to(t, 'UTF8') "
            f"FROM (SELECT 'a' || repeat('é', {size - 2}) || 'b' AS t) AS q"
            for size in CUT
        ),
    )
    made = PostgresEngine(postgres_server.place(), salt=1)
    yield made
    made.close()
    postgres_server.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def asked(engine: PostgresEngine, sql: str) -> list[tuple[object, ...]]:
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(tree, sqlglot.exp.Query)
    return list(zip(*engine.run(engine.write(tree)).values(), strict=True))


VALUES = {Kind.TEXT: 1001, Kind.INTEGER: 1000, Kind.REAL: 1000, Kind.BOOLEAN: 1, Kind.DATE: 0, Kind.TIME: 0}


@pytest.mark.parametrize("kind", VALUES)
def test_a_large_text_is_read_as_fast_as_any_other(engine: PostgresEngine, kind: Kind) -> None:
    table = Table("t", (Column("id", Kind.INTEGER), Column("s", kind)), Unit("id"))
    started_s = time.perf_counter()
    engine.register(table, source("t"), {})
    engine.refresh("t")
    assert asked(engine, "SELECT COUNT(*) AS n, COUNT(s) AS c FROM tacit_data.t") == [(1001, VALUES[kind])]
    assert time.perf_counter() - started_s < FAST_S


def test_a_text_that_is_cut_early_is_shown_as_any_other(engine: PostgresEngine) -> None:
    columns = tuple(Column(name, Kind.TEXT) for name in "scb")
    engine.register(Table("cut", (Column("id", Kind.INTEGER), *columns), Unit("id")), source("cut"), {})
    rows = asked(engine, "SELECT id, s, c, b FROM tacit_data.cut")
    assert sorted(int(str(row[0])) for row in rows) == sorted(CUT)
    for size, text, filled, hexadecimal in rows:
        whole = "a" + "é" * (int(str(size)) - 2) + "b"
        assert (text, filled) == (whole[:TEXT_LENGTH_MAX],) * 2
        assert hexadecimal == ("\\x" + whole.encode().hex())[:TEXT_LENGTH_MAX]
