"""Types of DuckDB as kinds, and casts that never fail: what cannot be cast is NULL.

A number that is not whole, or does not fit into 64 bits, is no integer: it is NULL and never rounded. As a text, a
number keeps every digit, NaN is NULL, and the two zeros are one. `is_exact` says which casts can be used for units and
keys: different values stay different or become NULL, so that no two people become one.

A time with a zone becomes UTC; a time without one is taken as UTC. Infinite dates and times stay so here. Texts are
compared by their code points: a collation of the source's column, such as NOCASE, would merge groups and units whose
texts differ, so that one row could move another row's group.
Not here: bounds, and the years that a program above the engine can hold (`engines.relations`).
"""

from __future__ import annotations

from typing import Final

from tacit.engines.quoting import literal
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind

TYPES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIME: "TIMESTAMP",
}
"""The type in which each kind is shown."""

BINARY: Final = 'COLLATE "C"'
"""Takes any other collation off a text; it stays off in what is made of the text, also when that is stored."""

CUT_BYTES: Final = 4 * (TEXT_LENGTH_MAX + 1)
"""A text of more bytes has more characters than are shown."""

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
    """Return the kind that fits a type, None if no question can be about it."""
    return _KINDS.get(_base(type_name))


def is_exact(type_name: str, kind: Kind) -> bool:
    """Return whether values of a type that differ are different as a kind, or NULL.

    Texts that write one whole number in two ways, such as 7 and 007, are the same integer.
    """
    return _base(type_name) in _EXACT[kind]


def merged(one: Kind | None, other: Kind | None) -> Kind | None:
    """Return the kind that can hold both, for files of one source that differ."""
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
    """Return the name of a type without its parameters; that of a list is none that is known."""
    return type_name if type_name.endswith("]") else type_name.partition("(")[0]


def _digits(value: str) -> str:
    """Return SQL for a float as a text from which it can be read back; of the two zeros one, and no NaN."""
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
