"""Aggregates and windows within one unit: subqueries grouped by the unit, and windows partitioned by it.

Promise: a row that comes out belongs to the one unit whose rows it was made from, and is a function of the set of those
rows, not of their order: sums are of whole numbers (reals are put on a public grid first), and where an order has ties
all columns break them. The range of a value holds what the engine computes, with the rounding of whole numbers to
doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.mechanisms.grid import Grid
from tacit.privacy.errors import MixesUnits, NotAllowed, NotBounded, NotSQL, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.conditions import bind_condition as row_condition
from tacit.query.conditions import bind_without_window, scalar_subquery_error
from tacit.query.expressions import EXACT_MAX, Expression, Range
from tacit.query.parse import DISTANCE_MAX, Text, function_name, require_only
from tacit.query.relations import FromScope, UnitRows
from tacit.query.resolve import Ctes, Resolver
from tacit.query.row_limits import HELD_STEPS, held_characters
from tacit.query.scalars import Bind, convert, grid_steps, scalar
from tacit.query.scalars.facts import is_null
from tacit.query.scalars.trees import add_work, case, is_constant, standing_alone
from tacit.query.scalars.value_ranges import outward, slack

STEPS_IN_RANGE: Final = 2**30
"""How finely a real is put on a grid before a unit's own sum is taken."""

_SELECT: Final = ("expressions", "from_", "joins", "where", "with_", "group", "having", "order")


def group_by_unit(resolver: Resolver, select: exp.Select, ctes: Ctes) -> UnitRows:
    """Return the relation of a subquery that is grouped by the unit, or by a key that leads to it, and perhaps more."""
    text = resolver.text
    require_only(select, _SELECT, text)
    scope = resolver.scope(select, ctes)
    if scope.unit is None:
        raise NotAllowed("aggregates of public tables are not supported in subqueries", place=text.place(select))
    bind = _reject_windows(resolver.binder(scope, ctes), text)
    keys = [bind(node) for node in group_nodes(select, scope, text)]
    if not any(scope.is_unit(key) or (key.link is not None and not key.nullable) for key in keys):
        raise MixesUnits(
            "this subquery aggregates over several units",
            accepted="group it by the unit's column, or aggregate at the top only",
            place=text.place(select.args.get("group") or select),
        )
    finer = [key for key in keys if not scope.is_unit(key)]
    resolver.record_held(scope, finer, select)
    output = _output_binder(keys, scope, bind, text)
    pairs = [
        (item.alias_or_name or f"column{index}", output(item.this if isinstance(item, exp.Alias) else item))
        for index, item in enumerate(select.expressions)
    ]
    tree = scope.tree.select(
        *(exp.alias_(standing_alone(value.tree), f"c{index}") for index, (_, value) in enumerate(pairs)),
        exp.alias_(scope.unit.copy(), "_unit"),
    )
    # A constant groups nothing, and as a number it would name a column.
    by = [Expression(scope.unit, Kind.TEXT), *(key for key in keys if not (is_constant(key.tree) or is_null(key)))]
    tree = tree.group_by(*{key.text: key.tree.copy() for key in by}.values())
    if (having := select.args.get("having")) is not None:
        tree = tree.having(row_condition(having.this, output, text).tree.copy())
    if finer:  # otherwise a unit has one text for each of these
        resolver.record_held(scope, [value for _, value in pairs if value.tree.find(exp.AggFunc)], select)
    one_row = not finer
    return UnitRows(
        tree,
        tuple(name for name, _ in pairs),
        tuple(value for _, value in pairs),
        True,
        1 if one_row else scope.rows_per_unit,
        False,
        scope.tables,
        frozenset(index for index, (_, value) in enumerate(pairs) if scope.is_unit(value)),
        1 if one_row else scope.fan_out,
        1 if one_row else scope.rows_max,
        _unique([value for _, value in pairs], finer),
    )


def _unique(values: Sequence[Expression], keys: Sequence[Expression]) -> frozenset[frozenset[int]]:
    """Return the columns that identify the rows of a unit: its keys, if all of them are shown."""
    places = {value.text: index for index, value in reversed(list(enumerate(values)))}
    found = [places.get(key.text) for key in keys]
    known = frozenset(place for place in found if place is not None)
    return frozenset({known}) if len(known) == len({key.text for key in keys}) else frozenset()


def _reject_windows(bind: Bind, text: Text) -> Bind:
    return lambda node: bind_without_window(node, bind, text, "an aggregate or a window")


def group_nodes(select: exp.Select, scope: FromScope, text: Text) -> list[exp.Expression]:
    """Return the expressions of a GROUP BY, with positions and aliases resolved."""
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        return [_without_alias(item) for item in select.expressions if not any(item.find_all(exp.AggFunc))]
    require_only(group, ("expressions",), text)
    return [resolve_group_item(node, select, scope, text) for node in group.expressions]


def resolve_group_item(node: exp.Expression, select: exp.Select, scope: FromScope, text: Text) -> exp.Expression:
    """Return the expression of a GROUP BY item: a column, or the item of SELECT at a position or under an alias."""
    if isinstance(node, exp.Literal) and not node.is_string:
        items = select.expressions
        if not (node.is_int and 1 <= int(node.this) <= len(items)):
            raise NotSQL(f"GROUP BY {node.this} is not a position in the SELECT list", place=text.place(node))
        return _without_alias(items[int(node.this) - 1])
    if isinstance(node, exp.Column) and not node.table and not scope.has(node.name):
        for item in select.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
                return _without_alias(item)
    return node


def _without_alias(item: exp.Expression) -> exp.Expression:
    return item.this if isinstance(item, exp.Alias) else item


def _output_binder(keys: list[Expression], scope: FromScope, bind: Bind, text: Text) -> Bind:
    """Return the function that binds an item of the SELECT list: keys, aggregates of the unit's rows, and both."""
    by_text = {key.text: key for key in keys}

    def output(node: exp.Expression) -> Expression:
        if isinstance(node, exp.Paren):
            return output(node.this)
        if isinstance(node, exp.AggFunc | exp.Filter):
            return _aggregate(node, scope, bind, text)
        if isinstance(node, exp.Subquery | exp.Query):
            raise scalar_subquery_error(node, text)
        if not any(node.find_all(exp.AggFunc)):
            value = bind(node)
            if value.text in by_text or not any(node.find_all(exp.Column)):
                return by_text.get(value.text, value)
        if isinstance(node, exp.Column):
            raise NotSQL(
                f"{node.sql()} is neither grouped nor aggregated; add it to GROUP BY, or aggregate it",
                place=text.place(node),
            )
        return scalar(node, output, text.place)

    return output


def _aggregate(node: exp.Expression, scope: FromScope, bind: Bind, text: Text) -> Expression:
    """Return an aggregate over the rows of one unit."""
    condition = None
    if isinstance(node, exp.Filter):
        require_only(node, ("this", "expression"), text)
        condition, node = row_condition(node.expression.this, bind, text, "FILTER"), node.this
    if isinstance(node, exp.Count):
        return _count(node, scope, bind, condition, text)
    maker = _AGGREGATES.get(type(node))
    if maker is None:
        raise NotAllowed(
            f"{function_name(node)} of one unit's rows is not supported",
            accepted="COUNT, SUM, AVG, MEDIAN, MIN, MAX, BOOL_AND and BOOL_OR are",
            place=text.place(node),
        )
    require_only(node, ("this",), text)
    return maker(bind(node.this), scope.rows_per_unit, condition, node, text)


def _count(node: exp.Count, scope: FromScope, bind: Bind, condition: Expression | None, text: Text) -> Expression:
    require_only(node, ("this", "big_int"), text)
    argument = node.this
    if isinstance(argument, exp.Star):
        tree = _counted(None, condition)
    elif isinstance(argument, exp.Distinct):
        require_only(argument, ("expressions",), text)
        if len(argument.expressions) != 1:
            raise NotAllowed("COUNT(DISTINCT ...) takes one value", place=text.place(node))
        value = bind(argument.expressions[0])
        held_characters(scope, [value], text.place(node))
        tree = exp.Count(this=exp.Distinct(expressions=[value.tree.copy()]))
        tree = add_work(tree, HELD_STEPS * value.length if value.kind is Kind.TEXT else 1)
        tree = _with_filter(tree, condition)
    else:
        tree = _counted(bind(argument), condition)
    rows = scope.rows_per_unit or EXACT_MAX
    return Expression(tree, Kind.INTEGER, Range.of(0, rows), nullable=False)


def _counted(value: Expression | None, condition: Expression | None) -> exp.Expression:
    """Return COUNT of a value (None: of rows) under a condition.

    It is written as a CASE: DuckDB takes quadratic time in the rows for a running COUNT with FILTER.
    """
    counted: exp.Expression = exp.Star() if value is None else value.tree.copy()
    if condition is not None:
        counted = case((condition.tree, exp.Literal.number(1) if value is None else value.tree))
    return exp.Count(this=counted)


def _extreme(
    value: Expression, _rows: int | None, condition: Expression | None, node: exp.Expression, _text: Text
) -> Expression:
    tree = type(node)(this=standing_alone(value.tree))
    makes_null = value.makes_null or condition is not None
    return replace(value, tree=_with_filter(tree, condition), nullable=True, makes_null=makes_null)


def _any_or_all(
    value: Expression, _rows: int | None, condition: Expression | None, node: exp.Expression, text: Text
) -> Expression:
    if value.kind is not Kind.BOOLEAN:
        raise WrongKind(f"{function_name(node)} takes a condition, not {value.kind}", place=text.place(node))
    return _extreme(value, _rows, condition, node, text)


def _median(
    value: Expression, _rows: int | None, condition: Expression | None, node: exp.Expression, text: Text
) -> Expression:
    if not value.kind.is_number:
        raise WrongKind(f"MEDIAN of one unit's rows takes numbers, not {value.kind}", place=text.place(node))
    tree = _with_filter(exp.Median(this=exp.cast(value.tree.copy(), "DOUBLE")), condition)
    range_ = outward(value.range.lower, value.range.upper) if value.range else None
    return Expression(tree, Kind.REAL, range_, unit=value.unit)


def _sum(
    value: Expression, rows: int | None, condition: Expression | None, node: exp.Expression, text: Text
) -> Expression:
    value = convert(value, Kind.INTEGER) if value.kind is Kind.BOOLEAN else value
    tree, step = _integer_sum(value, condition, node, text)
    range_ = None
    if rows is not None and value.range is not None:
        rounding = step / 2 if value.kind is Kind.REAL else Fraction(0)
        nothing = Fraction(0)
        low, high = min(value.range.lower, nothing) - rounding, max(value.range.upper, nothing) + rounding
        range_ = Range(rows * low, rows * high)
    if value.kind is Kind.INTEGER and range_ is not None and range_.size <= EXACT_MAX:
        makes_null = value.makes_null or condition is not None
        return Expression(exp.cast(tree, "BIGINT"), Kind.INTEGER, range_, makes_null=makes_null)
    return Expression(_times_step(tree, step), Kind.REAL, range_ and outward(range_.lower, range_.upper))


def _avg(
    value: Expression, _rows: int | None, condition: Expression | None, node: exp.Expression, text: Text
) -> Expression:
    value = convert(value, Kind.INTEGER) if value.kind is Kind.BOOLEAN else value
    tree, step = _integer_sum(value, condition, node, text)
    count = exp.func("NULLIF", _counted(value, condition), exp.Literal.number(0))
    range_ = slack(value.range.lower - step, value.range.upper + step) if value.range else None
    return Expression(exp.Div(this=_times_step(tree, step), expression=exp.cast(count, "DOUBLE")), Kind.REAL, range_)


def _integer_sum(
    value: Expression, condition: Expression | None, node: exp.Expression, text: Text
) -> tuple[exp.Expression, Fraction]:
    """Return the sum of a value in whole steps, and the step."""
    if value.unit or not value.kind.is_number:
        raise WrongKind(f"{function_name(node)} takes numbers, not {value.kind}", place=text.place(node))
    if value.kind is Kind.INTEGER:
        return _with_filter(exp.Sum(this=value.tree.copy()), condition), Fraction(1)
    if value.range is None:
        raise NotBounded(
            f"{function_name(node)} of one unit's rows needs a number with bounds",
            accepted="declare bounds for its columns, or clamp it with LEAST and GREATEST",
            place=text.place(node),
        )
    step = Grid.below(max(value.range.size, Fraction(1, 2**40)) / STEPS_IN_RANGE).step
    return _with_filter(exp.Sum(this=grid_steps(value, step, Fraction(0))), condition), step


def _times_step(tree: exp.Expression, step: Fraction) -> exp.Expression:
    real = exp.cast(tree, "DOUBLE")
    return (
        real if step == 1 else exp.Mul(this=real, expression=exp.cast(exp.Literal.number(repr(float(step))), "DOUBLE"))
    )


def _with_filter(tree: exp.Expression, condition: Expression | None) -> exp.Expression:
    if condition is None:
        return tree
    return exp.Filter(this=tree, expression=exp.Where(this=condition.tree.copy()))


_Maker = Callable[[Expression, "int | None", "Expression | None", exp.Expression, Text], Expression]
_AGGREGATES: Final[Mapping[type[exp.Expression], _Maker]] = {
    exp.Sum: _sum,
    exp.Avg: _avg,
    exp.Min: _extreme,
    exp.Max: _extreme,
    exp.Median: _median,
    exp.LogicalAnd: _any_or_all,
    exp.LogicalOr: _any_or_all,
}

_RANKS: Final = (exp.RowNumber, exp.Rank, exp.DenseRank)
_NEIGHBOURS: Final = (exp.Lag, exp.Lead)


def bind_unit_window(node: exp.Window, scope: FromScope, bind: Bind, text: Text) -> Expression:
    """Return a window function over the rows of one unit."""
    require_only(node, ("this", "partition_by", "order", "over"), text)
    bind = _reject_windows(bind, text)
    partition = [bind(one) for one in node.args.get("partition_by") or ()]
    if scope.unit is not None and not any(map(scope.is_unit, partition)):
        raise MixesUnits(
            "this window reaches over several units",
            accepted="add the unit's column to PARTITION BY",
            place=text.place(node),
        )
    ordered = node.args.get("order")
    order = [_bind_order(one, bind, text) for one in (ordered.expressions if ordered is not None else ())]
    function = node.this
    _require_linear(function, order, bind, text)
    value, needs_ties = _window_function(function, scope, bind, text)
    if needs_ties:
        if not order:
            raise NotSQL(f"{function_name(function)} needs ORDER BY in its window", place=text.place(node))
        order += [exp.Ordered(this=field.tree.copy()) for source in scope.sources for field in source.fields.values()]
    units = [scope.unit.copy()] if scope.unit is not None else []
    keys = [*units, *(key.tree.copy() for key in partition if not scope.is_unit(key))]
    return replace(value, tree=_apply_window(value.tree, keys, order))


def _require_linear(function: exp.Expression, order: Sequence[exp.Ordered], bind: Bind, text: Text) -> None:
    """Raise NotAllowed for a running MEDIAN that skips values: engines take quadratic time in the rows for it."""
    median = function.this if isinstance(function, exp.Filter) else function
    if isinstance(median, exp.Median) and order and (median is not function or bind(median.this).nullable):
        raise NotAllowed(
            "a running MEDIAN takes values none of which is missing, without FILTER",
            accepted="leave ORDER BY out of its window, or put a value in the place of missing ones with COALESCE",
            place=text.place(function),
        )


def _apply_window(tree: exp.Expression, keys: list[exp.Expression], order: list[exp.Ordered]) -> exp.Expression:
    """Return a tree in which every aggregate, rank or neighbour is taken over the window."""

    def windowed(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.AggFunc | exp.Filter | exp.RowNumber):
            return node
        clause = exp.Order(expressions=[one.copy() for one in order]) if order else None
        return exp.Window(this=node.copy(), partition_by=[key.copy() for key in keys], order=clause)

    return _replace_outermost(tree.copy(), windowed)


def _replace_outermost(tree: exp.Expression, change: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """Return a tree in which `change` is applied to the outermost nodes that it changes."""
    changed = change(tree)
    if changed is not tree:
        return changed
    for child in list(tree.iter_expressions()):
        other = _replace_outermost(child, change)
        if other is not child:
            child.replace(other)
    return tree


def _window_function(function: exp.Expression, scope: FromScope, bind: Bind, text: Text) -> tuple[Expression, bool]:
    """Return the value of a window function, and whether it depends on the order of ties."""
    rows = scope.rows_per_unit
    if isinstance(function, _RANKS):
        value = Expression(type(function)(), Kind.INTEGER, Range.of(1, rows or EXACT_MAX), nullable=False)
        return value, isinstance(function, exp.RowNumber)
    if isinstance(function, _NEIGHBOURS):
        require_only(function, ("this", "offset"), text)
        value, offset = bind(function.this), function.args.get("offset")
        if offset is not None and not (
            isinstance(offset, exp.Literal) and offset.is_int and int(offset.this) <= DISTANCE_MAX
        ):
            raise NotAllowed(
                f"the distance of LAG and LEAD is a whole number up to {DISTANCE_MAX:,}", place=text.place(function)
            )
        tree = type(function)(this=standing_alone(value.tree), offset=offset.copy() if offset is not None else None)
        return replace(value, tree=tree, nullable=True, makes_null=True), True
    return _aggregate(function, scope, bind, text), False


def _bind_order(node: exp.Ordered, bind: Bind, text: Text) -> exp.Ordered:
    require_only(node, ("this", "desc", "nulls_first"), text)
    return exp.Ordered(
        this=bind(node.this).tree.copy(), desc=node.args.get("desc"), nulls_first=node.args.get("nulls_first")
    )
