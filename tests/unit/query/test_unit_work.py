"""Time and memory as oracles: rows, texts and conditions are each within their limits, and their product is not.

Whoever asks chooses the unit (`WHERE uid = 1`), so without it nothing is computed, and with it everything is.
"""

from __future__ import annotations

import time

import pytest
from sqlglot import exp

from tacit.pipeline import Work
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import NotAllowed, TooWide
from tacit.privacy.tables import MOMENT_LENGTH_MAX, TEXT_LENGTH_MAX, Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tacit.query.row_limits import STORED_ROWS, STORED_STEPS, WORK_MAX, reading_steps
from tacit.query.scalars import trees
from tacit.server.jobs import STEP_S, class_of
from tests.support.memory_engine import MemoryEngine, named
from tests.support.plans import plan_sql

COLUMNS = (
    Column("uid", Kind.INTEGER, nullable=False),
    Column("s", Kind.TEXT),
    Column("n", Kind.INTEGER, Bounds(0, 100)),
)
PEOPLE = Table("people", COLUMNS, Unit("uid"), dataset="d")
NOTES = Table("notes", COLUMNS, Unit("uid"), dataset="d")
MANY = Table("many", COLUMNS, Unit("uid"), Limits(rows_per_unit=100_000), dataset="d")
TEN = Table("ten", COLUMNS, Unit("uid"), Limits(rows_per_unit=10), dataset="d")
CODES = Table("codes", (Column("code", Kind.INTEGER), Column("name", Kind.TEXT)), rows=10_000)
FEW = Table("few", (Column("code", Kind.INTEGER), Column("name", Kind.TEXT)), rows=20)
SCHEMA = Schema([PEOPLE, NOTES, MANY, TEN, CODES, FEW])
TIME_MAX_S = 20.0


def costly(text: str, times: int = 60) -> str:
    """Return conditions on a text, none of which is true."""
    return " OR ".join(f"UPPER({text} || '{number}') LIKE '%Q{number}%Z%'" for number in range(times))


def planned(sql: str) -> Plan:
    return plan_sql(sql, SCHEMA, Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings())


def engine(signs: str = "ü") -> MemoryEngine:
    """Return an engine in which unit 1 has as many rows as its work is bounded for, with the longest texts."""
    held, times = MemoryEngine(), (TEXT_LENGTH_MAX - 5) // len(signs)
    for table in (PEOPLE, NOTES, MANY):
        held.connection.execute(
            f"CREATE TABLE {named(table)} AS SELECT u AS uid, repeat('{signs}', {times}) || n AS s, "
            f"n % 100 AS n, u AS _unit, CAST({STORED_ROWS} AS BIGINT) AS _rows FROM "
            f"(SELECT 1 AS u, n FROM range({STORED_ROWS}) AS r(n))"
        )
    for public in (CODES, FEW):
        held.connection.execute(
            f"CREATE TABLE {named(public)} AS SELECT n AS code, 'code ' || n AS name FROM range({public.rows}) AS r(n)"
        )
    held.connection.execute("SET memory_limit = '2GB'")
    return held


def run(plan: Plan) -> None:
    held = engine()
    for statement in plan.statements:
        held.run(statement.sql(), {"salt": 1} if statement.is_salted else None)


REFUSED = [
    f"SELECT COUNT(*) FROM people CROSS JOIN codes WHERE uid = 1 AND ({costly('s || name', 3)})",
    f"SELECT COUNT(*) FROM people CROSS JOIN codes WHERE uid = 1 AND ({costly('s || name')})",
    "SELECT COUNT(*) FROM people CROSS JOIN codes WHERE STRPOS(LOWER(s), name) > 0",
    "SELECT COUNT(DISTINCT s || name) FROM people CROSS JOIN codes",
    f"SELECT COUNT(DISTINCT name || '{'x' * 5_000}') FROM people CROSS JOIN codes",
    "SELECT COUNT(DISTINCT name || name || name || name) FROM people CROSS JOIN codes",
    "SELECT COUNT(DISTINCT p.s || q.s) FROM people p JOIN notes q ON p.uid = q.uid JOIN notes r ON r.uid = q.uid",
    "SELECT COUNT(*) FROM (SELECT p.uid, ROW_NUMBER() OVER (PARTITION BY p.uid ORDER BY p.s) AS k FROM people p "
    "CROSS JOIN codes) AS t WHERE k < 3",
    "SELECT COUNT(*) FROM (SELECT DISTINCT uid, s, name FROM people CROSS JOIN codes) AS t",
    "SELECT COUNT(*) FROM (SELECT uid, code, MAX(s) AS m FROM people CROSS JOIN codes GROUP BY uid, code) AS t "
    "WHERE m <> 'a'",
    "SELECT COUNT(*) FROM (SELECT uid, s, code FROM people CROSS JOIN codes GROUP BY uid, s, code) AS t",
    "SELECT SUM(k) FROM (SELECT uid, COUNT(DISTINCT s || name) AS k FROM people CROSS JOIN codes GROUP BY uid) AS t",
    "SELECT COUNT(*) FROM (SELECT uid, SUM(n) AS w FROM notes GROUP BY uid) AS u LEFT JOIN (SELECT uid, s FROM people "
    "CROSS JOIN codes) AS t ON t.uid = u.uid WHERE t.s <> CAST(u.w AS TEXT)",
    "SELECT COUNT(*) FROM people v WHERE EXISTS (SELECT 1 FROM codes c WHERE c.code = v.n AND "
    f"({costly('v.s || c.name')}))",
]
ACCEPTED = [
    f"SELECT COUNT(*) FROM people WHERE uid = 1 AND ({costly('s')})",
    f"SELECT COUNT(*) FROM people CROSS JOIN few WHERE uid = 1 AND ({costly('s || name', 12)})",
    "SELECT COUNT(*), SUM(n), AVG(n) FROM people JOIN codes ON n = code",
    "SELECT COUNT(*) FROM people CROSS JOIN codes WHERE uid = 1 AND LEFT(s, 3) = name",
    "SELECT COUNT(*) FROM people CROSS JOIN codes WHERE uid = 1 AND s < name",
    "SELECT COUNT(*) FROM people CROSS JOIN few WHERE STRPOS(LOWER(s), name) > 0",
    "SELECT COUNT(DISTINCT s || name) FROM people CROSS JOIN few",
    "SELECT SUM(p.n) FROM people p JOIN notes q ON p.uid = q.uid WHERE p.s <> q.s AND q.s LIKE '%x%y%'",
    "SELECT COUNT(*) FROM (SELECT uid, ROW_NUMBER() OVER (PARTITION BY uid ORDER BY s) AS k FROM people) AS t "
    "WHERE k < 3",
    f"SELECT COUNT(*) FROM many WHERE {costly('s')}",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_a_product_of_rows_texts_and_conditions_that_is_too_large_is_refused_with_a_way_out(sql: str) -> None:
    with pytest.raises(TooWide, match="LEFT"):
        planned(sql)


@pytest.mark.parametrize(
    "median",
    ["MEDIAN(n) FILTER (WHERE n > 3)", "MEDIAN(CASE WHEN n > 3 THEN n END)", "MEDIAN(n)"],
)
def test_a_running_median_of_missing_values_is_refused_for_it_takes_time_by_the_square(median: str) -> None:
    rows = "SELECT uid, {} OVER (PARTITION BY uid{}) AS m FROM people"
    with pytest.raises(NotAllowed, match="COALESCE"):
        planned(f"SELECT COUNT(*) FROM ({rows.format(median, ' ORDER BY s')}) AS t WHERE m > 3")
    planned(f"SELECT COUNT(*) FROM ({rows.format(median, '')}) AS t WHERE m > 3")
    planned(f"SELECT COUNT(*) FROM ({rows.format('MEDIAN(COALESCE(n, 0))', ' ORDER BY s')}) AS t WHERE m > 3")


SIGNS = "".join(chr(0x10348 + place % 2) for place in range(250))
PRICED = [
    f"SELECT COUNT(*) FROM people WHERE uid = 1 AND s LIKE '%_{SIGNS}b%'",
    f"SELECT COUNT(*) FROM people WHERE uid = 1 AND s ILIKE '%{'_' * 250}b%'",
    f"SELECT COUNT(*) FROM people WHERE uid = 1 AND s LIKE '%{SIGNS}b%'",
    "SELECT s, name, COUNT(*) FROM people CROSS JOIN few GROUP BY s, name",
    "SELECT COUNT(DISTINCT s || name) FROM people CROSS JOIN few",
    "SELECT COUNT(*) FROM (SELECT DISTINCT uid, s, name FROM people CROSS JOIN few) AS t",
    "SELECT SUM(k) FROM (SELECT uid, COUNT(DISTINCT s || name) AS k FROM people CROSS JOIN few GROUP BY uid) AS t",
    "SELECT COUNT(*) FROM (SELECT uid, code, MAX(s) AS m FROM people CROSS JOIN few GROUP BY uid, code) AS t",
]


@pytest.mark.parametrize("sql", PRICED)
def test_the_time_that_a_unit_adds_is_within_its_work(sql: str) -> None:
    """Four times the work, for a slow machine; the texts are periodic and four bytes a sign, the worst for searches."""
    plan, held = planned(sql), engine(chr(0x10348) + chr(0x10349))
    begun = time.process_time()
    for statement in plan.statements:
        held.run(statement.sql(), {"salt": 1} if statement.is_salted else None)
    assert time.process_time() - begun < max(0.3, plan.work * STEP_S)


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_is_accepted_runs_within_bounds_for_a_unit_with_the_longest_texts(sql: str) -> None:
    plan = planned(sql)
    assert plan.work <= WORK_MAX
    begun = time.monotonic()
    run(plan)
    assert time.monotonic() - begun < TIME_MAX_S


@pytest.mark.parametrize("value", ["UPPER(s)", "LOWER(s)", "TRIM(s)", "CAST(s AS DATE)", "CAST(s AS BIGINT)"])
@pytest.mark.parametrize("depth", [1, 3])
def test_functions_that_look_at_each_character_are_weighed_in_subqueries_too(value: str, depth: int) -> None:
    rows = f"SELECT uid, n, {value} AS x FROM people"
    for _ in range(depth):
        rows = f"SELECT uid, n, x FROM ({rows}) AS t"
    plain, weighed = (planned(f"SELECT COUNT({one}) FROM ({rows}) AS t").steps for one in ("n", "x"))
    assert weighed - plain >= TEXT_LENGTH_MAX


@pytest.mark.parametrize("value", ["s LIKE '%a%'", "s ILIKE 'a_'", "STRPOS(s, 'a') > 1", "CONTAINS(s, '%')"])
def test_searches_are_weighed_by_the_length_of_the_text(value: str) -> None:
    short = value.replace("s", "LEFT(s, 10)", 1) if not value.startswith("S") else "STRPOS(LEFT(s, 10), 'a') > 1"
    short = "CONTAINS(LEFT(s, 10), '%')" if value.startswith("C") else short
    long, cut = (planned(f"SELECT COUNT(*) FROM people WHERE {one}").steps for one in (value, short))
    assert long >= TEXT_LENGTH_MAX > 2 * cut


@pytest.mark.parametrize("search", ["CONTAINS(s, '{}')", "STRPOS(s, '{}') > 0", "s LIKE '%{}%'"])
def test_searches_are_weighed_by_the_length_of_the_part_as_well(search: str) -> None:
    """The attack: on PostgreSQL a part of 250 letters that nearly fits everywhere took 30 times its work."""
    short, long = (planned(f"SELECT COUNT(*) FROM people WHERE {search.format(part)}") for part in ("x", "x" * 250))
    assert long.work >= 30 * short.work


def test_what_rows_are_ordered_by_is_compared_many_times() -> None:
    tree = planned("SELECT COUNT(*) FROM people").statements[0].tree
    ordered = tree.order_by("m0", copy=True)
    assert trees.work(ordered) - trees.work(tree) >= trees.SORT_STEPS


def test_lists_of_public_values_are_one_step() -> None:
    few, many = (
        planned(f"SELECT COUNT(*) FROM people WHERE n IN ({', '.join(map(str, range(most)))})").steps
        for most in (3, 90)
    )
    assert few == many


def test_the_work_of_one_unit_chooses_the_class_of_time() -> None:
    cheap = planned("SELECT COUNT(*) FROM people")
    dear = planned(f"SELECT COUNT(*) FROM people CROSS JOIN few WHERE {costly('s || name', 12)}")
    assert class_of(Work(1, cheap.work), 0.1) == 0.1
    assert class_of(Work(1, dear.work), 0.1) >= 2 * dear.work * STEP_S > 1


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ("people", STORED_ROWS),
        ("ten", 10),
        ("ten CROSS JOIN codes", 10 * 10_000),
        ("people CROSS JOIN few", STORED_ROWS * 20),
        ("people p LEFT JOIN ten t ON p.uid = t.uid", STORED_ROWS * 10),
        ("(SELECT uid FROM people UNION ALL SELECT uid FROM ten) AS u", 2 * STORED_ROWS),
        ("people v WHERE EXISTS (SELECT 1 FROM few c WHERE c.code = v.n AND c.code < LENGTH(v.s))", STORED_ROWS * 20),
    ],
)
def test_the_rows_of_a_unit_are_those_of_its_widest_scope(rows: str, most: int) -> None:
    assert planned(f"SELECT COUNT(*) FROM {rows}").question.unit_rows == most


def test_statements_that_learn_bounds_are_work_too() -> None:
    plan = planned("SELECT SUM(LENGTH(s) * n * 1e30) FROM people")
    assert plan.learning
    assert plan.steps > sum(trees.work(one.tree) for one in plan.statements)


def test_columns_that_a_source_may_hold_as_texts_are_counted_where_they_are_read() -> None:
    columns = (*COLUMNS, Column("d", Kind.DATE), Column("t", Kind.TIME))
    plain = Table("plain", columns, Unit("uid"), dataset="d")
    limited = Table("limited", columns, Unit("uid"), Limits(rows_per_unit=10), dataset="d")
    read = [exp.select("d").from_("plain")]
    assert reading_steps(plain, read) == STORED_ROWS * STORED_STEPS[Kind.DATE]
    assert reading_steps(limited, read) == STORED_ROWS * sum(STORED_STEPS[one.kind] for one in columns)


def test_a_long_text_is_no_date() -> None:
    held = engine()
    for spaces in (0, MOMENT_LENGTH_MAX - 10, MOMENT_LENGTH_MAX - 9):
        text = "2024-01-01" + " " * spaces
        question = f"SELECT COUNT(*) FROM people WHERE CAST(CASE WHEN n >= 0 THEN '{text}' END AS DATE) IS NOT NULL"
        (statement,) = planned(question).statements
        found = held.run(statement.sql(), {"salt": 1} if statement.is_salted else None)
        assert (int(found["m0"][0]) > 0) is (len(text) <= MOMENT_LENGTH_MAX)
