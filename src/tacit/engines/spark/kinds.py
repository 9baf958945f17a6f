"""Types of Spark as kinds, and casts that never fail: what cannot be cast is NULL.

A time with a zone becomes UTC; a time without one is taken as UTC.
Not here: bounds, and the years that a program above the engine can hold (`engines.declared`).
"""

from __future__ import annotations

import re
from typing import Final

from tacit.engines.dialects.spark.casts import cast as as_duckdb
from tacit.engines.dialects.spark.pieces import TYPES, Piece, Type
from tacit.privacy.tables import Kind

_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_WHOLE_DIGITS: Final = 18
"""Whole decimals of up to so many digits fit into 64 bits."""

_TYPES: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int"), Type.INT),
    "bigint": Type.BIGINT,
    **dict.fromkeys(("float", "double"), Type.DOUBLE),
    "string": Type.TEXT,
    "boolean": Type.BOOLEAN,
    "date": Type.DATE,
    "timestamp_ntz": Type.TIME,
}
_KINDS: Final = {
    Type.INT: Kind.INTEGER,
    Type.BIGINT: Kind.INTEGER,
    Type.DOUBLE: Kind.REAL,
    Type.TEXT: Kind.TEXT,
    Type.BOOLEAN: Kind.BOOLEAN,
    Type.DATE: Kind.DATE,
    Type.TIME: Kind.TIME,
}


def kind_of(type_name: str) -> Kind | None:
    """Return the kind that fits a type, None if no question can be about it."""
    plain = _plain(type_name)
    if plain == "timestamp":
        return Kind.TIME
    if (decimal := _DECIMAL.fullmatch(plain)) is not None:
        return Kind.INTEGER if int(decimal[2]) == 0 and int(decimal[1]) <= _WHOLE_DIGITS else Kind.REAL
    known = _TYPES.get(plain)
    return None if known is None else _KINDS[known]


def cast(value: str, type_name: str, kind: Kind) -> str:
    """Return SQL for a value of a type as a kind; the type is one that a kind fits."""
    plain, target = _plain(type_name), TYPES[kind]
    if _DECIMAL.fullmatch(plain):
        return f"try_cast(round({value}) AS BIGINT)" if kind is Kind.INTEGER else f"CAST({value} AS {target})"
    if plain == "timestamp":
        moment = f"CAST({value} AS TIMESTAMP_NTZ)"
        return as_duckdb(Piece(moment, Type.TIME), target).text
    type_ = _TYPES[plain]
    if type_ is Type.TEXT and kind is Kind.TIME:  # an offset in the text counts
        return f"CAST(try_cast({value} AS TIMESTAMP_LTZ) AS TIMESTAMP_NTZ)"
    if type_ in (Type.DATE, Type.TIME) and kind not in (Kind.DATE, Kind.TIME, Kind.TEXT):
        return f"CAST(NULL AS {target})"
    return as_duckdb(Piece(f"CAST({value} AS {type_})", type_), target).text


def _plain(type_name: str) -> str:
    """Return a type without what does not matter here: char(3) and texts of any collation are texts."""
    lowered = type_name.lower()
    return "string" if re.match(r"(var)?char\(|string\b", lowered) else lowered
