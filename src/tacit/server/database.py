"""The server's own database: people, tokens, sessions, audit records, jobs, copies of released answers.

The SQLite file `server.sqlite` in the curator's folder, or the schema `tacit_server` if the ledger is in PostgreSQL.
Promise: transactions are serialized, atomic and durable; threads and processes, also forked ones, may share a database.
A new file is readable by its owner only. Placeholders are `?` in both stores. Budgets and charges are in the ledger.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, TypeAlias

from tacit.privacy.errors import InvalidInput
from tacit.storage.connections import ErrorProfile
from tacit.storage.postgres import BEGIN, PostgresSchema, placeholders
from tacit.storage.sqlite import BUSY_TIMEOUT_S, SqliteFile

Rows: TypeAlias = list[tuple[Any, ...]]
Execute: TypeAlias = Callable[[str, Sequence[Any]], Rows]

FILE_NAME: Final = "server.sqlite"
SCHEMA: Final = "tacit_server"
MIGRATIONS: Final = Path(__file__).parent / "migrations"
APPLICATION_ID: Final = 0x74616373  # "tacs"
DESCRIPTION: Final = "the server's own database"

_PROFILE: Final = ErrorProfile(
    noun="server's database",
    undone="nothing was changed",
    closed="no request is accepted",
    doubt="it is unknown whether the last change was made; check before repeating it",
)
_LOCK: Final = "SELECT only_row FROM turn FOR UPDATE"


class Database(ABC):
    """The server's database, opened by `open_database`."""

    @abstractmethod
    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Return the rows of one SELECT."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Execute]:
        """Hold the write lock; commit when the block ends, roll back if it raises."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections; the next use opens them again."""

    def write(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Execute statements in one transaction."""
        with self.transaction() as execute:
            for sql, values in statements:
                execute(sql, values)


class SqliteDatabase(SqliteFile, Database):
    """The file `server.sqlite` of a folder."""

    def __init__(self, folder: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        super().__init__(
            folder / FILE_NAME,
            _PROFILE,
            APPLICATION_ID,
            MIGRATIONS / "sqlite",
            description=DESCRIPTION,
            busy_timeout_s=busy_timeout_s,
        )

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        _require_storable(values)
        with self._reader.held(), self._translate_errors():
            return list(self._reader.connect().execute(sql, values).fetchall())

    def transaction(self) -> AbstractContextManager[Execute]:
        return self._begin(self._writer, "BEGIN IMMEDIATE", _with_value_check)


class PostgresDatabase(PostgresSchema, Database):
    """The schema `tacit_server` of a PostgreSQL database."""

    def __init__(self, connection_string: str, *, schema: str = SCHEMA, lock_timeout_s: float = 30.0) -> None:
        super().__init__(
            connection_string,
            schema,
            _PROFILE,
            MIGRATIONS / "postgres",
            description=DESCRIPTION,
            lock_timeout_s=lock_timeout_s,
        )

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        _require_storable(values)
        with self._reader.held(), self._translate_errors():
            (rows,) = self._execute_first(self._reader, placeholders(sql), values, is_prepared=True)
            return rows

    def transaction(self) -> AbstractContextManager[Execute]:
        return self._begin(self._writer, f"{BEGIN}; {_LOCK}", lambda fetch, answers: _with_value_check(fetch))


def open_database(folder: Path, dsn: str | None = None) -> Database:
    """Open the database of a folder or of a connection string, and create what is missing."""
    database = SqliteDatabase(Path(folder)) if dsn is None else PostgresDatabase(dsn)
    try:
        database.open()
    except BaseException:
        database.close()
        raise
    return database


def _with_value_check(execute: Execute) -> Execute:
    """Return `execute` with a check of its values."""

    def checked(sql: str, values: Sequence[Any]) -> Rows:
        _require_storable(values)
        return execute(sql, values)

    return checked


def _require_storable(values: Sequence[Any]) -> None:
    """Raise InvalidInput for texts with zeros or lone surrogates, on which databases fail."""
    for value in values:
        if isinstance(value, str) and ("\x00" in value or not (value.isascii() or _is_utf8(value))):
            raise InvalidInput("a text holds characters that cannot be stored; remove zeros and lone surrogates")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
