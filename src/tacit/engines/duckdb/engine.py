"""The engine: which tables are registered, from which files, in which version.

Tables of up to `ROWS_STORED_MAX` rows, CSV files, views of a database, tables with a limit on the rows of a unit, and
public tables with a key are stored once (`prepared`); all others are read from their files for each question and never
loaded. A stored table is used again by every process that registers it with the same fingerprint, whatever became of
its files meanwhile; `refresh` reads them again, and stores them anew if what they hold has changed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
from sqlglot import exp

from tacit.engines import dialects
from tacit.engines.duckdb import relations
from tacit.engines.duckdb.connections import Connection, alias, answers, attach, connect, detach
from tacit.engines.duckdb.csv_files import Recoder
from tacit.engines.duckdb.execution import Reader, Runs, answer
from tacit.engines.duckdb.prepared import TABLE, PreparedStore
from tacit.engines.duckdb.relations import Shown
from tacit.engines.duckdb.sources import Found, check_files, find, fingerprint, opened, state
from tacit.engines.protocol import FAILED, Columns, Described, Progress, Source
from tacit.engines.quoting import digest, quoted
from tacit.engines.relations import check, ends, not_identified, not_registered, not_unique, place
from tacit.privacy.errors import EngineFailed, SourceMissing
from tacit.privacy.tables import Table

ROWS_STORED_MAX: Final = 30_000_000
"""A table with more rows than that, and no limit on those of a unit, stays in its files."""

FORMAT: Final = 2
"""Changes with the way rows are stored, so that files of an older way are made anew."""
DECODED: Final = ("TIMESTAMP", "TIME", "DATE", "INTERVAL", "DECIMAL")
"""Types of columns whose values the reader of a file converts, which may fail."""

_ATTEMPTS: Final = 3
_NUMBERS: Final = count()


@dataclass(frozen=True, slots=True)
class _Registered:
    """A table as it is shown now; `others` are the tables that were known when it was registered."""

    table: Table
    source: Source
    others: Mapping[str, Table]
    fingerprint: str
    version: str
    """A digest of all that decides what the relation holds."""
    shown: Shown
    path: Path | None
    """Where its rows are stored, None for a view over files."""


class DuckDBEngine:
    """DuckDB inside this process, with its prepared rows in `folder`, or in a temporary one.

    `salt` is the secret by which rows of a unit are chosen where a table has a limit on them. `threads` and
    `memory_limit` (such as "4GB") are those of DuckDB; work that does not fit into memory goes to the folder `spill`.
    Several threads may use one engine, and several processes one folder.
    """

    def __init__(
        self, folder: Path | None, salt: int, threads: int | None = None, memory_limit: str | None = None
    ) -> None:
        self._temporary = TemporaryDirectory(prefix="tacit-") if folder is None else None
        self.folder: Final = Path(self._temporary.name if self._temporary else folder or "").absolute()
        self._salt, self._store, self._runs = salt, PreparedStore(self.folder), Runs()
        self._spill = self._store.spill / f"{os.getpid()}-{next(_NUMBERS)}"
        self._recoder = Recoder(self._spill.with_name(f"{self._spill.name}-csv"))
        self._settings: dict[str, Any] = {"temp_directory": str(self._spill)}
        if threads is not None:
            self._settings["threads"] = threads
        if memory_limit is not None:
            self._settings["memory_limit"] = memory_limit
        self._tables: dict[str, _Registered] = {}
        self._preparing = threading.RLock()  # held while files are looked at and rows are stored
        self._reading = threading.Lock()  # held for moments only
        self._builder: Connection | None = None
        self._reader: Reader | None = None

    def describe(self, source: Source) -> list[Described]:
        """Return the columns of a source, without reading more of it than their types need."""
        with self._looking():
            return self._find(source).described

    def with_forms(self, source: Source) -> Source:
        """Return a source with the forms of its CSV files as they are now, by which later versions are to be read."""
        with self._looking():
            return replace(source, csv=self._find(source).forms)

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation, storing its rows where that makes questions fast.

        The tables that it leads to by foreign keys are registered before it. Nothing is done if all is as it was.
        """
        with self._looking():
            known = {name.lower(): other for name, other in others.items()}
            check(table, known)
            for step in table.unit.through if table.unit else ():
                self._registered(step.target_table)
            self._show(table, source, known, fingerprint)

    def forget(self, name: str) -> None:
        """Take a table away again, with what was stored of it."""
        with self._preparing:
            with self._reading:
                self._tables.pop(name.lower(), None)
                self._reader = None
            self._store.forget(name)

    def refresh(self, name: str) -> str:
        """Show the rows of a table as they are now, and return the fingerprint of its files."""
        with self._looking():
            known = self._registered(name)
            return self._show(known.table, known.source, known.others).fingerprint

    def write(self, tree: exp.Query) -> str:
        """Return a statement as DuckDB reads it."""
        return dialects.duckdb(tree)

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT and return its columns; `progress` is called from another thread."""
        reader = self._read()
        try:
            with reader.cursor(tells=progress is not None) as cursor:
                return self._runs.run(
                    cursor,
                    lambda: answer(cursor, sql, parameters),
                    timeout_s=timeout_s,
                    progress=progress,
                    failure=FAILED,
                )
        except EngineFailed as caught:
            failed = caught
        except duckdb.Error:
            failed = EngineFailed(FAILED)
        self._drop_if_broken(reader)
        raise failed

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, questions and preparations, raise Cancelled."""
        self._runs.cancel(thread)

    def close(self) -> None:
        """Let go of the database; what was stored stays, unless the folder was a temporary one."""
        self._runs.cancel()
        with self._preparing:
            with self._reading:
                self._tables.clear()
                self._reader = None
            if self._builder is not None:
                self._builder.close()
                self._builder = None
            shutil.rmtree(self._spill, ignore_errors=True)
            with suppress(OSError):
                self._spill.parent.rmdir()
            if self._temporary is not None:
                self._temporary.cleanup()

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Hold the lock on sources; copies that were made of them are removed at the end."""
        with self._preparing:
            try:
                yield
            finally:
                self._recoder.clear()

    def _registered(self, name: str) -> _Registered:
        try:
            return self._tables[name.lower()]
        except KeyError:
            raise not_registered(name) from None

    def _building(self) -> Connection:
        if self._builder is None:
            self._store.sweep()
            self._builder = connect(self._settings)
        return self._builder

    def _read(self) -> Reader:
        with self._reading:
            if self._reader is None:
                shown = {known.table.name: known.shown for known in self._tables.values()}
                self._reader = Reader(self._settings, shown)
            return self._reader

    def _drop_if_broken(self, reader: Reader) -> None:
        """Let the next question have a new connection if this one answers nothing any more."""
        if not reader.works:
            with self._reading:
                if self._reader is reader:
                    self._reader = None

    def _show(
        self, table: Table, source: Source, others: Mapping[str, Table], stated: str | None = None
    ) -> _Registered:
        """Show a table in the version of a fingerprint, or as its files are now, and return what is shown."""
        for _ in range(_ATTEMPTS):
            before = state(source) if stated is None else ""
            seen = fingerprint(source) if stated is None else stated
            version = self._version(table, seen)
            known = self._tables.get(table.name.lower())
            if known is not None and known.version == version and (known.path is None or known.path.exists()):
                if stated is None:
                    self._check(table, source, version)
                return known
            if stated is None:
                check_files(self._building(), source, self._recoder)
            is_new = not self._store.path(table.name, version).exists()
            shown, path = self._prepared(table, source, version, stated)
            if stated is None or (path is not None and is_new):
                self._check(table, source, version)
            if stated is not None or state(source) == before:
                made = _Registered(table, source, others, seen, version, shown, path)
                with self._reading:
                    self._tables[table.name.lower()] = made
                    self._reader = None
                return made
        raise SourceMissing(f"{source.place} is being written while it is read; try again when that is over")

    def _version(self, table: Table, seen: str) -> str:
        """Return a digest of all that decides what a table's relation holds; `seen` is the fingerprint of its files."""
        limit, unit = table.limits.rows_per_unit, table.unit
        return digest(
            FORMAT,
            table.name.lower(),
            [(column.name, column.kind.value, column.nullable, ends(column)) for column in table.columns],
            sorted(name.lower() for name in table.identified_by),
            None if unit is None else (unit.column, [(step.column, step.target_column) for step in unit.through]),
            [self._registered(step.target_table).version for step in unit.through] if unit else [],
            None if limit is None else (limit, digest(self._salt)),
            seen,
        )

    def _prepared(self, table: Table, source: Source, version: str, stated: str | None) -> tuple[Shown, Path | None]:
        """Return how a version of a table is shown, and where its rows are stored, storing them if they are to be."""
        path = self._store.path(table.name, version)
        if path.exists() and self._is_stored(table, path):
            return _from_file(table, path), path
        return self._made(table, source, version, stated)

    def _made(self, table: Table, source: Source, version: str, stated: str | None) -> tuple[Shown, Path | None]:
        """Look at the files of a table, and store its rows or show them where they are.

        Rows of a stated version are stored anew only from files that are still as they were then.
        """
        found = self._find(source)
        rows = relations.declared(found, table)
        if table.unit is not None:
            parents = [self._registered(step.target_table) for step in table.unit.through]
            rows = relations.with_unit(table, rows, [(one.table, self._whole(one)) for one in parents])
        self._check_rows(table, source, rows)
        if not _is_to_be_stored(table, found):
            self._check_decoded(table, source, found, rows)
            return relations.view(table, rows), None
        shown = self._tables.get(table.name.lower())
        _require_unchanged(table, source, stated)

        def fill(aside: str) -> None:
            self._fill(table, rows, source, aside)
            _require_unchanged(table, source, stated)

        path = self._store.make(table.name, version, fill, shown.path if shown else None)
        return _from_file(table, path), path

    def _find(self, source: Source) -> Found:
        if self._builder is not None and not answers(self._builder):
            self._builder = None
        return find(self._building(), source, self._recoder)

    def _whole(self, known: _Registered) -> Shown:
        """Return all rows of a table that others lead to, also those beyond the limit on the rows of a unit."""
        if known.path is not None and known.table.limits.rows_per_unit is None:
            columns = (f"{quoted(one.name)} AS c{index}" for index, one in enumerate(known.table.columns))
            shown = _from_file(known.table, known.path)
            return Shown(f"SELECT {', '.join(columns)} FROM ({shown.sql})", shown.attached)
        return relations.declared(self._find(known.source), known.table)

    def _check(self, table: Table, source: Source, version: str) -> None:
        """Refuse rows that belong to several units or share what identifies them; once for each version."""
        fact = digest("checked", version)
        has_keys = bool(table.identified_by or (table.unit is not None and table.unit.through))
        if not has_keys or self._store.is_marked(table.name, fact):
            return
        if table.unit is not None:
            self._check_keys(table)
        self._check_identified(table, source, relations.declared(self._find(source), table))
        self._store.mark(table.name, fact)

    def _check_keys(self, table: Table) -> None:
        """Refuse foreign keys that lead to several rows: a row would belong to several units."""
        assert table.unit is not None
        for number, step in enumerate(table.unit.through, start=1):
            parent = self._registered(step.target_table)
            leads_on = table.unit.through[number].column if number < len(table.unit.through) else table.unit.column
            for key in (step.target_column, leads_on):
                relations.check_key(self._find(parent.source), parent.table, key)
            fact = digest("unique", parent.version, step.target_column.lower())
            if self._store.is_marked(parent.table.name, fact):
                continue
            whole, key = self._whole(parent), f"c{place(parent.table, step.target_column)}"
            sql = f"SELECT COUNT({key}) AS rows, COUNT(DISTINCT {key}) AS keys FROM ({whole.sql})"
            with opened(self._building(), whole.attached):
                counted = self._work(lambda sql=sql: answer(self._building(), sql), parent.source)
            if counted["rows"][0] != counted["keys"][0]:
                raise not_unique(table, parent.table, step.target_column)
            self._store.mark(parent.table.name, fact)

    def _check_rows(self, table: Table, source: Source, rows: Shown) -> None:
        """Refuse rows that DuckDB cannot even begin to read."""
        connection, readable = self._building(), True
        with opened(connection, rows.attached):
            try:
                connection.execute(f"DESCRIBE {rows.sql}")
            except duckdb.Error:
                readable = False
        if not readable:
            raise SourceMissing(f"the rows of {table.name} cannot be read from {source.place}; register it anew")

    def _check_decoded(self, table: Table, source: Source, found: Found, rows: Shown) -> None:
        """Refuse a file with a value that DuckDB cannot decode, such as a time in milliseconds beyond its own range.

        The reader fails for it before any cast of ours, in every question that reads the column. Found here, once, it
        is an error of the owner's, who registers or refreshes the table, and tells an analyst nothing.
        """
        types = {name: one.type for scan in found.scans for name, one in scan.columns.items()}
        decoded = [
            f"COUNT(c{number})"
            for number, column in enumerate(table.columns)
            if types.get(column.name.lower(), "").startswith(DECODED)
        ]
        if source.form == "parquet" and decoded:
            sql = f"SELECT {', '.join(decoded)} FROM ({rows.sql})"
            with opened(self._building(), rows.attached):
                self._work(lambda: answer(self._building(), sql), source)

    def _check_identified(self, table: Table, source: Source, rows: Shown) -> None:
        """Refuse a table two rows of which share what is said to identify them: joins would multiply rows."""
        if not table.identified_by:
            return
        keys = ", ".join(f"c{place(table, name)}" for name in table.identified_by)
        sql = f"SELECT COUNT(*) AS n FROM (SELECT {keys} FROM ({rows.sql}) GROUP BY ALL HAVING COUNT(*) > 1)"
        with opened(self._building(), rows.attached):
            counted = self._work(lambda: answer(self._building(), sql), source)
        if counted["n"][0]:
            raise not_identified(table)

    def _fill(self, table: Table, rows: Shown, source: Source, aside: str) -> None:
        """Store the rows of a table in an empty database file."""
        connection = self._building()

        def store() -> None:
            from_rows = f"({rows.sql})"
            if table.unit is not None and (source.form == "csv" or table.unit.through):
                # Rows that are dear to read are read once, although they are counted before they are stored.
                connection.execute(f"CREATE OR REPLACE TEMP TABLE staged AS {rows.sql}")
                from_rows = "staged"
            made = f"{alias(aside)}.{TABLE}"
            connection.execute(f"CREATE TABLE {made} AS {relations.stored(table, from_rows, self._salt)}")

        with opened(connection, rows.attached):
            try:
                attach(connection, aside, write=True)
                self._work(store, source)
            except duckdb.Error:
                raise EngineFailed(f"the prepared rows of {table.name} cannot be written in {self.folder}") from None
            finally:
                with suppress(duckdb.Error):
                    connection.execute("DROP TABLE IF EXISTS temp.staged")
                detach(connection, aside)

    def _work(self, work: Any, source: Source) -> Any:
        """Do a part of a preparation, so that it can be cancelled."""
        return self._runs.run(
            self._building(),
            work,
            failure=f"the rows of {source.place} could not be prepared; check that its files are complete, that the "
            f"texts that identify units are UTF-8, and that memory and the disk of {self.folder} suffice",
        )

    def _is_stored(self, table: Table, path: Path) -> bool:
        """Return whether a prepared file can be opened; one that cannot is made anew."""
        connection = self._building()
        try:
            attach(connection, str(path))
            connection.execute(f"DESCRIBE {_from_file(table, path).sql}")
            detach(connection, str(path))
        except duckdb.Error:
            with suppress(duckdb.Error):
                detach(connection, str(path))
            return False
        return True


def _require_unchanged(table: Table, source: Source, stated: str | None) -> None:
    if stated is not None and fingerprint(source) != stated:
        raise SourceMissing(
            f"the rows of {table.name} as they were at its last refresh are no longer stored, and {source.place} has "
            f"changed since; look at its rows again: tacit table refresh {shlex.quote(table.name)}"
        )


def _is_to_be_stored(table: Table, found: Found) -> bool:
    is_identified = bool(table.identified_by) and not table.is_private  # one row a key, found once
    if found.source.form == "csv" or table.limits.rows_per_unit is not None or is_identified:
        return True
    if found.rows is None or found.rows <= ROWS_STORED_MAX:
        return True
    declared = {column.name.lower() for column in table.columns}  # to write a list as a text takes long at each mention
    types = [one.type for scan in found.scans for name, one in scan.columns.items() if name in declared]
    return any(one.endswith(("]", ")")) and not one.startswith(("DECIMAL", "ENUM")) for one in types)


def _stored(path: Path) -> str:
    return f"{alias(str(path))}.main.{TABLE}"


def _from_file(table: Table, path: Path) -> Shown:
    return Shown(f"SELECT {relations.from_stored(table)} FROM {_stored(path)}", (str(path),))
