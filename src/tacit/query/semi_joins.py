"""IN and EXISTS with a subquery.

Promise: whether a private row is kept depends on rows of its own unit and on public rows alone. A private subquery is
tied to the row by the unit, or by a key that leads to the unit (`Expression.link`); the engine compares the units in
any case, so that the analyst's condition decides about meaning, never about privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from sqlglot import exp

from tacit.engines.protocol import UNIT
from tacit.privacy.errors import MixesUnits, NotAllowed, NotSQL, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.conditions import bind_condition
from tacit.query.expressions import Expression
from tacit.query.parse import Text, conjuncts, require_only
from tacit.query.relations import FromScope, UnitRows, project
from tacit.query.row_limits import compared_rows, require_bounded_pairs, unit_rows
from tacit.query.scalars import Bind

_SELECT: Final = ("expressions", "from_", "joins", "where", "with_")
_INNER: Final = "s"
_TIE: Final = "set its unit equal to the unit outside, or the foreign key that leads to the unit to its target"


class SubqueryResolver(Protocol):
    """The members of `resolve.Resolver` that subqueries need."""

    @property
    def text(self) -> Text:
        """The query as it was written."""
        ...

    @property
    def unit_rows(self) -> list[int]:
        """How many rows a unit has at most in each scope of the query, pairs of compared rows included."""
        ...

    def ctes(self, query: exp.Query, outer: Mapping[str, UnitRows]) -> Mapping[str, UnitRows]:
        """Return the common table expressions in sight inside a query."""
        ...

    def from_scope(
        self, select: exp.Select, where: Sequence[exp.Expression], ctes: Mapping[str, UnitRows]
    ) -> FromScope:
        """Return the scope of a FROM clause, before its WHERE."""
        ...

    def relation(self, query: exp.Expression, ctes: Mapping[str, UnitRows]) -> UnitRows:
        """Return a subquery as a relation whose rows belong to units."""
        ...

    def limit_rows(self, scope: FromScope, what: str, keys: Sequence[Expression]) -> FromScope:
        """Return a scope with limited rows of each unit (with equal keys), recording what is left out."""
        ...

    def binder(self, scope: FromScope, ctes: Mapping[str, UnitRows]) -> Bind:
        """Return the function that binds a node to the value of a row."""
        ...


def bind_in_subquery(
    resolver: SubqueryResolver, node: exp.In, scope: FromScope, bind: Bind, ctes: Mapping[str, UnitRows]
) -> Expression:
    """Bind x IN (SELECT ...): among public values, among units, or among the keys of the row's own unit."""
    place = resolver.text.place(node)
    require_only(node, ("this", "query"), resolver.text)
    value, inner = bind(node.this), resolver.relation(node.args["query"], ctes)
    if len(inner.fields) != 1:
        raise NotSQL("IN takes a subquery with one column", place=place)
    if value.kind is not inner.fields[0].kind:
        raise WrongKind(f"IN compares {value.kind} with {inner.fields[0].kind}; CAST one of them", place=place)
    if not inner.is_private or (scope.is_unit(value) and 0 in inner.units):
        return _in_query(value, inner.tree)
    if scope.unit is None or value.link is None or value.link != inner.fields[0].link:
        raise MixesUnits(
            "IN with a private subquery lets rows depend on other units",
            accepted="compare the unit's column with the unit's column, or keys that lead to the same unit",
            place=place,
        )
    rows = exp.select().from_(exp.alias_(exp.Subquery(this=inner.tree.copy()), _INNER, table=True))
    same = exp.EQ(this=exp.column("c0", table=_INNER), expression=value.tree.copy())
    found = _exists_where(rows, [same, _same_unit(exp.column(UNIT, table=_INNER), scope)])
    if value.nullable:
        unknown = exp.Is(this=value.tree.copy(), expression=exp.null())
        found = exp.Case().when(unknown, exp.null()).else_(found)
    return Expression(found, Kind.BOOLEAN, nullable=value.nullable, unit=value.unit, makes_null=value.makes_null)


def bind_exists(
    resolver: SubqueryResolver, node: exp.Exists, scope: FromScope, ctes: Mapping[str, UnitRows]
) -> Expression:
    """Bind EXISTS (SELECT ... WHERE ...), whose conditions may name columns of the row outside."""
    select, text = node.this, resolver.text
    if not isinstance(select, exp.Select):
        raise NotAllowed("EXISTS takes one SELECT", place=text.place(node))
    require_only(select, _SELECT, text)
    for part in (one for item in select.expressions for one in item.find_all(exp.AggFunc)):
        raise NotAllowed("an aggregate in EXISTS always returns a row", accepted="write *", place=text.place(part))
    known, where = resolver.ctes(select, ctes), select.args.get("where")
    parts = list(conjuncts(where.this)) if where is not None else []
    inner = resolver.from_scope(select, parts, known)
    bind = resolver.binder(_nested_scope(inner, scope), known)
    conditions = [bind_condition(part, bind, text) for part in parts]
    outside = [_mentions(one, scope) for one in conditions]
    if inner.unit is not None and scope.unit is None:
        raise MixesUnits(
            "EXISTS over a private table cannot filter rows of a public table",
            accepted="put the private table into FROM, and use COUNT(DISTINCT ...)",
            place=text.place(node),
        )
    ties = [_equated_pair(part, bind, inner, scope) for part in parts]
    tied = [pair is not None and (inner.unit is None or _shares_unit(*pair, inner, scope)) for pair in ties]
    if not any(tied):
        raise NotAllowed("EXISTS must be correlated on the unit", accepted=_TIE, place=text.place(node))
    first = tied.index(True)
    own, theirs = ties[first] or (conditions[0], conditions[0])
    if sum(outside) == 1 and not theirs.nullable and (inner.unit is None or inner.is_unit(own)):
        for one in (one for index, one in enumerate(conditions) if index != first):
            inner = inner.where(one)
        return _in_query(theirs, project(inner, [own.tree]))  # the same as IN, and so the same question
    if any(about and pair is None for about, pair in zip(outside, ties, strict=True)):
        keys = [pair[0] for pair in ties if pair is not None]
        inner, conditions = _limit_compared_rows(resolver, inner, scope, parts, known, keys)
        require_bounded_pairs(scope, inner, text.place(node))
        resolver.unit_rows.append(unit_rows(scope) * compared_rows(inner))
    trees = [one.tree for one in conditions]
    if inner.unit is not None:
        trees.append(_same_unit(inner.unit, scope))
    return Expression(
        _exists_where(inner.tree, trees), Kind.BOOLEAN, nullable=False, unit=any(one.unit for one in conditions)
    )


def _nested_scope(inner: FromScope, scope: FromScope) -> FromScope:
    """Return the scope inside with names of the scope outside; each row outside may meet all rows inside."""
    return replace(inner, outer=(*scope.sources, *scope.outer), fan_out=scope.fan_out * compared_rows(inner))


def _limit_compared_rows(
    resolver: SubqueryResolver,
    inner: FromScope,
    scope: FromScope,
    parts: Sequence[exp.Expression],
    ctes: Mapping[str, UnitRows],
    keys: Sequence[Expression],
) -> tuple[FromScope, list[Expression]]:
    """Return the rows inside, limited for each unit and key, and the conditions about both rows.

    Where these are more than equations, an engine may compare each row of a unit with each other that has equal keys.
    """

    def bound(rows: FromScope) -> list[Expression]:
        bind = resolver.binder(_nested_scope(rows, scope), ctes)
        return [bind_condition(part, bind, resolver.text) for part in parts]

    is_about = [_mentions(one, scope) for one in bound(inner)]
    for one, about in zip(bound(inner), is_about, strict=True):
        inner = inner if about else inner.where(one)
    if inner.unit is not None and inner.rows_max is None:
        inner = resolver.limit_rows(inner, "compared by EXISTS", [key for key in keys if not inner.is_unit(key)])
    return inner, [one for one, about in zip(bound(inner), is_about, strict=True) if about]


def _in_query(value: Expression, query: exp.Query) -> Expression:
    """Return value IN (first column of a query, NULL left out)."""
    chosen = exp.select(exp.column("c0")).from_(exp.alias_(exp.Subquery(this=query.copy()), _INNER, table=True))
    chosen = chosen.where(exp.column("c0").is_(exp.null()).not_())
    tree = exp.In(this=value.tree.copy(), query=exp.Subquery(this=chosen))
    return Expression(tree, Kind.BOOLEAN, nullable=value.nullable, unit=value.unit, makes_null=value.makes_null)


def _exists_where(rows: exp.Select, conditions: Sequence[exp.Expression]) -> exp.Expression:
    one = rows.select(exp.alias_(exp.Literal.number(1), "one"), copy=True)
    return exp.Exists(this=one.where(*(tree.copy() for tree in conditions)))


def _same_unit(unit: exp.Column, scope: FromScope) -> exp.Expression:
    assert scope.unit is not None  # asked by both callers
    return exp.EQ(this=unit.copy(), expression=scope.unit.copy())


def _mentions(value: Expression, scope: FromScope) -> bool:
    """Whether a value reads columns of a scope, or of one around it."""
    names = {source.alias for source in (*scope.sources, *scope.outer)}
    return any(one.table in names for one in value.tree.find_all(exp.Column))


def _equated_pair(
    part: exp.Expression, bind: Bind, inner: FromScope, scope: FromScope
) -> tuple[Expression, Expression] | None:
    """Return the column inside and the column outside that a part sets equal."""
    if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)):
        return None
    one, other = bind(part.this), bind(part.expression)
    for own, theirs in ((one, other), (other, one)):
        if _mentions(own, inner) and _mentions(theirs, scope):
            return own, theirs
    return None


def _shares_unit(own: Expression, theirs: Expression, inner: FromScope, scope: FromScope) -> bool:
    """Whether rows with these columns equal belong to one unit."""
    return (inner.is_unit(own) and scope.is_unit(theirs)) or (own.link is not None and own.link == theirs.link)
