"""A terminal for tests: what is typed is scripted, what is shown is kept."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout

import pytest

from tacit.cli.app import run

CTRL_C = "\x03"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Typist:
    """Somebody at a terminal who types prepared lines, and then nothing more."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
            patch.delenv(name, raising=False)
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", "100")
        self._patch = patch

    def runs(self, *arguments: str, types: list[str] | None = None) -> tuple[int, str]:
        """Run a command and return its exit code and what was shown, without colours."""
        lines = iter(types or [])

        class Keyboard(Terminal):
            def readline(self, _size: int | None = -1, /) -> str:
                line = next(lines, None)
                if line == CTRL_C:
                    raise KeyboardInterrupt
                return "" if line is None else f"{line}\n"  # an empty text is the end of the input

        shown = Terminal()
        with self._patch.context() as patch, redirect_stdout(shown):
            patch.setattr(sys, "stdin", Keyboard())
            exit_code = run(list(arguments))
        return exit_code, re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
