"""Equal digests mean equal releases: the same measures in the same places, with the same noise.

An answer that is stored under the digest of one plan is repeated for every plan with that digest.
"""

from __future__ import annotations

import random
from typing import Any

from tacit.privacy import Bounds, Categories, Unit
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Relation
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tests.support.plans import plan_sql

COLUMNS = (
    Column("id", Kind.INTEGER, nullable=False),
    Column("f", Kind.BOOLEAN),
    Column("g", Kind.INTEGER, Categories([1, 2])),
    Column("x", Kind.INTEGER, Bounds(0, 9)),
    Column("y", Kind.REAL, Bounds(0, 9)),
    Column("z", Kind.REAL),
    Column("s", Kind.TEXT),
)
AGGREGATES = (
    *("COUNT(*)", "COUNT(DISTINCT x)", "COUNT(DISTINCT y)", "COUNT(DISTINCT s)", "COUNT(DISTINCT id)", "COUNT(x)"),
    *("SUM(x)", "SUM(y)", "AVG(x)", "AVG(y)", "MEDIAN(x)", "MAX(x)", "MODE(g)", "SUM(z)", "AVG(z)"),
    *("COUNT(x) FILTER (WHERE f)", "COUNT(*) FILTER (WHERE NOT f)", "COUNT(DISTINCT s) FILTER (WHERE f)"),
)
GROUPS = ("", " GROUP BY g", " GROUP BY f, g", " GROUP BY ROLLUP(g, f)", " GROUP BY GROUPING SETS ((g), (f))")


def signature(plan: Plan) -> Any:
    """Return what a plan releases, in the order of its numbers."""
    measures = [
        (one.how, one.tree and one.tree.sql("duckdb"), one.shift, one.condition and one.condition.text)
        for one in plan.measures
    ]
    keys = [(key.text, domain) for key, domain in zip(plan.question.keys, plan.domains or (), strict=False)]
    sets = plan.question.sets if plan.sets_apart else None
    return repr((measures, [one.key for one in plan.choices], keys, sets, plan.bounding, plan.price))


def test_plans_with_equal_digests_release_the_same_numbers_in_the_same_places() -> None:
    draw, found, planned = random.Random(3), {}, 0
    for _ in range(120):
        limit = draw.choice([None, 1, 2])
        table = Table("t", COLUMNS, Unit("id"), Limits(rows_per_unit=limit), dataset="p")
        aggregates, groups = draw.sample(AGGREGATES, draw.randint(1, 3)), draw.choice(GROUPS)
        terms = BudgetTerms(draw.choice(list(Relation)), 0.0)
        for _ in range(2):
            draw.shuffle(aggregates)
            sql = f"SELECT {', '.join(aggregates)} FROM t{groups}"
            try:
                plan = plan_sql(sql, Schema([table]), Target(epsilon=1.0), terms, PlanSettings())
            except TacitError:
                continue
            planned += 1
            known, before = found.setdefault((limit, plan.canonical), (signature(plan), sql))
            assert known == signature(plan), f"one digest for {before} and {sql}"
    assert planned > 120
