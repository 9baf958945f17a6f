"""The engine: which tables are registered, and statements over them.

A registered table is a query that is put in front of each statement (`relations`); nothing is made in the database. One
connection is lent to each statement, with a read-only transaction of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlglot import exp

from tacit.engines.declared import ends
from tacit.engines.names import digest
from tacit.engines.postgres import relations, sources, versions
from tacit.engines.postgres.connecting import Connections
from tacit.engines.postgres.relations import SALT, Shown
from tacit.engines.postgres.running import Runs, answer
from tacit.engines.postgres.sources import Found
from tacit.engines.protocol import Columns, Described, Progress, Source
from tacit.engines.relations import check, place
from tacit.privacy.errors import InvalidInput, NoConnection, NotInCatalog
from tacit.privacy.tables import Table

T = TypeVar("T")

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True, slots=True)
class _Registered:
    """A table as it is shown now; `others` are the tables that were known when it was registered."""

    table: Table
    source: Source
    others: Mapping[str, Table]
    found: Found
    shown: Shown


class PostgresEngine:
    """A PostgreSQL database at `place`: an address without a password, env:NAME, file:PATH or service:NAME.

    `salt` is the secret by which rows of a unit are chosen where a table has a limit on them. Several threads may use
    one engine; each statement has a connection of its own.
    """

    def __init__(self, place: str, salt: int) -> None:
        self.place: Final = place
        self._salt = salt
        self._connections, self._runs = Connections(place), Runs()
        self._tables: dict[str, _Registered] = {}
        self._lock = threading.RLock()
        self._versions = versions.Versions(salt)

    def __repr__(self) -> str:
        return f"PostgresEngine({self.place!r})"

    def describe(self, source: Source) -> list[Described]:
        """Return the columns of a table, from the catalog of the database."""
        return self._find(source).described

    def register(self, table: Table, source: Source, others: Mapping[str, Table]) -> None:
        """Show a table as a relation; the tables that it leads to by foreign keys are registered before it."""
        known = {name.lower(): other for name, other in others.items()}
        check(table, known)
        parents = self._parents(table)
        found = self._find(source)
        shown = relations.shown(table, found, [(one.table, one.found) for one in parents])
        self._check_keys(table, parents)
        self._check_identified(table, found)
        self._read(relations.with_queries(dict(shown.queries), f"SELECT * FROM {shown.relation.sql} LIMIT 0"))
        with self._lock:
            self._tables[table.name.lower()] = _Registered(table, source, known, found, shown)

    def forget(self, name: str) -> None:
        """Take a table away again."""
        with self._lock:
            self._tables.pop(name.lower(), None)

    def version(self, name: str) -> str:
        """Return a text that changes whenever the rows of a table may have changed; `versions` says how."""
        known = self._registered(name)
        parents = self._parents(known.table)

        def rows_in(connection: Any) -> list[str]:
            return [self._versions.of(connection, one.table, one.found) for one in (known, *parents)]

        rows = self._transaction(rows_in)
        return digest(_definition(known.table), self._salt_digest(known.table), rows)

    def write(self, tree: exp.Query) -> str:
        """Return a statement as PostgreSQL reads it, with the queries that show its tables in front."""
        with self._lock:
            tables = {name: known.shown for name, known in self._tables.items()}
        return relations.statement(tree, tables)

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT and return its columns; PostgreSQL does not say how far it is."""
        return self._read(sql, parameters or {}, timeout_s)

    def cancel(self) -> None:
        """Make whatever runs now in this engine, questions and preparations, raise Cancelled."""
        self._runs.cancel()

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
            raise NotInCatalog(f"{name} is not registered with the engine; register it first", name="table", value=name)
        return known

    def _parents(self, table: Table) -> list[_Registered]:
        return [self._registered(step.target_table) for step in (table.unit.through if table.unit else ())]

    def _find(self, source: Source) -> Found:
        return self._transaction(lambda connection: sources.find(connection, source))

    def _read(self, sql: str, parameters: Mapping[str, Any] | None = None, timeout_s: float | None = None) -> Columns:
        given = {**(parameters or {}), SALT: self._salt}
        return self._transaction(lambda connection: answer(connection, sql, given), timeout_s)

    def _transaction(self, work: Callable[[Any], T], timeout_s: float | None = None) -> T:
        """Do work in a read-only transaction, on another connection if the first one was lost before it began."""
        limit = "" if timeout_s is None else f"; SET LOCAL statement_timeout = {max(1, round(timeout_s * 1000))}"

        def begin(connection: Any) -> None:
            connection.execute(_BEGIN + limit)

        def do(connection: Any) -> T:
            found = work(connection)
            connection.execute("COMMIT")
            return found

        for attempt in range(2):
            with self._connections.lent() as connection:
                try:
                    self._runs.run(connection, lambda: begin(connection), timeout_s)
                except NoConnection:
                    if attempt:
                        raise
                    self._connections.forget_idle()
                    continue
                return self._runs.run(connection, lambda: do(connection), timeout_s)
        raise AssertionError  # the loop returns or raises

    def _check_keys(self, table: Table, parents: list[_Registered]) -> None:
        """Refuse foreign keys that lead to several rows: a row would belong to several units."""
        for step, parent in zip(table.unit.through if table.unit else (), parents, strict=True):
            key = f"c{place(parent.table, step.target_column)}"
            counted = self._over(
                parent.table,
                parent.found,
                f"SELECT COUNT({key}) AS n, COUNT(DISTINCT {key}) AS m FROM ({relations.declared(parent.table)}) AS d",
            )
            if counted["n"][0] != counted["m"][0]:
                raise InvalidInput(
                    f"{parent.table.name}.{step.target_column} is not unique, so a row of {table.name} would belong to "
                    "several units; lead to a column that identifies the rows",
                    name="unit",
                )

    def _check_identified(self, table: Table, found: Found) -> None:
        """Refuse a public table two rows of which share what is said to identify them: joins would multiply rows."""
        if table.is_private or not table.identified_by:
            return
        keys = ", ".join(f"c{place(table, name)}" for name in table.identified_by)
        rows = f"SELECT {keys} FROM ({relations.declared(table)}) AS d GROUP BY {keys} HAVING COUNT(*) > 1"
        if self._over(table, found, f"SELECT COUNT(*) AS n FROM ({rows}) AS e")["n"][0]:
            raise InvalidInput(
                f"{', '.join(table.identified_by)} does not identify the rows of {table.name}: some share it",
                name="identified_by",
            )

    def _over(self, table: Table, found: Found, sql: str) -> Columns:
        """Run a query, in DuckDB's SQL, over the rows of a source."""
        written, _ = relations.translated(sql, [table])
        return self._read(relations.with_queries({relations.source_name(table): found.rows(table)}, written))

    def _salt_digest(self, table: Table) -> str:
        return "" if table.limits.rows_per_unit is None else digest(self._salt)


def _definition(table: Table) -> tuple[object, ...]:
    """Return all that is declared of a table and decides what its relation holds."""
    unit = table.unit
    return (
        table.name.lower(),
        [(column.name, column.kind.value, column.nullable, ends(column)) for column in table.columns],
        sorted(name.lower() for name in table.identified_by),
        None if unit is None else (unit.column, [(step.column, step.target_column) for step in unit.through]),
        table.limits.rows_per_unit,
    )
