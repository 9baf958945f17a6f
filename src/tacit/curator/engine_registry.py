"""Which engine holds each table, and which tables, in which version, an engine shows now.

Promise: a plan runs against exactly the table records that it was made for (`bind`, `is_current`), or not at all.
Binding looks at no row: rows are read and checked when the owner registers or refreshes a table, and a refresh that is
refused leaves the rows shown that were shown before.

Files are DuckDB's, in the curator's folder; a PostgreSQL server and a Spark session are engines by themselves, one a
place. Tables of one question lie in one engine.
"""

from __future__ import annotations

import hashlib
import shlex
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sqlglot import exp

from tacit.curator.catalog import Catalog
from tacit.curator.catalog_reader import through
from tacit.curator.data_versions import DataVersion, DataVersions
from tacit.curator.salt import salt_of
from tacit.engines.protocol import SCHEMA, SourceColumn, Engine, Source
from tacit.privacy.errors import CatalogChanged, NotAllowed, TacitError
from tacit.privacy.tables import Table

EngineKey: TypeAlias = tuple[str, str]
"""The kind of an engine and the place it is at; files have no place of their own."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A table as an engine shows it: its record, the source of its rows, their version and those of its parents."""

    table: Table
    source: Source
    version: DataVersion
    parents: tuple[DataVersion, ...] = ()
    digest: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        text = repr((self.table.name.lower(), self.table, self.source, self.version.id))
        object.__setattr__(self, "digest", hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class BoundTables:
    """The tables of one plan in the engine that shows them, each exactly as the plan was made for it."""

    engine: Engine
    registrations: tuple[Registration, ...]
    registry: EngineRegistry = field(repr=False, compare=False)

    @property
    def version(self) -> str:
        """A digest that changes with the version or the record of any of the tables."""
        return hashlib.sha256("\n".join(sorted(one.digest for one in self.registrations)).encode()).hexdigest()

    def is_current(self) -> bool:
        """Return whether the engine has shown these tables all the time since they were bound."""
        return self.registry.shows(self.registrations)

    def cancel(self, thread: int) -> None:
        """Make what a thread runs in the engine raise Cancelled."""
        self.engine.cancel(thread)


class EngineRegistry:
    """The engines of one curator; `lock` is the curator's, held while tables are registered."""

    def __init__(self, folder: Path, catalog: Callable[[], Catalog], lock: threading.RLock) -> None:
        self._folder, self._catalog, self._lock = folder, catalog, lock
        self._engines: dict[EngineKey, Engine] = {}
        self._shown: dict[str, Registration] = {}
        self._versions: DataVersions | None = None

    def describe(self, source: Source) -> list[SourceColumn]:
        """Return the columns of a source."""
        return self.engine(engine_key(source)).describe(source)

    def with_csv_formats(self, source: Source) -> Source:
        """Return a source with the forms of its CSV files, by which every version of them is read."""
        if source.form != "csv" or source.csv:
            return source
        from tacit.engines import DuckDBEngine

        engine = self.engine(engine_key(source))
        assert isinstance(engine, DuckDBEngine), "files are read by DuckDB"
        return engine.with_csv_formats(source)

    def versions(self) -> dict[str, str]:
        """Return the version of the rows of each table that has one, by its name in lower case."""
        return {name: version.id for name, version in self._known.known().items()}

    def bind(self, records: Iterable[Table]) -> BoundTables:
        """Show tables as their records say, in their present versions, and return the engine with them.

        Raises CatalogChanged where the catalog says something else by now; looks at no row.
        """
        with self._lock:
            catalog = self._catalog()
            names = set()
            for record in records:
                if catalog.tables.get(record.name.lower()) != record:
                    raise CatalogChanged(
                        f"{record.name} was registered anew since this was planned; nothing was charged, so ask again",
                        name="table",
                        value=record.name,
                    )
                names.add(record.name.lower())
            tables = _with_parents(catalog, names)
            engine = self.engine(self._one_key(catalog, tables))
            return BoundTables(engine, tuple(self._show(engine, catalog, table) for table in tables), self)

    def shows(self, registrations: Iterable[Registration]) -> bool:
        """Return whether the engine has shown tables all the time since they were registered so."""
        with self._lock:
            return all(self._shown.get(one.table.name.lower()) is one for one in registrations)

    def rows(self, table: Table) -> int:
        """Return how many rows of a table questions see: exactly, so of a private one for its owner alone."""
        return self.values(table, ())[0]

    def values(self, table: Table, columns: Sequence[str]) -> list[int]:
        """Return how many rows of a table questions see and in how many each column has a value; as `rows` does."""
        engine = self.bind((table,)).engine
        parts = [exp.Star(), *(exp.column(name, quoted=True) for name in columns)]
        counted = exp.select(*(exp.alias_(exp.Count(this=part), f"n{at}") for at, part in enumerate(parts)))
        found = engine.run(engine.write(counted.from_(exp.table_(table.name, db=SCHEMA, quoted=True))))
        return [int(found[f"n{at}"][0]) for at in range(len(parts))]

    def refresh(self, names: Collection[str]) -> list[str]:
        """Look at the rows of tables again, with those of their parents and children; return those that changed.

        If rows are refused, nothing has changed.
        """
        with self._lock:
            catalog = self._catalog()
            shared = family(catalog, {name.lower() for name in names})
            with suppress(TacitError):  # what is shown now is what a refused refresh goes back to
                self._show_all(catalog, shared)
            try:
                seen = [(table, catalog.source(table.name), self._refreshed(catalog, table)) for table in shared]
            except BaseException:
                for table in shared:
                    self._shown.pop(table.name.lower(), None)
                with suppress(TacitError):
                    self._show_all(catalog, shared)
                raise
            changed = self._known.advance(seen)
            for table in shared:
                if not {table.name.lower(), *(step.target_table.lower() for step in through(table))}.isdisjoint(
                    changed
                ):
                    self._shown.pop(table.name.lower(), None)
            return [catalog.tables[name].name for name in changed]

    def forget(self, name: str) -> None:
        """Take a table out of the engine that shows it."""
        with self._lock:
            shown = self._shown.pop(name.lower(), None)
            if shown is not None and (engine := self._engines.get(engine_key(shown.source))) is not None:
                engine.forget(name)

    def cancel(self, thread: int | None = None) -> None:
        """Stop what a thread runs, or everything, from another thread."""
        for engine in list(self._engines.values()):
            engine.cancel(thread)

    def close(self) -> None:
        """Close every engine."""
        with self._lock:
            engines, self._engines = self._engines, {}
            self._shown.clear()
        with ExitStack() as closing:  # one that fails keeps none of the others open
            for engine in engines.values():
                closing.callback(engine.close)

    @property
    def _known(self) -> DataVersions:
        if self._versions is None:
            self._versions = DataVersions(self._folder)
        return self._versions

    def engine(self, key: EngineKey) -> Engine:
        """Return an engine, opening it if it is not."""
        with self._lock:
            if key not in self._engines:
                self._engines[key] = open_engine(key, self._folder, salt_of(self._folder))
            return self._engines[key]

    def _one_key(self, catalog: Catalog, tables: Iterable[Table]) -> EngineKey:
        keys = {engine_key(catalog.source(table.name)): table.name for table in tables}
        if len(keys) > 1:
            places = " and ".join(f"{name} in {_in_words(key)}" for key, name in keys.items())
            raise NotAllowed(
                f"the tables of one question lie in one engine, and here are {places}",
                accepted="register copies of the smaller tables where the others are",
            )
        return next(iter(keys))

    def _show(self, engine: Engine, catalog: Catalog, table: Table) -> Registration:
        """Show a table, whose parents are shown, in its present version."""
        key, source, known = table.name.lower(), catalog.source(table.name), self._known.known()
        if key not in known or not known[key].is_of(table, source):
            raise CatalogChanged(
                f"{table.name} was stated anew in {catalog.path}, and its rows were not looked at since; run "
                f"tacit table refresh {shlex.quote(table.name)}",
                name="table",
                value=table.name,
            )
        parents = tuple(known[step.target_table.lower()] for step in through(table))
        wanted = Registration(table, source, known[key], parents)
        shown = self._shown.get(key)
        if shown != wanted:
            engine.register(table, source, catalog.tables, known[key].fingerprint)
            self._shown[key] = shown = wanted
        return shown

    def _refreshed(self, catalog: Catalog, table: Table) -> str:
        """Check the rows of a table as they are now, show them, and return the fingerprint of its source."""
        key, source = table.name.lower(), catalog.source(table.name)
        engine, shown = self.engine(engine_key(source)), self._shown.get(key)
        if shown is None or (shown.table, shown.source) != (table, source):
            engine.register(table, source, catalog.tables)
        return engine.refresh(table.name)

    def _show_all(self, catalog: Catalog, tables: Iterable[Table]) -> None:
        """Show tables in their present versions; those without one, or stated anew, are being registered."""
        known = self._known.known()
        for table in tables:
            source = catalog.source(table.name)
            if table.name.lower() in known and known[table.name.lower()].is_of(table, source):
                self._show(self.engine(engine_key(source)), catalog, table)


def _with_parents(catalog: Catalog, names: set[str]) -> list[Table]:
    """Return tables and those through which they lead to their units, parents first."""
    wanted = set(names)
    for table in reversed(catalog.ordered()):
        if table.name.lower() in wanted:
            wanted |= {step.target_table.lower() for step in through(table)}
    return [table for table in catalog.ordered() if table.name.lower() in wanted]


def family(catalog: Catalog, names: set[str]) -> list[Table]:
    """Return tables with their parents and all that lead to their units through any of these, parents first."""
    wanted = {table.name.lower() for table in _with_parents(catalog, names)}
    for table in catalog.ordered():
        if any(step.target_table.lower() in wanted for step in through(table)):
            wanted.add(table.name.lower())
    return _with_parents(catalog, wanted)


def engine_key(source: Source) -> EngineKey:
    """Return which engine holds a source."""
    return (source.form, source.place) if source.form in ("postgres", "spark") else ("duckdb", "")


def open_engine(key: EngineKey, folder: Path | None, salt: int) -> Engine:
    """Open an engine; with no folder, one for files works in a temporary one."""
    from tacit import engines

    kind, place = key
    if kind == "postgres":
        return engines.PostgresEngine(place, salt)
    if kind == "spark":
        return engines.SparkEngine(place, salt)
    return engines.DuckDBEngine(folder, salt=salt)


def _in_words(key: EngineKey) -> str:
    """Return where an engine is, for people; a place never holds a password."""
    kind, place = key
    return {"postgres": f"PostgreSQL at {place}", "spark": f"Spark at {place}"}.get(kind, "files")
