"""The engines of a curator, and the tables that are registered in each, with their versions.

Promise: a plan runs against exactly the table records that it was made for (`bind`, `is_current`), or not at all.
Binding reads no row: rows are read and checked when the owner registers or refreshes a table, and a refused refresh
leaves the rows registered as before.

Files are read by one DuckDB engine in the curator's folder; each PostgreSQL server and each Spark session is an engine
of its own. All tables of one query must be in one engine.
"""

from __future__ import annotations

import hashlib
import shlex
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlglot import exp

from tacit.curator.catalog import Catalog
from tacit.curator.data_versions import DataVersion, DataVersions
from tacit.curator.salt import salt_of
from tacit.curator.table_links import unit_keys
from tacit.engines.opening import EngineKey, engine_key, open_engine
from tacit.engines.protocol import SCHEMA, Engine, Source, SourceColumn
from tacit.privacy.errors import CatalogChanged, NotAllowed, TacitError
from tacit.privacy.tables import Table

IDS_AT_ONCE: Final = 1_000
"""How many ids are looked up by one query."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A table as registered in an engine: its record, source and version, and the versions of its parents."""

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
    """The tables of one plan in their engine, each with the record that the plan was made for."""

    engine: Engine
    registrations: tuple[Registration, ...]
    registry: EngineRegistry = field(repr=False, compare=False)

    @property
    def version(self) -> str:
        """A digest that changes with the version or the record of any of the tables."""
        return hashlib.sha256("\n".join(sorted(one.digest for one in self.registrations)).encode()).hexdigest()

    def is_current(self) -> bool:
        """Return whether these tables have been registered without interruption since they were bound."""
        return self.registry.shows(self.registrations)

    def cancel(self, thread: int) -> None:
        """Make the statement that a thread runs in the engine raise Cancelled."""
        self.engine.cancel(thread)


class EngineRegistry:
    """The engines of one curator; `lock` is the curator's and is held while tables are registered."""

    def __init__(self, folder: Path, catalog: Callable[[], Catalog], lock: threading.RLock) -> None:
        self._folder, self._catalog, self._lock = folder, catalog, lock
        self._engines: dict[EngineKey, Engine] = {}
        self._registrations: dict[str, Registration] = {}
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
        """Return the data versions of the tables, by name in lower case."""
        return {name: version.id for name, version in self._data_versions.current().items()}

    def bind(self, records: Iterable[Table]) -> BoundTables:
        """Register tables in their engine by their records and present versions, without reading a row.

        Raise CatalogChanged if a record is no longer that of the catalog.
        """
        with self._lock:
            catalog = self._catalog()
            names = set()
            for record in records:
                if catalog.tables.get(record.name.lower()) != record:
                    raise CatalogChanged(
                        f"{record.name} was registered again after planning; nothing was charged; repeat the query",
                        name="table",
                        value=record.name,
                    )
                names.add(record.name.lower())
            tables = _with_parents(catalog, names)
            engine = self.engine(self._one_key(catalog, tables))
            return BoundTables(engine, tuple(self._register(engine, catalog, table) for table in tables), self)

    def shows(self, registrations: Iterable[Registration]) -> bool:
        """Return whether these are still the registrations of their tables."""
        with self._lock:
            return all(self._registrations.get(one.table.name.lower()) is one for one in registrations)

    def count_rows(self, table: Table) -> int:
        """Return the exact number of rows of a table that queries see; of a private table, for its owner only."""
        return self.count_values(table, ())[0]

    def count_values(self, table: Table, columns: Sequence[str]) -> list[int]:
        """Return the exact numbers of rows and of non-null values by column; for the owner only, as `count_rows`."""
        engine = self.bind((table,)).engine
        parts = [exp.Star(), *(exp.column(name, quoted=True) for name in columns)]
        counted = exp.select(*(exp.alias_(exp.Count(this=part), f"n{at}") for at, part in enumerate(parts)))
        found = engine.run(engine.write(counted.from_(exp.table_(table.name, db=SCHEMA, quoted=True))))
        return [int(found[f"n{at}"][0]) for at in range(len(parts))]

    def count_units(self, table: Table, column: str, ids: Sequence[Any]) -> int:
        """Return how many of some ids occur in a column of a table; for the owner only, as `count_rows`."""
        engine = self.bind((table,)).engine
        named, found = exp.column(column, quoted=True), 0
        for place in range(0, len(ids), IDS_AT_ONCE):
            counted = exp.select(exp.alias_(exp.Count(this=exp.Distinct(expressions=[named.copy()])), "n"))
            counted = counted.from_(exp.table_(table.name, db=SCHEMA, quoted=True))
            values = [exp.convert(one) for one in dict.fromkeys(ids[place : place + IDS_AT_ONCE])]
            found += int(engine.run(engine.write(counted.where(exp.In(this=named.copy(), expressions=values))))["n"][0])
        return found

    def refresh(self, names: Collection[str]) -> list[str]:
        """Read the rows of tables again, with those of related tables, and return the tables that have changed.

        If rows are refused, nothing changes.
        """
        with self._lock:
            catalog = self._catalog()
            related = related_tables(catalog, {name.lower() for name in names})
            with suppress(TacitError):  # a refused refresh goes back to these registrations
                self._register_all(catalog, related)
            try:
                seen = [(table, catalog.source(table.name), self._refresh_rows(catalog, table)) for table in related]
            except BaseException:
                for table in related:
                    self._registrations.pop(table.name.lower(), None)
                with suppress(TacitError):
                    self._register_all(catalog, related)
                raise
            changed = self._data_versions.advance(seen)
            for table in related:
                if not {table.name.lower(), *(step.target_table.lower() for step in unit_keys(table))}.isdisjoint(
                    changed
                ):
                    self._registrations.pop(table.name.lower(), None)
            return [catalog.tables[name].name for name in changed]

    def forget(self, name: str) -> None:
        """Unregister a table."""
        with self._lock:
            shown = self._registrations.pop(name.lower(), None)
            if shown is not None and (engine := self._engines.get(engine_key(shown.source))) is not None:
                engine.forget(name)

    def cancel(self, thread: int | None = None) -> None:
        """Cancel the statement of a thread, or all; called from another thread."""
        for engine in list(self._engines.values()):
            engine.cancel(thread)

    def close(self) -> None:
        """Close every engine."""
        with self._lock:
            engines, self._engines = self._engines, {}
            self._registrations.clear()
        with ExitStack() as closing:  # all are closed even if one fails
            for engine in engines.values():
                closing.callback(engine.close)

    @property
    def _data_versions(self) -> DataVersions:
        if self._versions is None:
            self._versions = DataVersions(self._folder)
        return self._versions

    def engine(self, key: EngineKey) -> Engine:
        """Return an engine, opened at its first use."""
        with self._lock:
            if key not in self._engines:
                self._engines[key] = open_engine(key, self._folder, salt_of(self._folder))
            return self._engines[key]

    def _one_key(self, catalog: Catalog, tables: Iterable[Table]) -> EngineKey:
        keys = {engine_key(catalog.source(table.name)): table.name for table in tables}
        if len(keys) > 1:
            places = " and ".join(f"{name} in {_describe(key)}" for key, name in keys.items())
            raise NotAllowed(
                f"all tables of a query must be in one engine, and here are {places}",
                accepted="register copies of the smaller tables where the others are",
            )
        return next(iter(keys))

    def _register(self, engine: Engine, catalog: Catalog, table: Table) -> Registration:
        """Register a table, whose parents are registered, in its present version."""
        key, source, known = table.name.lower(), catalog.source(table.name), self._data_versions.current()
        if key not in known or not known[key].is_of(table, source):
            raise CatalogChanged(
                f"{table.name} was changed in {catalog.path}, and its rows were not read since; run "
                f"tacit table refresh {shlex.quote(table.name)}",
                name="table",
                value=table.name,
            )
        parents = tuple(known[step.target_table.lower()] for step in unit_keys(table))
        wanted = Registration(table, source, known[key], parents)
        shown = self._registrations.get(key)
        if shown != wanted:
            engine.register(table, source, catalog.tables, known[key].fingerprint)
            self._registrations[key] = shown = wanted
        return shown

    def _refresh_rows(self, catalog: Catalog, table: Table) -> str:
        """Check and register the present rows of a table, and return the fingerprint of its source."""
        key, source = table.name.lower(), catalog.source(table.name)
        engine, shown = self.engine(engine_key(source)), self._registrations.get(key)
        if shown is None or (shown.table, shown.source) != (table, source):
            engine.register(table, source, catalog.tables)
        return engine.refresh(table.name)

    def _register_all(self, catalog: Catalog, tables: Iterable[Table]) -> None:
        """Register tables in their present versions, except those without a version for their catalog entry."""
        known = self._data_versions.current()
        for table in tables:
            source = catalog.source(table.name)
            if table.name.lower() in known and known[table.name.lower()].is_of(table, source):
                self._register(self.engine(engine_key(source)), catalog, table)


def _with_parents(catalog: Catalog, names: set[str]) -> list[Table]:
    """Return tables with those through which they lead to their units, parents first."""
    wanted = set(names)
    for table in reversed(catalog.parents_first()):
        if table.name.lower() in wanted:
            wanted |= {step.target_table.lower() for step in unit_keys(table)}
    return [table for table in catalog.parents_first() if table.name.lower() in wanted]


def related_tables(catalog: Catalog, names: set[str]) -> list[Table]:
    """Return tables with their parents and all tables that lead to their units through these, parents first."""
    wanted = {table.name.lower() for table in _with_parents(catalog, names)}
    for table in catalog.parents_first():
        if any(step.target_table.lower() in wanted for step in unit_keys(table)):
            wanted.add(table.name.lower())
    return _with_parents(catalog, wanted)


def _describe(key: EngineKey) -> str:
    """Return an engine in words; an address never holds a password."""
    kind, place = key
    return {"postgres": f"PostgreSQL at {place}", "spark": f"Spark at {place}"}.get(kind, "files")
