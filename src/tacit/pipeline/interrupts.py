"""Ctrl-C during a release.

Promise: an interrupt never comes between two steps of the ledger. It asks the engine to stop; if the run stops for
that, `Interrupted` (a KeyboardInterrupt) is raised and the charge is noted as cancelled; if the run ends first, its
answer is returned, because it is charged. A second Ctrl-C is raised at once, and the run ends in the background.

This holds on the main thread, as in scripts, shells and notebooks; the program's own handler is restored when the
release has ended. Other threads get no signals, and a program that ignores interrupts is not interrupted.

Whether an interrupt came before any charge: whoever charges calls `begin_charge` first (`pipeline.release`, and the
client before it posts a query), so nothing was charged while `latest_charge` is the same object as before.
"""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

from tacit.privacy.errors import Cancelled

T = TypeVar("T")

INSIST_S: Final = 0.05
"""How often Ctrl-C is checked, and the cancellation repeated.

A wait without a limit would not notice the signal, and an engine forgets a cancellation that precedes its statement.
"""


_latest_charge: Final = [object()]


def begin_charge() -> None:
    """Note that a charge may be made from now on."""
    _latest_charge[0] = object()


def latest_charge() -> object:
    """Return an object that is another one after every charge of this process."""
    return _latest_charge[0]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a release after its charge; the message says what was charged."""


def run_shielded(work: Callable[[], T], cancel: Callable[[int], None]) -> T:
    """Run `work` in a thread of its own and return or raise its outcome; Ctrl-C calls `cancel` with the thread's id."""
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        return work()
    result: list[T] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    context = contextvars.copy_context()
    worker = threading.Thread(target=context.run, args=(run,), name="tacit release", daemon=True)
    with _first_interrupt() as interrupted:
        worker.start()
        while not done.wait(INSIST_S):
            if interrupted.is_set() and worker.ident is not None:
                cancel(worker.ident)
    if not failure:
        return result[0]
    if interrupted.is_set() and isinstance(failure[0], Cancelled):
        raise Interrupted(failure[0].message)
    raise failure[0]


@contextmanager
def _first_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; the second one raises Interrupted."""
    interrupted = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise Interrupted("stopped; what was charged stays charged")
        interrupted.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
