"""Views that lead to a unit are read row by row, or refused when they are registered; of public rows any view is."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
import sqlglot

from tacit.engines import DuckDBEngine, Engine, PostgresEngine, Source
from tacit.privacy.errors import EngineFailed, InvalidInput
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit
from tests.support import postgres_server
from tests.support.spark_session import PLACE, spark_engine

COLUMNS = (Column("id", Kind.INTEGER), Column("n", Kind.INTEGER))
PRIVATE, PUBLIC = Table("t", COLUMNS, Unit("id")), Table("t", COLUMNS)
ROWS = "(1, 5, 'x'), (2, 6, '7'), (2, 7, '8')"
NUMBERS = itertools.count()

MIXING = {
    "a window": "SELECT id, CAST(row_number() OVER (ORDER BY n) AS INT) AS n FROM base",
    "an aggregate": "SELECT id, CAST(count(*) AS INT) AS n FROM base GROUP BY id",
    "DISTINCT": "SELECT DISTINCT id, n FROM base",
    "LIMIT": "SELECT id, n FROM base LIMIT 2",
    "a join": "SELECT b.id, c.n FROM base b JOIN base c ON b.n = c.n",
    "tables side by side": "SELECT b.id, c.n FROM base b, base c",
    "IN": "SELECT id, n FROM base WHERE n IN (SELECT n FROM base)",
    "EXISTS": "SELECT id, n FROM base WHERE EXISTS (SELECT 1 FROM base c WHERE c.n > base.n)",
    "UNION": "SELECT id, n FROM base UNION SELECT n, id FROM base",
    "EXCEPT": "SELECT id, n FROM base EXCEPT SELECT n, id FROM base",
    "a view of a view": "SELECT id, n FROM counted WHERE n < 9",
}
PLAIN = {
    "columns": "SELECT id, n FROM base WHERE n > 5 AND s <> 'z'",
    "UNION ALL": "SELECT id, n FROM base UNION ALL SELECT id, n FROM base WHERE n = 5",
    "a view of a view": "SELECT id, n FROM shown WHERE n < 9",
}
INNER = {
    "counted": "SELECT id, CAST(count(*) AS INT) AS n FROM base GROUP BY id",
    "shown": "SELECT id, n FROM base WHERE n > 5",
}
Made = tuple[Engine, Callable[[str], Source]]


def _duckdb(folder: Path) -> Made:
    def viewed(sql: str) -> Source:
        path = folder / f"{next(NUMBERS)}.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE base AS FROM (VALUES {ROWS}) AS t(id, n, s)")
            for name, inner in {**INNER, "v": sql}.items():
                connection.execute(f"CREATE VIEW {name} AS {inner}")
        return Source("duckdb", str(path), "v")

    return DuckDBEngine(folder / "kept", salt=7, threads=2), viewed


def _postgres(folder: Path) -> Made:
    def viewed(sql: str) -> Source:
        schema = f"views_{os.getpid()}_{next(NUMBERS)}"
        made = [f"CREATE VIEW {name} AS {inner}" for name, inner in {**INNER, "v": sql}.items()]
        base = f"CREATE TABLE base AS SELECT * FROM (VALUES {ROWS}) AS t(id, n, s)"
        postgres_server.execute(f"CREATE SCHEMA {schema}", f"SET search_path = {schema}", base, *made)
        return Source("postgres", postgres_server.place(), f"{schema}.v")

    return PostgresEngine(postgres_server.place(), salt=7), viewed


def _spark(folder: Path) -> Made:
    engine = spark_engine()
    session, _ = engine._connect()
    session.sql(f"SELECT * FROM VALUES {ROWS} AS t(id, n, s)").createOrReplaceGlobalTempView("base")
    for name, inner in INNER.items():
        session.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {name} AS {_globally(inner)}")

    def viewed(sql: str) -> Source:
        name = f"v{next(NUMBERS)}"
        session.sql(f"CREATE GLOBAL TEMPORARY VIEW {name} AS {_globally(sql)}")
        return Source("spark", PLACE, f"global_temp.{name}")

    return engine, viewed


def _globally(sql: str) -> str:
    for name in ("base", *INNER):
        sql = sql.replace(f"FROM {name}", f"FROM global_temp.{name}").replace(
            f"JOIN {name} ", f"JOIN global_temp.{name} "
        )
    return sql.replace(", base", ", global_temp.base")


@pytest.fixture(scope="module", params=[_duckdb, _postgres, _spark], ids=["duckdb", "postgres", "spark"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    engine, viewed = request.param(tmp_path_factory.mktemp("views"))
    yield engine, viewed
    engine.close()


@pytest.mark.parametrize("sql", MIXING.values(), ids=MIXING)
def test_a_view_that_mixes_rows_is_no_table_of_units(made: Made, sql: str) -> None:
    engine, viewed = made
    with pytest.raises(InvalidInput, match="is a view"):
        engine.register(PRIVATE, viewed(sql), {})


def count_of(engine: Engine) -> int:
    statement = sqlglot.parse_one("SELECT COUNT(*) AS n FROM tacit_data.t", dialect="duckdb")
    return int(engine.run(engine.write(statement))["n"][0])


@pytest.mark.parametrize("sql", PLAIN.values(), ids=PLAIN)
def test_a_view_that_is_read_row_by_row_is_a_table(made: Made, sql: str) -> None:
    engine, viewed = made
    engine.register(PRIVATE, viewed(sql), {})
    assert count_of(engine) > 0


def test_a_view_that_mixes_rows_is_no_way_to_the_unit_either(made: Made) -> None:
    engine, viewed = made
    people = Table("people", COLUMNS)
    child = Table("child", (Column("p", Kind.INTEGER),), Unit("n", (ForeignKey("p", "people", "id"),)))
    engine.register(people, viewed("SELECT DISTINCT id, n FROM base WHERE n < 7"), {})
    rows = viewed("SELECT id AS p, n FROM base")
    with pytest.raises(InvalidInput, match="is a view"):
        engine.register(child, rows, {"people": people})


def test_public_rows_may_be_those_of_a_view_that_mixes(made: Made) -> None:
    engine, viewed = made
    engine.register(PUBLIC, viewed(MIXING["a join"]), {})
    assert count_of(engine) > 0


def test_a_view_of_spark_that_fails_for_a_row_is_refused() -> None:
    """It was made under the rules of ANSI, which it keeps in a session that has others."""
    engine, viewed = _spark(Path())
    session, _ = engine._connect()
    session.conf.set("spark.sql.ansi.enabled", "true")
    try:
        failing = [
            viewed("SELECT id, CAST(s AS INT) AS n FROM base"),
            viewed("SELECT id, n FROM base WHERE s <> 5"),  # which casts the text
        ]
    finally:
        session.conf.set("spark.sql.ansi.enabled", "false")
    for source in failing:
        with pytest.raises(InvalidInput, match="is a view"):
            engine.register(PRIVATE, source, {})
        engine.register(PUBLIC, source, {}, "unchecked")
        with pytest.raises(EngineFailed):  # as it would for the rows of a unit
            engine.run("SELECT sum(n) AS n FROM tacit_data_t")
    engine.close()
