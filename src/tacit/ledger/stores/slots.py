"""A place for one connection, used by one thread at a time.

A store has two: one for changes and one for reading, so that a long look at the journal keeps nobody from charging. A
connection is made when it is first needed, and again when it was lost.

Promise: no connection outlives its slot, and none crosses a fork.

- A slot that is collected, or alive when the interpreter exits, closes its connection and says nothing. Every
  transaction that has ended is on disk, so somebody who forgets to close a ledger loses nothing, and a warning in the
  collector would only appear in the middle of unrelated work.
- Before a fork every connection of the process is closed, and parent and child open their own when they need one.
  SQLite counts the locks of a process in its memory; a child that inherits the count takes its parent's locks for its
  own, and what it charges is lost once the parent closes the file and so removes the log (sqlite.org/howtocorrupt.html,
  section 2.6). A child of a fork that could not wait for a transaction to end is refused every slot.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, RLock, get_ident
from typing import Any, Final

from tacit.privacy.errors import LedgerUnavailable, TacitError


class Slot:
    """One connection with the lock that goes with it."""

    def __init__(self, connect: Callable[[], Any], timeout_s: float, busy: Callable[[], TacitError]) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._busy = busy
        self._lock = Lock()
        self._holder: int | None = None
        self._is_forking = False
        self._open: list[Any] = []  # the connection, or nothing: a list, for the finalizer must not hold the slot
        weakref.finalize(self, close_forgotten, self._open, self._lock)
        with _forking:
            _slots.add(self)

    @property
    def connection(self) -> Any:
        """The connection, None before it is made."""
        return self._open[0] if self._open else None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the turn of this thread, but not longer than the time limit."""
        if _left_behind is not None:
            raise LedgerUnavailable(
                "this process was forked in the middle of a transaction and would share its parent's locks; start it "
                "with the multiprocessing method spawn, or fork when nothing is being charged"
            )
        if not self._lock.acquire(timeout=self._timeout_s):
            raise self._busy()
        self._holder = get_ident()
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()

    def connected(self) -> Any:
        """Return an open connection; no transaction outlives one that was lost."""
        if self.connection is None or getattr(self.connection, "closed", False):
            self._open[:] = [self._connect()]
        return self.connection

    def undo(self) -> None:
        """Undo what was begun; a connection that cannot even do that is dropped, and so undone."""
        try:
            self.connection.execute("ROLLBACK")
        except Exception:
            self.drop()

    def drop(self) -> None:
        """Close the connection."""
        while self._open:
            with suppress(Exception):
                self._open.pop().close()

    def prepare_fork(self) -> None:
        """Close the connection and keep every thread from making another, unless a transaction does not end in time."""
        if self._holder != get_ident() and self._lock.acquire(timeout=self._timeout_s):
            self._is_forking = True
            self.drop()

    def end_fork(self) -> bool:
        """Let threads make connections again; return whether the fork was prepared."""
        was_prepared, self._is_forking = self._is_forking, False
        if was_prepared:
            self._lock.release()
        return was_prepared

    def leave_behind(self) -> list[Any]:
        """Return what belongs to the parent process, without closing it: that would end the parent's locks."""
        left, self._open[:] = list(self._open), []
        return left


_slots: Final[weakref.WeakSet[Slot]] = weakref.WeakSet()
_forking = RLock()
"""Held during a fork, and while a slot is made: one that is made meanwhile could connect unseen."""
_left_behind: list[Any] | None = None
"""In a child of a fork in the middle of a transaction: its parent's connections, which are kept from the collector."""


def close_forgotten(connections: list[Any], lock: Any) -> None:
    """Close what a slot has left open, unless the interpreter exits while another thread still uses it."""
    if not lock.acquire(blocking=False):
        return
    try:
        while connections:
            with suppress(Exception):
                connections.pop().close()
    finally:
        lock.release()


def _before_fork() -> None:
    _forking.acquire()
    for slot in list(_slots):
        slot.prepare_fork()


def _after_fork_in_parent() -> None:
    for slot in list(_slots):
        slot.end_fork()
    _forking.release()


def _after_fork_in_child() -> None:
    global _left_behind
    for slot in list(_slots):
        if not slot.end_fork():
            _left_behind = (_left_behind or []) + slot.leave_behind()
    _forking.release()


if hasattr(os, "register_at_fork"):  # there are no forks on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
