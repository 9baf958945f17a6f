"""Starting and stopping a server: bind address, TLS, several processes over one folder, graceful shutdown.

By default only this machine can connect. A flag must be repeated to accept connections of others without TLS, or with
the demo's printed passwords: either exposes all answers, or all budgets, to the network.
"""

from __future__ import annotations

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

from tacit.curator import Curator
from tacit.privacy.errors import InvalidInput, UnsafeBind
from tacit.server import telemetry
from tacit.server.access import Access
from tacit.server.app import STOP_S, create_app
from tacit.server.database import FILE_NAME, Database, open_database
from tacit.server.settings import Settings

VARIABLE: Final = "TACIT_SERVING"
"""The environment variable that passes the settings, which hold no secret, to worker processes."""
KEEP_ALIVE_S: Final = 15
SWITCH_S: Final = 0.001
GARBAGE: Final = (20_000, 10, 10)


def check_bind(settings: Settings) -> None:
    """Raise UnsafeBind if others could connect without TLS or to demo accounts, unless the flag was repeated."""
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
    if is_for_others and settings.demo_for_others < 2 and _has_demo_accounts(settings):
        raise UnsafeBind(
            f"{settings.host} lets others connect, and the demo's passwords are public; bind to 127.0.0.1, change "
            "these passwords (tacit access people password NAME), or repeat --demo-for-others"
        )


def _has_demo_accounts(settings: Settings) -> bool:
    """Return whether accounts of the demo are active; does not create a missing database."""
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
