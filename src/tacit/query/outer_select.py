"""A SELECT over an answer, and windows over its rows: aggregates of noisy aggregates, shares, ranks, running sums.

    WITH monthly AS (SELECT month, COUNT(*) AS n FROM visits GROUP BY month) SELECT AVG(n), MAX(n) FROM monthly

The inner SELECT is the question. The outer one reads released numbers, so it is post-processing: it costs nothing, and
may reach over all rows. Scalar functions are those of rows; aggregates and windows are those of the scratch database.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np
from sqlglot import exp

from tacit.privacy.errors import NotAllowed, NotInCatalog, NotSQL
from tacit.privacy.tables import Kind
from tacit.query.conditions import scalar_subquery_error
from tacit.query.expressions import Expression
from tacit.query.parse import DISTANCE_MAX, Text, function_name, limit_or_offset, require_only, source_text
from tacit.query.scalars import Bind, scalar
from tacit.query.scratch_database import TABLE, TYPES, evaluate

_SELECT: Final = (
    "expressions", "from_", "where", "with_", "group", "having", "order", "limit", "offset", "distinct"
)  # fmt: skip
_WHOLE: Final = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank)
_SAME: Final = (exp.Min, exp.Max)
_REAL: Final = (exp.Sum, exp.Avg, exp.Median, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop)
_WHOLE_WINDOWS: Final = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_REAL_WINDOWS: Final = (exp.Sum, exp.Avg, exp.PercentRank, exp.CumeDist)
_SAME_WINDOWS: Final = (exp.Min, exp.Max, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
ACCEPTED: Final = (
    "COUNT, SUM, AVG, MIN, MAX, ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE "
    "and LAST_VALUE are"
)
_ENDS: Final = ("UNBOUNDED", "CURRENT ROW")


def bind_answer_window(node: exp.Window, bind: Bind, text: Text) -> Expression:
    """Bind a window over the rows of the answer; `bind` gives the value of one row."""
    require_only(node, ("this", "partition_by", "order", "spec", "over"), text)
    value = _window_function(node.this, bind, text)
    clause = node.args.get("order")
    order = [order_item(one, bind(one.this)) for one in (clause.expressions if clause else ())]
    tree = exp.Window(
        this=value.tree,
        partition_by=[bind(one).tree.copy() for one in node.args.get("partition_by") or ()],
        order=exp.Order(expressions=order) if order else None,
        spec=_frame(node.args.get("spec"), text),
    )
    return Expression(tree, value.kind)


def order_item(node: exp.Ordered, value: Expression) -> exp.Ordered:
    """Return a value with the direction of an item of ORDER BY."""
    return exp.Ordered(this=value.tree.copy(), desc=node.args.get("desc"), nulls_first=node.args.get("nulls_first"))


def _window_function(node: exp.Expression, bind: Bind, text: Text) -> Expression:
    if not isinstance(node, (*_WHOLE_WINDOWS, *_REAL_WINDOWS, *_SAME_WINDOWS)):
        raise NotAllowed(
            f"{function_name(node)} over the answer is not supported", accepted=ACCEPTED, place=text.place(node)
        )
    require_only(node, ("this", "big_int", "offset"), text)
    kind, argument = Kind.INTEGER if isinstance(node, _WHOLE_WINDOWS) else Kind.REAL, node.this
    if isinstance(argument, exp.Star):
        return Expression(exp.Count(this=exp.Star()), kind)
    if not isinstance(argument, exp.Expression):
        return Expression(type(node)(), kind)
    if isinstance(node, exp.Ntile):
        return Expression(exp.Ntile(this=_whole_number(argument, text, least=1).copy()), kind)
    value = bind(argument)
    if isinstance(node, _SAME_WINDOWS):
        offset = node.args.get("offset")
        place = {"offset": _whole_number(offset, text).copy()} if offset is not None else {}
        return Expression(type(node)(this=value.tree.copy(), **place), value.kind)
    tree = exp.cast(value.tree.copy(), "DOUBLE") if isinstance(node, _REAL_WINDOWS) else value.tree.copy()
    return Expression(type(node)(this=tree), kind)


def _frame(node: exp.Expression | None, text: Text) -> exp.WindowSpec | None:
    """Return a frame such as ROWS BETWEEN 6 PRECEDING AND CURRENT ROW, rebuilt from keywords and numbers."""
    if node is None:
        return None
    require_only(node, ("kind", "start", "start_side", "end", "end_side"), text)
    parts: dict[str, object] = {name: node.args.get(name) for name in ("kind", "start_side", "end_side")}
    for name in ("start", "end"):
        end = node.args.get(name)
        parts[name] = end if end is None or end in _ENDS else _whole_number(end, text).copy()
    return exp.WindowSpec(**parts)


def _whole_number(node: object, text: Text, *, least: int = 0) -> exp.Literal:
    if isinstance(node, exp.Literal) and node.is_int and least <= int(node.this) <= DISTANCE_MAX:
        return node
    place = text.place(node) if isinstance(node, exp.Expression) else None
    raise NotAllowed("the rows of a window frame are whole numbers", accepted="write a number such as 6", place=place)


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of an answer: its name and its kind."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class OuterSelect:
    """A SELECT over the columns o0, o1, ... of an answer, and the columns that it gives."""

    tree: exp.Select
    fields: tuple[AnswerColumn, ...]

    @property
    def sql(self) -> str:
        """The SELECT as the scratch database runs it."""
        return self.tree.sql(dialect="duckdb")


def read_outer_select(select: exp.Select, given: Sequence[AnswerColumn], text: Text) -> OuterSelect:
    """Read a SELECT whose FROM is the answer with the given columns."""
    require_only(select, _SELECT, text)
    return _OuterSelectReader(select, given, text).outer()


class _OuterSelectReader:
    """Binds the parts of one SELECT over the columns of an answer."""

    def __init__(self, select: exp.Select, given: Sequence[AnswerColumn], text: Text) -> None:
        self.select, self.text, self.given = select, text, given
        self.by_name = {field.name.lower(): index for index, field in enumerate(given)}

    def outer(self) -> OuterSelect:
        items = list(self._items())
        typed = [
            exp.alias_(exp.cast(exp.column(f"o{index}"), TYPES[field.kind]), f"o{index}")
            for index, field in enumerate(self.given)
        ]
        tree = exp.select(*(exp.alias_(value.tree.copy(), f"o{index}") for index, (_, value) in enumerate(items)))
        tree = tree.from_(exp.alias_(exp.Subquery(this=exp.select(*typed).from_(TABLE)), "a", table=True))
        if (where := self.select.args.get("where")) is not None:
            tree = tree.where(self.bind(where.this).tree.copy())
        tree = self._grouped(tree, items)
        if (having := self.select.args.get("having")) is not None:
            tree = tree.having(self.bind(having.this).tree.copy())
        if (distinct := self.select.args.get("distinct")) is not None:
            require_only(distinct, (), self.text)
            tree = tree.distinct()
        order = list(self._order(items))
        tree = tree.order_by(*order) if order else tree
        for name in ("limit", "offset"):
            if (number := limit_or_offset(self.select, name, self.text)) is not None:
                tree = tree.limit(number) if name == "limit" else tree.offset(number)
        found = OuterSelect(tree, tuple(AnswerColumn(name, value.kind) for name, value in items))
        self._check(found)
        return found

    def bind(self, node: exp.Expression) -> Expression:
        """Bind a node over the columns of the answer."""
        if isinstance(node, exp.Paren):
            return self.bind(node.this)
        if isinstance(node, exp.Column):
            index = self.by_name.get(node.name.lower())
            if index is None:
                place = self.text.place(node)
                at = f"at {place.line}:{place.column}: " if place else ""
                raise NotInCatalog(f"{at}the answer has no column {node.name}; it has {', '.join(self.by_name)}")
            return Expression(exp.column(f"o{index}"), self.given[index].kind)
        if isinstance(node, exp.Window):
            return bind_answer_window(node, self.bind, self.text)
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        if isinstance(node, exp.Subquery | exp.Query):
            raise scalar_subquery_error(node, self.text)
        return scalar(node, self.bind, self.text.place)

    def _items(self) -> Iterator[tuple[str, Expression]]:
        for item in self.select.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                for index, field in enumerate(self.given):
                    yield field.name, Expression(exp.column(f"o{index}"), field.kind)
            else:
                inner = item.this if isinstance(item, exp.Alias) else item
                named = isinstance(item, exp.Alias | exp.Column)
                yield item.alias_or_name if named else source_text(inner), self.bind(inner)

    def _aggregate(self, node: exp.Expression) -> Expression:
        require_only(node, ("this", "big_int"), self.text)
        whole, same = isinstance(node, _WHOLE), isinstance(node, _SAME)
        if not (whole or same or isinstance(node, _REAL)):
            raise NotAllowed(
                f"{function_name(node)} over an answer is not supported",
                accepted="COUNT, SUM, AVG, MIN, MAX, MEDIAN, STDDEV and VARIANCE are",
                place=self.text.place(node),
            )
        argument = node.this
        if argument is None or isinstance(argument, exp.Star):
            return Expression(
                type(node)(this=exp.Star()) if isinstance(node, exp.Count) else type(node)(), Kind.INTEGER
            )
        distinct = isinstance(argument, exp.Distinct)
        if distinct and (not whole or len(argument.expressions) != 1):
            raise NotAllowed("DISTINCT is supported in COUNT(DISTINCT x) only", place=self.text.place(node))
        value = self.bind(argument.expressions[0] if distinct else argument)
        tree: exp.Expression = value.tree.copy()
        if isinstance(node, _REAL):
            tree = exp.cast(tree, "DOUBLE")
        call = type(node)(this=exp.Distinct(expressions=[tree]) if distinct else tree)
        return Expression(call, Kind.INTEGER if whole else value.kind if same else Kind.REAL)

    def _grouped(self, tree: exp.Select, items: Sequence[tuple[str, Expression]]) -> exp.Select:
        group = self.select.args.get("group")
        if group is None:
            return tree
        if group.args.get("all"):
            nodes = [value.tree for _, value in items if not any(value.tree.find_all(exp.AggFunc))]
        else:
            require_only(group, ("expressions",), self.text)
            nodes = [self._named(one, items).tree for one in group.expressions]
        return tree.group_by(*(node.copy() for node in nodes))

    def _order(self, items: Sequence[tuple[str, Expression]]) -> Iterator[exp.Ordered]:
        clause = self.select.args.get("order")
        for one in clause.expressions if clause is not None else ():
            require_only(one, ("this", "desc", "nulls_first"), self.text)
            if isinstance(one.this, exp.Var) and one.this.name.upper() == "ALL":
                yield from (order_item(one, value) for _, value in items)
            else:
                yield order_item(one, self._named(one.this, items))

    def _named(self, node: exp.Expression, items: Sequence[tuple[str, Expression]]) -> Expression:
        """Return the value of a position or an alias of the SELECT list, or of the expression itself."""
        if isinstance(node, exp.Literal) and node.is_int:
            if not 1 <= int(node.this) <= len(items):
                raise NotSQL(f"{node.this} is not a position in the SELECT list", place=self.text.place(node))
            return items[int(node.this) - 1][1]
        if isinstance(node, exp.Column):
            for name, value in items:
                if name.lower() == node.name.lower():
                    return value
        return self.bind(node)

    def _check(self, found: OuterSelect) -> None:
        """Raise NotSQL if the scratch database refuses the SELECT; it is tried over an answer without rows."""
        empty = {f"o{index}": np.array([], dtype=object) for index in range(len(self.given))}
        try:
            evaluate(found.sql, empty)
        except duckdb.Error:
            raise NotSQL(
                "the outer SELECT is not valid over the answer: every item is grouped or aggregated, or none is",
                place=self.text.place(self.select),
            ) from None
