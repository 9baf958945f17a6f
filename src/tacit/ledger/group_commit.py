"""Group commit: changes that threads request at the same time are written in one transaction.

Waiting for the disk takes most of the time of a durable change. The thread that leads executes every change that waits,
its own among them, and writes them together. Promise: each change sees those before it; one that is refused is undone
alone and raises in its own thread; no thread is told that a change was made before it is on disk; any other error while
a batch is executed or written ends its transaction, and all of its changes fail with it.

A thread may be interrupted anywhere (see `storage.connections`), a second time as well. What others rely on is
therefore one assignment, or one call of C in a `finally` clause: `is_left`, `is_over`, and the release of the leader's
lock. A thread that is not woken looks again after `WAIT_S`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import count, islice
from threading import Lock, get_ident
from typing import Any, Final

from tacit.ledger.permits import Scope
from tacit.ledger.stores.protocol import Store, Transaction
from tacit.ledger.stores.sql import PROFILE
from tacit.privacy.errors import LedgerBusy, LedgerCorrupt, LedgerMoved, LedgerUnavailable, TacitError
from tacit.storage.connections import acquire, reset_in_children, run_in

BATCH_MAX: Final = 64
SCOPES_MAX: Final = 1_000
WAIT_S: Final = 1.0
"""How long a thread sleeps before it looks again without being woken."""
WAIT_MAX_S: Final = 120.0
"""How long a thread waits for others to write; a store times out long before that."""

Action = Callable[[Transaction], Any]


class Batch:
    """Changes that are written in one transaction."""

    def __init__(self) -> None:
        self.changes: Final[list[Change]] = []
        self.is_over = False
        """Whether the outcome of its changes is final: each is on disk, or failed."""


class Change:
    """A change that one thread requests, and its outcome."""

    def __init__(self, action: Action, scopes: Sequence[Scope] = ()) -> None:
        self._action: Final = action
        self.scopes: Final = scopes
        self._value: Any = None
        self._refusal: TacitError | None = None
        self._error: TacitError | None = None
        self._batch: Batch | None = None
        self.is_left = False
        """Whether its thread has stopped waiting: a change that was not begun is then dropped."""
        self._asleep: Final = Lock()
        self._asleep.acquire()

    @property
    def is_begun(self) -> bool:
        """Whether it is in a batch; no change is ever in two."""
        return self._batch is not None

    @property
    def is_done(self) -> bool:
        """Whether its outcome is final."""
        return self._batch is not None and self._batch.is_over

    def begin(self, batch: Batch) -> None:
        """Add it to a batch; until it is on disk its outcome is "interrupted"."""
        self._error = _interrupted()
        self._batch = batch
        batch.changes.append(self)

    def execute(self, rows: Transaction) -> None:
        """Execute the action; if it is refused, undo what it wrote."""
        before = rows.savepoint()
        try:
            self._value = self._action(rows)
        except TacitError as error:
            if isinstance(error, LedgerCorrupt | LedgerUnavailable) and not isinstance(error, LedgerMoved):
                raise  # an error of the store: the state of the transaction is not known
            rows.undo_to(before)
            self._refusal = error

    def succeed(self) -> None:
        """Record that the transaction is on disk."""
        self._error = self._refusal

    def fail(self, batch: Batch, error: Exception) -> None:
        """Record that the change was not made, and why; each thread raises a copy of the error."""
        if isinstance(error, TacitError):
            self._error = copy(error)
        else:
            self._error = LedgerUnavailable(f"a change failed ({type(error).__name__}): nothing was charged; try again")
        self._error.__cause__ = error
        self._batch = batch

    def result(self) -> Any:
        """Return the result of the action, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._value

    def sleep(self) -> None:
        """Wait until `wake` is called, at most `WAIT_S`."""
        self._asleep.acquire(timeout=WAIT_S)

    def wake(self) -> None:
        """Wake its thread."""
        with suppress(RuntimeError):  # it is awake already
            self._asleep.release()


class Batches:
    """The changes of one store that wait to be written."""

    def __init__(
        self,
        store: Store,
        begin: Callable[[Transaction], Any],
        end: Callable[[Transaction, Any], Callable[[], None]],
    ) -> None:
        """Set the store and two hooks: `begin` may refuse a transaction, and `end` gets what `begin` returned.

        The function that `end` returns is called when the transaction is on disk.
        """
        self._store: Final = store
        self._begin: Final = begin
        self._end: Final = end
        self.reset()
        reset_in_children(self)

    def reset(self) -> None:
        """Forget every change: a forked child has neither its parent's threads nor their locks."""
        self._leading = Lock()
        """Held by the thread that writes (the leader)."""
        self._waiting: deque[Change] = deque()
        """Changes in the order of their requests; only the leader removes any."""
        self._inside: dict[int, Change] = {}
        """The change of each thread that is in `write`."""

    def write(self, action: Action, scopes: Sequence[Scope] = ()) -> Any:
        """Execute an action, which reads the rows of `scopes`, and return its result when that is on disk."""
        thread, inside, mine = get_ident(), self._inside, Change(action, scopes)
        if thread in inside:
            raise PROFILE.reentered()
        inside[thread] = mine
        try:
            self._waiting.append(mine)
            deadline = time.monotonic() + WAIT_MAX_S
            while not mine.is_done:  # others may have been first in a long queue
                if self._lead(mine):
                    continue
                if time.monotonic() > deadline:
                    raise _interrupted() if mine.is_begun else _timed_out()
                mine.sleep()
        finally:
            mine.is_left = True
            del inside[thread]
        return mine.result()

    def _lead(self, mine: Change) -> bool:
        """Write what waits, `mine` included, unless another thread is writing; return whether this thread led."""
        had: list[bool] = []
        leading = self._leading
        try:
            acquire(leading, had, 0)
            if had and not mine.is_done:  # it may have been written since `is_done` was read
                self._write_waiting(Batch())
        finally:
            if had:
                leading.release()
                self._wake_next()
        return bool(had)

    def _wake_next(self) -> None:
        """Wake the first thread that waits, to lead the next batch."""
        for change in self._first_waiting():
            if not change.is_left:
                change.wake()
                return

    def _write_waiting(self, batch: Batch) -> None:
        self._drop_finished()

        def execute(rows: Transaction) -> Callable[[], None]:
            start = self._begin(rows)
            for change in self._first_waiting():  # also those that arrived while this thread waited for the lock
                if not change.is_begun and not change.is_left:
                    change.begin(batch)
                    change.execute(rows)
            return self._end(rows, start)

        try:
            on_disk = run_in(self._store.transaction(self._next_scopes()), execute)
            for change in batch.changes:
                change.succeed()
            on_disk()
        except Exception as error:
            is_general = not batch.changes or isinstance(error, LedgerCorrupt)
            for change in list(self._first_waiting(None)) if is_general else batch.changes:
                change.fail(batch, error)
        finally:
            batch.is_over = True
            self._drop_finished()

    def _drop_finished(self) -> None:
        """Remove changes that are done or abandoned from the front of the queue."""
        while self._waiting and (self._waiting[0].is_done or self._waiting[0].is_left):
            self._waiting.popleft().wake()

    def _first_waiting(self, most: int | None = BATCH_MAX) -> Iterator[Change]:
        """Yield changes from the front of the queue, also those that arrive meanwhile."""
        for place in islice(count(), most):
            try:
                yield self._waiting[place]
            except IndexError:
                return

    def _next_scopes(self) -> tuple[Scope, ...]:
        """Return the scopes that the next batch reads, each once; the limit keeps the message small."""
        scopes = [scope for change in self._first_waiting() for scope in change.scopes]
        return tuple(islice(dict.fromkeys(scopes), SCOPES_MAX))


def _interrupted() -> LedgerUnavailable:
    return LedgerUnavailable(
        "writing was interrupted: nothing was released; what was charged stays charged, see reservations()"
    )


def _timed_out() -> LedgerBusy:
    return LedgerBusy(
        f"another thread has been writing to the ledger for {WAIT_MAX_S:g} s: nothing was charged; try again"
    )
