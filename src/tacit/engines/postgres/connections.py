"""Connections to PostgreSQL: addresses, errors in constant sentences, and pooling.

What went wrong in PostgreSQL, in constant sentences: its messages may quote rows, and the driver's the address.

Where a PostgreSQL database is: an address without a password, or where an address is kept.

    postgresql://user@host:port/database     the password is in ~/.pgpass, in PGPASSWORD, or not needed
    env:NAME                                 an environment variable that holds an address
    file:PATH                                a file that holds one, which only its owner can read
    service:NAME                             an entry of pg_service.conf

Promise: an address that holds a password is never a place, so that it is in no catalog (`engines.addresses`); one that
was read from elsewhere is handed to the driver and kept nowhere.

Connections to PostgreSQL: how they are set, and how several threads share them.

Promise: a connection can read and not write (`default_transaction_read_only`), finds nothing by a search path, counts
time in UTC and writes doubles in full. The address is read when a connection is made, and is in no error.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Any, Final

from tacit.engines.addresses import check_postgres as check
from tacit.engines.addresses import read_reference
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
"""What SQLSTATEs mean, by their beginnings."""

_NO_ENTRY: Final = (
    "authentication",
    "password",
    "role ",
    "pg_hba.conf",
    "does not exist",
    "not permitted",
    "permission",
)


def of_statement(error: Any, *, lost: bool) -> EngineFailed:
    """Return what a statement's error means."""
    state = error.sqlstate or ""
    for length in (5, 3, 2):
        if state[:length] in _BY_STATE:
            kind, sentence = _BY_STATE[state[:length]]
            return kind(sentence)
    return NoConnection(UNREACHABLE) if lost or not state else EngineFailed(_FAILED)


def of_connecting(error: Any) -> EngineFailed:
    """Return why there is no connection; the server does not say it by a code before it lets somebody in."""
    state = error.sqlstate or ""
    if state:
        return of_statement(error, lost=True)
    said = str(error).lower()
    refused = any(word in said for word in _NO_ENTRY)
    return NoAccess(_REFUSED) if refused else NoConnection(UNREACHABLE)


__all__ = ["address", "check"]


def address(place: str) -> str:
    """Return what the driver connects with; it may hold a password, so that it goes nowhere else."""
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
"""How many connections are kept for later."""

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
    """The connections of one engine: lent to one statement at a time, and kept for the next."""

    def __init__(self, place: str) -> None:
        check(place)
        self._place = place
        self._idle: list[Any] = []
        self._made: set[Any] = set()  # those that are not closed, lent ones too
        self._lock = threading.Lock()
        self._closed = False
        weakref.finalize(self, _drop_forgotten, self._made, os.getpid())

    def taken(self) -> Any:
        """Return a connection that no other statement uses; whoever takes it gives it back, or drops it."""
        with self._lock:
            self._closed = False
            if self._idle:
                return self._idle.pop()
        connection = connected(self._place)
        with self._lock:
            self._made.difference_update([one for one in self._made if one.closed])
            self._made.add(connection)
        return connection

    def give_back(self, connection: Any) -> None:
        """Keep a connection for later, if it is at rest."""
        at_rest = not connection.closed and connection.info.transaction_status == 0
        with self._lock:
            if at_rest and not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        drop(connection)

    def forget_idle(self) -> None:
        """Throw away the connections that nobody uses: one of them turned out to be lost."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            drop(connection)

    def close(self) -> None:
        """Close all connections; those that are lent are closed when they come back."""
        self._closed = True
        self.forget_idle()


def connected(place: str) -> Any:
    """Return a new connection."""
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
            of_connecting(caught) if isinstance(caught, psycopg.Error) else of_connecting(psycopg.OperationalError())
        )
    if error is not None:
        if connection is not None:
            drop(connection)
        raise error  # here and not above, so that it does not carry the driver's error along
    return connection


def _drop_forgotten(connections: set[Any], process: int) -> None:
    """Close the connections of an engine that was forgotten; they only read, so nothing is lost and nothing is said.

    A forked child leaves them alone: to close one there tells the server to end its parent's session.
    """
    if os.getpid() == process:
        for connection in connections:
            drop(connection)


def drop(connection: Any) -> None:
    """Close a connection, whatever state it is in."""
    with suppress(Exception):
        connection.close()
