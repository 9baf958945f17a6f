"""Backups: a ledger as JSON lines, and going on from a restored one.

The first line says what the file is, and where the ledger lies if that is a folder; then comes one record a line as it
stands in the journal, then the released answers, and a last line that says how many of each there were: a file without
it was cut off. An import goes into an empty ledger only, verifies every line, and keeps the chain; one more record says
that it happened.

A ledger goes on in one place. An import therefore closes the ledger that was exported, with a last record `moved`, and
only then is its own on disk: a crash between the two leaves none that admits anything, and the import can be run again
by somebody who says that it was interrupted.

Going on from a backup: what lay in its place is moved aside, and what is lost is said in the journal.

Promise: a crash at any moment leaves the old file in its place, no file (which is refused, because a head was noted),
or the restored one; running it again works. Nobody goes on writing to the old file: it must be closed everywhere first,
its lock is held from before its end is read until the new file is in its place, and a store refuses to write to a file
that is no longer in its place. A link is followed: what it leads to is replaced.
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
from urllib.parse import quote

from tacit.ledger.journal import Anchor, Head, Noted, Record, canonical
from tacit.ledger.replay import MemoryRows, apply
from tacit.ledger.stores import SqliteStore, Store
from tacit.ledger.stores.protocol import Transaction
from tacit.ledger.stores.sql import SqlTransaction
from tacit.ledger.stores.sqlite import FILE_NAME
from tacit.ledger.transactions import LedgerTransaction, check_end, system_clock
from tacit.ledger.verification import checked, declares_lost, end_of, first_hash, replayed, verify
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

FORMAT: Final = "tacit-ledger"
VERSION: Final = 1
LINE_LENGTH_MAX: Final = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Export:
    """An export that was read to its end and found whole."""

    records: tuple[Record, ...]
    contents: Mapping[str, bytes]
    rows: MemoryRows
    """What the records come to."""
    folder: str | None = None
    """Where the ledger lies that was exported, if it says so."""

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
    """Yield the lines of an export of these records and of the answers that they released, unless `content` is None."""
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
    for record in checked(iter(records), Head()):
        apply(record, rows)
    for answer in rows.answers.values():
        if answer.sha256 not in contents:
            raise _damaged(f"the answer {answer.sha256[:16]} is missing")
    for last in records[-1:]:
        if last.kind == "moved":
            raise LedgerMoved(f"the ledger of this export was moved to {last.contents['to']}; export it there")
    return Export(tuple(records), contents, rows, folder)


def close_source(work: LedgerTransaction, export: Export, to: str, lost: str | None) -> None:
    """Note in the ledger that was exported that it goes on somewhere else.

    If that is noted already, an import was interrupted, or it was not and goes on there: `lost` must say so.
    """
    head = work.rows.head()
    if lost is not None and any(last.kind == "moved" and last.previous == export.head.hash for last in work.rows.end()):
        return
    if [first.hash for first in work.rows.records(1, 1)] != [export.ledger]:
        raise InvalidInput("the ledger that is named as the source is another one than was exported", name="source")
    if (head.number, head.hash) != (export.head.number, export.head.hash):
        work.require_not_moved(
            "if an import was interrupted and nothing goes on there, say so (--source-lost REASON, source_lost=)"
        )
        raise InvalidInput(
            f"the ledger went on since it was exported: it ends with record {head.number}, and the export with "
            f"{export.head.number}; export it again",
            name="export",
        )
    work.write("moved", {"to": to})


def require_empty(head: Head) -> None:
    """Refuse a ledger that has records."""
    if head.number:
        raise AlreadySettled("an import goes into an empty ledger, and this one has records", name="ledger")


def import_export(work: LedgerTransaction, export: Export, source: Mapping[str, str | None]) -> None:
    """Fill an empty ledger with what an export holds; `source` says where that comes from."""
    require_empty(work.rows.head())
    for record in export.records:
        work.rows.append(record, is_checkpoint=record.kind == "checkpoint")
    for digest, content in export.contents.items():
        work.rows.put_content(digest, content)
    write_caches(work.rows, export.rows)
    work.write("imported", {"records": len(export.records), **source})


def rewrite_caches(rows: Transaction) -> MemoryRows:
    """Write every cached row anew from the journal, which is checked first, and return what it comes to."""
    check_end(rows)
    memory = replayed(rows)
    rows.clear_caches()
    write_caches(rows, memory)
    return memory


def write_caches(rows: Transaction, memory: MemoryRows) -> None:
    """Write rows that were replayed in memory to a store."""
    for scope in memory.scopes.values():
        rows.put_scope(scope)
    for permit in memory.permits.values():
        rows.put_permit(permit)
    for request in memory.requests.values():
        rows.put_request(request)
    for answer in memory.answers.values():
        rows.put_answer(answer)


def read_all(stream: TextIO) -> Iterator[str]:
    """Yield the lines of a stream, refusing one without end."""
    while line := stream.readline(LINE_LENGTH_MAX):
        if len(line) == LINE_LENGTH_MAX:
            raise InvalidInput(f"a line of an export has at most {LINE_LENGTH_MAX:,} characters", name="stream")
        yield line


def _read_header(header: Mapping[str, Any]) -> str | None:
    if header.get("format") != FORMAT:
        raise InvalidInput("this is not the export of a ledger: its first line says so", name="stream")
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
    raise _damaged(f"it ends after record {len(records)}, before its last line")


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


_SIDES: Final = ("", "-wal", "-shm")
_BUSY_TIMEOUT_S: Final = 2.0


def accept(store: Store, anchor: Anchor | None, facts: Mapping[str, Any], lost_records: int) -> None:
    """Go on with a database that was put back by its own tools."""
    here = _write(store, None if anchor is None else anchor.read(), {**facts, "aside": None}, lost_records)
    if anchor is not None:
        _reset(anchor, here)


def put_back(
    store: SqliteStore, backup: Path, anchor: Anchor | None, facts: Mapping[str, Any], lost_records: int
) -> None:
    """Put a backup into the place of a folder's ledger."""
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
                touch_private(anchor.path)  # from now on nobody begins anew here
            for side in _SIDES:
                if (one := Path(f"{target}{side}")).exists():
                    os.rename(one, folder / f"{aside}{side}")
            os.replace(staged.path, target)
            sync(folder)
    except OSError as error:
        raise LedgerUnavailable(f"{backup} cannot be put into {folder}: {error.strerror}; run it again") from error
    if anchor is not None:
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

    def write(rows: Transaction) -> Noted:
        if not rows.has_caches():
            rewrite_caches(rows)
        work = LedgerTransaction(rows, system_clock)
        verify(rows, full=True)
        lost = _lost(rows, noted, is_database=not isinstance(store, SqliteStore))
        if lost != lost_records:
            raise OutOfRange(
                f"the backup ends with record {rows.head().number}, so {lost} records that were noted are lost; "
                f"find a newer backup, or say that they are (--lost-records {lost})",
                name="lost_records",
                value=lost_records,
            )
        known: dict[str, object] = {"noted": 0, "noted_hash": None, "noted_since": None}
        if noted is not None:
            known = {"noted": noted.number, "noted_hash": noted.hash, "noted_since": noted.since}
        restored = work.write("restored", {**facts, **known, "lost": lost})
        return Noted(first_hash(rows), restored.hash, restored.number, restored.hash)

    try:
        store.open()
        return run_in(store.transaction(), write)
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


def _latest(old: sqlite3.Connection | None, noted: Noted | None) -> Noted | None:
    """Return the later of the head that was noted and that of the old file, if it can still be read."""
    if old is None:
        return noted
    try:
        found = end_of(SqlTransaction(lambda statement, values: old.execute(statement, values).fetchall()))
    except (sqlite3.Error, UnicodeDecodeError, TacitError):
        return noted
    if noted is None or found is None:
        return noted or found
    return found if found.ledger == noted.ledger and found.number > noted.number else noted


@contextmanager
def _locked(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Keep everybody else from a file, unless it is damaged."""
    with ExitStack() as stack:
        connection = None
        if path.exists():
            try:
                connection = stack.enter_context(closing(_connection(path, "rw")))
                for statement in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
                    connection.execute(statement).fetchall()
            except sqlite3.Error as error:
                if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise LedgerBusy(
                        f"others have {path} open; stop them, and restore then: nothing was changed"
                    ) from None
        yield connection


def _close_log(connection: sqlite3.Connection | None) -> None:
    """Write a log back into its file and go on without one; the lock is kept, and a damaged file is left as it is."""
    if connection is not None:
        with suppress(sqlite3.Error):
            for statement in ("COMMIT", "PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE"):
                connection.execute(statement).fetchall()


def _copy(backup: Path, staged: Path) -> None:
    """Copy a backup, and what a log beside it holds, by SQLite itself.

    Closing a file that was opened otherwise would end the locks that this process has on it (see `storage.sqlite`).
    """
    deadline = time.monotonic() + _BUSY_TIMEOUT_S

    def watch(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise LedgerBusy(f"others write to {backup}; name a backup that nobody uses: nothing was changed")

    touch_private(staged)
    try:
        with closing(_connection(backup, "ro")) as source, closing(_connection(staged, "rw")) as copy:
            source.backup(copy, progress=watch)
    except sqlite3.Error as error:
        said = " ".join(str(error).split())[:200]
        if _code(error) == sqlite3.SQLITE_CANTOPEN:
            raise LedgerUnavailable(
                f"{backup} cannot be read ({said}); copy it, with its log, to a folder that this account can write"
            ) from error
        raise NotALedger(f"{backup} is not the backup of a ledger, or is damaged ({said})") from error


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path))}?mode={mode}"
    if mode == "ro" and not Path(f"{path}-wal").exists() and not os.access(path.parent, os.W_OK):
        address += "&immutable=1"  # SQLite would make a log there
    return sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
