"""A place for one connection, used by one thread at a time.

A store has two: one for changes and one for reading, so that a long look at the journal keeps nobody from charging. A
connection is made when it is first needed, again when it was lost, and anew in a forked child, which leaves its
parent's connection and lock alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

from tacit.privacy.errors import TacitError


class Slot:
    """One connection with the lock that goes with it."""

    def __init__(self, connect: Callable[[], Any], timeout_s: float, busy: Callable[[], TacitError]) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._busy = busy
        self._lock = Lock()
        self._process = os.getpid()
        self._left_behind: list[Any] = []
        self.connection: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the turn of this thread, but not longer than the time limit."""
        if self._process != os.getpid():
            self._left_behind.append(self.connection)  # closing it here would take its parent's locks away
            self.connection, self._lock, self._process = None, Lock(), os.getpid()
        if not self._lock.acquire(timeout=self._timeout_s):
            raise self._busy()
        try:
            yield
        finally:
            self._lock.release()

    def connected(self) -> Any:
        """Return an open connection; no transaction outlives one that was lost."""
        if self.connection is None or getattr(self.connection, "closed", False):
            self.connection = self._connect()
        return self.connection

    def undo(self) -> None:
        """Undo what was begun; a connection that cannot even do that is dropped, and so undone."""
        try:
            self.connection.execute("ROLLBACK")
        except Exception:
            self.drop()

    def drop(self) -> None:
        """Close the connection."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()
