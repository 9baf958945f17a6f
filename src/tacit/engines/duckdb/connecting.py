"""Connections to DuckDB: how they are set, and what they may touch.

Promise: nothing goes over a network, no extension is installed or loaded, no variable of the Python program can be
read. The connection that questions run on can open the registered files and nothing else, cannot write, and its
settings are locked. Memory and disk are limited (`resources`); without a folder for it, nothing is spilled to a disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import duckdb

from tacit.engines.duckdb.resources import memory_limit, spill_limit
from tacit.engines.names import digest, listed, literal
from tacit.privacy.errors import EngineFailed

Connection = duckdb.DuckDBPyConnection

CLOSED: Final[Mapping[str, Any]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "preserve_insertion_order": False,
    "temp_directory": "",
}

HARMFUL: Final = frozenset({"top_n_window_elimination", "type_pushdown"})
"""Optimizers to do without.

The first turns "the first K of each unit" into lists, which takes two to three times as long as the window itself. The
second moves TRY_CAST into the scan of a CSV file, where a value that cannot be cast loses its whole row.
"""


def connect(settings: Mapping[str, Any]) -> Connection:
    """Open a database in memory that can read local files."""
    limits = {"memory_limit": memory_limit()}
    if "temp_directory" in settings:
        limits["max_temp_directory_size"] = spill_limit(settings["temp_directory"])
    try:
        connection = duckdb.connect(":memory:", config={**CLOSED, **limits, **settings})
    except duckdb.Error:
        raise EngineFailed(
            "DuckDB does not open with these settings; threads is a whole number, memory_limit a text such as 4GB"
        ) from None
    connection.execute("SET TimeZone = 'UTC'")
    known = {str(row[0]) for row in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    connection.execute(f"SET disabled_optimizers = {literal(','.join(sorted(HARMFUL & known)))}")
    return connection


def answers(connection: Connection) -> bool:
    """Return whether a connection can still be used; after some errors DuckDB refuses everything."""
    try:
        return connection.cursor().execute("SELECT 1").fetchone() == (1,)
    except duckdb.Error:
        return False


def attach(connection: Connection, path: str, *, write: bool = False) -> None:
    """Attach a database file under its alias, for reading only unless `write`."""
    mode = "" if write else " (READ_ONLY)"
    connection.execute(f"ATTACH IF NOT EXISTS {literal(path)} AS {alias(path)}{mode}")


def detach(connection: Connection, path: str) -> None:
    """Detach a database file."""
    connection.execute(f"DETACH DATABASE IF EXISTS {alias(path)}")


def lock(connection: Connection, files: Iterable[str]) -> None:
    """Let a connection, and all its cursors, read these files and what is attached, and change no setting any more."""
    connection.execute(f"SET allowed_paths = {listed(files)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def alias(path: str) -> str:
    """Return the name under which a database file is attached, the same in every connection."""
    return f"db_{digest(path)[:16]}"
