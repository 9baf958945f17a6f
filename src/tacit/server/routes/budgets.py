"""Budgets: of data sets, of analysts on them, of epochs; what is spent, what is left, and what that means."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter

from tacit.ledger import Budget, LedgerBudget
from tacit.ledger.permits import Scope, cost_to_dict
from tacit.ledger.refusals import no_budget
from tacit.privacy import notation
from tacit.privacy.relations import Relation
from tacit.server.access import Action, Resource
from tacit.server.documents import AnalystAsked, BudgetAsked, BudgetGiven, EpochAsked
from tacit.server.listings import ReportGiven
from tacit.server.place import Caller, Who
from tacit.server.wire import written

router = APIRouter(prefix="/v1/budgets", tags=["budgets"])

ANYBODY: Final = ""
"""Nobody has this name, so what may be seen of it may be seen of everybody."""


@router.get("", response_model=list[BudgetGiven])
def listed(who: Who) -> Any:
    """Return the budgets that the caller may see: analysts see those of data sets, and their own caps."""
    who.require(Action.SERVER_READ)
    ledger = who.server.curator.ledger
    return [_document(LedgerBudget(ledger, scope)) for scope in ledger.scopes() if _sees(who, scope)]


@router.post("", status_code=201, response_model=BudgetGiven)
def create(who: Who, asked: BudgetAsked) -> Any:
    """Give a data set its budget, once and for all."""
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
    return _document(budget) | {"warnings": [str(one.message) for one in found]}


@router.get("/{dataset}", response_model=BudgetGiven)
def show(who: Who, dataset: str, analyst: str | None = None, epoch: str | None = None) -> Any:
    """Return a budget: of a data set, of an analyst on it, or of one of its epochs."""
    return _document(_found(who, dataset, analyst, epoch))


@router.get("/{dataset}/report", response_model=ReportGiven)
async def report(who: Who, dataset: str, analyst: str | None = None, epoch: str | None = None) -> Any:
    """Return what was admitted so far and what it means; may take seconds.

    Of what several people are charged for, those who may not see one another's budgets see the totals alone.
    """
    found = await who.planned(lambda: _found(who, dataset, analyst, epoch).report())
    if analyst is None and not who.may(Action.BUDGET_READ, Resource(dataset=dataset, person=ANYBODY)):
        found = replace(found, events={}, unlisted=0)
    bound, meaning = found.bound, found.meaning
    return {
        "scope": found.scope,
        "spent": cost_to_dict(found.spent),
        "remaining": cost_to_dict(found.remaining),
        "guaranteed": cost_to_dict(found.guaranteed),
        "events": [{"event": notation.write(event), "count": count} for event, count in found.events.items()],
        "unlisted": found.unlisted,
        "bound": None
        if bound is None
        else {"lower": written(bound.lower), "upper": written(bound.upper), "method": bound.method},
        "meaning": None if meaning is None else meaning.sentence,
        "text": str(found),
    }


@router.post("/{dataset}/analysts", status_code=201, response_model=BudgetGiven)
def add_analyst(who: Who, dataset: str, asked: AnalystAsked) -> Any:
    """Let an analyst, or a group, spend up to a cap on a data set."""
    who.require(Action.BUDGET_WRITE, Resource(dataset=dataset))
    curator = who.server.curator
    relation = curator.budget(dataset).cap.relation
    curator.add_analyst(asked.name, {dataset: Budget(asked.epsilon, asked.delta, relation=relation)})
    return _document(curator.budget(dataset, asked.name))


@router.post("/{dataset}/epochs", status_code=201, response_model=BudgetGiven)
def add_epoch(who: Who, dataset: str, asked: EpochAsked) -> Any:
    """Add a stretch of time with a budget of its own."""
    who.require(Action.BUDGET_WRITE, Resource(dataset=dataset))
    return _document(
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


def _document(budget: LedgerBudget) -> dict[str, Any]:
    scope = budget.scope
    return {
        "scope": str(scope),
        "dataset": scope.dataset,
        "analyst": scope.name if scope.kind == "analyst" else None,
        "epoch": scope.name if scope.kind == "epoch" else None,
        "cap": budget.cap.to_dict(),
        "spent": cost_to_dict(budget.spent()),
        "remaining": cost_to_dict(budget.remaining()),
        "epsilon_min": budget.epsilon_min,
        "is_enforced": budget.is_enforced,
        "warnings": [],
    }
