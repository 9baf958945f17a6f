"""The statements that an engine runs for a question.

Promise: a statement returns one row a group (for private choices and bins, one row a group and cell), never a row of a
unit. It adds up whole numbers, so its result does not depend on the order of rows, and clamps sums to ±2^62, which
moves no two neighbours further apart. Whatever could leave 64 bits before that is a HUGEINT (`whole_numbers` proves
that it fits). Noise is added to the results in this process (`run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.engines.dialects import write_duckdb
from tacit.measuring.moments import SATURATION
from tacit.query.contribution import Bounding
from tacit.query.expressions import Expression
from tacit.query.keys import Domain
from tacit.query.learned_bounds import UnboundedValue
from tacit.query.measures import How, Measure, QueryMeasures
from tacit.query.parse import refuse_deep_nesting
from tacit.query.private_choices import WEIGHT, PrivateChoice
from tacit.query.question import Question
from tacit.query.relations import FromScope, select_from_subquery
from tacit.query.row_limits import first_by_salted_hash
from tacit.query.scalars import disjunction, is_missing, literal, negate, one_of, trees

UNITS: Final = "units"
"""The column with the number of units of each group."""

Write: TypeAlias = Callable[[exp.Query], str]
"""Writes a statement in the SQL of an engine."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT for the engine: its tree, and which measures or which private choice it serves, by their indices."""

    tree: exp.Select
    measures: tuple[int, ...] = ()
    choice: int | None = None
    kept: tuple[int, ...] | None = None
    """The grouping set that is measured: which keys it keeps; None for all of them."""

    @property
    def is_salted(self) -> bool:
        """Whether the salt is a parameter of the statement."""
        return self.tree.find(exp.Parameter) is not None

    @refuse_deep_nesting
    def sql(self, write: Write = write_duckdb) -> str:
        """Return the statement as an engine writes it."""
        return write(self.tree)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The rows that a question is about, its keys, and the limits on each unit."""

    scope: FromScope
    keys: tuple[Expression, ...]
    bounding: Bounding
    listed: tuple[int, ...] = ()
    """Keys that are public and of which NULL is no value: rows that have it are left out."""

    @classmethod
    def of(cls, question: Question, domains: Sequence[Domain] | None, bounding: Bounding) -> Grouping:
        """Return the rows and keys of a question; rows of groups that the caller did not list are left out."""
        scope, listed = question.scope, []
        for index, (key, domain) in enumerate(zip(question.keys, domains or (), strict=False)):
            if domain.restricts:
                scope = scope.where(_is_listed(key, domain))
            if None not in domain.values and key.nullable:
                listed.append(index)
        return cls(scope, question.keys, bounding, tuple(listed))

    def keep_keys(self, kept: Sequence[int]) -> Grouping:
        """Return the same rows by some of the keys; rows that the other keys leave out stay out."""
        scope = self.scope
        for index in self.listed:
            if index not in kept:
                scope = scope.where(negate(is_missing(self.keys[index])))
        listed = tuple(place for place, index in enumerate(kept) if index in self.listed)
        return replace(self, scope=scope, keys=tuple(self.keys[index] for index in kept), listed=listed)

    @property
    def names(self) -> list[str]:
        """The names of the keys in the statements."""
        return [f"k{index}" for index in range(len(self.keys))]

    def where(self, condition: Expression | None) -> Grouping:
        """Return the grouping of the rows for which a condition is true."""
        return self if condition is None else replace(self, scope=self.scope.where(condition))

    def rows(self, *more: exp.Expr, unit: bool = True) -> exp.Select:
        """Return SELECT FROM (SELECT unit AS u, keys AS k0, ..., more FROM ...) AS r WHERE ..., without items."""
        items = [_aliased(key.tree, name) for key, name in zip(self.keys, self.names, strict=True)]
        if unit and self.scope.unit is not None:
            items.insert(0, _aliased(self.scope.unit, "u"))
        if not items and not more:  # a SELECT has at least one item
            items.append(exp.alias_(exp.Literal.number(1), "one"))
        inner = select_from_subquery(self.scope.tree.copy().select(*items, *more, copy=False), "r")
        return inner.where(*(exp.column(f"k{index}").is_(exp.null()).not_() for index in self.listed), copy=False)


def _is_listed(key: Expression, domain: Domain) -> Expression:
    """Return the condition that keeps the rows of the listed groups."""
    values = [literal(value) for value in domain.values if value is not None]
    inside = one_of(key, values) if values else is_missing(key)
    return disjunction([inside, is_missing(key)]) if None in domain.values else inside


def statements(
    question: Question, domains: Sequence[Domain] | None, measured: QueryMeasures, bounding: Bounding
) -> Iterator[Statement]:
    """Yield the statements for the groups by all keys: sums, different values, and cells of private choices."""
    grouping, measures = Grouping.of(question, domains, bounding), measured.measures
    sums = [index for index, measure in enumerate(measures) if measure.how is not How.VALUES]
    if sums or domains is None:
        tree = sum_statement(grouping, [measures[index] for index in sums], units=domains is None)
        yield Statement(tree, tuple(sums))
    for index, measure in enumerate(measures):
        if measure.how is How.VALUES:
            yield Statement(distinct_statement(grouping, measure), (index,))
    for index, choice in enumerate(measured.choices):
        yield Statement(cell_statement(grouping, choice), choice=index)


def set_statements(
    question: Question, domains: Sequence[Domain], measures: Sequence[Measure], bounding: Bounding
) -> Iterator[Statement]:
    """Yield one statement for each grouping set, with all measures."""
    grouping, every = Grouping.of(question, domains, bounding), tuple(range(len(measures)))
    for kept in question.sets:
        yield Statement(sum_statement(grouping.keep_keys(kept), measures, units=False), every, kept=kept)


def learning_statements(
    question: Question, domains: Sequence[Domain] | None, missing: Sequence[UnboundedValue], bounding: Bounding
) -> Iterator[Statement]:
    """Yield one statement for each value whose bounds are learnt: the weights of its bins."""
    for value in missing:
        yield Statement(bin_statement(Grouping.of(question, domains, bounding), value))


class _Values:
    """The columns of the innermost SELECT: each value and each condition once, under a short name."""

    def __init__(self) -> None:
        self.items: dict[exp.Expression, str] = {}

    def named(self, tree: exp.Expression, prefix: str) -> exp.Column:
        """Return the column that holds a tree, adding it if it is new."""
        if tree not in self.items:
            self.items[tree] = f"{prefix}{sum(name.startswith(prefix) for name in self.items.values())}"
        return exp.column(self.items[tree])

    @property
    def aliased(self) -> list[exp.Expr]:
        """The columns as items of a SELECT."""
        return [_aliased(tree, name) for tree, name in self.items.items()]


def sum_statement(grouping: Grouping, measures: Sequence[Measure], *, units: bool) -> exp.Select:
    """Return the statement that adds up measures by group, with the number of units of each group if wanted."""
    values, names = _Values(), grouping.names
    whole = [_whole_rows_total(measure, values) for measure in measures]
    if grouping.bounding.whole_rows is not None:
        sums = [_total(tree, f"m{index}") for index, tree in enumerate(whole)]
        counts_units = units or any(measure.how is How.UNITS for measure in measures)
        if units:
            sums.append(_total(_count_distinct("u"), UNITS))
        return _select_sums(grouping.rows(*values.aliased, unit=counts_units), names, sums)
    parts = [
        exp.alias_(_unit_contribution(measure, grouping.bounding, values), f"m{index}")
        for index, measure in enumerate(measures)
    ]
    sums = [_total(exp.Sum(this=exp.column(f"m{index}")), f"m{index}") for index in range(len(measures))]
    if units:
        sums.append(_total(exp.Count(this=exp.Star()), UNITS))
    by_unit = units or any(measure.how is How.UNITS for measure in measures)
    easy = [exp.alias_(tree, f"m{index}") for index, tree in enumerate(whole)]
    return _group_subquery(_unit_contributions(grouping, values, parts, easy, by_unit=by_unit), names, sums)


def _unit_contributions(
    grouping: Grouping, values: _Values, parts: Sequence[exp.Expr], whole: Sequence[exp.Expr], *, by_unit: bool
) -> exp.Query:
    """Return the contribution of each unit to each group, some of one group perhaps added up already.

    A unit with few rows in storage has nothing that could be cut: no more groups than rows, no more rows in a group. So
    its rows are added up as they are, which spares most units the work; only where units are counted each of them is
    still needed, and merely the choice of groups is spared. How many rows a unit has is a fact about that unit alone.
    """
    bounding, names = grouping.bounding, grouping.names
    rows = grouping.rows(*values.aliased)

    def pairs(source: exp.Select) -> exp.Select:
        items = [*_columns("u", *names), *(part.copy() for part in parts)]
        return source.select(*items, copy=False).group_by(*_columns("u", *names), copy=False)

    few = min(bounding.groups, bounding.rows) if bounding.chooses_groups else bounding.rows
    if by_unit:
        few = bounding.groups
    if grouping.scope.stored is None or (by_unit and not bounding.chooses_groups):
        return keep_groups(grouping, pairs(rows))
    rows = grouping.rows(_aliased(grouping.scope.stored, "n"), *values.aliased)
    light = exp.LTE(this=exp.column("n"), expression=exp.Literal.number(few))
    heavy = exp.Is(this=exp.paren(light.copy()), expression=exp.true()).not_()
    kept = select_from_subquery(keep_groups(grouping, pairs(rows.where(heavy))), "h").select(
        *_columns(*names, *_measured(parts))
    )
    if by_unit:
        easy = select_from_subquery(pairs(rows.where(light, copy=False)), "l").select(
            *_columns(*names, *_measured(parts))
        )
    else:
        easy = _select_sums(rows.where(light, copy=False), names, whole)
    return exp.union(easy, kept, distinct=False, copy=False)


def _measured(parts: Sequence[exp.Expr]) -> list[str]:
    return [part.alias for part in parts]


def distinct_statement(grouping: Grouping, measure: Measure) -> exp.Select:
    """Return the statement that counts the different values in each group, a limited number of each unit."""
    grouping, names = grouping.where(measure.condition), grouping.names
    item = _aliased(_row_tree(measure), "x")
    counted = _total(_count_distinct("x"), "m0")
    if grouping.bounding.whole_rows is not None:
        return _select_sums(grouping.rows(item, unit=False), names, [counted])
    present = exp.column("x").is_(exp.null()).not_()
    tree = grouping.rows(item).select(*_columns("u", *names, "x")).where(present).distinct()
    within = [exp.column("u"), *map(exp.column, names)]
    ranked = first_by_salted_hash(tree, "turn", within, [*within, exp.column("x")], grouping.bounding.rows)
    return _group_subquery(keep_groups(grouping, ranked, dense=True), names, [counted])


def cell_statement(grouping: Grouping, ranked: PrivateChoice) -> exp.Select:
    """Return the statement that weighs the cells of each group."""
    return _weight_statement(grouping.where(ranked.condition), ranked.cell_tree)


def bin_statement(grouping: Grouping, value: UnboundedValue) -> exp.Select:
    """Return the statement that weighs the bins of a value over all rows, every unit with a weight of 1 in all."""
    alone = Bounding(1, 1, relation=grouping.bounding.relation, chooses_groups=False)
    return _weight_statement(Grouping(grouping.scope, (), alone), value.bin_tree)


def _weight_statement(grouping: Grouping, tree: exp.Expression) -> exp.Select:
    """Return the statement for the weight of rows by group and cell; rows of a unit beyond its limit weigh less."""
    names, weight = grouping.names, exp.Literal.number(WEIGHT)
    present = exp.column("cell").is_(exp.null()).not_()
    cell = exp.alias_(tree, "cell", copy=False)
    if grouping.bounding.whole_rows is not None:
        rows = grouping.rows(cell, unit=False).where(present)
        total = _total(exp.Mul(this=_huge(exp.Count(this=exp.Star())), expression=weight), "w")
        return _select_sums(rows, [*names, "cell"], [total])
    inner = grouping.rows(cell).select(*_columns("u", *names, "cell"), exp.alias_(exp.Count(this=exp.Star()), "n"))
    inner = inner.where(present).group_by(*_columns("u", *names, "cell"))
    within = [exp.column("u"), *map(exp.column, names)]
    all_rows = exp.Window(this=exp.Sum(this=exp.column("n")), partition_by=within)
    counted = select_from_subquery(inner, "n").select(
        *_columns("u", *names, "cell", "n"), exp.alias_(all_rows, "rows_all")
    )
    kept = select_from_subquery(keep_groups(grouping, counted, dense=True), "c")
    limit = exp.Literal.number(grouping.bounding.rows)
    product = exp.Mul(this=exp.Mul(this=_huge(exp.column("n")), expression=limit), expression=weight)
    scaled = exp.IntDiv(this=exp.paren(product), expression=exp.column("rows_all"))
    full = exp.Mul(this=_huge(exp.column("n")), expression=weight.copy())
    more = exp.GT(this=exp.column("rows_all"), expression=limit.copy())
    part = exp.Case().when(more, scaled).else_(full)
    counted_parts = kept.select(*_columns(*names, "cell"), exp.alias_(part, "w0"))
    return _group_subquery(counted_parts, [*names, "cell"], [_total(exp.Sum(this=exp.column("w0")), "w")])


def keep_groups(grouping: Grouping, tree: exp.Select, *, dense: bool = False) -> exp.Select:
    """Return the rows of as many groups of each unit as the limit allows, chosen by a salted hash of unit and group."""
    if not grouping.bounding.chooses_groups:
        return tree
    keys = [exp.column(name) for name in grouping.names]
    return first_by_salted_hash(
        tree, "place", [exp.column("u")], [exp.column("u"), *keys], grouping.bounding.groups, dense=dense
    )


def _whole_rows_total(measure: Measure, values: _Values) -> exp.Expression:
    """Return the aggregate over the rows of a group as they are: the table has limited rows of each unit."""
    if measure.how is How.UNITS:
        return _with_filter(_count_distinct("u"), measure, values)
    if measure.how is How.ROWS:
        return _count(measure, values)
    return _sum(measure, values)


def _unit_contribution(measure: Measure, bounding: Bounding, values: _Values) -> exp.Expression:
    """Return the clamped aggregate over the rows of one unit in one group."""
    rows, count = exp.Literal.number(bounding.rows), _count(measure, values)
    if measure.how is How.ROWS:
        return _least(count, bounding.rows)
    if measure.how is How.UNITS:
        return _least(count, 1)
    total = _sum(measure, values)
    if measure.how is How.SUM:
        return _clamped(total, bounding.rows * min(measure.low, 0), bounding.rows * max(measure.high, 0))
    product = exp.Mul(this=exp.paren(total.copy()), expression=rows)
    scaled = exp.IntDiv(this=exp.paren(product), expression=_greatest(count.copy(), 1))
    return exp.Case().when(exp.GT(this=count, expression=rows.copy()), scaled).else_(total)


def _sum(measure: Measure, values: _Values) -> exp.Expression:
    """Return the sum of a measure's numbers, 0 where there are none."""
    added = _with_filter(exp.Sum(this=values.named(_row_tree(measure), "v")), measure, values)
    total: exp.Expression = exp.Coalesce(this=added, expressions=[exp.Literal.number(0)])
    if not measure.shift:
        return total
    off = exp.Mul(this=_huge(_count(measure, values)), expression=exp.paren(trees.constant(measure.shift)))
    return exp.Sub(this=total, expression=off)


def _row_tree(measure: Measure) -> exp.Expression:
    assert measure.tree is not None  # measures of sums and of different values have one
    return measure.tree


def _count(measure: Measure, values: _Values) -> exp.Expression:
    counted = exp.Star() if measure.tree is None else values.named(measure.tree, "v")
    return _with_filter(exp.Count(this=counted), measure, values)


def _count_distinct(name: str) -> exp.Expression:
    return exp.Count(this=exp.Distinct(expressions=[exp.column(name)]))


def _group_subquery(tree: exp.Query, names: Sequence[str], sums: Sequence[exp.Expr]) -> exp.Select:
    return _select_sums(select_from_subquery(tree, "g"), names, sums)


def _select_sums(source: exp.Select, names: Sequence[str], sums: Sequence[exp.Expr]) -> exp.Select:
    """Return a SELECT without items with the named keys and the sums, grouped by the keys."""
    tree = source.select(*_columns(*names), *sums, copy=False)
    return tree.group_by(*_columns(*names), copy=False) if names else tree


def _aliased(tree: exp.Expression, name: str) -> exp.Expr:
    """Return a copy of a value as an item of a SELECT."""
    return exp.alias_(tree.copy(), name, copy=False)


def _columns(*names: str) -> list[exp.Column]:
    return [exp.column(name) for name in names]


def _total(tree: exp.Expression, name: str) -> exp.Expr:
    """Return a sum as a BIGINT, 0 where there is nothing to add, saturated at ±SATURATION."""
    if isinstance(tree, exp.Count) or (isinstance(tree, exp.Filter) and isinstance(tree.this, exp.Count)):
        return exp.alias_(tree, name)
    whole = tree if tree.find(exp.Coalesce) else exp.Coalesce(this=tree, expressions=[exp.Literal.number(0)])
    return exp.alias_(exp.cast(_clamped(whole, -SATURATION, SATURATION), "BIGINT"), name)


def _huge(tree: exp.Expression) -> exp.Expression:
    """Return a whole number in the widest type of the engines, to be multiplied."""
    return exp.cast(tree, "HUGEINT", dialect="duckdb")


def _clamped(tree: exp.Expression, low: int, high: int) -> exp.Expression:
    """Clamp a value that is never NULL."""
    return _least(_greatest(tree, low), high)


def _least(tree: exp.Expression, number: int) -> exp.Expression:
    return exp.Anonymous(this="LEAST", expressions=[tree, trees.constant(number)])


def _greatest(tree: exp.Expression, number: int) -> exp.Expression:
    return exp.Anonymous(this="GREATEST", expressions=[tree, trees.constant(number)])


def _with_filter(tree: exp.Expression, measure: Measure, values: _Values) -> exp.Expression:
    if measure.condition is None:
        return tree
    return exp.Filter(this=tree, expression=exp.Where(this=values.named(measure.condition.tree, "c")))
