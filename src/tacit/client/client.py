"""`Client`: the methods of `tacit.Curator`, over REST.

    client = tacit.connect("http://127.0.0.1:8321", token="file:token.txt")
    client.sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", epsilon=0.5)

Promise: arguments, objects and errors are those of the embedded curator, as far as REST has them; threads may share a
client. The token identifies the analyst, so no method takes another one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from tacit.accounting.conversions import Cost
from tacit.client.answers import RemotePreview, RemoteRelease, line_of
from tacit.client.errors import parse_list
from tacit.client.models import RemoteModel, training_request
from tacit.client.queries import QueryRunner, plan_request
from tacit.client.resources import (
    BudgetState,
    RemoteBudget,
    RemoteJob,
    RemoteLedger,
    RemotePeople,
    RemoteTable,
    request_of,
    table_of,
    table_request,
)
from tacit.client.transport import SecretToken, Transport, chosen_server
from tacit.ledger import Budget
from tacit.ledger.administration import Request
from tacit.ledger.budget import check_analyst_budgets
from tacit.privacy.arguments import instance, require_warn
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import NotAllowed, WrongType
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
    FindingRequest,
    MoreBudgetRequest,
)
from tacit.wire.responses import (
    AuditResponse,
    BudgetResponse,
    FindingResponse,
    JobResponse,
    MeResponse,
    ModelResponse,
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

    from tacit.attack import Finding
    from tacit.client.queries import Statistics
    from tacit.curator.curated_findings import CuratedFinding
    from tacit.learn.estimators.base import PrivateEstimator


class Client:
    """A server, accessed with one token."""

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
        """Create a client; nothing is sent before the first request. `http` and `sleep` are for tests."""
        self._transport: Final = Transport(
            url, SecretToken.of(token), timeout_s=timeout_s, verify=verify, retries=retries, http=http, sleep=sleep
        )
        self._queries: Final = QueryRunner(self._transport, sleep)
        self.ledger: Final = RemoteLedger(self._transport)
        """The records of the ledger, for owners and auditors."""
        self.people: Final = RemotePeople(self._transport)
        """The people of the server, with their grants and tokens."""

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._transport.url

    def sql(
        self, sql: str, epsilon: object = None, *, level: float = DEFAULT_LEVEL, **options: Unpack[QueryOptions]
    ) -> RemoteRelease:
        """Answer a query privately, or raise and charge nothing; as `Curator.sql`.

        Each call has its own idempotency key unless `key` is given, so that a lost response is charged once. `level` is
        that of the intervals in the response; `analyst` is refused, as the token identifies it. After `timeout_s`
        TimedOut is raised, and the query continues at the server.
        """
        return self._queries.release(sql, epsilon, level, options)

    def preview(
        self, sql: str, epsilon: object = None, *, analyst: str | None = None, **options: Unpack[PlanOptions]
    ) -> RemotePreview:
        """Return the exact charge of `sql` and the widths of its intervals; spends nothing."""
        return self._queries.preview(plan_request(sql, epsilon, options, analyst))

    def explain(self, sql: str, epsilon: object = None, **options: Unpack[PlanOptions]) -> list[Line]:
        """Return the plan of `sql`, pass by pass: bounds, sensitivities, noise, and the SQL that the engine runs."""
        reply = self._transport.ask("POST", "explain", body=plan_request(sql, epsilon, options), is_repeatable=True)
        return [line_of(one) for one in parse_list(PlanLine, reply.document, "the explanation")]

    @cached_property
    def stats(self) -> Statistics:
        """The statistics of `tacit.stats`: `client.stats.mean(client.table("visits")["age"], epsilon=0.1)`."""
        from tacit.client.queries import Statistics

        return Statistics(self._queries.statistic, self._queries.statistic_preview)

    def train(
        self,
        table: str,
        estimator: PrivateEstimator | str,
        features: Sequence[str],
        target: str | None = None,
        epsilon: object = None,
        *,
        delta: object = None,
        parameters: Mapping[str, Any] | None = None,
        key: str | None = None,
        purpose: str = "",
        timeout_s: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RemoteModel:
        """Train an estimator on columns of a table, and return the model, which the server keeps.

        The estimator is one of `tacit.learn`, or its name with `parameters`. The other arguments are those of
        `Curator.train`; `timeout_s` and `key` are as for `sql`.
        """
        body = training_request(table, estimator, features, target, epsilon, delta, parameters, purpose)
        found = self._queries.training(body, timeout_s, key, progress)
        return RemoteModel.of(found.model, self._transport, found)

    def training_preview(
        self,
        table: str,
        estimator: PrivateEstimator | str,
        features: Sequence[str],
        target: str | None = None,
        epsilon: object = None,
        *,
        delta: object = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> RemotePreview:
        """Return exactly what `train` would charge with these arguments; spends nothing."""
        return self._queries.training_preview(
            training_request(table, estimator, features, target, epsilon, delta, parameters, "")
        )

    def models(self, dataset: str | None = None) -> list[RemoteModel]:
        """Return the visible models, oldest first: of a data set or all."""
        found = self._transport.get_list(ModelResponse, "models", query={"dataset": dataset})
        return [RemoteModel.of(one, self._transport) for one in found]

    def model(self, model: str) -> RemoteModel:
        """Return a model by its id."""
        return RemoteModel.of(self._transport.get(ModelResponse, "models", model), self._transport)

    def remove_model(self, model: str) -> None:
        """Delete a model; what was charged for it stays charged."""
        self._transport.delete("models", model)

    def tables(self) -> list[RemoteTable]:
        """Return the visible tables."""
        return [table_of(one) for one in self._transport.get_list(TableResponse, "tables")]

    def table(self, name: str) -> RemoteTable:
        """Return the public facts about a table; `table["age"]` is a column for statistics."""
        return table_of(self._transport.get(TableResponse, "tables", name))

    def add_table(
        self,
        name: str,
        data: str | Path,
        *,
        unit: str | Unit | None = None,
        public: bool = False,
        each_row: bool = False,
        columns: Mapping[str, Bounds | Categories | Column] | None = None,
        limits: Limits | None = None,
        identified_by: str | Iterable[str] = (),
        dataset: str = "",
        kinds: Mapping[str, Kind] | None = None,
        format: str | None = None,
        replace: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> RemoteTable:
        """Register a table whose rows the server can read: a path or an address of its own.

        `warn` is called instead of warnings.warn, for rows that another data set has, or had, too.
        """
        require_warn(warn)
        body = table_request(
            name,
            data,
            unit=unit,
            public=public,
            each_row=each_row,
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
        """Remove a table from the catalog; its file, its budget and its releases stay."""
        self._transport.delete("tables", name)

    def refresh(self, name: str) -> list[str]:
        """Refresh a table and the tables linked to it, and return those whose rows have changed."""
        return self._transport.post(RefreshResponse, "tables", name, "refresh").changed

    def budget(self, dataset: str, analyst: str | None = None, *, epoch: str | None = None) -> RemoteBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        return self._budget(dataset, analyst, epoch)

    def budgets(self) -> list[BudgetState]:
        """Return the present states of the visible budgets: of data sets, of analysts on them, of epochs."""
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
        """Set the budget of a data set; it can be replaced until something is charged."""
        body = BudgetRequest.of(
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
        """Set the caps of an analyst or a group on data sets, with one request for each."""
        for dataset, budget in check_analyst_budgets(name, budgets).items():
            body = AnalystRequest.of(name=name, epsilon=budget.epsilon, delta=budget.delta)
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
        """Add an epoch of a data set with its own budget."""
        body = EpochRequest.of(
            name=name,
            starts=None if starts is None else str(starts),
            ends=None if ends is None else str(ends),
            epsilon=encode_number("epsilon", epsilon),
            delta=encode_number("delta", delta),
        )
        self._transport.post(BudgetResponse, "budgets", dataset, "epochs", body=body)
        return self.budget(dataset, epoch=name)

    def requests(self, *, only_open: bool = False) -> list[Request]:
        """Return the visible requests for more budget, oldest first."""
        query = {"only_open": "true"} if truth_value("only_open", only_open) else None
        return [request_of(one) for one in self._transport.get_list(MoreBudgetResponse, "requests", query=query)]

    def file_request(
        self,
        dataset: str,
        what: Cost | Budget | None = None,
        reason: str = "",
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
    ) -> Request:
        """File a request for more budget on a data set: the additional epsilon and delta, or a Cost or Budget."""
        if (what is None) == (epsilon is None):
            raise WrongType("a request is for more epsilon: epsilon=0.5, or a Cost or Budget", name="epsilon")
        if what is not None:
            if not isinstance(what, Cost | Budget):
                raise WrongType(f"the request must be for a Cost or a Budget, not {type(what).__name__}", name="what")
            epsilon, delta = what.epsilon, what.delta
        body = MoreBudgetRequest.of(dataset=dataset, epsilon=epsilon, delta=delta, reason=reason)
        return request_of(self._transport.post(MoreBudgetResponse, "requests", body=body))

    def decide(self, request: Request | str, granted: bool, note: str = "") -> Request:
        """Grant or decline a request; granting raises the analyst's cap, at most to that of the data set."""
        number = request if isinstance(request, str) else instance("request", request, Request, "a Request").id
        body = DecisionRequest.of(granted=truth_value("granted", granted), note=note)
        return request_of(self._transport.post(MoreBudgetResponse, "requests", number, "decision", body=body))

    def keep_finding(self, finding: Finding, dataset: str | None = None) -> CuratedFinding:
        """Keep a finding of `tacit.attack`, without people, about the permit of its claim, or about a data set."""
        from tacit.attack import Finding

        left = instance("finding", finding, Finding, "a Finding of tacit.attack").without_people()
        body = FindingRequest.of(finding=left.to_dict(), dataset=dataset)
        return _finding_of(self._transport.post(FindingResponse, "findings", body=body))

    def findings(self, dataset: str | None = None, permit: object = None) -> list[CuratedFinding]:
        """Return the visible findings, oldest first: of a data set or all, for a permit or all; requested in pages."""
        found: list[CuratedFinding] = []
        query = {"dataset": dataset, "permit": None if permit is None else str(permit), "first": 1}
        while page := self._transport.get_list(FindingResponse, "findings", query=query):
            found += map(_finding_of, page)
            query["first"] = page[-1].record + 1
        return found

    def releases(self, dataset: str | None = None, *, limit: int | None = None) -> list[dict[str, Any]]:
        """Return which answers were paid for, the newest first, without the answers."""
        query = {"dataset": dataset, "limit": limit}
        return [one.model_dump() for one in self._transport.get_list(PaidResponse, "releases", query=query)]

    def release(self, permit: object) -> RemoteRelease:
        """Return an answer that was paid for, by its permit, at no cost."""
        return RemoteRelease(self._transport.get(ReleaseResponse, "releases", str(permit)))

    def jobs(self) -> list[RemoteJob]:
        """Return the jobs, newest first."""
        return [RemoteJob.of(one) for one in self._transport.get_list(JobResponse, "jobs")]

    def cancel(self, what: RemoteJob | str | int | None = None) -> None:
        """Cancel a job, the query that a thread of this client waits for, or all of those; as `Curator.cancel`.

        What was charged stays charged. A query of this client is cancelled by the thread that waits for it, once it has
        become a job (2 s after it was sent).
        """
        if isinstance(what, int) or what is None:
            self._queries.stop(what)
        else:
            self._transport.delete(
                "jobs", what if isinstance(what, str) else instance("what", what, RemoteJob, "a job").id
            )

    def audit(self, first: int = 1, limit: int = 100) -> list[dict[str, Any]]:
        """Return audit records of refusals and changes, oldest first; for owners and auditors."""
        query = {"first": first, "limit": limit}
        return [one.model_dump() for one in self._transport.get_list(AuditResponse, "audit", query=query)]

    def me(self) -> dict[str, Any]:
        """Return the name and grants of the token's owner, and the version and limits of the server."""
        return self._transport.get(MeResponse, "me").model_dump()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise NotAllowed("a client cannot be pickled", accepted="connect in the other process")

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


def _finding_of(response: FindingResponse) -> CuratedFinding:
    """Return the finding of a response."""
    from tacit.curator.curated_findings import CuratedFinding

    return CuratedFinding(**dict(response))


def _warn(sentences: Iterable[str], warn: Callable[[str], None] | None = None) -> None:
    """Issue the warnings of a response."""
    from tacit.curator import PrivacyWarning

    for sentence in sentences:
        if warn is None:
            warnings.warn(sentence, PrivacyWarning, stacklevel=3)
        else:
            warn(sentence)


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    timeout_s: float = 60,
    verify: bool | str | Path = True,
    retries: int = 3,
) -> Client:
    """Return a client of a server, by default that of TACIT_SERVER.

    `token` may be "file:PATH", and is read from TACIT_TOKEN by default.

    `verify` names a file or folder of trusted certificates. A request whose response was lost is repeated up to
    `retries` times, if that is safe; a busy server is waited for up to `timeout_s`.
    """
    return Client(chosen_server(url), token, timeout_s=timeout_s, verify=verify, retries=retries)
