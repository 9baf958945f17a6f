"""The console that answers are written to; apart from `kit`, because rich takes longer to load than click."""

from __future__ import annotations

from rich.console import Console


class AnswerConsole(Console):
    """A console that shows text as it is, and leaves a reader who has gone to the command line's one place for ends."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        raise  # the BrokenPipeError that rich is handling while it calls this
