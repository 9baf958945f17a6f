"""Values as the owner declared them: what an engine shows of a column, whatever its source holds.

Promise: NaN is NULL; values beyond declared bounds are moved to them; dates and times lie within the years 1 to 9999;
of a text the first `TEXT_LENGTH_MAX` characters are shown; a row that has NULL in a column declared without it is left
out. Queries rely on it: they neither clamp columns nor look for NaN, and their sensitivities rest on the bounds being
kept. Values that are not among declared categories stay as
they are, and are in none of the groups that are shown.
The trees are for casts to the types of the kinds, and total as those are.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from datetime import time as time_of_day
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.privacy.bounds import Bounds
from tacit.privacy.numbers import rounded_down, rounded_up
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind

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
