"""The latest head of a ledger, noted outside the database: a small file `ledger.head` beside it.

A database that was deleted, cut off or replaced by an older copy says nothing false: it is whole, only too short. The
file remembers that there was more. It is written after every commit, in one call and without waiting for the disk, so
it may lag behind the journal and never leads; whoever opens a ledger reads the file first and the journal then.

Its form is text: two lines of equal length, written in turns, each with the ledger's id (the hash of its first record),
the number and the hash of a head, and a checksum. A line that was torn is not believed, and the other one counts; if
both are, there is nothing to hold the journal against, but a ledger is still expected.

Not here: what is done about a journal that does not reach the noted head (verification), and how to go back (restore).
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tacit.ledger.journal import Head

FILE_NAME: Final = "ledger.head"
LINE_BYTES: Final = 256
_LINE: Final = re.compile(
    r"(?P<text>tacit ledger (?P<id>[0-9a-f]{64}) record (?P<number>\d{1,18}) hash (?P<hash>[0-9a-f]{64}))"
    r" sum (?P<sum>[0-9a-f]{16}) *\n"
)


@dataclass(frozen=True, slots=True)
class Noted:
    """A head that was noted: which ledger's, and its number and hash."""

    ledger: str
    number: int
    hash: str

    @property
    def line(self) -> bytes:
        """The written form."""
        text = f"tacit ledger {self.ledger} record {self.number} hash {self.hash}"
        return f"{text} sum {_checksum(text)}".ljust(LINE_BYTES - 1).encode("ascii") + b"\n"


class Anchor:
    """The file in which the head of one ledger is noted; it need not exist."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._turn = 0

    def exists(self) -> bool:
        """Whether a ledger was noted here, legibly or not."""
        return os.path.lexists(self.path)

    def read(self) -> Noted | None:
        """Return the latest head that was noted, or None if nothing legible is there."""
        try:
            with self.path.open("rb") as file:
                content = file.read(2 * LINE_BYTES)
        except OSError:
            return None
        lines = (content[:LINE_BYTES], content[LINE_BYTES:])
        return max((noted for line in lines if (noted := _read(line))), key=lambda noted: noted.number, default=None)

    def note(self, ledger: str, head: Head) -> None:
        """Note a head that is on disk; a file that cannot be written lags behind, and stops nothing."""
        line = Noted(ledger, head.number, head.hash).line
        with suppress(OSError):
            descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(descriptor).st_size < 2 * LINE_BYTES:
                    os.pwrite(descriptor, line + line, 0)
                else:
                    os.pwrite(descriptor, line, self._turn * LINE_BYTES)
            finally:
                os.close(descriptor)
        self._turn = 1 - self._turn

    def reset(self, ledger: str, head: Head) -> None:
        """Note a head that may be earlier than the one noted, and wait until it is on disk."""
        for _ in range(2):
            self.note(ledger, head)
        with suppress(OSError):
            descriptor = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _read(line: bytes) -> Noted | None:
    match = _LINE.fullmatch(line.decode("ascii", "replace"))
    if match is None or match["sum"] != _checksum(match["text"]):
        return None
    return Noted(match["id"], int(match["number"]), match["hash"])


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
