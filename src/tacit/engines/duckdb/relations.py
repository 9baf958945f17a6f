"""The SELECT by which DuckDB shows a table: over its files, or over rows stored once, limited, counted and sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tacit.engines import relations
from tacit.engines.duckdb.kinds import is_exact
from tacit.engines.duckdb.sources import DuckDBSource
from tacit.engines.protocol import ROWS, UNIT
from tacit.engines.quoting import quoted
from tacit.engines.relations import declared_names, require_unit
from tacit.privacy.tables import Column, Kind, Table


@dataclass(frozen=True, slots=True)
class DuckDBRelation:
    """A SELECT with the databases and files that it reads."""

    sql: str
    attached: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def check_key(found: DuckDBSource, table: Table, name: str) -> None:
    """Raise InvalidInput if the declared kind may merge values of a key, or if rows are mixed by a view."""
    if not found.is_row_by_row:
        raise relations.not_row_by_row(found.source.table)
    column = table.column(name)
    for scan in found.scans:
        type_name = scan.type(column) if column.name.lower() in scan.columns else ""
        if type_name:
            relations.check_exact(table, column, type_name, partial(is_exact, type_name))


def select_declared(found: DuckDBSource, table: Table) -> DuckDBRelation:
    """Return the SELECT of the declared columns, c0, c1, ..., over all rows of a source."""
    if table.unit is not None:
        check_key(found, table, relations.key_column(table))
    parts = []
    for scan in found.scans:
        for column in table.columns:
            if column.name.lower() not in scan.columns:
                raise relations.missing_column(found.source.place, table, column)
        items = ", ".join(f"{scan.value(column)} AS c{index}" for index, column in enumerate(table.columns))
        rows = scan.lenient_sql or scan.sql if _is_lenient(table) else scan.sql
        parts.append(f"SELECT {items} FROM {rows}")
    return DuckDBRelation(relations.select_declared(table, " UNION ALL ".join(parts)), found.attached, found.files)


def _is_lenient(table: Table) -> bool:
    """Return whether texts may be read with ? for invalid bytes: two texts may become one, but never two units.

    That holds where the unit is not a text of this table. Keys that become one lead to several units, each of which is
    bounded by itself (`engines.relations`).
    """
    if table.unit is None:
        return False  # public rows; a table that others lead through may hold the unit
    return not table.unit.is_direct or table.column(table.unit.column).kind is not Kind.TEXT


def select_with_unit(
    table: Table, rows: DuckDBRelation, parents: Sequence[tuple[Table, DuckDBRelation]]
) -> DuckDBRelation:
    """Return the SELECT of a private table's rows and their `_unit`; `parents` are where its foreign keys lead."""
    attached = {*rows.attached, *(path for _, shown in parents for path in shown.attached)}
    files = {*rows.files, *(path for _, shown in parents for path in shown.files)}
    sql = relations.select_with_unit(table, rows.sql, [(there, shown.sql) for there, shown in parents])
    return DuckDBRelation(sql, tuple(sorted(attached)), tuple(sorted(files)))


def select_view(table: Table, rows: DuckDBRelation) -> DuckDBRelation:
    """Return the SELECT with declared names over rows that are read for every question."""
    return DuckDBRelation(relations.select_view(table, rows.sql), rows.attached, rows.files)


def select_stored(table: Table, rows: str, salt: int) -> str:
    """Return the SELECT whose rows are stored for a table: limited, counted, and in order of the unit.

    With the rows of each unit together, queries that group by unit are faster by a third.
    """
    if not table.is_private:
        return f"SELECT {declared_names(table)} FROM ({relations.select_identified(table, f'SELECT * FROM {rows}')})"
    names, limit = declared_names(table, but=_unit_copy(table)), table.limits.rows_per_unit
    names += f"{', ' if names else ''}{UNIT}"
    counts = f"WITH n AS MATERIALIZED (SELECT {UNIT} AS u, COUNT(*) AS n FROM {rows} GROUP BY {UNIT}) "
    whole = f"SELECT {names}, n.n AS {ROWS} FROM {rows} AS s JOIN n ON s.{UNIT} = n.u"
    if limit is None:
        return f"{counts}{whole} ORDER BY {UNIT}"
    values = ", ".join(f"c{index}" for index in range(len(table.columns)))
    order = f"hash({UNIT}, {values}, {salt}), hash({salt}, {values}, {UNIT})"
    placed = (
        f"SELECT s.*, row_number() OVER (PARTITION BY {UNIT} ORDER BY {order}) AS place "
        f"FROM {rows} AS s SEMI JOIN (SELECT u FROM n WHERE n > {limit}) AS h ON s.{UNIT} = h.u"
    )
    cut = f"SELECT {names}, CAST({limit} AS BIGINT) AS {ROWS} FROM ({placed}) WHERE place <= {limit}"
    return f"{counts}SELECT * FROM ({whole} WHERE n.n <= {limit} UNION ALL {cut}) ORDER BY {UNIT}"


def stored_columns(table: Table) -> str:
    """Return the items of a SELECT over stored rows that shows a table; `_unit` stands for the unit's own column."""
    if not table.is_private:
        return ", ".join(quoted(column.name) for column in table.columns)
    copy = _unit_copy(table)
    items = [f"{UNIT} AS {quoted(one.name)}" if one is copy else quoted(one.name) for one in table.columns]
    return ", ".join([*items, UNIT, ROWS])


def _unit_copy(table: Table) -> Column | None:
    """Return the column that equals `_unit`, and so is not stored; None if there is none."""
    unit = require_unit(table)
    column = table.column(unit.column) if unit.is_direct else None
    return column if column is not None and column.kind is not Kind.REAL else None
