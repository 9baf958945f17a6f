"""Budgets of data sets, analysts and epochs: what is spent, left and meant by it; requests for more budget."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter

from tacit.accounting.conversions import Cost
from tacit.ledger import Budget, LedgerBudget, Request
from tacit.ledger.permits import Scope
from tacit.ledger.refusals import no_budget
from tacit.privacy import notation
from tacit.privacy.errors import UnknownName
from tacit.privacy.units import Relation
from tacit.server.access import Action, Resource
from tacit.server.context import Caller, Who
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

ANYBODY: Final = ""
"""Nobody has this name, so what may be seen of it may be seen of everybody."""


@router.get("/budgets", tags=["budgets"])
def list_budgets(who: Who) -> list[BudgetResponse]:
    """Return the budgets that the caller may see: analysts see those of data sets, and their own caps."""
    who.require(Action.SERVER_READ)
    ledger = who.server.curator.ledger
    return [_response(LedgerBudget(ledger, scope)) for scope in ledger.scopes() if _sees(who, scope)]


@router.post("/budgets", status_code=201, tags=["budgets"])
def create_budget(who: Who, asked: BudgetRequest) -> BudgetResponse:
    """Give a data set its budget, or another one as long as nothing is charged to it."""
    who.require(Action.BUDGET_WRITE, Resource(dataset=asked.dataset))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        budget = who.server.curator.set_budget(
            asked.dataset,
            asked.epsilon,
            asked.delta,
            filter=asked.filter,
            order=asked.order,
            relation=Relation(asked.relation),
            per_epoch=asked.per_epoch,
            epsilon_min=asked.epsilon_min,
            units=asked.units,
        )
    return _response(budget, [str(one.message) for one in found])


@router.get("/budgets/{dataset}", tags=["budgets"])
def show_budget(who: Who, dataset: str, analyst: str | None = None, epoch: str | None = None) -> BudgetResponse:
    """Return a budget: of a data set, of an analyst on it, or of one of its epochs."""
    return _response(_found(who, dataset, analyst, epoch))


@router.get("/budgets/{dataset}/report", tags=["budgets"])
async def report(who: Who, dataset: str, analyst: str | None = None, epoch: str | None = None) -> ReportResponse:
    """Return what was admitted so far and what it means; may take seconds.

    Of what several people are charged for, those who may not see one another's budgets see the totals alone.
    """
    found = await who.planned(lambda: _found(who, dataset, analyst, epoch).report())
    if analyst is None and not who.may(Action.BUDGET_READ, Resource(dataset=dataset, person=ANYBODY)):
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
def add_analyst(who: Who, dataset: str, asked: AnalystRequest) -> BudgetResponse:
    """Let an analyst, or a group, spend up to a cap on a data set."""
    who.require(Action.BUDGET_WRITE, Resource(dataset=dataset))
    curator = who.server.curator
    relation = curator.budget(dataset).cap.relation
    curator.add_analyst(asked.name, {dataset: Budget(asked.epsilon, asked.delta, relation=relation)})
    return _response(curator.budget(dataset, asked.name))


@router.post("/budgets/{dataset}/epochs", status_code=201, tags=["budgets"])
def add_epoch(who: Who, dataset: str, asked: EpochRequest) -> BudgetResponse:
    """Add a stretch of time with a budget of its own."""
    who.require(Action.BUDGET_WRITE, Resource(dataset=dataset))
    return _response(
        who.server.curator.ledger.add_epoch(
            dataset,
            asked.name,
            starts=asked.starts,
            ends=asked.ends,
            epsilon=asked.epsilon,
            delta=asked.delta,
        )
    )


def _found(who: Caller, dataset: str, analyst: str | None, epoch: str | None) -> LedgerBudget:
    """Return a budget that the caller may see; to those who may not see one, there is none."""
    who.require(Action.SERVER_READ)
    kind: Any = "analyst" if analyst is not None else "epoch" if epoch is not None else "dataset"
    scope = Scope(dataset, kind, analyst or epoch or "")
    if not _sees(who, scope):
        who.record(Action.BUDGET_READ, Resource(dataset=dataset, person=analyst))
        raise no_budget(scope)
    return who.server.curator.budget(dataset, analyst, epoch=epoch)


def _sees(who: Caller, scope: Scope) -> bool:
    return who.may(
        Action.BUDGET_READ,
        Resource(dataset=scope.dataset, person=scope.name if scope.kind == "analyst" else None),
    )


def _response(budget: LedgerBudget, doubts: Sequence[str] = ()) -> BudgetResponse:
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
        warnings=list(doubts),
    )


@router.get("/requests", tags=["requests"])
def list_requests(who: Who, only_open: bool = False) -> list[MoreBudgetResponse]:
    """Return the requests that the caller may see, the oldest first."""
    who.require(Action.SERVER_READ)
    found = who.server.curator.ledger.requests(only_open=only_open)
    return [_request_response(one) for one in found if _sees_request(who, one)]


@router.post("/requests", status_code=201, tags=["requests"])
def file_request(who: Who, asked: MoreBudgetRequest) -> MoreBudgetResponse:
    """Ask for more than one's cap."""
    who.require(Action.REQUEST_FILE, Resource(dataset=asked.dataset, person=who.name))
    cost = Cost(asked.epsilon, asked.delta, float("inf"))
    return _request_response(who.server.curator.ledger.file_request(who.name, asked.dataset, cost, asked.reason))


@router.post("/requests/{request}/decision", tags=["requests"])
def decide_request(who: Who, request: str, asked: DecisionRequest) -> MoreBudgetResponse:
    """Grant or decline a request; granting raises the analyst's cap, never above the data set's."""
    who.require(Action.SERVER_READ)
    ledger = who.server.curator.ledger
    found = next((one for one in ledger.requests() if one.id == request), None)
    if found is None or not _sees_request(who, found):
        who.record(
            Action.REQUEST_DECIDE,
            Resource() if found is None else Resource(dataset=found.dataset, person=found.analyst),
        )
        raise UnknownName(f"no request is called {request}", name="request", value=request)
    who.require(Action.REQUEST_DECIDE, Resource(dataset=found.dataset, person=found.analyst))
    return _request_response(ledger.decide(request, asked.granted, who.name, asked.note))


def _sees_request(who: Caller, request: Request) -> bool:
    return who.may(Action.REQUEST_READ, Resource(dataset=request.dataset, person=request.analyst))


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
