"""Dates and times: their parts, their beginnings, the time between them; times have no zone and are UTC."""

from __future__ import annotations

from typing import Final

from tacit.engines.dialects.postgres.reals import divided
from tacit.engines.dialects.postgres.values import Type, Value, are_apart, as_real, real

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
