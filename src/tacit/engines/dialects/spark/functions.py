"""Functions of texts, dates and times as DuckDB has them.

Dates and times as DuckDB counts them: parts, beginnings, and the borders between two of them.

Functions of texts as DuckDB computes them: characters are code points, and change their case one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from tacit.engines.dialects.spark.casts import cast, micros
from tacit.engines.dialects.spark.numbers import Handler, Write
from tacit.engines.dialects.spark.typed_sql import Piece, Precedence, Type, literal, once
from tacit.engines.dialects.text_search import check_pattern
from tacit.privacy.errors import EngineFailed

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
        return Piece(
            f"CAST({micros(cast(value, Type.TIME).text)} AS DOUBLE) / 1000000D", Type.DOUBLE, Precedence.MULTIPLIED
        )
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
    return Piece(f"{counted[0]} - {counted[1]}", Type.BIGINT if unit in _MICROS else Type.INT, Precedence.ADDED)


def _borders(unit: str, value: Piece) -> str:
    if unit == "YEAR":
        return f"year({value.text})"
    if unit in ("QUARTER", "MONTH"):
        return f"(year({value.text}) * {4 if unit == 'QUARTER' else 12} + {unit.lower()}({value.text}))"
    size, since = _MICROS[unit], micros(value.text)
    return since if size == 1 else once(since, lambda x: f"({x} - pmod({x}, {size}L)) DIV {size}L")


_LONGER: Final = "".join(chr(one) for one in range(0x10000) if len(chr(one).upper()) > 1)
"""Letters for whose capitals Java writes several characters; DuckDB writes one, or leaves the letter as it is."""

_CAPITALS: Final = "".join("ẞ" if one == "ß" else one.title() if len(one.title()) == 1 else one for one in _LONGER)
_ASIDE: Final = "".join(chr(0xF0000 + index) for index in range(len(_LONGER)))
"""Characters for private use that stand for them meanwhile, and that no text has."""


def lower(value: str) -> str:
    """Return a text in small letters; Java makes two characters of one letter, and has another sigma at ends of words.

    Letters that came with the last versions of Unicode may not be known to both engines.
    """
    return f"lower(translate({value}, 'İΣ', 'iσ'))"


def upper(value: str) -> str:
    """Return a text in capitals, one for each letter."""
    return f"translate(upper(translate({value}, '{_LONGER}', '{_ASIDE}')), '{_ASIDE}', '{_CAPITALS}')"


def _trim(node: exp.Expr, write: Write) -> Piece:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
    return Piece(f"{name}({write(node.this).text})", Type.TEXT)


def _substring(node: exp.Expr, write: Write) -> Piece:
    parts = [node.this, node.args["start"], *([node.args["length"]] if node.args.get("length") is not None else [])]
    return Piece(f"substring({', '.join(write(one).text for one in parts)})", Type.TEXT)


def _matching(value: str, pattern: str) -> str:
    """Return whether a text fits a pattern of LIKE, in one pass.

    Spark's own LIKE tries every way to place the parts between %, which takes minutes for four of them. The leftmost
    place of each part is as good as any other, so that it is taken and never given up (`(?>...)`).
    """
    check_pattern(pattern)
    first, *others = pattern.split("%")
    if "_" not in pattern and (simple := _SIMPLE.get(tuple(bool(part) for part in (first, *others)))) is not None:
        return f"{simple}({value}, {literal(pattern.replace('%', ''))})"
    if not others:
        regex = _of_part(first)
    else:
        *inner, last = others
        middle = "".join(f"(?>.*?{_of_part(part)})" for part in inner if part)
        regex = f"{_of_part(first)}{middle}.*{_of_part(last)}" if last else f"{_of_part(first)}{middle}.*+"
    anchored = r"(?s)\A" + regex + r"\z"
    return f"{value} RLIKE {literal(anchored)}"


_SIMPLE: Final = {(True, False): "startswith", (False, True): "endswith", (False, True, False): "contains"}
"""What Spark does without a regular expression, by which parts around % are there."""


def _of_part(part: str) -> str:
    """Return a part of a pattern without % as a regular expression, in which _ is any character."""
    return "".join("." if one == "_" else rf"\x{{{ord(one):x}}}" if not one.isalnum() else one for one in part)


def _like(node: exp.Expr, write: Write) -> Piece:
    return Piece(_matching(write(node.this).at(Precedence.ADDED), _pattern(node)), Type.BOOLEAN, Precedence.COMPARED)


def _ilike(node: exp.Expr, write: Write) -> Piece:
    pattern = "".join(map(_lower, _pattern(node)))
    return Piece(_matching(lower(write(node.this).text), pattern), Type.BOOLEAN, Precedence.COMPARED)


def _pattern(node: exp.Expr) -> str:
    if not isinstance(node.expression, exp.Literal):
        raise EngineFailed("Spark is asked for LIKE with a pattern that is written in the question only")
    return str(node.expression.this)


def _lower(one: str) -> str:
    """Return a character in small letters, as `lower` does it."""
    other = {"İ": "i", "Σ": "σ"}.get(one, one.lower())
    return other if len(other) == 1 else one


def _of_two(name: str) -> Handler:
    return lambda node, write: Piece(f"{name}({write(node.this).text}, {write(node.expression).text})", Type.BOOLEAN)


HANDLERS: Final[Mapping[type[exp.Expr], Handler]] = {
    exp.Extract: part,
    exp.TimestampTrunc: beginning,
    exp.DateDiff: difference,
    exp.LastDay: lambda node, write: Piece(f"last_day({cast(write(node.this), Type.DATE).text})", Type.DATE),
    exp.Upper: lambda node, write: Piece(upper(write(node.this).text), Type.TEXT),
    exp.Lower: lambda node, write: Piece(lower(write(node.this).text), Type.TEXT),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Right: lambda node, write: Piece(f"right({write(node.this).text}, {write(node.expression).text})", Type.TEXT),
    exp.Length: lambda node, write: Piece(f"char_length({write(node.this).text})", Type.INT),
    exp.StrPosition: lambda node, write: Piece(
        f"instr({write(node.this).text}, {write(node.args['substr']).text})", Type.INT
    ),
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.StartsWith: _of_two("startswith"),
    exp.EndsWith: _of_two("endswith"),
    exp.Contains: _of_two("contains"),
}
