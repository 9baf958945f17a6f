"""What a record does to the cached rows: one function a kind, the same when it happens and when it is replayed.

A live change appends a record and applies it to the store's rows; verification applies the same records to rows in
memory and compares. So the tables cannot say anything that the journal does not.

Effects on scopes need nothing but the record and the scopes, so they can be replayed from a checkpoint on; effects on
permits and requests need the whole past.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from tacit.ledger.amounts import Amounts, charged, read, subtracted
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import Record
from tacit.ledger.permits import Scope
from tacit.ledger.rows import AnswerRow, PermitRow, RequestRow, Rows, ScopeRow
from tacit.privacy.errors import LedgerCorrupt

Body: TypeAlias = Mapping[str, Any]
Effect: TypeAlias = Callable[[Body, int, Rows], None]


@dataclass(slots=True)
class MemoryRows:
    """Rows in memory, for replaying a journal."""

    scopes: dict[Scope, ScopeRow] = field(default_factory=dict)
    permits: dict[str, PermitRow] = field(default_factory=dict)
    requests: dict[str, RequestRow] = field(default_factory=dict)
    answers: dict[tuple[str, str], AnswerRow] = field(default_factory=dict)

    def scope(self, scope: Scope) -> ScopeRow | None:
        return self.scopes.get(scope)

    def put_scope(self, row: ScopeRow) -> None:
        self.scopes[row.scope] = row

    def permit(self, permit_id: str) -> PermitRow | None:
        return self.permits.get(permit_id)

    def put_permit(self, row: PermitRow) -> None:
        self.permits[row.id] = row

    def request(self, request_id: str) -> RequestRow | None:
        return self.requests.get(request_id)

    def put_request(self, row: RequestRow) -> None:
        self.requests[row.id] = row

    def put_answer(self, row: AnswerRow) -> None:
        self.answers[row.plan_sha256, row.data_version] = row

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        self.answers.pop((plan_sha256, data_version), None)


def apply(record: Record, rows: Rows, contents: Body | None = None) -> None:
    """Do to the rows what a record says; `contents` is its body, for who has it in hand."""
    _apply(record, rows, contents, _SCOPE_EFFECTS, _PERMIT_EFFECTS)


def apply_to_scopes(record: Record, rows: Rows) -> None:
    """Do to the scopes alone what a record says."""
    _apply(record, rows, None, _SCOPE_EFFECTS)


def _apply(record: Record, rows: Rows, contents: Body | None, *effects: Mapping[str, Effect]) -> None:
    try:
        body = record.contents if contents is None else contents
        for effect in [by_kind[record.kind] for by_kind in effects if record.kind in by_kind]:
            effect(body, record.number, rows)
    except (KeyError, TypeError, ValueError):
        raise _impossible(record.number, f"it is not what a {record.kind} record holds") from None


def _add_budget(body: Body, number: int, rows: Rows) -> None:
    cap = Cap.from_dict(body["cap"])
    scope = Scope.from_key(body["scope"])
    rows.put_scope(ScopeRow(scope, cap, filter_of(cap).nothing, number, per_epoch=body["per_epoch"]))


def _add_cap(body: Body, number: int, rows: Rows) -> None:
    cap = Cap.from_dict(body["cap"])
    rows.put_scope(ScopeRow(Scope.from_key(body["scope"]), cap, filter_of(cap).nothing, number))


def _add_epoch(body: Body, number: int, rows: Rows) -> None:
    cap, scope = Cap.from_dict(body["cap"]), Scope.from_key(body["scope"])
    rows.put_scope(ScopeRow(scope, cap, filter_of(cap).nothing, number, starts=body["starts"], ends=body["ends"]))
    rows.put_scope(replace(_known(rows, Scope(scope.dataset), number), has_epochs=True, record=number))


def _charge(body: Body, number: int, rows: Rows) -> None:
    _change_totals(body["charged"], number, rows, charged)


def _return(body: Body, number: int, rows: Rows) -> None:
    _change_totals(body["returned"], number, rows, subtracted)


def _change_totals(
    amounts: Mapping[str, Any], number: int, rows: Rows, change: Callable[[Amounts, Amounts], Amounts]
) -> None:
    for key, amount in amounts.items():
        row = _known(rows, Scope.from_key(key), number)
        rows.put_scope(row.changed(change(row.totals, read(amount)), number))


def _raise_cap(body: Body, number: int, rows: Rows) -> None:
    if body["granted"]:
        row = _known(rows, Scope.from_key(body["scope"]), number)
        rows.put_scope(replace(row, cap=Cap.from_dict(body["cap"]), record=number))


def _reserve(body: Body, number: int, rows: Rows) -> None:
    rows.put_permit(PermitRow(body["permit"], body["dataset"], body["key"], number))


def _commit(body: Body, number: int, rows: Rows) -> None:
    row = _permit(rows, body, number)
    rows.put_permit(replace(row, state="committed", answer_sha256=body["answer_sha256"]))


def _annotate(body: Body, number: int, rows: Rows) -> None:
    rows.put_permit(replace(_permit(rows, body, number), note=body["note"]))


def _mark_refunded(body: Body, number: int, rows: Rows) -> None:
    rows.put_permit(replace(_permit(rows, body, number), is_refunded=True))


def _release(body: Body, number: int, rows: Rows) -> None:
    rows.put_answer(AnswerRow(body["plan_sha256"], body["data_version"], body["permit"], body["sha256"]))


def _drop_answers(body: Body, number: int, rows: Rows) -> None:
    for plan_sha256, data_version in body["dropped_answers"]:
        rows.drop_answer(plan_sha256, data_version)


def _file(body: Body, number: int, rows: Rows) -> None:
    rows.put_request(RequestRow(body["request"], body["dataset"], body["analyst"], number))


def _decide(body: Body, number: int, rows: Rows) -> None:
    row = rows.request(body["request"])
    if row is None:
        raise _impossible(number, f"the request {body['request']} is not known")
    rows.put_request(replace(row, state="granted" if body["granted"] else "declined", decision=number))


def _known(rows: Rows, scope: Scope, number: int) -> ScopeRow:
    row = rows.scope(scope)
    if row is None:
        raise _impossible(number, f"{scope} is not known")
    return row


def _permit(rows: Rows, body: Body, number: int) -> PermitRow:
    row = rows.permit(body["permit"])
    if row is None:
        raise _impossible(number, f"the permit {body['permit']} is not known")
    return row


def _impossible(number: int, why: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"record {number} cannot have happened: {why}", record=number, differs="body")


_SCOPE_EFFECTS: Final[Mapping[str, Effect]] = {
    "budget-created": _add_budget,
    "cap-created": _add_cap,
    "epoch-added": _add_epoch,
    "reserved": _charge,
    "refunded": _return,
    "request-decided": _raise_cap,
}

_PERMIT_EFFECTS: Final[Mapping[str, Effect]] = {
    "reserved": _reserve,
    "committed": _commit,
    "annotated": _annotate,
    "refunded": _mark_refunded,
    "answer-released": _release,
    "caches-rebuilt": _drop_answers,
    "request-filed": _file,
    "request-decided": _decide,
}
