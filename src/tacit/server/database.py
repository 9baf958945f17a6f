"""The server's own database: people, tokens, browsers, refusals, and what questions left behind.

One SQLite file `server.sqlite` in the curator's folder, or the schema `tacit_server` where the ledger lies in
PostgreSQL. Promise: changes happen one after another, wholly or not at all, and are on disk when they have ended;
several threads and processes, forked ones too, use one place at once. A new file is readable by its owner only.
Placeholders are `?` in both. Not here: budgets and what was charged, which only the ledger knows.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, TypeAlias

from tacit.privacy.errors import InvalidInput
from tacit.storage.connections import ErrorProfile
from tacit.storage.postgres import BEGIN, PostgresSchema, placeholders
from tacit.storage.sqlite import BUSY_TIMEOUT_S, Connect, SqliteFile

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
    closed="nobody is let in",
    doubt="whether the last change was made is not known; look before making it again",
)
_TAKE_TURN: Final = "SELECT only_row FROM turn FOR UPDATE"


class Database(ABC):
    """Rows of the server; made by `open_database`."""

    @abstractmethod
    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Return the rows of one SELECT, as they are now."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Execute]:
        """Hold the write lock; what is executed happens when the block ends, or not at all if it raises."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open; the next use opens it again."""

    def write(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Execute statements in one transaction, all or none."""
        with self.transaction() as execute:
            for sql, values in statements:
                execute(sql, values)


class SqliteDatabase(SqliteFile, Database):
    """The file `server.sqlite` of a folder."""

    def __init__(
        self, folder: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S, connect: Connect = sqlite3.connect
    ) -> None:
        super().__init__(
            folder / FILE_NAME,
            _PROFILE,
            APPLICATION_ID,
            MIGRATIONS / "sqlite",
            description=DESCRIPTION,
            busy_timeout_s=busy_timeout_s,
            connect=connect,
        )

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        _require_storable(values)
        with self._reader.held(), self._translated():
            return list(self._reader.connected().execute(sql, values).fetchall())

    def transaction(self) -> AbstractContextManager[Execute]:
        return self._begun(self._writer, "BEGIN IMMEDIATE", _checked)


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
        with self._reader.held(), self._translated():
            (rows,) = self._first_answers(self._reader, placeholders(sql), values, is_prepared=True)
            return rows

    def transaction(self) -> AbstractContextManager[Execute]:
        return self._begun(self._writer, f"{BEGIN}; {_TAKE_TURN}", lambda fetch, answers: _checked(fetch))


def open_database(folder: Path, dsn: str | None = None) -> Database:
    """Open the database of a folder, or of a connection string; what is missing is made."""
    database = SqliteDatabase(Path(folder)) if dsn is None else PostgresDatabase(dsn)
    try:
        database.open()
    except BaseException:
        database.close()
        raise
    return database


def _checked(execute: Execute) -> Execute:
    """Return a function that refuses what cannot be stored before it executes anything."""

    def checked(sql: str, values: Sequence[Any]) -> Rows:
        _require_storable(values)
        return execute(sql, values)

    return checked


def _require_storable(values: Sequence[Any]) -> None:
    """Refuse texts that are not texts of UTF-8 without zeros: requests may hold them, and databases fail on them."""
    for value in values:
        if isinstance(value, str) and ("\x00" in value or not (value.isascii() or _is_utf8(value))):
            raise InvalidInput("a text holds characters that cannot be stored; leave out zeros and lone surrogates")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
