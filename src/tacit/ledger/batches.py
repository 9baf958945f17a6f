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
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from tacit.ledger.stores.protocol import Store, Transaction
from tacit.privacy.errors import LedgerCorrupt, LedgerUnavailable

BATCH_MAX: Final = 64
WAIT_S: Final = 1.0
"""How long a thread sleeps before it looks again, should nobody wake it up."""

Action = Callable[[Transaction], Any]


class Change:
    """What one thread wants to have written, and what became of it."""

    def __init__(self, action: Action) -> None:
        self._action: Final = action
        self._raised: Exception | None = None
        self._value: Any = None
        self.is_begun = self.is_done = False
        self.error: Exception | None = None

    def begin(self) -> None:
        """Note that it is to be executed; until it is known to be on disk, it was interrupted."""
        self.error = LedgerUnavailable(
            "writing was interrupted: nothing was released; what was charged stays charged, see reservations()"
        )
        self.is_begun = True

    def execute(self, rows: Transaction) -> None:
        """Execute the action; what it wrote before it raised is undone."""
        before = rows.savepoint()
        try:
            self._value = self._action(rows)
        except LedgerCorrupt:
            raise
        except Exception as error:
            rows.undo_to(before)
            self._raised = error

    def succeed(self) -> None:
        """Note that what was executed is on disk."""
        self.error = self._raised

    def result(self) -> Any:
        """Return what the action returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self._value


class Batches:
    """The changes of one store that wait for the write lock.

    A thread may be interrupted anywhere. A change that was begun is never begun again; until it is known to be on disk,
    whoever waits for it is told that it was interrupted.
    """

    def __init__(
        self,
        store: Store,
        begin: Callable[[Transaction], None],
        end: Callable[[Transaction], Callable[[], None]],
    ) -> None:
        """Take the store; `begin` may refuse a transaction, `end` returns what is to be done when it is on disk."""
        self._store: Final = store
        self._begin: Final = begin
        self._end: Final = end
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._ended = threading.Condition()
        """Held for moments only, and notified when a batch has ended."""
        self._leader: Change | None = None
        """Of the thread that writes; one that is done writes no more."""
        self._waiting: deque[Change] = deque()

    def write(self, action: Action) -> Any:
        """Execute an action in a transaction, and return its result when that is on disk."""
        if self._process != os.getpid():  # a forked child has neither its parent's threads nor their locks
            self._start()
        mine = Change(action)
        try:
            with self._ended:  # the end of a batch makes the queue anew
                self._waiting.append(mine)
            while not mine.is_done:  # others may have been first in a long queue
                if self._is_turn_of(mine):
                    self._write_waiting()
        finally:
            with self._ended:
                if not mine.is_begun and mine in self._waiting:  # an interrupt: what nobody has begun is not written
                    self._waiting.remove(mine)
                if self._leader is mine:
                    self._leader = None
                    self._ended.notify_all()
        return mine.result()

    def _is_turn_of(self, mine: Change) -> bool:
        """Wait until nobody else writes, and keep others from it; or until the change is done."""
        with self._ended:
            while (leader := self._leader) not in (None, mine) and not leader.is_done and not mine.is_done:
                self._ended.wait(WAIT_S)
            if not mine.is_done:
                self._leader = mine
            return not mine.is_done

    def _write_waiting(self) -> None:
        batch: list[Change] = []
        try:
            with self._store.transaction() as rows:
                self._begin(rows)
                while self._begin_next(batch):  # also one that came while the lock was waited for
                    batch[-1].execute(rows)
                on_disk = self._end(rows)
            for change in batch:
                change.succeed()
            on_disk()
        except Exception as error:
            with self._ended:
                is_general = not batch or isinstance(error, LedgerCorrupt)
                for change in self._waiting if is_general else batch:
                    change.begin()
                    change.error = error
        finally:
            with self._ended:
                for change in self._waiting:
                    change.is_done = change.is_begun
                self._waiting = deque(change for change in self._waiting if not change.is_done)

    def _begin_next(self, batch: list[Change]) -> bool:
        """Add the first change to a batch that was not begun; whether there was one."""
        with self._ended:
            for change in islice(self._waiting, BATCH_MAX):
                if not change.is_begun:
                    change.begin()
                    batch.append(change)
                    return True
        return False
