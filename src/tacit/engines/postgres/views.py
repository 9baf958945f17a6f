"""Views that can be read without failing for a row, which of them are read row by row, and tables whose rows are all
in this database.

A view is computed whenever it is read. Where its definition holds an expression that fails for some values (a division,
a cast, a sum that overflows), one row makes every question fail, and whether that row is there is an exact bit; where
it holds a volatile function, the same question is about other rows each time. PostgreSQL does not say which functions
can fail, so a definition is accepted only if it is made of what cannot: columns, constants, comparisons and the clauses
of a query. Rows of a foreign table are read by another program, which may fail for one of them.

Promise: what is refused is refused when a table is registered, and again when its definition has changed. A
materialized view holds rows, and is a table here.
"""

from __future__ import annotations

from typing import Any, Final

import sqlglot
from sqlglot import exp

from tacit.privacy.errors import InvalidInput

_RELATIONS: Final = """
WITH RECURSIVE read AS (SELECT %(oid)s::oid AS oid
    UNION SELECT other.oid FROM read CROSS JOIN LATERAL (
        SELECT d.refobjid AS oid FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass
            AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class
            JOIN pg_class v ON v.oid = w.ev_class WHERE w.ev_class = read.oid AND v.relkind = 'v'
        UNION ALL SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = read.oid) AS other)
SELECT c.relkind::text, CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END,
    EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attgenerated = 'v'),
    c.oid = %(oid)s
FROM read JOIN pg_class c ON c.oid = read.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_HARMLESS: Final = (
    *(exp.Select, exp.From, exp.Join, exp.Where, exp.Subquery, exp.Paren, exp.Union, exp.Table, exp.TableAlias),
    *(exp.Column, exp.Identifier, exp.Alias, exp.Star, exp.Literal, exp.Boolean, exp.Null, exp.Distinct, exp.With),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Exists, exp.CTE),
    *(exp.Coalesce, exp.Case, exp.If, exp.Tuple, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Any, exp.Array, exp.Between),
)
_AROUND: Final = (exp.From, exp.Join, exp.Subquery, exp.Union, exp.Exists, exp.In)
"""Where a query stands that gives rows; elsewhere it gives a value, and fails if it has two rows."""


def check_readable(connection: Any, oid: int, shown: str) -> bool:
    """Raise InvalidInput for a table of which a row may fail to be read; `shown` is what it is called.

    Return whether each row comes from one row of one table (`engines.relations`).
    """
    instead, is_row_by_row = "make a table or a materialized view of its rows", True
    for relkind, definition, is_computed, is_itself in connection.execute(_RELATIONS, {"oid": oid}).fetchall():
        if relkind == "f":
            raise InvalidInput(
                f"rows of {shown} are in a foreign table, which may fail for one of them; {instead}", name="source"
            )
        if relkind == "v":
            tree = _parsed(definition or "")
            if tree is None or not all(_is_harmless_node(node) for node in tree.walk()):
                raise InvalidInput(
                    f"{shown} is a view, or reads one, that computes something for each row, and may fail for one of "
                    f"them; {instead}, or leave columns, constants and comparisons in it only",
                    name="source",
                )
            is_row_by_row &= not any(_mixes(node) for node in tree.walk())
        if is_computed and not is_itself:
            raise InvalidInput(
                f"{shown} reads a table with columns that are computed when they are read, and may fail for a row; "
                f"{instead}",
                name="source",
            )
    return is_row_by_row


def _parsed(definition: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(definition, dialect="postgres")
    except sqlglot.ParseError:
        return None


def _mixes(node: exp.Expr) -> bool:
    """Return whether a node of a harmless definition lets one row decide about another."""
    is_set = isinstance(node, exp.Union) and bool(node.args.get("distinct"))
    is_subquery = isinstance(node, exp.In) and node.args.get("query") is not None
    return is_set or is_subquery or isinstance(node, exp.Join | exp.Distinct | exp.Exists)


def _is_harmless_node(node: exp.Expr) -> bool:
    """Return whether a node computes nothing for a row; a constant is cast when the view is planned."""
    if isinstance(node, exp.DataType | exp.DataTypeParam):
        return node.find_ancestor(exp.Cast) is not None
    if isinstance(node, exp.Cast):
        is_text = isinstance(node.this.unnest(), exp.Column) and node.args["to"].this is exp.DataType.Type.TEXT
        return is_text or node.find(exp.Column, exp.Query) is None
    if isinstance(node, exp.Subquery | exp.Select) and node.parent is not None and not isinstance(node, exp.CTE):
        return isinstance(node.parent, (*_AROUND, exp.CTE))
    return type(node) in _HARMLESS
