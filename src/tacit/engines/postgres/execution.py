"""Statements on PostgreSQL: read-only transactions, time limit, cancellation, and the answer by columns.

Read-only transactions, one a statement, each of which sees one snapshot of the database.

One statement at a time: its time limit, cancelling, and its answer by columns.

Promise: a statement ends with its answer or with an EngineFailed whose sentence is the same whatever the data hold;
what PostgreSQL said is dropped, chained errors included. Rows come in binary form, a row a group.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, TypeVar

import numpy as np

from tacit.engines.execution import UnderWay, one_zero
from tacit.engines.postgres.connections import Connections, driver, drop, of_statement
from tacit.engines.protocol import Columns
from tacit.privacy.errors import Cancelled, EngineFailed, NoConnection, TacitError, TimedOut

T = TypeVar("T")

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Transactions:
    """The transactions of one engine."""

    def __init__(self, connections: Connections, runs: Runs) -> None:
        self._connections, self._runs = connections, runs

    def run(self, work: Callable[[Any], T], timeout_s: float | None = None) -> T:
        """Do work in a transaction of its own, on another connection if the first was lost before it began."""
        limit = "" if timeout_s is None else f"; SET LOCAL statement_timeout = {max(1, round(timeout_s * 1000))}"
        connection = self._begun(_BEGIN + limit, timeout_s, again=True) or self._begun(_BEGIN + limit, timeout_s)

        def do() -> T:
            found = work(connection)
            connection.execute("COMMIT")
            return found

        try:
            found = self._runs.run(connection, do, timeout_s)
        except BaseException:
            drop(connection)
            raise
        self._connections.give_back(connection)
        return found

    def _begun(self, statement: str, timeout_s: float | None, *, again: bool = False) -> Any:
        """Begin a transaction; where the connection was lost and `again` is true, return None."""
        connection = self._connections.taken()
        try:
            self._runs.run(connection, lambda: connection.execute(statement), timeout_s)
        except NoConnection:
            drop(connection)
            if not again:
                raise
            self._connections.forget_idle()
            return None
        except BaseException:
            drop(connection)
            raise
        return connection


INSIST_S: Final = 0.05
"""A request to cancel that comes before the statement has begun is lost, so it is repeated."""

_WHOLE: Final = frozenset({20, 21, 23})
_REAL: Final = frozenset({700, 701})
_NUMERIC: Final = 1700
_INT64: Final = range(-(2**63), 2**63)
_CANCELED: Final = "57014"


class Runs:
    """The statements that run now, each in its own thread, and how to stop them."""

    def __init__(self) -> None:
        self._under_way = UnderWay()

    def cancel(self, thread: int | None = None) -> None:
        """Make the statement that a thread runs now raise Cancelled, or every one."""
        self._under_way.cancel(thread)

    def run(self, connection: Any, work: Callable[[], T], timeout_s: float | None) -> T:
        """Do work on a connection."""
        psycopg, run = driver(), Run(connection)
        error: BaseException
        started_s = time.monotonic()
        try:
            with self._under_way.holding(run):
                found = work()
            if run.is_cancelled:
                drop(connection)  # the request may come late, and would cancel the next statement
            return found
        except psycopg.Error as caught:
            passed_s = time.monotonic() - started_s
            error = run.reason(caught, timeout_s, passed_s)
        except TacitError as known:
            error = known
        except Exception:  # of the driver's or of ours, over a value that came
            error = EngineFailed("the answer of PostgreSQL cannot be held here; ask for fewer groups")
        finally:
            run.end()
        if isinstance(error, Cancelled | NoConnection):
            drop(connection)
        raise error  # here and not above, so that it does not carry the driver's error along


class Run:
    """A statement that runs, and how it is cancelled."""

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
        """Whether somebody asked to cancel the statement."""
        return self._cancelled

    def end(self) -> None:
        """Say that the statement has ended; from now on the connection is another's."""
        self._done.set()
        with self._lock:
            pass  # whoever is just cancelling has done so

    def reason(self, error: Any, timeout_s: float | None, passed_s: float) -> EngineFailed:
        """Return why the statement has not ended well."""
        if self._cancelled:
            return Cancelled("the question was cancelled while it ran; what was charged stays charged")
        if error.sqlstate == _CANCELED and timeout_s is not None and passed_s >= timeout_s * 0.9:
            return TimedOut(
                f"the question took longer than its time limit of {timeout_s:g} s; what was charged stays charged"
            )
        return of_statement(error, lost=bool(self._connection.closed or self._connection.broken))

    def _insist(self) -> None:
        while not self._done.is_set():
            with self._lock:
                if not self._done.is_set():
                    with suppress(Exception):
                        self._connection.cancel_safe(timeout=2.0)
            self._done.wait(INSIST_S)


def answer(connection: Any, sql: str, parameters: Mapping[str, Any]) -> Columns:
    """Run one SELECT and return its columns; anything else is not run at all."""
    if not sql.lstrip().upper().startswith(("SELECT ", "WITH ")):
        raise EngineFailed("PostgreSQL is asked for rows only, by SELECT")
    with connection.cursor(binary=True) as cursor:
        cursor.execute(sql, parameters)
        described = [(column.name, column.type_code) for column in cursor.description or ()]
        rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(described)
    return one_zero({name: _values(values, type_) for (name, type_), values in zip(described, columns, strict=True)})


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
