"""Going on from a backup: what lay in its place is moved aside, and what is lost is said in the journal.

Promise: a crash at any moment leaves the old file in its place, no file (which is refused, because a head was noted),
or the restored one; running it again works. Nobody goes on writing to the old file: it must be closed everywhere first,
and a store refuses to write to a file that is no longer in its place.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tacit.ledger.anchor import Anchor, Noted
from tacit.ledger.stores import SqliteStore, Store, Transaction
from tacit.ledger.stores.sqlite import FILE_NAME
from tacit.ledger.stores.sqlite_file import sync
from tacit.ledger.transfer import rewrite_caches
from tacit.ledger.verification import declares_lost, verify
from tacit.ledger.work import Work, system_clock
from tacit.privacy.errors import (
    InvalidInput,
    LedgerBusy,
    LedgerMoved,
    LedgerReadOnly,
    LedgerRolledBack,
    LedgerUnavailable,
    OutOfRange,
)

_SIDES: Final = ("", "-wal", "-shm")
_BUSY_TIMEOUT_S: Final = 2.0
_HEAD: Final = """
SELECT
    (SELECT hash FROM journal WHERE number = 1),
    (SELECT hash FROM journal WHERE kind = 'restored' OR number = 1 ORDER BY number DESC LIMIT 1),
    number,
    hash,
    (SELECT kind FROM journal WHERE journal.number = head.number)
FROM head
"""


def accept(store: Store, anchor: Anchor | None, facts: Mapping[str, Any], lost_records: int) -> None:
    """Go on with a database that was put back by its own tools."""
    here = _write(store, None if anchor is None else anchor.read(), {**facts, "aside": None}, lost_records)
    if anchor is not None:
        _reset(anchor, here)


def put_back(folder: Path, backup: Path, facts: Mapping[str, Any], lost_records: int) -> None:
    """Put a backup into the place of a folder's ledger."""
    if not backup.is_file():
        raise InvalidInput(f"{backup} is no file; name a backup that `tacit ledger backup` wrote", name="backup")
    target, store = folder / FILE_NAME, SqliteStore(folder, create=False)
    if target.exists() and backup.samefile(target):
        raise InvalidInput(f"{backup} is the ledger itself; name a backup of it", name="backup")
    anchor = Anchor(store.anchor)
    aside = f"{FILE_NAME}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".restoring-", dir=folder) as place:
            staged = SqliteStore(place, create=False)
            for side in _SIDES[:2]:  # a copy of a folder may have a log beside it
                if (source := backup.with_name(backup.name + side)).exists():
                    shutil.copyfile(source, f"{staged.path}{side}")
            staged.path.chmod(0o600)
            note = {**facts, "aside": aside if target.exists() else None}
            here = _write(staged, _latest(target, anchor.read()), note, lost_records)
            _close_log(staged.path)
            sync(staged.path)
            _move_aside(target, folder / aside)
            os.replace(staged.path, target)
            sync(folder)
    except OSError as error:
        raise LedgerUnavailable(f"{backup} cannot be put into {folder}: {error.strerror}; run it again") from error
    _reset(anchor, here)


def _reset(anchor: Anchor, here: Noted) -> None:
    try:
        anchor.reset(here)
    except OSError as error:
        raise LedgerReadOnly(
            f"the ledger was restored, and {anchor.path} cannot be written: {error.strerror}; make it writable"
        ) from error


def _write(store: Store, noted: Noted | None, facts: Mapping[str, Any], lost_records: int) -> Noted:
    """Check a ledger that is to go live, write into it where it comes from, and return where it ends."""
    if noted is not None and noted.is_moved:
        raise LedgerMoved(
            "the ledger of this place was moved away and goes on somewhere else: restore it there, or, if it is gone "
            "there, in a new folder"
        )
    try:
        store.open()
        with store.transaction() as rows:
            if not rows.has_caches():
                rewrite_caches(rows)
            work = Work(rows, system_clock)
            verify(rows, full=True)
            lost = _lost(rows, noted, is_database=not isinstance(store, SqliteStore))
            if lost != lost_records:
                raise OutOfRange(
                    f"the backup ends with record {rows.head().number}, so {lost} records that were noted are lost; "
                    f"find a newer backup, or say that they are (--lost-records {lost})",
                    name="lost_records",
                    value=lost_records,
                )
            known = {"noted": noted.number, "noted_hash": noted.hash} if noted else {"noted": 0, "noted_hash": None}
            restored = work.write("restored", {**facts, **known, "lost": lost})
            (first,) = rows.records(1, 1)
            return Noted(first.hash, restored.hash, restored.number, restored.hash)
    finally:
        store.close()


def _lost(rows: Transaction, noted: Noted | None, *, is_database: bool) -> int:
    """Return how many records that were noted are not there; refuse a ledger that is another one."""
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
    if is_database:  # put back, and gone on with from another folder: all that was noted may be lost
        return noted.number
    raise LedgerRolledBack(
        f"record {noted.number} of this backup is not the one that was noted here: it went on somewhere else",
        record=noted.number,
        differs="end",
    )


def _latest(target: Path, noted: Noted | None) -> Noted | None:
    """Return the later of the head that was noted and that of the old file, if it can still be read."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(target))}?mode=ro", uri=True)) as connection:
            ((ledger, since, number, digest, kind),) = connection.execute(_HEAD)
    except (sqlite3.Error, ValueError):
        return noted
    if not isinstance(number, int) or not all(isinstance(text, str) for text in (ledger, since, digest, kind)):
        return noted
    found = Noted(ledger, since, number, digest, kind == "moved")
    if noted is None:
        return found
    return found if found.ledger == noted.ledger and found.number > noted.number else noted


def _move_aside(target: Path, aside: Path) -> None:
    """Move the old file and what belongs to it out of the way."""
    if target.exists():
        _close_log(target)
    for side in _SIDES:
        if (old := Path(f"{target}{side}")).exists():
            os.rename(old, f"{aside}{side}")


def _close_log(path: Path) -> None:
    """Write the log of a file back into it, which nobody else may have open; a damaged one is left as it is."""
    address = f"file:{quote(str(path))}?mode=rw"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)) as connection:
            for statement in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "COMMIT"):
                connection.execute(statement)
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LedgerBusy(f"others have {path} open; stop them, and restore then: nothing was changed") from None
