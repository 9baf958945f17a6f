"""Small invented tables for any schema, in a DuckDB that shows them as an engine does.

The rows are as bad as rows come: missing, beyond their bounds, no category, not a number; and the same in every run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final

from tacit.engines.protocol import ROWS, UNIT
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Schema, Table
from tests.support.memory_engine import MemoryEngine, named

UNITS: Final = 40
POOLS: Final[Mapping[str, list[str]]] = {
    "departments.code": ["cardiology", "oncology", "surgery", "pediatrics"],
    "drugs.name": ["aspirin", "morphine", "penicillin"],
    "prescriptions.drug": ["aspirin", "morphine", "penicillin"],
    "rates.currency": ["EUR", "USD", "CHF"],
    "states.state": ["A", "B", "C", "D"],
    "events.version": ["1.0", "1.1", "2.0"],
    "releases.version": ["1.0", "1.1", "2.0"],
}
TEXTS: Final = ["Basel", "Genova", "Lyon", "", " ", "it's", "Zürich", "a%b", "12", "2024-05-01"]


def filled(schema: Schema) -> MemoryEngine:
    """Return an engine that holds invented rows of every table of a schema."""
    engine = MemoryEngine()
    for table, rows in rows_of(schema):
        engine.fill(table, rows, _unit_kind(table, schema))
        if table.is_private:
            _forget_rows(engine, named(table))
    return engine


def rows_of(schema: Schema) -> Iterator[tuple[Table, list[list[Any]]]]:
    """Yield every table of a schema with invented rows, the unit last; those that others lead to come first."""
    ids: dict[str, list[tuple[Any, Any]]] = {}
    for table in sorted(schema.tables.values(), key=lambda one: bool(one.unit and one.unit.through)):
        rows = _rows(table, ids)
        names = [column.name for column in table.columns]
        ids[table.name] = [(row[names.index("id")], row[-1]) for row in rows] if "id" in names else []
        yield table, rows


def _forget_rows(engine: MemoryEngine, place: str) -> None:
    """Make as if the engine had not counted the rows of some units, as it may."""
    engine.connection.execute(f"UPDATE {place} SET {ROWS} = NULL WHERE hash({UNIT}) % 5 = 0")


def types(engine: MemoryEngine, sql: str, parameters: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the types of the columns of a statement."""
    cursor = engine.connection.execute(sql, dict(parameters or {}))
    return {str(column[0]): str(column[1]) for column in cursor.description or ()}


def _rows(table: Table, ids: Mapping[str, list[tuple[Any, Any]]]) -> list[list[Any]]:
    draw = random.Random(table.name)
    if table.unit is None:
        pool = next(
            (POOLS[name] for name in (f"{table.name}.{one.name}" for one in table.columns) if name in POOLS), []
        )
        return [[_value(table, one, draw, row) for one in table.columns] for row in range(max(len(pool), 3))]
    found = []
    for number in range(1, UNITS + 1):
        most = min(table.limits.rows_per_unit or 8, 8)
        for _ in range(draw.randint(1, most)):
            row = [_value(table, one, draw, len(found)) for one in table.columns]
            unit: Any = number
            if table.unit.through:
                step = table.unit.through[0]
                key, unit = draw.choice(ids[step.target_table])
                row[_place(table, step.column)] = key
            else:
                column = table.column(table.unit.column)
                unit = f"c{number}" if column.kind is Kind.TEXT else number
                row[_place(table, column.name)] = unit
            found.append([*row, unit])
    return found


def _value(table: Table, column: Column, draw: random.Random, row: int) -> Any:
    pool = POOLS.get(f"{table.name}.{column.name}")
    if pool is not None:
        return pool[row % len(pool)] if table.unit is None else draw.choice(pool)
    if column.name == "id":
        return row + 1
    if column.nullable and draw.random() < 0.1:
        return None
    if isinstance(column.facts, Categories) and (draw.random() < 0.9 or not column.nullable):
        return draw.choice(column.facts.values)
    if isinstance(column.facts, Bounds):
        return _bounded(column, draw)
    return {
        Kind.BOOLEAN: draw.random() < 0.4,
        Kind.INTEGER: draw.choice([draw.randint(-50, 50), 2**62, -(2**63)]),
        Kind.REAL: draw.choice([draw.uniform(-9, 9), math.nan, math.inf]),
        Kind.TEXT: draw.choice(TEXTS),
        Kind.DATE: date(2024, 1, 1) + timedelta(days=draw.randint(0, 300)),
        Kind.TIME: datetime(2024, 1, 1) + timedelta(seconds=draw.randint(0, 10**7)),
    }[column.kind]


def _bounded(column: Column, draw: random.Random) -> Any:
    """Return a value that lies inside of the bounds nine times of ten."""
    assert isinstance(column.facts, Bounds)
    low: Any = column.facts.lower
    high: Any = column.facts.upper
    if column.kind is Kind.DATE:
        return low + timedelta(days=draw.randint(-20, (high - low).days + 20))
    if column.kind is Kind.TIME:
        start = datetime(low.year, low.month, low.day)
        return start + timedelta(seconds=draw.randint(-(10**6), (high - low).days * 86_400 + 10**6))
    width = float(high - low)
    value = draw.uniform(float(low) - width / 20, float(high) + width / 20)
    if column.kind is Kind.REAL:
        return math.nan if draw.random() < 0.02 else value
    return round(value)


def _unit_kind(table: Table, schema: Schema) -> Kind:
    if table.unit is None:
        return Kind.INTEGER
    owner = schema.table(table.unit.through[-1].target_table) if table.unit.through else table
    return owner.column(table.unit.column).kind


def _place(table: Table, name: str) -> int:
    return [column.name for column in table.columns].index(name)
