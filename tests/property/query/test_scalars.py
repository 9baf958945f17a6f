"""Scalar expressions held against rows as bad as they come, and against DuckDB's own meaning of SQL."""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import date, datetime, timedelta
from fractions import Fraction
from statistics import fmean
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.scalars import grid_steps
from tacit.query.scalars.trees import is_constant
from tests.property.query.scalar_sql import BENIGN, STEPS, TRAPS, TYPES, built, database, fits, scalars

BAD_ROWS = database()
GOOD_ROWS = database(BENIGN)
NUMBERS = [Kind.INTEGER, Kind.REAL]


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


def hold(known: dict[str, Expression]) -> None:
    """Check expressions on every bad row: nothing fails, and every value keeps the facts about it."""
    types, rows = run(BAD_ROWS, [expression.text for expression in known.values()])
    for number, (sql, expression) in enumerate(known.items()):
        assert types[number] == TYPES[expression.kind] or is_constant(expression.tree) or expression.domain == (), sql
        for row in rows:
            assert fits(row[number], expression), (sql, expression.text, row[number])
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert repr(first) == repr(second)


@pytest.mark.parametrize("sql", [one.strip() for one in TRAPS.replace("\n", " ; ").split(" ; ") if one.strip()])
def test_a_known_trap_holds(sql: str) -> None:
    expression = built(sql)
    hold({sql: expression})
    if expression.kind.is_number and expression.range is not None:
        for step, centre in STEPS:
            hold_steps([expression], step, centre)


LISTS = st.lists(scalars(), min_size=8, max_size=8)


def share_of_functions(texts: list[str], held: Collection[Expression]) -> float:
    """Return for how many of the texts an expression was held that is more than a column or a literal."""
    return sum(not (is_constant(one.tree) or isinstance(one.tree, exp.Column)) for one in held) / len(texts)


def test_no_row_makes_an_expression_fail_or_leaves_its_facts() -> None:
    shares: list[float] = []

    @settings(max_examples=100)
    @given(LISTS)
    def generated(texts: list[str]) -> None:
        if known := understood(texts):
            hold(known)
        shares.append(share_of_functions(texts, known.values()))

    generated()
    assert fmean(shares) > 0.4


def test_steps_stay_between_the_ends_of_the_range() -> None:
    shares: list[float] = []

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from(NUMBERS).flatmap(scalars), min_size=8, max_size=8), st.sampled_from(STEPS))
    def generated(texts: list[str], grid: tuple[Fraction, Fraction]) -> None:
        held = hold_steps([one for one in understood(texts).values() if one.kind.is_number], *grid)
        shares.append(share_of_functions(texts, held))

    generated()
    assert fmean(shares) > 0.15


def hold_steps(expressions: list[Expression], step: Fraction, centre: Fraction) -> list[Expression]:
    """Check that numbers counted in steps keep between the ends of their ranges; return those with an end."""
    known = [one for one in expressions if one.range is not None and one.range.size / step < 2**60]
    if not known:
        return []
    types, rows = run(BAD_ROWS, [grid_steps(one, step, centre).sql(dialect="duckdb") for one in known])
    for number, expression in enumerate(known):
        assert expression.range is not None
        least, most = (round((end - centre) / step) for end in (expression.range.lower, expression.range.upper))
        assert types[number] == "BIGINT"
        values = [row[number] for row in rows]
        outside = [value for value in values if value is not None and not least <= value <= most]
        assert not outside, (expression.text, least, most, outside)
        assert expression.nullable or None not in values
    return known


def test_on_ordinary_rows_an_expression_is_what_duckdb_makes_of_the_sql() -> None:
    shares: list[float] = []

    @settings(max_examples=80)
    @given(st.lists(scalars(gentle=True), min_size=8, max_size=8))
    def generated(texts: list[str]) -> None:
        held = []
        for sql, expression in understood(texts).items():
            try:
                theirs = run(GOOD_ROWS, [sql])[1]
            except duckdb.Error:
                continue
            ours = run(GOOD_ROWS, [expression.text])[1]
            for mine, other in zip(ours, theirs, strict=True):
                assert agrees(mine[0], other[0]), (sql, expression.text, mine[0], other[0])
            held.append(expression)
        shares.append(share_of_functions(texts, held))

    generated()
    assert fmean(shares) > 0.35


PAIRS = [
    ("NOT (NOT {p})", "{p} AND TRUE"),
    ("{p} AND {q}", "{q} AND {p} AND {q}"),
    ("({p} OR {q}) OR {o}", "{o} OR ({q} OR {p})"),
    ("NOT ({p} OR {q})", "NOT {q} AND NOT {p}"),
    ("NOT ({p} AND NOT {q})", "{q} OR NOT {p}"),
    ("NOT ({p} AND ({q} OR {o}))", "NOT {p} OR (NOT {o} AND NOT {q})"),
    ("{x} < {y}", "{y} > {x}"),
    ("NOT {x} < {y}", "{x} >= {y}"),
    ("NOT {x} > {y}", "{y} >= {x}"),
    ("{x} != {y}", "NOT {y} = {x}"),
    ("{x} BETWEEN {y} AND {z}", "{z} >= {x} AND {y} <= {x}"),
    ("{x} NOT BETWEEN {y} AND {z}", "{x} < {y} OR {z} < {x}"),
    ("{x} IS NOT DISTINCT FROM {y}", "NOT {y} IS DISTINCT FROM {x}"),
    ("{x} IN ({y}, {z}, {y})", "{z} = {x} OR {x} IN ({y})"),
    ("{x} NOT IN ({y}, {z})", "{z} <> {x} AND {y} <> {x}"),
    ("{x} + {y}", "{y} + {x}"),
    ("{x} * {y}", "{y} * {x}"),
    ("IF({p}, {x}, {y})", "CASE WHEN {p} THEN {x} ELSE {y} END"),
    ("IIF({p}, {x}, {y})", "CASE WHEN {p} THEN ({x}) ELSE {y} END"),
    ("CASE {x} WHEN {y} THEN 1 WHEN {z} THEN 2 END", "CASE WHEN {y} = {x} THEN 1 WHEN {x} = {z} THEN 2 ELSE NULL END"),
    ("IFNULL({x}, {y})", "NVL({x}, {y})"),
    ("COALESCE({x}, {y})", "COALESCE({x}, NULL, {y})"),
    ("NULLIF({x}, {y})", "CASE WHEN {y} = {x} THEN NULL ELSE {x} END"),
    ("GREATEST({x}, {y}, {z})", "GREATEST({z}, {x}, {y}, {x})"),
    ("TRY_CAST({x} AS INT)", "CAST({x} AS BIGINT)"),
    ("{i} > 17", "{i} >= 18"),
    ("{i} < 18", "NOT {i} > 17"),
    ("{i} > 17.5", "18 <= {i}"),
    ("{i} <= 0", "NOT {i} > 0"),
    ("{i} >= 120", "NOT 120 > {i}"),
    ("{i} IN (2, 1)", "{i} = 1 OR {i} = 2.0"),
    ("{d} > DATE '2020-02-28'", "'2020-02-29' <= {d}"),
    ("{d} - DATE '2020-01-01'", "DATE_DIFF('day', DATE '2020-01-01', {d})"),
    ("{i} - 3", "{i} + -3"),
    ("{s} LIKE 'ab%%'", "STARTS_WITH({s}, 'ab')"),
    ("LEFT({s}, 2)", "SUBSTRING({s}, 1, 2)"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=[" is ".join(pair) for pair in PAIRS])
@settings(max_examples=12)
@given(scalars(Kind.BOOLEAN, 1), scalars(Kind.BOOLEAN, 1), scalars(Kind.BOOLEAN, 1), st.data())
def test_two_ways_to_ask_the_same_are_one_text(
    pair: tuple[str, str], p: str, q: str, o: str, data: st.DataObject
) -> None:
    x, y, z = (data.draw(scalars(data.draw(st.sampled_from(NUMBERS)), depth=1)) for _ in "xyz")
    d, s = (data.draw(scalars(kind, depth=1)) for kind in (Kind.DATE, Kind.TEXT))
    i = data.draw(st.sampled_from(["i", "age", "grade", "debt", "LENGTH(s)", "age + 1", "debt // 7"]))
    texts = [way.format(p=p, q=q, o=o, x=x, y=y, z=z, i=i, d=d, s=s) for way in pair]
    known = understood(texts)
    assert texts[0] in known or texts[1] not in known
    if texts[0] in known:
        assert known[texts[0]] == known[texts[1]]


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


def test_a_truth_value_beside_itself_is_itself() -> None:
    known = understood(["b", "b AND b", "b OR b", "(FALSE OR b) AND b"])
    assert len(known) == 4
    assert all(one == known["b"] for one in known.values())
