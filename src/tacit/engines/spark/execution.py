"""Statements on Spark: time limit, cancellation, progress, and the answer by columns.

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

from tacit.engines.execution import RunningStatements, Watchdog, normalize_zeros
from tacit.engines.protocol import Columns, Progress
from tacit.engines.spark.sessions import Session, context_of, end_java, engine_error
from tacit.privacy.errors import EngineFailed, TacitError

T = TypeVar("T")

INSIST_S: Final = 0.1
"""How long after an interrupt the next one is sent."""

TIMEOUT_MAX_S: Final = 3_600.0
"""How long work lasts for which no other limit is given, such as the checks at registration."""

STUCK_S = 60.0
"""How long work may take to stop; a Spark of this process that has not stopped by then is ended, and begun anew."""

_TAGS: Final = count()
_INT64: Final = range(-(2**63), 2**63)


class SparkStatements(RunningStatements):
    """The statements of one session that run now."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

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
        watchdog = _SparkWatchdog(self._session, timeout_s, progress)
        error: BaseException
        try:
            with watchdog, self.tracking(watchdog), watchdog.tagged():
                return work()
        except TacitError as known:
            error = watchdog.error or known
        except Exception as caught:
            error = watchdog.error or engine_error(caught, failure, otherwise)
        except KeyboardInterrupt:
            watchdog.interrupt()  # Spark would work on
            raise
        raise error  # here and not above, so that it does not carry Spark's error along


class _SparkWatchdog(Watchdog):
    """Interrupts the jobs that run under a tag of their own, and counts their tasks."""

    def __init__(self, session: Session, timeout_s: float | None, progress: Progress | None) -> None:
        super().__init__(TIMEOUT_MAX_S if timeout_s is None else timeout_s, progress)
        self._session, self._context = session, context_of(session)
        self._tag = f"tacit-{next(_TAGS)}"
        self._stopping_s: float | None = None
        self._interrupting: threading.Thread | None = None
        self._share = 0.0

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Tag what this thread asks of Spark, so that another thread can interrupt it."""
        self._add_tag()
        try:
            yield
        finally:
            with suppress(Exception):  # Spark is gone, then
                self._remove_tag()

    def _add_tag(self) -> None:
        if self._context is None:
            self._session.addTag(self._tag)
            if self._progress is not None:
                self._session.registerProgressHandler(self._handle_progress)
        else:  # the tags of a session are those of one thread, and cannot be named in another
            self._context.addJobTag(self._tag)
            self._context.setLocalProperty("spark.jobGroup.id", self._tag)

    def _remove_tag(self) -> None:
        if self._context is None:
            self._session.removeTag(self._tag)
            if self._progress is not None:
                self._session.removeProgressHandler(self._handle_progress)
        else:
            self._context.removeJobTag(self._tag)
            self._context.setLocalProperty("spark.jobGroup.id", None)

    def interrupt(self) -> None:
        """Make Spark stop what runs under the tag."""
        with suppress(Exception):  # Spark is gone, and the work with it
            if self._context is None:
                self._session.interruptTag(self._tag)
            else:
                self._context.cancelJobsWithTag(self._tag)

    def _interrupt_once(self) -> None:
        """Interrupt the work once more, or end a Spark that has not stopped for long: it plans, or is out of memory."""
        now_s = time.monotonic()
        self._stopping_s = self._stopping_s or now_s
        if now_s - self._stopping_s > STUCK_S and self._context is not None:
            end_java()
        elif self._interrupting is None or not self._interrupting.is_alive():  # which may wait for Spark as well
            self._interrupting = threading.Thread(target=self.interrupt, name="tacit engine interrupt", daemon=True)
            self._interrupting.start()
        self._done.wait(INSIST_S)

    def _report(self, progress: Progress) -> None:
        """Ask a Spark of this process how many tasks are done; Spark Connect calls `_handle_progress` instead."""
        if self._context is None:
            return
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._tag)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        known = [one for one in stages if one is not None]
        self._report_tasks(sum(one.numCompletedTasks for one in known), sum(one.numTasks for one in known))

    def _handle_progress(self, stages: Any = (), **_: Any) -> None:
        with suppress(Exception):  # a failed report must not stop the statement
            known = list(stages or ())
            self._report_tasks(sum(one.num_completed_tasks for one in known), sum(one.num_tasks for one in known))

    def _report_tasks(self, done: int, tasks: int) -> None:
        if tasks and self._progress is not None:
            self._share = max(self._share, min(done / tasks, 1.0))
            self._progress(self._share)


def fetch_columns(session: Session, sql: str, parameters: Mapping[str, Any] | None = None) -> Columns:
    """Run one SELECT and return its columns."""
    frame = session.sql(sql, args=dict(parameters)) if parameters else session.sql(sql)
    table = frame.toArrow()
    return normalize_zeros({name: _values(table.column(index)) for index, name in enumerate(table.column_names)})


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
