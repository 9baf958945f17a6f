"""The relation that every engine shows for a registered table: declared values, and the unit of each row.

Values. NaN is NULL; values beyond declared bounds are moved to them; dates and times lie within the years 1 to 9999; of
a text the first `TEXT_LENGTH_MAX` characters are shown; a row with NULL in a column declared without it is left out.
Queries rely on this: they neither clamp columns nor look for NaN, and their sensitivities rest on the bounds. Values
outside of declared categories stay, and are in none of the groups that are shown. Expressions are over casts to the
types of the kinds, and total as those are.

Units. `_unit` is a function of the row and of the rows it leads to by foreign keys, the same in every table of a unit,
and never NULL. A row whose unit is unknown is left out, also one whose unit or key is a text of `TEXT_LENGTH_MAX`
characters or more: texts are cut to that length, and two may share their beginning. A unit that is a date or time
outside of the years 1 to 9999, or infinite, is NULL, and so its rows are left out: clamping would merge units, and
functions of dates fail for some of these values. With a limit, the rows of a unit that stay are chosen by a salted hash
of the rows themselves, independent of their order and of other units.

Keys are unique when rows are registered or refreshed; rows that are read live may break that afterwards. No promise
about a unit rests on the keys of private tables. A key that leads to two units makes a row one row of each of them, and
everything that bounds a unit (its limit, its number of rows, the sums of `query`) is computed after that join and by
`_unit`. So a unit that repeats the key of another adds rows of its own and takes none away; leaving such rows out
instead would let one unit remove those of another. A unit that repeats its own keys multiplies its own rows, which
costs time. What a public table is `identified_by` does decide how often a private row is counted, so of public rows
that share it one is shown (`select_identified`).

Views. The rows of a unit are the rows of the source as it shows them. For a view that is right only if each of its rows
comes from one row of one table: a window, an aggregate, DISTINCT, LIMIT or a join lets the rows of one unit decide
which rows another has, and then removing a unit is more than removing its rows. Engines inspect the definition of a
view that leads to a unit, and refuse what is not read row by row (`not_row_by_row`). Tables and materialized views hold
rows: their owner states by that whose they are.

Inside these statements columns are called c0, c1, ..., so that no declared name can collide with another word. They are
DuckDB's SQL, which `dialects` writes for other engines; the cast of a source's own columns to the types of the kinds
comes before them, and is each engine's own (`kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as time_of_day
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.engines.protocol import ROWS, SALT, UNIT, Source
from tacit.engines.quoting import quoted
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import InvalidInput, NameTaken, NotInCatalog, SourceMissing
from tacit.privacy.numbers import rounded_down, rounded_up
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit

Endpoint: TypeAlias = int | float | date

TYPES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIME: "TIMESTAMP",
}
"""DuckDB's type for each kind."""

WHOLE_MAX: Final = 2**63 - 1
YEARS: Final[Mapping[Kind, tuple[Endpoint, Endpoint]]] = {
    Kind.DATE: (date.min, date.max),
    Kind.TIME: (datetime.min, datetime.max),
}
"""The first and the last date and time that are shown: the years 1 to 9999."""
RESERVED: Final = (UNIT, ROWS)


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as it is shown now; `others` are the tables that were known when it was registered."""

    table: Table
    source: Source
    others: Mapping[str, Table]


def value_range(column: Column) -> tuple[Endpoint, Endpoint] | None:
    """Return the least and the greatest value that a column is clamped to, None where it is not clamped."""
    if isinstance(column.facts, Bounds):
        return _rounded(column.kind, column.facts)
    return YEARS.get(column.kind)


def declared_value(column: Column, value: exp.Expression) -> exp.Expression:
    """Return the expression of a column's declared value, from the expression of its value in the type of its kind."""
    limits = value_range(column)
    if column.kind is Kind.TEXT:
        return _cut(value)
    if limits is None:
        return _number(value) if column.kind is Kind.REAL else value.copy()
    lower, upper = (_constant(column.kind, end) for end in limits)
    below = exp.LT(this=value.copy(), expression=lower.copy())
    if column.kind is Kind.REAL:  # NaN is neither below nor within, and may not count as above
        within = exp.LTE(this=value.copy(), expression=upper.copy())
        return exp.Case().when(below, lower).when(within, value.copy()).when(_is_number(value), upper)
    above = exp.GT(this=value.copy(), expression=upper.copy())
    return exp.Case().when(below, lower).when(above, upper).else_(value.copy())


def _unit_value(column: Column, value: exp.Expression) -> exp.Expression:
    """Return the expression of the unit's own column: its value, NULL for a date or time outside of `YEARS`."""
    if column.kind not in YEARS:
        return value
    first, last = (_constant(column.kind, end) for end in YEARS[column.kind])
    not_early = exp.GTE(this=value.copy(), expression=first)
    not_late = exp.LTE(this=value.copy(), expression=last)
    return exp.Case().when(exp.And(this=not_early, expression=not_late), value.copy())


def _cut(value: exp.Expression) -> exp.Expression:
    """Return the expression of a text's beginning; few texts are longer, so the length is tested before copying."""
    most = exp.Literal.number(TEXT_LENGTH_MAX)
    long = exp.GT(this=exp.Length(this=value.copy()), expression=most)
    beginning = exp.Substring(this=value.copy(), start=exp.Literal.number(1), length=most.copy())
    return exp.Case().when(long, beginning).else_(value.copy())


def _rounded(kind: Kind, bounds: Bounds) -> tuple[Endpoint, Endpoint]:
    """Return bounds as values of the kind, rounded inwards where they lie between two of them."""
    low, high = bounds.lower, bounds.upper
    if kind is Kind.DATE:
        return _day(low), _day(high)
    if kind is Kind.TIME:
        return _moment(low, time_of_day.min), _moment(high, time_of_day.max)
    lower, upper = Fraction(low), Fraction(high)  # type: ignore[arg-type]
    if kind is Kind.REAL:
        inside = rounded_up(lower), rounded_down(upper)
        return inside if inside[0] <= inside[1] else (float(lower), float(lower))
    whole = max(lower.__ceil__(), -WHOLE_MAX), min(upper.__floor__(), WHOLE_MAX)
    return whole if whole[0] <= whole[1] else (whole[1], whole[1])


def _day(bound: object) -> date:
    assert isinstance(bound, date)
    return bound.date() if isinstance(bound, datetime) else bound


def _moment(bound: object, of_day: time_of_day) -> datetime:
    """Return a bound as a time in UTC; a date means the whole day."""
    assert isinstance(bound, date)
    moment = bound if isinstance(bound, datetime) else datetime.combine(bound, of_day)
    return moment.replace(tzinfo=None) if moment.tzinfo is None else (moment - moment.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]


def _constant(kind: Kind, end: Endpoint) -> exp.Expression:
    text = end.isoformat(sep=" ") if isinstance(end, datetime) else str(end) if isinstance(end, date) else repr(end)
    return exp.cast(exp.Literal.string(text), TYPES[kind])


def _number(value: exp.Expression) -> exp.Expression:
    return exp.Case().when(_is_number(value), value.copy())


def _is_number(value: exp.Expression) -> exp.Expression:
    return exp.NEQ(this=value.copy(), expression=exp.cast(exp.Literal.string("NaN"), TYPES[Kind.REAL]))


def check_unit_path(table: Table, others: Mapping[str, Table]) -> None:
    """Raise if a column has a reserved name, or if the foreign keys of a table do not lead to its unit."""
    for column in table.columns:
        if column.name.lower() in RESERVED:
            raise NameTaken(f"{table.name} has a column {column.name}, a reserved name; rename it")
    if table.unit is None:
        return
    here = table
    for step in table.unit.through:
        there = others.get(step.target_table.lower())
        if there is None:
            raise NotInCatalog(
                f"the foreign key of {here.name} references {step.target_table}, which is not registered; "
                "register that first",
                name="unit",
                value=step.target_table,
            )
        one, other = here.column(step.column), there.column(step.target_column)
        for owner, key in ((here, one), (there, other)):
            _check_unclamped(owner, key)
        if one.kind is not other.kind:
            raise InvalidInput(
                f"{here.name}.{one.name} is {one.kind} and {there.name}.{other.name} is {other.kind}; "
                "declare both with the same kind, so that one can lead to the other",
                name="unit",
            )
        here = there
    _check_unclamped(here, here.column(table.unit.column))


def not_registered(name: str) -> NotInCatalog:
    """Return the error for a table that is not registered."""
    return NotInCatalog(f"{name} is not registered with the engine; register it first", name="table", value=name)


def not_unique(table: Table, parent: Table, column: str) -> InvalidInput:
    """Return the error for a foreign key whose target column is not unique."""
    return InvalidInput(
        f"{parent.name}.{column} is not unique, so a row of {table.name} would belong to several units; "
        "reference a unique column",
        name="unit",
    )


def not_identified(table: Table) -> InvalidInput:
    """Return the error for a table with two rows that share what is declared to identify them."""
    return InvalidInput(
        f"{', '.join(table.identified_by)} does not identify the rows of {table.name}: some share it",
        name="identified_by",
    )


def not_row_by_row(shown: str) -> InvalidInput:
    """Return the error for a view in which the rows of one unit may decide about those of another."""
    return InvalidInput(
        f"{shown} is a view, or reads one, of which a row does not come from one row of one table, so that the rows of "
        "one unit may decide about those of another; register the tables that it reads and join them in queries, or "
        "make a table of its rows",
        name="source",
        value=shown,
    )


def missing_column(place: str, table: Table, column: Column) -> SourceMissing:
    """Return the error for a source that has lost a declared column."""
    return SourceMissing(
        f"{place} has no column {column.name}, which {table.name} was registered with; put it back, or register the "
        "table anew"
    )


def check_exact(table: Table, column: Column, type_name: str, is_exact: Callable[[Kind], bool]) -> None:
    """Raise InvalidInput if the cast of a unit or key from its type to the declared kind may merge different values.

    `is_exact` says whether the cast of that type to a kind keeps different values different.
    """
    if is_exact(column.kind):
        return
    instead = (
        f'declare it as text, kinds={{"{column.name}": "text"}}'
        if is_exact(Kind.TEXT)
        else "identify units by a column of numbers or texts"
    )
    raise InvalidInput(
        f"{table.name}.{column.name} identifies units, and as {column.kind} some of its values of the type {type_name} "
        f"would become the same; {instead}",
        name="kinds",
        value=column.name,
    )


def _check_unclamped(table: Table, column: Column) -> None:
    """Raise InvalidInput for a key whose values are clamped: several values would become one."""
    if (column.facts is not None or value_range(column) is not None) and not _is_unit(table, column):
        raise InvalidInput(
            f"{table.name}.{column.name} is a key to the unit, and clamping would change it; declare it "
            "as an integer or a text, without bounds or categories",
            name="unit",
        )


def _is_unit(table: Table, column: Column) -> bool:
    return table.unit is not None and table.unit.is_direct and table.unit.column.lower() == column.name.lower()


def select_declared(table: Table, rows: str) -> str:
    """Return the SELECT of rows with their declared values; the unit's own column is not clamped (`_unit_value`)."""
    items, kept = [], []
    for index, column in enumerate(table.columns):
        reference = exp.column(f"c{index}")
        value = (_unit_value if _is_unit(table, column) else declared_value)(column, reference)
        items.append(f"{value.sql(dialect='duckdb')} AS c{index}")
        if not column.nullable:
            kept.append(f"c{index} IS NOT NULL")
    shown = f"SELECT {', '.join(items)} FROM ({rows}) AS d"
    return f"SELECT * FROM ({shown}) AS e WHERE {' AND '.join(kept)}" if kept else shown


def select_with_unit(table: Table, rows: str, parents: Sequence[tuple[Table, str]]) -> str:
    """Return the SELECT of a private table's rows and their `_unit`; `parents` are where its foreign keys lead."""
    unit = require_unit(table)
    items = ", ".join(f"r.c{index} AS c{index}" for index in range(len(table.columns)))
    joins, alias, here, known = "", "r", table, []
    for number, (step, (there, shown)) in enumerate(zip(unit.through, parents, strict=True)):
        key = f"{alias}.c{column_index(here, step.column)}"
        on = f"{key} = p{number}.c{column_index(there, step.target_column)}"
        known += _uncut(here.column(step.column), key)
        joins += f" JOIN ({shown}) AS p{number} ON {on}"
        alias, here = f"p{number}", there
    column = here.column(unit.column)
    value = f"{alias}.c{column_index(here, column.name)}"
    known += [f"{value} IS NOT NULL", *_uncut(column, value)]
    if column.kind is Kind.REAL:
        known.append(f"NOT isnan({value})")
        value = f"({value} + 0)"  # -0.0 becomes 0.0
    return f"SELECT {items}, {value} AS {UNIT} FROM ({rows}) AS r{joins} WHERE {' AND '.join(known)}"


def _uncut(column: Column, value: str) -> list[str]:
    """Return the condition that a unit or key, if it is a text, was not cut."""
    return [f"length({value}) < {TEXT_LENGTH_MAX}"] if column.kind is Kind.TEXT else []


def limit_rows_per_unit(table: Table, rows: str) -> str:
    """Return the SELECT of at most `rows_per_unit` rows of each unit; the salt is the parameter `SALT`."""
    most = table.limits.rows_per_unit
    if most is None or table.unit is None:
        return rows
    names = [f"c{index}" for index in range(len(table.columns))]
    order = ", ".join([f"hash({', '.join([UNIT, *names])}, ${SALT})", *names])
    placed = f"SELECT *, row_number() OVER (PARTITION BY {UNIT} ORDER BY {order}) AS place FROM ({rows}) AS w"
    return f"SELECT {', '.join([*names, UNIT])} FROM ({placed}) AS l WHERE place <= {most}"


def select_identified(table: Table, rows: str) -> str:
    """Return the SELECT of a public table's rows, one for each value of `identified_by`: the first by its values."""
    if table.is_private or not table.identified_by:
        return rows
    names = [f"c{index}" for index in range(len(table.columns))]
    keys = [f"c{column_index(table, name)}" for name in table.identified_by]
    order = ", ".join(name for name in names if name not in keys) or keys[0]
    placed = (
        f"SELECT *, row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order}) AS place FROM ({rows}) AS w"
    )
    return f"SELECT {', '.join(names)} FROM ({placed}) AS l WHERE place = 1"


def select_view(table: Table, rows: str) -> str:
    """Return the SELECT with declared names over rows that are read for every question; `_rows` is NULL."""
    extra = f", {UNIT}, CAST(NULL AS BIGINT) AS {ROWS}" if table.is_private else ""
    return f"SELECT {declared_names(table)}{extra} FROM ({select_identified(table, rows)}) AS v"


def select_key_counts(table: Table, name: str, rows: str) -> str:
    """Return the SELECT of how many values (n) and different values (m) a key has; equal counts mean it is unique."""
    key = f"c{column_index(table, name)}"
    return f"SELECT COUNT({key}) AS n, COUNT(DISTINCT {key}) AS m FROM ({rows}) AS d"


def select_shared_keys(table: Table, rows: str) -> str:
    """Return the SELECT of how many values of `identified_by` several rows share (n)."""
    keys = ", ".join(f"c{column_index(table, name)}" for name in table.identified_by)
    shared = f"SELECT {keys} FROM ({rows}) AS d GROUP BY {keys} HAVING COUNT(*) > 1"
    return f"SELECT COUNT(*) AS n FROM ({shared}) AS e"


def column_index(table: Table, name: str) -> int:
    """Return the index of a column among the declared ones."""
    return table.columns.index(table.column(name))


def require_unit(table: Table) -> Unit:
    """Return the unit of a private table; raise InvalidInput for a public one."""
    if table.unit is None:
        raise InvalidInput(f"{table.name} is public and has no unit", name="table")
    return table.unit


def declared_names(table: Table, but: Column | None = None) -> str:
    """Return the items that give c0, c1, ... their declared names, without the column `but`."""
    items = (f"c{index} AS {quoted(one.name)}" for index, one in enumerate(table.columns) if one is not but)
    return ", ".join(items)


def key_column(table: Table) -> str:
    """Return the column by which a private table leads to its unit: its first foreign key, or the unit's own column."""
    unit = require_unit(table)
    return unit.through[0].column if unit.through else unit.column


def key_steps(table: Table) -> list[tuple[ForeignKey, str]]:
    """Return the foreign keys that lead to the unit, each with the column of its target table that leads on."""
    if table.unit is None:
        return []
    steps = table.unit.through
    return list(zip(steps, [*(step.column for step in steps[1:]), table.unit.column], strict=False))
