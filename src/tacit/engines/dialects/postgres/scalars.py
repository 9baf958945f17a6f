"""Scalar expressions for PostgreSQL: a rule for each kind of node that the query engine builds.

A node without a rule is refused: PostgreSQL would evaluate it by its own rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.engines.dialects.postgres import casts, functions, reals
from tacit.engines.dialects.postgres.typed_sql import (
    NAMES,
    PostgresType,
    Value,
    as_bigint,
    as_real,
    computed,
    integer,
    real,
    text,
)
from tacit.privacy.errors import EngineFailed

Bind: TypeAlias = Callable[[exp.Expression], Value]
"""Returns the value of a child of a node."""

Rule: TypeAlias = Callable[[exp.Expression, Bind], Value]

_Name = exp.DataType.Type
_TYPES: Final = {
    _Name.BOOLEAN: PostgresType.BOOLEAN,
    _Name.BIGINT: PostgresType.INTEGER,
    _Name.INT: PostgresType.INTEGER,
    _Name.INT128: PostgresType.WHOLE,
    _Name.DOUBLE: PostgresType.REAL,
    _Name.TEXT: PostgresType.TEXT,
    _Name.VARCHAR: PostgresType.TEXT,
    _Name.DATE: PostgresType.DATE,
    _Name.TIMESTAMP: PostgresType.TIME,
    _Name.TIMESTAMPNTZ: PostgresType.TIME,
}
_CHAINS: Final = (exp.Add, exp.Sub, exp.Mul, exp.DPipe)
_LARGER: Final = {
    PostgresType.INTEGER: "int8",
    PostgresType.REAL: "float8",
    PostgresType.DATE: "date_",
    PostgresType.TIME: "timestamp_",
}
"""Prefixes of PostgreSQL's strict functions for the larger and smaller of two values."""


def scalar(node: exp.Expression, bind: Bind) -> Value:
    """Return the value of a node; chains such as a + b + c can be long, and are written without recursion."""
    known: dict[int, Value] = {}

    def inner(child: exp.Expression) -> Value:
        return known.get(id(_bare(child))) or bind(child)

    waiting = [(node, False)]
    while waiting:
        here, is_ready = waiting.pop()
        links = [] if is_ready or not isinstance(here, _CHAINS) else [_bare(here.this), _bare(here.expression)]
        if nested := [(link, False) for link in links if isinstance(link, _CHAINS)]:
            waiting += [(here, True), *nested]
        else:
            known[id(here)] = _apply_rule(here, inner)
    return known[id(node)]


def _apply_rule(node: exp.Expression, bind: Bind) -> Value:
    rule = _NAMED.get(node.name.upper()) if isinstance(node, exp.Anonymous) else _RULES.get(type(node))
    if rule is None:
        raise EngineFailed(f"{node.key} is not supported on PostgreSQL; leave it out")
    return rule(node, bind)


def _literal(node: exp.Expression, bind: Bind) -> Value:
    if node.is_string:
        return text(str(node.this))
    shown = str(node.this)
    return integer(int(shown)) if shown.isdecimal() else real(float(shown))


def _cast(node: exp.Expression, bind: Bind) -> Value:
    to = _TYPES[node.args["to"].this]
    if to is PostgresType.INTEGER and isinstance(node.this, exp.Round) and node.this.args.get("decimals") is None:
        rounded = reals.round_to_integer(as_real(bind(node.this.this)))
        if rounded is not None:
            return rounded
    a = bind(node.this)
    if isinstance(node.this, exp.Null):
        return Value(f"CAST(NULL AS {NAMES[to]})", to)
    return casts.try_cast(a, to) if isinstance(node, exp.TryCast) else casts.cast(a, to)


def _case(node: exp.Expression, bind: Bind) -> Value:
    known = _guard(node, bind) or _clamp(node, bind)
    if known is not None:
        return known
    conditions = [bind(one.this) for one in node.args["ifs"]]
    otherwise = node.args.get("default")
    results = [bind(one.args["true"]) for one in node.args["ifs"]] + (
        [bind(otherwise)] if otherwise is not None else []
    )
    results = _common(results)
    branches = " ".join(f"WHEN {one.sql} THEN {result.sql}" for one, result in zip(conditions, results, strict=False))
    rest = f" ELSE {results[-1].sql}" if otherwise is not None else ""
    return _either(f"CASE {branches}{rest} END", results, conditions)


def _guard(node: exp.Expression, bind: Bind) -> Value | None:
    """Return CASE WHEN x <> 'NaN' THEN x END with x computed once; None for any other CASE."""
    ifs = node.args["ifs"]
    if len(ifs) != 1 or node.args.get("default") is not None:
        return None
    condition, result = ifs[0].this, ifs[0].args["true"]
    if isinstance(condition, exp.NEQ) and _is_nan(condition.expression) and _bare(condition.this) == _bare(result):
        return reals.nan_to_null(bind(result))
    return None


def _clamp(node: exp.Expression, bind: Bind) -> Value | None:
    """Return a CASE that clamps a value to two ends with the value computed once; None for any other CASE."""
    ifs, default = node.args["ifs"], node.args.get("default")
    if len(ifs) < 2 or not isinstance(ifs[0].this, exp.LT):
        return None
    inner, lower, upper = _bare(ifs[0].this.this), ifs[0].args["true"], ifs[-1].args["true"]
    last = ifs[-1].this
    if inner is None or ifs[0].this.expression != lower or _bare(last.args.get("this")) != inner:
        return None
    if len(ifs) == 3 and default is None and isinstance(last, exp.NEQ) and _is_nan(last.expression):
        second = ifs[1].this
        fits = isinstance(second, exp.LTE) and _bare(second.this) == inner and second.expression == upper
        value = reals.nan_to_null(as_real(bind(inner))) if fits and _bare(ifs[1].args["true"]) == inner else None
    elif len(ifs) == 2 and isinstance(last, exp.GT) and last.expression == upper and _bare(default) == inner:
        value = bind(inner)
    else:
        return None
    if value is None or value.type not in _LARGER:
        return None
    ends = [as_real(one) if value.type is PostgresType.REAL else one for one in (bind(lower), bind(upper))]
    return clamp(value, *ends)


def clamp(value: Value, lower: Value, upper: Value) -> Value:
    """Return a value clamped to [lower, upper]; NULL stays NULL."""
    name = _LARGER[value.type]
    sql = f"{name}smaller({upper.sql}, {name}larger({lower.sql}, {value.sql}))"
    low, high, least = -math.inf, math.inf, 0.0
    if value.type is PostgresType.REAL and isinstance(lower.known, float) and isinstance(upper.known, float):
        low, high = lower.known, upper.known
        least = min((value.least, *(abs(end) for end in (low, high) if end)))
    return Value(sql, value.type, low, high, least, is_movable=value.is_movable)


def _bare(node: exp.Expression | None) -> exp.Expression | None:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_nan(node: exp.Expression) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.name == "NaN"


def _common(values: list[Value]) -> list[Value]:
    """Return values in their common type."""
    types = {value.type for value in values} - {PostgresType.UNKNOWN}
    if PostgresType.REAL in types:
        return [value if value.type is PostgresType.UNKNOWN else as_real(value) for value in values]
    if types == {PostgresType.DATE, PostgresType.TIME}:
        return [value if value.type is PostgresType.UNKNOWN else functions.as_time(value) for value in values]
    if types == {PostgresType.INTEGER} and all(
        value.known is not None or value.type is PostgresType.UNKNOWN for value in values
    ):
        return [as_bigint(value) for value in values]
    return values


def _either(sql: str, results: list[Value], others: Iterable[Value] = ()) -> Value:
    """Return `sql` as a value that equals one of `results`; it also depends on `others`."""
    some = [one for one in results if one.type is not PostgresType.UNKNOWN]
    type_ = next(
        (one.type for one in some if one.type is not PostgresType.INTEGER),
        some[0].type if some else PostgresType.UNKNOWN,
    )
    low, high = min((one.low for one in some), default=-math.inf), max((one.high for one in some), default=math.inf)
    least = min((one.least for one in some if one.least or one.known is None), default=0.0)
    return replace(computed(sql, type_, *results, *others), low=low, high=high, least=least)


def _operands(node: exp.Expression, bind: Bind) -> tuple[Value, Value]:
    return bind(node.this), bind(node.expression)


def _comparison(sign: str, *, ordered: bool) -> Rule:
    def build(node: exp.Expression, bind: Bind) -> Value:
        a, b = _operands(node, bind)
        if PostgresType.TIME in (a.type, b.type) and PostgresType.DATE in (a.type, b.type):
            a, b = functions.as_time(a), functions.as_time(b)
        left = functions.collated(a) if ordered and PostgresType.TEXT in (a.type, b.type) else a.sql
        return computed(f"({left} {sign} {b.sql})", PostgresType.BOOLEAN, a, b)

    return build


def _connective(word: str) -> Rule:
    def build(node: exp.Expression, bind: Bind) -> Value:
        terms, waiting = [], [node]
        while waiting:
            one = waiting.pop()
            if type(one) is type(node):
                waiting += [one.expression, one.this]
            else:
                terms.append(bind(one))
        return computed(f"({f' {word} '.join(one.sql for one in terms)})", PostgresType.BOOLEAN, *terms)

    return build


def _in(node: exp.Expression, bind: Bind) -> Value:
    a, values = bind(node.this), [bind(one) for one in node.expressions]
    sql = f"({a.sql} IN ({', '.join(one.sql for one in values)}))"
    return computed(sql, PostgresType.BOOLEAN, a)


def _is(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    word = "NULL" if isinstance(node.expression, exp.Null) else str(bool(node.expression.this)).upper()
    return computed(f"({a.sql} IS {word})", PostgresType.BOOLEAN, a)


def _not(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    return computed(f"(NOT {a.sql})", PostgresType.BOOLEAN, a)


def _variadic(function: str) -> Rule:
    def build(node: exp.Expression, bind: Bind) -> Value:
        first = [] if isinstance(node, exp.Anonymous) else [node.this]
        values = _common([bind(one) for one in (*first, *node.expressions)])
        ordered = function != "COALESCE"
        written = [functions.collated(one) if ordered else one.sql for one in values]
        return _either(f"{function}({', '.join(written)})", values)

    return build


def _nullif(node: exp.Expression, bind: Bind) -> Value:
    a, b = _common(list(_operands(node, bind)))
    return replace(computed(f"NULLIF({a.sql}, {b.sql})", a.type, a, b), low=a.low, high=a.high, least=a.least)


def _add_or_subtract(sign: str) -> Rule:
    def build(node: exp.Expression, bind: Bind) -> Value:
        a = bind(node.this)
        if isinstance(node.expression, exp.Interval):
            interval = node.expression
            return functions.add_interval(a, int(interval.this.name), interval.args["unit"].name.upper(), sign)
        b = bind(node.expression)
        if a.type is PostgresType.DATE:
            return functions.add_days(a, b, sign)
        if PostgresType.REAL in (a.type, b.type):
            return reals.add(as_real(a), as_real(b), sign)
        return _whole_result(f"({a.sql} {sign} {b.sql})", a, b)

    return build


def _whole_result(sql: str, a: Value, b: Value) -> Value:
    types = {a.type, b.type}
    type_ = (
        PostgresType.WHOLE
        if PostgresType.WHOLE in types
        else PostgresType.UNKNOWN
        if types == {PostgresType.UNKNOWN}
        else PostgresType.INTEGER
    )
    return computed(sql, type_, a, b)


def _multiply(node: exp.Expression, bind: Bind) -> Value:
    a, b = _operands(node, bind)
    if PostgresType.REAL in (a.type, b.type):
        return reals.multiply(as_real(a), as_real(b))
    if a.type is PostgresType.INTEGER and not (a.is_movable and b.is_movable):  # counts and sums are as large as tables
        a = casts.cast(a, PostgresType.WHOLE)
    if a.known is not None and b.known is not None:
        a = as_bigint(a)
    return _whole_result(f"({a.sql} * {b.sql})", a, b)


def _divide(node: exp.Expression, bind: Bind) -> Value:
    a, b = _operands(node, bind)
    return reals.divide(as_real(a), as_real(b))


def _integer_divide(node: exp.Expression, bind: Bind) -> Value:
    a, b = _operands(node, bind)
    if PostgresType.WHOLE in (a.type, b.type):
        return _whole_result(f"div({a.sql}, {b.sql})", a, b)
    return _whole_result(f"({a.sql} / {b.sql})", a, b)


def _remainder(node: exp.Expression, bind: Bind) -> Value:
    a, b = _operands(node, bind)
    if PostgresType.REAL in (a.type, b.type):
        return reals.remainder(as_real(a), as_real(b))
    return _whole_result(f"({a.sql} % {b.sql})", a, b)


def _negative(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    if isinstance(a.known, int):
        return integer(-a.known)
    return reals.negate(a) if a.type is PostgresType.REAL else a.derived(f"(- {a.sql})")


def _absolute(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    return reals.absolute(a) if a.type is PostgresType.REAL else a.derived(f"abs({a.sql})")


def _sign(node: exp.Expression, bind: Bind) -> Value:
    a = as_real(bind(node.this))
    return Value(f"sign({a.sql})", PostgresType.REAL, -1.0, 1.0, 1.0, is_movable=a.is_movable)


def _of_real(build: Callable[[Value], Value]) -> Rule:
    return lambda node, bind: build(as_real(bind(node.this)))


def _round_to_whole(function: str) -> Rule:
    return _of_real(lambda a: reals.round_to_whole(function, a))


def _round(node: exp.Expression, bind: Bind) -> Value:
    a, decimals = as_real(bind(node.this)), node.args.get("decimals")
    digits = 0 if decimals is None else bind(decimals).known
    assert isinstance(digits, int)  # the query engine takes numbers only
    return reals.round_to_digits(a, digits) if digits else reals.round_half_away(a)


def _log(node: exp.Expression, bind: Bind) -> Value:
    base, a = bind(node.this).known, as_real(bind(node.expression))
    found = reals.log10(a)
    return found if base == 10 else reals.divide(found, real(math.log10(2)))


def _power(node: exp.Expression, bind: Bind) -> Value:
    a, b = _operands(node, bind)
    return reals.power(as_real(a), as_real(b))


def _log2(node: exp.Expression, bind: Bind) -> Value:
    return reals.log2(as_real(bind(node.expressions[0])))


def _of_text(build: Callable[[Value], Value]) -> Rule:
    return lambda node, bind: build(bind(node.this))


def _of_texts(build: Callable[[Value, Value], Value]) -> Rule:
    return lambda node, bind: build(*_operands(node, bind))


def _substring(node: exp.Expression, bind: Bind) -> Value:
    start, length = bind(node.args["start"]).known, node.args.get("length")
    count = None if length is None else bind(length).known
    assert isinstance(start, int)  # the query engine takes numbers only
    return functions.substring(bind(node.this), start, count if isinstance(count, int) else None)


def _right(node: exp.Expression, bind: Bind) -> Value:
    return functions.right(bind(node.this), int(bind(node.expression).known or 0))


def _ilike(node: exp.Expression, bind: Bind) -> Value:
    pattern = bind(node.expression)
    return functions.like(
        functions.change_case("lower", bind(node.this)), text(functions.lower_constant(str(pattern.known)))
    )


def _extract(node: exp.Expression, bind: Bind) -> Value:
    return functions.extract(node.this.name.upper(), bind(node.expression))


def _date_trunc(node: exp.Expression, bind: Bind) -> Value:
    return functions.truncate_time(node.args["unit"].name, bind(node.this))


def _date_diff(node: exp.Expression, bind: Bind) -> Value:
    return functions.date_diff(node.args["unit"].name.upper(), bind(node.expression), bind(node.this))


def _is_nan_of(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this if node.this is not None else node.expressions[0])
    return computed(f"({a.sql} = {reals.NAN})", PostgresType.BOOLEAN, a)


_RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda node, bind: Value(str(bool(node.this)).upper(), PostgresType.BOOLEAN, is_cheap=True),
    exp.Null: lambda node, bind: Value("NULL", PostgresType.UNKNOWN, is_cheap=True),
    exp.Paren: lambda node, bind: bind(node.this),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.EQ: _comparison("=", ordered=False),
    exp.NEQ: _comparison("<>", ordered=False),
    exp.LT: _comparison("<", ordered=True),
    exp.LTE: _comparison("<=", ordered=True),
    exp.GT: _comparison(">", ordered=True),
    exp.GTE: _comparison(">=", ordered=True),
    exp.NullSafeEQ: _comparison("IS NOT DISTINCT FROM", ordered=False),
    exp.NullSafeNEQ: _comparison("IS DISTINCT FROM", ordered=False),
    exp.And: _connective("AND"),
    exp.Or: _connective("OR"),
    exp.Not: _not,
    exp.In: _in,
    exp.Is: _is,
    exp.Coalesce: _variadic("COALESCE"),
    exp.Greatest: _variadic("GREATEST"),
    exp.Least: _variadic("LEAST"),
    exp.Nullif: _nullif,
    exp.Add: _add_or_subtract("+"),
    exp.Sub: _add_or_subtract("-"),
    exp.Mul: _multiply,
    exp.Div: _divide,
    exp.IntDiv: _integer_divide,
    exp.Mod: _remainder,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.Floor: _round_to_whole("floor"),
    exp.Ceil: _round_to_whole("ceil"),
    exp.Trunc: _round_to_whole("trunc"),
    exp.Round: _round,
    exp.Sqrt: _of_real(lambda a: Value(f"sqrt({a.sql})", PostgresType.REAL, 0.0, is_movable=a.is_movable)),
    exp.Exp: _of_real(reals.exponential),
    exp.Ln: _of_real(lambda a: Value(f"ln({a.sql})", PostgresType.REAL, -800.0, is_movable=a.is_movable, least=1e-20)),
    exp.Log: _log,
    exp.Pow: _power,
    exp.IsNan: _is_nan_of,
    exp.Upper: _of_text(lambda a: functions.change_case("upper", a)),
    exp.Lower: _of_text(lambda a: functions.change_case("lower", a)),
    exp.Trim: lambda node, bind: functions.trim(bind(node.this), str(node.args.get("position") or "")),
    exp.Substring: _substring,
    exp.Right: _right,
    exp.Length: _of_text(functions.length),
    exp.StrPosition: lambda node, bind: functions.position(bind(node.this), bind(node.args["substr"])),
    exp.DPipe: _of_texts(functions.concat),
    exp.Like: _of_texts(functions.like),
    exp.ILike: _ilike,
    exp.StartsWith: _of_texts(functions.starts_with),
    exp.EndsWith: _of_texts(functions.ends_with),
    exp.Contains: _of_texts(functions.contains),
    exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
    exp.LastDay: _of_text(functions.last_day),
    exp.DateDiff: _date_diff,
}
_NAMED: Final = {
    "LEAST": _variadic("LEAST"),
    "GREATEST": _variadic("GREATEST"),
    "LOG2": _log2,
    "ISNAN": _is_nan_of,
}
