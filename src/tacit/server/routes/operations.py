"""Routes of operations: health, metrics, ledger records and their verification, audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from tacit.ledger.clock import time_of
from tacit.pipeline import notes
from tacit.privacy.errors import TacitError
from tacit.server.access import Action
from tacit.server.context import Caller, CallerDep, Server
from tacit.version import __version__
from tacit.wire.responses import (
    AuditResponse,
    CostResponse,
    HealthResponse,
    LedgerRecordResponse,
    ReadyResponse,
    ReservationResponse,
    VerifiedResponse,
)

router = APIRouter()


@router.get("/healthz", tags=["health"])
async def alive() -> HealthResponse:
    """Return that the process is alive."""
    return HealthResponse(status="alive", version=__version__)


@router.get(
    "/readyz",
    tags=["health"],
    responses={503: {"model": ReadyResponse, "description": "A component cannot be used."}},
)
def ready(caller: CallerDep, response: Response) -> ReadyResponse:
    """Return whether the ledger, the catalog and the server's own database can be used."""
    server, failed = caller.server, {}
    checks: dict[str, Callable[[], object]] = {
        "ledger": server.curator.ledger.head,
        "catalog": lambda: server.curator.catalog,
        "database": lambda: server.database.read("SELECT 1"),
    }
    for name, check in checks.items():
        try:
            check()
        except TacitError as error:
            failed[name] = error.code
    response.status_code = 503 if failed else 200
    return ReadyResponse(status="unready" if failed else "ready", failed=failed)


@router.get("/metrics", tags=["health"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(caller: CallerDep) -> Response:
    """Return the metrics in the text format of Prometheus."""
    caller.require(Action.METRICS_READ)
    queue, quota = caller.server.jobs.queue, caller.server.quota
    page = caller.server.metrics.page(
        lambda: queue.running, lambda: queue.waiting, lambda: sum(one.bytes for one in quota.usage().values())
    )
    return Response(page, media_type="text/plain; version=0.0.4")


@router.get("/v1/ledger", tags=["ledger"])
def records(
    caller: CallerDep,
    first: Annotated[int, Query(ge=1, le=2**62)] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> list[LedgerRecordResponse]:
    """Return journal records from number `first` on, without answers."""
    caller.require(Action.LEDGER_READ)
    found = islice(caller.server.curator.ledger.history(first), limit)
    return [
        LedgerRecordResponse(
            number=one.number, at=time_of(one.at_us), kind=one.kind, contents=dict(one.contents), hash=one.hash
        )
        for one in found
    ]


@router.get("/v1/ledger/verify", tags=["ledger"])
async def verify(caller: CallerDep, full: bool = False) -> VerifiedResponse:
    """Verify the hashes of the journal, and the totals against the journal."""
    return await caller.run_planning(lambda: _verify(caller, full=full))


def _verify(caller: Caller, *, full: bool) -> VerifiedResponse:
    caller.require(Action.LEDGER_READ)
    ledger = caller.server.curator.ledger
    ledger.verify(full=full)
    head = ledger.head()
    return VerifiedResponse(verified=True, records=head.number, hash=head.hash)


@router.get("/v1/ledger/export", tags=["ledger"], response_class=StreamingResponse)
def export(caller: CallerDep, answers: bool = False) -> StreamingResponse:
    """Return the journal as JSON lines; with `answers`, which auditors may not read, it can be imported."""
    caller.require(Action.LEDGER_EXPORT if answers else Action.LEDGER_READ)
    return StreamingResponse(
        _lines(caller.server, answers=answers),
        media_type="application/jsonl",
        headers={"Content-Disposition": 'attachment; filename="ledger.jsonl"'},
    )


@router.get("/v1/reservations", tags=["ledger"])
def reservations(caller: CallerDep) -> list[ReservationResponse]:
    """Return permits that were not committed: of active runs, and of runs that died."""
    caller.require(Action.LEDGER_READ)
    return [
        ReservationResponse(
            permit=one.permit.id,
            dataset=one.permit.dataset,
            issued_at=one.permit.issued_at,
            cost=CostResponse.of(one.permit.cost),
            note=notes.in_words(one.note),
        )
        for one in caller.server.curator.ledger.reservations()
    ]


def _lines(server: Server, *, answers: bool) -> Iterator[str]:
    for line in server.curator.ledger.export_lines(answers=answers):
        yield f"{line}\n"


@router.get("/v1/audit", tags=["audit"])
def audit(
    caller: CallerDep,
    first: Annotated[int, Query(ge=1, le=2**62)] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> list[AuditResponse]:
    """Return audit records of refusals and changes from number `first` on."""
    caller.require(Action.AUDIT_READ)
    return [
        AuditResponse(
            number=one.number,
            at=one.at,
            actor=one.actor,
            action=one.action,
            resource=str(one.resource),
            code=one.code,
            address=one.address,
            count=one.count,
        )
        for one in caller.server.access.audit.records(first, limit)
    ]
