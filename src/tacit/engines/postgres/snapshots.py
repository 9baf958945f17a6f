"""Transactions: which rows a statement sees.

A transaction is read-only and sees one snapshot of the database. When a thread has asked for the version of a table,
the transaction in which that was looked up stays open for it: the other tables of the question are looked up there, and
the statements that follow in this thread run there, so that they see exactly the rows whose version was told. It ends
when a version is asked anew, or `KEPT_S` after its last use, for a transaction that stays open keeps the database from
clearing away old rows, and its owner from changing the columns of the table. Statements that come later, or from
another thread, have a snapshot of their own: between the version and them rows may have changed, and that window
remains.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from tacit.engines.postgres.connecting import Connections, drop
from tacit.engines.postgres.running import Runs
from tacit.privacy.errors import NoConnection

T = TypeVar("T")

KEPT_S = 5.0
SWEEP_S = 1.0
"""How long a transaction is kept that nobody uses, and how often that is looked after."""

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class _Kept:
    """A transaction that stays open for the thread that began it."""

    def __init__(self, connection: Any, thread: int) -> None:
        self.connection, self.thread = connection, thread
        self.lock = threading.Lock()
        self.names: set[str] = set()
        self.used_s = time.monotonic()
        self.has_run = False
        self.is_over = False


class Snapshots:
    """The transactions of one engine."""

    def __init__(self, connections: Connections, runs: Runs) -> None:
        self._connections, self._runs = connections, runs
        self._kept: dict[int, _Kept] = {}
        self._lock = threading.Lock()
        self._sweeper: threading.Thread | None = None

    def version(self, name: str, work: Callable[[Any], T]) -> T:
        """Do work in a transaction that stays open for the statements that follow."""
        kept = self._mine()
        if kept is None or kept.has_run or name in kept.names:
            self.end()
            kept = self._begun()
        try:
            with kept.lock:
                found = self._within(kept, work, None)
        except BaseException:
            self._end(kept)
            raise
        kept.names.add(name)
        return found

    def run(self, work: Callable[[Any], T], timeout_s: float | None = None) -> T:
        """Do work in the transaction that this thread has kept, otherwise in one of its own."""
        kept = self._mine()
        if kept is None:
            return self.alone(work, timeout_s)
        with kept.lock:
            if not kept.is_over:
                kept.has_run, kept.used_s = True, time.monotonic()
                try:
                    limit = 0 if timeout_s is None else max(1, round(timeout_s * 1000))
                    self._runs.run(
                        kept.connection,
                        lambda: kept.connection.execute(f"SET LOCAL statement_timeout = {limit}"),
                        timeout_s,
                    )
                except NoConnection:
                    kept.is_over = True  # the server has ended it; nothing was run yet
                else:
                    return self._within(kept, work, timeout_s)
        self._end(kept)
        return self.alone(work, timeout_s)

    def alone(self, work: Callable[[Any], T], timeout_s: float | None = None) -> T:
        """Do work in a transaction of its own, on another connection if the first was lost before it began."""
        limit = "" if timeout_s is None else f"; SET LOCAL statement_timeout = {max(1, round(timeout_s * 1000))}"
        connection = self._opened(_BEGIN + limit, timeout_s)

        def do() -> T:
            found = work(connection)
            connection.execute("COMMIT")
            return found

        try:
            found = self._runs.run(connection, do, timeout_s)
        except BaseException:
            drop(connection)
            raise
        self._connections.give_back(connection)
        return found

    def end(self) -> None:
        """End what this thread has kept: what follows is about other tables."""
        self._end(self._mine())

    def close(self) -> None:
        """End all transactions that are kept."""
        with self._lock:
            kept = list(self._kept.values())
        for one in kept:
            self._end(one)

    def _within(self, kept: _Kept, work: Callable[[Any], T], timeout_s: float | None) -> T:
        try:
            found = self._runs.run(kept.connection, lambda: work(kept.connection), timeout_s)
        except BaseException:
            kept.is_over = True
            drop(kept.connection)
            raise
        kept.used_s = time.monotonic()
        return found

    def _opened(self, statement: str, timeout_s: float | None) -> Any:
        connection = self._connections.taken()
        try:
            self._runs.run(connection, lambda: connection.execute(statement), timeout_s)
        except NoConnection:
            self._connections.forget_idle()
        except BaseException:
            drop(connection)
            raise
        else:
            return connection
        connection = self._connections.taken()
        try:
            self._runs.run(connection, lambda: connection.execute(statement), timeout_s)
        except BaseException:
            drop(connection)
            raise
        return connection

    def _begun(self) -> _Kept:
        kept = _Kept(self._opened(_BEGIN, None), threading.get_ident())
        with self._lock:
            self._kept[kept.thread] = kept
            if self._sweeper is None or not self._sweeper.is_alive():
                self._sweeper = threading.Thread(target=self._sweep, name="tacit engine sweep", daemon=True)
                self._sweeper.start()
        return kept

    def _mine(self) -> _Kept | None:
        with self._lock:
            kept = self._kept.get(threading.get_ident())
        return None if kept is None or kept.is_over else kept

    def _end(self, kept: _Kept | None) -> None:
        """End a transaction, and keep its connection if it is well."""
        if kept is None:
            return
        with self._lock:
            if self._kept.get(kept.thread) is kept:
                del self._kept[kept.thread]
        with kept.lock:
            was_over, kept.is_over = kept.is_over, True
        if was_over:
            drop(kept.connection)
            return
        try:
            kept.connection.execute("ROLLBACK")
        except Exception:  # it was lost, or a statement in it failed; either way it is of no use
            drop(kept.connection)
        else:
            self._connections.give_back(kept.connection)

    def _sweep(self) -> None:
        """End transactions that nobody has used for a while, until there is none left."""
        while True:
            time.sleep(SWEEP_S)
            now_s = time.monotonic()
            with self._lock:
                old = [one for one in self._kept.values() if now_s - one.used_s > KEPT_S and not one.lock.locked()]
                if not self._kept:
                    self._sweeper = None
                    return
            for one in old:
                self._end(one)
