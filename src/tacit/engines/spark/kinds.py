"""Types of Spark as kinds, and casts that never fail: what cannot be cast is NULL.

A number that is not whole, or does not fit into 64 bits, is NULL as an integer and never rounded. As a text, a number
keeps every digit, NaN is NULL, and -0.0 is 0.0. Texts are compared by their bytes, whatever their collation; invalid
UTF-8 is NULL; CHAR is without its padding. Texts are cut before anything reads them: a text of 60 MB took 20 seconds to
be found not to be an integer, which would show in the time of every answer. `is_exact` says which casts can be used for
units and keys: different values stay different or become NULL, so that no two units become one.

A time with a zone becomes UTC; a time without one is taken as UTC. Bounds, and the range of years, are applied
afterwards (`engines.relations`).
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final

from tacit.engines.dialects.spark.casts import cast as cast_as_duckdb
from tacit.engines.dialects.spark.typed_sql import TYPES, Piece, SparkType
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind

_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_WHOLE_DIGITS: Final = 18
"""Decimals without a fraction of up to this many digits fit into 64 bits."""

_CUT_BYTES: Final = 4 * (TEXT_LENGTH_MAX + 1)
"""A text of more bytes has more characters than are shown."""

_TYPES: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int"), SparkType.INT),
    "bigint": SparkType.BIGINT,
    **dict.fromkeys(("float", "double"), SparkType.DOUBLE),
    "string": SparkType.TEXT,
    "boolean": SparkType.BOOLEAN,
    "date": SparkType.DATE,
    "timestamp_ntz": SparkType.TIME,
}
_KINDS: Final = {
    SparkType.INT: Kind.INTEGER,
    SparkType.BIGINT: Kind.INTEGER,
    SparkType.DOUBLE: Kind.REAL,
    SparkType.TEXT: Kind.TEXT,
    SparkType.BOOLEAN: Kind.BOOLEAN,
    SparkType.DATE: Kind.DATE,
    SparkType.TIME: Kind.TIME,
}


def kind_of(type_name: str) -> Kind | None:
    """Return the kind that fits a type, None if it cannot be queried."""
    plain = _plain(type_name)
    if plain == "timestamp":
        return Kind.TIME
    if (decimal := _DECIMAL.fullmatch(plain)) is not None:
        return Kind.INTEGER if int(decimal[2]) == 0 and int(decimal[1]) <= _WHOLE_DIGITS else Kind.REAL
    known = _TYPES.get(plain)
    return None if known is None else _KINDS[known]


def is_exact(type_name: str, kind: Kind) -> bool:
    """Return whether different values of a type stay different as a kind, or become NULL, and equal ones stay equal.

    Texts that write one whole number in two ways, such as 7 and 007, are the same integer.
    """
    plain = _plain(type_name)
    if plain == "string" and not is_binary(type_name):
        return False
    return ("decimal" if _DECIMAL.fullmatch(plain) else plain) in _EXACT[kind]


def is_binary(type_name: str) -> bool:
    """Return whether texts of a type are equal only if their bytes are, which depends on the collation."""
    _, has_collation, collation = type_name.lower().partition("collate")
    return not has_collation or collation.strip() == "utf8_binary"


_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_EXACT: Final = {
    Kind.BOOLEAN: frozenset({"boolean"}),
    Kind.INTEGER: frozenset({*_WHOLE, "decimal", "float", "double", "string", "boolean"}),
    Kind.REAL: frozenset({"tinyint", "smallint", "int", "float", "double"}),
    Kind.TEXT: frozenset(
        {*_WHOLE, "decimal", "float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz"}
    ),
    Kind.DATE: frozenset({"date"}),
    Kind.TIME: frozenset({"timestamp", "timestamp_ntz"}),
}
_WHOLE_TEXT: Final = r"^\\s*+[+-]?[0-9]++[.]0*+\\s*+\\z"


def cast(value: str, type_name: str, kind: Kind) -> str:
    """Return SQL for a value as a kind; `kind_of` its type is not None."""
    plain, target = _plain(type_name), TYPES[kind]
    if _DECIMAL.fullmatch(plain):
        whole = f"CASE WHEN {value} % 1 = 0 THEN try_cast({value} AS BIGINT) END"  # comparing may round wide decimals
        return whole if kind is Kind.INTEGER else f"CAST({value} AS {target})"
    if plain == "timestamp":
        moment = f"CAST({value} AS TIMESTAMP_NTZ)"
        return cast_as_duckdb(Piece(moment, SparkType.TIME), target).text
    type_ = _TYPES[plain]
    if type_ is SparkType.TEXT:
        value = _cut(f"rtrim({value})" if type_name.lower().startswith("char(") else value, kind)
    if type_ is SparkType.TEXT and kind is Kind.TIME:  # an offset in the text is applied
        return f"CAST(try_cast({value} AS TIMESTAMP_LTZ) AS TIMESTAMP_NTZ)"
    if type_ is SparkType.DATE and kind is Kind.TIME:
        return _date_to_time(value)
    if type_ in (SparkType.DATE, SparkType.TIME) and kind not in (Kind.DATE, Kind.TIME, Kind.TEXT):
        return f"CAST(NULL AS {target})"
    if type_ is SparkType.TEXT:
        read = f"try_validate_utf8(CAST({value} AS STRING))"
        shown = cast_as_duckdb(Piece(read, type_), target).text
        if kind is not Kind.INTEGER:
            return shown
        return f"CASE WHEN NOT {read} RLIKE '[.eE]' OR {read} RLIKE '{_WHOLE_TEXT}' THEN {shown} END"
    held = f"CAST({value} AS {type_})"
    shown = cast_as_duckdb(Piece(held, type_), target).text
    if type_ is SparkType.DOUBLE and kind is Kind.INTEGER:
        return f"CASE WHEN {held} = rint({held}) THEN {shown} END"
    if type_ is SparkType.DOUBLE and kind is Kind.TEXT:
        one = cast_as_duckdb(Piece(f"({held} + 0D)", type_), target).text
        return f"CASE WHEN NOT isnan({held}) THEN {one} END"
    return shown


def _cut(value: str, kind: Kind) -> str:
    """Return a text cut to its first characters; a longer one is NULL as any other kind."""
    beginning = f"substring({value}, 1, {TEXT_LENGTH_MAX + 1})" if kind is Kind.TEXT else "NULL"
    return f"CASE WHEN octet_length({value}) > {_CUT_BYTES} THEN {beginning} ELSE {value} END"


def _date_to_time(value: str) -> str:
    """Return a date as a time; dates beyond the range of times, for which Spark fails, become its ends."""
    first, last = (f"TIMESTAMP_NTZ '{one.isoformat(sep=' ')}'" for one in (datetime.min, datetime.max))
    return (
        f"CASE WHEN {value} < DATE '{date.min}' THEN {first} WHEN {value} > DATE '{date.max}' THEN {last} "
        f"ELSE CAST({value} AS TIMESTAMP_NTZ) END"
    )


def _plain(type_name: str) -> str:
    """Return a type in lower case, with string for char(3), varchar(3) and texts of any collation."""
    lowered = type_name.lower()
    return "string" if re.match(r"(var)?char\(|string\b", lowered) else lowered
