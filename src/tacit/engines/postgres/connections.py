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
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Any, Final

from tacit.engines.addresses import check_postgres, read_reference
from tacit.privacy.errors import EngineFailed, NoAccess, NoConnection, SourceMissing
from tacit.privacy.extras import import_extra

UNREACHABLE: Final = (
    "the PostgreSQL database cannot be reached, or the connection was lost; check that it runs, and its address"
)
_REFUSED: Final = (
    "the PostgreSQL database does not let this account in; check its name, its password and the database's name"
)
_FORBIDDEN: Final = "this account may not read a table that the question is about; GRANT it SELECT there"
_CHANGED: Final = (
    "a table or column of the question is not in the database any more, or of another type; register the table anew"
)
_FAILED: Final = "PostgreSQL could not run the question, for want of memory, disk or time, or of a lock on a table"

_BY_STATE: Final[dict[str, tuple[type[EngineFailed], str]]] = {
    "08": (NoConnection, UNREACHABLE),
    "28": (NoAccess, _REFUSED),
    "3D": (NoAccess, _REFUSED),
    "3F": (SourceMissing, _CHANGED),
    "57P": (NoConnection, UNREACHABLE),
    "25P03": (NoConnection, UNREACHABLE),
    "25P04": (NoConnection, UNREACHABLE),
    "53300": (NoConnection, "the PostgreSQL database has no connection left for this account; ask again later"),
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
"""How much a session writes to temporary files at most, where the account may set that."""

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
        with suppress(psycopg.Error):  # most accounts may not set it; their administrator can
            connection.execute(f"SET temp_file_limit = '{TEMP_FILE_LIMIT}'")
        if connection.info.parameter_status("server_encoding") != ENCODING:
            error = EngineFailed(
                f"texts of this database are not in {ENCODING}, and may not be texts at all; convert it"
            )
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
