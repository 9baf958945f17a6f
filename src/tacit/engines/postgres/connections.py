"""Connections to PostgreSQL: addresses, settings, pooling, and errors in constant sentences.

    postgresql://user@host:port/database     the password is in ~/.pgpass, in PGPASSWORD, or not needed
    env:NAME                                 an environment variable that holds an address
    file:PATH                                a file that holds one, which only its owner can read
    service:NAME                             an entry of pg_service.conf

Promise: an address with a password never enters the catalog (`engines.addresses`); one that was read from a variable or
file is handed to the driver when a connection is made, and is neither stored nor part of an error. A connection can
read and not write (`default_transaction_read_only`), finds nothing by a search path, counts time in UTC and writes
doubles in full. No error repeats a message of PostgreSQL or of the driver: the first may quote rows, the second the
address.

Statements on PostgreSQL: read-only transactions, time limit, cancellation, and the answer by columns.

Promise: a statement sees one snapshot of the database and writes nothing. It ends with its answer or with an
EngineFailed whose sentence is the same whatever the data hold; what PostgreSQL said is dropped, chained errors
included. Rows come in binary form, one row per group.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, TypeVar

import numpy as np

from tacit.engines.addresses import check_postgres, read_reference
from tacit.engines.execution import RunningStatements, exceeded_time, normalize_zeros, was_cancelled
from tacit.engines.protocol import Columns
from tacit.privacy.errors import Cancelled, EngineFailed, NoAccess, NoConnection, SourceMissing, TacitError
from tacit.privacy.extras import import_extra

UNREACHABLE: Final = (
    "the PostgreSQL database cannot be reached, or the connection was lost; check that it runs, and its address"
)
_REFUSED: Final = (
    "the PostgreSQL database does not let this database role in; check its name, its password and the database's name"
)
_FORBIDDEN: Final = "this database role may not read a table of the query; GRANT it SELECT there"
_CHANGED: Final = "a table or column of the query was removed or has another type now; register the table again"
_FAILED: Final = "PostgreSQL failed to run the query: out of memory, disk space or time, or a table is locked"

_BY_STATE: Final[dict[str, tuple[type[EngineFailed], str]]] = {
    "08": (NoConnection, UNREACHABLE),
    "28": (NoAccess, _REFUSED),
    "3D": (NoAccess, _REFUSED),
    "3F": (SourceMissing, _CHANGED),
    "57P": (NoConnection, UNREACHABLE),
    "25P03": (NoConnection, UNREACHABLE),
    "25P04": (NoConnection, UNREACHABLE),
    "53300": (NoConnection, "the PostgreSQL database has no connection left for this database role; retry later"),
    "42501": (NoAccess, _FORBIDDEN),
    "42P01": (SourceMissing, _CHANGED),
    "42703": (SourceMissing, _CHANGED),
    "42804": (SourceMissing, _CHANGED),
    "42846": (SourceMissing, _CHANGED),
    "42883": (SourceMissing, _CHANGED),
    "42P18": (SourceMissing, _CHANGED),
}
"""The errors that SQLSTATEs stand for, by their prefixes."""

_NO_ENTRY: Final = (
    "authentication",
    "password",
    "role ",
    "pg_hba.conf",
    "does not exist",
    "not permitted",
    "permission",
)


def statement_error(error: Any, *, lost: bool) -> EngineFailed:
    """Return the error that a statement's error stands for, by its SQLSTATE."""
    state = error.sqlstate or ""
    for length in (5, 3, 2):
        if state[:length] in _BY_STATE:
            kind, sentence = _BY_STATE[state[:length]]
            return kind(sentence)
    return NoConnection(UNREACHABLE) if lost or not state else EngineFailed(_FAILED)


def connection_error(error: Any) -> EngineFailed:
    """Return the error that a failed connection stands for; before authentication there is often no SQLSTATE."""
    state = error.sqlstate or ""
    if state:
        return statement_error(error, lost=True)
    said = str(error).lower()
    refused = any(word in said for word in _NO_ENTRY)
    return NoAccess(_REFUSED) if refused else NoConnection(UNREACHABLE)


def address(place: str) -> str:
    """Return what the driver connects with; it may hold a password, and is passed to the driver only."""
    found = read_reference(place)
    if found is not None:
        return found
    return f"service={place.removeprefix('service:')}" if place.startswith("service:") else place


CONNECT_TIMEOUT_S: Final = 10
LOCK_TIMEOUT: Final = "30s"
STATEMENT_TIMEOUT: Final = "3600s"
"""How long a statement runs for which no other limit is given, such as the checks at registration."""

TEMP_FILE_LIMIT: Final = "20GB"
"""How much a session writes to temporary files at most, where the database role may set that."""

ENCODING: Final = "UTF8"
IDLE_MAX: Final = 4
"""How many idle connections are kept."""

SETTINGS: Final = {
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable read",
    "search_path": "pg_catalog",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lock_timeout": LOCK_TIMEOUT,
    "statement_timeout": STATEMENT_TIMEOUT,
    "idle_in_transaction_session_timeout": "60s",
    "row_security": "off",
    "client_min_messages": "error",
    "jit": "off",
    "enable_nestloop": "off",
    "work_mem": "64MB",
    "hash_mem_multiplier": "8",
}
"""Compiling expressions takes longer than it saves: statements differ, and run for seconds at most. Of columns that are
cast and clamped the planner knows nothing, expects one row where there are thousands, and would join by loops over
whole tables; statements read all rows anyway, and joining by hashes takes the same time whatever it expects. Whether a
value is in a list of millions is looked up in a hash if that has room, and otherwise each row reads the whole list.
With row_security off, a table whose policies hide rows is an error, and not a table with fewer rows: a policy may look
at the rows of others, and then one person more or less moves the rows of many."""


def driver() -> Any:
    """Return psycopg, or raise `Unavailable`."""
    return import_extra("psycopg", extra="postgres", purpose="a table in PostgreSQL")


class Connections:
    """The connection pool of one engine: each connection is lent to one statement at a time."""

    def __init__(self, place: str) -> None:
        check_postgres(place)
        self._place = place
        self._idle: list[Any] = []
        self._made: set[Any] = set()  # those that are not closed, lent ones too
        self._lock = threading.Lock()
        self._closed = False
        weakref.finalize(self, _close_leftover, self._made, os.getpid())

    def acquire(self) -> Any:
        """Return a connection that no other statement uses; the caller releases or closes it."""
        with self._lock:
            self._closed = False
            if self._idle:
                return self._idle.pop()
        connection = connect(self._place)
        with self._lock:
            self._made.difference_update([one for one in self._made if one.closed])
            self._made.add(connection)
        return connection

    def release(self, connection: Any) -> None:
        """Keep a connection for later if it is outside of a transaction, or close it."""
        is_idle = not connection.closed and connection.info.transaction_status == 0
        with self._lock:
            if is_idle and not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        close_quietly(connection)

    def close_idle(self) -> None:
        """Close the idle connections: one of them turned out to be lost."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            close_quietly(connection)

    def close(self) -> None:
        """Close all connections; those that are lent are closed when they are released."""
        self._closed = True
        self.close_idle()


def connect(place: str) -> Any:
    """Return a new connection with `SETTINGS`."""
    psycopg = driver()
    error: EngineFailed | None = None
    connection: Any = None
    try:
        connection = psycopg.connect(
            address(place),
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="tacit",
            keepalives_idle=30,
            keepalives_interval=10,
            keepalives_count=3,
        )
        connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in SETTINGS.items()))
        with suppress(psycopg.Error):  # most database roles may not set it; their administrator can
            connection.execute(f"SET temp_file_limit = '{TEMP_FILE_LIMIT}'")
        if connection.info.parameter_status("server_encoding") != ENCODING:
            error = EngineFailed(f"the encoding of the database must be {ENCODING}; convert it")
    except (psycopg.Error, OSError, UnicodeError) as caught:
        error = (
            connection_error(caught)
            if isinstance(caught, psycopg.Error)
            else connection_error(psycopg.OperationalError())
        )
    if error is not None:
        if connection is not None:
            close_quietly(connection)
        raise error  # here and not above, so that it does not carry the driver's error along
    return connection


def _close_leftover(connections: set[Any], process: int) -> None:
    """Close the connections of an engine that was not closed; they only read, so nothing is lost.

    A forked child leaves them alone: closing one there would end its parent's session on the server.
    """
    if os.getpid() == process:
        for connection in connections:
            close_quietly(connection)


def close_quietly(connection: Any) -> None:
    """Close a connection in whatever state it is, without raising."""
    with suppress(Exception):
        connection.close()


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
            error = EngineFailed("the result of PostgreSQL cannot be read; ask for fewer groups")
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
