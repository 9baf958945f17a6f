"""A ledger in one SQLite file: the embedded default.

Promise: as `sqlite_file` has it, and the write lock is taken when a transaction begins.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from tacit.ledger.stores import migrate
from tacit.ledger.stores.protocol import Store
from tacit.ledger.stores.sql import Columns, SqlTransaction
from tacit.ledger.stores.sqlite_file import BUSY_TIMEOUT_S, PRAGMAS, Connect, SqliteFile, Words, sync, touch_private
from tacit.privacy.errors import InvalidInput

__all__ = ["FILE_NAME", "PRAGMAS", "SqliteStore"]

FILE_NAME: Final = "ledger.sqlite"
APPLICATION_ID: Final = 0x74616369  # "taci"
WORDS: Final = Words(
    thing="a ledger",
    undone="nothing was charged",
    closed="nothing is admitted",
    doubt="nothing was released; what was charged stays charged",
)


class SqliteStore(SqliteFile, Store):
    """A ledger's file, `ledger.sqlite` in a folder of its own or of a catalog."""

    def __init__(
        self,
        folder: Path | str,
        *,
        create: bool = True,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        connect: Connect = sqlite3.connect,
        migrations: Path = migrate.FOLDER / "sqlite",
    ) -> None:
        super().__init__(
            Path(folder) / FILE_NAME,
            WORDS,
            APPLICATION_ID,
            migrations,
            create=create,
            busy_timeout_s=busy_timeout_s,
            connect=connect,
        )

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        with self._begun(self._writer, "BEGIN IMMEDIATE") as connection:
            transaction = SqlTransaction(_fetch_with(connection))
            yield transaction
            for statement, values in transaction.statements():
                connection.execute(statement, values)
            connection.execute("COMMIT")

    @contextmanager
    def snapshot(self) -> Iterator[SqlTransaction]:
        with self._begun(self._reader, "BEGIN") as connection:
            yield SqlTransaction(_fetch_with(connection))
            connection.execute("COMMIT")

    def backup(self, path: Path) -> None:
        beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        if path.resolve() == self.path.resolve() or path.is_dir():
            raise InvalidInput(f"name a new file for the backup, not {path}", name="path", value=str(path))
        with self._reader.held(), self._translated():
            try:
                touch_private(beside)
                with closing(sqlite3.connect(beside)) as copy:
                    self._reader.connected().backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")
                sync(beside)
                os.replace(beside, path)
                sync(path.parent)
            finally:
                beside.unlink(missing_ok=True)


def _fetch_with(connection: Any) -> Callable[[str, Sequence[Any]], Columns]:
    return lambda statement, values: list(connection.execute(statement, values).fetchall())
