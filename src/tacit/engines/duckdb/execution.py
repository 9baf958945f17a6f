"""Statements on DuckDB: the connection they run on, time limit, cancellation, progress, and the answer by columns.

The connection that questions run on: every registered table as a view, and nothing else within reach.

It is made anew whenever a table is registered or taken away, which takes milliseconds; statements that run on an older
one end there undisturbed.

One statement at a time: its time limit, cancelling, progress, and its answer by columns.

Promise: a statement ends with its answer or with one of three errors, whose sentences are the same whatever the data
hold; what DuckDB said is dropped, chained errors included. Afterwards the engine can be used as before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

from tacit.engines.duckdb.connections import Connection, answers, attach, connect, lock
from tacit.engines.duckdb.relations import Shown
from tacit.engines.execution import UnderWay, one_zero
from tacit.engines.protocol import SCHEMA, Columns, Progress
from tacit.engines.quoting import quoted
from tacit.privacy.errors import Cancelled, EngineFailed, TimedOut

TELLING: Final = 4
"""How many statements can tell their progress at once: that is a setting of a cursor, and settings get locked."""


class Reader:
    """A locked connection that shows tables."""

    def __init__(self, settings: Mapping[str, Any], tables: Mapping[str, Shown]) -> None:
        self._lock = threading.Lock()
        self._connection = connect(settings)
        self._connection.execute(f"CREATE SCHEMA {SCHEMA}")
        files: set[str] = set()
        for name, shown in tables.items():
            if self._show(name, shown):
                files.update(shown.files)
        self._telling = [self._teller() for _ in range(TELLING)]
        lock(self._connection, sorted(files))

    @contextmanager
    def cursor(self, *, tells: bool) -> Iterator[Connection]:
        """Lend a cursor; one that `tells` knows how far its statement is, if there is one left."""
        with self._lock:
            teller = self._telling.pop() if tells and self._telling else None
        cursor = self._connection.cursor() if teller is None else teller
        try:
            yield cursor
        finally:
            if teller is None:
                cursor.close()
            else:
                with self._lock:
                    self._telling.append(teller)

    @property
    def works(self) -> bool:
        """Whether the connection can still be used."""
        return answers(self._connection)

    def close(self) -> None:
        """Let go of the connection; statements that run on it end."""
        self._connection.close()

    def _show(self, name: str, shown: Shown) -> bool:
        """Make the view of a table; one whose files are gone is not there, and says so when its version is asked."""
        try:
            for path in shown.attached:
                attach(self._connection, path)
            self._connection.execute(f"CREATE VIEW {SCHEMA}.{quoted(name)} AS {shown.sql}")
        except duckdb.Error:
            return False
        return True

    def _teller(self) -> Connection:
        cursor = self._connection.cursor()
        cursor.execute("SET enable_progress_bar = true")
        cursor.execute("SET enable_progress_bar_print = false")
        cursor.execute("SET progress_bar_time = 0")
        return cursor


T = TypeVar("T")

POLL_S: Final = 0.1
INSIST_S: Final = 0.02
"""An interrupt that comes before the statement has begun is lost, so it is repeated."""

_WHOLE: Final = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_REAL: Final = {"FLOAT", "DOUBLE"}
_PLAIN: Final = _WHOLE | _REAL | {"VARCHAR", "BOOLEAN"}
_INT64: Final = range(-(2**63), 2**63)


class Runs:
    """The statements that run now, each in its own thread, and how to stop them."""

    def __init__(self) -> None:
        self._under_way = UnderWay()

    def cancel(self, thread: int | None = None) -> None:
        """Make the statement that a thread runs now raise Cancelled, or every one."""
        self._under_way.cancel(thread)

    def run(
        self,
        connection: Connection,
        work: Callable[[], T],
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
        failure: str,
    ) -> T:
        """Do work on a connection; `failure` is the sentence for whatever goes wrong in the engine."""
        watch = _Watch(connection, timeout_s, progress)
        error: BaseException
        watch.start()
        try:
            with self._under_way.holding(watch):
                return work()
        except (duckdb.Error, RuntimeError, MemoryError) as caught:
            error = watch.reason(timeout_s) or EngineFailed(failure)
            if type(caught) is RuntimeError and not isinstance(error, Cancelled | TimedOut):
                error = KeyboardInterrupt()  # DuckDB swallows it, and says that the query was interrupted
        finally:
            watch.stop()
        raise error  # here and not above, so that it does not carry the engine's error along


class _Watch:
    """Interrupts a connection when its time is up or somebody cancels, and tells its progress."""

    def __init__(self, connection: Connection, timeout_s: float | None, progress: Progress | None) -> None:
        self._connection, self._progress = connection, progress
        self._deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._wake = threading.Event()
        self._done = threading.Event()
        self._cancelled = self._late = False
        self._thread = threading.Thread(target=self._watch, name="tacit engine watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def cancel(self) -> None:
        """Interrupt the work."""
        self._cancelled = True
        self._wake.set()

    def stop(self) -> None:
        """End watching: the work is done."""
        self._done.set()
        self._wake.set()
        self._thread.join()

    def reason(self, timeout_s: float | None) -> EngineFailed | None:
        """Return why the work was interrupted, if it was."""
        if self._cancelled:
            return Cancelled("the question was cancelled while it ran; what was charged stays charged")
        if self._late:
            return TimedOut(
                f"the question took longer than its time limit of {timeout_s:g} s; what was charged stays charged"
            )
        return None

    def _watch(self) -> None:
        while not self._done.is_set():
            left_s = None if self._deadline_s is None else self._deadline_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                self._late = True
            if self._cancelled or self._late:
                self._connection.interrupt()
                time.sleep(INSIST_S)
                continue
            waits = [one for one in (left_s, None if self._progress is None else POLL_S) if one is not None]
            self._wake.wait(min(waits, default=None))
            self._wake.clear()
            if not self._done.is_set() and self._progress is not None:
                self._tell(self._progress)

    def _tell(self, progress: Progress) -> None:
        with suppress(Exception):  # to be told is a courtesy, and must not stop the work
            share = self._connection.query_progress() / 100
            if share >= 0:
                progress(min(share, 1.0))


def answer(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> Columns:
    """Run one SELECT and return its columns; anything else is an error, as from the engine itself."""
    if [one.type for one in connection.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise duckdb.NotSupportedError("one SELECT")
    cursor = connection.execute(sql, dict(parameters)) if parameters else connection.execute(sql)
    described = [(str(column[0]), str(column[1])) for column in cursor.description or ()]
    if all(kind in _PLAIN for _, kind in described):
        arrays = cursor.fetchnumpy()
        return one_zero({name: _array(arrays[name], kind) for name, kind in described})
    rows = cursor.fetchall()
    return one_zero({name: _values([row[at] for row in rows], kind) for at, (name, kind) in enumerate(described)})


def _array(values: Any, kind: str) -> Sequence[Any]:
    if np.ma.is_masked(values) or kind not in _WHOLE | _REAL:
        found: list[Any] = values.tolist()
        return found
    return np.asarray(values).astype(np.int64 if kind in _WHOLE else np.float64)  # type: ignore[return-value]


def _values(values: list[Any], kind: str) -> Sequence[Any]:
    """Return a column of Python values; whole numbers of any size stay whole, and fixed-point ones are doubles."""
    if kind.startswith("DECIMAL"):
        values = [float(value) if isinstance(value, Decimal) else value for value in values]
    present = all(value is not None for value in values)
    if present and (kind in _REAL or kind.startswith("DECIMAL")):
        return np.array(values, dtype=np.float64)  # type: ignore[return-value]
    whole = kind in _WHOLE or kind in ("UBIGINT", "HUGEINT", "UHUGEINT")
    if present and whole and all(value in _INT64 for value in values):
        return np.array(values, dtype=np.int64)  # type: ignore[return-value]
    return values
