"""A value as PostgreSQL is to compute it: its SQL, its type, and what is known of its size.

What is known decides which guards can be left out: doubles that overflow or underflow are errors in PostgreSQL, so an
operation is written plainly only where its result cannot pass the ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from tacit.engines.quoting import quoted
from tacit.privacy.errors import EngineFailed

INT4_MAX: Final = 2**31 - 1
INT8_MAX: Final = 2**63 - 1
_MARK: Final = "\0"
"""What no statement holds."""


class Type(Enum):
    """What PostgreSQL holds a value as."""

    BOOLEAN = auto()
    INTEGER = auto()
    """bigint"""
    WHOLE = auto()
    """numeric that holds whole numbers: DuckDB's HUGEINT"""
    REAL = auto()
    TEXT = auto()
    DATE = auto()
    TIME = auto()
    UNKNOWN = auto()
    """NULL, and what is not known"""

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers."""
        return self in (Type.INTEGER, Type.WHOLE)


NAMES: Final = {
    Type.BOOLEAN: "boolean",
    Type.INTEGER: "bigint",
    Type.WHOLE: "numeric",
    Type.REAL: "float8",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIME: "timestamp",
}
"""How PostgreSQL calls each type."""


@dataclass(frozen=True, slots=True)
class Value:
    """SQL with its type; for reals the interval in which they lie, and the least size of those that are not zero."""

    sql: str
    type: Type
    low: float = -math.inf
    high: float = math.inf
    least: float = 0.0
    known: str | int | float | None = None
    """The value itself, where it is written in the statement."""
    is_plain: bool = False
    """Whether it costs nothing to compute it again."""
    is_apart: bool = True
    """Whether it can be moved into a subquery: not so for aggregates and windows, which belong to their SELECT."""

    @property
    def most(self) -> float:
        """The greatest size."""
        return max(abs(self.low), abs(self.high))

    def named(self, sql: str) -> Value:
        """Return the same value under another name."""
        return replace(self, sql=sql, is_plain=True)

    def made(self, sql: str, type_: Type | None = None) -> Value:
        """Return what is computed of this value alone, about whose size nothing is known."""
        return Value(sql, type_ or self.type, is_apart=self.is_apart)


def integer(number: int) -> Value:
    """Return a whole number."""
    type_ = Type.INTEGER if -INT8_MAX <= number <= INT8_MAX else Type.WHOLE
    sql = str(number) if number >= 0 else f"({number})"
    if number == -INT8_MAX - 1:
        type_, sql = Type.INTEGER, f"CAST('{number}' AS bigint)"
    return Value(sql, type_, known=number, is_plain=True)


def real(number: float) -> Value:
    """Return a double."""
    text = "NaN" if math.isnan(number) else "Infinity" if number == math.inf else "-Infinity"
    if math.isfinite(number):
        text = repr(number).removesuffix(".0")
    low = -math.inf if math.isnan(number) else number
    high = math.inf if math.isnan(number) else number
    return Value(f"'{text}'::float8", Type.REAL, low, high, abs(number), number, is_plain=True)


def text(value: str) -> Value:
    """Return a text."""
    if _MARK in value:
        raise EngineFailed("PostgreSQL holds no text with the character NUL; leave it out of the question")
    return Value("'" + value.replace("'", "''") + "'", Type.TEXT, known=value, is_plain=True)


def wide(value: Value) -> Value:
    """Return a whole number as 64 bits, which a small one that is written out would not be."""
    if value.type is Type.INTEGER and isinstance(value.known, int) and abs(value.known) <= INT4_MAX:
        return replace(value, sql=f"{value.sql}::bigint")
    return value


def as_real(value: Value) -> Value:
    """Return a number as a double."""
    if value.type is Type.REAL:
        return value
    if isinstance(value.known, int):
        return real(float(value.known))
    if value.type is Type.WHOLE:
        return _huge(value)
    size = 2.0**63 if value.type is Type.INTEGER else math.inf
    return Value(f"{value.sql}::float8", Type.REAL, -size, size, 1.0, None, value.is_plain, value.is_apart)


def _huge(value: Value) -> Value:
    """Return a sum as a double, rounded as DuckDB does it: half by half where it passes 64 bits."""

    def body(one: Value) -> str:
        n, part = one.sql, "18446744073709551616"
        return (
            f"CASE WHEN {n} >= 0 AND {n} < {part} THEN ({n})::float8 "
            f"WHEN {n} < 0 AND {n} >= -{part} THEN -((-{n} - 1)::float8) - 1 "
            f"ELSE ({n} - floor({n} / {part}) * {part})::float8 + floor({n} / {part})::float8 * {part}::float8 END"
        )

    return Value(let(body, value), Type.REAL, -1e60, 1e60, 1.0, is_apart=value.is_apart)


def let(body: Callable[..., str], *values: Value) -> str:
    """Return SQL that uses values several times and computes each of them once."""
    if all(value.is_plain for value in values) or not all(value.is_apart for value in values):
        return body(*(value if value.is_plain else value.named(f"({value.sql})") for value in values))
    depth = _DEPTH.get()
    alias = f"let{depth}" if depth else "let"
    items, named = [], []
    for letter, value in zip("abcd", values, strict=False):
        if not value.is_plain:
            items.append(f"{value.sql} AS {letter}_")
        named.append(value if value.is_plain else value.named(f"{alias}.{letter}_"))
    token = _DEPTH.set(depth + 1)
    try:
        written = body(*named)
    finally:
        _DEPTH.reset(token)
    return f"(SELECT {written} FROM (SELECT {', '.join(items)} OFFSET 0) AS {alias})"


_DEPTH: Final[ContextVar[int]] = ContextVar("depth", default=0)
"""How many `let` are around what is written now: the names of each are its own, and the same for equal values."""


def are_apart(values: Sequence[Value]) -> bool:
    """Whether all values can be moved into a subquery."""
    return all(value.is_apart for value in values)


def parameter(name: str) -> str:
    """Return a parameter, as it stands until the statement is finished."""
    return f"{_MARK}({name})s"


def finished(sql: str) -> str:
    """Return a statement as psycopg reads it: parameters begin with %, and % itself is doubled."""
    return sql.replace("%", "%%").replace(_MARK, "%")


_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_RESERVED: Final = frozenset(
    " ".join(
        (
            "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean",
            "both case cast char character check coalesce collate collation column concurrently constraint create",
            "cross current_catalog current_date current_role current_schema current_time current_timestamp",
            "current_user day dec decimal default deferrable desc distinct do else end except exists extract",
            "false fetch filter float for foreign freeze from full grant greatest group grouping having hour",
            "ilike in initially inner inout int integer intersect interval into is isnull join json lateral",
            "leading least left let like limit localtime localtimestamp minute month national natural nchar none",
            "normalize not notnull null nullif numeric offset on only or order out outer over overlaps overlay",
            "partition placing position precision primary range real references returning right row rows second",
            "select session_user setof similar smallint some substring symmetric system_user table tablesample",
            "then time timestamp to trailing treat trim true union unique user using values varchar variadic",
            "verbose when where window with within year",
        )
    ).split()
)
"""Words that PostgreSQL would read as its own."""


def identifier(name: str) -> str:
    """Return a name, in quotes where PostgreSQL could read it otherwise."""
    return name if _PLAIN.fullmatch(name) and name not in _RESERVED else quoted(name)
