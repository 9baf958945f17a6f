"""Rows that belong to units: the scope of a FROM clause, the relation of a subquery, and how engines read them.

Promise, kept by every function that makes a scope: each row is a function of one unit's data and of public data, and
carries that unit in its `_unit`; `rows_per_unit`, where it is known, limits the rows of any unit. Sensitivities rest on
this alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from tacit.engines.protocol import ROWS, SCHEMA, UNIT
from tacit.privacy.tables import Table
from tacit.query.expressions import Expression
from tacit.query.scalars.trees import standing_alone


@dataclass(frozen=True, slots=True)
class FromItem:
    """One item of a FROM clause: the analyst's name for it, and its fields by name in lower case."""

    name: str
    fields: Mapping[str, Expression]
    names: tuple[str, ...]
    """The fields' names in order, as they are shown."""
    unit: exp.Column | None
    """The engine's column with the unit; None if the rows are public."""
    table: Table | None = None
    """The registered table, if the item is one."""
    alias: str = ""
    """The engine's name for it."""
    hidden: frozenset[str] = frozenset()
    """Fields that USING merged into those of another item."""
    units: frozenset[str] = frozenset()
    """Fields that are the unit itself, so different for different units; others that are marked come of it."""


@dataclass(frozen=True, slots=True)
class FromScope:
    """The rows of a FROM clause with its WHERE: items that names are found in, and the tree for the engine."""

    sources: tuple[FromItem, ...]
    tree: exp.Select
    """SELECT FROM ... WHERE ... without items, for the engine."""
    rows_per_unit: int | None = None
    stored: exp.Column | None = None
    """The engine's column with the number of rows that the unit has in storage, NULL where the engine did not count
    them; present only where a unit has no more rows here than there."""
    tables: frozenset[str] = frozenset()
    """Every table whose rows are offered, public ones too."""
    outer: tuple[FromItem, ...] = ()
    """In a correlated subquery, the items around it, in which names are found that are not found here."""
    fan_out: int = 1
    """How many rows there are here at most for each row that a unit has in storage; of public rows, how many at all."""
    rows_max: int | None = None
    """How many rows a unit has here at most, where that is limited: by declaration, or by the plan (`row_limits`)."""
    unique: frozenset[frozenset[str]] = frozenset()
    """Sets of columns, as texts, by which no two rows of one unit are equal; NULL aside."""

    @property
    def unit(self) -> exp.Column | None:
        """The engine's column with the unit of a row, or None if the rows are public."""
        return next((source.unit for source in self.sources if source.unit is not None), None)

    def has(self, name: str) -> bool:
        """Whether there is a column of this name, in any case."""
        return any(name.lower() in source.fields for source in self.sources)

    def is_unit(self, value: Expression) -> bool:
        """Whether a value is the unit of the row itself, and not merely computed from it or missing on some rows."""
        return any(
            source.unit is not None and source.fields[name].tree == value.tree
            for source in self.sources
            for name in source.units
        )

    def where(self, condition: Expression) -> FromScope:
        """Return the scope of the rows for which a condition is true."""
        if condition.tree == exp.true():
            return self
        return replace(self, tree=self.tree.where(condition.tree.copy(), copy=True))


@dataclass(frozen=True, slots=True)
class UnitRows:
    """A query whose result has rows that belong to units: columns `c0`, `c1`, ... and `_unit`."""

    tree: exp.Query
    names: tuple[str, ...]
    fields: tuple[Expression, ...]
    """The facts of each column; their trees are of no use outside of `tree`."""
    is_private: bool
    rows_per_unit: int | None = None
    has_stored: bool = False
    """Whether there is a column `_rows`, as `FromScope.stored`."""
    tables: frozenset[str] = frozenset()
    units: frozenset[int] = frozenset()
    """The columns that are the unit itself."""
    fan_out: int = 1
    """As `FromScope.fan_out`."""
    rows_max: int | None = None
    """As `FromScope.rows_max`."""
    unique: frozenset[frozenset[int]] = frozenset()
    """As `FromScope.unique`, by columns."""


class Aliases:
    """A sequence of the engine's names for items of FROM clauses: t0, t1, ... in the order of the query."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> str:
        """Return the next name."""
        self._count += 1
        return f"t{self._count - 1}"


def column(name: str, table: str) -> exp.Column:
    """Return the tree of a column, quoted where it needs to be."""
    return exp.column(exp.to_identifier(name, quoted=not _needs_no_quotes(name)), table=exp.to_identifier(table))


def table_reference(table: Table, alias: str) -> exp.Expr:
    """Return the tree of a registered table."""
    name = exp.to_identifier(table.name, quoted=not _needs_no_quotes(table.name))
    return exp.alias_(exp.table_(name, db=SCHEMA), alias, table=True)


def unit_column(alias: str) -> exp.Column:
    """Return the tree of the unit of an item."""
    return exp.column(UNIT, table=alias)


def stored_rows_column(alias: str) -> exp.Column:
    """Return the tree of the number of stored rows of an item's unit."""
    return exp.column(ROWS, table=alias)


def select_from_subquery(tree: exp.Query, alias: str) -> exp.Select:
    """Return SELECT FROM (tree) AS alias, without items; the tree becomes a part of it."""
    item = exp.alias_(exp.Subquery(this=tree), alias, table=True, copy=False)
    return exp.select().from_(item, copy=False)


def project(scope: FromScope, values: Sequence[exp.Expression], *, distinct: bool = False) -> exp.Select:
    """Return SELECT values AS c0, c1, ..., unit AS _unit of a scope."""
    items = [exp.alias_(standing_alone(value), f"c{index}") for index, value in enumerate(values)]
    if scope.unit is not None:
        items.append(exp.alias_(scope.unit.copy(), UNIT))
    if scope.stored is not None:
        items.append(exp.alias_(scope.stored.copy(), ROWS))
    tree = scope.tree.select(*items, copy=True)
    return tree.distinct(copy=False) if distinct else tree


_WORDS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")


def _needs_no_quotes(name: str) -> bool:
    return set(name) <= _WORDS and not name[0].isdigit() and name.upper() not in _KEYWORDS


_KEYWORDS: Final = frozenset([
    "ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CHECK", "COLUMN", "CROSS", "CURRENT",
    "DATE", "DAY", "DEFAULT", "DESC", "DISTINCT", "ELSE", "END", "EXISTS", "FALSE", "FIRST", "FROM", "FULL",
    "GROUP", "HAVING", "HOUR", "IF", "IN", "INNER", "INTERVAL", "INTO", "IS", "JOIN", "KEY", "LAST", "LEFT", "LIKE",
    "LIMIT", "MINUTE", "MONTH", "NATURAL", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER",
    "PARTITION", "PRIMARY", "RANGE", "REFERENCES", "RIGHT", "ROW", "ROWS", "SECOND", "SELECT", "SET", "TABLE",
    "THEN", "TIME", "TIMESTAMP", "TO", "TRUE", "UNION", "UNIQUE", "UNIT", "UPDATE", "USER", "USING", "VALUES",
    "WHEN", "WHERE", "WINDOW", "WITH", "YEAR",
])  # fmt: skip
"""Keywords of an engine; names that are equal to one are quoted."""
