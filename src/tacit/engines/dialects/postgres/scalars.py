"""What is computed of one row: a function for each kind of node that the query engine builds.

A node that is not known here is refused, never guessed: it would be read by PostgreSQL's own rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.engines.dialects.postgres import casts, functions, reals
from tacit.engines.dialects.postgres.typed_sql import NAMES, Type, Value, are_apart, as_real, integer, real, text, wide
from tacit.privacy.errors import EngineFailed

Bind: TypeAlias = Callable[[exp.Expression], Value]
"""Writes a child of a node."""

_Name = exp.DataType.Type
_TYPES: Final = {
    _Name.BOOLEAN: Type.BOOLEAN,
    _Name.BIGINT: Type.INTEGER,
    _Name.INT: Type.INTEGER,
    _Name.INT128: Type.WHOLE,
    _Name.DOUBLE: Type.REAL,
    _Name.TEXT: Type.TEXT,
    _Name.VARCHAR: Type.TEXT,
    _Name.DATE: Type.DATE,
    _Name.TIMESTAMP: Type.TIME,
    _Name.TIMESTAMPNTZ: Type.TIME,
}
_CHAINS: Final = (exp.Add, exp.Sub, exp.Mul, exp.DPipe)
_LARGER: Final = {Type.INTEGER: "int8", Type.REAL: "float8", Type.DATE: "date_", Type.TIME: "timestamp_"}
"""Strict functions of PostgreSQL for the larger and smaller of two, by the beginnings of their names."""


def scalar(node: exp.Expression, bind: Bind) -> Value:
    """Write one node; chains such as a + b + c are followed without recursion, for they can be long."""
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
            known[id(here)] = _ruled(here, inner)
    return known[id(node)]


def _ruled(node: exp.Expression, bind: Bind) -> Value:
    rule = _NAMED.get(node.name.upper()) if isinstance(node, exp.Anonymous) else _RULES.get(type(node))
    if rule is None:
        raise EngineFailed(f"PostgreSQL is not asked for {node.key}, which has no form there; ask another way")
    return rule(node, bind)


def _literal(node: exp.Expression, bind: Bind) -> Value:
    if node.is_string:
        return text(str(node.this))
    shown = str(node.this)
    return integer(int(shown)) if shown.isdecimal() else real(float(shown))


def _cast(node: exp.Expression, bind: Bind) -> Value:
    to = _TYPES[node.args["to"].this]
    if to is Type.INTEGER and isinstance(node.this, exp.Round) and node.this.args.get("decimals") is None:
        rounded = reals.rounded_to_integer(as_real(bind(node.this.this)))
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
    """Return what CASE WHEN x <> 'NaN' THEN x END stands for, with x computed once."""
    ifs = node.args["ifs"]
    if len(ifs) != 1 or node.args.get("default") is not None:
        return None
    condition, result = ifs[0].this, ifs[0].args["true"]
    if isinstance(condition, exp.NEQ) and _is_nan(condition.expression) and _bare(condition.this) == _bare(result):
        return reals.is_number(bind(result))
    return None


def _clamp(node: exp.Expression, bind: Bind) -> Value | None:
    """Return what clamps a value to two ends, with the value computed once; NULL stays NULL."""
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
        value = reals.is_number(as_real(bind(inner))) if fits and _bare(ifs[1].args["true"]) == inner else None
    elif len(ifs) == 2 and isinstance(last, exp.GT) and last.expression == upper and _bare(default) == inner:
        value = bind(inner)
    else:
        return None
    if value is None or value.type not in _LARGER:
        return None
    ends = [as_real(one) if value.type is Type.REAL else one for one in (bind(lower), bind(upper))]
    return clamped(value, *ends)


def clamped(value: Value, lower: Value, upper: Value) -> Value:
    """Return a value moved to the nearer end where it lies beyond."""
    name = _LARGER[value.type]
    sql = f"{name}smaller({upper.sql}, {name}larger({lower.sql}, {value.sql}))"
    low, high, least = -math.inf, math.inf, 0.0
    if value.type is Type.REAL and isinstance(lower.known, float) and isinstance(upper.known, float):
        low, high = lower.known, upper.known
        least = min(value.least, *(abs(end) for end in (low, high) if end))
    return Value(sql, value.type, low, high, least, is_apart=value.is_apart)


def _bare(node: exp.Expression | None) -> exp.Expression | None:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_nan(node: exp.Expression) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.name == "NaN"


def _common(values: list[Value]) -> list[Value]:
    """Return values that can stand for one another, as one type."""
    types = {value.type for value in values} - {Type.UNKNOWN}
    if Type.REAL in types:
        return [value if value.type is Type.UNKNOWN else as_real(value) for value in values]
    if types == {Type.DATE, Type.TIME}:
        return [value if value.type is Type.UNKNOWN else functions.as_time(value) for value in values]
    if types == {Type.INTEGER} and all(value.known is not None or value.type is Type.UNKNOWN for value in values):
        return [wide(value) for value in values]
    return values


def _either(sql: str, results: list[Value], others: Iterable[Value] = ()) -> Value:
    """Return what is one of several values."""
    some = [one for one in results if one.type is not Type.UNKNOWN]
    type_ = next((one.type for one in some if one.type is not Type.INTEGER), some[0].type if some else Type.UNKNOWN)
    low, high = min((one.low for one in some), default=-math.inf), max((one.high for one in some), default=math.inf)
    least = min((one.least for one in some if one.least or one.known is None), default=0.0)
    return Value(sql, type_, low, high, least, is_apart=are_apart([*results, *others]))


def _binary(node: exp.Expression, bind: Bind) -> tuple[Value, Value]:
    return bind(node.this), bind(node.expression)


def _comparison(sign: str, *, ordered: bool) -> Callable[[exp.Expression, Bind], Value]:
    def build(node: exp.Expression, bind: Bind) -> Value:
        a, b = _binary(node, bind)
        if Type.TIME in (a.type, b.type) and Type.DATE in (a.type, b.type):
            a, b = functions.as_time(a), functions.as_time(b)
        left = functions.collated(a) if ordered and Type.TEXT in (a.type, b.type) else a.sql
        return Value(f"({left} {sign} {b.sql})", Type.BOOLEAN, is_apart=are_apart((a, b)))

    return build


def _connected(word: str) -> Callable[[exp.Expression, Bind], Value]:
    def build(node: exp.Expression, bind: Bind) -> Value:
        terms, waiting = [], [node]
        while waiting:
            one = waiting.pop()
            if type(one) is type(node):
                waiting += [one.expression, one.this]
            else:
                terms.append(bind(one))
        return Value(f"({f' {word} '.join(one.sql for one in terms)})", Type.BOOLEAN, is_apart=are_apart(terms))

    return build


def _in(node: exp.Expression, bind: Bind) -> Value:
    a, values = bind(node.this), [bind(one) for one in node.expressions]
    sql = f"({a.sql} IN ({', '.join(one.sql for one in values)}))"
    return Value(sql, Type.BOOLEAN, is_apart=a.is_apart)


def _is(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    word = "NULL" if isinstance(node.expression, exp.Null) else str(bool(node.expression.this)).upper()
    return Value(f"({a.sql} IS {word})", Type.BOOLEAN, is_apart=a.is_apart)


def _not(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    return Value(f"(NOT {a.sql})", Type.BOOLEAN, is_apart=a.is_apart)


def _listed(function: str) -> Callable[[exp.Expression, Bind], Value]:
    def build(node: exp.Expression, bind: Bind) -> Value:
        first = [] if isinstance(node, exp.Anonymous) else [node.this]
        values = _common([bind(one) for one in (*first, *node.expressions)])
        ordered = function != "COALESCE"
        written = [functions.collated(one) if ordered else one.sql for one in values]
        return _either(f"{function}({', '.join(written)})", values)

    return build


def _nullif(node: exp.Expression, bind: Bind) -> Value:
    a, b = _common(list(_binary(node, bind)))
    return Value(f"NULLIF({a.sql}, {b.sql})", a.type, a.low, a.high, a.least, is_apart=are_apart((a, b)))


def _sum(sign: str) -> Callable[[exp.Expression, Bind], Value]:
    def build(node: exp.Expression, bind: Bind) -> Value:
        a = bind(node.this)
        if isinstance(node.expression, exp.Interval):
            interval = node.expression
            return functions.later(a, int(interval.this.name), interval.args["unit"].name.upper(), sign)
        b = bind(node.expression)
        if a.type is Type.DATE:
            return functions.days_later(a, b, sign)
        if Type.REAL in (a.type, b.type):
            return reals.added(as_real(a), as_real(b), sign)
        return _whole(f"({a.sql} {sign} {b.sql})", a, b)

    return build


def _whole(sql: str, a: Value, b: Value) -> Value:
    types = {a.type, b.type}
    type_ = Type.WHOLE if Type.WHOLE in types else Type.UNKNOWN if types == {Type.UNKNOWN} else Type.INTEGER
    return Value(sql, type_, is_apart=are_apart((a, b)))


def _multiplied(node: exp.Expression, bind: Bind) -> Value:
    a, b = _binary(node, bind)
    if Type.REAL in (a.type, b.type):
        return reals.multiplied(as_real(a), as_real(b))
    if a.type is Type.INTEGER and not (a.is_apart and b.is_apart):  # counts and sums are as large as tables
        a = casts.cast(a, Type.WHOLE)
    if a.known is not None and b.known is not None:
        a = wide(a)
    return _whole(f"({a.sql} * {b.sql})", a, b)


def _divided(node: exp.Expression, bind: Bind) -> Value:
    a, b = _binary(node, bind)
    return reals.divided(as_real(a), as_real(b))


def _divided_whole(node: exp.Expression, bind: Bind) -> Value:
    a, b = _binary(node, bind)
    if Type.WHOLE in (a.type, b.type):
        return _whole(f"div({a.sql}, {b.sql})", a, b)
    return _whole(f"({a.sql} / {b.sql})", a, b)


def _remainder(node: exp.Expression, bind: Bind) -> Value:
    a, b = _binary(node, bind)
    if Type.REAL in (a.type, b.type):
        return reals.remainder(as_real(a), as_real(b))
    return _whole(f"({a.sql} % {b.sql})", a, b)


def _negative(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    if isinstance(a.known, int):
        return integer(-a.known)
    return reals.negative(a) if a.type is Type.REAL else a.made(f"(- {a.sql})")


def _absolute(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this)
    return reals.absolute(a) if a.type is Type.REAL else a.made(f"abs({a.sql})")


def _sign(node: exp.Expression, bind: Bind) -> Value:
    a = as_real(bind(node.this))
    return Value(f"sign({a.sql})", Type.REAL, -1.0, 1.0, 1.0, is_apart=a.is_apart)


def _of_real(build: Callable[[Value], Value]) -> Callable[[exp.Expression, Bind], Value]:
    return lambda node, bind: build(as_real(bind(node.this)))


def _stepped(function: str) -> Callable[[exp.Expression, Bind], Value]:
    return _of_real(lambda a: reals.whole(function, a))


def _round(node: exp.Expression, bind: Bind) -> Value:
    a, decimals = as_real(bind(node.this)), node.args.get("decimals")
    digits = 0 if decimals is None else bind(decimals).known
    assert isinstance(digits, int)  # the query engine takes numbers only
    return reals.rounded_to_digits(a, digits) if digits else reals.rounded(a)


def _log(node: exp.Expression, bind: Bind) -> Value:
    base, a = bind(node.this).known, as_real(bind(node.expression))
    found = reals.log10(a)
    return found if base == 10 else reals.divided(found, real(math.log10(2)))


def _power(node: exp.Expression, bind: Bind) -> Value:
    a, b = _binary(node, bind)
    return reals.power(as_real(a), as_real(b))


def _log2(node: exp.Expression, bind: Bind) -> Value:
    return reals.log2(as_real(bind(node.expressions[0])))


def _of_text(build: Callable[[Value], Value]) -> Callable[[exp.Expression, Bind], Value]:
    return lambda node, bind: build(bind(node.this))


def _of_texts(build: Callable[[Value, Value], Value]) -> Callable[[exp.Expression, Bind], Value]:
    return lambda node, bind: build(*_binary(node, bind))


def _substring(node: exp.Expression, bind: Bind) -> Value:
    start, length = bind(node.args["start"]).known, node.args.get("length")
    count = None if length is None else bind(length).known
    assert isinstance(start, int)  # the query engine takes numbers only
    return functions.substring(bind(node.this), start, count if isinstance(count, int) else None)


def _right(node: exp.Expression, bind: Bind) -> Value:
    return functions.right(bind(node.this), int(bind(node.expression).known or 0))


def _ilike(node: exp.Expression, bind: Bind) -> Value:
    pattern = bind(node.expression)
    return functions.like(functions.cased("lower", bind(node.this)), text(functions.lowered(str(pattern.known))))


def _extract(node: exp.Expression, bind: Bind) -> Value:
    return functions.extracted(node.this.name.upper(), bind(node.expression))


def _truncated(node: exp.Expression, bind: Bind) -> Value:
    return functions.truncated(node.args["unit"].name, bind(node.this))


def _difference(node: exp.Expression, bind: Bind) -> Value:
    return functions.between(node.args["unit"].name.upper(), bind(node.expression), bind(node.this))


def _is_nan_of(node: exp.Expression, bind: Bind) -> Value:
    a = bind(node.this if node.this is not None else node.expressions[0])
    return Value(f"({a.sql} = {reals.NAN})", Type.BOOLEAN, is_apart=a.is_apart)


_RULES: Final[dict[type[exp.Expression], Callable[[exp.Expression, Bind], Value]]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda node, bind: Value(str(bool(node.this)).upper(), Type.BOOLEAN, is_plain=True),
    exp.Null: lambda node, bind: Value("NULL", Type.UNKNOWN, is_plain=True),
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
    exp.And: _connected("AND"),
    exp.Or: _connected("OR"),
    exp.Not: _not,
    exp.In: _in,
    exp.Is: _is,
    exp.Coalesce: _listed("COALESCE"),
    exp.Greatest: _listed("GREATEST"),
    exp.Least: _listed("LEAST"),
    exp.Nullif: _nullif,
    exp.Add: _sum("+"),
    exp.Sub: _sum("-"),
    exp.Mul: _multiplied,
    exp.Div: _divided,
    exp.IntDiv: _divided_whole,
    exp.Mod: _remainder,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.Floor: _stepped("floor"),
    exp.Ceil: _stepped("ceil"),
    exp.Trunc: _stepped("trunc"),
    exp.Round: _round,
    exp.Sqrt: _of_real(lambda a: Value(f"sqrt({a.sql})", Type.REAL, 0.0, is_apart=a.is_apart)),
    exp.Exp: _of_real(reals.exponential),
    exp.Ln: _of_real(lambda a: Value(f"ln({a.sql})", Type.REAL, -800.0, is_apart=a.is_apart, least=1e-20)),
    exp.Log: _log,
    exp.Pow: _power,
    exp.IsNan: _is_nan_of,
    exp.Upper: _of_text(lambda a: functions.cased("upper", a)),
    exp.Lower: _of_text(lambda a: functions.cased("lower", a)),
    exp.Trim: lambda node, bind: functions.trimmed(bind(node.this), str(node.args.get("position") or "")),
    exp.Substring: _substring,
    exp.Right: _right,
    exp.Length: _of_text(functions.length),
    exp.StrPosition: lambda node, bind: functions.position(bind(node.this), bind(node.args["substr"])),
    exp.DPipe: _of_texts(functions.joined),
    exp.Like: _of_texts(functions.like),
    exp.ILike: _ilike,
    exp.StartsWith: _of_texts(functions.starts),
    exp.EndsWith: _of_texts(functions.ends),
    exp.Contains: _of_texts(functions.contains),
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.LastDay: _of_text(functions.last_day),
    exp.DateDiff: _difference,
}
_NAMED: Final = {
    "LEAST": _listed("LEAST"),
    "GREATEST": _listed("GREATEST"),
    "LOG2": _log2,
    "ISNAN": _is_nan_of,
}
