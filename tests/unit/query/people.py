"""A table of people with a column of every kind, engines that hold rows of it, and plans of questions about it."""

from __future__ import annotations

import math
from typing import Any

from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Relation, Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tests.support.memory_engine import MemoryEngine
from tests.support.plans import plan_sql

SALT = 5
PEOPLE = Table(
    "people",
    (
        Column("uid", Kind.INTEGER),
        Column("i", Kind.INTEGER),
        Column("r", Kind.REAL),
        Column("s", Kind.TEXT),
        Column("b", Kind.BOOLEAN),
        Column("d", Kind.DATE),
        Column("t", Kind.TIME),
        Column("age", Kind.INTEGER, Bounds(0, 100)),
        Column("kg", Kind.REAL, Bounds(-1e9, 1e9)),
        Column("sex", Kind.TEXT, Categories(["F", "M"])),
    ),
    Unit("uid"),
)
FEW = Table("few", PEOPLE.columns, Unit("uid"), Limits(rows_per_unit=2))
CITIES = Table("cities", (Column("id", Kind.INTEGER), Column("name", Kind.TEXT)), identified_by=("id",))
SCHEMA = Schema([PEOPLE, FEW, CITIES])

Row = tuple[Any, ...]


def person(unit: int, **values: Any) -> Row:
    """Return a row of a person: what is not said is a harmless value."""
    known = {"uid": unit, "i": 1, "r": 1.0, "s": "a", "b": True, "d": "2024-01-01", "t": "2024-01-01 10:00:00"}
    known |= {"age": 40, "kg": 70.0, "sex": "F"}
    return (*(values.get(column.name, known[column.name]) for column in PEOPLE.columns), unit)


def engine(*rows: Row, table: Table = PEOPLE) -> MemoryEngine:
    """Return an engine that holds rows of people."""
    held = MemoryEngine()
    for one in (PEOPLE, FEW, CITIES):
        held.fill(one, rows if one is table else [])
    return held


def planned(sql: str, *, delta: float = 1e-6, epsilon: float = 1.0, **settings: Any) -> Plan:
    """Return the plan of a question."""
    return plan_sql(
        sql, SCHEMA, Target(epsilon=epsilon), BudgetTerms(Relation.ADD_REMOVE, delta), PlanSettings(**settings)
    )


POISON = person(
    7,
    i=-(2**63),
    r=math.nan,
    s="\\(9e999%'\u0130",
    b=None,
    d="infinity",
    t="-infinity",
    age=10**9,
    kg=-math.inf,
    sex="%",
)
