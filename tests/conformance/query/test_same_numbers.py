"""Every engine gives the same exact numbers: over every question of the fixtures, and over rows as bad as they come."""

from __future__ import annotations

import pytest

from tests.conformance.query.engines import OTHERS, filled, schema
from tests.conformance.query.same_numbers import (
    CASES,
    QUESTIONS,
    check_a_cut_keeps_exactly_the_limit_of_every_unit,
    check_a_hundred_thousand_groups_are_the_same,
    check_an_empty_table_gives_zeros,
    check_odd_values_give_the_same_numbers,
    numbers,
)
from tests.unit.query.fixtures import Case


@pytest.mark.sampled(180)
@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_question_of_the_fixtures_gives_the_same_numbers(case: Case, engine: str) -> None:
    plan = case.setup.plan(case.sql, schema(case.setup.schema))
    theirs = numbers(plan, filled(engine, case.setup.schema))
    assert theirs == numbers(plan, filled("duckdb", case.setup.schema))


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_odd_values_give_the_same_numbers(sql: str, engine: str) -> None:
    check_odd_values_give_the_same_numbers(sql, engine)


@pytest.mark.parametrize("engine", OTHERS)
def test_an_empty_table_gives_zeros(engine: str) -> None:
    check_an_empty_table_gives_zeros(engine)


@pytest.mark.parametrize("engine", OTHERS)
def test_a_hundred_thousand_groups_are_the_same(engine: str) -> None:
    check_a_hundred_thousand_groups_are_the_same(engine)


@pytest.mark.parametrize("engine", ["duckdb", *OTHERS])
def test_a_cut_keeps_exactly_the_limit_of_every_unit(engine: str) -> None:
    check_a_cut_keeps_exactly_the_limit_of_every_unit(engine)
