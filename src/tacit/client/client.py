"""A curator that is elsewhere: the methods of `tacit.Curator`, over REST.

    client = tacit.connect("http://127.0.0.1:8321", token="file:token.txt")
    client.sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", epsilon=0.5)

Promise: arguments, objects and errors are those of the embedded curator, as far as REST has them; threads may share a
client. Who asks is said by the token, so no method takes an analyst who would be somebody else.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from tacit.accounting.conversions import Cost
from tacit.client.answers import RemotePreview, RemoteRelease, line_of
from tacit.client.errors import parsed_list
from tacit.client.queries import QueryRunner, plan_request
from tacit.client.resources import (
    BudgetState,
    Job,
    People,
    RemoteBudget,
    RemoteLedger,
    RemoteTable,
    request_of,
    table_of,
    table_request,
)
from tacit.client.transport import SecretToken, Transport
from tacit.ledger import Budget
from tacit.ledger.administration import Request
from tacit.privacy.arguments import instance, mapping, require_warn
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import EmptyInput, NotAllowed, WrongType
from tacit.privacy.numbers import DEFAULT_LEVEL, truth_value
from tacit.privacy.tables import Column, Kind, Limits
from tacit.privacy.units import Relation, Unit
from tacit.query.explain import Line
from tacit.query.options import PlanOptions, QueryOptions
from tacit.wire.requests import (
    AnalystRequest,
    BudgetRequest,
    DecisionRequest,
    EpochRequest,
    MoreBudgetRequest,
)
from tacit.wire.responses import (
    AuditResponse,
    BudgetResponse,
    JobResponse,
    MeResponse,
    MoreBudgetResponse,
    NewTableResponse,
    PaidResponse,
    PlanLine,
    RefreshResponse,
    ReleaseResponse,
    ReportResponse,
    TableResponse,
)
from tacit.wire.values import encode_number

if TYPE_CHECKING:
    import httpx

    from tacit.client.statistics import Statistics


class Client:
    """One server, as one token sees it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = 60,
        verify: bool | str | Path = True,
        retries: int = 3,
        http: httpx.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Make a client; nothing is sent before the first question. `http` and `sleep` are for tests."""
        self._transport: Final = Transport(
            url, SecretToken.of(token), timeout_s=timeout_s, verify=verify, retries=retries, http=http, sleep=sleep
        )
        self._queries: Final = QueryRunner(self._transport, sleep)
        self.ledger: Final = RemoteLedger(self._transport)
        """The records of the ledger, for owners and auditors."""
        self.people: Final = People(self._transport)
        """Who is known to the server, and their tokens."""

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._transport.url

    def sql(
        self, sql: str, epsilon: object = None, *, level: float = DEFAULT_LEVEL, **options: Unpack[QueryOptions]
    ) -> RemoteRelease:
        """Answer a question privately, or raise and charge nothing; as `Curator.sql`.

        Each call has a key of its own unless `key` is given, so that an answer that was lost on its way is charged
        once. `level` is that of the intervals that come along; `analyst` is the token's owner, and cannot be another.
        After `timeout_s` the answer is waited for no longer (TimedOut), and the question goes on at the server.
        """
        return self._queries.release(sql, epsilon, level, options)

    def preview(
        self, sql: str, epsilon: object = None, *, analyst: str | None = None, **options: Unpack[PlanOptions]
    ) -> RemotePreview:
        """Return what `sql` would charge, exactly, and how wide its intervals would be; spends nothing."""
        return self._queries.preview(plan_request(sql, epsilon, options, analyst))

    def explain(self, sql: str, epsilon: object = None, **options: Unpack[PlanOptions]) -> list[Line]:
        """Return, pass by pass, what `sql` would do: bounds, sensitivities, noise, and the SQL that the engine runs."""
        reply = self._transport.ask("POST", "explain", body=plan_request(sql, epsilon, options), is_repeatable=True)
        return [line_of(one) for one in parsed_list(PlanLine, reply.document, "the explanation")]

    @cached_property
    def stats(self) -> Statistics:
        """The statistics of `tacit.stats`: `client.stats.mean(client.table("visits")["age"], epsilon=0.1)`."""
        from tacit.client.statistics import Statistics

        return Statistics(self._queries.statistic, self._queries.statistic_preview)

    def tables(self) -> list[RemoteTable]:
        """Return the tables that may be asked about."""
        return [table_of(one) for one in self._transport.get_list(TableResponse, "tables")]

    def table(self, name: str) -> RemoteTable:
        """Return what is public about a table; `table["age"]` is a column for statistics."""
        return table_of(self._transport.get(TableResponse, "tables", name))

    def add_table(
        self,
        name: str,
        data: str | Path,
        *,
        unit: str | Unit | None = None,
        public: bool = False,
        columns: Mapping[str, Bounds | Categories | Column] | None = None,
        limits: Limits | None = None,
        identified_by: str | Iterable[str] = (),
        dataset: str = "",
        kinds: Mapping[str, Kind] | None = None,
        format: str | None = None,
        replace: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> RemoteTable:
        """Register a table whose rows lie where the server can read them: a path or an address of its own.

        `warn` is given what would be warned of otherwise: rows that another data set has, or had, too.
        """
        require_warn(warn)
        body = table_request(
            name,
            data,
            unit=unit,
            public=public,
            columns=columns,
            limits=limits,
            identified_by=identified_by,
            dataset=dataset,
            kinds=kinds,
            format=format,
            replace=replace,
        )
        added = self._transport.post(NewTableResponse, "tables", body=body)
        _warn(added.warnings, warn)
        return table_of(added)

    def remove_table(self, name: str) -> None:
        """Take a table out of the catalog; its file, its budget and what was released stay."""
        self._transport.delete("tables", name)

    def refresh(self, name: str) -> list[str]:
        """Let the server look at the rows of a table again, and return the tables whose rows have changed."""
        return self._transport.post(RefreshResponse, "tables", name, "refresh").changed

    def budget(self, dataset: str, analyst: str | None = None, *, epoch: str | None = None) -> RemoteBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        return self._budget(dataset, analyst, epoch)

    def budgets(self) -> list[BudgetState]:
        """Return every budget that may be seen as it is now: of data sets, of analysts on them, of epochs."""
        return [BudgetState.of(one) for one in self._transport.get_list(BudgetResponse, "budgets")]

    def _budget(
        self, dataset: str, analyst: str | None = None, epoch: str | None = None, first: BudgetState | None = None
    ) -> RemoteBudget:
        query = {"analyst": analyst, "epoch": epoch}
        return RemoteBudget(
            lambda: self._transport.get(BudgetResponse, "budgets", dataset, query=query),
            lambda: self._transport.get(ReportResponse, "budgets", dataset, "report", query=query),
            first,
        )

    def set_budget(
        self,
        dataset: str,
        epsilon: object,
        delta: object = 0.0,
        *,
        filter: str | None = None,
        order: object = None,
        relation: Relation = Relation.ADD_REMOVE,
        per_epoch: bool = False,
        epsilon_min: object = None,
        units: int | None = None,
    ) -> RemoteBudget:
        """Give a data set its budget, or another one while nothing is charged; doubts are warned of."""
        body = BudgetRequest.stated(
            dataset=dataset,
            epsilon=encode_number("epsilon", epsilon),
            delta=encode_number("delta", delta),
            filter=filter,
            order=encode_number("order", order),
            relation=Relation.of(relation).value,
            per_epoch=truth_value("per_epoch", per_epoch),
            epsilon_min=encode_number("epsilon_min", epsilon_min),
            units=units,
        )
        made = self._transport.post(BudgetResponse, "budgets", body=body)
        _warn(made.warnings)
        return self._budget(dataset, first=BudgetState.of(made))

    def add_analyst(self, name: str, budgets: Mapping[str, Budget]) -> None:
        """Let an analyst, or a group, spend up to a cap on each of some data sets, one after another."""
        if not mapping("budgets", budgets, "a Budget for each data set"):
            raise EmptyInput("an analyst is added with a budget on at least one data set", name="budgets")
        for dataset, budget in budgets.items():
            if not isinstance(budget, Budget):
                raise WrongType(f"what {name} may spend on {dataset} is a Budget", name="budgets", value=budget)
        for dataset, budget in budgets.items():
            body = AnalystRequest.stated(name=name, epsilon=budget.epsilon, delta=budget.delta)
            self._transport.post(BudgetResponse, "budgets", dataset, "analysts", body=body)

    def add_epoch(
        self,
        dataset: str,
        name: str,
        *,
        starts: object = None,
        ends: object = None,
        epsilon: object = None,
        delta: object = None,
    ) -> RemoteBudget:
        """Give a stretch of time of a data set a budget of its own."""
        body = EpochRequest.stated(
            name=name,
            starts=None if starts is None else str(starts),
            ends=None if ends is None else str(ends),
            epsilon=encode_number("epsilon", epsilon),
            delta=encode_number("delta", delta),
        )
        self._transport.post(BudgetResponse, "budgets", dataset, "epochs", body=body)
        return self.budget(dataset, epoch=name)

    def requests(self, *, only_open: bool = False) -> list[Request]:
        """Return requests for more budget that may be seen, the oldest first."""
        query = {"only_open": "true"} if truth_value("only_open", only_open) else None
        return [request_of(one) for one in self._transport.get_list(MoreBudgetResponse, "requests", query=query)]

    def file_request(self, dataset: str, what: Cost | Budget, reason: str) -> Request:
        """Ask for more than one's own cap on a data set: a cost, or the budget that one would like to have more."""
        if not isinstance(what, Cost | Budget):
            raise WrongType(f"a request is for a cost, not {type(what).__name__}", name="what")
        body = MoreBudgetRequest.stated(dataset=dataset, epsilon=what.epsilon, delta=what.delta, reason=reason)
        return request_of(self._transport.post(MoreBudgetResponse, "requests", body=body))

    def decide(self, request: Request | str, granted: bool, note: str = "") -> Request:
        """Grant or decline a request; granting raises the analyst's cap, never above the data set's."""
        number = request if isinstance(request, str) else instance("request", request, Request, "a Request").id
        body = DecisionRequest.stated(granted=truth_value("granted", granted), note=note)
        return request_of(self._transport.post(MoreBudgetResponse, "requests", number, "decision", body=body))

    def releases(self, dataset: str | None = None, *, limit: int | None = None) -> list[dict[str, Any]]:
        """Return which answers were paid for, the newest first, without the answers."""
        query = {"dataset": dataset, "limit": limit}
        return [one.model_dump() for one in self._transport.get_list(PaidResponse, "releases", query=query)]

    def release(self, permit: object) -> RemoteRelease:
        """Return an answer that was paid for, by its permit, at no cost."""
        return RemoteRelease(self._transport.get(ReleaseResponse, "releases", str(permit)))

    def jobs(self) -> list[Job]:
        """Return questions that outlast their requests, the newest first."""
        return [Job.of(one) for one in self._transport.get_list(JobResponse, "jobs")]

    def cancel(self, what: Job | str | int | None = None) -> None:
        """Stop a job, the question that a thread of this client waits for, or all that wait; as `Curator.cancel`.

        What was charged stays charged. A question of this client is stopped by the thread that waits for it, as soon
        as it has become a job (2 s after it was asked).
        """
        if isinstance(what, int) or what is None:
            self._queries.stop(what)
        else:
            self._transport.delete("jobs", what if isinstance(what, str) else instance("what", what, Job, "a job").id)

    def reservations(self) -> list[dict[str, Any]]:
        """Return permits that were never committed: runs under way, and runs that died."""
        return self.ledger.reservations()

    def audit(self, first: int = 1, limit: int = 100) -> list[dict[str, Any]]:
        """Return what was refused, and what was changed about people, for owners and auditors; the oldest first."""
        query = {"first": first, "limit": limit}
        return [one.model_dump() for one in self._transport.get_list(AuditResponse, "audit", query=query)]

    def me(self) -> dict[str, Any]:
        """Return who the token says one is, what one may do, and which server this is."""
        return self._transport.get(MeResponse, "me").model_dump()

    def close(self) -> None:
        """Let go of the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise NotAllowed("a client is not written into files or sent to other processes", accepted="connect there")

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


def _warn(sentences: Iterable[str], warn: Callable[[str], None] | None = None) -> None:
    """Warn of what the server says is doubtful about something that it has made."""
    from tacit.curator import PrivacyWarning

    for sentence in sentences:
        if warn is None:
            warnings.warn(sentence, PrivacyWarning, stacklevel=3)
        else:
            warn(sentence)


def connect(
    url: str,
    token: str | None = None,
    *,
    timeout_s: float = 60,
    verify: bool | str | Path = True,
    retries: int = 3,
) -> Client:
    """Return a client of the server at an address; `token` is TACIT_TOKEN without one, or "file:PATH".

    `verify` names the certificates that are trusted, if not the usual ones. A request whose answer was lost is sent
    again up to `retries` times, if that cannot do harm; a busy server is waited for up to `timeout_s`.
    """
    return Client(url, token, timeout_s=timeout_s, verify=verify, retries=retries)
