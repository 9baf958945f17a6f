"""The ASGI application of one folder: routes, middleware, lifespan.

    RequestLimits     host, size and duration of requests, security headers of responses
    RequestLog        log line and metrics of each request
    error_responses   errors as documents with a code
    routes            authentication, permissions, calls of the curator

Queries are planned in a few threads and run in others, each behind a fair queue; light requests have the framework's
thread pool; the event loop does no work of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Final

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from tacit.curator import Curator
from tacit.privacy.errors import TacitError
from tacit.server import error_responses
from tacit.server.access import Access, Oidc, OidcSettings
from tacit.server.catalog_audit import record_changes
from tacit.server.context import Server, require_known
from tacit.server.fair_queue import FairQueue, FairThreads, QueueLimits
from tacit.server.jobs import Jobs
from tacit.server.middleware import RequestLimits, RequestLog
from tacit.server.quotas import AnswerQuota
from tacit.server.releases import ReleaseCache, ReleaseStore
from tacit.server.routes import ROUTERS
from tacit.server.settings import Settings
from tacit.server.telemetry import Metrics, log_event
from tacit.version import __version__
from tacit.wire.responses import ErrorResponse

STOP_S: Final = 20.0
"""How long active runs may continue when the server stops."""

LOGINS: Final = QueueLimits(running=4, running_each=2, waiting=256, waiting_each=32)
"""Password checks that run and wait, in total and of one address."""

DESCRIPTION: Final = """\
Answers about people, with differential privacy, under one budget. Every answer has its price, which a preview shows
before anything is spent; the same question again costs nothing. Say who you are with `Authorization: Bearer TOKEN`.
"""

PAGE: Final = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>tacit</title>
<h1>tacit {__version__}</h1><p>Answers about people without giving any of them away.</p>
<p>This server speaks REST: <a href="/openapi.json">/openapi.json</a> lists what it takes.</p></html>
"""


def create_app(curator: Curator, access: Access, settings: Settings) -> FastAPI:
    """Return the application that serves a curator's folder."""
    metrics, database = Metrics(), access.database
    planning = FairThreads(settings.limits.planning_queue, "tacit planning")
    logins = FairThreads(LOGINS, "tacit login")
    jobs = Jobs(database, FairQueue(settings.limits.queue), metrics, curator.cancel, settings.limits)
    curator.ledger.quota = quota = AnswerQuota(database, settings.limits)
    oidc = None if settings.oidc is None else Oidc(OidcSettings.of(settings.oidc), database)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        log_event("started", version=__version__)
        refreshing = (
            None if settings.refresh_s is None else asyncio.create_task(_refresh(curator, access, settings.refresh_s))
        )
        try:
            yield
        finally:
            if refreshing is not None:
                refreshing.cancel()
            with closing(planning), closing(logins):
                await jobs.close(STOP_S)
            log_event("stopped")

    app = FastAPI(
        title="tacit",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={status: {"model": ErrorResponse} for status in error_responses.DOCUMENTED},
    )
    app.state.server = Server(
        curator,
        access,
        settings,
        database,
        jobs,
        ReleaseStore(database, settings.limits),
        metrics,
        ReleaseCache(),
        planning,
        logins,
        quota,
        oidc,
    )
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route("/", _page, response_class=HTMLResponse, include_in_schema=False)
    error_responses.install(app)
    app.add_middleware(RequestLog, metrics=metrics)
    app.add_middleware(RequestLimits, settings=settings, require_known=lambda scope: require_known(access, scope))
    return app


async def _refresh(curator: Curator, access: Access, every_s: float) -> None:
    """Refresh all tables at an interval, and log the outcome."""
    while True:
        await asyncio.sleep(every_s)
        try:
            changed = await asyncio.to_thread(_refresh_all, curator, access)
        except TacitError as error:
            log_event("refresh refused", code=error.code)
        else:
            log_event("refreshed", tables=changed)


def _refresh_all(curator: Curator, access: Access) -> list[str]:
    with record_changes(access, curator, address="schedule"):
        return curator.refresh()


async def _page() -> str:
    return PAGE
