"""One transaction of the ledger: it reads rows, appends records and keeps the tables in step with them.

Promise: before anything is written the end of the journal is checked against the head; what is written is checked to
follow it; and every record does to the tables exactly what `replay` says. After every `CHECKPOINT_EVERY` records a
checkpoint with all totals is written, so that opening a ledger reads only what came after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tacit.ledger.clock import Clock, time_of
from tacit.ledger.journal import Head, Record, check_follows, check_record, next_record
from tacit.ledger.permits import Scope
from tacit.ledger.refusals import no_budget
from tacit.ledger.replay import apply_new
from tacit.ledger.rows import PermitRow, ScopeRow
from tacit.ledger.stores.protocol import Transaction
from tacit.privacy.errors import LedgerCorrupt, LedgerMoved, UnknownName

CHECKPOINT_EVERY: Final = 1_000
CHECKPOINT_SCOPES_MAX: Final = 100_000
"""A ledger with more scopes than this has no checkpoints, and is opened by reading all of its journal."""


class LedgerTransaction:
    """A transaction whose journal was checked to end at its head."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self.rows: Final = transaction
        self._clock = clock
        check_end(transaction)

    @property
    def next_number(self) -> int:
        """The number of the next record."""
        return self.rows.head().number + 1

    def write(self, kind: str, contents: Mapping[str, Any]) -> Record:
        """Append a record and apply it to the tables."""
        record = self._append(kind, contents)
        apply_new(record, contents, self.rows)
        since = record.number - self.rows.head().checkpoint
        if since % CHECKPOINT_EVERY == 0:
            self._write_checkpoint(since)
        return record

    def dataset(self, name: str) -> ScopeRow:
        """Return the row of a data set, or raise UnknownName."""
        return self.scope(Scope(name))

    def scope(self, scope: Scope) -> ScopeRow:
        """Return the row of a scope, or raise UnknownName."""
        row = self.rows.scope(scope)
        if row is None:
            raise no_budget(scope)
        return row

    def known(self, scopes: Sequence[Scope]) -> list[ScopeRow]:
        """Return the rows of those scopes that exist, read at once."""
        self.rows.prefetch(scopes)
        return [row for scope in scopes if (row := self.rows.scope(scope)) is not None]

    def permit(self, permit_id: str) -> tuple[PermitRow, Record]:
        """Return the row of a permit and the record of its reservation, or raise UnknownName."""
        row = self.rows.permit(permit_id)
        if row is None:
            raise no_permit(permit_id)
        return row, self.record(row.record, "reserved")

    def record(self, number: int, kind: str) -> Record:
        """Return a record, checked to have its hash and to be of a kind."""
        for record in self.rows.records(number, 1):
            check_record(record)
            if record.number == number and record.kind != kind:
                raise LedgerCorrupt(f"record {number} should be of the kind {kind}", record=number, differs="kind")
            if record.number == number:
                return record
        raise LedgerCorrupt(f"record {number} is missing from the journal", record=number, differs="number")

    def require_not_moved(self, way_out: str = "open it there") -> None:
        """Raise LedgerMoved if the ledger was moved away."""
        for last in self.rows.end():
            if last.kind == "moved":
                to, on = last.contents["to"], time_of(last.at_us)
                raise LedgerMoved(f"this ledger was moved to {to} on {on:%Y-%m-%d}; {way_out}")

    def _write_checkpoint(self, since: int) -> None:
        """Append a checkpoint with all totals, unless there are more scopes than records since the last one."""
        scopes = self.rows.scopes()
        if len(scopes) <= min(since, CHECKPOINT_SCOPES_MAX):
            self._append("checkpoint", {"scopes": {row.scope.key: _scope_facts(row) for row in scopes}})

    def _append(self, kind: str, contents: Mapping[str, Any]) -> Record:
        head = self.rows.head()
        self.require_not_moved()
        record = next_record(head, kind, contents, self._clock())
        check_record(record)
        check_follows(record, head)
        self.rows.append(record, is_checkpoint=kind == "checkpoint")
        return record


def no_permit(permit_id: str) -> UnknownName:
    """Return the error for a permit that is not known."""
    return UnknownName(f"this ledger has no permit {permit_id}", name="permit", value=permit_id)


def check_end(rows: Transaction) -> Head:
    """Raise LedgerCorrupt unless the journal ends with the record that its head names."""
    head = rows.head()
    last = rows.end()
    if [record.number for record in last] != ([head.number] if head.number else []):
        found = last[-1].number if last else 0
        raise LedgerCorrupt(
            f"the journal is damaged: it should end with record {head.number} and ends with {found or 'nothing'}; "
            "nothing is admitted until a backup is restored",
            record=found if found > head.number + 1 else head.number,  # which one does not belong there
            differs="end",
        )
    for record in last:
        check_record(record)
        if record.hash != head.hash or record.at_us != head.at_us:
            raise LedgerCorrupt(
                f"the journal is damaged: record {head.number} is not the one that was written last",
                record=head.number,
                differs="hash",
            )
    return head


def checkpoint_scopes(checkpoint: Record) -> dict[Scope, ScopeRow]:
    """Return the scopes of a checkpoint."""
    try:
        rows = [
            ScopeRow.from_parts(key, facts["definition"], facts["totals"], facts["record"])
            for key, facts in checkpoint.contents["scopes"].items()
        ]
    except (AttributeError, KeyError, TypeError):
        raise LedgerCorrupt(
            f"record {checkpoint.number} does not have the contents of a checkpoint",
            record=checkpoint.number,
            differs="body",
        ) from None
    return {row.scope: row for row in rows}


def _scope_facts(row: ScopeRow) -> dict[str, Any]:
    return {"definition": row.definition, "totals": row.totals_text, "record": row.record}
