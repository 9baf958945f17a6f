"""Arithmetic operators, without overflow and without errors.

Promise: whole numbers stay whole only where the ranges show that the result keeps within 2^53; everything else is
computed in doubles, where nothing overflows into an error. A division by zero is NULL, and so is what would be NaN.
Literals are folded exactly, as decimals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from sqlglot import exp

from tacit.privacy.errors import WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression, Range
from tacit.query.scalars import dates, trees, value_ranges
from tacit.query.scalars.facts import (
    Bind,
    Rule,
    as_real,
    derive,
    is_exact,
    is_known,
    is_null,
    literal,
    null,
    require_number,
    value_of,
)
from tacit.query.scalars.trees import Tree

REMAINDER_STEPS: Final = 256
"""How many steps the remainder of two reals takes: DuckDB goes through up to 2,100 bits one by one,
and PostgreSQL divides exact numbers of hundreds of digits."""
LEAST_DIVIDEND: Final = 1 - 2**63


def add(node: Tree, bind: Bind) -> Expression:
    """a + b, or a date plus an interval."""
    left, right = trees.without_parentheses(node.this), trees.without_parentheses(node.expression)
    if isinstance(left, exp.Interval):
        left, right = right, left
    if isinstance(right, exp.Interval):
        return dates.shift_by_interval(bind(left), right, sign=1)
    a, b = bind(left), bind(right)
    if b.kind in (Kind.DATE, Kind.TIME) and a.kind is Kind.INTEGER:
        a, b = b, a
    if a.kind in (Kind.DATE, Kind.TIME):
        return dates.days_later(a, b, sign=1)
    return plus(require_number(a, "+"), require_number(b, "+"))


def subtract(node: Tree, bind: Bind) -> Expression:
    """a - b, the days between two dates, or a date minus an interval."""
    left, right = trees.without_parentheses(node.this), trees.without_parentheses(node.expression)
    if isinstance(right, exp.Interval):
        return dates.shift_by_interval(bind(left), right, sign=-1)
    a, b = bind(left), bind(right)
    if a.kind in (Kind.DATE, Kind.TIME) and b.kind.is_number:
        return dates.days_later(a, b, sign=-1)
    if {a.kind, b.kind} & {Kind.DATE, Kind.TIME}:
        return dates.days_between(a, b)
    a, b = require_number(a, "-"), require_number(b, "-")
    if is_known(b):
        return plus(a, negative(b))
    return _combine(exp.Sub, a, b, _subtracted, lambda x, y: x - y)


def multiply(node: Tree, bind: Bind) -> Expression:
    """a * b."""
    a, b = require_number(bind(node.this), "*"), require_number(bind(node.expression), "*")
    return _combine(exp.Mul, *_ordered(a, b), value_ranges.multiply, lambda x, y: x * y)


def divide(node: Tree, bind: Bind) -> Expression:
    """a / b as a real, NULL where b is zero."""
    a, b = (as_real(require_number(bind(one), "/")) for one in (node.this, node.expression))
    if is_null(a) or _is_null_or_zero(b):
        return null(Kind.REAL)
    if is_known(a) and is_known(b):
        x, y = float(value_of(a)), float(value_of(b))  # type: ignore[arg-type]
        return literal(x / y)
    away = _away_from_zero(b)
    exact = None if a.range is None or b.range is None else value_ranges.divide(a.range, b.range)
    range_ = None if exact is None else value_ranges.outward(exact.lower, exact.upper)
    finite = a.range is not None and b.range is not None
    nullable = a.nullable or b.nullable or not away or not finite
    tree = trees.guarded_binary(exp.Div, a.tree, b.tree, finite=finite, away_from_zero=away)
    return derive(tree, Kind.REAL, (a, b), range=range_, nullable=nullable)


def divide_whole(node: Tree, bind: Bind) -> Expression:
    """a // b of whole numbers, truncated towards zero, NULL where b is zero."""
    a, b = (_require_whole(bind(one), "//") for one in (node.this, node.expression))
    if is_null(a) or _is_null_or_zero(b):
        return null(Kind.INTEGER)
    if is_known(a) and is_known(b):
        return literal(_truncated_quotient(*_integers(a, b)))
    exact = value_ranges.truncated_quotient(a.range, b.range) if a.range is not None and b.range is not None else None
    range_ = exact if is_exact(exact) else None
    return _whole_division(exp.IntDiv, a, b, range_)


def modulo(node: Tree, bind: Bind) -> Expression:
    """a % b with the sign of a, NULL where b is zero."""
    a, b = (require_number(bind(one), "%") for one in (node.this, node.expression))
    if is_null(a) or _is_null_or_zero(b):
        return null(Kind.REAL if Kind.REAL in (a.kind, b.kind) else Kind.INTEGER)
    if is_known(a) and is_known(b):
        if a.kind is Kind.INTEGER and b.kind is Kind.INTEGER:
            return literal(_truncated_remainder(*_integers(a, b)))
        x, y = float(value_of(a)), float(value_of(b))  # type: ignore[arg-type]
        return null(Kind.REAL) if math.isinf(x) else literal(math.fmod(x, y))
    if a.kind is Kind.INTEGER and b.kind is Kind.INTEGER:
        return _whole_division(exp.Mod, a, b, value_ranges.remainder(a.range, b.range, whole=True))
    a, b = as_real(a), as_real(b)
    away = _away_from_zero(b)
    finite = a.range is not None and b.range is not None
    nullable = a.nullable or b.nullable or not away or not finite
    range_ = value_ranges.remainder(a.range, b.range, whole=False)
    tree = trees.guarded_binary(exp.Mod, a.tree, b.tree, finite=finite, away_from_zero=away)
    for node in tree.find_all(exp.Mod):
        trees.add_work(node, REMAINDER_STEPS)
    return derive(tree, Kind.REAL, (a, b), range=range_, nullable=nullable)


def minus(node: Tree, bind: Bind) -> Expression:
    """-a."""
    return negative(require_number(bind(node.this), "-"))


def plus(a: Expression, b: Expression) -> Expression:
    """Return a + b of two numbers; a negative literal is subtracted instead."""
    a, b = _ordered(a, b)
    if is_known(b) and not is_known(a) and value_of(b) < 0:  # type: ignore[operator]
        return _combine(exp.Sub, a, negative(b), _subtracted, lambda x, y: x - y)
    return _combine(exp.Add, a, b, value_ranges.add, lambda x, y: x + y)


def negative(a: Expression) -> Expression:
    """Return -a."""
    if is_known(a):
        return literal(-value_of(a))  # type: ignore[operator]
    if is_null(a):
        return a
    held = a if a.kind is Kind.INTEGER and is_exact(a.range) else as_real(a)
    range_ = None if held.range is None else value_ranges.negate(held.range)
    return derive(trees.map_unguarded(held.tree, trees.negative), held.kind, (held,), range=range_)


def _combine(
    kind: type[Tree],
    a: Expression,
    b: Expression,
    ranges: Callable[[Range, Range], Range],
    fold: Callable[[Any, Any], Any],
) -> Expression:
    """Return an operation on two numbers, as an integer if that is safe, otherwise as a real."""
    exact = None if a.range is None or b.range is None else ranges(a.range, b.range)
    whole = a.kind is Kind.INTEGER and b.kind is Kind.INTEGER
    if is_null(a) or is_null(b):
        return null(Kind.INTEGER if whole else Kind.REAL)
    whole = whole and is_exact(a.range) and is_exact(b.range) and is_exact(exact)
    if not whole:
        a, b = as_real(a), as_real(b)
    if is_known(a) and is_known(b):
        return literal(_fold(fold, value_of(a), value_of(b)))  # type: ignore[arg-type]
    if whole:
        return derive(trees.binary(kind, a.tree, b.tree), Kind.INTEGER, (a, b), range=exact)
    if a.range is None or b.range is None:  # infinities can meet
        return derive(trees.guarded_binary(kind, a.tree, b.tree, finite=False), Kind.REAL, (a, b), nullable=True)
    exact = ranges(a.range, b.range)
    tree = trees.guarded_binary(kind, a.tree, b.tree, finite=True)
    return derive(tree, Kind.REAL, (a, b), range=value_ranges.outward(exact.lower, exact.upper))


def _fold(fold: Callable[..., Any], one: float, other: float) -> int | float:
    """Return an operation on two literals, computed on their decimals: 0.06 + 0.01 is 0.07."""
    if isinstance(one, int) and isinstance(other, int):
        return int(fold(one, other))
    try:
        return float(fold(Fraction(repr(one)), Fraction(repr(other))))
    except (ValueError, OverflowError):  # infinite, or beyond all doubles
        return float(fold(one, other))


def _whole_division(kind: type[Tree], a: Expression, b: Expression, range_: Range | None) -> Expression:
    """Return a // b or a % b; the least integer divided by -1 would not be one."""
    away = _away_from_zero(b)
    dividend, nullable = a.tree, a.nullable or b.nullable or not away
    if a.range is None and (b.range is None or b.range.lower <= -1 <= b.range.upper):
        dividend = trees.case((trees.binary(exp.GTE, dividend, trees.constant(LEAST_DIVIDEND)), dividend))
        nullable = True
    divisor = b.tree if away else trees.null_if_zero(b.tree)
    tree = trees.binary(kind, dividend, divisor)
    makes_null = not away or dividend is not a.tree or a.makes_null or b.makes_null
    return derive(tree, Kind.INTEGER, (a, b), range=range_, nullable=nullable, makes_null=makes_null)


def _require_whole(expression: Expression, function: str) -> Expression:
    if is_null(expression):
        return null(Kind.INTEGER)
    if require_number(expression, function).kind is not Kind.INTEGER:
        takes = "takes integers whose bounds are known, and got a real"
        raise WrongKind(f"{function} {takes}; FLOOR(a / b) takes any numbers")
    return expression


def _ordered(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Return two operands in canonical order: literals last, others by their text."""
    return (b, a) if (is_known(a), a.text) > (is_known(b), b.text) else (a, b)


def _away_from_zero(b: Expression) -> bool:
    return b.range is not None and not b.range.lower <= 0 <= b.range.upper


def _subtracted(a: Range, b: Range) -> Range:
    return value_ranges.add(a, value_ranges.negate(b))


def _is_null_or_zero(divisor: Expression) -> bool:
    return is_null(divisor) or (is_known(divisor) and value_of(divisor) == 0)


def _integers(a: Expression, b: Expression) -> tuple[int, int]:
    x, y = value_of(a), value_of(b)
    assert isinstance(x, int)
    assert isinstance(y, int)
    return x, y


def _truncated_quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _truncated_remainder(x: int, y: int) -> int:
    return abs(x) % abs(y) * (-1 if x < 0 else 1)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Add: Rule(add, ("+",)),
    exp.Sub: Rule(subtract, ("-",)),
    exp.Mul: Rule(multiply, ("*",)),
    exp.Div: Rule(divide, ("/",)),
    exp.IntDiv: Rule(divide_whole, ("//",)),
    exp.Mod: Rule(modulo, ("%", "MOD")),
    exp.Neg: Rule(minus, ("-",)),
}
