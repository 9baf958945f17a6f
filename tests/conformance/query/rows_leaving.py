"""The check that an engine returns a row a group, with its questions."""

from __future__ import annotations

from typing import Any

from tacit.engines import Columns
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, PlanSettings, Target, run
from tests.conformance.engines.conftest import Place
from tests.conformance.query.engines import place
from tests.support.plans import plan_sql

TABLE = Table(
    "people",
    (
        Column("who", Kind.TEXT),
        Column("city", Kind.TEXT),
        Column("sex", Kind.TEXT, Categories(["F", "M"])),
        Column("age", Kind.INTEGER, Bounds(0, 120)),
        Column("score", Kind.REAL),
    ),
    Unit("who"),
)
TYPES = {"who": "VARCHAR", "city": "VARCHAR", "sex": "VARCHAR", "age": "BIGINT", "score": "DOUBLE"}
CITIES, UNITS = 5, 300
ROWS = [
    [f"person {unit}", f"city {(unit + row) % CITIES}", "FM"[unit % 2], unit % 100, unit / 7]
    for unit in range(UNITS)
    for row in range(4)
]
QUESTIONS = {
    "SELECT COUNT(*) FROM people": 1,
    "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex": 2,
    "SELECT city, COUNT(*), SUM(age) FROM people GROUP BY city": CITIES,
    "SELECT city, COUNT(DISTINCT who) FROM people GROUP BY city": CITIES,
    "SELECT city, sex, COUNT(DISTINCT age) FROM people GROUP BY city, sex": 2 * CITIES,
    "SELECT COUNT(*) FROM (SELECT who, MAX(age) AS oldest FROM people GROUP BY who) WHERE oldest > 30": 1,
    "SELECT sex, MODE(sex) FROM people GROUP BY sex": 2,
    "SELECT MEDIAN(age) FROM people": 121,
    "SELECT SUM(score) FROM people": 129,
}
"""Each question with the number of groups, or for a choice of groups and cells."""


class Counting:
    """An engine that notes what its statements return."""

    def __init__(self, there: Place) -> None:
        self._there, self.answers = there, list[Columns]()
        self.write = there.engine.write

    def run(self, sql: str, parameters: Any = None, **options: Any) -> Columns:
        self.answers.append(self._there.engine.run(sql, parameters, **options))
        return self.answers[-1]


def check_as_many_rows_leave_the_engine_as_there_are_groups(sql: str, engine: str) -> None:
    there = place(engine)
    there.engine.register(TABLE, there.put("people", TYPES, ROWS), {})
    settings = PlanSettings(Limits(groups_per_unit=2, rows_per_group=2))
    plan = plan_sql(sql, Schema([TABLE]), Target(epsilon=1.0), BudgetTerms(delta=1e-6), settings)
    counting = Counting(there)
    run(plan, counting, 7)  # type: ignore[arg-type]
    assert counting.answers
    for columns in counting.answers:
        assert all(len(values) <= QUESTIONS[sql] for values in columns.values())
        assert not any("person" in str(value) for values in columns.values() for value in values)
        assert set(columns) <= {"k0", "k1", "cell", "w", "units", "m0", "m1", "m2"}
