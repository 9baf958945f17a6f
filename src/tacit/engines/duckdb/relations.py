"""The SELECT that shows a table: columns in the types of their kinds and as declared, the unit of each row, its rows.

Promise: `_unit` is a function of the row and of the rows it leads to by foreign keys, the same in every table of a
unit, and never NULL. A row whose unit cannot be told is left out. With a limit, the rows of a unit that stay are chosen
by a salted hash of the rows themselves: not by their order, and not by anything about other units.

Inside these statements columns are called c0, c1, ..., so that no declared name can collide with another word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from tacit.engines import declared as values
from tacit.engines.duckdb.names import quoted
from tacit.engines.duckdb.sources import Found
from tacit.engines.protocol import ROWS, UNIT
from tacit.privacy.errors import InvalidInput, NameTaken, NotInCatalog, SourceMissing
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit

RESERVED: Final = (UNIT, ROWS)


@dataclass(frozen=True, slots=True)
class Shown:
    """A SELECT with the databases and files that it reads."""

    sql: str
    attached: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def check(table: Table, others: Mapping[str, Table]) -> None:
    """Refuse a table whose columns collide with the engine's, or that does not lead to its unit."""
    for column in table.columns:
        if column.name.lower() in RESERVED:
            raise NameTaken(f"{table.name} has a column {column.name}, a name that the engine needs; rename it")
    if table.unit is None:
        return
    here = table
    for step in table.unit.through:
        there = others.get(step.target_table.lower())
        if there is None:
            raise NotInCatalog(
                f"{here.name} leads to {step.target_table}, which is not registered; register that first",
                name="unit",
                value=step.target_table,
            )
        one, other = here.column(step.column), there.column(step.target_column)
        for owner, key in ((here, one), (there, other)):
            if key.facts is not None and not _is_unit(owner, key):
                raise InvalidInput(
                    f"{owner.name}.{key.name} leads to the unit, and clamping it to bounds would lead elsewhere; "
                    "declare it without bounds or categories",
                    name="unit",
                )
        if one.kind is not other.kind:
            raise InvalidInput(
                f"{here.name}.{one.name} is {one.kind} and {there.name}.{other.name} is {other.kind}; "
                "declare both with the same kind, so that one can lead to the other",
                name="unit",
            )
        here = there
    here.column(table.unit.column)


def _is_unit(table: Table, column: Column) -> bool:
    return table.unit is not None and table.unit.is_direct and table.unit.column.lower() == column.name.lower()


def declared(found: Found, table: Table) -> Shown:
    """Return the SELECT of the declared columns, c0, c1, ..., over all rows of a source."""
    parts = []
    for scan in found.scans:
        for column in table.columns:
            if column.name.lower() not in scan.columns:
                raise SourceMissing(
                    f"{found.source.place} has no column {column.name}, which {table.name} was registered with; "
                    "put it back, or register the table anew"
                )
        items = ", ".join(f"{scan.value(column)} AS c{index}" for index, column in enumerate(table.columns))
        parts.append(f"SELECT {items} FROM {scan.sql}")
    return Shown(_as_declared(table, " UNION ALL ".join(parts)), found.attached, found.files)


def _as_declared(table: Table, rows: str) -> str:
    """Return the SELECT of rows with their values as declared; the unit's own column stays as it is."""
    items, kept = [], []
    for index, column in enumerate(table.columns):
        reference = exp.column(f"c{index}")
        value = reference if _is_unit(table, column) else values.declared(column, reference)
        items.append(f"{value.sql(dialect='duckdb')} AS c{index}")
        if not column.nullable:
            kept.append(f"c{index} IS NOT NULL")
    shown = f"SELECT {', '.join(items)} FROM ({rows}) AS d"
    return f"SELECT * FROM ({shown}) AS e WHERE {' AND '.join(kept)}" if kept else shown


def with_unit(table: Table, rows: Shown, parents: Sequence[tuple[Table, Shown]]) -> Shown:
    """Return the SELECT of a private table's rows and their `_unit`; `parents` are where its foreign keys lead."""
    unit = _unit(table)
    items = ", ".join(f"r.c{index} AS c{index}" for index in range(len(table.columns)))
    joins, alias, here = "", "r", table
    for number, (step, (there, shown)) in enumerate(zip(unit.through, parents, strict=True)):
        on = f"{alias}.c{place(here, step.column)} = p{number}.c{place(there, step.target_column)}"
        joins += f" JOIN ({shown.sql}) AS p{number} ON {on}"
        alias, here = f"p{number}", there
    column = here.column(unit.column)
    value = f"{alias}.c{place(here, column.name)}"
    known = f"{value} IS NOT NULL"
    if column.kind is Kind.REAL:
        known += f" AND NOT isnan({value})"
        value = f"({value} + 0)"  # of the two zeros one
    attached = {*rows.attached, *(path for _, shown in parents for path in shown.attached)}
    files = {*rows.files, *(path for _, shown in parents for path in shown.files)}
    sql = f"SELECT {items}, {value} AS {UNIT} FROM ({rows.sql}) AS r{joins} WHERE {known}"
    return Shown(sql, tuple(sorted(attached)), tuple(sorted(files)))


def view(table: Table, rows: Shown) -> Shown:
    """Return the SELECT with declared names, over rows that are read anew for every question."""
    extra = f", {UNIT}, CAST(NULL AS BIGINT) AS {ROWS}" if table.is_private else ""
    return Shown(f"SELECT {_renamed(table)}{extra} FROM ({rows.sql}) AS v", rows.attached, rows.files)


def stored(table: Table, rows: str, salt: int) -> str:
    """Return the SELECT of what is stored of a table's rows, a relation: limited, counted, and in order of the unit.

    Rows of a unit that lie together make questions about units faster by a third.
    """
    if not table.is_private:
        return f"SELECT {_renamed(table)} FROM {rows}"
    names, limit = _renamed(table, but=_doubled(table)), table.limits.rows_per_unit
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


def place(table: Table, name: str) -> int:
    """Return where a column stands among the declared ones."""
    wanted: Column = table.column(name)
    return table.columns.index(wanted)


def _doubled(table: Table) -> Column | None:
    """Return the column that `_unit` repeats, if there is one."""
    unit = _unit(table)
    column = table.column(unit.column) if unit.is_direct else None
    return column if column is not None and column.kind is not Kind.REAL else None


def _unit(table: Table) -> Unit:
    assert table.unit is not None  # these statements are about private tables
    return table.unit


def _renamed(table: Table, but: Column | None = None) -> str:
    items = (f"c{index} AS {quoted(one.name)}" for index, one in enumerate(table.columns) if one is not but)
    return ", ".join(items)
