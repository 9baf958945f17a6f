"""Whether the server lives, whether it can answer, and how busy it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from tacit.privacy.errors import TacitError
from tacit.server.access import Action
from tacit.server.listings import HealthGiven, ReadyGiven
from tacit.server.place import Who
from tacit.version import __version__

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=HealthGiven)
async def alive() -> dict[str, str]:
    """Say that the process lives."""
    return {"status": "alive", "version": __version__}


@router.get(
    "/readyz",
    response_model=ReadyGiven,
    responses={503: {"model": ReadyGiven, "description": "It cannot answer now."}},
)
def ready(who: Who) -> JSONResponse:
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
    state: dict[str, Any] = {"status": "unready" if failed else "ready", "failed": failed}
    return JSONResponse(state, 503 if failed else 200)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(who: Who) -> Response:
    """Return the figures that Prometheus collects."""
    who.require(Action.METRICS_READ)
    turns = who.server.jobs.turns
    quota = who.server.quota
    page = who.server.metrics.page(
        lambda: turns.running, lambda: turns.waiting, lambda: sum(one.bytes for one in quota.usage().values())
    )
    return Response(page, media_type="text/plain; version=0.0.4")
