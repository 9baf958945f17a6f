"""Parsing: text becomes one query of bounded size; helpers read its nodes and say where in the text they stand.

Promise: what `parse` returns is a single query (SELECT, or UNION ALL of several), small enough for all later passes.
Nothing here decides about privacy; later passes read the tree node by node and refuse what they do not know.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from typing import Final, ParamSpec, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tacit.privacy.errors import NotAllowed, NotSQL, Place

P = ParamSpec("P")
R = TypeVar("R")

TEXT_MAX: Final = 50_000
NODES_MAX: Final = 10_000
ROWS_MAX: Final = 2**62
"""No answer has more rows; a greater LIMIT or OFFSET says the same."""

DISTANCE_MAX: Final = 10**9
"""How far a window looks back or ahead at most."""

DEPTH_MAX: Final = 100
BEGINNINGS: Final = ("SELECT", "WITH", "FROM", "VALUES")
_FIRST_WORD: Final = re.compile(r"(?>\s+|--[^\n]*\n|/\*.*?\*/)*+(\w{1,40})", re.DOTALL)
"""The first word after comments; groups are atomic, so that it takes linear time."""
WRITTEN: Final = "written"
"""Where a function of the tree keeps its name as it was written."""

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # its warnings are about SQL that is refused here


class Text:
    """The query as it was written."""

    def __init__(self, sql: object) -> None:
        if not isinstance(sql, str):
            raise NotSQL(f"a query must be a string, not {type(sql).__name__}")
        if len(sql) > TEXT_MAX:
            raise NotSQL(f"a query has at most {TEXT_MAX:,} characters, and this one has {len(sql):,}")
        if not is_text(sql):
            raise NotSQL("the query contains NUL or an unpaired surrogate, which no engine can hold")
        self.sql: Final = sql

    def place(self, node: exp.Expr) -> Place | None:
        """Return the line and column at which a node begins, None if the parser did not record it."""
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if not starts:
            return None
        before = self.sql[: min(starts)]
        return Place(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def is_text(value: str) -> bool:
    """Whether every engine can hold a text: it has neither NUL nor an unpaired surrogate."""
    return not any(one == "\0" or "\ud800" <= one <= "\udfff" for one in value)


def refuse_deep_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that it raises NotSQL instead of RecursionError for what is nested too deeply."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise NotSQL("the query is nested too deeply; name its parts with WITH, or simplify it") from None

    return call


def parse(text: Text) -> exp.Query:
    """Return the one query of a text; raise NotSQL if it has none, several, or one that is too large."""
    try:
        statements = [one for one in sqlglot.parse(text.sql, dialect="duckdb") if one is not None]
    except SqlglotError as error:
        _require_beginning(text)
        raise _syntax_error(error) from None
    except RecursionError:
        raise NotSQL(f"a query is nested {DEPTH_MAX} deep at most") from None
    if len(statements) != 1:
        raise NotSQL(f"write one query, not {len(statements)} statements" if statements else "the query is empty")
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        _require_beginning(text)
        raise NotSQL(f"only SELECT is answered, not {_statement_kind(tree)}", place=text.place(tree))
    _require_bounded(tree)
    return _normalize_functions(tree, text)


def named_tables(sql: object) -> list[str]:
    """Return the tables that a query names, without looking into any catalog."""
    tree = parse(Text(sql))
    given = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    return list(dict.fromkeys(one.name for one in tree.find_all(exp.Table) if one.name.lower() not in given))


def require_only(node: exp.Expression, known: Collection[str], text: Text) -> None:
    """Raise NotAllowed if a node has arguments other than the `known` ones."""
    for name, value in node.args.items():
        if name not in known and value not in (None, False, [], ""):
            inner = value[0] if isinstance(value, list) else value
            place = text.place(inner if isinstance(inner, exp.Expression) else node) or text.place(node)
            what, accepted = _PARTS.get(name, (name.strip("_").upper(), "leave it out"))
            raise NotAllowed(f"{what} is not supported in private queries", accepted=accepted, place=place)


_PARTS: Final = {
    "db": ("a name before a table's name", "write the table's name alone"),
    "catalog": ("a name before a table's name", "write the table's name alone"),
    "locks": ("FOR UPDATE", "leave it out"),
    "windows": ("WINDOW", "write the window in parentheses after OVER"),
    "pivots": ("PIVOT", "write one SUM(CASE WHEN ... END) or one COUNT(*) FILTER (WHERE ...) for each column"),
    "laterals": ("LATERAL", "use a plain join"),
    "spec": ("a frame such as ROWS BETWEEN", "leave it out: the window then reaches from its first row to this one"),
    "sample": ("a sample of rows", "leave it out: how much of each unit is counted is set by the limits"),
    "on": ("DISTINCT ON", "use GROUP BY"),
    "recursive": ("WITH RECURSIVE", "use plain common table expressions"),
    "qualify": ("QUALIFY", "compute the window in a subquery, and filter its column by WHERE outside"),
    "rollup": ("WITH ROLLUP", "write GROUP BY ROLLUP (a, b)"),
    "cube": ("WITH CUBE", "write GROUP BY CUBE (a, b)"),
    "totals": ("WITH TOTALS", "write GROUP BY ROLLUP (a, b)"),
    "percent": ("LIMIT in percent", "write a whole number of rows"),
    "with_ties": ("WITH TIES", "write a whole number of rows"),
    "operation_modifiers": ("a hint", "leave it out"),
    "distinct": ("DISTINCT", "leave it out"),
    "limit": ("LIMIT", "put it at the end of the whole query"),
    "offset": ("OFFSET", "put it at the end of the whole query"),
    "default": ("a default", "wrap it in COALESCE"),
    "alias": ("a name", "leave it out"),
}
"""For each argument name of the parser, the name of the clause in SQL and what to write instead."""


def limit_or_offset(query: exp.Query, name: str, text: Text) -> int | None:
    """Return the number of rows in LIMIT or OFFSET, if a query has it."""
    clause = query.args.get(name)
    if clause is None:
        return None
    require_only(clause, ("expression", "count", "direction", "limit_options"), text)
    options = clause.args.get("limit_options")
    if options is not None:
        require_only(options, ("rows",), text)
    node = clause.args.get("count") or clause.expression
    if not (isinstance(node, exp.Literal) and node.is_int):
        raise NotSQL(f"{name.upper()} takes a whole number", place=text.place(clause))
    return min(int(node.this), ROWS_MAX)


def conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the conjuncts of a condition, in the order in which they are written."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.And):
            waiting += [one.expression, one.this]
        elif isinstance(one, exp.Paren):
            waiting.append(one.this)
        else:
            yield one


def _require_bounded(tree: exp.Expr) -> None:
    """Raise NotSQL if a query has too many nodes or levels."""
    level: list[exp.Expr] = [tree]
    depth = nodes = 0
    while level:
        depth, nodes = depth + 1, nodes + len(level)
        if depth > 3 * DEPTH_MAX or nodes > NODES_MAX:
            raise NotSQL(f"a query has at most {NODES_MAX:,} parts and is nested {DEPTH_MAX} deep at most")
        level = [child for node in level for child in node.iter_expressions()]


def _normalize_functions(tree: exp.Query, text: Text) -> exp.Query:
    """Return the query with MEAN as AVG, and the name of each function as written in its `meta`."""
    for node in list(tree.find_all(exp.Func)):
        if "start" in node.meta:
            node.meta[WRITTEN] = text.sql[node.meta["start"] : node.meta["end"] + 1].upper()
        if isinstance(node, exp.Anonymous) and node.name.upper() == "MEAN" and len(node.expressions) == 1:
            node.replace(exp.Avg(this=node.expressions[0]))
    return tree


def source_text(node: exp.Expr) -> str:
    """Return an expression as SQL on one line, without comments."""
    dialect = None if node.find(exp.WithinGroup) else "duckdb"  # which has another place for WITHIN GROUP
    return node.sql(dialect=dialect, comments=False)


def function_name(node: exp.Expr) -> str:
    """Return the name of a function as it was written, or as the parser knows it."""
    if isinstance(node, exp.IgnoreNulls | exp.Filter | exp.WithinGroup):
        return str(node.meta.get(WRITTEN) or function_name(node.this))
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    if isinstance(node, exp.GroupConcat):
        return "STRING_AGG"
    name = node.sql_name() if isinstance(node, exp.Func) else node.key.replace("_", " ")
    return str(node.meta.get(WRITTEN) or name).upper()


def _require_beginning(text: Text) -> None:
    """Raise NotSQL if the first word of a text begins no query."""
    found = _FIRST_WORD.match(text.sql)
    if found is not None and found[1].upper() not in BEGINNINGS:
        before = text.sql[: found.start(1)]
        place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise NotSQL(f"a query begins with SELECT or WITH, not {found[1]}", place=place)


def _syntax_error(error: SqlglotError) -> NotSQL:
    errors = getattr(error, "errors", None)
    if not errors:
        return NotSQL("this cannot be read as SQL: a quote or a comment may not be closed")
    first = errors[0]
    place = Place(
        int(first.get("line") or 1), max(1, int(first.get("col") or 1) - len(first.get("highlight") or "") + 1)
    )
    near = first.get("highlight") or ""
    return NotSQL(f"this cannot be read as SQL{f', near {near!r}' if near else ''}", place=place)


def _statement_kind(tree: exp.Expr) -> str:
    return str(tree.args.get("this") or tree.key).upper() if isinstance(tree, exp.Command) else tree.key.upper()
