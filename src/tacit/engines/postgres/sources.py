"""Tables and views of a PostgreSQL database: columns, definitions that can be read safely, and fingerprints of rows.

Promise: only the catalog is read for columns and definitions, and a table that is missing or may not be read is
reported in a sentence. What is refused is refused when a table is registered, and again when its definition has
changed.

Views. A view is computed whenever it is read. Where its definition holds an expression that fails for some values (a
division, a cast, a sum that overflows), one row makes every query fail, and whether that row exists is an exact bit;
where it holds a volatile function, the same query is about other rows each time. PostgreSQL does not say which
functions can fail, so a definition is accepted only if it consists of what cannot: columns, constants, comparisons and
the clauses of a query. Rows of a foreign table are read by another program, which may fail for one of them. A
materialized view holds rows, and is a table here.

Fingerprints. PostgreSQL keeps no number that changes with every change of a table and that a mere reader may see: its
statistics come late, sizes and file numbers stay the same under updates. What is sound is its snapshot
(`pg_current_snapshot`): it says which transactions are visible, so that under the same one every table of the server
holds the same rows; only TRUNCATE and similar commands take effect at once, and these give the table another file. So
while the snapshot and the files stay, the fingerprint stays, at no cost; when they have changed, for whatever reason,
the rows are read once and added up: the sum of two keyed hashes of each row's text, as far as it is shown, which does
not depend on the order of rows. A write elsewhere on the server then costs a pass over the table, but does not lose
released answers. For tables of more than `ROWS_SUMMED_MAX` rows the snapshot itself is the fingerprint: any write on
the server changes it. Snapshots do not cover rows that are elsewhere, nor do they name all transactions on a standby
server: views, foreign tables and the tables of a standby are summed each time.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import sqlglot
from sqlglot import exp

from tacit.engines.postgres.kinds import bounded, cast, is_exact, is_small, kind_of
from tacit.engines.protocol import Source, SourceColumn
from tacit.engines.quoting import digest, quoted
from tacit.engines.relations import check_exact, missing_column, not_row_by_row
from tacit.privacy.errors import InvalidInput, NoAccess, SourceMissing
from tacit.privacy.tables import Column, Kind, Table

FORM: Final = "postgres"
VIRTUAL: Final = "(computed)"
"""Stands for the type of a virtual generated column, which is computed when it is read."""

SCHEMA: Final = "public"
"""The schema of a table that is named without one."""

_PART: Final = re.compile(r'"(?:[^"]|"")+"|[^".\s][^".]*')
_FIND: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text,
       has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT')
       OR has_any_column_privilege(c.oid, 'SELECT')), row_security_active(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(name)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_COLUMNS: Final = """
WITH RECURSIVE steps AS (SELECT a.atttypid AS oid, a.atttypid AS base FROM pg_attribute a WHERE a.attrelid = %(oid)s
    UNION SELECT s.oid, t.typbasetype FROM steps s JOIN pg_type t ON t.oid = s.base WHERE t.typtype = 'd'),
base AS (SELECT s.oid, s.base FROM steps s JOIN pg_type t ON t.oid = s.base WHERE t.typtype <> 'd')
SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, CASE WHEN t.typtype = 'd' THEN t.typtypmod
       ELSE a.atttypmod END, b.typtype = 'e', a.attgenerated = 'v', coalesce(l.collisdeterministic, true)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN base ON base.oid = t.oid JOIN pg_type b ON b.oid = base.base
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_UNIQUE: Final = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
JOIN pg_opclass o ON o.oid = i.indclass[0]
WHERE i.indrelid = %(oid)s AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL AND o.opcdefault
AND NOT EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent
    WHERE h.inhparent = i.indrelid AND c.relkind <> 'p')
"""
ROWS_SUMMED_MAX: Final = 20_000_000
"""Tables with more rows, by the planner's estimate, are not summed."""

_MOMENT: Final = """
WITH RECURSIVE parts AS (SELECT %(oid)s::oid AS oid
    UNION SELECT i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.oid)
SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text,
       string_agg(coalesce(pg_relation_filenode(c.oid)::text, ''), ',' ORDER BY c.oid),
       sum(greatest(c.reltuples, 0))::float8, bool_and(c.relkind IN ('r', 'p', 'm')) AND NOT pg_is_in_recovery()
FROM parts p JOIN pg_class c ON c.oid = p.oid
"""

_Moment: TypeAlias = tuple[str, str, str]
"""The snapshot, the start time of the server, and the files of the table."""
_RELATIONS: Final = """
WITH RECURSIVE read AS (SELECT %(oid)s::oid AS oid
    UNION SELECT other.oid FROM read CROSS JOIN LATERAL (
        SELECT d.refobjid AS oid FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass
            AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class
            JOIN pg_class v ON v.oid = w.ev_class WHERE w.ev_class = read.oid AND v.relkind = 'v'
        UNION ALL SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = read.oid) AS other)
SELECT c.relkind::text, CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END,
    EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attgenerated = 'v'),
    c.oid = %(oid)s
FROM read JOIN pg_class c ON c.oid = read.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_HARMLESS: Final = (
    *(exp.Select, exp.From, exp.Join, exp.Where, exp.Subquery, exp.Paren, exp.Union, exp.Table, exp.TableAlias),
    *(exp.Column, exp.Identifier, exp.Alias, exp.Star, exp.Literal, exp.Boolean, exp.Null, exp.Distinct, exp.With),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Exists, exp.CTE),
    *(exp.Coalesce, exp.Case, exp.If, exp.Tuple, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Any, exp.Array, exp.Between),
)
_AROUND: Final = (exp.From, exp.Join, exp.Subquery, exp.Union, exp.Exists, exp.In)
"""Parents of a query that yields rows; elsewhere a query yields a value, and fails if it has two rows."""


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A table or view as it is now: its quoted name, its relkind, and its columns by name."""

    source: Source
    oid: int
    sql: str
    relkind: str
    columns: dict[str, tuple[SourceColumn, str]]
    """Each column with the name of its type; for a domain, that of its base type."""
    unique: frozenset[str] = frozenset()
    """The columns that a unique index covers, also over the tables that inherit from this one."""
    equal: frozenset[str] = frozenset()
    """The columns in which the database compares different texts as equal: citext and nondeterministic collations."""
    is_row_by_row: bool = True
    """Whether each row comes from one row of one table; false for a view that joins tables or compares rows."""

    @property
    def source_columns(self) -> list[SourceColumn]:
        """The columns in their order."""
        return [one for one, _ in self.columns.values()]

    @property
    def lock_sql(self) -> str:
        """A statement that reads no row, and locks the definition of the table until the transaction ends."""
        return f"SELECT FROM {self.sql} LIMIT 0"

    def column(self, name: str) -> tuple[SourceColumn, str] | None:
        """Return a column by its name, or the only one that has it in another case; None if there is none."""
        if name in self.columns:
            return self.columns[name]
        alike = [one for other, one in self.columns.items() if other.lower() == name.lower()]
        if len(alike) > 1:
            raise InvalidInput(
                f"{self.source.table} has several columns called {name} in different cases; write the name as it is "
                "in the database",
                name="column",
                value=name,
            )
        return alike[0] if alike else None

    def is_unique(self, column: Column) -> bool:
        """Return whether an index of the database keeps a column unique, also after its cast."""
        known = self.column(column.name)
        kept = {Kind.INTEGER: ("int2", "int4", "int8"), Kind.TEXT: ("text", "varchar", "uuid")}
        return known is not None and known[0].name in self.unique and known[1] in kept.get(column.kind, ())

    def is_small(self, column: Column) -> bool:
        """Return whether no stored value of a column is large."""
        known = self.column(column.name)
        return known is not None and is_small(known[1], known[0].type)

    def check_key(self, table: Table, name: str) -> None:
        """Raise InvalidInput if the declared kind or the database may merge values of a key, or if rows are mixed."""
        if not self.is_row_by_row:
            raise not_row_by_row(self.source.table)
        column = table.column(name)
        known = self.column(column.name)
        if known is None:
            return  # refused where rows are shown
        found, type_name = known
        if found.name in self.equal:
            raise InvalidInput(
                f"{table.name}.{column.name} identifies units, and the database compares different texts in it as "
                "equal; identify units by a column of the type text with a deterministic collation",
                name="unit",
                value=column.name,
            )
        check_exact(table, column, found.type, partial(is_exact, type_name, found.kind))

    def rows(self, table: Table) -> str:
        """Return the SELECT of the declared columns, c0, c1, ..., in the types of their kinds."""
        items = []
        for index, column in enumerate(table.columns):
            known = self.column(column.name)
            if known is None:
                raise missing_column(self.source.table, table, column)
            found, type_name = known
            if type_name == VIRTUAL:
                raise InvalidInput(
                    f"{self.source.table}.{found.name} is computed when it is read, and may fail for a row; make it a "
                    "stored column",
                    name="columns",
                    value=found.name,
                )
            items.append(f"{cast(f's.{quoted(found.name)}', type_name, column.kind, found.type)} AS c{index}")
        return f"SELECT {', '.join(items)} FROM {self.sql} AS s"


def inspect_source(connection: Any, source: Source) -> PostgresSource:
    """Return a table from the database's catalog; raise if it is missing, may not be read or could fail for a row."""
    if source.form != FORM:
        raise InvalidInput(f"source form must be {FORM!r}, not {source.form!r}", name="form", value=source.form)
    row = None
    for schema, name in _candidates(source.table):
        row = connection.execute(_FIND, {"schema": schema, "name": name}).fetchone()
        if row is not None:
            break
    if row is None:
        raise SourceMissing(f"the database has no table {source.table}; check its name and its schema")
    oid, schema, name, relkind, readable, has_policies = row
    if not readable:
        raise NoAccess(f"this database role may not read {source.table}; GRANT it SELECT on that table")
    if has_policies:
        raise NoAccess(
            f"policies of row-level security choose which rows of {source.table} this database role sees, and may look "
            "at the rows of others to do so; use a role that sees all rows (BYPASSRLS), or a materialized view"
        )
    is_row_by_row = check_readable(connection, oid, source.table)
    columns: dict[str, tuple[SourceColumn, str]] = {}
    equal = set()
    found = connection.execute(_COLUMNS, {"oid": oid}).fetchall()
    for column, shown, type_name, modifier, is_enum, is_virtual, tells_apart in found:
        kind = None if is_virtual else kind_of(type_name, modifier, is_enum=is_enum)
        columns[column] = (SourceColumn(column, kind, shown), VIRTUAL if is_virtual else type_name)
        if type_name == "citext" or not tells_apart:
            equal.add(column)
    unique = frozenset(str(one) for (one,) in connection.execute(_UNIQUE, {"oid": oid}).fetchall())
    sql = f"{quoted(schema)}.{quoted(name)}"
    return PostgresSource(source, oid, sql, relkind, columns, unique, frozenset(equal), is_row_by_row)


def _candidates(written: str) -> list[tuple[str, str]]:
    """Return the schemas and names that a name may mean: folded to lower case as in PostgreSQL, and as written."""
    parts = _PART.findall(written)
    if not 1 <= len(parts) <= 2 or ".".join(parts) != written:
        raise InvalidInput(
            f"{written!r} is not the name of a table; write schema.table, with quotes where PostgreSQL wants them",
            name="table",
            value=written,
        )
    exact = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
    folded = [part if part.startswith('"') else part.lower() for part in parts]
    folded = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in folded]
    pairs = [names if len(names) == 2 else [SCHEMA, *names] for names in (folded, exact)]
    return [(schema, name) for schema, name in pairs]


def check_readable(connection: Any, oid: int, shown: str) -> bool:
    """Raise InvalidInput for a table of which a row may fail to be read; `shown` is its name in the error.

    Return whether each row comes from one row of one table (`engines.relations`).
    """
    instead, is_row_by_row = "make a table or a materialized view of its rows", True
    for relkind, definition, is_computed, is_itself in connection.execute(_RELATIONS, {"oid": oid}).fetchall():
        if relkind == "f":
            raise InvalidInput(
                f"rows of {shown} are in a foreign table, which may fail for one of them; {instead}", name="source"
            )
        if relkind == "v":
            tree = _parse(definition or "")
            if tree is None or not all(_is_harmless_node(node) for node in tree.walk()):
                raise InvalidInput(
                    f"{shown} is a view, or reads one, that computes something for each row, and may fail for one of "
                    f"them; {instead}, or leave columns, constants and comparisons in it only",
                    name="source",
                )
            is_row_by_row &= not any(_mixes(node) for node in tree.walk())
        if is_computed and not is_itself:
            raise InvalidInput(
                f"{shown} reads a table with columns that are computed when they are read, and may fail for a row; "
                f"{instead}",
                name="source",
            )
    return is_row_by_row


def _parse(definition: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(definition, dialect="postgres")
    except sqlglot.ParseError:
        return None


def _mixes(node: exp.Expr) -> bool:
    """Return whether a node of an accepted definition lets one row decide about another."""
    is_set = isinstance(node, exp.Union) and bool(node.args.get("distinct"))
    is_subquery = isinstance(node, exp.In) and node.args.get("query") is not None
    return is_set or is_subquery or isinstance(node, exp.Join | exp.Distinct | exp.Exists)


def _is_harmless_node(node: exp.Expr) -> bool:
    """Return whether a node cannot fail for a row; a cast of a constant is done when the view is planned."""
    if isinstance(node, exp.DataType | exp.DataTypeParam):
        return node.find_ancestor(exp.Cast) is not None
    if isinstance(node, exp.Cast):
        is_text = isinstance(node.this.unnest(), exp.Column) and node.args["to"].this is exp.DataType.Type.TEXT
        return is_text or node.find(exp.Column, exp.Query) is None
    if isinstance(node, exp.Subquery | exp.Select) and node.parent is not None and not isinstance(node, exp.CTE):
        return isinstance(node.parent, (*_AROUND, exp.CTE))
    return type(node) in _HARMLESS


class Fingerprints:
    """The fingerprints of tables, each with the snapshot under which it was computed."""

    def __init__(self, salt: int) -> None:
        self._salt = salt
        self._known: dict[tuple[int, tuple[str, ...]], tuple[_Moment, str]] = {}
        self._lock = threading.Lock()

    def of(self, connection: Any, table: Table, found: PostgresSource) -> str:
        """Return the fingerprint of a table's rows; the transaction sees one snapshot."""
        *moment_, rows, is_here = connection.execute(_MOMENT, {"oid": found.oid}).fetchone()
        moment: _Moment = tuple(moment_)
        if is_here and rows > ROWS_SUMMED_MAX:
            return digest("snapshot", found.oid, *moment)
        columns = [there for one in table.columns if (there := found.column(one.name)) is not None]
        values = tuple(bounded(f"s.{quoted(shown.name)}", type_name) for shown, type_name in columns)
        key = (found.oid, values)
        with self._lock:
            known = self._known.get(key)
        if is_here and known is not None and known[0] == moment:
            return known[1]
        fingerprint = digest("sum", *self._sums(connection, found, values))
        with self._lock:
            self._known[key] = (moment, fingerprint)
        return fingerprint

    def _sums(self, connection: Any, found: PostgresSource, values: tuple[str, ...]) -> tuple[object, ...]:
        row = ", ".join(values).replace("%", "%%")
        hashed = [f'hashtextextended(r COLLATE "C", %({seed})s::bigint)' for seed in ("one", "two")]
        sql = (
            f"SELECT count(*), {', '.join(f'sum({one}::numeric)::text' for one in hashed)} "
            f"FROM (SELECT ROW({row})::text AS r FROM {found.sql.replace('%', '%%')} AS s) AS t"
        )
        seeds = {name: int(digest(name, self._salt)[:15], 16) for name in ("one", "two")}
        found_sums: tuple[object, ...] = connection.execute(sql, seeds).fetchone()
        return found_sums
