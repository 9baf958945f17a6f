"""Binding of conditions and of values without windows.

A window needs all rows of its unit, so it may stand only in the SELECT list of a subquery.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.parse import Text
from tacit.query.scalars import Bind


def bind_condition(node: exp.Expression, bind: Bind, text: Text, where: str = "a condition") -> Expression:
    """Return the value of a condition; raise WrongKind unless it is a truth value. `where` names its clause."""
    bound = bind_without_window(node, bind, text, where)
    if bound.kind is not Kind.BOOLEAN:
        raise WrongKind(f"{where} must be true or false, not {bound.kind}", place=text.place(node))
    return bound


def bind_without_window(node: exp.Expression, bind: Bind, text: Text, where: str) -> Expression:
    """Return the value of a node; raise NotAllowed if it holds a window."""
    bound = bind(node)
    if _has_window(bound.tree):
        raise NotAllowed(
            f"{where} cannot hold a window",
            accepted="compute the window in a subquery and use its column",
            place=text.place(node),
        )
    return bound


def _has_window(tree: exp.Expr) -> bool:
    """Whether a value is computed by a window of its own SELECT; windows inside subqueries do not count."""
    return any(isinstance(one, exp.Window) for one in tree.walk(prune=lambda node: isinstance(node, exp.Query)))


def scalar_subquery_error(node: exp.Expression, text: Text) -> NotAllowed:
    """Return the error for a subquery that stands where one value is wanted."""
    return NotAllowed(
        "a subquery as a value is not supported",
        accepted="ask for it by itself and write the number here, or join it in FROM",
        place=text.place(node),
    )
