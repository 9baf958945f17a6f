"""Tables, views and files that Spark reads: their columns, and marks that change with their rows.

Views of Spark that are read row by row, and without failing for a row.

A view is computed whenever it is read, with the settings of the session that made it: one that was made under ANSI
rules fails for a text that is no number, whatever this session says. So a view that leads to a unit is accepted only if
its analysed plan, views that it reads included, selects and filters rows by columns, constants and comparisons; what
Spark casts along the way must fit. Behind Spark Connect no plan can be looked at, and views are refused.

Not here: tables, and views of public rows, which may be computed in any way.

A source's `table` is `catalog.db.table`, or `parquet:` and a path or glob. CSV files are left to DuckDB: without a form
that is written down, Spark would guess it anew for every question.

Marks. Whoever asks for the version of a table gets the same answer again for the same version, so a mark must move when
rows may have. In this order:
    files of this machine       names, sizes, times to the nanosecond and numbers of all files
    files elsewhere             names, sizes and times as Spark sees them in its column `_metadata`
    tables of Delta, Iceberg    the number of the last commit, or of the snapshot
    everything else             a checksum over all rows: their number, and two sums of hashes keyed with the salt
The last one reads the table, once a question, and is the price for a table that says nothing about itself.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.engines.addresses import check_files, check_table
from tacit.engines.dialects.spark.typed_sql import quoted
from tacit.engines.protocol import Described, Source
from tacit.engines.quoting import digest
from tacit.engines.relations import mixing_view
from tacit.engines.spark.kinds import is_binary, is_exact, kind_of
from tacit.engines.spark.sessions import Session, context_of
from tacit.privacy.errors import InvalidInput, SourceMissing
from tacit.privacy.tables import Kind, Table

_NODES: Final = frozenset(
    {
        *("SubqueryAlias", "View", "Project", "Filter", "Union", "Sort", "LogicalRelation", "HiveTableRelation"),
        *("DataSourceV2Relation", "LocalRelation", "LogicalRDD", "Range", "OneRowRelation"),
    }
)
_EXPRESSIONS: Final = frozenset(
    {
        *("AttributeReference", "Alias", "Literal", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual"),
        *("GreaterThan", "GreaterThanOrEqual", "And", "Or", "Not", "IsNull", "IsNotNull", "In", "InSet"),
        *("SortOrder",),
    }
)


def reads_row_by_row(session: Session, name: str, frame: Any) -> bool:
    """Return whether each row of a table or view comes from one row of a table, and none can fail to be read."""
    told = session.catalog.getTable(name)
    if "VIEW" not in str(told.tableType).upper() and not told.isTemporary:
        return True
    if context_of(session) is None:
        return False
    can_cast = session._jvm.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast
    return all(
        node.getClass().getSimpleName().rstrip("$") in _NODES
        and all(_is_harmless(one, can_cast) for part in _each(node.expressions()) for one in _tree(part))
        for node in _tree(frame._jdf.queryExecution().analyzed())
    )


def _is_harmless(expression: Any, can_cast: Any) -> bool:
    name = expression.getClass().getSimpleName().rstrip("$")
    if name == "Cast":
        return bool(can_cast(expression.child().dataType(), expression.dataType()))
    return name in _EXPRESSIONS


def _tree(node: Any) -> Iterator[Any]:
    yield node
    for child in _each(node.children()):
        yield from _tree(child)


def _each(sequence: Any) -> Iterator[Any]:
    """Yield what a Scala sequence holds."""
    return (sequence.apply(index) for index in range(sequence.size()))


FILES: Final = "parquet:"
_OTHER_FILES: Final = re.compile(r"(csv|json|orc|text|avro|xml):", re.IGNORECASE)
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`\s]+)")
_OF_FILES: Final = ("parquet", "orc", "csv", "json", "text", "avro")


@dataclass(frozen=True, slots=True)
class Opened:
    """A source as it is now: a DataFrame over it, and its columns."""

    source: Source
    frame: Any
    columns: tuple[Described, ...]
    is_row_by_row: bool = True
    """Whether each row comes from one row of one table, and can be read (`views`)."""

    def column(self, name: str) -> Described | None:
        """Return a column by its name, or the only one that has it in another case; None if there is none."""
        alike = [one for one in self.columns if one.name.lower() == name.lower()]
        if len(alike) > 1:  # Spark would not know which one is meant, however it is written
            raise InvalidInput(
                f"{self.source.table} has several columns called {name} in different cases; rename all but one",
                name="column",
                value=name,
            )
        return alike[0] if alike else None

    def check_key(self, table: Table, name: str) -> None:
        """Refuse a unit or key whose values the declared kind or Spark does not tell apart, or a mixing view."""
        if not self.is_row_by_row:
            raise mixing_view(self.source.table)
        column = table.column(name)
        found = self.column(column.name)
        if found is None or found.kind is None:
            return  # refused where rows are shown
        if not is_binary(found.type):
            raise InvalidInput(
                f"{table.name}.{column.name} identifies units, and Spark holds different texts in it to be equal; "
                "identify units by a column with the collation UTF8_BINARY",
                name="unit",
                value=column.name,
            )
        if not is_exact(found.type, column.kind):
            instead = (
                f'declare it as text, kinds={{"{column.name}": "text"}}'
                if is_exact(found.type, Kind.TEXT)
                else "identify units by a column of numbers or texts"
            )
            raise InvalidInput(
                f"{table.name}.{column.name} identifies units, and as {column.kind} some of its values of the type "
                f"{found.type} would become the same; {instead}",
                name="kinds",
                value=column.name,
            )


def check(source: Source) -> None:
    """Refuse a source that Spark is not asked for, or that has no well-defined columns."""
    if source.form != "spark":
        raise InvalidInput(f"Spark reads its own tables and files, not {source.form!r}", name="form", value=source.form)
    if _OTHER_FILES.match(source.table):
        raise InvalidInput(
            "Spark reads files as parquet:PATH; what is in other forms, make a table of it or convert it to Parquet",
            name="table",
            value=source.table,
        )
    if source.table.startswith(FILES):
        check_files(source.table.removeprefix(FILES))
        return
    check_table(source.table)
    if _named(source.table) is None:
        raise InvalidInput(
            f"{source.table!r} names no table; write catalog.db.table, or parquet:PATH",
            name="table",
            value=source.table,
        )


def opened(session: Session, source: Source) -> Opened:
    """Look at a source; Spark's errors go through."""
    check(source)
    is_row_by_row = True
    if source.table.startswith(FILES):
        frame = session.read.parquet(source.table.removeprefix(FILES))
    else:
        name = _named(source.table) or ""
        session.catalog.refreshTable(name)
        frame = session.table(name)
        is_row_by_row = reads_row_by_row(session, name, frame)
    fields = [(field.name, _type(field)) for field in frame.schema.fields]
    columns = tuple(Described(name, kind_of(type_name), type_name) for name, type_name in fields)
    return Opened(source, frame, columns, is_row_by_row)


def _type(field: Any) -> str:
    """Return the type of a column; CHAR and VARCHAR are shown as texts, and say in their metadata what they are."""
    return str((field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING") or field.dataType.simpleString())


def local_mark(source: Source, place: str) -> str | None:
    """Return the mark of files of this machine, None for any other source."""
    if not source.table.startswith(FILES) or not place.startswith("local"):
        return None
    path = source.table.removeprefix(FILES).removeprefix("file://").removeprefix("file:")
    if "://" in path or path.startswith(("hdfs:", "s3:", "s3a:", "gs:", "abfs:", "abfss:")):
        return None
    found = [one for one in glob.glob(path) or ([path] if os.path.exists(path) else []) if os.path.exists(one)]
    marks: list[object] = []
    for one in sorted(file for start in found for file in _files(start)):
        try:
            status = os.stat(one)
        except OSError:
            raise SourceMissing(f"{one} cannot be read; check that it is there and its permissions") from None
        marks += [one, status.st_size, status.st_mtime_ns, status.st_ino]
    if not marks:
        raise SourceMissing(f"no file matches {path}; put the rows there again, or register the table anew")
    return digest(source.table, *marks)


def _files(start: str) -> Iterator[str]:
    if not os.path.isdir(start):
        yield start
        return
    for folder, _, names in os.walk(start):
        yield from (os.path.join(folder, name) for name in names if not name.startswith(("_", ".")))


def mark(session: Session, found: Opened) -> str | None:
    """Return the mark of a source that says something about itself, None for any other."""
    if found.source.table.startswith(FILES):
        return _of_files(found)
    provider = _provider(session, _named(found.source.table) or "")
    if provider in _OF_FILES:
        return _of_files(found)
    if provider in _COMMITS:
        return _committed(session, _COMMITS[provider].format(table=_named(found.source.table)))
    return None


_COMMITS: Final = {
    "delta": "SELECT version, timestamp FROM (DESCRIBE HISTORY {table} LIMIT 1)",
    "iceberg": "SELECT snapshot_id, committed_at FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1",
}


def _provider(session: Session, name: str) -> str:
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    told = {str(row[0]).strip(): str(row[1]).strip() for row in rows}
    return "" if told.get("Type") == "VIEW" else told.get("Provider", "").lower()


def _of_files(found: Opened) -> str:
    about = found.frame.metadataColumn("_metadata")
    parts = [about[name].alias(name) for name in ("file_path", "file_size", "file_modification_time")]
    rows = found.frame.select(*parts).distinct().collect()
    return digest(found.source.table, *sorted(repr(tuple(row)) for row in rows))


def _committed(session: Session, sql: str) -> str | None:
    try:
        rows = session.sql(sql).collect()
    except Exception:  # a version of the format that does not tell; rows are looked at instead
        return None
    return digest(*(repr(tuple(row)) for row in rows)) if rows else None


def checksum_sql(view: str, columns: Sequence[str]) -> str:
    """Return the statement of a checksum over the rows of a view; NULLs are hashed as such, as Spark skips them."""
    parts = ", ".join(f"{quoted(name)}, isnull({quoted(name)})" for name in columns)
    sums = [
        f"sum(CAST(xxhash64({arguments}) AS DECIMAL(38, 0))) AS s{index}"
        for index, arguments in enumerate((f":salt, {parts}", f"{parts}, :salt, 1"))
    ]
    return f"SELECT count(*) AS n, {', '.join(sums)} FROM {quoted(view)}"


def _named(table: str) -> str | None:
    """Return the name of a table with each part in quotes, None if it is no name."""
    parts, at = [], 0
    while at <= len(table):
        found = _PART.match(table, at)
        if found is None:
            return None
        parts.append(quoted((found[1] or "").replace("``", "`") or found[2]))
        at = found.end()
        if at == len(table):
            return ".".join(parts)
        if table[at] != ".":
            return None
        at += 1
    return None
