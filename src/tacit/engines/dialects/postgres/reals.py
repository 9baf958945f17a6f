"""Arithmetic of doubles without errors: what overflows is infinite, what underflows is zero, as in IEEE 754.

PostgreSQL raises where a result is infinite and no operand was, and where it is zero and no operand was. The guards
below decide that exactly, with numbers that are scaled by powers of two and so lose no bit; only for powers the
decision is made up to one part in 10^11 of the greatest and the least double, where the result counts as overflow or
underflow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from tacit.engines.dialects.postgres.typed_sql import PostgresType, Value, let, real

GREATEST: Final = 1.7976931348623157e308
INFINITY: Final = "'Infinity'::float8"
NAN: Final = "'NaN'::float8"
_NORMAL: Final = 2.3e-308
_TOO_MUCH: Final = Fraction(2) ** 1024 - Fraction(2) ** 970
_TOO_LITTLE: Final = Fraction(1, 2**1075)
_ABSORBED: Final = 960
"""2 to this power is less than half a step of the greatest double: adding a smaller double cannot overflow."""


def _two(power: int) -> str:
    return real(2.0**power).sql


def _result(sql: str, a: Value, b: Value, low: float = -math.inf, high: float = math.inf, least: float = 0.0) -> Value:
    return Value(sql, PostgresType.REAL, low, high, least, is_movable=a.is_movable and b.is_movable)


def add(a: Value, b: Value, sign: str = "+") -> Value:
    """Return a + b or a - b."""
    if sign == "-" and isinstance(b.known, int | float):
        return add(a, real(-float(b.known)))
    if isinstance(a.known, int | float) and isinstance(b.known, int | float):
        return real(float(a.known) + float(b.known))
    shown = b
    if sign == "+" and isinstance(b.known, int | float) and b.known < 0:
        sign, shown = "-", real(-float(b.known))
    low, high = (b.low, b.high) if sign == "+" or shown is not b else (-b.high, -b.low)
    if min(a.most, b.most) <= 2.0**_ABSORBED or a.most + b.most <= GREATEST:
        top = a.most + b.most
        finite = top <= GREATEST
        ends = (math.nextafter(a.low + low, -math.inf), math.nextafter(a.high + high, math.inf)) if finite else ()
        return _result(f"({a.sql} {sign} {shown.sql})", a, b, *ends)

    def body(x: Value, y: Value) -> str:
        plain, big = f"{x.sql} {sign} {y.sql}", _two(_ABSORBED)
        return (
            f"CASE WHEN abs({x.sql}) > {big} AND abs({y.sql}) > {big} AND abs({x.sql}) < {INFINITY} "
            f"AND abs({y.sql}) < {INFINITY} THEN CASE WHEN abs({x.sql} * 0.25 {sign} {y.sql} * 0.25) >= {_two(1022)} "
            f"THEN sign({x.sql}) * {INFINITY} ELSE {plain} END ELSE {plain} END"
        )

    return _result(let(body, a, shown), a, b)


def multiply(a: Value, b: Value) -> Value:
    """Return a * b."""
    if isinstance(a.known, int | float) and isinstance(b.known, int | float):
        return real(float(a.known) * float(b.known))
    if isinstance(a.known, int | float):
        a, b = b, a
    over = not a.most * b.most <= GREATEST
    under = not (a.least * b.least >= _NORMAL or a.least >= 1 or b.least >= 1)
    least = a.least * b.least if not under else 0.0
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)] if not over else [-math.inf, math.inf]
    ends = math.nextafter(min(corners), -math.inf), math.nextafter(max(corners), math.inf)
    if min(a.low, b.low) >= 0:
        ends = 0.0, ends[1]
    if b.known in (0, math.inf, -math.inf):
        return _result(f"({a.sql} * {b.sql})", a, b)
    if not over and not under:
        return _result(f"({a.sql} * {b.sql})", a, b, *ends, least)
    if isinstance(b.known, int | float):
        return _result(_multiply_constant(a, float(b.known)), a, b, *ends, least)
    return _result(let(_product, a, b), a, b, *ends, least)


def _multiply_constant(a: Value, factor: float) -> str:
    """Return a times a constant, which can either overflow or underflow, but not both."""
    size = abs(Fraction(factor))
    if size >= 1:
        return _unless_beyond(a, "*", factor, _border(_TOO_MUCH / size, reached=False), beyond=math.inf)
    return _unless_beyond(a, "*", factor, _border(_TOO_LITTLE / size, reached=True), beneath=0.0)


def _unless_beyond(
    a: Value, sign: str, other: float, limit: float, *, beyond: float = 0.0, beneath: float = 0.0
) -> str:
    """Return `a sign other` within the limit, and a signed infinity or zero beyond it."""
    plain, border = real(other).sql, real(limit).sql
    if beyond:
        instead = real(math.copysign(beyond, other)).sql
        return let(
            lambda x: f"CASE WHEN abs({x.sql}) <= {border} THEN {x.sql} {sign} {plain} ELSE {x.sql} * {instead} END", a
        )
    instead = real(math.copysign(beneath, other)).sql
    return let(
        lambda x: f"CASE WHEN abs({x.sql}) > {border} THEN {x.sql} {sign} {plain} ELSE {x.sql} * {instead} END", a
    )


@lru_cache(maxsize=1_000)
def _border(end: Fraction, *, reached: bool) -> float:
    """Return the greatest double below `end`, or with `reached` at it."""
    if end > Fraction(GREATEST):
        return GREATEST
    near = float(end)
    while Fraction(near) > end or (Fraction(near) == end and not reached):
        near = math.nextafter(near, -math.inf)
    while (after := math.nextafter(near, math.inf)) <= GREATEST and (
        Fraction(after) < end or (reached and Fraction(after) == end)
    ):
        near = after
    return near


def _product(x: Value, y: Value) -> str:
    a, b, plain = f"abs({x.sql})", f"abs({y.sql})", f"{x.sql} * {y.sql}"
    least, most, half, up = f"least({a}, {b})", f"greatest({a}, {b})", _two(-512), _two(1000)
    return (
        f"CASE WHEN {x.sql} = 0 OR {y.sql} = 0 OR {a} >= {INFINITY} OR {b} >= {INFINITY} THEN {plain} "
        f"WHEN {a} >= 1 AND {b} >= 1 THEN CASE WHEN ({a} * {half}) * ({b} * {half}) >= 1 "
        f"THEN {_signed(x, y, INFINITY)} ELSE {plain} END "
        f"WHEN {a} >= 1 OR {b} >= 1 THEN {plain} "
        f"WHEN {most} > {_two(-500)} THEN CASE WHEN ({least} * {up}) * {most} > {_two(-75)} "
        f"THEN {plain} ELSE {_signed(x, y, '0')} END "
        f"WHEN ({least} * {up}) * ({most} * {up}) > {_two(925)} THEN {plain} ELSE {_signed(x, y, '0')} END"
    )


def _signed(x: Value, y: Value, size: str) -> str:
    return f"sign({x.sql}) * sign({y.sql}) * {size}"


def divide(a: Value, b: Value) -> Value:
    """Return a / b, where b is never zero."""
    if isinstance(b.known, int | float) and b.known and math.isfinite(b.known):
        inverse = 1 / float(b.known)
        if math.isfinite(inverse) and Fraction(inverse) * Fraction(b.known) == 1 and abs(inverse) >= _NORMAL:
            return multiply(a, real(inverse))  # a power of two
    over, under = (
        not b.least >= 1 and not a.most <= GREATEST * b.least,
        not (b.most <= 1 or a.least >= _NORMAL * b.most),
    )
    least = a.least / b.most if not under and b.most < math.inf else 0.0
    size = math.inf if over or not b.least else math.nextafter(a.most / b.least, math.inf)
    low = 0.0 if min(a.low, b.low) >= 0 else -size
    if not over and not under:
        return _result(f"({a.sql} / {b.sql})", a, b, low, size, least)
    if isinstance(b.known, int | float) and b.known and math.isfinite(b.known):
        return _result(_divide_constant(a, float(b.known)), a, b, low, size, least)
    return _result(let(_quotient, a, b), a, b, low, size, least)


def _divide_constant(a: Value, divisor: float) -> str:
    """Return a divided by a constant."""
    size = abs(Fraction(divisor))
    if size >= 1:
        return _unless_beyond(a, "/", divisor, _border(_TOO_LITTLE * size, reached=True), beneath=0.0)
    return _unless_beyond(a, "/", divisor, _border(_TOO_MUCH * size, reached=False), beyond=math.inf)


def _quotient(x: Value, y: Value) -> str:
    a, b, plain, up = f"abs({x.sql})", f"abs({y.sql})", f"{x.sql} / {y.sql}", _two(512)
    return (
        f"CASE WHEN {x.sql} = 0 OR {a} >= {INFINITY} OR {b} >= {INFINITY} THEN {plain} "
        f"WHEN {b} < 1 THEN CASE WHEN {a} >= {b} * {up} * {up} THEN {_signed(x, y, INFINITY)} ELSE {plain} END "
        f"WHEN {a} >= 1 THEN {plain} "
        f"WHEN {a} * {_two(75)} <= {b} * {_two(-1000)} THEN {_signed(x, y, '0')} ELSE {plain} END"
    )


def remainder(a: Value, b: Value) -> Value:
    """Return the exact remainder of a / b with the sign of a, as C's fmod; b is never zero.

    PostgreSQL has no remainder of doubles: both are split into whole numbers times powers of two.
    """

    def body(x: Value, y: Value) -> str:
        bits = "('x' || encode(float8send({}), 'hex'))::bit(64)::bigint"
        parts = ", ".join(
            f"greatest({name} >> 52, 1) AS e{name}, "
            f"({name} & 4503599627370495) + CASE WHEN {name} >> 52 > 0 THEN 4503599627370496 ELSE 0 END AS m{name}"
            for name in ("p", "q")
        )
        whole = (
            "(SELECT mod(mp * power(2::numeric, (ep - eq)::numeric), mq::numeric)::float8 "
            f"* power(2::float8, (eq - 1075)::float8) FROM (SELECT {parts} FROM (SELECT "
            f"{bits.format(f'abs({x.sql})')} AS p, {bits.format(f'abs({y.sql})')} AS q) AS bits) AS parts)"
        )
        return (
            f"CASE WHEN abs({x.sql}) >= {INFINITY} OR {y.sql} = {NAN} THEN {NAN} + 0 * sign({x.sql}) "
            f"WHEN abs({x.sql}) < abs({y.sql}) THEN {x.sql} ELSE sign({x.sql}) * {whole} END"
        )

    return _result(let(body, a, b), a, b, -min(a.most, b.most), min(a.most, b.most))


def negate(a: Value) -> Value:
    """Return -a."""
    if isinstance(a.known, int | float):
        return real(-float(a.known))
    return Value(f"(- {a.sql})", PostgresType.REAL, -a.high, -a.low, a.least, is_movable=a.is_movable)


def absolute(a: Value) -> Value:
    """Return the absolute value of a."""
    return Value(f"abs({a.sql})", PostgresType.REAL, 0.0, a.most, a.least, is_movable=a.is_movable)


def round_to_whole(function: str, a: Value) -> Value:
    """Return FLOOR, CEIL or TRUNC of a."""
    low, high = (-math.inf, math.inf) if a.most > 2.0**60 else (math.floor(a.low), math.ceil(a.high))
    return Value(f"{function}({a.sql})", PostgresType.REAL, low, high, 1.0, is_movable=a.is_movable)


def round_half_away(a: Value) -> Value:
    """Return the nearest whole number, halves away from zero; PostgreSQL's own takes the even one."""
    low, high = (-math.inf, math.inf) if a.most > 2.0**60 else (math.floor(a.low), math.ceil(a.high))
    return Value(let(_half_away, a), PostgresType.REAL, low, high, 1.0, is_movable=a.is_movable)


def _half_away(x: Value) -> str:
    cut = f"trunc({x.sql})"
    return f"CASE WHEN abs({x.sql} - {cut}) >= 0.5 THEN {cut} + sign({x.sql}) ELSE {cut} END"


def round_to_integer(a: Value) -> Value | None:
    """Return the nearest whole number as a bigint, halves away from zero; None if a may not fit."""
    if not a.most < 2.0**61:
        return None
    doubled = f"trunc({multiply(a, real(2.0)).sql})::bigint"
    if a.low >= 0:
        return a.derived(f"(({doubled} + 1) / 2)", PostgresType.INTEGER)
    more = let(lambda x: f"((trunc({x.sql} * 2)::bigint + CASE WHEN {x.sql} < 0 THEN -1 ELSE 1 END) / 2)", a)
    return a.derived(more, PostgresType.INTEGER)


def round_to_digits(a: Value, digits: int) -> Value:
    """Return a rounded to digits after the point, in the same steps as DuckDB."""
    power = 10.0 ** abs(digits)

    def after(x: Value) -> str:
        limit = real(_border(_TOO_MUCH / Fraction(power), reached=False)).sql
        scaled = Value(f"({x.sql} * {real(power).sql})", PostgresType.REAL)
        return f"CASE WHEN abs({x.sql}) <= {limit} THEN {let(_half_away, scaled)} / {real(power).sql} ELSE {x.sql} END"

    def before(x: Value) -> str:
        nearest = let(_half_away, Value(f"({x.sql} / {real(power).sql})", PostgresType.REAL))
        whole_ = Value(nearest, PostgresType.REAL)
        scaled = let(
            lambda y: (
                f"CASE WHEN abs({y.sql}) * {_two(-60)} * {real(power).sql} < {_two(964)} "
                f"THEN {y.sql} * {real(power).sql} ELSE 0 END"
            ),
            whole_,
        )
        return (
            f"CASE WHEN abs({x.sql}) < 1 THEN {x.sql} * 0 WHEN abs({x.sql}) < {INFINITY} THEN {scaled} ELSE {x.sql} END"
        )

    sql = let(after if digits > 0 else before, a)
    return Value(sql, PostgresType.REAL, is_movable=a.is_movable)


def exponential(a: Value) -> Value:
    """Return e^a."""
    if a.low >= -745 and a.high <= 709:
        return a.derived(f"exp({a.sql})")
    sql = let(
        lambda x: (
            f"CASE WHEN {x.sql} <= {real(709.782712893384).sql} AND {x.sql} >= {real(-745.1332191019411).sql} "
            f"THEN exp({x.sql}) WHEN {x.sql} < 0 THEN 0 ELSE abs({x.sql}) * {INFINITY} END"
        ),
        a,
    )
    return Value(sql, PostgresType.REAL, 0.0, is_movable=a.is_movable)


def log2(a: Value) -> Value:
    """Return the logarithm to the base 2 of a > 0, exact for powers of two."""

    def body(x: Value) -> str:
        place = Value(f"round(ln({x.sql}) / ln(2::float8))", PostgresType.REAL)
        return let(
            lambda e: (
                f"{e.sql} + ln({x.sql} / power(2::float8, {e.sql} / 2) / power(2::float8, {e.sql} - {e.sql} / 2))"
                " / ln(2::float8)"
            ),
            place,
        )

    return Value(let(body, a), PostgresType.REAL, -1100.0, 1100.0, is_movable=a.is_movable)


def log10(a: Value) -> Value:
    """Return the logarithm to the base 10 of a > 0."""
    return Value(f"log({a.sql})", PostgresType.REAL, -400.0, math.inf, 1e-20, is_movable=a.is_movable)


def power(a: Value, b: Value) -> Value:
    """Return a to the power of b, NaN where it is undefined; 0.0 and -0.0 to a negative power are infinity."""

    def body(x: Value, y: Value) -> str:
        a, b = x.sql, y.sql
        is_whole = f"floor({b}) = {b}"
        odd = f"CASE WHEN {is_whole} AND abs({b}) < {_two(53)} THEN floor({b} / 2) * 2 <> {b} ELSE FALSE END"
        tame = (
            f"CASE WHEN abs({b}) > 1e300::float8 THEN sign({b}) * 1e300::float8 "
            f"WHEN abs({b}) < 1e-280::float8 THEN 0 ELSE {b} END"
        )
        size = f"({tame}) * ln(abs({a}))"
        sign = f"CASE WHEN {a} < 0 AND {odd} THEN -1::float8 ELSE 1::float8 END"
        return (
            f"CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL WHEN {b} = 0 OR {a} = 1 THEN 1 WHEN {b} = 1 THEN {a} "
            f"WHEN {a} = {NAN} OR {b} = {NAN} THEN {NAN} "
            f"WHEN {a} = 0 THEN CASE WHEN {b} < 0 THEN {INFINITY} ELSE power({a}, {b}) END "
            f"WHEN {a} = -{INFINITY} AND NOT {is_whole} THEN CASE WHEN {b} > 0 THEN {INFINITY} ELSE 0 END "
            f"WHEN {a} < 0 AND NOT {is_whole} THEN {NAN} "
            f"WHEN abs({a}) >= {INFINITY} OR abs({b}) >= {INFINITY} THEN power({a}, {b}) "
            f"WHEN {size} > {real(709.78271289338).sql} THEN ({sign}) * {INFINITY} "
            f"WHEN {size} < {real(-745.13321910193).sql} THEN ({sign}) * 0 ELSE power({a}, {b}) END"
        )

    return _result(let(body, a, b), a, b)


def nan_to_null(a: Value) -> Value:
    """Return a with NULL in the place of NaN."""
    return Value(f"NULLIF({a.sql}, {NAN})", PostgresType.REAL, a.low, a.high, a.least, is_movable=a.is_movable)
