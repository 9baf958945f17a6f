"""The table of everything that an analyst may write about a row, and the way through it.

Promise: a node that no rule names is refused with its name, its place and what comes nearest; so is an argument that a
rule does not read. Results are limited in size, as guards repeat what they guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, Place, TooWide, WrongKind
from tacit.query.expressions import Expression
from tacit.query.parse import called
from tacit.query.scalars import (
    arithmetic,
    casts,
    comparisons,
    conditionals,
    dates,
    durations,
    logic,
    numbers,
    texts,
    trees,
)
from tacit.query.scalars.refusals import refused
from tacit.query.scalars.rule import Bind, Locate, Rule

NODES_MAX: Final = 20_000
"""How many nodes the tree of one expression has at most."""

SCALARS: Final[Mapping[type[exp.Expression], Rule]] = {
    **arithmetic.RULES,
    **casts.RULES,
    **comparisons.RULES,
    **conditionals.RULES,
    **dates.RULES,
    **durations.RULES,
    **logic.RULES,
    **numbers.RULES,
    **texts.RULES,
}
"""Every node that has a rule; functions that the parser has no node for are in `NAMED`."""

NAMED: Final[Mapping[str, Rule]] = {**dates.NAMED, **texts.NAMED}

FUNCTION_NAMES: Final = tuple(sorted({name for one in (*SCALARS.values(), *NAMED.values()) for name in one.names}))
"""What can be written, for documentation."""

_HARMLESS: Final = frozenset({"safe", "coalesce", "ignore_nulls", "date_part_boundary", "typed", "is_string"})
"""Arguments by which the parser notes how DuckDB understands a function; the rules follow DuckDB anyway."""


def scalar(node: exp.Expression, bind: Bind, locate: Locate) -> Expression:
    """Return the expression for one node of an analyst's SQL; `bind` resolves the nodes below it."""
    try:
        rule = _rule(node)
        _check_arguments(node, rule)
        expression = rule.build(node, bind)
    except (WrongKind, NotAllowed, TooWide) as error:
        raise error if error.place is not None else _placed(error, locate(node)) from None
    if trees.nodes(expression.tree) > NODES_MAX:
        raise TooWide("the expression is too large", accepted="write a shorter one", place=locate(node))
    return expression


def _rule(node: exp.Expression) -> Rule:
    rule = NAMED.get(node.name.upper()) if isinstance(node, exp.Anonymous) else SCALARS.get(type(node))
    if rule is None:
        raise refused(node, FUNCTION_NAMES)
    return rule


def _check_arguments(node: exp.Expression, rule: Rule) -> None:
    if isinstance(node, exp.Anonymous | exp.Literal | exp.Boolean):
        return
    for name, value in node.args.items():
        if value and name not in rule.takes and name not in _HARMLESS:
            raise NotAllowed(f"{called(node)} does not take {name.replace('_', ' ')} here", accepted="leave it out")


def _placed(error: WrongKind | NotAllowed | TooWide, place: Place | None) -> WrongKind | NotAllowed | TooWide:
    if isinstance(error, WrongKind):
        return WrongKind(error.message, place=place)
    message = error.message.removesuffix(f"; {error.accepted}") if error.accepted else error.message
    return type(error)(message, accepted=error.accepted, place=place)
