"""Tables of a PostgreSQL database: their columns as the catalog has them, and which kinds fit them.

Promise: only the catalog is read, and a table that is missing or may not be read is said so in a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from tacit.engines.names import quoted
from tacit.engines.postgres.kinds import cast, is_exact, kind_of
from tacit.engines.postgres.views import check_readable
from tacit.engines.protocol import Described, Source
from tacit.engines.relations import mixing_view
from tacit.privacy.errors import InvalidInput, NoAccess, SourceMissing
from tacit.privacy.tables import Column, Kind, Table

FORM: Final = "postgres"
VIRTUAL: Final = "(computed)"
"""Stands for the type of a column that is computed when it is read."""

SCHEMA: Final = "public"
"""Where a table is looked for whose schema is not named."""

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


@dataclass(frozen=True, slots=True)
class Found:
    """A table as it is now: what it is called, of what kind it is, and its columns by name."""

    source: Source
    oid: int
    sql: str
    relkind: str
    columns: dict[str, tuple[Described, str]]
    """Each column with the name of its type, a domain's being that of what it is made of."""
    unique: frozenset[str] = frozenset()
    """The columns that an index of the database keeps unique, also over the tables that inherit from this one."""
    equal: frozenset[str] = frozenset()
    """The columns in which the database holds different texts to be equal: citext, and collations that say so."""
    is_row_by_row: bool = True
    """Whether each row comes from one row of one table; false of a view that joins tables or compares rows."""

    @property
    def described(self) -> list[Described]:
        """The columns in their order."""
        return [one for one, _ in self.columns.values()]

    @property
    def locked(self) -> str:
        """A statement that reads nothing, and keeps the table as it is until the transaction ends."""
        return f"SELECT FROM {self.sql} LIMIT 0"

    def column(self, name: str) -> tuple[Described, str] | None:
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
        """Whether the database itself sees to it that no two rows share a value of a column, also after its cast."""
        known = self.column(column.name)
        kept = {Kind.INTEGER: ("int2", "int4", "int8"), Kind.TEXT: ("text", "varchar", "uuid")}
        return known is not None and known[0].name in self.unique and known[1] in kept.get(column.kind, ())

    def check_key(self, table: Table, name: str) -> None:
        """Refuse a unit or key whose values the declared kind or the database does not tell apart, or a mixing view."""
        if not self.is_row_by_row:
            raise mixing_view(self.source.table)
        column = table.column(name)
        known = self.column(column.name)
        if known is None:
            return  # refused where rows are shown
        found, type_name = known
        if found.name in self.equal:
            raise InvalidInput(
                f"{table.name}.{column.name} identifies units, and the database holds different texts in it to be "
                "equal; identify units by a column of the type text with a deterministic collation",
                name="unit",
                value=column.name,
            )
        if not is_exact(type_name, found.kind, column.kind):
            instead = (
                f'declare it as text, kinds={{"{column.name}": "text"}}'
                if is_exact(type_name, found.kind, Kind.TEXT)
                else "identify units by a column of numbers or texts"
            )
            raise InvalidInput(
                f"{table.name}.{column.name} identifies units, and as {column.kind} some of its values of the type "
                f"{found.type} would become the same; {instead}",
                name="kinds",
                value=column.name,
            )

    def rows(self, table: Table) -> str:
        """Return the SELECT of the declared columns, c0, c1, ..., in the types of their kinds."""
        items = []
        for index, column in enumerate(table.columns):
            known = self.column(column.name)
            if known is None:
                raise SourceMissing(
                    f"{self.source.table} has no column {column.name}, which {table.name} was registered with; "
                    "put it back, or register the table anew"
                )
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


def find(connection: Any, source: Source) -> Found:
    """Look at a table in the catalog."""
    if source.form != FORM:
        raise InvalidInput(f"rows of PostgreSQL come as {FORM}, not {source.form!r}", name="form", value=source.form)
    row = None
    for schema, name in _candidates(source.table):
        row = connection.execute(_FIND, {"schema": schema, "name": name}).fetchone()
        if row is not None:
            break
    if row is None:
        raise SourceMissing(f"the database has no table {source.table}; check its name and its schema")
    oid, schema, name, relkind, readable, has_policies = row
    if not readable:
        raise NoAccess(f"this account may not read {source.table}; GRANT it SELECT on that table")
    if has_policies:
        raise NoAccess(
            f"policies of row-level security choose which rows of {source.table} this account sees, and may look at "
            "the rows of others to do so; use an account that sees all rows (BYPASSRLS), or a materialized view"
        )
    is_row_by_row = check_readable(connection, oid, source.table)
    columns: dict[str, tuple[Described, str]] = {}
    equal = set()
    found = connection.execute(_COLUMNS, {"oid": oid}).fetchall()
    for column, shown, type_name, modifier, is_enum, is_virtual, tells_apart in found:
        kind = None if is_virtual else kind_of(type_name, modifier, is_enum=is_enum)
        columns[column] = (Described(column, kind, shown), VIRTUAL if is_virtual else type_name)
        if type_name == "citext" or not tells_apart:
            equal.add(column)
    unique = frozenset(str(one) for (one,) in connection.execute(_UNIQUE, {"oid": oid}).fetchall())
    sql = f"{quoted(schema)}.{quoted(name)}"
    return Found(source, oid, sql, relkind, columns, unique, frozenset(equal), is_row_by_row)


def _candidates(written: str) -> list[tuple[str, str]]:
    """Return what a name may stand for: as PostgreSQL reads it, and as it is written."""
    parts = _PART.findall(written)
    if not 1 <= len(parts) <= 2 or ".".join(parts) != written:
        raise InvalidInput(
            f"{written!r} is no name of a table; write schema.table, with quotes where PostgreSQL wants them",
            name="table",
            value=written,
        )
    exact = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
    folded = [part if part.startswith('"') else part.lower() for part in parts]
    folded = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in folded]
    pairs = [names if len(names) == 2 else [SCHEMA, *names] for names in (folded, exact)]
    return [(schema, name) for schema, name in pairs]
