"""Dates and times as DuckDB counts them: parts, beginnings, and the borders between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from tacit.engines.dialects.spark.casts import cast, micros
from tacit.engines.dialects.spark.numbers import Handler, Write
from tacit.engines.dialects.spark.pieces import Level, Piece, Type, once

_PARTS: Final = {
    "YEAR": "year({})",
    "QUARTER": "quarter({})",
    "MONTH": "month({})",
    "WEEK": "weekofyear({})",
    "DAY": "day({})",
    "DOW": "(dayofweek({}) - 1)",
    "ISODOW": "(weekday({}) + 1)",
    "DOY": "dayofyear({})",
    "HOUR": "hour({})",
    "MINUTE": "minute({})",
    "SECOND": "second({})",
}
_MICROS: Final = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MICROSECOND": 1}


def part(node: exp.Expr, write: Write) -> Piece:
    """EXTRACT(part FROM x)."""
    name, value = node.this.name.upper(), write(node.expression)
    if name == "EPOCH":
        return Piece(f"CAST({micros(cast(value, Type.TIME).text)} AS DOUBLE) / 1000000D", Type.DOUBLE, Level.MULTIPLIED)
    return Piece(_PARTS[name].format(value.text), Type.INT)


def beginning(node: exp.Expr, write: Write) -> Piece:
    """DATE_TRUNC('unit', x): a date for a date, a time for a time."""
    unit, value = node.args["unit"].name.upper(), write(node.this)
    if value.type is Type.DATE:
        return value if unit == "DAY" else Piece(f"trunc({value.text}, '{unit}')", Type.DATE)
    return Piece(f"CAST(date_trunc('{unit}', {value.text}) AS TIMESTAMP_NTZ)", Type.TIME)


def difference(node: exp.Expr, write: Write) -> Piece:
    """DATE_DIFF: how many borders of a unit lie between two dates or times; Spark's own counts whole units."""
    unit = node.args["unit"].name.upper()
    end, start = write(node.this), write(node.expression)
    if unit == "DAY":
        return Piece(f"datediff({cast(end, Type.DATE).text}, {cast(start, Type.DATE).text})", Type.INT)
    counted = [_borders(unit, cast(one, Type.TIME) if unit in _MICROS else one) for one in (end, start)]
    return Piece(f"{counted[0]} - {counted[1]}", Type.BIGINT if unit in _MICROS else Type.INT, Level.ADDED)


def _borders(unit: str, value: Piece) -> str:
    if unit == "YEAR":
        return f"year({value.text})"
    if unit in ("QUARTER", "MONTH"):
        return f"(year({value.text}) * {4 if unit == 'QUARTER' else 12} + {unit.lower()}({value.text}))"
    size, since = _MICROS[unit], micros(value.text)
    return since if size == 1 else once(since, lambda x: f"({x} - pmod({x}, {size}L)) DIV {size}L")


HANDLERS: Final[Mapping[type[exp.Expr], Handler]] = {
    exp.Extract: part,
    exp.TimestampTrunc: beginning,
    exp.DateDiff: difference,
    exp.LastDay: lambda node, write: Piece(f"last_day({cast(write(node.this), Type.DATE).text})", Type.DATE),
}
