"""Arithmetic with DuckDB's results: operators, rounding, roots and powers.

Promise: the four operations, rounding and roots give the same double to the last bit. EXP, LN, LOG and POWER are those
of Java, whose last bit may differ from that of the C library; at whole powers of the base they are exact in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from tacit.engines.dialects.spark.casts import cast, from_micros, if_fits_bigint, to_micros
from tacit.engines.dialects.spark.typed_sql import WHOLE, Piece, Precedence, SparkType, once, wider

Write = Callable[[exp.Expr], Piece]
Handler = Callable[[exp.Expr, Write], Piece]

_SIGNS: Final[Mapping[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
HUGE_MAX: Final = f"{10**38 - 1}BD"
_LIMB: Final = f"{10**20}BD"
_HALF: Final = f"{10**18}BD"
_LEVELS: Final = {"+": Precedence.ADDED, "-": Precedence.ADDED}


def literal_number(text: str, *, huge: bool = False) -> Piece:
    """Return a numeric constant; a double if it has a point or an exponent."""
    if not text.isdecimal():
        return (
            cast(Piece(f"{text}D", SparkType.DOUBLE), SparkType.HUGE) if huge else Piece(f"{text}D", SparkType.DOUBLE)
        )
    size = int(text)
    if size < 2**31 and not huge:
        return Piece(text, SparkType.INT)
    return (
        Piece(f"{text}L", SparkType.BIGINT)
        if size < 2**63 and not huge
        else Piece(f"CAST({text}BD AS {SparkType.HUGE})", SparkType.HUGE)
    )


def arithmetic(node: exp.Expr, write: Write) -> Piece:
    """The five operators; narrow whole numbers are widened, so that nothing overflows that fits in DuckDB."""
    if isinstance(node.expression, exp.Interval):
        return _add_interval(node, write(node.this), node.expression)
    left, right = write(node.this), write(node.expression)
    if left.type is SparkType.DATE and right.type in WHOLE:
        return Piece(f"date_{'add' if isinstance(node, exp.Add) else 'sub'}({left.text}, {right.text})", SparkType.DATE)
    sign, type_ = _SIGNS[type(node)], wider(left.type, right.type)
    if isinstance(node, exp.Div):
        left, right, type_ = cast(left, SparkType.DOUBLE), cast(right, SparkType.DOUBLE), SparkType.DOUBLE
    if isinstance(node, exp.Mul) and type_ in WHOLE and any(node.find_all(exp.AggFunc)):
        type_ = SparkType.HUGE  # a count or a sum may be as large as the table, and BIGINT would wrap around
    if type_ is SparkType.HUGE and not isinstance(node, exp.Mod):
        return _huge(sign, left, right)
    if type_ is SparkType.INT and None not in (left.type, right.type):  # an unknown type may be a double
        left, type_ = Piece(f"CAST({left.text} AS BIGINT)"), SparkType.BIGINT
    level = _LEVELS.get(sign, Precedence.MULTIPLIED)
    whole = f"{left.at(level)} {sign} {right.at(Precedence(level + 1))}"
    return Piece(f"CAST({whole} AS {SparkType.HUGE})", type_) if type_ is SparkType.HUGE else Piece(whole, type_, level)


def _huge(sign: str, left: Piece, right: Piece) -> Piece:
    """Return a sum, difference or product of HUGE numbers; beyond 38 digits, where Spark has NULL, it saturates."""
    left, right = cast(left, SparkType.HUGE), cast(right, SparkType.HUGE)

    def build(a: str, b: str) -> str:
        towards = f"sign({a}) * sign({b})" if sign == "*" else f"sign({a})"
        beyond = f"CASE WHEN {towards} > 0 THEN {HUGE_MAX} WHEN {towards} < 0 THEN -{HUGE_MAX} END"
        return f"coalesce(CAST({a} {sign} {b} AS {SparkType.HUGE}), CASE WHEN {b} IS NOT NULL THEN {beyond} END)"

    return Piece(once(left.closed, lambda a: once(right.closed, lambda b: build(a, b))), SparkType.HUGE)


def huge_sum(value: str, over: str = "") -> str:
    """Return the sum of HUGE numbers, by their upper and lower digits: neither sum can exceed 38 digits."""
    upper = f"sum(CAST({value} DIV {_LIMB} AS {SparkType.HUGE})){over}"
    lower = f"sum(CAST({value} % {_LIMB} AS {SparkType.HUGE})){over}"
    raised = _huge("*", Piece(upper, SparkType.HUGE), Piece(f"CAST({_LIMB} AS {SparkType.HUGE})", SparkType.HUGE))
    return _huge("+", raised, Piece(lower, SparkType.HUGE)).text


def integer_division(node: exp.Expr, write: Write) -> Piece:
    """a // b, truncated towards zero."""
    left, right = write(node.this), write(node.expression)
    if SparkType.HUGE not in (left.type, right.type):
        quotient = f"{left.at(Precedence.MULTIPLIED)} DIV {right.at(Precedence.NEGATED)}"
        return Piece(quotient, SparkType.BIGINT, Precedence.MULTIPLIED)

    def exact(a: str, b: str) -> str:  # a quotient of decimals is rounded, so only whole ones are taken
        return f"CAST(({a} - {a} % {b}) / {b} AS {SparkType.HUGE})"

    def build(a: str, b: str) -> str:
        half = f"CAST({_HALF} AS {SparkType.HUGE})"  # it has 32 digits at most, so long ones are divided in two steps
        upper, lower = exact(a, half), f"{a} % {half}"
        rest = f"(CAST(({upper}) % {b} AS {SparkType.HUGE}) * {_HALF} + {lower})"
        longer = f"CAST({exact(f'({upper})', b)} * {_HALF} + {exact(rest, b)} AS {SparkType.HUGE})"
        return f"CASE WHEN abs({b}) < {_HALF} THEN {longer} ELSE {exact(a, b)} END"

    left, right = cast(left, SparkType.HUGE), cast(right, SparkType.HUGE)
    return Piece(once(left.closed, lambda a: once(right.closed, lambda b: build(a, b))), SparkType.HUGE)


def _add_interval(node: exp.Expr, moment: Piece, interval: exp.Interval) -> Piece:
    amount = int(interval.this.name) * (1 if isinstance(node, exp.Add) else -1)
    unit = interval.args["unit"].name.upper()
    shown = cast(moment, SparkType.TIME).closed
    if unit == "MONTH":
        return Piece(f"{shown} + make_ym_interval(0, {amount})", SparkType.TIME, Precedence.ADDED)
    seconds = amount * {"DAY": 86_400, "SECOND": 1}[unit]
    return Piece(from_micros(f"{to_micros(shown)} + {seconds}000000L"), SparkType.TIME)


def negate(node: exp.Expr, write: Write) -> Piece:
    """-a."""
    value = write(node.this)
    if value.type is SparkType.HUGE:
        return Piece(
            f"CAST(0 - {value.closed} AS {SparkType.HUGE})", SparkType.HUGE
        )  # Spark's own would round it to 34 digits
    return Piece(f"-{value.closed}", value.type, Precedence.NEGATED)


def floor(x: str) -> str:
    """Return a double rounded down; Spark's own returns a BIGINT, which not every double fits into."""
    return once(x, lambda x: f"CASE WHEN rint({x}) > {x} THEN rint({x}) - 1D ELSE rint({x}) END")


def ceil(x: str) -> str:
    """Return a double rounded up."""
    return once(x, lambda x: f"CASE WHEN rint({x}) < {x} THEN -(-1D - rint({x})) ELSE rint({x}) END")  # keeps -0.0


def truncate(x: str) -> str:
    """Return a double rounded towards zero."""
    return once(x, lambda x: f"CASE WHEN {x} < 0D THEN {ceil(x)} ELSE {floor(x)} END")


def round_half_away(x: str) -> str:
    """Return a double rounded to the nearest whole one, halves away from zero."""

    def build(x: str) -> str:
        up, down = f"{x} - rint({x}) = 0.5D AND {x} > 0D", f"{x} - rint({x}) = -0.5D AND {x} < 0D"
        return f"CASE WHEN {up} THEN rint({x}) + 1D WHEN {down} THEN rint({x}) - 1D ELSE rint({x}) END"

    return once(x, build)


def _round_to_digits(x: str, digits: int) -> str:
    """Return a double rounded to digits after the point, as in DuckDB: scaled, rounded, and scaled back."""
    power = f"{10.0 ** abs(digits)!r}D"

    def build(x: str) -> str:
        there, back = ("/", "*") if digits < 0 else ("*", "/")
        result = f"{round_half_away(f'({x} {there} {power})')} {back} {power}"
        return once(result, lambda r: f"CASE WHEN abs({r}) < double('Infinity') THEN {r} ELSE {x} END")

    return once(x, build)


def _rounding(build: Callable[[str], str]) -> Handler:
    def handler(node: exp.Expr, write: Write) -> Piece:
        value = write(node.this)
        decimals = node.args.get("decimals")
        digits = 0 if decimals is None else _signed(decimals)
        if digits and isinstance(node, exp.Round):
            return Piece(_round_to_digits(cast(value, SparkType.DOUBLE).closed, digits), SparkType.DOUBLE)
        return value if value.type in WHOLE else Piece(build(value.closed), SparkType.DOUBLE)

    return handler


def _signed(node: exp.Expr) -> int:
    return -int(node.this.name) if isinstance(node, exp.Neg) else int(node.name)


def _real(name: str) -> Handler:
    return lambda node, write: Piece(f"{name}({cast(write(node.this), SparkType.DOUBLE).text})", SparkType.DOUBLE)


def absolute(node: exp.Expr, write: Write) -> Piece:
    """ABS(x)."""
    value = write(node.this)
    if value.type is SparkType.HUGE:  # Spark's own would round it to 34 digits
        return Piece(once(value.closed, lambda x: f"greatest({x}, CAST(0 - {x} AS {SparkType.HUGE}))"), SparkType.HUGE)
    return Piece(f"abs({value.text})", value.type)


def logarithm(node: exp.Expr, write: Write) -> Piece:
    """LOG(base, x), the base being 2 or 10."""
    base, x = node.this, node.args.get("expression")
    if x is None:
        return Piece(f"log10({write(base).text})", SparkType.DOUBLE)
    return (
        Piece(f"log10({write(x).text})", SparkType.DOUBLE)
        if int(base.name) == 10
        else Piece(log2(write(x).closed), SparkType.DOUBLE)
    )


def log2(x: str) -> str:
    """Return a logarithm to the base 2, exact at the powers of 2 (Spark divides two logarithms)."""
    return once(x, lambda x: f"CASE WHEN power(2D, rint(log2({x}))) = {x} THEN rint(log2({x})) ELSE log2({x}) END")


def power(node: exp.Expr, write: Write) -> Piece:
    """POWER(x, y); 1 to any power is 1, also to NaN or infinity."""
    x, y = (cast(write(one), SparkType.DOUBLE).closed for one in (node.this, node.expression))
    if isinstance(node.expression, exp.Literal | exp.Neg):
        return Piece(f"power({x}, {y})", SparkType.DOUBLE)

    def build(x: str, y: str) -> str:
        ones = f"{y} IS NOT NULL AND ({x} = 1D OR ({x} = -1D AND abs({y}) = double('Infinity')))"
        return f"CASE WHEN {ones} THEN 1D ELSE power({x}, {y}) END"

    return Piece(once(x, lambda x: once(y, lambda y: build(x, y))), SparkType.DOUBLE)


def sign(node: exp.Expr, write: Write) -> Piece:
    """SIGN(x), as a double."""
    return Piece(f"sign({cast(write(node.this), SparkType.DOUBLE).text})", SparkType.DOUBLE)


def cast_rounded(node: exp.Expr, write: Write) -> Piece | None:
    """Return the cast of FLOOR, CEIL, TRUNC or ROUND to BIGINT, None for any other; only TRY_CAST checks the range."""
    build = _ROUNDINGS.get(type(node.this))
    value = None if build is None or node.this.args.get("decimals") is not None else write(node.this.this)
    if build is None or value is None or value.type is not SparkType.DOUBLE:
        return None
    if not isinstance(node, exp.TryCast):
        return Piece(f"CAST({build(value.closed)} AS BIGINT)", SparkType.BIGINT)
    return Piece(once(value.closed, lambda x: if_fits_bigint(x, f"CAST({build(x)} AS BIGINT)")), SparkType.BIGINT)


_ROUNDINGS: Final[Mapping[type[exp.Expr], Callable[[str], str]]] = {
    exp.Floor: floor,
    exp.Ceil: ceil,
    exp.Trunc: truncate,
    exp.Round: round_half_away,
}
HANDLERS: Final[Mapping[type[exp.Expr], Handler]] = {
    **dict.fromkeys(_SIGNS, arithmetic),
    exp.IntDiv: integer_division,
    exp.Neg: negate,
    exp.Abs: absolute,
    exp.Sign: sign,
    **{kind: _rounding(build) for kind, build in _ROUNDINGS.items()},
    exp.IsNan: lambda node, write: Piece(f"isnan({write(node.this).text})", SparkType.BOOLEAN),
    exp.Sqrt: _real("sqrt"),
    exp.Exp: _real("exp"),
    exp.Ln: _real("ln"),
    exp.Log: logarithm,
    exp.Pow: power,
}
