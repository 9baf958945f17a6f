"""Every case of tests/fixtures/query: SQL in; bounds, keys, noise, price and the engine's SQL out, or the refusal.

After a change that is meant, `TACIT_UPDATE_FIXTURES=1 pytest tests/unit/query/test_fixtures.py` writes what is expected
anew; what it wrote is then read like any other change.
"""

from __future__ import annotations

import difflib
import math
import os
from functools import cache
from typing import Final

import pytest

from tacit.accounting.conversions import Cost
from tacit.curator.catalog import Catalog
from tacit.engines.protocol import SALT
from tacit.privacy.tables import Schema
from tacit.query import Noisy, Plan, Release, answer_intervals, run
from tests.support.memory_engine import MemoryEngine
from tests.unit.query.fixtures import FOLDER, Case, cases, outcome, write
from tests.unit.query.plain import answered, differences
from tests.unit.query.rows import filled, types

EQUAL: Final = "equal_questions"
FILES: Final = sorted(FOLDER.glob("*.sql"))
CASES: Final = [case for path in FILES if path.stem != EQUAL for case in cases(path)[1]]
EQUALS: Final = cases(FOLDER / f"{EQUAL}.sql")[1]
UPDATES: Final = bool(os.environ.get("TACIT_UPDATE_FIXTURES"))
ANSWERED: Final = [case for case in CASES if not case.expected[:1] or not case.expected[0].startswith(">> refused")]
COMPARED: Final = [case for case in ANSWERED if not case.differs]


@cache
def schema(name: str) -> Schema:
    return Catalog.open(FOLDER / name).schema


@cache
def engine(name: str) -> MemoryEngine:
    return filled(schema(name))


@pytest.mark.skipif(not UPDATES, reason="TACIT_UPDATE_FIXTURES is not set")
def test_the_expected_lines_are_written_anew() -> None:
    for path in FILES:
        if path.stem != EQUAL:
            first, found = cases(path)
            write(path, first, [case.text(outcome(case, schema(case.setup.schema))[0]) for case in found])


def test_there_are_hundreds_of_cases_and_no_two_have_one_name() -> None:
    names = [case.name for case in (*CASES, *EQUALS)]
    assert len(names) >= 300
    assert len(names) == len(set(names))


@pytest.mark.skipif(UPDATES, reason="the expected lines are being written")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_question_becomes_what_its_fixture_says(case: Case) -> None:
    lines, _ = outcome(case, schema(case.setup.schema))
    if list(case.expected) != lines:
        difference = "\n".join(difflib.ndiff(case.expected, lines))
        pytest.fail(f"{case.name}\n{case.sql}\n{difference}", pytrace=False)


@pytest.mark.sampled(260)
@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.name)
def test_an_accepted_question_is_answered_over_rows_of_any_kind(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_intervals, "DRAWS", 60)  # intervals need not be exact here
    plan = case.setup.plan(case.sql, schema(case.setup.schema))
    database = engine(case.setup.schema)
    statements_give_whole_numbers(plan, database)
    noisy = run(plan, database, 7)
    assert Noisy.from_bytes(noisy.to_bytes()).to_bytes() == noisy.to_bytes()
    release = Release(plan, noisy, Cost(1.0, 0.0, math.inf), ())
    rows, spans = release.rows, release.intervals(0.9)
    assert len(rows) == len(spans)
    for row, span in zip(rows, spans, strict=True):
        assert list(row) == plan.question.columns
        assert set(span) <= set(row)
        for name, interval in span.items():
            assert interval is None or row[name] is None or interval.low <= interval.high
    question = plan.question
    if question.shows_all and plan.groups is not None and not question.sets and not question.after:
        assert len(rows) == plan.groups
    assert release.card
    assert "<table>" in release._repr_html_()


@pytest.mark.sampled(250)
@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_noise_aside_the_answer_is_that_of_the_database(case: Case) -> None:
    plan = case.setup.almost_without_noise().plan(case.sql, schema(case.setup.schema))
    ranked = any(choice.function != "mode" for choice in plan.choices)
    if plan.missing or ranked:
        pytest.skip("bounds that are learnt, and quantiles, are approximate without noise, too")
    database = engine(case.setup.schema)
    release = Release(plan, run(plan, database, 7), Cost(1.0, 0.0, math.inf), ())
    assert differences(plan, release.rows, answered(database, case.sql)) == []


def statements_give_whole_numbers(plan: Plan, database: MemoryEngine) -> None:
    for statement in plan.statements:
        sql = statement.sql(database.write)
        found = types(database, sql, {SALT: 7} if f"${SALT}" in sql else None)
        numbers = [name for name in found if name[0] in "mw" or name == "units"]
        assert {found[name] for name in numbers} <= {"BIGINT"}, sql
        assert set(found) - set(numbers) <= {"cell", *(f"k{index}" for index in range(len(plan.question.keys)))}


@pytest.mark.parametrize("case", EQUALS, ids=lambda case: case.name)
def test_questions_that_say_the_same_are_one_question(case: Case) -> None:
    first, *others = [(sign, case.setup.plan(sql, schema(case.setup.schema)).canonical) for sign, sql in case.queries]
    assert others
    for number, (sign, canonical) in enumerate(others, 2):
        assert (canonical == first[1]) == (sign == "=="), f"query {number}, {sign}"
