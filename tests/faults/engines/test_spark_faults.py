"""What Spark does when time is up, when tables and files change under it, and when its server goes.

All of it over Spark Connect, from a server on loopback that is killed in the last test.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from tacit.engines import Columns, Source, SparkEngine
from tacit.engines.protocol import FAILED
from tacit.engines.spark import sessions
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import Cancelled, EngineFailed, InvalidInput, NoConnection, SourceMissing
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, PlanSettings, Target, run
from tests.support.plans import plan_sql
from tests.support.spark_servers import Server, connect_server

ENDLESS = "SELECT SUM(a.n * b.n + c.n) AS s FROM " + ", ".join(f"tacit_data.long AS {one}" for one in "abc")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with connect_server(tmp_path_factory.mktemp("connect")) as running:
        yield running


@pytest.fixture(scope="module")
def engine(server: Server) -> Iterator[SparkEngine]:
    made = SparkEngine(f"sc://127.0.0.1:{server.port}", salt=7)
    yield made
    made.close()


def put(path: Path, rows: str) -> None:
    duckdb.sql(f"COPY (FROM (VALUES {rows}) AS t(u, n)) TO '{path}' (FORMAT parquet)")


def source(engine: SparkEngine, table: str) -> Source:
    return Source("spark", engine.place, table)


def ask(engine: SparkEngine, sql: str, **options: Any) -> Columns:
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    return engine.run(engine.write(tree), **options)


def sql(engine: SparkEngine, *statements: str) -> None:
    """Do as another client of the server does."""
    other = sessions.open_session(engine.place)
    for one in statements:
        other.sql(one).collect()
    other.stop()


NUMBERS = (Column("u", Kind.INTEGER), Column("n", Kind.INTEGER))


@pytest.fixture
def long(engine: SparkEngine, tmp_path: Path) -> Iterator[None]:
    put(tmp_path / "long.parquet", ", ".join(f"({n}, {n})" for n in range(1500)))
    engine.register(Table("long", NUMBERS), source(engine, f"parquet:{tmp_path}/long.parquet"), {})
    yield
    engine.forget("long")


def test_a_private_question_is_answered(engine: SparkEngine, tmp_path: Path) -> None:
    put(tmp_path / "visits.parquet", ", ".join(f"({n % 40}, {n % 3})" for n in range(400)))
    columns = (Column("u", Kind.INTEGER), Column("n", Kind.INTEGER, Bounds(0, 2)))
    table = Table("visits", columns, Unit("u"), Limits(rows_per_unit=5))
    engine.register(table, source(engine, f"parquet:{tmp_path}/*.parquet"), {})
    plan = plan_sql(
        "SELECT COUNT(*), SUM(n) FROM visits", Schema([table]), Target(epsilon=1e9), BudgetTerms(), PlanSettings()
    )
    noisy = run(plan, engine, 7)
    assert int(noisy.measures[0][0]) == 200  # five rows of each of forty


@pytest.mark.usefixtures("long")
def test_a_question_that_takes_too_long_is_stopped_and_the_next_one_answered(engine: SparkEngine) -> None:
    shares: list[float] = []
    with pytest.raises(EngineFailed, match=FAILED):
        ask(engine, ENDLESS, timeout_s=1, progress=shares.append)
    assert all(0 <= share <= 1 for share in shares)
    assert ask(engine, "SELECT COUNT(*) AS c FROM tacit_data.long")["c"][0] == 1500


@pytest.mark.usefixtures("long")
def test_a_question_can_be_cancelled_from_another_thread(engine: SparkEngine) -> None:
    timer = threading.Timer(0.5, engine.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        ask(engine, ENDLESS)
    timer.join()


def test_files_that_are_written_anew_have_another_version(engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    put(path, "(1, 10), (2, 20)")
    engine.register(Table("rows", NUMBERS), source(engine, f"parquet:{path}"), {})
    first = engine.refresh("rows")
    assert engine.refresh("rows") == first
    time.sleep(0.01)  # as long as a file system's clock may stand still
    put(path, "(1, 10), (2, 21)")
    assert engine.refresh("rows") != first
    assert sorted(ask(engine, "SELECT n FROM tacit_data.rows")["n"]) == [10, 21]
    path.unlink()
    with pytest.raises(SourceMissing):
        engine.refresh("rows")
    with pytest.raises(EngineFailed):
        ask(engine, "SELECT n FROM tacit_data.rows")


def test_tables_that_change_are_noticed_and_tables_that_are_dropped_are_missing(engine: SparkEngine) -> None:
    sql(engine, "CREATE TABLE changing (u BIGINT, n DECIMAL(12, 0), t TIMESTAMP, a ARRAY<INT>) USING parquet")
    sql(engine, "INSERT INTO changing VALUES (1, 5, TIMESTAMP_LTZ '2024-01-01 10:00:00+02:00', NULL)")
    found = {one.name: one.kind for one in engine.describe(source(engine, "default.changing"))}
    assert found == {"u": Kind.INTEGER, "n": Kind.INTEGER, "t": Kind.TIME, "a": None}
    columns = (*NUMBERS, Column("t", Kind.TIME))
    engine.register(Table("changing", columns), source(engine, "default.changing"), {})
    first = engine.refresh("changing")
    assert str(ask(engine, "SELECT t FROM tacit_data.changing")["t"][0]) == "2024-01-01 08:00:00"
    sql(engine, "INSERT INTO changing VALUES (2, 6, NULL, NULL)")
    assert engine.refresh("changing") not in (first, engine.refresh("changing") + "x")
    assert sorted(ask(engine, "SELECT n FROM tacit_data.changing")["n"]) == [5, 6]
    with pytest.raises(SourceMissing, match="cannot be queried; change it back, or register broken"):
        engine.register(Table("broken", (Column("a", Kind.TEXT),)), source(engine, "default.changing"), {})
    with pytest.raises(SourceMissing, match="has no column gone"):
        engine.register(Table("broken", (Column("gone", Kind.TEXT),)), source(engine, "default.changing"), {})
    sql(engine, "DROP TABLE changing")
    with pytest.raises(SourceMissing, match=r"default\.changing"):
        engine.refresh("changing")
    with pytest.raises(EngineFailed, match=FAILED):
        ask(engine, "SELECT n FROM tacit_data.changing")


def test_a_view_has_another_version_whenever_its_rows_differ(engine: SparkEngine) -> None:
    sql(engine, "CREATE VIEW seen AS SELECT * FROM VALUES (1L, CAST(NULL AS BIGINT)), (2L, 3L) AS t(u, n)")
    engine.register(Table("seen", NUMBERS), source(engine, "spark_catalog.default.seen"), {})
    versions = [engine.refresh("seen"), engine.refresh("seen")]
    for rows in ("(CAST(NULL AS BIGINT), 1L), (2L, 3L)", "(1L, NULL), (2L, 3L), (1L, NULL)", "(1L, 3L), (2L, NULL)"):
        sql(engine, f"CREATE OR REPLACE VIEW seen AS SELECT * FROM VALUES {rows} AS t(u, n)")
        versions.append(engine.refresh("seen"))
    assert versions[0] == versions[1]
    assert len(set(versions)) == 4  # a value in another column, one twice, two that changed places
    sql(engine, "CREATE OR REPLACE VIEW seen AS SELECT * FROM VALUES (2L, 3L), (1L, NULL) AS t(u, n)")
    assert engine.refresh("seen") == versions[0]


def test_tables_behind_the_server_hold_units_if_no_row_can_fail_to_be_read(engine: SparkEngine, tmp_path: Path) -> None:
    fields = "(u BIGINT, n BIGINT, t TIMESTAMP_NTZ)"
    for form in ("csv", "json", "orc", "parquet"):
        sql(engine, f"CREATE TABLE as_{form} {fields} USING {form} LOCATION '{tmp_path}/{form}'")
    sql(engine, "CREATE VIEW over_csv AS SELECT * FROM as_csv", "CREATE VIEW over_parquet AS SELECT * FROM as_parquet")
    sql(engine, "INSERT INTO as_parquet VALUES (1, 5, TIMESTAMP_NTZ '2024-01-01 10:00:00'), (2, 6, NULL)")
    timed = Table("kept", (*NUMBERS, Column("t", Kind.TIME)), Unit("u"))
    for table, sentence in (
        ("as_csv", "reads csv, .* write its rows as Parquet"),
        ("as_json", "reads json, .* write its rows as Parquet"),
        ("as_orc", "is a time in ORC"),
        ("over_csv", "is a view"),
        ("over_parquet", "is a view"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            engine.register(timed, source(engine, f"default.{table}"), {})
    for place in ("default.as_parquet", f"parquet:{tmp_path}/parquet"):
        engine.register(timed, source(engine, place), {})
        assert ask(engine, "SELECT COUNT(t) AS c FROM tacit_data.kept")["c"][0] == 1
    duckdb.sql(
        "COPY (SELECT 3::BIGINT AS u, 7::BIGINT AS n, TIMESTAMP_MS '2024-01-01 10:00:00' AS t) "
        f"TO '{tmp_path}/parquet/later.parquet' (FORMAT parquet)"
    )
    for place in ("default.as_parquet", f"parquet:{tmp_path}/parquet"):
        with pytest.raises(InvalidInput, match="store it in microseconds"):
            engine.register(timed, source(engine, place), {})


def test_an_error_says_nothing_of_the_data_and_nothing_is_logged(
    engine: SparkEngine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "secret.parquet"
    duckdb.sql(f"COPY (SELECT 'swordfish' AS s) TO '{path}' (FORMAT parquet)")
    engine.register(Table("secret", (Column("s", Kind.TEXT),)), source(engine, f"parquet:{path}"), {})
    with pytest.raises(EngineFailed) as caught:
        engine.run("SELECT raise_error(s) AS n FROM tacit_data_secret")
    assert "swordfish" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "swordfish" not in "".join(capfd.readouterr())


def test_nothing_else_than_a_select_about_registered_tables_is_run(engine: SparkEngine, tmp_path: Path) -> None:
    put(tmp_path / "other.parquet", "(1, 1)")
    for statement in (
        f"SELECT * FROM parquet.`{tmp_path}/other.parquet`",
        "CREATE TABLE mine (n INT)",
        "SHOW TABLES",
        "SELECT 1 FROM tacit_data_nobody",
        "DROP VIEW tacit_data_secret",
    ):
        with pytest.raises(EngineFailed, match="one SELECT over registered tables"):
            engine.run(statement)


@pytest.mark.usefixtures("long")
def test_a_server_that_is_killed_in_the_midst_of_a_question_is_no_connection(
    server: Server, engine: SparkEngine
) -> None:
    timer = threading.Timer(1.0, server.kill)
    timer.start()
    started_s = time.monotonic()
    with pytest.raises(EngineFailed, match=FAILED):
        ask(engine, ENDLESS)
    assert time.monotonic() - started_s < 60
    with pytest.raises(NoConnection):
        engine.refresh("long")
    with pytest.raises(NoConnection):
        SparkEngine(engine.place, salt=7).describe(source(engine, "default.changing"))
    timer.join()
