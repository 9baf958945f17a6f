"""Worlds in which one unit, the victim, has the worst rows that a schema permits, and the others have ordinary ones.

The victim has up to 64 rows: the longest texts, numbers, dates and times at the ends of their types. Its neighbour is
the same world without it. What differs between the two, other than by the noise, tells that the victim is there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import duckdb

from tacit.engines.duckdb.connections import connect
from tacit.engines.protocol import SCHEMA
from tacit.engines.relations import TYPES
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tests.property.query.scalar_sql import BENIGN, BY_NAME, COLUMNS, VALUES
from tests.property.query.worlds import Rows, World

VICTIM: Final = "7"
WITHOUT: Final = "without_0"
ROWS_MAX: Final = 64
MEMORY: Final = "256MB"
_LONG: Final = [
    f"repeat({part}, {TEXT_LENGTH_MAX // size})"
    for part, size in [("'a'", 1), ("'ab'", 2), ("'é'", 1), ("'ß'", 1), ("'🙂'", 1), ("'1'", 1), ("' '", 1)]
]
_LONG += [f"repeat({part}, {TEXT_LENGTH_MAX})" for part in ("chr(0)", "'%'", "'İ'", "'_'", "'A'")]
_PUBLIC_ROWS: Final = (0, 1, 8, 200, 200, 16_384)


def database() -> duckdb.DuckDBPyConnection:
    """Return a database that is set as the one that questions run on, with one thread and little memory."""
    return connect({"threads": 1, "memory_limit": MEMORY})


def hostile_world(seed: int) -> World:
    """Invent a world with a victim."""
    rng = random.Random(seed)
    limit = rng.choice([None, ROWS_MAX])
    first = Table("p", (*_keys("id"), *COLUMNS), Unit("uid"), Limits(rows_per_unit=limit), dataset="people")
    some = tuple(BY_NAME[name] for name in ("i", "s", "kg", "age", "sex", "day"))
    second = Table(
        "o", (*_keys("visit"), *some), Unit("uid"), Limits(rows_per_unit=rng.choice([None, 5])), (), "people"
    )
    count = rng.choice(_PUBLIC_ROWS)
    public = Table("pub", (Column("id", Kind.INTEGER), BY_NAME["s"], BY_NAME["i"]), None, rows=count)
    listed = Table("key", (Column("id", Kind.INTEGER), BY_NAME["s"]), None, identified_by=("id",), rows=3)
    others, rows = (20, 32) if rng.random() < 0.2 else (rng.randint(0, 5), 3)
    tables = {
        "p": Rows(first, _private(rng, first.columns, others, rows)),
        "o": Rows(second, _private(rng, second.columns, others, 3)),
        "pub": Rows(public, []),
        "key": Rows(listed, [(str(number), "'abc'") for number in range(3)]),
    }
    schema = Schema([held.table for held in tables.values()])
    return World(seed, schema, tables, [VICTIM], Kind.INTEGER, rng.random() < 0.8)


def load(held: World, connection: duckdb.DuckDBPyConnection) -> None:
    """Hold a world and its neighbour without the victim."""
    held.load(connection)
    rows = held.tables["pub"].table.rows
    made = f"SELECT i AS id, 'abc' || (i % 7) AS s, i % 5 AS i FROM range({rows}) AS r(i)"
    connection.execute(f"CREATE OR REPLACE TABLE {SCHEMA}.pub AS {made}")
    held.neighbour(connection, WITHOUT, VICTIM, replaced=False)


def _keys(name: str) -> tuple[Column, Column]:
    return Column("uid", Kind.INTEGER), Column(name, Kind.INTEGER)


def _private(rng: random.Random, columns: Sequence[Column], others: int, rows: int) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for number in range(rng.choice([1, 5, ROWS_MAX, ROWS_MAX])):
        cells = [_cast(rng.choice(_worst(one)), one) for one in columns[2:]]
        found.append((VICTIM, str(number), *cells, VICTIM))
    for unit in range(100, 100 + others):
        for number in range(rows):
            cells = [_cast(rng.choice([*BENIGN[one.name], "NULL"]), one) for one in columns[2:]]
            found.append((str(unit), str(unit * 100 + number), *cells, str(unit)))
    return found


def _cast(value: str, column: Column) -> str:
    return f"CAST({value} AS {TYPES[column.kind]})"


def _worst(column: Column) -> list[str]:
    return [*_LONG, *_LONG, *VALUES[Kind.TEXT]] if column.kind is Kind.TEXT else [*VALUES[column.kind], "NULL"]
