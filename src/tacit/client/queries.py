"""Questions to a server: their requests, their keys, and the jobs that they become when they take long.

Promise: a question carries a key that the server charges once, so it is sent again whenever its answer was lost; a
job is followed until it is done, and Ctrl-C cancels it. Asking for the intervals of an answer at another level is never
charged: whether the answer is still the released one is asked before.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast

from tacit.client.answers import RemotePreview, RemoteRelease
from tacit.client.errors import error_of, parsed, understood
from tacit.client.resources import limits_request
from tacit.client.transport import Reply, Transport
from tacit.privacy import texts
from tacit.privacy.arguments import instances, mapping, require_progress
from tacit.privacy.bounds import Category
from tacit.privacy.errors import (
    Cancelled,
    InvalidInput,
    QueryRefused,
    ServerFailed,
    ServerUnreachable,
    TimedOut,
    WrongType,
)
from tacit.privacy.numbers import level_of, time_limit, truth_value
from tacit.query.options import PLAN_OPTIONS, PlanOptions, QueryOptions, check_options
from tacit.wire.requests import KEY_MAX, QueryRequest, StatisticRequest
from tacit.wire.responses import (
    AcceptedResponse,
    JobResponse,
    PreviewResponse,
    ReleaseResponse,
    StatisticResponse,
)
from tacit.wire.values import encode, encode_number

Answer = TypeVar("Answer", ReleaseResponse, StatisticResponse)

WAIT_S: Final = 2.0
"""How long a request waits for its answer before the question becomes a job, which can be cancelled."""

POLL_S: Final = 0.1
POLL_MAX_S: Final = 1.0
LOST_MAX: Final = 2
"""How often a question is asked again whose process at the server died."""

Progress = Callable[[float], None]


def query_request(sql: str, epsilon: object, options: QueryOptions) -> QueryRequest:
    """Return a question for the wire, with what was said of it; what only this side does with it is left out."""
    check_options(options)
    if not isinstance(sql, str):
        raise WrongType(f"a query is a text, not {type(sql).__name__}", name="sql")
    if (analyst := options.get("analyst")) is not None:
        raise InvalidInput("the token says who asks a server; leave analyst= out", name="analyst", value=analyst)
    prices = {"epsilon": epsilon, **{name: options.get(name) for name in ("rho", "error", "delta")}}
    return QueryRequest.stated(
        sql=sql,
        **{name: encode_number(name, value) for name, value in prices.items()},
        purpose=texts.note("purpose", options.get("purpose", "")) or None,
        limits=limits_request(options.get("limits")),
        keys=_keys(options.get("keys")),
        other=truth_value("other", options.get("other", False)) or None,
    )


def plan_request(sql: str, epsilon: object, options: PlanOptions, analyst: str | None = None) -> QueryRequest:
    """Return a question that is planned and not run; arguments of a run are refused as unknown."""
    check_options(options, PLAN_OPTIONS)
    return query_request(sql, epsilon, cast("QueryOptions", {**options, "analyst": analyst}))


def _keys(keys: Mapping[str, Sequence[Category]] | None) -> dict[str, Any] | None:
    if keys is None:
        return None
    wanted = "a list of values for each key"
    stated = mapping("keys", keys, wanted)
    return {name: encode(instances("keys", one, object, wanted), tagged=True) for name, one in stated.items()}


class QueryRunner:
    """Sends questions and statistics to one server, and follows the jobs that they become."""

    def __init__(
        self,
        transport: Transport,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport, self._sleep, self._clock = transport, sleep, clock
        self._lock: Final = threading.Lock()
        self._waiting: Final[dict[int, bool]] = {}
        """The threads that wait for an answer, and whether each was told to stop."""

    def stop(self, thread: int | None = None) -> None:
        """Let the question of a thread, or of all, be cancelled; that thread does it when it next looks."""
        with self._lock:
            for one in self._waiting:
                self._waiting[one] |= thread is None or one == thread

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        here = threading.get_ident()
        with self._lock:
            self._waiting[here] = False
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[here]

    def release(self, sql: str, epsilon: object, level: float, options: QueryOptions) -> RemoteRelease:
        """Ask a question and return its answer, or raise; after `timeout_s` seconds it is waited for no longer."""
        query, progress = query_request(sql, epsilon, options), options.get("progress")
        own, share, deadline_s = _own_key(options.get("key")), level_of(level), self._deadline_s(options)
        require_progress(progress)
        request = query.model_copy(update={"level": share})
        with self._under_way():
            response = self._asked(ReleaseResponse, "queries", request, own, progress, deadline_s)
        return RemoteRelease(response, lambda other: self._again(query, own, other))

    def preview(self, query: QueryRequest) -> RemotePreview:
        """Ask what a question would be charged."""
        return RemotePreview.read(self._transport.post(PreviewResponse, "preview", body=query, is_repeatable=True))

    def statistic(
        self,
        function: str,
        arguments: Mapping[str, Any],
        level: float,
        timeout_s: float | None = None,
        key: str | None = None,
    ) -> StatisticResponse:
        """Ask for a statistic and return its answer; with its key it is sent again if that is lost."""
        own, share, deadline_s = _own_key(key), level_of(level), self._deadline_s({"timeout_s": timeout_s})
        request = StatisticRequest.stated(function=function, arguments=dict(arguments), level=share)
        with self._under_way():
            return self._asked(StatisticResponse, "statistics", request, own, None, deadline_s)

    def statistic_preview(self, function: str, arguments: Mapping[str, Any]) -> RemotePreview:
        """Ask what a statistic would be charged."""
        request = StatisticRequest.stated(function=function, arguments=dict(arguments))
        response = self._transport.post(PreviewResponse, "statistics", "preview", body=request, is_repeatable=True)
        return RemotePreview.read(response)

    def _wait_s(self, deadline_s: float | None = None) -> float:
        wait_s = min(WAIT_S, self._transport.timeout_s / 2)
        return wait_s if deadline_s is None else max(0.0, min(wait_s, deadline_s - self._clock()))

    def _again(self, query: QueryRequest, key: str, level: float) -> ReleaseResponse:
        """Ask a question that was answered before, for its intervals at another level; never pays for it.

        The same key is not charged twice; and an answer that was not charged the first time is asked for only while
        it is the released one.
        """
        if not self.preview(_without(query, "purpose")).is_released:
            raise QueryRefused(
                "the data were changed since, and the same question would be charged anew",
                accepted=f"ask it with level={level:g}",
            )
        request = query.model_copy(update={"level": level})
        with self._under_way():
            return self._asked(ReleaseResponse, "queries", request, key, None)

    def _deadline_s(self, options: QueryOptions) -> float | None:
        limit_s = time_limit(options.get("timeout_s"))
        return None if limit_s is None else self._clock() + limit_s

    def _asked(
        self,
        model: type[Answer],
        path: str,
        request: QueryRequest | StatisticRequest,
        key: str,
        progress: Progress | None,
        deadline_s: float | None = None,
    ) -> Answer:
        """Return an answer; a question whose process died is asked again, with the same key."""
        for _ in range(1 + LOST_MAX):
            reply = self._sent(path, request.model_copy(update={"wait_s": self._wait_s(deadline_s)}), key)
            document = reply.document
            if reply.status == 202:
                job = parsed(AcceptedResponse, document, "the job").job
                document = self._followed(job, progress, deadline_s, key)
            if document is not None:
                return parsed(model, document, "the answer")
        raise ServerFailed(f"the server lost the question {1 + LOST_MAX} times; ask again with key={key!r}")

    def _sent(self, path: str, request: QueryRequest | StatisticRequest, key: str) -> Reply:
        try:
            return self._transport.ask("POST", path, body=request, key=key)
        except ServerUnreachable as error:
            if type(error) is not ServerUnreachable:
                raise
            sentence = f"{error.message}; ask again with key={key!r}, and it is charged once"
        raise ServerUnreachable(sentence)

    def _followed(self, job: str, progress: Progress | None, deadline_s: float | None, key: str) -> Any:
        """Wait for a job and return the document of its answer, or None if the server lost it."""
        pause_s, is_stopped, here = POLL_S, False, threading.get_ident()
        try:
            while True:
                if self._waiting[here] and not is_stopped:
                    self._transport.delete("jobs", job)  # what the job says then is what happened
                    is_stopped, pause_s = True, POLL_S
                found = self._transport.get(JobResponse, "jobs", job)
                if not found.is_running:
                    return _ended(found)
                if progress is not None:
                    with suppress(Exception):  # to be told is a courtesy, and must not lose the answer
                        progress(min(0.99, found.elapsed_s / max(found.expected_s, 0.1)))
                if deadline_s is not None and self._clock() >= deadline_s:
                    raise TimedOut(
                        f"the question goes on at the server as the job {job}, and what was charged stays charged; for "
                        f"its answer without a second charge, ask again with key={key!r}"
                    )
                self._sleep(pause_s)
                pause_s = min(pause_s * 1.5, POLL_MAX_S)
        except KeyboardInterrupt:
            self._transport.delete("jobs", job)
            raise


def _own_key(key: str | None) -> str:
    """Return the key of a question: the one that was given, or a new one."""
    own = secrets.token_hex(16) if key is None else texts.key(key)
    if not 0 < len(own) <= KEY_MAX or not all(" " <= one <= "~" for one in own):
        raise InvalidInput(f"a key is a text of up to {KEY_MAX} plain letters", name="key", value=key)
    return own


def _ended(job: JobResponse) -> Any:
    """Return what a job came to, or raise what it failed with."""
    if job.state == "done" and job.release is not None:
        return job.release
    if job.state == "lost":
        return None
    if job.error is not None:
        with understood("the error of the job"):
            error = error_of(job.error)
        raise error
    if job.state == "cancelled":
        raise Cancelled("the question was cancelled; what was charged stays charged")
    raise ServerFailed(f"the job {job.id} ended as {job.state!r}, and the server does not say why")


def _without(query: QueryRequest, name: str) -> QueryRequest:
    return QueryRequest.model_validate(query.model_dump(exclude_unset=True, exclude={name}))
