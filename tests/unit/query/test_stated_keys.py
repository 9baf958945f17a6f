"""Values that a caller states for a key are held against its kind, as those are that an owner declares."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Column, Kind, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target, run
from tests.support.memory_engine import MemoryEngine
from tests.support.plans import plan_sql

TABLE = Table(
    "visits",
    (
        Column("uid", Kind.INTEGER, nullable=False),
        Column("seen", Kind.TIME),
        Column("day", Kind.DATE),
        Column("n", Kind.INTEGER),
    ),
    Unit("uid"),
)
NOON = datetime(2024, 3, 1, 12)


def planned(key: str, values: list[Any]) -> Plan:
    sql = f"SELECT {key}, COUNT(*) FROM visits GROUP BY {key}"
    return plan_sql(sql, Schema([TABLE]), Target(epsilon=1e6), BudgetTerms(), PlanSettings(keys={key: values}))


@pytest.mark.parametrize(
    "stated", [NOON, NOON.replace(tzinfo=UTC), NOON.replace(hour=14, tzinfo=timezone(timedelta(hours=2)))]
)
def test_a_time_with_a_zone_is_the_group_of_its_moment(stated: datetime) -> None:
    engine = MemoryEngine()
    engine.fill(TABLE, [(unit, NOON, NOON.date(), 1, unit) for unit in range(7)])
    plan = planned("seen", [stated])
    found = run(plan, engine, 1)
    assert found.keys == ([NOON],)
    assert found.measures[0].tolist() == [7]
    assert plan.canonical == planned("seen", [NOON]).canonical


@pytest.mark.parametrize(
    ("key", "value"), [("seen", date(2024, 3, 1)), ("day", NOON), ("day", "2024-03-01"), ("n", "1"), ("n", True)]
)
def test_a_value_of_another_kind_is_refused_before_anything_is_charged(key: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"{key} is "):
        planned(key, [value])
