"""Casts with DuckDB's results: texts to numbers, dates and booleans; reals to whole numbers and texts.

Promise: a text is accepted if DuckDB accepts it, and everything else is NULL; nothing raises. Of dates and times only
the years 1 to 9999 are read, as nothing else is shown. A few malformed times that DuckDB reads in part ("10: 20") are
NULL here.

Patterns repeat classes of characters only, never groups: Java recurses once for each repetition of a group, so that a
text of 3,000 digits would overflow the stack and end the process. Repetitions are possessive (`*+`), so that a pattern
is matched in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tacit.engines.dialects.spark.typed_sql import Piece, SparkType, literal, once
from tacit.privacy.errors import EngineFailed

_NUMBER: Final = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
_SPACE: Final = r"[ \t\n\x0B\f\r]"
_REAL: Final = rf"^{_SPACE}*+\+?(-?{_NUMBER}(?:[eE][+-]?[0-9]++)?|-?(?i:inf|infinity|nan)){_SPACE}*+\z"
_WHOLE: Final = rf"^{_SPACE}*+([+-]?)(?:([0-9]++)(?:\.(?:([0-9])[0-9]*+)?)?|\.([0-9])[0-9]*+){_SPACE}*+\z"
_SCALED: Final = rf"^{_SPACE}*+([+-]?{_NUMBER}[eE][+-]?0*[0-9]{{1,4}})\.?{_SPACE}*+\z"
_BASED: Final = {16: rf"^{_SPACE}*+0[xX]([0-9a-fA-F]++)\z", 2: rf"^{_SPACE}*+0[bB]([01]++)\z"}
_LONE: Final = {10: r"_(?![0-9])|(?<![0-9])_", 16: r"_(?![0-9a-fA-F])|(?<![0-9a-fA-F])_"}
"""A _ that is not between two digits; those that are get removed before a text is parsed."""

_DAY: Final = r"([0-9]{1,9})([-/ \\])([0-9]{1,2})\2([0-9]{1,2})"
_HOUR: Final = r"(0*(?:1?[0-9]|2[0-3]|24(?=:0?0(?::0?0(?:\.0*)?)?(?:[^0-9:.]|\z))))"
_CLOCK: Final = rf"{_HOUR}:([0-5]?[0-9])(?::([0-5]?[0-9])?(?:\.([0-9]*))?)?"
_OFFSET: Final = r"[+-][0-9]{2}(?::?[0-9]{2}(?::[0-9]{2})?)?"
_ZONE: Final = rf"(?:(?:Z|{_OFFSET}| [A-Za-z0-9_/+:-]++){_SPACE}*+)?+ *+"
_MOMENT: Final = rf"^{_SPACE}*+{_DAY}(?:(?:T|{_SPACE}){_SPACE}*+{_CLOCK}{_ZONE})?\z"
_DATE: Final = rf"^{_SPACE}*+{_DAY}(?:(?:T|{_SPACE}){_SPACE}*+{_CLOCK}{_ZONE}|{_SPACE}*+)\z"
_EPOCH: Final = rf"^{_SPACE}*+-?(?i:epoch){_SPACE}*+\z"
_TRUE: Final = "('true', 't', '1', 'yes', 'y')"
_FALSE: Final = "('false', 'f', '0', 'no', 'n')"
_ZEROS: Final = r"(\.[0-9]+?)0+$"
_DAY_MICROS: Final = 86_400_000_000


def cast(value: Piece, target: SparkType) -> Piece:
    """Return a value as another type, NULL where DuckDB gives NULL or an error."""
    if value.type is target:
        return value
    if target is SparkType.HUGE and value.type in (SparkType.TEXT, SparkType.DATE, SparkType.TIME):
        raise EngineFailed("only numbers can be cast to HUGEINT on Spark")
    make = _CASTS.get((value.type, target), lambda shown: f"CAST({shown} AS {target})")
    return Piece(once(value.closed, make), target)


def if_fits_bigint(x: str, value: str) -> str:
    """Return `value` where the real x fits into 64 bits, NULL elsewhere and for NaN."""
    return f"CASE WHEN {x} >= -9223372036854775808D AND {x} < 9223372036854775808D THEN {value} END"


def _group(value: str, pattern: str, number: int) -> str:
    return f"regexp_extract({value}, {literal(pattern)}, {number})"


def _matches(value: str, pattern: str) -> str:
    return f"{value} RLIKE {literal(pattern)}"


def _text_to_integer(value: str) -> str:
    bare = f"replace({value}, '_', '')"
    sign = _group(bare, _WHOLE, 1)
    whole = f"CAST(concat({sign}, '0', {_group(bare, _WHOLE, 2)}) AS BIGINT)"
    next_digit = f"concat({_group(bare, _WHOLE, 3)}, {_group(bare, _WHOLE, 4)})"
    rounded = f"try_add({whole}, CASE WHEN {next_digit} < '5' THEN 0L WHEN {sign} = '-' THEN -1L ELSE 1L END)"
    scaled = f"round(CAST({_group(bare, _SCALED, 1)} AS DECIMAL(38, 18)))"
    hexadecimal, binary = (f"CAST(conv({_group(bare, _BASED[base], 1)}, {base}, 10) AS BIGINT)" for base in (16, 2))
    return (
        f"CASE WHEN {_matches(value, _LONE[16])} THEN NULL "
        f"WHEN {_matches(bare, _BASED[16])} THEN {hexadecimal} "
        f"WHEN {_matches(value, _LONE[10])} THEN NULL "
        f"WHEN {_matches(bare, _WHOLE)} THEN {rounded} "
        f"WHEN {_matches(bare, _SCALED)} THEN try_cast({scaled} AS BIGINT) "
        f"WHEN {_matches(bare, _BASED[2])} THEN {binary} END"
    )


def _text_to_real(value: str) -> str:
    bare = f"replace({value}, '_', '')"
    return f"CASE WHEN NOT {_matches(value, _LONE[10])} THEN CAST({_group(bare, _REAL, 1)} AS DOUBLE) END"


def _text_to_boolean(value: str) -> str:
    return f"CASE WHEN lower({value}) IN {_TRUE} THEN TRUE WHEN lower({value}) IN {_FALSE} THEN FALSE END"


def _day(value: str, pattern: str) -> str:
    year, month, day = (f"CAST({_group(value, pattern, number)} AS INT)" for number in (1, 3, 4))
    return f"CASE WHEN {year} BETWEEN 1 AND 9999 THEN make_date({year}, {month}, {day}) END"


def _clock(value: str, pattern: str) -> str:
    """Return the microseconds since midnight in a text, 0 if it has no time of day."""
    hours, minutes, seconds = (f"CAST(concat('0', {_group(value, pattern, number)}) AS BIGINT)" for number in (5, 6, 7))
    micros = f"CAST(rpad(left({_group(value, pattern, 8)}, 6), 6, '0') AS BIGINT)"
    return f"(({hours} * 60 + {minutes}) * 60 + {seconds}) * 1000000 + {micros}"


def _text_to_time(value: str) -> str:
    since = f"unix_date({_day(value, _MOMENT)}) * {_DAY_MICROS}L + {_clock(value, _MOMENT)}"
    return f"CASE WHEN {_matches(value, _EPOCH)} THEN {from_micros('0L')} ELSE {from_micros(since)} END"


def _text_to_date(value: str) -> str:
    return f"CASE WHEN {_matches(value, _EPOCH)} THEN DATE '1970-01-01' ELSE {_day(value, _DATE)} END"


def from_micros(micros: str) -> str:
    """Return a time from the microseconds since 1970."""
    return f"CAST(timestamp_micros({micros}) AS TIMESTAMP_NTZ)"


def to_micros(value: str) -> str:
    """Return the microseconds between 1970 and a time."""
    return f"unix_micros(CAST({value} AS TIMESTAMP_LTZ))"


def _real_to_text(value: str) -> str:
    """Return a real as in DuckDB: the shortest digits, with an exponent below 1e-4 and from 1e16 on."""
    digits = f"transform(sequence(0, 16), n -> format_string(concat('%.', n, 'e'), {value}))"
    short = f"element_at(filter({digits}, t -> CAST(t AS DOUBLE) = {value}), 1)"
    plain = f"regexp_replace(CAST(CAST({short} AS DECIMAL(38, 21)) AS STRING), {literal(_ZEROS)}, {literal('$1')})"
    return (
        f"CASE WHEN {value} = 0D THEN CAST({value} AS STRING) "
        f"WHEN abs({value}) >= 1e-4D AND abs({value}) < 1e16D THEN {plain} "
        f"WHEN abs({value}) < double('Infinity') THEN {short} WHEN isnan({value}) THEN 'nan' "
        f"WHEN {value} > 0D THEN 'inf' WHEN {value} < 0D THEN '-inf' END"
    )


_CASTS: Final[Mapping[tuple[SparkType | None, SparkType], Callable[[str], str]]] = {
    (SparkType.TEXT, SparkType.BIGINT): _text_to_integer,
    (SparkType.TEXT, SparkType.DOUBLE): _text_to_real,
    (SparkType.TEXT, SparkType.BOOLEAN): _text_to_boolean,
    (SparkType.TEXT, SparkType.TIME): _text_to_time,
    (SparkType.TEXT, SparkType.DATE): _text_to_date,
    (SparkType.DOUBLE, SparkType.BIGINT): lambda value: if_fits_bigint(value, f"CAST(rint({value}) AS BIGINT)"),
    (SparkType.DOUBLE, SparkType.TEXT): _real_to_text,
    (SparkType.DOUBLE, SparkType.HUGE): lambda value: if_fits_bigint(
        value, f"CAST(CAST(rint({value}) AS BIGINT) AS {SparkType.HUGE})"
    ),
    (SparkType.HUGE, SparkType.BIGINT): lambda value: f"try_cast({value} AS BIGINT)",
}
