"""Interrupts and re-entry: Ctrl-C leaves no lock behind, and a handler that uses the ledger does not wait for itself.

The interpreter runs signal handlers after a call of C and at the beginning of a Python function. A profile function is
called at the same moments, and what it raises is raised there: so every one of them is tried, one after another.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger, SqliteStore
from tacit.privacy import events
from tacit.privacy.errors import LedgerUnavailable, TacitError
from tacit.storage import connections

FILES = ("batches.py", "connection_slot.py", "sqlite.py", "book.py", "contextlib.py")
TENTH = events.Laplace(0.1)


class Stop(BaseException):
    """What a signal handler raises."""


def interrupted(action: Callable[[], Any], moment: int) -> Stop | None:
    """Call an action and raise at a moment of it; return what was raised, or None if the action ended before."""
    moments = itertools.count()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.endswith(FILES) and next(moments) == moment:
            sys.setprofile(None)
            raise Stop

    sys.setprofile(profile)
    try:
        action()
    except Stop as error:
        return error
    except TacitError:
        pass
    finally:
        sys.setprofile(None)
    return None


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(SqliteStore(tmp_path, busy_timeout_s=2)) as opened:
        opened.create_budget("visits", epsilon=1e5, epsilon_min=0)
        yield opened


def in_time(action: Callable[[], Any]) -> Any:
    """Return what an action returns in another thread, which must not hang."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(action()), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "another thread waits for ever"
    return found[0]


@pytest.mark.parametrize("name", ["reserve", "head"])
def test_an_interrupt_at_any_moment_leaves_no_lock_behind(ledger: Ledger, name: str) -> None:
    action: Callable[[], Any] = ledger.head if name == "head" else lambda: ledger.reserve("visits", TENTH)
    kept: list[Stop] = []
    action()
    for moment in itertools.count():
        error = interrupted(action, moment)
        if error is None:
            break
        kept.append(error)  # as an interactive session keeps the last error: nothing must depend on its being dropped
        began = time.monotonic()
        action()
        in_time(action)
        assert time.monotonic() - began < 1.5, f"moment {moment} leaves a lock behind"
    assert moment > 20
    ledger.verify(full=True)
    assert ledger.budget("visits").spent().epsilon == pytest.approx(0.1 * len(ledger.reservations()))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what is raised in a finalizer
def test_a_thread_whose_change_an_interrupted_thread_was_writing_does_not_wait_for_ever(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.ledger.group_commit.WAIT_S", 0.05)
    for moment in itertools.count():
        started, go = threading.Event(), threading.Event()

        def reserve(started: threading.Event = started, go: threading.Event = go) -> None:
            started.set()
            go.wait(20)
            for _ in range(3):
                with suppress(LedgerUnavailable):  # of the change that was being written
                    ledger.reserve("visits", TENTH)

        thread = threading.Thread(target=reserve, daemon=True)
        thread.start()
        started.wait(20)

        def lead(go: threading.Event = go) -> None:
            go.set()
            ledger.reserve("visits", TENTH)

        error = interrupted(lead, moment)
        thread.join(20)
        assert not thread.is_alive(), f"moment {moment}: the other thread waits for ever"
        if error is None:
            break
    assert moment > 20
    ledger.verify(full=True)


def test_a_lock_is_acquired_and_noted_in_one_step() -> None:
    lock = threading.Lock()

    def interrupted_acquire() -> None:
        had: list[bool] = []
        try:
            connections.acquire(lock, had, 1)
        finally:
            if had:
                lock.release()

    for moment in range(10):
        interrupted(interrupted_acquire, moment)
        assert not lock.locked()


def test_a_signal_handler_that_writes_while_its_thread_writes_is_refused(tmp_path: Path) -> None:
    said: list[TacitError] = []
    armed = [False]

    def clock() -> int:
        if armed[0]:
            armed[0] = False
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0)
        return time.time_ns() // 1000

    def handler(*_: object) -> None:
        try:
            ledger.annotate(permit, "the server was stopped")
        except TacitError as error:
            said.append(error)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with Ledger.open(tmp_path, clock=clock) as ledger:
            ledger.create_budget("visits", epsilon=1.0)
            permit = ledger.reserve("visits", TENTH)
            armed[0], began = True, time.monotonic()
            ledger.reserve("visits", TENTH)
            assert time.monotonic() - began < 5
            (error,) = said
            assert isinstance(error, LedgerUnavailable)
            assert "using the ledger already" in error.message
            ledger.annotate(permit, "afterwards it can be used")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_who_uses_a_store_inside_its_own_transaction_is_refused_at_once(ledger: Ledger) -> None:
    began = time.monotonic()
    with ledger._store.transaction(), pytest.raises(LedgerUnavailable, match="would wait for itself"):
        ledger.reserve("visits", TENTH)
    with ledger._store.snapshot(), pytest.raises(LedgerUnavailable, match="would wait for itself"):
        ledger.head()
    assert time.monotonic() - began < 1
    assert ledger.reserve("visits", TENTH).id
