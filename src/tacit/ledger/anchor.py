"""The latest head of a ledger, noted outside its database in a small file `ledger.head` beside it.

A database that was deleted, cut off or replaced by an older copy is consistent in itself, only too short. The file
remembers that there was more. It is written after every commit, in one call and without waiting for the disk, so it may
lag behind the journal and never leads; a ledger that is opened reads the file first and the journal then.

The file has two text lines of equal length, written in turns, each with the ledger's id (the hash of its first record),
the hash of the record from which it continues since it was last restored (the first one if it never was), the number
and the hash of a head, whether the ledger was moved away there, and a checksum. A line whose checksum is wrong is
ignored, and the other one counts; if both are wrong, there is nothing to compare the journal with, but a ledger is
still expected.

Not here: what is done about a journal that does not reach the noted head (`verification`, `backup`).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tacit.privacy.errors import LedgerReadOnly

HEAD_FILE: Final = "ledger.head"
LINE_BYTES: Final = 320
_LINE: Final = re.compile(
    r"(?P<text>ledger (?P<id>[0-9a-f]{64}) since (?P<since>[0-9a-f]{64}) record (?P<number>\d{1,18})"
    r" hash (?P<hash>[0-9a-f]{64})(?P<moved> moved)?) sum (?P<sum>[0-9a-f]{16}) *\n"
)


@dataclass(frozen=True, slots=True)
class NotedHead:
    """A noted head: the ledger's id, its last restoration, the head's number and hash, and whether the ledger moved.

    `since` is the hash of the last record of the kind restored, or of the first record if there is none.
    """

    ledger: str
    since: str
    number: int
    hash: str
    is_moved: bool = False

    @property
    def line(self) -> bytes:
        """The head as a line of the file."""
        moved = " moved" if self.is_moved else ""
        text = f"ledger {self.ledger} since {self.since} record {self.number} hash {self.hash}{moved}"
        return f"{text} sum {_checksum(text)}".ljust(LINE_BYTES - 1).encode("ascii") + b"\n"


class Anchor:
    """The file in which the head of one ledger is noted; it need not exist."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._name: Final = os.fspath(path)
        self._turn = 0

    def exists(self) -> bool:
        """Whether the file is there, readable or not."""
        return os.path.lexists(self.path)

    def read(self) -> NotedHead | None:
        """Return the latest noted head, or None if no line can be read."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would block
            try:
                content = os.read(descriptor, 2 * LINE_BYTES)
            finally:
                os.close(descriptor)
        except OSError:
            return None
        lines = (content[:LINE_BYTES], content[LINE_BYTES:])
        return max((noted for line in lines if (noted := _read(line))), key=lambda noted: noted.number, default=None)

    def require_writable(self) -> None:
        """Raise LedgerReadOnly if a head could not be noted."""
        try:
            descriptor = os.open(self._name, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            is_writable = not self.exists() and os.access(self.path.parent, os.W_OK)
        except OSError:
            is_writable = False
        else:
            is_writable = stat.S_ISREG(os.fstat(descriptor).st_mode)
            os.close(descriptor)
        if not is_writable:
            raise LedgerReadOnly(
                f"{self.path}, which notes the end of the ledger, cannot be written: nothing was charged; make it "
                "writable for this user"
            )

    def note(self, head: NotedHead) -> None:
        """Note a head that is on disk; if that fails, the file lags behind until the next time."""
        with suppress(OSError):
            self._write(head)

    def reset(self, head: NotedHead) -> None:
        """Replace both lines by a head that may be earlier, and wait until it is on disk."""
        for _ in range(2):
            self._write(head, is_durable=True)

    def _write(self, head: NotedHead, *, is_durable: bool = False) -> None:
        line = head.line
        descriptor = os.open(self._name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            if os.fstat(descriptor).st_size < 2 * LINE_BYTES:
                os.pwrite(descriptor, line + line, 0)
            else:
                os.pwrite(descriptor, line, self._turn * LINE_BYTES)
            if is_durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._turn = 1 - self._turn


def _read(line: bytes) -> NotedHead | None:
    match = _LINE.fullmatch(line.decode("ascii", "replace"))
    if match is None or match["sum"] != _checksum(match["text"]):
        return None
    return NotedHead(match["id"], match["since"], int(match["number"]), match["hash"], bool(match["moved"]))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
