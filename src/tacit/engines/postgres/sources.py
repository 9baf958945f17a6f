"""Tables of a PostgreSQL database: their columns as the catalog has them, and which kinds fit them.

Promise: only the catalog is read, and a table that is missing or may not be read is said so in a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from tacit.engines.names import quoted
from tacit.engines.postgres.kinds import cast, kind_of
from tacit.engines.protocol import Described, Source
from tacit.privacy.errors import InvalidInput, NoAccess, SourceMissing
from tacit.privacy.tables import Column, Kind, Table

FORM: Final = "postgres"
SCHEMA: Final = "public"
"""Where a table is looked for whose schema is not named."""

_PART: Final = re.compile(r'"(?:[^"]|"")+"|[^".\s][^".]*')
_FIND: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text,
       has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT')
       OR has_any_column_privilege(c.oid, 'SELECT'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(name)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, CASE WHEN t.typtype = 'd' THEN t.typtypmod
       ELSE a.atttypmod END, b.typtype = 'e'
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_UNIQUE: Final = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = %(oid)s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1
AND i.indpred IS NULL AND i.indexprs IS NULL
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A table as it is now: what it is called, of what kind it is, and its columns by name in lower case."""

    source: Source
    oid: int
    sql: str
    relkind: str
    columns: dict[str, tuple[Described, str]]
    """Each column with the name of its type, a domain's being that of what it is made of."""
    unique: frozenset[str] = frozenset()
    """The columns that an index of the database keeps unique, by name in lower case."""

    @property
    def described(self) -> list[Described]:
        """The columns in their order."""
        return [one for one, _ in self.columns.values()]

    @property
    def locked(self) -> str:
        """A statement that reads nothing, and keeps the table as it is until the transaction ends."""
        return f"SELECT FROM {self.sql} LIMIT 0"

    def is_unique(self, column: Column) -> bool:
        """Whether the database itself sees to it that no two rows share a value of a column, also after its cast."""
        _, type_name = self.columns[column.name.lower()]
        kept = {Kind.INTEGER: ("int2", "int4", "int8"), Kind.TEXT: ("text", "varchar", "uuid")}
        return column.name.lower() in self.unique and type_name in kept.get(column.kind, ())

    def rows(self, table: Table) -> str:
        """Return the SELECT of the declared columns, c0, c1, ..., in the types of their kinds."""
        items = []
        for index, column in enumerate(table.columns):
            known = self.columns.get(column.name.lower())
            if known is None:
                raise SourceMissing(
                    f"{self.source.table} has no column {column.name}, which {table.name} was registered with; "
                    "put it back, or register the table anew"
                )
            found, type_name = known
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
    oid, schema, name, relkind, readable = row
    if not readable:
        raise NoAccess(f"this account may not read {source.table}; GRANT it SELECT on that table")
    columns: dict[str, tuple[Described, str]] = {}
    for column, shown, type_name, modifier, is_enum in connection.execute(_COLUMNS, {"oid": oid}).fetchall():
        kind = kind_of(type_name, modifier, is_enum=is_enum)
        columns.setdefault(column.lower(), (Described(column, kind, shown), type_name))
    unique = frozenset(str(one).lower() for (one,) in connection.execute(_UNIQUE, {"oid": oid}).fetchall())
    return Found(source, oid, f"{quoted(schema)}.{quoted(name)}", relkind, columns, unique)


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
