"""Rows of units are read by Spark one by one and cannot fail: formats, casts of views, and times that are too far."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.engines import Source, SparkEngine
from tacit.engines.spark import row_checks
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit
from tests.support.spark_session import PLACE, spark_engine

COLUMNS = (Column("pid", Kind.INTEGER), Column("n", Kind.INTEGER))
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def engine() -> Iterator[SparkEngine]:
    made = spark_engine()
    yield made
    made.close()


@pytest.fixture
def create(engine: SparkEngine) -> Iterator[Callable[[str], Source]]:
    """Return what creates a table or a view (`CREATE TABLE {name} ...`), and drops it afterwards."""
    session, _ = engine._connect()
    dropped = []

    def made(sql: str) -> Source:
        name = f"checked_{next(NUMBERS)}"
        session.sql(sql.format(name=name))
        dropped.append(f"DROP {'VIEW' if sql.startswith('CREATE VIEW') else 'TABLE'} {name}")
        return Source("spark", PLACE, f"default.{name}")

    yield made
    for one in reversed(dropped):
        session.sql(one)


def count(engine: SparkEngine, column: str) -> int:
    return int(engine.run(f"SELECT count({column}) AS n FROM tacit_data_t")["n"][0])


FORMATS = {
    "csv": "USING csv",
    "csv of several lines": "USING csv OPTIONS (multiLine 'true')",
    "strict csv": "USING csv OPTIONS (mode 'FAILFAST')",
    "json": "USING json",
    "text": "USING text",
    "xml": "USING xml OPTIONS (rowTag 'row')",
}


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_table_of_lines_holds_no_units_neither_does_a_view_of_it(
    engine: SparkEngine, create: Callable[[str], Source], tmp_path: Path, form: str
) -> None:
    """An open quote, or 30,000 commas, in one line would take others with it or fail every question."""
    is_text = form.endswith("text")
    fields = "pid STRING" if is_text else "pid BIGINT, n INT"
    kind = Kind.TEXT if is_text else Kind.INTEGER
    columns = (Column("pid", kind),) if is_text else COLUMNS
    lines = create(f"CREATE TABLE {{name}} ({fields}) {form} LOCATION '{tmp_path}'")
    view = create(f"CREATE VIEW {{name}} AS SELECT * FROM {lines.table}")
    union = create(f"CREATE VIEW {{name}} AS SELECT * FROM {view.table} UNION ALL SELECT * FROM {view.table}")
    for source in (lines, view, union):
        with pytest.raises(InvalidInput, match="write its rows as Parquet and register those"):
            engine.register(Table("t", columns, Unit("pid")), source, {})
        engine.register(Table("t", columns), source, {})
        engine.forget("t")


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_tables_and_views_of_columns_hold_units(
    engine: SparkEngine, create: Callable[[str], Source], tmp_path: Path, form: str
) -> None:
    padded = create(f"CREATE TABLE {{name}} (pid BIGINT, n INT, c CHAR(3)) USING {form} LOCATION '{tmp_path}/a'")
    table = create(f"CREATE TABLE {{name}} (pid BIGINT, n INT, c STRING) USING {form} LOCATION '{tmp_path}/b'")
    session, _ = engine._connect()
    for one in (padded, table):
        session.sql(f"INSERT INTO {one.table} VALUES (1, 5, 'a'), (2, 6, 'b')")
    view = create(f"CREATE VIEW {{name}} AS SELECT pid, n FROM {table.table} WHERE n > 1")
    for source in (padded, table, view):
        engine.register(Table("t", COLUMNS, Unit("pid")), source, {})
        assert count(engine, "n") == 2


def test_a_table_with_rules_for_old_calendars_holds_no_units(
    engine: SparkEngine, create: Callable[[str], Source], tmp_path: Path
) -> None:
    rows = "(pid BIGINT, n INT) USING parquet OPTIONS ({}) LOCATION"
    old = rows.format("DateTimeRebaseMode 'EXCEPTION'")
    source = create(f"CREATE TABLE {{name}} {old} '{tmp_path}/a'")
    with pytest.raises(InvalidInput, match="create the table without datetimeRebaseMode"):
        engine.register(Table("t", COLUMNS, Unit("pid")), source, {})
    new = rows.format("datetimeRebaseMode 'CORRECTED'")
    engine.register(Table("t", COLUMNS, Unit("pid")), create(f"CREATE TABLE {{name}} {new} '{tmp_path}/b'"), {})


CASTS = {
    "a date as a time": "SELECT pid, CAST(d AS TIMESTAMP) AS x FROM {}",
    "a date as a time without a zone": "SELECT pid, CAST(d AS TIMESTAMP_NTZ) AS x FROM {}",
    "a date compared with a time": "SELECT pid, d AS x FROM {} WHERE d < TIMESTAMP '2030-01-01 00:00:00'",
    "a time in the zone of the session": "SELECT pid, CAST(ntz AS TIMESTAMP) AS x FROM {}",
    "a time without its zone": "SELECT pid, CAST(ltz AS TIMESTAMP_NTZ) AS x FROM {}",
    "a number as a time": "SELECT pid, CAST(pid AS TIMESTAMP) AS x FROM {}",
}


@pytest.mark.parametrize("sql", CASTS.values(), ids=CASTS)
def test_a_view_that_casts_between_moments_is_refused(
    engine: SparkEngine, create: Callable[[str], Source], tmp_path: Path, sql: str
) -> None:
    fields = "(pid BIGINT, d DATE, ntz TIMESTAMP_NTZ, ltz TIMESTAMP)"
    base = create(f"CREATE TABLE {{name}} {fields} USING parquet LOCATION '{tmp_path}'")
    view = create(f"CREATE VIEW {{name}} AS {sql.format(base.table)}")
    with pytest.raises(InvalidInput, match="is a view"):
        engine.register(Table("t", (COLUMNS[0], Column("x", Kind.TIME)), Unit("pid")), view, {})


@pytest.mark.parametrize(
    ("source", "target", "is_total"),
    [
        *(("int", "bigint", True), ("bigint", "double", True), ("float", "double", True), ("void", "date", True)),
        *(("date", "string", True), ("timestamp", "string", True), ("decimal(9,2)", "string", True)),
        *(("int", "decimal(10,0)", True), ("bigint", "decimal(20,0)", True), ("decimal(9,2)", "decimal(11,3)", True)),
        *(("string", "string collate UNICODE", True), ("string collate UNICODE", "string", True)),
        *(("bigint", "int", False), ("double", "bigint", False), ("double", "float", False), ("string", "int", False)),
        *(("bigint", "decimal(18,0)", False), ("decimal(9,2)", "decimal(9,3)", False)),
        *(("double", "decimal(38,0)", False), ("decimal(9,2)", "decimal(9,1)", False), ("boolean", "int", False)),
        *(("date", "timestamp", False), ("date", "timestamp_ntz", False), ("timestamp", "timestamp_ntz", False)),
        *(("timestamp_ntz", "timestamp", False), ("bigint", "timestamp", False), ("timestamp", "bigint", False)),
        *(("timestamp", "date", False), ("string", "varchar(3)", False), ("array<int>", "string", False)),
    ],
)
def test_a_cast_is_total_if_no_value_can_fail(source: str, target: str, is_total: bool) -> None:
    assert row_checks.is_total_cast(source, target) is is_total


def write_times(path: Path, unit: str, last: int, zone: str | None = None, **options: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    times = pa.array([10**9, last], pa.int64()).view(pa.timestamp(unit, zone))
    parquet.write_table(pa.table({"pid": [1, 2], "n": [5, 6], "at": times}), path, **options)


TIMED = Table("t", (*COLUMNS, Column("at", Kind.TIME)), Unit("pid"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_in_milliseconds_are_refused_to_the_owner(
    engine: SparkEngine, create: Callable[[str], Source], tmp_path: Path, zone: str | None
) -> None:
    """One of them beyond what microseconds hold would fail every question about its column."""
    write_times(tmp_path / "a.parquet", "us", 10**15, zone)
    files = Source("spark", PLACE, f"parquet:{tmp_path}/*.parquet")
    type_ = "TIMESTAMP_NTZ" if zone is None else "TIMESTAMP"
    fields = f"(pid BIGINT, n BIGINT, at {type_})"
    table = create(f"CREATE TABLE {{name}} {fields} USING parquet LOCATION '{tmp_path}'")
    view = create(f"CREATE VIEW {{name}} AS SELECT pid, n FROM {table.table} WHERE at > {type_} '2020-01-01 00:00:00'")
    for source in (files, table):
        engine.register(TIMED, source, {})
        assert count(engine, "`at`") == 2
    engine.register(Table("t", COLUMNS, Unit("pid")), view, {})
    write_times(tmp_path / "b.parquet", "ms", 2**62, zone)
    for source in (files, table):
        with pytest.raises(InvalidInput, match="store it in microseconds"):
            engine.register(TIMED, source, {})
        engine.register(Table("t", COLUMNS, Unit("pid")), source, {})  # the column is not read
        assert count(engine, "n") == 4
        engine.register(Table("t", COLUMNS), source, {})
    with pytest.raises(InvalidInput, match="store it in microseconds"):
        engine.register(Table("t", COLUMNS, Unit("pid")), view, {})


def test_a_refresh_refuses_milliseconds_that_came_later(engine: SparkEngine, tmp_path: Path) -> None:
    write_times(tmp_path / "a.parquet", "us", 10**15)
    engine.register(TIMED, Source("spark", PLACE, f"parquet:{tmp_path}/*.parquet"), {})
    write_times(tmp_path / "b.parquet", "ms", 2**62)
    with pytest.raises(InvalidInput, match="store it in microseconds"):
        engine.refresh("t")


def test_times_of_orc_are_refused_to_the_owner(
    engine: SparkEngine, create: Callable[[str], Source], tmp_path: Path
) -> None:
    """Their seconds have 64 bits: microseconds do not hold them."""
    table = create(f"CREATE TABLE {{name}} (pid BIGINT, n INT, at TIMESTAMP) USING orc LOCATION '{tmp_path}'")
    with pytest.raises(InvalidInput, match="is a time in ORC"):
        engine.register(TIMED, table, {})
    engine.register(Table("t", COLUMNS, Unit("pid")), table, {})


@pytest.mark.parametrize(("unit", "is_found"), [("ms", True), ("us", False), ("int96", False)])
def test_without_footers_milliseconds_are_found_by_their_values(
    engine: SparkEngine, tmp_path: Path, unit: str, is_found: bool
) -> None:
    """As it is done behind Spark Connect."""
    write_times(tmp_path / "a.parquet", "us", 10**15)
    if unit == "int96":
        write_times(tmp_path / "b.parquet", "ns", 10**15, use_deprecated_int96_timestamps=True)
    else:
        write_times(tmp_path / "b.parquet", unit, 10**12)
    session, _ = engine._connect()
    files = session.read.parquet(str(tmp_path)).inputFiles()
    found = row_checks._find_milliseconds_by_values(session, files, {"at": "timestamp_ntz"})
    assert found == ("at" if is_found else None)
    assert row_checks._find_milliseconds(session, files, ["at"]) == found


def test_a_day_of_an_old_calendar_is_read(engine: SparkEngine, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    days = pa.array([datetime.date(1500, 1, 1), datetime.date(2020, 1, 1)])
    parquet.write_table(pa.table({"pid": [1, 2], "d": days}), tmp_path / "a.parquet")
    table = Table("t", (COLUMNS[0], Column("d", Kind.DATE)), Unit("pid"))
    engine.register(table, Source("spark", PLACE, f"parquet:{tmp_path}"), {})
    assert count(engine, "d") == 2
