"""Small invented worlds: tables that share a unit, with rows as bad as rows come, and neighbours of those.

Everything follows from a seed. A world is held in DuckDB as an engine shows it, once for each data set: the whole one,
the same in another order, and neighbours that lack a unit or have other rows of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final

import duckdb
from sqlglot import exp

from tacit.engines.protocol import ROWS, SCHEMA, UNIT
from tacit.engines.relations import TYPES, declared_value
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import ForeignKey, Unit

SHUFFLED: Final = "shuffled"
OTHERS: Final = "others"
_VALUES: Final[dict[Kind, list[str]]] = {
    Kind.BOOLEAN: ["TRUE", "FALSE"],
    Kind.INTEGER: [
        *("0", "1", "2", "3", "3", "4", "5", "7", "8", "-1", "-3", "10", "12", "100", "121"),
        *("9223372036854775807", "-9223372036854775808", "9007199254740993", "4611686018427387904"),
    ],
    Kind.REAL: [
        *("'0'", "'1'", "'1.5'", "'2.25'", "'-2.5'", "'0.1'", "'4'", "'-0.0'", "'1e-300'", "'99.999'", "'1e17'"),
        *("'1e308'", "'-1e308'", "'nan'", "'inf'", "'-inf'", "'5e-324'", "'4503599627370497.5'"),
    ],
    Kind.TEXT: ["''", "'F'", "'M'", "'f'", "' F'", "'ß'", "'🙂'", "'e\u0301'", "'é'", "'it''s'", "'7'", "'2024-02-29'"],
    Kind.DATE: [
        *("'2024-01-01'", "'2024-01-02'", "'2024-02-29'", "'2024-03-01'", "'2023-12-31'", "'1969-12-31'"),
        *("'infinity'", "'-infinity'", "'0001-01-01'", "'10000-01-01'", "'0044-03-15 (BC)'"),
    ],
    Kind.TIME: [
        *("'2024-01-01'", "'2024-01-01 12:34:56.789'", "'2024-01-02 23:59:59.999999'", "'1969-12-31 23:00:00'"),
        *("'infinity'", "'-infinity'", "'9999-12-31 23:59:59.999999'", "'290309-12-22 (BC) 00:00:00'"),
    ],
}
_COLUMNS: Final = (
    Column("b", Kind.BOOLEAN),
    Column("i", Kind.INTEGER),
    Column("r", Kind.REAL),
    Column("s", Kind.TEXT),
    Column("d", Kind.DATE),
    Column("t", Kind.TIME),
    Column("age", Kind.INTEGER, Bounds(0, 7)),
    Column("debt", Kind.INTEGER, Bounds(-5, 10**9)),
    Column("must", Kind.INTEGER, Bounds(1, 12), nullable=False),
    Column("Größe", Kind.REAL, Bounds(-2.5, 3.75)),
    Column("order", Kind.REAL, Bounds(-1e9, 1e9)),
    Column("sex", Kind.TEXT, Categories(["F", "M"])),
    Column("grade", Kind.INTEGER, Categories([3, 1, None])),
    Column("flag", Kind.BOOLEAN, nullable=False),
    Column("day", Kind.DATE, Bounds(date(2023, 12, 31), date(2024, 1, 3))),
    Column("seen", Kind.TIME, Bounds(datetime(2024, 1, 1), datetime(2024, 1, 2))),
)


@dataclass
class Rows:
    """The rows of one table: the SQL of each value, the unit last if there is one; and other rows a unit might have."""

    table: Table
    rows: list[tuple[str, ...]]
    others: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)


@dataclass
class World:
    """Tables with rows; `units` from the one with most rows to the one with fewest."""

    seed: int
    schema: Schema
    tables: dict[str, Rows]
    units: list[str]
    unit_kind: Kind
    counted: bool
    """Whether the engine says how many rows a unit has."""
    lines: list[str] = field(default_factory=list)

    def load(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Hold the world in the engine's schema, in another order in SHUFFLED, and the other rows in OTHERS."""
        for name in (SCHEMA, SHUFFLED, OTHERS):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
        for held in self.tables.values():
            place = quoted(held.table.name)
            connection.execute(self._shown(held.table, held.rows, SCHEMA))
            whole = f"SELECT * FROM {SCHEMA}.{place} ORDER BY hash(rowid, {self.seed})"
            connection.execute(f"CREATE OR REPLACE TABLE {SHUFFLED}.{place} AS {whole}")
            if held.table.is_private:
                others = [row for rows in held.others.values() for row in rows]
                connection.execute(self._shown(held.table, others, OTHERS))

    def neighbour(self, connection: duckdb.DuckDBPyConnection, name: str, unit: str, *, replaced: bool) -> None:
        """Hold in a schema the world without a unit, or with other rows of it."""
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
        for held in self.tables.values():
            place = quoted(held.table.name)
            rows = f"SELECT * FROM {SCHEMA}.{place}"
            if held.table.is_private:
                rows += f" WHERE {UNIT} <> {unit}"
                rows += f" UNION ALL SELECT * FROM {OTHERS}.{place} WHERE {UNIT} = {unit}" if replaced else ""
            connection.execute(f"CREATE OR REPLACE TABLE {name}.{place} AS {rows}")

    def _shown(self, table: Table, rows: Sequence[tuple[str, ...]], name: str) -> str:
        """Return what an engine makes of rows: types, declared values, no more rows of a unit than the limit."""
        types = [TYPES[one.kind] for one in table.columns]
        types += [TYPES[self.unit_kind]] if table.is_private else []
        listed = ", ".join(f"({', '.join(row)})" for row in rows) or f"({', '.join(['NULL'] * len(types))})"
        raw = ", ".join(f"CAST(x{index} AS {kind}) AS x{index}" for index, kind in enumerate(types))
        source = f"(SELECT {raw} FROM (VALUES {listed}) AS v({', '.join(f'x{i}' for i in range(len(types)))})) AS w"
        items = [
            f"{declared_value(one, exp.column(f'x{index}')).sql('duckdb')} AS {quoted(one.name)}"
            for index, one in enumerate(table.columns)
        ]
        kept = [f"x{index} IS NOT NULL" for index, one in enumerate(table.columns) if not one.nullable]
        kept += ["FALSE"] if not rows else []
        where = f" WHERE {' AND '.join(kept)}" if kept else ""
        place = f"{name}.{quoted(table.name)}"
        if not table.is_private:
            return f"CREATE OR REPLACE TABLE {place} AS SELECT {', '.join(items)} FROM {source}{where}"
        own = f"x{len(table.columns)}"
        limit = table.limits.rows_per_unit or 10**6
        order = ", ".join(f"x{index}" for index in range(len(table.columns)))
        inner = (
            f"SELECT *, row_number() OVER (PARTITION BY {own} ORDER BY hash({order}), {order}) AS place, "
            f"COUNT(*) OVER (PARTITION BY {own}) AS n FROM {source}{where}"
        )
        count = f"LEAST(n, {limit})" if self.counted else "CAST(NULL AS BIGINT)"
        return (
            f"CREATE OR REPLACE TABLE {place} AS SELECT {', '.join(items)}, {own} AS {UNIT}, {count} AS {ROWS} "
            f"FROM ({inner}) AS l WHERE place <= {limit}"
        )


def world(seed: int) -> World:
    """Invent a world."""
    rng = random.Random(seed)
    unit_kind = rng.choice([Kind.INTEGER, Kind.INTEGER, Kind.TEXT])
    names = rng.sample(["'a'", "'b'", "'ü'", "''", "'7'", "'B'", "'c d'", "'it''s'"], rng.randint(3, 8))
    units = [str(number) for number in rng.sample(range(-1, 12), rng.randint(3, 12))]
    units = units if unit_kind is Kind.INTEGER else names
    tables: dict[str, Rows] = {}
    for index in range(rng.randint(1, 3)):
        held = _private(rng, f"p{index}", units, unit_kind, parent=tables.get("p0"))
        tables[held.table.name] = held
    for index in range(rng.randint(0, 2)):
        held = _public(rng, f"q{index}")
        tables[held.table.name] = held
    counts = {unit: sum(row[-1] == unit for one in tables.values() for row in one.rows) for unit in units}
    units.sort(key=lambda unit: -counts[unit])
    schema = Schema([held.table for held in tables.values()])
    return World(seed, schema, tables, units, unit_kind, rng.random() < 0.6)


def quoted(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _private(rng: random.Random, name: str, units: Sequence[str], unit_kind: Kind, parent: Rows | None) -> Rows:
    limits = Limits(rows_per_unit=rng.choice([None, None, 1, 2, 3, 5]))
    if rng.random() < 0.3:
        limits = replace(limits, groups_per_unit=rng.choice([None, 1, 2]), rows_per_group=rng.choice([None, 1, 3]))
    columns = list(rng.sample(_COLUMNS, rng.randint(4, 8)))
    leads = parent is not None and rng.random() < 0.3
    columns.insert(0, Column("visit", Kind.INTEGER) if leads else Column("id", Kind.INTEGER))
    unit = Unit("uid", (ForeignKey("visit", "p0", "id"),)) if leads else Unit("uid")
    if not leads:
        columns.insert(rng.randint(0, 1), Column("uid", unit_kind))
    table = Table(name, tuple(columns), unit, limits, dataset="people")
    pool = _pools(rng, columns)

    def row(of: str) -> tuple[str, ...]:
        cells = [of if one.name == "uid" else rng.choice(pool[one.name]) for one in columns]
        return (*cells, of)

    rows: list[tuple[str, ...]] = []
    others: dict[str, list[tuple[str, ...]]] = {}
    for unit_name in units:
        count = rng.choice([0, 1, 1, 2, 3, 4, 6, rng.randint(8, 20)])
        own = [row(unit_name) for _ in range(count)]
        own += rng.choices(own, k=rng.choice([0, 0, 3])) if own else []
        rows += own
        others[unit_name] = [row(unit_name) for _ in range(rng.choice([0, 1, 5, 12]))]
    rng.shuffle(rows)
    return Rows(table, rows, others)


def _public(rng: random.Random, name: str) -> Rows:
    columns = [Column("id", Kind.INTEGER), *rng.sample(_COLUMNS, rng.randint(2, 4))]
    identified = rng.random() < 0.6
    key = rng.choice([one.name for one in columns if one.kind in (Kind.INTEGER, Kind.TEXT, Kind.DATE)])
    table = Table(name, tuple(columns), None, identified_by=(key,) if identified else ())
    pool = _pools(rng, columns)
    rows = [tuple(rng.choice(pool[one.name]) for one in columns) for _ in range(rng.randint(0, 8))]
    if identified:
        rows = _unique(rows, table.column(key), [one.name for one in columns].index(key))
    return Rows(table, rows)


def _unique(rows: Sequence[tuple[str, ...]], column: Column, place: int) -> list[tuple[str, ...]]:
    """Return rows that differ in a column as it is shown, as an engine would demand."""
    found: dict[Any, tuple[str, ...]] = {}
    for row in rows:
        value = exp.maybe_parse(f"CAST({row[place]} AS {TYPES[column.kind]})", dialect="duckdb")
        shown = _SCRATCH.execute(f"SELECT CAST({declared_value(column, value).sql('duckdb')} AS VARCHAR)").fetchall()[
            0
        ][0]
        if shown is not None or column.nullable:
            found.setdefault(shown, row)
    return list(found.values())


_SCRATCH: Final = duckdb.connect(":memory:")


def _pools(rng: random.Random, columns: Sequence[Column]) -> dict[str, list[str]]:
    """Return the values of each column: few enough to meet, some of them bad."""
    pools = {}
    for column in columns:
        known = _VALUES[column.kind]
        pools[column.name] = rng.sample(known, min(len(known), rng.randint(2, 8))) + ["NULL"] * rng.randint(0, 2)
    return pools
