"""Whole statements for Spark: SELECT, joins, groups and windows; every column with its type.

Promise: a tree is written node by node, each by a rule of this package, and a node without one is refused: nothing
reaches Spark whose meaning there was not compared with DuckDB's. A relation `tacit_data."NAME"` is the temporary view
`tacit_data_NAME`, a parameter `$name` is `:name`.

Clauses are written here and not by sqlglot's generator: every expression has to be visited anyway, for its type decides
how it is written, so that the generator would only join clauses with their keywords, in no fewer lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlglot import exp

from tacit.engines.dialects.spark import functions, numbers
from tacit.engines.dialects.spark.casts import cast
from tacit.engines.dialects.spark.numbers import Handler, Write, literal_number
from tacit.engines.dialects.spark.typed_sql import TYPES, Piece, Precedence, SparkType, backquoted, literal, wider
from tacit.engines.dialects.text_search import limit_searches
from tacit.engines.protocol import SCHEMA
from tacit.privacy.errors import EngineFailed
from tacit.privacy.tables import Kind

Kinds = Mapping[str, Mapping[str, Kind]]
"""The kinds of the columns of each view, both by name in lower case."""

Fields = Mapping[str, SparkType | None]

ROWS_SCHEMA: Final = "tacit_rows"
SOURCE_SCHEMA: Final = "tacit_source"
_SCHEMAS: Final = (SCHEMA, ROWS_SCHEMA, SOURCE_SCHEMA)
_COMPARISONS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_TARGETS: Final = {
    "BOOLEAN": SparkType.BOOLEAN,
    "TINYINT": SparkType.BIGINT,
    "SMALLINT": SparkType.BIGINT,
    "INT": SparkType.BIGINT,
    "BIGINT": SparkType.BIGINT,
    "INT128": SparkType.HUGE,
    "DOUBLE": SparkType.DOUBLE,
    "TEXT": SparkType.TEXT,
    "VARCHAR": SparkType.TEXT,
    "DATE": SparkType.DATE,
    "TIMESTAMP": SparkType.TIME,
    "TIMESTAMPNTZ": SparkType.TIME,
}
_WHOLE_MAX: Final = 2**63 - 1
_REAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


def write_spark(tree: exp.Query, kinds: Kinds | None = None) -> str:
    """Return a statement in Spark's SQL; `kinds` are those of the relations' columns."""
    return _Query(kinds or {}).query(limit_searches(tree))[0]


def view_name(name: str, schema: str = SCHEMA) -> str:
    """Return the name of the view that stands for a relation, without quotes."""
    return f"{schema}_{name}"


class _Query:
    """Writes one SELECT; subqueries are written by instances of their own."""

    def __init__(self, kinds: Kinds, outer: Mapping[str, Fields] | None = None) -> None:
        self.kinds, self.outer = kinds, outer or {}
        self.sources: dict[str, Fields] = {}

    def query(
        self, tree: exp.Expr, outer: Mapping[str, Fields] | None = None
    ) -> tuple[str, dict[str, SparkType | None]]:
        """Return a query and the types of its columns; `outer` are the sources of the queries around it."""
        if isinstance(tree, exp.Subquery):
            return self.query(tree.this, outer)
        if isinstance(tree, exp.Union):
            return self._union(tree)
        if not isinstance(tree, exp.Select):
            raise _refused(tree)
        return _Query(self.kinds, outer)._select(tree)

    def _union(self, tree: exp.Union) -> tuple[str, dict[str, SparkType | None]]:
        if tree.args.get("distinct"):
            raise _refused(tree)
        (left, ours), (right, theirs) = self.query(tree.this), self.query(tree.expression)
        types = {name: wider(one, other) for (name, one), other in zip(ours.items(), theirs.values(), strict=True)}
        return f"{left} UNION ALL {right}", types

    def _select(self, tree: exp.Select) -> tuple[str, dict[str, SparkType | None]]:
        self._only(tree, "expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "limit")
        source = tree.args.get("from_")
        clauses = [] if source is None else [f"FROM {self._source(source.this)}"]
        clauses += [self._join(one) for one in tree.args.get("joins") or ()]
        if (where := tree.args.get("where")) is not None:
            clauses.append(f"WHERE {self.value(where.this).text}")
        if (group := tree.args.get("group")) is not None:
            self._only(group, "expressions")
            clauses.append(f"GROUP BY {', '.join(self.value(one).text for one in group.expressions)}")
        if (having := tree.args.get("having")) is not None:
            clauses.append(f"HAVING {self.value(having.this).text}")
        if (order := tree.args.get("order")) is not None:
            clauses.append(f"ORDER BY {self._order(order)}")
        if (limit := tree.args.get("limit")) is not None:
            clauses.append(f"LIMIT {int(limit.expression.name)}")
        types: dict[str, SparkType | None] = {}
        items = [text for one in tree.expressions for text in self._item(one, types)]
        word = "SELECT DISTINCT" if tree.args.get("distinct") else "SELECT"
        return " ".join([f"{word} {', '.join(items)}", *clauses]), types

    def _item(self, item: exp.Expr, types: dict[str, SparkType | None]) -> Iterator[str]:
        if isinstance(item, exp.Star):
            for fields in self.sources.values():
                types.update(fields)
            yield "*"
            return
        inner = item.this if isinstance(item, exp.Alias) else item
        value, name = self.value(inner), item.alias_or_name
        types[name.lower()] = value.type
        yield f"{value.text} AS {backquoted(name)}" if name else value.text

    def _source(self, source: exp.Expr) -> str:
        """Return an item of FROM, and keep the types of its columns."""
        alias = source.alias
        if isinstance(source, exp.Subquery):
            text, types = self.query(source.this)
            self.sources[alias.lower()] = types
            return f"({text}) AS {backquoted(alias)}"
        if not isinstance(source, exp.Table) or source.db.lower() not in _SCHEMAS or source.catalog:
            raise _refused(source)
        view = view_name(source.name, source.db.lower())
        known = self.kinds.get(view.lower(), {})
        self.sources[(alias or source.name).lower()] = {name.lower(): TYPES[kind] for name, kind in known.items()}
        return f"{backquoted(view)} AS {backquoted(alias or source.name)}"

    def _join(self, join: exp.Join) -> str:
        self._only(join, "this", "side", "kind", "on")
        side, on = (join.side or "").upper(), join.args.get("on")
        word = f"{side} JOIN" if side else "JOIN" if on is not None else "CROSS JOIN"
        source = self._source(join.this)
        return f"{word} {source}" if on is None else f"{word} {source} ON {self.value(on).text}"

    def value(self, node: exp.Expr) -> Piece:
        """Return the SQL of an expression."""
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(node, self.value)
        method = _METHODS.get(type(node))
        if method is None:
            raise _refused(node)
        return method(self, node)

    def _column(self, node: exp.Expr) -> Piece:
        assert isinstance(node, exp.Column)
        name, table = node.name.lower(), node.table.lower()
        known = {**self.outer, **self.sources}
        sources: Sequence[Fields] = [known.get(table, {})] if table else list(self.sources.values())
        type_ = next((fields[name] for fields in sources if name in fields), None)
        own = backquoted(node.name)
        return Piece(f"{backquoted(node.table)}.{own}" if node.table else own, type_)

    def _in(self, node: exp.Expr) -> Piece:
        value, query = self.value(node.this).at(Precedence.ADDED), node.args.get("query")
        inside = (
            self._inner(query) if query is not None else ", ".join(self.value(one).text for one in node.expressions)
        )
        return Piece(f"{value} IN ({inside})", SparkType.BOOLEAN, Precedence.COMPARED)

    def _exists(self, node: exp.Expr) -> Piece:
        return Piece(f"EXISTS ({self._inner(node.this)})", SparkType.BOOLEAN)

    def _inner(self, query: exp.Expr) -> str:
        """Return a query in a condition, which may name the sources around it."""
        return self.query(query, {**self.outer, **self.sources})[0]

    def _window(self, node: exp.Expr) -> Piece:
        self._only(node, "this", "partition_by", "order", "over")
        parts = []
        if within := node.args.get("partition_by"):
            parts.append(f"PARTITION BY {', '.join(self.value(one).text for one in within)}")
        if (order := node.args.get("order")) is not None:
            parts.append(f"ORDER BY {self._order(order)}")
        over = f"OVER ({' '.join(parts)})"
        function = node.this
        if isinstance(function, exp.Filter):
            function = _filter_to_case(function)
        is_distinct = isinstance(function, exp.Count) and isinstance(function.this, exp.Distinct)
        if order is not None and (is_distinct or isinstance(function, exp.Median)):
            raise EngineFailed(f"Spark has no running {function.key} over rows in order; leave ORDER BY out of OVER")
        if is_distinct:
            (counted,) = function.this.expressions  # Spark has no COUNT(DISTINCT) over a window
            return Piece(_distinct(_with_one_zero(self.value(counted)), parts), SparkType.BIGINT)
        if isinstance(function, exp.Sum) and (summed := self.value(function.this)).type is SparkType.HUGE:
            return Piece(numbers.huge_sum(summed.closed, f" {over}"), SparkType.HUGE)
        value = self.value(function)
        if value.type is SparkType.INT:  # ranks
            return Piece(f"CAST({value.text} {over} AS BIGINT)", SparkType.BIGINT)
        return Piece(f"{value.text} {over}", value.type)

    def _order(self, order: exp.Expr) -> str:
        items = [one if isinstance(one, exp.Ordered) else exp.Ordered(this=one.copy()) for one in order.expressions]
        return ", ".join(
            f"{self.value(one.this).text}{' DESC' if one.args.get('desc') else ''} "
            f"NULLS {'FIRST' if one.args.get('nulls_first') else 'LAST'}"
            for one in items
        )

    def _aggregate(self, node: exp.Expr) -> Piece:
        if isinstance(node, exp.Filter):
            node = _filter_to_case(node)
        if isinstance(node, exp.Count):
            return Piece(f"count({self._counted(node.this)})", SparkType.BIGINT)
        value = self.value(node.this)
        if isinstance(node, exp.Sum):
            if value.type is SparkType.DOUBLE:
                return Piece(f"sum({value.text})", SparkType.DOUBLE)
            if value.type is SparkType.HUGE:
                return Piece(numbers.huge_sum(value.closed), SparkType.HUGE)
            return Piece(f"sum(CAST({value.text} AS {SparkType.HUGE}))", SparkType.HUGE)
        if isinstance(node, exp.Median):
            return Piece(f"median({value.text})", SparkType.DOUBLE)
        return Piece(f"{_AGGREGATES[type(node)]}({value.text})", value.type)

    def _counted(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Star):
            return "*"
        if isinstance(node, exp.Distinct):
            return f"DISTINCT {', '.join(self.value(one).text for one in node.expressions)}"
        return self.value(node).text

    def _lag_or_lead(self, node: exp.Expr) -> Piece:
        value, offset = self.value(node.this), node.args.get("offset")
        distance = "" if offset is None else f", {int(offset.name)}"
        return Piece(f"{'lag' if isinstance(node, exp.Lag) else 'lead'}({value.text}{distance})", value.type)

    def _call(self, node: exp.Expr) -> Piece:
        """Return a function call that sqlglot has no node for, or that was built by name."""
        name = str(node.this).upper()
        values = [self.value(one) for one in node.expressions]
        if name == "HASH":  # the salt first, so that all that follows is keyed by it
            return Piece(f"xxhash64({', '.join(one.text for one in (values[-1], *values[:-1]))})", SparkType.BIGINT)
        if name in ("LEAST", "GREATEST"):
            return _extreme(name.lower(), values, node)
        if name == "LOG2":
            return Piece(numbers.log2(values[0].closed), SparkType.DOUBLE)
        if name == "ISNAN":
            return Piece(f"isnan({values[0].text})", SparkType.BOOLEAN)
        raise _refused(node)

    def _only(self, node: exp.Expr, *names: str) -> None:
        for name, value in node.args.items():
            if value and name not in names:
                raise _refused(node)


def _refused(node: exp.Expr) -> EngineFailed:
    return EngineFailed(f"{node.key.upper()} is not supported on Spark; leave it out")


def _filter_to_case(node: exp.Expr) -> exp.Expr:
    """Return an aggregate with its FILTER as a CASE inside; Spark has no FILTER in windows."""
    function: exp.Expr = node.this.copy()
    condition = node.expression.this
    counted = function.this
    inside = counted.expressions[0] if isinstance(counted, exp.Distinct) else counted
    value = exp.Literal.number(1) if isinstance(inside, exp.Star) else inside.copy()
    kept = exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])
    function.set("this", exp.Distinct(expressions=[kept]) if isinstance(counted, exp.Distinct) else kept)
    return function


def _extreme(name: str, values: Sequence[Piece], node: exp.Expr) -> Piece:
    type_ = wider(*(one.type for one in values))
    text = f"{name}({', '.join(one.text for one in values)})"
    if type_ is SparkType.HUGE and _is_clamped(node):
        return Piece(f"CAST({text} AS BIGINT)", SparkType.BIGINT)
    return Piece(text, type_)


def _is_clamped(node: exp.Expr) -> bool:
    """Return whether a tree is LEAST(GREATEST(x, low), high) with ends that fit into BIGINT."""
    if not isinstance(node, exp.Anonymous) or str(node.this).upper() != "LEAST":
        return False
    inner, high = node.expressions
    if not isinstance(inner, exp.Anonymous) or str(inner.this).upper() != "GREATEST":
        return False
    ends = [one.this if isinstance(one, exp.Neg) else one for one in (inner.expressions[-1], high)]
    return all(isinstance(one, exp.Literal) and one.is_int and int(one.name) <= _WHOLE_MAX for one in ends)


def _with_one_zero(value: Piece) -> str:
    return f"{value.closed} + 0D" if value.type is SparkType.DOUBLE else value.text


def _distinct(value: str, within: Sequence[str]) -> str:
    """Return the number of distinct values in a partition, in linear and not quadratic time."""
    partition = " ".join(within)
    up, down = (f"dense_rank() OVER ({partition} ORDER BY {value} {way})" for way in ("NULLS LAST", "DESC NULLS FIRST"))
    missing = f"CASE WHEN count(*) OVER ({partition}) > count({value}) OVER ({partition}) THEN 1 ELSE 0 END"
    return f"CAST({up} + {down} - 1 - {missing} AS BIGINT)"


def _literal(node: exp.Expr, write: Write) -> Piece:
    if node.is_string:
        return Piece(literal(node.name), SparkType.TEXT)
    return literal_number(node.name)


def _cast(node: exp.Expr, write: Write) -> Piece:
    target = _TARGETS.get(node.args["to"].this.value)
    if target is None:
        raise _refused(node)
    inner = node.this
    if isinstance(inner, exp.Null):
        return Piece(f"CAST(NULL AS {target})", target)
    if isinstance(inner, exp.Literal) and inner.is_string:
        return _constant(inner.name, target) or cast(write(inner), target)
    if target is SparkType.HUGE and isinstance(inner, exp.Literal):
        return literal_number(inner.name, huge=True)
    if target is SparkType.BIGINT and (whole := numbers.cast_rounded(node, write)) is not None:
        return whole
    return cast(write(inner), target)


def _constant(text: str, target: SparkType) -> Piece | None:
    if target in (SparkType.DATE, SparkType.TIME):
        return Piece(f"{target} {literal(text)}", target)
    if target is SparkType.BIGINT and text.removeprefix("-").isdecimal() and -(2**63) < int(text) < 2**63:
        return Piece(f"{text}L", target, Precedence.CLOSED if int(text) >= 0 else Precedence.NEGATED)
    if target is not SparkType.DOUBLE:
        return None
    shown = repr(float(text)) if _REAL.fullmatch(text) else ""
    if not shown or not math.isfinite(float(text)):
        return Piece(f"CAST({literal(text)} AS DOUBLE)", target)
    return Piece(f"{shown}D", target, Precedence.NEGATED if shown.startswith("-") else Precedence.CLOSED)


def _case(node: exp.Expr, write: Write) -> Piece:
    branches = [(write(one.this), write(one.args["true"])) for one in node.args["ifs"]]
    default = node.args.get("default")
    last = None if default is None else write(default)
    type_ = wider(*(value.type for _, value in branches), last.type if last is not None else None)
    shown = "".join(f" WHEN {condition.text} THEN {value.text}" for condition, value in branches)
    return Piece(f"CASE{shown}{'' if last is None else f' ELSE {last.text}'} END", type_)


def _chain(word: str, kind: type[exp.Expr], type_: SparkType, level: Precedence) -> Handler:
    """Return the rule for chains of one operator, which can be long, and are written without recursion."""

    def handler(node: exp.Expr, write: Write) -> Piece:
        terms, here = [], node
        while type(here) is kind:
            terms.append(here.expression)
            here = here.this
        first, rest = write(here), [write(one).at(Precedence(level + 1)) for one in terms[::-1]]
        return Piece(f" {word} ".join([first.at(level), *rest]), type_, level)

    return handler


def _comparison(node: exp.Expr, write: Write) -> Piece:
    left, right = (write(one).at(Precedence.ADDED) for one in (node.this, node.expression))
    return Piece(f"{left} {_COMPARISONS[type(node)]} {right}", SparkType.BOOLEAN, Precedence.COMPARED)


def _is_distinct(node: exp.Expr, write: Write) -> Piece:
    left, right = (write(one).at(Precedence.ADDED) for one in (node.this, node.expression))
    return Piece(f"NOT {left} <=> {right}", SparkType.BOOLEAN, Precedence.NOT)


def _is(node: exp.Expr, write: Write) -> Piece:
    other = node.expression
    word = "NULL" if isinstance(other, exp.Null) else str(bool(other.this)).upper()
    return Piece(f"{write(node.this).at(Precedence.ADDED)} IS {word}", SparkType.BOOLEAN, Precedence.COMPARED)


def _variadic(name: str) -> Handler:
    def handler(node: exp.Expr, write: Write) -> Piece:
        values = [write(one) for one in (node.this, *node.expressions)]
        return Piece(f"{name}({', '.join(one.text for one in values)})", wider(*(one.type for one in values)))

    return handler


def _nullif(node: exp.Expr, write: Write) -> Piece:
    value = write(node.this)
    return Piece(f"nullif({value.text}, {write(node.expression).text})", value.type)


def _inner(node: exp.Expr, write: Write) -> Piece:
    return write(node.this)


_AGGREGATES: Final[Mapping[type[exp.Expr], str]] = {
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}

_METHODS: Final = {
    exp.Column: _Query._column,
    exp.Exists: _Query._exists,
    exp.In: _Query._in,
    exp.Window: _Query._window,
    exp.Lag: _Query._lag_or_lead,
    exp.Lead: _Query._lag_or_lead,
    exp.Anonymous: _Query._call,
    **dict.fromkeys((exp.Count, exp.Sum, exp.Median, exp.Filter, *_AGGREGATES), _Query._aggregate),
}

_HANDLERS: Final[Mapping[type[exp.Expr], Handler]] = {
    **numbers.HANDLERS,
    **functions.HANDLERS,
    **dict.fromkeys(_COMPARISONS, _comparison),
    exp.Literal: _literal,
    exp.Null: lambda node, write: Piece("NULL"),
    exp.Boolean: lambda node, write: Piece(str(bool(node.this)).upper(), SparkType.BOOLEAN),
    exp.Paren: _inner,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.And: _chain("AND", exp.And, SparkType.BOOLEAN, Precedence.AND),
    exp.Or: _chain("OR", exp.Or, SparkType.BOOLEAN, Precedence.OR),
    exp.DPipe: _chain("||", exp.DPipe, SparkType.TEXT, Precedence.ADDED),
    exp.Not: lambda node, write: Piece(
        f"NOT {write(node.this).at(Precedence.COMPARED)}", SparkType.BOOLEAN, Precedence.NOT
    ),
    exp.NullSafeNEQ: _is_distinct,
    exp.Is: _is,
    exp.Coalesce: _variadic("coalesce"),
    exp.Least: _variadic("least"),
    exp.Greatest: _variadic("greatest"),
    exp.Nullif: _nullif,
    exp.Parameter: lambda node, write: Piece(f":{node.name}"),
    exp.Placeholder: lambda node, write: Piece(f":{node.name}"),
    exp.RowNumber: lambda node, write: Piece("row_number()", SparkType.INT),
    exp.Rank: lambda node, write: Piece("rank()", SparkType.INT),
    exp.DenseRank: lambda node, write: Piece("dense_rank()", SparkType.INT),
}
