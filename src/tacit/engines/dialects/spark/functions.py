"""Functions of texts, dates and times with DuckDB's results.

Characters are code points, and change their case one by one. DATE_DIFF counts boundaries of a unit. Whole numbers that
Spark's functions return as INT are cast to BIGINT, as in DuckDB: later arithmetic on an INT would wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from tacit.engines.dialects.spark.casts import cast, to_micros
from tacit.engines.dialects.spark.numbers import Handler, Write
from tacit.engines.dialects.spark.typed_sql import REPEATED_MAX, Piece, Precedence, SparkType, literal, once
from tacit.engines.dialects.text_search import check_pattern
from tacit.privacy.errors import EngineFailed

_PARTS: Final = {
    "YEAR": "year({})",
    "QUARTER": "quarter({})",
    "MONTH": "month({})",
    "WEEK": "weekofyear({})",
    "DAY": "day({})",
    "DOW": "dayofweek({}) - 1",
    "ISODOW": "weekday({}) + 1",
    "DOY": "dayofyear({})",
    "HOUR": "hour({})",
    "MINUTE": "minute({})",
    "SECOND": "second({})",
}
_MICROS: Final = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MICROSECOND": 1}


def extract(node: exp.Expr, write: Write) -> Piece:
    """EXTRACT(part FROM x)."""
    name, value = node.this.name.upper(), write(node.expression)
    if name == "EPOCH":
        return Piece(
            f"CAST({to_micros(cast(value, SparkType.TIME).text)} AS DOUBLE) / 1000000D",
            SparkType.DOUBLE,
            Precedence.MULTIPLIED,
        )
    return _bigint(_PARTS[name].format(value.text))


def date_trunc(node: exp.Expr, write: Write) -> Piece:
    """DATE_TRUNC('unit', x): a date for a date, a time for a time."""
    unit, value = node.args["unit"].name.upper(), write(node.this)
    if value.type is SparkType.DATE:
        return value if unit == "DAY" else Piece(f"trunc({value.text}, '{unit}')", SparkType.DATE)
    return Piece(f"CAST(date_trunc('{unit}', {value.text}) AS TIMESTAMP_NTZ)", SparkType.TIME)


def date_diff(node: exp.Expr, write: Write) -> Piece:
    """DATE_DIFF: the number of unit boundaries between two dates or times; Spark's own counts whole units."""
    unit = node.args["unit"].name.upper()
    end, start = write(node.this), write(node.expression)
    if unit == "DAY":
        return _bigint(f"datediff({cast(end, SparkType.DATE).text}, {cast(start, SparkType.DATE).text})")
    counted = [_unit_number(unit, cast(one, SparkType.TIME) if unit in _MICROS else one) for one in (end, start)]
    difference = f"{counted[0]} - {counted[1]}"
    return Piece(difference, SparkType.BIGINT, Precedence.ADDED) if unit in _MICROS else _bigint(difference)


def _bigint(value: str) -> Piece:
    """Return an INT of Spark as BIGINT."""
    return Piece(f"CAST({value} AS BIGINT)", SparkType.BIGINT)


def _unit_number(unit: str, value: Piece) -> str:
    if unit == "YEAR":
        return f"year({value.text})"
    if unit in ("QUARTER", "MONTH"):
        return f"(year({value.text}) * {4 if unit == 'QUARTER' else 12} + {unit.lower()}({value.text}))"
    size, since = _MICROS[unit], to_micros(value.text)
    return since if size == 1 else once(since, lambda x: f"({x} - pmod({x}, {size}L)) DIV {size}L")


_LONGER: Final = "".join(chr(one) for one in range(0x10000) if len(chr(one).upper()) > 1)
"""Letters whose upper case has several characters in Java; DuckDB writes one, or leaves the letter unchanged."""

_CAPITALS: Final = "".join("ẞ" if one == "ß" else one.title() if len(one.title()) == 1 else one for one in _LONGER)
_ASIDE: Final = "".join(chr(0xF0000 + index) for index in range(len(_LONGER)))
"""Private-use characters that stand for them while the rest is changed."""


def lower(value: str) -> str:
    """Return a text in lower case; Java would make two characters of İ, and another sigma at the end of a word.

    Letters of the latest versions of Unicode may not be known to both engines.
    """
    return f"lower(translate({value}, 'İΣ', 'iσ'))"


def upper(value: str) -> str:
    """Return a text in upper case, one character for each letter; texts in ASCII have none of `_LONGER`."""
    changed = f"translate(upper(translate({value}, '{_LONGER}', '{_ASIDE}')), '{_ASIDE}', '{_CAPITALS}')"
    if len(value) > REPEATED_MAX:
        return changed
    return f"CASE WHEN octet_length({value}) = char_length({value}) THEN upper({value}) ELSE {changed} END"


def _trim(node: exp.Expr, write: Write) -> Piece:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
    return Piece(f"{name}({write(node.this).text})", SparkType.TEXT)


def _substring(node: exp.Expr, write: Write) -> Piece:
    parts = [node.this, node.args["start"], *([node.args["length"]] if node.args.get("length") is not None else [])]
    return Piece(f"substring({', '.join(write(one).text for one in parts)})", SparkType.TEXT)


def _like_sql(value: str, pattern: str) -> str:
    """Return whether a text matches a pattern of LIKE, in one pass.

    Spark's own LIKE backtracks over every position of the parts between %, which takes minutes for four of them. The
    leftmost position of each part is as good as any other, so it is taken without backtracking (`(?>...)`).
    """
    check_pattern(pattern)
    first, *others = pattern.split("%")
    if "_" not in pattern and (simple := _SIMPLE.get(tuple(bool(part) for part in (first, *others)))) is not None:
        return f"{simple}({value}, {literal(pattern.replace('%', ''))})"
    if not others:
        regex = _part_regex(first)
    else:
        *inner, last = others
        middle = "".join(f"(?>.*?{_part_regex(part)})" for part in inner if part)
        regex = f"{_part_regex(first)}{middle}.*{_part_regex(last)}" if last else f"{_part_regex(first)}{middle}.*+"
    anchored = r"(?s)\A" + regex + r"\z"
    return f"{value} RLIKE {literal(anchored)}"


_SIMPLE: Final = {(True, False): "startswith", (False, True): "endswith", (False, True, False): "contains"}
"""Functions of Spark that need no regular expression, by which parts around % are not empty."""


def _part_regex(part: str) -> str:
    """Return a part of a pattern without % as a regular expression; _ is any character."""
    return "".join("." if one == "_" else rf"\x{{{ord(one):x}}}" if not one.isalnum() else one for one in part)


def _like(node: exp.Expr, write: Write) -> Piece:
    return Piece(
        _like_sql(write(node.this).at(Precedence.ADDED), _pattern(node)), SparkType.BOOLEAN, Precedence.COMPARED
    )


def _ilike(node: exp.Expr, write: Write) -> Piece:
    pattern = "".join(map(_lower, _pattern(node)))
    return Piece(_like_sql(lower(write(node.this).text), pattern), SparkType.BOOLEAN, Precedence.COMPARED)


def _pattern(node: exp.Expr) -> str:
    if not isinstance(node.expression, exp.Literal):
        raise EngineFailed("the pattern of LIKE must be a constant on Spark")
    return str(node.expression.this)


def _lower(one: str) -> str:
    """Return a character in lower case, as `lower` computes it."""
    other = {"İ": "i", "Σ": "σ"}.get(one, one.lower())
    return other if len(other) == 1 else one


def _text_predicate(name: str) -> Handler:
    return lambda node, write: Piece(
        f"{name}({write(node.this).text}, {write(node.expression).text})", SparkType.BOOLEAN
    )


HANDLERS: Final[Mapping[type[exp.Expr], Handler]] = {
    exp.Extract: extract,
    exp.TimestampTrunc: date_trunc,
    exp.DateDiff: date_diff,
    exp.LastDay: lambda node, write: Piece(f"last_day({cast(write(node.this), SparkType.DATE).text})", SparkType.DATE),
    exp.Upper: lambda node, write: Piece(upper(write(node.this).text), SparkType.TEXT),
    exp.Lower: lambda node, write: Piece(lower(write(node.this).text), SparkType.TEXT),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Right: lambda node, write: Piece(
        f"right({write(node.this).text}, {write(node.expression).text})", SparkType.TEXT
    ),
    exp.Length: lambda node, write: _bigint(f"char_length({write(node.this).text})"),
    exp.StrPosition: lambda node, write: _bigint(f"instr({write(node.this).text}, {write(node.args['substr']).text})"),
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.StartsWith: _text_predicate("startswith"),
    exp.EndsWith: _text_predicate("endswith"),
    exp.Contains: _text_predicate("contains"),
}
