"""The journal: append-only records, each bound to the one before, and its latest head noted outside the database.

Promise: a record that was changed, removed, added or moved is found and named. `check_record` and `check_follows` are
called before a record is written and after it is read. Records hold names, events, amounts and digests; no value of the
data, and no answer.

The chain finds accidents and careless hands. Whoever may rewrite the whole file can rewrite the whole chain: to find
that too, note `Ledger.head()` somewhere else from time to time and give it to `Ledger.verify`.

Not here: what a record does to the totals (replay) and where it is kept (stores).

The latest head of a ledger, noted outside the database: a small file `ledger.head` beside it.

A database that was deleted, cut off or replaced by an older copy says nothing false: it is whole, only too short. The
file remembers that there was more. It is written after every commit, in one call and without waiting for the disk, so
it may lag behind the journal and never leads; whoever opens a ledger reads the file first and the journal then.

Its form is text: two lines of equal length, written in turns, each with the ledger's id (the hash of its first record),
the hash of the record from which it goes on since it was last restored (the first one if it never was), the number and
the hash of a head, whether the ledger was moved away there, and a checksum. A line that was torn is not believed, and
the other one counts; if both are, there is nothing to hold the journal against, but a ledger is still expected.

Not here: what is done about a journal that does not reach the noted head (verification), and how to go back (restore).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, LedgerReadOnly, LedgerTooNew, LedgerUnavailable, TooLarge

KINDS: Final = frozenset(
    {
        "budget-created",  # a data set got its cap
        "cap-created",  # an analyst or a group got one on a data set
        "cap-replaced",  # of a data set, an analyst or a group to which nothing was charged
        "epoch-added",  # data of a stretch of time came in, with a cap of its own
        "reserved",  # an event was admitted and charged
        "committed",  # its run came to its end
        "annotated",  # somebody said something about a reservation
        "refunded",  # a plan was stopped early, and the steps that were not run were returned
        "answer-released",  # an answer was kept, to be given again at cost 0
        "request-filed",  # an analyst asked for more
        "request-decided",  # somebody decided about it
        "checkpoint",  # all totals, so that a ledger is opened without reading its whole past
        "caches-rebuilt",  # the tables were written anew from the journal
        "imported",  # the records up to here came from an export
        "moved",  # the ledger goes on somewhere else, and nothing comes after this here
        "restored",  # the records up to here came from a backup; some that were noted later may be lost
    }
)
"""Kinds are never removed and their meaning never changes; a record of an unknown kind is refused."""

AT_US_MAX: Final = 253_402_300_799_999_999
"""The last microsecond of the year 9999; what lies beyond cannot be shown as a date."""

RECORD_BYTES_MAX: Final = 64 * 2**20
ROOT_HASH: Final = "0" * 64
_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False
)


@dataclass(frozen=True, slots=True)
class Head:
    """Where the journal ends: the last record's number, hash and time, and the number of the last checkpoint."""

    number: int = 0
    hash: str = ROOT_HASH
    at_us: int = 0
    checkpoint: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that happened, in the form in which it is kept."""

    number: int
    at_us: int
    """When, in microseconds since 1970; never before the record before it."""
    behind_us: int
    """How far the clock was behind the record before it; above 0 where a clock was set back."""
    kind: str
    body: str
    previous: str
    hash: str

    @property
    def contents(self) -> dict[str, Any]:
        """The body as plain objects."""
        try:
            contents = strict_json.loads(self.body)
        except InvalidInput as error:
            raise _differs(self.number, "body", f"cannot be read: {error.message}") from None
        if not isinstance(contents, dict):
            raise LedgerCorrupt(f"the body of record {self.number} is no object", record=self.number, differs="body")
        return contents

    @property
    def head(self) -> Head:
        """Where the journal ends if this is its last record, as far as the record itself tells."""
        return Head(self.number, self.hash, self.at_us)


def canonical(value: Mapping[str, Any] | list[Any]) -> str:
    """Return the one written form of plain objects: keys sorted, ASCII, nothing between."""
    return _ENCODER.encode(value)


def next_record(head: Head, kind: str, contents: Mapping[str, Any], now_us: int) -> Record:
    """Return the record that follows `head`, at `now_us` or, if the clock was set back, at the time of the last one."""
    if type(now_us) is not int or abs(now_us) > AT_US_MAX:
        raise LedgerUnavailable(
            f"the clock says {str(now_us)[:40]}, which is no number of microseconds since 1970 up to the year 9999: "
            "nothing was written; set the clock"
        )
    body = canonical(contents)
    if len(body) > RECORD_BYTES_MAX:
        raise TooLarge(f"a record takes at most {RECORD_BYTES_MAX:,} bytes, not {len(body):,}")
    at_us, behind_us = max(head.at_us, now_us), max(head.at_us - now_us, 0)
    number = head.number + 1
    digest = _digest(number, at_us, behind_us, kind, body, head.hash)
    return Record(number, at_us, behind_us, kind, body, head.hash, digest)


def check_record(record: Record, following: Record | None = None) -> None:
    """Assert that a record is whole by itself; the one that follows helps to say what was changed."""
    digest = _digest(record.number, record.at_us, record.behind_us, record.kind, record.body, record.previous)
    if digest != record.hash:
        if following is not None and following.previous == digest:
            raise _differs(record.number, "hash", "has another hash than was recorded for it; the hash was changed")
        raise _differs(record.number, "contents", "does not have the hash that was recorded for it; it was changed")
    if not 0 <= record.at_us <= AT_US_MAX or not 0 <= record.behind_us <= 2 * AT_US_MAX:
        raise _differs(record.number, "at", "has a time that no clock shows")
    if record.kind not in KINDS:
        raise LedgerTooNew(f"record {record.number} is of the kind {record.kind!r}, which a newer tacit may know")


def check_follows(record: Record, head: Head) -> None:
    """Assert that a record is the one after `head`."""
    if record.number != head.number + 1:
        expected = head.number + 1
        what = "is missing" if record.number > expected else "stands in the place of another"
        raise _differs(expected, "number", f"{what}: record {record.number} follows record {head.number}")
    if record.previous != head.hash:
        raise _differs(record.number, "previous", f"does not follow record {head.number} as that one is now")
    if record.at_us < head.at_us:
        raise _differs(record.number, "at", f"is older than record {head.number}")


def _differs(number: int, what: str, how: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"the journal is damaged: record {number} {how} ({what}); nothing is admitted until a backup is restored",
        record=number,
        differs=what,
    )


def _digest(number: int, at_us: int, behind_us: int, kind: str, body: str, previous: str) -> str:
    """Hash the fields a line each; the body comes last, and no other field of a known kind has a line break."""
    written = f"{number}\n{at_us}\n{behind_us}\n{kind}\n{previous}\n{body}"
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


FILE_NAME: Final = "ledger.head"
LINE_BYTES: Final = 320
_LINE: Final = re.compile(
    r"(?P<text>ledger (?P<id>[0-9a-f]{64}) since (?P<since>[0-9a-f]{64}) record (?P<number>\d{1,18})"
    r" hash (?P<hash>[0-9a-f]{64})(?P<moved> moved)?) sum (?P<sum>[0-9a-f]{16}) *\n"
)


@dataclass(frozen=True, slots=True)
class Noted:
    """A head that was noted: which ledger's, since which restoration, its number and hash, and whether that moved.

    `since` is the hash of the last record of the kind restored, or of the first record if there is none.
    """

    ledger: str
    since: str
    number: int
    hash: str
    is_moved: bool = False

    @property
    def line(self) -> bytes:
        """The written form."""
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
        """Whether a ledger was noted here, legibly or not."""
        return os.path.lexists(self.path)

    def read(self) -> Noted | None:
        """Return the latest head that was noted, or None if nothing legible is there."""
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
        """Refuse to go on where a head could not be noted."""
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
                f"{self.path} cannot be written, where the end of the ledger is noted: nothing was charged; make it "
                "writable for this account"
            )

    def note(self, head: Noted) -> None:
        """Note a head that is on disk; if that fails now, the file lags behind until the next time."""
        with suppress(OSError):
            self._write(head)

    def reset(self, head: Noted) -> None:
        """Note a head that may be earlier than the one noted, and wait until it is on disk."""
        for _ in range(2):
            self._write(head, is_durable=True)

    def _write(self, head: Noted, *, is_durable: bool = False) -> None:
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


def _read(line: bytes) -> Noted | None:
    match = _LINE.fullmatch(line.decode("ascii", "replace"))
    if match is None or match["sum"] != _checksum(match["text"]):
        return None
    return Noted(match["id"], match["since"], int(match["number"]), match["hash"], bool(match["moved"]))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
