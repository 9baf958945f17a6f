"""Questions that run: in a thread each, when it is their turn, and answered when their class of time ends.

A request waits for its question up to a limit; what takes longer becomes a job, which any process of the server can
show and cancel, because jobs are rows in the server's database. The process that runs one says every few moments that
it is alive; a job whose process has died is `lost`, and asking the same question with the same key again finishes it
without a second charge.

The outcome of a run is held back before it is committed (`pipeline.holding_outcomes`), so that no preview, repetition,
list of releases or record of the ledger shows earlier than the answer itself that the run has ended.

What a job shows of its progress is how much of its class of time has passed, never what the engine says, which depends
on the rows.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from tacit.ledger.permits import time_of
from tacit.pipeline import RUN_FAILED, holding_outcomes
from tacit.privacy.errors import Cancelled, EngineFailed, TacitError, TimedOut
from tacit.server.database import Database
from tacit.server.error_responses import document_of, unforeseen
from tacit.server.fair_queue import FairQueue
from tacit.server.quotas import Pruning
from tacit.server.response_padding import ResponseClock
from tacit.server.settings import Limits
from tacit.server.telemetry import Metrics
from tacit.wire.responses import JobResponse, ReleaseResponse, StatisticResponse

BEAT_S: Final = 0.5
LOST_AFTER_S: Final = 15.0
KEPT_S: Final = 24 * 3600.0
"""How long a job is shown after it has ended, if there is room; its answer stays among the releases."""
SHOWN_MAX: Final = 200

Answer = ReleaseResponse | StatisticResponse
Work = Callable[[], Answer]


@dataclass(eq=False)
class RunningJob:
    """A question between its request and its answer."""

    person: str
    work: Work
    class_s: float
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    thread: int | None = None
    is_cancelled: bool = False
    is_job: bool = False
    clock: ResponseClock | None = None
    task: asyncio.Task[Answer] | None = None
    filing: asyncio.Task[None] | None = None
    same: Hashable = None
    """Equal for requests that ask the same of the same data for the same person; None is equal to no other."""
    is_late: bool | None = None
    """Whether the run took longer than its class; None until its outcome was held back."""
    stopping: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """Wait, in the thread of the run, until its outcome may be seen: the end of its class, or of the server."""
        assert self.clock is not None
        self.is_late = self.clock.elapsed_s > self.clock.class_s
        self.stopping.wait(self.clock.wait_s)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of the table of jobs; its answer is read when it is asked for, after the caller was checked."""

    row: tuple[Any, ...]

    @property
    def person(self) -> str:
        """Whose job it is."""
        return str(self.row[1])

    def response(self) -> JobResponse:
        """Return what became of the job."""
        return _response(self.row, with_answer=True)


class Jobs:
    """The questions of one process, and the jobs of all."""

    def __init__(
        self, database: Database, queue: FairQueue, metrics: Metrics, stop: Callable[[int], None], limits: Limits
    ) -> None:
        self._database, self.queue, self._metrics, self._stop = database, queue, metrics, stop
        self._pruning = Pruning("jobs", limits)
        self._threads = ThreadPoolExecutor(limits.running, thread_name_prefix="tacit question")
        self._running: set[RunningJob] = set()
        self._process = secrets.token_hex(8)
        self._beating: asyncio.Task[None] | None = None

    async def answered(
        self, person: str, work: Work, class_s: float, wait_s: float, same: Hashable = None
    ) -> Answer | str:
        """Run a question and return its answer, or the id of its job if that takes longer than the wait.

        A request that is the `same` as one under way is not run again, and gets the outcome of that one.
        """
        running = self._under_way(same) or self._started(RunningJob(person, work, class_s, same=same))
        assert running.task is not None
        done, _ = await asyncio.wait({running.task}, timeout=wait_s)
        if done:
            return running.task.result()
        if running.filing is None:
            running.filing = asyncio.create_task(self._become_job(running))
        await asyncio.shield(running.filing)
        return running.id

    def _under_way(self, same: Hashable) -> RunningJob | None:
        found = (one for one in self._running if one.same == same and not one.is_cancelled)
        return None if same is None else next(found, None)

    def _started(self, running: RunningJob) -> RunningJob:
        running.task = asyncio.create_task(self._run(running))
        self._running.add(running)
        running.task.add_done_callback(lambda _: self._running.discard(running))
        return running

    async def _become_job(self, running: RunningJob) -> None:
        await asyncio.to_thread(self._file, running)
        assert running.task is not None
        if running.task.done():  # between the two: the job is there, and is told how it ended
            await asyncio.to_thread(self._end, running)
        else:
            running.task.add_done_callback(lambda _: self._ended(running))
            if self._beating is None or self._beating.done():
                self._beating = asyncio.create_task(self._beat())

    async def _run(self, running: RunningJob) -> Answer:
        async with self.queue.turn(running.person):
            running.clock = clock = ResponseClock(time.monotonic(), running.class_s)
            loop = asyncio.get_running_loop()
            try:
                return await loop.run_in_executor(self._threads, _begun, running)
            finally:
                if await clock.wait() if running.is_late is None else running.is_late:
                    self._metrics.late.inc()

    def _file(self, running: RunningJob) -> None:
        """Write that a question has become a job, and forget the oldest that have ended."""
        running.is_job, now_us = True, _now_us()
        self._database.write(
            (
                "INSERT INTO jobs (id, person, process, state, asked_at_us, changed_at_us, expected_s, is_cancelled, "
                "document) VALUES (?, ?, ?, ?, ?, ?, ?, 0, NULL)",
                (running.id, running.person, self._process, "running", now_us, now_us, running.class_s),
            ),
            ("DELETE FROM jobs WHERE changed_at_us < ?", (now_us - int(KEPT_S * 1e6),)),
        )

    def _ended(self, running: RunningJob) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._end, running)

    def _end(self, running: RunningJob) -> None:
        """Write how a job ended."""
        task = running.task
        if task is None or task.cancelled():
            state = "cancelled"
            document: BaseModel = document_of(_cancelled())
        elif (error := task.exception()) is None:
            state, document = "done", task.result()
        else:
            state = "cancelled" if isinstance(error, Cancelled) else "failed"
            document = document_of(error) if isinstance(error, TacitError) else unforeseen(error)
        text = json.dumps(document.model_dump())
        with self._database.transaction() as execute:
            execute(
                "UPDATE jobs SET state = ?, changed_at_us = ?, document = ?, bytes = ? WHERE id = ?",
                (state, _now_us(), text, len(text), running.id),
            )
            self._pruning.prune(execute, running.person, len(text))

    async def _beat(self) -> None:
        """Say that this process is alive while it has jobs, and stop those that somebody cancelled."""
        while jobs := [one for one in self._running if one.is_job]:
            flagged = await asyncio.to_thread(self._say_alive)
            for one in jobs:
                if one.id in flagged and not one.is_cancelled:
                    self._cancel(one)
            await asyncio.sleep(BEAT_S)

    def _say_alive(self) -> set[str]:
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

    def _cancel(self, running: RunningJob, *, at_once: bool = False) -> None:
        """Stop a question at the end of the class of time that it is in; one that waits for its turn, now.

        Whether it ended before it was cancelled then tells no more than the class in which it ended.
        """
        running.is_cancelled = True
        if running.clock is None:
            if running.task is not None:
                running.task.cancel()  # it still waits for its turn, and nothing is charged
        elif at_once:
            running.stopping.set()
            self._interrupt(running)
        else:
            asyncio.get_running_loop().call_later(running.clock.wait_s, self._interrupt, running)

    def _interrupt(self, running: RunningJob) -> None:
        if running.thread is not None:
            self._stop(running.thread)

    def listed(self, person: str | None) -> list[JobResponse]:
        """Return jobs, the newest first, of one person or of all."""
        where, values = ("", ()) if person is None else (" WHERE person = ?", (person,))
        rows = self._database.read(f"{_SELECT}{where} ORDER BY asked_at_us DESC LIMIT {SHOWN_MAX}", values)
        return [_response(row, with_answer=False) for row in rows]

    def find(self, job: str) -> JobRow | None:
        """Return a job, or None if there is none by this name."""
        rows = self._database.read(f"{_SELECT} WHERE id = ?", (job,))
        return JobRow(rows[0]) if rows else None

    def cancel(self, job: str) -> None:
        """Ask the process that runs a job to stop it; what was charged stays charged."""
        self._database.write(("UPDATE jobs SET is_cancelled = 1 WHERE id = ? AND state = 'running'", (job,)))

    async def close(self, within_s: float) -> None:
        """Let what runs come to its end for some seconds, then stop it."""
        tasks = {one.task for one in self._running if one.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        for one in list(self._running):
            self._cancel(one, at_once=True)
        left = {one.task for one in self._running if one.task is not None}
        if left:
            await asyncio.wait(left, timeout=LOST_AFTER_S)
        self._threads.shutdown(wait=False, cancel_futures=True)


_SELECT: Final = "SELECT id, person, state, asked_at_us, changed_at_us, expected_s, document FROM jobs"


def _begun(running: RunningJob) -> Answer:
    """Do the work of a question in this thread."""
    running.thread = threading.get_ident()
    try:
        with holding_outcomes(running.hold):
            return running.work()
    except TimedOut:  # the limit is the server's, and nothing tells it apart from another failure
        raise EngineFailed(RUN_FAILED) from None
    finally:
        running.thread = None


def _response(row: tuple[Any, ...], *, with_answer: bool) -> JobResponse:
    job, _, state, asked_at_us, changed_at_us, expected_s, document = row
    now_us = _now_us()
    if state == "running" and now_us - changed_at_us > LOST_AFTER_S * 1e6:
        state = "lost"
    until_us = now_us if state == "running" else changed_at_us
    content = json.loads(document) if with_answer and document is not None else {}
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


def _cancelled() -> Cancelled:
    return Cancelled("the question was cancelled; what was charged stays charged")
