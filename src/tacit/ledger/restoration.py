"""Restoring a ledger from a backup: what lay in its place is moved aside, and lost records are declared in the journal.

Promise: a crash at any moment leaves the old file in its place, no file (which is refused, because a head was noted),
or the restored one; running it again works. No process writes to the old file any more: it must be closed everywhere
first, its lock is held from before its end is read until the new file is in its place, and a store refuses to write to
a file that is no longer in its place. A symbolic link is followed: its target is replaced.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tacit.ledger.anchor import Anchor, NotedHead
from tacit.ledger.clock import system_clock
from tacit.ledger.stores import SqliteStore, Store
from tacit.ledger.stores.protocol import Transaction
from tacit.ledger.stores.sql import SqlTransaction
from tacit.ledger.stores.sqlite import FILE_NAME
from tacit.ledger.transactions import LedgerTransaction
from tacit.ledger.verification import (
    declares_lost,
    first_hash,
    noted_head,
    rewrite_caches,
    verify,
)
from tacit.privacy.errors import (
    InvalidInput,
    LedgerBusy,
    LedgerMoved,
    LedgerReadOnly,
    LedgerRolledBack,
    LedgerUnavailable,
    NotALedger,
    OutOfRange,
    TacitError,
)
from tacit.storage.connections import run_in
from tacit.storage.files import sync, touch_private
from tacit.storage.sqlite import file_uri, primary_code

_SIDES: Final = ("", "-wal", "-shm")
_BUSY_TIMEOUT_S: Final = 2.0


def accept_database(store: Store, anchor: Anchor | None, facts: Mapping[str, Any], lost_records: int) -> None:
    """Accept a database that was restored by its own tools, and note its head."""
    here = _write(store, None if anchor is None else anchor.read(), {**facts, "aside": None}, lost_records)
    if anchor is not None:
        _reset(anchor, here)


def restore_file(
    store: SqliteStore, backup: Path, anchor: Anchor | None, facts: Mapping[str, Any], lost_records: int
) -> None:
    """Replace a folder's ledger by a backup."""
    if not os.path.isfile(backup):
        raise InvalidInput(f"{backup} is no file; name a backup that `tacit ledger backup` wrote", name="backup")
    target, folder = store.path, store.path.parent
    if target.exists() and backup.samefile(target):
        raise InvalidInput(f"{backup} is the ledger itself; name a backup of it", name="backup")
    aside = f"{FILE_NAME}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".restoring-", dir=folder) as place, _locked(target) as old:
            staged = SqliteStore(place, create=False)
            _copy(backup, staged.path)
            note = {**facts, "aside": aside if target.exists() else None}
            here = _write(staged, _latest(old, None if anchor is None else anchor.read()), note, lost_records)
            with _locked(staged.path) as new:
                _close_log(new)
            sync(staged.path)
            _close_log(old)
            if anchor is not None and not anchor.exists():
                touch_private(anchor.path)  # from now on no new ledger is created here
            for side in _SIDES:
                if (one := Path(f"{target}{side}")).exists():
                    os.rename(one, folder / f"{aside}{side}")
            os.replace(staged.path, target)
            sync(folder)
    except OSError as error:
        raise LedgerUnavailable(f"{backup} cannot be put into {folder}: {error.strerror}; run it again") from error
    if anchor is not None:
        _reset(anchor, here)


def _reset(anchor: Anchor, here: NotedHead) -> None:
    try:
        anchor.reset(here)
    except OSError as error:
        raise LedgerReadOnly(
            f"the ledger was restored, and {anchor.path} cannot be written: {error.strerror}; make it writable"
        ) from error


def _write(store: Store, noted: NotedHead | None, facts: Mapping[str, Any], lost_records: int) -> NotedHead:
    """Verify a ledger that is to go live, append the record `restored`, and return the new head."""
    if noted is not None and noted.is_moved:
        raise LedgerMoved(
            "the ledger of this place was moved away and is used somewhere else: restore it there, or, if it is lost "
            "there, in a new folder"
        )

    def write(rows: Transaction) -> NotedHead:
        if not rows.has_caches():
            rewrite_caches(rows)
        transaction = LedgerTransaction(rows, system_clock)
        verify(rows, full=True)
        lost = _lost(rows, noted, is_database=not isinstance(store, SqliteStore))
        if lost != lost_records:
            raise OutOfRange(
                f"the backup ends with record {rows.head().number}, so {lost} records that were noted are lost; "
                f"find a newer backup, or confirm the loss (--lost-records {lost})",
                name="lost_records",
                value=lost_records,
            )
        known: dict[str, object] = {"noted": 0, "noted_hash": None, "noted_since": None}
        if noted is not None:
            known = {"noted": noted.number, "noted_hash": noted.hash, "noted_since": noted.since}
        restored = transaction.write("restored", {**facts, **known, "lost": lost})
        return NotedHead(first_hash(rows), restored.hash, restored.number, restored.hash)

    try:
        store.open()
        return run_in(store.transaction(), write)
    finally:
        store.close()


def _lost(rows: Transaction, noted: NotedHead | None, *, is_database: bool) -> int:
    """Return how many noted records are missing; raise LedgerRolledBack if it is another ledger."""
    head = rows.head()
    if noted is None:
        return 0
    if [record.hash for record in rows.records(1, 1)] not in ([], [noted.ledger]):
        raise LedgerRolledBack("this is the backup of another ledger than the one that was noted here", differs="end")
    if head.number < noted.number:
        return noted.number - head.number
    here = [record.hash for record in rows.records(noted.number, 1)]
    if here == [noted.hash] or declares_lost(rows, noted):
        return 0
    if is_database:  # restored, and then used from another folder: all that was noted may be lost
        return noted.number
    raise LedgerRolledBack(
        f"record {noted.number} of this backup is not the one that was noted here: it was used somewhere else",
        record=noted.number,
        differs="end",
    )


def _latest(old: sqlite3.Connection | None, noted: NotedHead | None) -> NotedHead | None:
    """Return the later of the noted head and the head of the old file, if that can still be read."""
    if old is None:
        return noted
    try:
        found = noted_head(SqlTransaction(lambda statement, values: old.execute(statement, values).fetchall()))
    except (sqlite3.Error, UnicodeDecodeError, TacitError):
        return noted
    if noted is None or found is None:
        return noted or found
    return found if found.ledger == noted.ledger and found.number > noted.number else noted


@contextmanager
def _locked(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Hold the exclusive lock of a file, unless it is damaged."""
    with ExitStack() as stack:
        connection = None
        if path.exists():
            try:
                connection = stack.enter_context(closing(_connection(path, "rw")))
                for statement in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
                    connection.execute(statement).fetchall()
            except sqlite3.Error as error:
                if primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise LedgerBusy(
                        f"{path} is open in other processes; stop them and restore again: nothing was changed"
                    ) from None
        yield connection


def _close_log(connection: sqlite3.Connection | None) -> None:
    """Write the log back into its file and remove it; the lock is kept, and a damaged file is left as it is."""
    if connection is not None:
        with suppress(sqlite3.Error):
            for statement in ("COMMIT", "PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE"):
                connection.execute(statement).fetchall()


def _copy(backup: Path, staged: Path) -> None:
    """Copy a backup and its log by SQLite's own means.

    Closing a file that was opened otherwise would end the locks that this process has on it (see `storage.sqlite`).
    """
    deadline = time.monotonic() + _BUSY_TIMEOUT_S

    def watch(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise LedgerBusy(f"{backup} is being written; name a backup that no process uses: nothing was changed")

    touch_private(staged)
    try:
        with closing(_connection(backup, "ro")) as source, closing(_connection(staged, "rw")) as copy:
            source.backup(copy, progress=watch)
    except sqlite3.Error as error:
        said = " ".join(str(error).split())[:200]
        if primary_code(error) == sqlite3.SQLITE_CANTOPEN:
            raise LedgerUnavailable(
                f"{backup} cannot be read ({said}); copy it, with its log, to a folder that this account can write"
            ) from error
        raise NotALedger(f"{backup} is not the backup of a ledger, or is damaged ({said})") from error


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    address = file_uri(path, mode)
    if mode == "ro" and not Path(f"{path}-wal").exists() and not os.access(path.parent, os.W_OK):
        address += "&immutable=1"  # SQLite would make a log there
    return sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
