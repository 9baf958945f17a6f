"""One statement at a time: its time limit, cancelling, progress, and its answer by columns.

Promise: a statement ends with its answer or with an error whose sentence is the same whatever the data hold; what Spark
said is dropped, chained errors included. Afterwards the engine can be used as before. Spark can be interrupted while it
works on rows; while it plans a statement, a time limit waits for the plan.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC
from itertools import count
from typing import Any, Final, TypeVar

import numpy as np

from tacit.engines.execution import UnderWay, one_zero
from tacit.engines.protocol import Columns, Progress
from tacit.engines.spark.sessions import Session, context_of, end_java, failed
from tacit.privacy.errors import Cancelled, EngineFailed, TacitError, TimedOut

T = TypeVar("T")

POLL_S: Final = 0.1
INSIST_S: Final = 0.1
"""An interrupt that comes before the statement has begun is lost, so it is repeated."""

TIMEOUT_MAX_S: Final = 3_600.0
"""How long work lasts for which no other limit is given, such as the checks at registration."""

STUCK_S = 60.0
"""How long work may take to stop; a Spark of this process that has not stopped by then is ended, and begun anew."""

_TAGS: Final = count()
_INT64: Final = range(-(2**63), 2**63)


class Runs:
    """The statements that run now, each in its own thread, and how to stop them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._under_way = UnderWay()

    def cancel(self, thread: int | None = None) -> None:
        """Make the statement that a thread runs now raise Cancelled, or every one."""
        self._under_way.cancel(thread)

    def run(
        self,
        work: Callable[[], T],
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
        failure: str,
        otherwise: type[EngineFailed] = EngineFailed,
    ) -> T:
        """Do work of the session; `failure` and `otherwise` are for whatever goes wrong in Spark."""
        watch = _Watch(self._session, timeout_s, progress)
        error: BaseException
        watch.start()
        try:
            with self._under_way.holding(watch), watch.tagged():
                return work()
        except TacitError as known:
            error = watch.reason(timeout_s) or known
        except Exception as caught:
            error = watch.reason(timeout_s) or failed(caught, failure, otherwise)
        except KeyboardInterrupt:
            watch.interrupt()  # Spark would work on
            raise
        finally:
            watch.stop()
        raise error  # here and not above, so that it does not carry Spark's error along


class _Watch:
    """Interrupts what runs under its tag when its time is up or somebody cancels, and tells its progress."""

    def __init__(self, session: Session, timeout_s: float | None, progress: Progress | None) -> None:
        self._session, self._context, self._progress = session, context_of(session), progress
        self._tag = f"tacit-{next(_TAGS)}"
        self._deadline_s = time.monotonic() + (TIMEOUT_MAX_S if timeout_s is None else timeout_s)
        self._stopping_s: float | None = None
        self._wake = threading.Event()
        self._done = threading.Event()
        self._cancelled = self._late = False
        self._interrupting: threading.Thread | None = None
        self._share = 0.0
        self._thread = threading.Thread(target=self._watch, name="tacit engine watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Mark what this thread asks of Spark, so that it can be found again from another one."""
        self._mark()
        try:
            yield
        finally:
            with suppress(Exception):  # Spark is gone, then
                self._unmark()

    def _mark(self) -> None:
        if self._context is None:
            self._session.addTag(self._tag)
            if self._progress is not None:
                self._session.registerProgressHandler(self._told)
        else:  # the tags of a session are those of one thread, and cannot be named in another
            self._context.addJobTag(self._tag)
            self._context.setLocalProperty("spark.jobGroup.id", self._tag)

    def _unmark(self) -> None:
        if self._context is None:
            self._session.removeTag(self._tag)
            if self._progress is not None:
                self._session.removeProgressHandler(self._told)
        else:
            self._context.removeJobTag(self._tag)
            self._context.setLocalProperty("spark.jobGroup.id", None)

    def cancel(self) -> None:
        """Interrupt the work."""
        self._cancelled = True
        self._wake.set()

    def stop(self) -> None:
        """End watching: the work is done."""
        self._done.set()
        self._wake.set()
        self._thread.join()

    def interrupt(self) -> None:
        """Make Spark stop what runs under the tag."""
        with suppress(Exception):  # Spark is gone, and the work with it
            if self._context is None:
                self._session.interruptTag(self._tag)
            else:
                self._context.cancelJobsWithTag(self._tag)

    def reason(self, timeout_s: float | None) -> EngineFailed | None:
        """Return why the work was interrupted, if it was."""
        if self._cancelled:
            return Cancelled("the question was cancelled while it ran; what was charged stays charged")
        if self._late:
            limit_s = TIMEOUT_MAX_S if timeout_s is None else timeout_s
            return TimedOut(
                f"the question took longer than its time limit of {limit_s:g} s; what was charged stays charged"
            )
        return None

    def _watch(self) -> None:
        while not self._done.is_set():
            left_s = self._deadline_s - time.monotonic()
            if left_s <= 0:
                self._late = True
            if self._cancelled or self._late:
                self._stop()
                continue
            self._wake.wait(left_s if self._progress is None else min(left_s, POLL_S))
            self._wake.clear()
            if not self._done.is_set() and self._progress is not None:
                self._look()

    def _stop(self) -> None:
        """Interrupt the work once more, or end a Spark that has not stopped for long: it plans, or is out of memory."""
        now_s = time.monotonic()
        self._stopping_s = self._stopping_s or now_s
        if now_s - self._stopping_s > STUCK_S and self._context is not None:
            end_java()
        elif self._interrupting is None or not self._interrupting.is_alive():  # which may wait for Spark as well
            self._interrupting = threading.Thread(target=self.interrupt, name="tacit engine interrupt", daemon=True)
            self._interrupting.start()
        self._done.wait(INSIST_S)

    def _look(self) -> None:
        """Ask a Spark of this process how many tasks are done."""
        with suppress(Exception):  # to be told is a courtesy, and must not stop the work
            if self._context is None:
                return
            tracker = self._context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._tag)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            known = [one for one in stages if one is not None]
            self._tell(sum(one.numCompletedTasks for one in known), sum(one.numTasks for one in known))

    def _told(self, stages: Any = (), **_: Any) -> None:
        """Be told by Spark Connect how many tasks are done."""
        with suppress(Exception):
            known = list(stages or ())
            self._tell(sum(one.num_completed_tasks for one in known), sum(one.num_tasks for one in known))

    def _tell(self, done: int, tasks: int) -> None:
        if tasks and self._progress is not None:
            self._share = max(self._share, min(done / tasks, 1.0))
            self._progress(self._share)


def answer(session: Session, sql: str, parameters: Mapping[str, Any] | None = None) -> Columns:
    """Run one SELECT and return its columns."""
    frame = session.sql(sql, args=dict(parameters)) if parameters else session.sql(sql)
    table = frame.toArrow()
    return one_zero({name: _values(table.column(index)) for index, name in enumerate(table.column_names)})


def _values(column: Any) -> Sequence[Any]:
    """Return a column; whole numbers of any size stay whole, and fixed-point ones are doubles."""
    import pyarrow as pa

    kind, present = column.type, column.null_count == 0
    if pa.types.is_integer(kind) and present:
        return column.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    if pa.types.is_floating(kind) and present:
        return column.to_numpy().astype(np.float64)  # type: ignore[no-any-return]
    values: list[Any] = column.to_pylist()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return [None if one is None else one.astimezone(UTC).replace(tzinfo=None) for one in values]
    if not pa.types.is_decimal(kind):
        return values
    if kind.scale > 0:
        reals = [None if one is None else float(one) for one in values]
        return np.array(reals, dtype=np.float64) if present else reals  # type: ignore[return-value]
    whole = [None if one is None else int(one) for one in values]
    fits = present and all(one in _INT64 for one in whole)
    return np.array(whole, dtype=np.int64) if fits else whole  # type: ignore[return-value]
