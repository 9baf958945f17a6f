"""Connections to PostgreSQL: how they are set, and how several threads share them.

Promise: a connection can read and not write (`default_transaction_read_only`), finds nothing by a search path, counts
time in UTC and writes doubles in full. The address is read when a connection is made, and is in no error.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Any, Final

from tacit.engines.postgres import places
from tacit.engines.postgres.errors import of_connecting
from tacit.privacy.errors import EngineFailed, Unavailable

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
    """Return psycopg."""
    try:
        import psycopg
    except ImportError:
        raise Unavailable("a table in PostgreSQL needs psycopg; run pip install 'tacit[postgres]'") from None
    return psycopg


class Connections:
    """The connections of one engine: lent to one statement at a time, and kept for the next."""

    def __init__(self, place: str) -> None:
        places.check(place)
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
            places.address(place),
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
