"""Statements on PostgreSQL: read-only transactions, time limit, cancellation, and the answer by columns.

Promise: a statement sees one snapshot of the database and writes nothing. It ends with its answer or with an
EngineFailed whose sentence is the same whatever the data hold; what PostgreSQL said is dropped, chained errors
included. Rows come in binary form, one row per group.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, TypeVar

import numpy as np

from tacit.engines.execution import RunningStatements, exceeded_time, normalize_zeros, was_cancelled
from tacit.engines.postgres.connections import Connections, close_quietly, driver, statement_error
from tacit.engines.protocol import Columns
from tacit.privacy.errors import Cancelled, EngineFailed, NoConnection, TacitError

T = TypeVar("T")

INSIST_S: Final = 0.05
"""How long after a request to cancel the next one is sent; one that comes before the statement has begun is lost."""

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WHOLE: Final = frozenset({20, 21, 23})
_REAL: Final = frozenset({700, 701})
_NUMERIC: Final = 1700
_INT64: Final = range(-(2**63), 2**63)
_CANCELED: Final = "57014"


class Transactions(RunningStatements):
    """The transactions of one engine, each on a connection of its own."""

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections

    def run(self, work: Callable[[Any], T], timeout_s: float | None = None) -> T:
        """Do work in a transaction of its own, on another connection if the first was lost before it began."""
        limit = "" if timeout_s is None else f"; SET LOCAL statement_timeout = {max(1, round(timeout_s * 1000))}"
        connection = self._begin(_BEGIN + limit, timeout_s, again=True) or self._begin(_BEGIN + limit, timeout_s)

        def do() -> T:
            result = work(connection)
            connection.execute("COMMIT")
            return result

        try:
            result = self._run(connection, do, timeout_s)
        except BaseException:
            close_quietly(connection)
            raise
        self._connections.release(connection)
        return result

    def _begin(self, statement: str, timeout_s: float | None, *, again: bool = False) -> Any:
        """Return a connection on which a transaction has begun; None if it was lost and `again` is true."""
        connection = self._connections.acquire()
        try:
            self._run(connection, lambda: connection.execute(statement), timeout_s)
        except NoConnection:
            close_quietly(connection)
            if not again:
                raise
            self._connections.close_idle()
            return None
        except BaseException:
            close_quietly(connection)
            raise
        return connection

    def _run(self, connection: Any, work: Callable[[], T], timeout_s: float | None) -> T:
        """Do work on a connection."""
        psycopg, statement = driver(), _Statement(connection)
        error: BaseException
        started_s = time.monotonic()
        try:
            with self.tracking(statement):
                result = work()
            if statement.is_cancelled:
                close_quietly(connection)  # the request may come late, and would cancel the next statement
            return result
        except psycopg.Error as caught:
            error = statement.error(caught, timeout_s, time.monotonic() - started_s)
        except TacitError as known:
            error = known
        except Exception:  # of the driver's or of ours, over a value that came
            error = EngineFailed("the answer of PostgreSQL cannot be held here; ask for fewer groups")
        finally:
            statement.end()
        if isinstance(error, Cancelled | NoConnection):
            close_quietly(connection)
        raise error  # here and not above, so that it does not carry the driver's error along


class _Statement:
    """A statement that runs, and how it is cancelled; its time limit is kept by the server."""

    def __init__(self, connection: Any) -> None:
        self._connection, self._done, self._cancelled = connection, threading.Event(), False
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Cancel the statement, again and again until it has ended."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
        threading.Thread(target=self._insist, name="tacit engine cancel", daemon=True).start()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def end(self) -> None:
        """Send no request to cancel any more: the connection may be lent to another statement."""
        self._done.set()
        with self._lock:
            pass  # wait for a request that is being sent

    def error(self, caught: Any, timeout_s: float | None, passed_s: float) -> EngineFailed:
        """Return the error that stands for an error of the driver."""
        if self._cancelled:
            return was_cancelled()
        if caught.sqlstate == _CANCELED and timeout_s is not None and passed_s >= timeout_s * 0.9:
            return exceeded_time(timeout_s)
        return statement_error(caught, lost=bool(self._connection.closed or self._connection.broken))

    def _insist(self) -> None:
        while not self._done.is_set():
            with self._lock:
                if not self._done.is_set():
                    with suppress(Exception):
                        self._connection.cancel_safe(timeout=2.0)
            self._done.wait(INSIST_S)


def fetch_columns(connection: Any, sql: str, parameters: Mapping[str, Any]) -> Columns:
    """Run one SELECT and return its columns; anything else is not run at all."""
    if not sql.lstrip().upper().startswith(("SELECT ", "WITH ")):
        raise EngineFailed("the engine runs one SELECT, and nothing else")
    with connection.cursor(binary=True) as cursor:
        cursor.execute(sql, parameters)
        described = [(column.name, column.type_code) for column in cursor.description or ()]
        rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(described)
    return normalize_zeros(
        {name: _values(values, type_) for (name, type_), values in zip(described, columns, strict=True)}
    )


def _values(values: Sequence[Any], type_: int) -> Sequence[Any]:
    """Return a column; whole numbers of any size stay whole, and those with digits after the point are doubles."""
    if type_ == _NUMERIC:
        values = [None if value is None else _number(value) for value in values]
    present = None not in values
    if present and type_ in _WHOLE:
        return np.array(values, dtype=np.int64)  # type: ignore[return-value]
    if present and type_ in _REAL:
        return np.array(values, dtype=np.float64)  # type: ignore[return-value]
    if present and type_ == _NUMERIC:
        if all(type(value) is int and value in _INT64 for value in values):
            return np.array(values, dtype=np.int64)  # type: ignore[return-value]
        if any(type(value) is float for value in values):
            return np.array(values, dtype=np.float64)  # type: ignore[return-value]
    return list(values)


def _number(value: Decimal) -> int | float:
    exponent = value.as_tuple().exponent
    return int(value) if isinstance(exponent, int) and exponent >= 0 else float(value)
