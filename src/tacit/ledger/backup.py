"""Restoring a ledger from a backup: what lay in its place is moved aside, and lost records are declared in the journal.

Promise: a crash at any moment leaves the old file in its place, no file (which is refused, because a head was noted),
or the restored one; running it again works. No process writes to the old file any more: it must be closed everywhere
first, its lock is held from before its end is read until the new file is in its place, and a store refuses to write to
a file that is no longer in its place. A symbolic link is followed: its target is replaced.

Export and import: a ledger as JSON lines.

The first line says what the file is, and where the ledger lies if that is a folder; then comes one record a line as it
stands in the journal, then the released answers, and a last line that says how many of each there are: a file without
it was cut off. An import goes into an empty ledger only, verifies every line, and keeps the chain; one more record says
that it happened.

A ledger is in use in one place only. An import therefore closes the ledger that was exported, with a last record
`moved`, and only then is its own on disk: a crash between the two leaves none that admits anything, and the import can
be run again with a statement that it was interrupted.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from tacit.ledger.anchor import Anchor, NotedHead
from tacit.ledger.clock import system_clock
from tacit.ledger.journal import Head, Record, canonical
from tacit.ledger.replay import MemoryRows, apply
from tacit.ledger.stores import SqliteStore, Store
from tacit.ledger.stores.protocol import Transaction
from tacit.ledger.stores.sql import SqlTransaction
from tacit.ledger.stores.sqlite import FILE_NAME
from tacit.ledger.transactions import LedgerTransaction
from tacit.ledger.verification import (
    checked_records,
    declares_lost,
    first_hash,
    noted_head,
    rewrite_caches,
    verify,
    write_caches,
)
from tacit.privacy import strict_json
from tacit.privacy.errors import (
    AlreadySettled,
    InvalidInput,
    LedgerBusy,
    LedgerCorrupt,
    LedgerMoved,
    LedgerReadOnly,
    LedgerRolledBack,
    LedgerTooNew,
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
        raise InvalidInput(f"{backup} is not a file; name a backup that `tacit ledger backup` wrote", name="backup")
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
            "this ledger was moved to another location: restore it there, or, if it is lost there, in a new folder"
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
        raise LedgerRolledBack("the backup is of a different ledger than the one noted here", differs="end")
    if head.number < noted.number:
        return noted.number - head.number
    here = [record.hash for record in rows.records(noted.number, 1)]
    if here == [noted.hash] or declares_lost(rows, noted):
        return 0
    if is_database:  # restored, and then used from another folder: all that was noted may be lost
        return noted.number
    raise LedgerRolledBack(
        f"record {noted.number} of this backup differs from the record noted here: the backup was used elsewhere",
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
                f"{backup} cannot be read ({said}); copy it, with its log, to a folder that this user can write"
            ) from error
        raise NotALedger(f"{backup} is not the backup of a ledger, or is damaged ({said})") from error


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    address = file_uri(path, mode)
    if mode == "ro" and not Path(f"{path}-wal").exists() and not os.access(path.parent, os.W_OK):
        address += "&immutable=1"  # SQLite would make a log there
    return sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)


FORMAT: Final = "tacit-ledger"
VERSION: Final = 1
LINE_LENGTH_MAX: Final = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Export:
    """An export that was read to its end and verified."""

    records: tuple[Record, ...]
    contents: Mapping[str, bytes]
    rows: MemoryRows
    """The tables that follow from the records."""
    folder: str | None = None
    """The folder of the ledger that was exported, if the export names one."""

    @property
    def head(self) -> Head:
        """Where the journal ends."""
        return self.records[-1].head if self.records else Head()

    @property
    def ledger(self) -> str | None:
        """The id of the ledger: the hash of its first record."""
        return self.records[0].hash if self.records else None


def export_lines(
    records: Iterable[Record], content: Callable[[str], bytes | None] | None, folder: str | None = None
) -> Iterator[str]:
    """Yield the lines of an export: the records, and the stored answers unless `content` is None."""
    yield canonical({"folder": folder, "format": FORMAT, "version": VERSION})
    count, rows = 0, MemoryRows()
    for record in records:
        count += 1
        apply(record, rows)
        yield canonical({"record": asdict(record)})
    kept = {answer.sha256 for answer in rows.answers.values()} if content is not None else set()
    for digest in sorted(kept):
        found = b"" if content is None else content(digest) or b""
        yield canonical({"answer": base64.b64encode(found).decode("ascii"), "sha256": digest})
    yield canonical({"answers": len(kept), "records": count})


def read_export(lines: Iterable[str]) -> Export:
    """Read an export and verify all of it."""
    parsed = map(_parse, lines)
    folder = _read_header(next(parsed, {}))
    records, contents = _read(parsed)
    rows = MemoryRows()
    for record in checked_records(iter(records), Head()):
        apply(record, rows)
    for answer in rows.answers.values():
        if answer.sha256 not in contents:
            raise _damaged(f"the answer {answer.sha256[:16]} is missing")
    for last in records[-1:]:
        if last.kind == "moved":
            raise LedgerMoved(f"the ledger of this export was moved to {last.contents['to']}; export it there")
    return Export(tuple(records), contents, rows, folder)


def close_source(transaction: LedgerTransaction, export: Export, to: str, lost: str | None) -> None:
    """Append the record `moved` to the ledger that was exported.

    If the record is there already, an import was interrupted, or the ledger is in use there: `lost` must say which.
    """
    head = transaction.rows.head()
    if lost is not None and any(
        last.kind == "moved" and last.previous == export.head.hash for last in transaction.rows.end()
    ):
        return
    if [first.hash for first in transaction.rows.records(1, 1)] != [export.ledger]:
        raise InvalidInput("the ledger named as the source is not the one that was exported", name="source")
    if (head.number, head.hash) != (export.head.number, export.head.hash):
        transaction.require_not_moved(
            "if an import was interrupted and the ledger is not used there, say so (--source-lost REASON, source_lost=)"
        )
        raise InvalidInput(
            f"the ledger was changed since it was exported: it ends with record {head.number}, and the export with "
            f"{export.head.number}; export it again",
            name="export",
        )
    transaction.write("moved", {"to": to})


def require_empty(head: Head) -> None:
    """Raise AlreadySettled if a ledger has records."""
    if head.number:
        raise AlreadySettled("an import goes into an empty ledger, and this one has records", name="ledger")


def import_export(transaction: LedgerTransaction, export: Export, source: Mapping[str, str | None]) -> None:
    """Write an export into an empty ledger; `source` says where it comes from."""
    require_empty(transaction.rows.head())
    for record in export.records:
        transaction.rows.append(record, is_checkpoint=record.kind == "checkpoint")
    for digest, content in export.contents.items():
        transaction.rows.put_content(digest, content)
    write_caches(transaction.rows, export.rows)
    transaction.write("imported", {"records": len(export.records), **source})


def read_all(stream: TextIO) -> Iterator[str]:
    """Yield the lines of a stream; raise for a line that passes the limit."""
    while line := stream.readline(LINE_LENGTH_MAX):
        if len(line) == LINE_LENGTH_MAX:
            raise InvalidInput(f"a line of an export has at most {LINE_LENGTH_MAX:,} characters", name="stream")
        yield line


def _read_header(header: Mapping[str, Any]) -> str | None:
    if header.get("format") != FORMAT:
        raise InvalidInput("this is not the export of a ledger; its first line should say so", name="stream")
    if header.get("version") != VERSION:
        raise LedgerTooNew(f"the export has version {header.get('version')!r}, and this tacit knows {VERSION}")
    folder = header.get("folder")
    return folder if isinstance(folder, str) else None


def _read(parsed: Iterator[dict[str, Any]]) -> tuple[list[Record], dict[str, bytes]]:
    records: list[Record] = []
    contents: dict[str, bytes] = {}
    for line in parsed:
        match line:
            case {"record": dict() as fields}:
                records.append(_record(fields, len(records) + 1))
            case {"answer": str() as text, "sha256": str() as digest}:
                contents[digest] = _content(text, digest)
            case {"answers": answers, "records": count}:
                if (answers, count) != (len(contents), len(records)) or next(parsed, None) is not None:
                    raise _damaged("it does not hold as many records as its last line says")
                return records, contents
            case _:
                raise _damaged(f"the line after record {len(records)} is neither a record nor an answer")
    raise _damaged(f"the export is truncated after record {len(records)}")


def _parse(line: str) -> dict[str, Any]:
    try:
        value = strict_json.loads(line)
    except InvalidInput as error:
        raise _damaged(error.message) from None
    return value if isinstance(value, dict) else {}


def _record(fields: dict[str, Any], expected: int) -> Record:
    types = {"number": int, "at_us": int, "behind_us": int, "kind": str, "body": str, "previous": str, "hash": str}
    if fields.keys() != types.keys() or any(type(fields[name]) is not kind for name, kind in types.items()):
        raise _damaged(f"record {expected} does not have the fields of a record")
    return Record(**fields)


def _content(text: str, digest: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        content = b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise _damaged(f"the answer {digest[:16]} was changed")
    return content


def _damaged(how: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"the export is damaged: {how}; nothing was imported", differs="export")
