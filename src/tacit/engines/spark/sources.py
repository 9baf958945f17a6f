"""Tables, views and files that Spark reads: their columns, and fingerprints of their rows.

A source's `table` is `catalog.db.table`, or `parquet:` and a path or glob. CSV files are left to DuckDB: without a
stored format, Spark would detect it anew for every query.

Which of them may hold rows of units is decided in `row_checks`.

Fingerprints. The same fingerprint means the same released answers, so it must change when rows may have changed. In
this order:
    files of this machine       names, sizes, times to the nanosecond and inodes of all files
    files elsewhere             names, sizes and times as Spark sees them in its column `_metadata`
    tables of Delta, Iceberg    the number of the last commit, or of the snapshot
    everything else             a checksum over all rows: their number, and two sums of hashes keyed with the salt
The last one reads the whole table at every refresh.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tacit.engines.addresses import check_file_address, check_table_name
from tacit.engines.dialects.spark.typed_sql import backquoted
from tacit.engines.protocol import Source, SourceColumn
from tacit.engines.quoting import digest
from tacit.engines.relations import check_exact
from tacit.engines.spark import row_checks
from tacit.engines.spark.file_paths import FILES, local_path, match_files, normalize_address
from tacit.engines.spark.kinds import is_binary, is_exact, kind_of
from tacit.engines.spark.sessions import Session
from tacit.privacy.errors import InvalidInput, SourceMissing
from tacit.privacy.tables import Table

_OTHER_FILES: Final = re.compile(r"(csv|json|orc|text|avro|xml):", re.IGNORECASE)
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`\s]+)")
_FILE_PROVIDERS: Final = ("parquet", "orc", "csv", "json", "text", "avro")
_COMMITS: Final = {
    "delta": "SELECT version, timestamp FROM (DESCRIBE HISTORY {table} LIMIT 1)",
    "iceberg": "SELECT snapshot_id, committed_at FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1",
}


@dataclass(frozen=True, slots=True)
class SparkSource:
    """A source as it is now: a DataFrame over it, and its columns."""

    source: Source
    frame: Any
    columns: tuple[SourceColumn, ...]
    refusal: InvalidInput | None = None
    """Why no rows of units are read from it: rows that depend on others, or that can fail to be read (`row_checks`)."""

    def column(self, name: str) -> SourceColumn | None:
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
        """Raise InvalidInput if the declared kind or Spark may merge values of a key, or if its rows are refused."""
        if self.refusal is not None:
            raise self.refusal
        column = table.column(name)
        found = self.column(column.name)
        if found is None or found.kind is None:
            return  # refused where rows are shown
        if not is_binary(found.type):
            raise InvalidInput(
                f"{table.name}.{column.name} identifies units, and Spark compares different texts in it as equal; "
                "identify units by a column with the collation UTF8_BINARY",
                name="unit",
                value=column.name,
            )
        check_exact(table, column, found.type, partial(is_exact, found.type))


def check_source(source: Source) -> None:
    """Raise InvalidInput unless a source is a table or Parquet files."""
    if source.form != "spark":
        raise InvalidInput(f"source form must be 'spark', not {source.form!r}", name="form", value=source.form)
    if _OTHER_FILES.match(source.table):
        raise InvalidInput(
            "Spark reads files as parquet:PATH; convert other files to Parquet, or make a table of them",
            name="table",
            value=source.table,
        )
    if source.table.startswith(FILES):
        check_file_address(source.table.removeprefix(FILES))
        normalize_address(source.table)  # raises unless it is known which files are meant
        return
    check_table_name(source.table)
    if _quoted_name(source.table) is None:
        raise InvalidInput(
            f"{source.table!r} is not the name of a table; write catalog.db.table, or parquet:PATH",
            name="table",
            value=source.table,
        )


def open_source(session: Session, source: Source) -> SparkSource:
    """Return a source as it is now; Spark's own errors are raised unchanged."""
    check_source(source)
    refusal = None
    if source.table.startswith(FILES):
        frame = session.read.parquet(source.table.removeprefix(FILES))
    else:
        name = _quoted_name(source.table) or ""
        session.catalog.refreshTable(name)
        frame = session.table(name)
        refusal = row_checks.refusal_of(session, source.table, name, frame)
    fields = [(field.name, _type(field)) for field in frame.schema.fields]
    columns = tuple(SourceColumn(name, kind_of(type_name), type_name) for name, type_name in fields)
    return SparkSource(source, frame, columns, refusal)


def check_times(session: Session, found: SparkSource, table: Table) -> None:
    """Raise InvalidInput if a declared column of a private table could hold a time that Spark fails for."""
    read = [one for one in (found.column(column.name) for column in table.columns) if one is not None]
    name = None if found.source.table.startswith(FILES) else _quoted_name(found.source.table)
    types = {one.name: one.type.lower() for one in read}
    row_checks.check_times(session, found.source.table, name, found.frame, types)


def _type(field: Any) -> str:
    """Return the type of a column; CHAR and VARCHAR are texts in a schema, and named in its metadata."""
    return str((field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING") or field.dataType.simpleString())


def local_fingerprint(source: Source, place: str) -> str | None:
    """Return the fingerprint of files of this machine, None for any other source."""
    path = local_path(source.table) if place.startswith("local") else None
    if path is None:
        return None
    found = [one for one in match_files(path) if os.path.exists(one)]
    states: list[object] = []
    for one in sorted(file for start in found for file in _files(start)):
        try:
            status = os.stat(one)
        except OSError:
            raise SourceMissing(f"{one} cannot be read; check that it is there and its permissions") from None
        states += [one, status.st_size, status.st_mtime_ns, status.st_ino]
    if not states:
        raise SourceMissing(f"no file matches {path}; put the rows there again, or register the table again")
    return digest(source.table, *states)


def _files(start: str) -> Iterator[str]:
    if not os.path.isdir(start):
        yield start
        return
    for folder, _, names in os.walk(start):
        yield from (os.path.join(folder, name) for name in names if not name.startswith(("_", ".")))


def metadata_fingerprint(session: Session, found: SparkSource) -> str | None:
    """Return the fingerprint of a source that has metadata about its version, None for any other."""
    if found.source.table.startswith(FILES):
        return _files_fingerprint(found)
    provider = _provider(session, _quoted_name(found.source.table) or "")
    if provider in _FILE_PROVIDERS:
        return _files_fingerprint(found)
    if provider in _COMMITS:
        return _last_commit(session, _COMMITS[provider].format(table=_quoted_name(found.source.table)))
    return None


def _provider(session: Session, name: str) -> str:
    details = row_checks.table_details(session, name)
    return "" if details.get("Type") == "VIEW" else details.get("Provider", "").lower()


def _files_fingerprint(found: SparkSource) -> str:
    metadata = found.frame.metadataColumn("_metadata")
    parts = [metadata[name].alias(name) for name in ("file_path", "file_size", "file_modification_time")]
    rows = found.frame.select(*parts).distinct().collect()
    return digest(found.source.table, *sorted(repr(tuple(row)) for row in rows))


def _last_commit(session: Session, sql: str) -> str | None:
    try:
        rows = session.sql(sql).collect()
    except Exception:  # a version of the format without it; the checksum is taken instead
        return None
    return digest(*(repr(tuple(row)) for row in rows)) if rows else None


def checksum_sql(view: str, columns: Sequence[str]) -> str:
    """Return the statement of a checksum over a view's rows; Spark skips NULLs, so whether a value is one is hashed."""
    parts = ", ".join(f"{backquoted(name)}, isnull({backquoted(name)})" for name in columns)
    sums = [
        f"sum(CAST(xxhash64({arguments}) AS DECIMAL(38, 0))) AS s{index}"
        for index, arguments in enumerate((f":salt, {parts}", f"{parts}, :salt, 1"))
    ]
    return f"SELECT count(*) AS n, {', '.join(sums)} FROM {backquoted(view)}"


def _quoted_name(table: str) -> str | None:
    """Return the name of a table with each part in quotes, None if it is not a name."""
    parts, at = [], 0
    while at <= len(table):
        found = _PART.match(table, at)
        if found is None:
            return None
        parts.append(backquoted((found[1] or "").replace("``", "`") or found[2]))
        at = found.end()
        if at == len(table):
            return ".".join(parts)
        if table[at] != ".":
            return None
        at += 1
    return None
