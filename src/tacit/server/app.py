"""The application: its routes, and what every request passes through.

    Bodies        host, size and pace of what comes in, strict headers on what goes out
    Watch         one line of the log and the figures for each request
    failures      every error as a document with a code
    routes        who calls, what she may do, and the curator

One application serves one folder. Questions are planned in a few threads and run in others, each by fair turns; light
requests have threads of their own; the event loop only waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from tacit.curator import Curator
from tacit.privacy.errors import TacitError
from tacit.server import failures
from tacit.server.access import Access
from tacit.server.bodies import Bodies
from tacit.server.catalog_audit import noted
from tacit.server.documents import ErrorGiven
from tacit.server.jobs import Jobs
from tacit.server.logs import note
from tacit.server.metrics import Metrics
from tacit.server.place import Server, require_known
from tacit.server.quotas import AnswerQuota
from tacit.server.releases import Releases, Shown
from tacit.server.routes import ROUTERS
from tacit.server.settings import Settings
from tacit.server.turns import FairThreads, Places, Turns
from tacit.server.watch import Watch
from tacit.version import __version__

STOP_S: Final = 20.0
"""How long questions that run may go on when the server stops."""

LOGINS: Final = Places(running=4, running_each=2, waiting=256, waiting_each=32)
"""How many passwords are checked and wait for it, in all and of one address."""

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
    planning = FairThreads(settings.limits.planning_places, "tacit planning")
    logins = FairThreads(LOGINS, "tacit login")
    jobs = Jobs(database, Turns(settings.limits.places), metrics, curator.cancel, settings.limits)
    curator.ledger.quota = quota = AnswerQuota(database, settings.limits)
    oidc = None
    if settings.oidc is not None:
        from tacit.server.access.oidc import Oidc, OidcSettings

        oidc = Oidc(OidcSettings.of(settings.oidc), database)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        note("started", version=__version__)
        refreshing = (
            None if settings.refresh_s is None else asyncio.create_task(_refresh(curator, access, settings.refresh_s))
        )
        yield
        if refreshing is not None:
            refreshing.cancel()
        await jobs.close(STOP_S)
        note("stopped")

    app = FastAPI(
        title="tacit",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={status: {"model": ErrorGiven} for status in failures.DOCUMENTED},
    )
    app.state.server = Server(
        curator,
        access,
        settings,
        database,
        jobs,
        Releases(database, settings.limits),
        metrics,
        Shown(),
        planning,
        logins,
        quota,
        oidc,
    )
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route("/", _page, response_class=HTMLResponse, include_in_schema=False)
    failures.install(app)
    app.add_middleware(Watch, metrics=metrics)
    app.add_middleware(Bodies, settings=settings, require_known=lambda scope: require_known(access, scope))
    return app


async def _refresh(curator: Curator, access: Access, every_s: float) -> None:
    """Look at the rows of all tables again and again; what is refused is said in the log, for the owner."""
    while True:
        await asyncio.sleep(every_s)
        try:
            changed = await asyncio.to_thread(_refreshed, curator, access)
        except TacitError as error:
            note("refresh refused", code=error.code)
        else:
            note("refreshed", tables=changed)


def _refreshed(curator: Curator, access: Access) -> list[str]:
    with noted(access, curator, address="schedule"):
        return curator.refresh()


async def _page() -> str:
    return PAGE
