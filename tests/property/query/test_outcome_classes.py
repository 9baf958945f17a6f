"""Whether a question is answered, fails or takes long does not tell whether one unit is there.

Hostile questions (`hostile_questions`) are put to worlds with a victim and to their neighbours without it
(`outcomes`). Then holes are made on purpose, each of which the same search must find. `make soak` searches longer.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot

from tacit.ledger import Budget
from tacit.query import PlanSettings, Target, per_unit, planner, relations, rewrite, row_limits
from tacit.query.rewrite import Statement
from tacit.query.scalars import facts, trees
from tests.property.query import hostile_worlds, outcomes
from tests.property.query.hostile_worlds import VICTIM, database, hostile_world, load
from tests.property.query.neighbours import Violated
from tests.property.query.outcomes import Stopwatch, asked_of, compared, fuzz
from tests.property.query.questions import Asked
from tests.support.plans import plan_sql

WORLDS = range(1, 6)
QUESTIONS = range(9)
SQL_MAX = 1_500
"""How long a question is at most that is put here; longer ones take seconds to plan."""

WIDE_WORLD = 21
"""A world in which the victim has 64 rows in both private tables, and the public one has 16,384."""

LIMITS = (
    (facts, "DERIVED_TEXT_MAX"),
    (row_limits, "ROW_TEXT_MAX"),
    (row_limits, "RELATION_MAX"),
    (row_limits, "AMPLIFICATION_MAX"),
    (row_limits, "JOINED_ROWS_MAX"),
    (row_limits, "WORK_MAX"),
    (row_limits, "HELD_CHARACTERS_MAX"),
)
"""Every limit on the work that one unit makes; a hole is made by lifting some of them."""

_TEXTS = " AND ".join(f"UPPER(a.s || q.s || '{letter}') LIKE '%{letter}'" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
KNOWN = {
    "texts times public rows": (
        f"SELECT COUNT(*) AS n FROM p AS a CROSS JOIN pub AS q WHERE a.uid = {VICTIM} AND {_TEXTS}"
    ),
    "texts of three joined tables": (
        "SELECT COUNT(DISTINCT UPPER(a.s || b.s)) AS n FROM p AS a JOIN p AS b ON a.uid = b.uid JOIN p AS c "
        f"ON a.uid = c.uid WHERE a.uid = {VICTIM}"
    ),
    "a window over texts of joined rows": (
        "SELECT COUNT(*) AS n FROM (SELECT a.uid, LAG(b.s) OVER (PARTITION BY a.uid ORDER BY b.t, c.i) AS s FROM p a "
        f"JOIN p AS b ON a.uid = b.uid JOIN p AS c ON a.uid = c.uid) AS w WHERE w.uid = {VICTIM} AND w.s LIKE '%a%b'"
    ),
    "hundreds of terms times joined rows": (
        f"SELECT COUNT(*) AS n FROM p AS a JOIN p AS b ON a.uid = b.uid JOIN p AS c ON a.uid = c.uid "
        f"WHERE a.uid = {VICTIM} AND {' + '.join(['LN(ABS(b.r) + c.kg)'] * 60)} > 3"
    ),
}
"""Questions whose work is the product of what is allowed by itself."""


def asking(sql: str) -> Asked:
    return Asked(sql, PlanSettings(), Budget(epsilon=1e4, delta=1e-6).cap, Target(epsilon=1.0))


def test_how_a_run_ends_and_how_long_it_takes_does_not_tell_who_is_there() -> None:
    tally = fuzz(WORLDS, QUESTIONS, SQL_MAX)
    assert tally.answered >= 0.4 * tally.asked, tally
    assert tally.failed == 0, tally
    assert len(tally.features) >= 15, tally


@pytest.mark.parametrize("seed", [17])
def test_a_question_that_the_search_has_found_is_refused_or_ends_alike(seed: int) -> None:
    fuzz([seed // 1_000], [seed % 1_000])


@pytest.mark.parametrize("name", KNOWN)
def test_work_that_is_a_product_of_allowed_parts_is_refused_or_small(name: str) -> None:
    ask_about_victim(KNOWN[name])


CONSTANTS = (
    "SELECT COUNT(*) AS n FROM (SELECT 2147483647 AS x FROM p WHERE uid = {0}) AS c WHERE x + x > 0",
    "SELECT SUM(x * 2000000000) AS n FROM (SELECT uid, MAX(2) AS x FROM p WHERE uid = {0} GROUP BY uid) AS c",
    "SELECT SUM(COALESCE(-x, 1) * 2000000000) AS n FROM (SELECT LAG(2) OVER (PARTITION BY uid ORDER BY i) AS x FROM p"
    " WHERE uid = {0}) AS c",
)
"""Arithmetic with constant columns, over the rows of the victim alone."""


def ask_about_victim(sql: str) -> None:
    """Compare the outcomes of a question with and without the victim."""
    with database() as connection:
        load(hostile_world(WIDE_WORLD), connection)
        watch = Stopwatch(connection)
        try:
            asked_of(asking(sql.format(VICTIM)), WIDE_WORLD, connection, watch)
        finally:
            watch.close()


@pytest.mark.parametrize("sql", CONSTANTS)
def test_arithmetic_with_constant_columns_ends_alike(sql: str) -> None:
    ask_about_victim(sql)


@pytest.mark.parametrize("sql", CONSTANTS)
def test_constants_of_32_bits_are_noticed(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (relations, per_unit):
        monkeypatch.setattr(module, "standing_alone", lambda tree: tree.copy())
    with pytest.raises(Violated, match="ends with OutOfRangeException"):
        ask_about_victim(sql)


def noticed(*seeds: int) -> str:
    """Return what the search says first about the questions of some seeds, and fail if it says nothing."""
    for seed in seeds:
        try:
            fuzz([seed // 1_000], [seed % 1_000])
        except Violated as error:
            return str(error)
    pytest.fail("nothing was noticed")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "EXTRA_S", 1.0)


def test_a_cast_that_fails_for_a_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "try_cast", trees.cast)
    assert "ends with ConversionException" in noticed(1_000, 1_002)


def test_counts_that_are_multiplied_in_64_bits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "require_exact", lambda *_: None)
    monkeypatch.setattr(rewrite, "_huge", lambda tree: tree)
    monkeypatch.setattr(hostile_worlds, "ROWS_MAX", 512)  # times 16,384 public rows
    monkeypatch.setattr(row_limits, "WORK_MAX", 2**40)
    monkeypatch.setattr(row_limits, "HELD_CHARACTERS_MAX", 2**40)
    assert "ends with OutOfRangeException" in noticed(91_003)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", [10_006, 17_000], ids=["rows", "texts"])
def test_work_without_limits_is_noticed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    for module, name in LIMITS:
        monkeypatch.setattr(module, name, 2**200)
    assert "more; without it" in noticed(seed)


@pytest.mark.usefixtures("impatient")
def test_a_statement_that_takes_long_for_the_victim_alone_is_noticed() -> None:
    """Whatever the planner's limits are called: the statement of a plan is exchanged for one that it would refuse."""
    asked = asking("SELECT COUNT(*) AS n FROM p AS a")
    plan = plan_sql(asked.sql, hostile_world(WIDE_WORLD).schema, asked.target, asked.terms, asked.settings)
    rows = f"tacit_data.p AS a, tacit_data.p AS b, tacit_data.p AS c WHERE a._unit = {VICTIM} AND b._unit = {VICTIM}"
    long = f"SELECT LEAST(COUNT(*), 1) AS m0 FROM {rows} AND CONTAINS(UPPER(a.s || c.s), LOWER(b.s) || '~')"
    slow = replace(plan, statements=(Statement(sqlglot.parse_one(long, dialect="duckdb"), (0,)),))
    with database() as connection:
        load(hostile_world(WIDE_WORLD), connection)
        watch = Stopwatch(connection)
        try:
            with pytest.raises(Violated, match="s of processor time more"):
                compared(slow, connection, watch)
        finally:
            watch.close()
