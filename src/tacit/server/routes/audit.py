"""What was refused, and what was changed about people and tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from tacit.server.access import Action
from tacit.server.listings import AuditGiven
from tacit.server.place import Who

router = APIRouter(prefix="/v1/audit", tags=["audit"])


@router.get("", response_model=list[AuditGiven])
def listed(
    who: Who,
    first: Annotated[int, Query(ge=1, le=2**62)] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Any:
    """Return records from a number on."""
    who.require(Action.AUDIT_READ)
    return [
        {
            "number": one.number,
            "at": one.at.isoformat(),
            "actor": one.actor,
            "action": one.action,
            "resource": str(one.resource),
            "code": one.code,
            "address": one.address,
            "count": one.count,
        }
        for one in who.server.access.audit(first, limit)
    ]
