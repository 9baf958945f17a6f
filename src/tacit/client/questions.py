"""A question on its way: its document, its key, and the job that it becomes when it takes long.

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
from typing import Any, Final

from tacit.client.failures import error_of, understood
from tacit.client.release import RemotePreview, RemoteRelease
from tacit.client.tables import limits_document
from tacit.client.values import number_document, tagged
from tacit.client.wire import Reply, Wire
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
from tacit.privacy.tables import Limits

WAIT_S: Final = 2.0
"""How long a request waits for its answer before the question becomes a job, which can be cancelled."""

POLL_S: Final = 0.1
POLL_MAX_S: Final = 1.0
LOST_MAX: Final = 2
"""How often a question is asked again whose process at the server died."""

KEY_MAX: Final = 180

Progress = Callable[[float], None]


def question_document(
    sql: str,
    *,
    epsilon: object = None,
    rho: object = None,
    error: object = None,
    delta: object = None,
    analyst: str | None = None,
    purpose: str = "",
    limits: Limits | None = None,
    keys: Mapping[str, Sequence[Category]] | None = None,
    other: bool = False,
) -> dict[str, Any]:
    """Return a question for the wire, with what was said of it."""
    if not isinstance(sql, str):
        raise WrongType(f"a query is a text, not {type(sql).__name__}", name="sql")
    if analyst is not None:
        raise InvalidInput("who asks a server is said by the token, not by analyst=", name="analyst", value=analyst)
    prices = {"epsilon": epsilon, "rho": rho, "error": error, "delta": delta}
    document: dict[str, Any] = {
        "sql": sql,
        **{name: number_document(name, value) for name, value in prices.items()},
        "purpose": texts.note("purpose", purpose) or None,
        "limits": limits_document(limits) or None,
        "keys": None if keys is None else _keys_document(keys),
        "other": truth_value("other", other) or None,
    }
    return {name: value for name, value in document.items() if value is not None}


def _keys_document(keys: Mapping[str, Sequence[Category]]) -> dict[str, Any]:
    stated = mapping("keys", keys, "a list of values for each key")
    return {
        name: tagged(instances("keys", one, object, "a list of values for each key")) for name, one in stated.items()
    }


class Asking:
    """How questions are put to one server."""

    def __init__(
        self, wire: Wire, sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wire, self._sleep, self._clock = wire, sleep, clock
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

    def release(
        self,
        question: Mapping[str, Any],
        key: str | None,
        level: float,
        progress: Progress | None,
        timeout_s: float | None = None,
    ) -> RemoteRelease:
        """Ask a question and return its answer, or raise; after `timeout_s` seconds it is waited for no longer."""
        own, share, deadline_s = _own_key(key), level_of(level), self._deadline_s(timeout_s)
        require_progress(progress)
        with self._under_way():
            document = self._asked("queries", {**question, "level": share}, own, progress, deadline_s)
        return RemoteRelease(document, lambda other: self._again(question, own, other))

    def preview(self, question: Mapping[str, Any]) -> RemotePreview:
        """Ask what a question would be charged."""
        return RemotePreview.read(self._wire.post("preview", body=question, is_repeatable=True))

    def statistic(
        self,
        function: str,
        arguments: Mapping[str, Any],
        level: float,
        timeout_s: float | None = None,
        key: str | None = None,
    ) -> Mapping[str, Any]:
        """Ask for a statistic and return the document of its answer; with its key it is sent again if that is lost."""
        own, share, deadline_s = _own_key(key), level_of(level), self._deadline_s(timeout_s)
        body = {"function": function, "arguments": arguments, "level": share}
        with self._under_way():
            return self._asked("statistics", body, own, None, deadline_s)

    def _wait_s(self, deadline_s: float | None = None) -> float:
        wait_s = min(WAIT_S, self._wire.timeout_s / 2)
        return wait_s if deadline_s is None else max(0.0, min(wait_s, deadline_s - self._clock()))

    def _again(self, question: Mapping[str, Any], key: str, level: float) -> Mapping[str, Any]:
        """Ask a question that was answered before, for its intervals at another level; never pays for it.

        The same key is not charged twice; and an answer that was not charged the first time is asked for only while
        it is the released one.
        """
        if not self.preview(_previewed(question)).is_released:
            raise QueryRefused(
                "the data were changed since, and the same question would be charged anew",
                accepted=f"ask it with level={level:g}",
            )
        with self._under_way():
            return self._asked("queries", {**question, "level": level}, key, None)

    def _deadline_s(self, timeout_s: float | None) -> float | None:
        limit_s = time_limit(timeout_s)
        return None if limit_s is None else self._clock() + limit_s

    def _asked(
        self,
        path: str,
        question: Mapping[str, Any],
        key: str,
        progress: Progress | None,
        deadline_s: float | None = None,
    ) -> Mapping[str, Any]:
        """Return the document of an answer; a question whose process died is asked again, with the same key."""
        for _ in range(1 + LOST_MAX):
            reply = self._sent(path, {**question, "wait_s": self._wait_s(deadline_s)}, key)
            document = reply.document if reply.status != 202 else self._followed(_job(reply), progress, deadline_s, key)
            if document is not None:
                return document
        raise ServerFailed(f"the server lost the question {1 + LOST_MAX} times; ask again with key={key!r}")

    def _sent(self, path: str, question: Mapping[str, Any], key: str) -> Reply:
        try:
            return self._wire.ask("POST", path, body=question, key=key)
        except ServerUnreachable as error:
            if type(error) is not ServerUnreachable:
                raise
            sentence = f"{error.message}; ask again with key={key!r}, and it is charged once"
        raise ServerUnreachable(sentence)

    def _followed(
        self, job: str, progress: Progress | None, deadline_s: float | None, key: str
    ) -> Mapping[str, Any] | None:
        """Wait for a job and return the document of its answer, or None if the server lost it."""
        pause_s, is_stopped, here = POLL_S, False, threading.get_ident()
        try:
            while True:
                if self._waiting[here] and not is_stopped:
                    self._wire.delete("jobs", job)  # what the job says then is what happened
                    is_stopped, pause_s = True, POLL_S
                document = self._wire.get("jobs", job)
                with understood("the job"):
                    state = document["state"]
                if state not in ("waiting", "running"):
                    return _ended(job, document)
                if progress is not None:
                    with understood("the job"):
                        share = min(0.99, document["elapsed_s"] / max(document["expected_s"], 0.1))
                    with suppress(Exception):  # to be told is a courtesy, and must not lose the answer
                        progress(share)
                if deadline_s is not None and self._clock() >= deadline_s:
                    raise TimedOut(
                        f"the question goes on at the server as the job {job}, and what was charged stays charged; for "
                        f"its answer without a second charge, ask again with key={key!r}"
                    )
                self._sleep(pause_s)
                pause_s = min(pause_s * 1.5, POLL_MAX_S)
        except KeyboardInterrupt:
            self._wire.delete("jobs", job)
            raise


def _own_key(key: str | None) -> str:
    """Return the key of a question: the one that was given, or a new one."""
    own = secrets.token_hex(16) if key is None else texts.key(key)
    if not 0 < len(own) <= KEY_MAX or not all(" " <= one <= "~" for one in own):
        raise InvalidInput(f"a key is a text of up to {KEY_MAX} plain letters", name="key", value=key)
    return own


def _job(reply: Reply) -> str:
    with understood("the job"):
        return str(reply.document["job"])


def _ended(job: str, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a job came to, or raise what it failed with."""
    state = document["state"]
    if state == "done":
        with understood("the job"):
            return dict(document["release"])
    if state == "lost":
        return None
    if document.get("error") is not None:
        with understood("the error of the job"):
            error = error_of(document)
        raise error
    if state == "cancelled":
        raise Cancelled("the question was cancelled; what was charged stays charged")
    raise ServerFailed(f"the job {job} ended as {state!r}, and the server does not say why")


def _previewed(question: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in question.items() if name not in ("purpose", "level")}
