"""Checks that an engine gives the same exact numbers as DuckDB, with their rows and questions."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from functools import cache
from typing import Any

from bench.queries.exact_results import exact
from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tacit.query.expressions import Range
from tests.conformance.engines.conftest import Place
from tests.conformance.query.engines import by_key, place, run
from tests.support.plans import plan_sql
from tests.unit.query.fixtures import FOLDER, cases

CASES = [
    case
    for path in sorted(FOLDER.glob("*.sql"))
    if path.stem != "equal_questions"
    for case in cases(path)[1]
    if not case.expected[0].startswith(">> refused")
]
LEARNED = Range(Fraction(-40), Fraction(60))


def numbers(plan: Plan, there: Place) -> list[Any]:
    """Return all that a plan asks of an engine: learnt bounds, sums, and the cells of choices."""
    found: list[Any] = [by_key(run(there, one.tree), ["cell"]) for one in plan.learning]
    ranged = plan.ranged([LEARNED] * len(plan.missing)) if plan.missing else plan
    answers = [run(there, one.tree) for one in ranged.statements]
    found += [by_key(columns, [name for name in columns if name[0] == "k" or name == "cell"]) for columns in answers]
    if not ranged.choices:
        found.append(exact(ranged, answers))
    return found


ODD = {
    "u": "BIGINT",
    "whole": "BIGINT",
    "price": "DECIMAL(12, 3)",
    "size": "DOUBLE",
    "word": "VARCHAR",
    "yes": "BOOLEAN",
    "day": "DATE",
    "seen": "TIMESTAMP",
    "zoned": "TIMESTAMP WITH TIME ZONE",
}
KINDS = (Kind.INTEGER, Kind.INTEGER, Kind.REAL, Kind.REAL, Kind.TEXT, Kind.BOOLEAN, Kind.DATE, Kind.TIME, Kind.TIME)
FACTS = {"price": Bounds(0, 100), "size": Bounds(-1000, 1000)}
TABLE = Table(
    "odd",
    tuple(Column(name, kind, FACTS.get(name)) for name, kind in zip(ODD, KINDS, strict=True)),
    Unit("u"),
)
WHOLE = [2**63 - 1, -(2**63), 2**62, -(2**62) - 1, 0, -1, 7, None]
PRICES = [1.5, 99.999, 100.001, -0.001, 0.125, None]
SIZES = [0.5, -0.5, 2.5, 1e-320, 5e-324, -1e308, math.inf, -math.inf, math.nan, 999.9999999999999, -0.0, None]
WORDS = [
    "Zürich",
    "zurich",
    "ß",
    "ẞ",
    "İ",
    "naïve",
    "e\u0301",
    "é",
    "🦊",
    "a'b",
    'a"b',
    "a\\b",
    "%",
    "_",
    "",
    " ",
    "\u00a0x",
    None,
]
DAYS = [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(1969, 12, 31), None]
TIMES = [
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    None,
]
ZONED = [datetime(2024, 3, 31, 1, 30, tzinfo=timezone(timedelta(hours=hours))) for hours in (-8, 0, 2, 14)]


def odd_rows() -> list[list[Any]]:
    """Return rows in which every value stands next to others."""
    lists: list[list[Any]] = [WHOLE, PRICES, SIZES, WORDS, [True, False, None], DAYS, TIMES, [*ZONED, None]]
    return [
        [row // 3, *(values[(row * (place + 3) + row // 7) % len(values)] for place, values in enumerate(lists))]
        for row in range(300)
    ]


QUESTIONS = """
SELECT word, COUNT(*), SUM(size), AVG(price) FROM odd GROUP BY word
SELECT UPPER(word) AS w, COUNT(*) FROM odd GROUP BY w
SELECT LOWER(word) AS w, LENGTH(word) AS n, COUNT(whole) FROM odd GROUP BY w, n
SELECT COUNT(*), COUNT(DISTINCT word), COUNT(DISTINCT whole), COUNT(DISTINCT day), COUNT(DISTINCT seen) FROM odd
SELECT SUM(LEAST(GREATEST(whole, -1000), 1000)), VAR_SAMP(size), CORR(price, size), STDDEV(price) FROM odd
SELECT whole, COUNT(*) FROM odd GROUP BY whole
SELECT size, COUNT(*) FROM odd GROUP BY size
SELECT day, COUNT(*) FROM odd GROUP BY day
SELECT seen, COUNT(*) FROM odd GROUP BY seen
SELECT zoned, COUNT(*) FROM odd GROUP BY zoned
SELECT DATE_TRUNC('hour', zoned) AS h, EXTRACT(dow FROM zoned) AS d, COUNT(*) FROM odd GROUP BY h, d
SELECT yes, MEDIAN(size), MODE(yes), QUANTILE(price, 0.9) FROM odd GROUP BY yes
SELECT SUM(whole) FROM odd
SELECT AVG(whole // 7), MEDIAN(whole) FROM odd WHERE whole IS NOT NULL
SELECT word || '-' || word AS w, COUNT(*) FROM odd WHERE word ILIKE '%i%' OR word > 'a' GROUP BY w
SELECT CAST(size AS VARCHAR) AS t, COUNT(*) FROM odd GROUP BY t
SELECT CAST(seen AS VARCHAR) AS t, COUNT(*) FROM odd GROUP BY t
SELECT COUNT(*) FROM (SELECT u, SUM(whole) AS s, MAX(word) AS w FROM odd GROUP BY u) WHERE s > 0 AND w > 'a'
SELECT m, COUNT(*) FROM (SELECT u, MEDIAN(size) AS m FROM odd GROUP BY u) GROUP BY m
SELECT s, COUNT(*) FROM (SELECT u, SUM(whole) AS s, AVG(size) AS a FROM odd GROUP BY u) GROUP BY s
SELECT a, COUNT(*) FROM (SELECT u, AVG(size) AS a FROM odd GROUP BY u) GROUP BY a
SELECT n, COUNT(*) FROM (SELECT COUNT(DISTINCT word) OVER (PARTITION BY u) AS n FROM odd) GROUP BY n
SELECT m, COUNT(*) FROM (SELECT MEDIAN(size) OVER (PARTITION BY u) AS m FROM odd) GROUP BY m
SELECT w, COUNT(*) FROM (SELECT LAG(word) OVER (PARTITION BY u ORDER BY size DESC) AS w FROM odd) GROUP BY w
""".strip().splitlines()


def asked(sql: str, table: Table = TABLE, **limits: int) -> Plan:
    return plan_sql(sql, Schema([table]), Target(epsilon=1.0), BudgetTerms(delta=1e-6), PlanSettings(Limits(**limits)))


def shown(engine: str, table: Table, types: dict[str, str], rows: list[list[Any]]) -> Place:
    there = place(engine)
    there.engine.register(table, there.put(table.name, types, rows), {})
    return there


@cache
def odd(engine: str) -> Place:
    return shown(engine, TABLE, ODD, odd_rows())


def check_odd_values_give_the_same_numbers(sql: str, engine: str) -> None:
    plan = asked(sql)
    found = numbers(plan, odd(engine))
    assert found == numbers(plan, odd("duckdb"))
    assert any(found)


def check_an_empty_table_gives_zeros(engine: str) -> None:
    table = replace(TABLE, name="nobody")
    places = [shown(name, table, ODD, []) for name in (engine, "duckdb")]
    for sql in ("SELECT COUNT(*), SUM(size) FROM nobody", "SELECT word, COUNT(*) FROM nobody GROUP BY word"):
        assert numbers(asked(sql, table), places[0]) == numbers(asked(sql, table), places[1])


def check_a_hundred_thousand_groups_are_the_same(engine: str) -> None:
    table = Table("many", (Column("u", Kind.INTEGER), Column("k", Kind.INTEGER)), Unit("u"))
    rows = [[number % 30_011, number] for number in range(100_000)]
    plan = asked("SELECT k, COUNT(*) FROM many GROUP BY k", table, groups_per_unit=4, rows_per_group=1)
    found = numbers(plan, shown(engine, table, {"u": "BIGINT", "k": "BIGINT"}, rows))
    assert found == numbers(plan, shown("duckdb", table, {"u": "BIGINT", "k": "BIGINT"}, rows))
    assert len(found[0]) == 100_000


def check_a_cut_keeps_exactly_the_limit_of_every_unit(engine: str) -> None:
    table = Table("cut", (Column("u", Kind.TEXT), Column("k", Kind.INTEGER), Column("w", Kind.TEXT)), Unit("u"))
    rows = [[f"unit {unit}", key % 11 or None, str(key % 3)] for unit in range(1, 20) for key in range(unit)]
    there = shown(engine, table, {"u": "VARCHAR", "k": "BIGINT", "w": "VARCHAR"}, rows)
    plan = asked("SELECT k, COUNT(*) FROM cut GROUP BY k", table, groups_per_unit=3, rows_per_group=2)
    (statement,) = plan.statements
    counts = {}
    for salt in range(8):
        columns = there.engine.run(statement.sql(there.engine.write), {"salt": salt})
        counts[salt] = {key: values[0] for key, values in by_key(columns, ["k0"]).items()}
        per_unit = [sum(1 for _ in {row[1] for row in rows if row[0] == f"unit {unit}"}) for unit in range(1, 20)]
        units = by_key(columns, ["k0"])
        assert sum(values[-1] for values in units.values()) == sum(min(3, groups) for groups in per_unit)
    assert len({str(sorted(one.items(), key=repr)) for one in counts.values()}) > 4  # the salt decides which
