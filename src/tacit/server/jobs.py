"""Runs of queries and statistics in a thread pool behind a fair queue, and the jobs that long ones become.

A request waits for its run up to a limit; a longer run becomes a job, a row in the server's database, which every
process of the server can show and cancel. The process that runs a job writes heartbeats; a job without them is `lost`,
and repeating its request with the same key completes it without a second charge.

The outcome of a run is held back before it is committed (`pipeline.holding_outcomes`), so that no preview, repetition,
list of releases or ledger record shows earlier than the answer itself that the run has ended.

A row names the data sets of its job. They decide whether a caller may see the job whenever it is shown, listed or
cancelled (`routes.queries`), so that neither a token limited to other data sets nor a person whose grant was withdrawn
sees it.

The progress of a job is the elapsed share of its time class, never the engine's progress, which depends on the rows.

Response padding: an answer is returned at the end of the time class that its plan predicts.

How long a query runs depends on the rows, so its duration leaks information about them. Answers, and failures after the
charge, are therefore held back for a number of seconds that depends on the plan only: its time class. A run that takes
longer than its class is answered at the end of the next one, twice as long, and so on. Such late answers are counted
(`tacit_late_answers_total`); a server with many of them needs a longer first class (`--timing-class`). The outcome is
committed at that moment and not before (`server.jobs`). Answers that were released before depend on no row and are
returned at once.

Remaining leakage: the class of a late answer, at most one bit for each doubling.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from tacit.ledger.clock import time_of
from tacit.pipeline import RUN_FAILED, Work, holding_outcomes
from tacit.privacy.errors import Cancelled, EngineFailed, TacitError, TimedOut
from tacit.server.database import Database
from tacit.server.error_responses import defect_response, error_response
from tacit.server.fair_queue import FairQueue
from tacit.server.quotas import Pruning
from tacit.server.settings import ServerLimits
from tacit.server.telemetry import Metrics
from tacit.wire.responses import JobResponse, ReleaseResponse, StatisticResponse, TrainingResponse

STEP_S: Final = 4e-8
"""An upper bound on the time of one step of `Plan.work`, on every engine; `class_of` leaves room for twice as much.

Measured are 32 ns on PostgreSQL where each comparison unpacks a stored text anew (20 of them with texts of 4,096
characters of four bytes, behind a join; the texts are cut once, below it).
`tests/conformance/engines/test_cost_of_steps.py` measures every function."""


@dataclass(frozen=True, slots=True)
class ResponseClock:
    """When a query began, and the time class that its plan predicts."""

    started_s: float
    class_s: float

    @property
    def elapsed_s(self) -> float:
        """Seconds since the query began."""
        return time.monotonic() - self.started_s

    @property
    def wait_s(self) -> float:
        """Seconds until the answer may be returned."""
        return padded_s(self.elapsed_s, self.class_s) - self.elapsed_s

    async def wait(self) -> bool:
        """Wait until the answer may be returned; return whether it was late for its class."""
        late = self.elapsed_s > self.class_s
        await asyncio.sleep(max(0.0, self.wait_s))
        return late


def class_of(work: Work, first_s: float) -> float:
    """Return the time class of a release in seconds: the first class, doubled until it covers the predicted work.

    The prediction is one first class for each statement and each table that it reads, or twice the time that one unit
    may add, if that is longer; none of it depends on a row.
    """
    return doubled(max(work.statements, 2 * work.unit_steps * STEP_S / first_s), first_s)


def doubled(times: float, first_s: float) -> float:
    """Return `first_s`, doubled until it is at least `times` as long."""
    return first_s * 2.0 ** max(0, math.ceil(math.log2(max(1.0, times))))


def padded_s(elapsed_s: float, class_s: float) -> float:
    """Return the end of the class in which a run ended: the predicted class, or 2, 4, 8 ... times as long."""
    return doubled(elapsed_s / class_s, class_s)


HEARTBEAT_S: Final = 0.5
LOST_AFTER_S: Final = 15.0
KEPT_S: Final = 24 * 3600.0
"""How long a job is listed after it has ended, within the quota; its answer stays among the releases."""
LISTED_MAX: Final = 200
READ_MAX: Final = 10 * LISTED_MAX
"""Jobs that are read for a list, of which a caller may see some."""

RunResponse = ReleaseResponse | StatisticResponse | TrainingResponse
Run = Callable[[], RunResponse]


@dataclass(eq=False)
class ActiveRun:
    """A run between its request and its response."""

    person: str
    datasets: tuple[str, ...]
    run: Run
    class_s: float
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    thread: int | None = None
    is_cancelled: bool = False
    is_job: bool = False
    clock: ResponseClock | None = None
    task: asyncio.Task[RunResponse] | None = None
    insertion: asyncio.Task[None] | None = None
    request_key: Hashable = None
    """Equal for requests of one person for the same answer on the same data; None matches no other run."""
    is_late: bool | None = None
    """Whether the run took longer than its time class; None until its outcome is held back."""
    stopping: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """Wait, in the thread of the run, until its time class ends or the server stops."""
        assert self.clock is not None
        self.is_late = self.clock.elapsed_s > self.clock.class_s
        self.stopping.wait(self.clock.wait_s)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A database row of a job; its response is built after the caller's permission was checked."""

    row: tuple[Any, ...]

    @property
    def person(self) -> str:
        """The person who made the request."""
        return str(self.row[1])

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets of the request; empty, so unknown, for a job of a version that did not store them."""
        return tuple(json.loads(self.row[2]))

    def response(self) -> JobResponse:
        """Return the job; with its answer or error, if the row has its document."""
        return _response(self.row)


class Jobs:
    """The active runs of one process, and the jobs of all processes."""

    def __init__(
        self, database: Database, queue: FairQueue, metrics: Metrics, stop: Callable[[int], None], limits: ServerLimits
    ) -> None:
        self._database, self.queue, self._metrics, self._stop = database, queue, metrics, stop
        self._pruning = Pruning("jobs", limits)
        self._threads = ThreadPoolExecutor(limits.running, thread_name_prefix="tacit query")
        self._running: set[ActiveRun] = set()
        self._process = secrets.token_hex(8)
        self._heartbeat: asyncio.Task[None] | None = None

    async def run(
        self,
        person: str,
        datasets: Iterable[str],
        run: Run,
        class_s: float,
        wait_s: float,
        request_key: Hashable = None,
    ) -> RunResponse | str:
        """Return the response of a run about data sets, or the id of its job if it takes longer than `wait_s`.

        While a run with the same `request_key` is active, its outcome is returned instead of running again.
        """
        running = self._find_active(request_key) or self._start(
            ActiveRun(person, tuple(datasets), run, class_s, request_key=request_key)
        )
        assert running.task is not None
        done, _ = await asyncio.wait({running.task}, timeout=wait_s)
        if done:
            return running.task.result()
        if running.insertion is None:
            running.insertion = asyncio.create_task(self._make_job(running))
        await asyncio.shield(running.insertion)
        return running.id

    def _find_active(self, request_key: Hashable) -> ActiveRun | None:
        found = (one for one in self._running if one.request_key == request_key and not one.is_cancelled)
        return None if request_key is None else next(found, None)

    def _start(self, running: ActiveRun) -> ActiveRun:
        running.task = asyncio.create_task(self._run(running))
        self._running.add(running)
        running.task.add_done_callback(lambda _: self._running.discard(running))
        return running

    async def _make_job(self, running: ActiveRun) -> None:
        await asyncio.to_thread(self._insert, running)
        assert running.task is not None
        if running.task.done():  # while the row was inserted
            await asyncio.to_thread(self._write_outcome, running)
        else:
            running.task.add_done_callback(lambda _: self._write_outcome_later(running))
            if self._heartbeat is None or self._heartbeat.done():
                self._heartbeat = asyncio.create_task(self._send_heartbeats())

    async def _run(self, running: ActiveRun) -> RunResponse:
        async with self.queue.slot(running.person):
            running.clock = clock = ResponseClock(time.monotonic(), running.class_s)
            loop = asyncio.get_running_loop()
            try:
                return await loop.run_in_executor(self._threads, _run_in_thread, running)
            finally:
                if await clock.wait() if running.is_late is None else running.is_late:
                    self._metrics.late.inc()

    def _insert(self, running: ActiveRun) -> None:
        """Insert the row of a job, and delete those that ended long ago."""
        running.is_job, now_us = True, _now_us()
        self._database.write(
            (
                "INSERT INTO jobs (id, person, datasets, process, state, asked_at_us, changed_at_us, expected_s, "
                "is_cancelled, document) VALUES (?, ?, ?, ?, 'running', ?, ?, ?, 0, NULL)",
                (
                    *(running.id, running.person, json.dumps(running.datasets), self._process),
                    *(now_us, now_us, running.class_s),
                ),
            ),
            ("DELETE FROM jobs WHERE changed_at_us < ?", (now_us - int(KEPT_S * 1e6),)),
        )

    def _write_outcome_later(self, running: ActiveRun) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._write_outcome, running)

    def _write_outcome(self, running: ActiveRun) -> None:
        """Write the response or error of a job to its row."""
        task = running.task
        if task is None or task.cancelled():
            state = "cancelled"
            document: BaseModel = error_response(_cancelled_error())
        elif (error := task.exception()) is None:
            state, document = "done", task.result()
        else:
            state = "cancelled" if isinstance(error, Cancelled) else "failed"
            document = error_response(error) if isinstance(error, TacitError) else defect_response(error)
        text = json.dumps(document.model_dump())
        with self._database.transaction() as execute:
            execute(
                "UPDATE jobs SET state = ?, changed_at_us = ?, document = ?, bytes = ? WHERE id = ?",
                (state, _now_us(), text, len(text), running.id),
            )
            self._pruning.prune(execute, running.person, len(text))

    async def _send_heartbeats(self) -> None:
        """Write heartbeats while this process has jobs, and stop the jobs that were cancelled."""
        while jobs := [one for one in self._running if one.is_job]:
            flagged = await asyncio.to_thread(self._write_heartbeat)
            for one in jobs:
                if one.id in flagged and not one.is_cancelled:
                    self._cancel(one)
            await asyncio.sleep(HEARTBEAT_S)

    def _write_heartbeat(self) -> set[str]:
        self._database.write(
            (
                "UPDATE jobs SET changed_at_us = ? WHERE process = ? AND state = 'running'",
                (_now_us(), self._process),
            )
        )
        rows = self._database.read(
            "SELECT id FROM jobs WHERE process = ? AND state = 'running' AND is_cancelled = 1", (self._process,)
        )
        return {row[0] for row in rows}

    def _cancel(self, running: ActiveRun, *, at_once: bool = False) -> None:
        """Stop a run at the end of its present time class; one that still waits in the queue, at once.

        Whether it ended before it was cancelled then reveals no more than the class in which it ended.
        """
        running.is_cancelled = True
        if running.clock is None:
            if running.task is not None:
                running.task.cancel()  # it waits in the queue, and nothing was charged
        elif at_once:
            running.stopping.set()
            self._interrupt(running)
        else:
            asyncio.get_running_loop().call_later(running.clock.wait_s, self._interrupt, running)

    def _interrupt(self, running: ActiveRun) -> None:
        if running.thread is not None:
            self._stop(running.thread)

    def list_jobs(self, person: str | None) -> list[JobRow]:
        """Return the jobs of one person or of all without their documents, newest first, at most READ_MAX."""
        where, values = ("", ()) if person is None else (" WHERE person = ?", (person,))
        sql = f"SELECT {_COLUMNS}, NULL FROM jobs{where} ORDER BY asked_at_us DESC LIMIT {READ_MAX}"
        return [JobRow(row) for row in self._database.read(sql, values)]

    def find(self, job: str) -> JobRow | None:
        """Return a job, or None."""
        rows = self._database.read(f"SELECT {_COLUMNS}, document FROM jobs WHERE id = ?", (job,))
        return JobRow(rows[0]) if rows else None

    def cancel(self, job: str) -> None:
        """Mark a job as cancelled for the process that runs it; what was charged stays charged."""
        self._database.write(("UPDATE jobs SET is_cancelled = 1 WHERE id = ? AND state = 'running'", (job,)))

    async def close(self, within_s: float) -> None:
        """Wait `within_s` for active runs to end, then stop them and the threads."""
        tasks = {one.task for one in self._running if one.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        for one in list(self._running):
            self._cancel(one, at_once=True)
        left = {one.task for one in self._running if one.task is not None}
        if left:
            await asyncio.wait(left, timeout=LOST_AFTER_S)
        self._threads.shutdown(wait=False, cancel_futures=True)


_COLUMNS: Final = "id, person, datasets, state, asked_at_us, changed_at_us, expected_s"


def _run_in_thread(running: ActiveRun) -> RunResponse:
    """Execute a run in the current thread."""
    running.thread = threading.get_ident()
    try:
        with holding_outcomes(running.hold):
            return running.run()
    except TimedOut:  # must look like any other failure of a run
        raise EngineFailed(RUN_FAILED) from None
    finally:
        running.thread = None


def _response(row: tuple[Any, ...]) -> JobResponse:
    job, _, _, state, asked_at_us, changed_at_us, expected_s, document = row
    now_us = _now_us()
    if state == "running" and now_us - changed_at_us > LOST_AFTER_S * 1e6:
        state = "lost"
    until_us = now_us if state == "running" else changed_at_us
    content = json.loads(document) if document is not None else {}
    return JobResponse(
        id=job,
        state=state,
        asked_at=time_of(asked_at_us),
        elapsed_s=round((until_us - asked_at_us) / 1e6, 1),
        expected_s=expected_s,
        release=content if content and "error" not in content else None,
        error=content.get("error"),
    )


def _now_us() -> int:
    return time.time_ns() // 1000


def _cancelled_error() -> Cancelled:
    return Cancelled("the query was cancelled; what was charged stays charged")
