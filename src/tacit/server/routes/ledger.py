"""The ledger: its records, whether it verifies, what was reserved and never committed, and all of it as a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from tacit.ledger.permits import cost_to_dict, time_of
from tacit.server.access import Action
from tacit.server.listings import RecordGiven, ReservationGiven, VerifiedGiven
from tacit.server.place import Caller, Server, Who

router = APIRouter(prefix="/v1", tags=["ledger"])


@router.get("/ledger", response_model=list[RecordGiven])
def records(
    who: Who,
    first: Annotated[int, Query(ge=1, le=2**62)] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Any:
    """Return records of the journal from a number on; no answer is in them."""
    who.require(Action.LEDGER_READ)
    found = islice(who.server.curator.ledger.history(first), limit)
    return [
        {
            "number": one.number,
            "at": time_of(one.at_us).isoformat(),
            "kind": one.kind,
            "contents": one.contents,
            "hash": one.hash,
        }
        for one in found
    ]


@router.get("/ledger/verify", response_model=VerifiedGiven)
async def verify(who: Who, full: bool = False) -> Any:
    """Check the journal against its hashes and the totals against the journal."""
    return await who.planned(lambda: _verified(who, full=full))


def _verified(who: Caller, *, full: bool) -> dict[str, Any]:
    who.require(Action.LEDGER_READ)
    ledger = who.server.curator.ledger
    ledger.verify(full=full)
    head = ledger.head()
    return {"verified": True, "records": head.number, "hash": head.hash}


@router.get("/ledger/export", response_class=StreamingResponse)
def export(who: Who, answers: bool = False) -> StreamingResponse:
    """Return the journal as JSON lines; with `answers`, which auditors may not see, a file that can be imported."""
    who.require(Action.LEDGER_EXPORT if answers else Action.LEDGER_READ)
    return StreamingResponse(
        _lines(who.server, answers=answers),
        media_type="application/jsonl",
        headers={"Content-Disposition": 'attachment; filename="ledger.jsonl"'},
    )


@router.get("/reservations", response_model=list[ReservationGiven])
def reservations(who: Who) -> Any:
    """Return permits that were never committed: questions under way, and those that died."""
    who.require(Action.LEDGER_READ)
    return [
        {
            "permit": one.permit.id,
            "dataset": one.permit.dataset,
            "issued_at": one.permit.issued_at.isoformat(),
            "cost": cost_to_dict(one.permit.cost),
            "note": one.note,
        }
        for one in who.server.curator.ledger.reservations()
    ]


def _lines(server: Server, *, answers: bool) -> Iterator[str]:
    for line in server.curator.ledger.export_lines(answers=answers):
        yield f"{line}\n"
