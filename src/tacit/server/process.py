"""Starting and stopping a server: bind address, TLS, several processes over one folder, graceful shutdown.

By default only this machine can connect. A flag must be repeated to accept connections of others without TLS, or with
the demo's printed passwords: either exposes all answers, or all budgets, to the network.

The ASGI application of one folder: routes, middleware, lifespan.

    RequestLimits     host, size and duration of requests, security headers of responses
    RequestLog        log line and metrics of each request
    error_responses   errors as documents with a code
    routes            authentication, permissions, calls of the curator

Queries are planned in a few threads and run in others, each behind a fair queue; light requests have the framework's
thread pool; the event loop does no work of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import socket
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from typing import Any, Final

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from tacit.curator import Curator
from tacit.privacy.errors import InvalidInput, TacitError, UnsafeBind
from tacit.server import error_responses, telemetry
from tacit.server.access import Access, Oidc, OidcSettings
from tacit.server.catalog_audit import record_changes
from tacit.server.context import Server, require_known
from tacit.server.database import FILE_NAME, Database, open_database
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
Differentially private answers to SQL queries and statistics, charged to privacy budgets. A preview shows the cost of an
answer before anything is charged; repeating a query costs nothing. Authenticate with `Authorization: Bearer TOKEN`.
"""

PAGE: Final = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>tacit</title>
<h1>tacit {__version__}</h1><p>Differentially private answers to SQL queries and statistics.</p>
<p>This is a REST server; <a href="/openapi.json">/openapi.json</a> describes its API.</p></html>
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


VARIABLE: Final = "TACIT_SERVING"
"""The environment variable that passes the settings, which hold no secret, to worker processes."""
KEEP_ALIVE_S: Final = 15
SWITCH_S: Final = 0.001
GARBAGE: Final = (20_000, 10, 10)


def check_bind(settings: Settings) -> None:
    """Raise UnsafeBind if others could connect without TLS or as a person of the demo, unless the flag was repeated."""
    if (settings.certificate is None) != (settings.key is None):
        raise InvalidInput("TLS needs both a certificate and its key", name="certificate")
    for path in (settings.certificate, settings.key):
        if path is not None and not path.is_file():
            raise InvalidInput(f"{path} is not a file", name="certificate", value=str(path))
    if not settings.is_local and not settings.has_tls and settings.without_tls < 2:
        raise UnsafeBind(
            f"{settings.host} lets others connect, and without TLS they can read tokens and answers in transit; give "
            "--certificate and --key, or repeat --without-tls"
        )
    is_for_others = not settings.is_local or bool(settings.proxies)
    if is_for_others and settings.demo_for_others < 2 and _has_demo_people(settings):
        raise UnsafeBind(
            f"{settings.host} lets others connect, and the demo's passwords are public; bind to 127.0.0.1, change "
            "these passwords (tacit access people password NAME), or repeat --demo-for-others"
        )


def _has_demo_people(settings: Settings) -> bool:
    """Return whether people of the demo are active; does not create a missing database."""
    if not settings.postgres and not (settings.folder / FILE_NAME).exists():
        return False
    with open_access(settings) as access:
        return access.people.has_demo()


def free_port(settings: Settings) -> Settings:
    """Return the settings with a free port in place of port 0; raise InvalidInput if the port is taken."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise InvalidInput(
                f"cannot listen on {settings.host}:{settings.port} ({error.strerror}); choose another --port",
                name="port",
                value=settings.port,
            ) from None
        return settings.model_copy(update={"port": probe.getsockname()[1]})


@contextmanager
def open_access(settings: Settings) -> Iterator[Access]:
    """Open the access database of a folder for the duration of a block."""
    with closing(Access(_database(settings))) as access:
        yield access


def _database(settings: Settings) -> Database:
    from tacit.ledger.stores.postgres import ENVIRONMENT_NAME

    return open_database(settings.folder, os.environ.get(ENVIRONMENT_NAME, "") if settings.postgres else None)


def open_app(settings: Settings) -> FastAPI:
    """Open the folder and return its application, which closes the folder when it stops."""
    from tacit.ledger import PostgresStore
    from tacit.server.connections import LimitedProtocol

    most = LimitedProtocol.limit(settings.limits, settings.proxies)
    if most < settings.limits.connections:
        telemetry.log_event("connections limited by open files", connections=most, asked=settings.limits.connections)
    store = PostgresStore.from_environment() if settings.postgres else None
    with ExitStack() as opened:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            curator = opened.enter_context(Curator(settings.folder, store=store))
        for one in found:
            telemetry.log_event("warning", message=str(one.message))
        access = opened.enter_context(closing(Access(_database(settings))))
        app = create_app(curator, access, settings)
        until_stopped = opened.pop_all()
    inner: Any = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(one: FastAPI) -> AsyncIterator[None]:
        with until_stopped:
            async with inner(one):
                yield

    app.router.lifespan_context = lifespan
    return app


def tune_interpreter() -> None:
    """Keep light requests fast while large queries are planned, which takes up to seconds of Python code.

    Threads switch every millisecond. Garbage collections stop all threads, so modules that are loaded already are
    excluded from them, and they run less often. With 40 large previews under way, the 95th
    percentile of `/v1/me` was 240 to 800 ms without this and 40 to 100 ms with it, on two busy cores.
    """
    import tacit.curator.query_service
    import tacit.stats  # noqa: F401  # loaded now, to be excluded

    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # extension modules warn at exit of objects that were not collected
    gc.set_threshold(*GARBAGE)


def app_from_environment() -> FastAPI:
    """Return the application of a worker process."""
    telemetry.configure()
    tune_interpreter()
    return open_app(Settings.model_validate_json(os.environ[VARIABLE]))


def serve(settings: Settings) -> None:
    """Serve a folder until a signal arrives; open requests are answered first."""
    import uvicorn

    from tacit.server.connections import BACKLOG, LimitedProtocol

    check_bind(settings)
    shared: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "ssl_certfile": settings.certificate,
        "ssl_keyfile": settings.key,
        "http": LimitedProtocol,
        "h11_max_incomplete_event_size": settings.limits.header_bytes,
        "ws": "none",
        "backlog": BACKLOG,
        "timeout_keep_alive": KEEP_ALIVE_S,
        "timeout_graceful_shutdown": int(STOP_S),
        "server_header": False,
        "date_header": True,
        "access_log": False,
        "log_config": None,
        "proxy_headers": bool(settings.proxies),
        "forwarded_allow_ips": list(settings.proxies),
    }
    telemetry.configure()
    with suppress(KeyboardInterrupt):
        if settings.workers == 1:
            tune_interpreter()
            uvicorn.run(open_app(settings), **shared)
            return
        with tempfile.TemporaryDirectory(prefix="tacit-metrics-") as place:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = place
            os.environ[VARIABLE] = settings.model_dump_json()
            uvicorn.run("tacit.server.process:app_from_environment", factory=True, workers=settings.workers, **shared)
