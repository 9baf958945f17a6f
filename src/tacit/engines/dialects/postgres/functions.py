"""Functions of texts, dates and times with DuckDB's results.

Times have no zone and are UTC. Characters are code points, case and spaces are those of Unicode, and the order of texts
is that of their bytes (COLLATE "C"): the server's locale plays no part. Letters beyond ASCII change their case one by
one: by the collation `pg_c_utf8` from PostgreSQL 17 on, and before that by a table in the statement, at 9 microseconds
per letter instead of 0.05.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import Final

from tacit.engines.dialects.postgres.reals import divide
from tacit.engines.dialects.postgres.typed_sql import PostgresType, Value, as_real, computed, let, real, text
from tacit.engines.dialects.text_search import check_pattern

_SECONDS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600}
_YEARS: Final = {"YEAR": 1, "QUARTER": 4, "MONTH": 12}


def date(text: str) -> Value:
    """Return a constant date."""
    return Value(f"'{text}'::date", PostgresType.DATE, known=text, is_cheap=True)


def time(text: str) -> Value:
    """Return a constant time."""
    return Value(f"'{text}'::timestamp", PostgresType.TIME, known=text, is_cheap=True)


def extract(part: str, a: Value) -> Value:
    """Return a part of a date or time as an integer, seconds without fractions; EPOCH is a double."""
    if part == "EPOCH":
        micros = Value(f"({_part('epoch', a)} * 1000000)::bigint", PostgresType.INTEGER, is_movable=a.is_movable)
        return divide(as_real(micros), real(1e6))
    found = _part(part.lower(), a)
    return computed(f"floor({found})::bigint" if part == "SECOND" else f"{found}::bigint", PostgresType.INTEGER, a)


def _part(name: str, a: Value) -> str:
    return f"extract({name} FROM {a.sql})"


def truncate_time(unit: str, a: Value) -> Value:
    """Return a date or time truncated to a unit, as a time."""
    return computed(f"date_trunc('{unit.lower()}', {as_time(a).sql})", PostgresType.TIME, a)


def last_day(a: Value) -> Value:
    """Return the last day of a month."""
    return computed(f"(date_trunc('month', {as_time(a).sql}) + interval '1 month -1 day')::date", PostgresType.DATE, a)


def as_time(a: Value) -> Value:
    """Return a date within the years 1 to 9999 as a time."""
    return a if a.type is PostgresType.TIME else computed(f"{a.sql}::timestamp", PostgresType.TIME, a)


def as_date(a: Value) -> Value:
    """Return the date of a time."""
    return a if a.type is PostgresType.DATE else computed(f"{a.sql}::date", PostgresType.DATE, a)


def date_diff(unit: str, start: Value, end: Value) -> Value:
    """Return the number of unit boundaries between two dates or times."""
    if unit == "DAY":
        return computed(f"({as_date(end).sql} - {as_date(start).sql})::bigint", PostgresType.INTEGER, start, end)
    if unit in _YEARS:
        parts = [f"({_part('year', end)} - {_part('year', start)}) * {_YEARS[unit]}"]
        if unit != "YEAR":
            parts += [f"{_part(unit.lower(), end)} - {_part(unit.lower(), start)}"]
        return computed(f"({' + '.join(parts)})::bigint", PostgresType.INTEGER, start, end)
    if unit == "MICROSECOND":
        passed = f"{as_time(end).sql} - {as_time(start).sql}"
        return computed(f"(extract(epoch FROM {passed}) * 1000000)::bigint", PostgresType.INTEGER, start, end)
    passed = f"{truncate_time(unit, end).sql} - {truncate_time(unit, start).sql}"
    return computed(f"(extract(epoch FROM {passed}) / {_SECONDS[unit]})::bigint", PostgresType.INTEGER, start, end)


def add_interval(a: Value, amount: int, unit: str, sign: str) -> Value:
    """Return a time plus or minus a constant interval."""
    if unit == "SECOND":  # as days and seconds, since older servers count seconds in 32 bits
        days, seconds = divmod(amount, 86_400)
        duration = f"{days} days {seconds} seconds"
    else:
        duration = f"{amount} {unit.lower()}s"
    return computed(f"({as_time(a).sql} {sign} interval '{duration}')", PostgresType.TIME, a)


def add_days(a: Value, days: Value, sign: str) -> Value:
    """Return a date plus or minus a number of days."""
    return computed(f"({a.sql} {sign} {days.sql})", PostgresType.DATE, a)


INFINITE: Final = {PostgresType.DATE: "'{}infinity'::date", PostgresType.TIME: "'{}infinity'::timestamp"}


SPACES: Final = "\u0020\u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
"""The characters that TRIM removes: the space separators of Unicode."""

UNICODE_COLLATION: Final = "pg_c_utf8"
UNICODE_CASE: Final[ContextVar[bool]] = ContextVar("unicode_case", default=False)
"""Whether the server of the statement that is being written has that collation."""

LETTERS_END: Final = 0x20000
"""Characters from this code point on have no case."""


def collated(value: Value) -> str:
    """Return the SQL of a value; a text is collated by its bytes."""
    return f'({value.sql} COLLATE "C")' if value.type is PostgresType.TEXT else value.sql


def change_case(function: str, a: Value) -> Value:
    """Return `function`, upper or lower, of a text."""
    before, after = (text(one).sql for one in _cases(function))

    def body(x: Value) -> str:
        plain, is_ascii = f"{function}({collated(x)})", f"octet_length({x.sql}) = length({x.sql})"
        other = f"translate({plain}, {before}, {after})"
        if UNICODE_CASE.get():
            other = f'{function}({x.sql} COLLATE "{UNICODE_COLLATION}")'
            if function == "upper":
                other = f"replace({other}, 'ß', 'ẞ')"
        return f'CASE WHEN {is_ascii} THEN {plain} ELSE {other} COLLATE "C" END'

    return computed(let(body, a), PostgresType.TEXT, a)


@cache
def _cases(function: str) -> tuple[str, str]:
    """Return the characters beyond ASCII that change, and their replacements."""
    pairs = [
        (one, other)
        for one in map(chr, range(128, LETTERS_END))
        if (other := _upper(one) if function == "upper" else _lower(one)) != one
    ]
    return "".join(one for one, _ in pairs), "".join(other for _, other in pairs)


def lower_constant(known: str) -> str:
    """Return a constant text in lower case, as `change_case` computes it."""
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


def trim(a: Value, side: str) -> Value:
    """Return a text without the spaces at its LEADING or TRAILING side, or at both."""
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim")
    return computed(f"{function}({a.sql}, {text(SPACES).sql})", PostgresType.TEXT, a)


def substring(a: Value, start: int, length: int | None) -> Value:
    """Return a substring; positions start at 1."""
    rest = "" if length is None else f", {length}"
    return computed(f"substr({a.sql}, {start}{rest})", PostgresType.TEXT, a)


def right(a: Value, count: int) -> Value:
    """Return the last characters of a text."""
    return computed(f"right({a.sql}, {count})", PostgresType.TEXT, a)


def length(a: Value) -> Value:
    """Return the number of characters of a text."""
    return computed(f"length({a.sql})::bigint", PostgresType.INTEGER, a)


def position(a: Value, b: Value) -> Value:
    """Return the position of b in a, starting at 1; 0 if there is none."""
    return computed(f"strpos({a.sql}, {b.sql})::bigint", PostgresType.INTEGER, a, b)


def concat(a: Value, b: Value) -> Value:
    """Return the concatenation of two texts."""
    return computed(f"({a.sql} || {b.sql})", PostgresType.TEXT, a, b)


def like(a: Value, pattern: Value) -> Value:
    """Return whether a text matches a pattern; \\ is an ordinary character."""
    check_pattern(str(pattern.known))
    return computed(f"({a.sql} LIKE {pattern.sql} ESCAPE '')", PostgresType.BOOLEAN, a, pattern)


def starts_with(a: Value, b: Value) -> Value:
    """Return whether a starts with b."""
    return computed(f"starts_with({a.sql}, {b.sql})", PostgresType.BOOLEAN, a, b)


def ends_with(a: Value, b: Value) -> Value:
    """Return whether a ends with b."""
    sql = let(lambda x, y: f"(right({x.sql}, length({y.sql})) = {y.sql})", a, b)
    return computed(sql, PostgresType.BOOLEAN, a, b)


def contains(a: Value, b: Value) -> Value:
    """Return whether a contains b."""
    return computed(f"(strpos({a.sql}, {b.sql}) > 0)", PostgresType.BOOLEAN, a, b)


def real_to_text(a: Value) -> Value:
    """Return a double as the shortest text that is read back as the same, with .0 or an exponent."""

    def body(x: Value) -> str:
        size, written = f"abs({x.sql})", f"{x.sql}::text"
        return (  # PostgreSQL writes exponents from 10^15 on, DuckDB from 10^16 on
            f"CASE WHEN {size} = 'Infinity' THEN CASE WHEN {x.sql} > 0 THEN 'inf' ELSE '-inf' END "
            f"WHEN {x.sql} = 'NaN' THEN 'nan' "
            f"WHEN {size} >= 1e15::float8 AND {size} < 1e16::float8 THEN {_sixteen(x)} "
            f"WHEN strpos({written}, '.') = 0 AND strpos({written}, 'e') = 0 THEN {written} || '.0' ELSE {written} END"
        )

    return computed(let(body, a), PostgresType.TEXT, a)


def _sixteen(x: Value) -> str:
    """Return a double from 10^15 to 10^16, whose fraction is a multiple of 1/8, as a text."""
    part = f"abs({x.sql} - trunc({x.sql}))"
    return (
        f"trunc({x.sql})::bigint::text || CASE WHEN {part} = 0.125 THEN '.1' WHEN {part} = 0.25 THEN '.2' "
        f"WHEN {part} = 0.375 THEN '.4' WHEN {part} = 0.5 THEN '.5' WHEN {part} = 0.625 THEN '.6' "
        f"WHEN {part} = 0.75 THEN '.8' WHEN {part} = 0.875 THEN '.9' ELSE '.0' END"
    )
