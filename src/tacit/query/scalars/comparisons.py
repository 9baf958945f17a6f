"""Comparisons in one form: constants on the right, whole numbers and dates with <= and >= only.

Promise: a comparison has the truth value that SQL gives it, also for NULL, and equal comparisons have equal texts.
Comparing a clamped column with a value strictly inside of its bounds leaves the clamping out (`logic`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from tacit.privacy.errors import WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import EXACT_MAX, Expression
from tacit.query.scalars import trees
from tacit.query.scalars.facts import (
    LEAST_SIZE,
    Bind,
    Rule,
    derive,
    is_known,
    is_null,
    least_integer,
    literal,
    null,
    require_kind,
    to_common_kind,
    value_of,
    with_article,
)
from tacit.query.scalars.logic import comparison, conjunction, disjunction, in_constants, negate
from tacit.query.scalars.trees import Tree

_FLIPPED: Final[dict[type[Tree], type[Tree]]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.NullSafeEQ: exp.NullSafeEQ,
    exp.NullSafeNEQ: exp.NullSafeNEQ,
}
_NAMES: Final[dict[type[Tree], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FOLDS: Final[dict[type[Tree], Callable[[Any, Any], bool]]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.NullSafeEQ: operator.eq,
    exp.NullSafeNEQ: operator.ne,
}


def compare(kind: type[Tree], a: Expression, b: Expression) -> Expression:
    """Return a comparison of two values."""
    if is_known(a) and not is_known(b):
        a, b, kind = b, a, _FLIPPED[kind]
    a, b = _comparable(kind, a, b)
    if is_null(a) or is_null(b):
        return null(Kind.BOOLEAN)
    if is_known(a) and is_known(b):
        return literal(_FOLDS[kind](value_of(a), value_of(b)))
    if not is_known(b):
        left, right = a.text, b.text
        if left > right:
            a, b, kind = b, a, _FLIPPED[kind]
        elif left == right:  # a value is equal to itself, or NULL
            kind = exp.EQ if kind in (exp.EQ, exp.LTE, exp.GTE) else exp.NEQ
    if a.kind is Kind.BOOLEAN and is_known(b) and kind in (exp.EQ, exp.NEQ):
        return a if value_of(b) == (kind is exp.EQ) else negate(a)
    return derive(comparison(kind, a.tree, b.tree), Kind.BOOLEAN, (a, b))


def not_distinct(a: Expression, b: Expression) -> Expression:
    """Return whether two values are equal or both NULL; it is never NULL."""
    if is_null(a) or is_null(b):
        return is_missing(b if is_null(a) else a)
    a, b = to_common_kind((_as_integer(exp.EQ, b, a), _as_integer(exp.EQ, a, b)), "IS DISTINCT FROM")
    if (is_known(a), a.text) > (is_known(b), b.text):
        a, b = b, a
    if is_known(a):
        return literal(value_of(a) == value_of(b))
    return derive(trees.binary(exp.NullSafeEQ, a.tree, b.tree), Kind.BOOLEAN, (a, b), nullable=False)


def is_missing(expression: Expression) -> Expression:
    """Return whether a value is NULL; that tells no unit from another, so the mark of the unit is dropped."""
    if is_null(expression):
        return literal(True)
    if is_known(expression):
        return literal(False)
    free = trees.unclamped(expression.tree)
    inner = expression.tree if free is None else free[0]
    tree = exp.Is(this=trees.operand(inner), expression=exp.Null())
    return Expression(tree, Kind.BOOLEAN, nullable=False)


def one_of(expression: Expression, values: list[Expression]) -> Expression:
    """Return whether a value equals one of several; constants of its own kind become one IN list."""
    listed, others = list[Expression](), list[Expression]()
    may_list = expression.kind is not Kind.BOOLEAN and not is_known(expression) and not is_null(expression)
    for value in values:
        left, right = _comparable(exp.EQ, expression, value) if may_list else (None, value)
        if left is expression and is_known(right):
            listed.append(right)
        else:
            others.append(compare(exp.EQ, expression, value))
    if listed:
        tree = in_constants(expression.tree, [value.tree for value in listed])
        others.append(derive(tree, Kind.BOOLEAN, (expression, *listed)))
    return disjunction(others)


def _comparable(kind: type[Tree], a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Return both sides as one kind; integers are compared with integers wherever the result is the same."""
    b = _as_integer(kind, a, b)
    text, other = (a, b) if a.kind is Kind.TEXT else (b, a)
    dated = other.kind in (Kind.DATE, Kind.TIME) and is_known(text)
    if Kind.TEXT in (a.kind, b.kind) and a.kind is not b.kind and not dated and not is_null(a) and not is_null(b):
        name = _NAMES.get(kind, "a comparison")
        raise WrongKind(f"{name} takes values of one kind and got a text and {with_article(other.kind)}; use CAST")
    left, right = to_common_kind((a, b), _NAMES.get(kind, "a comparison"))
    return left, right


def _as_integer(kind: type[Tree], a: Expression, b: Expression) -> Expression:
    """Return a real constant that an integer is compared with as an integer, wherever the result is the same.

    Engines would compare doubles, of which 2^63 is also that of the greatest integers, and -2^63 that of the least.
    """
    if a.kind is not Kind.INTEGER or b.kind is not Kind.REAL or is_known(a) or not is_known(b):
        return b
    value = value_of(b)
    assert isinstance(value, float)
    if abs(value) == LEAST_SIZE:
        return least_integer() if value < 0 else literal(math.inf)
    if abs(value) > EXACT_MAX:
        return b
    if value.is_integer():
        return literal(int(value))
    if kind in (exp.GT, exp.GTE, exp.LT, exp.LTE):  # x > 17.5 is x > 17, and x >= 17.5 is x >= 18
        return literal(math.floor(value) if kind in (exp.GT, exp.LTE) else math.ceil(value))
    return b


def _comparison(kind: type[Tree]) -> Rule:
    return Rule(lambda node, bind: compare(kind, bind(node.this), bind(node.expression)), (_NAMES[kind],))


def _between(node: Tree, bind: Bind) -> Expression:
    value = bind(node.this)
    lower, upper = bind(node.args["low"]), bind(node.args["high"])
    return conjunction([compare(exp.GTE, value, lower), compare(exp.LTE, value, upper)])


def _in(node: Tree, bind: Bind) -> Expression:
    return one_of(bind(node.this), [bind(value) for value in node.expressions])


def _is(node: Tree, bind: Bind) -> Expression:
    value, other = bind(node.this), trees.without_parentheses(node.expression)
    if isinstance(other, exp.Null):
        return is_missing(value)
    if not isinstance(other, exp.Boolean):
        raise WrongKind("IS takes NULL, TRUE or FALSE on its right; use = to compare values")
    value = require_kind(value, Kind.BOOLEAN, "IS")
    value = value if other.this else negate(value)
    if not value.nullable:
        return value
    if is_null(value):
        return literal(False)
    never = exp.Coalesce(this=value.tree.copy(), expressions=[exp.Boolean(this=False)])
    return derive(never, Kind.BOOLEAN, (value,), nullable=False)


def _same(node: Tree, bind: Bind) -> Expression:
    return not_distinct(bind(node.this), bind(node.expression))


def _distinct(node: Tree, bind: Bind) -> Expression:
    return negate(_same(node, bind))


RULES: Final[dict[type[exp.Expression], Rule]] = {kind: _comparison(kind) for kind in _NAMES} | {
    exp.Between: Rule(_between, ("BETWEEN",), ("this", "low", "high")),
    exp.In: Rule(_in, ("IN",), ("this", "expressions")),
    exp.Is: Rule(_is, ("IS",)),
    exp.NullSafeEQ: Rule(_same, ("IS NOT DISTINCT FROM",)),
    exp.NullSafeNEQ: Rule(_distinct, ("IS DISTINCT FROM",)),
}
