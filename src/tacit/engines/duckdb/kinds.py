"""Types of DuckDB as kinds, and casts that never fail: what cannot be cast is NULL.

A number that is not whole, or does not fit into 64 bits, is NULL as an integer and never rounded. As a text, a number
keeps every digit, NaN is NULL, and -0.0 is 0.0. `is_exact` says which casts can be used for units and keys: different
values stay different or become NULL, so that no two units become one.

A time with a zone becomes UTC; a time without one is taken as UTC. Infinite dates and times stay so here. Texts are
compared by their code points: a collation of the source's column, such as NOCASE, would merge groups and units whose
texts differ, so that one row could move another row's group.

Bounds, and the range of years, are applied afterwards (`engines.relations`).
"""

from __future__ import annotations

from typing import Final

from tacit.engines.quoting import literal
from tacit.engines.relations import TYPES
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind

BINARY: Final = 'COLLATE "C"'
"""Replaces the collation of a text, and of everything computed from it, also when that is stored."""

CUT_BYTES: Final = 4 * (TEXT_LENGTH_MAX + 1)
"""A text of more bytes has more characters than are shown, whatever its characters."""

_SMALL: Final = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
_WIDE: Final = ("UBIGINT", "HUGEINT", "UHUGEINT")
_FLOATS: Final = ("FLOAT", "DOUBLE")
_TIMES: Final = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE")
_KINDS: Final = {
    **dict.fromkeys((*_SMALL, "BIGINT"), Kind.INTEGER),
    **dict.fromkeys((*_WIDE, "DECIMAL", *_FLOATS), Kind.REAL),
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), Kind.TEXT),
    **dict.fromkeys((*_TIMES, "TIMESTAMP_NS"), Kind.TIME),
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
}
_EXACT: Final = {
    Kind.BOOLEAN: frozenset({"BOOLEAN"}),
    Kind.INTEGER: frozenset({*_SMALL, "BIGINT", *_WIDE, "DECIMAL", *_FLOATS, "VARCHAR", "BOOLEAN"}),
    Kind.REAL: frozenset({*_SMALL, *_FLOATS}),
    Kind.TEXT: frozenset(
        {*_KINDS, "BIGNUM", "VARINT", "BLOB", "BIT", "JSON", "TIME", "TIME_NS", "TIME WITH TIME ZONE", "TIMESTAMPTZ_NS"}
    ),
    Kind.DATE: frozenset({"DATE"}),
    Kind.TIME: frozenset({*_TIMES, "DATE"}),
}
_WHOLE: Final = literal(r"\s*[+-]?[0-9]+[.]0*\s*")


def kind_of(type_name: str) -> Kind | None:
    """Return the kind that fits a type, None if it cannot be queried."""
    return _KINDS.get(_base(type_name))


def is_exact(type_name: str, kind: Kind) -> bool:
    """Return whether different values of a type stay different as a kind, or become NULL.

    Texts that write one whole number in two ways, such as 7 and 007, are the same integer.
    """
    return _base(type_name) in _EXACT[kind]


def merge_kinds(one: Kind | None, other: Kind | None) -> Kind | None:
    """Return the kind that can hold both, for files of one source whose types differ."""
    if one is other or other is None:
        return one
    if one is None:
        return other
    if {one, other} == {Kind.INTEGER, Kind.REAL}:
        return Kind.REAL
    return Kind.TIME if {one, other} == {Kind.DATE, Kind.TIME} else Kind.TEXT


def cast(value: str, type_name: str, kind: Kind, pattern: str = "") -> str:
    """Return SQL for a value of a type as a kind; `pattern` is how dates or times are written in texts."""
    if kind in (Kind.DATE, Kind.TIME) and type_name == "VARCHAR":
        return _moment(value, kind, pattern)
    shown = value if type_name == TYPES[kind] else f"TRY_CAST({value} AS {TYPES[kind]})"
    base = _base(type_name)
    if kind is Kind.TEXT:
        if type_name == "VARCHAR":  # bytes are counted without reading them, so a long text is read no further
            beginning = f"substring({value}, 1, {TEXT_LENGTH_MAX + 1})"
            shown = f"CASE WHEN strlen({value}) > {CUT_BYTES} THEN {beginning} ELSE {value} END"
        return f"({_digits(value) if base in _FLOATS else shown}) {BINARY}"
    if kind is Kind.INTEGER and base in (*_FLOATS, "DECIMAL"):
        return f"CASE WHEN {value} = trunc({value}) THEN {shown} END"
    if kind is Kind.INTEGER and base == "VARCHAR":  # DuckDB rounds texts too
        rare = " OR ".join(f"contains({value}, '{sign}')" for sign in ".eE")
        return f"CASE WHEN NOT ({rare}) OR regexp_full_match({value}, {_WHOLE}) THEN {shown} END"
    return shown


def _base(type_name: str) -> str:
    """Return the name of a type without its parameters; a list type is returned whole, and is not a known name."""
    return type_name if type_name.endswith("]") else type_name.partition("(")[0]


def _digits(value: str) -> str:
    """Return SQL for a float as a text from which it can be read back; -0.0 is 0.0, NaN is NULL."""
    return f"CASE WHEN NOT isnan({value}) THEN CAST({value} + 0 AS VARCHAR) END"


def _moment(value: str, kind: Kind, pattern: str) -> str:
    """Return SQL for a text as a date or time."""
    # A text with an offset is a moment only as a time with a zone; cast to TIMESTAMP, the offset would be dropped.
    usual = f"TRY_CAST(TRY_CAST({value} AS TIMESTAMPTZ) AS {TYPES[kind]})"
    if kind is Kind.DATE:
        usual = f"TRY_CAST({value} AS DATE)"
    if not pattern:
        return usual
    return f"COALESCE(TRY_CAST(TRY_STRPTIME({value}, {literal(pattern)}) AS {TYPES[kind]}), {usual})"
