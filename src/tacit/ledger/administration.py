"""Administration: budgets of data sets, caps of analysts and groups, epochs, and requests for more budget.

A budget is never raised once anything was charged to it: its cap is the promise to the units. The same definition again
changes nothing; another one replaces a budget, or an analyst's cap, to which nothing was charged, and is refused
otherwise.

Epochs. A data set may be divided by time, and a release names the epochs that it touches and is charged to each. With
`per_epoch` the data set's cap holds for each epoch instead of for all time together: new data has a budget of its own,
and old budgets are never refilled. What is then promised to a unit is the cap for what it contributed to any one epoch;
for a unit in several epochs the losses add up, and the data set's total counts the sum.

Requests. A granted request raises the analyst's cap by what was asked, never above the data set's. Caps of analysts are
a policy: the promise to the units, whatever is granted to whom, is the cap of the data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final

from tacit.accounting.conversions import Cost
from tacit.ledger.accounts import Measured
from tacit.ledger.caps import Cap
from tacit.ledger.clock import time_of
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import Record
from tacit.ledger.permits import Scope, cost_from_dict, cost_to_dict
from tacit.ledger.rows import RequestState, ScopeRow
from tacit.ledger.transactions import LedgerTransaction
from tacit.privacy.errors import (
    AlreadySettled,
    InvalidInput,
    MixedRelations,
    NameTaken,
    NotPermitted,
    OutOfRange,
    TooLarge,
    UnknownName,
    WrongType,
)
from tacit.privacy.events import Event, canonical_event, describe_non_event
from tacit.privacy.numbers import exact, rounded_down


def create_budget(
    transaction: LedgerTransaction, dataset: str, cap: Cap, *, per_epoch: bool, epsilon_min: float
) -> None:
    """Set the cap of a data set and the smallest price of its releases."""
    scope = Scope(dataset)
    known = transaction.rows.scope(scope)
    facts = {"cap": cap.to_dict(), "epsilon_min": epsilon_min, "per_epoch": per_epoch, "scope": scope.key}
    if known is None:
        transaction.write("budget-created", facts)
    elif not _is_same(known, cap, per_epoch=per_epoch, epsilon_min=epsilon_min):
        _require_unspent(transaction, known)
        for row in transaction.rows.scopes(dataset):
            if row.scope.kind == "analyst":
                _require_within(row.cap, cap, dataset, f"the cap of {row.scope.name}")
        transaction.write("cap-replaced", facts)


def create_cap(transaction: LedgerTransaction, dataset: str, analyst: str, cap: Cap) -> None:
    """Set the cap of an analyst or a group on a data set, within the data set's."""
    _require_within(cap, transaction.dataset(dataset).cap, dataset)
    scope = Scope(dataset, "analyst", analyst)
    known = transaction.rows.scope(scope)
    if known is None:
        transaction.write("cap-created", {"cap": cap.to_dict(), "scope": scope.key})
    elif not _is_same(known, cap):
        _require_unspent(transaction, known)
        transaction.write("cap-replaced", {"cap": cap.to_dict(), "scope": scope.key})


def add_epoch(
    transaction: LedgerTransaction, dataset: str, name: str, cap: Cap, starts: str | None, ends: str | None
) -> None:
    """Add an epoch with a cap within the data set's."""
    _require_within(cap, transaction.dataset(dataset).cap, dataset)
    scope = Scope(dataset, "epoch", name)
    if (known := transaction.rows.scope(scope)) is not None:
        if not _is_same(known, cap, starts=starts, ends=ends):
            raise _not_replaceable(transaction, known, "an epoch cannot be changed")
        return
    if starts is not None and ends is not None:
        _require_no_overlap(transaction, dataset, name, starts, ends)
    transaction.write("epoch-added", {"cap": cap.to_dict(), "ends": ends, "scope": scope.key, "starts": starts})


def epoch_bounds(starts: object, ends: object) -> tuple[str | None, str | None]:
    """Return the start (inclusive) and the end (exclusive) of an epoch in the stored form."""
    if (starts is None) != (ends is None):
        raise InvalidInput("an epoch needs both starts and ends, or neither", name="starts", value=starts)
    if starts is None:
        return None, None
    first, last = _utc_text("starts", starts), _utc_text("ends", ends)
    if not first < last:
        raise OutOfRange(f"an epoch must start before it ends, and {first} is not before {last}", name="starts")
    return first, last


def _utc_text(name: str, value: object) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise WrongType(f"{name} must be a date, or a time with its time zone", name=name, value=value)
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).isoformat()
    raise WrongType(f"{name} must be a date or a time, not {type(value).__name__}", name=name, value=value)


def _require_no_overlap(transaction: LedgerTransaction, dataset: str, name: str, starts: str, ends: str) -> None:
    for row in transaction.rows.scopes(dataset):
        if row.starts is not None and row.ends is not None and starts < row.ends and row.starts < ends:
            raise OutOfRange(
                f"epoch {name} would overlap {row.scope}; epochs must not overlap, or a unit's rows count in both",
                name="starts",
            )


def _require_within(cap: Cap, whole: Cap, dataset: str, what: str = "a cap") -> None:
    if cap.relation is not whole.relation:
        raise MixedRelations(f"the budget of {dataset} counts {whole.relation} events; a cap on it must do so too")
    if not cap.is_within(whole):
        raise OutOfRange(
            f"{what} on {dataset} must lie within its budget of epsilon {whole.epsilon:g} and delta {whole.delta:g}",
            name="epsilon",
        )


def _is_same(known: ScopeRow, cap: Cap, **facts: Any) -> bool:
    stored: Mapping[str, Any] = {name: getattr(known, name) for name in facts}
    return known.cap == cap and stored == facts


def _require_unspent(transaction: LedgerTransaction, known: ScopeRow) -> None:
    """Raise NameTaken if a cap must not be replaced: it was charged, or it has epochs.

    Or records were lost in a restoration since it was set, which may have charged it.
    """
    lost = any(record.contents["lost"] for record in transaction.rows.records_of(["restored"], known.record))
    if not lost and known.is_unspent:
        return
    reason = "something has been charged to it"
    if known.totals == filter_of(known.cap).nothing:
        reason = "it has epochs" if known.has_epochs else "records that may have charged it were lost"
    what = "a cap" if known.scope.kind == "analyst" else "a budget"
    raise _not_replaceable(transaction, known, f"{what} cannot be changed once {reason}")


CAP_KINDS: Final = ("budget-created", "cap-created", "cap-replaced", "epoch-added", "request-decided")
"""The kinds of records that set a cap, those with "cap" among their contents."""


def _not_replaceable(transaction: LedgerTransaction, known: ScopeRow, rule: str) -> NameTaken:
    """Return the error for a cap that must not be replaced, with the record that set it and the rule."""
    setting = [one for one in transaction.rows.records_of(CAP_KINDS) if one.contents.get("scope") == known.scope.key]
    return NameTaken(
        f"{known.scope} has epsilon {known.cap.epsilon:g} and delta {known.cap.delta:g} ({known.cap.filter}) since "
        f"record {setting[-1].number}; {rule}",
        name="dataset",
        value=str(known.scope),
    )


WAITING_MAX: Final = 100
"""How many open requests one analyst can have on one data set."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request for more budget, and the decision about it."""

    id: str
    dataset: str
    analyst: str
    cost: Cost
    reason: str
    filed_at: datetime
    state: RequestState = "filed"
    decided_by: str = ""
    note: str = ""


def requested(what: object) -> Event | Cost:
    """Check what a request asks for; return an event, or a cost in floats."""
    if isinstance(what, Event):
        return canonical_event(what)
    if not isinstance(what, Cost):
        raise WrongType(f"a request is for an event or a cost, not {describe_non_event(what)}", name="what", value=what)
    return Cost(_number("epsilon", what.epsilon), _number("delta", what.delta), _number("rho", what.rho))


def _number(name: str, value: object) -> float:
    return float.__add__(value, 0.0) if isinstance(value, float) else rounded_down(exact(name, value))


def cost_of(what: Event | Cost, cap: Cap) -> Cost:
    """Return the requested cost; for an event, its cost under a cap."""
    if not isinstance(what, Event):
        return what
    measured = Measured(what)
    return filter_of(cap).cost(measured, filter_of(cap).price(measured))


def file_request(
    transaction: LedgerTransaction, analyst: str, dataset: str, cost: Cost, reason: str, token: Callable[[], str]
) -> Request:
    """Record a request of an analyst."""
    cap_row(transaction, analyst, dataset)
    waiting = sum((row.dataset, row.analyst) == (dataset, analyst) for row in transaction.rows.requests(only_open=True))
    if waiting >= WAITING_MAX:
        raise TooLarge(f"{analyst} has {waiting} open requests on {dataset}, the maximum", name="reason")
    if not 0 < cost.epsilon < math.inf or not 0 <= cost.delta < 1 or not cost.rho >= 0:
        raise OutOfRange(
            "a request asks for an epsilon above 0, a delta from 0 to below 1, and no negative rho",
            name="cost",
            value=cost,
        )
    record = transaction.write(
        "request-filed",
        {
            "analyst": analyst,
            "cost": cost_to_dict(cost),
            "dataset": dataset,
            "reason": reason,
            "request": f"{transaction.next_number}-{token()}",
        },
    )
    return request_of(record)


def decide(transaction: LedgerTransaction, request_id: str, granted: bool, by: str, note: str) -> Request:
    """Grant or decline a request; granting raises the analyst's cap. No one may decide their own."""
    row = transaction.rows.request(request_id)
    if row is None:
        raise UnknownName(f"there is no request {request_id}", name="request", value=request_id)
    if row.state != "filed":
        raise AlreadySettled(f"request {request_id} was {row.state} before", name="request", value=request_id)
    if by == row.analyst:
        raise NotPermitted(f"{by} made request {request_id}, and no one may decide their own; name another person")
    filed = transaction.record(row.record, "request-filed")
    body: dict[str, Any] = {"by": by, "granted": granted, "note": note, "request": request_id}
    if granted:
        capped = cap_row(transaction, row.analyst, row.dataset)
        cap = _raise_cap(capped, transaction.dataset(row.dataset).cap, request_of(filed).cost)
        body |= {"cap": cap.to_dict(), "scope": capped.scope.key}
    return request_of(filed, transaction.write("request-decided", body))


def list_requests(transaction: LedgerTransaction, *, only_open: bool) -> list[Request]:
    """Return requests, the oldest first."""
    return [
        request_of(
            transaction.record(row.record, "request-filed"),
            None if row.decision is None else transaction.record(row.decision, "request-decided"),
        )
        for row in transaction.rows.requests(only_open=only_open)
    ]


def request_of(filed: Record, decided: Record | None = None) -> Request:
    """Return the request of a record, with the decision of another."""
    body = filed.contents
    request = Request(
        id=body["request"],
        dataset=body["dataset"],
        analyst=body["analyst"],
        cost=cost_from_dict(body["cost"]),
        reason=body["reason"],
        filed_at=time_of(filed.at_us),
    )
    if decided is None:
        return request
    decision = decided.contents
    state: RequestState = "granted" if decision["granted"] else "declined"
    return replace(request, state=state, decided_by=decision["by"], note=decision["note"])


def cap_row(transaction: LedgerTransaction, analyst: str, dataset: str) -> ScopeRow:
    """Return the row of an analyst's cap, or raise NotPermitted."""
    transaction.dataset(dataset)
    row = transaction.rows.scope(Scope(dataset, "analyst", analyst))
    if row is None:
        raise NotPermitted(f"{analyst} has no cap on {dataset}; its owner can create one")
    return row


def _raise_cap(row: ScopeRow, whole: Cap, cost: Cost) -> Cap:
    """Return the cap raised by a cost, up to the data set's cap."""
    cap = row.cap
    epsilon, delta = min(cap.epsilon + cost.epsilon, whole.epsilon), min(cap.delta + cost.delta, whole.delta)
    if cap.delta == 0 and cost.delta > 0:
        raise OutOfRange(f"the cap of {row.scope} has delta 0, which cannot be raised; create another cap", name="cost")
    if (epsilon, delta) == (cap.epsilon, cap.delta):
        raise OutOfRange(f"the cap of {row.scope} equals the data set's already; it cannot be raised", name="cost")
    return replace(cap, epsilon=epsilon, delta=delta)
