"""The DuckDB engine: which tables are registered, from which files, in which version.

Tables of up to `ROWS_STORED_MAX` rows, CSV files, views of a database, tables with a limit on the rows of a unit, and
public tables with a key are stored once (`prepared`); all others are read from their files for each query. A stored
table is used again by every process that registers it with the same fingerprint, even if its files have changed since;
`refresh` reads the files again, and stores their rows anew if their content has changed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import duckdb
from sqlglot import exp

from tacit.engines import relations as common
from tacit.engines.dialects import write_duckdb
from tacit.engines.duckdb import relations
from tacit.engines.duckdb.connections import Connection, attach, connect, database_alias, detach, is_usable
from tacit.engines.duckdb.csv_files import Utf8Copies
from tacit.engines.duckdb.execution import DuckDBStatements, Reader, fetch_columns
from tacit.engines.duckdb.prepared import TABLE, PreparedStore
from tacit.engines.duckdb.relations import DuckDBRelation
from tacit.engines.duckdb.sources import DuckDBSource, attached, check_files, file_state, fingerprint, inspect_source
from tacit.engines.protocol import FAILED, Columns, Progress, Source, SourceColumn
from tacit.engines.quoting import digest, quoted
from tacit.privacy.errors import EngineFailed, SourceMissing
from tacit.privacy.tables import Table

T = TypeVar("T")

ROWS_STORED_MAX: Final = 30_000_000
"""A table with more rows, and no limit on those of a unit, stays in its files."""

FORMAT: Final = 3
"""Changes with the way rows are stored or chosen, so that older files are stored anew."""
DECODED: Final = ("TIMESTAMP", "TIME", "DATE", "INTERVAL", "DECIMAL")
"""Types of columns whose values the reader of a Parquet file converts, which may fail."""

_ATTEMPTS: Final = 3
_NUMBERS: Final = count()


@dataclass(frozen=True, slots=True)
class _DuckDBTable(common.ShownTable):
    """A registered table, with the fingerprint of its files."""

    fingerprint: str
    version: str
    """A digest of all that decides what the relation holds."""
    shown: DuckDBRelation
    path: Path | None
    """Where its rows are stored, None for a view over files."""


class DuckDBEngine:
    """DuckDB inside this process, with its prepared rows in `folder`, or in a temporary one.

    `salt` is the secret by which rows of a unit are chosen where a table has a limit on them. `threads` and
    `memory_limit` (such as "4GB") are DuckDB's settings; what does not fit into memory is written to the folder
    `spill`.
    Several threads may use one engine, and several processes one folder.
    """

    def __init__(
        self, folder: Path | None, salt: int, threads: int | None = None, memory_limit: str | None = None
    ) -> None:
        self._temporary = TemporaryDirectory(prefix="tacit-") if folder is None else None
        self.folder: Final = Path(self._temporary.name if self._temporary else folder or "").absolute()
        self._salt, self._store, self._statements = salt, PreparedStore(self.folder), DuckDBStatements()
        self._spill = self._store.spill / f"{os.getpid()}-{next(_NUMBERS)}"
        self._copies = Utf8Copies(self._spill.with_name(f"{self._spill.name}-csv"))
        self._settings: dict[str, Any] = {"temp_directory": str(self._spill)}
        if threads is not None:
            self._settings["threads"] = threads
        if memory_limit is not None:
            self._settings["memory_limit"] = memory_limit
        self._tables: dict[str, _DuckDBTable] = {}
        self._preparing = threading.RLock()  # held while files are inspected and rows are stored
        self._reading = threading.Lock()  # held for moments only
        self._builder: Connection | None = None
        self._reader: Reader | None = None

    def describe(self, source: Source) -> list[SourceColumn]:
        """Return the columns of a source, without reading more of it than their types need."""
        with self._inspecting():
            return self._inspect(source).source_columns

    def with_csv_formats(self, source: Source) -> Source:
        """Return a source with the formats of its CSV files as they are now, by which later versions are read."""
        with self._inspecting():
            return replace(source, csv=self._inspect(source).csv_formats)

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation, storing its rows where that makes queries fast.

        The tables that it leads to by foreign keys are registered before it. Nothing is done if nothing has changed.
        """
        with self._inspecting():
            known = {name.lower(): other for name, other in others.items()}
            common.check_unit_path(table, known)
            for step in table.unit.through if table.unit else ():
                self._lookup(step.target_table)
            self._show(table, source, known, fingerprint)

    def forget(self, name: str) -> None:
        """Remove a table from what is shown, and its stored rows."""
        with self._preparing:
            with self._reading:
                self._tables.pop(name.lower(), None)
                self._reader = None
            self._store.forget(name)

    def refresh(self, name: str) -> str:
        """Show the rows of a table as they are now, and return the fingerprint of its files."""
        with self._inspecting():
            known = self._lookup(name)
            return self._show(known.table, known.source, known.others).fingerprint

    def write(self, tree: exp.Query) -> str:
        """Return a statement in DuckDB's SQL."""
        return write_duckdb(tree)

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT and return its columns; `progress` is called from another thread."""
        reader = self._current_reader()
        try:
            with reader.cursor(progress=progress is not None) as cursor:
                return self._statements.run(
                    cursor,
                    lambda: fetch_columns(cursor, sql, parameters),
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
        """Make what a thread runs now, or whatever runs in this engine, queries and preparations, raise Cancelled."""
        self._statements.cancel(thread)

    def close(self) -> None:
        """Close the database; stored rows stay, unless the folder is a temporary one."""
        self._statements.cancel()
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
    def _inspecting(self) -> Iterator[None]:
        """Hold the lock on sources; at the end, remove the copies in UTF-8 that were made of them."""
        with self._preparing:
            try:
                yield
            finally:
                self._copies.clear()

    def _lookup(self, name: str) -> _DuckDBTable:
        try:
            return self._tables[name.lower()]
        except KeyError:
            raise common.not_registered(name) from None

    def _build_connection(self) -> Connection:
        if self._builder is None:
            self._store.sweep()
            self._builder = connect(self._settings)
        return self._builder

    def _current_reader(self) -> Reader:
        with self._reading:
            if self._reader is None:
                shown = {known.table.name: known.shown for known in self._tables.values()}
                self._reader = Reader(self._settings, shown)
            return self._reader

    def _drop_if_broken(self, reader: Reader) -> None:
        """Make the next query open a new connection if this one cannot be used any more."""
        if not reader.is_usable:
            with self._reading:
                if self._reader is reader:
                    self._reader = None

    def _show(
        self, table: Table, source: Source, others: Mapping[str, Table], stated: str | None = None
    ) -> _DuckDBTable:
        """Show a table in the version of the fingerprint `stated`, or as its files are now, and return it."""
        for _ in range(_ATTEMPTS):
            before = file_state(source) if stated is None else ""
            seen = fingerprint(source) if stated is None else stated
            version = self._version(table, seen)
            known = self._tables.get(table.name.lower())
            if known is not None and known.version == version and (known.path is None or known.path.exists()):
                if stated is None:
                    self._check_keys(table, source, version)
                return known
            if stated is None:
                check_files(self._build_connection(), source, self._copies)
            is_new = not self._store.path(table.name, version).exists()
            shown, path = self._prepare(table, source, version, stated)
            if stated is None or (path is not None and is_new):
                self._check_keys(table, source, version)
            if stated is not None or file_state(source) == before:
                made = _DuckDBTable(table, source, others, seen, version, shown, path)
                with self._reading:
                    self._tables[table.name.lower()] = made
                    self._reader = None
                return made
        raise SourceMissing(f"{source.place} is being written while it is read; try again when writing has finished")

    def _version(self, table: Table, seen: str) -> str:
        """Return a digest of all that decides what a table's relation holds; `seen` is the fingerprint of its files."""
        limit, unit = table.limits.rows_per_unit, table.unit
        return digest(
            FORMAT,
            table.name.lower(),
            [(column.name, column.kind.value, column.nullable, common.value_range(column)) for column in table.columns],
            sorted(name.lower() for name in table.identified_by),
            None if unit is None else (unit.column, [(step.column, step.target_column) for step in unit.through]),
            [self._lookup(step.target_table).version for step in unit.through] if unit else [],
            None if limit is None else (limit, digest(self._salt)),
            seen,
        )

    def _prepare(
        self, table: Table, source: Source, version: str, stated: str | None
    ) -> tuple[DuckDBRelation, Path | None]:
        """Return how a version of a table is shown, and where its rows are stored; use stored rows if there are any."""
        path = self._store.path(table.name, version)
        if path.exists() and self._is_stored(table, path):
            return _from_file(table, path), path
        return self._make(table, source, version, stated)

    def _make(
        self, table: Table, source: Source, version: str, stated: str | None
    ) -> tuple[DuckDBRelation, Path | None]:
        """Inspect the files of a table, and store its rows or show them where they are.

        Rows of a stated version are stored anew only from files that have not changed since.
        """
        found = self._inspect(source)
        rows = relations.select_declared(found, table)
        if table.unit is not None:
            parents = [self._lookup(step.target_table) for step in table.unit.through]
            rows = relations.select_with_unit(table, rows, [(one.table, self._all_rows(one)) for one in parents])
        self._check_rows(table, source, rows)
        if not _is_to_be_stored(table, found):
            self._check_decoded(table, source, found, rows)
            return relations.select_view(table, rows), None
        shown = self._tables.get(table.name.lower())
        _require_unchanged(table, source, stated)

        def fill(aside: str) -> None:
            self._fill(table, rows, source, aside)
            _require_unchanged(table, source, stated)

        path = self._store.make(table.name, version, fill, shown.path if shown else None)
        return _from_file(table, path), path

    def _inspect(self, source: Source) -> DuckDBSource:
        if self._builder is not None and not is_usable(self._builder):
            self._builder = None
        return inspect_source(self._build_connection(), source, self._copies)

    def _all_rows(self, known: _DuckDBTable) -> DuckDBRelation:
        """Return all rows of a table, also those beyond its limit on the rows of a unit; others may lead to them."""
        if known.path is not None and known.table.limits.rows_per_unit is None:
            columns = (f"{quoted(one.name)} AS c{index}" for index, one in enumerate(known.table.columns))
            shown = _from_file(known.table, known.path)
            return DuckDBRelation(f"SELECT {', '.join(columns)} FROM ({shown.sql})", shown.attached)
        return relations.select_declared(self._inspect(known.source), known.table)

    def _check_keys(self, table: Table, source: Source, version: str) -> None:
        """Raise if rows belong to several units, or share what identifies them; once for each version."""
        fact = digest("checked", version)
        has_keys = bool(table.identified_by or common.key_steps(table))
        if not has_keys or self._store.is_marked(table.name, fact):
            return
        self._check_foreign_keys(table)
        self._check_identified(table, source, relations.select_declared(self._inspect(source), table))
        self._store.mark(table.name, fact)

    def _check_foreign_keys(self, table: Table) -> None:
        """Raise InvalidInput for a foreign key that leads to several rows: a row would belong to several units."""
        for step, onwards in common.key_steps(table):
            parent = self._lookup(step.target_table)
            for key in (step.target_column, onwards):
                relations.check_key(self._inspect(parent.source), parent.table, key)
            fact = digest("unique", parent.version, step.target_column.lower())
            if self._store.is_marked(parent.table.name, fact):
                continue
            rows = self._all_rows(parent)
            sql = common.select_key_counts(parent.table, step.target_column, rows.sql)
            counted = self._fetch(sql, rows, parent.source)
            if counted["n"][0] != counted["m"][0]:
                raise common.not_unique(table, parent.table, step.target_column)
            self._store.mark(parent.table.name, fact)

    def _check_rows(self, table: Table, source: Source, rows: DuckDBRelation) -> None:
        """Raise SourceMissing if DuckDB cannot read the rows' columns."""
        connection, readable = self._build_connection(), True
        with attached(connection, rows.attached):
            try:
                connection.execute(f"DESCRIBE {rows.sql}")
            except duckdb.Error:
                readable = False
        if not readable:
            raise SourceMissing(f"the rows of {table.name} cannot be read from {source.place}; register it again")

    def _check_decoded(self, table: Table, source: Source, found: DuckDBSource, rows: DuckDBRelation) -> None:
        """Raise if a file has a value that DuckDB cannot decode, such as a time in milliseconds beyond its own range.

        The reader fails for it before any cast of ours, in every query that reads the column. Found here, once, it is
        an error for the owner, who registers or refreshes the table, and tells an analyst nothing.
        """
        types = {name: one.type for scan in found.scans for name, one in scan.columns.items()}
        decoded = [
            f"COUNT(c{number})"
            for number, column in enumerate(table.columns)
            if types.get(column.name.lower(), "").startswith(DECODED)
        ]
        if source.form == "parquet" and decoded:
            self._fetch(f"SELECT {', '.join(decoded)} FROM ({rows.sql})", rows, source)

    def _check_identified(self, table: Table, source: Source, rows: DuckDBRelation) -> None:
        """Raise InvalidInput if two rows share what is declared to identify them: joins would multiply rows."""
        if table.identified_by and self._fetch(common.select_shared_keys(table, rows.sql), rows, source)["n"][0]:
            raise common.not_identified(table)

    def _fetch(self, sql: str, rows: DuckDBRelation, source: Source) -> Columns:
        """Run a query over the rows of a source."""
        with attached(self._build_connection(), rows.attached):
            return self._work(lambda: fetch_columns(self._build_connection(), sql), source)

    def _fill(self, table: Table, rows: DuckDBRelation, source: Source, aside: str) -> None:
        """Store the rows of a table in an empty database file."""
        connection = self._build_connection()

        def store() -> None:
            from_rows = f"({rows.sql})"
            if table.unit is not None and (source.form == "csv" or table.unit.through):
                # Counting comes before storing; rows that are slow to read are staged, and so read once.
                connection.execute(f"CREATE OR REPLACE TEMP TABLE staged AS {rows.sql}")
                from_rows = "staged"
            made = f"{database_alias(aside)}.{TABLE}"
            connection.execute(f"CREATE TABLE {made} AS {relations.select_stored(table, from_rows, self._salt)}")

        with attached(connection, rows.attached):
            try:
                attach(connection, aside, write=True)
                self._work(store, source)
            except duckdb.Error:
                raise EngineFailed(f"the prepared rows of {table.name} cannot be written in {self.folder}") from None
            finally:
                with suppress(duckdb.Error):
                    connection.execute("DROP TABLE IF EXISTS temp.staged")
                detach(connection, aside)

    def _work(self, work: Callable[[], T], source: Source) -> T:
        """Do a part of a preparation; it can be cancelled."""
        return self._statements.run(
            self._build_connection(),
            work,
            failure=f"the rows of {source.place} could not be prepared; check that its files are complete, that the "
            f"texts that identify units are UTF-8, and that memory and the disk of {self.folder} suffice",
        )

    def _is_stored(self, table: Table, path: Path) -> bool:
        """Return whether a prepared file can be opened; one that cannot is stored anew."""
        connection = self._build_connection()
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
            f"changed since; read its rows again: tacit table refresh {shlex.quote(table.name)}"
        )


def _is_to_be_stored(table: Table, found: DuckDBSource) -> bool:
    is_identified = bool(table.identified_by) and not table.is_private  # one row a key, found once
    if found.source.form == "csv" or table.limits.rows_per_unit is not None or is_identified:
        return True
    if found.rows is None or found.rows <= ROWS_STORED_MAX:
        return True
    declared = {column.name.lower() for column in table.columns}  # lists take long to write as texts, at each mention
    types = [one.type for scan in found.scans for name, one in scan.columns.items() if name in declared]
    return any(one.endswith(("]", ")")) and not one.startswith(("DECIMAL", "ENUM")) for one in types)


def _from_file(table: Table, path: Path) -> DuckDBRelation:
    stored = f"{database_alias(str(path))}.main.{TABLE}"
    return DuckDBRelation(f"SELECT {relations.stored_columns(table)} FROM {stored}", (str(path),))
