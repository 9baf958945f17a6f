"""What each kind of record does to the cached rows, the same when it is written and when it is replayed.

A change appends a record and applies it to the store's rows; verification applies the same records to rows in memory
and compares. So the tables cannot hold anything that the journal does not.

Every effect first checks the preconditions under which its record is written: a refund only of a plan that is reserved
and was not refunded, of no more than was charged for it; one commit a permit; one decision a request; one permit for a
key. A journal that breaks such a rule is damaged, even if its hashes are right. The form of each field is checked as
well (`record_fields`), when a journal is replayed.

Effects on scopes need only the record and the scopes, so they can be replayed from a checkpoint on; effects on permits,
requests and findings need the whole journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from tacit.ledger.amounts import (
    Amounts,
    add_charge,
    amounts_from_json,
    covers,
    subtract_amounts,
)
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import Record
from tacit.ledger.permits import Scope
from tacit.ledger.record_fields import check_fields
from tacit.ledger.rows import AnswerRow, Body, CachedRows, FindingRow, PermitRow, RequestRow, ScopeRow
from tacit.privacy.errors import LedgerCorrupt, LedgerUnavailable

Effect: TypeAlias = Callable[[Body, int, CachedRows], None]


@dataclass(slots=True)
class MemoryRows:
    """Cached rows in memory, for replaying a journal."""

    scopes: dict[Scope, ScopeRow] = field(default_factory=dict)
    permits: dict[str, PermitRow] = field(default_factory=dict)
    requests: dict[str, RequestRow] = field(default_factory=dict)
    answers: dict[tuple[str, str], AnswerRow] = field(default_factory=dict)
    findings: dict[str, FindingRow] = field(default_factory=dict)
    keys: set[tuple[str, str]] = field(default_factory=set)
    """Idempotency keys that were used, each with its data set."""
    plans: dict[str, Body] = field(default_factory=dict)
    """The reservations of plans that are not committed, by permit."""

    def scope(self, scope: Scope) -> ScopeRow | None:
        return self.scopes.get(scope)

    def put_scope(self, row: ScopeRow) -> None:
        self.scopes[row.scope] = row

    def permit(self, permit_id: str) -> PermitRow | None:
        return self.permits.get(permit_id)

    def add_permit(self, row: PermitRow, reservation: Body) -> None:
        if row.id in self.permits:
            raise _impossible(row.record, f"the permit {row.id} exists")
        if row.key is not None and (row.dataset, row.key) in self.keys:
            raise _impossible(row.record, f"the key {row.key!r} was used on {row.dataset} before")
        self.permits[row.id] = row
        if row.key is not None:
            self.keys.add((row.dataset, row.key))
        if reservation["is_plan"]:
            self.plans[row.id] = reservation

    def put_permit(self, row: PermitRow) -> None:
        self.permits[row.id] = row
        if row.state == "committed":
            self.plans.pop(row.id, None)

    def reservation(self, row: PermitRow) -> Body | None:
        return self.plans.get(row.id)

    def request(self, request_id: str) -> RequestRow | None:
        return self.requests.get(request_id)

    def put_request(self, row: RequestRow) -> None:
        self.requests[row.id] = row

    def answer(self, plan_sha256: str, data_version: str) -> AnswerRow | None:
        return self.answers.get((plan_sha256, data_version))

    def put_answer(self, row: AnswerRow) -> None:
        self.answers[row.plan_sha256, row.data_version] = row

    def drop_answer(self, plan_sha256: str, data_version: str) -> None:
        del self.answers[plan_sha256, data_version]

    def finding(self, finding_id: str) -> FindingRow | None:
        return self.findings.get(finding_id)

    def put_finding(self, row: FindingRow) -> None:
        self.findings[row.id] = row


def apply(record: Record, rows: CachedRows) -> None:
    """Apply a record of the journal to the rows; raise LedgerCorrupt if it is malformed or contradicts them."""
    check_fields(record)
    _apply(record, record.contents, rows, _PERMIT_EFFECTS, _SCOPE_EFFECTS)


def apply_to_scopes(record: Record, rows: CachedRows) -> None:
    """Apply a record to the scopes alone."""
    _apply(record, record.contents, rows, _SCOPE_EFFECTS)


def apply_new(record: Record, contents: Body, rows: CachedRows) -> None:
    """Apply a record that is being written; `contents` is its body.

    One that contradicts the rows is an error of the caller or of this program, and no damage on disk: it raises
    LedgerUnavailable.
    """
    try:
        _apply(record, contents, rows, _PERMIT_EFFECTS, _SCOPE_EFFECTS)
    except LedgerCorrupt as error:
        if error.record != record.number:
            raise
        raise LedgerUnavailable(f"nothing was written: {error.message}") from error


def _apply(record: Record, body: Body, rows: CachedRows, *effects: Mapping[str, Effect]) -> None:
    try:
        for effect in [by_kind[record.kind] for by_kind in effects if record.kind in by_kind]:
            effect(body, record.number, rows)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _impossible(record.number, f"it is not what a {record.kind} record holds") from None
    except LedgerCorrupt as error:
        if error.record is not None:
            raise
        raise _impossible(record.number, error.message) from None


def _add_budget(body: Body, number: int, rows: CachedRows) -> None:
    cap, scope = Cap.from_dict(body["cap"]), _new_scope(rows, body["scope"], "dataset", number)
    rows.put_scope(_budget_row(scope, cap, body, number))


def _budget_row(scope: Scope, cap: Cap, body: Body, number: int) -> ScopeRow:
    least = body.get("epsilon_min")
    if least is not None and (type(least) is not float or not 0 <= least <= cap.epsilon):
        raise _impossible(number, f"{least!r} is no epsilon_min of {scope}")
    each = _boolean(body, "per_epoch", number)
    return ScopeRow(scope, cap, filter_of(cap).nothing, number, per_epoch=each, stated_epsilon_min=least)


def _add_cap(body: Body, number: int, rows: CachedRows) -> None:
    cap, scope = Cap.from_dict(body["cap"]), _new_scope(rows, body["scope"], "analyst", number)
    _require_within(cap, _known(rows, Scope(scope.dataset), number), number)
    rows.put_scope(ScopeRow(scope, cap, filter_of(cap).nothing, number))


def _replace_cap(body: Body, number: int, rows: CachedRows) -> None:
    cap, row = Cap.from_dict(body["cap"]), _known(rows, Scope.from_key(body["scope"]), number)
    if row.scope.kind == "epoch" or not row.is_unspent:
        raise _impossible(number, f"{row.scope} was charged or has epochs, and has another cap now")
    if row.scope.kind == "analyst":
        _require_within(cap, _known(rows, Scope(row.scope.dataset), number), number)
        rows.put_scope(ScopeRow(row.scope, cap, filter_of(cap).nothing, number))
        return
    rows.put_scope(_budget_row(row.scope, cap, body, number))


def _add_epoch(body: Body, number: int, rows: CachedRows) -> None:
    cap, scope = Cap.from_dict(body["cap"]), _new_scope(rows, body["scope"], "epoch", number)
    whole = _known(rows, Scope(scope.dataset), number)
    _require_within(cap, whole, number)
    rows.put_scope(ScopeRow(scope, cap, filter_of(cap).nothing, number, starts=body["starts"], ends=body["ends"]))
    rows.put_scope(replace(whole, has_epochs=True, record=number))


def _charge(body: Body, number: int, rows: CachedRows) -> None:
    if Scope(body["dataset"]).key not in body["charged"]:
        raise _impossible(number, f"{body['dataset']} was not charged")
    _change_totals(body["charged"], number, rows, add_charge)


def _return(body: Body, number: int, rows: CachedRows) -> None:
    _change_totals(body["returned"], number, rows, _lowered)


def _lowered(totals: Amounts, amounts: Amounts) -> Amounts:
    if not covers(totals, amounts):
        raise LedgerCorrupt("refund exceeds the charges", differs="amount")
    return subtract_amounts(totals, amounts)


def _change_totals(
    amounts: Mapping[str, Any], number: int, rows: CachedRows, change: Callable[[Amounts, Amounts], Amounts]
) -> None:
    for key, written in amounts.items():
        row, amount = _known(rows, Scope.from_key(key), number), amounts_from_json(written)
        if not filter_of(row.cap).counts(amount):
            raise _impossible(number, f"{written!r} is not an amount of {row.scope}")
        rows.put_scope(row.changed(change(row.totals, amount), number))


def _raise_cap(body: Body, number: int, rows: CachedRows) -> None:
    if not _boolean(body, "granted", number):
        return
    row, cap = _known(rows, Scope.from_key(body["scope"]), number), Cap.from_dict(body["cap"])
    if replace(cap, epsilon=row.cap.epsilon, delta=row.cap.delta) != row.cap:
        raise _impossible(number, f"the cap of {row.scope} is counted by another filter")
    if cap.epsilon < row.cap.epsilon or cap.delta < row.cap.delta:
        raise _impossible(number, f"the cap of {row.scope} is lowered")
    _require_within(cap, _known(rows, Scope(row.scope.dataset), number), number)
    rows.put_scope(replace(row, cap=cap, record=number))


def _reserve(body: Body, number: int, rows: CachedRows) -> None:
    _boolean(body, "is_plan", number)
    rows.add_permit(PermitRow(body["permit"], body["dataset"], body["key"], number), body)


def _commit(body: Body, number: int, rows: CachedRows) -> None:
    row = _reserved(rows, body, number)
    rows.put_permit(replace(row, state="committed", answer_sha256=body["answer_sha256"]))


def _annotate(body: Body, number: int, rows: CachedRows) -> None:
    rows.put_permit(replace(_reserved(rows, body, number), note=body["note"]))


def _mark_refunded(body: Body, number: int, rows: CachedRows) -> None:
    row = _reserved(rows, body, number)
    if row.is_refunded:
        raise _impossible(number, f"the permit {row.id} was refunded before")
    reservation = rows.reservation(row)
    if reservation is None or not reservation["is_plan"]:
        raise _impossible(number, f"the permit {row.id} is for no plan")
    for key, returned in body["returned"].items():
        if key not in reservation["charged"]:
            raise _impossible(number, f"{Scope.from_key(key)} was not charged for the permit {row.id}")
        if not covers(amounts_from_json(reservation["charged"][key]), amounts_from_json(returned)):
            raise _impossible(number, f"{Scope.from_key(key)} gets back more than was charged for the permit {row.id}")
    rows.put_permit(replace(row, is_refunded=True))


def _release(body: Body, number: int, rows: CachedRows) -> None:
    permit = _permit(rows, body, number)
    if permit.state != "committed":
        raise _impossible(number, f"the permit {permit.id} is not committed")
    if permit.answer_sha256 != body["sha256"]:
        raise _impossible(number, f"the permit {permit.id} was committed with another answer")
    if rows.answer(body["plan_sha256"], body["data_version"]) is not None:
        raise _impossible(number, "an answer to this plan was released before")
    rows.put_answer(AnswerRow(body["plan_sha256"], body["data_version"], permit.id, body["sha256"]))


def _drop_answers(body: Body, number: int, rows: CachedRows) -> None:
    for plan_sha256, data_version in body["dropped_answers"]:
        if rows.answer(plan_sha256, data_version) is None:
            raise _impossible(number, "the answer to forget was never released")
        rows.drop_answer(plan_sha256, data_version)


def _file(body: Body, number: int, rows: CachedRows) -> None:
    _known(rows, Scope(body["dataset"], "analyst", body["analyst"]), number)
    if rows.request(body["request"]) is not None:
        raise _impossible(number, f"the request {body['request']} exists")
    rows.put_request(RequestRow(body["request"], body["dataset"], body["analyst"], number))


def _decide(body: Body, number: int, rows: CachedRows) -> None:
    row = rows.request(body["request"])
    if row is None:
        raise _impossible(number, f"the request {body['request']} is not known")
    if row.state != "filed":
        raise _impossible(number, f"the request {row.id} was decided before")
    granted = _boolean(body, "granted", number)
    if granted and body["scope"] != Scope(row.dataset, "analyst", row.analyst).key:
        raise _impossible(number, f"the request {row.id} is about another scope")
    rows.put_request(replace(row, state="granted" if granted else "declined", decision=number))


def _keep_finding(body: Body, number: int, rows: CachedRows) -> None:
    row = FindingRow(body["finding"], body["dataset"], body["permit"], number)
    _known(rows, Scope(row.dataset), number)
    if rows.finding(row.id) is not None:
        raise _impossible(number, f"the finding {row.id} exists")
    if row.permit is not None and _permit(rows, body, number).dataset != row.dataset:
        raise _impossible(number, f"the permit {row.permit} is of another data set than {row.dataset}")
    rows.put_finding(row)


def _import(body: Body, number: int, rows: CachedRows) -> None:
    if body["records"] != number - 1:
        raise _impossible(number, f"an import of {body['records']} records ends elsewhere")


def _restore(body: Body, number: int, rows: CachedRows) -> None:
    if body["lost"] not in (max(0, body["noted"] - (number - 1)), body["noted"]):
        raise _impossible(number, f"{body['lost']} is not how many records were lost up to record {body['noted']}")


def _boolean(body: Body, name: str, number: int) -> bool:
    value = body[name]
    if not isinstance(value, bool):
        raise _impossible(number, f"{name} must be true or false")
    return value


def _known(rows: CachedRows, scope: Scope, number: int) -> ScopeRow:
    row = rows.scope(scope)
    if row is None:
        raise _impossible(number, f"{scope} is not known")
    return row


_ARTICLES: Final = {"dataset": "no data set", "analyst": "no analyst", "epoch": "no epoch"}


def _new_scope(rows: CachedRows, key: str, kind: str, number: int) -> Scope:
    scope = Scope.from_key(key)
    if scope.kind != kind:
        raise _impossible(number, f"{scope} is {_ARTICLES[kind]}")
    if rows.scope(scope) is not None:
        raise _impossible(number, f"{scope} exists")
    return scope


def _require_within(cap: Cap, whole: ScopeRow, number: int) -> None:
    if not cap.is_within(whole.cap):
        raise _impossible(number, f"a cap lies above that of {whole.scope}")


def _permit(rows: CachedRows, body: Body, number: int) -> PermitRow:
    row = rows.permit(body["permit"])
    if row is None:
        raise _impossible(number, f"the permit {body['permit']} is not known")
    return row


def _reserved(rows: CachedRows, body: Body, number: int) -> PermitRow:
    row = _permit(rows, body, number)
    if row.state != "reserved":
        raise _impossible(number, f"the permit {row.id} was {row.state} before")
    return row


def _impossible(number: int, why: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"record {number} is impossible: {why}", record=number, differs="body")


_SCOPE_EFFECTS: Final[Mapping[str, Effect]] = {
    "budget-created": _add_budget,
    "cap-created": _add_cap,
    "cap-replaced": _replace_cap,
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
    "imported": _import,
    "restored": _restore,
    "answer-released": _release,
    "caches-rebuilt": _drop_answers,
    "request-filed": _file,
    "request-decided": _decide,
    "finding-kept": _keep_finding,
}
