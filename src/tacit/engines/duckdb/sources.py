"""The files behind a source: where they are, what columns they hold, and how DuckDB scans them.

Promise: whatever is wrong with a file is a SourceMissing that says what to do, and never repeats what DuckDB said,
which may quote the data. A glob is resolved to its files, so that a file that comes or goes is a change of the source.
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

from tacit.engines.csv_format import CsvForm
from tacit.engines.duckdb.connections import Connection, alias, attach, detach
from tacit.engines.duckdb.csv_files import Recoder, form_for, form_of, scan
from tacit.engines.duckdb.csv_quotes import require_strict
from tacit.engines.duckdb.kinds import cast, kind_of, merged
from tacit.engines.protocol import Described, Source
from tacit.engines.quoting import digest, listed, quoted, require_distinct
from tacit.privacy.errors import InvalidInput, SourceMissing
from tacit.privacy.tables import Column

FORMS: Final = ("csv", "parquet", "duckdb")
ROW_BY_ROW: Final = frozenset(
    {
        *("PROJECTION", "FILTER", "SEQ_SCAN", "READ_PARQUET", "PARQUET_SCAN", "DUMMY_SCAN", "EXPRESSION_GET"),
        *("UNION", "UNNEST", "ORDER_BY", "CTE", "CTE_SCAN"),
    }
)
"""The operators of a view that makes each row from one row. How a CSV file is read depends on all its lines."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A FROM item, its columns by name in lower case, and for CSV files their form."""

    sql: str
    columns: dict[str, Described]
    form: CsvForm | None = None
    lenient_sql: str = ""
    """The same with ? for each byte of a text that is no UTF-8, where DuckDB would not read the file otherwise."""

    def value(self, column: Column) -> str:
        """Return SQL for a declared column, which the scan has."""
        found = self.columns[column.name.lower()]
        pattern = "" if self.form is None else self.form.pattern(found.type)
        return cast(quoted(found.name), self.type(column), column.kind, pattern)

    def type(self, column: Column) -> str:
        """Return the type in which the scan has a declared column; every field of a CSV file is a text."""
        return self.columns[column.name.lower()].type if self.form is None else "VARCHAR"


@dataclass(frozen=True, slots=True)
class Found:
    """A source as it is now: its files, the database to attach if it is one, and its scans, one a form of file."""

    source: Source
    files: tuple[str, ...]
    scans: tuple[Scan, ...]
    attached: tuple[str, ...] = ()
    rows: int | None = None
    """How many rows there are, where that is known without reading them."""
    is_row_by_row: bool = True
    """Whether each row comes from one row of one table; false of a view that joins, groups, orders or counts rows."""

    @property
    def forms(self) -> tuple[CsvForm, ...]:
        """The forms of CSV files, to be kept as `Source.csv`."""
        return tuple(one.form for one in self.scans if one.form is not None)

    @property
    def described(self) -> list[Described]:
        """The columns, each with the kind that fits it in every file."""
        found = dict(self.scans[0].columns)
        for one in self.scans[1:]:
            for name in found.keys() & one.columns.keys():
                mine = found[name]
                found[name] = Described(mine.name, merged(mine.kind, one.columns[name].kind), mine.type)
        return list(found.values())


def files_of(source: Source) -> tuple[str, ...]:
    """Return the files of a source in the order of their names, or say what is missing."""
    if source.form not in FORMS:
        raise InvalidInput(f"rows come as {', '.join(FORMS)}, not {source.form!r}", name="form", value=source.form)
    if "://" in source.place:
        raise InvalidInput(f"rows are read from files, and {source.place} is an address", name="source")
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
        raise SourceMissing(f"no file matches {source.place}; put the rows there again, or register the table anew")
    return files


def fingerprint(source: Source) -> str:
    """Return a digest of what the files of a source hold, and of nothing else about them: reads them to their ends."""
    forms = [form.to_dict() for form in source.csv]
    return digest(source.form, source.place, source.table, forms, *_each(source, _sha))


def state(source: Source) -> str:
    """Return a digest that changes when a file of a source is written, from sizes and times alone."""
    return digest(*_each(source, _status))


def _each(source: Source, mark: Callable[[str], object]) -> Iterator[object]:
    """Yield each file of a source, and the log beside a database, with a mark of it."""
    for path in files_of(source):
        beside = (f"{path}.wal",) if source.form == "duckdb" and os.path.exists(f"{path}.wal") else ()
        for one in (path, *beside):
            try:
                yield one, mark(one)
            except OSError:
                raise SourceMissing(f"{one} cannot be read; check that it is there and its permissions") from None


def _sha(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _status(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def find(connection: Connection, source: Source, recoder: Recoder) -> Found:
    """Look at a source: which files, which columns, how many rows if that is cheap to know."""
    files = files_of(source)
    for path in files:
        if not os.access(path, os.R_OK):
            raise SourceMissing(f"{path} may not be read; check its permissions")
    if source.form == "csv":
        return Found(source, files, _csv_scans(connection, files, source.csv, recoder))
    if source.form == "parquet":
        return _parquet(connection, source, files)
    return _database(connection, source, files[0])


def _csv_scans(
    connection: Connection, files: tuple[str, ...], kept: tuple[CsvForm, ...], recoder: Recoder
) -> tuple[Scan, ...]:
    by_form: dict[CsvForm, list[str]] = {}
    for path in files:
        form = _form(connection, kept, path, recoder)
        by_form.setdefault(form, []).append(recoder.readable(path, form.encoding))
    return tuple(
        Scan(
            scan(form, paths),
            {
                name.lower(): Described(name, kind_of(type_name), type_name)
                for name, type_name in zip(form.names, form.types, strict=True)
            },
            form,
        )
        for form, paths in by_form.items()
    )


def _form(connection: Connection, kept: tuple[CsvForm, ...], path: str, recoder: Recoder) -> CsvForm:
    if path.lower().endswith(".zst"):
        raise SourceMissing(f"{path} is packed with Zstandard, which is not read; unpack it, or pack it with gzip")
    return form_for(connection, kept, path, recoder) if kept else form_of(connection, path, recoder)


def check_files(connection: Connection, source: Source, recoder: Recoder) -> None:
    """Refuse files that would be read otherwise than they look; for owners, for it may read them to their ends.

    These are CSV files with texts over several lines and quotes out of place, and Parquet files with two columns of one
    name.
    """
    files = files_of(source)
    for path in files if source.form == "csv" else ():
        form = _form(connection, source.csv, path, recoder)
        require_strict(form, path, recoder.readable(path, form.encoding))
    if source.form == "parquet":
        sql = f"SELECT file_name, name, num_children FROM parquet_schema({listed(files)})"
        try:
            elements = connection.execute(sql).fetchall()
        except duckdb.Error:
            raise SourceMissing(
                f"{source.place} cannot be read as Parquet; check that its files are complete"
            ) from None
        for path, names in _top_names(elements).items():
            require_distinct(path, names)


def _parquet(connection: Connection, source: Source, files: tuple[str, ...]) -> Found:
    sql = f"read_parquet({listed(files)})"
    try:
        columns = _columns(connection, sql)
        lenient_sql = _lenient(connection, files)
        counted = connection.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({listed(files)})").fetchone()
    except duckdb.Error:
        raise SourceMissing(
            f"{source.place} cannot be read as Parquet; check that its files are complete and have the same columns"
        ) from None
    return Found(source, files, (Scan(sql, columns, None, lenient_sql),), rows=int(counted[0]) if counted else None)


def _top_names(elements: Sequence[tuple[str, str, int | None]]) -> dict[str, list[str]]:
    """Return the columns of each Parquet file, from its schema written depth first with the number of children."""
    found: dict[str, list[str]] = {}
    inside: list[int] = []  # how many children are still to come, from the root down
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
    """Return a scan in which bytes that are no text spoil their own row alone, if this DuckDB has one."""
    known = connection.execute(
        "SELECT parameters FROM duckdb_functions() WHERE function_name = 'read_parquet'"
    ).fetchall()
    is_known = any("utf8_validation" in names for (names,) in known)
    return f"read_parquet({listed(files)}, utf8_validation = 'replace')" if is_known else ""


def _database(connection: Connection, source: Source, path: str) -> Found:
    with opened(connection, (path,)):
        schema, name, rows = _inner(connection, source, path)
        sql = f"{alias(path)}.{quoted(schema)}.{quoted(name)}"
        try:
            columns = _columns(connection, sql)
        except duckdb.Error:
            raise SourceMissing(f"{source.table} in {source.place} cannot be read; check that it works there") from None
        is_row_by_row = rows is not None or _operators(connection, sql) <= ROW_BY_ROW
    return Found(source, (), (Scan(sql, columns),), (path,), rows, is_row_by_row)


def _operators(connection: Connection, sql: str) -> set[str]:
    """Return the operators of the plan of a view, as DuckDB understands it before it rearranges anything."""
    connection.execute("SET explain_output = 'all'")
    told = connection.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {sql}").fetchall()
    nodes = json.loads(next(text for name, text in told if name == "logical_plan"))
    found = set()
    while nodes:
        node = nodes.pop()
        found.add(str(node["name"]))
        nodes += node["children"]
    return found


@contextmanager
def opened(connection: Connection, databases: tuple[str, ...]) -> Iterator[None]:
    """Attach database files for a while."""
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


def _inner(connection: Connection, source: Source, path: str) -> tuple[str, str, int | None]:
    """Return the schema and name of the table in a database that a source names, and how many rows it has."""
    known = connection.execute(
        f"""SELECT schema_name, table_name, estimated_size FROM duckdb_tables() WHERE database_name = '{alias(path)}'
        UNION ALL SELECT schema_name, view_name, NULL FROM duckdb_views()
        WHERE database_name = '{alias(path)}' AND NOT internal"""
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


def _columns(connection: Connection, sql: str) -> dict[str, Described]:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()
    return {str(row[0]).lower(): Described(str(row[0]), kind_of(str(row[1])), str(row[1])) for row in rows}
