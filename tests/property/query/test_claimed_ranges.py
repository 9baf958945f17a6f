"""A wrong claim about a computed value does not reach the sums: they are clamped to the range that the noise is for."""

from __future__ import annotations

from datetime import datetime

import pytest

from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Target, per_unit
from tacit.query.expressions import Range
from tacit.query.scalars import dates
from tests.support.memory_engine import MemoryEngine
from tests.support.plans import plan_sql

TABLE = Table(
    "v",
    (Column("uid", Kind.INTEGER), Column("t", Kind.TIME), Column("a", Kind.INTEGER, Bounds(0, 2**53 - 3))),
    Unit("uid"),
    Limits(rows_per_unit=1),
)
MONTHS = "LEAST(GREATEST(t, TIMESTAMP '2021-01-30 23:59:59'), TIMESTAMP '2021-01-31 23:59:59') + INTERVAL '1' MONTH"
SECONDS = f"DATE_DIFF('second', TIMESTAMP '2021-02-28 23:59:59', {MONTHS})"
TRIPLED = "(SELECT uid, a FROM v UNION ALL SELECT uid, a FROM v UNION ALL SELECT uid, a FROM v) AS u"
OWN = f"(SELECT uid, SUM(a) AS m FROM {TRIPLED} GROUP BY uid) AS q"
INVERSE = "CAST(1e0 / (m - 27021597764222968 + 1e-9) AS BIGINT)"
QUESTIONS = {
    "a sum of whole numbers": f"SELECT SUM({SECONDS}) FROM v",
    "an average": f"SELECT AVG({SECONDS}) FROM v",
    "a sum through a subquery": f"SELECT SUM(s) FROM (SELECT uid, {SECONDS} AS s FROM v) AS q",
    "a sum of reals through a subquery": "SELECT SUM(s) FROM"
    f" (SELECT uid, EXTRACT(epoch FROM {MONTHS}) - 1614556799 AS s FROM v) AS q",
    "a unit's own sum": f"SELECT SUM({INVERSE}) FROM {OWN}",
    "a unit's own sum in steps of several": f"SELECT SUM({INVERSE} * 5000000000) FROM {OWN}",
}


@pytest.mark.parametrize("sql", QUESTIONS.values(), ids=QUESTIONS)
def test_a_sum_moves_by_no_more_than_the_noise_is_for_though_a_range_is_wrong(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        dates,
        "_months_range",
        lambda range_, months: Range.of(
            *(dates.months_later(dates.moment_at(one), months) for one in (range_.lower, range_.upper))
        ),
    )
    monkeypatch.setattr(per_unit, "outward", Range)
    plan = plan_sql(sql, Schema([TABLE]), Target(epsilon=1.0), BudgetTerms(delta=1e-6))
    found = []
    for units in (range(9), range(8)):
        engine = MemoryEngine()
        engine.fill(TABLE, [(unit, datetime(2021, 1, 31), 2**53 - 3, unit) for unit in units])
        [statement] = plan.statements
        salted = {"salt": 7} if statement.is_salted else None
        found.append(engine.run(statement.sql(), salted))
    for place, noise in enumerate(plan.price.noises):
        moved = abs(int(found[0][f"m{place}"][0]) - int(found[1][f"m{place}"][0]))
        assert moved <= noise.sensitivity, plan.measures[place]
