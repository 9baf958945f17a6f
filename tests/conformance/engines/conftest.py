"""Every engine with every form of source that it reads, ready to be given rows.

A new engine is one more entry in `PLACES`: a function from a folder to a `Place`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from tacit.engines import Columns, DuckDBEngine, Engine, Source
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import Unit
from tests.conformance.engines.places_postgres import postgres_engine, postgres_put
from tests.conformance.engines.places_spark import spark_engine, spark_put

Rows = Sequence[Sequence[Any]]
Put = Callable[[str, Mapping[str, str], Rows], Source]
"""Puts rows somewhere: a name, the SQL types of the columns, and the rows."""


@dataclass(frozen=True)
class Place:
    engine: Engine
    put: Put

    def show(self, name: str, types: Mapping[str, str], rows: Rows, unit: str | None = None, **stated: Any) -> Table:
        """Put rows somewhere, register them with the kinds that the engine finds, and return the table."""
        source = self.put(name, types, rows)
        kinds = stated.pop("kinds", {})
        columns = tuple(
            Column(one.name, kinds.get(one.name, one.kind or Kind.TEXT)) for one in self.engine.describe(source)
        )
        known = Table(name, columns, None if unit is None else Unit(unit), Limits(**stated))
        self.engine.register(known, source, {})
        return known

    def run(self, sql: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> Columns:
        """Run a statement that is given in DuckDB's SQL, as the engine writes it."""
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        assert isinstance(tree, exp.Query)
        return self.engine.run(self.engine.write(tree), parameters, **options)

    def rows(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of an answer, in order of their texts."""
        columns = self.run(sql, parameters or None)
        plain = [one.tolist() if hasattr(one, "tolist") else list(one) for one in columns.values()]
        return sorted(zip(*plain, strict=True), key=repr)


def _table(name: str, types: Mapping[str, str], rows: Rows) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    fields = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
    connection.execute(f'CREATE TABLE "{name}" ({fields})')
    if len(rows) > 1_000:
        lists = [list(column) for column in zip(*rows, strict=True)]
        connection.execute(f'INSERT INTO "{name}" SELECT {", ".join(["unnest(?)"] * len(lists))}', lists)
    elif rows:
        holes = f"({', '.join('?' * len(types))})"
        values = [value for row in rows for value in row]
        connection.execute(f'INSERT INTO "{name}" VALUES {", ".join([holes] * len(rows))}', values)
    return connection


def parquet(folder: Path) -> Put:
    def put(name: str, types: Mapping[str, str], rows: Rows) -> Source:
        path = folder / f"{name}.parquet"
        with _table(name, types, rows) as connection:
            connection.execute(f"COPY \"{name}\" TO '{path}' (FORMAT parquet)")
        return Source("parquet", str(path))

    return put


def _database(folder: Path) -> Put:
    def put(name: str, types: Mapping[str, str], rows: Rows) -> Source:
        path = folder / f"{name}.duckdb"
        path.unlink(missing_ok=True)
        with _table(name, types, rows) as connection:
            connection.execute(f"ATTACH '{path}' AS other")
            connection.execute(f'CREATE TABLE other."{name}" AS FROM "{name}"')
            connection.execute("DETACH other")
        return Source("duckdb", str(path), name)

    return put


def _csv(folder: Path) -> Put:
    def put(name: str, types: Mapping[str, str], rows: Rows) -> Source:
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(types)
            writer.writerows(rows)
        return Source("csv", str(path))

    return put


def _duckdb_with(put: Callable[[Path], Put]) -> Callable[[Path], Place]:
    return lambda folder: Place(DuckDBEngine(folder, salt=7, threads=2), put(folder))


PLACES: Mapping[str, Callable[[Path], Place]] = {
    "duckdb over parquet": _duckdb_with(parquet),
    "duckdb over a database": _duckdb_with(_database),
    "duckdb over csv": _duckdb_with(_csv),
    "postgres": lambda folder: Place(postgres_engine(), postgres_put()),
    "spark": lambda folder: Place(spark_engine(), spark_put(parquet(folder))),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An engine in a new folder, and a way to give it rows."""
    made = PLACES[request.param](tmp_path)
    yield made
    made.engine.close()
