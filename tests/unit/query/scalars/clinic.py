"""The columns that the tests of scalar SQL ask about, and short ways to ask."""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

from sqlglot import exp

from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import Place
from tacit.privacy.tables import Column, Kind
from tacit.query.expressions import Expression
from tacit.query.parse import Text, parse
from tacit.query.scalars import scalar
from tests.support.reading import read

COLUMNS: Final = {
    column.name: column
    for column in (
        Column("age", Kind.INTEGER, Bounds(0, 120)),
        Column("points", Kind.INTEGER, Bounds(-10, 10)),
        Column("kg", Kind.REAL, Bounds(0.5, 300)),
        Column("sex", Kind.TEXT, Categories(["F", "M"])),
        Column("grade", Kind.INTEGER, Categories([1, 2, 5, None])),
        Column("day", Kind.DATE, Bounds(date(2020, 1, 1), date(2020, 12, 31))),
        Column("seen", Kind.TIME, Bounds(datetime(2020, 1, 1), datetime(2020, 12, 31, 23, 59))),
        Column("smokes", Kind.BOOLEAN),
        Column("n", Kind.INTEGER),
        Column("x", Kind.REAL),
        Column("y", Kind.REAL),
        Column("name", Kind.TEXT),
        Column("born", Kind.DATE),
        Column("at_night", Kind.TIME),
    )
}
SHORT: Final = {
    name: read(column, exp.column(name)).text for name, column in COLUMNS.items() if column.facts or name in ("x", "y")
}
"""How each column is read, by its name."""


def bind(node: exp.Expression) -> Expression:
    """Resolve a node as the query engine does; `patient` is the unit's own column."""
    if isinstance(node, exp.Column):
        if node.name == "patient":
            return Expression(exp.column("patient"), Kind.TEXT, unit=True)
        return read(COLUMNS[node.name], exp.column(node.name))
    return scalar(node, bind, lambda _: Place(1, 8))


def of(sql: str) -> Expression:
    """Return the expression for scalar SQL."""
    return bind(parse(Text(f"SELECT {sql}")).selects[0])


def shown(sql: str) -> str:
    """Return the canonical text, with the reading of a column shortened to its name in square brackets."""
    text = of(sql).text
    for name, long in sorted(SHORT.items(), key=lambda item: -len(item[1])):
        text = text.replace(long, f"[{name}]")
    return text.replace("CAST('NaN' AS DOUBLE)", "NaN")


def range_of(sql: str) -> tuple[float, float] | None:
    """Return the ends of the range, as floats."""
    found = of(sql).range
    return None if found is None else (float(found.lower), float(found.upper))
