"""The engines that have to give the same numbers, each over the same rows.

A new engine is one more entry in `ENGINES`: a function from a folder to a `Place`. The first one is what the others are
compared with.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from sqlglot import exp

from tacit.curator.catalog import Catalog
from tacit.engines import Columns, DuckDBEngine
from tacit.privacy.tables import Kind, Schema, Table
from tests.conformance.engines.conftest import Place, parquet
from tests.conformance.engines.places_postgres import postgres_engine, postgres_put
from tests.conformance.engines.places_spark import spark_engine, spark_put
from tests.unit.query.fixtures import FOLDER
from tests.unit.query.rows import rows_of

ENGINES: Final[Mapping[str, Callable[[Path], Place]]] = {
    "duckdb": lambda folder: Place(DuckDBEngine(folder, salt=7, threads=2), parquet(folder)),
    "postgres": lambda folder: Place(postgres_engine(), postgres_put()),
    "spark": lambda folder: Place(spark_engine(), spark_put(parquet(folder))),
}
OTHERS: Final = [name for name in ENGINES if name not in ("duckdb", "spark")]
"""Those that are asked everything; Spark takes long over a statement, and is asked in `test_spark_numbers`."""

TYPES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIME: "TIMESTAMP",
}


@cache
def schema(name: str) -> Schema:
    """Return a schema of the fixtures."""
    return Catalog.open(FOLDER / name).schema


@cache
def place(engine: str) -> Place:
    """Return an engine, one for all tests of a process."""
    return opened(engine)


@cache
def filled(engine: str, name: str) -> Place:
    """Return an engine that holds invented rows of every table of a schema."""
    there = opened(engine)
    for table, rows in rows_of(schema(name)):
        show(there, table, [row[: len(table.columns)] for row in rows], schema(name))
    return there


def opened(engine: str) -> Place:
    """Return a new engine, which is closed when the tests end."""
    folder = Path(mkdtemp(prefix="tacit-engines-"))
    there = ENGINES[engine](folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(there.engine.close)
    return there


def show(there: Place, table: Table, rows: Sequence[Sequence[Any]], known: Schema) -> None:
    """Register a table with rows."""
    types = {column.name: TYPES[column.kind] for column in table.columns}
    there.engine.register(table, there.put(table.name, types, rows), known.tables)


def run(there: Place, tree: exp.Query) -> Columns:
    """Run a statement, with an order that all engines compute alike in the place of the hash."""
    return there.engine.run(there.engine.write(without_hash(tree)))


def without_hash(tree: exp.Query) -> exp.Query:
    """Return a statement in which texts of the hashed values stand for their hash."""

    def ordered(node: exp.Expr) -> exp.Expr:
        if not (isinstance(node, exp.Anonymous) and node.name == "hash"):
            return node
        texts = [
            exp.func("COALESCE", exp.cast(one.copy(), "TEXT"), exp.Literal.string("~")) for one in node.expressions[:-1]
        ]
        joined: exp.Expr = texts[0]
        for text in texts[1:]:
            joined = exp.DPipe(this=joined, expression=text, safe=True)
        return joined

    return tree.transform(ordered)


def by_key(columns: Columns, keys: Sequence[str]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the rows of an answer by their keys, whatever their order."""
    plain = {name: one.tolist() if hasattr(one, "tolist") else list(one) for name, one in columns.items()}
    count = len(next(iter(plain.values())))
    others = [name for name in plain if name not in keys]
    found = {tuple(plain[key][row] for key in keys): tuple(plain[one][row] for one in others) for row in range(count)}
    assert len(found) == count  # a group is there once
    return found
