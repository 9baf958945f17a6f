"""A plain DuckDB connection that keeps what an engine promises: tables in `tacit_data`, canonical types, `_unit`.

Rows are given by the test, together with their unit; nothing is cast, limited or checked. Good for tests of everything
above the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb
import numpy as np
from sqlglot import exp

from tacit.engines import dialects
from tacit.engines.protocol import ROWS, SCHEMA, UNIT, Columns, Progress
from tacit.engines.relations import declared_value
from tacit.privacy.errors import EngineFailed
from tacit.privacy.tables import Column, Kind, Table

TYPES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIME: "TIMESTAMP",
}


class MemoryEngine:
    """Runs statements as an engine does, over rows that a test put there."""

    def __init__(self, threads: int = 1) -> None:
        self.connection: Final = duckdb.connect(":memory:", config={"threads": threads})
        self.connection.execute(f"CREATE SCHEMA {SCHEMA}")
        self.connection.execute("SET TimeZone = 'UTC'")

    def create(self, table: Table, unit_kind: Kind = Kind.INTEGER) -> None:
        """Make an empty table of the declared columns, anew if it is there."""
        self.connection.execute(f"CREATE OR REPLACE TABLE {named(table)} ({', '.join(columns(table, unit_kind))})")

    def fill(self, table: Table, rows: Sequence[Sequence[Any]], unit_kind: Kind = Kind.INTEGER) -> None:
        """Make a table that holds rows: the values of its columns in order and, if it is private, the unit last."""
        self.create(table, unit_kind)
        if rows:
            holes = ", ".join("?" * len(rows[0]))
            self.connection.executemany(f"INSERT INTO {named(table)} VALUES ({holes})", rows)
        self.declare(table)

    def declare(self, table: Table) -> None:
        """Show the rows as they were declared, and how many of them each unit has."""
        items = [f"{declared_value(one, _tree(one)).sql('duckdb')} AS {quoted(one.name)}" for one in table.columns]
        required = [column.name for column in table.columns if not column.nullable]
        kept = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in required) or "TRUE"
        if table.is_private:
            items.append(UNIT)
        inner = f"SELECT {', '.join(items)} FROM {named(table)}"
        more = f", COUNT(*) OVER (PARTITION BY {UNIT}) AS {ROWS}" if table.is_private else ""
        self.connection.execute(f"CREATE OR REPLACE TABLE {named(table)} AS SELECT *{more} FROM ({inner}) WHERE {kept}")

    def write(self, tree: exp.Query) -> str:
        """Return a statement as DuckDB reads it."""
        return dialects.write_duckdb(tree)

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT and return its columns."""
        try:
            cursor = self.connection.execute(sql, dict(parameters or {}))
            names = [str(one[0]) for one in cursor.description or ()]
            rows = cursor.fetchall()
        except duckdb.Error as error:
            raise EngineFailed(f"{type(error).__name__}: {error}") from error
        return {name: _column([row[index] for row in rows]) for index, name in enumerate(names)}

    def close(self) -> None:
        """Let go of the database."""
        self.connection.close()


def named(table: Table) -> str:
    """Return the name of a table in the engine."""
    return f"{SCHEMA}.{quoted(table.name)}"


def columns(table: Table, unit_kind: Kind) -> list[str]:
    """Return the columns of a table with their types."""
    own = [f"{quoted(one.name)} {TYPES[one.kind]}" for one in table.columns]
    return [*own, f"{UNIT} {TYPES[unit_kind]} NOT NULL"] if table.is_private else own


def _tree(column: Column) -> exp.Column:
    return exp.column(exp.to_identifier(column.name, quoted=True))


def quoted(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _column(values: list[Any]) -> Sequence[Any]:
    if values and all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    if values and all(type(value) is float for value in values):
        return np.array(values, dtype=np.float64)
    return values
