"""A ledger in one SQLite file: the embedded default.

Promise: as in `storage.sqlite`, and the write lock is taken when a transaction begins.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final

from tacit.ledger.anchor import HEAD_FILE
from tacit.ledger.permits import Scope
from tacit.ledger.stores.protocol import Store
from tacit.ledger.stores.sql import MIGRATIONS, PROFILE, Columns, Fetch, SqlTransaction
from tacit.privacy import texts
from tacit.privacy.errors import LedgerUnavailable
from tacit.storage.connections import run_in
from tacit.storage.files import new_file
from tacit.storage.sqlite import BUSY_TIMEOUT_S, Connect, SqliteFile

FILE_NAME: Final = "ledger.sqlite"
APPLICATION_ID: Final = 0x74616369  # "taci"
_SCHEMA: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"


class SqliteTransaction(SqlTransaction):
    """One transaction's view of the tables in a file; `schema` returns their expected definitions."""

    scan = ("SELECT rowid, sha256, bytes FROM contents NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT ?", -(2**63))

    def __init__(self, fetch: Fetch, schema: Callable[[], Columns]) -> None:
        super().__init__(fetch)
        self._schema = schema

    def damage(self) -> str | None:
        if (found := self._fetch("PRAGMA integrity_check(1)", ())) != [("ok",)]:
            return " ".join(str(found[0][0]).split())
        if self._fetch(_SCHEMA, ()) != self._schema():
            return "the definitions of its tables were changed"
        return "a row refers to one that is missing" if self._fetch("PRAGMA foreign_key_check", ()) else None


class SqliteStore(SqliteFile, Store):
    """A ledger's file, `ledger.sqlite` in a folder of its own or of a catalog."""

    def __init__(
        self,
        folder: Path | str,
        *,
        create: bool = True,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        connect: Connect = sqlite3.connect,
        migrations: Path = MIGRATIONS / "sqlite",
    ) -> None:
        path = texts.path("folder", folder) / FILE_NAME
        super().__init__(
            Path(os.path.realpath(path)) if os.path.islink(path) else path,
            PROFILE,
            APPLICATION_ID,
            migrations,
            create=create,
            busy_timeout_s=busy_timeout_s,
            connect=connect,
        )
        self._identity: tuple[int, int] | None = None
        """Device and inode of the file that was opened, to notice that it was replaced."""

    @property
    def anchor(self) -> Path:
        return self.path.with_name(HEAD_FILE)

    @property
    def place(self) -> str:
        return str(self.path.parent.resolve())

    def exists(self) -> bool:
        with self._translate_errors():
            return self.path.exists()

    def open(self) -> None:
        before = self._file_identity()
        super().open()
        self._require_one_name()
        self._identity = self._file_identity()
        if before not in (None, self._identity):
            self.close()
            raise LedgerUnavailable(f"{self.path} was replaced while it was opened; open it again")

    def _require_one_name(self) -> None:
        """Raise if the file has a second name: SQLite keeps a log for each, and neither has what the other holds."""
        with self._translate_errors():
            if self.path.stat().st_nlink > 1:
                for beside in self.path.parent.glob(f".{self.path.name}.*"):
                    if beside.samefile(
                        self.path
                    ):  # the process that created the file has not removed it yet, or crashed
                        beside.unlink(missing_ok=True)
            names = self.path.stat().st_nlink
        if names > 1:
            self.close()
            raise LedgerUnavailable(
                f"{self.path} has {names} names (hard links), and a charge by one is not seen by the others; "
                "remove the others, and copy ledgers with `tacit ledger backup`"
            )

    def _file_identity(self) -> tuple[int, int] | None:
        """Return device and inode of the file at the path, or None."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _schema(self) -> Columns:
        """Return the definitions of the tables in a new file."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            self._migrate(connection)
            return list(connection.execute(_SCHEMA).fetchall())

    def transaction(self, scopes: Sequence[Scope] = ()) -> AbstractContextManager[SqlTransaction]:
        return self._begin(self._writer, "BEGIN IMMEDIATE", self._rows_in_place, SqlTransaction.statements)

    def snapshot(self) -> AbstractContextManager[SqlTransaction]:
        return self._begin(self._reader, "BEGIN", self._rows)

    def _rows_in_place(self, fetch: Fetch) -> SqlTransaction:
        if self._file_identity() != self._identity:
            raise LedgerUnavailable(
                f"{self.path} was removed or replaced since it was opened: nothing was charged; open it again"
            )
        return self._rows(fetch)

    def _rows(self, fetch: Fetch) -> SqlTransaction:
        return SqliteTransaction(fetch, self._schema)

    def backup(self, path: Path) -> None:
        def copy(_: object) -> None:
            with self._translate_errors(), closing(sqlite3.connect(file)) as copied:
                self._reader.connect().backup(copied)
                copied.execute("PRAGMA journal_mode = DELETE")

        with new_file(path) as file:
            run_in(self._reader.held(), copy)
