"""Opening the engine that reads a source.

Engines are imported when one is opened, so that a database that is not used need not be installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from tacit.engines.protocol import Engine, Source

EngineKey: TypeAlias = tuple[str, str]
"""The kind of an engine and its address; files have no address and share one DuckDB engine."""


def engine_key(source: Source) -> EngineKey:
    """Return the key of the engine that reads a source."""
    return (source.form, source.place) if source.form in ("postgres", "spark") else ("duckdb", "")


def open_engine(key: EngineKey, folder: Path | None, salt: int) -> Engine:
    """Open an engine; without a folder, that of files works in a temporary one."""
    kind, place = key
    if kind == "postgres":
        from tacit.engines.postgres import PostgresEngine

        return PostgresEngine(place, salt)
    if kind == "spark":
        from tacit.engines.spark import SparkEngine

        return SparkEngine(place, salt)
    from tacit.engines.duckdb import DuckDBEngine

    return DuckDBEngine(folder, salt=salt)
