"""What routes work with: `Server`, shared by all requests of a process, and `Caller`, of one request.

A caller is authenticated when a permission is first checked, once for a request. Routes check permissions by
`caller.require(action, resource)`; a refusal is recorded before the response is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from tacit.curator import Curator
from tacit.privacy.errors import NotInCatalog, NotKnown, NotPermitted
from tacit.privacy.tables import Table
from tacit.server.access import Access, Action, Actor, Oidc, Resource, may
from tacit.server.database import Database
from tacit.server.fair_queue import FairThreads
from tacit.server.jobs import Jobs
from tacit.server.quotas import AnswerQuota
from tacit.server.releases import ReleaseCache, ReleaseStore
from tacit.server.settings import Settings
from tacit.server.telemetry import Metrics

T = TypeVar("T")

COOKIE: Final = "tacit_session"
CSRF_HEADER: Final = "X-Tacit-CSRF"
SAFE: Final = ("GET", "HEAD", "OPTIONS")
RECORDED_MAX: Final = 10
"""Tables of one refused query that are recorded; a query can name thousands that do not exist."""


@dataclass(frozen=True)
class Server:
    """The objects that all requests of a process share."""

    curator: Curator
    access: Access
    settings: Settings
    database: Database
    jobs: Jobs
    releases: ReleaseStore
    metrics: Metrics
    release_cache: ReleaseCache
    planning: FairThreads
    """Threads for planning and other work that takes seconds of Python code."""
    logins: FairThreads
    """Threads for password checks, queued by address."""
    quota: AnswerQuota
    oidc: Oidc | None = None


@dataclass
class Caller:
    """The caller of one request."""

    server: Server
    bearer: str | None
    cookie: str | None
    csrf: str | None
    method: str
    address: str
    disconnected: Callable[[], Awaitable[None]]
    """Returns when the client has disconnected."""
    names: list[str] = field(default_factory=list)
    """The caller's name once it is authenticated, for the log."""

    @cached_property
    def actor(self) -> Actor:
        """The authenticated caller, by the token or the session cookie of the request."""
        access = self.server.access
        if self.bearer is not None:
            actor = access.actor_of_token(self.bearer, self.address)
        elif self.cookie is not None:
            actor = access.actor_of_session(self.cookie, self.address)
            if self.method not in SAFE:
                access.check_csrf(actor, self.csrf, self.address)
        else:
            access.audit.record("", "token.use", Resource(), NotKnown.code, self.address)
            raise NotKnown("authentication is required: send Authorization: Bearer TOKEN, or log in")
        self.names.append(actor.name)
        return actor

    @property
    def name(self) -> str:
        """The caller's name."""
        return self.actor.name

    @property
    def origin(self) -> dict[str, str]:
        """Name and address of the caller, as arguments for the audit record of a change."""
        return {"by": self.name, "address": self.address}

    async def run_planning(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, run by the planning threads in the caller's turn."""
        name = await run_in_threadpool(lambda: self.name)
        return await self.server.planning.run(name, work, self.disconnected)

    def may(self, action: Action, resource: Resource = Resource()) -> bool:  # noqa: B008  # frozen
        """Return whether the caller may perform an action; records nothing."""
        return may(self.actor, action, resource)

    def require(self, action: Action, resource: Resource = Resource()) -> None:  # noqa: B008  # frozen
        """Raise NotPermitted, and record it, unless the caller may perform an action."""
        self.server.access.require(self.actor, action, resource, self.address)

    @property
    def places(self) -> list[Resource]:
        """What the grants of the caller are about, and the data set that its token is limited to."""
        limit = self.actor.limit
        limited = [] if limit is None or limit.dataset is None else [Resource(limit.dataset)]
        return [*(Resource(one.dataset, one.table) for one in self.actor.grants), *limited]

    def require_somewhere(self, action: Action) -> None:
        """Raise NotPermitted, and record it, unless the caller may perform an action on some resource."""
        own = (replace(place, person=self.name) for place in self.places)
        if not any(self.may(action, place) for place in own):
            self.require(action, Resource(person=self.name))

    def tables(self, action: Action) -> list[Table]:
        """Return the tables on which the caller may perform an action."""
        return [
            table for table in self.server.curator.catalog.tables.values() if self.may(action, table_resource(table))
        ]

    def table(self, name: str, action: Action) -> Table:
        """Return a table on which the caller may perform an action; raise NotInCatalog if it is hidden or absent."""
        visible = {table.name.lower(): table for table in self.tables(Action.CATALOG_READ)}
        if name.lower() not in visible:
            self.record_tables(action, [name])
            raise NotInCatalog(f"there is no table {name}", name="table", value=name)
        table = visible[name.lower()]
        self.require(action, table_resource(table))
        return table

    def payer(self, datasets: Iterable[str]) -> str | None:
        """Return the analyst whose cap is charged, or None if the caller manages the budgets of all these data sets."""
        manages = all(self.may(Action.BUDGET_WRITE, Resource(dataset=one)) for one in datasets)
        return None if manages else self.name

    def record(self, action: Action, resource: Resource) -> None:
        """Record a request for a resource that is hidden from the caller or absent.

        Both cases write one transaction, so that the response time does not tell them apart.
        """
        self.server.access.audit.record(self.name, action, resource, NotPermitted.code, self.address)

    def record_tables(self, action: Action, names: Iterable[str]) -> None:
        """Record requests for tables that are hidden from the caller or absent, the hidden ones first."""
        known = self.server.curator.catalog.tables
        for name in sorted(names, key=lambda one: (one.lower() not in known, one))[:RECORDED_MAX]:
            table = known.get(name.lower())
            self.record(action, Resource(table=name) if table is None else table_resource(table))


def table_resource(table: Table) -> Resource:
    """Return the resource of a table."""
    return Resource(dataset=table.dataset, table=table.name)


async def caller_of(request: Request) -> Caller:
    """Return the caller of a request, not yet authenticated; `async`, so that it takes no thread."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    caller = Caller(
        server=request.app.state.server,
        bearer=_bearer(request),
        cookie=request.cookies.get(COOKIE),
        csrf=request.headers.get(CSRF_HEADER),
        method=request.method,
        address=request.client.host if request.client else "",
        disconnected=disconnected,
    )
    request.state.caller_names = caller.names
    return caller


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def require_known(access: Access, scope: MutableMapping[str, Any]) -> None:
    """Raise NotKnown unless the token or the session cookie of a request is valid; does not read its body."""
    request = Request(scope)
    address = request.client.host if request.client else ""
    if (bearer := _bearer(request)) is not None:
        access.actor_of_token(bearer, address)
    elif (cookie := request.cookies.get(COOKIE)) is not None:
        access.actor_of_session(cookie, address)
    else:
        raise NotKnown("authentication is required: send Authorization: Bearer TOKEN, or log in")


CallerDep = Annotated[Caller, Depends(caller_of)]
