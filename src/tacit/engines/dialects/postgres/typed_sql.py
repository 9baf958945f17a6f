"""Values in PostgreSQL's SQL, with their type and range; names, constants and parameters.

The range decides which guards can be left out: doubles that overflow or underflow are errors in PostgreSQL, so an
operation is written without guards only where its result can do neither.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from tacit.engines.quoting import quoted
from tacit.privacy.errors import EngineFailed

INT8_MAX: Final = 2**63 - 1
_MARK: Final = "\0"
"""A character that no statement holds."""


class PostgresType(Enum):
    """The type of a value."""

    BOOLEAN = auto()
    INTEGER = auto()
    """bigint"""
    WHOLE = auto()
    """numeric with whole numbers only: DuckDB's HUGEINT"""
    REAL = auto()
    TEXT = auto()
    DATE = auto()
    TIME = auto()
    UNKNOWN = auto()
    """NULL, and values of unknown type"""

    @property
    def is_whole(self) -> bool:
        """Whether values of the type are whole numbers."""
        return self in (PostgresType.INTEGER, PostgresType.WHOLE)


NAMES: Final = {
    PostgresType.BOOLEAN: "boolean",
    PostgresType.INTEGER: "bigint",
    PostgresType.WHOLE: "numeric",
    PostgresType.REAL: "float8",
    PostgresType.TEXT: "text",
    PostgresType.DATE: "date",
    PostgresType.TIME: "timestamp",
}
"""The name of each type in PostgreSQL."""


@dataclass(frozen=True, slots=True)
class Value:
    """SQL with its type; for reals also their interval, and the least magnitude of those that are not zero."""

    sql: str
    type: PostgresType
    low: float = -math.inf
    high: float = math.inf
    least: float = 0.0
    known: str | int | float | None = None
    """The value itself, if it is a constant."""
    is_cheap: bool = False
    """Whether it can be written several times at no cost: names and constants."""
    is_movable: bool = True
    """Whether it can be moved into a subquery; aggregates and windows belong to their SELECT."""

    @property
    def most(self) -> float:
        """The greatest magnitude."""
        return max(abs(self.low), abs(self.high))

    def renamed(self, sql: str) -> Value:
        """Return the same value under a name."""
        return replace(self, sql=sql, is_cheap=True)

    def derived(self, sql: str, type_: PostgresType | None = None) -> Value:
        """Return a value that is computed from this one alone, with unknown range."""
        return Value(sql, type_ or self.type, is_movable=self.is_movable)


def integer(number: int) -> Value:
    """Return an integer constant."""
    type_ = PostgresType.INTEGER if -INT8_MAX <= number <= INT8_MAX else PostgresType.WHOLE
    sql = str(number) if number >= 0 else f"({number})"
    if number == -INT8_MAX - 1:
        type_, sql = PostgresType.INTEGER, f"CAST('{number}' AS bigint)"
    return Value(sql, type_, known=number, is_cheap=True)


def real(number: float) -> Value:
    """Return a constant double."""
    text = "NaN" if math.isnan(number) else "Infinity" if number == math.inf else "-Infinity"
    if math.isfinite(number):
        text = repr(number).removesuffix(".0")
    low = -math.inf if math.isnan(number) else number
    high = math.inf if math.isnan(number) else number
    return Value(f"'{text}'::float8", PostgresType.REAL, low, high, abs(number), number, is_cheap=True)


def text(value: str) -> Value:
    """Return a constant text."""
    if _MARK in value:
        raise EngineFailed("PostgreSQL texts cannot contain NUL; remove it from the query")
    return Value("'" + value.replace("'", "''") + "'", PostgresType.TEXT, known=value, is_cheap=True)


def as_bigint(value: Value) -> Value:
    """Return a whole number as bigint; PostgreSQL reads small constants as int, -2^31 among them."""
    if value.type is PostgresType.INTEGER and isinstance(value.known, int):
        return replace(value, sql=f"{value.sql}::bigint")
    return value


def as_real(value: Value) -> Value:
    """Return a number as a double."""
    if value.type is PostgresType.REAL:
        return value
    if isinstance(value.known, int):
        return real(float(value.known))
    if value.type is PostgresType.WHOLE:
        return _huge(value)
    size = 2.0**63 if value.type is PostgresType.INTEGER else math.inf
    return Value(f"{value.sql}::float8", PostgresType.REAL, -size, size, 1.0, None, value.is_cheap, value.is_movable)


def _huge(value: Value) -> Value:
    """Return a WHOLE as a double, rounded as DuckDB does: in two 64-bit halves where it exceeds 64 bits."""

    def body(one: Value) -> str:
        n, part = one.sql, "18446744073709551616"
        return (
            f"CASE WHEN {n} >= 0 AND {n} < {part} THEN ({n})::float8 "
            f"WHEN {n} < 0 AND {n} >= -{part} THEN -((-{n} - 1)::float8) - 1 "
            f"ELSE ({n} - floor({n} / {part}) * {part})::float8 + floor({n} / {part})::float8 * {part}::float8 END"
        )

    return Value(let(body, value), PostgresType.REAL, -1e60, 1e60, 1.0, is_movable=value.is_movable)


def let(body: Callable[..., str], *values: Value) -> str:
    """Return SQL that uses values several times and computes each of them once."""
    if all(value.is_cheap for value in values) or not all(value.is_movable for value in values):
        return body(*(value if value.is_cheap else value.renamed(f"({value.sql})") for value in values))
    depth = _DEPTH.get()
    alias = f"let{depth}" if depth else "let"
    items, named = [], []
    for letter, value in zip("abcd", values, strict=False):
        if not value.is_cheap:
            items.append(f"{value.sql} AS {letter}_")
        named.append(value if value.is_cheap else value.renamed(f"{alias}.{letter}_"))
    token = _DEPTH.set(depth + 1)
    try:
        written = body(*named)
    finally:
        _DEPTH.reset(token)
    return f"(SELECT {written} FROM (SELECT {', '.join(items)} OFFSET 0) AS {alias})"


_DEPTH: Final[ContextVar[int]] = ContextVar("depth", default=0)
"""The nesting depth of `let`: each level has names of its own, and equal values give equal SQL."""


def computed(sql: str, type_: PostgresType, *values: Value) -> Value:
    """Return a value of unknown range that is computed from others."""
    return Value(sql, type_, is_movable=all(value.is_movable for value in values))


def parameter(name: str) -> str:
    """Return a parameter, as it is written until `finish_statement`."""
    return f"{_MARK}({name})s"


def finish_statement(sql: str) -> str:
    """Return a statement in psycopg's notation: parameters begin with %, and % itself is doubled."""
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
"""Keywords of PostgreSQL."""


def identifier(name: str) -> str:
    """Return an identifier, in quotes unless it is plain lower case and not a keyword."""
    return name if _PLAIN.fullmatch(name) and name not in _RESERVED else quoted(name)
