"""A ledger in one SQLite file: the embedded default.

Promise: a transaction that has ended is on disk (write-ahead log, synced at every commit); one that has not leaves no
trace. The write lock is taken when a transaction begins. A new file appears under its name only when it is complete,
and only its owner can read it. Readers do not wait for writers, nor writers for readers.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from tacit.ledger.stores import migrate
from tacit.ledger.stores.protocol import Store
from tacit.ledger.stores.slots import Slot
from tacit.ledger.stores.sql import Columns, SqlTransaction
from tacit.privacy.errors import (
    InvalidInput,
    LedgerBusy,
    LedgerCorrupt,
    LedgerFull,
    LedgerReadOnly,
    LedgerUnavailable,
    NotALedger,
    TacitError,
    Unavailable,
    UnknownName,
)

Connect: TypeAlias = Callable[..., Any]

FILE_NAME: Final = "ledger.sqlite"
APPLICATION_ID: Final = 0x74616369  # "taci"
BUSY_TIMEOUT_S: Final = 30.0
VERSION_MIN: Final = (3, 37, 0)  # STRICT tables
PRAGMAS: Final = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF")
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100


class SqliteStore(Store):
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
        self.path: Final = Path(folder) / FILE_NAME
        self._create = create
        self._busy_timeout_s = busy_timeout_s
        self._connect = connect
        self._migrations = migrations
        self._writer = Slot(self._connected, busy_timeout_s, self._busy)
        self._reader = Slot(self._connected, busy_timeout_s, self._busy)

    @property
    def description(self) -> str:
        return str(self.path)

    def open(self) -> None:
        if sqlite3.sqlite_version_info < VERSION_MIN:
            raise Unavailable(f"the ledger needs SQLite 3.37 or newer, and Python has {sqlite3.sqlite_version} here")
        with self._writer.held():
            if not self.path.exists():
                self._make()
            self._check_header()
            with self._translated():
                self._migrate(self._writer.connected())

    def close(self) -> None:
        for slot in (self._writer, self._reader):
            with slot.held():
                slot.drop()

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
                _touch_private(beside)
                copy = sqlite3.connect(beside)
                self._reader.connected().backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                copy.close()
                _sync(beside)
                os.replace(beside, path)
                _sync(path.parent)
            finally:
                beside.unlink(missing_ok=True)

    @contextmanager
    def _begun(self, slot: Slot, begin: str) -> Iterator[Any]:
        """Begin a transaction, and undo it if anything is raised."""
        with slot.held(), self._translated():
            connection = slot.connected()
            try:
                connection.execute(begin)
                yield connection
            except BaseException:
                slot.undo()
                raise

    def _connected(self) -> Any:
        address = f"file:{quote(str(self.path))}?mode=rw"
        connection = self._connect(
            address, uri=True, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self) -> None:
        """Make a complete new ledger beside its place and move it there; whoever comes second uses the first one."""
        if not self._create:
            raise UnknownName(f"there is no ledger at {self.path}", name="folder", value=str(self.path))
        beside = self.path.with_name(f".{FILE_NAME}.{secrets.token_hex(8)}")
        with self._translated():
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _touch_private(beside)
                connection = self._connect(str(beside), isolation_level=None)
                try:
                    connection.execute("PRAGMA synchronous = FULL")
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._migrate(connection)
                finally:
                    connection.close()
                with suppress(FileExistsError):
                    os.link(beside, self.path)
                _sync(self.path.parent)
            finally:
                beside.unlink(missing_ok=True)

    def _check_header(self) -> None:
        with self._translated(), self.path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        if not header:
            raise NotALedger(f"{self.path} is empty, so what it held is lost; restore a backup")
        if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
            raise NotALedger(f"{self.path} is not a ledger; name the folder of one, or restore a backup")
        if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
            raise NotALedger(f"{self.path} is the database of something else; name the folder of a ledger")

    def _migrate(self, connection: Any) -> None:
        known = migrate.load(self._migrations)
        connection.execute(migrate.TABLE)
        if not migrate.pending(known, _applied(connection), self.description):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in migrate.pending(known, _applied(connection), self.description):
                for statement in _statements(step.sql):
                    connection.execute(statement)
                note = (step.version, step.name, step.checksum, time.time_ns() // 1000)
                connection.execute(migrate.NOTE, note)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what SQLite and the file system say into one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate(error) from error
        except PermissionError as error:
            raise LedgerReadOnly(f"{self.path} cannot be used: {error.strerror}; check who owns it") from error
        except OSError as error:
            raise LedgerUnavailable(f"{self.path} cannot be used: {error.strerror}") from error

    def _translate(self, error: sqlite3.Error) -> TacitError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._busy()
        if code == sqlite3.SQLITE_FULL:
            return LedgerFull(f"no space is left for {self.path}: nothing was charged; free some and ask again")
        if code == sqlite3.SQLITE_READONLY:
            return LedgerReadOnly(f"{self.path} cannot be written, so nothing is admitted; make it writable")
        if code == sqlite3.SQLITE_NOTADB:
            return NotALedger(f"{self.path} is not a ledger, or its beginning is damaged; restore a backup")
        if code == sqlite3.SQLITE_CORRUPT or "UTF-8" in str(error):
            return LedgerCorrupt(f"{self.path} is damaged ({error}); nothing is admitted until a backup is restored")
        if code == sqlite3.SQLITE_CONSTRAINT:
            return LedgerCorrupt(f"{self.path} contradicts itself ({error}); verify it", differs="rows")
        return LedgerUnavailable(
            f"{self.path} cannot be used now ({error}): nothing was released; what was charged stays charged"
        )

    def _busy(self) -> LedgerBusy:
        return LedgerBusy(
            f"others used {self.path} for longer than {self._busy_timeout_s:g} s: nothing was charged; ask again"
        )


def _fetch_with(connection: Any) -> Callable[[str, Sequence[Any]], Columns]:
    return lambda statement, values: list(connection.execute(statement, values).fetchall())


def _applied(connection: Any) -> dict[int, str]:
    return dict(connection.execute(migrate.APPLIED).fetchall())


def _statements(script: str) -> Iterator[str]:
    """Cut a script into statements."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _touch_private(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
