"""A database in one PostgreSQL schema, with its own migrations.

Promise: a client that stalls inside a transaction is disconnected by the server after `idle_timeout_s`; a lost
connection is made again when the next transaction begins. The connection string appears in no error and in no record.
Needs the extra `postgres` (psycopg 3), which is imported when a schema is opened.

Not here: which row a transaction locks first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from tacit.privacy.errors import InvalidInput, StorageFailed
from tacit.privacy.extras import import_extra
from tacit.storage import migrations as numbered
from tacit.storage.connections import ConnectionPair, ErrorProfile, Slot

Rows: TypeAlias = list[tuple[Any, ...]]
Fetch: TypeAlias = Callable[..., Rows]
Made = TypeVar("Made")

ATTEMPTS_MAX: Final = 3
RETRY_AFTER_S: Final = 0.1
BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_LOCK_MIGRATIONS: Final = "SELECT pg_advisory_xact_lock(499967682932)"


class PostgresSchema(ConnectionPair):
    """A database in one PostgreSQL schema."""

    def __init__(
        self,
        connection_string: str,
        schema: str,
        profile: ErrorProfile,
        migrations: Path,
        *,
        description: str = "",
        lock_timeout_s: float = 30.0,
        idle_timeout_s: float = 30.0,
    ) -> None:
        if not _SCHEMA_NAME.fullmatch(schema):
            raise InvalidInput("a schema name has lower-case letters, digits and _, at most 63", name="schema")
        super().__init__(description or f"the PostgreSQL schema {schema}", profile, lock_timeout_s, _in_transaction)
        self._connection_string = connection_string
        self._schema = schema
        self._migrations = migrations
        self._lock_timeout_s = lock_timeout_s
        self._idle_timeout_s = idle_timeout_s

    def __repr__(self) -> str:
        return f"{type(self).__name__}(schema={self._schema!r})"

    def open(self) -> None:
        """Create the schema if it is missing, and apply pending migrations."""
        with self._begin(self._writer, f"{BEGIN}; {_LOCK_MIGRATIONS}", lambda fetch, answers: fetch) as fetch:
            fetch(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            fetch(numbered.TABLE)
            applied: dict[int, str] = dict(fetch(numbered.APPLIED))
            for step in numbered.pending(numbered.load(self._migrations), applied, self.description, self._profile):
                fetch(step.sql, None)
                fetch(numbered.NOTE, (step.version, step.name, step.checksum, time.time_ns() // 1000))

    def _begin(
        self,
        slot: Slot,
        statements: str,
        make: Callable[[Fetch, list[Rows]], Made],
        changes: Callable[[Made, Any], Iterable[str]] = lambda made, connection: (),
        values: Sequence[Any] | None = None,
    ) -> AbstractContextManager[Made]:
        """Begin a transaction and yield what `make` builds on it and on the results of the first statements.

        At the end its changes are sent, in one message with the commit. A statement that fails raises an error of the
        profile, also inside the block, and the transaction is rolled back.
        """

        def fetch(statement: str, values: Sequence[Any] | None = ()) -> Rows:
            with self._translate_errors():
                cursor = slot.connection.execute(statement if values is None else placeholders(statement), values)
                return list(cursor.fetchall()) if cursor.description else []

        def begin() -> Made:
            with self._translate_errors():
                answers = self._execute_first(slot, statements, values)
            return make(fetch, answers)

        def end(made: Made) -> None:
            if slot.connection.info.transaction_status != psycopg_module().pq.TransactionStatus.INTRANS:
                raise self._failed("")
            with self._translate_errors(), psycopg_module().ClientCursor(slot.connection) as cursor:
                cursor.execute("; ".join((*changes(made, cursor), "COMMIT")))

        return slot.held(begin, end)

    def _execute_first(
        self, slot: Slot, statements: str, values: Sequence[Any] | None = None, *, is_prepared: bool = False
    ) -> list[Rows]:
        """Execute the first statements of a transaction, on a new connection if the old one was lost.

        A single statement can be prepared; several are sent in one message, with the values filled in by psycopg.
        """
        for attempt in range(ATTEMPTS_MAX):
            connection = slot.connect()
            try:
                cursor = connection.cursor() if is_prepared else psycopg_module().ClientCursor(connection)
                cursor.execute(statements, values)
                answers = [cursor.fetchall()] if cursor.description else []
                while cursor.nextset():
                    answers += [cursor.fetchall()] if cursor.description else []
                return answers
            except BaseException as error:
                is_lost = connection.closed and isinstance(error, psycopg_module().OperationalError)
                slot.rollback()
                if not is_lost or attempt == ATTEMPTS_MAX - 1:
                    raise
            time.sleep(RETRY_AFTER_S * 2**attempt)
        raise self._failed("")

    def _new_connection(self) -> Any:
        settings = {
            "client_encoding": "utf8",
            "search_path": self._schema,
            "lock_timeout": f"{self._lock_timeout_s:g}s",
            "idle_in_transaction_session_timeout": f"{self._idle_timeout_s:g}s",
            "synchronous_commit": "on",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        connection = psycopg_module().connect(self._connection_string, autocommit=True, options=options)
        connection.prepare_threshold = 1
        return connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the database as errors of the profile, without its message, which may show the connection."""
        psycopg = psycopg_module()
        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate or ""
            raise self._failed(state[:2] if state else "") from None

    def _busy(self) -> StorageFailed:
        return self._failed("55")

    def _failed(self, state_class: str) -> StorageFailed:
        """Return the error for the class of an SQLSTATE, its first two characters; "" stands for all others."""
        profile = self._profile
        known: dict[str, tuple[type[StorageFailed], str]] = {
            "23": (profile.corrupt, "violates its own constraints; verify it, or restore a backup"),
            "25": (profile.read_only, f"cannot be written, so {profile.closed}; name the primary server"),
            "42": (profile.unavailable, "refused a statement; check that its user owns the schema"),
            "53": (profile.full, f"has no space or no connection left: {profile.undone}; free some and try again"),
            "55": (profile.busy, f"was used by others for longer than the time limit: {profile.undone}; try again"),
            "57": (profile.unavailable, f"stopped the statement: {profile.doubt}"),
            "XX": (profile.corrupt, f"reports damaged data; {profile.closed} until a backup is restored"),
            "": (profile.unavailable, f"cannot be reached, check its address and that it runs: {profile.doubt}"),
        }
        kind, what = known.get(state_class) or known[""]
        return kind(f"{self.description} {what}")


def psycopg_module() -> Any:
    """Return psycopg, or raise `Unavailable`."""
    return import_extra("psycopg", extra="postgres", purpose="PostgreSQL")


@lru_cache(maxsize=256)
def placeholders(statement: str) -> str:
    """Return a statement with psycopg's placeholders instead of `?`."""
    return statement.replace("%", "%%").replace("?", "%s")


def _in_transaction(connection: Any) -> bool:
    return bool(connection.info.transaction_status != psycopg_module().pq.TransactionStatus.IDLE)
