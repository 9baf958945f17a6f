"""Statements on DuckDB: the connection they run on, time limit, cancellation, progress, and the answer by columns.

Promise: a statement ends with its answer or with one of three errors, whose sentences are the same whatever the data
hold; what DuckDB said is dropped, chained errors included. Afterwards the engine can be used as before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

from tacit.engines.duckdb.connections import Connection, attach, connect, is_usable, lock
from tacit.engines.duckdb.relations import DuckDBRelation
from tacit.engines.execution import RunningStatements, Watchdog, normalize_zeros
from tacit.engines.protocol import SCHEMA, Columns, Progress
from tacit.engines.quoting import quoted
from tacit.privacy.errors import Cancelled, EngineFailed, TimedOut

T = TypeVar("T")

PROGRESS_CURSORS: Final = 4
"""How many statements can report their progress at once: that is a setting of a cursor, and settings get locked."""

INSIST_S: Final = 0.02
"""How long after an interrupt the next one is sent."""

_WHOLE: Final = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_REAL: Final = {"FLOAT", "DOUBLE"}
_PLAIN: Final = _WHOLE | _REAL | {"VARCHAR", "BOOLEAN"}
_INT64: Final = range(-(2**63), 2**63)


class Reader:
    """The locked connection that questions run on: every registered table as a view, and nothing else within reach.

    It is made anew whenever a table is registered or forgotten, which takes milliseconds; statements that run on an
    older one end there undisturbed.
    """

    def __init__(self, settings: Mapping[str, Any], tables: Mapping[str, DuckDBRelation]) -> None:
        self._lock = threading.Lock()
        self._connection = connect(settings)
        self._connection.execute(f"CREATE SCHEMA {SCHEMA}")
        files: set[str] = set()
        for name, relation in tables.items():
            if self._create_view(name, relation):
                files.update(relation.files)
        self._progress_cursors = [self._progress_cursor() for _ in range(PROGRESS_CURSORS)]
        lock(self._connection, sorted(files))

    @contextmanager
    def cursor(self, *, progress: bool) -> Iterator[Connection]:
        """Lend a cursor; with `progress`, one that knows how far its statement is, if one is left."""
        with self._lock:
            lent = self._progress_cursors.pop() if progress and self._progress_cursors else None
        cursor = self._connection.cursor() if lent is None else lent
        try:
            yield cursor
        finally:
            if lent is None:
                cursor.close()
            else:
                with self._lock:
                    self._progress_cursors.append(lent)

    @property
    def is_usable(self) -> bool:
        """Whether the connection can still be used."""
        return is_usable(self._connection)

    def close(self) -> None:
        """Close the connection; statements that run on it end."""
        self._connection.close()

    def _create_view(self, name: str, relation: DuckDBRelation) -> bool:
        """Create the view of a table, unless its files are gone: questions then fail, and `refresh` names the file."""
        try:
            for path in relation.attached:
                attach(self._connection, path)
            self._connection.execute(f"CREATE VIEW {SCHEMA}.{quoted(name)} AS {relation.sql}")
        except duckdb.Error:
            return False
        return True

    def _progress_cursor(self) -> Connection:
        cursor = self._connection.cursor()
        cursor.execute("SET enable_progress_bar = true")
        cursor.execute("SET enable_progress_bar_print = false")
        cursor.execute("SET progress_bar_time = 0")
        return cursor


class DuckDBStatements(RunningStatements):
    """The statements of one engine that run now."""

    def run(
        self,
        connection: Connection,
        work: Callable[[], T],
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
        failure: str,
    ) -> T:
        """Do work on a connection; `failure` is the sentence for whatever goes wrong in DuckDB."""
        watchdog = _DuckDBWatchdog(connection, timeout_s, progress)
        error: BaseException
        try:
            with watchdog, self.tracking(watchdog):
                return work()
        except (duckdb.Error, RuntimeError, MemoryError) as caught:
            error = watchdog.error or EngineFailed(failure)
            if type(caught) is RuntimeError and not isinstance(error, Cancelled | TimedOut):
                error = KeyboardInterrupt()  # DuckDB swallows it, and says that the query was interrupted
        raise error  # here and not above, so that it does not carry DuckDB's error along


class _DuckDBWatchdog(Watchdog):
    """Interrupts a connection, and asks it for its progress."""

    def __init__(self, connection: Connection, timeout_s: float | None, progress: Progress | None) -> None:
        super().__init__(timeout_s, progress)
        self._connection = connection

    def _interrupt_once(self) -> None:
        self._connection.interrupt()
        time.sleep(INSIST_S)

    def _report(self, progress: Progress) -> None:
        share = self._connection.query_progress() / 100
        if share >= 0:
            progress(min(share, 1.0))


def fetch_columns(connection: Connection, sql: str, parameters: Mapping[str, Any] | None = None) -> Columns:
    """Run one SELECT and return its columns; anything else is an error, as from the engine itself."""
    if [one.type for one in connection.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise duckdb.NotSupportedError("one SELECT")
    cursor = connection.execute(sql, dict(parameters)) if parameters else connection.execute(sql)
    described = [(str(column[0]), str(column[1])) for column in cursor.description or ()]
    if all(kind in _PLAIN for _, kind in described):
        arrays = cursor.fetchnumpy()
        return normalize_zeros({name: _array(arrays[name], kind) for name, kind in described})
    rows = cursor.fetchall()
    return normalize_zeros(
        {name: _values([row[at] for row in rows], kind) for at, (name, kind) in enumerate(described)}
    )


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
