"""What the execution of statements has in common on every engine: cancellation, errors, and one zero.

What a caller is told of a statement that did not end well: that it was cancelled, or that it failed.

Promise: an error that leaves `with_uniform_errors` is Cancelled, or EngineFailed with one class, code and sentence and
nothing chained to it. Why a statement failed may depend on a single row: one person's text may exhaust the memory, and
an analyst who is told so has an exact bit about that person.

What runs now in an engine, by the thread that asked for it, and how it is stopped from another one.

Of the two zeros of reals one, in all that leaves an engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np

from tacit.engines.protocol import FAILED, Columns
from tacit.privacy.errors import Cancelled, EngineFailed

T = TypeVar("T")


def with_uniform_errors(work: Callable[[], T]) -> T:
    """Do work of a statement that runs, and raise the same EngineFailed for every error except a cancellation."""
    error: EngineFailed
    try:
        return work()
    except Cancelled as cancelled:
        error = Cancelled(cancelled.message)
    except Exception:
        error = EngineFailed(FAILED)
    raise error  # here and not above, so that it carries nothing along


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


def one_zero(columns: Columns) -> Columns:
    """Return columns with 0.0 in the place of -0.0.

    The two are equal, so which of them a group, MIN or DISTINCT keeps depends on the order of rows; nothing that leaves
    an engine may tell it.
    """
    return {name: _one_zero(values) for name, values in columns.items()}


def _one_zero(values: Any) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        return values + 0.0 if values.dtype.kind == "f" else values  # type: ignore[return-value]
    return [value + 0.0 if isinstance(value, float) else value for value in values]
