"""The journal: append-only records, each bound to the one before by its hash.

Promise: a record that was changed, removed, added or moved is found and named. `check_record` and `check_follows` are
called before a record is written and after it is read. Records hold names, events, amounts and digests; no value of the
data, and no answer.

The chain is not keyed: it finds accidents and careless edits, but whoever may rewrite the whole file can rewrite the
whole chain. To find that too, note `Ledger.head()` somewhere else from time to time and give it to `Ledger.verify`.

Not here: what a record does to the totals (`replay`) and where it is kept (`stores`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, LedgerTooNew, LedgerUnavailable, TooLarge

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
