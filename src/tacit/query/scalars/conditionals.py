"""CASE, IF, COALESCE and NULLIF, and literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.scalars import trees
from tacit.query.scalars.comparisons import compare
from tacit.query.scalars.facts import (
    Bind,
    Rule,
    derive,
    is_known,
    is_null,
    literal,
    longest_text,
    null,
    require_kind,
    to_common_kind,
    union_facts,
    value_of,
)
from tacit.query.scalars.trees import Tree

Branch = tuple[Expression, Expression]


def case_expression(branches: Sequence[Branch], otherwise: Expression | None) -> Expression:
    """Return CASE WHEN ... THEN ... ELSE ... END; branches that are never or always taken are resolved."""
    left: list[Branch] = []
    otherwise = literal(None) if otherwise is None else otherwise
    conditions = [require_kind(condition, Kind.BOOLEAN, "WHEN") for condition, _ in branches]
    values = to_common_kind([*(value for _, value in branches), otherwise], "CASE")
    otherwise = values.pop()
    for condition, value in zip(conditions, values, strict=True):
        if is_known(condition) and value_of(condition):
            otherwise = value
            break
        if not is_known(condition) and not is_null(condition):
            left.append((condition, value))
    if not left:
        return otherwise
    results = [*(value for _, value in left), otherwise]
    range_, domain = union_facts(results)
    kind = otherwise.kind
    tree = trees.case(
        *((condition.tree, _branch(value)) for condition, value in left),
        otherwise=None if is_null(otherwise) else _branch(otherwise),
    )
    inputs = [one for branch in left for one in branch] + [otherwise]
    nullable = any(value.nullable for value in results)
    if kind is Kind.BOOLEAN:
        domain = None
    return derive(
        _wide(tree, results),
        kind,
        inputs,
        range=range_,
        domain=domain,
        nullable=nullable,
        length=longest_text(results),
        makes_null=any(value.makes_null for value in results),
    )


def coalesce(values: Sequence[Expression]) -> Expression:
    """Return COALESCE of several values, without those that cannot be reached."""
    kept: list[Expression] = []
    for value in to_common_kind(values, "COALESCE"):
        if not is_null(value):
            kept.append(value)
        if not value.nullable:
            break
    if len(kept) <= 1:
        return kept[0] if kept else values[0]
    range_, domain = union_facts(kept)
    kind = kept[0].kind
    tree = exp.Coalesce(this=kept[0].tree.copy(), expressions=[one.tree.copy() for one in kept[1:]])
    nullable = all(value.nullable for value in kept)
    domain = None if kind is Kind.BOOLEAN else domain
    return derive(tree, kind, kept, range=range_, domain=domain, nullable=nullable, length=longest_text(kept))


def _branch(value: Expression) -> Tree:
    return trees.constant(None) if is_null(value) else value.tree


def _wide(tree: Tree, results: Sequence[Expression]) -> Tree:
    """Return a whole number as 64 bits, which engines would not make of literals alone (`trees.standing_alone`)."""
    narrow = all(is_known(one) or is_null(one) for one in results) and results[0].kind is Kind.INTEGER
    return trees.cast(tree, Kind.INTEGER) if narrow else tree


def _case(node: Tree, bind: Bind) -> Expression:
    subject = None if node.this is None else bind(node.this)
    branches = []
    for one in node.args["ifs"]:
        condition = bind(one.this)
        if subject is not None:
            condition = compare(exp.EQ, subject, condition)
        branches.append((condition, bind(one.args["true"])))
    default = node.args.get("default")
    return case_expression(branches, None if default is None else bind(default))


def _if(node: Tree, bind: Bind) -> Expression:
    otherwise = node.args.get("false")
    return case_expression([(bind(node.this), bind(node.args["true"]))], None if otherwise is None else bind(otherwise))


def _coalesce(node: Tree, bind: Bind) -> Expression:
    return coalesce([bind(node.this), *(bind(one) for one in node.expressions)])


def _nullif(node: Tree, bind: Bind) -> Expression:
    value, other = bind(node.this), bind(node.expression)
    return case_expression([(compare(exp.EQ, value, other), null(value.kind))], value)


def _bare_null(node: Tree, bind: Bind) -> Expression:
    return literal(None)


def _boolean(node: Tree, bind: Bind) -> Expression:
    return literal(bool(node.this))


def _literal(node: Tree, bind: Bind) -> Expression:
    text = str(node.this)
    if node.is_string:
        return literal(text)
    try:
        return literal(int(text) if text.isdecimal() and len(text) < 400 else float(text))
    except ValueError:
        raise WrongKind(f"{text[:40]} is not a number") from None


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Case: Rule(_case, ("CASE",), ("this", "ifs", "default")),
    exp.If: Rule(_if, ("IF", "IIF"), ("this", "true", "false")),
    exp.Coalesce: Rule(_coalesce, ("COALESCE", "IFNULL", "NVL")),
    exp.Nullif: Rule(_nullif, ("NULLIF",)),
    exp.Null: Rule(_bare_null, ("NULL",)),
    exp.Boolean: Rule(_boolean, ("TRUE", "FALSE")),
    exp.Literal: Rule(_literal, ()),
}
