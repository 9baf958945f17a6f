"""Windows over the rows of an answer: shares of a total, ranks, running sums, changes against the row before.

They are computed from released numbers after the noise, so they cost nothing, and any of them may reach over all rows.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.parse import DISTANCE_MAX, Text, called, only
from tacit.query.scalars import Bind

_WHOLE: Final = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_REAL: Final = (exp.Sum, exp.Avg, exp.PercentRank, exp.CumeDist)
_SAME: Final = (exp.Min, exp.Max, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
ACCEPTED: Final = (
    "COUNT, SUM, AVG, MIN, MAX, ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE "
    "and LAST_VALUE are"
)
_ENDS: Final = ("UNBOUNDED", "CURRENT ROW")


def over_answer(node: exp.Window, bind: Bind, text: Text) -> Expression:
    """Return a window over the rows of the answer; `bind` gives the values of one of them."""
    only(node, ("this", "partition_by", "order", "spec", "over"), text)
    value = _function(node.this, bind, text)
    clause = node.args.get("order")
    order = [ordered(one, bind(one.this)) for one in (clause.expressions if clause else ())]
    tree = exp.Window(
        this=value.tree,
        partition_by=[bind(one).tree.copy() for one in node.args.get("partition_by") or ()],
        order=exp.Order(expressions=order) if order else None,
        spec=_frame(node.args.get("spec"), text),
    )
    return Expression(tree, value.kind)


def ordered(node: exp.Ordered, value: Expression) -> exp.Ordered:
    """Return a value with the direction of an item of ORDER BY."""
    return exp.Ordered(this=value.tree.copy(), desc=node.args.get("desc"), nulls_first=node.args.get("nulls_first"))


def _function(node: exp.Expression, bind: Bind, text: Text) -> Expression:
    if not isinstance(node, (*_WHOLE, *_REAL, *_SAME)):
        raise NotAllowed(f"{called(node)} over the answer is not defined", accepted=ACCEPTED, place=text.place(node))
    only(node, ("this", "big_int", "offset"), text)
    kind, argument = Kind.INTEGER if isinstance(node, _WHOLE) else Kind.REAL, node.this
    if isinstance(argument, exp.Star):
        return Expression(exp.Count(this=exp.Star()), kind)
    if not isinstance(argument, exp.Expression):
        return Expression(type(node)(), kind)
    if isinstance(node, exp.Ntile):
        return Expression(exp.Ntile(this=_number(argument, text, least=1).copy()), kind)
    value = bind(argument)
    if isinstance(node, _SAME):
        offset = node.args.get("offset")
        place = {"offset": _number(offset, text).copy()} if offset is not None else {}
        return Expression(type(node)(this=value.tree.copy(), **place), value.kind)
    tree = exp.cast(value.tree.copy(), "DOUBLE") if isinstance(node, _REAL) else value.tree.copy()
    return Expression(type(node)(this=tree), kind)


def _frame(node: exp.Expression | None, text: Text) -> exp.WindowSpec | None:
    """Return a frame such as ROWS BETWEEN 6 PRECEDING AND CURRENT ROW, made of words and numbers alone."""
    if node is None:
        return None
    only(node, ("kind", "start", "start_side", "end", "end_side"), text)
    parts: dict[str, object] = {name: node.args.get(name) for name in ("kind", "start_side", "end_side")}
    for name in ("start", "end"):
        end = node.args.get(name)
        parts[name] = end if end is None or end in _ENDS else _number(end, text).copy()
    return exp.WindowSpec(**parts)


def _number(node: object, text: Text, *, least: int = 0) -> exp.Literal:
    if isinstance(node, exp.Literal) and node.is_int and least <= int(node.this) <= DISTANCE_MAX:
        return node
    place = text.place(node) if isinstance(node, exp.Expression) else None
    raise NotAllowed("a window counts its rows by whole numbers", accepted="write a number such as 6", place=place)
