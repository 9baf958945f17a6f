"""While a statistic is computed: a spinner on a terminal when it takes longer, and Ctrl-C stops the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tacit.cli.kit import Screen
from tacit.cli.questions.waiting import QUIET_S

if TYPE_CHECKING:
    from tacit.curator import Curator

T = TypeVar("T")


def spun(screen: Screen, curator: Curator, work: Callable[[], T]) -> T:
    """Do `work` and return its result; how far it is nobody knows, so a terminal is told only that it goes on."""
    if screen.as_json or not screen.console.is_terminal:
        return _interruptible(curator, work)
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    spinner = Progress(
        SpinnerColumn(),
        TextColumn("the engine is at work"),
        TimeElapsedColumn(),
        transient=True,
        console=Console(stderr=True),
    )
    spinner.add_task("", total=None)
    timer = threading.Timer(QUIET_S, spinner.start)
    timer.start()
    try:
        return _interruptible(curator, work)
    finally:
        timer.cancel()
        spinner.stop()


def _interruptible(curator: Curator, work: Callable[[], T]) -> T:
    try:
        return work()
    except KeyboardInterrupt:
        curator.cancel()
        raise
