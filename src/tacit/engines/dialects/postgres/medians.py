"""MEDIAN over a window, which PostgreSQL does not have, in two steps that sort each partition once.

An array of the partition in every row would take time and memory with the square of its rows. Instead a SELECT that has
such windows reads from another one, which numbers the rows of each partition in the order of the value and counts its
values; the median is then the middle of the two values whose numbers are in the middle, each the only one that a MAX
over the partition finds.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from tacit.privacy.errors import EngineFailed

MIDDLE: Final = "TACIT_MIDDLE"
"""The function of the two values in the middle; the writer knows how they become the median."""

_ALIAS: Final = "ranked"


def has_medians(select: exp.Select) -> bool:
    """Return whether an item of a SELECT is computed of a median over a window."""
    return any(_is_median(node) for item in select.expressions for node in item.find_all(exp.Window))


def in_two_steps(select: exp.Select) -> exp.Select:
    """Return a SELECT with the same rows that has no median over a window."""
    inner = select.copy()
    columns: dict[str, exp.Column] = {}
    windows: dict[str, exp.Window] = {}
    for item in inner.expressions:
        if isinstance(item, exp.Star) or item.find(exp.Query) is not None:
            raise EngineFailed("PostgreSQL is asked for MEDIAN over a window beside columns and values only")
        columns |= {one.sql(): one for one in item.find_all(exp.Column)}
        windows |= {one.sql(): one for one in item.find_all(exp.Window) if _is_median(one)}
    names = {text: f"w{index}" for index, text in enumerate(columns)}
    places = {text: index for index, text in enumerate(windows)}
    items: list[exp.Expr] = [exp.alias_(one.copy(), names[text]) for text, one in columns.items()]
    for text, window in windows.items():
        if window.args.get("order") is not None:
            raise EngineFailed("PostgreSQL has no running median over rows in order; leave ORDER BY out of OVER")
        items += _ranked(window, places[text])

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
        raise EngineFailed("PostgreSQL is asked for MEDIAN over a window without ORDER BY and DISTINCT only")
    if (limit := select.args.get("limit")) is not None:
        made.set("limit", limit.copy())
    return made


def _is_median(node: exp.Expr) -> bool:
    function = node.this.this if isinstance(node.this, exp.Filter) else node.this
    return isinstance(function, exp.Median)


def _with_name(item: exp.Expr) -> exp.Expr:
    return item.copy() if isinstance(item, exp.Alias) else exp.alias_(item.copy(), item.alias_or_name)


def _ranked(window: exp.Window, index: int) -> list[exp.Expr]:
    """Return a value of which the median is wanted, its place in the partition, and how many values there are."""
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
