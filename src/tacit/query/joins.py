"""Joins that leave every row with one unit.

| left | right | allowed |
| --- | --- | --- |
| private | public | INNER, LEFT, CROSS: rows of the left with public facts |
| public | private | INNER, RIGHT, CROSS: the same, mirrored |
| private | private | INNER, LEFT on the unit, or on a foreign key that leads to the unit |
| public | public | INNER, LEFT, CROSS |

A join that keeps rows of a public table without a partner would tell that no unit has them, so it is refused. Whatever
the condition says, private tables are joined on their units as well: a row that mixed two people cannot arise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from tacit.privacy.errors import MixesUnits, NotAllowed, NotInCatalog, Place, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.conditions import condition
from tacit.query.expressions import Expression
from tacit.query.parse import Text, conjuncts
from tacit.query.relations import Scope, Source
from tacit.query.scalars import Bind

BinderOf = Callable[[Scope], Bind]


def joined(
    left: Scope, right: Scope, join: exp.Join, where: Sequence[exp.Expression], binder: BinderOf, text: Text
) -> Scope:
    """Return the scope of two joined ones; `where` are the parts of the WHERE, which may hold the join's condition."""
    side, place = _side(join, text), text.place(join)
    on = join.args.get("on")
    using = [one.name for one in join.args.get("using") or ()]
    merged = _merged(left, right, using) if using else right
    both = replace(left, sources=(*left.sources, *merged.sources))
    parts = list(conjuncts(on)) if on is not None else []
    bind = binder(both)
    conditions = [condition(part, bind, text, "a join's condition") for part in parts]
    equal = [_equal(left, right, name, binder, text) for name in join.args.get("using") or ()]
    pairs = [*_pairs(parts, bind), *equal]
    if not side:  # the WHERE of an inner join holds for it as well
        pairs += list(_pairs(where, _only_bound(bind)))
    trees = [condition.tree for condition in conditions]
    trees += [exp.EQ(this=one.tree.copy(), expression=other.tree.copy()) for one, other in equal]
    if left.unit is not None and right.unit is not None:
        _require_unit(left, right, pairs, side, place)
        trees.append(exp.EQ(this=left.unit.copy(), expression=right.unit.copy()))
    elif (side == "LEFT" and left.unit is None and right.unit is not None) or (side == "RIGHT" and right.unit is None):
        raise MixesUnits(
            "this join keeps public rows that no unit has, and so tells of it",
            accepted="use an inner join, or keep the private side",
            place=place,
        )
    multiplies = not _keeps_rows(left, right, pairs)
    if not multiplies:
        trees += _as_stored(right if left.unit is not None else left)
    tree = left.tree.copy()
    tree.append("joins", _engine_join(right, trees, side))
    return Scope(
        _sources(left, merged, side),
        tree,
        _rows(left, right, multiplies),
        None if multiplies else left.stored or right.stored,
        left.tables | right.tables,
    )


def _side(join: exp.Join, text: Text) -> str:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if join.method or side == "FULL" or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise NotAllowed(
            f"{' '.join(word for word in (join.method, side, kind) if word)} JOIN is not defined for private rows",
            accepted="INNER, LEFT and CROSS JOIN are, and unit IN (SELECT unit ...)",
            place=text.place(join),
        )
    return side


def _equal(
    left: Scope, right: Scope, name: exp.Identifier, binder: BinderOf, text: Text
) -> tuple[Expression, Expression]:
    one, other = (binder(scope)(exp.Column(this=name.copy())) for scope in (left, right))
    if one.kind is not other.kind:
        raise WrongKind(
            f"USING ({name.name}) compares {one.kind} with {other.kind}; CAST one of them in ON", place=text.place(name)
        )
    return one, other


def _merged(left: Scope, right: Scope, using: Sequence[str]) -> Scope:
    hidden = frozenset(name.lower() for name in using)
    sources = tuple(replace(source, hidden=source.hidden | hidden) for source in right.sources)
    return replace(right, sources=sources)


def _pairs(parts: Sequence[exp.Expression], bind: Bind) -> Iterator[tuple[Expression, Expression]]:
    """Yield the columns that a condition sets equal."""
    for part in parts:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column):
            yield bind(part.this), bind(part.expression)


def _only_bound(bind: Bind) -> Bind:
    """A WHERE may name columns of later items of the FROM clause; those say nothing about this join."""

    def bound(node: exp.Expression) -> Expression:
        try:
            return bind(node)
        except NotInCatalog:
            return Expression(exp.null(), Kind.BOOLEAN)

    return bound


def _owner(scope: Scope, value: Expression) -> Source | None:
    names = {one.table for one in value.tree.find_all(exp.Column)}
    return next((source for source in scope.sources if names == {source.alias}), None)


def _require_unit(
    left: Scope,
    right: Scope,
    pairs: Sequence[tuple[Expression, Expression]],
    side: str,
    place: Place | None,
) -> None:
    if side == "RIGHT":
        raise NotAllowed(
            "RIGHT JOIN of private tables is not defined", accepted="swap the tables and write LEFT JOIN", place=place
        )
    for first, second in pairs:
        for one, other in ((first, second), (second, first)):
            mine, theirs = _owner(left, one), _owner(right, other)
            alike = (one.unit and other.unit) or (one.link is not None and one.link == other.link)
            if mine is not None and theirs is not None and alike:
                return
    raise MixesUnits(
        "private tables are joined on their unit, so that no row mixes two of them",
        accepted="set the unit's columns equal, or the foreign key that leads to the unit and its target",
        place=place,
    )


def _rows(left: Scope, right: Scope, multiplies: bool) -> int | None:
    """Return the greatest number of joined rows of a unit, where that is known."""
    if left.unit is not None and right.unit is not None:
        known = left.rows_per_unit is not None and right.rows_per_unit is not None
        return (left.rows_per_unit or 0) * (right.rows_per_unit or 0) if known else None
    private = left if left.unit is not None else right
    return None if multiplies else private.rows_per_unit


def _keeps_rows(left: Scope, right: Scope, pairs: Sequence[tuple[Expression, Expression]]) -> bool:
    """Whether a private row meets at most one public row: the columns that identify those are all compared."""
    if (left.unit is None) == (right.unit is None):
        return False
    private, public = (left, right) if left.unit is not None else (right, left)
    if len(public.sources) != 1 or public.sources[0].table is None:
        return False
    table, fields = public.sources[0].table, public.sources[0].fields
    own = [
        one
        for pair in pairs
        for one, other in (pair, pair[::-1])
        if one.kind is other.kind and _owner(private, other) is not None  # as doubles, different integers can be equal
    ]
    return bool(table.identified_by) and all(fields[name.lower()] in own for name in table.identified_by)


def _as_stored(public: Scope) -> Iterator[exp.Expression]:
    """Yield conditions by which rows that clamping made alike do not match: what identifies is as it is stored."""
    source = public.sources[0]
    for name in source.table.identified_by if source.table is not None else ():
        read = source.fields[name.lower()]
        if not isinstance(read.tree, exp.Column) and read.domain is None:
            stored = next(read.tree.find_all(exp.Column))
            yield exp.EQ(this=stored.copy(), expression=read.tree.copy())


def _engine_join(right: Scope, trees: Sequence[exp.Expression], side: str) -> exp.Join:
    clause = right.tree.args["from_"].this.copy()
    on = exp.and_(*trees) if trees else None
    return exp.Join(this=clause, side=side or None, kind=None if on is not None else "CROSS", on=on)


def _sources(left: Scope, right: Scope, side: str) -> tuple[Source, ...]:
    """Return the items of a join; what a side has no partner for is NULL there, and its unit is the other side's."""
    if side == "LEFT":
        return (*left.sources, *map(_nullable, right.sources))
    if side == "RIGHT":
        return (*map(_nullable, left.sources), *right.sources)
    return (*left.sources, *right.sources)


def _nullable(source: Source) -> Source:
    fields = {name: replace(value, nullable=True) for name, value in source.fields.items()}
    return replace(source, fields=fields, unit=None)
