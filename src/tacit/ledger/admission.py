"""Admission: from an event that somebody wants to run to a permit, and from the permit to the release.

    reserve   price, ask every scope, charge all of them in one transaction, hand out a permit
    commit    the run came to its end; its answer is kept if the plan and the version of the data are known
    refund    a plan was stopped early: what was not run is returned, in the filter's own units
    annotate  somebody says what became of a reservation; it stays charged

Each function runs inside one transaction (`LedgerTransaction`) and holds nothing afterwards: between `reserve` and
`commit` no lock is held, so a holder who is slow or dead blocks nobody, and stays charged.

A permit pays for one answer. An idempotency key gives the permit of the same ask again while its run may still come to
its end; two runs may then be under way, and the one that commits first is the one whose answer leaves. Every other
commit is refused by the state of the permit alone: a refusal that depended on the answer would say whether two noisy
answers are equal, again and again for one charge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Final

from tacit.accounting.conversions import Cost
from tacit.ledger.accounts import Amounts, Measured, read, written
from tacit.ledger.budget import refused
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of, steps
from tacit.ledger.journal import Record
from tacit.ledger.permits import Permit, Reservation, Scope, cost_from_dict, cost_to_dict, time_of
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
"""Of a smallest epsilon; the parts that an epsilon is cut into may add up to a trifle less."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What somebody wants to run, on whose account; checked, and not priced yet."""

    dataset: str
    event: Event
    analysts: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    purpose: str = ""
    key: str | None = None
    is_plan: bool = False
    plan_sha256: str | None = None
    """Digest of what is to be run, if it is known; a key stands for this and no other."""
    data_version: str | None = None
    scopes: tuple[Scope, ...] = field(init=False)
    """Who is to be charged, the data set first."""

    def __post_init__(self) -> None:
        scopes = (
            Scope(self.dataset),
            *(Scope(self.dataset, "analyst", name) for name in self.analysts),
            *(Scope(self.dataset, "epoch", name) for name in self.epochs),
        )
        object.__setattr__(self, "scopes", scopes)

    def to_dict(self) -> dict[str, Any]:
        """Return what makes two asks the same, as plain objects."""
        return {
            "analysts": list(self.analysts),
            "data_version": self.data_version,
            "dataset": self.dataset,
            "epochs": list(self.epochs),
            "event": self.event.to_dict(),
            "is_plan": self.is_plan,
            "plan_sha256": self.plan_sha256,
        }


class CapPrices:
    """The price of an ask under each cap, each found once; found before the write lock is taken where possible."""

    def __init__(self, ask: Ask) -> None:
        self.ask: Final = ask
        self.measured: Final = Measured(ask.event)
        self.caps: Final[dict[Scope, Cap]] = {}
        """Which cap each scope was found to have, for the next quote."""
        self._amounts: dict[Cap, Amounts] = {}

    def amounts(self, cap: Cap) -> Amounts:
        """Return what a scope with this cap is charged."""
        if cap not in self._amounts:
            self._amounts[cap] = filter_of(cap).price(self.measured, as_plan=self.ask.is_plan)
        return self._amounts[cap]


def reserve(work: LedgerTransaction, quote: CapPrices, token: Callable[[], str]) -> Permit:
    """Charge every scope and hand out a permit, or raise and charge none."""
    ask = quote.ask
    if ask.key is not None and (known := work.rows.permit_by_key(ask.dataset, ask.key)):
        return _same_permit(known, work.record(known.record, "reserved"), ask)
    rows = scope_rows(work, ask)
    quote.caps.update({row.scope: row.cap for row in rows})
    charged = {row.scope: quote.amounts(row.cap) for row in rows}
    cost = worth_charging(rows[0], quote)
    if (refusal := refusal_of(rows, quote)) is not None:
        raise refusal
    permit_id = f"{work.next_number}-{token()}"
    record = work.write(
        "reserved",
        ask.to_dict()
        | {
            "charged": {scope.key: written(amounts) for scope, amounts in charged.items()},
            "cost": cost_to_dict(cost),
            "key": ask.key,
            "permit": permit_id,
            "purpose": ask.purpose,
        },
    )
    issued_at = time_of(record.at_us)
    return Permit(permit_id, ask.event, cost, issued_at, ask.dataset, ask.purpose, charged, ask.is_plan)


def worth_charging(dataset: ScopeRow, quote: CapPrices) -> Cost:
    """Return what a data set is charged, or refuse what costs less than a release from it must cost.

    A plan is judged as a whole. What the refusal names is admitted, also where it comes out lower by a rounding.
    """
    cost = filter_of(dataset.cap).cost(quote.measured, quote.amounts(dataset.cap))
    if cost.epsilon < dataset.epsilon_least * (1 - ROUNDING):
        raise too_cheap(dataset.scope.dataset, dataset.epsilon_least)
    return cost


def scope_rows(work: LedgerTransaction, ask: Ask) -> list[ScopeRow]:
    """Return the rows of everyone who is to be charged, the data set first."""
    work.rows.prefetch(ask.scopes)
    dataset = work.dataset(ask.dataset)
    if dataset.has_epochs and not ask.epochs:
        raise EmptyInput(f"{ask.dataset} is cut into epochs; name those that the release touches", name="epochs")
    if dataset.per_epoch and not dataset.has_epochs:
        raise EmptyInput(f"{ask.dataset} has its budget for each epoch, and no epoch yet; add one", name="epochs")
    found = []
    for scope in ask.scopes:
        row = work.rows.scope(scope)
        if row is None and scope.kind == "analyst":
            command = f"tacit budget analyst {quote(scope.name)} {quote(scope.dataset)} --epsilon 1"
            raise NotPermitted(f"{scope.name} has no cap on {scope.dataset}; its owner can create one: {command}")
        if row is None:
            raise UnknownName(f"{scope.dataset} has no epoch {scope.name}", name="epochs", value=scope.name)
        found.append(row)
    return found


def commit(
    work: LedgerTransaction,
    permit_id: str,
    answer: bytes | None,
    plan_sha256: str | None,
    data_version: str | None,
    before: str | None = None,
) -> None:
    """Note that a run came to its end, and keep its answer; once for each permit, whatever the answer is.

    With `before`, only if that is what was said last of the permit.
    """
    row, reserved = work.permit(permit_id)
    if row.state == "committed":
        raise AlreadySettled(
            f"permit {permit_id} was committed before, and pays for one answer; drop this one and reserve again",
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
    work.write("committed", {"answer_sha256": digest, "permit": permit_id})
    if answer is None or digest is None or plan_sha256 is None or data_version is None:
        return
    if work.rows.answer(plan_sha256, data_version) is None:  # the first answer stays the answer
        work.rows.put_content(digest, answer)
        work.write(
            "answer-released",
            {
                "bytes": len(answer),
                "data_version": data_version,
                "permit": permit_id,
                "plan_sha256": plan_sha256,
                "sha256": digest,
            },
        )


def refund(work: LedgerTransaction, permit_id: str, ran: Event, back: Mapping[str, Any]) -> None:
    """Return what a plan reserved for steps that were not run, as `returned` found it."""
    refundable(work, permit_id, ran)
    work.write("refunded", {"permit": permit_id, "ran": ran.to_dict(), "returned": back})


def returned(permit: Permit, caps: Mapping[Scope, Cap], ran: Event) -> dict[str, Any]:
    """Return what each scope gets back of a plan, in the written form; `ran` is what was run of it."""
    return {
        scope.key: written(filter_of(caps[scope]).returned(permit.event, reserved, ran))
        for scope, reserved in permit.charged.items()
    }


def refundable(work: LedgerTransaction, permit_id: str, ran: Event) -> tuple[Permit, dict[Scope, Cap]]:
    """Return the permit of a plan of which only `ran` was run, and the caps of those who were charged for it."""
    row, record = work.permit(permit_id)
    permit = permit_of(record)
    if not permit.is_plan:
        raise InvalidInput("only what was reserved as a plan (plan=True) can be returned in part", name="permit")
    if row.state != "reserved" or row.is_refunded:
        what = "refunded" if row.is_refunded else "committed"
        raise AlreadySettled(f"permit {permit_id} was {what} before; refund once, before commit", name="permit")
    if not steps(ran) <= steps(permit.event):
        raise OutOfRange("what was run is not a part of the plan that was reserved", name="ran", value=ran)
    return permit, {row.scope: row.cap for row in work.known(permit.scopes)}


def annotate(work: LedgerTransaction, permit_id: str, note: str, before: str | None = None) -> None:
    """Keep what somebody says of a reservation; with `before`, only if that is what was said last."""
    row, _ = work.permit(permit_id)
    if row.state != "reserved":
        raise AlreadySettled(f"permit {permit_id} was committed; only reservations are annotated", name="permit")
    _require_note(row, before)
    work.write("annotated", {"note": note, "permit": permit_id})


def _require_note(row: PermitRow, before: str | None) -> None:
    if before is not None and row.note != before:
        raise AlreadySettled(f"permit {row.id} was annotated otherwise meanwhile; read its note", name="permit")


def reservations(work: LedgerTransaction) -> list[Reservation]:
    """Return permits that were never committed, the oldest first."""
    rows = work.rows.permits(only_open=True)
    return [Reservation(permit_of(work.record(row.record, "reserved")), row.note) for row in rows]


def released(work: LedgerTransaction, plan_sha256: str, data_version: str) -> bytes | None:
    """Return the answer that is kept for a plan on a version of the data, checked against its digest."""
    row = work.rows.answer(plan_sha256, data_version)
    if row is None:
        return None
    if not has_content(work.rows, row):
        raise LedgerCorrupt(f"the answer that permit {row.permit} released was changed", differs="answer")
    return work.rows.content(row.sha256)


def permit_of(record: Record) -> Permit:
    """Return the permit that a record of the kind reserved gave."""
    body: Mapping[str, Any] = record.contents
    return Permit(
        id=body["permit"],
        event=from_dict(body["event"]),
        cost=cost_from_dict(body["cost"]),
        issued_at=time_of(record.at_us),
        dataset=body["dataset"],
        purpose=body["purpose"],
        charged={Scope.from_key(key): read(amounts) for key, amounts in body["charged"].items()},
        is_plan=body["is_plan"],
    )


def _same_permit(row: PermitRow, record: Record, ask: Ask) -> Permit:
    """Return the permit of a key that was used before, or refuse another ask and a permit that gave its answer."""
    body = record.contents
    if any(body.get(name) != value for name, value in ask.to_dict().items()):
        raise KeyReused(
            f"the key {ask.key!r} was used for another request on {ask.dataset}, or for other data; take a new key",
            name="key",
            value=ask.key,
        )
    if row.state != "reserved" or row.is_refunded or row.note:
        raise AlreadySettled(
            f"what was asked on {ask.dataset} with the key {ask.key!r} came to its end or failed, and is not run "
            "again for the same charge; take a new key",
            name="key",
            value=ask.key,
        )
    return permit_of(record)


def refusal_of(rows: list[ScopeRow], quote: CapPrices) -> BudgetExceeded | None:
    """Return the refusal of the scope that has least left, or None if all of them admit the event."""
    refusals = [
        refused(
            *(filter_of(row.cap), row.totals, quote.measured, quote.amounts(row.cap), str(row.scope)),
            "" if row.cap.delta else way_to_delta(row),
        )
        for row in rows
        if row.is_enforced and not filter_of(row.cap).admits(row.totals, quote.amounts(row.cap))
    ]
    return min(refusals, key=lambda error: error.remaining.epsilon if error.remaining else 0.0, default=None)
