"""PostgreSQL as an engine: where it is, what its types become, and what stands in front of a statement."""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from tacit.engines import PostgresEngine, Source
from tacit.engines.addresses import check_postgres
from tacit.engines.postgres.connections import address
from tacit.engines.postgres.kinds import cast, kind_of
from tacit.privacy.errors import (
    EngineFailed,
    InvalidInput,
    NotInCatalog,
    NotPermitted,
    SourceMissing,
    Unavailable,
)
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import Unit
from tests.support import postgres_server
from tests.support.postgres_server import execute

NUMBERS = itertools.count()


@pytest.fixture
def schema() -> str:
    name = f"unit_{os.getpid()}_{next(NUMBERS)}"
    execute(f"CREATE SCHEMA {name}")
    return name


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres_server.place(), salt=1)
    yield made
    made.close()


def source(table: str) -> Source:
    return Source("postgres", postgres_server.place(), table)


def rows(engine: PostgresEngine, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
    tree: Any = sqlglot.parse_one(sql, dialect="duckdb")
    columns = engine.run(engine.write(tree), parameters)
    return list(zip(*(list(one) for one in columns.values()), strict=True))


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://ana:secret@db/clinic",
        "postgres://ana:secret@db",
        "postgresql://ana@db/clinic?password=secret",
        "postgresql://ana@db/clinic?sslmode=require&PassWord=secret",
    ],
)
def test_a_place_holds_no_password(place: str) -> None:
    with pytest.raises(InvalidInput, match="pgpass") as caught:
        PostgresEngine(place, salt=1)
    assert "secret" not in f"{caught.value} {caught.value!r} {vars(caught.value)}"


@pytest.mark.parametrize(
    "place", ["", "clinic.db", "host=db password=x", "mysql://db", "env:", "env:a b", "file:", "service:"]
)
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(InvalidInput):
        check_postgres(place)


def test_an_address_is_read_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLINIC", "postgresql://ana:secret@db/clinic")
    assert address("env:CLINIC") == "postgresql://ana:secret@db/clinic"
    assert address("service:clinic") == "service=clinic"
    assert address("postgresql://ana@db/clinic") == "postgresql://ana@db/clinic"
    monkeypatch.delenv("CLINIC")
    with pytest.raises(SourceMissing, match="CLINIC"):
        address("env:CLINIC")
    file = tmp_path / "address"
    with pytest.raises(SourceMissing):
        address(f"file:{file}")
    file.write_text("postgresql://ana:secret@db/clinic\n")
    file.chmod(0o640)
    with pytest.raises(NotPermitted, match="chmod 600"):
        address(f"file:{file}")
    file.chmod(0o600)
    assert address(f"file:{file}") == "postgresql://ana:secret@db/clinic"


def test_without_psycopg_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = PostgresEngine("postgresql://ana@db/clinic", salt=1)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unavailable, match=r"pip install 'tacit\[postgres\]'"):
        engine.describe(Source("postgres", engine.place, "visits"))


def test_an_engine_over_an_address_in_the_environment(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_TEST_ADDRESS", postgres_server.address())
    execute(f"CREATE TABLE {schema}.t (n int)")
    engine = PostgresEngine("env:TACIT_TEST_ADDRESS", salt=1)
    assert [one.name for one in engine.describe(source(f"{schema}.t"))] == ["n"]
    assert repr(engine) == "PostgresEngine('env:TACIT_TEST_ADDRESS')"
    engine.close()


def test_a_database_in_another_encoding_is_refused() -> None:
    name = f"latin_{os.getpid()}"
    execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    place = postgres_server.place().replace("/postgres?", f"/{name}?")
    with pytest.raises(EngineFailed, match="UTF8"):
        PostgresEngine(place, salt=1).describe(Source("postgres", place, "t"))


TYPES = {
    "int2": Kind.INTEGER,
    "int4": Kind.INTEGER,
    "int8": Kind.INTEGER,
    "numeric": Kind.REAL,
    "numeric(18)": Kind.INTEGER,
    "numeric(19)": Kind.REAL,
    "numeric(12, 2)": Kind.REAL,
    "float4": Kind.REAL,
    "float8": Kind.REAL,
    "text": Kind.TEXT,
    "varchar(20)": Kind.TEXT,
    "char(4)": Kind.TEXT,
    "uuid": Kind.TEXT,
    "bool": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.TIME,
    "timestamptz(3)": Kind.TIME,
    "json": None,
    "bytea": None,
    "int[]": None,
    "interval": None,
    "time": None,
}


def test_types_become_kinds(engine: PostgresEngine, schema: str) -> None:
    fields = ", ".join(f"c{number} {name}" for number, name in enumerate(TYPES))
    execute(
        f"CREATE TYPE {schema}.mood AS ENUM ('fine', 'bad')",
        f"CREATE DOMAIN {schema}.age AS int CHECK (VALUE >= 0)",
        f"CREATE TABLE {schema}.t ({fields}, mood {schema}.mood, age {schema}.age)",
    )
    found = engine.describe(source(f"{schema}.t"))
    assert [one.kind for one in found] == [*TYPES.values(), Kind.TEXT, Kind.INTEGER]
    assert found[-2].type == f"{schema}.mood"
    assert kind_of("numeric", -1, is_enum=False) is Kind.REAL


NASTY = {
    "int8": ["9223372036854775807", "-9223372036854775808", "0", None],
    "numeric": ["NaN", "1e400", "-1e400", "1e-400", "9223372036854775807.5", "-0.5", "2.5", None],
    "float4": ["NaN", "Infinity", "1e38", "1e-45", "-2.5", None],
    "float8": ["NaN", "-Infinity", "1e308", "5e-324", "9223372036854775808", "-9223372036854775808", "2.5", None],
    "text": ["", "12", "1e400", "nan", "2020-02-29", "9999-12-31 24:00:00", "infinity", "yes", "swordfish", None],
    "char(5)": ["12", "t", None],
    "bool": ["true", "false", None],
    "date": ["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "2024-02-29", None],
    "timestamp": [
        "infinity",
        "-infinity",
        "294276-12-31 23:59:59.999999",
        "4713-01-01 BC",
        "1969-12-31 23:59:59.5",
        None,
    ],
    "timestamptz": ["infinity", "2024-06-01 00:30:00+02", "294276-12-31 23:59:59.999999+00", None],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None],
    "json": ['{"a": 1}', None],
}
PYTHON = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.REAL: float,
    Kind.TEXT: str,
    Kind.DATE: date,
    Kind.TIME: datetime,
}


@pytest.mark.parametrize("type_", NASTY)
def test_every_type_is_shown_as_every_kind_and_no_value_fails(engine: PostgresEngine, schema: str, type_: str) -> None:
    values = ", ".join("(NULL)" if one is None else f"('{one}'::{type_})" for one in NASTY[type_])
    execute(f"CREATE TABLE {schema}.t AS SELECT v FROM (VALUES {values}) AS t(v)")
    for kind in Kind:
        engine.register(Table("t", (Column("v", kind),)), source(f"{schema}.t"), {})
        found = [value for (value,) in rows(engine, "SELECT v FROM tacit_data.t")]
        assert len(found) == len(NASTY[type_])
        for value in found:
            plain = value.item() if hasattr(value, "item") else value
            assert plain is None or (isinstance(plain, PYTHON[kind]) and plain == plain)


def test_values_are_what_they_mean(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE TABLE {schema}.t (a numeric, b timestamptz, c date, d text)",
        f"INSERT INTO {schema}.t VALUES (2.0, '2024-06-01 00:30:00+02', 'infinity', 'x')",
        f"INSERT INTO {schema}.t VALUES (2.5, NULL, NULL, NULL)",
    )
    table = Table(
        "t", (Column("A", Kind.INTEGER), Column("b", Kind.TIME), Column("c", Kind.DATE), Column("d", Kind.REAL))
    )
    engine.register(table, source(f"{schema}.t"), {})
    assert rows(engine, "SELECT a, b, c, d FROM tacit_data.t") == [
        (2, datetime(2024, 5, 31, 22, 30), date(9999, 12, 31), None),
        (None, None, None, None),
    ]


def test_an_offset_in_a_text_counts_as_in_duckdb(engine: PostgresEngine, schema: str) -> None:
    texts = ["2024-06-01 00:30:00+02", "2024-06-01 00:30:00Z", "2024-06-01T00:30-05:30", "2024-06-01", "no"]
    texts += ["2024-06-01 00:30"]
    listed = ", ".join(f"({place}, '{one}')" for place, one in enumerate(texts))
    execute(f"CREATE TABLE {schema}.t AS SELECT * FROM (VALUES {listed}) AS v(i, t)")
    engine.register(Table("t", (Column("i", Kind.INTEGER), Column("t", Kind.TIME))), source(f"{schema}.t"), {})
    assert [value for _, value in sorted(rows(engine, "SELECT i, t FROM tacit_data.t"))] == [
        datetime(2024, 5, 31, 22, 30),
        datetime(2024, 6, 1, 0, 30),
        datetime(2024, 6, 1, 6, 0),
        datetime(2024, 6, 1),
        None,
        datetime(2024, 6, 1, 0, 30),
    ]


def test_names_are_found_as_postgres_reads_them(engine: PostgresEngine, schema: str) -> None:
    execute(f'CREATE TABLE {schema}."Odd ""Name"".%s" ("Big Col%%" int)', f"CREATE TABLE {schema}.plain (n int)")
    assert engine.describe(source(f'{schema}."Odd ""Name"".%s"'))[0].name == "Big Col%%"
    assert engine.describe(source(f"{schema.upper()}.PLAIN"))[0].name == "n"
    with pytest.raises(SourceMissing, match="no table"):
        engine.describe(source(f'{schema}."PLAIN"'))
    for wrong in ("", "a.b.c", 'a."b', "a..b"):
        with pytest.raises(InvalidInput):
            engine.describe(source(wrong))
    with pytest.raises(InvalidInput):
        engine.describe(Source("csv", postgres_server.place(), "plain"))


def test_percent_signs_and_quotes_in_names_and_texts_stay_what_they_are(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"""CREATE TABLE {schema}."50%(salt)s" ("per % cent" text)""",
        f"""INSERT INTO {schema}."50%(salt)s" VALUES ('100%'), ('%(salt)s'), ('a''b'), ('a\\b')""",
    )
    table = Table('The "100%" table', (Column("per % cent", Kind.TEXT),))
    engine.register(table, source(f'{schema}."50%(salt)s"'), {})
    assert engine.refresh(table.name)
    name = 'tacit_data."The ""100%"" table"'
    for text in ("100%", "%(salt)s", "a''b", "a\\b"):
        assert len(rows(engine, f"""SELECT "per % cent" FROM {name} WHERE "per % cent" = '{text}'""")) == 1
    assert len(rows(engine, f"""SELECT "per % cent" FROM {name} WHERE "per % cent" LIKE '%\\%'""")) == 1


def test_order_is_that_of_bytes_whatever_the_collation(engine: PostgresEngine, schema: str) -> None:
    execute(
        f'CREATE TABLE {schema}.t (s text COLLATE "POSIX", r text COLLATE "ucs_basic")',
        f"INSERT INTO {schema}.t VALUES ('a', 'a'), ('A', 'a'), ('á', 'z'), ('b', 'á')",
    )
    engine.register(Table("t", (Column("s", Kind.TEXT), Column("r", Kind.TEXT))), source(f"{schema}.t"), {})
    assert len(rows(engine, "SELECT s, COUNT(*) AS n FROM tacit_data.t GROUP BY s")) == 4
    assert rows(engine, "SELECT COUNT(DISTINCT s) AS n, MIN(s) AS a, MAX(s) AS b FROM tacit_data.t") == [(4, "A", "á")]
    assert rows(engine, "SELECT COUNT(*) AS n FROM tacit_data.t WHERE s > 'a'") == [(2,)]
    assert rows(engine, "SELECT COUNT(*) AS n FROM tacit_data.t WHERE s < r") == [(2,)]  # both collations at once
    assert rows(engine, "SELECT COUNT(*) AS n FROM tacit_data.t WHERE s = r AND GREATEST(s, r) = s") == [(1,)]


def test_a_view_and_a_partitioned_table_are_tables_too(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE TABLE {schema}.p (u int, n int) PARTITION BY RANGE (n)",
        f"CREATE TABLE {schema}.p1 PARTITION OF {schema}.p FOR VALUES FROM (0) TO (10)",
        f"CREATE TABLE {schema}.p2 PARTITION OF {schema}.p FOR VALUES FROM (10) TO (20)",
        f"INSERT INTO {schema}.p SELECT i % 3, i FROM generate_series(0, 19) AS i",
        f"CREATE VIEW {schema}.v AS SELECT u, n AS n FROM {schema}.p WHERE n > 4",
    )
    for name, count in (("p", 20), ("v", 15)):
        table = Table(name, (Column("u", Kind.INTEGER), Column("n", Kind.INTEGER)), Unit("u"))
        engine.register(table, source(f"{schema}.{name}"), {})
        assert rows(engine, f"SELECT COUNT(*) AS n FROM tacit_data.{name}") == [(count,)]
        first = engine.refresh(name)
        assert engine.refresh(name) == first
        execute(f"INSERT INTO {schema}.p2 VALUES (1, 11)")
        assert engine.refresh(name) != first
        execute(f"DELETE FROM {schema}.p2 WHERE ctid = (SELECT max(ctid) FROM {schema}.p2)")


def test_which_rows_stay_depends_on_the_salt(schema: str) -> None:
    execute(f"CREATE TABLE {schema}.t AS SELECT i % 4 AS u, i AS n FROM generate_series(1, 80) AS i")
    table = Table("t", (Column("u", Kind.INTEGER), Column("n", Kind.INTEGER)), Unit("u"), Limits(rows_per_unit=5))
    kept = set()
    for salt in (0, 1, 2, 2**62 - 1):
        engine = PostgresEngine(postgres_server.place(), salt)
        engine.register(table, source(f"{schema}.t"), {})
        kept.add(tuple(sorted(rows(engine, "SELECT u, n FROM tacit_data.t"))))
        assert str(2**62 - 1) not in engine.write(sqlglot.parse_one("SELECT n FROM tacit_data.t", dialect="duckdb"))  # type: ignore[arg-type]
        engine.close()
    assert len(kept) == 4
    assert {len(one) for one in kept} == {20}


def test_null_groups_are_chosen_by_the_salt_as_others_are(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE TABLE {schema}.t AS SELECT u, nullif(k, 0) AS k "
        "FROM generate_series(1, 400) AS u, generate_series(0, 3) AS k"
    )
    engine.register(
        Table("t", (Column("u", Kind.INTEGER), Column("k", Kind.INTEGER)), Unit("u")), source(f"{schema}.t"), {}
    )
    first = (
        "SELECT COUNT(*) AS n FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY u ORDER BY hash(u, k, $salt)) AS place "
        "FROM tacit_data.t) AS p WHERE place = 1 AND k IS NULL"
    )
    counts = [rows(engine, first, salt=salt)[0][0] for salt in range(20)]
    # 8000 fair choices with a chance of 1/4 lie outside of these with a chance below 1e-9.
    assert 1750 < sum(counts) < 2250
    assert len(set(counts)) > 5


def test_what_has_no_form_is_refused_and_not_guessed(engine: PostgresEngine) -> None:
    for sql in ("SELECT list_sort([1])", "SELECT approx_quantile(n, 0.5) FROM tacit_data.t", "SELECT 'a' || chr(0)"):
        with pytest.raises(EngineFailed):
            engine.write(sqlglot.parse_one(sql, dialect="duckdb"))  # type: ignore[arg-type]
    with pytest.raises(EngineFailed, match="NUL"):
        engine.write(sqlglot.exp.select(sqlglot.exp.Literal.string("a\0b")))


def test_several_threads_have_connections_of_their_own(engine: PostgresEngine, schema: str) -> None:
    execute(f"CREATE TABLE {schema}.t AS SELECT i AS n FROM generate_series(1, 100) AS i")
    engine.register(Table("t", (Column("n", Kind.INTEGER),)), source(f"{schema}.t"), {})
    found: list[Any] = []

    def ask() -> None:
        for _ in range(5):
            engine.refresh("t")
            found.extend(rows(engine, "SELECT SUM(n) AS s FROM tacit_data.t"))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(5050,)] * 30


def test_after_close_the_engine_can_be_used_again_and_holds_no_table(engine: PostgresEngine, schema: str) -> None:
    execute(f"CREATE TABLE {schema}.t AS SELECT 1.5::float8 AS n")
    engine.register(Table("t", (Column("n", Kind.REAL),)), source(f"{schema}.t"), {})
    engine.refresh("t")
    engine.close()
    with pytest.raises(NotInCatalog):
        engine.refresh("t")
    assert [one.kind for one in engine.describe(source(f"{schema}.t"))] == [Kind.REAL]


def test_sums_of_every_size_are_whole_and_reals_are_doubles(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE TABLE {schema}.t AS SELECT 9223372036854775807 AS n, 'inf'::float8 AS r FROM generate_series(1, 3)"
    )
    engine.register(Table("t", (Column("n", Kind.INTEGER), Column("r", Kind.REAL))), source(f"{schema}.t"), {})
    ((whole, real),) = rows(engine, "SELECT SUM(n) AS n, MAX(r) AS r FROM tacit_data.t")
    assert (whole, real) == (3 * (2**63 - 1), math.inf)
    assert type(whole) is int


@pytest.mark.parametrize(
    ("shown", "guarded"),
    [("numeric(15,2)", False), ("numeric", True), ("numeric(3,400)", True), ("numeric(3,-2)", True)],
)
def test_decimals_that_fit_into_a_double_are_cast_without_looking_at_their_size(shown: str, guarded: bool) -> None:
    assert ("CASE" in cast("x", "numeric", Kind.REAL, shown)) is guarded


@pytest.mark.parametrize("join", ["", " JOIN tacit_data.t AS c ON c.n > v.n"], ids=["alone", "joined"])
@pytest.mark.parametrize(
    ("type_name", "kind", "read"),
    [
        ("text", Kind.TEXT, "octet_length"),
        ("jsonb", Kind.TEXT, "pg_column_size"),
        ("numeric", Kind.REAL, "abs"),
        ("numeric", Kind.TEXT, "trim_scale"),
    ],
)
def test_a_value_that_may_be_large_is_read_once_wherever_and_however_often_it_is_named(
    schema: str, engine: PostgresEngine, join: str, type_name: str, kind: Kind, read: str
) -> None:
    """The server's own plan shows it: reading it at every name would take as often as long, for each joined row."""
    execute(f"CREATE TABLE {schema}.t (id bigint, n bigint, s {type_name}, k {type_name})")
    columns = (Column("id", Kind.INTEGER), Column("n", Kind.INTEGER), Column("s", kind), Column("k", kind))
    engine.register(Table("t", columns, Unit("id")), Source("postgres", postgres_server.place(), f"{schema}.t"), {})
    named = ", ".join(f"SUM(CASE WHEN v.s IS NULL OR v.n > {one} THEN 1 ELSE 0 END) AS c{one}" for one in range(5))
    tree = sqlglot.parse_one(f"SELECT {named} FROM tacit_data.t AS v{join}", dialect="duckdb")
    assert isinstance(tree, exp.Query)
    plan = [row[0] for row in execute("EXPLAIN (VERBOSE, COSTS OFF) " + engine.write(tree))]
    scan = next(place for place, line in enumerate(plan) if line.endswith(f"Seq Scan on {schema}.t s"))
    assert f"{read}(s.s)" in plan[scan + 1], "rows leave the scan with values that are not read"
    assert f"{read}(s.k)" not in "".join(plan), "a value that nobody reads is read"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("repeat('a', 5000000)::text", None),
        ("repeat('a', 400)::text", f'"{"a" * 400}"'),
        ("(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100) AS i)", "an uncompressed text"),
    ],
)
def test_a_value_that_is_large_before_it_was_compressed_is_null(
    schema: str, engine: PostgresEngine, value: str, shown: str | None
) -> None:
    """The stored size of five million equal letters is 57 kB, and writing them as a text takes milliseconds."""
    execute(f"CREATE TABLE {schema}.t (id bigint, s jsonb)")
    execute(f"INSERT INTO {schema}.t SELECT 1, to_jsonb({value})")
    columns = Column("id", Kind.INTEGER), Column("s", Kind.TEXT)
    engine.register(Table("t", columns, Unit("id")), source(f"{schema}.t"), {})
    ((found,),) = rows(engine, "SELECT s FROM tacit_data.t")
    if shown == "an uncompressed text":
        assert len(found) == 3202
    else:
        assert found == shown


def test_numbers_of_any_precision_are_rounded_or_null_where_they_have_too_many_digits(
    schema: str, engine: PostgresEngine
) -> None:
    execute(f"CREATE TABLE {schema}.t (id bigint, r numeric, s numeric)")
    for place, value in enumerate(
        ("1.5", "('1.' || repeat('3', 16000))", "repeat('9', 100000)", "('-0.' || repeat('0', 500) || '1')")
    ):
        execute(f"INSERT INTO {schema}.t SELECT {place}, ({value})::numeric, ({value})::numeric")
    columns = Column("id", Kind.INTEGER), Column("r", Kind.REAL), Column("s", Kind.TEXT)
    engine.register(Table("t", columns, Unit("id")), source(f"{schema}.t"), {})
    found = rows(engine, "SELECT r, s FROM tacit_data.t ORDER BY id")
    assert found == [(1.5, "1.5"), (4 / 3, None), (math.inf, None), (0.0, f"-0.{'0' * 500}1")]
