"""Routes of budgets of data sets, analysts and epochs, and of requests for more budget."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter

from tacit.accounting.conversions import Cost
from tacit.ledger import LedgerBudget, Request
from tacit.ledger.permits import Scope
from tacit.ledger.refusals import no_budget
from tacit.privacy import notation
from tacit.privacy.errors import UnknownName
from tacit.privacy.units import Relation
from tacit.server.access import Action, Resource
from tacit.server.context import Caller, CallerDep
from tacit.wire.requests import AnalystRequest, BudgetRequest, DecisionRequest, EpochRequest, MoreBudgetRequest
from tacit.wire.responses import (
    BoundResponse,
    BudgetResponse,
    CapResponse,
    CostResponse,
    EventResponse,
    MoreBudgetResponse,
    ReportResponse,
)
from tacit.wire.values import encode

router = APIRouter(prefix="/v1")

ANY_PERSON: Final = ""
"""A name that no person has: what the caller may see of it, the caller may see of every person."""


@router.get("/budgets", tags=["budgets"])
def list_budgets(caller: CallerDep) -> list[BudgetResponse]:
    """Return the budgets that the caller may see; analysts see those of data sets and their own caps."""
    caller.require(Action.SERVER_READ)
    ledger = caller.server.curator.ledger
    return [_response(LedgerBudget(ledger, scope)) for scope in ledger.scopes() if _sees(caller, scope)]


@router.post("/budgets", status_code=201, tags=["budgets"])
def create_budget(caller: CallerDep, body: BudgetRequest) -> BudgetResponse:
    """Set the budget of a data set; it can be replaced until something is charged."""
    caller.require(Action.BUDGET_WRITE, Resource(dataset=body.dataset))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        budget = caller.server.curator.set_budget(
            body.dataset,
            body.epsilon,
            body.delta,
            filter=body.filter,
            order=body.order,
            relation=Relation(body.relation),
            per_epoch=body.per_epoch,
            epsilon_min=body.epsilon_min,
            units=body.units,
        )
    return _response(budget, [str(one.message) for one in found])


@router.get("/budgets/{dataset}", tags=["budgets"])
def show_budget(
    caller: CallerDep, dataset: str, analyst: str | None = None, epoch: str | None = None
) -> BudgetResponse:
    """Return a budget: of a data set, of an analyst on it, or of one of its epochs."""
    return _response(_visible_budget(caller, dataset, analyst, epoch))


@router.get("/budgets/{dataset}/report", tags=["budgets"])
async def report(
    caller: CallerDep, dataset: str, analyst: str | None = None, epoch: str | None = None
) -> ReportResponse:
    """Return the events admitted so far and what they mean; may take seconds.

    Callers who may not see the budgets of other people get the totals of a shared budget only.
    """
    found = await caller.run_planning(lambda: _visible_budget(caller, dataset, analyst, epoch).report())
    if analyst is None and not caller.may(Action.BUDGET_READ, Resource(dataset=dataset, person=ANY_PERSON)):
        found = replace(found, events={}, unlisted=0)
    bound, meaning = found.bound, found.meaning
    return ReportResponse(
        scope=found.scope,
        spent=CostResponse.of(found.spent),
        remaining=CostResponse.of(found.remaining),
        guaranteed=CostResponse.of(found.guaranteed),
        events=[EventResponse(event=notation.write(event), count=count) for event, count in found.events.items()],
        unlisted=found.unlisted,
        bound=None
        if bound is None
        else BoundResponse(lower=encode(bound.lower), upper=encode(bound.upper), method=bound.method),
        meaning=None if meaning is None else meaning.sentence,
        text=str(found),
    )


@router.post("/budgets/{dataset}/analysts", status_code=201, tags=["budgets"])
def add_analyst(caller: CallerDep, dataset: str, body: AnalystRequest) -> BudgetResponse:
    """Set the cap of an analyst or a group on a data set."""
    caller.require(Action.BUDGET_WRITE, Resource(dataset=dataset))
    return _response(caller.server.curator.set_cap(body.name, dataset, body.epsilon, body.delta))


@router.post("/budgets/{dataset}/epochs", status_code=201, tags=["budgets"])
def add_epoch(caller: CallerDep, dataset: str, body: EpochRequest) -> BudgetResponse:
    """Add an epoch with its own budget."""
    caller.require(Action.BUDGET_WRITE, Resource(dataset=dataset))
    return _response(
        caller.server.curator.add_epoch(
            dataset,
            body.name,
            starts=body.starts,
            ends=body.ends,
            epsilon=body.epsilon,
            delta=body.delta,
        )
    )


def _visible_budget(caller: Caller, dataset: str, analyst: str | None, epoch: str | None) -> LedgerBudget:
    """Return a budget; raise the same error for one that is hidden from the caller as for an absent one."""
    caller.require(Action.SERVER_READ)
    kind: Any = "analyst" if analyst is not None else "epoch" if epoch is not None else "dataset"
    scope = Scope(dataset, kind, analyst or epoch or "")
    if not _sees(caller, scope):
        caller.record(Action.BUDGET_READ, Resource(dataset=dataset, person=analyst))
        raise no_budget(scope)
    return caller.server.curator.budget(dataset, analyst, epoch=epoch)


def _sees(caller: Caller, scope: Scope) -> bool:
    return caller.may(
        Action.BUDGET_READ,
        Resource(dataset=scope.dataset, person=scope.name if scope.kind == "analyst" else None),
    )


def _response(budget: LedgerBudget, warnings: Sequence[str] = ()) -> BudgetResponse:
    scope = budget.scope
    return BudgetResponse(
        scope=str(scope),
        dataset=scope.dataset,
        analyst=scope.name if scope.kind == "analyst" else None,
        epoch=scope.name if scope.kind == "epoch" else None,
        cap=CapResponse(**budget.cap.to_dict()),
        spent=CostResponse.of(budget.spent()),
        remaining=CostResponse.of(budget.remaining()),
        epsilon_min=budget.epsilon_min,
        is_enforced=budget.is_enforced,
        warnings=list(warnings),
    )


@router.get("/requests", tags=["requests"])
def list_requests(caller: CallerDep, only_open: bool = False) -> list[MoreBudgetResponse]:
    """Return the requests for more budget that the caller may see, oldest first."""
    caller.require(Action.SERVER_READ)
    found = caller.server.curator.ledger.requests(only_open=only_open)
    return [_request_response(one) for one in found if _sees_request(caller, one)]


@router.post("/requests", status_code=201, tags=["requests"])
def file_request(caller: CallerDep, body: MoreBudgetRequest) -> MoreBudgetResponse:
    """File a request for more budget."""
    caller.require(Action.REQUEST_FILE, Resource(dataset=body.dataset, person=caller.name))
    cost = Cost(body.epsilon, body.delta, float("inf"))
    return _request_response(caller.server.curator.ledger.file_request(caller.name, body.dataset, cost, body.reason))


@router.post("/requests/{request}/decision", tags=["requests"])
def decide_request(caller: CallerDep, request: str, body: DecisionRequest) -> MoreBudgetResponse:
    """Grant or decline a request; granting raises the analyst's cap, at most to that of the data set."""
    caller.require(Action.SERVER_READ)
    ledger = caller.server.curator.ledger
    found = next((one for one in ledger.requests() if one.id == request), None)
    if found is None or not _sees_request(caller, found):
        caller.record(
            Action.REQUEST_DECIDE,
            Resource() if found is None else Resource(dataset=found.dataset, person=found.analyst),
        )
        raise UnknownName(f"there is no request {request}", name="request", value=request)
    caller.require(Action.REQUEST_DECIDE, Resource(dataset=found.dataset, person=found.analyst))
    return _request_response(ledger.decide(request, body.granted, caller.name, body.note))


def _sees_request(caller: Caller, request: Request) -> bool:
    return caller.may(Action.REQUEST_READ, Resource(dataset=request.dataset, person=request.analyst))


def _request_response(request: Request) -> MoreBudgetResponse:
    return MoreBudgetResponse(
        id=request.id,
        dataset=request.dataset,
        analyst=request.analyst,
        cost=CostResponse.of(request.cost),
        reason=request.reason,
        filed_at=request.filed_at,
        state=request.state,
        decided_by=request.decided_by,
        note=request.note,
    )
