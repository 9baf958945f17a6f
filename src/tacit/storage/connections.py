"""Connections of a database, each with a lock: one thread and one transaction at a time, safe across forks.

A connection is made when it is first needed, and again when it was lost.

Promise: no connection outlives its slot, none crosses a fork, and no interrupt leaves a slot locked.

- A slot that is collected, or alive when the interpreter exits, closes its connection without a warning. Every
  transaction that has ended is on disk, so a database that is not closed loses nothing, and a warning in the collector
  would only appear in the middle of unrelated work.
- Before a fork every connection of the process is closed, and parent and child open their own when they need one.
  SQLite counts the locks of a process in its memory; a child that inherits the count takes its parent's locks for its
  own, and what it charges is lost once the parent closes the file and so removes the log (sqlite.org/howtocorrupt.html,
  section 2.6). A child of a fork that could not wait for a transaction to end is refused every slot.
- A signal handler runs, and may raise, after any call of a Python function or of C, never in the middle of one. So a
  lock is acquired and the success recorded in one call of C (`acquire`), and released in the first call of a `finally`
  clause. Leaving a `with` block calls Python code, before which a handler may raise: `run_in` ends such a block itself.
- A thread that holds a slot and requests it again would wait for itself: a signal handler, a finalizer or a clock that
  uses the database while its thread does is refused.
"""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, RLock, get_ident
from typing import Any, Final, Protocol, TypeVar, cast

from tacit.privacy.errors import (
    StorageBusy,
    StorageCorrupt,
    StorageFull,
    StorageReadOnly,
    StorageTooNew,
    StorageUnavailable,
    TacitError,
)


@dataclass(frozen=True, slots=True)
class ErrorProfile:
    """The phrases and error types in which the failures of one database are reported.

    The ledger reports `LedgerCorrupt` and "nothing was charged" where the server's own database reports
    `StorageCorrupt` and "nothing was changed".
    """

    noun: str
    """The kind of database, without an article."""

    undone: str
    """What did not happen if a change failed before it began."""

    closed: str
    """What is refused while the database cannot be written or is damaged."""

    doubt: str
    """What is known if a change failed after it began."""

    busy: type[StorageBusy] = StorageBusy
    corrupt: type[StorageCorrupt] = StorageCorrupt
    foreign: type[StorageCorrupt] = StorageCorrupt
    """The file belongs to another program, or cannot be read as a database."""
    full: type[StorageFull] = StorageFull
    read_only: type[StorageReadOnly] = StorageReadOnly
    too_new: type[StorageTooNew] = StorageTooNew
    unavailable: type[StorageUnavailable] = StorageUnavailable

    def reentered(self) -> StorageUnavailable:
        """Return the error for a thread that uses a connection inside its own use of it."""
        return self.unavailable(
            f"this thread is using the {self.noun} already, and would wait for itself: {self.undone}; use it from "
            "another thread in a signal handler, a finalizer or a clock"
        )


Given = TypeVar("Given")
Done = TypeVar("Done")


def acquire(lock: Any, had: list[bool], timeout_s: float) -> None:
    """Acquire a lock or time out; `had` gets an item as soon as it is acquired, whatever is raised afterwards."""
    had.extend(filter(None, map(lock.acquire, (True,), (timeout_s,))))  # one call of C


def run_in(block: AbstractContextManager[Given], action: Callable[[Given], Done]) -> Done:
    """Return the result of an action inside a generator's context manager, which ends also if it is interrupted."""
    try:
        with block as given:
            return action(given)
    finally:
        cast(Any, block).gen.close()


class Resettable(Protocol):
    """An object with state of threads that a forked child does not have."""

    def reset(self) -> None:
        """Forget every thread but the current one."""


class Slot:
    """One connection with its lock."""

    def __init__(
        self,
        connect: Callable[[], Any],
        timeout_s: float,
        profile: ErrorProfile,
        busy: Callable[[], TacitError],
        in_transaction: Callable[[Any], bool],
    ) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._profile = profile
        self._busy = busy
        self._in_transaction = in_transaction
        self._lock = Lock()
        self._inside: dict[int, None] = {}
        """Threads that hold the slot or wait for it."""
        self._prepared: list[bool] = []
        """Not empty while a fork is under way and no thread may use the slot."""
        self._open: list[Any] = []  # the connection, if any; a list, so that the finalizer does not refer to the slot
        weakref.finalize(self, close_forgotten, self._open, self._lock)
        with _forking:
            _slots.add(self)
        reset_in_children(self)

    @property
    def connection(self) -> Any:
        """The open connection, or None."""
        return self._open[0] if self._open else None

    @contextmanager
    def held(
        self, begin: Callable[[], Given] = lambda: cast(Any, None), end: Callable[[Given], object] = lambda given: None
    ) -> Iterator[Given]:
        """Hold the slot: yield what `begin` returns, then call `end`; roll back if anything raises.

        Waits for the slot at most its time limit.
        """
        thread = get_ident()
        if _left_behind is not None:
            raise self._profile.unavailable(
                "this process was forked in the middle of a transaction and would share its parent's locks; start it "
                "with the multiprocessing method spawn, or fork between transactions"
            )
        if thread in self._inside:
            raise self._profile.reentered()
        had: list[bool] = []
        self._inside[thread] = None
        try:
            acquire(self._lock, had, self._timeout_s)
            if not had:
                raise self._busy()
            try:
                given = begin()
                yield given
                end(given)
            except BaseException:
                self.rollback()
                raise
        finally:
            del self._inside[thread]  # no call, so no handler runs before the next line
            if had:
                self._lock.release()

    def connect(self) -> Any:
        """Return an open connection without a transaction; one that is closed or inside a transaction is replaced."""
        if self._open and (getattr(self.connection, "closed", False) or self._in_transaction(self.connection)):
            self.disconnect()
        if not self._open:
            self._open[:] = [self._connect()]
        return self.connection

    def rollback(self) -> None:
        """Roll back; if that fails, close the connection, which rolls back too."""
        try:
            self.connection.execute("ROLLBACK")
        except Exception:
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connection."""
        while self._open:
            with suppress(Exception):
                self._open.pop().close()

    def prepare_fork(self) -> None:
        """Close the connection and block the slot, unless a transaction does not end in time."""
        if get_ident() not in self._inside:
            acquire(self._lock, self._prepared, self._timeout_s)
        if self._prepared:
            self.disconnect()

    def end_fork(self) -> bool:
        """Unblock the slot; return whether the fork was prepared."""
        was_prepared, self._prepared = bool(self._prepared), []
        if was_prepared:
            self._lock.release()
        return was_prepared

    def reset(self) -> None:
        self._inside = dict.fromkeys(self._inside.keys() & {get_ident()})

    def leave_behind(self) -> list[Any]:
        """Return the parent's connections without closing them: that would end the parent's locks."""
        left, self._open[:] = list(self._open), []
        return left


class ConnectionPair(ABC):
    """A database with one connection for changes and one for reading, so that a long read does not delay changes."""

    def __init__(
        self, description: str, profile: ErrorProfile, timeout_s: float, in_transaction: Callable[[Any], bool]
    ) -> None:
        self._description = description
        self._profile = profile
        self._writer = Slot(self._new_connection, timeout_s, profile, self._busy, in_transaction)
        self._reader = Slot(self._new_connection, timeout_s, profile, self._busy, in_transaction)

    @property
    def description(self) -> str:
        """What messages call the database."""
        return self._description

    @abstractmethod
    def _new_connection(self) -> Any:
        """Connect to the database."""

    @abstractmethod
    def _busy(self) -> TacitError:
        """Return the error for a database that others used for longer than the time limit."""

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        for slot in (self._writer, self._reader):
            with slot.held():
                slot.disconnect()


_slots: Final[weakref.WeakSet[Slot]] = weakref.WeakSet()
_reset_in_children: Final[weakref.WeakSet[Resettable]] = weakref.WeakSet()
_forking = RLock()
"""Held during a fork and while a slot is created, so that no slot connects during a fork."""
_left_behind: list[Any] | None = None
"""In a child of a fork in the middle of a transaction: its parent's connections, kept from the collector."""


def reset_in_children(thing: Resettable) -> None:
    """Reset an object in every forked child before the child's code runs."""
    with _forking:
        _reset_in_children.add(thing)


def close_forgotten(connections: list[Any], lock: Any) -> None:
    """Close the connection of a collected slot, unless the interpreter exits while another thread uses it."""
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
    for thing in list(_reset_in_children):
        thing.reset()
    _forking.release()


if hasattr(os, "register_at_fork"):  # there are no forks on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
