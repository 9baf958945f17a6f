"""Where the rows are and where heavy work runs, behind one small protocol (`tacit.engines.protocol`).

`DuckDBEngine` is embedded and the default: it reads CSV, Parquet and DuckDB files, and frames that are in memory
(`frame_source`). `PostgresEngine` and `SparkEngine` ask tables where they are. An engine sees only SQL that tacit
wrote, and answers with a row a group, never with a row of a unit.

Databases are loaded when an engine is first named, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tacit.engines.protocol import ROWS, SCHEMA, UNIT, Columns, Described, Engine, Progress, Source

if TYPE_CHECKING:
    from tacit.engines.duckdb import DuckDBEngine
    from tacit.engines.frames import frame_source, is_frame
    from tacit.engines.postgres import PostgresEngine
    from tacit.engines.spark import SparkEngine

__all__ = [
    "ROWS",
    "SCHEMA",
    "UNIT",
    "Columns",
    "Described",
    "DuckDBEngine",
    "Engine",
    "PostgresEngine",
    "Progress",
    "Source",
    "SparkEngine",
    "frame_source",
    "is_frame",
]

_HOMES: Final = {
    "DuckDBEngine": "tacit.engines.duckdb",
    "frame_source": "tacit.engines.frames",
    "is_frame": "tacit.engines.frames",
    "PostgresEngine": "tacit.engines.postgres",
    "SparkEngine": "tacit.engines.spark",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tacit.engines' has no attribute {name!r}")
