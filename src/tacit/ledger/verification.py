"""Verification: the journal is intact, the tables follow from it, and it contains the head that was noted outside.

`verify` reads the journal from the last checkpoint, or all of it, and replays it in memory. A damaged record is named
with what differs; so is a total, a permit, a request, an answer or a finding that does not follow from the journal.
Unless all is read, the state at the checkpoint is taken from the checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final

from tacit.ledger.anchor import NotedHead
from tacit.ledger.journal import (
    Head,
    Record,
    check_follows,
    check_record,
)
from tacit.ledger.replay import MemoryRows, apply, apply_to_scopes
from tacit.ledger.rows import REBUILD, AnswerRow
from tacit.ledger.stores.protocol import Transaction
from tacit.ledger.transactions import check_end, checkpoint_scopes
from tacit.privacy.errors import LedgerCorrupt, LedgerRolledBack

RECORDS_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Verified:
    """The range that was verified: records `first` to `head.number`, and the tables."""

    first: int
    head: Head


def verify(rows: Transaction, *, full: bool = False, noted: tuple[int, str] | None = None) -> Verified:
    """Check the journal and the tables; `noted` is the number and the hash of an earlier head."""
    head = check_end(rows)
    if noted is not None:
        _check_noted(rows, noted)
    if full or not head.checkpoint:
        memory = replay_journal(rows)
        _compare("scope", memory.scopes, {row.scope: row for row in rows.scopes()})
        _compare("permit", memory.permits, {row.id: row for row in rows.permits()})
        _compare("request", memory.requests, {row.id: row for row in rows.requests()})
        _compare("answer", memory.answers, {(row.plan_sha256, row.data_version): row for row in rows.answers()})
        _compare("finding", memory.findings, {row.id: row for row in rows.findings()})
        _check_contents(rows, memory)
        if full and (damage := rows.damage()) is not None:
            raise LedgerCorrupt(f"the database is damaged: {damage}; restore a backup", differs="database")
        return Verified(1, head)
    _compare("scope", _scopes_since_checkpoint(rows, head), {row.scope: row for row in rows.scopes()})
    return Verified(head.checkpoint, head)


def replay_journal(rows: Transaction) -> MemoryRows:
    """Read and check the whole journal, and return the rows that follow from it."""
    memory = MemoryRows()
    for record in checked_records(read_from(rows, 1), Head()):
        apply(record, memory)
        if record.kind == "checkpoint":
            _compare("scope", memory.scopes, checkpoint_scopes(record), record.number)
    return memory


def read_from(rows: Transaction, first: int) -> Iterator[Record]:
    """Yield records from number `first` on, read a thousand at a time."""
    while records := rows.records(first, RECORDS_AT_ONCE):
        yield from records
        first = records[-1].number + 1


def checked_records(records: Iterator[Record], head: Head) -> Iterator[Record]:
    """Yield records, each checked to have its hash and to follow the one before."""
    for record, following in pairwise(chain(records, (None,))):
        assert record is not None
        check_record(record, following)
        check_follows(record, head)
        if record.kind == "moved" and following is not None:
            raise LedgerCorrupt(
                f"record {following.number} is impossible: the ledger was moved away before",
                record=following.number,
                differs="kind",
            )
        head = record.head
        yield record


def _scopes_since_checkpoint(rows: Transaction, head: Head) -> Mapping[Any, Any]:
    memory = MemoryRows()
    records = read_from(rows, head.checkpoint)
    checkpoint = next(records, None)
    if checkpoint is not None:
        check_record(checkpoint)
    if checkpoint is None or checkpoint.number != head.checkpoint or checkpoint.kind != "checkpoint":
        raise LedgerCorrupt(
            f"the journal is damaged: record {head.checkpoint} should be a checkpoint",
            record=head.checkpoint,
            differs="kind",
        )
    memory.scopes = checkpoint_scopes(checkpoint)
    for record in checked_records(records, checkpoint.head):
        apply_to_scopes(record, memory)
    return memory.scopes


def rewrite_caches(rows: Transaction) -> MemoryRows:
    """Check the journal, write every cached row from it, and return the rows."""
    check_end(rows)
    memory = replay_journal(rows)
    rows.clear_caches()
    write_caches(rows, memory)
    return memory


def write_caches(rows: Transaction, memory: MemoryRows) -> None:
    """Write rows of a replay to a store."""
    for scope in memory.scopes.values():
        rows.put_scope(scope)
    for permit in memory.permits.values():
        rows.put_permit(permit)
    for request in memory.requests.values():
        rows.put_request(request)
    for answer in memory.answers.values():
        rows.put_answer(answer)
    for finding in memory.findings.values():
        rows.put_finding(finding)


def contains_noted(rows: Transaction, noted: NotedHead) -> bool:
    """Whether the journal contains a noted head; raise LedgerRolledBack unless it does, or declares the head lost."""
    number, head = noted.number, rows.head()
    is_same = [first.hash for first in rows.records(1, 1)] == [noted.ledger]
    found = [record for record in rows.records(number, 1) if (record.number, record.hash) == (number, noted.hash)]
    for record in found:
        check_record(record)
    if is_same and found:
        return True
    if is_same and declares_lost(rows, noted):
        return False
    way_out = "restore the newest backup (tacit ledger restore FILE --by NAME --reason TEXT)"
    if not head.number:
        what = f"it is empty, and records 1 to {number} were noted for this place"
    elif is_same and head.number < number:
        what = f"records {head.number + 1} to {number} are missing, which were noted for this place"
    else:
        what = f"record {number} is not the one that was noted for this place: it is another ledger's"
    raise LedgerRolledBack(
        f"the ledger cannot be used: {what}; put the right file back, or {way_out}", record=number, differs="end"
    )


def declares_lost(rows: Transaction, noted: NotedHead) -> bool:
    """Whether a record `restored` declares a noted head lost.

    It covers heads that were noted since the restoration before it, and no others: what was noted since a later
    restoration, which may be missing here, was not lost by this one.
    """
    return any(
        record.number <= noted.number <= record.contents["noted"] and record.contents.get("noted_since") == noted.since
        for record in rows.records_of(["restored"])
    )


def noted_head(rows: Transaction, known: NotedHead | None = None) -> NotedHead | None:
    """Return the end of the journal in the form that is noted outside, or None if it has no record.

    `known` is an earlier end that the journal holds: what came before it is not read again.
    """
    head = rows.head()
    if not head.number:
        return None
    if known is not None and (known.number, known.hash) == (head.number, head.hash):
        return known
    if known is None:
        first = first_hash(rows)
        known = NotedHead(first, first, 0, "")
    since = [known.since, *(record.hash for record in rows.records_of(["restored"], known.number + 1))][-1]
    is_moved = any(last.kind == "moved" for last in rows.end())
    return NotedHead(known.ledger, since, head.number, head.hash, is_moved)


def first_hash(rows: Transaction) -> str:
    """Return the hash of the first record, which is the id of the ledger."""
    for record in rows.records(1, 1):
        if record.number == 1:
            return record.hash
    raise LedgerCorrupt("the journal is damaged: record 1 is missing", record=1, differs="number")


def check_continues(rows: Transaction, seen: NotedHead | None) -> None:
    """Raise LedgerRolledBack unless the journal continues from an end that was seen."""
    head = rows.head()
    if seen is None or (head.number, head.hash) == (seen.number, seen.hash):
        return
    if [record.hash for record in rows.records(seen.number, 1)] != [seen.hash]:
        raise LedgerRolledBack(
            f"the ledger was replaced while it was open: record {seen.number} is missing or is another one; close it, "
            "and restore it (tacit ledger restore)",
            record=seen.number,
            differs="end",
        )


def _check_noted(rows: Transaction, noted: tuple[int, str]) -> None:
    number, digest = noted
    found = rows.records(number, 1)
    if number and (not found or found[0].number != number or found[0].hash != digest):
        raise LedgerCorrupt(
            f"the journal was rewritten: record {number} is not the one that was noted",
            record=number,
            differs="hash",
        )


def has_content(rows: Transaction, answer: AnswerRow) -> bool:
    """Whether the bytes of an answer are stored and unchanged."""
    content = rows.content(answer.sha256)
    return content is not None and hashlib.sha256(content).hexdigest() == answer.sha256


def changed_contents(rows: Transaction) -> list[str]:
    """Return the keys of stored contents that do not match their digest."""
    return [sha256 for sha256, content in rows.contents() if hashlib.sha256(content).hexdigest() != sha256]


def _check_contents(rows: Transaction, memory: MemoryRows) -> None:
    for sha256 in changed_contents(rows):
        raise LedgerCorrupt(f"the stored answer {str(sha256)[:16]} was changed", differs="answer")
    for answer in memory.answers.values():
        if not has_content(rows, answer):
            raise LedgerCorrupt(f"the answer that permit {answer.permit} released was changed", differs="answer")


def _compare(what: str, journal: Mapping[Any, Any], tables: Mapping[Any, Any], number: int | None = None) -> None:
    """Raise LedgerCorrupt for the first row in which the tables, or a checkpoint, differ from the journal."""
    for key in sorted(journal.keys() | tables.keys()):
        ours, theirs = journal.get(key), tables.get(key)
        if ours != theirs:
            where = "the tables" if number is None else f"checkpoint {number}"
            row = ours or theirs
            raise LedgerCorrupt(
                f"{where} and the journal differ about the {what} {key}: {_difference(ours, theirs)}; "
                f"nothing is admitted until {REBUILD}",
                record=number if number is not None else getattr(row, "record", None),
                differs=what,
            )


def _difference(ours: Any, theirs: Any) -> str:
    if ours is None or theirs is None:
        return "only one of them has it"
    names = [name for name in type(ours).__slots__ if getattr(ours, name) != getattr(theirs, name)]
    name = names[0]
    return f"{name} is {getattr(theirs, name)} and should be {getattr(ours, name)}"
