"""DuckDB as an engine: what it stores, what it leaves in files, what it says when files are not as they should be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import duckdb
import pytest

from tacit.engines import ROWS, UNIT, DuckDBEngine, Source
from tacit.engines.duckdb import engine as module
from tacit.engines.duckdb.prepared import PreparedStore
from tacit.privacy.errors import EngineFailed, InvalidInput, NotInCatalog, SourceMissing
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import Unit

EVENTS = (Column("u", Kind.INTEGER), Column("n", Kind.INTEGER))
PRIVATE = Table("events", EVENTS, Unit("u"))
PUBLIC = Table("events", EVENTS)
LIMITED = Table("events", EVENTS, Unit("u"), Limits(rows_per_unit=3))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(tmp_path / "folder", salt=1, threads=2)
    yield made
    made.close()


def written(path: Path, sql: str = "SELECT i % 5 AS u, i AS n FROM range(40) AS r(i)") -> Source:
    """Write the rows of a SELECT as Parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    return Source("parquet", str(path))


def stored(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "folder" / "prepared").glob("*.duckdb"))


KINDS = {
    "TINYINT": Kind.INTEGER,
    "SMALLINT": Kind.INTEGER,
    "INTEGER": Kind.INTEGER,
    "BIGINT": Kind.INTEGER,
    "UTINYINT": Kind.INTEGER,
    "USMALLINT": Kind.INTEGER,
    "UINTEGER": Kind.INTEGER,
    "UBIGINT": Kind.REAL,
    "HUGEINT": Kind.REAL,
    "DECIMAL(18, 3)": Kind.REAL,
    "FLOAT": Kind.REAL,
    "DOUBLE": Kind.REAL,
    "VARCHAR": Kind.TEXT,
    "UUID": Kind.TEXT,
    "ENUM('a', 'b')": Kind.TEXT,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIME,
    "TIMESTAMP_S": Kind.TIME,
    "TIMESTAMP_NS": Kind.TIME,
    "TIMESTAMPTZ": Kind.TIME,
    "INTEGER[]": None,
    "DECIMAL(5, 1)[]": None,
    "STRUCT(a INTEGER)": None,
    "MAP(VARCHAR, INTEGER)": None,
    "BLOB": None,
    "TIME": None,
    "INTERVAL": None,
}


def test_every_type_has_a_kind_or_none(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "types.duckdb"
    with duckdb.connect(str(path)) as connection:
        columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(KINDS))
        connection.execute(f"CREATE TABLE t ({columns})")
    found = engine.describe(Source("duckdb", str(path), "t"))
    assert dict(zip(KINDS, (one.kind for one in found), strict=True)) == KINDS


def test_every_type_can_be_shown_as_text_and_numbers_as_numbers(engine: DuckDBEngine, tmp_path: Path) -> None:
    sql = """SELECT 1 AS u, 'a'::ENUM('a', 'b') AS e, [1, 2] AS l, 5::UTINYINT AS i, 2.5::DECIMAL(5, 1) AS r,
        '2020-06-01 12:00:00+02'::TIMESTAMPTZ AS t, '2020-06-01 12:00:00.123456'::TIMESTAMP_NS AS ns"""
    kinds = {"u": "integer", "e": "text", "l": "text", "i": "integer", "r": "real", "t": "time", "ns": "time"}
    table = Table("t", tuple(Column(name, Kind(kind)) for name, kind in kinds.items()), Unit("u"))
    engine.register(table, written(tmp_path / "t.parquet", sql), {})
    found = engine.run("SELECT e, l, i, r, t, ns FROM tacit_data.t")
    times = [datetime(2020, 6, 1, 10)], [datetime(2020, 6, 1, 12, 0, 0, 123456)]
    assert [list(one) for one in found.values()] == [["a"], ["[1, 2]"], [5], [2.5], *times]


def test_dates_that_python_cannot_hold_are_moved_to_the_nearest_that_it_can(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    sql = "SELECT * FROM (VALUES (1, DATE 'infinity'), (2, DATE '20000-01-01'), (3, DATE '-infinity')) AS v(u, d)"
    table = Table("t", (Column("u", Kind.INTEGER), Column("d", Kind.DATE)), Unit("u"))
    engine.register(table, written(tmp_path / "t.parquet", sql), {})
    assert engine.run("SELECT d FROM tacit_data.t ORDER BY u") == {"d": [date.max, date.max, date.min]}


def test_a_small_private_table_is_stored_in_order_of_the_unit_and_its_rows_counted(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    engine.register(PRIVATE, written(tmp_path / "e.parquet"), {})
    assert len(stored(tmp_path)) == 1
    found = engine.run(f"SELECT {UNIT}, {ROWS}, u FROM tacit_data.events")
    assert list(found[UNIT]) == list(found["u"]) == sorted(found["u"])
    assert set(found[ROWS]) == {8}


def test_a_large_private_table_stays_in_its_files(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_STORED_MAX", 39)
    engine.register(PRIVATE, written(tmp_path / "e.parquet"), {})
    assert stored(tmp_path) == []
    assert engine.run(f"SELECT COUNT(*) AS n, MAX({ROWS}) AS r FROM tacit_data.events") == {"n": [40], "r": [None]}


def test_a_large_private_table_with_a_limit_is_stored(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_STORED_MAX", 39)
    engine.register(LIMITED, written(tmp_path / "e.parquet"), {})
    assert engine.run(f"SELECT COUNT(*) AS n, MAX({ROWS}) AS r FROM tacit_data.events") == {"n": [15], "r": [3]}


def test_a_table_of_many_rows_stays_in_its_files_unless_they_are_csv(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.register(PUBLIC, written(tmp_path / "e.parquet"), {})
    assert len(stored(tmp_path)) == 1
    engine.forget(PUBLIC.name)
    monkeypatch.setattr("tacit.engines.duckdb.engine.ROWS_STORED_MAX", 10)
    engine.register(PUBLIC, written(tmp_path / "e.parquet"), {})
    assert stored(tmp_path) == []
    (tmp_path / "e.csv").write_text("u,n\n1,2\n")
    engine.register(PUBLIC, Source("csv", str(tmp_path / "e.csv")), {})
    assert len(stored(tmp_path)) == 1


def test_what_is_stored_is_used_again_by_the_next_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path / "e.parquet")
    first = DuckDBEngine(tmp_path / "folder", salt=1)
    first.register(LIMITED, source, {})
    version = first.refresh("events")
    first.close()

    def make(*_: object) -> Path:
        raise AssertionError

    monkeypatch.setattr(PreparedStore, "make", make)
    second = DuckDBEngine(tmp_path / "folder", salt=1)
    second.register(LIMITED, source, {})
    assert second.refresh("events") == version
    assert second.run("SELECT COUNT(*) AS n FROM tacit_data.events") == {"n": [15]}
    second.close()


def test_another_salt_chooses_other_rows(tmp_path: Path) -> None:
    source, kept = written(tmp_path / "e.parquet"), set()
    for salt in range(4):
        engine = DuckDBEngine(tmp_path / "folder", salt=salt)
        engine.register(LIMITED, source, {})
        kept.add(tuple(engine.run("SELECT n FROM tacit_data.events ORDER BY n")["n"]))
        engine.close()
    assert len(kept) == 4
    assert len(stored(tmp_path)) == 1


def test_the_folder_may_be_left_out(tmp_path: Path) -> None:
    engine = DuckDBEngine(None, salt=1)
    engine.register(LIMITED, written(tmp_path / "e.parquet"), {})
    assert engine.run("SELECT COUNT(*) AS n FROM tacit_data.events") == {"n": [15]}
    place = engine.folder
    assert place.exists()
    engine.close()
    assert not place.exists()


def test_work_that_does_not_fit_into_memory_is_spilled(tmp_path: Path) -> None:
    engine = DuckDBEngine(tmp_path / "folder", salt=1, threads=2, memory_limit="60MB")
    source = written(tmp_path / "e.parquet", "SELECT hash(i) % 400000 AS u, i AS n FROM range(500000) AS r(i)")
    engine.register(PRIVATE, source, {})
    sql = "SELECT COUNT(*) AS n FROM (SELECT u, n, COUNT(*) FROM tacit_data.events GROUP BY u, n)"
    assert engine.run(sql) == {"n": [500000]}
    engine.close()
    assert not (tmp_path / "folder" / "spill").exists()


def test_a_table_of_a_database_is_found_by_its_schema(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE SCHEMA "Two Words"')
        connection.execute('CREATE TABLE "Two Words"."e.f" AS SELECT 1 AS u, 2 AS n')
        connection.execute('CREATE TABLE "a.b" AS SELECT 3 AS u, 4 AS n')
        connection.execute("CREATE VIEW seen AS SELECT 5 AS u, 6 AS n")
    for name, value in (("Two Words.e.f", 2), ("two words.E.F", 2), ("a.b", 4), ("main.a.b", 4), ("seen", 6)):
        engine.register(PRIVATE, Source("duckdb", str(path), name), {})
        assert engine.run("SELECT n FROM tacit_data.events") == {"n": [value]}
    with pytest.raises(SourceMissing, match=r"it has .*seen"):
        engine.describe(Source("duckdb", str(path), "other"))


def test_a_file_that_joins_a_glob_is_read(engine: DuckDBEngine, tmp_path: Path) -> None:
    written(tmp_path / "parts" / "1.parquet")
    engine.register(PRIVATE, Source("parquet", str(tmp_path / "parts" / "*.parquet")), {})
    first = engine.refresh("events")
    written(tmp_path / "parts" / "2.parquet")
    assert engine.refresh("events") != first
    assert engine.run("SELECT COUNT(*) AS n FROM tacit_data.events") == {"n": [80]}


def test_what_is_missing_or_unreadable_is_said_in_a_sentence(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("swordfish, swordfish")
    (tmp_path / "bad.duckdb").write_text("swordfish, swordfish" * 1000)
    sources = [
        Source("parquet", str(tmp_path / "none.parquet")),
        Source("parquet", str(tmp_path / "none-*.parquet")),
        Source("parquet", str(tmp_path)),
        Source("parquet", str(tmp_path / "bad.parquet")),
        Source("csv", str(tmp_path / "none.csv")),
        Source("duckdb", str(tmp_path / "none.duckdb"), "t"),
        Source("duckdb", str(tmp_path / "bad.duckdb"), "t"),
    ]
    for source in sources:
        with pytest.raises(SourceMissing) as caught:
            engine.describe(source)
        assert source.place in str(caught.value)
        assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("source", [Source("xlsx", "a.xlsx"), Source("parquet", "https://example.org/a.parquet")])
def test_other_forms_and_addresses_are_refused(engine: DuckDBEngine, source: Source) -> None:
    with pytest.raises(InvalidInput):
        engine.describe(source)


def test_a_column_that_is_not_there_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    table = Table("events", (*EVENTS, Column("gone", Kind.TEXT)), Unit("u"))
    with pytest.raises(SourceMissing, match="gone"):
        engine.register(table, written(tmp_path / "e.parquet"), {})


def test_a_kind_that_no_cast_leads_to_is_missing_everywhere(engine: DuckDBEngine, tmp_path: Path) -> None:
    source = written(tmp_path / "e.parquet", "SELECT 1 AS u, [1, 2] AS n, {'a': 1} AS s, TIME '12:00' AS t")
    kinds = {"u": Kind.INTEGER, "n": Kind.DATE, "s": Kind.REAL, "t": Kind.BOOLEAN}
    engine.register(Table("events", tuple(Column(*one) for one in kinds.items()), Unit("u")), source, {})
    assert engine.run("SELECT n, s, t FROM tacit_data.events") == {"n": [None], "s": [None], "t": [None]}


def test_an_unknown_table_has_no_version(engine: DuckDBEngine) -> None:
    with pytest.raises(NotInCatalog):
        engine.refresh("nothing")


@pytest.mark.parametrize(
    "sql", ["SELEC 1", "SELECT 1; SELECT 2", "", "SELECT nothing", "SELECT * FROM tacit_data.nothing"]
)
def test_what_cannot_run_is_one_error(engine: DuckDBEngine, sql: str) -> None:
    with pytest.raises(EngineFailed) as caught:
        engine.run(sql)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM 'https://example.org/x.csv'",
        "SELECT * FROM secret",
        "SET threads = 1",
        "LOAD httpfs",
        "INSTALL httpfs",
        "ATTACH ':memory:' AS other",
    ],
)
def test_a_question_reaches_nothing_but_the_tables(engine: DuckDBEngine, sql: str) -> None:
    secret = [1, 2, 3]  # DuckDB would find it by its name
    assert secret
    with pytest.raises(EngineFailed):
        engine.run(sql)


@pytest.mark.parametrize("settings", [{"memory_limit": "a lot"}, {"threads": 0}])
def test_settings_that_duckdb_does_not_take_are_an_error_of_the_engine(settings: dict[str, str]) -> None:
    engine = DuckDBEngine(None, salt=1, **settings)  # type: ignore[arg-type]
    with pytest.raises(EngineFailed):
        engine.run("SELECT 1 AS a")
    engine.close()


def test_an_engine_that_is_closed_can_be_closed_again(tmp_path: Path) -> None:
    engine = DuckDBEngine(tmp_path, salt=1)
    engine.close()
    engine.close()


def test_importing_the_engines_does_not_load_duckdb() -> None:
    code = "import sys, tacit.engines; sys.exit(any(name in sys.modules for name in ('duckdb', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=os.environ).returncode == 0
