"""While a question runs: a bar on a terminal when it takes longer, and Ctrl-C stops the engine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from tacit.cli.kit import Screen

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.engines.protocol import Progress

T = TypeVar("T")

QUIET_S: Final = 0.5
"""How long a question may take before a bar is shown."""

INSIST_S: Final = 0.05
"""How often Ctrl-C is looked for, and a question that is to stop told so: told before it runs, it would not know."""


def waited(screen: Screen, curator: Curator, work: Callable[[Progress | None], T]) -> T:
    """Do `work` and return its result, showing progress on a terminal; Ctrl-C stops it and is raised."""
    with progress_on(screen) as progress:
        try:
            return work(progress)
        except KeyboardInterrupt:
            curator.cancel()
            raise


@contextmanager
def progress_on(screen: Screen) -> Iterator[Progress | None]:
    """Give something to tell progress to: a bar on a terminal, if it takes longer than a moment."""
    if screen.as_json or not screen.console.is_terminal:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("the engine is at work"),
        BarColumn(),
        TimeElapsedColumn(),
        transient=True,
        console=Console(stderr=True),
    )
    task = bar.add_task("", total=1.0)
    timer = threading.Timer(QUIET_S, bar.start)
    timer.start()
    try:
        yield lambda share: bar.update(task, completed=share)
    finally:
        timer.cancel()
        bar.stop()


def apart(work: Callable[[], T], cancel: Callable[[int], None]) -> T:
    """Do `work` in a thread of its own, so that Ctrl-C interrupts no step of the ledger; return or raise what it does.

    Ctrl-C asks for the work to stop, and whatever it says then is what happened: an answer that was paid for is not
    thrown away because it came first.
    """
    result: list[T] = []
    failure: list[BaseException] = []
    done, interrupted = threading.Event(), threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    with _noted(interrupted):
        worker = threading.Thread(target=run, name="tacit question", daemon=True)
        worker.start()
        while not done.wait(INSIST_S):
            if interrupted.is_set():
                cancel(worker.ident or 0)
    if failure:
        raise failure[0]
    return result[0]


@contextmanager
def _noted(interrupted: threading.Event) -> Iterator[None]:
    """Note a Ctrl-C instead of raising it: raised, it could come between any two steps, also those of waiting."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread alone
        return
    before = signal.signal(signal.SIGINT, lambda _number, _frame: interrupted.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
