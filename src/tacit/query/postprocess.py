"""The SELECT over the noisy columns: arithmetic, HAVING, ORDER BY, LIMIT, windows over the answer.

It runs in the scratch database. `require_evaluable` runs it before anything is charged, over made-up columns, so that
what that database refuses is refused at planning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import duckdb
import numpy as np
from sqlglot import exp

from tacit.privacy.errors import NotSQL
from tacit.query.question import Question
from tacit.query.scratch_database import TABLE, TYPES, array_of, evaluate

ROW: Final = "row_number_"


def evaluate_select(question: Question, columns: dict[str, Any], groups: int) -> tuple[list[dict[str, Any]], list[int]]:
    """Evaluate the SELECT over the noisy columns; return its rows, and the group of each."""
    table = {name: array_of(column) for name, column in columns.items()}
    table[ROW] = np.arange(groups)
    items = [exp.alias_(output.value.tree.copy(), f"o{index}") for index, output in enumerate(question.outputs)]
    tree = noisy_columns(question, list(table)).select(*items)
    tree = tree.distinct() if question.distinct else tree.select(ROW)
    if question.having is not None:
        tree = tree.where(question.having.tree.copy())
    if question.order:
        tree = tree.order_by(*(one.copy() for one in question.order), *([] if question.distinct else [ROW]))
    elif not question.distinct:
        tree = tree.order_by(ROW)
    if question.limit is not None:
        tree = tree.limit(question.limit)
    if question.offset:
        tree = tree.offset(question.offset)
    found = evaluate(tree.sql(dialect="duckdb"), table)
    names = [output.name for output in question.outputs]
    rows = [dict(zip(names, row[: len(names)], strict=True)) for row in found]
    return rows, [] if question.distinct else [int(row[-1]) for row in found]


def noisy_columns(question: Question, names: Sequence[str]) -> exp.Select:
    """Return SELECT FROM the noisy columns, each cast to its kind, without items."""
    kinds = {f"k{index}": key.kind for index, key in enumerate(question.keys)}
    kinds |= {f"a{index}": one.kind for index, one in enumerate(question.aggregates)}
    typed = [
        exp.alias_(exp.cast(exp.column(name), TYPES[kinds[name]]), name) if name in kinds else exp.column(name)
        for name in names
    ]
    inner = exp.select(*typed).from_(TABLE)
    return exp.select().from_(exp.alias_(exp.Subquery(this=inner), "n", table=True))


def require_evaluable(question: Question) -> None:
    """Raise NotSQL if the SELECT over the noisy columns would fail, over two rows of which one is missing."""
    if question.shows_all:
        return
    columns: dict[str, Any] = {f"k{index}": [None, None] for index in range(len(question.keys))}
    columns |= {f"g{index}": np.array([0, 1]) for index in range(len(question.keys))}
    for index, one in enumerate(question.aggregates):
        columns[f"a{index}"] = [1 if one.kind.is_number else None, None]
    try:
        evaluate_select(question, columns, 2)
    except duckdb.Error:
        raise NotSQL(
            "what is computed from the aggregates is not valid; check the frames and arguments of its windows"
        ) from None
