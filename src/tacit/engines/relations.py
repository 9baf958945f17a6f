"""The SELECT that shows a registered table: columns by their kinds, values as declared, the unit of each row.

Values as the owner declared them: what an engine shows of a column, whatever its source holds.

Promise: NaN is NULL; values beyond declared bounds are moved to them; dates and times lie within the years 1 to 9999;
of a text the first `TEXT_LENGTH_MAX` characters are shown; a row that has NULL in a column declared without it is left
out. Queries rely on it: they neither clamp columns nor look for NaN, and their sensitivities rest on the bounds being
kept. Values that are not among declared categories stay as
they are, and are in none of the groups that are shown.
The trees are for casts to the types of the kinds, and total as those are.

Promise: `_unit` is a function of the row and of the rows it leads to by foreign keys, the same in every table of a
unit, and never NULL. A row whose unit cannot be told is left out, also one whose unit or key is a text of
`TEXT_LENGTH_MAX` characters or more: texts are cut to that length, and the beginnings of two may be the same. With a
limit, the rows of a unit that stay are chosen by a salted hash of the rows themselves: not by their order, and not by
anything about other units.

Keys are unique when rows are registered or refreshed; rows that are read live may break that afterwards. No promise
about a unit rests on the keys of private tables. A key that leads to two units makes a row one row of each of them, and
everything that bounds a unit (its limit, its number of rows, the sums of `query`) is computed after that join and by
`_unit`. So a unit that repeats the key of another adds rows of its own and takes none away; leaving such rows out
instead would let one unit remove those of another. A unit that repeats its own keys multiplies its own rows, which
costs time. What a public table is `identified_by` does decide how often a private row is counted, so of public rows
that share it one is shown (`identified`).

The rows of a unit are the rows of the source as it shows them. Of a view that is what is meant only if each of its rows
comes from one row of one table: a window, an aggregate, DISTINCT, LIMIT or a join lets the rows of one unit decide
which rows another has, and then removing a unit is more than removing its rows. Engines look at the definition of a
view that leads to a unit, and refuse what is not read row by row (`mixing_view`). Tables and materialized views hold
rows: whoever makes one states by that whose they are.

Inside these statements columns are called c0, c1, ..., so that no declared name can collide with another word. They are
DuckDB's SQL; `dialects` says how other engines write it. What precedes them, the cast of a source's own columns to the
types of the kinds, is each engine's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from datetime import time as time_of_day
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.engines.protocol import ROWS, SALT, UNIT
from tacit.engines.quoting import quoted
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import InvalidInput, NameTaken, NotInCatalog
from tacit.privacy.numbers import rounded_down, rounded_up
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Table
from tacit.privacy.units import Unit

End: TypeAlias = int | float | date

TYPES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIME: "TIMESTAMP",
}
WHOLE_MAX: Final = 2**63 - 1


def ends(column: Column) -> tuple[End, End] | None:
    """Return the least and the greatest value of a column as the engine holds them, or None where there are none."""
    if isinstance(column.facts, Bounds):
        return _rounded(column.kind, column.facts)
    if column.kind is Kind.DATE:
        return date.min, date.max
    return (datetime.min, datetime.max) if column.kind is Kind.TIME else None


def declared(column: Column, value: exp.Expression) -> exp.Expression:
    """Return the tree of a column's value as it was declared, from the tree of its value of the right type."""
    limits = ends(column)
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


def _cut(value: exp.Expression) -> exp.Expression:
    """Return the tree of a text's beginning; the length is looked at first, since nearly no text has to be copied."""
    most = exp.Literal.number(TEXT_LENGTH_MAX)
    long = exp.GT(this=exp.Length(this=value.copy()), expression=most)
    beginning = exp.Substring(this=value.copy(), start=exp.Literal.number(1), length=most.copy())
    return exp.Case().when(long, beginning).else_(value.copy())


def required(columns: Iterable[Column]) -> list[str]:
    """Return the columns in which a row must have a value to be shown."""
    return [column.name for column in columns if not column.nullable]


def _rounded(kind: Kind, bounds: Bounds) -> tuple[End, End]:
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
    """Return a bound as a time; a day as a bound of times is meant whole."""
    assert isinstance(bound, date)
    moment = bound if isinstance(bound, datetime) else datetime.combine(bound, of_day)
    return moment.replace(tzinfo=None) if moment.tzinfo is None else (moment - moment.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]


def _constant(kind: Kind, end: End) -> exp.Expression:
    text = end.isoformat(sep=" ") if isinstance(end, datetime) else str(end) if isinstance(end, date) else repr(end)
    return exp.cast(exp.Literal.string(text), TYPES[kind])


def _number(value: exp.Expression) -> exp.Expression:
    return exp.Case().when(_is_number(value), value.copy())


def _is_number(value: exp.Expression) -> exp.Expression:
    return exp.NEQ(this=value.copy(), expression=exp.cast(exp.Literal.string("NaN"), TYPES[Kind.REAL]))


RESERVED: Final = (UNIT, ROWS)


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
    """Return the error of a table that an engine does not know."""
    return NotInCatalog(f"{name} is not registered with the engine; register it first", name="table", value=name)


def not_unique(table: Table, parent: Table, column: str) -> InvalidInput:
    """Return the error of a foreign key that leads to several rows."""
    return InvalidInput(
        f"{parent.name}.{column} is not unique, so a row of {table.name} would belong to several units; lead to a "
        "column that identifies the rows",
        name="unit",
    )


def not_identified(table: Table) -> InvalidInput:
    """Return the error of a table two rows of which share what is said to identify them."""
    return InvalidInput(
        f"{', '.join(table.identified_by)} does not identify the rows of {table.name}: some share it",
        name="identified_by",
    )


def mixing_view(shown: str) -> InvalidInput:
    """Return the refusal of a view that may let the rows of one unit decide about those of another."""
    return InvalidInput(
        f"{shown} is a view, or reads one, of which a row does not come from one row of one table, so that the rows of "
        "one unit may decide about those of another; register the tables that it reads and join them in questions, or "
        "make a table of its rows",
        name="source",
        value=shown,
    )


def _check_unclamped(table: Table, column: Column) -> None:
    """Refuse a key whose values are moved to bounds, dates to the years 1 to 9999: several would become one."""
    if (column.facts is not None or ends(column) is not None) and not _is_unit(table, column):
        raise InvalidInput(
            f"{table.name}.{column.name} leads to the unit, and clamping it to bounds would lead elsewhere; declare it "
            "as an integer or a text, without bounds or categories",
            name="unit",
        )


def _is_unit(table: Table, column: Column) -> bool:
    return table.unit is not None and table.unit.is_direct and table.unit.column.lower() == column.name.lower()


def as_declared(table: Table, rows: str) -> str:
    """Return the SELECT of rows with their values as declared; the unit's own column stays as it is."""
    items, kept = [], []
    for index, column in enumerate(table.columns):
        reference = exp.column(f"c{index}")
        value = reference if _is_unit(table, column) else declared(column, reference)
        items.append(f"{value.sql(dialect='duckdb')} AS c{index}")
        if not column.nullable:
            kept.append(f"c{index} IS NOT NULL")
    shown = f"SELECT {', '.join(items)} FROM ({rows}) AS d"
    return f"SELECT * FROM ({shown}) AS e WHERE {' AND '.join(kept)}" if kept else shown


def with_unit(table: Table, rows: str, parents: Sequence[tuple[Table, str]]) -> str:
    """Return the SELECT of a private table's rows and their `_unit`; `parents` are where its foreign keys lead."""
    unit = unit_of(table)
    items = ", ".join(f"r.c{index} AS c{index}" for index in range(len(table.columns)))
    joins, alias, here, known = "", "r", table, []
    for number, (step, (there, shown)) in enumerate(zip(unit.through, parents, strict=True)):
        key = f"{alias}.c{place(here, step.column)}"
        on = f"{key} = p{number}.c{place(there, step.target_column)}"
        known += _uncut(here.column(step.column), key)
        joins += f" JOIN ({shown}) AS p{number} ON {on}"
        alias, here = f"p{number}", there
    column = here.column(unit.column)
    value = f"{alias}.c{place(here, column.name)}"
    known += [f"{value} IS NOT NULL", *_uncut(column, value)]
    if column.kind is Kind.REAL:
        known.append(f"NOT isnan({value})")
        value = f"({value} + 0)"  # of the two zeros one
    return f"SELECT {items}, {value} AS {UNIT} FROM ({rows}) AS r{joins} WHERE {' AND '.join(known)}"


def _uncut(column: Column, value: str) -> list[str]:
    """Return the condition that a unit or key is whole, for texts, which may have been cut."""
    return [f"length({value}) < {TEXT_LENGTH_MAX}"] if column.kind is Kind.TEXT else []


def limited(table: Table, rows: str) -> str:
    """Return the SELECT of at most `rows_per_unit` rows of each unit; the salt is the parameter SALT."""
    most = table.limits.rows_per_unit
    if most is None or table.unit is None:
        return rows
    names = [f"c{index}" for index in range(len(table.columns))]
    order = ", ".join([f"hash({', '.join([UNIT, *names])}, ${SALT})", *names])
    placed = f"SELECT *, row_number() OVER (PARTITION BY {UNIT} ORDER BY {order}) AS place FROM ({rows}) AS w"
    return f"SELECT {', '.join([*names, UNIT])} FROM ({placed}) AS l WHERE place <= {most}"


def identified(table: Table, rows: str) -> str:
    """Return the SELECT of a public table's rows, of those that share what identifies them the first by its values."""
    if table.is_private or not table.identified_by:
        return rows
    names = [f"c{index}" for index in range(len(table.columns))]
    keys = [f"c{place(table, name)}" for name in table.identified_by]
    order = ", ".join(name for name in names if name not in keys) or keys[0]
    placed = (
        f"SELECT *, row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order}) AS place FROM ({rows}) AS w"
    )
    return f"SELECT {', '.join(names)} FROM ({placed}) AS l WHERE place = 1"


def view(table: Table, rows: str) -> str:
    """Return the SELECT with declared names, over rows that are read anew for every question."""
    extra = f", {UNIT}, CAST(NULL AS BIGINT) AS {ROWS}" if table.is_private else ""
    return f"SELECT {renamed(table)}{extra} FROM ({identified(table, rows)}) AS v"


def place(table: Table, name: str) -> int:
    """Return where a column stands among the declared ones."""
    wanted: Column = table.column(name)
    return table.columns.index(wanted)


def unit_of(table: Table) -> Unit:
    """Return the unit of a private table."""
    if table.unit is None:
        raise InvalidInput(f"{table.name} is public and has no unit", name="table")
    return table.unit


def renamed(table: Table, but: Column | None = None) -> str:
    """Return the items that give c0, c1, ... their declared names again."""
    items = (f"c{index} AS {quoted(one.name)}" for index, one in enumerate(table.columns) if one is not but)
    return ", ".join(items)
