"""Whole statements for PostgreSQL: SELECT, its sources, groups, windows and medians; every column with its type.

Names are looked up ignoring case, as in DuckDB, and written as they are. Relations are named in the statement as
`tacit_data."NAME"`; the caller says what they are in PostgreSQL.

Clauses are written here and not by sqlglot's generator: every expression has to be visited anyway, for its type and
range decide which guards it needs, and a node without a rule has to be refused, so that the generator would only join
clauses with their keywords, in no fewer lines.

MEDIAN over a window does not exist in PostgreSQL, and is computed in two steps that sort each partition once; an array
of the partition in every row would take time and memory with the square of its rows. A SELECT with such windows reads
from another one, which numbers the rows of each partition in the order of the value and counts its values; the median
is then the midpoint of the two values whose numbers are in the middle, each the only one that a MAX over the partition
finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.engines.dialects.postgres import functions, reals
from tacit.engines.dialects.postgres.scalars import scalar
from tacit.engines.dialects.postgres.typed_sql import (
    PostgresType,
    Value,
    as_bigint,
    as_real,
    computed,
    identifier,
    parameter,
    real,
)
from tacit.privacy.errors import EngineFailed

MIDDLE: Final = "TACIT_MIDDLE"
"""The placeholder for the median of the two middle values; `_Scope` writes it."""

_ALIAS: Final = "ranked"


def has_window_medians(select: exp.Select) -> bool:
    """Return whether an item of a SELECT contains a median over a window."""
    return any(_is_median(node) for item in select.expressions for node in item.find_all(exp.Window))


def split_medians(select: exp.Select) -> exp.Select:
    """Return a SELECT with the same rows that has no median over a window (see the module)."""
    inner = select.copy()
    columns: dict[str, exp.Column] = {}
    windows: dict[str, exp.Window] = {}
    for item in inner.expressions:
        if isinstance(item, exp.Star) or item.find(exp.Query) is not None:
            raise EngineFailed(
                "on PostgreSQL, a SELECT with MEDIAN over a window has no * and no subquery; name the columns"
            )
        columns |= {one.sql(): one for one in item.find_all(exp.Column)}
        windows |= {one.sql(): one for one in item.find_all(exp.Window) if _is_median(one)}
    names = {text: f"w{index}" for index, text in enumerate(columns)}
    places = {text: index for index, text in enumerate(windows)}
    items: list[exp.Expr] = [exp.alias_(one.copy(), names[text]) for text, one in columns.items()]
    for text, window in windows.items():
        if window.args.get("order") is not None:
            raise EngineFailed("PostgreSQL has no running median over rows in order; leave ORDER BY out of OVER")
        items += _rank_items(window, places[text])

    def outer(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window) and _is_median(node):
            return _middle(node, places[node.sql()], names)
        return exp.column(names[node.sql()], table=_ALIAS) if isinstance(node, exp.Column) else node

    shown = [_with_name(item).transform(outer) for item in select.expressions]
    for name in ("order", "limit", "distinct"):
        inner.set(name, None)
    inner.set("expressions", items)
    made = exp.select(*shown).from_(inner.subquery(_ALIAS))
    if select.args.get("order") is not None or select.args.get("distinct") is not None:
        raise EngineFailed(
            "on PostgreSQL, a SELECT with MEDIAN over a window has no ORDER BY or DISTINCT; use a subquery"
        )
    if (limit := select.args.get("limit")) is not None:
        made.set("limit", limit.copy())
    return made


def _is_median(node: exp.Expr) -> bool:
    function = node.this.this if isinstance(node.this, exp.Filter) else node.this
    return isinstance(function, exp.Median)


def _with_name(item: exp.Expr) -> exp.Expr:
    return item.copy() if isinstance(item, exp.Alias) else exp.alias_(item.copy(), item.alias_or_name)


def _rank_items(window: exp.Window, index: int) -> list[exp.Expr]:
    """Return the value of a median, its rank in the partition, and the number of values, as items."""
    if isinstance(window.this, exp.Filter):
        value: exp.Expr = exp.Case().when(window.this.expression.this.copy(), window.this.this.this.copy())
    else:
        value = window.this.this.copy()
    keys = [key.copy() for key in window.args.get("partition_by") or ()]
    order = exp.Order(expressions=[exp.Ordered(this=value.copy())])
    place = exp.Window(this=exp.RowNumber(), partition_by=keys, order=order)
    count = exp.Window(this=exp.Count(this=value.copy()), partition_by=[key.copy() for key in keys])
    parts = {"v": value, "p": place, "q": count}
    return [exp.alias_(tree, f"{letter}{index}") for letter, tree in parts.items()]


def _middle(window: exp.Window, index: int, names: dict[str, str]) -> exp.Expr:
    value, place, count = (exp.column(f"{letter}{index}", table=_ALIAS) for letter in "vpq")
    one, two = exp.Literal.number(1), exp.Literal.number(2)
    lower = exp.IntDiv(this=exp.paren(exp.Add(this=count.copy(), expression=one)), expression=two)
    upper = exp.Add(this=exp.IntDiv(this=count.copy(), expression=two.copy()), expression=one.copy())

    def found(number: exp.Expr) -> exp.Expr:
        condition = exp.Where(this=exp.EQ(this=place.copy(), expression=number))
        keys = [
            key.transform(
                lambda node: exp.column(names[node.sql()], table=_ALIAS) if isinstance(node, exp.Column) else node
            )
            for key in window.args.get("partition_by") or ()
        ]
        return exp.Window(this=exp.Filter(this=exp.Max(this=value.copy()), expression=condition), partition_by=keys)

    return exp.Anonymous(this=MIDDLE, expressions=[found(lower), found(upper)])


TypedColumns: TypeAlias = dict[str, Value]
"""Columns by their names in lower case; the SQL of each is its name."""

Sources: TypeAlias = dict[str, tuple[str, TypedColumns]]
"""The sources of a FROM clause: by alias in lower case, the alias as it is written, and the columns."""


@dataclass(frozen=True, slots=True)
class TypedRelation:
    """The name of a relation in PostgreSQL, and its columns."""

    sql: str
    columns: Mapping[str, Value]


Relations: TypeAlias = Mapping[tuple[str, str], TypedRelation]
"""Relations by schema and name, both in lower case."""

_HASHES: Final = {
    PostgresType.INTEGER: "{}",
    PostgresType.REAL: "hashfloat8extended({}, 1)",
    PostgresType.TEXT: 'hashtextextended({} COLLATE "C", 1)',
    PostgresType.TIME: "timestamp_hash_extended({}, 1)",
    PostgresType.DATE: "({} - '2000-01-01'::date)",
    PostgresType.BOOLEAN: "{}::int",
    PostgresType.WHOLE: "hash_numeric_extended({}, 1)",
}
"""An expression for each type that maps equal values to equal numbers."""


class Writer:
    """Writes one statement, and collects the relations that it names."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self.named: dict[tuple[str, str], None] = {}

    def query(self, node: exp.Expr, outer: Sources | None = None) -> tuple[str, TypedColumns]:
        """Return a query and its columns; `outer` are the sources of the query around it."""
        if isinstance(node, exp.Subquery):
            return self.query(node.this, outer)
        if isinstance(node, exp.Union):
            left, columns = self.query(node.this)
            right, others = self.query(node.expression)
            both = {
                name: _union_column(one, other)
                for (name, one), other in zip(columns.items(), others.values(), strict=True)
            }
            return f"{left} UNION ALL {right}", both
        if not isinstance(node, exp.Select):
            raise EngineFailed("PostgreSQL runs SELECT and UNION ALL only")
        return self._select(node, outer or {})

    def _select(self, node: exp.Select, outer: Sources) -> tuple[str, TypedColumns]:
        if has_window_medians(node):
            node = split_medians(node)
        scope, source = self._from(node)
        scoped = _Scope(self, scope, outer)
        items, columns = [], TypedColumns()
        for item in node.expressions:
            if isinstance(item, exp.Star):
                items.append("*")
                columns |= {name: one for _, fields in scope.values() for name, one in fields.items()}
                continue
            name = item.alias_or_name
            value = as_bigint(scoped.value(item.this if isinstance(item, exp.Alias) else item))
            shown = identifier(name)
            items.append(value.sql if value.sql == shown else f"{value.sql} AS {shown}")
            columns[name.lower()] = replace(value, sql=shown, known=None, is_cheap=True, is_movable=True)
        parts = ["SELECT DISTINCT" if node.args.get("distinct") else "SELECT", ", ".join(items)]
        if source:
            parts.append(f"FROM {source}")
        if (where := node.args.get("where")) is not None:
            parts.append(f"WHERE {scoped.value(where.this).sql}")
        if (group := node.args.get("group")) is not None:
            parts.append(f"GROUP BY {', '.join(scoped.value(one).sql for one in group.expressions)}")
        if (having := node.args.get("having")) is not None:
            parts.append(f"HAVING {scoped.value(having.this).sql}")
        if (order := node.args.get("order")) is not None:
            parts.append(f"ORDER BY {', '.join(map(scoped.order_item, order.expressions))}")
        if (limit := node.args.get("limit")) is not None:
            parts.append(f"LIMIT {int(limit.expression.name)}")
        return " ".join(parts), columns

    def _from(self, node: exp.Select) -> tuple[Sources, str]:
        clause = node.args.get("from_")
        if clause is None:
            return {}, ""
        scope: Sources = {}
        source = self._source(clause.this, scope)
        for join in node.args.get("joins") or ():
            other = self._source(join.this, scope)
            on = join.args.get("on")
            side = f"{join.side} " if join.side else ""
            if on is None:
                source += f" CROSS JOIN {other}"
            else:
                source += f" {side}JOIN {other} ON {_Scope(self, scope).value(on).sql}"
        return scope, source

    def _source(self, node: exp.Expr, scope: Sources) -> str:
        alias = node.alias_or_name
        if isinstance(node, exp.Subquery):
            sql, columns = self.query(node.this)
            sql = f"({sql})"
        else:
            schema = node.text("db")
            key = (schema.lower(), node.name.lower())
            relation = self._relations.get(key)
            if relation is None:
                relation = TypedRelation(".".join(identifier(one) for one in (schema, node.name) if one), {})
            self.named[key] = None
            sql, columns = relation.sql, dict(relation.columns)
        shown = identifier(alias)
        scope[alias.lower()] = (shown, columns)
        return f"{sql} AS {shown}"


def _union_column(one: Value, other: Value) -> Value:
    """Return the common type and range of the two columns that a UNION puts together."""
    type_ = one.type if other.type in (one.type, PostgresType.UNKNOWN, PostgresType.INTEGER) else other.type
    low, high, least = min(one.low, other.low), max(one.high, other.high), min(one.least, other.least)
    return replace(one, type=type_, low=low, high=high, least=least)


class _Scope:
    """Writes the expressions of one SELECT; knows the columns that they can name."""

    def __init__(self, writer: Writer, sources: Sources, outer: Sources | None = None) -> None:
        self._writer, self._sources, self._outer = writer, sources, outer or {}

    def value(self, node: exp.Expression) -> Value:
        """Return the value of an expression."""
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            a, (inner, _) = self.value(node.this), self._writer.query(node.args["query"], self._sources)
            return Value(f"({a.sql} IN ({inner}))", PostgresType.BOOLEAN, is_movable=a.is_movable)
        if isinstance(node, exp.Exists):
            inner, _ = self._writer.query(node.this, self._sources)
            return Value(f"EXISTS ({inner})", PostgresType.BOOLEAN, is_movable=False)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter):
            return self._aggregate(node.this, self.value(node.expression.this))
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node, None)
        if isinstance(node, exp.Parameter | exp.Placeholder):
            return Value(parameter(node.name), PostgresType.UNKNOWN, is_cheap=True)
        if isinstance(node, exp.Anonymous) and node.name.upper() == "HASH":
            return self._hash(node)
        if isinstance(node, exp.Anonymous) and node.name == MIDDLE:
            return _median(*(as_real(self.value(one)).sql for one in node.expressions))
        return scalar(node, self.value)

    def order_item(self, node: exp.Expression) -> str:
        """Return an item of ORDER BY; NULL comes last by default."""
        if not isinstance(node, exp.Ordered):
            return functions.collated(self.value(node))
        value = self.value(node.this)
        direction = " DESC" if node.args.get("desc") else ""
        nulls = " NULLS FIRST" if node.args.get("nulls_first") else " NULLS LAST" if direction else ""
        return f"{functions.collated(value)}{direction}{nulls}"

    def _column(self, node: exp.Column) -> Value:
        name = node.name.lower()
        for sources in (self._sources, self._outer):
            for alias, (shown, fields) in sources.items():
                if name in fields and node.table.lower() in ("", alias):
                    found = fields[name]
                    return found.renamed(f"{shown}.{found.sql}" if len(sources) > 1 or node.table else found.sql)
        unknown = ".".join(identifier(one) for one in (node.table, node.name) if one)
        return Value(unknown, PostgresType.UNKNOWN, is_cheap=True)

    def _hash(self, node: exp.Expression) -> Value:
        """Return a hash of values, keyed with the last one; equal values have equal hashes."""
        *hashed, salt = [self.value(one) for one in node.expressions]
        key = f"{salt.sql}::bigint"
        for one in hashed:  # NULL is hashed as a constant, with the key
            number = _HASHES.get(one.type, 'hashtextextended({}::text COLLATE "C", 1)').format(one.sql)
            key = f"hashint8extended(coalesce({number}, 97), {key})"
        return computed(key, PostgresType.INTEGER, *hashed)

    def _aggregate(self, node: exp.Expression, condition: Value | None) -> Value:
        kept = "" if condition is None else f" FILTER (WHERE {condition.sql})"
        if isinstance(node, exp.Count):
            return Value(f"count({self._count_argument(node.this)}){kept}", PostgresType.INTEGER, is_movable=False)
        a = self.value(node.this)
        if isinstance(node, exp.Median):
            return _median(
                *(
                    f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {as_real(a).sql}{down}){kept}"
                    for down in ("", " DESC")
                )
            )
        if isinstance(node, exp.Min | exp.Max):
            function = ("min" if isinstance(node, exp.Min) else "max") if a.type is not PostgresType.BOOLEAN else ""
            function = function or ("bool_and" if isinstance(node, exp.Min) else "bool_or")
            sql = f"{function}({functions.collated(as_bigint(a))}){kept}"
            return replace(a, sql=sql, known=None, is_cheap=False, is_movable=False)
        if isinstance(node, exp.LogicalAnd | exp.LogicalOr):
            function = "bool_and" if isinstance(node, exp.LogicalAnd) else "bool_or"
            return Value(f"{function}({a.sql}){kept}", PostgresType.BOOLEAN, is_movable=False)
        if isinstance(node, exp.Sum):
            type_ = PostgresType.WHOLE if a.type.is_whole else a.type
            return Value(f"sum({as_bigint(a).sql}){kept}", type_, is_movable=False)
        raise EngineFailed(f"the aggregate {node.key} is not supported on PostgreSQL; leave it out")

    def _count_argument(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Star):
            return "*"
        if isinstance(node, exp.Distinct):
            return f"DISTINCT {self.value(node.expressions[0]).sql}"
        return self.value(node).sql

    def _window(self, node: exp.Window) -> Value:
        within = ", ".join(self.value(one).sql for one in node.args.get("partition_by") or ())
        order = node.args.get("order")
        by = "" if order is None else ", ".join(map(self.order_item, order.expressions))
        partition = f"PARTITION BY {within}" if within else ""
        over = f"OVER ({' '.join(part for part in (partition, f'ORDER BY {by}' if by else '') if part)})"
        function = node.this
        if isinstance(function, exp.RowNumber | exp.Rank | exp.DenseRank):
            return Value(f"{_RANKS[type(function)]}() {over}", PostgresType.INTEGER, is_movable=False)
        if isinstance(function, exp.Lag | exp.Lead):
            a, offset = self.value(function.this), function.args.get("offset")
            distance = "" if offset is None else f", {int(offset.this)}"
            typed = f"{a.sql}::text" if isinstance(a.known, str) and a.type is PostgresType.TEXT else as_bigint(a).sql
            sql = f"{function.key}({typed}{distance}) {over}"
            return replace(a, sql=sql, known=None, is_cheap=False, is_movable=False)
        inner, condition = function, None
        if isinstance(function, exp.Filter):
            inner, condition = function.this, self.value(function.expression.this)
        if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct):
            return self._distinct(inner, condition, partition, by)
        value = self._aggregate(inner, condition)
        return replace(value, sql=f"{value.sql} {over}")

    def _distinct(self, node: exp.Count, condition: Value | None, partition: str, by: str) -> Value:
        """Return the number of distinct values in a window, for which PostgreSQL has no function."""
        if by:
            raise EngineFailed(f"PostgreSQL has no running {node.key} over rows in order; leave ORDER BY out of OVER")
        a = self.value(node.this.expressions[0])
        kept = a.sql if condition is None else f"CASE WHEN {condition.sql} THEN {a.sql} END"
        count = f"count({kept}) OVER ({partition})"
        collated = f'{kept} COLLATE "C"' if a.type is PostgresType.TEXT else kept
        up, down = (f"dense_rank() OVER ({partition} ORDER BY {collated}{way})" for way in ("", " DESC"))
        missing = f"CASE WHEN count(*) OVER ({partition}) > {count} THEN 1 ELSE 0 END"
        return Value(f"({up} + {down} - 1 - {missing})", PostgresType.INTEGER, is_movable=False)


_RANKS: Final = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}


def _median(lower: str, upper: str) -> Value:
    """Return the midpoint of the two middle values, computed as in DuckDB."""
    low, high = (Value(one, PostgresType.REAL, is_movable=False) for one in (lower, upper))
    half = reals.add(reals.multiply(low, real(0.5)), reals.multiply(high, real(0.5)))
    return Value(f"CASE WHEN {lower} = {upper} THEN {lower} ELSE {half.sql} END", PostgresType.REAL, is_movable=False)
