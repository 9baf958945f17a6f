"""Queries and statistics at a server: their requests, idempotency keys, and the jobs that long ones become.

Promise: a query carries a key that the server charges once, so it is repeated if its response was lost; a job is polled
until it is done, and Ctrl-C cancels it. Requesting the intervals of an answer at another level is never charged: a
preview checks first that the answer is still the released one.

`client.stats`: the statistics of `tacit.stats`, computed by the server.

    visits = client.table("visits")
    client.stats.mean(visits["age"], by=visits["ward"], epsilon=0.1)
    client.stats.previews.mean(visits["age"], epsilon=0.1)    # what it would cost; spends nothing

Promise: functions have the names, arguments and answers of `tacit.stats`; their data are columns of the server's tables
only, so no array of the caller is sent by mistake.
"""

from __future__ import annotations

import inspect
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast

from tacit import stats
from tacit.client.answers import VALUES, RemoteAnswer, RemotePreview, RemoteRelease, answer_of
from tacit.client.errors import error_of, parse_response, require_readable
from tacit.client.resources import RemoteColumn, RemoteTable, limits_request
from tacit.client.transport import Reply, Transport
from tacit.pipeline.interrupts import begin_charge
from tacit.privacy import texts
from tacit.privacy.arguments import instances, mapping, require_progress
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import (
    Cancelled,
    InvalidInput,
    QueryRefused,
    ServerFailed,
    ServerUnreachable,
    TimedOut,
    WrongType,
)
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of, time_limit, truth_value
from tacit.query.options import PLAN_OPTIONS, PlanOptions, QueryOptions, check_options
from tacit.wire.requests import KEY_MAX, STATISTICS, QueryRequest, RunRequest, StatisticRequest, TrainingRequest
from tacit.wire.responses import (
    AcceptedResponse,
    JobResponse,
    PreviewResponse,
    ReleaseResponse,
    StatisticResponse,
    TrainingResponse,
)
from tacit.wire.values import column_reference, encode, encode_number

RunResponse = TypeVar("RunResponse", ReleaseResponse, StatisticResponse, TrainingResponse)

WAIT_S: Final = 2.0
"""Time that a request waits for its answer before it becomes a job, which can be cancelled."""

POLL_S: Final = 0.1
POLL_MAX_S: Final = 1.0
LOST_MAX: Final = 2
"""Repetitions of a query whose process at the server died."""

Progress = Callable[[float], None]


def query_request(sql: str, epsilon: object, options: QueryOptions) -> QueryRequest:
    """Return the request of a query; options that concern the client only are left out."""
    check_options(options)
    if not isinstance(sql, str):
        raise WrongType(f"a query must be a text, not {type(sql).__name__}", name="sql")
    if (analyst := options.get("analyst")) is not None:
        raise InvalidInput(
            "a server identifies the analyst by the token; leave analyst= out", name="analyst", value=analyst
        )
    prices = {"epsilon": epsilon, **{name: options.get(name) for name in ("rho", "error", "delta")}}
    return QueryRequest.of(
        sql=sql,
        **{name: encode_number(name, value) for name, value in prices.items()},
        purpose=texts.note("purpose", options.get("purpose", "")) or None,
        limits=limits_request(options.get("limits")),
        keys=_keys(options.get("keys")),
        other=truth_value("other", options.get("other", False)) or None,
    )


def plan_request(sql: str, epsilon: object, options: PlanOptions, analyst: str | None = None) -> QueryRequest:
    """Return the request of a query that is planned only; options of a run are refused."""
    check_options(options, PLAN_OPTIONS)
    return query_request(sql, epsilon, cast("QueryOptions", {**options, "analyst": analyst}))


def _keys(keys: Mapping[str, Sequence[Category]] | None) -> dict[str, Any] | None:
    if keys is None:
        return None
    wanted = "a list of values for each key"
    stated = mapping("keys", keys, wanted)
    return {name: encode(instances("keys", one, object, wanted), tagged=True) for name, one in stated.items()}


class QueryRunner:
    """Sends queries and statistics to one server, and polls the jobs that they become."""

    def __init__(self, transport: Transport, sleep: Callable[[float], None] = time.sleep) -> None:
        self._transport, self._sleep = transport, sleep
        self._lock: Final = threading.Lock()
        self._waiting: Final[dict[int, bool]] = {}
        """The threads that wait for an answer, and whether each is to stop."""

    def stop(self, thread: int | None = None) -> None:
        """Tell a waiting thread, or all, to cancel its query at its next poll."""
        with self._lock:
            for one in self._waiting:
                self._waiting[one] |= thread is None or one == thread

    @contextmanager
    def _waiting_thread(self) -> Iterator[None]:
        here = threading.get_ident()
        with self._lock:
            self._waiting[here] = False
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[here]

    def release(self, sql: str, epsilon: object, level: float, options: QueryOptions) -> RemoteRelease:
        """Return the answer of a query; raise TimedOut if it takes longer than `timeout_s`."""
        query, progress = query_request(sql, epsilon, options), options.get("progress")
        own, share, deadline_s = _own_key(options.get("key")), level_of(level), self._deadline_s(options)
        require_progress(progress)
        request = query.model_copy(update={"level": share})
        with self._waiting_thread():
            response = self._ask(ReleaseResponse, "queries", request, own, progress, deadline_s)
        return RemoteRelease(response, lambda other: self._ask_at_level(query, own, other))

    def preview(self, query: QueryRequest) -> RemotePreview:
        """Return the price of a query."""
        return RemotePreview.of_response(
            self._transport.post(PreviewResponse, "preview", body=query, is_repeatable=True)
        )

    def statistic(
        self,
        function: str,
        arguments: Mapping[str, Any],
        level: float,
        timeout_s: float | None = None,
        key: str | None = None,
    ) -> StatisticResponse:
        """Return the answer of a statistic."""
        own, share, deadline_s = _own_key(key), level_of(level), self._deadline_s({"timeout_s": timeout_s})
        request = StatisticRequest.of(function=function, arguments=dict(arguments), level=share)
        with self._waiting_thread():
            return self._ask(StatisticResponse, "statistics", request, own, None, deadline_s)

    def statistic_preview(self, function: str, arguments: Mapping[str, Any]) -> RemotePreview:
        """Return the price of a statistic."""
        request = StatisticRequest.of(function=function, arguments=dict(arguments))
        response = self._transport.post(PreviewResponse, "statistics", "preview", body=request, is_repeatable=True)
        return RemotePreview.of_response(response)

    def training(
        self,
        request: TrainingRequest,
        timeout_s: float | None = None,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> TrainingResponse:
        """Return the answer of a training."""
        own, deadline_s = _own_key(key), self._deadline_s({"timeout_s": timeout_s})
        require_progress(progress)
        with self._waiting_thread():
            return self._ask(TrainingResponse, "models", request, own, progress, deadline_s)

    def training_preview(self, request: TrainingRequest) -> RemotePreview:
        """Return the price of a training."""
        response = self._transport.post(PreviewResponse, "models", "preview", body=request, is_repeatable=True)
        return RemotePreview.of_response(response)

    def _wait_s(self, deadline_s: float | None = None) -> float:
        wait_s = min(WAIT_S, self._transport.timeout_s / 2)
        return wait_s if deadline_s is None else max(0.0, min(wait_s, deadline_s - time.monotonic()))

    def _ask_at_level(self, query: QueryRequest, key: str, level: float) -> ReleaseResponse:
        """Repeat an answered query for its intervals at another level, without a charge.

        The same key is not charged twice, and the query is repeated only while its answer is the released one.
        """
        if not self.preview(_without(query, "purpose")).is_released:
            raise QueryRefused(
                "the data have changed, so repeating the query would be charged",
                accepted=f"ask it with level={level:g}",
            )
        request = query.model_copy(update={"level": level})
        with self._waiting_thread():
            return self._ask(ReleaseResponse, "queries", request, key, None)

    def _deadline_s(self, options: QueryOptions) -> float | None:
        limit_s = time_limit(options.get("timeout_s"))
        return None if limit_s is None else time.monotonic() + limit_s

    def _ask(
        self,
        model: type[RunResponse],
        path: str,
        request: RunRequest,
        key: str,
        progress: Progress | None,
        deadline_s: float | None = None,
    ) -> RunResponse:
        """Return an answer; a query whose process died is repeated with the same key."""
        for _ in range(1 + LOST_MAX):
            reply = self._send(path, request.model_copy(update={"wait_s": self._wait_s(deadline_s)}), key)
            document = reply.document
            if reply.status == 202:
                job = parse_response(AcceptedResponse, document, "the job").job
                document = self._follow(job, progress, deadline_s, key)
            if document is not None:
                _report(progress, 1.0)
                return parse_response(model, document, "the answer")
        raise ServerFailed(f"the server lost the query {1 + LOST_MAX} times; repeat it with key={key!r}")

    def _send(self, path: str, request: RunRequest, key: str) -> Reply:
        begin_charge()
        try:
            return self._transport.ask("POST", path, body=request, key=key)
        except ServerUnreachable as error:
            if type(error) is not ServerUnreachable:
                raise
            sentence = f"{error.message}; repeat the query with key={key!r} to be charged once"
        raise ServerUnreachable(sentence)

    def _follow(self, job: str, progress: Progress | None, deadline_s: float | None, key: str) -> Any:
        """Poll a job and return the document of its answer, or None if the server lost it."""
        pause_s, is_stopped, here = POLL_S, False, threading.get_ident()
        try:
            while True:
                if self._waiting[here] and not is_stopped:
                    self._transport.delete("jobs", job)  # its state then says whether it was cancelled in time
                    is_stopped, pause_s = True, POLL_S
                found = self._transport.get(JobResponse, "jobs", job)
                if not found.is_running:
                    return _job_outcome(found)
                _report(progress, min(0.99, found.elapsed_s / max(found.expected_s, 0.1)))
                if deadline_s is not None and time.monotonic() >= deadline_s:
                    raise TimedOut(
                        f"the query continues at the server as the job {job}, and what was charged stays charged; for "
                        f"its answer without a second charge, repeat it with key={key!r}"
                    )
                self._sleep(pause_s)
                pause_s = min(pause_s * 1.5, POLL_MAX_S)
        except KeyboardInterrupt:
            self._transport.delete("jobs", job)
            raise


def _report(progress: Progress | None, share: float) -> None:
    if progress is not None:
        with suppress(Exception):  # a failing callback must not lose the answer
            progress(share)


def _own_key(key: str | None) -> str:
    """Return the given idempotency key, or a new one."""
    own = secrets.token_hex(16) if key is None else texts.key(key)
    if not 0 < len(own) <= KEY_MAX or not all(" " <= one <= "~" for one in own):
        raise InvalidInput(f"a key has 1 to {KEY_MAX} printable ASCII characters", name="key", value=key)
    return own


def _job_outcome(job: JobResponse) -> Any:
    """Return the answer of a job that has ended, None if it is lost, or raise its error."""
    if job.state == "done" and job.release is not None:
        return job.release
    if job.state == "lost":
        return None
    if job.error is not None:
        with require_readable("the error of the job"):
            error = error_of(job.error)
        raise error
    if job.state == "cancelled":
        raise Cancelled("the query was cancelled; its cost stays charged, and repeating it is charged again")
    raise ServerFailed(f"the job {job.id} ended as {job.state!r} without an error")


def _without(query: QueryRequest, name: str) -> QueryRequest:
    return QueryRequest.model_validate(query.model_dump(exclude_unset=True, exclude={name}))


COLUMNS: Final = ("values", "others", "times", "columns", "by")
"""The arguments that are columns."""

Send = Callable[[str, Mapping[str, Any], float, float | None, str | None], StatisticResponse]
"""Requests a statistic: its name, arguments, level, time limit and idempotency key."""
SendPreview = Callable[[str, Mapping[str, Any]], RemotePreview]
"""Requests the price of a statistic: its name and arguments."""
Result = TypeVar("Result", RemoteAnswer, RemotePreview)
RUN_OPTIONS: Final = ("timeout_s", "key", "purpose")
"""Arguments of a run, which a preview ignores."""


class Statistics:
    """The functions of `tacit.stats`, for the tables of a server."""

    def __init__(self, send: Send, preview: SendPreview) -> None:
        self._send: Final = send
        self.previews: Final = StatisticPreviews(preview)

    def __getattr__(self, name: str) -> Callable[..., RemoteAnswer]:
        require_statistic(name)

        def ask(*given: Any, level: float = DEFAULT_LEVEL, **named: Any) -> RemoteAnswer:
            stated = _bind_arguments(name, given, named)
            timeout_s, key = stated.pop("timeout_s", None), stated.pop("key", None)
            return answer_of(
                name, self._send(name, encode_arguments(stated), level, timeout_s, key), columns_in(stated)
            )

        return _like(name, ask)

    def __dir__(self) -> list[str]:
        return sorted(STATISTICS)

    def __repr__(self) -> str:
        return "<the statistics of a server>"


class StatisticPreviews:
    """The functions of `tacit.stats`; each returns its price and spends nothing."""

    def __init__(self, preview: SendPreview) -> None:
        self._preview: Final = preview

    def __getattr__(self, name: str) -> Callable[..., RemotePreview]:
        require_statistic(name)

        def ask(*given: Any, **named: Any) -> RemotePreview:
            stated = _bind_arguments(name, given, named)
            return self._preview(
                name, encode_arguments({one: value for one, value in stated.items() if one not in RUN_OPTIONS})
            )

        return _like(name, ask)

    def __dir__(self) -> list[str]:
        return sorted(STATISTICS)


def require_statistic(name: str) -> None:
    """Raise AttributeError unless a server computes a statistic."""
    if name not in STATISTICS:
        raise AttributeError(f"{name!r} is not available over REST; available: {', '.join(STATISTICS)}")


def _like(name: str, ask: Callable[..., Result]) -> Callable[..., Result]:
    """Return `ask` with the name, documentation and signature of the function in `tacit.stats`."""
    local = getattr(stats, name)
    ask.__name__, ask.__qualname__, ask.__doc__ = name, name, local.__doc__
    ask.__signature__ = inspect.signature(local)  # type: ignore[attr-defined]
    return ask


def _bind_arguments(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a statistic by name, without those that are None."""
    bound = inspect.signature(getattr(stats, name)).bind(*given, **named).arguments
    stated = {**{one: value for one, value in bound.items() if one != "options"}, **bound.get("options", {})}
    for one in ("budget", "unit", "analyst"):
        if one in stated:
            raise InvalidInput(
                f"the server knows budget, unit and analyst of a table; leave {one}= out",
                name=one,
            )
    return {one: value for one, value in stated.items() if value is not None}


def encode_arguments(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON."""
    return {
        one: _encode_columns(one, value) if one in COLUMNS else encode(listed_facts(value), tagged=True)
        for one, value in stated.items()
    }


def columns_in(arguments: Mapping[str, Any]) -> dict[str, RemoteColumn]:
    """Return the columns among arguments by name, whose kinds tell dates from texts in the response."""
    found: dict[str, RemoteColumn] = {}
    waiting = list(arguments.values())
    while waiting:
        one = waiting.pop()
        if isinstance(one, RemoteColumn):
            found[one.name] = one
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, Mapping):
            waiting += one.values()
    if isinstance(about := arguments.get(VALUES), RemoteColumn):
        found[VALUES] = about
    return found


def _encode_columns(name: str, value: Any) -> Any:
    if isinstance(value, RemoteColumn):
        return column_reference(value.table, value.name, value.facts)
    if isinstance(value, RemoteTable) and name == "columns":
        return {column.name: _encode_columns(name, value[column.name]) for column in value.columns}
    if isinstance(value, Mapping) and name in ("columns", "by"):
        return {str(key): _encode_columns(name, one) for key, one in value.items()}
    if isinstance(value, list | tuple) and name == "by":
        return [_encode_columns(name, one) for one in value]
    raise WrongType(
        f"{name} must be a column of the server, such as client.table('visits')['age']; arrays are not sent, compute "
        "their statistics with tacit.stats",
        name=name,
    )


def listed_facts(value: Any) -> Any:
    """Return an argument with nested bounds and categories as lists."""
    if isinstance(value, Bounds):
        return [value.lower, value.upper]
    if isinstance(value, Categories):
        return list(value.values)
    if isinstance(value, Mapping):
        return {name: listed_facts(one) for name, one in value.items()}
    return [listed_facts(one) for one in value] if isinstance(value, list | tuple) else value
