"""Requests for more budget: an analyst asks, somebody decides, and both are kept.

A granted request raises the analyst's cap by what was asked, never above the data set's. Caps of analysts are a policy
among people: what is promised to the units, whatever is granted to whom, is the cap of the data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from tacit.accounting.bounds import Cost
from tacit.ledger.accounts import Measured
from tacit.ledger.caps import Cap
from tacit.ledger.filters import filter_of
from tacit.ledger.journal import Record
from tacit.ledger.permits import Scope, cost_from_dict, cost_to_dict, time_of
from tacit.ledger.rows import RequestState, ScopeRow
from tacit.ledger.work import Work
from tacit.privacy.errors import AlreadySettled, NotPermitted, OutOfRange, TooLarge, UnknownName, WrongType
from tacit.privacy.events import Event, exact_event, named_instead
from tacit.privacy.numbers import exact, rounded_down

WAITING_MAX: Final = 100
"""How many requests of one analyst on one data set can wait to be decided."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an analyst asked for and what became of it."""

    id: str
    dataset: str
    analyst: str
    cost: Cost
    reason: str
    filed_at: datetime
    state: RequestState = "filed"
    decided_by: str = ""
    note: str = ""


def wanted(what: object) -> Event | Cost:
    """Return what a request is for, a cost in floats."""
    if isinstance(what, Event):
        return exact_event(what)
    if not isinstance(what, Cost):
        raise WrongType(f"a request is for an event or a cost, not {named_instead(what)}", name="what", value=what)
    return Cost(_number("epsilon", what.epsilon), _number("delta", what.delta), _number("rho", what.rho))


def _number(name: str, value: object) -> float:
    return float.__add__(value, 0.0) if isinstance(value, float) else rounded_down(exact(name, value))


def cost_of(what: Event | Cost, cap: Cap) -> Cost:
    """Return what is asked for, of an event what it would cost under a cap."""
    if not isinstance(what, Event):
        return what
    measured = Measured(what)
    return filter_of(cap).cost(measured, filter_of(cap).price(measured))


def file_request(work: Work, analyst: str, dataset: str, cost: Cost, reason: str, token: Callable[[], str]) -> Request:
    """Keep what an analyst asks for."""
    cap_row(work, analyst, dataset)
    waiting = sum((row.dataset, row.analyst) == (dataset, analyst) for row in work.rows.requests(only_open=True))
    if waiting >= WAITING_MAX:
        raise TooLarge(
            f"{waiting} requests of {analyst} on {dataset} wait to be decided; no more are taken", name="reason"
        )
    if not 0 < cost.epsilon < math.inf or not 0 <= cost.delta < 1 or not cost.rho >= 0:
        raise OutOfRange(
            "a request asks for an epsilon above 0, a delta from 0 to below 1, and no negative rho",
            name="cost",
            value=cost,
        )
    record = work.write(
        "request-filed",
        {
            "analyst": analyst,
            "cost": cost_to_dict(cost),
            "dataset": dataset,
            "reason": reason,
            "request": f"{work.next_number}-{token()}",
        },
    )
    return request_of(record)


def decide(work: Work, request_id: str, granted: bool, by: str, note: str) -> Request:
    """Grant or decline a request; granting raises the analyst's cap."""
    row = work.rows.request(request_id)
    if row is None:
        raise UnknownName(f"no request is called {request_id}", name="request", value=request_id)
    if row.state != "filed":
        raise AlreadySettled(f"request {request_id} was {row.state} before", name="request", value=request_id)
    filed = work.record(row.record, "request-filed")
    body: dict[str, Any] = {"by": by, "granted": granted, "note": note, "request": request_id}
    if granted:
        capped = cap_row(work, row.analyst, row.dataset)
        cap = _raised(capped, work.dataset(row.dataset).cap, request_of(filed).cost)
        body |= {"cap": cap.to_dict(), "scope": capped.scope.key}
    return request_of(filed, work.write("request-decided", body))


def listed(work: Work, *, only_open: bool) -> list[Request]:
    """Return requests, the oldest first."""
    return [
        request_of(
            work.record(row.record, "request-filed"),
            None if row.decision is None else work.record(row.decision, "request-decided"),
        )
        for row in work.rows.requests(only_open=only_open)
    ]


def request_of(filed: Record, decided: Record | None = None) -> Request:
    """Return the request that a record filed, and what another decided about it."""
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


def cap_row(work: Work, analyst: str, dataset: str) -> ScopeRow:
    """Return the row of an analyst's cap, or refuse who has none."""
    work.dataset(dataset)
    row = work.rows.scope(Scope(dataset, "analyst", analyst))
    if row is None:
        raise NotPermitted(f"{analyst} has no cap on {dataset}; its owner can create one")
    return row


def _raised(row: ScopeRow, whole: Cap, cost: Cost) -> Cap:
    """Return the cap with a cost added, as far as the data set's cap allows."""
    cap = row.cap
    epsilon, delta = min(cap.epsilon + cost.epsilon, whole.epsilon), min(cap.delta + cost.delta, whole.delta)
    if cap.delta == 0 and cost.delta > 0:
        raise OutOfRange(f"the cap of {row.scope} has delta 0 and cannot be given any; create another cap", name="cost")
    if (epsilon, delta) == (cap.epsilon, cap.delta):
        raise OutOfRange(f"the cap of {row.scope} is that of the data set already; it cannot be raised", name="cost")
    return replace(cap, epsilon=epsilon, delta=delta)
