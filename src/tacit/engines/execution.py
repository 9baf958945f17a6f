"""What running a statement has in common on every engine: cancellation, time limits, uniform errors, one zero.

Promise: an error that leaves `with_uniform_errors` is Cancelled, or EngineFailed with one class, code and sentence and
nothing chained to it. Why a statement failed may depend on a single row: one person's text may exhaust the memory, and
an analyst who is told so has an exact bit about that person.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from tacit.engines.protocol import FAILED, Columns, Progress
from tacit.privacy.errors import Cancelled, EngineFailed, TimedOut

T = TypeVar("T")

POLL_S: Final = 0.1
"""How often progress is reported."""


def with_uniform_errors(work: Callable[[], T]) -> T:
    """Return what `work` returns; raise the same EngineFailed for every error except a cancellation."""
    error: EngineFailed
    try:
        return work()
    except Cancelled as cancelled:
        error = Cancelled(cancelled.message)
    except Exception:
        error = EngineFailed(FAILED)
    raise error  # here and not above, so that no other error is chained to it


def was_cancelled() -> Cancelled:
    """Return the error of a statement that was cancelled."""
    return Cancelled("the query was cancelled while it ran; what was charged stays charged")


def exceeded_time(timeout_s: float) -> TimedOut:
    """Return the error of a statement that took longer than its time limit."""
    return TimedOut(f"the query exceeded its time limit of {timeout_s:g} s; what was charged stays charged")


class Cancellable(Protocol):
    """A running statement."""

    def cancel(self) -> None:
        """Make it raise Cancelled in the thread that runs it."""


class RunningStatements:
    """The statements that run now, each with the thread that runs it; engines add how one is run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Cancellable, int] = {}

    @contextmanager
    def tracking(self, statement: Cancellable) -> Iterator[None]:
        """Let `cancel` reach a statement while the block lasts."""
        with self._lock:
            self._running[statement] = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                del self._running[statement]

    def cancel(self, thread: int | None = None) -> None:
        """Make the statement that a thread runs now, or every one, raise Cancelled; later ones are not affected."""
        with self._lock:
            for statement, owner in self._running.items():
                if thread in (None, owner):
                    statement.cancel()


class Watchdog(ABC):
    """A thread that interrupts a statement when its time is up or it is cancelled, and reports its progress.

    It runs while the `with` block lasts. Subclasses say how a statement is interrupted (`_interrupt_once`, which is
    called until the block ends: an interrupt that comes before the statement has begun is lost) and how far it is.
    """

    def __init__(self, timeout_s: float | None, progress: Progress | None) -> None:
        self._timeout_s, self._progress = timeout_s, progress
        self._deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._wake = threading.Event()
        self._done = threading.Event()
        self._is_cancelled = self._is_late = False
        self._thread = threading.Thread(target=self._watch, name="tacit engine watch", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._wake.set()
        self._thread.join()

    def cancel(self) -> None:
        """Interrupt the statement."""
        self._is_cancelled = True
        self._wake.set()

    @property
    def error(self) -> EngineFailed | None:
        """Why the statement was interrupted; None if it was not."""
        if self._is_cancelled:
            return was_cancelled()
        return exceeded_time(self._timeout_s) if self._is_late and self._timeout_s is not None else None

    def _watch(self) -> None:
        while not self._done.is_set():
            left_s = None if self._deadline_s is None else self._deadline_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                self._is_late = True
            if self._is_cancelled or self._is_late:
                self._interrupt_once()
                continue
            waits = [one for one in (left_s, None if self._progress is None else POLL_S) if one is not None]
            self._wake.wait(min(waits, default=None))
            self._wake.clear()
            if not self._done.is_set() and self._progress is not None:
                with suppress(Exception):  # a failed report must not stop the statement
                    self._report(self._progress)

    @abstractmethod
    def _interrupt_once(self) -> None:
        """Interrupt the statement, and wait before the next attempt."""

    @abstractmethod
    def _report(self, progress: Progress) -> None:
        """Call `progress` with the share of the work that is done, if that is known."""


def normalize_zeros(columns: Columns) -> Columns:
    """Return columns with 0.0 in the place of -0.0.

    The two are equal, so which of them a group, MIN or DISTINCT keeps depends on the order of rows; no answer of an
    engine may show it.
    """
    return {name: _with_one_zero(values) for name, values in columns.items()}


def _with_one_zero(values: Any) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        return values + 0.0 if values.dtype.kind == "f" else values  # type: ignore[return-value]
    return [value + 0.0 if isinstance(value, float) else value for value in values]
