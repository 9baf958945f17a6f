"""Types of DuckDB as kinds, and casts that never fail: what cannot be cast is NULL.

A time with a zone becomes UTC; a time without one is taken as UTC. Infinite dates and times stay so here.
Not here: bounds, and the years that a program above the engine can hold (`engines.declared`).
"""

from __future__ import annotations

from typing import Final

from tacit.engines.names import literal
from tacit.privacy.tables import Kind

TYPES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIME: "TIMESTAMP",
}
"""The type in which each kind is shown."""

_KINDS: Final = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), Kind.INTEGER),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL", "FLOAT", "DOUBLE"), Kind.REAL),
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), Kind.TEXT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIME),
    "TIMESTAMP WITH TIME ZONE": Kind.TIME,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
}


def kind_of(type_name: str) -> Kind | None:
    """Return the kind that fits a type, None if no question can be about it."""
    if type_name.endswith("]"):
        return None
    return _KINDS.get(type_name.partition("(")[0])


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
    return value if type_name == TYPES[kind] else f"TRY_CAST({value} AS {TYPES[kind]})"


def _moment(value: str, kind: Kind, pattern: str) -> str:
    """Return SQL for a text as a date or time."""
    # A text with an offset is a moment only as a time with a zone; cast to TIMESTAMP, the offset would be dropped.
    usual = f"TRY_CAST(TRY_CAST({value} AS TIMESTAMPTZ) AS {TYPES[kind]})"
    if kind is Kind.DATE:
        usual = f"TRY_CAST({value} AS DATE)"
    if not pattern:
        return usual
    return f"COALESCE(TRY_CAST(TRY_STRPTIME({value}, {literal(pattern)}) AS {TYPES[kind]}), {usual})"
