"""The files behind a source: where they are, what columns they hold, and how DuckDB scans them.

Promise: whatever is wrong with a file is a SourceMissing that says what to do, and never repeats DuckDB's message,
which may quote the data. A glob is resolved to its files, so that an added or removed file is a change of the source.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import duckdb

from tacit.engines.csv_format import CsvFormat
from tacit.engines.duckdb.connections import Connection, attach, database_alias, detach
from tacit.engines.duckdb.csv_files import Utf8Copies, match_format, scan_sql, sniff_format
from tacit.engines.duckdb.csv_quotes import require_strict
from tacit.engines.duckdb.kinds import cast, kind_of, merge_kinds
from tacit.engines.protocol import Source, SourceColumn
from tacit.engines.quoting import digest, list_literal, quoted, require_distinct
from tacit.privacy.errors import InvalidInput, SourceMissing
from tacit.privacy.tables import Column

FORMS: Final = ("csv", "parquet", "duckdb")
ROW_BY_ROW: Final = frozenset(
    {
        *("PROJECTION", "FILTER", "SEQ_SCAN", "READ_PARQUET", "PARQUET_SCAN", "DUMMY_SCAN", "EXPRESSION_GET"),
        *("UNION", "UNNEST", "ORDER_BY", "CTE", "CTE_SCAN"),
    }
)
"""The operators of a view that makes each row from one row; scans of CSV files are not, as all lines decide how
each is read."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A FROM item, its columns by name in lower case, and for CSV files their format."""

    sql: str
    columns: dict[str, SourceColumn]
    format: CsvFormat | None = None
    lenient_sql: str = ""
    """The same with ? for each byte of a text that is not UTF-8; the strict scan would refuse the file for one."""

    def value(self, column: Column) -> str:
        """Return SQL for a declared column in the type of its kind."""
        found = self.columns[column.name.lower()]
        pattern = "" if self.format is None else self.format.pattern(found.type)
        return cast(quoted(found.name), self.type(column), column.kind, pattern)

    def type(self, column: Column) -> str:
        """Return the type of a declared column in the scan; every field of a CSV file is a text."""
        return self.columns[column.name.lower()].type if self.format is None else "VARCHAR"


@dataclass(frozen=True, slots=True)
class DuckDBSource:
    """A source as it is now: its files, the database to attach if it is one, and one scan per format of its files."""

    source: Source
    files: tuple[str, ...]
    scans: tuple[Scan, ...]
    attached: tuple[str, ...] = ()
    rows: int | None = None
    """The number of rows, where it is known without reading them."""
    is_row_by_row: bool = True
    """Whether each row comes from one row of one table; false of a view that joins, groups, orders or counts rows."""

    @property
    def csv_formats(self) -> tuple[CsvFormat, ...]:
        """The formats of CSV files, to be stored as `Source.csv`."""
        return tuple(one.format for one in self.scans if one.format is not None)

    @property
    def source_columns(self) -> list[SourceColumn]:
        """The columns, each with the kind that fits it in every file."""
        found = dict(self.scans[0].columns)
        for one in self.scans[1:]:
            for name in found.keys() & one.columns.keys():
                mine = found[name]
                found[name] = SourceColumn(mine.name, merge_kinds(mine.kind, one.columns[name].kind), mine.type)
        return list(found.values())


def files_of(source: Source) -> tuple[str, ...]:
    """Return the files of a source in the order of their names; raise SourceMissing if there are none."""
    if source.form not in FORMS:
        raise InvalidInput(
            f"unsupported source format {source.form!r}; use {' or '.join(FORMS)}", name="form", value=source.form
        )
    if "://" in source.place:
        raise InvalidInput(f"{source.place} is an address; a source in DuckDB must be a file", name="source")
    place = os.path.abspath(source.place)
    if os.path.isfile(place):
        return (place,)
    if source.form == "duckdb" or not glob.has_magic(place):
        what = "is not a file" if os.path.exists(place) else "is not there"
        raise SourceMissing(
            f"{source.place} {what}; put the rows there again, or register the table from its new place"
        )
    files = tuple(sorted(path for path in glob.glob(place, recursive=True) if os.path.isfile(path)))
    if not files:
        raise SourceMissing(f"no file matches {source.place}; put the rows there again, or register the table again")
    return files


def fingerprint(source: Source) -> str:
    """Return a digest of the content of a source's files, which reads them whole, and of how they are read."""
    formats = [format_.to_dict() for format_ in source.csv]
    return digest(source.form, source.place, source.table, formats, *_map_files(source, _sha))


def file_state(source: Source) -> str:
    """Return a digest that changes when a file of a source is written, from sizes, times and inodes alone."""
    return digest(*_map_files(source, _status))


def _map_files(source: Source, measure: Callable[[str], object]) -> Iterator[object]:
    """Yield each file of a source, and the write-ahead log beside a database, with its measure."""
    for path in files_of(source):
        beside = (f"{path}.wal",) if source.form == "duckdb" and os.path.exists(f"{path}.wal") else ()
        for one in (path, *beside):
            try:
                yield one, measure(one)
            except OSError:
                raise SourceMissing(f"{one} cannot be read; check that it is there and its permissions") from None


def _sha(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _status(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def inspect_source(connection: Connection, source: Source, copies: Utf8Copies) -> DuckDBSource:
    """Return the files and columns of a source, and its number of rows if that is cheap to know."""
    files = files_of(source)
    for path in files:
        if not os.access(path, os.R_OK):
            raise SourceMissing(f"{path} may not be read; check its permissions")
    if source.form == "csv":
        return DuckDBSource(source, files, _csv_scans(connection, files, source.csv, copies))
    if source.form == "parquet":
        return _parquet(connection, source, files)
    return _database(connection, source, files[0])


def _csv_scans(
    connection: Connection, files: tuple[str, ...], kept: tuple[CsvFormat, ...], copies: Utf8Copies
) -> tuple[Scan, ...]:
    by_format: dict[CsvFormat, list[str]] = {}
    for path in files:
        csv_format = _csv_format(connection, kept, path, copies)
        by_format.setdefault(csv_format, []).append(copies.readable(path, csv_format.encoding))
    return tuple(
        Scan(
            scan_sql(csv_format, paths),
            {
                name.lower(): SourceColumn(name, kind_of(type_name), type_name)
                for name, type_name in zip(csv_format.names, csv_format.types, strict=True)
            },
            csv_format,
        )
        for csv_format, paths in by_format.items()
    )


def _csv_format(connection: Connection, kept: tuple[CsvFormat, ...], path: str, copies: Utf8Copies) -> CsvFormat:
    if path.lower().endswith(".zst"):
        raise SourceMissing(
            f"Zstandard-compressed files are not supported; decompress {path}, or compress it with gzip"
        )
    return match_format(connection, kept, path, copies) if kept else sniff_format(connection, path, copies)


def check_files(connection: Connection, source: Source, copies: Utf8Copies) -> None:
    """Raise for CSV files with ambiguous quotes (`csv_quotes`), and Parquet files with two columns of one name.

    It may read whole files, and is for owners.
    """
    files = files_of(source)
    for path in files if source.form == "csv" else ():
        csv_format = _csv_format(connection, source.csv, path, copies)
        require_strict(csv_format, path, copies.readable(path, csv_format.encoding))
    if source.form == "parquet":
        sql = f"SELECT file_name, name, num_children FROM parquet_schema({list_literal(files)})"
        try:
            elements = connection.execute(sql).fetchall()
        except duckdb.Error:
            raise SourceMissing(
                f"{source.place} cannot be read as Parquet; check that its files are complete"
            ) from None
        for path, names in _top_names(elements).items():
            require_distinct(path, names)


def _parquet(connection: Connection, source: Source, files: tuple[str, ...]) -> DuckDBSource:
    sql = f"read_parquet({list_literal(files)})"
    try:
        columns = _columns(connection, sql)
        lenient_sql = _lenient(connection, files)
        counted = connection.execute(
            f"SELECT sum(num_rows) FROM parquet_file_metadata({list_literal(files)})"
        ).fetchone()
    except duckdb.Error:
        raise SourceMissing(
            f"{source.place} cannot be read as Parquet; check that its files are complete and have the same columns"
        ) from None
    return DuckDBSource(
        source, files, (Scan(sql, columns, None, lenient_sql),), rows=int(counted[0]) if counted else None
    )


def _top_names(elements: Sequence[tuple[str, str, int | None]]) -> dict[str, list[str]]:
    """Return the top-level columns of each Parquet file, from its schema in depth-first order with child counts."""
    found: dict[str, list[str]] = {}
    inside: list[int] = []  # children still to come, from the root down
    for path, name, children in elements:
        if path not in found:
            found[path], inside = [], [children or 0]
            continue
        while not inside[-1]:
            inside.pop()
        if len(inside) == 1:
            found[path].append(name)
        inside[-1] -= 1
        inside.append(children or 0)
    return found


def _lenient(connection: Connection, files: tuple[str, ...]) -> str:
    """Return a scan in which invalid UTF-8 affects its own text alone; empty if this DuckDB has none."""
    return f"read_parquet({list_literal(files)}, utf8_validation = 'replace')" if _replaces_text(connection) else ""


_REPLACES_TEXT: Final[dict[str, bool]] = {}


def _replaces_text(connection: Connection) -> bool:
    """Return whether this version of DuckDB can replace invalid UTF-8; looking it up takes longer than all the rest."""
    if duckdb.__version__ not in _REPLACES_TEXT:
        known = connection.execute(
            "SELECT parameters FROM duckdb_functions() WHERE function_name = 'read_parquet'"
        ).fetchall()
        _REPLACES_TEXT[duckdb.__version__] = any("utf8_validation" in names for (names,) in known)
    return _REPLACES_TEXT[duckdb.__version__]


def _database(connection: Connection, source: Source, path: str) -> DuckDBSource:
    with attached(connection, (path,)):
        schema, name, rows = _resolve_table(connection, source, path)
        sql = f"{database_alias(path)}.{quoted(schema)}.{quoted(name)}"
        try:
            columns = _columns(connection, sql)
        except duckdb.Error:
            raise SourceMissing(f"{source.table} in {source.place} cannot be read; check that it works there") from None
        is_row_by_row = rows is not None or _operators(connection, sql) <= ROW_BY_ROW
    return DuckDBSource(source, (), (Scan(sql, columns),), (path,), rows, is_row_by_row)


def _operators(connection: Connection, sql: str) -> set[str]:
    """Return the operators of a view's logical plan before optimization."""
    connection.execute("SET explain_output = 'all'")
    plans = connection.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {sql}").fetchall()
    nodes = json.loads(next(text for name, text in plans if name == "logical_plan"))
    found = set()
    while nodes:
        node = nodes.pop()
        found.add(str(node["name"]))
        nodes += node["children"]
    return found


@contextmanager
def attached(connection: Connection, databases: tuple[str, ...]) -> Iterator[None]:
    """Attach database files while the block lasts."""
    try:
        for path in databases:
            try:
                attach(connection, path)
            except duckdb.Error:
                raise SourceMissing(
                    f"{path} cannot be opened as a DuckDB database; check that it is one, and that no program has it "
                    "open for writing"
                ) from None
        yield
    finally:
        for path in databases:
            detach(connection, path)


def _resolve_table(connection: Connection, source: Source, path: str) -> tuple[str, str, int | None]:
    """Return the schema, name and number of rows (None for a view) of the table that a source names."""
    here = f"database_name = '{database_alias(path)}'"
    known = connection.execute(
        f"""SELECT schema_name, table_name, estimated_size FROM duckdb_tables() WHERE {here}
        UNION ALL SELECT schema_name, view_name, NULL FROM duckdb_views() WHERE {here} AND NOT internal"""
    ).fetchall()
    by_name = {(schema.lower(), name.lower()): (schema, name, rows) for schema, name, rows in known}
    wanted = source.table.lower()
    candidates = [("main", wanted)]
    if "." in wanted:
        schema, _, name = wanted.partition(".")
        candidates += [(schema.strip('"'), name.strip('"'))]
    for candidate in candidates:
        if candidate in by_name:
            return by_name[candidate]
    names = ", ".join(name if schema == "main" else f"{schema}.{name}" for schema, name, _ in known[:20]) or "none"
    raise SourceMissing(f"{source.place} has no table {source.table}; it has {names}")


def _columns(connection: Connection, sql: str) -> dict[str, SourceColumn]:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()
    return {str(row[0]).lower(): SourceColumn(str(row[0]), kind_of(str(row[1])), str(row[1])) for row in rows}
