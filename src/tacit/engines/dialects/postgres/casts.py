"""Casts that never fail: what DuckDB's TRY_CAST cannot cast is NULL, and what it can cast has the same value.

A text is matched against a pattern before PostgreSQL converts it. Two differences from DuckDB: texts of more than 1,000
characters (64 for dates and times), and times with the name of a zone other than UTC, are NULL. Dates outside of the
years 1 to 9999 are infinite, and are clamped or left out where they are used.

Patterns have no back references and capture nothing: PostgreSQL would match every part of a text anew to find where it
begins, which takes 100 microseconds for 10 characters, and time with the square of the length. Instead the parts of a
text that matched are cut out by position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tacit.engines.dialects.postgres import functions
from tacit.engines.dialects.postgres.reals import INFINITY
from tacit.engines.dialects.postgres.typed_sql import NAMES, PostgresType, Value, as_real, integer, let, real, text
from tacit.privacy.errors import EngineFailed
from tacit.privacy.tables import MOMENT_LENGTH_MAX

LENGTH_MAX: Final = 1_000
_BLANKS: Final = r"E' \t\n\v\f\r'"
_SPACE: Final = r"[ \t\n\v\f\r]*"
_DIGITS: Final = "[0-9]+(_[0-9]+)*"
_MANTISSA: Final = rf"[+-]?({_DIGITS}(\.({_DIGITS})?)?|\.{_DIGITS})"
_SHORT: Final = rf"^{_SPACE}{_MANTISSA}([eE][+-]?0*[0-9]{{1,3}}(_[0-9])?)?{_SPACE}$"
_LONG: Final = rf"^{_SPACE}{_MANTISSA}([eE][+-]?[0-9]{{1,9}}(_[0-9]{{1,3}})?)?{_SPACE}$"
_HEXADECIMAL: Final = f"^{_SPACE}0[xX][0-9a-fA-F]{{1,15}}{_SPACE}$"
_BINARY: Final = f"^{_SPACE}0[bB][01]{{1,62}}{_SPACE}$"
_DAY: Final = "|".join(rf"-?[0-9]{{1,7}}{sign}[0-9]{{1,2}}{sign}[0-9]{{1,2}}" for sign in ("-", "/", " ", r"\\"))
_CLOCK: Final = r"[T ] *[0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]*)?)?"
_ZONE: Final = "(?: *Z| *[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?| *UTC)?"
_WORD: Final = "[eE][pP][oO][cC][hH]|-?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"
_MOMENT: Final = rf"^(?:(?:{_DAY})(?: ?\(BC\))?(?:{_CLOCK}{_ZONE} *)?|{_WORD})$"
_GREATEST: Final = str(2**1024 - 2**970)
_LEAST: Final = "2.4703282292062327209e-324"
"""Half of the least double, 2^-1075, rounded up: PostgreSQL fails for a text that would be rounded to 0."""


def cast(a: Value, to: PostgresType) -> Value:
    """Return a cast whose value is known to be convertible by the builder of the tree."""
    if a.type is to:
        return a
    if a.type is PostgresType.UNKNOWN:
        return Value(f"CAST({a.sql} AS {NAMES[to]})", to, is_movable=a.is_movable)
    if a.type is PostgresType.TEXT:
        return constant(str(a.known), to) if isinstance(a.known, str) else try_cast(a, to)
    made = _CASTS.get((a.type, to))
    return a.derived(f"{a.sql}::{NAMES[to]}", to) if made is None else made(a)


def constant(known: str, to: PostgresType) -> Value:
    """Return a constant that the statement writes as a text."""
    if to is PostgresType.REAL:
        return real(float(known))
    if to is PostgresType.INTEGER:
        return integer(int(known))
    if to is PostgresType.DATE:
        return functions.date(known)
    return functions.time(known) if to is PostgresType.TIME else text(known)


def try_cast(a: Value, to: PostgresType) -> Value:
    """Return a cast that gives NULL where it fails."""
    if a.type in (PostgresType.TEXT, PostgresType.DATE, PostgresType.TIME) and to is PostgresType.WHOLE:
        raise EngineFailed("only numbers can be cast to HUGEINT on PostgreSQL")
    if a.type is PostgresType.TEXT:
        return a.derived(let(_FROM_TEXT[to], a), to)
    if a.type is PostgresType.REAL and to is PostgresType.INTEGER:
        if a.most < 2.0**63:
            return a.derived(f"{a.sql}::bigint", to)
        low, high = real(-(2.0**63)).sql, real(2.0**63).sql
        return a.derived(
            let(lambda x: f"CASE WHEN {x.sql} >= {low} AND {x.sql} < {high} THEN {x.sql}::bigint END", a), to
        )
    return cast(a, to)


def _integer(x: Value) -> str:
    low, high, bare = "-9223372036854775808.5", "9223372036854775807.5", f"btrim({x.sql}, {_BLANKS})"
    number = Value(f"replace({bare}, '_', '')::numeric", PostgresType.WHOLE)
    inner = let(lambda n: f"CASE WHEN {n.sql} > {low} AND {n.sql} < {high} THEN round({n.sql})::bigint END", number)
    return (
        f"CASE WHEN {_fits(x, _SHORT)} THEN {inner} "
        f"WHEN {_fits(x, _HEXADECIMAL)} THEN ('x' || lpad(substr({bare}, 3), 16, '0'))::bit(64)::bigint "
        f"WHEN {_fits(x, _BINARY)} THEN lpad(substr({bare}, 3), 64, '0')::bit(64)::bigint END"
    )


def _real(x: Value) -> str:
    bare = f"replace(btrim({x.sql}, {_BLANKS}), '_', '')"
    parts = Value(f"regexp_split_to_array({bare}, '[eE]')", PostgresType.UNKNOWN)

    def body(part: Value) -> str:
        mantissa, power = f"({part.sql})[1]", f"coalesce(({part.sql})[2], '0')::bigint"
        zero = f"{mantissa} !~ '[1-9]'"
        sign = f"CASE WHEN {mantissa} LIKE '-%' THEN -1::float8 ELSE 1::float8 END"
        written = Value(f"({mantissa} || 'e' || {power})", PostgresType.TEXT)
        number = let(
            lambda t: (
                f"CASE WHEN abs({t.sql}::numeric) >= {_GREATEST} THEN ({sign}) * {INFINITY} "
                f"WHEN abs({t.sql}::numeric) <= {_LEAST} THEN ({sign}) * 0 ELSE {t.sql}::float8 END"
            ),
            written,
        )
        return (
            f"CASE WHEN {zero} OR {power} < -5000 THEN ({sign}) * 0 "
            f"WHEN {power} > 5000 THEN ({sign}) * {INFINITY} ELSE {number} END"
        )

    words = f'lower(btrim({x.sql}, {_BLANKS}) COLLATE "C")'
    return (
        f"CASE WHEN {_fits(x, _LONG)} THEN {let(body, parts)} "
        f"WHEN {words} IN ('inf', 'infinity', '+inf', '+infinity') THEN {INFINITY} "
        f"WHEN {words} IN ('-inf', '-infinity') THEN -{INFINITY} END"
    )


def _boolean(x: Value) -> str:
    word = f'lower({x.sql} COLLATE "C")'
    return (
        f"CASE WHEN {word} IN ('true', 't', '1', 'yes', 'y') THEN TRUE "
        f"WHEN {word} IN ('false', 'f', '0', 'no', 'n') THEN FALSE END"
    )


def _moment(to: PostgresType) -> Callable[[Value], str]:
    """Return the cast of a text to DATE or TIME; for a date, a time of day has to be valid and is dropped."""
    beyond, trim = functions.INFINITE[to], "btrim" if to is PostgresType.DATE else "ltrim"

    def read(x: Value) -> str:
        trimmed = Value(f"{trim}({x.sql}, {_BLANKS})", PostgresType.TEXT, is_movable=x.is_movable)
        return f"CASE WHEN length({x.sql}) <= {MOMENT_LENGTH_MAX} THEN {let(of_trimmed, trimmed)} END"

    def of_trimmed(t: Value) -> str:
        word, parts = f'lower({t.sql} COLLATE "C")', _moment_parts(t.sql)
        if t.is_movable:
            array = Value(f"ARRAY[{', '.join(parts)}]", PostgresType.UNKNOWN)
            number = let(lambda p: of_parts(t.sql, [f"({p.sql})[{index + 1}]" for index in range(len(parts))]), array)
        else:
            number = of_parts(t.sql, parts)
        return (
            f"CASE WHEN {t.sql} !~ {text(_MOMENT).sql} THEN NULL "
            f"WHEN {word} = 'epoch' THEN '1970-01-01'::{NAMES[to]} "
            f"WHEN {word} LIKE '-i%' THEN {beyond.format('-')} WHEN {word} LIKE 'i%' THEN {beyond.format('')} "
            f"ELSE {number} END"
        )

    def of_parts(t: str, parts: Sequence[str]) -> str:
        year, month, day, hour, minute, second, fraction = parts
        is_clock = (
            f"({hour} < 24 OR ({hour} = 24 AND {minute} = 0 AND {second} = 0 AND {fraction} = 0)) "
            f"AND {minute} < 60 AND {second} < 60"
        )
        is_leap = f"{year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0)"
        last = (
            f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {is_leap} THEN 29 ELSE 28 END"
        )
        moment = f"make_date({year}, {month}, {day})"
        if to is PostgresType.TIME:
            clock = f"make_interval(hours => {hour}, mins => {minute}, secs => {second})"
            moment = f"({moment}::timestamp + {clock} + {fraction} * interval '1 microsecond')"
        return (
            f"CASE WHEN NOT ({month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last} AND {is_clock}) THEN NULL "
            f"WHEN {year} < 1 OR {t} LIKE '%(BC)%' THEN {beyond.format('-')} "
            f"WHEN {year} > 5881580 THEN NULL WHEN {year} > 9999 THEN {beyond.format('')} ELSE {moment} END"
        )

    return read


def _moment_parts(t: str) -> list[str]:
    """Return year, month, day, hour, minute, second and microseconds of a text that matches `_MOMENT` and is no word.

    Each is an int; what the text leaves out is 0. After the minute, a colon begins seconds, unless an offset stands
    before it.
    """
    bare = f"ltrim({t}, '-')"
    sign = f"substr(ltrim({bare}, '0123456789'), 1, 1)"
    year, month, rest = (f"split_part({bare}, {sign}, {index})" for index in (1, 2, 3))
    minute = f"split_part({t}, ':', 2)"
    second = f"CASE WHEN length({minute}) <= 2 THEN split_part({t}, ':', 3) ELSE '' END"
    fraction = f"split_part(translate(split_part({second}, '.', 2), '- ZU', '++++'), '+', 1)"
    hour = f"CASE WHEN {t} LIKE '%:%' THEN ltrim(right(split_part({t}, ':', 1), 2), 'T ') ELSE '0' END"
    return [
        f"(CASE WHEN {t} LIKE '-%' THEN '-' ELSE '' END || {year})::int",
        f"{month}::int",
        f"rtrim(substr({rest}, 1, 2), 'T (')::int",
        f"({hour})::int",
        *(f"('0' || rtrim(substr({part}, 1, 2), ' Z+-U.'))::int" for part in (minute, second)),
        f"rpad(substr({fraction}, 1, 6), 6, '0')::int",
    ]


def _fits(x: Value, pattern: str) -> str:
    return f"(length({x.sql}) <= {LENGTH_MAX} AND {x.sql} ~ {text(pattern).sql})"


_FROM_TEXT: Final = {
    PostgresType.INTEGER: _integer,
    PostgresType.REAL: _real,
    PostgresType.BOOLEAN: _boolean,
    PostgresType.DATE: _moment(PostgresType.DATE),
    PostgresType.TIME: _moment(PostgresType.TIME),
}
_CASTS: Final[dict[tuple[PostgresType, PostgresType], Callable[[Value], Value]]] = {
    (PostgresType.BOOLEAN, PostgresType.WHOLE): lambda a: a.derived(f"{a.sql}::int::numeric", PostgresType.WHOLE),
    (PostgresType.REAL, PostgresType.WHOLE): lambda a: cast(try_cast(a, PostgresType.INTEGER), PostgresType.WHOLE),
    (PostgresType.BOOLEAN, PostgresType.INTEGER): lambda a: a.derived(f"{a.sql}::int::bigint", PostgresType.INTEGER),
    (PostgresType.INTEGER, PostgresType.REAL): as_real,
    (PostgresType.WHOLE, PostgresType.REAL): as_real,
    (PostgresType.REAL, PostgresType.TEXT): functions.real_to_text,
    (PostgresType.DATE, PostgresType.TIME): functions.as_time,
    (PostgresType.TIME, PostgresType.DATE): functions.as_date,
    (PostgresType.INTEGER, PostgresType.BOOLEAN): lambda a: a.derived(f"({a.sql} <> 0)", PostgresType.BOOLEAN),
}
