"""Name resolution: names become tables and columns, and every row gets the unit that it belongs to.

Promise: each scope and relation made here keeps the promise of `relations`. Joins of private tables are on the unit
(the engine joins on it in any case), public tables never preserve rows of their own, and a subquery that is about
several units at once is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from tacit.engines.protocol import ROWS
from tacit.engines.relations import value_range
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import MixesUnits, NotAllowed, NotInCatalog, NotSQL, TooWide, WrongKind
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Schema, Table
from tacit.privacy.texts import did_you_mean
from tacit.privacy.units import Unit
from tacit.query import joins, row_limits, semi_joins
from tacit.query.conditions import bind_condition, scalar_subquery_error
from tacit.query.expressions import Expression, Range
from tacit.query.parse import Text, conjuncts, function_name, require_only
from tacit.query.relations import (
    Aliases,
    FromItem,
    FromScope,
    UnitRows,
    column,
    project,
    stored_rows_column,
    table_reference,
    unit_column,
)
from tacit.query.scalars import Bind, scalar
from tacit.query.scalars.trees import CHARACTERS_READ, add_work, column_for

Ctes = Mapping[str, UnitRows]
NO_CTES: Final[Ctes] = MappingProxyType({})

_SELECT: Final = ("expressions", "from_", "joins", "where", "with_", "distinct", "order")


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves one query against a schema.

    `grouped` and `window` are the functions of `per_unit` for GROUP BY and windows inside subqueries.
    """

    schema: Schema
    text: Text
    aliases: Aliases
    grouped: Callable[[Resolver, exp.Select, Ctes], UnitRows]
    window: Callable[[exp.Window, FromScope, Bind, Text], Expression]
    orders: dict[tuple[str, ...], str] = field(default_factory=dict)
    """For each SELECT, by the aliases of its tables, the one order in which windows number its rows."""
    names: frozenset[str] | None = None
    """Every name that the query has, in lower case; None if it may mean any column (SELECT *)."""
    cuts: dict[str, None] = field(default_factory=dict)
    """What limits on joined rows leave out of each unit, in sentences."""
    unit_rows: list[int] = field(default_factory=list)
    """How many rows a unit has at most in each scope of the query (`row_limits.unit_rows`)."""
    held: list[int] = field(default_factory=list)
    """How many characters of a unit are grouped, sorted or told apart in each place (`row_limits.held_characters`)."""

    def ctes(self, query: exp.Query, outer: Ctes) -> Ctes:
        """Return the common table expressions that are in sight inside a query."""
        clause = query.args.get("with_")
        if clause is None:
            return outer
        require_only(clause, ("expressions",), self.text)
        known = dict(outer)
        for cte in clause.expressions:
            require_only(cte, ("this", "alias"), self.text)
            require_only(cte.args["alias"], ("this", "columns"), self.text)
            relation = self.relation(cte.this, known)
            names = [one.name for one in cte.args["alias"].columns]
            if names and len(names) != len(relation.names):
                raise NotSQL(f"{cte.alias} names {len(names)} columns and has {len(relation.names)}")
            known[cte.alias.lower()] = replace(relation, names=tuple(names)) if names else relation
        return known

    def scope(self, select: exp.Select, ctes: Ctes) -> FromScope:
        """Return the scope of the FROM clause of a SELECT, with its WHERE applied."""
        where = select.args.get("where")
        scope = self.from_scope(select, list(conjuncts(where.this)) if where is not None else [], ctes)
        if where is not None:
            scope = scope.where(bind_condition(where.this, self.binder(scope, ctes), self.text))
        return scope

    def from_scope(self, select: exp.Select, where: Sequence[exp.Expression], ctes: Ctes) -> FromScope:
        """Return the scope of the FROM clause of a SELECT; conjuncts of its WHERE serve as join conditions only."""
        clause = select.args.get("from_")
        if clause is None:
            raise NotSQL("the query has no FROM clause; write SELECT ... FROM table")
        scope = self._from_item(clause.this, ctes)
        for join in [*clause.this.args.get("joins", ()), *select.args.get("joins", ())]:
            require_only(join, ("this", "side", "kind", "on", "using", "method"), self.text)
            joining = joins.JoinContext(
                join, where, lambda one: self.binder(one, ctes), self.limit_rows, self.text, self.names
            )
            scope = joins.join_scopes(scope, self._from_item(join.this, ctes), joining)
        self.unit_rows.append(row_limits.unit_rows(scope))
        return row_limits.require_bounded_fan_out(
            scope, self.text.place(clause)
        )  # engines reorder joins, so at the end

    def record_held(self, scope: FromScope, values: Iterable[Expression], node: exp.Expr) -> None:
        """Record that an engine holds values of all rows of a scope; raise TooWide if they are too long."""
        self.held.append(row_limits.held_characters(scope, values, self.text.place(node)))

    def limit_rows(self, scope: FromScope, what: str = "joined", keys: Sequence[Expression] = ()) -> FromScope:
        """Return a scope with JOINED_ROWS_PER_UNIT rows of each unit (with equal keys), recording what is left out."""
        names = [source.table.name if source.table else source.name for source in scope.sources if source.unit]
        alike = f" with equal {' and '.join(one.tree.name for one in keys)}" if keys else ""
        most = f"of each unit at most {row_limits.JOINED_ROWS_PER_UNIT} rows"
        self.cuts[f"{most} of {' and '.join(names)}{alike} are {what}"] = None
        return row_limits.limit_rows_per_unit(scope, self.aliases.next(), self.names, keys)

    def binder(self, scope: FromScope, ctes: Ctes = NO_CTES) -> Bind:
        """Return the function that binds a node to the value of a row of the scope."""

        def bind(node: exp.Expression) -> Expression:
            if isinstance(node, exp.Column):
                return self.field(scope, node)
            if isinstance(node, exp.Paren):
                return bind(node.this)
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                return semi_joins.bind_in_subquery(self, node, scope, bind, ctes)
            if isinstance(node, exp.Window):
                self.record_held(scope, row_limits.named_fields(scope, None), node)
                return self._require_one_order(node, self.window(node, scope, bind, self.text), scope)
            if isinstance(node, exp.Exists):
                return semi_joins.bind_exists(self, node, scope, ctes)
            if isinstance(node, exp.Subquery | exp.Query):
                raise scalar_subquery_error(node, self.text)
            if isinstance(node, exp.AggFunc):
                raise NotAllowed(
                    f"{function_name(node)} is not allowed here",
                    accepted="aggregates are allowed in SELECT, HAVING and ORDER BY",
                    place=self.text.place(node),
                )
            return scalar(node, bind, self.text.place)

        return bind

    def field(self, scope: FromScope, node: exp.Column) -> Expression:
        """Return the value of a column, by its name and the name of its table, if it is qualified."""
        require_only(node, ("this", "table"), self.text)
        if isinstance(node.this, exp.Star):
            raise NotAllowed(
                "* is allowed in COUNT(*) and in the SELECT list of a subquery only", place=self.text.place(node)
            )
        wanted, table = node.name.lower(), node.table.lower()
        found: list[Expression] = []
        for sources in (scope.sources, scope.outer):
            found = found or [
                source.fields[wanted]
                for source in sources
                if wanted in source.fields and (source.name.lower() == table if table else wanted not in source.hidden)
            ]
        if len(found) == 1:
            return found[0]
        if found:
            raise NotInCatalog(
                f"{self._location(node)}{node.name} is in several tables; write the table before it", name=node.name
            )
        known = sorted({name for source in (*scope.sources, *scope.outer) for name in source.names})
        instead = did_you_mean(node.name, known, f"there is {', '.join(known)}")
        if node.this.args.get("quoted") and not node.table:
            instead = f"a text takes single quotes, not double ones; {instead}"
        raise NotInCatalog(f"{self._location(node)}no column is called {node.sql()}; {instead}", name=node.name)

    def relation(self, query: exp.Expression, ctes: Ctes) -> UnitRows:
        """Return a subquery as a relation whose rows belong to units."""
        if isinstance(query, exp.Subquery):
            require_only(query, ("this", "alias"), self.text)
            return self.relation(query.this, ctes)
        if isinstance(query, exp.Union) and not isinstance(query, exp.Except | exp.Intersect):
            return self._union(query, ctes)
        if not isinstance(query, exp.Select):
            raise NotAllowed(
                f"{query.key.upper()} is not supported for private rows",
                accepted="use SELECT and UNION ALL, with unit IN (SELECT unit ...) or NOT IN",
                place=self.text.place(query),
            )
        inner = self.ctes(query, ctes)
        if query.args.get("limit") is not None or query.args.get("offset") is not None:
            raise MixesUnits(
                "LIMIT in a subquery chooses among units",
                accepted="put LIMIT at the end of the whole query",
                place=self.text.place(query.args.get("limit") or query),
            )
        if query.args.get("group") is not None or any(_aggregates(query)):
            return self.grouped(self, query, inner)
        require_only(query, _SELECT, self.text)
        scope = self.scope(query, inner)
        names, fields = self.projections(query, scope, self.binder(scope, inner))
        distinct = query.args.get("distinct")
        if distinct is not None:
            require_only(distinct, (), self.text)
            self.record_held(scope, fields, query)
            if scope.unit is not None and not any(field.unit for field in fields):
                raise MixesUnits(
                    "DISTINCT in a subquery mixes units",
                    accepted="select the unit's column too, or use COUNT(DISTINCT ...) outside",
                    place=self.text.place(query),
                )
        tree = project(scope, [field.tree for field in fields], distinct=distinct is not None)
        return UnitRows(
            tree,
            names,
            fields,
            scope.unit is not None,
            scope.rows_per_unit,
            scope.stored is not None,
            scope.tables,
            frozenset(index for index, field in enumerate(fields) if scope.is_unit(field)),
            scope.fan_out,
            scope.rows_max,
            unique_columns(scope, fields),
        )

    def projections(
        self, query: exp.Select, scope: FromScope, bind: Bind
    ) -> tuple[tuple[str, ...], tuple[Expression, ...]]:
        """Return the names and values of a SELECT list over rows, with stars expanded."""
        pairs: list[tuple[str, Expression]] = []
        for item in query.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                require_only(item.this if isinstance(item, exp.Column) else item, (), self.text)
                pairs += self._expand_star(item, scope)
            else:
                inner = item.this if isinstance(item, exp.Alias) else item
                pairs.append((item.alias_or_name or f"column{len(pairs)}", bind(inner)))
        return tuple(name for name, _ in pairs), tuple(value for _, value in pairs)

    def _expand_star(self, item: exp.Expression, scope: FromScope) -> Iterator[tuple[str, Expression]]:
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        for source in scope.sources:
            if not table or source.name.lower() == table:
                for name in source.names:
                    if table or name.lower() not in source.hidden:
                        yield name, source.fields[name.lower()]

    def _from_item(self, item: exp.Expression, ctes: Ctes) -> FromScope:
        """Return one item of a FROM clause as a scope of its own."""
        if isinstance(item, exp.Subquery):
            require_only(item, ("this", "alias", "joins"), self.text)
            inner = self.relation(item.this, self.ctes(item, ctes))
            alias = self.aliases.next()  # after those inside, as if it stood in a WITH
            return subquery_scope(inner, item.alias or alias, alias, _column_names(item, inner))
        if not isinstance(item, exp.Table):
            raise NotAllowed(
                f"{item.key.upper()} in FROM is not supported",
                accepted="name a table, or put a SELECT in parentheses there",
                place=self.text.place(item),
            )
        require_only(item, ("this", "alias", "joins"), self.text)
        if not isinstance(item.this, exp.Identifier):
            raise NotAllowed(
                "functions in FROM are not supported",
                accepted="register the file as a table",
                place=self.text.place(item),
            )
        alias = self.aliases.next()
        if item.name.lower() in ctes:
            relation = ctes[item.name.lower()]
            return subquery_scope(relation, item.alias_or_name, alias, _column_names(item, relation))
        try:
            table = self.schema.table(item.name)
        except NotInCatalog as error:
            message = error.message
            if item.alias and "did you mean" not in message:
                message += f'; a name with spaces takes double quotes: "{item.name} {item.alias}"'
            raise NotInCatalog(f"{self._location(item)}{message}", name="table", value=item.name) from None
        return table_scope(table, item.alias_or_name, alias, self.schema)

    def _require_one_order(self, node: exp.Window, value: Expression, scope: FromScope) -> Expression:
        """Return the value of a window; raise NotAllowed for a second order in which rows of one SELECT are numbered.

        Rows that are alike in all columns stand in any order in each window, so that two windows could pair their
        numbers in any way, and an answer would not be a function of the rows.
        """
        for one in value.tree.find_all(exp.Window):
            if isinstance(one.this, exp.RowNumber | exp.Lag | exp.Lead):
                clauses = [*one.args["partition_by"], one.args["order"]]
                order = ", ".join(clause.sql(dialect="duckdb") for clause in clauses)
                if self.orders.setdefault(tuple(source.alias for source in scope.sources), order) != order:
                    raise NotAllowed(
                        "ROW_NUMBER, LAG and LEAD of one SELECT have one PARTITION BY and one ORDER BY",
                        accepted="put the second window into a subquery around the first",
                        place=self.text.place(node),
                    )
        return value

    def _location(self, node: exp.Expression) -> str:
        place = self.text.place(node)
        return f"at {place.line}:{place.column}: " if place else ""

    def _union(self, query: exp.Union, ctes: Ctes) -> UnitRows:
        if query.args.get("distinct"):
            raise MixesUnits(
                "UNION removes duplicates across units", accepted="write UNION ALL", place=self.text.place(query)
            )
        require_only(query, ("this", "expression", "with_", "distinct"), self.text)
        inner = self.ctes(query, ctes)
        left, right = self.relation(query.this, inner), self.relation(query.expression, inner)
        if len(left.fields) != len(right.fields) or left.is_private != right.is_private:
            raise NotSQL(
                "both sides of UNION ALL have the same columns, and are private or public together",
                place=self.text.place(query.expression),
            )
        fields = []
        for one, other in zip(left.fields, right.fields, strict=True):
            if one.kind is not other.kind:
                raise WrongKind(
                    f"UNION ALL puts {one.kind} and {other.kind} into one column; CAST one of them",
                    place=self.text.place(query.expression),
                )
            fields.append(_union_facts(one, other))
        rows = None
        if left.rows_per_unit is not None and right.rows_per_unit is not None:
            rows = left.rows_per_unit + right.rows_per_unit
        tree = exp.union(_without_stored(left), _without_stored(right), distinct=False)
        fan_out = left.fan_out + right.fan_out
        if left.is_private and fan_out > row_limits.AMPLIFICATION_MAX:
            raise TooWide(f"UNION ALL puts {fan_out:,} rows together for each row", place=self.text.place(query))
        return UnitRows(
            tree,
            left.names,
            tuple(fields),
            left.is_private,
            rows,
            False,
            left.tables | right.tables,
            left.units & right.units,
            fan_out,
            None if left.rows_max is None or right.rows_max is None else left.rows_max + right.rows_max,
        )


def table_scope(table: Table, name: str, alias: str, schema: Schema) -> FromScope:
    """Return a registered table as a scope."""
    fields, units, linked = {}, set(), unit_links(table, schema)
    for one in table.columns:
        own = table.unit is not None and table.unit.is_direct and one.name.lower() == table.unit.column.lower()
        value = declared_value(one, column(one.name, alias))
        if own:
            # Values that are not the unit's own are never compared with it, so what is declared of them is not used.
            value = Expression(value.tree, one.kind, nullable=False, unit=True)
            units |= {one.name.lower()}
        leads = table.unit is not None and table.unit.through[:1] and table.unit.through[0].column.lower()
        if one.name.lower() == leads:
            value = replace(value, nullable=False)  # a row that leads nowhere is not shown
        fields[one.name.lower()] = replace(value, link=linked.get(one.name.lower()))
    unit = unit_column(alias) if table.is_private else None
    names = tuple(one.name for one in table.columns)
    source = FromItem(name, fields, names, unit, table, alias, units=frozenset(units))
    tree = exp.select().from_(table_reference(table, alias))
    stored = stored_rows_column(alias) if table.is_private else None
    rows_max, tables = table.limits.rows_per_unit, frozenset({table.name})
    if not table.is_private:
        rows = row_limits.PUBLIC_ROWS if table.rows is None else table.rows
        rows_max = None
    unique = _unique_keys(table, fields, schema)
    found = FromScope((source,), tree, table.limits.rows_per_unit, stored, tables, unique=unique)
    return replace(found, rows_max=rows_max, fan_out=1 if table.is_private else rows)


def _unique_keys(table: Table, fields: Mapping[str, Expression], schema: Schema) -> frozenset[frozenset[str]]:
    """Return the columns that identify rows of a table: targets of foreign keys, and what the owner states.

    Checked: engines count the targets and `identified_by`, of public and of private tables, over all rows whenever a
    table is registered or refreshed, and refuse rows that share them. With `rows_per_unit` of 1 the unit identifies a
    row because the engine shows no second one.
    Trusted: that rows which stay in a database, or in files too large to be stored, share none until the next refresh.
    What follows from it here is how many rows joins make of one unit, and so how much work it adds. The noise of a
    join with a public table stands on that table's `identified_by` as well (`joins`).
    """
    targets = {
        step.target_column.lower()
        for child in schema.tables.values()
        for step in (child.unit.through if child.unit is not None else ())
        if step.target_table.lower() == table.name.lower()
    }
    found = [{fields[name].text} for name in targets if name in fields]
    found += [{fields[name.lower()].text for name in table.identified_by}] if table.identified_by else []
    found += [set()] if table.limits.rows_per_unit == 1 else []
    return frozenset(map(frozenset, found))


def unique_columns(scope: FromScope, fields: Sequence[Expression]) -> frozenset[frozenset[int]]:
    """Return which columns of a SELECT list identify rows of a unit, the unit's own column aside."""
    places = {field.text: index for index, field in reversed(list(enumerate(fields)))}
    own = {source.fields[name].text for source in scope.sources for name in source.units}
    return frozenset(frozenset(places[one] for one in key - own) for key in scope.unique if key - own <= set(places))


def unit_links(table: Table, schema: Schema) -> dict[str, str]:
    """Return the columns by which rows find their unit: foreign keys of the table, and the targets of those of others.

    Both sides of one foreign key have the same text here, and so have two foreign keys that lead to the same target.
    """
    found = {}
    for child in schema.tables.values():
        if child.unit is None or not child.unit.through:
            continue
        step = child.unit.through[0]
        parent = schema.tables.get(step.target_table.lower())
        if parent is None or parent.unit != Unit(child.unit.column, child.unit.through[1:]):
            continue
        text = f"{step.target_table}.{step.target_column}".lower()
        if child.name == table.name:
            found[step.column.lower()] = text
        if parent.name == table.name:
            found[step.target_column.lower()] = text
    return found


def declared_value(column: Column, reference: exp.Column) -> Expression:
    """Return a declared column; the engine shows it clamped to its bounds and without NaN."""
    range_ = None
    if isinstance(column.facts, Bounds) and (limits := value_range(column)) is not None:
        range_ = Range.of(*limits)
    listed = column.facts.values if isinstance(column.facts, Categories) else None
    tree = add_work(reference, TEXT_LENGTH_MAX // CHARACTERS_READ) if column.kind is Kind.TEXT else reference
    return Expression(tree, column.kind, range_, nullable=column.nullable, listed=listed, is_stored=True)


def subquery_scope(relation: UnitRows, name: str, alias: str, names: tuple[str, ...]) -> FromScope:
    """Return a subquery as a scope: its columns keep their facts and get new trees."""
    row_limits.require_bounded_size(name, relation.tree)
    row_limits.require_bounded_row_text(name, relation.fields)
    fields: dict[str, Expression] = {}
    for index, (shown, value) in enumerate(zip(names, relation.fields, strict=True)):
        if shown.lower() in fields:
            raise NotInCatalog(f"a subquery has two columns called {shown}; give one of them another name", name=shown)
        column = column_for(exp.column(f"c{index}", table=alias), value.tree)
        is_stored = value.is_stored and isinstance(value.tree, exp.Column)
        fields[shown.lower()] = replace(value, tree=column, is_stored=is_stored)
    unit = unit_column(alias) if relation.is_private else None
    tree = exp.select().from_(exp.alias_(exp.Subquery(this=relation.tree.copy()), alias, table=True))
    units = frozenset(names[index].lower() for index in relation.units)
    source = FromItem(name, fields, names, unit, None, alias, units=units)
    stored = stored_rows_column(alias) if relation.has_stored else None
    texts = [fields[shown.lower()].text for shown in names]
    unique = frozenset(frozenset(texts[index] for index in key) for key in relation.unique)
    found = FromScope((source,), tree, relation.rows_per_unit, stored, relation.tables)
    return replace(found, fan_out=relation.fan_out, rows_max=relation.rows_max, unique=unique)


def _column_names(item: exp.Expression, relation: UnitRows) -> tuple[str, ...]:
    alias = item.args.get("alias")
    names = tuple(one.name for one in alias.columns) if alias is not None else ()
    return names if len(names) == len(relation.names) else relation.names


def _without_stored(relation: UnitRows) -> exp.Query:
    """Return a relation's query without the column `_rows`, which says nothing about the rows of two together."""
    tree = relation.tree.copy()
    if relation.has_stored:
        tree.set("expressions", [item for item in tree.expressions if item.alias != ROWS])
    return tree


def _union_facts(one: Expression, other: Expression) -> Expression:
    """Return the facts that hold for a value of either side."""
    both_ranges = one.range is not None and other.range is not None
    both_domains = one.domain is not None and other.domain is not None
    return Expression(
        one.tree,
        one.kind,
        one.range.union(other.range) if both_ranges and one.range and other.range else None,
        tuple(dict.fromkeys((*one.domain, *other.domain))) if both_domains and one.domain and other.domain else None,
        one.nullable or other.nullable,
        one.unit or other.unit,
        length=max(one.length, other.length),
        makes_null=one.makes_null or other.makes_null,
    )


def _aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield aggregates of this SELECT that are not inside windows or subqueries."""
    for item in select.expressions:
        waiting: list[exp.Expr] = [item]
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.AggFunc):
                yield node
            elif not isinstance(node, exp.Window | exp.Query):
                waiting += list(node.iter_expressions())
