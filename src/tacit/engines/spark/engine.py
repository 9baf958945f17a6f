"""The engine: which tables are registered, and from which sources.

Every table is a temporary view of the engine's own session over rows that stay where they are: nothing is written
anywhere. `refresh` looks at a source again; how a change of its rows is noticed is told in `sources`.
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
from tacit.engines.dialects.spark import ROWS_SCHEMA, SOURCE_SCHEMA, spark, view_of
from tacit.engines.dialects.spark.typed_sql import quoted as backquoted
from tacit.engines.execution import with_uniform_errors
from tacit.engines.protocol import FAILED, ROWS, SALT, SCHEMA, UNIT, Columns, Described, Progress, Source
from tacit.engines.quoting import digest, quoted
from tacit.engines.relations import check, not_identified, not_registered, not_unique
from tacit.engines.relations import place as place_of
from tacit.engines.spark import sessions, sources
from tacit.engines.spark.execution import Runs, answer
from tacit.engines.spark.kinds import cast
from tacit.engines.spark.sessions import Session
from tacit.privacy.errors import EngineFailed, NoConnection, SourceMissing
from tacit.privacy.tables import Kind, Table

T = TypeVar("T")

_ATTEMPTS: Final = 3
_INT64: Final = 2**63


@dataclass(frozen=True, slots=True)
class _Registered:
    """A table as it is shown now; `others` are the tables that were known when it was registered."""

    table: Table
    source: Source
    others: Mapping[str, Table]
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
        self._runs: Runs | None = None
        self._tables: dict[str, _Registered] = {}
        self._lost: set[str] = set()  # tables whose views went with an earlier session
        self._lock = threading.RLock()  # held while sources are looked at

    @classmethod
    def over(cls, session: Session, salt: int) -> SparkEngine:
        """Return an engine beside a session of yours: it has settings and temporary views of its own.

        It sees your tables and global temporary views, not the temporary views of the session, and never stops it.
        """
        return cls(sessions.place_of(session), salt, session=session)

    def describe(self, source: Source) -> list[Described]:
        """Return the columns of a source, without reading more of it than their types need."""
        with self._lock:
            return list(self._opened(source).columns)

    def register(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str | None = None
    ) -> None:
        """Show a table as a relation; the tables that it leads to by foreign keys are registered before it.

        Rows stay where they are, so those of now are shown; with a fingerprint they are not checked.
        """
        with self._lock:
            known = {name.lower(): other for name, other in others.items()}
            check(table, known)
            for step in table.unit.through if table.unit else ():
                self._registered(step.target_table)
            if fingerprint is None:
                self._show(table, source, known)
            else:
                self._shown_rows(table, self._opened(source))
                self._made(table, source, known, fingerprint, is_checked=True)

    def forget(self, name: str) -> None:
        """Take a table away again."""
        with self._lock:
            known = self._tables.pop(name.lower(), None)
            if known is not None and self._session is not None:
                with suppress(NoConnection):  # views end with the session
                    for schema in (SCHEMA, ROWS_SCHEMA, SOURCE_SCHEMA):
                        self._drop(view_of(known.table.name, schema))

    def refresh(self, name: str) -> str:
        """Show a table as it is now, and return a fingerprint of its source."""
        with self._lock:
            known = self._registered(name)
            return self._show(known.table, known.source, known.others).fingerprint

    def write(self, tree: exp.Query) -> str:
        """Return a statement as Spark reads it, with `tacit_data."NAME"` as the view `tacit_data_NAME`."""
        return spark(tree, self._kinds())

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Columns:
        """Run one SELECT about registered tables and return its columns; `progress` is called from another thread."""
        self._check_statement(sql)

        def asked() -> Columns:
            session = self._shown_session()
            return self._do(
                lambda: answer(session, sql, parameters), timeout_s=timeout_s, progress=progress, failure=FAILED
            )

        return with_uniform_errors(asked)

    def cancel(self, thread: int | None = None) -> None:
        """Make what a thread runs now, or whatever runs in this engine, raise Cancelled."""
        if self._runs is not None:
            self._runs.cancel(thread)

    def close(self) -> None:
        """Let go of Spark; a session that was given stays, one that was opened ends."""
        self.cancel()
        with self._lock:
            self._tables.clear()  # views end with the session
            if self._session is not None and self._given is None:
                sessions.closed(self._session)
            self._session = self._runs = None

    def _connected(self) -> tuple[Session, Runs]:
        with self._lock:
            if self._session is None or self._runs is None:
                given = self._given
                session = sessions.opened(self.place) if given is None else sessions.beside(given)
                runs = Runs(session)
                runs.run(lambda: sessions.set_up(session), failure="Spark does not take the settings it needs")
                self._session, self._runs = session, runs
            return self._session, self._runs

    def _shown_session(self) -> Session:
        """Return the session, after showing the tables again that were lost with an earlier one."""
        with self._lock:
            session, _ = self._connected()
            for name in [name for name in self._tables if name in self._lost]:
                known = self._tables[name]
                self.register(known.table, known.source, known.others, known.fingerprint)
            return session

    def _do(self, work: Callable[[], T], **options: Any) -> T:
        """Do work of the session; after Spark was lost, the next work begins with a new session, and a new Spark."""
        session, runs = self._connected()
        try:
            return runs.run(work, **options)
        except EngineFailed as error:
            if isinstance(error, NoConnection) or not sessions.is_alive(session):
                self._lose(session)
            raise

    def _lose(self, session: Session) -> None:
        """Forget a session that cannot be used any more; its views went with it."""
        with self._lock:
            if self._session is session:
                if self._given is None:
                    sessions.closed(session)
                self._session = self._runs = None
                self._lost = set(self._tables)

    def _registered(self, name: str) -> _Registered:
        try:
            return self._tables[name.lower()]
        except KeyError:
            raise not_registered(name) from None

    def _work(self, work: Any, source: Source) -> Any:
        """Do a part of a preparation, so that it can be cancelled."""
        return self._do(
            work, failure=f"the rows of {source.table} could not be prepared; check that Spark can read them"
        )

    def _opened(self, source: Source) -> sources.Opened:
        sources.check(source)
        session, _ = self._connected()
        sentence = f"{source.table} cannot be read by Spark at {self.place}; check that it is there, and its name"
        return self._do(lambda: sources.opened(session, source), failure=sentence, otherwise=SourceMissing)

    def _show(self, table: Table, source: Source, others: Mapping[str, Table]) -> _Registered:
        """Show a table as it is now, and return what is shown."""
        for _ in range(_ATTEMPTS):
            mark = sources.local_mark(source, self.place)
            found = self._opened(source)
            self._shown_rows(table, found)
            made = self._made(table, source, others, self._mark(table, found) if mark is None else mark)
            if mark is None or sources.local_mark(source, self.place) == mark:
                return made
        raise SourceMissing(f"{source.table} is being written while it is read; try again when that is over")

    def _made(
        self, table: Table, source: Source, others: Mapping[str, Table], fingerprint: str, *, is_checked: bool = False
    ) -> _Registered:
        """Show a table over its rows, after checking them unless that was done before."""
        made = _Registered(table, source, others, fingerprint)
        if not is_checked:
            self._check_keys(table)
            self._check_identified(table, source)
        self._view(view_of(table.name), self._relation(table), source, table)
        self._tables[table.name.lower()] = made
        self._lost.discard(table.name.lower())
        return made

    def _mark(self, table: Table, found: sources.Opened) -> str:
        """Return a mark that moves with the rows of a source."""
        session, _ = self._connected()
        told: str | None = self._work(lambda: sources.mark(session, found), found.source)
        if told is not None:
            return told
        sql = sources.checksum_sql(
            view_of(table.name, SOURCE_SCHEMA), [f"c{index}" for index in range(len(table.columns))]
        )
        sums = self._work(lambda: answer(session, sql, {SALT: self._salt}), found.source)
        return digest(*(str(column[0]) for column in sums.values()))

    def _shown_rows(self, table: Table, found: sources.Opened) -> None:
        """Show the declared columns of a source, c0, c1, ..., in the types of their kinds, and then as declared."""
        if table.unit is not None:
            found.check_key(table, table.unit.through[0].column if table.unit.through else table.unit.column)
        items = []
        for index, column in enumerate(table.columns):
            there = found.column(column.name)
            if there is None or there.kind is None:
                what = "has no column" if there is None else "holds something that no question can be about in"
                raise SourceMissing(
                    f"{found.source.table} {what} {column.name}, which {table.name} was registered with; put it back, "
                    "or register the table anew"
                )
            items.append(f"{cast(backquoted(there.name), there.type, column.kind)} AS c{index}")
        name = backquoted(view_of(table.name, SOURCE_SCHEMA))
        self._work(lambda: found.frame.selectExpr(*items).createOrReplaceTempView(name), found.source)
        over = f"SELECT * FROM {SOURCE_SCHEMA}.{quoted(table.name)}"
        self._view(view_of(table.name, ROWS_SCHEMA), relations.as_declared(table, over), found.source, table)

    def _relation(self, table: Table) -> str:
        rows = _rows_of(table)
        if table.unit is not None:
            parents = [self._registered(step.target_table).table for step in table.unit.through]
            rows = relations.with_unit(table, rows, [(one, _rows_of(one)) for one in parents])
            rows = relations.limited(table, rows)
        return relations.view(table, rows)

    def _view(self, name: str, sql: str, source: Source, table: Table | None = None) -> None:
        """Make a temporary view of a statement of tacit."""
        session, _ = self._connected()
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        assert isinstance(tree, exp.Query)
        text = spark(tree, self._kinds(table))
        args = {SALT: self._salt} if f":{SALT}" in text else None

        def make() -> None:
            frame = session.sql(text, args=args) if args else session.sql(text)
            frame.createOrReplaceTempView(backquoted(name))

        self._work(make, source)

    def _drop(self, name: str) -> None:
        session, _ = self._connected()
        self._do(lambda: session.sql(f"DROP VIEW IF EXISTS {backquoted(name)}"), failure=FAILED)

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
            kinds[view_of(table.name).lower()] = named
            kinds[view_of(table.name, ROWS_SCHEMA).lower()] = plain
            kinds[view_of(table.name, SOURCE_SCHEMA).lower()] = plain
        return kinds

    def _unit_kind(self, table: Table) -> Kind:
        unit = relations.unit_of(table)
        owner = self._registered(unit.through[-1].target_table).table if unit.through else table
        return owner.column(unit.column).kind

    def _check_statement(self, sql: str) -> None:
        """Refuse anything but one SELECT about registered tables."""
        try:
            tree = sqlglot.parse_one(sql, dialect="spark")
        except sqlglot.ParseError:
            tree = None
        views = {view_of(known.table.name).lower() for known in self._tables.values()}
        if not isinstance(tree, exp.Query) or any(
            one.db or one.name.lower() not in views for one in tree.find_all(exp.Table)
        ):
            raise EngineFailed("the engine runs one SELECT about registered tables, and nothing else")

    def _check_keys(self, table: Table) -> None:
        """Refuse foreign keys that lead to several rows: a row would belong to several units."""
        steps = table.unit.through if table.unit is not None else ()
        for number, step in enumerate(steps, start=1):
            parent = self._registered(step.target_table)
            onwards = steps[number].column if number < len(steps) else relations.unit_of(table).column
            if len({step.target_column, onwards} - {_own_key(parent.table)}) > 0:
                found = self._opened(parent.source)
                for key in (step.target_column, onwards):
                    found.check_key(parent.table, key)
            key = f"c{place_of(parent.table, step.target_column)}"
            view = backquoted(view_of(parent.table.name, ROWS_SCHEMA))
            sql = f"SELECT count({key}) AS n, count(DISTINCT {key}) AS keys FROM {view}"
            counted = self._asked(sql, parent.source)
            if counted["n"][0] != counted["keys"][0]:
                raise not_unique(table, parent.table, step.target_column)

    def _check_identified(self, table: Table, source: Source) -> None:
        """Refuse a table two rows of which share what is said to identify them: joins would multiply rows."""
        if not table.identified_by:
            return
        keys = ", ".join(f"c{place_of(table, name)}" for name in table.identified_by)
        view = backquoted(view_of(table.name, ROWS_SCHEMA))
        sql = f"SELECT count(*) AS n FROM (SELECT {keys} FROM {view} GROUP BY {keys} HAVING count(*) > 1)"
        if self._asked(sql, source)["n"][0]:
            raise not_identified(table)

    def _asked(self, sql: str, source: Source) -> Columns:
        session, _ = self._connected()
        columns: Columns = self._work(lambda: answer(session, sql), source)
        return columns


def _own_key(table: Table) -> str:
    """Return the column of a private table that was looked at when it was shown."""
    return "" if table.unit is None else table.unit.through[0].column if table.unit.through else table.unit.column


def _rows_of(table: Table) -> str:
    return f"SELECT * FROM {ROWS_SCHEMA}.{quoted(table.name)}"
