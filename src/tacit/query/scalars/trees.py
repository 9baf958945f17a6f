"""Construction of the nodes that reach an engine, and their size, depth and work.

Promise: every function returns a new tree that owns its nodes, with parentheses wherever another dialect could read it
differently. Numbers with a point are written with an exponent, which DuckDB reads as a double and not as a decimal.
`unguarded` and `unclamped` undo what `not_nan` and `clamped` built, and nothing that merely looks alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.privacy.tables import Kind
from tacit.query.expressions import Constant

Tree: TypeAlias = exp.Expression

TYPES: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "TEXT",
    Kind.DATE: "DATE",
    Kind.TIME: "TIMESTAMP",
}
"""The type by which an engine holds each kind; engines show their tables in exactly these."""

_MARK: Final = "tacit"
_SIZE: Final = "size"
_WORK: Final = "work"
_GUARD: Final = "not NaN"
_CLAMP: Final = "clamped"
_CLAMP_REAL: Final = "clamped real"


def constant(value: Constant) -> Tree:
    """Return a literal for one value."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | float():
            return _number(value)
        case str():
            return exp.Literal.string(value)
        case datetime():
            return cast(exp.Literal.string(value.isoformat(sep=" ")), Kind.TIME)
        case date():
            return cast(exp.Literal.string(value.isoformat()), Kind.DATE)


def _number(value: int | float) -> Tree:
    if isinstance(value, float) and math.isinf(value):
        return cast(exp.Literal.string("Infinity" if value > 0 else "-Infinity"), Kind.REAL)
    if value < 0:
        return exp.Neg(this=_number(-value))
    shown = repr(value)
    if isinstance(value, float) and "e" not in shown:
        shown = f"{shown.removesuffix('.0')}e0"
    return exp.Literal(this=shown, is_string=False)


def operand(tree: Tree) -> Tree:
    """Return a copy that can be an operand, in parentheses if it needs them."""
    closed = isinstance(tree, exp.Column | exp.Boolean | exp.Null | exp.Paren | exp.Func)
    opened = isinstance(tree, exp.Binary) and not isinstance(tree, exp.Pow)
    return tree.copy() if is_constant(tree) or (closed and not opened) else exp.Paren(this=tree.copy())


def binary(kind: type[Tree], left: Tree, right: Tree) -> Tree:
    """Return an operator between two trees."""
    return kind(this=operand(left), expression=operand(right))


def call(kind: type[Tree], this: Tree, **others: object) -> Tree:
    """Return a function of a tree."""
    return kind(this=this.copy(), **others)


def negative(tree: Tree) -> Tree:
    """Return a tree with a minus in front."""
    return exp.Neg(this=operand(tree))


def chain(kind: type[Tree], parts: list[Tree]) -> Tree:
    """Return AND or OR of several trees, without recursion."""
    if len(parts) == 1:
        return parts[0].copy()
    result = _term(parts[0])
    for part in parts[1:]:
        result = kind(this=result, expression=_term(part))
    return result


def _term(tree: Tree) -> Tree:
    return exp.Paren(this=tree.copy()) if isinstance(tree, exp.Connector) else tree.copy()


def cast(tree: Tree, kind: Kind) -> Tree:
    """Return a cast; the caller ensures that it cannot fail."""
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(TYPES[kind], dialect="duckdb"))


def try_cast(tree: Tree, kind: Kind) -> Tree:
    """Return a cast that gives NULL where it fails."""
    return exp.TryCast(this=tree.copy(), to=exp.DataType.build(TYPES[kind], dialect="duckdb"))


def case(*branches: tuple[Tree, Tree], otherwise: Tree | None = None) -> Tree:
    """Return CASE WHEN condition THEN value ... ELSE otherwise END; engines evaluate only the branch they take."""
    ifs = [exp.If(this=condition.copy(), true=value.copy()) for condition, value in branches]
    return exp.Case(ifs=ifs, default=None if otherwise is None else otherwise.copy())


def not_nan(tree: Tree) -> Tree:
    """Return a real with NULL in the place of NaN; DuckDB, PostgreSQL and Spark hold NaN equal to itself."""
    inner = unguarded(tree)
    return _marked(_GUARD, (_is_a_number(inner), inner.copy()))


def unguarded(tree: Tree) -> Tree:
    """Return the tree inside of `not_nan`, for functions that give NaN for NaN and are guarded again."""
    return tree.args["ifs"][0].args["true"] if _mark(tree) == _GUARD else tree


def not_a_number() -> Tree:
    """Return NaN."""
    return cast(exp.Literal.string("NaN"), Kind.REAL)


def map_unguarded(tree: Tree, build: Callable[[Tree], Tree]) -> Tree:
    """Return `build` of a tree with its guard against NaN outside; `build` must give NaN for NaN."""
    inner = unguarded(tree)
    return build(inner) if inner is tree else not_nan(build(inner))


def guarded_binary(kind: type[Tree], left: Tree, right: Tree, *, finite: bool, away_from_zero: bool = True) -> Tree:
    """Return an operator with its guard against NaN outside; without a guard where no operand could be NaN.

    `finite` says that both operands are finite or NULL; unless the right one is away from zero, zero becomes NULL.
    """
    inner = [unguarded(tree) for tree in (left, right)]
    guarded = inner[0] is not left or inner[1] is not right
    tree = binary(kind, inner[0], inner[1] if away_from_zero else null_if_zero(inner[1]))
    return not_nan(tree) if guarded or not finite else tree


def null_if_zero(tree: Tree) -> Tree:
    """Return a number with NULL in the place of zero, to divide by."""
    return exp.Case(ifs=[exp.If(this=binary(exp.NEQ, tree, constant(0)), true=tree.copy())])


def clamped(tree: Tree, lower: Tree, upper: Tree, *, real: bool) -> Tree:
    """Return a number clamped to two ends; NULL and NaN become NULL."""
    below = binary(exp.LT, tree, lower), lower.copy()
    if real:  # NaN is neither below nor within, and may not count as above
        within = binary(exp.LTE, tree, upper), tree.copy()
        return _marked(_CLAMP_REAL, below, within, (_is_a_number(tree), upper.copy()))
    return _marked(_CLAMP, below, (binary(exp.GT, tree, upper), upper.copy()), otherwise=tree.copy())


def unclamped(tree: Tree) -> tuple[Tree, Tree, Tree] | None:
    """Return the tree inside of `clamped`, with NaN as NULL, and both ends; None for any other tree."""
    if (mark := _mark(tree)) not in (_CLAMP, _CLAMP_REAL):
        return None
    ifs = tree.args["ifs"]
    inner = tree.args["default"] if mark == _CLAMP else not_nan(ifs[1].args["true"])
    return inner, ifs[0].args["true"], ifs[-1].args["true"]


def _marked(mark: str, *branches: tuple[Tree, Tree], otherwise: Tree | None = None) -> Tree:
    """Return a CASE that owns its trees, with a mark by which it is recognized; copies keep it."""
    tree = exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in branches], default=otherwise)
    tree.meta[_MARK] = mark
    return tree


def _mark(tree: Tree) -> object:
    return tree.meta.get(_MARK) if isinstance(tree, exp.Case) else None


def is_constant(tree: Tree) -> bool:
    """Whether a tree is a result of `constant` for a value other than NULL."""
    if type(tree) is exp.Cast:
        return isinstance(tree.this, exp.Literal) and tree.this.is_string
    if isinstance(tree, exp.Neg):
        return isinstance(tree.this, exp.Literal)
    return isinstance(tree, exp.Literal | exp.Boolean)


def standing_alone(tree: Tree) -> Tree:
    """Return a copy to be a column or an argument by itself, where engines would hold a whole constant in 32 bits.

    So every whole number has 64 bits: operators and conditionals with one operand that has them do not narrow it. NULL
    by itself has the type of a text.
    """
    if isinstance(tree, exp.Null):
        return cast(tree, Kind.TEXT)
    is_whole = is_constant(tree) and type(value(tree)) is int
    return cast(tree, Kind.INTEGER) if is_whole else tree.copy()


def value(tree: Tree) -> str | int | float | bool | date:
    """Return the value of a tree that `constant` built."""
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Neg):
        return -value(tree.this)  # type: ignore[operator]
    if isinstance(tree, exp.Cast):
        if tree.to.is_type("DATE"):
            return date.fromisoformat(tree.this.name)
        return float(tree.this.name) if tree.to.is_type("DOUBLE") else datetime.fromisoformat(tree.this.name)
    if tree.is_string:
        return str(tree.this)
    return int(tree.this) if tree.this.isdecimal() else float(tree.this)


def node_count(tree: Tree) -> int:
    """Return how many nodes a tree has with the columns of subqueries written out.

    A list of constants counts as one, for it is written once and looked up.
    """
    count, waiting = 0, [tree]
    while waiting:
        node = waiting.pop()
        count += _size(node)
        if isinstance(node, exp.In) and node.args.get("query") is None:
            waiting.append(node.this)
        else:
            waiting += node.iter_expressions()
    return count


def expanded_size(tree: exp.Expr) -> int:
    """Return how many nodes a query or value has with the columns of subqueries written out, lists included."""
    return sum(map(_size, tree.walk()))


def _size(node: exp.Expr) -> int:
    """Return how many nodes a node counts for."""
    known = node._meta  # `meta` would make an empty dictionary, to be copied with every node
    return int(known.get(_SIZE, 1)) if known else 1


def work(tree: exp.Expr) -> int:
    """Return how many steps a query or value takes for one row, with the columns of subqueries written out.

    A node is one step, and so is a list of constants, which is looked up; text functions have the work of the
    length of their texts. What rows are ordered by is compared SORT_STEPS times.
    """
    total, waiting = 0, [(tree, 1)]
    while waiting:
        node, times = waiting.pop()
        known = node._meta
        total += times * (int(known.get(_WORK, 1)) if known else 1)
        if isinstance(node, exp.Ordered):
            times *= SORT_STEPS
        listed = isinstance(node, exp.In) and node.args.get("query") is None
        waiting += [(child, times) for child in ([node.this] if listed else node.iter_expressions())]
    return total


CHARACTERS_READ: Final = 64
"""How many characters of a text are hashed, compared or handed on in one step."""

CHARACTERS_COPIED: Final = 4
"""How many characters of a text are copied or counted in one step; looked at one by one, each is a step."""

SORT_STEPS: Final = 20
"""How many times a row is compared when it is sorted among the rows of a unit, of which there are at most 2^20."""


def add_work(tree: Tree, steps: int) -> Tree:
    """Return the tree with so many steps of work added to its outermost node; copies keep them."""
    tree.meta[_WORK] = 1 + steps
    return tree


def depth(tree: exp.Expr) -> int:
    """Return how many levels a query or value has."""
    level, levels = [tree], 0
    while level:
        level, levels = [child for node in level for child in node.iter_expressions()], levels + 1
    return levels


COLUMN_SIZE: Final = 3
"""How many nodes a plain column of a table has: itself, its name, and the name of its table."""


def column_for(column: exp.Column, value: Tree) -> exp.Column:
    """Return a column of a subquery with the size and the work of its value; copies keep them."""
    beside = COLUMN_SIZE - 1  # its name and that of its table are counted by themselves
    column.meta[_SIZE] = max(expanded_size(value), COLUMN_SIZE) - beside
    column.meta[_WORK] = max(work(value), COLUMN_SIZE) - beside
    return column


def without_parentheses(node: Tree) -> Tree:
    """Return a node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_a_number(tree: Tree) -> Tree:
    return binary(exp.NEQ, tree, not_a_number())
