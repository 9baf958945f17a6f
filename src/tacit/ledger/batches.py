"""Group commit: changes that threads ask for at the same time are written in one transaction.

Waiting for the disk takes most of the time of a durable change. A thread that gets the write lock executes every change
that waits, its own among them, and writes them together. Promise: each change sees those before it; one that raises is
undone alone and raises in its own thread; nobody is told that a change was made before it is on disk; if the
transaction itself fails, all of its changes fail with it. A damaged ledger stops the whole batch.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from tacit.ledger.journal import Head
from tacit.ledger.stores.protocol import Store, Transaction
from tacit.privacy.errors import LedgerCorrupt, LedgerUnavailable

BATCH_MAX: Final = 64

Action = Callable[[Transaction], Any]


class Change:
    """What one thread wants to have written, and what became of it."""

    def __init__(self, action: Action) -> None:
        self.action: Final = action
        self.is_done = False
        self.value: Any = None
        self.error: BaseException | None = None

    def result(self) -> Any:
        """Return what the action returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self.value


class Batches:
    """The changes of one store that wait for the write lock."""

    def __init__(self, store: Store, committed: Callable[[Head], None]) -> None:
        """Take the store, and what is to be told where the journal ends when a batch is on disk."""
        self._store: Final = store
        self._committed: Final = committed
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._ended = threading.Condition()
        """Held for moments only, and notified when a batch has ended."""
        self._is_writing = False
        self._waiting: deque[Change] = deque()

    def write(self, action: Action) -> Any:
        """Execute an action in a transaction, and return its result when that is on disk."""
        if self._process != os.getpid():  # a forked child has neither its parent's threads nor their locks
            self._start()
        mine = Change(action)
        self._waiting.append(mine)
        try:
            while not mine.is_done:  # others may have been first in a long queue
                with self._turn(mine) as is_mine:
                    if is_mine:
                        self._write_waiting()
        except BaseException:  # an interrupt: what nobody has begun to write is not written
            with self._ended, suppress(ValueError):
                self._waiting.remove(mine)
            raise
        return mine.result()

    @contextmanager
    def _turn(self, mine: Change) -> Iterator[bool]:
        """Wait until nobody else writes, and keep others from it; or until a change is done."""
        taken = False
        try:
            with self._ended:
                while self._is_writing and not mine.is_done:
                    self._ended.wait()
                if not mine.is_done:
                    taken = self._is_writing = True
            yield taken
        finally:
            if taken:
                with self._ended:
                    self._is_writing = False
                    self._ended.notify_all()

    def _write_waiting(self) -> None:
        batch: list[Change] = []
        try:
            with self._store.transaction() as rows:
                while more := self._next(BATCH_MAX - len(batch)):  # also those that came while the lock was waited for
                    batch += more
                    for change in more:
                        _execute(change, rows)
                head = rows.head()
            self._committed(head)
        except BaseException as error:
            if not batch and isinstance(error, Exception):
                batch = self._next(BATCH_MAX)
            for change in batch:
                change.error = error if isinstance(error, Exception) else _interrupted()
            if not isinstance(error, Exception):
                raise
        finally:
            for change in batch:
                change.is_done = True

    def _next(self, most: int) -> list[Change]:
        """Take some of those that wait."""
        with self._ended:
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), most))]


def _execute(change: Change, rows: Transaction) -> None:
    """Execute one change of a batch; what it wrote before it raised is undone."""
    before = rows.savepoint()
    try:
        change.value = change.action(rows)
    except LedgerCorrupt:
        raise
    except Exception as error:
        rows.undo_to(before)
        change.error = error


def _interrupted() -> LedgerUnavailable:
    return LedgerUnavailable(
        "writing was interrupted: nothing was released; what was charged stays charged, see reservations()"
    )
