"""A database in one SQLite file, with its own migrations.

Promise: a transaction that has ended is on disk (write-ahead log, synced at every commit); one that has not leaves no
trace. A new file appears under its name only when it is complete, and only its owner can read it. Readers do not wait
for writers, nor writers for readers.

Nothing but SQLite opens the file, its log or its index of the log: POSIX locks belong to the process, and closing any
descriptor of a file ends all that the process holds on it (sqlite.org/howtocorrupt.html, section 2.2). Everything else
is read from SQLite, or from the directory entry (`os.stat`).
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote

from tacit.privacy.errors import StorageBusy, TacitError, Unavailable, UnknownName
from tacit.storage import migrations as numbered
from tacit.storage.connections import ConnectionPair, ErrorProfile, Slot
from tacit.storage.files import sync, touch_private

Connect: TypeAlias = Callable[..., Any]
Fetch: TypeAlias = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
Statements: TypeAlias = Iterable[tuple[str, Sequence[Any]]]
Made = TypeVar("Made")

BUSY_TIMEOUT_S: Final = 30.0
FAILURES: Final = (sqlite3.Error, OSError, UnicodeDecodeError, MemoryError)
"""Errors of SQLite and of the file system."""
VERSION_MIN: Final = (3, 37, 0)  # STRICT tables
PRAGMAS: Final = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF")


class SqliteFile(ConnectionPair):
    """A database in one SQLite file."""

    def __init__(
        self,
        path: Path,
        profile: ErrorProfile,
        application_id: int,
        migrations: Path,
        *,
        description: str = "",
        create: bool = True,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        connect: Connect = sqlite3.connect,
    ) -> None:
        super().__init__(description or str(path), profile, busy_timeout_s, attrgetter("in_transaction"))
        self.path: Final = path
        self._application_id = application_id
        self._migrations = migrations
        self._create = create
        self._busy_timeout_s = busy_timeout_s
        self._connect = connect

    def open(self) -> None:
        """Create the file if it is missing, and apply pending migrations."""
        if sqlite3.sqlite_version_info < VERSION_MIN:
            raise Unavailable(
                f"a {self._profile.noun} needs SQLite 3.37 or newer, and Python has {sqlite3.sqlite_version} here"
            )
        with self._writer.held(), self._translate_errors():
            if not self.path.exists():
                self._create_file()
            self._migrate(self._writer.connect())

    def _begin(
        self,
        slot: Slot,
        statement: str,
        make: Callable[[Fetch], Made],
        changes: Callable[[Made], Statements] = lambda made: (),
    ) -> AbstractContextManager[Made]:
        """Begin a transaction and yield what `make` builds on it; at the end execute its changes and commit.

        A statement that fails raises an error of the profile, also inside the block, and rolls the transaction back.
        """

        def fetch(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            try:
                return list(slot.connection.execute(statement, values).fetchall())
            except FAILURES as error:
                raise self._translate(error) from error

        def begin() -> Made:
            with self._translate_errors():
                slot.connect()
            fetch(statement)
            return make(fetch)

        def end(made: Made) -> None:
            if not slot.connection.in_transaction:  # some errors of SQLite end a transaction, and the lock with it
                raise self._profile.unavailable(
                    f"{self.description} gave up the transaction: {self._profile.undone}; try again"
                )
            for change, values in changes(made):
                fetch(change, values)
            fetch("COMMIT")

        return slot.held(begin, end)

    def _new_connection(self) -> Any:
        connection = self._connect(
            file_uri(self.path, "rw"),
            uri=True,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._check(connection)
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _create_file(self) -> None:
        """Create a complete file beside its place and link it there; if two processes do so, both use the first one."""
        if not self._create:
            raise UnknownName(f"there is no {self._profile.noun} at {self.path}", name="folder", value=str(self.path))
        beside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        with self._translate_errors():
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                touch_private(beside)
                connection = self._connect(str(beside), isolation_level=None)
                try:
                    connection.execute("PRAGMA synchronous = FULL")
                    connection.execute(f"PRAGMA application_id = {self._application_id}")
                    self._migrate(connection)
                finally:
                    connection.close()
                with suppress(FileExistsError):
                    os.link(beside, self.path)
                sync(self.path.parent)
            finally:
                beside.unlink(missing_ok=True)

    def _check(self, connection: Any) -> None:
        """Raise if the file is no database of this kind, before anything is set or written in it."""
        if not self.path.stat().st_size:  # to SQLite a new database
            raise self._profile.foreign(f"{self.description} is empty, so what it held is lost; restore a backup")
        ((application_id,),) = connection.execute("PRAGMA application_id").fetchall()
        if application_id != self._application_id:
            raise self._profile.foreign(
                f"{self.path} is the database of another program; name the folder of a {self._profile.noun}"
            )

    def _migrate(self, connection: Any) -> None:
        known = numbered.load(self._migrations)
        connection.execute(numbered.TABLE)
        if not numbered.pending(known, _applied(connection), self.description, self._profile):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in numbered.pending(known, _applied(connection), self.description, self._profile):
                for statement in split_statements(step.sql):
                    connection.execute(statement)
                note = (step.version, step.name, step.checksum, time.time_ns() // 1000)
                connection.execute(numbered.NOTE, note)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of SQLite and of the file system as errors of the profile."""
        try:
            yield
        except FAILURES as error:
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> TacitError:
        profile, place, said = self._profile, self.description, " ".join(str(error).split())[:200]
        if isinstance(error, PermissionError):
            return profile.read_only(f"{self._denied() or place} cannot be used: {error.strerror}; check who owns it")
        if isinstance(error, OSError):
            return profile.unavailable(f"{place} cannot be used: {error.strerror}")
        if isinstance(error, UnicodeDecodeError):  # the message about a damaged definition may be no text
            return profile.corrupt(f"{place} is damaged; {profile.closed} until a backup is restored")
        code = primary_code(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._busy()
        if code == sqlite3.SQLITE_FULL:
            return profile.full(f"no space is left for {place}: {profile.undone}; free some and try again")
        if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and self._denied()):
            return profile.read_only(
                f"{self._denied() or place} cannot be written, so {profile.closed}; make it writable"
            )
        if code == sqlite3.SQLITE_NOTADB:
            return profile.foreign(
                f"{self.path} is not a {profile.noun}, or its beginning is damaged; name the folder of one, or restore "
                "a backup"
            )
        if code == sqlite3.SQLITE_CORRUPT or "UTF-8" in said:
            return profile.corrupt(f"{place} is damaged ({said}); {profile.closed} until a backup is restored")
        if code == sqlite3.SQLITE_CONSTRAINT:
            return profile.corrupt(f"{place} violates its own constraints ({said}); verify it", differs="rows")
        return profile.unavailable(f"{place} cannot be used now ({said or 'out of memory'}): {profile.doubt}")

    def _denied(self) -> str | None:
        """Return what the current user may not use: the folder, in which SQLite keeps its log, or the file."""
        for path, way in ((self.path.parent, os.R_OK | os.W_OK | os.X_OK), (self.path, os.R_OK | os.W_OK)):
            if os.path.exists(path) and not os.access(path, way):
                return f"the folder {path}" if path == self.path.parent else str(path)
        return None

    def _busy(self) -> StorageBusy:
        return self._profile.busy(
            f"{self.description} was used by others for longer than {self._busy_timeout_s:g} s: "
            f"{self._profile.undone}; try again"
        )


def file_uri(path: Path, mode: str) -> str:
    """Return the URI that opens a file as "ro" or "rw", and does not create it."""
    return f"file:{quote(os.fsencode(path))}?mode={mode}"


def primary_code(error: Exception) -> int:
    """Return the primary result code of an error of SQLite, 0 for any other."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _applied(connection: Any) -> dict[int, str]:
    return dict(connection.execute(numbered.APPLIED).fetchall())


def split_statements(script: str) -> Iterator[str]:
    """Yield the statements of an SQL script."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
