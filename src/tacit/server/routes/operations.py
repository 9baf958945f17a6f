"""Operations: health and metrics, the ledger's records and verification, and the audit of refusals and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from tacit.ledger.permits import time_of
from tacit.privacy.errors import TacitError
from tacit.server.access import Action
from tacit.server.context import Caller, Server, Who
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
    """Say that the process lives."""
    return HealthResponse(status="alive", version=__version__)


@router.get(
    "/readyz",
    tags=["health"],
    responses={503: {"model": ReadyResponse, "description": "It cannot answer now."}},
)
def ready(who: Who, response: Response) -> ReadyResponse:
    """Say whether the ledger, the catalog and the server's own database can be used."""
    server, failed = who.server, {}
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
def metrics(who: Who) -> Response:
    """Return the figures that Prometheus collects."""
    who.require(Action.METRICS_READ)
    queue, quota = who.server.jobs.queue, who.server.quota
    page = who.server.metrics.page(
        lambda: queue.running, lambda: queue.waiting, lambda: sum(one.bytes for one in quota.usage().values())
    )
    return Response(page, media_type="text/plain; version=0.0.4")


@router.get("/v1/ledger", tags=["ledger"])
def records(
    who: Who,
    first: Annotated[int, Query(ge=1, le=2**62)] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> list[LedgerRecordResponse]:
    """Return records of the journal from a number on; no answer is in them."""
    who.require(Action.LEDGER_READ)
    found = islice(who.server.curator.ledger.history(first), limit)
    return [
        LedgerRecordResponse(
            number=one.number, at=time_of(one.at_us), kind=one.kind, contents=dict(one.contents), hash=one.hash
        )
        for one in found
    ]


@router.get("/v1/ledger/verify", tags=["ledger"])
async def verify(who: Who, full: bool = False) -> VerifiedResponse:
    """Check the journal against its hashes and the totals against the journal."""
    return await who.planned(lambda: _verified(who, full=full))


def _verified(who: Caller, *, full: bool) -> VerifiedResponse:
    who.require(Action.LEDGER_READ)
    ledger = who.server.curator.ledger
    ledger.verify(full=full)
    head = ledger.head()
    return VerifiedResponse(verified=True, records=head.number, hash=head.hash)


@router.get("/v1/ledger/export", tags=["ledger"], response_class=StreamingResponse)
def export(who: Who, answers: bool = False) -> StreamingResponse:
    """Return the journal as JSON lines; with `answers`, which auditors may not see, a file that can be imported."""
    who.require(Action.LEDGER_EXPORT if answers else Action.LEDGER_READ)
    return StreamingResponse(
        _lines(who.server, answers=answers),
        media_type="application/jsonl",
        headers={"Content-Disposition": 'attachment; filename="ledger.jsonl"'},
    )


@router.get("/v1/reservations", tags=["ledger"])
def reservations(who: Who) -> list[ReservationResponse]:
    """Return permits that were never committed: questions under way, and those that died."""
    who.require(Action.LEDGER_READ)
    return [
        ReservationResponse(
            permit=one.permit.id,
            dataset=one.permit.dataset,
            issued_at=one.permit.issued_at,
            cost=CostResponse.of(one.permit.cost),
            note=one.note,
        )
        for one in who.server.curator.ledger.reservations()
    ]


def _lines(server: Server, *, answers: bool) -> Iterator[str]:
    for line in server.curator.ledger.export_lines(answers=answers):
        yield f"{line}\n"


@router.get("/v1/audit", tags=["audit"])
def audit(
    who: Who,
    first: Annotated[int, Query(ge=1, le=2**62)] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> list[AuditResponse]:
    """Return records of what was refused, and of what was changed about people and tokens, from a number on."""
    who.require(Action.AUDIT_READ)
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
        for one in who.server.access.audit(first, limit)
    ]
