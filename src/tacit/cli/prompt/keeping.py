"""The history of what was typed: a file in the user's own state directory that nobody else can read.

Questions name people's properties, so the file is made with mode 0600; where no such file can be had, the history
lasts as long as the prompt.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prompt_toolkit.history import History

FILE: Final = "history"


def place(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the history lies: below XDG_STATE_HOME, or where that is by custom."""
    stated = environment.get("XDG_STATE_HOME", "")
    base = Path(stated) if os.path.isabs(stated) else Path.home() / ".local" / "state"
    return base / "tacit" / FILE


def history() -> History:
    """Return the history to read from and to write to."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        path = place()
        secured(path)
    except (OSError, RuntimeError):  # RuntimeError: nobody knows where the home directory is
        return InMemoryHistory()
    return FileHistory(path)


def secured(path: Path) -> None:
    """Make the file if it is missing, and close it to everybody but its owner; a link is not followed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)
