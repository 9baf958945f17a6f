"""Scalar expressions held against rows as bad as they come, and against DuckDB's own meaning of SQL."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.query.expressions import Expression
from tacit.query.scalars import steps
from tacit.query.scalars.trees import is_constant
from tests.property.query.scalar_sql import BENIGN, TYPES, built, database, fits, scalars

BAD_ROWS = database()
GOOD_ROWS = database(BENIGN)
STEPS = [
    (Fraction(1), Fraction(0)),
    (Fraction(7), Fraction(3)),
    (Fraction(1, 1000), Fraction(5, 2)),
    (Fraction(4), Fraction(-1)),
]


def understood(texts: list[str]) -> dict[str, Expression]:
    """Return the expressions of those texts that are not refused."""
    found = {}
    for sql in texts:
        try:
            found[sql] = built(sql)
        except (InvalidInput, QueryRefused):
            continue
    return found


def run(connection: duckdb.DuckDBPyConnection, trees: list[str]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the types and the rows of several columns."""
    cursor = connection.execute(f"SELECT {', '.join(trees)}, row_number FROM data ORDER BY row_number")
    return [str(column[1]) for column in cursor.description or ()], cursor.fetchall()


@settings(max_examples=200)
@given(st.lists(scalars(), min_size=8, max_size=8))
def test_no_row_makes_an_expression_fail_or_leaves_its_facts(texts: list[str]) -> None:
    known = understood(texts)
    if not known:
        return
    types, rows = run(BAD_ROWS, [expression.text for expression in known.values()])
    for number, (sql, expression) in enumerate(known.items()):
        assert types[number] == TYPES[expression.kind] or is_constant(expression.tree) or expression.domain == (), sql
        for row in rows:
            assert fits(row[number], expression), (sql, expression.text, row[number])
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert repr(first) == repr(second)


@settings(max_examples=80)
@given(st.lists(scalars(), min_size=8, max_size=8), st.sampled_from(STEPS))
def test_steps_stay_between_the_ends_of_the_range(texts: list[str], grid: tuple[Fraction, Fraction]) -> None:
    step, centre = grid
    known = [
        one
        for one in understood(texts).values()
        if one.kind.is_number and one.range is not None and one.range.size / step < 2**60
    ]
    if not known:
        return
    types, rows = run(BAD_ROWS, [steps(one, step, centre).sql(dialect="duckdb") for one in known])
    for number, expression in enumerate(known):
        assert expression.range is not None
        least, most = (round((end - centre) / step) for end in (expression.range.lower, expression.range.upper))
        assert types[number] == "BIGINT"
        values = [row[number] for row in rows]
        assert all(value is None or least <= value <= most for value in values), (
            expression.text,
            min(values),
            max(values),
        )
        assert expression.nullable or None not in values


@settings(max_examples=200)
@given(st.lists(scalars(gentle=True), min_size=8, max_size=8))
def test_on_ordinary_rows_an_expression_is_what_duckdb_makes_of_the_sql(texts: list[str]) -> None:
    for sql, expression in understood(texts).items():
        try:
            theirs = run(GOOD_ROWS, [sql])[1]
        except duckdb.Error:
            continue
        ours = run(GOOD_ROWS, [expression.text])[1]
        for mine, other in zip(ours, theirs, strict=True):
            assert agrees(mine[0], other[0]), (sql, expression.text, mine[0], other[0])


def agrees(mine: Any, theirs: Any) -> bool:
    """Whether two values are the same for SQL; what is not a finite number for DuckDB may be NULL."""
    if isinstance(theirs, date) and not isinstance(theirs, datetime):
        theirs = datetime(theirs.year, theirs.month, theirs.day)
    if isinstance(mine, date) and not isinstance(mine, datetime):
        mine = datetime(mine.year, mine.month, mine.day)
    if isinstance(theirs, timedelta):  # between two dates that DuckDB has made times of
        theirs = theirs.days
    if isinstance(theirs, float) and not math.isfinite(theirs):
        return mine is None or mine == theirs
    if isinstance(mine, float) and theirs is not None:
        return math.isclose(mine, float(theirs), rel_tol=1e-9, abs_tol=1e-9)
    return bool(mine == theirs)
