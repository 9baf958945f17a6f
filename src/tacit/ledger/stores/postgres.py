"""A ledger in PostgreSQL, for several servers that share it.

Promise: as for SQLite. The one row of the table `head` is locked when a transaction begins, so the journal stays one
chain whichever server writes; a client that stalls inside a transaction is cut off by the server after
`idle_timeout_s`. Needs the extra `postgres` (psycopg 3), which is imported when a store is opened.

The connection string is read from the environment or from a file that only its owner can read, and appears in no error
and in no record.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from tacit.ledger.stores import migrate
from tacit.ledger.stores.protocol import Store
from tacit.ledger.stores.slots import Slot
from tacit.ledger.stores.sql import END, Columns, SqlTransaction
from tacit.privacy.errors import (
    InvalidInput,
    LedgerBusy,
    LedgerCorrupt,
    LedgerFull,
    LedgerReadOnly,
    LedgerUnavailable,
    NotPermitted,
    TacitError,
    Unavailable,
    UnknownName,
)

ENVIRONMENT_NAME: Final = "TACIT_LEDGER_POSTGRES"
SCHEMA: Final = "tacit_ledger"
_SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
ATTEMPTS_MAX: Final = 3
RETRY_AFTER_S: Final = 0.1
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK_HEAD: Final = "SELECT number FROM head FOR UPDATE"
_LOCK_MIGRATIONS: Final = "SELECT pg_advisory_xact_lock(499967682932)"

_BY_CLASS: Final[dict[str, tuple[type[TacitError], str]]] = {
    "23": (LedgerCorrupt, "contradicts itself; verify it"),
    "25": (LedgerReadOnly, "cannot be written, so nothing is admitted; name the primary server"),
    "42": (LedgerUnavailable, "refuses a statement; check that its user owns the schema"),
    "53": (LedgerFull, "has no space or no connection left: nothing was charged; free some and ask again"),
    "55": (LedgerBusy, "was used by others for longer than the time limit: nothing was charged; ask again"),
    "57": (LedgerUnavailable, "stopped the statement; what was charged stays charged"),
    "XX": (LedgerCorrupt, "reports damaged data; nothing is admitted until a backup is restored"),
}
"""What the first two characters of an SQLSTATE mean here."""


class PostgresStore(Store):
    """A ledger's schema in a PostgreSQL database."""

    def __init__(
        self,
        connection_string: str,
        *,
        schema: str = SCHEMA,
        lock_timeout_s: float = 30.0,
        idle_timeout_s: float = 30.0,
        migrations: Path = migrate.FOLDER / "postgres",
    ) -> None:
        if not _SCHEMA_NAME.fullmatch(schema):
            raise InvalidInput("a schema's name has small letters, digits and _, 63 at most", name="schema")
        self._connection_string = connection_string
        self._schema = schema
        self._lock_timeout_s = lock_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._migrations = migrations
        self._writer = Slot(self._connected, lock_timeout_s, lambda: self._failed("55"))
        self._reader = Slot(self._connected, lock_timeout_s, lambda: self._failed("55"))

    @classmethod
    def from_environment(cls, name: str = ENVIRONMENT_NAME, **settings: Any) -> PostgresStore:
        """Read the connection string from an environment variable."""
        text = os.environ.get(name, "")
        if not text:
            raise UnknownName(f"set {name} to the connection string of the ledger's database", name=name)
        return cls(text, **settings)

    @classmethod
    def from_file(cls, path: Path | str, **settings: Any) -> PostgresStore:
        """Read the connection string from a file that only its owner can read."""
        file = Path(path)
        try:
            mode, text = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise UnknownName(f"{file} cannot be read; it holds the connection string", name="path") from None
        if mode & 0o077:
            raise NotPermitted(f"{file} holds a password and others can read it; run chmod 600 on it")
        return cls(text, **settings)

    @property
    def description(self) -> str:
        return f"the PostgreSQL schema {self._schema}"

    def __repr__(self) -> str:
        return f"PostgresStore(schema={self._schema!r})"

    def open(self) -> None:
        with self._begun(self._writer, f"{_BEGIN}; {_LOCK_MIGRATIONS}") as (connection, _):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            connection.execute(migrate.TABLE)
            applied = dict(connection.execute(migrate.APPLIED).fetchall())
            for step in migrate.pending(migrate.load(self._migrations), applied, self.description):
                connection.execute(step.sql)
                note = (step.version, step.name, step.checksum, time.time_ns() // 1000)
                connection.execute(_placeholders(migrate.NOTE), note)
            connection.execute("COMMIT")

    def close(self) -> None:
        for slot in (self._writer, self._reader):
            with slot.held():
                slot.drop()

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        with self._begun(self._writer, f"{_BEGIN}; {_LOCK_HEAD}; {END}") as (connection, end):
            transaction = SqlTransaction(_fetch_with(connection), end)
            yield transaction
            with _psycopg().ClientCursor(connection) as cursor:  # one message, not one for each statement
                changes = [cursor.mogrify(_placeholders(text), values) for text, values in transaction.statements()]
                cursor.execute("; ".join((*changes, "COMMIT")))

    @contextmanager
    def snapshot(self) -> Iterator[SqlTransaction]:
        with self._begun(self._reader, f"{_BEGIN_READING}; {END}") as (connection, end):
            yield SqlTransaction(_fetch_with(connection), end)
            connection.execute("COMMIT")

    def backup(self, path: Path) -> None:
        raise Unavailable("a ledger in PostgreSQL is backed up by the database's own tools, or with Ledger.export")

    @contextmanager
    def _begun(self, slot: Slot, statements: str) -> Iterator[tuple[Any, Columns]]:
        """Begin a transaction, and undo it if anything is raised; give what the last statement answered."""
        with slot.held(), self._translated():
            answer = self._first_answer(slot, statements)
            try:
                yield slot.connection, answer
            except BaseException:
                slot.undo()
                raise

    def _first_answer(self, slot: Slot, statements: str) -> Columns:
        """Execute the first statements of a transaction, on a new connection if the old one turns out to be lost."""
        for attempt in range(ATTEMPTS_MAX):
            connection = slot.connected()
            try:
                cursor = connection.execute(statements)
                while cursor.nextset():
                    pass
                return list(cursor.fetchall())
            except BaseException as error:
                is_lost = connection.closed and isinstance(error, _psycopg().OperationalError)
                slot.undo()
                if not is_lost or attempt == ATTEMPTS_MAX - 1:
                    raise
            time.sleep(RETRY_AFTER_S * 2**attempt)
        raise self._failed("")

    def _connected(self) -> Any:
        settings = {
            "client_encoding": "utf8",
            "search_path": self._schema,
            "lock_timeout": f"{self._lock_timeout_s:g}s",
            "idle_in_transaction_session_timeout": f"{self._idle_timeout_s:g}s",
            "synchronous_commit": "on",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        connection = _psycopg().connect(self._connection_string, autocommit=True, options=options)
        connection.prepare_threshold = 1
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what the database says into one sentence, without what it says of the connection."""
        psycopg = _psycopg()
        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate or ""
            raise self._failed(state[:2] if state else "") from None

    def _failed(self, state_class: str) -> TacitError:
        unreachable = (LedgerUnavailable, "cannot be reached; what was charged stays charged, see reservations()")
        kind, what = _BY_CLASS.get(state_class, unreachable)
        return kind(f"{self.description} {what}")


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise Unavailable("a ledger in PostgreSQL needs psycopg; run pip install 'tacit[postgres]'") from None
    return psycopg


@lru_cache(maxsize=256)
def _placeholders(statement: str) -> str:
    return statement.replace("?", "%s")


def _fetch_with(connection: Any) -> Callable[[str, Sequence[Any]], Columns]:
    return lambda statement, values: list(connection.execute(_placeholders(statement), values).fetchall())
