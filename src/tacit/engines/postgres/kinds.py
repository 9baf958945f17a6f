"""Types of PostgreSQL as kinds, and casts that never fail: what cannot be cast is NULL.

A number that is not whole, or does not fit into 64 bits, is NULL as an integer and never rounded. As a text, a number
keeps every digit, NaN is NULL, and -0.0 is 0.0. Texts are in the order of their bytes, and equal if their bytes are,
whatever collation they have in the database. `is_exact` says which casts can be used for units and keys: different
values stay different or become NULL, so that no two units become one.

A time with a zone becomes UTC; a time without one is taken as UTC. Dates and times outside of the years 1 to 9999 are
infinite here, and are moved to their bounds afterwards (`engines.relations`).

A value may have a gigabyte. It is cut before anything is done with it (`bounded`): matching a pattern against 300 MB
fails for want of memory, and any other function takes seconds, so that one row would show in every answer.
"""

from __future__ import annotations

import re
from typing import Final

from tacit.engines.dialects.postgres.casts import cast as written_cast
from tacit.engines.dialects.postgres.casts import try_cast
from tacit.engines.dialects.postgres.typed_sql import PostgresType, Value, let
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind

TYPES: Final = {
    Kind.BOOLEAN: PostgresType.BOOLEAN,
    Kind.INTEGER: PostgresType.INTEGER,
    Kind.REAL: PostgresType.REAL,
    Kind.TEXT: PostgresType.TEXT,
    Kind.DATE: PostgresType.DATE,
    Kind.TIME: PostgresType.TIME,
}
"""The type in which each kind is shown."""

DIGITS_MAX: Final = 18
"""Numbers of this many digits fit into 64 bits."""

DOUBLE_DIGITS_MAX: Final = 300
"""Numbers of this many digits, before and after the point, neither overflow nor underflow a double."""

STORED_MAX: Final = 65_536
PACKED_MAX: Final = 512
"""The largest stored sizes, in bytes, of values that are shown as texts and cannot be cut first; larger ones are NULL.
The second is for values that the database has compressed, which may be 255 times as large (LZ4)."""

ODD_MAX: Final = 1024
"""The same for types whose text may be far larger than the stored value, such as an array of NULLs; compressed values
of these are NULL."""

NUMERIC_DIGITS_MAX: Final = 1000
"""How many digits before and after the point a number of arbitrary precision may have as a text; others are NULL. For a
double it is first rounded to this many after the point, since the conversion goes through its text."""

_CUT_BYTES: Final = 4 * (TEXT_LENGTH_MAX + 1)
"""A text of more bytes has more characters than are shown."""

_STATED: Final = re.compile(r"numeric\((\d+),(\d+)\)")
_KINDS: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    **dict.fromkeys(("numeric", "float4", "float8"), Kind.REAL),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "citext"), Kind.TEXT),
    **dict.fromkeys(("timestamp", "timestamptz"), Kind.TIME),
    "bool": Kind.BOOLEAN,
    "date": Kind.DATE,
}
_INTEGER_ENDS: Final = "-9223372036854775808.5", "9223372036854775807.5"
_REAL_ENDS: Final = str(2**1024 - 2**970), "2.4703282292062327208e-324"


def kind_of(type_name: str, modifier: int, *, is_enum: bool) -> Kind | None:
    """Return the kind that fits a type, None if it cannot be queried."""
    if is_enum:
        return Kind.TEXT
    if type_name == "numeric" and modifier >= 4:
        digits, after = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
        if after == 0 and digits <= DIGITS_MAX:
            return Kind.INTEGER
    return _KINDS.get(type_name)


def is_exact(type_name: str, found: Kind | None, kind: Kind) -> bool:
    """Return whether different values of a type stay different as a kind, or become NULL, and equal ones stay equal.

    `found` is the kind that fits the type; an enum is a type of its own name. Texts that write one whole number in two
    ways, such as 7 and 007, are the same integer.
    """
    if found is Kind.TEXT and type_name not in _KINDS:  # an enum
        return kind is Kind.TEXT
    return type_name in _EXACT[kind]


_WHOLE: Final = ("int2", "int4", "int8")
_TEXTS: Final = ("text", "varchar", "bpchar", "name", "uuid")
_EXACT: Final = {
    Kind.BOOLEAN: frozenset({"bool"}),
    Kind.INTEGER: frozenset({*_WHOLE, "numeric", "float4", "float8", *_TEXTS, "bool"}),
    Kind.REAL: frozenset({"int2", "int4", "float4", "float8"}),
    Kind.TEXT: frozenset(
        {
            *(*_TEXTS, *_WHOLE, "numeric", "float4", "float8", "bool", "date", "timestamp", "timestamptz", "bytea"),
            *("time", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "money", "oid", "char"),
        }
    ),
    Kind.DATE: frozenset({"date"}),
    Kind.TIME: frozenset({"timestamp", "timestamptz"}),
}


def cast(column: str, type_name: str, kind: Kind, shown: str = "") -> str:
    """Return SQL for a column of a type as a kind; `shown` is the type in full, such as numeric(15,2)."""
    digits = _STATED.fullmatch(shown)
    if kind is Kind.REAL and digits is not None and max(map(int, digits.groups())) <= DOUBLE_DIGITS_MAX:
        return f"{column}::float8"  # it fits; NaN becomes NULL as a declared value
    if type_name in _BY_TYPE:
        return _BY_TYPE[type_name](column, kind)
    read = bounded(column, type_name)
    if kind is Kind.TEXT:
        return f'(({read})::text COLLATE "C")'
    return let(lambda value: _text(value.sql, kind), Value(f"({read})::text", PostgresType.TEXT))


def bounded(column: str, type_name: str) -> str:
    """Return SQL for a value, its beginning or NULL, in little time whatever its size.

    PostgreSQL tells the size of a text without reading it, and reads no more of it than its beginning.
    """
    if type_name in _BY_TYPE or type_name in _SMALL:
        return column
    if type_name in ("text", "varchar", "bpchar", "citext"):
        size, value = f"octet_length({column}::text)", f"{column}::text"
        return f"CASE WHEN {size} > {_CUT_BYTES} THEN substr({value}, 1, {TEXT_LENGTH_MAX + 1}) ELSE {value} END"
    if type_name == "bytea":
        return (
            f"CASE WHEN octet_length({column}) > {_CUT_BYTES} THEN substr({column}, 1, {_CUT_BYTES}) ELSE {column} END"
        )
    stored, packed = (STORED_MAX, PACKED_MAX) if type_name in _WRITTEN_AS_STORED else (ODD_MAX, -1)
    most = f"CASE WHEN pg_column_compression({column}) IS NULL THEN {stored} ELSE {packed} END"
    return f"CASE WHEN pg_column_size({column}) <= {most} THEN {column} END"


def is_small(type_name: str, shown: str) -> bool:
    """Return whether all values of a type are small, so that reading one several times takes little time."""
    if type_name == "numeric":
        return _STATED.fullmatch(shown) is not None
    return type_name in _BY_TYPE or type_name in _SMALL


_WRITTEN_AS_STORED: Final = frozenset(("json", "jsonb", "xml", "bit", "varbit", "tsvector"))
"""Types whose text has about as many characters as the stored value has bytes or bits."""

_SMALL: Final = frozenset(
    ("name", "uuid", "time", "timetz", "interval", "inet", "cidr", "macaddr", "macaddr8", "money", "oid", "char")
)
"""Other types all of whose values are small."""


def _null(kind: Kind) -> str:
    return written_cast(Value("NULL", PostgresType.UNKNOWN), TYPES[kind]).sql


def _plain(type_: PostgresType, sql: str, kind: Kind) -> str:
    """Return SQL for a value of one of the types of `TYPES` as a kind."""
    value = Value(sql, type_, is_cheap=True)
    if kind is Kind.TEXT:
        return f'({written_cast(value, PostgresType.TEXT).sql} COLLATE "C")'
    possible = {type_, *_POSSIBLE.get(type_, ())}
    return try_cast(value, TYPES[kind]).sql if TYPES[kind] in possible else _null(kind)


_POSSIBLE: Final = {
    PostgresType.INTEGER: (PostgresType.REAL, PostgresType.BOOLEAN),
    PostgresType.REAL: (PostgresType.INTEGER,),
    PostgresType.BOOLEAN: (PostgresType.INTEGER,),
    PostgresType.DATE: (PostgresType.TIME,),
    PostgresType.TIME: (PostgresType.DATE,),
    PostgresType.TEXT: tuple(PostgresType),
}


def _text(column: str, kind: Kind) -> str:
    shown = f'({column}::text COLLATE "C")'
    if kind is Kind.INTEGER:  # texts of numbers that are not whole are NULL
        read = _plain(PostgresType.TEXT, shown, kind)
        return f"CASE WHEN {shown} !~ '[.eE]' OR {shown} ~ '^\\s*[+-]?[0-9]+[.]0*\\s*$' THEN {read} END"
    return _text_moment(shown) if kind is Kind.TIME else _plain(PostgresType.TEXT, shown, kind)


def _integer(column: str, kind: Kind) -> str:
    return _plain(PostgresType.INTEGER, f"{column}::bigint", kind)


def _real(column: str, kind: Kind) -> str:
    if kind is Kind.BOOLEAN:
        return f"({column} <> 0)"
    shown = _plain(PostgresType.REAL, f"{column}::float8", kind)
    if kind is Kind.INTEGER:
        return f"CASE WHEN {column} = trunc({column}::float8) THEN {shown} END"
    if kind is Kind.TEXT:  # -0.0 is 0.0, NaN is NULL
        one = _plain(PostgresType.REAL, f"({column}::float8 + 0)", kind)
        return f"CASE WHEN {column} <> 'NaN' THEN {one} END"
    return shown


def _boolean(column: str, kind: Kind) -> str:
    return f"{column}::int::float8" if kind is Kind.REAL else _plain(PostgresType.BOOLEAN, column, kind)


def _numeric(column: str, kind: Kind) -> str:
    if kind is Kind.INTEGER:
        low, high = _INTEGER_ENDS
        inside = f"{column} > {low} AND {column} < {high}"  # NaN is greater than any number
        return f"CASE WHEN {inside} THEN CASE WHEN {column} = trunc({column}) THEN {column}::bigint END END"
    if kind is Kind.REAL:
        most, least = _REAL_ENDS
        return (
            f"CASE WHEN {column} = 'NaN' THEN NULL WHEN abs({column}) >= {most} THEN sign({column})::float8 * "
            f"'Infinity'::float8 WHEN abs({column}) <= {least} THEN 0 WHEN scale({column}) <= {NUMERIC_DIGITS_MAX} "
            f"THEN {column}::float8 ELSE round({column}, {NUMERIC_DIGITS_MAX})::float8 END"
        )
    if kind is Kind.TEXT:  # 1.50 and 1.5 are equal
        inside = f"abs({column}) < 1e{NUMERIC_DIGITS_MAX} AND scale(trim_scale({column})) <= {NUMERIC_DIGITS_MAX}"
        return f"(CASE WHEN {column} <> 'NaN' AND {inside} THEN trim_scale({column})::text END COLLATE \"C\")"
    return f"({column} <> 0)" if kind is Kind.BOOLEAN else _text(column, kind)


def _date(column: str, kind: Kind) -> str:
    if kind is Kind.TIME:  # a date can lie further out than any time
        return (
            f"CASE WHEN {column} < '0001-01-01'::date THEN '-infinity'::timestamp "
            f"WHEN {column} > '9999-12-31'::date THEN 'infinity'::timestamp ELSE {column}::timestamp END"
        )
    return column if kind is Kind.DATE else _plain(PostgresType.DATE, column, kind)


def _time(column: str, kind: Kind) -> str:
    return column if kind is Kind.TIME else _plain(PostgresType.TIME, column, kind)


def _zoned(column: str, kind: Kind) -> str:
    return _time(f"timezone('UTC', {column})", kind)


def _text_moment(column: str) -> str:
    """Return SQL for a text as a time in UTC; a written offset is applied.

    The offset is searched in texts that are times, which are short: the search captures, and takes time with the square
    of the length.
    """
    read = try_cast(Value(column, PostgresType.TEXT, is_cheap=True), PostgresType.TIME)
    offset = Value(f"regexp_match({column}, '[0-9] *([+-])([0-9]{{2}}):?([0-9]{{2}})? *$')", PostgresType.UNKNOWN)
    shift = let(
        lambda part: (
            f"CASE WHEN {part.sql} IS NULL THEN interval '0' ELSE make_interval(hours => ({part.sql})[2]::int, "
            f"mins => coalesce(({part.sql})[3], '0')::int) * CASE WHEN ({part.sql})[1] = '-' THEN -1 ELSE 1 END END"
        ),
        offset,
    )
    return let(
        lambda moment: (
            f"CASE WHEN {moment.sql} IS NOT NULL AND {column} LIKE '%:%' THEN {moment.sql} - {shift} "
            f"ELSE {moment.sql} END"
        ),
        read,
    )


_BY_TYPE: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), _integer),
    **dict.fromkeys(("float4", "float8"), _real),
    "bool": _boolean,
    "numeric": _numeric,
    "date": _date,
    "timestamp": _time,
    "timestamptz": _zoned,
}
