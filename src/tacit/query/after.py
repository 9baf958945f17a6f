"""A SELECT over an answer: aggregates of noisy aggregates, shares, rankings, whatever is computed after the noise.

    WITH monthly AS (SELECT month, COUNT(*) AS n FROM visits GROUP BY month) SELECT AVG(n), MAX(n) FROM monthly

The inner SELECT is the question; the outer one reads what was released, so it is post-processing and costs nothing.
The same functions are allowed as over rows, and aggregates and windows are the database's own.
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
from tacit.query.answer_windows import ordered, over_answer
from tacit.query.conditions import no_value
from tacit.query.expressions import Expression
from tacit.query.parse import Text, called, only, rows_named, written
from tacit.query.scalars import scalar
from tacit.query.scratch import TABLE, TYPES, evaluate

_SELECT: Final = (
    "expressions", "from_", "where", "with_", "group", "having", "order", "limit", "offset", "distinct"
)  # fmt: skip
_WHOLE: Final = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank)
_SAME: Final = (exp.Min, exp.Max)
_REAL: Final = (exp.Sum, exp.Avg, exp.Median, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of an answer: its name and its kind."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Outer:
    """A SELECT over the columns o0, o1, ... of an answer, and the columns that it gives."""

    tree: exp.Select
    fields: tuple[Field, ...]

    @property
    def sql(self) -> str:
        """The SELECT as the scratch database runs it."""
        return self.tree.sql(dialect="duckdb")


def outer(select: exp.Select, given: Sequence[Field], text: Text) -> Outer:
    """Read a SELECT whose FROM is the answer with the given columns."""
    only(select, _SELECT, text)
    return _Reader(select, given, text).outer()


class _Reader:
    """Binds the parts of one SELECT over the columns of an answer."""

    def __init__(self, select: exp.Select, given: Sequence[Field], text: Text) -> None:
        self.select, self.text, self.given = select, text, given
        self.by_name = {field.name.lower(): index for index, field in enumerate(given)}

    def outer(self) -> Outer:
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
            only(distinct, (), self.text)
            tree = tree.distinct()
        order = list(self._order(items))
        tree = tree.order_by(*order) if order else tree
        for name in ("limit", "offset"):
            if (number := rows_named(self.select, name, self.text)) is not None:
                tree = tree.limit(number) if name == "limit" else tree.offset(number)
        found = Outer(tree, tuple(Field(name, value.kind) for name, value in items))
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
            return over_answer(node, self.bind, self.text)
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        if isinstance(node, exp.Subquery | exp.Query):
            raise no_value(node, self.text)
        return scalar(node, self.bind, self.text.place)

    def _items(self) -> Iterator[tuple[str, Expression]]:
        for item in self.select.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                for index, field in enumerate(self.given):
                    yield field.name, Expression(exp.column(f"o{index}"), field.kind)
            else:
                inner = item.this if isinstance(item, exp.Alias) else item
                named = isinstance(item, exp.Alias | exp.Column)
                yield item.alias_or_name if named else written(inner), self.bind(inner)

    def _aggregate(self, node: exp.Expression) -> Expression:
        only(node, ("this", "big_int"), self.text)
        whole, same = isinstance(node, _WHOLE), isinstance(node, _SAME)
        if not (whole or same or isinstance(node, _REAL)):
            raise NotAllowed(
                f"{called(node)} over an answer is not defined",
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
            raise NotAllowed("DISTINCT stands in COUNT(DISTINCT x) only", place=self.text.place(node))
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
            only(group, ("expressions",), self.text)
            nodes = [self._named(one, items).tree for one in group.expressions]
        return tree.group_by(*(node.copy() for node in nodes))

    def _order(self, items: Sequence[tuple[str, Expression]]) -> Iterator[exp.Ordered]:
        clause = self.select.args.get("order")
        for one in clause.expressions if clause is not None else ():
            only(one, ("this", "desc", "nulls_first"), self.text)
            if isinstance(one.this, exp.Var) and one.this.name.upper() == "ALL":
                yield from (ordered(one, value) for _, value in items)
            else:
                yield ordered(one, self._named(one.this, items))

    def _named(self, node: exp.Expression, items: Sequence[tuple[str, Expression]]) -> Expression:
        """Return what a position or an alias of the SELECT list stands for, or the expression itself."""
        if isinstance(node, exp.Literal) and node.is_int:
            if not 1 <= int(node.this) <= len(items):
                raise NotSQL(f"{node.this} names no item of SELECT", place=self.text.place(node))
            return items[int(node.this) - 1][1]
        if isinstance(node, exp.Column):
            for name, value in items:
                if name.lower() == node.name.lower():
                    return value
        return self.bind(node)

    def _check(self, found: Outer) -> None:
        """Try the SELECT on an answer without rows, so that what the database would refuse is refused now."""
        empty = {f"o{index}": np.array([], dtype=object) for index in range(len(self.given))}
        try:
            evaluate(found.sql, empty)
        except duckdb.Error:
            raise NotSQL(
                "the outer SELECT is not valid over the answer: every item is grouped or aggregated, or none is",
                place=self.text.place(self.select),
            ) from None
