"""A ledger as a thing that lies somewhere: opened, verified, copied, moved, rebuilt.

Promise: nothing is written to a ledger that does not verify. What is found damaged while it is open closes it for
changes at once; `Ledger.rebuild` makes the tables anew from a journal that is whole, and a journal that is not comes
back from a backup. The clock and the source of names are passed in, so that a simulator can replay every crash.

Not here: what is charged to whom (ledger).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO, TypeAlias, TypeVar, cast

from tacit.ledger import transfer
from tacit.ledger.journal import Anchor, Head, Noted, Record
from tacit.ledger.permits import Scope
from tacit.ledger.stores import SqliteStore, Store, Transaction
from tacit.ledger.transactions import Batches, Clock, LedgerTransaction, system_clock
from tacit.ledger.verification import (
    RECORDS_AT_ONCE,
    Verified,
    changed_contents,
    check_goes_on,
    checked,
    end_of,
    has_content,
    holds,
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
"""What makes a name that nobody can guess."""
Done = TypeVar("Done")


def system_token() -> str:
    """Return sixteen letters from the operating system's randomness."""
    return secrets.token_hex(8)


class Book:
    """A journal and its tables in a store."""

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
        self._seen: Noted | None = None
        """Where the journal ended when it was last looked at: it goes on from there, or was put back meanwhile."""

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
        book = cls(store, clock=clock, token=token, anchor=anchor)
        try:
            book._check_exists()
            store.open()
            book._write_missing_caches()
            book.verify()
        except BaseException:
            store.close()
            raise
        return book

    @classmethod
    def rebuild(cls, where: Path | str | Store, *, by: str, reason: str, anchor: Path | str | None = None) -> Self:
        """Write the tables anew from a journal that is whole, for whom and why, and open the ledger.

        A damaged journal is not mended: it raises, and a backup has to be restored. Answers that were changed are
        forgotten; asked again, they cost again.
        """
        who, why = name("by", by), note("reason", reason, required=True)
        store = _store_at(where, create=False)
        book = cls(store, anchor=anchor)
        try:
            book._check_exists()
            store.open()
            noted = None if book._anchor is None else book._anchor.read()

            def write(rows: Transaction) -> None:
                work = LedgerTransaction(rows, system_clock)
                if noted is not None:
                    holds(rows, noted)
                memory = transfer.rewrite_caches(rows)
                lost = [key for key, answer in memory.answers.items() if not has_content(rows, answer)]
                for sha256 in changed_contents(rows):
                    rows.drop_content(sha256)
                work.write("caches-rebuilt", {"by": who, "dropped_answers": sorted(lost), "reason": why})

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
        """Go on from a backup, for whom and why, and open the ledger; what lay in its place is moved aside.

        If records that were noted are not in the backup, `lost_records` must say how many: what they charged is
        forgotten for good. A database is put back by its own tools; then no backup is named here.
        """
        who, why = name("by", by), note("reason", reason, required=True)
        facts = {"by": who, "reason": why}
        lost, store = whole("lost_records", lost_records, at_least=0), _store_at(where, create=False)
        noted_at = store.anchor if anchor is None else path_of("anchor", anchor)
        noted = None if noted_at is None else Anchor(noted_at)
        if isinstance(store, SqliteStore):
            if backup is None:
                raise InvalidInput("name the backup to go on from", name="backup")
            transfer.put_back(store, path_of("backup", backup), noted, facts, lost)
        elif backup is not None:
            raise InvalidInput("a ledger in a database is put back by the database's own tools", name="backup")
        else:
            transfer.accept(store, noted, facts, lost)
        return cls.open(store, anchor=anchor)

    def close(self) -> None:
        """Let go of the store; the ledger can be opened again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def head(self) -> Head:
        """Return where the journal ends; noted elsewhere, its number and hash show later whether it was rewritten."""
        return self._view(lambda work: work.rows.head())

    @property
    def id(self) -> str | None:
        """What tells this ledger from every other one: the hash of its first record; None before there is one."""
        if (seen := self._seen) is not None:
            return seen.ledger
        return next((first.hash for first in self._read(lambda rows: rows.records(1, 1))), None)

    def verify(self, *, full: bool = False, noted: tuple[int, str] | None = None) -> Verified:
        """Check the journal and the tables, from the last checkpoint or, with `full`, from the first record.

        `noted` is the number and the hash of a head that was noted earlier. Raises LedgerCorrupt, which names what
        differs; nothing is admitted from then on.
        """
        given = None if noted is None else head_of("noted", noted)
        is_full = truth_value("full", full)
        # both before the journal is read, to which others may append meanwhile
        anchored = None if self._anchor is None else self._anchor.read()
        seen = self._seen

        def look(rows: Transaction) -> tuple[Verified, Noted | None, bool]:
            check_goes_on(rows, seen)
            verified = verify(rows, full=is_full, noted=given)
            is_held = anchored is not None and holds(rows, anchored)
            return verified, end_of(rows, anchored if is_held else None), is_held

        verified, here, is_held = self._read(look)
        if here is not None and (self._seen is None or here.number > self._seen.number):
            self._seen = here
        if self._anchor is not None and here is not None:
            with suppress(OSError):  # it can be read all the same; who changes it is told
                (self._anchor.note if is_held else self._anchor.reset)(here)
        return verified

    def history(self, first: int = 1) -> Iterator[Record]:
        """Yield the records from a number on, each checked."""
        head: Head | None = None
        while records := self._records_from(first):
            for record in checked(iter(records), head or Head(first - 1, records[0].previous)):
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
        """Yield the lines of an export; without `answers` it is for reading and checking, and cannot be imported.

        `folder` is where the ledger lies, for an import to find it.
        """
        end = self.head().number  # what comes later is left out; each part is read in a moment, and blocks nobody
        records = takewhile(lambda record: record.number <= end, self.history())
        yield from transfer.export_lines(records, self._content if answers else None, folder)

    def import_(
        self,
        export: Path | str | TextIO,
        *,
        source: Book | Store | Path | str | None = None,
        source_lost: str | None = None,
    ) -> None:
        """Fill this ledger, which must be empty, with an export; every line is verified before any is written.

        The ledger that was exported is closed for changes first, so that only one goes on. It is `source`, or lies in
        the folder that the export names. If it cannot be reached, or an import was interrupted after it was closed,
        `source_lost` must say why no other one goes on.
        """
        if hasattr(export, "readline"):
            read = transfer.read_export(transfer.read_all(cast(TextIO, export)))
        else:
            try:
                with path_of("export", export).open(encoding="ascii") as file:
                    read = transfer.read_export(transfer.read_all(file))
            except (OSError, UnicodeDecodeError):
                raise InvalidInput(f"{export} cannot be read as an export", name="export") from None
        transfer.require_empty(self.head())
        lost = None if source_lost is None else note("source_lost", source_lost, required=True)
        to = self._store.place
        with ExitStack() as stack:
            found = source if isinstance(source, Book) else _source_of(read, source, lost, stack)
            place = None if found is None else found._store.place
            facts = {"source": place, "source_lost": lost}
            if place == to:
                raise InvalidInput("a ledger cannot be moved to where it is", name="source")

            def fill(work: LedgerTransaction) -> None:
                transfer.import_export(work, read, facts)
                if found is not None:  # a crash from here on leaves it closed there and not yet written here
                    _close(found, lambda other: transfer.close_source(other, read, to, lost))

            self._change(fill)

    def backup(self, path: Path | str) -> None:
        """Write a copy that can be opened to a new file, while others go on; it appears when it is complete."""
        self._store.backup(path_of("path", path))

    def _write_missing_caches(self) -> None:
        """Write the tables from the journal if a migration made them anew, and nobody else has done it."""
        if not self._read(lambda rows: rows.has_caches()):
            with self._watched():
                run_in(self._store.transaction(), lambda rows: rows.has_caches() or transfer.rewrite_caches(rows))

    def _records_from(self, first: int) -> list[Record]:
        return self._read(lambda rows: rows.records(first, RECORDS_AT_ONCE))

    def _content(self, sha256: str) -> bytes | None:
        return self._read(lambda rows: rows.content(sha256))

    def _change(self, action: Callable[[LedgerTransaction], Done], scopes: Sequence[Scope] = ()) -> Done:
        """Do something in a transaction that holds the write lock; all of it is on disk when this returns.

        The rows of `scopes` are read with the first message to a database.
        """
        with self._watched():
            done: Done = self._batches.write(lambda rows: action(LedgerTransaction(rows, self._clock)), scopes)
            return done

    def _begin(self, rows: Transaction) -> Noted | None:
        """Return where the journal ends before a change.

        Refuse a ledger that was put back since it was opened, and one whose head could not be noted.
        """
        if self._anchor is not None:
            self._anchor.require_writable()
        seen = self._seen
        check_goes_on(rows, seen)
        return end_of(rows, seen)

    def _end(self, rows: Transaction, start: Noted | None) -> Callable[[], None]:
        """Return how to note the head that is about to be written."""
        here = end_of(rows, start)

        def note() -> None:
            if here != self._seen and self._anchor is not None and here is not None:
                self._anchor.note(here)
            self._seen = here

        return note

    def _check_exists(self) -> None:
        """Refuse to begin anew where a ledger was noted."""
        if self._anchor is not None and self._anchor.exists() and not self._store.exists():
            noted = self._anchor.read()
            upto = f" up to record {noted.number}" if noted else ""
            raise LedgerRolledBack(
                f"{self._store.description} is missing, and {self._anchor.path} noted a ledger here{upto}; "
                "put it back, or restore the newest backup (tacit ledger restore FILE --by NAME --reason TEXT)",
                record=noted.number if noted else None,
                differs="end",
            )

    def _view(self, action: Callable[[LedgerTransaction], Done]) -> Done:
        """Read something as it is at one moment."""
        return self._read(lambda rows: action(LedgerTransaction(rows, self._clock)))

    def _read(self, action: Callable[[Transaction], Done]) -> Done:
        with self._watched():
            return run_in(self._store.snapshot(), action)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Refuse everything once damage was found; an error that is raised again would keep its callers' frames."""
        if self._damage is not None:
            raise copy(self._damage)
        try:
            yield
        except LedgerCorrupt as error:
            self._damage = copy(error)
            raise


def _store_at(where: object, *, create: bool) -> Store:
    """Return the store in a folder, or the one that is given."""
    if isinstance(where, str | Path):
        return SqliteStore(where, create=create)
    if not callable(getattr(where, "transaction", None)):
        raise WrongType(f"a ledger lies in a folder or a store, not in {type(where).__name__}", name="where")
    return cast(Store, where)


def _close(source: Book, action: Callable[[LedgerTransaction], None]) -> None:
    """Close the ledger that was exported; that it is damaged says nothing about the one that is written."""
    try:
        source._change(action)
    except LedgerCorrupt as error:
        raise InvalidInput(f"the ledger that was exported cannot be closed: {error.message}", name="source") from error


def _source_of(
    export: transfer.Export, source: Store | Path | str | None, lost: str | None, stack: ExitStack
) -> Book | None:
    """Open the ledger that was exported; None if it is lost, or if nothing was in it."""
    where = source
    if where is None and export.folder is not None and SqliteStore(export.folder).exists():
        where = export.folder
    try:
        opened = None if where is None else stack.enter_context(Book.open(where, create=False))
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
