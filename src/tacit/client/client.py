"""A curator that is elsewhere: the methods of `tacit.Curator`, over REST.

    client = tacit.connect("http://127.0.0.1:8321", token="file:token.txt")
    client.sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", epsilon=0.5)

Promise: arguments, objects and errors are those of the embedded curator, as far as REST has them; threads may share a
client. Who asks is said by the token, so no method takes an analyst who would be somebody else.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from tacit.accounting.bounds import Cost
from tacit.client.budget import BudgetState, RemoteBudget
from tacit.client.failures import understood
from tacit.client.ledger import RemoteLedger
from tacit.client.people import People
from tacit.client.questions import Asking, Progress, question_document
from tacit.client.records import Job, request_of
from tacit.client.release import LEVEL, RemotePreview, RemoteRelease, lines_of
from tacit.client.tables import RemoteTable, registration, table_of
from tacit.client.tokens import Token
from tacit.client.values import number_document
from tacit.client.wire import Wire
from tacit.ledger import Budget
from tacit.ledger.requests import Request
from tacit.privacy.arguments import instance, mapping, require_warn
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import EmptyInput, NotAllowed, WrongType
from tacit.privacy.numbers import truth_value
from tacit.privacy.relations import Relation
from tacit.privacy.tables import Column, Kind, Limits
from tacit.privacy.units import Unit
from tacit.query.explain import Line

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
        self._wire: Final = Wire(
            url, Token.of(token), timeout_s=timeout_s, verify=verify, retries=retries, http=http, sleep=sleep
        )
        self._asking: Final = Asking(self._wire, sleep)
        self.ledger: Final = RemoteLedger(self._wire)
        """The records of the ledger, for owners and auditors."""
        self.people: Final = People(self._wire)
        """Who is known to the server, and their tokens."""

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._wire.url

    def sql(
        self,
        sql: str,
        epsilon: object = None,
        *,
        rho: object = None,
        error: object = None,
        delta: object = None,
        analyst: str | None = None,
        purpose: str = "",
        limits: Limits | None = None,
        keys: Mapping[str, Sequence[Category]] | None = None,
        other: bool = False,
        key: str | None = None,
        timeout_s: float | None = None,
        progress: Progress | None = None,
        level: float = LEVEL,
    ) -> RemoteRelease:
        """Answer a question privately, or raise and charge nothing; as `Curator.sql`.

        Each call has a key of its own unless `key` is given, so that an answer that was lost on its way is charged
        once. `level` is that of the intervals that come along; `analyst` is the token's owner, and cannot be another.
        After `timeout_s` the answer is waited for no longer (TimedOut), and the question goes on at the server.
        """
        question = question_document(
            sql,
            epsilon=epsilon,
            rho=rho,
            error=error,
            delta=delta,
            analyst=analyst,
            purpose=purpose,
            limits=limits,
            keys=keys,
            other=other,
        )
        return self._asking.release(question, key, level, progress, timeout_s)

    def preview(
        self,
        sql: str,
        epsilon: object = None,
        *,
        rho: object = None,
        error: object = None,
        delta: object = None,
        analyst: str | None = None,
        limits: Limits | None = None,
        keys: Mapping[str, Sequence[Category]] | None = None,
        other: bool = False,
    ) -> RemotePreview:
        """Return what `sql` would charge, exactly, and how wide its intervals would be; spends nothing."""
        question = question_document(
            sql,
            epsilon=epsilon,
            rho=rho,
            error=error,
            delta=delta,
            analyst=analyst,
            limits=limits,
            keys=keys,
            other=other,
        )
        return self._asking.preview(question)

    def explain(
        self,
        sql: str,
        epsilon: object = None,
        *,
        rho: object = None,
        error: object = None,
        delta: object = None,
        limits: Limits | None = None,
        keys: Mapping[str, Sequence[Category]] | None = None,
        other: bool = False,
    ) -> list[Line]:
        """Return, pass by pass, what `sql` would do: bounds, sensitivities, noise, and the SQL that the engine runs."""
        question = question_document(
            sql,
            epsilon=epsilon,
            rho=rho,
            error=error,
            delta=delta,
            limits=limits,
            keys=keys,
            other=other,
        )
        document = self._wire.post("explain", body=question, is_repeatable=True)
        with understood("the explanation"):
            return list(lines_of(document))

    @cached_property
    def stats(self) -> Statistics:
        """The statistics of `tacit.stats`: `client.stats.mean(client.table("visits")["age"], epsilon=0.1)`."""
        from tacit.client.statistics import Statistics

        return Statistics(self._asking.statistic)

    def tables(self) -> list[RemoteTable]:
        """Return the tables that may be asked about."""
        document = self._wire.get("tables")
        with understood("the list of tables"):
            return [table_of(one) for one in document]

    def table(self, name: str) -> RemoteTable:
        """Return what is public about a table; `table["age"]` is a column for statistics."""
        return table_of(self._wire.get("tables", name))

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
        body = registration(
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
        document = self._wire.post("tables", body=body)
        _warn(document, "the table", warn)
        return table_of(document)

    def remove_table(self, name: str) -> None:
        """Take a table out of the catalog; its file, its budget and what was released stay."""
        self._wire.delete("tables", name)

    def refresh(self, name: str) -> list[str]:
        """Let the server look at the rows of a table again, and return the tables whose rows have changed."""
        document = self._wire.post("tables", name, "refresh", body={})
        with understood("the refresh"):
            return [str(one) for one in document["changed"]]

    def budget(self, dataset: str, analyst: str | None = None, *, epoch: str | None = None) -> RemoteBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        return self._budget(dataset, analyst, epoch)

    def budgets(self) -> list[BudgetState]:
        """Return every budget that may be seen as it is now: of data sets, of analysts on them, of epochs."""
        document = self._wire.get("budgets")
        with understood("the list of budgets"):
            return [BudgetState.read(one) for one in document]

    def _budget(
        self, dataset: str, analyst: str | None = None, epoch: str | None = None, first: BudgetState | None = None
    ) -> RemoteBudget:
        query = {"analyst": analyst, "epoch": epoch}
        return RemoteBudget(
            lambda: self._wire.get("budgets", dataset, query=query),
            lambda: self._wire.get("budgets", dataset, "report", query=query),
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
        """Give a data set its budget, once and for all; what is doubtful about it is warned of."""
        body = {
            "dataset": dataset,
            "epsilon": number_document("epsilon", epsilon),
            "delta": number_document("delta", delta),
            "filter": filter,
            "order": number_document("order", order),
            "relation": Relation.of(relation).value,
            "per_epoch": truth_value("per_epoch", per_epoch),
            "epsilon_min": number_document("epsilon_min", epsilon_min),
            "units": units,
        }
        document = self._wire.post("budgets", body={name: one for name, one in body.items() if one is not None})
        _warn(document, "the budget")
        return self._budget(dataset, first=BudgetState.read(document))

    def add_analyst(self, name: str, budgets: Mapping[str, Budget]) -> None:
        """Let an analyst, or a group, spend up to a cap on each of some data sets, one after another."""
        if not mapping("budgets", budgets, "a Budget for each data set"):
            raise EmptyInput("an analyst is added with a budget on at least one data set", name="budgets")
        for dataset, budget in budgets.items():
            if not isinstance(budget, Budget):
                raise WrongType(f"what {name} may spend on {dataset} is a Budget", name="budgets", value=budget)
        for dataset, budget in budgets.items():
            body = {"name": name, "epsilon": budget.epsilon, "delta": budget.delta}
            self._wire.post("budgets", dataset, "analysts", body=body)

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
        body = {
            "name": name,
            "starts": None if starts is None else str(starts),
            "ends": None if ends is None else str(ends),
            "epsilon": number_document("epsilon", epsilon),
            "delta": number_document("delta", delta),
        }
        self._wire.post("budgets", dataset, "epochs", body={key: one for key, one in body.items() if one is not None})
        return self.budget(dataset, epoch=name)

    def requests(self, *, only_open: bool = False) -> list[Request]:
        """Return requests for more budget that may be seen, the oldest first."""
        query = {"only_open": "true"} if truth_value("only_open", only_open) else None
        document = self._wire.get("requests", query=query)
        with understood("the list of requests"):
            return [request_of(one) for one in document]

    def file_request(self, dataset: str, what: Cost | Budget, reason: str) -> Request:
        """Ask for more than one's own cap on a data set: a cost, or the budget that one would like to have more."""
        if not isinstance(what, Cost | Budget):
            raise WrongType(f"a request is for a cost, not {type(what).__name__}", name="what")
        body = {"dataset": dataset, "epsilon": what.epsilon, "delta": what.delta, "reason": reason}
        return request_of(self._wire.post("requests", body=body))

    def decide(self, request: Request | str, granted: bool, note: str = "") -> Request:
        """Grant or decline a request of somebody else; granting raises her cap, never above the data set's."""
        number = request if isinstance(request, str) else instance("request", request, Request, "a Request").id
        body = {"granted": truth_value("granted", granted), "note": note}
        return request_of(self._wire.post("requests", number, "decision", body=body))

    def releases(self, dataset: str | None = None, *, limit: int | None = None) -> list[dict[str, Any]]:
        """Return which answers were paid for, the newest first, without the answers."""
        document = self._wire.get("releases", query={"dataset": dataset, "limit": limit})
        with understood("the list of releases"):
            return [dict(one) for one in document]

    def release(self, permit: object) -> RemoteRelease:
        """Return an answer that was paid for, by its permit, at no cost."""
        return RemoteRelease(self._wire.get("releases", str(permit)))

    def jobs(self) -> list[Job]:
        """Return questions that outlast their requests, the newest first."""
        document = self._wire.get("jobs")
        with understood("the list of jobs"):
            return [Job.read(one) for one in document]

    def cancel(self, what: Job | str | int | None = None) -> None:
        """Stop a job, the question that a thread of this client waits for, or all that wait; as `Curator.cancel`.

        What was charged stays charged. A question of this client is stopped by the thread that waits for it, as soon
        as it has become a job (2 s after it was asked).
        """
        if isinstance(what, int) or what is None:
            self._asking.stop(what)
        else:
            self._wire.delete("jobs", what if isinstance(what, str) else instance("what", what, Job, "a job").id)

    def reservations(self) -> list[dict[str, Any]]:
        """Return permits that were never committed: runs under way, and runs that died."""
        return self.ledger.reservations()

    def audit(self, first: int = 1, limit: int = 100) -> list[dict[str, Any]]:
        """Return what was refused, and what was changed about people, for owners and auditors; the oldest first."""
        document = self._wire.get("audit", query={"first": first, "limit": limit})
        with understood("the list of records"):
            return [dict(one) for one in document]

    def me(self) -> dict[str, Any]:
        """Return who the token says one is, what one may do, and which server this is."""
        return dict(self._wire.get("me"))

    def close(self) -> None:
        """Let go of the connections."""
        self._wire.close()

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


def _warn(document: Any, what: str, warn: Callable[[str], None] | None = None) -> None:
    """Warn of what the server says is doubtful about something that it has made."""
    from tacit.curator import PrivacyWarning

    with understood(what):
        sentences = [str(one) for one in document.get("warnings") or ()]
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
