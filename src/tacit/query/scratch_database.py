"""An in-memory database that evaluates expressions over released or public columns, never over data of units."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from tacit.engines import relations
from tacit.privacy.tables import Kind

TABLE: Final = "given"
TYPES: Final = {**relations.TYPES, Kind.INTEGER: "HUGEINT"}
"""The type of each kind over released columns; sums of whole numbers may have more than 64 bits."""

_INT64: Final = range(-(2**63), 2**63)
_LOCK: Final = threading.Lock()


def evaluate(sql: str, columns: dict[str, NDArray[Any]]) -> list[tuple[Any, ...]]:
    """Run a SELECT over the columns, which it finds as the table `given`."""
    with _LOCK:
        database = _database()
        database.register(TABLE, {name: _held(column) for name, column in columns.items()})
        try:
            return database.execute(sql).fetchall()
        finally:
            database.unregister(TABLE)


def array_of(column: Any) -> NDArray[Any]:
    """Return a column as an array; a list becomes one of objects."""
    return column if isinstance(column, np.ndarray) else np.array([*column, None], dtype=object)[:-1]


def _held(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column that DuckDB takes as it is: integers beyond 64 bits as texts, which it casts to HUGEINT."""
    if column.dtype != object or all(value in _INT64 for value in column if isinstance(value, int)):
        return column
    return np.array([*(None if value is None else str(value) for value in column), None], dtype=object)[:-1]


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """The database: in memory, without files, extensions or network."""
    database = duckdb.connect(":memory:", config={"threads": 1, "autoinstall_known_extensions": "false"})
    database.execute("SET enable_external_access = false")
    return database
