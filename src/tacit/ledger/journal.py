"""The journal: append-only records, each bound to the one before by its hash.

Promise: a record that was changed, removed, added or moved is found and named. `check_record` and `check_follows` are
called before a record is written and after it is read. Records hold names, events, amounts, digests and the figures of
findings; no value of the data, and no answer.

The chain is not keyed: it finds accidents and careless edits, but anyone who may rewrite the whole file can rewrite the
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
        "budget-created",  # the cap of a data set was set
        "cap-created",  # the cap of an analyst or a group on a data set was set
        "cap-replaced",  # of a data set, an analyst or a group to which nothing was charged
        "epoch-added",  # an epoch of a data set, with a cap of its own
        "reserved",  # an event was admitted and charged
        "committed",  # its run has ended
        "annotated",  # a note on a reservation
        "refunded",  # a plan was stopped early, and the steps that were not run were refunded
        "answer-released",  # an answer was stored, to be repeated at cost 0
        "request-filed",  # an analyst asked for more budget
        "request-decided",  # the request was granted or declined
        "finding-kept",  # what an attack found about a release or a data set
        "checkpoint",  # all totals, so that a ledger is opened without reading its whole journal
        "caches-rebuilt",  # the tables were rebuilt from the journal
        "imported",  # the records up to here came from an export
        "moved",  # the ledger is used somewhere else, and no record follows here
        "restored",  # the records up to here came from a backup; some that were noted later may be lost
    }
)
"""Kinds are never removed and their meaning never changes; a record of an unknown kind is refused."""

AT_US_MAX: Final = 253_402_300_799_999_999
"""The last microsecond of the year 9999, the last that `datetime` holds."""

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
    """One record, as it is stored."""

    number: int
    at_us: int
    """Microseconds since 1970; never below those of the record before."""
    behind_us: int
    """How far the clock was behind the record before; above 0 if it was set back."""
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
            raise LedgerCorrupt(
                f"the body of record {self.number} is not a JSON object", record=self.number, differs="body"
            )
        return contents

    @property
    def head(self) -> Head:
        """The head of a journal that ends with this record; its checkpoint is not known."""
        return Head(self.number, self.hash, self.at_us)


def canonical(value: Mapping[str, Any] | list[Any]) -> str:
    """Return canonical JSON: keys sorted, ASCII, no white space."""
    return _ENCODER.encode(value)


def next_record(head: Head, kind: str, contents: Mapping[str, Any], now_us: int) -> Record:
    """Return the record that follows `head`, at `now_us` or, if the clock was set back, at the time of the last one."""
    if type(now_us) is not int or abs(now_us) > AT_US_MAX:
        raise LedgerUnavailable(
            f"the clock returned {str(now_us)[:40]}, which is not a time in microseconds up to the year 9999: "
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
    """Raise unless a record has its hash; the record that follows helps to tell what was changed."""
    digest = _digest(record.number, record.at_us, record.behind_us, record.kind, record.body, record.previous)
    if digest != record.hash:
        if following is not None and following.previous == digest:
            raise _differs(record.number, "hash", "has another hash than its successor refers to; the hash was changed")
        raise _differs(record.number, "contents", "does not have the hash that was recorded for it; it was changed")
    if not 0 <= record.at_us <= AT_US_MAX or not 0 <= record.behind_us <= 2 * AT_US_MAX:
        raise _differs(record.number, "at", "has an invalid timestamp")
    if record.kind not in KINDS:
        raise LedgerTooNew(f"record {record.number} is of the unknown kind {record.kind!r}; use a newer tacit")


def check_follows(record: Record, head: Head) -> None:
    """Raise unless a record is the one after `head`."""
    if record.number != head.number + 1:
        expected = head.number + 1
        what = "is missing" if record.number > expected else "is out of order"
        raise _differs(expected, "number", f"{what}: record {record.number} follows record {head.number}")
    if record.previous != head.hash:
        raise _differs(record.number, "previous", f"does not refer to the hash of record {head.number}")
    if record.at_us < head.at_us:
        raise _differs(record.number, "at", f"is older than record {head.number}")


def _differs(number: int, what: str, how: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"the journal is damaged: record {number} {how} ({what}); nothing is admitted until a backup is restored",
        record=number,
        differs=what,
    )


def _digest(number: int, at_us: int, behind_us: int, kind: str, body: str, previous: str) -> str:
    """Return the hash over the fields, one a line; the body comes last, and no other field has a line break."""
    written = f"{number}\n{at_us}\n{behind_us}\n{kind}\n{previous}\n{body}"
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
