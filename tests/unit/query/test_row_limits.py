"""Time as an oracle: the rows of a chosen unit, multiplied by joins, unions and comparisons of each with each.

Whatever is accepted makes of a unit with many rows no more than the limits of `row_limits` allow; the rest is refused.
"""

from __future__ import annotations

import time

import pytest
from sqlglot import exp

from bench.queries.exact_results import exact
from tacit.accounting.conversions import Cost
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import InvalidInput, TooWide
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import ForeignKey, Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tacit.query.explain import explain
from tacit.query.release import card
from tacit.query.row_limits import AMPLIFICATION_MAX, JOINED_ROWS_PER_UNIT
from tests.support.memory_engine import MemoryEngine, named
from tests.support.plans import plan_sql

OWN = (Column("uid", Kind.INTEGER, nullable=False), Column("id", Kind.INTEGER, nullable=False))
X = Column("x", Kind.INTEGER, Bounds(0, 1_000_000))
VISITS = Table("visits", (*OWN, X), Unit("uid"), dataset="d")
LABS = Table("labs", (*OWN, X), Unit("uid"), dataset="d")
DRUGS = Table(
    "drugs", (Column("visit", Kind.INTEGER), X), Unit("uid", (ForeignKey("visit", "visits", "id"),)), dataset="d"
)
KEYED = Table("keyed", (*OWN, X), Unit("uid"), identified_by=("uid", "id"), dataset="d")
TEN = Table("ten", (*OWN, X), Unit("uid"), Limits(rows_per_unit=10), dataset="d")
MANY = Table("many", (*OWN, X), Unit("uid"), Limits(rows_per_unit=2_000), dataset="d")
ONE = Table("one", (*OWN, X), Unit("uid"), Limits(rows_per_unit=1), dataset="d")
PUBLIC = Table("pub", (Column("k", Kind.INTEGER), Column("y", Kind.INTEGER)))
SMALL = Table("small", (Column("k", Kind.INTEGER), Column("y", Kind.INTEGER)), rows=12)
NAMED = Table("named", (Column("k", Kind.INTEGER), Column("y", Kind.INTEGER)), identified_by=("k",), rows=10**7)
PRIVATE = (VISITS, LABS, DRUGS, KEYED, TEN, MANY, ONE)
SCHEMA = Schema([*PRIVATE, PUBLIC, SMALL, NAMED])
ROWS = 3_000


def planned(sql: str) -> Plan:
    return plan_sql(sql, SCHEMA, Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings())


def engine(rows: int = ROWS) -> MemoryEngine:
    """Return an engine in which unit 1 has many rows in every table, and units 2 to 50 have one each."""
    held = MemoryEngine()
    for table in PRIVATE:
        most = min(rows, table.limits.rows_per_unit or rows)
        key = "n AS visit" if table is DRUGS else "u AS uid, n AS id"
        held.connection.execute(
            f"CREATE OR REPLACE TABLE {named(table)} AS SELECT {key}, n % 7 AS x, u AS _unit, "
            f"CAST(CASE WHEN u = 1 THEN {most} ELSE 1 END AS BIGINT) AS _rows FROM ("
            f"SELECT 1 AS u, n FROM range({most}) AS r(n) UNION ALL SELECT n, n + {rows} FROM range(2, 51) AS r(n))"
        )
    for public, count in ((PUBLIC, 1_000), (SMALL, 12), (NAMED, 1_000)):
        held.connection.execute(
            f"CREATE TABLE {named(public)} AS SELECT n AS k, n % 5 AS y FROM range({count}) AS r(n)"
        )
    return held


def joined(plan: Plan) -> int:
    """Return how many rows unit 1 has in what a question is about."""
    tree = plan.question.scope.tree.select(exp.alias_(plan.question.scope.unit.copy(), "u"), copy=True)  # type: ignore[union-attr]
    sql = f"SELECT COUNT(*) AS n FROM ({tree.sql(dialect='duckdb')}) AS r WHERE u = 1"
    return int(engine().run(sql, {"salt": 3} if "$salt" in sql else None)["n"][0])


ACCEPTED = [
    ("visits v JOIN labs l ON v.uid = l.uid", 64 * 64),
    ("visits v LEFT JOIN labs l ON v.uid = l.uid", 64 * 64),
    ("visits v JOIN labs l USING (uid)", 64 * 64),
    ("visits v JOIN visits w ON v.uid = w.uid AND v.x < w.x", 64 * 64),
    ("visits v JOIN ten t ON v.uid = t.uid", 640),
    ("visits v JOIN one o ON v.uid = o.uid", ROWS),
    ("one o LEFT JOIN visits v ON v.uid = o.uid", ROWS),
    ("drugs d JOIN visits v ON d.visit = v.id", ROWS),
    ("visits v LEFT JOIN drugs d ON d.visit = v.id", 2 * ROWS),
    ("visits v JOIN keyed k ON v.uid = k.uid AND v.id = k.id", ROWS),
    ("keyed k JOIN visits v ON v.uid = k.uid AND v.id = k.id", ROWS),
    ("drugs d JOIN (SELECT uid, id, x FROM visits WHERE x > 2) AS v ON d.visit = v.id", ROWS),
    ("drugs d JOIN (SELECT visit, COUNT(*) AS n FROM drugs GROUP BY visit) AS s ON d.visit = s.visit", ROWS),
    ("visits v JOIN (SELECT uid, COUNT(*) AS n FROM labs GROUP BY uid) AS s ON v.uid = s.uid", ROWS),
    ("visits v JOIN labs l ON v.uid = l.uid JOIN keyed k ON k.uid = l.uid AND k.id = l.id", 64 * 64),
    ("visits v JOIN labs l ON v.uid = l.uid JOIN keyed k ON k.uid = l.uid", 64**3),
    ("visits v JOIN small s ON v.x = s.y", ROWS * 12),
    ("visits v JOIN named n ON v.x = n.k", ROWS),
    ("small s JOIN visits v ON v.x = s.y", ROWS * 12),
    ("(SELECT uid, x FROM visits UNION ALL SELECT uid, x FROM labs) AS u", 2 * ROWS),
]
REFUSED = [
    "visits a JOIN visits b ON a.uid = b.uid JOIN visits c ON a.uid = c.uid JOIN visits d ON a.uid = d.uid",
    "many a JOIN many b ON a.uid = b.uid",
    "visits v CROSS JOIN pub p CROSS JOIN pub q",
    "visits v JOIN named n ON v.x < n.k",
    "visits v JOIN labs l ON v.uid = l.uid CROSS JOIN pub p",
    "(SELECT a.uid FROM visits a JOIN labs b ON a.uid = b.uid) AS s JOIN visits c ON s.uid = c.uid CROSS JOIN small",
]


@pytest.mark.parametrize(("rows", "most"), ACCEPTED)
def test_a_unit_with_many_rows_has_no_more_of_them_after_joins_than_is_said(rows: str, most: int) -> None:
    begun = time.monotonic()
    plan = planned(f"SELECT COUNT(*) FROM {rows}")
    assert joined(plan) <= most
    assert time.monotonic() - begun < 20
    if most in (ROWS, 2 * ROWS):
        assert not plan.question.cuts
        assert joined(plan) >= ROWS / 2


@pytest.mark.parametrize("rows", REFUSED)
def test_rows_that_could_multiply_without_a_limit_are_refused_with_a_way_out(rows: str) -> None:
    with pytest.raises(TooWide, match="rows_per_unit"):
        planned(f"SELECT COUNT(*) FROM {rows}")


def test_a_public_table_whose_rows_nothing_identifies_is_named_with_the_command() -> None:
    with pytest.raises(TooWide, match=r"tacit table edit pub --identified-by COLUMN.*subquery.*rows_per_unit"):
        planned("SELECT COUNT(*) FROM visits v JOIN pub p ON v.x = p.k CROSS JOIN pub q")
    with pytest.raises(TooWide) as refused:
        planned("SELECT COUNT(*) FROM many a JOIN many b ON a.uid = b.uid")
    assert "identified" not in refused.value.message


def test_unions_of_unions_are_refused_before_they_grow_too_large() -> None:
    inner = "SELECT uid, x FROM visits"
    for levels in range(1, 16):
        inner = f"SELECT uid, x FROM ({inner} UNION ALL {inner}) AS u"
        if levels in (1, 4):
            plan = planned(f"SELECT COUNT(*) FROM ({inner}) AS p")
            assert plan.question.scope.fan_out == 2**levels <= AMPLIFICATION_MAX
        elif levels >= 12:
            with pytest.raises((TooWide, InvalidInput)):
                planned(f"SELECT COUNT(*) FROM ({inner}) AS p")


def test_what_is_left_out_is_said_in_the_preview_and_on_the_card() -> None:
    plan = planned("SELECT COUNT(*) FROM visits v JOIN labs l ON v.uid = l.uid")
    lines = [line.text for line in explain(plan) if line.label == "bounds"]
    assert f"of each unit at most {JOINED_ROWS_PER_UNIT} rows of visits are joined" in lines
    assert f"of each unit at most {JOINED_ROWS_PER_UNIT} rows of labs are joined" in lines
    assert "Of each unit at most 64 rows of visits are joined; the rest is left out." in card(plan, Cost(1.0, 0.0, 1.0))


def test_conditions_on_one_table_are_applied_before_its_rows_are_limited() -> None:
    held = engine()
    sql = "SELECT COUNT(*) FROM visits v JOIN labs l ON v.uid = l.uid AND l.id = 5 WHERE v.id < 10"
    statements = planned(sql).statements
    assert joined(planned(sql)) == 10
    found = [held.run(one.sql(), {"salt": 3}) for one in statements]
    assert exact(planned(sql), found)[()] == [4]


@pytest.mark.parametrize("counted", [True, False])
def test_which_rows_are_joined_depends_on_the_salt_and_on_the_unit_alone(counted: bool) -> None:
    plan = planned("SELECT COUNT(v.id) FROM visits v JOIN labs l ON v.uid = l.uid WHERE v.id >= 0")
    sums = set()
    for salt in (1, 1, 2, 3):
        held = engine()
        if not counted:
            held.connection.execute(f"UPDATE {named(VISITS)} SET _rows = NULL")
        tree = plan.question.scope.tree.select(exp.alias_(plan.question.scope.unit.copy(), "u"), "t2.*", copy=True)  # type: ignore[union-attr]
        sql = f"SELECT COUNT(*) AS n, SUM(hash(r) % 1000003) AS h FROM ({tree.sql(dialect='duckdb')}) AS r WHERE u = 1"
        found = held.run(sql, {"salt": salt})
        assert found["n"][0] == 64 * 64
        sums.add((salt, int(found["h"][0])))
    assert len(sums) == 3
    assert len({digest for _, digest in sums}) == 3


@pytest.mark.parametrize(
    ("condition", "limited"),
    [
        ("EXISTS (SELECT 1 FROM labs l WHERE l.uid = v.uid AND l.x > v.x)", True),
        ("EXISTS (SELECT 1 FROM labs l WHERE l.uid = v.uid AND l.x = v.x)", False),
        ("EXISTS (SELECT 1 FROM labs l WHERE l.uid = v.uid AND l.x > 3)", False),
        ("EXISTS (SELECT 1 FROM ten t WHERE t.uid = v.uid AND t.x > v.x)", False),
        ("NOT EXISTS (SELECT 1 FROM drugs d WHERE d.visit = v.id AND d.x <> v.x)", True),
        ("EXISTS (SELECT 1 FROM small s WHERE s.k = v.x AND s.y < v.x)", False),
        ("v.id IN (SELECT visit FROM drugs)", False),
    ],
)
def test_rows_that_are_compared_each_with_each_are_limited(condition: str, limited: bool) -> None:
    plan = planned(f"SELECT COUNT(*) FROM visits v WHERE {condition}")
    assert bool(plan.question.cuts) == limited
    assert all("compared by EXISTS" in cut for cut in plan.question.cuts)
    begun = time.monotonic()
    held = engine(20_000)
    for statement in plan.statements:
        held.run(statement.sql(), {"salt": 1} if statement.is_salted else None)
    assert time.monotonic() - begun < 20


def test_comparisons_inside_comparisons_are_counted_together() -> None:
    inner = "l0.x > 3"
    for level in (3, 2, 1):
        rows = f"SELECT 1 FROM labs l{level} WHERE l{level}.uid = l{level - 1}.uid AND l{level}.x > l{level - 1}.x"
        inner = f"EXISTS ({rows} AND {inner.replace('l0.x > 3', f'l{level}.x > 3')})"
        nested = inner.replace("l0.", "v.") if level == 1 else inner
    with pytest.raises(TooWide):
        planned(f"SELECT COUNT(*) FROM visits v WHERE {nested}")
    shallow = "EXISTS (SELECT 1 FROM labs b WHERE b.uid = a.uid AND b.x > a.x)"
    planned(f"SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM labs a WHERE a.uid = v.uid AND {shallow})")


def test_comparisons_with_a_large_public_table_are_refused() -> None:
    with pytest.raises(TooWide):
        planned("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM named n WHERE n.y = v.x AND n.k < v.x)")


def test_the_number_of_rows_is_stated_of_public_tables_alone() -> None:
    with pytest.raises(InvalidInput):
        Table("t", OWN, Unit("uid"), rows=5)
    with pytest.raises(InvalidInput):
        Table("t", OWN, rows=-1)
    assert Table("t", OWN, rows=0).rows == 0
