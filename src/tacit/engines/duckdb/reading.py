"""The connection that questions run on: every registered table as a view, and nothing else within reach.

It is made anew whenever a table is registered or taken away, which takes milliseconds; statements that run on an older
one end there undisturbed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import duckdb

from tacit.engines.duckdb.connecting import Connection, answers, attach, connect, lock
from tacit.engines.duckdb.relations import Shown
from tacit.engines.names import quoted
from tacit.engines.protocol import SCHEMA

TELLING: Final = 4
"""How many statements can tell their progress at once: that is a setting of a cursor, and settings get locked."""


class Reader:
    """A locked connection that shows tables."""

    def __init__(self, settings: Mapping[str, Any], tables: Mapping[str, Shown]) -> None:
        self._lock = threading.Lock()
        self._connection = connect(settings)
        self._connection.execute(f"CREATE SCHEMA {SCHEMA}")
        files: set[str] = set()
        for name, shown in tables.items():
            if self._show(name, shown):
                files.update(shown.files)
        self._telling = [self._teller() for _ in range(TELLING)]
        lock(self._connection, sorted(files))

    @contextmanager
    def cursor(self, *, tells: bool) -> Iterator[Connection]:
        """Lend a cursor; one that `tells` knows how far its statement is, if there is one left."""
        with self._lock:
            teller = self._telling.pop() if tells and self._telling else None
        cursor = self._connection.cursor() if teller is None else teller
        try:
            yield cursor
        finally:
            if teller is None:
                cursor.close()
            else:
                with self._lock:
                    self._telling.append(teller)

    @property
    def works(self) -> bool:
        """Whether the connection can still be used."""
        return answers(self._connection)

    def close(self) -> None:
        """Let go of the connection; statements that run on it end."""
        self._connection.close()

    def _show(self, name: str, shown: Shown) -> bool:
        """Make the view of a table; one whose files are gone is not there, and says so when its version is asked."""
        try:
            for path in shown.attached:
                attach(self._connection, path)
            self._connection.execute(f"CREATE VIEW {SCHEMA}.{quoted(name)} AS {shown.sql}")
        except duckdb.Error:
            return False
        return True

    def _teller(self) -> Connection:
        cursor = self._connection.cursor()
        cursor.execute("SET enable_progress_bar = true")
        cursor.execute("SET enable_progress_bar_print = false")
        cursor.execute("SET progress_bar_time = 0")
        return cursor
