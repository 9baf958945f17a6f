"""Joins that leave every row with one unit.

| left | right | allowed |
| --- | --- | --- |
| private | public | INNER, LEFT, CROSS: rows of the left with public facts |
| public | private | INNER, RIGHT, CROSS: the same, mirrored |
| private | private | INNER, LEFT on the unit, or on a foreign key that leads to the unit |
| public | public | INNER, LEFT, CROSS |

A join that keeps rows of a public table without a partner would tell that no unit has them, so it is refused. Whatever
the condition says, private tables are joined on their units as well: a row that mixed two people cannot arise. How many
rows a unit has after a join is limited (`row_limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tacit.privacy.errors import MixesUnits, NotAllowed, NotInCatalog, Place, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.conditions import bind_condition
from tacit.query.expressions import Expression
from tacit.query.parse import Text, conjuncts
from tacit.query.relations import FromItem, FromScope
from tacit.query.row_limits import held_characters, named_fields, require_bounded_join
from tacit.query.scalars import Bind

BinderOf = Callable[[FromScope], Bind]
Limit = Callable[[FromScope], FromScope]
Pairs = Sequence[tuple[Expression, Expression]]


@dataclass(frozen=True, slots=True)
class JoinContext:
    """One JOIN: its node, conjuncts of the WHERE, which may hold its condition, and functions of the resolver."""

    node: exp.Join
    where: Sequence[exp.Expression]
    binder: BinderOf
    limit: Limit
    text: Text
    names: frozenset[str] | None
    """Every name that the query has, None if it may mean any column."""

    @property
    def side(self) -> str:
        """LEFT, RIGHT, or nothing for an inner join; NotAllowed for any other."""
        method, side, kind = (part.upper() for part in (self.node.method, self.node.side, self.node.kind))
        if method or side == "FULL" or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise NotAllowed(
                f"{' '.join(filter(None, (method, side, kind)))} JOIN is not supported for private rows",
                accepted="INNER, LEFT and CROSS JOIN are, and unit IN (SELECT unit ...)",
                place=self.place,
            )
        return side

    @property
    def place(self) -> Place | None:
        """Where the join stands."""
        return self.text.place(self.node)

    @property
    def parts(self) -> list[exp.Expression]:
        """The parts of ON."""
        on = self.node.args.get("on")
        return list(conjuncts(on)) if on is not None else []

    @property
    def using(self) -> list[str]:
        """The columns of USING."""
        return [one.name for one in self.node.args.get("using") or ()]


def join_scopes(left: FromScope, right: FromScope, joining: JoinContext) -> FromScope:
    """Return the scope of a join; raise MixesUnits or NotAllowed for joins outside of the table above."""
    side, place = joining.side, joining.place
    for one in (left, right):  # engines choose which of them they hold
        held_characters(one, named_fields(one, joining.names), place)
    _join_conditions(left, right, joining)  # their errors come first
    pairs = _equated_columns(left, right, joining)
    private = left.unit is not None and right.unit is not None
    if private:
        _require_unit(left, right, pairs, side, place)
        if not (_matches_at_most_one(left, right, pairs) or _matches_at_most_one(right, left, pairs)):
            left, right = _limit_sides(left, right, joining)
            pairs = _equated_columns(left, right, joining)
    elif (side == "LEFT" and left.unit is None and right.unit is not None) or (side == "RIGHT" and right.unit is None):
        raise MixesUnits(
            "this outer join keeps rows of the public table that match no unit, which would reveal which rows match",
            accepted="use an inner join, or keep the private side",
            place=place,
        )
    trees = _join_conditions(left, right, joining)
    if left.unit is not None and right.unit is not None:
        trees.append(exp.EQ(this=left.unit.copy(), expression=right.unit.copy()))
    multiplies = not _keeps_rows(left, right, pairs)
    if not multiplies:
        trees += _exclude_clamped_keys(right if left.unit is not None else left)
    tree = left.tree.copy()
    tree.append("joins", _engine_join(right, trees, side))
    kept, merged = _merge_using(left, right, joining)
    scope = FromScope(
        _sources(kept, merged, side),
        tree,
        _joined_rows_per_unit(left, right, multiplies),
        None if multiplies else left.stored or right.stored,
        left.tables | right.tables,
    )
    if private:
        return _bound_private_rows(scope, left, right, pairs, side, place)
    return _bound_public_rows(scope, left, right, pairs)


def _equated_columns(left: FromScope, right: FromScope, joining: JoinContext) -> list[tuple[Expression, Expression]]:
    """Return the pairs of columns that a join sets equal."""
    bind = joining.binder(_combined_scope(left, right, joining))
    pairs = [*_equalities(joining.parts, bind), *_using_pairs(left, right, joining)]
    if not joining.side:  # the WHERE of an inner join holds for it as well
        pairs += list(_equalities(joining.where, _skip_unknown_names(bind)))
    return pairs


def _join_conditions(left: FromScope, right: FromScope, joining: JoinContext) -> list[exp.Expression]:
    """Return the conditions of ON and USING, as trees."""
    bind = joining.binder(_combined_scope(left, right, joining))
    trees = [bind_condition(part, bind, joining.text, "a join's condition").tree for part in joining.parts]
    equal = _using_pairs(left, right, joining)
    return [*trees, *(exp.EQ(this=one.tree.copy(), expression=other.tree.copy()) for one, other in equal)]


def _combined_scope(left: FromScope, right: FromScope, joining: JoinContext) -> FromScope:
    kept, merged = _merge_using(left, right, joining)
    return replace(left, sources=(*kept.sources, *merged.sources))


def _using_pairs(left: FromScope, right: FromScope, joining: JoinContext) -> list[tuple[Expression, Expression]]:
    names = joining.node.args.get("using") or ()
    return [_using_pair(left, right, name, joining.binder, joining.text) for name in names]


def _limit_sides(left: FromScope, right: FromScope, joining: JoinContext) -> tuple[FromScope, FromScope]:
    """Limit the rows of a unit on each side that has no limit, unless one side has a single row of each.

    What the query demands of one side alone is demanded before, so that the rows which are kept are among those.
    """
    if 1 in (left.rows_max, right.rows_max):
        return left, right
    inner = not joining.side
    if left.rows_max is None:
        left = joining.limit(_apply_own_conditions(left, [*joining.where, *(joining.parts if inner else [])], joining))
    if right.rows_max is None:
        right = joining.limit(
            _apply_own_conditions(right, [*joining.parts, *(joining.where if inner else [])], joining)
        )
    return left, right


def _apply_own_conditions(scope: FromScope, parts: Sequence[exp.Expression], joining: JoinContext) -> FromScope:
    """Return a scope with those conditions applied that are about its own rows alone."""
    bind = joining.binder(scope)
    for part in parts:
        if part.find(exp.Query, exp.Window, exp.AggFunc) is not None:
            continue
        try:
            scope = scope.where(bind_condition(part, bind, joining.text))
        except NotInCatalog:
            continue
    return scope


def _matches_at_most_one(scope: FromScope, other: FromScope, pairs: Pairs) -> bool:
    """Whether a row of `scope` matches at most one row of `other`: the columns that identify those are compared."""
    own = {source.fields[name].text for source in other.sources for name in source.units}
    equal = {two.text for pair in pairs for one, two in (pair, pair[::-1]) if _is_pair(scope, one, other, two)}
    return any(key <= equal | own for key in other.unique)


def _is_pair(scope: FromScope, one: Expression, other: FromScope, two: Expression) -> bool:
    same = one.kind is two.kind  # as doubles, different integers can be equal
    return same and _source_of(scope, one) is not None and _source_of(other, two) is not None


def _bound_private_rows(
    scope: FromScope, left: FromScope, right: FromScope, pairs: Pairs, side: str, place: Place | None
) -> FromScope:
    """Return a join of private rows with the limit on those of one unit."""
    kept = side == "LEFT"
    if _matches_at_most_one(left, right, pairs):
        unique = left.unique | right.unique if _matches_at_most_one(right, left, pairs) else left.unique
        return replace(scope, fan_out=left.fan_out, rows_max=left.rows_max, unique=unique)
    if _matches_at_most_one(right, left, pairs):
        fan_out = right.fan_out + (left.fan_out if kept else 0)
        rows_max = (
            None
            if right.rows_max is None or (kept and left.rows_max is None)
            else right.rows_max + (left.rows_max or 0) * kept
        )
        return replace(scope, fan_out=fan_out, rows_max=rows_max, unique=right.unique)
    if right.rows_max == 1:
        return replace(scope, fan_out=left.fan_out, rows_max=left.rows_max, unique=left.unique)
    if left.rows_max == 1:
        rows_max = None if right.rows_max is None else max(right.rows_max, 1)
        return replace(scope, fan_out=right.fan_out + kept, rows_max=rows_max, unique=right.unique)
    assert left.rows_max is not None  # both were limited
    assert right.rows_max is not None
    fan_out = min(left.rows_max * right.fan_out, left.fan_out * right.rows_max)
    found = replace(scope, fan_out=fan_out, rows_max=left.rows_max * right.rows_max, unique=_combined_keys(left, right))
    return require_bounded_join(found, place)


def _bound_public_rows(scope: FromScope, left: FromScope, right: FromScope, pairs: Pairs) -> FromScope:
    """Return a join with public rows with the limit on those of one unit; of public rows alone, on all of them."""
    if right.unit is not None:
        left, right = right, left  # the private side first
    if _matches_at_most_one(left, right, pairs):
        return replace(scope, fan_out=left.fan_out, rows_max=left.rows_max, unique=left.unique)
    if left.unit is None and _matches_at_most_one(right, left, pairs):
        return replace(scope, fan_out=left.fan_out + right.fan_out, unique=right.unique)
    times = max(right.fan_out, 1)
    rows_max = None if left.rows_max is None else left.rows_max * times
    return replace(scope, fan_out=left.fan_out * times, rows_max=rows_max, unique=_combined_keys(left, right))


def _combined_keys(left: FromScope, right: FromScope) -> frozenset[frozenset[str]]:
    """Return the sets of columns that identify a pair of rows."""
    return frozenset(one | other for one in left.unique for other in right.unique)


def _using_pair(
    left: FromScope, right: FromScope, name: exp.Identifier, binder: BinderOf, text: Text
) -> tuple[Expression, Expression]:
    one, other = (binder(scope)(exp.Column(this=name.copy())) for scope in (left, right))
    if one.kind is not other.kind:
        raise WrongKind(
            f"USING ({name.name}) compares {one.kind} with {other.kind}; CAST one of them in ON", place=text.place(name)
        )
    return one, other


def _merge_using(left: FromScope, right: FromScope, joining: JoinContext) -> tuple[FromScope, FromScope]:
    if joining.side == "RIGHT":
        return _hide_columns(left, joining.using), right
    return left, _hide_columns(right, joining.using)


def _hide_columns(scope: FromScope, using: Sequence[str]) -> FromScope:
    """Hide the columns that USING merges into those of the other side, which is the one whose rows are kept."""
    hidden = frozenset(name.lower() for name in using)
    sources = tuple(replace(source, hidden=source.hidden | hidden) for source in scope.sources)
    return replace(scope, sources=sources)


def _equalities(parts: Sequence[exp.Expression], bind: Bind) -> Iterator[tuple[Expression, Expression]]:
    """Yield the pairs of columns that conjuncts set equal."""
    for part in parts:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column):
            yield bind(part.this), bind(part.expression)


def _skip_unknown_names(bind: Bind) -> Bind:
    """Return `bind` with NULL for unknown columns: a WHERE may name those of later items of the FROM clause."""

    def bound(node: exp.Expression) -> Expression:
        try:
            return bind(node)
        except NotInCatalog:
            return Expression(exp.null(), Kind.BOOLEAN)

    return bound


def _source_of(scope: FromScope, value: Expression) -> FromItem | None:
    names = {one.table for one in value.tree.find_all(exp.Column)}
    return next((source for source in scope.sources if names == {source.alias}), None)


def _require_unit(
    left: FromScope,
    right: FromScope,
    pairs: Sequence[tuple[Expression, Expression]],
    side: str,
    place: Place | None,
) -> None:
    if side == "RIGHT":
        raise NotAllowed(
            "RIGHT JOIN of private tables is not supported", accepted="swap the tables and write LEFT JOIN", place=place
        )
    for first, second in pairs:
        for one, other in ((first, second), (second, first)):
            mine, theirs = _source_of(left, one), _source_of(right, other)
            alike = (one.unit and other.unit) or (one.link is not None and one.link == other.link)
            if mine is not None and theirs is not None and alike:
                return
    raise MixesUnits(
        "private tables must be joined on their unit",
        accepted="set the unit's columns equal, or the foreign key that leads to the unit and its target",
        place=place,
    )


def _joined_rows_per_unit(left: FromScope, right: FromScope, multiplies: bool) -> int | None:
    """Return the greatest number of joined rows of a unit, where that is known."""
    if left.unit is not None and right.unit is not None:
        known = left.rows_per_unit is not None and right.rows_per_unit is not None
        return (left.rows_per_unit or 0) * (right.rows_per_unit or 0) if known else None
    private = left if left.unit is not None else right
    return None if multiplies else private.rows_per_unit


def _keeps_rows(left: FromScope, right: FromScope, pairs: Sequence[tuple[Expression, Expression]]) -> bool:
    """Whether a private row matches at most one public row: the columns that identify those are all compared."""
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
        if one.kind is other.kind
        and _source_of(private, other) is not None  # as doubles, different integers can be equal
    ]
    return bool(table.identified_by) and all(fields[name.lower()] in own for name in table.identified_by)


def _exclude_clamped_keys(public: FromScope) -> Iterator[exp.Expression]:
    """Yield conditions that exclude rows of which an identifying column was clamped: clamping makes keys equal."""
    source = public.sources[0]
    for name in source.table.identified_by if source.table is not None else ():
        read = source.fields[name.lower()]
        if not isinstance(read.tree, exp.Column) and read.domain is None:
            stored = next(read.tree.find_all(exp.Column))
            yield exp.EQ(this=stored.copy(), expression=read.tree.copy())


def _engine_join(right: FromScope, trees: Sequence[exp.Expression], side: str) -> exp.Join:
    clause = right.tree.args["from_"].this.copy()
    on = exp.and_(*trees) if trees else None
    return exp.Join(this=clause, side=side or None, kind=None if on is not None else "CROSS", on=on)


def _sources(left: FromScope, right: FromScope, side: str) -> tuple[FromItem, ...]:
    """Return the items of a join; what a side has no partner for is NULL there, and its unit is the other side's."""
    if side == "LEFT":
        return (*left.sources, *map(_nullable, right.sources))
    if side == "RIGHT":
        return (*map(_nullable, left.sources), *right.sources)
    return (*left.sources, *right.sources)


def _nullable(source: FromItem) -> FromItem:
    fields = {name: replace(value, nullable=True, makes_null=True) for name, value in source.fields.items()}
    return replace(source, fields=fields, unit=None)
