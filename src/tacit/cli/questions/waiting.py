"""While a question runs: a bar on a terminal when it takes longer, and Ctrl-C stops the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from tacit.cli.kit import Screen

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.engines.protocol import Progress

T = TypeVar("T")

QUIET_S: Final = 0.5
"""How long a question may take before a bar is shown."""


def waited(screen: Screen, curator: Curator, work: Callable[[Progress | None], T]) -> T:
    """Do `work` and return its result, showing progress on a terminal."""
    if screen.as_json or not screen.console.is_terminal:
        return _interruptible(curator, lambda: work(None))
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
        return _interruptible(curator, lambda: work(lambda share: bar.update(task, completed=share)))
    finally:
        timer.cancel()
        bar.stop()


def _interruptible(curator: Curator, work: Callable[[], T]) -> T:
    try:
        return work()
    except KeyboardInterrupt:
        curator.cancel()
        raise
