"""Functions of texts, dates and times as DuckDB has them.

Dates and times: their parts, their beginnings, the time between them; times have no zone and are UTC.

Functions of texts, as DuckDB has them: characters are code points, case and spaces are those of Unicode.

The server's locale plays no part: order is that of bytes (COLLATE "C"). Letters beyond ASCII change their case one by
one: by the collation `pg_c_utf8` where the server has it, which is from PostgreSQL 17 on, and before that by a table
that is written out, at 9 microseconds a letter instead of 0.05.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import Final

from tacit.engines.dialects.postgres.reals import divided
from tacit.engines.dialects.postgres.typed_sql import Type, Value, are_apart, as_real, let, real, text
from tacit.engines.dialects.text_search import check_pattern

_SECONDS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600}
_YEARS: Final = {"YEAR": 1, "QUARTER": 4, "MONTH": 12}


def _made(sql: str, type_: Type, *values: Value) -> Value:
    return Value(sql, type_, is_apart=are_apart(values))


def date(text: str) -> Value:
    """Return a date that is written in the statement."""
    return Value(f"'{text}'::date", Type.DATE, known=text, is_plain=True)


def time(text: str) -> Value:
    """Return a time that is written in the statement."""
    return Value(f"'{text}'::timestamp", Type.TIME, known=text, is_plain=True)


def extracted(part: str, a: Value) -> Value:
    """Return a part of a date or time as a whole number, seconds without their fractions; EPOCH is a double."""
    if part == "EPOCH":
        micros = Value(f"({_part('epoch', a)} * 1000000)::bigint", Type.INTEGER, is_apart=a.is_apart)
        return divided(as_real(micros), real(1e6))
    found = _part(part.lower(), a)
    return _made(f"floor({found})::bigint" if part == "SECOND" else f"{found}::bigint", Type.INTEGER, a)


def _part(name: str, a: Value) -> str:
    return f"extract({name} FROM {a.sql})"


def truncated(unit: str, a: Value) -> Value:
    """Return where a unit of time begins, as a time."""
    return _made(f"date_trunc('{unit.lower()}', {as_time(a).sql})", Type.TIME, a)


def last_day(a: Value) -> Value:
    """Return the last day of a month."""
    return _made(f"(date_trunc('month', {as_time(a).sql}) + interval '1 month -1 day')::date", Type.DATE, a)


def as_time(a: Value) -> Value:
    """Return a date within the years 1 to 9999 as a time."""
    return a if a.type is Type.TIME else _made(f"{a.sql}::timestamp", Type.TIME, a)


def as_date(a: Value) -> Value:
    """Return the date of a time."""
    return a if a.type is Type.DATE else _made(f"{a.sql}::date", Type.DATE, a)


def between(unit: str, start: Value, end: Value) -> Value:
    """Return how many borders of a unit lie between two dates or times."""
    if unit == "DAY":
        return _made(f"({as_date(end).sql} - {as_date(start).sql})::bigint", Type.INTEGER, start, end)
    if unit in _YEARS:
        parts = [f"({_part('year', end)} - {_part('year', start)}) * {_YEARS[unit]}"]
        if unit != "YEAR":
            parts += [f"{_part(unit.lower(), end)} - {_part(unit.lower(), start)}"]
        return _made(f"({' + '.join(parts)})::bigint", Type.INTEGER, start, end)
    if unit == "MICROSECOND":
        passed = f"{as_time(end).sql} - {as_time(start).sql}"
        return _made(f"(extract(epoch FROM {passed}) * 1000000)::bigint", Type.INTEGER, start, end)
    passed = f"{truncated(unit, end).sql} - {truncated(unit, start).sql}"
    return _made(f"(extract(epoch FROM {passed}) / {_SECONDS[unit]})::bigint", Type.INTEGER, start, end)


def later(a: Value, amount: int, unit: str, sign: str) -> Value:
    """Return a time moved by a duration that is written in the statement."""
    if unit == "SECOND":  # as days and seconds: older servers count seconds in 32 bits
        days, seconds = divmod(amount, 86_400)
        duration = f"{days} days {seconds} seconds"
    else:
        duration = f"{amount} {unit.lower()}s"
    return _made(f"({as_time(a).sql} {sign} interval '{duration}')", Type.TIME, a)


def days_later(a: Value, days: Value, sign: str) -> Value:
    """Return a date moved by a number of days that is written in the statement."""
    return _made(f"({a.sql} {sign} {days.sql})", Type.DATE, a)


INFINITE: Final = {Type.DATE: "'{}infinity'::date", Type.TIME: "'{}infinity'::timestamp"}


SPACES: Final = "\u0020\u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
"""What TRIM takes off: the separators of Unicode."""

UNICODE_COLLATION: Final = "pg_c_utf8"
UNICODE_CASE: Final[ContextVar[bool]] = ContextVar("unicode_case", default=False)
"""Whether the server that a statement is written for has that collation."""

LETTERS_END: Final = 0x20000
"""Beyond this there are signs of writing without case."""


def collated(value: Value) -> str:
    """Return a text whose order is that of its bytes."""
    return f'({value.sql} COLLATE "C")' if value.type is Type.TEXT else value.sql


def _text(sql: str, *values: Value, type_: Type = Type.TEXT) -> Value:
    return Value(sql, type_, is_apart=are_apart(values))


def cased(function: str, a: Value) -> Value:
    """Return UPPER or LOWER of a text."""
    before, after = (text(one).sql for one in _cases(function))

    def body(x: Value) -> str:
        plain, is_ascii = f"{function}({collated(x)})", f"octet_length({x.sql}) = length({x.sql})"
        other = f"translate({plain}, {before}, {after})"
        if UNICODE_CASE.get():
            other = f'{function}({x.sql} COLLATE "{UNICODE_COLLATION}")'
            if function == "upper":
                other = f"replace({other}, 'ß', 'ẞ')"
        return f'CASE WHEN {is_ascii} THEN {plain} ELSE {other} COLLATE "C" END'

    return _text(let(body, a), a)


@cache
def _cases(function: str) -> tuple[str, str]:
    """Return the characters beyond ASCII that change, and what they become."""
    pairs = [
        (one, other)
        for one in map(chr, range(128, LETTERS_END))
        if (other := _upper(one) if function == "upper" else _lower(one)) != one
    ]
    return "".join(one for one, _ in pairs), "".join(other for _, other in pairs)


def lowered(known: str) -> str:
    """Return a text of the statement in small letters, as `cased` does it."""
    return "".join(map(_lower, known))


def _upper(one: str) -> str:
    if one == "ß":
        return "ẞ"
    return next((other for other in (one.upper(), one.title()) if len(other) == 1), one)


def _lower(one: str) -> str:
    if one == "İ":
        return "i"
    other = one.lower()
    return other if len(other) == 1 else one


def trimmed(a: Value, side: str) -> Value:
    """Return a text without the spaces on one side, or on both."""
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim")
    return _text(f"{function}({a.sql}, {text(SPACES).sql})", a)


def substring(a: Value, start: int, length: int | None) -> Value:
    """Return a part of a text, counted from 1."""
    rest = "" if length is None else f", {length}"
    return _text(f"substr({a.sql}, {start}{rest})", a)


def right(a: Value, count: int) -> Value:
    """Return the last characters of a text."""
    return _text(f"right({a.sql}, {count})", a)


def length(a: Value) -> Value:
    """Return how many characters a text has."""
    return _text(f"length({a.sql})::bigint", a, type_=Type.INTEGER)


def position(a: Value, b: Value) -> Value:
    """Return where a text begins in another, counted from 1, or 0."""
    return _text(f"strpos({a.sql}, {b.sql})::bigint", a, b, type_=Type.INTEGER)


def joined(a: Value, b: Value) -> Value:
    """Return two texts as one."""
    return _text(f"({a.sql} || {b.sql})", a, b)


def like(a: Value, pattern: Value) -> Value:
    """Return whether a text fits a pattern; \\ is a character as any other."""
    check_pattern(str(pattern.known))
    return _text(f"({a.sql} LIKE {pattern.sql} ESCAPE '')", a, pattern, type_=Type.BOOLEAN)


def starts(a: Value, b: Value) -> Value:
    """Return whether a text starts with another."""
    return _text(f"starts_with({a.sql}, {b.sql})", a, b, type_=Type.BOOLEAN)


def ends(a: Value, b: Value) -> Value:
    """Return whether a text ends with another."""
    sql = let(lambda x, y: f"(right({x.sql}, length({y.sql})) = {y.sql})", a, b)
    return _text(sql, a, b, type_=Type.BOOLEAN)


def contains(a: Value, b: Value) -> Value:
    """Return whether a text is in another."""
    return _text(f"(strpos({a.sql}, {b.sql}) > 0)", a, b, type_=Type.BOOLEAN)


def of_real(a: Value) -> Value:
    """Return a double as text: the shortest one that is read back as the same, with .0 or with an exponent."""

    def body(x: Value) -> str:
        size, written = f"abs({x.sql})", f"{x.sql}::text"
        return (  # PostgreSQL changes to exponents at 10^15, DuckDB at 10^16
            f"CASE WHEN {size} = 'Infinity' THEN CASE WHEN {x.sql} > 0 THEN 'inf' ELSE '-inf' END "
            f"WHEN {x.sql} = 'NaN' THEN 'nan' "
            f"WHEN {size} >= 1e15::float8 AND {size} < 1e16::float8 THEN {_sixteen(x)} "
            f"WHEN strpos({written}, '.') = 0 AND strpos({written}, 'e') = 0 THEN {written} || '.0' ELSE {written} END"
        )

    return _text(let(body, a), a)


def _sixteen(x: Value) -> str:
    """Return a double of sixteen digits before the point: whole numbers and what lies half-way or nearer between."""
    part = f"abs({x.sql} - trunc({x.sql}))"
    return (
        f"trunc({x.sql})::bigint::text || CASE WHEN {part} = 0.125 THEN '.1' WHEN {part} = 0.25 THEN '.2' "
        f"WHEN {part} = 0.375 THEN '.4' WHEN {part} = 0.5 THEN '.5' WHEN {part} = 0.625 THEN '.6' "
        f"WHEN {part} = 0.75 THEN '.8' WHEN {part} = 0.875 THEN '.9' ELSE '.0' END"
    )
