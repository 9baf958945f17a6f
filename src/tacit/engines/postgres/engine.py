"""The engine: which tables are registered, and statements over them.

A registered table is a query that is put in front of each statement (`relations`); nothing is made in the database. One
connection is lent to each statement, in a read-only transaction (`execution`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlglot import exp

from tacit.engines.execution import with_uniform_errors
from tacit.engines.postgres import relations, sources
from tacit.engines.postgres.connections import Connections
from tacit.engines.postgres.execution import Runs, Transactions, answer
from tacit.engines.postgres.relations import TABLE_SALT, Shown
from tacit.engines.postgres.sources import Fingerprints, Found
from tacit.engines.protocol import Columns, Described, Progress, Source
from tacit.engines.relations import check, not_identified, not_registered, not_unique, place
from tacit.privacy.tables import Table

UNICODE_CASE_SINCE: Final = 170_000
"""The first version of the server that knows the case of letters without a locale."""


@dataclass(frozen=True, slots=True)
class _Registered:
    """A table as it is shown now; `others` are the tables that were known when it was registered."""

    table: Table
    source: Source
    others: Mapping[str, Table]
    found: Found
    shown: Shown


_engines: Final[weakref.WeakSet[PostgresEngine]] = weakref.WeakSet()


class PostgresEngine:
    """A PostgreSQL database at `place`: an address without a password, env:NAME, file:PATH or service:NAME.

    `salt` is the secret by which rows of a unit are chosen where a table has a limit on them. Several threads may use
    one engine; each statement has a connection of its own.
    """

    def __init__(self, place: str, salt: int) -> None:
        self.place: Final = place
        self._salt = salt
        self._tables: dict[str, _Registered] = {}
        self._left_behind: list[Any] = []
        self._server_version = 0  # not known before a table is registered
        self._begin()
        _engines.add(self)

    def _begin(self) -> None:
        """Begin without connections and with open locks."""
        self._lock = threading.Lock()
        self._connections, self._runs = Connections(self.place), Runs()
        self._transactions = Transactions(self._connections, self._runs)
        self._fingerprints = Fingerprints(self._salt)

    def begin_in_child(self) -> None:
        """Begin anew in a forked child, which keeps its parent's connections from the collector and never uses them.

        On one connection the answers to parent and child would be mixed up, each read with the noise of the other.
        """
        self._left_behind += [self._connections]
        self._begin()

    def __repr__(self) -> str:
        return f"PostgresEngine({self.place!r})"

    def describe(self, source: Source) -> list[Described]:
        """Return the columns of a table, from the catalog of the database."""
        return self._transactions.run(lambda connection: sources.find(connection, source)).described

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation; the tables that it leads to by foreign keys are registered before it.

        Rows stay in the database, so those of now are shown; with a fingerprint they are not checked.
        """
        known = {name.lower(): other for name, other in others.items()}
        check(table, known)
        parents = self._parents(table)

        def show(connection: Any) -> _Registered:
            self._server_version = int(connection.info.server_version)
            found = sources.find(connection, source)
            shown = relations.shown(table, found, [(one.table, one.found) for one in parents])
            made = _Registered(table, source, known, found, shown)
            if fingerprint is None:
                self._check(connection, made, parents)
            nothing = f"SELECT * FROM {shown.relation.sql} LIMIT 0"
            self._answer(connection, relations.with_queries(dict(shown.queries), nothing))
            return made

        self._keep(self._transactions.run(show))

    def forget(self, name: str) -> None:
        """Take a table away again."""
        with self._lock:
            self._tables.pop(name.lower(), None)

    def refresh(self, name: str) -> str:
        """Look at a table again, check its rows, and return their fingerprint (`sources`)."""
        known = self._registered(name)

        def look(connection: Any) -> str:
            parents = self._parents(known.table)
            now = self._refreshed(connection, known, parents)
            self._check(connection, now, parents)
            self._keep(now)
            return self._fingerprints.of(connection, now.table, now.found)

        return self._transactions.run(look)

    def write(self, tree: exp.Query) -> str:
        """Return a statement as PostgreSQL reads it, with the queries that show its tables in front."""
        with self._lock:
            tables = {name: known.shown for name, known in self._tables.items()}
        return relations.statement(tree, tables, unicode_case=self._server_version >= UNICODE_CASE_SINCE)

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT and return its columns; PostgreSQL does not say how far it is."""
        given = dict(parameters or {})
        return with_uniform_errors(
            lambda: self._transactions.run(lambda connection: self._answer(connection, sql, given), timeout_s)
        )

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, questions and preparations, raise Cancelled."""
        self._runs.cancel(thread)

    def close(self) -> None:
        """Let go of the database."""
        self._runs.cancel()
        with self._lock:
            self._tables.clear()
        self._connections.close()

    def _registered(self, name: str) -> _Registered:
        with self._lock:
            known = self._tables.get(name.lower())
        if known is None:
            raise not_registered(name)
        return known

    def _parents(self, table: Table) -> list[_Registered]:
        return [self._registered(step.target_table) for step in (table.unit.through if table.unit else ())]

    def _keep(self, made: _Registered) -> None:
        with self._lock:
            self._tables[made.table.name.lower()] = made

    def _answer(self, connection: Any, sql: str, parameters: Mapping[str, Any] | None = None) -> Columns:
        return answer(connection, sql, {**(parameters or {}), TABLE_SALT: self._salt})

    def _refreshed(self, connection: Any, known: _Registered, parents: Sequence[_Registered]) -> _Registered:
        """Return a table as it is in the database now."""
        connection.execute(known.found.locked)  # from here on nobody changes its columns
        found = sources.find(connection, known.source)
        shown = relations.shown(known.table, found, [(one.table, one.found) for one in parents])
        return known if (found, shown) == (known.found, known.shown) else replace(known, found=found, shown=shown)

    def _check(self, connection: Any, known: _Registered, parents: Sequence[_Registered]) -> None:
        """Refuse foreign keys that lead to several rows, and keys of a table that several rows share."""
        table = known.table
        steps = table.unit.through if table.unit else ()
        if table.unit is not None:
            known.found.check_key(table, steps[0].column if steps else table.unit.column)
            for number, (step, parent) in enumerate(zip(steps, parents, strict=True), start=1):
                parent.found.check_key(parent.table, step.target_column)
                onwards = steps[number].column if number < len(steps) else table.unit.column
                parent.found.check_key(parent.table, onwards)
        for step, parent in zip(steps, parents, strict=True):
            column = parent.table.column(step.target_column)
            if parent.found.is_unique(column):
                continue
            key = f"c{place(parent.table, column.name)}"
            rows = (
                f"SELECT COUNT({key}) AS n, COUNT(DISTINCT {key}) AS m FROM ({relations.declared(parent.table)}) AS d"
            )
            counted = self._over(connection, parent, rows)
            if counted["n"][0] != counted["m"][0]:
                raise not_unique(table, parent.table, step.target_column)
        if not table.identified_by:
            return
        keys = ", ".join(f"c{place(table, name)}" for name in table.identified_by)
        rows = f"SELECT {keys} FROM ({relations.declared(table)}) AS d GROUP BY {keys} HAVING COUNT(*) > 1"
        if self._over(connection, known, f"SELECT COUNT(*) AS n FROM ({rows}) AS e")["n"][0]:
            raise not_identified(table)

    def _over(self, connection: Any, known: _Registered, sql: str) -> Columns:
        """Run a query, in DuckDB's SQL, over the rows of a source."""
        written, _ = relations.translated(sql, [known.table])
        queries = {relations.source_name(known.table): known.found.rows(known.table)}
        return self._answer(connection, relations.with_queries(queries, written))


def _begin_in_child() -> None:
    for engine in list(_engines):
        engine.begin_in_child()


if hasattr(os, "register_at_fork"):  # there are no forks on Windows
    os.register_at_fork(after_in_child=_begin_in_child)
