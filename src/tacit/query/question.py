"""Questions: a SELECT becomes rows, keys, aggregates, and what is computed from them after the noise.

Promise: a question's answer depends on data only through the aggregates and the keys; everything else (arithmetic,
HAVING, ORDER BY, LIMIT, windows over the answer) is computed from them after the noise, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final

from sqlglot import exp

from tacit.engines.protocol import SCHEMA
from tacit.privacy.errors import MixesUnits, NotAllowed, NotInCatalog, NotSQL, ShowsUnits, TooWide
from tacit.privacy.tables import Kind, Schema, Table
from tacit.query import per_unit
from tacit.query.aggregates import Aggregate, is_aggregate, read_aggregate, unknown_aggregate
from tacit.query.conditions import bind_condition, bind_without_window, scalar_subquery_error
from tacit.query.expressions import Expression, Range
from tacit.query.outer_select import AnswerColumn, OuterSelect, bind_answer_window, order_item, read_outer_select
from tacit.query.parse import Text, limit_or_offset, require_only, source_text
from tacit.query.relations import Aliases, FromScope
from tacit.query.resolve import NO_CTES, Resolver
from tacit.query.row_limits import require_bounded_row_text, require_bounded_size
from tacit.query.scalars import FUNCTION_NAMES, Bind, literal, scalar

AGGREGATES_MAX: Final = 100
KEYS_MAX: Final = 16
SETS_MAX: Final = 256

_SELECT: Final = (
    "expressions", "from_", "joins", "where", "with_", "group", "having", "order", "limit", "offset", "distinct"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer: its name, and its value over the noisy columns k0, k1, ..., a0, a1, ..."""

    name: str
    value: Expression

    @property
    def column(self) -> str | None:
        """The noisy column that is shown as it is, if it is one."""
        return self.value.tree.name if isinstance(self.value.tree, exp.Column) else None


@dataclass(frozen=True, slots=True)
class Question:
    """A query over private rows, before bounds and noise are decided."""

    scope: FromScope
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[exp.Ordered, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    sets: tuple[tuple[int, ...], ...] = ()
    """Which keys each grouping set keeps; empty for a plain GROUP BY."""
    after: tuple[OuterSelect, ...] = ()
    """SELECTs over the answer, from the innermost outwards."""
    records: tuple[Table, ...] = ()
    """Every table that is read, by subqueries too, as it was registered when the question was asked."""
    datasets: frozenset[str] = frozenset()
    """The data sets of the private tables; their budget pays, and the curator refuses a question about several."""
    cuts: tuple[str, ...] = ()
    """What is left out of each unit before anything is counted, in sentences."""
    unit_rows: int = 1
    """How many rows a unit has at most in any scope of the question (`row_limits.unit_rows`)."""
    held: int = 0
    """How many characters of a unit are grouped, sorted or told apart at most (`row_limits.held_characters`)."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the answer."""
        return [field.name for field in self.fields]

    @property
    def fields(self) -> tuple[AnswerColumn, ...]:
        """The columns of the answer."""
        if self.after:
            return self.after[-1].fields
        return tuple(AnswerColumn(output.name, output.value.kind) for output in self.outputs)

    def names_of_key(self, index: int) -> set[str]:
        """Return the names under which a key is shown, in lower case."""
        return {output.name.lower() for output in self.outputs if output.column == f"k{index}"}

    @property
    def selects_by_noise(self) -> bool:
        """Whether noisy numbers decide which groups are shown: by HAVING, or by the order before LIMIT or OFFSET."""
        is_cut = self.limit is not None or self.offset > 0
        deciding = [self.having.tree] if self.having is not None else []
        return any(map(reads_noise, [*deciding, *(self.order if is_cut else ())]))

    def row_level(self, groups: int | None, level: float) -> float | None:
        """Return the probability for which intervals of rows are made (`answer_intervals`), given the number of groups.

        None if it depends on how many rows pass a HAVING, or on how many groups there are.
        """
        if not self.selects_by_noise:
            return level
        if self.having is not None or not groups:
            return None
        shown = max(1, min(groups - self.offset, groups if self.limit is None else self.limit))
        return 1 - (1 - level) * shown / groups

    @property
    def shows_all(self) -> bool:
        """Whether the answer is the noisy columns as they are, in the order of the groups."""
        plain = all(output.column for output in self.outputs)
        whole = self.limit is None and not self.offset and not self.distinct
        return plain and whole and self.having is None and not self.order


def reads_noise(tree: exp.Expr) -> bool:
    """Whether a value over the columns of an answer is computed from an aggregate."""
    return any(column.name.startswith("a") for column in tree.find_all(exp.Column))


def read_question(query: exp.Query, schema: Schema, text: Text) -> Question:
    """Read a query into a question: its rows, keys, aggregates, and what is computed from them after the noise."""
    while isinstance(query, exp.Subquery):
        require_only(query, ("this",), text)
        query = query.this
    if not isinstance(query, exp.Select):
        raise NotAllowed(
            f"{query.key.upper()} at the top is not supported",
            accepted="ask in a separate query for each, or put the rows into FROM and aggregate over them",
            place=text.place(query),
        )
    return _read_select(query, schema, text)


def _read_select(query: exp.Select, schema: Schema, text: Text) -> Question:
    """Read a SELECT over rows of units, or over the answer to a question that stands in its FROM."""
    try:
        return _read_over_rows(query, schema, text)
    except MixesUnits:
        inner = _inner_select(query)
        if inner is None:
            raise
        found = _read_select(inner, schema, text)
        return replace(found, after=(*found.after, read_outer_select(query, found.fields, text)))


def _read_over_rows(query: exp.Select, schema: Schema, text: Text) -> Question:
    require_only(query, _SELECT, text)
    if _is_public(query, schema):  # before other errors, which do not matter then
        raise _public_only_error()
    if len(set(query.find_all(exp.AggFunc))) > AGGREGATES_MAX:  # before any of them is bound
        raise TooWide(f"a query has at most {AGGREGATES_MAX} aggregates")
    resolver = Resolver(
        schema, text, Aliases(), per_unit.group_by_unit, per_unit.bind_unit_window, names=_identifiers(query)
    )
    ctes = resolver.ctes(query, NO_CTES)
    scope = resolver.scope(query, ctes)
    if scope.unit is None:
        raise _public_only_error()
    question = _SelectReader(text, scope, resolver.binder(scope, ctes), query).question()
    values = list(_row_values(question))
    require_bounded_size("the query", scope.tree, *(value.tree for value in values))
    require_bounded_row_text("the query", values)
    resolver.record_held(scope, values, query)
    tables = [schema.table(name) for name in sorted(_tables_read(question))]
    return replace(
        question,
        records=tuple(tables),
        datasets=frozenset(table.dataset for table in tables if table.is_private),
        cuts=tuple(resolver.cuts),
        unit_rows=max(resolver.unit_rows),
        held=sum(resolver.held),
    )


def _identifiers(query: exp.Select) -> frozenset[str] | None:
    """Return every name in a query, in lower case; None if SELECT * may stand for others."""
    if any(not isinstance(star.parent, exp.Count) for star in query.find_all(exp.Star)):
        return None
    return frozenset(one.name.lower() for one in query.find_all(exp.Identifier))


def _is_public(query: exp.Select, schema: Schema) -> bool:
    """Whether every table that a query names is known and public."""
    defined = {one.alias.lower() for one in query.find_all(exp.CTE)}
    names = {one.name.lower() for one in query.find_all(exp.Table)} - defined
    return bool(names) and all(name in schema.tables and not schema.tables[name].is_private for name in names)


def _public_only_error() -> NotAllowed:
    return NotAllowed(
        "the query reads public tables only", accepted="query the database directly; no privacy is needed"
    )


def _tables_read(question: Question) -> set[str]:
    """Return the tables in all trees that reach the engine, so that none is read without being paid for."""
    trees: list[exp.Expr] = [question.scope.tree, *(value.tree for value in _row_values(question))]
    return {table.name for tree in trees for table in tree.find_all(exp.Table) if table.db == SCHEMA}


def _row_values(question: Question) -> Iterator[Expression]:
    """Yield the values that the engine computes for a row: keys, arguments of aggregates, and their conditions."""
    yield from question.keys
    for one in question.aggregates:
        yield from one.arguments
        if one.condition is not None:
            yield one.condition


def _inner_select(query: exp.Select) -> exp.Select | None:
    """Return the only SELECT in the FROM of a query, with the common table expressions before it.

    None if there is none, or if it neither aggregates nor reads from one that does.
    """
    clause, with_ = query.args.get("from_"), query.args.get("with_")
    if clause is None or query.args.get("joins"):
        return None
    item, before = clause.this, list(with_.expressions) if with_ is not None else []
    if isinstance(item, exp.Subquery):
        inner = item.this
    else:
        names = [one.alias.lower() for one in before]
        if not isinstance(item, exp.Table) or item.name.lower() not in names:
            return None
        place = names.index(item.name.lower())
        inner, before = before[place].this, before[:place]
    if not isinstance(inner, exp.Select):
        return None
    found = inner.copy()
    if before:
        own = found.args.get("with_")
        listed = [*(one.copy() for one in before), *(own.expressions if own is not None else [])]
        found.set("with_", exp.With(expressions=listed))
    aggregates = inner.args.get("group") or any(map(_has_aggregate, inner.expressions))
    return found if aggregates or _inner_select(found) is not None else None


class _SelectReader:
    """Reads the SELECT list and what follows it, collecting aggregates on the way."""

    def __init__(self, text: Text, scope: FromScope, bind: Bind, query: exp.Select) -> None:
        self.text, self.scope, self.bind, self.query = text, scope, bind, query
        self.aggregates: list[Aggregate] = []
        self.nodes, self.sets = self._grouping()
        self.keys = [self._key(node) for node in self.nodes]
        self.by_text = {key.text: index for index, key in reversed(list(enumerate(self.keys)))}

    def question(self) -> Question:
        query = self.query
        if not self.keys and not any(map(_has_aggregate, [*query.expressions, *_having(query)])):
            for one in query.expressions:
                if isinstance(one.unalias(), exp.Anonymous) and one.unalias().name.upper() not in FUNCTION_NAMES:
                    raise unknown_aggregate(one.unalias(), self.text)
            raise ShowsUnits(
                "this would show rows of single units",
                accepted="ask for aggregates such as COUNT(*) or AVG(...)",
                place=self.text.place(query.expressions[0]),
            )
        outputs = tuple(self._outputs())
        conditions = [
            bind_condition(self._expand_aliases(node), self.output, self.text, "HAVING") for node in _having(query)
        ]
        order = tuple(self._order(outputs))
        distinct = query.args.get("distinct")
        if distinct is not None:
            require_only(distinct, (), self.text)
            if any(one.this not in [output.value.tree for output in outputs] for one in order):
                raise NotSQL(
                    "with SELECT DISTINCT, ORDER BY may use only columns of the SELECT list",
                    place=self.text.place(query.args["order"]),
                )
        if len(self.aggregates) > AGGREGATES_MAX or len(self.keys) > KEYS_MAX:
            raise TooWide(f"a query has at most {AGGREGATES_MAX} aggregates and {KEYS_MAX} keys")
        limit, offset = (limit_or_offset(query, name, self.text) for name in ("limit", "offset"))
        return Question(
            self.scope,
            tuple(self.keys),
            tuple(self.aggregates),
            outputs,
            conditions[0] if conditions else None,
            order,
            limit,
            offset or 0,
            distinct is not None,
            self.sets,
        )

    def output(self, node: exp.Expression) -> Expression:
        """Bind a node over the noisy columns k0, ..., a0, ..."""
        if isinstance(node, exp.Paren):
            return self.output(node.this)
        if isinstance(node, exp.Window):
            return bind_answer_window(node, self.output, self.text)
        if isinstance(node, exp.Grouping):
            return self._grouping_function(node)
        if isinstance(node, exp.Subquery | exp.Query):
            raise scalar_subquery_error(node, self.text)
        if is_aggregate(node):
            return self._aggregate(node)
        if node in self.nodes:
            return self._key_column(self.by_text[self.keys[self.nodes.index(node)].text])
        if not any(is_aggregate(part) for part in node.walk()):
            has_columns = any(node.find_all(exp.Column))
            value = self.bind(node)
            is_key = isinstance(node, exp.Column) or not self.sets or node in self.nodes  # a total has no key's value
            if has_columns and value.text in self.by_text and is_key:
                return self._key_column(self.by_text[value.text])
            if not has_columns:
                return value
        if isinstance(node, exp.Column):
            if self.bind(node).unit:
                raise self._shows_units(node)
            raise NotSQL(
                f"{node.sql()} is neither grouped nor aggregated; add it to GROUP BY, or aggregate it",
                place=self.text.place(node),
            )
        return scalar(node, self.output, self.text.place)

    def _outputs(self) -> Iterator[Output]:
        seen: dict[str, int] = {}
        for item in self.query.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                raise ShowsUnits(
                    "* would show rows of single units",
                    accepted="ask for aggregates such as COUNT(*) or AVG(...)",
                    place=self.text.place(item),
                )
            inner = item.this if isinstance(item, exp.Alias) else item
            name = item.alias_or_name if isinstance(item, exp.Alias | exp.Column) else source_text(inner)
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name = f"{name}_{seen[name]}"
            yield Output(name, self.output(inner))

    def _aggregate(self, node: exp.Expression) -> Expression:
        found = read_aggregate(node, self.bind, self.scope.is_unit, self.text)
        known = [one.key for one in self.aggregates]
        if found.key not in known:
            self.aggregates.append(found)
            known.append(found.key)
        tree = exp.column(f"a{known.index(found.key)}")
        return Expression(tree, found.kind, nullable=found.function not in ("count", "units", "distinct", "sum"))

    def _grouping_function(self, node: exp.Grouping) -> Expression:
        """Bind GROUPING(key): 1 where a row is a total over the key, else 0."""
        place = self.by_text.get(self.bind(node.expressions[0]).text) if len(node.expressions) == 1 else None
        if place is None:
            raise NotSQL("GROUPING takes one key of GROUP BY", place=self.text.place(node))
        if not self.sets:
            return literal(0)
        return Expression(exp.column(f"g{place}"), Kind.INTEGER, Range.of(0, 1), nullable=False)

    def _key_column(self, index: int) -> Expression:
        key = self.keys[index]
        dropped = any(index not in kept for kept in self.sets)
        return replace(key, tree=exp.column(f"k{index}"), nullable=key.nullable or dropped)

    def _order(self, outputs: Sequence[Output]) -> Iterator[exp.Ordered]:
        clause = self.query.args.get("order")
        for one in clause.expressions if clause is not None else ():
            require_only(one, ("this", "desc", "nulls_first"), self.text)
            if isinstance(one.this, exp.Var) and one.this.name.upper() == "ALL":
                yield from (order_item(one, output.value) for output in outputs)
            else:
                yield order_item(one, self._ordered_value(one.this, outputs))

    def _ordered_value(self, node: exp.Expression, outputs: Sequence[Output]) -> Expression:
        if isinstance(node, exp.Literal) and node.is_int:
            if not 1 <= int(node.this) <= len(outputs):
                raise NotSQL(f"ORDER BY {node.this} is not a position in the SELECT list", place=self.text.place(node))
            return outputs[int(node.this) - 1].value
        if isinstance(node, exp.Column) and not node.table:
            for output in outputs:
                if output.name.lower() == node.name.lower():
                    return output.value
        return self.output(self._expand_aliases(node))

    def _expand_aliases(self, node: exp.Expression) -> exp.Expression:
        """Return a node with the aliases in it replaced by their expressions, unless they name a key."""
        if is_aggregate(node) or isinstance(node, exp.Window):
            return node
        if isinstance(node, exp.Column) and not node.table:
            items = {item.alias.lower(): item.this for item in self.query.expressions if isinstance(item, exp.Alias)}
            if node.name.lower() not in items or self._is_key(node):
                return node
            return items[node.name.lower()].copy()  # type: ignore[no-any-return]
        found = node.copy()
        for child in list(found.iter_expressions()):
            if (other := self._expand_aliases(child)) is not child:
                child.replace(other)
        return found

    def _is_key(self, node: exp.Column) -> bool:
        try:
            return self.bind(node).text in self.by_text
        except NotInCatalog:
            return False

    def _grouping(self) -> tuple[list[exp.Expression], tuple[tuple[int, ...], ...]]:
        """Return the nodes of all keys, and the grouping sets over them."""
        group = self.query.args.get("group")
        if group is None:
            if self.query.args.get("distinct") is not None and not any(map(_has_aggregate, self.query.expressions)):
                return [one.this if isinstance(one, exp.Alias) else one for one in self.query.expressions], ()
            return [], ()
        special = (exp.Rollup, exp.Cube, exp.GroupingSets)
        if not any(isinstance(one, special) for one in group.expressions):
            return per_unit.group_nodes(self.query, self.scope, self.text), ()
        nodes: list[exp.Expression] = []
        factors = [self._sets_of(one, nodes) for one in group.expressions]
        sets = [tuple(sorted({index for part in choice for index in part})) for choice in product(*factors)]
        if len(sets) > SETS_MAX:
            raise TooWide(f"at most {SETS_MAX} grouping sets are answered at once, not {len(sets)}")
        return nodes, tuple(dict.fromkeys(sets))

    def _sets_of(self, node: exp.Expression, nodes: list[exp.Expression]) -> list[tuple[int, ...]]:
        if isinstance(node, exp.Rollup | exp.Cube):
            parts = [self._indices(one, nodes) for one in node.expressions]
            if isinstance(node, exp.Rollup):
                chosen = [parts[:length] for length in range(len(parts), -1, -1)]
            else:
                chosen = [list(some) for size in range(len(parts), -1, -1) for some in combinations(parts, size)]
            return [tuple(index for part in some for index in part) for some in chosen]
        if isinstance(node, exp.GroupingSets):
            return [one for inner in node.expressions for one in self._sets_of(inner, nodes)]
        return [self._indices(node, nodes)]

    def _indices(self, node: exp.Expression, nodes: list[exp.Expression]) -> tuple[int, ...]:
        inner = (
            node.expressions if isinstance(node, exp.Tuple) else [node.this if isinstance(node, exp.Paren) else node]
        )
        found = []
        for item in inner:
            one = per_unit.resolve_group_item(item, self.query, self.scope, self.text)
            texts = [known.sql() for known in nodes]
            if one.sql() not in texts:
                nodes.append(one)
                texts.append(one.sql())
            found.append(texts.index(one.sql()))
        return tuple(found)

    def _key(self, node: exp.Expression) -> Expression:
        value = bind_without_window(node, self.bind, self.text, "GROUP BY")
        if value.unit:
            raise self._shows_units(node)
        return value

    def _shows_units(self, node: exp.Expression) -> ShowsUnits:
        return ShowsUnits(
            "values computed from the unit's own column identify single units",
            accepted="use a column that many units share",
            place=self.text.place(node),
        )


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether there is an aggregate in a node, other than the functions of windows."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        function, others = node.this, [child for child in node.iter_expressions() if child is not node.this]
        return any(map(_has_aggregate, [*function.iter_expressions(), *others]))
    return is_aggregate(node) or any(map(_has_aggregate, node.iter_expressions()))


def _having(query: exp.Select) -> list[exp.Expression]:
    clause = query.args.get("having")
    return [clause.this] if clause is not None else []
