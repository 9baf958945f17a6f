"""Which sources of Spark may hold rows of units: each row is read by itself, and no row can fail to be read.

Views. A view is computed whenever it is read, with the settings of the session that made it: one that was made under
ANSI rules fails for a text that is not a number, whatever this session says. So a view is accepted only if its analysed
plan, views that it reads included, selects and filters rows by columns, constants and comparisons, and casts only where
every value fits (`is_total_cast`). Behind Spark Connect no plan can be inspected, and views are refused.

Formats. A line of CSV or JSON may contain the lines after it, or fail every query; other databases and the SerDes of
Hive have rules of their own. Rows are read from the formats of `PROVIDERS` and from memory, also through views.

Times. Spark fails for a Parquet time in milliseconds, or a time of ORC, that does not fit into 64 bits of microseconds.
In ORC no time is accepted. In Parquet the unit is read from the footer of each file; behind Spark Connect, where
footers cannot be read, it is found by reading the stored numbers as integers. That is done when a table is registered
and refreshed.

All of this concerns tables that lead to a unit. Public tables may be computed and stored in any way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tacit.engines.dialects.spark.typed_sql import backquoted
from tacit.engines.relations import not_row_by_row
from tacit.engines.spark.sessions import Session, context_of
from tacit.privacy.errors import InvalidInput

PROVIDERS: Final = ("parquet", "orc", "delta", "iceberg")
"""Formats of tables in which a row is read independently of others."""

TIMES: Final = ("timestamp", "timestamp_ntz")
FOOTERS_AT_ONCE: Final = 16
"""Footers that are read at the same time, since those of object stores take a tenth of a second each."""

_SPARK: Final = "org.apache.spark.sql.execution.datasources"
_PARQUET: Final = frozenset(
    {
        f"{_SPARK}.parquet.ParquetFileFormat",
        f"{_SPARK}.v2.parquet.ParquetTable",
        "org.apache.spark.sql.delta.DeltaParquetFileFormat",
        "org.apache.spark.sql.delta.catalog.DeltaTableV2",
    }
)
_ORC: Final = frozenset({f"{_SPARK}.orc.OrcFileFormat", f"{_SPARK}.v2.orc.OrcTable"})
_ICEBERG: Final = "org.apache.iceberg.spark.source.SparkTable"
_MEMORY: Final = frozenset({"LocalRelation", "LogicalRDD", "Range", "OneRowRelation"})
_NODES: Final = _MEMORY | {
    *("SubqueryAlias", "View", "Project", "Filter", "Union", "Sort"),
    *("LogicalRelation", "DataSourceV2Relation", "HiveTableRelation"),
}
_EXPRESSIONS: Final = frozenset(
    {
        *("AttributeReference", "Alias", "Literal", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual"),
        *("GreaterThan", "GreaterThanOrEqual", "And", "Or", "Not", "IsNull", "IsNotNull", "In", "InSet"),
        *("SortOrder",),
    }
)
_REBASE: Final = re.compile(r"(?:datetime|int96)rebasemode\W+(?!corrected\b)\w", re.IGNORECASE)
_DETAILS: Final = "# Detailed Table Information"
_WHOLE_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_NUMBERS: Final = (*_WHOLE_DIGITS, "float", "double")
_AS_TEXT: Final = frozenset({*_NUMBERS, *TIMES, "string", "boolean", "date", "binary", "decimal"})
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def refusal_of(session: Session, shown: str, name: str, frame: Any) -> InvalidInput | None:
    """Return why a table or view may not hold rows of units, None if it may; `name` is in quotes."""
    is_a_view = is_view(session, name)
    if context_of(session) is None:
        if is_a_view:
            return not_row_by_row(shown)
        details = table_details(session, name)
        return _refuse_format(shown, details.get("Provider", "").lower(), PROVIDERS, str(details))
    nodes = list(_tree(_plan(frame)))
    if is_a_view and not all(_is_harmless_node(node) for node in nodes):
        return not_row_by_row(shown)
    known = {*_PARQUET, *_ORC, _ICEBERG, *_MEMORY}
    found = (
        _refuse_format(shown, _format(node), known, _options(node)) for node in nodes if not node.children().size()
    )
    return next((one for one in found if one is not None), None)


def is_view(session: Session, name: str) -> bool:
    """Return whether a name stands for a view; also for one of a session."""
    described = session.catalog.getTable(name)
    return "VIEW" in str(described.tableType).upper() or bool(described.isTemporary)


def table_details(session: Session, name: str) -> dict[str, str]:
    """Return the details of a table, such as Provider and Type; none for a view of a session."""
    rows = [(str(row[0]).strip(), str(row[1]).strip()) for row in session.sql(f"DESCRIBE EXTENDED {name}").collect()]
    names = [one for one, _ in rows]
    return dict(reversed(rows[names.index(_DETAILS) + 1 :])) if _DETAILS in names else {}


def _refuse_format(shown: str, found: str, known: Any, options: str) -> InvalidInput | None:
    if found not in known:
        kind = re.sub(r"(FileFormat|Table|Relation)$", "", found.rpartition(".")[2]) or "an unknown format"
        return InvalidInput(
            f"{shown} reads {kind}, in which one row may change how others are read, or fail every query; write its "
            "rows as Parquet and register those",
            name="source",
            value=shown,
        )
    if _REBASE.search(options):
        return InvalidInput(
            f"{shown} has an option for old calendars, by which a single day may fail every query; create the table "
            "without datetimeRebaseMode and int96RebaseMode",
            name="source",
            value=shown,
        )
    return None


def _format(leaf: Any) -> str:
    """Return the class that reads the rows of a leaf of a plan, or the name of the leaf itself."""
    name = _simple_name(leaf)
    if name == "LogicalRelation":
        relation = leaf.relation()
        reader = relation.fileFormat() if _simple_name(relation) == "HadoopFsRelation" else relation
        return str(reader.getClass().getName())
    return str(leaf.table().getClass().getName()) if name == "DataSourceV2Relation" else name


def _options(leaf: Any) -> str:
    """Return the options of a table as text."""
    if _simple_name(leaf) == "LogicalRelation" and _simple_name(leaf.relation()) == "HadoopFsRelation":
        return str(leaf.relation().options().toString())
    return str(leaf.options().asCaseSensitiveMap()) if _simple_name(leaf) == "DataSourceV2Relation" else ""


def _is_harmless_node(node: Any) -> bool:
    parts = (one for part in _each(node.expressions()) for one in _tree(part))
    return _simple_name(node) in _NODES and all(_is_harmless(one) for one in parts)


def _is_harmless(expression: Any) -> bool:
    if _simple_name(expression) == "Cast":
        return is_total_cast(expression.child().dataType().simpleString(), expression.dataType().simpleString())
    return _simple_name(expression) in _EXPRESSIONS


def is_total_cast(source: str, target: str) -> bool:
    """Return whether no value of a type fails to be cast to another one, whatever the settings.

    Spark's own `Cast.canUpCast` holds for casts between dates, times and numbers that fail for distant days.
    """
    if source in (target, "void"):
        return True
    if target.startswith("string"):
        return re.split(r"[( ]", source)[0] in _AS_TEXT
    if (wide := _DECIMAL.fullmatch(target)) is not None:
        narrow = _DECIMAL.fullmatch(source)
        digits, scale = (int(narrow[1]), int(narrow[2])) if narrow else (_WHOLE_DIGITS.get(source, 99), 0)
        return digits - scale <= int(wide[1]) - int(wide[2]) and scale <= int(wide[2])
    return source in _NUMBERS and target in _NUMBERS and _NUMBERS.index(source) < _NUMBERS.index(target)


def check_times(session: Session, shown: str, name: str | None, frame: Any, columns: Mapping[str, str]) -> None:
    """Raise InvalidInput if a time of a table could be one that Spark fails for.

    `columns` are the types of the columns that are read, and `name` is None for files. A view may compare columns that
    it does not show, so that all times in the files of a view are checked.
    """
    times = [column for column, type_ in columns.items() if type_ in TIMES]
    is_plain = name is None or not is_view(session, name)
    if is_plain and not times:
        return
    if context_of(session) is None:
        formats = {"parquet" if name is None else table_details(session, name).get("Provider", "").lower()}
        has_orc, has_parquet = "orc" in formats, not formats.isdisjoint({"parquet", "delta"})
    else:
        formats = {_format(node) for node in _tree(_plan(frame)) if not node.children().size()}
        has_orc, has_parquet = not formats.isdisjoint(_ORC), not formats.isdisjoint(_PARQUET)
    if has_orc and times:
        raise _refuse_times(shown, times[0], "is a time in ORC")
    if not has_parquet:
        return
    files = sorted(set(frame.inputFiles()))
    if context_of(session) is None:
        found = _find_milliseconds_by_values(session, files, {one: columns[one] for one in times})
    else:
        found = _find_milliseconds(session, files, times if is_plain else None)
    if found is not None:
        raise _refuse_times(shown, found, "is stored in milliseconds, or another unit than microseconds")


def _refuse_times(shown: str, column: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"{shown}.{column} {what}, and Spark fails every query for a time that microseconds cannot hold; store it "
        "in microseconds in Parquet, or register the table without that column",
        name="column",
        value=column,
    )


def _find_milliseconds(session: Session, files: Sequence[str], columns: Sequence[str] | None) -> str | None:
    """Return a column that the footer of a file declares to be in milliseconds; of any name if `columns` is None."""
    wanted = None if columns is None else {one.lower() for one in columns}
    java = session._jvm
    settings = session._jsparkSession.sessionState().newHadoopConf()
    skip = java.org.apache.parquet.format.converter.ParquetMetadataConverter.SKIP_ROW_GROUPS

    def find(file: str) -> str | None:
        path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
        footer = java.org.apache.parquet.hadoop.ParquetFileReader.readFooter(settings, path, skip)
        schema = footer.getFileMetaData().getSchema()
        if "MILLIS" not in str(schema.toString()):
            return None
        fields = [schema.getType(index) for index in range(schema.getFieldCount())]
        names = (str(one.getName()) for one in fields if "MILLIS" in str(one.toString()))
        return next((one for one in names if wanted is None or one.lower() in wanted), None)

    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
        return next((one for one in pool.map(find, files) if one is not None), None)


def _find_milliseconds_by_values(session: Session, files: Sequence[str], columns: Mapping[str, str]) -> str | None:
    """Return a column of which a file stores other numbers than microseconds, without reading footers.

    A file of which a column cannot be read as an integer (INT96) stores no milliseconds there, and is passed over.
    """
    for name, type_ in columns.items():
        column = backquoted(name)
        raw = session.read.option("ignoreCorruptFiles", "true").schema(f"{column} BIGINT").parquet(*files)
        shown = session.read.schema(f"{column} {type_}").parquet(*files)
        stored = _ends(raw, column)
        as_times = _ends(shown, f"unix_micros(CAST({column} AS TIMESTAMP_LTZ))")
        if any(as_times.get(file) != ends for file, ends in stored.items()):
            return name
    return None


def _ends(frame: Any, value: str) -> dict[str, tuple[Any, Any]]:
    """Return the least and the greatest value in each file."""
    rows = frame.selectExpr("_metadata.file_path AS file", f"{value} AS low", f"{value} AS high")
    return {str(row[0]): (row[1], row[2]) for row in rows.groupBy("file").agg({"low": "min", "high": "max"}).collect()}


def _plan(frame: Any) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _simple_name(thing: Any) -> str:
    return str(thing.getClass().getSimpleName()).rstrip("$")


def _tree(node: Any) -> Iterator[Any]:
    yield node
    for child in _each(node.children()):
        yield from _tree(child)


def _each(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))
