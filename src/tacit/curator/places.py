"""Which engine holds a source, and how one is opened.

Files are DuckDB's, in the curator's folder; a PostgreSQL server and a Spark session are engines by themselves, one a
place. Tables of one question lie in one engine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from tacit.engines.protocol import Engine, Source

Home: TypeAlias = tuple[str, str]
"""The kind of an engine and the place it is at; files have no place of their own."""


def home_of(source: Source) -> Home:
    """Return which engine holds a source."""
    return (source.form, source.place) if source.form in ("postgres", "spark") else ("duckdb", "")


def opened(home: Home, folder: Path | None, salt: int) -> Engine:
    """Open an engine."""
    from tacit import engines

    kind, place = home
    if kind == "postgres":
        return engines.PostgresEngine(place, salt)
    if kind == "spark":
        return engines.SparkEngine(place, salt)
    return engines.DuckDBEngine(folder, salt=salt)


def in_words(home: Home) -> str:
    """Return where an engine is, for people; a place never holds a password."""
    kind, place = home
    return {"postgres": f"PostgreSQL at {place}", "spark": f"Spark at {place}"}.get(kind, "files")
