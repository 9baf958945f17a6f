"""The PostgreSQL engine: which tables are registered, and statements over them.

A registered table is a query that is put in front of each statement (`relations`); nothing is created in the database.
Each statement runs on a connection of its own, in a read-only transaction (`execution`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlglot import exp

from tacit.engines import relations as common
from tacit.engines.execution import with_uniform_errors
from tacit.engines.postgres import relations, sources
from tacit.engines.postgres.connections import Connections, Transactions, fetch_columns
from tacit.engines.postgres.relations import TABLE_SALT, PostgresRelation
from tacit.engines.postgres.sources import Fingerprints, PostgresSource
from tacit.engines.protocol import Columns, Progress, Source, SourceColumn
from tacit.privacy.tables import Table

UNICODE_CASE_SINCE: Final = 170_000
"""The first version of the server with a collation that changes the case of letters without a locale."""


@dataclass(frozen=True, slots=True)
class _PostgresTable(common.ShownTable):
    """A registered table, as it is in the database and as it is shown."""

    found: PostgresSource
    shown: PostgresRelation


_engines: Final[weakref.WeakSet[PostgresEngine]] = weakref.WeakSet()


class PostgresEngine:
    """A PostgreSQL database at `place`: an address without a password, env:NAME, file:PATH or service:NAME.

    `salt` is the secret by which rows of a unit are chosen where a table has a limit on them. Several threads may use
    one engine; each statement has a connection of its own.
    """

    def __init__(self, place: str, salt: int) -> None:
        self.place: Final = place
        self._salt = salt
        self._tables: dict[str, _PostgresTable] = {}
        self._inherited: list[Any] = []
        self._server_version = 0  # unknown until a table is registered
        self._reset()
        _engines.add(self)

    def _reset(self) -> None:
        """Start without connections and with open locks."""
        self._lock = threading.Lock()
        self._connections = Connections(self.place)
        self._transactions = Transactions(self._connections)
        self._fingerprints = Fingerprints(self._salt)

    def reset_in_child(self) -> None:
        """Start anew in a forked child, which keeps a reference to its parent's connections and never uses them.

        On one connection the answers to parent and child would be mixed up, each read with the noise of the other.
        """
        self._inherited += [self._connections]
        self._reset()

    def __repr__(self) -> str:
        return f"PostgresEngine({self.place!r})"

    def describe(self, source: Source) -> list[SourceColumn]:
        """Return the columns of a table, from the catalog of the database."""
        return self._transactions.run(lambda connection: sources.inspect_source(connection, source)).source_columns

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation; the tables that it leads to by foreign keys are registered before it.

        Rows stay in the database, so the current ones are shown; with a fingerprint they are not checked.
        """
        known = {name.lower(): other for name, other in others.items()}
        common.check_unit_path(table, known)
        parents = self._parents(table)

        def show(connection: Any) -> _PostgresTable:
            self._server_version = int(connection.info.server_version)
            found = sources.inspect_source(connection, source)
            shown = relations.show_table(table, found, [(one.table, one.found) for one in parents])
            made = _PostgresTable(table, source, known, found, shown)
            if fingerprint is None:
                self._check(connection, made, parents)
            no_rows = f"SELECT * FROM {shown.relation.sql} LIMIT 0"
            self._fetch(connection, relations.with_queries(dict(shown.queries), no_rows))
            return made

        self._store(self._transactions.run(show))

    def forget(self, name: str) -> None:
        """Remove a table from what is shown."""
        with self._lock:
            self._tables.pop(name.lower(), None)

    def refresh(self, name: str) -> str:
        """Inspect a table again, check its rows, and return their fingerprint (`sources`)."""
        known = self._lookup(name)

        def inspect(connection: Any) -> str:
            parents = self._parents(known.table)
            now = self._inspect(connection, known, parents)
            self._check(connection, now, parents)
            self._store(now)
            return self._fingerprints.of(connection, now.table, now.found)

        return self._transactions.run(inspect)

    def write(self, tree: exp.Query) -> str:
        """Return a statement in PostgreSQL's SQL, with the queries that show its tables in front."""
        with self._lock:
            tables = {name: known.shown for name, known in self._tables.items()}
        return relations.write_statement(tree, tables, unicode_case=self._server_version >= UNICODE_CASE_SINCE)

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT and return its columns; PostgreSQL reports no progress."""
        given = dict(parameters or {})
        return with_uniform_errors(
            lambda: self._transactions.run(lambda connection: self._fetch(connection, sql, given), timeout_s)
        )

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, queries and preparations, raise Cancelled."""
        self._transactions.cancel(thread)

    def close(self) -> None:
        """Close all connections."""
        self._transactions.cancel()
        with self._lock:
            self._tables.clear()
        self._connections.close()

    def _lookup(self, name: str) -> _PostgresTable:
        with self._lock:
            known = self._tables.get(name.lower())
        if known is None:
            raise common.not_registered(name)
        return known

    def _parents(self, table: Table) -> list[_PostgresTable]:
        return [self._lookup(step.target_table) for step in (table.unit.through if table.unit else ())]

    def _store(self, made: _PostgresTable) -> None:
        with self._lock:
            self._tables[made.table.name.lower()] = made

    def _fetch(self, connection: Any, sql: str, parameters: Mapping[str, Any] | None = None) -> Columns:
        return fetch_columns(connection, sql, {**(parameters or {}), TABLE_SALT: self._salt})

    def _inspect(self, connection: Any, known: _PostgresTable, parents: Sequence[_PostgresTable]) -> _PostgresTable:
        """Return a table as it is in the database now."""
        connection.execute(known.found.lock_sql)  # holds a lock, so that its columns stay as they are
        found = sources.inspect_source(connection, known.source)
        shown = relations.show_table(known.table, found, [(one.table, one.found) for one in parents])
        return known if (found, shown) == (known.found, known.shown) else replace(known, found=found, shown=shown)

    def _check(self, connection: Any, known: _PostgresTable, parents: Sequence[_PostgresTable]) -> None:
        """Raise for foreign keys that lead to several rows, and rows that share what identifies them."""
        table = known.table
        if table.unit is not None:
            known.found.check_key(table, common.key_column(table))
        steps = list(zip(common.key_steps(table), parents, strict=True))
        for (step, onwards), parent in steps:
            for key in (step.target_column, onwards):
                parent.found.check_key(parent.table, key)
        for (step, _), parent in steps:
            if parent.found.is_unique(parent.table.column(step.target_column)):
                continue
            rows = relations.select_declared(parent.table)
            counted = self._over(connection, parent, common.select_key_counts(parent.table, step.target_column, rows))
            if counted["n"][0] != counted["m"][0]:
                raise common.not_unique(table, parent.table, step.target_column)
        if table.identified_by:
            shared = common.select_shared_keys(table, relations.select_declared(table))
            if self._over(connection, known, shared)["n"][0]:
                raise common.not_identified(table)

    def _over(self, connection: Any, known: _PostgresTable, sql: str) -> Columns:
        """Run a query, in DuckDB's SQL, over the rows of a source."""
        written, _ = relations.translate(sql, [known.table])
        queries = {relations.source_name(known.table): known.found.rows(known.table)}
        return self._fetch(connection, relations.with_queries(queries, written))


def _reset_in_child() -> None:
    for engine in list(_engines):
        engine.reset_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_reset_in_child)
