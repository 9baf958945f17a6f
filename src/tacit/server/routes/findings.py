"""Routes of findings of attacks, beside the releases that they judge.

A finding tells how secrets were guessed, so analysts neither read nor write any. A data set that is hidden from the
caller, a finding of one and a permit of one are answered as if they did not exist.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from tacit.ledger import KeptFinding
from tacit.ledger.kept_findings import no_finding
from tacit.ledger.permits import Scope
from tacit.ledger.refusals import no_budget
from tacit.ledger.transactions import no_permit
from tacit.privacy.errors import UnknownName
from tacit.server.access import Action, Resource
from tacit.server.context import Caller, CallerDep
from tacit.wire.requests import FindingRequest
from tacit.wire.responses import FindingResponse

router = APIRouter(prefix="/v1")


@router.get("/findings", tags=["findings"])
def list_findings(
    caller: CallerDep,
    dataset: str | None = None,
    permit: str | None = None,
    first: Annotated[int, Query(ge=1, le=2**62)] = 1,
    limit: Annotated[int, Query(ge=1, le=100)] = 100,
) -> list[FindingResponse]:
    """Return the findings that the caller may see, oldest first, from record number `first` on."""
    caller.require_somewhere(Action.FINDING_READ)
    ledger = caller.server.curator.ledger
    visible = [one for one in {scope.dataset for scope in ledger.scopes()} if _sees(caller, one)]
    if dataset is not None:
        if dataset not in visible:
            caller.record(Action.FINDING_READ, Resource(dataset=dataset))
            raise no_budget(Scope(dataset))
        visible = [dataset]
    return [_response(one) for one in ledger.findings(visible, permit, first=first, limit=limit)]


@router.get("/findings/{finding}", tags=["findings"])
def show_finding(caller: CallerDep, finding: str) -> FindingResponse:
    """Return a finding."""
    caller.require_somewhere(Action.FINDING_READ)
    try:
        found = caller.server.curator.ledger.finding(finding)
    except UnknownName:
        found = None
    if found is None or not _sees(caller, found.dataset):
        caller.record(Action.FINDING_READ, Resource() if found is None else Resource(dataset=found.dataset))
        raise no_finding(finding)
    return _response(found)


@router.post("/findings", status_code=201, tags=["findings"])
def keep_finding(caller: CallerDep, body: FindingRequest) -> FindingResponse:
    """Keep a finding without its records of people, about the permit of its claim, or about a data set."""
    from tacit.attack import Finding  # loads scipy, which no other request needs

    caller.require_somewhere(Action.FINDING_WRITE)
    finding = Finding.from_dict(body.finding)
    if body.dataset is not None:
        caller.require(Action.FINDING_WRITE, Resource(dataset=body.dataset))
    elif finding.permit is not None:
        _require_permit(caller, finding.permit)
    return _response(caller.server.curator.keep_finding(finding, body.dataset, by=caller.name))


def _require_permit(caller: Caller, permit: str) -> None:
    """Raise the same error for a permit of a data set that is hidden from the caller as for an absent one."""
    try:
        dataset = caller.server.curator.ledger.permit(permit).dataset
    except UnknownName:
        dataset = None
    if dataset is None or not caller.may(Action.FINDING_WRITE, Resource(dataset=dataset)):
        caller.record(Action.FINDING_WRITE, Resource(dataset=dataset))
        raise no_permit(permit)


def _sees(caller: Caller, dataset: str) -> bool:
    return caller.may(Action.FINDING_READ, Resource(dataset=dataset))


def _response(kept: KeptFinding) -> FindingResponse:
    return FindingResponse.model_validate(kept, from_attributes=True)
