"""Functions of numbers: rounding, roots, logarithms, powers, LEAST and GREATEST.

Promise: outside of where a function is defined its value is NULL, and the engine is never asked for it. What is rounded
to whole numbers becomes an integer where its range is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression, Range, position
from tacit.query.scalars import trees, value_ranges
from tacit.query.scalars.facts import (
    Bind,
    Rule,
    as_real,
    clamp,
    derive,
    is_exact,
    is_known,
    is_null,
    literal,
    longest_text,
    null,
    one_zero,
    require_number,
    to_common_kind,
    union_facts,
    value_of,
    whole_literal,
)
from tacit.query.scalars.trees import Tree

POWER_STEPS: Final = 16
DIGITS_MAX: Final = 15
BUCKETS_MAX: Final = 10_000


def _float(expression: Expression) -> float:
    value = value_of(expression)
    assert isinstance(value, int | float)
    return float(value)


def absolute(node: Tree, bind: Bind) -> Expression:
    """ABS(x)."""
    a = require_number(bind(node.this), "ABS")
    if is_null(a):
        return a
    if is_known(a):
        return literal(abs(value_of(a)))  # type: ignore[arg-type]
    a = a if a.kind is Kind.INTEGER and is_exact(a.range) else as_real(a)
    range_ = None if a.range is None else value_ranges.absolute(a.range)
    return derive(trees.map_unguarded(a.tree, lambda tree: trees.call(exp.Abs, tree)), a.kind, (a,), range=range_)


def sign(node: Tree, bind: Bind) -> Expression:
    """SIGN(x): -1, 0 or 1."""
    a = require_number(bind(node.this), "SIGN")
    if is_null(a):
        return null(Kind.INTEGER)
    if is_known(a):
        return literal((_float(a) > 0) - (_float(a) < 0))
    range_ = Range.of(-1, 1)
    if a.range is not None:
        range_ = value_ranges.stepwise(a.range, lambda end: (end > 0) - (end < 0))
    return derive(trees.cast(trees.call(exp.Sign, a.tree), Kind.INTEGER), Kind.INTEGER, (a,), range=range_)


def _rounding_rule(kind: type[Tree], name: str, rounding: Callable[[Fraction], int]) -> Rule:
    def build(node: Tree, bind: Bind) -> Expression:
        return round_to_whole(kind, require_number(bind(node.this), name), rounding)

    return Rule(build, (name,), ("this",))


def round_to_whole(kind: type[Tree], a: Expression, rounding: Callable[[Fraction], int]) -> Expression:
    """Return a number rounded to a whole one by a monotone function; integers are whole already."""
    if a.kind is Kind.INTEGER or is_null(a):
        return a
    if is_known(a) and a.range is not None:
        return literal(rounding(a.range.lower) if is_exact(a.range) else _float(a))
    tree = trees.map_unguarded(a.tree, lambda inner: trees.call(kind, inner))
    if a.range is None:
        return derive(tree, Kind.REAL, (a,))
    range_ = value_ranges.stepwise(a.range, rounding)
    if is_exact(range_):
        return derive(trees.cast(tree, Kind.INTEGER), Kind.INTEGER, (a,), range=range_)
    return derive(tree, Kind.REAL, (a,), range=value_ranges.outward(range_.lower, range_.upper))


def round_(node: Tree, bind: Bind) -> Expression:
    """ROUND(x) or ROUND(x, digits), halves away from zero."""
    a = require_number(bind(node.this), "ROUND")
    decimals = node.args.get("decimals")
    digits = 0
    if decimals is not None:
        digits = whole_literal(bind(decimals), "ROUND takes a known number of digits", -DIGITS_MAX, DIGITS_MAX)
    return round_to_digits(a, digits)


def round_to_digits(a: Expression, digits: int) -> Expression:
    """Return a number rounded to `digits` decimal places, halves away from zero."""
    if is_null(a) or (a.kind is Kind.INTEGER and digits >= 0):
        return a
    if digits == 0:
        return round_to_whole(exp.Round, a, value_ranges.half_away)
    a = as_real(a)
    range_ = None if a.range is None else value_ranges.round_to_digits(a.range, digits)
    if a.range is not None and range_ is None:  # scaling may lose whole numbers, but moves nothing by more than half
        half = Fraction(10) ** -digits
        range_ = value_ranges.slack(a.range.lower - half, a.range.upper + half)
    tree = trees.map_unguarded(a.tree, lambda inner: trees.call(exp.Round, inner, decimals=trees.constant(digits)))
    if a.range is not None:
        return derive(tree, Kind.REAL, (a,), range=range_)
    return derive(trees.not_nan(tree), Kind.REAL, (a,), nullable=True)


def sqrt(node: Tree, bind: Bind) -> Expression:
    """SQRT(x), NULL below zero."""
    a = as_real(require_number(bind(node.this), "SQRT"))
    if is_null(a):
        return a
    if is_known(a):
        return literal(math.sqrt(_float(a))) if _float(a) >= 0 else null(Kind.REAL)
    range_ = None if a.range is None else value_ranges.root(a.range)
    inside = a.range is not None and a.range.lower >= 0
    return _where_defined(exp.Sqrt, a, range_, exp.GTE, inside)


def exponential(node: Tree, bind: Bind) -> Expression:
    """EXP(x)."""
    a = as_real(require_number(bind(node.this), "EXP"))
    if is_null(a):
        return a
    range_ = None if a.range is None else value_ranges.exponential(a.range)
    return derive(trees.map_unguarded(a.tree, lambda tree: trees.call(exp.Exp, tree)), Kind.REAL, (a,), range=range_)


def ln(node: Tree, bind: Bind) -> Expression:
    """LN(x), NULL unless x is above zero."""
    return _logarithm(exp.Ln, bind(node.this), math.log, None)


def log(node: Tree, bind: Bind) -> Expression:
    """LOG(x) to the base 10, or LOG(base, x) to the base 2 or 10; NULL unless x is above zero."""
    base, operand = node.this, node.args.get("expression")
    if operand is None:
        base, operand = exp.Literal.number(10), base
    known = bind(base)
    value = value_of(known) if is_known(known) else None
    if value not in (2, 10) or isinstance(value, bool):
        raise NotAllowed("LOG takes the base 2 or 10", accepted="LN(x) / LN(base) is the logarithm to any base")
    function = math.log2 if value == 2 else math.log10
    return _logarithm(exp.Log, bind(operand), function, 2 if value == 2 else 10)


def _logarithm(
    kind: type[Tree], operand: Expression, function: Callable[[float], float], base: int | None
) -> Expression:
    checked = require_number(operand, "LN" if base is None else "LOG")
    a = as_real(checked)
    if is_null(a):
        return a
    least = Fraction(1) if checked.kind is Kind.INTEGER else Fraction(1, 2**1074)
    range_ = None if a.range is None else value_ranges.logarithm(a.range, function, least=least)
    inside = a.range is not None and a.range.lower > 0
    return _where_defined(kind, a, range_, exp.GT, inside, base)


def _where_defined(
    kind: type[Tree],
    a: Expression,
    range_: Range | None,
    condition: type[Tree],
    inside: bool,
    base: int | None = None,
) -> Expression:
    """Return a function of the values that meet a condition on zero, NULL for others."""

    def function(tree: Tree) -> Tree:
        if base is None:
            return trees.call(kind, tree)
        return kind(this=trees.constant(base), expression=tree.copy())

    def build(inner: Tree) -> Tree:
        if inside:
            return function(inner)
        return function(trees.case((trees.binary(condition, inner, trees.constant(0.0)), inner)))

    tree = trees.map_unguarded(a.tree, build)
    return derive(tree, Kind.REAL, (a,), range=range_, nullable=a.nullable or not inside)


def power(node: Tree, bind: Bind) -> Expression:
    """POWER(x, y) as a real, NULL where it is not defined."""
    a, b = (as_real(require_number(bind(one), "POWER")) for one in (node.this, node.expression))
    if is_null(a) or is_null(b):
        return null(Kind.REAL)
    exponent = value_of(b) if is_known(b) else None
    range_ = None
    if isinstance(exponent, float) and exponent.is_integer() and exponent >= 0 and a.range is not None:
        range_ = value_ranges.power(a.range, int(exponent))
    above = isinstance(exponent, float) and exponent >= 0  # below zero, one zero gives inf and the other -inf
    base = a.tree if above else one_zero(a)
    tree = trees.add_work(exp.Pow(this=base.copy(), expression=b.tree.copy()), POWER_STEPS)
    if range_ is None:
        return derive(trees.not_nan(tree), Kind.REAL, (a, b), nullable=True)
    return derive(tree, Kind.REAL, (a, b), range=range_)


def _extreme(kind: type[Tree], name: str, *, greatest: bool) -> Rule:
    def build(node: Tree, bind: Bind) -> Expression:
        values = to_common_kind([bind(one) for one in (node.this, *node.expressions)], name)
        return extreme(kind, values, greatest=greatest)

    return Rule(build, (name,))


def extreme(kind: type[Tree], values: list[Expression], *, greatest: bool) -> Expression:
    """Return the greatest or least of several values that are not NULL; NULL only if all of them are."""
    known = [one for one in values if is_known(one)]
    others = {one.text: one for one in values if not is_known(one) and not is_null(one)}
    pick = max if greatest else min
    folded = [pick(known, key=lambda one: value_of(one))] if known else []  # type: ignore[arg-type,return-value]
    kept = [*(others[text] for text in sorted(others)), *folded]
    if len(kept) <= 1:
        return kept[0] if kept else values[0]
    _, domain = union_facts(kept)
    range_ = _extreme_range(kept, greatest=greatest)
    tree = kind(this=kept[0].tree.copy(), expressions=[one.tree.copy() for one in kept[1:]], ignore_nulls=True)
    nullable = all(one.nullable for one in kept)
    return derive(tree, kept[0].kind, kept, range=range_, domain=domain, nullable=nullable, length=longest_text(kept))


def _extreme_range(values: list[Expression], *, greatest: bool) -> Range | None:
    """Return the range of the greatest or least of several values; one that is never NULL limits it on one side."""
    ends = [_ends(one) for one in values]
    near = [pair[0 if greatest else 1] for pair in ends]
    far = [pair[1 if greatest else 0] for pair in ends]
    pick, other = (max, min) if greatest else (min, max)
    firm = [end for one, end in zip(values, near, strict=True) if not one.nullable and end is not None]
    known = [end for end in near if end is not None]
    limits = [*firm, *([other(known)] if len(known) == len(near) else [])]
    reach = [end for end in far if end is not None]
    if not limits or len(reach) < len(far):
        return None
    return Range(pick(limits), pick(reach)) if greatest else Range(pick(reach), pick(limits))


def _ends(value: Expression) -> tuple[Fraction | None, Fraction | None]:
    """Return the ends of the range of a value; LEAST and GREATEST with a literal have one of them."""
    if value.range is not None:
        return value.range.lower, value.range.upper
    if isinstance(value.tree, exp.Least | exp.Greatest) and trees.is_constant(last := value.tree.expressions[-1]):
        known = trees.value(last)
        if isinstance(known, int | float | date) and not isinstance(known, bool) and known not in (math.inf, -math.inf):
            end = position(known)
            return (None, end) if isinstance(value.tree, exp.Least) else (end, None)
    return None, None


def width_bucket(node: Tree, bind: Bind) -> Expression:
    """WIDTH_BUCKET(x, lower, upper, n): 0 below, 1 to n within, n + 1 from the upper end on."""
    a = as_real(require_number(bind(node.this), "WIDTH_BUCKET"))
    ends = [as_real(require_number(bind(node.args[name]), "WIDTH_BUCKET")) for name in ("min_value", "max_value")]
    count = whole_literal(bind(node.args["num_buckets"]), "WIDTH_BUCKET takes a number of buckets", 1, BUCKETS_MAX)
    if not all(is_known(one) and one.range is not None for one in ends) or not _float(ends[0]) < _float(ends[1]):
        accepted = "write two numbers there, the lower one first"
        raise NotAllowed("the ends of WIDTH_BUCKET must be literals", accepted=accepted)
    if is_null(a):
        return null(Kind.INTEGER)
    lower, upper = _float(ends[0]), _float(ends[1])
    width = float((Fraction(upper) - Fraction(lower)) / count) if upper - lower < math.inf else math.inf
    if not 0 < width < math.inf:
        raise NotAllowed("the buckets are too narrow or too wide", accepted="change the ends or the number of buckets")
    inner = trees.unguarded(a.tree)
    place = trees.binary(exp.Sub, inner, trees.constant(lower))
    floor = trees.call(exp.Floor, trees.binary(exp.Div, place, trees.constant(width)))
    whole = Expression(trees.try_cast(floor, Kind.INTEGER), Kind.INTEGER)
    bucket = trees.binary(exp.Add, clamp(whole, Range.of(0, count - 1)).tree, trees.constant(1))
    tree = trees.case(
        (trees.binary(exp.LT, inner, trees.constant(lower)), trees.constant(0)),
        (trees.binary(exp.LT, inner, trees.constant(upper)), bucket),
        (trees.binary(exp.NEQ, inner, trees.not_a_number()), trees.constant(count + 1)),
    )
    return derive(tree, Kind.INTEGER, (a,), range=Range.of(0, count + 1))


def pi(node: Tree, bind: Bind) -> Expression:
    """PI()."""
    return literal(math.pi)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Abs: Rule(absolute, ("ABS",), ("this",)),
    exp.Sign: Rule(sign, ("SIGN",), ("this",)),
    exp.Round: Rule(round_, ("ROUND",), ("this", "decimals")),
    exp.Floor: _rounding_rule(exp.Floor, "FLOOR", math.floor),
    exp.Ceil: _rounding_rule(exp.Ceil, "CEIL", math.ceil),
    exp.Trunc: _rounding_rule(exp.Trunc, "TRUNC", math.trunc),
    exp.Sqrt: Rule(sqrt, ("SQRT",), ("this",)),
    exp.Exp: Rule(exponential, ("EXP",), ("this",)),
    exp.Ln: Rule(ln, ("LN",), ("this",)),
    exp.Log: Rule(log, ("LOG", "LOG2", "LOG10"), ("this", "expression")),
    exp.Pow: Rule(power, ("POWER", "POW", "**", "^"), ("this", "expression")),
    exp.Greatest: _extreme(exp.Greatest, "GREATEST", greatest=True),
    exp.Least: _extreme(exp.Least, "LEAST", greatest=False),
    exp.WidthBucket: Rule(width_bucket, ("WIDTH_BUCKET",), ("this", "min_value", "max_value", "num_buckets")),
    exp.Pi: Rule(pi, ("PI",), ()),
}
