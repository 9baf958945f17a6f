"""What runs now in an engine, by the thread that asked for it, and how it is stopped from another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Stoppable(Protocol):
    """A statement that runs."""

    def cancel(self) -> None:
        """Make it raise Cancelled in the thread that asked for it."""


class UnderWay:
    """The statements that run now, each in the thread that asked for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Stoppable, int] = {}

    @contextmanager
    def holding(self, run: Stoppable) -> Iterator[None]:
        """Count a statement among those that run, while the block lasts."""
        with self._lock:
            self._running[run] = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                del self._running[run]

    def cancel(self, thread: int | None = None) -> None:
        """Stop what a thread asked for, or everything; what comes later is not stopped."""
        with self._lock:
            for run, asker in self._running.items():
                if thread in (None, asker):
                    run.cancel()
