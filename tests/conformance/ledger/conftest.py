"""Both stores, ready to be used: SQLite in a folder, PostgreSQL from the pip package that brings a server."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.ledger import PostgresStore, SqliteStore, Store
from tests.support import postgres_server

MakeStore = Callable[..., Store]
_SCHEMAS = itertools.count()


@pytest.fixture(scope="session")
def postgres_address() -> str:
    """The connection string of a PostgreSQL server that lives as long as the tests."""
    return postgres_server.address()


@pytest.fixture(params=["sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Return a function that makes handles on one and the same new place; it takes the time limit of their locks."""
    if request.param == "sqlite":
        return lambda timeout_s=10.0: SqliteStore(tmp_path / "ledger", busy_timeout_s=timeout_s)
    address, schema = request.getfixturevalue("postgres_address"), f"ledger_{os.getpid()}_{next(_SCHEMAS)}"
    return lambda timeout_s=10.0: PostgresStore(address, schema=schema, lock_timeout_s=timeout_s)
