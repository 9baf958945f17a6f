"""Values of PostgreSQL: no two people become one, no row makes a question fail, and equal texts are equal bytes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlglot

from tacit.curator.registration import table_of
from tacit.engines import PostgresEngine, Source
from tacit.engines.dialects.postgres.casts import try_cast
from tacit.engines.dialects.postgres.typed_sql import PostgresType, Value, finish_statement
from tacit.engines.protocol import FAILED, UNIT, SourceColumn
from tacit.privacy.errors import EngineFailed, InvalidInput, NoAccess
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit
from tests.support import postgres_server
from tests.support.postgres_server import execute

NUMBERS = itertools.count()
N = Column("n", Kind.INTEGER)


@pytest.fixture
def schema() -> Iterator[str]:
    name = f"values_{os.getpid()}_{next(NUMBERS)}"
    execute(f"CREATE SCHEMA {name}")
    yield name
    execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres_server.place(), salt=1)
    yield made
    made.close()


def source(table: str) -> Source:
    return Source("postgres", postgres_server.place(), table)


def rows(engine: PostgresEngine, sql: str) -> list[tuple[Any, ...]]:
    tree: Any = sqlglot.parse_one(sql, dialect="duckdb")
    columns = engine.run(engine.write(tree))
    return sorted(zip(*(list(one) for one in columns.values()), strict=True), key=repr)


def units(engine: PostgresEngine) -> int:
    return int(rows(engine, f"SELECT COUNT(DISTINCT {UNIT}) AS c FROM tacit_data.t")[0][0])


IDS = {
    "numeric(20)": ["90071992547409930001", "90071992547409930002"],
    "numeric": ["1.000000000000000000001", "1.000000000000000000002", "1"],
    "int8": ["9007199254740992", "9007199254740993"],
    "float4": ["0.1", "0.2"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"],
    "bytea": [r"\\x00", r"\\x0000"],
    "money": ["1.01", "1.02"],
    "timestamp": ["infinity", "294276-12-31 00:00:00", "294276-12-30 00:00:00", "9999-12-31 23:59:59.999999"],
    "timestamptz": ["infinity", "-infinity", "10000-01-01 00:00:00+00", "0001-01-01 00:00:00+00"],
    "date": ["infinity", "5874897-12-31", "5874897-12-30", "9999-12-31"],
    "text": ["1.4", "1.3", "1e0", "a", "A", "a "],
    "varchar(9)": ["1.4", "1.3"],
    "char(4)": ["a", "b"],
    "inet": ["10.0.0.1", "10.0.0.1/8"],
}


@pytest.mark.parametrize("type_", IDS)
@pytest.mark.parametrize("kind", [None, *Kind])
def test_ids_that_differ_stay_different_or_are_refused_or_left_out(
    engine: PostgresEngine, schema: str, type_: str, kind: Kind | None
) -> None:
    values = ", ".join(f"({number}, E'{one}'::{type_})" for number, one in enumerate(IDS[type_]))
    execute(f"CREATE TABLE {schema}.t AS SELECT * FROM (VALUES {values}) AS v(n, id)")
    found = {one.name: one.kind for one in engine.describe(source(f"{schema}.t"))}
    shown = kind or found["id"]
    if shown is None:
        return
    table = Table("t", (Column("id", shown), N), Unit("id"))
    try:
        engine.register(table, source(f"{schema}.t"), {})
    except InvalidInput:
        with pytest.raises(InvalidInput, match="identifies units"):
            engine.register(table, source(f"{schema}.t"), {})
        return
    counted = int(rows(engine, "SELECT COUNT(*) AS c FROM tacit_data.t")[0][0])
    assert units(engine) == counted
    if kind in (None, Kind.TEXT):  # of dates and times those outside of the years 1 to 9999 are left out
        assert counted == (1 if shown in (Kind.DATE, Kind.TIME) else len(IDS[type_]))


def test_numbers_that_are_equal_are_one_unit_however_they_are_written(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE TABLE {schema}.t (id numeric, n int)",
        f"INSERT INTO {schema}.t VALUES (1.5, 1), (1.50, 2), (1.500, 3), ('NaN', 4)",
    )
    engine.register(Table("t", (Column("id", Kind.TEXT), N), Unit("id")), source(f"{schema}.t"), {})
    assert rows(engine, f"SELECT {UNIT}, COUNT(*) AS c FROM tacit_data.t GROUP BY {UNIT}") == [("1.5", 3)]


EQUAL = {
    "bpchar": ("a", "a  "),
    "numeric": ("1.5", "1.500", "1.50"),
    "float8": ("0", "-0"),
    "interval": ("1 month", "30 days", "720 hours"),
    "timetz": ("10:00+02", "08:00+00"),
    "timestamptz": ("2024-01-01 10:00+02", "2024-01-01 08:00+00"),
    "jsonb": ("1.0", "1.00"),
    "json": ("[1]", "[ 1]"),
    "inet": ("10.0.0.1", "10.0.0.1/32"),
    "macaddr": ("08:00:2b:01:02:03", "08-00-2B-01-02-03"),
    "money": ("1", "1.00"),
    "bit(2)": ("10", "01"),
    "int4range": ("[1,3)", "[1,2]"),
    "numeric[]": ("{1.0}", "{1.00}"),
    "float8[]": ("{0}", "{-0}"),
    "date": ("infinity", "5000000-01-01"),
}


@pytest.mark.parametrize("type_", EQUAL)
def test_values_that_the_database_holds_equal_are_the_same_bytes_or_not_equal(
    engine: PostgresEngine, schema: str, type_: str
) -> None:
    """Which of two equal values MIN, DISTINCT or a group keeps is decided by chance: nothing may tell them apart."""
    written = ", ".join(f"({place}, '{one}')" for place, one in enumerate(EQUAL[type_]))
    execute(f"CREATE TABLE {schema}.t (id int, s {type_})", f"INSERT INTO {schema}.t VALUES {written}")
    engine.register(
        Table("t", (Column("id", Kind.INTEGER), Column("s", Kind.TEXT)), Unit("id")), source(f"{schema}.t"), {}
    )
    shown = {one for (one,) in rows(engine, "SELECT s FROM tacit_data.t")}
    assert None not in shown
    assert {one for (one,) in rows(engine, "SELECT DISTINCT s FROM tacit_data.t")} == shown
    equal = "SELECT a.s AS x, b.s AS y FROM tacit_data.t AS a JOIN tacit_data.t AS b ON a.s = b.s"
    assert all(one == other for one, other in rows(engine, equal))


def nondeterministic(schema: str) -> str:
    try:
        execute(
            f"CREATE COLLATION {schema}.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            f"SELECT 'a' COLLATE {schema}.ci = 'A'",
        )
    except Exception:
        pytest.skip("this server was built without ICU")
    return f"text COLLATE {schema}.ci"


def citext(schema: str) -> str:
    """Make the type that the extension citext makes, which this server does not bring."""
    name = f"{schema}.citext"
    execute(
        f"CREATE TYPE {name}",
        f"CREATE FUNCTION {schema}.citextin(cstring) RETURNS {name} AS 'textin' LANGUAGE internal IMMUTABLE STRICT",
        f"CREATE FUNCTION {schema}.citextout({name}) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE STRICT",
        f"CREATE TYPE {name} (INPUT = {schema}.citextin, OUTPUT = {schema}.citextout, LIKE = text, CATEGORY = 'S', "
        "COLLATABLE = true)",
        f"CREATE CAST ({name} AS text) WITHOUT FUNCTION AS IMPLICIT",
        f"CREATE CAST (text AS {name}) WITHOUT FUNCTION AS ASSIGNMENT",
        f"CREATE FUNCTION {schema}.eq({name}, {name}) RETURNS bool AS 'SELECT lower($1::text) = lower($2::text)' "
        "LANGUAGE sql IMMUTABLE STRICT",
        f"CREATE OPERATOR {schema}.= (LEFTARG = {name}, RIGHTARG = {name}, FUNCTION = {schema}.eq)",
    )
    return name


@pytest.mark.parametrize("made", [nondeterministic, citext])
def test_texts_are_compared_by_their_bytes_whatever_their_collation(
    engine: PostgresEngine, schema: str, made: Any
) -> None:
    type_ = made(schema)
    execute(
        f"CREATE TABLE {schema}.t (id int, s {type_}, r {type_})",
        f"INSERT INTO {schema}.t VALUES (1, 'a', 'A'), (2, 'A', 'A'), (3, 'b', 'B'), (4, 'B', 'b')",
    )
    columns = (Column("id", Kind.INTEGER), Column("s", Kind.TEXT), Column("r", Kind.TEXT))
    engine.register(Table("t", columns, Unit("id")), source(f"{schema}.t"), {})
    assert len(rows(engine, "SELECT s, COUNT(*) AS c FROM tacit_data.t GROUP BY s")) == 4
    assert len(rows(engine, "SELECT DISTINCT s FROM tacit_data.t")) == 4
    assert rows(engine, "SELECT COUNT(DISTINCT s) AS c, MIN(s) AS a, MAX(s) AS b FROM tacit_data.t") == [(4, "A", "b")]
    for condition, count in {
        "s = 'a'": 1,
        "s = r": 1,
        "s <> r": 3,
        "s IN ('a', 'b')": 2,
        "s < 'a'": 2,
        "s LIKE 'a%'": 1,
        "s ILIKE 'a%'": 2,
        "STARTS_WITH(s, 'a')": 1,
        "STARTS_WITH(s, r)": 1,
        "ENDS_WITH(s, r)": 1,
        "CONTAINS(s, 'B')": 1,
        "STRPOS(s, r) > 0": 1,
        "s IS NOT DISTINCT FROM r": 1,
        "NULLIF(s, r) IS NULL": 1,
        "GREATEST(s, r) = s": 3,
        "CASE WHEN s = r THEN 1 ELSE 0 END = 1": 1,
        "COALESCE(s, r) = UPPER(s)": 2,
        "s || r = 'aA'": 1,
    }.items():
        assert rows(engine, f"SELECT COUNT(*) AS c FROM tacit_data.t WHERE {condition}") == [(count,)], condition
    joined = "SELECT COUNT(*) AS c FROM tacit_data.t AS x JOIN tacit_data.t AS y ON x.s = y.s"
    assert rows(engine, joined) == [(4,)]
    ranked = "SELECT id, ROW_NUMBER() OVER (PARTITION BY s ORDER BY r) AS c FROM tacit_data.t"
    assert {place for _, place in rows(engine, ranked)} == {1}
    key = Table("t", columns, Unit("s"))
    with pytest.raises(InvalidInput, match="compares different texts in it as equal"):
        engine.register(key, source(f"{schema}.t"), {})


def test_a_name_in_another_case_is_not_taken_for_the_one_that_is_there(engine: PostgresEngine, schema: str) -> None:
    execute(f'CREATE TABLE {schema}.t (id int, "ID" int, n int)', f"INSERT INTO {schema}.t VALUES (7, 1, 1), (7, 2, 2)")
    for name, found in (("ID", 2), ("id", 1)):
        engine.register(Table("t", (Column(name, Kind.INTEGER), N), Unit(name)), source(f"{schema}.t"), {})
        assert units(engine) == found
        engine.refresh("t")
        assert units(engine) == found
    with pytest.raises(InvalidInput, match="different cases"):
        engine.register(Table("t", (Column("Id", Kind.INTEGER), N), Unit("Id")), source(f"{schema}.t"), {})


def test_a_unit_is_found_by_its_exact_name_and_an_ambiguous_one_is_refused() -> None:
    both = [
        SourceColumn("ID", Kind.INTEGER, "int"),
        SourceColumn("id", None, "json"),
        SourceColumn("n", Kind.INTEGER, "int"),
    ]
    table = table_of("t", both, unit="ID")
    assert table.unit is not None
    assert table.unit.column == "ID"
    with pytest.raises(InvalidInput):
        table_of("t", both, unit="id")  # it is there, and cannot be used
    with pytest.raises(InvalidInput, match="several columns"):
        table_of("t", both, unit="Id")
    assert table_of("t", [SourceColumn("ID", Kind.INTEGER, "int")], unit="id").unit == Unit("ID")


def clinic(schema: str, parent: str = "people") -> tuple[Table, Table]:
    people = Table("people", (Column("id", Kind.INTEGER), Column("who", Kind.INTEGER)), Unit("who"))
    through = Unit("who", (ForeignKey("person", "people", "id"),))
    return people, Table("visits", (Column("person", Kind.INTEGER), N), through)


@pytest.mark.parametrize(
    "made",
    [
        ("CREATE TABLE {0}.people (id int PRIMARY KEY, who int)", "CREATE TABLE {0}.more () INHERITS ({0}.people)"),
        (
            "CREATE TABLE {0}.people (id int, who int)",
            "CREATE UNIQUE INDEX ON {0}.people (id) WHERE who < 100",
            "CREATE TABLE {0}.more () INHERITS ({0}.people)",
        ),
        (
            "CREATE TABLE {0}.people (id int, who int)",
            "CREATE UNIQUE INDEX ON {0}.people ((id + who))",
            "CREATE TABLE {0}.more () INHERITS ({0}.people)",
        ),
    ],
)
def test_an_index_is_trusted_only_if_it_keeps_all_rows_apart(
    engine: PostgresEngine, schema: str, made: tuple[str, ...]
) -> None:
    execute(
        *(one.format(schema) for one in made),
        f"INSERT INTO {schema}.people VALUES (1, 1), (2, 2)",
        f"INSERT INTO {schema}.more VALUES (1, 3), (1, 4)",
        f"CREATE TABLE {schema}.visits AS SELECT 1 AS person, i AS n FROM generate_series(1, 100) AS i",
    )
    people, visits = clinic(schema)
    engine.register(people, source(f"{schema}.people"), {})
    with pytest.raises(InvalidInput, match="not unique"):
        engine.register(visits, source(f"{schema}.visits"), {"people": people})


def test_an_index_over_partitions_keeps_rows_apart(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE TABLE {schema}.people (id int PRIMARY KEY, who int) PARTITION BY RANGE (id)",
        f"CREATE TABLE {schema}.low PARTITION OF {schema}.people FOR VALUES FROM (0) TO (10)",
        f"INSERT INTO {schema}.people VALUES (1, 1)",
        f"CREATE TABLE {schema}.visits AS SELECT 1 AS person, i AS n FROM generate_series(1, 100) AS i",
    )
    people, visits = clinic(schema)
    engine.register(people, source(f"{schema}.people"), {})
    engine.register(visits, source(f"{schema}.visits"), {"people": people})
    assert rows(engine, "SELECT COUNT(*) AS c FROM tacit_data.visits") == [(100,)]


FAILING = [
    ("CREATE VIEW {0}.t AS SELECT id, 1 / n AS n FROM {0}.base",),
    ("CREATE VIEW {0}.t AS SELECT id, s::int AS n FROM {0}.base",),
    ("CREATE VIEW {0}.t AS SELECT id, n + 2147483647 AS n FROM {0}.base",),
    ("CREATE VIEW {0}.t AS SELECT id, n FROM {0}.base WHERE 1 / n > 0",),
    ("CREATE VIEW {0}.t AS SELECT id, (random() * n)::int AS n FROM {0}.base",),
    ("CREATE VIEW {0}.t AS SELECT id, n FROM {0}.base WHERE random() < 0.5",),
    ("CREATE VIEW {0}.t AS SELECT id, (SELECT n FROM {0}.base) AS n FROM {0}.base",),
    ("CREATE VIEW {0}.inner AS SELECT id, 1 / n AS n FROM {0}.base", "CREATE VIEW {0}.t AS SELECT * FROM {0}.inner"),
    (
        "CREATE TABLE {0}.wide (id int, n0 int, n int GENERATED ALWAYS AS (1 / n0) VIRTUAL)",
        "INSERT INTO {0}.wide VALUES (1, 1), (2, 0)",
        "CREATE VIEW {0}.t AS SELECT id, n FROM {0}.wide",
    ),
    (
        "CREATE TABLE {0}.t (id int, n0 int, n int GENERATED ALWAYS AS (1 / n0) VIRTUAL)",
        "INSERT INTO {0}.t VALUES (1, 1), (2, 0)",
    ),
]


@pytest.mark.parametrize("made", FAILING)
def test_what_may_fail_for_a_row_or_differ_each_time_is_refused_when_it_is_registered(
    engine: PostgresEngine, schema: str, made: tuple[str, ...]
) -> None:
    execute(
        f"CREATE TABLE {schema}.base (id int, n int, s text)",
        f"INSERT INTO {schema}.base VALUES (1, 1, '1'), (2, 0, 'x')",
        *(one.format(schema) for one in made),
    )
    with pytest.raises(InvalidInput, match="fail for"):
        engine.register(Table("t", (Column("id", Kind.INTEGER), N), Unit("id")), source(f"{schema}.t"), {})


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW {0}.t AS SELECT id, n FROM {0}.base WHERE s IN ('x', '1') AND n IS NOT NULL AND id <> 9",
        "CREATE VIEW {0}.t AS SELECT b.id, coalesce(b.n, 0) AS n FROM {0}.base b WHERE b.id <> 7",
        "CREATE VIEW {0}.t AS SELECT id, CASE WHEN s = 'x' THEN 1 ELSE n END AS n FROM {0}.base UNION ALL "
        "SELECT id, n FROM {0}.base WHERE id = 3",
        "CREATE MATERIALIZED VIEW {0}.t AS SELECT id, n + 1 AS n FROM {0}.base",
        "CREATE TABLE {0}.t (id int, n int, m int GENERATED ALWAYS AS (1 / n) VIRTUAL);"
        "INSERT INTO {0}.t VALUES (1, 0), (2, 0)",
        "CREATE DOMAIN {0}.d AS int CHECK (1 / VALUE > -9); CREATE DOMAIN {0}.e AS {0}.d;"
        "CREATE TABLE {0}.t (id {0}.e, n int); INSERT INTO {0}.t VALUES (1, 1), (2, 2)",
    ],
)
def test_what_cannot_fail_is_a_table(engine: PostgresEngine, schema: str, made: str) -> None:
    execute(
        f"CREATE TABLE {schema}.base (id int, n int, s varchar(9))",
        f"INSERT INTO {schema}.base VALUES (1, 1, '1'), (2, 0, 'x')",
        *made.format(schema).split(";"),
    )
    engine.register(Table("t", (Column("id", Kind.INTEGER), N), Unit("id")), source(f"{schema}.t"), {})
    assert units(engine) == 2


def test_a_table_whose_policies_hide_rows_is_refused(schema: str) -> None:
    role = f"policed_{schema}"
    execute(
        f"CREATE TABLE {schema}.t (id int, n int)",
        f"INSERT INTO {schema}.t VALUES (1, 1), (2, 2)",
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON {schema}.t TO {role}",
        f"CREATE POLICY p ON {schema}.t USING (1 / (n - 2) < 9)",
    )
    engine = PostgresEngine(postgres_server.place().replace("postgres@", f"{role}@"), salt=1)
    table = Table("t", (Column("id", Kind.INTEGER), N), Unit("id"))
    try:
        engine.register(table, source(f"{schema}.t"), {})
        execute(f"ALTER TABLE {schema}.t ENABLE ROW LEVEL SECURITY")
        with pytest.raises(NoAccess, match="row-level security"):
            engine.register(table, source(f"{schema}.t"), {})
        with pytest.raises(EngineFailed) as caught:
            rows(engine, "SELECT COUNT(*) AS c FROM tacit_data.t")
        assert (type(caught.value), str(caught.value)) == (EngineFailed, FAILED)
    finally:
        engine.close()
        execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_foreign_table_is_refused(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE FOREIGN DATA WRAPPER w_{schema}",
        f"CREATE SERVER s_{schema} FOREIGN DATA WRAPPER w_{schema}",
        f"CREATE FOREIGN TABLE {schema}.t (id int, n int) SERVER s_{schema}",
        f"CREATE TABLE {schema}.p (id int, n int) PARTITION BY RANGE (id)",
        f"CREATE FOREIGN TABLE {schema}.q PARTITION OF {schema}.p FOR VALUES FROM (0) TO (9) SERVER s_{schema}",
        f"CREATE VIEW {schema}.v AS SELECT id, n FROM {schema}.t",
    )
    for name in "tpv":
        with pytest.raises(InvalidInput, match="foreign table"):
            engine.register(Table("t", (Column("id", Kind.INTEGER), N), Unit("id")), source(f"{schema}.{name}"), {})
    execute(f"DROP FOREIGN DATA WRAPPER w_{schema} CASCADE")


def test_texts_are_cut_and_units_that_long_are_left_out(engine: PostgresEngine, schema: str) -> None:
    execute(
        f"CREATE TABLE {schema}.t (id text, s text, n int)",
        f"INSERT INTO {schema}.t SELECT repeat('x', {TEXT_LENGTH_MAX}) || i, repeat('é', 10000), i "
        "FROM generate_series(1, 2) AS i",
        f"INSERT INTO {schema}.t VALUES ('a', repeat('é', 10000), 3)",
    )
    columns = (Column("id", Kind.TEXT), Column("s", Kind.TEXT), N)
    engine.register(Table("t", columns, Unit("id")), source(f"{schema}.t"), {})
    assert rows(engine, f"SELECT {UNIT}, LENGTH(s) AS c FROM tacit_data.t") == [("a", TEXT_LENGTH_MAX)]


MOMENTS = {
    "2024-02-29": "2024-02-29 00:00:00",
    "2023-02-29": None,
    "1900/2/29": None,
    "2000\\2\\29": "2000-02-29 00:00:00",
    "2024 1 9 7:5": "2024-01-09 07:05:00",
    "2024-01/09": None,
    "2024-01-09T23:59:59.9999999": "2024-01-09 23:59:59.999999",
    "2024-01-09 24:00:00.0": "2024-01-10 00:00:00",
    "2024-01-09 24:00:00.000001": None,
    "2024-01-09 10:20+05:30": "2024-01-09 10:20:00",
    "2024-01-09 10:20:30.5 -05": "2024-01-09 10:20:30.5",
    "2024-01-09 10:20:30.25UTC": "2024-01-09 10:20:30.25",
    "\t2024-01-09 1:2Z ": "2024-01-09 01:02:00",
    "12-1-1 (BC)": "-infinity",
    "-4-2-29": "-infinity",
    "-100-2-29": None,
    "10000-1-1": "infinity",
    "9999999-1-1": None,
    "Epoch": "1970-01-01 00:00:00",
    "-inf": "-infinity",
    "Infinity": "infinity",
    "2024-01-09 10:20:30." + "1" * 44: "2024-01-09 10:20:30.111111",
    "2024-01-09 10:20:30." + "1" * 45: None,
}
"""Texts and the times that they are, an offset aside; the last two have 64 and 65 characters."""


@pytest.mark.parametrize("is_aggregate", [False, True])
def test_a_text_is_a_time_by_its_parts(is_aggregate: bool) -> None:
    read = try_cast(
        Value("max(s)" if is_aggregate else "s", PostgresType.TEXT, is_movable=not is_aggregate), PostgresType.TIME
    ).sql
    query = f"SELECT s, ({finish_statement(read)})::text FROM unnest(%s::text[]) AS t(s)" + " GROUP BY s" * is_aggregate
    with psycopg.connect(postgres_server.address()) as connection:
        assert dict(connection.execute(query, [list(MOMENTS)]).fetchall()) == MOMENTS
