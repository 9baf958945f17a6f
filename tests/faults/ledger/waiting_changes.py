"""Threads that ask a ledger for changes at the same time, so that one of them writes the changes of all."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tacit.ledger import Ledger
from tacit.ledger.group_commit import Change


class ObservedQueue(deque[Change]):
    """A queue of changes whose semaphore counts the additions."""

    def __init__(self, changes: Iterable[Change]) -> None:
        super().__init__(changes)
        self.added = threading.Semaphore(0)

    def append(self, change: Change) -> None:
        super().append(change)
        self.added.release()


@contextmanager
def writing(ledger: Ledger) -> Iterator[None]:
    """Keep others from writing, as a thread does that writes."""
    with ledger._batches._leading:
        yield
    for change in list(ledger._batches._waiting)[:1]:
        change.wake()


def together(ledger: Ledger, *calls: Callable[[], Any]) -> list[Any]:
    """Let threads ask for changes that wait for one another, and return what each got: a value or an error."""
    found: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        try:
            found[number] = calls[number]()
        except BaseException as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(calls))]
    with writing(ledger):
        queue = ledger._batches._waiting = ObservedQueue(ledger._batches._waiting)
        for thread in threads:
            thread.start()
            assert queue.added.acquire(timeout=30), "a thread does not ask for its change"
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    return found
