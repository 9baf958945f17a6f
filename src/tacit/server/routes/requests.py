"""Requests for more budget: filed by analysts, decided by those who keep the budget."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from tacit.accounting.bounds import Cost
from tacit.ledger import Request
from tacit.ledger.permits import cost_to_dict
from tacit.privacy.errors import UnknownName
from tacit.server.access import Action, Resource
from tacit.server.documents import DecisionAsked, RequestAsked
from tacit.server.listings import RequestGiven
from tacit.server.place import Caller, Who

router = APIRouter(prefix="/v1/requests", tags=["requests"])


@router.get("", response_model=list[RequestGiven])
def listed(who: Who, only_open: bool = False) -> Any:
    """Return the requests that the caller may see, the oldest first."""
    who.require(Action.SERVER_READ)
    found = who.server.curator.ledger.requests(only_open=only_open)
    return [_document(one) for one in found if _sees(who, one)]


@router.post("", status_code=201, response_model=RequestGiven)
def file(who: Who, asked: RequestAsked) -> Any:
    """Ask for more than one's cap."""
    who.require(Action.REQUEST_FILE, Resource(dataset=asked.dataset, person=who.name))
    cost = Cost(asked.epsilon, asked.delta, float("inf"))
    return _document(who.server.curator.ledger.file_request(who.name, asked.dataset, cost, asked.reason))


@router.post("/{request}/decision", response_model=RequestGiven)
def decide(who: Who, request: str, asked: DecisionAsked) -> Any:
    """Grant or decline a request; granting raises the analyst's cap, never above the data set's."""
    who.require(Action.SERVER_READ)
    ledger = who.server.curator.ledger
    found = next((one for one in ledger.requests() if one.id == request), None)
    if found is None or not _sees(who, found):
        who.record(
            Action.REQUEST_DECIDE,
            Resource() if found is None else Resource(dataset=found.dataset, person=found.analyst),
        )
        raise UnknownName(f"no request is called {request}", name="request", value=request)
    who.require(Action.REQUEST_DECIDE, Resource(dataset=found.dataset, person=found.analyst))
    return _document(ledger.decide(request, asked.granted, who.name, asked.note))


def _sees(who: Caller, request: Request) -> bool:
    return who.may(Action.REQUEST_READ, Resource(dataset=request.dataset, person=request.analyst))


def _document(request: Request) -> dict[str, Any]:
    return {
        "id": request.id,
        "dataset": request.dataset,
        "analyst": request.analyst,
        "cost": cost_to_dict(request.cost),
        "reason": request.reason,
        "filed_at": request.filed_at.isoformat(),
        "state": request.state,
        "decided_by": request.decided_by,
        "note": request.note,
    }
