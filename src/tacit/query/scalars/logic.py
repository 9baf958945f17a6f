"""AND, OR and NOT, and comparisons of a value with a constant, in one canonical form.

Promise: the result has the same truth value as the parts in SQL's logic of three values, and is written in the same way
for every order and nesting of them. Long chains are handled without recursion. Whole numbers and dates are compared
with <= and >= only, and the clamping of a value is left out where the comparison has the same result without it: below,
within and above its bounds, and for NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlglot import exp

from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.scalars import trees
from tacit.query.scalars.facts import WHOLE_MAX, Bind, Rule, derive, is_known, is_null, literal, null, require_kind
from tacit.query.scalars.trees import Tree

_COMPARED: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_OPPOSITES: Final[dict[type[exp.Expression], type[Tree]]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
    exp.NullSafeEQ: exp.NullSafeNEQ,
    exp.NullSafeNEQ: exp.NullSafeEQ,
}


def comparison(kind: type[Tree], left: Tree, right: Tree) -> Tree:
    """Return a comparison of two trees."""
    left, right = trees.without_parentheses(left), trees.without_parentheses(right)
    if trees.is_constant(right):
        kind, right = _close_interval(kind, right)
        left = _drop_clamp(kind, left, right)
    return trees.binary(kind, left, right)


def _close_interval(kind: type[Tree], right: Tree) -> tuple[type[Tree], Tree]:
    """Return x >= 18 for x > 17, and x <= 17 for x < 18; for whole numbers and dates, not for reals."""
    if kind not in (exp.GT, exp.LT):
        return kind, right
    value = trees.value(right)
    step, closed = (1, exp.GTE) if kind is exp.GT else (-1, exp.LTE)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < WHOLE_MAX:
        return closed, trees.constant(value + step)
    if isinstance(value, date) and not isinstance(value, datetime) and date.min < value < date.max:
        return closed, trees.constant(value + timedelta(days=step))
    return kind, right


def _drop_clamp(kind: type[Tree], left: Tree, right: Tree) -> Tree:
    """Return the left side without its clamping, if the comparison has the same result without it."""
    found = trees.unclamped(left)
    if found is None:
        return left
    inner, lower, upper = found
    value: Any = trees.value(right)
    above, below = trees.value(lower) < value, value < trees.value(upper)
    at_ends = kind in (exp.LTE, exp.GT) and trees.value(lower) == value and below
    at_ends = at_ends or (kind in (exp.GTE, exp.LT) and trees.value(upper) == value and above)
    return inner if (above and below and kind in _COMPARED) or at_ends else left


def negate(expression: Expression) -> Expression:
    """Return NOT of a truth value, with NOT as far inside as it goes."""
    if is_null(expression):
        return null(Kind.BOOLEAN)
    if is_known(expression):
        return literal(not trees.value(expression.tree))
    return replace(expression, tree=_opposite(expression.tree), domain=_opposite_domain(expression))


def conjunction(parts: Sequence[Expression]) -> Expression:
    """Return AND of truth values; TRUE if there is none."""
    return _connect(exp.And, parts)


def disjunction(parts: Sequence[Expression]) -> Expression:
    """Return OR of truth values; FALSE if there is none."""
    return _connect(exp.Or, parts)


def chain_terms(kind: type[Tree], tree: Tree) -> list[Tree]:
    """Return the terms of a chain of AND or of OR, through parentheses, from left to right."""
    terms, waiting = [], [tree]
    while waiting:
        bare = trees.without_parentheses(waiting.pop())
        if type(bare) is kind:
            waiting += (bare.expression, bare.this)
        else:
            terms.append(bare)
    return terms


def _connect(kind: type[Tree], parts: Sequence[Expression]) -> Expression:
    name, neutral = ("AND", True) if kind is exp.And else ("OR", False)
    checked = [require_kind(part, Kind.BOOLEAN, name) for part in parts]
    constants = [trees.value(part.tree) for part in checked if is_known(part)]
    if (not neutral) in constants:
        return literal(not neutral)
    left = [*{part.text: part for part in checked if not is_known(part)}.values()]  # each once
    if not left:
        return literal(neutral)
    if len(left) == 1 or all(is_null(part) for part in left):
        return left[0]
    terms = [term for part in left for term in chain_terms(kind, part.tree)]
    return derive(_canonical_chain(kind, terms), Kind.BOOLEAN, left)


def _canonical_chain(kind: type[Tree], terms: Iterable[Tree]) -> Tree:
    """Return a chain of terms, each once and in order of their texts."""
    texts = {_text(term): term for term in _merge_into_lists(kind, list(terms))}
    return trees.chain(kind, [texts[text] for text in sorted(texts)])


def _merge_into_lists(kind: type[Tree], terms: list[Tree]) -> list[Tree]:
    """Return terms with x = 1 OR x = 2 as x IN (1, 2), and x <> 1 AND x <> 2 as x NOT IN (1, 2)."""
    lists: dict[Tree, list[Tree]] = {}
    others = []
    for term in terms:
        member = _membership(term if kind is exp.Or else _opposite(term)) if _can_be_listed(kind, term) else None
        if member is None:
            others.append(term)
        else:
            lists.setdefault(member[0], []).extend(member[1])
    members = [membership(this, values) for this, values in lists.items()]
    return others + (members if kind is exp.Or else [_opposite(one) for one in members])


def _can_be_listed(kind: type[Tree], term: Tree) -> bool:
    if kind is exp.Or:
        return isinstance(term, exp.EQ | exp.In)
    return isinstance(term, exp.NEQ) or (isinstance(term, exp.Not) and isinstance(term.this, exp.In))


def _membership(term: Tree) -> tuple[Tree, list[Tree]] | None:
    if isinstance(term, exp.In):
        return None if term.args.get("query") is not None else (term.this, term.expressions)
    return (term.this, [term.expression]) if trees.is_constant(term.expression) else None


def in_constants(left: Tree, values: Sequence[Tree]) -> Tree:
    """Return whether a value equals one of several constants; its clamping is left out as in `comparison`."""
    left = trees.without_parentheses(left)
    if (free := trees.unclamped(left)) is None:
        return membership(left, values)
    inner, lower, upper = free[0], trees.value(free[1]), trees.value(free[2])
    inside, others = list[Tree](), list[Tree]()
    for value in values:
        (inside if lower < trees.value(value) < upper else others).append(value)  # type: ignore[operator]
    lists = [(inner, inside), (left, others)]
    return _canonical_chain(exp.Or, [membership(this, some) for this, some in lists if some])


def membership(this: Tree, values: Sequence[Tree]) -> Tree:
    """Return x IN (...) over constants, sorted and each once, or x = ... if there is one."""
    distinct = {trees.value(value): value for value in values}
    listed = [distinct[value] for value in sorted(distinct)]
    if len(listed) == 1:
        return comparison(exp.EQ, this, listed[0])
    return exp.In(this=trees.operand(trees.without_parentheses(this)), expressions=[value.copy() for value in listed])


def _opposite(tree: Tree) -> Tree:
    """Return NOT of a tree."""
    tree = trees.without_parentheses(tree)
    if isinstance(tree, exp.And | exp.Or):
        other = exp.Or if isinstance(tree, exp.And) else exp.And
        terms = [_opposite(term) for term in chain_terms(type(tree), tree)]
        return _canonical_chain(other, [inner for term in terms for inner in chain_terms(other, term)])
    if isinstance(tree, exp.Not):
        return trees.without_parentheses(tree.this).copy()
    if type(tree) is exp.Cast and isinstance(tree.this, exp.Null):
        return tree.copy()
    if isinstance(tree, exp.Boolean):
        return exp.Boolean(this=not tree.this)
    if type(tree) in _OPPOSITES:
        return comparison(_OPPOSITES[type(tree)], tree.this, tree.expression)
    closed = isinstance(tree, exp.In | exp.Is) or not isinstance(tree, exp.Binary)
    return exp.Not(this=tree.copy() if closed else exp.Paren(this=tree.copy()))


def _opposite_domain(expression: Expression) -> tuple[bool, ...] | None:
    return None if expression.domain is None else tuple(not value for value in expression.domain)


def _text(tree: Tree) -> str:
    return tree.sql(dialect="duckdb")


def _and(node: Tree, bind: Bind) -> Expression:
    return conjunction([bind(term) for term in chain_terms(exp.And, node)])


def _or(node: Tree, bind: Bind) -> Expression:
    return disjunction([bind(term) for term in chain_terms(exp.Or, node)])


def _not(node: Tree, bind: Bind) -> Expression:
    return negate(require_kind(bind(node.this), Kind.BOOLEAN, "NOT"))


def _paren(node: Tree, bind: Bind) -> Expression:
    return bind(trees.without_parentheses(node))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.And: Rule(_and, ("AND",)),
    exp.Or: Rule(_or, ("OR",)),
    exp.Not: Rule(_not, ("NOT",)),
    exp.Paren: Rule(_paren, ()),
}
