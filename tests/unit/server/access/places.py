"""Places for the tests of access: a clock set by hand, a cheap hasher that counts, both databases."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tacit.server.access import Access, Hasher
from tacit.server.database import Database, PostgresDatabase, SqliteDatabase
from tests.support import postgres_server

PASSWORD = "correct horse battery"
TABLES = ("audit", "browsers", "failures", "grants", "tokens", "people", "used_states")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def move(self, *, seconds: float = 0, hours: float = 0, days: float = 0) -> None:
        self.now_us += round((seconds + 3600 * hours + 86_400 * days) * 1e6)


class CountingHasher(Hasher):
    """A cheap hasher that counts how often it compared."""

    def __init__(self) -> None:
        super().__init__(is_cheap=True)
        self.compared = 0

    def matches(self, hashed: str, text: str) -> bool:
        self.compared += 1
        return super().matches(hashed, text)


class Place:
    """One database, and any number of servers over it, each as if it were a process of its own."""

    def __init__(self, open_: Callable[[], Database], clock: Clock) -> None:
        self._open = open_
        self._databases: list[Database] = []
        self.clock = clock
        self.hasher = CountingHasher()

    def access(self) -> Access:
        """Another server over the same database."""
        database = self._open()
        self._databases.append(database)
        return Access(database, clock=self.clock, hasher=self.hasher)

    def close(self) -> None:
        for database in self._databases:
            database.close()


def sqlite_place(folder: Path) -> Place:
    """A place in a file."""

    def open_() -> Database:
        made = SqliteDatabase(folder)
        made.open()
        return made

    return Place(open_, Clock())


def postgres_place() -> Place:
    """A place in a schema of this process, emptied for each test."""
    schema = f"access_{os.getpid()}"

    def open_() -> Database:
        made = PostgresDatabase(postgres_server.address(), schema=schema)
        made.open()
        with made._writer.held():
            made._writer.connect().execute("SET synchronous_commit = off")
        return made

    open_().close()
    postgres_server.execute(f"TRUNCATE {', '.join(f'{schema}.{table}' for table in TABLES)}")
    return Place(open_, Clock())
