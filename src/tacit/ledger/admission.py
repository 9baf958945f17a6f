"""Admission: from an event to a permit, and from the permit to the released answer.

    reserve   price the event, check every scope, charge all of them in one transaction, return a permit
    commit    the run has ended; its answer is stored if the plan and the version of the data are known
    refund    a plan was stopped early: steps that were not run are refunded, in the filter's own units
    annotate  add a note to a reservation; it stays charged

Each function runs inside one transaction (`LedgerTransaction`) and holds nothing afterwards: between `reserve` and
`commit` no lock is held, so a slow or dead holder of a permit blocks no other, and stays charged.

A permit pays for one answer. An idempotency key gives the permit of the same request again while its run has not
ended; two runs may then be under way, and the answer of the one that commits first is released. Every other commit is
refused by the state of the permit alone: a refusal that depended on the answer would tell whether two noisy answers are
equal, again and again for one charge.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tacit.accounting.conversions import Cost
from tacit.ledger.accounts import Measured
from tacit.ledger.amounts import Amounts, amounts_from_json, amounts_to_json
from tacit.ledger.budget import refusal_for
from tacit.ledger.caps import Cap
from tacit.ledger.clock import time_of
from tacit.ledger.filters import filter_of, plan_steps
from tacit.ledger.journal import Record
from tacit.ledger.permits import (
    Permit,
    Reservation,
    Scope,
    cost_from_dict,
    cost_to_dict,
)
from tacit.ledger.refusals import too_cheap, way_to_delta
from tacit.ledger.rows import PermitRow, ScopeRow
from tacit.ledger.transactions import LedgerTransaction
from tacit.ledger.verification import has_content
from tacit.privacy.errors import (
    AlreadySettled,
    BudgetExceeded,
    EmptyInput,
    InvalidInput,
    KeyReused,
    LedgerCorrupt,
    NotPermitted,
    OutOfRange,
    UnknownName,
)
from tacit.privacy.events import Event, from_dict

ROUNDING: Final = 2.0**-30
"""Tolerance relative to the smallest epsilon: the parts of a divided epsilon may add up to slightly less."""


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """An event to be charged, and the scopes that are to pay; checked, and not priced yet."""

    dataset: str
    event: Event
    analysts: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    purpose: str = ""
    key: str | None = None
    is_refundable: bool = False
    """Whether steps that are not run can be refunded; `is_plan` in the journal."""
    plan_sha256: str | None = None
    """Digest of the plan, if it is known; an idempotency key is bound to it."""
    data_version: str | None = None
    scopes: tuple[Scope, ...] = field(init=False)
    """The scopes to be charged, the data set first."""

    def __post_init__(self) -> None:
        scopes = (
            Scope(self.dataset),
            *(Scope(self.dataset, "analyst", name) for name in self.analysts),
            *(Scope(self.dataset, "epoch", name) for name in self.epochs),
        )
        object.__setattr__(self, "scopes", scopes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that make two requests equal, as plain objects."""
        return {
            "analysts": list(self.analysts),
            "data_version": self.data_version,
            "dataset": self.dataset,
            "epochs": list(self.epochs),
            "event": self.event.to_dict(),
            "is_plan": self.is_refundable,
            "plan_sha256": self.plan_sha256,
        }


class CapPrices:
    """The price of a request under each cap, computed once and, where possible, before the write lock is taken."""

    def __init__(self, request: ChargeRequest) -> None:
        self.request: Final = request
        self.measured: Final = Measured(request.event)
        self.caps: Final[dict[Scope, Cap]] = {}
        """The cap of each scope as it was read last."""
        self._amounts: dict[Cap, Amounts] = {}

    def amounts(self, cap: Cap) -> Amounts:
        """Return what a scope with this cap is charged."""
        if cap not in self._amounts:
            self._amounts[cap] = filter_of(cap).price(self.measured, as_plan=self.request.is_refundable)
        return self._amounts[cap]


def reserve(transaction: LedgerTransaction, prices: CapPrices, token: Callable[[], str]) -> Permit:
    """Charge every scope and return a permit, or raise and charge none."""
    request = prices.request
    if request.key is not None and (known := transaction.rows.permit_by_key(request.dataset, request.key)):
        return _same_permit(known, transaction.record(known.record, "reserved"), request)
    rows = scope_rows(transaction, request)
    prices.caps.update({row.scope: row.cap for row in rows})
    charged = {row.scope: prices.amounts(row.cap) for row in rows}
    cost = charged_cost(rows[0], prices)
    if (refusal := refusal_of(rows, prices)) is not None:
        raise refusal
    permit_id = f"{transaction.next_number}-{token()}"
    record = transaction.write(
        "reserved",
        request.to_dict()
        | {
            "charged": {scope.key: amounts_to_json(amounts) for scope, amounts in charged.items()},
            "cost": cost_to_dict(cost),
            "key": request.key,
            "permit": permit_id,
            "purpose": request.purpose,
        },
    )
    issued_at = time_of(record.at_us)
    return Permit(
        permit_id, request.event, cost, issued_at, request.dataset, request.purpose, charged, request.is_refundable
    )


def charged_cost(dataset: ScopeRow, prices: CapPrices) -> Cost:
    """Return what a data set is charged; raise TooCheap if that is below the smallest price of a release from it.

    A plan is priced as a whole. The epsilon that the refusal names is admitted, also where rounding lowers it.
    """
    cost = filter_of(dataset.cap).cost(prices.measured, prices.amounts(dataset.cap))
    if cost.epsilon < dataset.epsilon_min * (1 - ROUNDING):
        raise too_cheap(dataset.scope.dataset, dataset.epsilon_min)
    return cost


def scope_rows(transaction: LedgerTransaction, request: ChargeRequest) -> list[ScopeRow]:
    """Return the rows of the scopes to be charged, the data set first."""
    transaction.rows.prefetch(request.scopes)
    dataset = transaction.dataset(request.dataset)
    if dataset.has_epochs and not request.epochs:
        raise EmptyInput(
            f"{request.dataset} is divided into epochs, and this release names none; charge an epoch: "
            f"curator.budget({request.dataset!r}, epoch=NAME)",
            name="epochs",
        )
    if dataset.per_epoch and not dataset.has_epochs:
        raise EmptyInput(f"{request.dataset} has a budget for each epoch, and no epoch yet; add one", name="epochs")
    found = []
    for scope in request.scopes:
        row = transaction.rows.scope(scope)
        if row is None and scope.kind == "analyst":
            command = f"tacit budget analyst {shlex.quote(scope.name)} {shlex.quote(scope.dataset)} --epsilon 1"
            raise NotPermitted(f"{scope.name} has no cap on {scope.dataset}; its owner can create one: {command}")
        if row is None:
            raise UnknownName(f"{scope.dataset} has no epoch {scope.name}", name="epochs", value=scope.name)
        found.append(row)
    return found


def commit(
    transaction: LedgerTransaction,
    permit_id: str,
    answer: bytes | None,
    plan_sha256: str | None,
    data_version: str | None,
    before: str | None = None,
) -> None:
    """Record that a run has ended, and store its answer; once for each permit, whatever the answer is.

    With `before`, only if that is the permit's last note.
    """
    row, reserved = transaction.permit(permit_id)
    if row.state == "committed":
        raise AlreadySettled(
            f"permit {permit_id} was committed before and pays for one answer; discard this one and reserve again",
            name="permit",
            value=permit_id,
        )
    _require_note(row, before)
    bound_to = (reserved.contents.get("plan_sha256"), reserved.contents.get("data_version"))
    if plan_sha256 is not None and bound_to[0] is not None and bound_to != (plan_sha256, data_version):
        raise InvalidInput(
            f"permit {permit_id} was reserved for another plan or version of the data; commit what was reserved",
            name="plan",
        )
    digest = None if answer is None else hashlib.sha256(answer).hexdigest()
    transaction.write("committed", {"answer_sha256": digest, "permit": permit_id})
    if answer is None or digest is None or plan_sha256 is None or data_version is None:
        return
    if transaction.rows.answer(plan_sha256, data_version) is None:  # the first answer is the one that is kept
        transaction.rows.put_content(digest, answer)
        transaction.write(
            "answer-released",
            {
                "bytes": len(answer),
                "data_version": data_version,
                "permit": permit_id,
                "plan_sha256": plan_sha256,
                "sha256": digest,
            },
        )


def refund(transaction: LedgerTransaction, permit_id: str, ran: Event | None, back: Mapping[str, Any]) -> None:
    """Refund what a plan reserved for steps that were not run; `back` comes from `refund_amounts`."""
    refundable(transaction, permit_id, ran)
    transaction.write(
        "refunded", {"permit": permit_id, "ran": None if ran is None else ran.to_dict(), "returned": back}
    )


def refund_amounts(permit: Permit, caps: Mapping[Scope, Cap], ran: Event | None) -> dict[str, Any]:
    """Return what each scope of a plan is refunded, in the written form; `ran` is the part that was run."""
    return {
        scope.key: amounts_to_json(
            reserved if ran is None else filter_of(caps[scope]).refund(permit.event, reserved, ran)
        )
        for scope, reserved in permit.charged.items()
    }


def refundable(transaction: LedgerTransaction, permit_id: str, ran: Event | None) -> tuple[Permit, dict[Scope, Cap]]:
    """Return the permit of a plan of which `ran` was run, and the caps of its scopes; raise if it has no refund."""
    row, record = transaction.permit(permit_id)
    permit = permit_of(record)
    if not permit.is_refundable:
        raise InvalidInput("only what was reserved with refundable=True can be refunded", name="permit")
    if row.state != "reserved" or row.is_refunded:
        what = "refunded" if row.is_refunded else "committed"
        raise AlreadySettled(f"permit {permit_id} was {what} before; refund once, before commit", name="permit")
    if ran is not None and not plan_steps(ran) <= plan_steps(permit.event):
        raise OutOfRange("what was run is not a part of the plan that was reserved", name="ran", value=ran)
    return permit, {row.scope: row.cap for row in transaction.known(permit.scopes)}


def annotate(transaction: LedgerTransaction, permit_id: str, note: str, before: str | None = None) -> None:
    """Add a note to a reservation; with `before`, only if that is its last note."""
    row, _ = transaction.permit(permit_id)
    if row.state != "reserved":
        raise AlreadySettled(f"permit {permit_id} was committed; only reservations are annotated", name="permit")
    _require_note(row, before)
    transaction.write("annotated", {"note": note, "permit": permit_id})


def _require_note(row: PermitRow, before: str | None) -> None:
    if before is not None and row.note != before:
        raise AlreadySettled(f"permit {row.id} was annotated meanwhile; read its note and try again", name="permit")


def reservations(transaction: LedgerTransaction) -> list[Reservation]:
    """Return permits that were never committed, the oldest first."""
    rows = transaction.rows.permits(only_open=True)
    return [Reservation(permit_of(transaction.record(row.record, "reserved")), row.note) for row in rows]


def open_notes(transaction: LedgerTransaction, dataset: str) -> dict[str, str]:
    """Return the last notes of the permits of a data set that were never committed, by their ids."""
    return {row.id: row.note for row in transaction.rows.permits(only_open=True) if row.dataset == dataset}


def released(transaction: LedgerTransaction, plan_sha256: str, data_version: str) -> bytes | None:
    """Return the answer that is stored for a plan on a version of the data, checked against its digest."""
    row = transaction.rows.answer(plan_sha256, data_version)
    if row is None:
        return None
    if not has_content(transaction.rows, row):
        raise LedgerCorrupt(f"the answer that permit {row.permit} released was changed", differs="answer")
    return transaction.rows.content(row.sha256)


def permit_of(record: Record) -> Permit:
    """Return the permit of a record of the kind reserved."""
    body: Mapping[str, Any] = record.contents
    return Permit(
        id=body["permit"],
        event=from_dict(body["event"]),
        cost=cost_from_dict(body["cost"]),
        issued_at=time_of(record.at_us),
        dataset=body["dataset"],
        purpose=body["purpose"],
        charged={Scope.from_key(key): amounts_from_json(amounts) for key, amounts in body["charged"].items()},
        is_refundable=body["is_plan"],
    )


def _same_permit(row: PermitRow, record: Record, request: ChargeRequest) -> Permit:
    """Return the permit of a key that was used before; raise for another request, or if the permit is settled."""
    body = record.contents
    if any(body.get(name) != value for name, value in request.to_dict().items()):
        raise KeyReused(
            f"the key {request.key!r} was used for another request on {request.dataset} or for other data; "
            "take a new key",
            name="key",
            value=request.key,
        )
    if row.state != "reserved" or row.is_refunded or row.note:
        raise AlreadySettled(
            f"the request on {request.dataset} with the key {request.key!r} has ended or failed, and is not run again "
            "for the same charge; take a new key",
            name="key",
            value=request.key,
        )
    return permit_of(record)


def refusal_of(rows: list[ScopeRow], prices: CapPrices) -> BudgetExceeded | None:
    """Return the refusal of the scope with the least epsilon left, or None if all of them admit the event."""
    refusals = [
        refusal_for(
            *(filter_of(row.cap), row.totals, prices.measured, prices.amounts(row.cap), row.scope),
            "" if row.cap.delta else way_to_delta(row),
        )
        for row in rows
        if row.is_enforced and not filter_of(row.cap).admits(row.totals, prices.amounts(row.cap))
    ]
    return min(refusals, key=lambda error: error.remaining.epsilon if error.remaining else 0.0, default=None)
