"""The first pass: text becomes one SELECT of bounded size, with a way to say where in the text a part stands.

Promise: what comes out is a single query (SELECT, or UNION ALL of several) and small enough for everything behind.
Nothing here decides about privacy; later passes read the tree node by node and refuse what they do not know.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tacit.privacy.errors import NotAllowed, NotSQL, Place

TEXT_MAX: Final = 50_000
NODES_MAX: Final = 10_000
DEPTH_MAX: Final = 100

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it warns of is refused here, with a sentence


class Text:
    """The query as it was written."""

    def __init__(self, sql: object) -> None:
        if not isinstance(sql, str):
            raise NotSQL(f"a query is a text, not {type(sql).__name__}")
        if len(sql) > TEXT_MAX:
            raise NotSQL(f"a query has at most {TEXT_MAX:,} characters, and this one has {len(sql):,}")
        self.sql: Final = sql

    def place(self, node: exp.Expr) -> Place | None:
        """Return where a node begins, as far as the parser remembers."""
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if not starts:
            return None
        before = self.sql[: min(starts)]
        return Place(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def parse(text: Text) -> exp.Query:
    """Read the text as one query."""
    try:
        statements = [one for one in sqlglot.parse(text.sql, dialect="duckdb") if one is not None]
    except SqlglotError as error:
        raise _unreadable(error) from None
    except RecursionError:
        raise NotSQL(f"a query is nested {DEPTH_MAX} deep at most") from None
    if len(statements) != 1:
        raise NotSQL(f"one query at a time, please, and not {len(statements)}" if statements else "the query is empty")
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        raise NotSQL(f"only SELECT is answered, not {_named(tree)}", place=text.place(tree))
    _measure(tree)
    return _spelled(tree)


def only(node: exp.Expression, known: Collection[str], text: Text) -> None:
    """Refuse a node that has more to it than the named parts."""
    for name, value in node.args.items():
        if name not in known and value not in (None, False, [], ""):
            inner = value[0] if isinstance(value, list) else value
            place = text.place(inner if isinstance(inner, exp.Expression) else node)
            raise NotAllowed(f"{name.strip('_').upper()} is not defined for private questions here", place=place)


def conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the parts of a condition that all have to hold, as they are written."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.And):
            waiting += [one.expression, one.this]
        elif isinstance(one, exp.Paren):
            waiting.append(one.this)
        else:
            yield one


def _measure(tree: exp.Expr) -> None:
    level: list[exp.Expr] = [tree]
    depth = nodes = 0
    while level:
        depth, nodes = depth + 1, nodes + len(level)
        if depth > 3 * DEPTH_MAX or nodes > NODES_MAX:
            raise NotSQL(f"a query has at most {NODES_MAX:,} parts and is nested {DEPTH_MAX} deep at most")
        level = [child for node in level for child in node.iter_expressions()]


def _spelled(tree: exp.Query) -> exp.Query:
    """Return the query with other names of aggregates as those that the parser knows."""
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.upper() == "MEAN" and len(node.expressions) == 1:
            node.replace(exp.Avg(this=node.expressions[0]))
    return tree


def _unreadable(error: SqlglotError) -> NotSQL:
    errors = getattr(error, "errors", None)
    if not errors:
        return NotSQL("this cannot be read as SQL: a quote or a comment may not be closed")
    first = errors[0]
    place = Place(
        int(first.get("line") or 1), max(1, int(first.get("col") or 1) - len(first.get("highlight") or "") + 1)
    )
    near = first.get("highlight") or ""
    return NotSQL(f"this cannot be read as SQL{f', near {near!r}' if near else ''}", place=place)


def _named(tree: exp.Expr) -> str:
    return str(tree.args.get("this") or tree.key).upper() if isinstance(tree, exp.Command) else tree.key.upper()
