"""Connections to DuckDB: their settings, what they may touch, and limits on memory and disk.

Promise: nothing goes over a network, no extension is installed or loaded, no variable of the Python program can be
read. The connection that queries run on can open the registered files and nothing else, cannot write, and its settings
are locked. Memory and disk are limited to a share of what the machine or its container has; without a folder for it,
nothing is spilled to disk.

DuckDB itself allows each database four fifths of the memory and nine tenths of the free disk. An engine has two, one
that stores rows and one that runs queries, and both together would exceed the memory, so that the whole process is
killed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import duckdb

from tacit.engines.quoting import digest, list_literal, literal
from tacit.privacy.errors import EngineFailed

MEMORY_SHARE: Final = Fraction(2, 5)
"""The share of memory; the two databases of an engine leave a fifth to everything else."""
SPILL_SHARE: Final = Fraction(1, 4)
"""The share of the disk that is free when a connection is made."""
SPILL_MAX_BYTES: Final = 200 << 30
CGROUP_FILES: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNLIMITED_BYTES: Final = 1 << 60
_UNKNOWN_BYTES: Final = 4 << 30

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
"""Optimizers that are disabled.

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


def is_usable(connection: Connection) -> bool:
    """Return whether a connection can still be used; after some errors DuckDB refuses every statement."""
    try:
        return connection.cursor().execute("SELECT 1").fetchone() == (1,)
    except duckdb.Error:
        return False


def attach(connection: Connection, path: str, *, write: bool = False) -> None:
    """Attach a database file under its alias, for reading only unless `write`."""
    mode = "" if write else " (READ_ONLY)"
    connection.execute(f"ATTACH IF NOT EXISTS {literal(path)} AS {database_alias(path)}{mode}")


def detach(connection: Connection, path: str) -> None:
    """Detach a database file."""
    connection.execute(f"DETACH DATABASE IF EXISTS {database_alias(path)}")


def lock(connection: Connection, files: Iterable[str]) -> None:
    """Restrict a connection and its cursors to these files and what is attached, and lock its settings."""
    connection.execute(f"SET allowed_paths = {list_literal(files)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def database_alias(path: str) -> str:
    """Return the name under which a database file is attached, the same in every connection."""
    return f"db_{digest(path)[:16]}"


def memory_limit() -> str:
    """Return the memory that a connection may use, as a setting of DuckDB."""
    return _text(memory_bytes() * MEMORY_SHARE)


def spill_limit(folder: str) -> str:
    """Return the disk space that a connection may spill to, in a folder that need not exist yet."""
    there = next((one for one in (Path(folder), *Path(folder).parents) if one.exists()), Path("/"))
    free = Fraction(_UNKNOWN_BYTES)
    with suppress(OSError):
        free = shutil.disk_usage(there).free * SPILL_SHARE
    return _text(min(free, Fraction(SPILL_MAX_BYTES)))


def memory_bytes() -> int:
    """Return the memory of the machine, or of the container that this process runs in."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in CGROUP_FILES:
        with suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min((one for one in found if 0 < one < _UNLIMITED_BYTES), default=_UNKNOWN_BYTES)


def _text(size: Fraction) -> str:
    return f"{max(int(size) >> 10, 1)}KiB"
