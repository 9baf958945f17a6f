"""Spark gives the same exact numbers as DuckDB: over questions that hold every construct once, and over bad rows.

Spark takes tenths of a second over a statement, so that a selection is asked, of which `make test` takes a sample;
`TACIT_CASES=1000000`, which makes long runs of other tests, asks everything.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from sqlglot import exp

from tacit.privacy.errors import EngineFailed
from tacit.privacy.tables import Kind
from tests.conformance.query import rows_leaving as leaving
from tests.conformance.query import same_numbers as numbers
from tests.conformance.query import same_scalars as scalars
from tests.conformance.query import same_worlds as worlds
from tests.conformance.query.engines import filled, schema
from tests.property.query.parts import CASES
from tests.property.query.scalar_sql import SHAPES, TRAPS, Writer
from tests.unit.query.fixtures import Case

ALL = CASES > 10_000
WORD = re.compile(
    r"\b(?:(?:CROSS |LEFT |RIGHT )?JOIN|UNION|EXISTS|IN|DISTINCT|FILTER|HAVING|OVER|PARTITION|ORDER|DESC|HASH|"
    r"ROW_NUMBER|RANK|DENSE_RANK|LAG|LEAD|COUNT|SUM|MIN|MAX|MEDIAN|BOOL_OR|BOOL_AND|GREATEST|LEAST|NULLIF|LOG2|CEIL|"
    r"TRY_CAST|ROUND|FLOOR|MICROSECOND|DATE_DIFF|DATE_TRUNC|INTERVAL|LIKE|CASE)\b|//"
)
"""What questions are made of; functions of one row are looked at by themselves, below."""

TOGETHER = 30
LAST_BIT = (exp.Exp, exp.Ln, exp.Log, exp.Pow)
"""Functions whose last bit Java computes otherwise than C."""


def constructs(case: Case) -> set[str]:
    """Return what a case asks of an engine: the words of SQL in its statements, functions and keywords alike."""
    return {word for line in case.expected if line.startswith(">> engine") for word in WORD.findall(line)}


def selected(cases: Sequence[Case]) -> list[Case]:
    """Return cases that have every construct of all of them, the richest ones first."""
    if ALL:
        return list(cases)
    left = {index: constructs(case) for index, case in enumerate(cases)}
    wanted, chosen = set().union(*left.values()), []
    while wanted:
        best = max(left, key=lambda index: (len(left[index] & wanted), -index))
        chosen.append(best)
        wanted -= left.pop(best)
    return [cases[index] for index in sorted(chosen)]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("case", selected(numbers.CASES), ids=lambda case: case.name)
def test_a_question_of_the_fixtures_gives_the_same_numbers(case: Case) -> None:
    plan = case.setup.plan(case.sql, schema(case.setup.schema))
    theirs = numbers.numbers(plan, filled("spark", case.setup.schema))
    assert theirs == numbers.numbers(plan, filled("duckdb", case.setup.schema))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", numbers.QUESTIONS if ALL else [*numbers.QUESTIONS[:-4:6], *numbers.QUESTIONS[-4:-1]])
def test_odd_values_give_the_same_numbers(sql: str) -> None:
    numbers.check_odd_values_give_the_same_numbers(sql, "spark")


def test_an_empty_table_gives_zeros() -> None:
    numbers.check_an_empty_table_gives_zeros("spark")


def test_a_hundred_thousand_groups_are_the_same() -> None:
    numbers.check_a_hundred_thousand_groups_are_the_same("spark")


def test_a_cut_keeps_exactly_the_limit_of_every_unit() -> None:
    numbers.check_a_cut_keeps_exactly_the_limit_of_every_unit("spark")


def test_texts_are_read_as_the_same_values() -> None:
    scalars.check_texts_are_read_as_the_same_values("spark")


def test_a_value_has_the_type_of_its_kind() -> None:
    scalars.check_types("spark")


def test_as_many_rows_leave_the_engine_as_there_are_groups() -> None:
    for sql in leaving.QUESTIONS if ALL else list(leaving.QUESTIONS)[2:3]:
        leaving.check_as_many_rows_leave_the_engine_as_there_are_groups(sql, "spark")


@pytest.mark.skipif(not ALL, reason="this is no long run")
@pytest.mark.parametrize("seed", worlds.SEEDS)
def test_generated_questions_give_the_same_numbers(seed: int) -> None:
    worlds.check_generated_questions_give_the_same_numbers(seed, "spark")


def written(seed: int, deep: int) -> list[str]:
    """Return every shape of scalar SQL over columns and constants, and some nested ones."""
    choose = random.Random(seed).choice
    flat = []
    for kind, shapes in SHAPES.items():
        writer = Writer(choose)
        writer.shapes = {**SHAPES, kind: shapes}
        for shape in shapes:
            parts = shape.replace("}", "{").split("{")
            flat.append("".join(writer.place(one, kind, 0) if place % 2 else one for place, one in enumerate(parts)))
    return [*flat, *(Writer(choose).write(choose(list(Kind)), 3) for _ in range(deep))]


def close(mine: Any, theirs: Any) -> bool:
    both = isinstance(mine, float) and isinstance(theirs, float)
    return mine == theirs or (both and math.isclose(mine, theirs, rel_tol=1e-9))


def test_scalar_expressions_have_the_same_values_on_bad_rows_and_none_fails() -> None:
    traps = [one.strip() for one in (TRAPS + scalars.MORE).replace("\n", " ; ").split(" ; ") if one.strip()]
    texts = [*traps, *written(5, 600)] if ALL else [*traps[::2], *written(5, 10)[::3]]
    known = list(scalars.understood(texts).items())
    assert len(known) > 120
    for start in range(0, len(known), TOGETHER):
        some = known[start : start + TOGETHER]
        trees = [one.tree for _, one in some]
        for (sql, one), mine, theirs in zip(
            some, scalars.values("duckdb", trees), scalars.values("spark", trees), strict=True
        ):
            pairs = [(scalars.plain(a), scalars.plain(b)) for a, b in zip(mine, theirs, strict=True)]
            inexact = any(isinstance(node, LAST_BIT) for node in one.tree.walk())
            if inexact and one.tree.find(exp.Mod):
                pairs = [(a is None, b is None) for a, b in pairs]  # a remainder makes much of a last bit
            different = [pair for pair in pairs if not (close(*pair) if inexact else repr(pair[0]) == repr(pair[1]))]
            assert not different, (sql, one.tree.sql("duckdb"), different[:3])


def test_nothing_of_what_spark_says_about_an_error_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    there = scalars.shown("spark")
    with pytest.raises(EngineFailed) as caught:
        there.engine.run("SELECT swordfish(s) AS n FROM tacit_data_data")
    assert "swordfish" not in str(caught.value)
    assert "swordfish" not in "".join(capfd.readouterr())
