"""A journal and its cached tables in a store: opened, verified, read, changed, exported, backed up and restored.

Promise: nothing is written to a ledger that does not verify. Damage that is found while a ledger is open closes it for
changes at once; `rebuild` writes the tables from an intact journal, and a damaged journal is replaced by a backup
(`restore`). The clock and the source of random names are parameters, so that a simulator can replay every crash.

Not here: budgets and charges (`ledger`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO, TypeAlias, TypedDict, TypeVar, cast

from tacit.ledger import backup as backups
from tacit.ledger.anchor import Anchor, NotedHead
from tacit.ledger.clock import Clock, system_clock
from tacit.ledger.group_commit import Batches
from tacit.ledger.journal import Head, Record
from tacit.ledger.permits import Scope
from tacit.ledger.stores import SqliteStore, Store, Transaction
from tacit.ledger.transactions import LedgerTransaction
from tacit.ledger.verification import (
    RECORDS_AT_ONCE,
    Verified,
    changed_contents,
    check_continues,
    checked_records,
    contains_noted,
    has_content,
    noted_head,
    rewrite_caches,
    verify,
)
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, LedgerRolledBack, WrongType
from tacit.privacy.numbers import truth_value, whole
from tacit.privacy.texts import head as head_of
from tacit.privacy.texts import name, note
from tacit.privacy.texts import path as path_of
from tacit.storage.connections import run_in
from tacit.storage.files import new_file

Token: TypeAlias = Callable[[], str]
"""A function that returns an unguessable name."""
Result = TypeVar("Result")
NUMBER_MAX: Final = 2**62
"""Beyond the number of any record, and within the integers of databases."""


class JournalSettings(TypedDict, total=False):
    """What can be replaced when a ledger is opened."""

    clock: Clock
    token: Token
    anchor: Path | str | None


def system_token() -> str:
    """Return sixteen hexadecimal digits from the operating system's randomness."""
    return secrets.token_hex(8)


class StoredJournal:
    """A journal and its cached tables in a store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = system_clock,
        token: Token = system_token,
        anchor: Path | str | None = None,
    ) -> None:
        self._store: Final = store
        self._batches: Final = Batches(store, self._begin, self._end)
        self._clock = clock
        self._token = token
        self._damage: LedgerCorrupt | None = None
        path = store.anchor if anchor is None else path_of("anchor", anchor)
        self._anchor: Final = None if path is None else Anchor(path)
        self._seen: NotedHead | None = None
        """Where the journal ended when it was last read; it continues from there, or an older copy replaced it."""

    @classmethod
    def open(
        cls,
        where: Path | str | Store,
        *,
        create: bool = True,
        clock: Clock = system_clock,
        token: Token = system_token,
        anchor: Path | str | None = None,
    ) -> Self:
        """Open a ledger in a folder or a store and verify it from its last checkpoint on.

        Its latest head is noted in a file beside it, or at `anchor` for a database: a ledger that is missing or older
        than was noted is refused (LedgerRolledBack).
        """
        store = _store_at(where, create=create)
        opened = cls(store, clock=clock, token=token, anchor=anchor)
        try:
            opened._check_exists()
            store.open()
            opened._write_missing_caches()
            opened.verify()
        except BaseException:
            store.close()
            raise
        return opened

    @classmethod
    def rebuild(cls, where: Path | str | Store, *, by: str, reason: str, anchor: Path | str | None = None) -> Self:
        """Write the tables from an intact journal, and open the ledger; `by` and `reason` are kept in the journal.

        A damaged journal is not repaired: it raises, and a backup has to be restored. Stored answers that were changed
        are dropped; asked again, they are charged again.
        """
        who, why = name("by", by), note("reason", reason, required=True)
        store = _store_at(where, create=False)
        damaged = cls(store, anchor=anchor)
        try:
            damaged._check_exists()
            store.open()
            noted = damaged._read_anchor()

            def write(rows: Transaction) -> None:
                transaction = LedgerTransaction(rows, system_clock)
                if noted is not None:
                    contains_noted(rows, noted)
                memory = rewrite_caches(rows)
                lost = [key for key, answer in memory.answers.items() if not has_content(rows, answer)]
                for sha256 in changed_contents(rows):
                    rows.drop_content(sha256)
                transaction.write("caches-rebuilt", {"by": who, "dropped_answers": sorted(lost), "reason": why})

            run_in(store.transaction(), write)
        finally:
            store.close()
        return cls.open(store, anchor=anchor)

    @classmethod
    def restore(
        cls,
        where: Path | str | Store,
        backup: Path | str | None = None,
        *,
        by: str,
        reason: str,
        lost_records: int = 0,
        anchor: Path | str | None = None,
    ) -> Self:
        """Restore a backup and open the ledger; what lay in its place is moved aside.

        `by` and `reason` are kept in the journal. If records that were noted are not in the backup, `lost_records` must
        say how many: what they charged is forgotten. A database is restored by its own tools first; then `backup` is
        left out.
        """
        who, why = name("by", by), note("reason", reason, required=True)
        facts = {"by": who, "reason": why}
        lost, store = whole("lost_records", lost_records, at_least=0), _store_at(where, create=False)
        noted_at = store.anchor if anchor is None else path_of("anchor", anchor)
        noted = None if noted_at is None else Anchor(noted_at)
        if isinstance(store, SqliteStore):
            if backup is None:
                raise InvalidInput("name the backup to restore", name="backup")
            backups.restore_file(store, path_of("backup", backup), noted, facts, lost)
        elif backup is not None:
            raise InvalidInput(
                "a ledger in PostgreSQL is restored with the tools of PostgreSQL; then run this command without FILE",
                name="backup",
            )
        else:
            backups.accept_database(store, noted, facts, lost)
        return cls.open(store, anchor=anchor)

    def close(self) -> None:
        """Close the store; the ledger can be opened again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def head(self) -> Head:
        """Return where the journal ends; kept elsewhere, its number and hash show later whether it was rewritten."""
        return self._view(lambda transaction: transaction.rows.head())

    @property
    def id(self) -> str | None:
        """The hash of the first record, which no other ledger has; None before there is one."""
        if (seen := self._seen) is not None:
            return seen.ledger
        return next((first.hash for first in self._read(lambda rows: rows.records(1, 1))), None)

    def verify(self, *, full: bool = False, noted: tuple[int, str] | None = None) -> Verified:
        """Check the journal and the tables, from the last checkpoint or, with `full`, from the first record.

        `noted` is the number and the hash of an earlier head. Raises LedgerCorrupt, which names what differs; nothing
        is admitted from then on.
        """
        given = None if noted is None else head_of("noted", noted)
        is_full = truth_value("full", full)
        # both before the journal is read, to which others may append meanwhile
        anchored, seen = self._read_anchor(), self._seen

        def look(rows: Transaction) -> tuple[Verified, NotedHead | None, bool]:
            check_continues(rows, seen)
            verified = verify(rows, full=is_full, noted=given)
            is_held = anchored is not None and contains_noted(rows, anchored)
            return verified, noted_head(rows, anchored if is_held else None), is_held

        verified, here, is_held = self._read(look)
        if here is not None and (self._seen is None or here.number > self._seen.number):
            self._seen = here
        if self._anchor is not None and here is not None:
            with suppress(OSError):  # reading needs no anchor, and every change reports the error
                (self._anchor.note if is_held else self._anchor.reset)(here)
        return verified

    def history(self, first: int = 1) -> Iterator[Record]:
        """Return an iterator over the records from number `first` on, each checked."""
        return self._checked_from(min(whole("first", first), NUMBER_MAX))

    def _checked_from(self, first: int) -> Iterator[Record]:
        head: Head | None = None
        while records := self._records_from(first):
            for record in checked_records(iter(records), head or Head(first - 1, records[0].previous)):
                head = record.head
                yield record
            first = records[-1].number + 1

    def export(self, target: Path | str | TextIO) -> None:
        """Write the ledger as JSON lines, to a stream or to a new file that appears when it is complete."""
        if hasattr(target, "writelines"):
            folder = self._store.place if isinstance(self._store, SqliteStore) else None
            target.writelines(f"{line}\n" for line in self.export_lines(folder=folder))
            return
        with new_file(path_of("target", target)) as path, path.open("w", encoding="ascii") as file:
            self.export(file)

    def export_lines(self, *, answers: bool = True, folder: str | None = None) -> Iterator[str]:
        """Yield the lines of an export; without `answers` it can be read and checked, but not imported.

        `folder` is where the ledger lies, for an import to find it.
        """
        end = self.head().number  # later records are left out; parts are read in short snapshots, which block no writer
        records = takewhile(lambda record: record.number <= end, self.history())
        yield from backups.export_lines(records, self._content if answers else None, folder)

    def import_(
        self,
        export: Path | str | TextIO,
        *,
        source: StoredJournal | Store | Path | str | None = None,
        source_lost: str | None = None,
    ) -> None:
        """Import an export into this ledger, which must be empty; every line is verified before any is written.

        The ledger that was exported is closed for changes first, so that only one stays in use. It is `source`, or lies
        in the folder that the export names. If it cannot be reached, or an import was interrupted after it was closed,
        `source_lost` must say why it is not in use any more.
        """
        if hasattr(export, "readline"):
            read = backups.read_export(backups.read_all(cast(TextIO, export)))
        else:
            try:
                with path_of("export", export).open(encoding="ascii") as file:
                    read = backups.read_export(backups.read_all(file))
            except (OSError, UnicodeDecodeError):
                raise InvalidInput(f"{export} cannot be read as an export", name="export") from None
        backups.require_empty(self.head())
        lost = None if source_lost is None else note("source_lost", source_lost, required=True)
        to = self._store.place
        with ExitStack() as stack:
            found = source if isinstance(source, StoredJournal) else _source_of(read, source, lost, stack)
            place = None if found is None else found._store.place
            facts = {"source": place, "source_lost": lost}
            if place == to:
                raise InvalidInput("the ledger cannot be moved onto itself", name="source")

            def fill(transaction: LedgerTransaction) -> None:
                backups.import_export(transaction, read, facts)
                if found is not None:  # a crash from here on leaves it closed there and not yet written here
                    _close(found, lambda other: backups.close_source(other, read, to, lost))

            self._change(fill)

    def backup(self, path: Path | str) -> None:
        """Write a copy that can be opened to a new file, without blocking writers; it appears when it is complete."""
        self._store.backup(path_of("path", path))

    def _write_missing_caches(self) -> None:
        """Write the tables from the journal if a migration emptied them and no other process has done so."""
        if not self._read(lambda rows: rows.has_caches()):
            with self._refusing_damage():
                run_in(self._store.transaction(), lambda rows: rows.has_caches() or rewrite_caches(rows))

    def _records_from(self, first: int) -> list[Record]:
        return self._read(lambda rows: rows.records(first, RECORDS_AT_ONCE))

    def _content(self, sha256: str) -> bytes | None:
        return self._read(lambda rows: rows.content(sha256))

    def _change(self, action: Callable[[LedgerTransaction], Result], scopes: Sequence[Scope] = ()) -> Result:
        """Run an action in a transaction that holds the write lock; all of it is on disk when this returns.

        The rows of `scopes` are read with the first message to a database.
        """
        with self._refusing_damage():
            result: Result = self._batches.write(lambda rows: action(LedgerTransaction(rows, self._clock)), scopes)
            return result

    def _begin(self, rows: Transaction) -> NotedHead | None:
        """Return where the journal ends before a change.

        Raise if an older copy was put in its place since it was opened, or if its head could not be noted.
        """
        if self._anchor is not None:
            self._anchor.require_writable()
        seen = self._seen
        check_continues(rows, seen)
        return noted_head(rows, seen)

    def _end(self, rows: Transaction, start: NotedHead | None) -> Callable[[], None]:
        """Return a function that notes the head that is about to be written."""
        here = noted_head(rows, start)

        def note() -> None:
            if here != self._seen and self._anchor is not None and here is not None:
                self._anchor.note(here)
            self._seen = here

        return note

    def _check_exists(self) -> None:
        """Raise LedgerRolledBack if a ledger was noted for this place and is missing."""
        if self._anchor is not None and self._anchor.exists() and not self._store.exists():
            noted = self._read_anchor()
            upto = f" up to record {noted.number}" if noted else ""
            raise LedgerRolledBack(
                f"{self._store.description} is missing, and {self._anchor.path} noted a ledger here{upto}; "
                "put it back, or restore the newest backup (tacit ledger restore FILE --by NAME --reason TEXT)",
                record=noted.number if noted else None,
                differs="end",
            )

    def _view(self, action: Callable[[LedgerTransaction], Result]) -> Result:
        """Run an action on one snapshot, with the end of the journal checked."""
        return self._read(lambda rows: action(LedgerTransaction(rows, self._clock)))

    def _read_anchor(self) -> NotedHead | None:
        return None if self._anchor is None else self._anchor.read()

    def _read(self, action: Callable[[Transaction], Result]) -> Result:
        with self._refusing_damage():
            return run_in(self._store.snapshot(), action)

    @contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        """Raise again what was found damaged; a copy, for the original would keep the frames of its callers."""
        if self._damage is not None:
            raise copy(self._damage)
        try:
            yield
        except LedgerCorrupt as error:
            self._damage = copy(error)
            raise


def _store_at(where: object, *, create: bool) -> Store:
    """Return the store of a folder, or the one that is given."""
    if isinstance(where, str | Path):
        return SqliteStore(where, create=create)
    if not callable(getattr(where, "transaction", None)):
        raise WrongType(f"a ledger is opened in a folder or a store, not in {type(where).__name__}", name="where")
    return cast(Store, where)


def _close(source: StoredJournal, action: Callable[[LedgerTransaction], None]) -> None:
    """Close the ledger that was exported; damage of it is no damage of the one that is written."""
    try:
        source._change(action)
    except LedgerCorrupt as error:
        raise InvalidInput(f"the ledger that was exported cannot be closed: {error.message}", name="source") from error


def _source_of(
    export: backups.Export, source: Store | Path | str | None, lost: str | None, stack: ExitStack
) -> StoredJournal | None:
    """Open the ledger that was exported; return None if it is lost or was empty."""
    where = source
    if where is None and export.folder is not None and SqliteStore(export.folder).exists():
        where = export.folder
    try:
        opened = None if where is None else stack.enter_context(StoredJournal.open(where, create=False))
        if opened is not None and (source is not None or opened.id == export.ledger):
            return opened
    except LedgerCorrupt:
        if lost is None:
            raise
    if lost is None and export.records:
        raise InvalidInput(
            "the ledger that was exported must be closed for changes, and it cannot be found; name its folder "
            "(--source FOLDER, source= in Python), or say why it is gone (--source-lost REASON, source_lost=)",
            name="source",
        )
    return None
