"""Databases that hold the rows and do the heavy work, behind one small protocol.

`DuckDBEngine` is embedded and the default: it reads CSV, Parquet and DuckDB files, and frames that are in memory
(`frame_source`). `PostgresEngine` and `SparkEngine` query tables where they are. An engine sees only SQL that tacit
wrote, and returns one row per group, never a row of a unit.

    protocol     what an engine promises and offers
    opening      the engine that reads a source
    relations    the relation of a registered table: declared values, the unit of each row; checks of keys
    execution    running a statement: cancellation, time limits, uniform errors
    dialects     the SQL of tacit's statements, for each engine
    addresses    addresses of databases that may stand in a catalog
    quoting      identifiers and texts in SQL
    csv_format   the format of CSV files, as it is stored
    frames       frames in memory, written as Parquet files

Modules with the same name have the same role in each engine's folder:

    module       role                                            duckdb   postgres   spark
    engine       the Engine: registered tables and statements    x        x          x
    sources      tables and files: columns, fingerprints         x        x          x
    kinds        the engine's types as kinds; casts              x        x          x
    execution    one statement: time limit, cancellation         x        x          x
    relations    the SQL that shows a registered table           x        x          in engine
    connections  connections, settings, errors                   x        x          sessions

Databases are imported when an engine is first named, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tacit.engines.protocol import ROWS, SCHEMA, UNIT, Columns, Engine, Progress, Source, SourceColumn

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
    "DuckDBEngine",
    "Engine",
    "PostgresEngine",
    "Progress",
    "Source",
    "SourceColumn",
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
