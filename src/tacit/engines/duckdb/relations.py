"""How DuckDB shows a table: as a view over files, or stored once, limited, counted and in order of the unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.engines import relations
from tacit.engines.duckdb.kinds import is_exact
from tacit.engines.duckdb.sources import Found
from tacit.engines.protocol import ROWS, UNIT
from tacit.engines.quoting import quoted
from tacit.engines.relations import renamed, unit_of
from tacit.privacy.errors import InvalidInput, SourceMissing
from tacit.privacy.tables import Column, Kind, Table


@dataclass(frozen=True, slots=True)
class Shown:
    """A SELECT with the databases and files that it reads."""

    sql: str
    attached: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def check_key(found: Found, table: Table, name: str) -> None:
    """Refuse a unit or key whose values in the source the declared kind does not tell apart, or a mixing view."""
    if not found.is_row_by_row:
        raise relations.mixing_view(found.source.table)
    column = table.column(name)
    for scan in found.scans:
        type_name = scan.type(column) if column.name.lower() in scan.columns else ""
        if type_name and not is_exact(type_name, column.kind):
            instead = (
                f'declare it as text, kinds={{"{column.name}": "text"}}'
                if is_exact(type_name, Kind.TEXT)
                else "identify units by a column of numbers or texts"
            )
            raise InvalidInput(
                f"{table.name}.{column.name} identifies units, and as {column.kind} some of its values of the type "
                f"{type_name} would become the same; {instead}",
                name="kinds",
                value=column.name,
            )


def declared(found: Found, table: Table) -> Shown:
    """Return the SELECT of the declared columns, c0, c1, ..., over all rows of a source."""
    if table.unit is not None:
        check_key(found, table, table.unit.through[0].column if table.unit.through else table.unit.column)
    parts = []
    for scan in found.scans:
        for column in table.columns:
            if column.name.lower() not in scan.columns:
                raise SourceMissing(
                    f"{found.source.place} has no column {column.name}, which {table.name} was registered with; "
                    "put it back, or register the table anew"
                )
        items = ", ".join(f"{scan.value(column)} AS c{index}" for index, column in enumerate(table.columns))
        rows = scan.lenient_sql or scan.sql if _is_lenient(table) else scan.sql
        parts.append(f"SELECT {items} FROM {rows}")
    return Shown(relations.as_declared(table, " UNION ALL ".join(parts)), found.attached, found.files)


def _is_lenient(table: Table) -> bool:
    """Return whether texts may be read with ? for bytes that are none: two texts may become one, but no two units.

    That holds where the unit is no text of this table. Keys that become one lead to several units, each of which is
    bounded by itself (`engines.relations`).
    """
    if table.unit is None:
        return False  # public rows; a table that others lead through may hold the unit
    return not table.unit.is_direct or table.column(table.unit.column).kind is not Kind.TEXT


def with_unit(table: Table, rows: Shown, parents: Sequence[tuple[Table, Shown]]) -> Shown:
    """Return the SELECT of a private table's rows and their `_unit`; `parents` are where its foreign keys lead."""
    attached = {*rows.attached, *(path for _, shown in parents for path in shown.attached)}
    files = {*rows.files, *(path for _, shown in parents for path in shown.files)}
    sql = relations.with_unit(table, rows.sql, [(there, shown.sql) for there, shown in parents])
    return Shown(sql, tuple(sorted(attached)), tuple(sorted(files)))


def view(table: Table, rows: Shown) -> Shown:
    """Return the SELECT with declared names, over rows that are read anew for every question."""
    return Shown(relations.view(table, rows.sql), rows.attached, rows.files)


def stored(table: Table, rows: str, salt: int) -> str:
    """Return the SELECT of what is stored of a table's rows, a relation: limited, counted, and in order of the unit.

    Rows of a unit that lie together make questions about units faster by a third.
    """
    if not table.is_private:
        return f"SELECT {renamed(table)} FROM ({relations.identified(table, f'SELECT * FROM {rows}')})"
    names, limit = renamed(table, but=_doubled(table)), table.limits.rows_per_unit
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


def from_stored(table: Table) -> str:
    """Return the items by which a SELECT over stored rows shows a table: the unit's own column is stored only once."""
    if not table.is_private:
        return ", ".join(quoted(column.name) for column in table.columns)
    doubled = _doubled(table)
    items = [f"{UNIT} AS {quoted(one.name)}" if one is doubled else quoted(one.name) for one in table.columns]
    return ", ".join([*items, UNIT, ROWS])


def _doubled(table: Table) -> Column | None:
    """Return the column that `_unit` repeats, if there is one."""
    unit = unit_of(table)
    column = table.column(unit.column) if unit.is_direct else None
    return column if column is not None and column.kind is not Kind.REAL else None
