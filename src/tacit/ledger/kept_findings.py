"""Findings of attacks, kept in the journal beside the permits that they judge.

A finding is a JSON object of bounded size, which is stored and not interpreted (`tacit.attack.Finding` writes and reads
it). It is about one permit of a data set, or about the data set as a whole. It charges nothing and changes no budget:
it can be kept whatever is left of one.

The journal is permanent and exported: whoever keeps a finding leaves the records of people out, as the curator does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from tacit.ledger.clock import time_of
from tacit.ledger.journal import Record
from tacit.ledger.transactions import LedgerTransaction
from tacit.privacy.errors import TooLarge, UnknownName

FINDINGS_MAX: Final = 1_000
"""How many findings can be kept of one data set."""


@dataclass(frozen=True, slots=True)
class KeptFinding:
    """A finding in the ledger: what it is about, who kept it and when, and its document."""

    id: str
    record: int
    """The number of its record in the journal."""
    dataset: str
    permit: str | None
    by: str
    at: datetime
    document: Mapping[str, Any] = field(hash=False)


def keep(
    transaction: LedgerTransaction,
    dataset: str,
    document: Mapping[str, Any],
    permit: str | None,
    by: str,
    token: Callable[[], str],
) -> KeptFinding:
    """Record a finding about a data set, or about a permit of it."""
    transaction.dataset(dataset)
    if permit is not None:
        row = transaction.rows.permit(permit)
        if row is None or row.dataset != dataset:
            raise UnknownName(f"{dataset} has no permit {permit}", name="permit", value=permit)
    if len(transaction.rows.findings(dataset)) >= FINDINGS_MAX:
        raise TooLarge(f"{dataset} has {FINDINGS_MAX:,} findings, the maximum", name="dataset", value=dataset)
    record = transaction.write(
        "finding-kept",
        {
            "by": by,
            "dataset": dataset,
            "document": document,
            "finding": f"{transaction.next_number}-{token()}",
            "permit": permit,
        },
    )
    return _kept(record)


def find(transaction: LedgerTransaction, finding_id: str) -> KeptFinding:
    """Return a finding, or raise UnknownName."""
    row = transaction.rows.finding(finding_id)
    if row is None:
        raise no_finding(finding_id)
    return _kept(transaction.record(row.record, "finding-kept"))


def no_finding(finding_id: str) -> UnknownName:
    """Return the error for a finding that is not known."""
    return UnknownName(f"there is no finding {finding_id}", name="finding", value=finding_id)


def list_findings(
    transaction: LedgerTransaction, datasets: Sequence[str] | None, permit: str | None, first: int, limit: int | None
) -> list[KeptFinding]:
    """Return findings from record number `first` on, the oldest first; None stands for all data sets or permits.

    Raises UnknownName for a data set that the ledger does not know.
    """
    for name in datasets or ():
        transaction.dataset(name)
    places = (None,) if datasets is None else datasets
    rows = (row for place in places for row in transaction.rows.findings(place))
    chosen = [row.record for row in rows if row.record >= first and permit in (None, row.permit)]
    return [_kept(transaction.record(number, "finding-kept")) for number in sorted(chosen)[:limit]]


def _kept(record: Record) -> KeptFinding:
    body = record.contents
    return KeptFinding(
        id=body["finding"],
        record=record.number,
        dataset=body["dataset"],
        permit=body["permit"],
        by=body["by"],
        at=time_of(record.at_us),
        document=body["document"],
    )
