"""Memory and time as oracles: texts and expressions that grow from level to level, for one chosen unit.

Whatever is accepted runs in bounded memory and time also where a unit's texts are as long as texts come; the rest is
refused at planning, before anything is charged.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from sqlglot import exp

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import NotSQL, TooWide
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target, ask
from tacit.query.explain import explain
from tacit.query.expressions import DERIVED_TEXT_MAX
from tacit.query.scalars.trees import COLUMN_SIZE, expanded_size
from tests.support.memory_engine import MemoryEngine
from tests.support.plans import plan_sql

COLUMNS = (
    Column("uid", Kind.INTEGER, nullable=False),
    Column("s", Kind.TEXT),
    Column("i", Kind.INTEGER),
    Column("age", Kind.INTEGER, Bounds(0, 100)),
    Column("d", Kind.DATE),
    Column("t", Kind.TIME),
    Column("r", Kind.REAL),
    Column("b", Kind.BOOLEAN),
)
PEOPLE = Table("people", COLUMNS, Unit("uid"))
FEW = Table("few", COLUMNS, Unit("uid"), Limits(rows_per_unit=2))
SCHEMA = Schema([PEOPLE, FEW])
TIME_MAX_S = 20.0


def planned(sql: str) -> Plan:
    return plan_sql(sql, SCHEMA, Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings())


def engine() -> MemoryEngine:
    """Return an engine in which one unit has the longest texts, with little memory."""
    held = MemoryEngine()
    long = "ü" * TEXT_LENGTH_MAX
    row = (long, 2**62, 50, "2024-01-01", "2024-01-01 10:00:00", 1.5, True)
    for table in (PEOPLE, FEW):
        held.fill(table, [(unit, *row, unit) for unit in (1, 1, 2)])
    held.connection.execute("SET memory_limit = '600MB'")
    return held


def ran(sql: str) -> bool:
    """Return whether a question is accepted, after running it within the limits."""
    try:
        plan = planned(sql)
    except (TooWide, NotSQL):
        return False
    held, begun = engine(), time.monotonic()
    for statement in plan.statements:
        held.run(statement.sql(), {"salt": 1} if statement.is_salted else None)
    assert time.monotonic() - begun < TIME_MAX_S
    return True


def length(value: str) -> int:
    """Return the bound on the length of a text."""
    return ask(f"SELECT {value} AS k, COUNT(*) FROM people GROUP BY {value}", SCHEMA).keys[0].length


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        ("s", TEXT_LENGTH_MAX),
        ("s || s", 2 * TEXT_LENGTH_MAX),
        ("CONCAT(s, '-', s)", 2 * TEXT_LENGTH_MAX + 1),
        ("LEFT(s, 7)", 7),
        ("RIGHT(s, 9) || LEFT(s, 9)", 18),
        ("SUBSTRING(s, 3, 5)", 5),
        ("SUBSTRING(s, 97)", TEXT_LENGTH_MAX - 96),
        ("UPPER(TRIM(s))", TEXT_LENGTH_MAX),
        ("CASE WHEN b THEN 'abc' WHEN age > 3 THEN s ELSE LEFT(s, 2) END", TEXT_LENGTH_MAX),
        ("CASE WHEN b THEN 'abc' ELSE LEFT(s, 2) END", 3),
        ("COALESCE(LEFT(s, 5), 'long enough')", 11),
        ("GREATEST(LEFT(s, 5), 'abcdefgh')", 8),
        ("CAST(b AS VARCHAR)", 5),
        ("CAST(i AS VARCHAR)", 20),
        ("NULLIF(LEFT(s, 3), 'x')", 3),
    ],
)
def test_every_text_has_a_public_bound_on_its_length(value: str, bound: int) -> None:
    assert length(value) == bound


@pytest.mark.parametrize("value", ["r", "d", "t", "b", "i"])
def test_what_is_cast_to_a_text_is_no_longer_than_is_said(value: str) -> None:
    held = MemoryEngine()
    most = {
        "r": ["1.7976931348623157e308", "-2.2250738585072014e-308", "-Infinity", "-123456.78901234567"],
        "d": ["0001-01-01", "9999-12-31"],
        "t": ["0001-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"],
        "b": ["false"],
        "i": ["-9223372036854775808"],
    }[value]
    kind = {"r": "DOUBLE", "d": "DATE", "t": "TIMESTAMP", "b": "BOOLEAN", "i": "BIGINT"}[value]
    for one in most:
        found = held.run(f"SELECT LENGTH(CAST(CAST('{one}' AS {kind}) AS VARCHAR)) AS n")["n"][0]
        assert found <= length(f"CAST({value} AS VARCHAR)")


@pytest.mark.parametrize("value", ["LENGTH(s)", "STRPOS(s, 'x')", "LENGTH(s || s)"])
def test_lengths_and_positions_lie_within_the_bound(value: str) -> None:
    found = ask(f"SELECT SUM({value}) FROM people", SCHEMA).aggregates[0].arguments[0].range
    assert found is not None
    assert (found.lower, found.upper) == (0, TEXT_LENGTH_MAX * (2 if "||" in value else 1))


def test_a_text_that_could_be_longer_than_the_limit_is_refused_with_a_way_out() -> None:
    times = DERIVED_TEXT_MAX // TEXT_LENGTH_MAX
    assert ran(f"SELECT COUNT(DISTINCT {' || '.join(['s'] * times)}) FROM people")
    with pytest.raises(TooWide, match="LEFT"):
        planned(f"SELECT COUNT(DISTINCT {' || '.join(['s'] * (times + 1))}) FROM people")


@pytest.mark.parametrize("table", ["people", "few"])
@pytest.mark.parametrize("cut", ["{0} || {0}", "MAX({0} || {0})", "UPPER({0}) || LOWER({0})"])
def test_texts_that_grow_from_level_to_level_are_refused_before_memory_runs_out(table: str, cut: str) -> None:
    refused = False
    for levels in (1, 2, 3, 8, 30):
        group = " GROUP BY uid" if "MAX" in cut else ""
        sql = f"SELECT uid, s FROM {table}"
        for _ in range(levels):
            sql = f"SELECT uid, {cut.format('s')} AS s FROM ({sql}) AS p{group}"
        accepted = ran(f"SELECT COUNT(DISTINCT s) FROM ({sql}) AS p")
        assert not (refused and accepted)
        refused = refused or not accepted
    assert refused


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "step",
    [
        "LEFT({0} || {0}, 4)",
        "LEAST(GREATEST({0} + {0}, 0), 100)",
        "CASE WHEN {0} > 3 THEN {0} + 1 ELSE {0} END",
        "{0} + {0}",
        "MOD({0}, 7) + {0}",
        "{0} * 0.5 + {0} * 0.25",
    ],
)
@pytest.mark.parametrize("form", ["subqueries", "ctes"])
def test_expressions_that_double_from_level_to_level_are_refused_before_memory_runs_out(step: str, form: str) -> None:
    column = "s" if "LEFT" in step else "age"
    refused = False
    for levels in (1, 2, 4, 6, 8, 10, 12, 14, 18, 25, 40):
        inner, ctes = f"SELECT uid, {column} AS x FROM people", []
        for level in range(levels):
            if form == "ctes":
                ctes.append(f"c{level} AS ({inner})")
                inner = f"SELECT uid, {step.format('x')} AS x FROM c{level}"
            else:
                inner = f"SELECT uid, {step.format('x')} AS x FROM ({inner}) AS p"
        head = f"WITH {', '.join(ctes)} " if ctes else ""
        condition = "x = 'q'" if column == "s" else "x > 3"  # is pushed down, and so written out
        accepted = ran(f"{head}SELECT COUNT(*) FROM ({inner}) AS q WHERE {condition}")
        assert not (refused and accepted)
        refused = refused or not accepted
    assert refused


def test_many_uses_of_a_large_column_are_counted_each() -> None:
    inner = "SELECT uid, age AS x FROM people"
    for _ in range(6):
        inner = f"SELECT uid, LEAST(GREATEST(x + x, 0), 100) AS x FROM ({inner}) AS p"
    large = f"SELECT {', '.join(f'COUNT(x + {n}) FILTER (WHERE x > {n})' for n in range(90))} FROM ({inner}) AS q"
    assert ran(f"SELECT COUNT(x) FROM ({inner}) AS q")
    assert not ran(large)


def test_many_long_texts_of_one_row_are_counted_together() -> None:
    columns = ", ".join(f"s || s || s || '{number}' AS c{number}" for number in range(60))
    parts = " AND ".join(f"MAX(c{number}) > 'a'" for number in range(60))
    inner = f"SELECT uid FROM (SELECT uid, {columns} FROM people) AS p GROUP BY uid HAVING {parts}"
    assert not ran(f"SELECT COUNT(*) FROM ({inner}) AS q")
    assert ran("SELECT COUNT(*) FROM (SELECT uid, s || s AS a, s || '-' AS b FROM people) AS p WHERE a > b")


def test_columns_that_are_handed_on_do_not_count_as_computed() -> None:
    inner = "SELECT * FROM people"
    for _ in range(20):
        inner = f"SELECT * FROM ({inner}) AS p"
    sql = f"SELECT COUNT(DISTINCT s) FROM ({inner}) AS p"
    assert ran(sql)
    assert expanded_size(ask(sql, SCHEMA).aggregates[0].arguments[0].tree) == COLUMN_SIZE


def copied_nodes(monkeypatch: pytest.MonkeyPatch, sql: str, keys: dict[str, list[int]] | None = None) -> int:
    """Return how many nodes are copied to plan and explain a question: that is what its time goes into."""
    count, init = 0, exp.Expression.__init__

    def counted(node: exp.Expression, **arguments: object) -> None:
        nonlocal count
        count += 1
        init(node, **arguments)

    with monkeypatch.context() as patched:
        patched.setattr(exp.Expression, "__init__", counted)
        plan = plan_sql(sql, SCHEMA, Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings(keys=keys))
        assert len(explain(plan)) > 2
    return count


QUESTIONS: dict[str, Callable[[int], str]] = {
    "sums with learnt bounds": lambda n: (
        f"SELECT {', '.join(f'SUM(r * {i + 2}) AS a{i}' for i in range(n))} FROM people"
    ),
    "filters": lambda n: (
        f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE i = {i}) AS a{i}' for i in range(n))} FROM people"
    ),
    "branches": lambda n: f"SELECT SUM(CASE {' '.join(f'WHEN i = {k} THEN {k}' for k in range(n))} END) FROM people",
    "lists": lambda n: f"SELECT COUNT(*) FROM people WHERE i IN ({', '.join(map(str, range(n)))})",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_planning_takes_time_in_proportion_to_the_question(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    few, many = (copied_nodes(monkeypatch, QUESTIONS[name](count)) for count in (10, 40))
    assert many < 6 * few, (few, many)


def test_stated_keys_take_few_nodes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT i, COUNT(*) FROM people GROUP BY i"
    few, many = (copied_nodes(monkeypatch, sql, {"i": list(range(count))}) for count in (100, 1100))
    assert many - few < 1000 * 30
