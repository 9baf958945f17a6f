"""The Spark engine: which tables are registered, from which sources, and statements over them.

Every table is a temporary view of the engine's own session over rows that stay where they are; nothing is written.
Three views stand for a table: its source's columns in the types of their kinds (`SOURCE_SCHEMA`), these as declared
(`ROWS_SCHEMA`), and the relation that statements name. How `refresh` notices changed rows is described in `sources`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import sqlglot
from sqlglot import exp

from tacit.engines import relations
from tacit.engines.addresses import check_spark
from tacit.engines.dialects.spark import ROWS_SCHEMA, SOURCE_SCHEMA, view_name, write_spark
from tacit.engines.dialects.spark.typed_sql import backquoted
from tacit.engines.execution import with_uniform_errors
from tacit.engines.protocol import FAILED, ROWS, SALT, SCHEMA, UNIT, Columns, Progress, Source, SourceColumn
from tacit.engines.quoting import digest, quoted
from tacit.engines.spark import sessions, sources
from tacit.engines.spark.execution import SparkStatements, fetch_columns
from tacit.engines.spark.kinds import cast
from tacit.engines.spark.sessions import Session
from tacit.privacy.errors import EngineFailed, NoConnection, SourceMissing
from tacit.privacy.tables import Kind, Table

T = TypeVar("T")

_ATTEMPTS: Final = 3
_INT64: Final = 2**63


@dataclass(frozen=True, slots=True)
class _SparkTable(relations.ShownTable):
    """A registered table, with the fingerprint of its source."""

    fingerprint: str


class SparkEngine:
    """Spark at a place: `local` or `local[2]` (in this process), `sc://host:15002` (Spark Connect),
    `spark://host:7077` (a standalone cluster, with the driver in this process), or `env:NAME` and `file:PATH`, which
    hold such an address with a token.

    `salt` is the secret by which rows of a unit are chosen where a table has a limit on them. Sources are
    `Source("spark", place, "catalog.db.table")` and `Source("spark", place, "parquet:PATH")`. Several threads may use
    one engine.
    """

    def __init__(self, place: str, salt: int, *, session: Session | None = None) -> None:
        if session is None:
            check_spark(place)
        self.place: Final = place
        self._salt = salt % _INT64
        self._given = session
        self._session: Session | None = None
        self._statements: SparkStatements | None = None
        self._tables: dict[str, _SparkTable] = {}
        self._lost: set[str] = set()  # tables whose views were lost with an earlier session
        self._lock = threading.RLock()  # held while sources are inspected

    @classmethod
    def over(cls, session: Session, salt: int) -> SparkEngine:
        """Return an engine that shares the Spark of a session, with settings and temporary views of its own.

        It sees the tables and global temporary views of the session, not its temporary views, and never stops it.
        """
        return cls(sessions.place_of(session), salt, session=session)

    def describe(self, source: Source) -> list[SourceColumn]:
        """Return the columns of a source, without reading more of it than their types need."""
        with self._lock:
            return list(self._open(source).columns)

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation; the tables that it leads to by foreign keys are registered before it.

        Rows stay where they are, so the current ones are shown; with a fingerprint they are not checked.
        """
        with self._lock:
            known = {name.lower(): other for name, other in others.items()}
            relations.check_unit_path(table, known)
            for step in table.unit.through if table.unit else ():
                self._lookup(step.target_table)
            if fingerprint is None:
                self._show(table, source, known)
            else:
                self._show_rows(table, self._open(source))
                self._show_relation(table, source, known, fingerprint, is_checked=True)

    def forget(self, name: str) -> None:
        """Remove a table from what is shown."""
        with self._lock:
            known = self._tables.pop(name.lower(), None)
            if known is not None and self._session is not None:
                with suppress(NoConnection):  # views end with the session
                    for schema in (SCHEMA, ROWS_SCHEMA, SOURCE_SCHEMA):
                        self._drop(view_name(known.table.name, schema))

    def refresh(self, name: str) -> str:
        """Show a table as it is now, and return a fingerprint of its source."""
        with self._lock:
            known = self._lookup(name)
            return self._show(known.table, known.source, known.others).fingerprint

    def write(self, tree: exp.Query) -> str:
        """Return a statement in Spark's SQL, with `tacit_data."NAME"` as the view `tacit_data_NAME`."""
        return write_spark(tree, self._kinds())

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT over registered tables and return its columns; `progress` is called from another thread."""
        self._check_statement(sql)

        def fetch() -> Columns:
            session = self._session_with_tables()
            return self._run(
                lambda: fetch_columns(session, sql, parameters), timeout_s=timeout_s, progress=progress, failure=FAILED
            )

        return with_uniform_errors(fetch)

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, raise Cancelled."""
        if self._statements is not None:
            self._statements.cancel(thread)

    def close(self) -> None:
        """Close the session, unless it was given to `over`."""
        self.cancel()
        with self._lock:
            self._tables.clear()  # views end with the session
            if self._session is not None and self._given is None:
                sessions.close_session(self._session)
            self._session = self._statements = None

    def _connect(self) -> tuple[Session, SparkStatements]:
        with self._lock:
            if self._session is None or self._statements is None:
                given = self._given
                session = sessions.open_session(self.place) if given is None else sessions.session_beside(given)
                statements = SparkStatements(session)
                statements.run(
                    lambda: sessions.apply_settings(session), failure="Spark does not take the settings it needs"
                )
                self._session, self._statements = session, statements
            return self._session, self._statements

    def _session_with_tables(self) -> Session:
        """Return the session, after showing again the tables whose views were lost with an earlier one."""
        with self._lock:
            session, _ = self._connect()
            for name in [name for name in self._tables if name in self._lost]:
                known = self._tables[name]
                self.register(known.table, known.source, known.others, known.fingerprint)
            return session

    def _run(self, work: Callable[[], T], **options: Any) -> T:
        """Do work of the session; after Spark was lost, the next work opens a new session, and a new Spark."""
        session, statements = self._connect()
        try:
            return statements.run(work, **options)
        except EngineFailed as error:
            if isinstance(error, NoConnection) or not sessions.is_alive(session):
                self._lose(session)
            raise

    def _lose(self, session: Session) -> None:
        """Forget a session that cannot be used any more, and note that its views are lost."""
        with self._lock:
            if self._session is session:
                if self._given is None:
                    sessions.close_session(session)
                self._session = self._statements = None
                self._lost = set(self._tables)

    def _lookup(self, name: str) -> _SparkTable:
        try:
            return self._tables[name.lower()]
        except KeyError:
            raise relations.not_registered(name) from None

    def _work(self, work: Callable[[], T], source: Source) -> T:
        """Do a part of a preparation; it can be cancelled."""
        return self._run(
            work, failure=f"the rows of {source.table} could not be prepared; check that Spark can read them"
        )

    def _open(self, source: Source) -> sources.SparkSource:
        sources.check_source(source)
        session, _ = self._connect()
        sentence = f"{source.table} cannot be read by Spark at {self.place}; check that it is there, and its name"
        return self._run(lambda: sources.open_source(session, source), failure=sentence, otherwise=SourceMissing)

    def _show(self, table: Table, source: Source, others: Mapping[str, Table]) -> _SparkTable:
        """Show a table as it is now, and return what is shown."""
        for _ in range(_ATTEMPTS):
            local = sources.local_fingerprint(source, self.place)
            found = self._open(source)
            self._show_rows(table, found)
            if table.unit is not None:
                self._check_times(table, found)
            made = self._show_relation(
                table, source, others, self._fingerprint(table, found) if local is None else local
            )
            if local is None or sources.local_fingerprint(source, self.place) == local:
                return made
        raise SourceMissing(f"{source.table} is being written while it is read; try again when writing has finished")

    def _show_relation(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str, *, is_checked: bool = False
    ) -> _SparkTable:
        """Show the relation of a table over its rows, after checking them unless that was done before."""
        made = _SparkTable(table, source, others, fingerprint)
        if not is_checked:
            self._check_keys(table, source)
        self._create_view(view_name(table.name), self._select_relation(table), source, table)
        self._tables[table.name.lower()] = made
        self._lost.discard(table.name.lower())
        return made

    def _check_times(self, table: Table, found: sources.SparkSource) -> None:
        session, _ = self._connect()
        self._work(lambda: sources.check_times(session, found, table), found.source)

    def _fingerprint(self, table: Table, found: sources.SparkSource) -> str:
        """Return a fingerprint that changes with the rows of a source."""
        session, _ = self._connect()
        known = self._work(lambda: sources.metadata_fingerprint(session, found), found.source)
        if known is not None:
            return known
        sql = sources.checksum_sql(
            view_name(table.name, SOURCE_SCHEMA), [f"c{index}" for index in range(len(table.columns))]
        )
        sums = self._work(lambda: fetch_columns(session, sql, {SALT: self._salt}), found.source)
        return digest(*(str(column[0]) for column in sums.values()))

    def _show_rows(self, table: Table, found: sources.SparkSource) -> None:
        """Show the declared columns of a source, c0, c1, ..., in the types of their kinds, and then as declared."""
        if table.unit is not None:
            found.check_key(table, relations.key_column(table))
        items = []
        for index, column in enumerate(table.columns):
            there = found.column(column.name)
            if there is None:
                raise relations.missing_column(found.source.table, table, column)
            if there.kind is None:
                raise SourceMissing(
                    f"{found.source.table}.{column.name} now has the type {there.type}, which cannot be queried; "
                    f"change it back, or register {table.name} anew without that column"
                )
            items.append(f"{cast(backquoted(there.name), there.type, column.kind)} AS c{index}")
        name = backquoted(view_name(table.name, SOURCE_SCHEMA))
        self._work(lambda: found.frame.selectExpr(*items).createOrReplaceTempView(name), found.source)
        over = f"SELECT * FROM {SOURCE_SCHEMA}.{quoted(table.name)}"
        self._create_view(
            view_name(table.name, ROWS_SCHEMA), relations.select_declared(table, over), found.source, table
        )

    def _select_relation(self, table: Table) -> str:
        rows = _select_rows(table)
        if table.unit is not None:
            parents = [self._lookup(step.target_table).table for step in table.unit.through]
            rows = relations.select_with_unit(table, rows, [(one, _select_rows(one)) for one in parents])
            rows = relations.limit_rows_per_unit(table, rows)
        return relations.select_view(table, rows)

    def _create_view(self, name: str, sql: str, source: Source, table: Table) -> None:
        """Create a temporary view of a statement in DuckDB's SQL."""
        session, _ = self._connect()
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        assert isinstance(tree, exp.Query)
        text = write_spark(tree, self._kinds(table))
        args = {SALT: self._salt} if f":{SALT}" in text else None

        def make() -> None:
            frame = session.sql(text, args=args) if args else session.sql(text)
            frame.createOrReplaceTempView(backquoted(name))

        self._work(make, source)

    def _drop(self, name: str) -> None:
        session, _ = self._connect()
        self._run(lambda: session.sql(f"DROP VIEW IF EXISTS {backquoted(name)}"), failure=FAILED)

    def _kinds(self, more: Table | None = None) -> dict[str, dict[str, Kind]]:
        """Return the kinds of the columns of every view."""
        tables = {known.table.name.lower(): known.table for known in self._tables.values()}
        if more is not None:
            tables[more.name.lower()] = more
        kinds: dict[str, dict[str, Kind]] = {}
        for table in tables.values():
            plain = {f"c{index}": column.kind for index, column in enumerate(table.columns)}
            named = {column.name: column.kind for column in table.columns}
            if table.is_private:
                named |= {UNIT: self._unit_kind(table), ROWS: Kind.INTEGER}
            kinds[view_name(table.name).lower()] = named
            kinds[view_name(table.name, ROWS_SCHEMA).lower()] = plain
            kinds[view_name(table.name, SOURCE_SCHEMA).lower()] = plain
        return kinds

    def _unit_kind(self, table: Table) -> Kind:
        unit = relations.require_unit(table)
        owner = self._lookup(unit.through[-1].target_table).table if unit.through else table
        return owner.column(unit.column).kind

    def _check_statement(self, sql: str) -> None:
        """Raise EngineFailed unless a statement is one SELECT over registered tables."""
        try:
            tree = sqlglot.parse_one(sql, dialect="spark")
        except sqlglot.ParseError:
            tree = None
        views = {view_name(known.table.name).lower() for known in self._tables.values()}
        if not isinstance(tree, exp.Query) or any(
            one.db or one.name.lower() not in views for one in tree.find_all(exp.Table)
        ):
            raise EngineFailed("the engine runs one SELECT over registered tables, and nothing else")

    def _check_keys(self, table: Table, source: Source) -> None:
        """Raise for foreign keys that lead to several rows, and rows that share what identifies them."""
        for step, onwards in relations.key_steps(table):
            parent = self._lookup(step.target_table)
            own = (
                "" if parent.table.unit is None else relations.key_column(parent.table)
            )  # checked when its rows were shown
            if {step.target_column, onwards} - {own}:
                found = self._open(parent.source)
                for key in (step.target_column, onwards):
                    found.check_key(parent.table, key)
            counted = self._fetch(
                relations.select_key_counts(parent.table, step.target_column, _from_rows_view(parent.table)),
                parent.source,
            )
            if counted["n"][0] != counted["m"][0]:
                raise relations.not_unique(table, parent.table, step.target_column)
        if table.identified_by:
            shared = relations.select_shared_keys(table, _from_rows_view(table))
            if self._fetch(shared, source)["n"][0]:
                raise relations.not_identified(table)

    def _fetch(self, sql: str, source: Source) -> Columns:
        """Run a query, in Spark's SQL, over the rows of a source."""
        session, _ = self._connect()
        return self._work(lambda: fetch_columns(session, sql), source)


def _from_rows_view(table: Table) -> str:
    """Return the SELECT of a table's rows with their declared values, in Spark's SQL."""
    return f"SELECT * FROM {backquoted(view_name(table.name, ROWS_SCHEMA))}"


def _select_rows(table: Table) -> str:
    """Return the SELECT of a table's rows with their declared values, in DuckDB's SQL."""
    return f"SELECT * FROM {ROWS_SCHEMA}.{quoted(table.name)}"
