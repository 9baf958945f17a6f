"""One running server: the curator, who may do what, the questions under way; and the caller of one request.

A caller is looked up when a permission is required, once for a request. Routes ask `caller.require(action,
resource)` and nothing else; whatever is refused is on record before the answer leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from tacit.curator import Curator
from tacit.privacy.errors import NotInCatalog, NotKnown, NotPermitted
from tacit.privacy.tables import Table
from tacit.server.access import Access, Action, Actor, Resource, may
from tacit.server.database import Database
from tacit.server.fair_queue import FairThreads
from tacit.server.jobs import Jobs
from tacit.server.quotas import AnswerQuota
from tacit.server.releases import ReleaseCache, ReleaseStore
from tacit.server.settings import Settings
from tacit.server.telemetry import Metrics

if TYPE_CHECKING:
    from tacit.server.access.logins import Oidc

T = TypeVar("T")

COOKIE: Final = "tacit_session"
CSRF_HEADER: Final = "X-Tacit-CSRF"
SAFE: Final = ("GET", "HEAD", "OPTIONS")
RECORDED_MAX: Final = 10
"""How many tables of one refused question are recorded; a question can name thousands that do not exist."""


@dataclass(frozen=True)
class Server:
    """All that requests share in one process."""

    curator: Curator
    access: Access
    settings: Settings
    database: Database
    jobs: Jobs
    releases: ReleaseStore
    metrics: Metrics
    shown: ReleaseCache
    planning: FairThreads
    """Where questions are planned, and other work that takes seconds of Python is done."""
    logins: FairThreads
    """Where passwords are checked, by turns of addresses."""
    quota: AnswerQuota
    oidc: Oidc | None = None


@dataclass
class Caller:
    """Whoever makes a request."""

    server: Server
    bearer: str | None
    cookie: str | None
    csrf: str | None
    method: str
    address: str
    gone: Callable[[], Awaitable[None]]
    """Returns when the connection has ended."""
    seen: list[str] = field(default_factory=list)
    """The caller's name once it is known, for the log."""

    @cached_property
    def actor(self) -> Actor:
        """The caller, by the token or the cookie of the request."""
        access = self.server.access
        if self.bearer is not None:
            actor = access.actor_of_token(self.bearer, self.address)
        elif self.cookie is not None:
            actor = access.actor_of_session(self.cookie, self.address)
            if self.method not in SAFE:
                access.check_csrf(actor, self.csrf, self.address)
        else:
            access.note("", "token.use", Resource(), NotKnown.code, self.address)
            raise NotKnown("say who you are: Authorization: Bearer TOKEN, or log in")
        self.seen.append(actor.name)
        return actor

    @property
    def name(self) -> str:
        """Her name."""
        return self.actor.name

    @property
    def mark(self) -> dict[str, str]:
        """By whom and from where a change is made, for the record of it."""
        return {"by": self.name, "address": self.address}

    async def planned(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, done in the caller's turn and in no thread of light requests."""
        name = await run_in_threadpool(lambda: self.name)
        return await self.server.planning.run(name, work, self.gone)

    def may(self, action: Action, resource: Resource = Resource()) -> bool:  # noqa: B008  # frozen
        """Whether the caller may do something; nothing is recorded."""
        return may(self.actor, action, resource)

    def require(self, action: Action, resource: Resource = Resource()) -> None:  # noqa: B008  # frozen
        """Refuse, and record, what the caller may not do."""
        self.server.access.require(self.actor, action, resource, self.address)

    def require_somewhere(self, action: Action) -> None:
        """Refuse, and record, what the caller may do on no resource."""
        places = [Resource(one.dataset, one.table, self.name) for one in self.actor.grants]
        if not any(self.may(action, place) for place in places):
            self.require(action, Resource(person=self.name))

    def tables(self, action: Action) -> list[Table]:
        """Return the tables on which the caller may do something."""
        return [table for table in self.server.curator.catalog.tables.values() if self.may(action, of_table(table))]

    def table(self, name: str, action: Action) -> Table:
        """Return a table on which the caller may do something; to those who may not read it, there is none."""
        visible = {table.name.lower(): table for table in self.tables(Action.CATALOG_READ)}
        if name.lower() not in visible:
            self.record_tables(action, [name])
            raise NotInCatalog(f"no table is called {name}", name="table", value=name)
        table = visible[name.lower()]
        self.require(action, of_table(table))
        return table

    def payer(self, datasets: Iterable[str]) -> str | None:
        """Return whose own cap is charged beside the budgets of data sets; None for a caller who keeps all of these."""
        keeps = all(self.may(Action.BUDGET_WRITE, Resource(dataset=one)) for one in datasets)
        return None if keeps else self.name

    def record(self, action: Action, resource: Resource) -> None:
        """Record a request for something that is hidden from the caller, or absent.

        Both are recorded alike, one transaction each: if only the hidden were, the time would tell them apart.
        """
        self.server.access.note(self.name, action, resource, NotPermitted.code, self.address)

    def record_tables(self, action: Action, names: Iterable[str]) -> None:
        """Record requests for tables that are hidden from the caller or absent, the hidden ones first."""
        known = self.server.curator.catalog.tables
        for name in sorted(names, key=lambda one: (one.lower() not in known, one))[:RECORDED_MAX]:
            table = known.get(name.lower())
            self.record(action, Resource(table=name) if table is None else of_table(table))


def of_table(table: Table) -> Resource:
    """Return a table as what actions are about."""
    return Resource(dataset=table.dataset, table=table.name)


def _caller(request: Request) -> Caller:
    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    caller = Caller(
        server=request.app.state.server,
        bearer=_bearer(request),
        cookie=request.cookies.get(COOKIE),
        csrf=request.headers.get(CSRF_HEADER),
        method=request.method,
        address=request.client.host if request.client else "",
        gone=gone,
    )
    request.state.seen = caller.seen
    return caller


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def require_known(access: Access, scope: MutableMapping[str, Any]) -> None:
    """Raise NotKnown unless the token or the cookie of a request is somebody's; its body is not read for that."""
    request = Request(scope)
    address = request.client.host if request.client else ""
    if (bearer := _bearer(request)) is not None:
        access.actor_of_token(bearer, address)
    elif (cookie := request.cookies.get(COOKIE)) is not None:
        access.actor_of_session(cookie, address)
    else:
        raise NotKnown("say who you are: Authorization: Bearer TOKEN, or log in")


async def caller(request: Request) -> Caller:
    """Return the caller, who is looked up when a permission is required."""
    return _caller(request)


Who = Annotated[Caller, Depends(caller)]
