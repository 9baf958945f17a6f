"""A plan may be used by several at once: nothing that is done with one changes it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tacit
from tacit.engines.dialects import write_duckdb
from tacit.query import Plan, PlanSettings, QuerySpec, Target
from tacit.query.explain import explain

QUESTIONS = (
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a, MEDIAN(age) AS m FROM visits GROUP BY sex HAVING COUNT(*) > 3",
    "SELECT AVG(t) AS a FROM (SELECT patient, SUM(age) AS t FROM visits GROUP BY patient) AS s",
    "WITH old AS (SELECT * FROM visits WHERE age > 40) SELECT COUNT(DISTINCT patient) AS n FROM old WHERE sex IN ('F')",
)


def trees(plan: Plan) -> list[str]:
    return [*(repr(one.tree) for one in (*plan.learning, *plan.statements)), repr(plan.question)]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_writing_running_and_planning_anew_leave_a_plan_as_it_was(sql: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"patient": range(90), "sex": ["F", "M"] * 45, "age": [row % 90 for row in range(90)]})
    with tacit.Curator(tmp_path) as curator:
        columns = {"age": tacit.Bounds(0, 90), "sex": tacit.Categories(["F", "M"])}
        curator.add_table("visits", frame, unit="patient", columns=columns)
        curator.set_budget("visits", epsilon=3.0, delta=1e-6)
        asked = QuerySpec(sql, Target(epsilon=0.5), PlanSettings())
        plan = curator.queries().plan(asked)
        before = trees(plan)
        for statement in (*plan.learning, *plan.statements):
            statement.sql(write_duckdb)
        explain(plan)
        curator.queries().release(asked, plan).intervals(0.95)
        curator.queries().plan(QuerySpec(sql, Target(epsilon=0.25), PlanSettings()))
        assert curator.queries().plan(asked) is plan
        assert trees(plan) == before
