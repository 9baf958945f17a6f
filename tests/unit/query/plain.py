"""What the database itself answers to a question, to be compared with an answer almost without noise.

A private answer shows groups that are empty and leaves out those that are not public, so only groups that are in both
are compared; where the database says NULL of an empty sum, tacit says 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final

from sqlglot import exp

from tacit.engines.protocol import SCHEMA
from tacit.privacy.tables import Kind
from tacit.query import Plan
from tests.support.memory_engine import MemoryEngine

CLOSE: Final = 2e-3
"""How far apart two numbers may be, for values are put on a grid before they are added up."""


def answered(engine: MemoryEngine, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows that the database answers by itself."""
    engine.connection.execute(f"SET search_path = '{SCHEMA}'")
    return engine.connection.execute(sql).fetchall()


def differences(plan: Plan, rows: Sequence[dict[str, Any]], plain: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return how an answer differs from that of the database, in groups that are in both."""
    keys = _key_places(plan)
    mine: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        values = tuple(_normal(value) for value in row.values())
        mine.setdefault(tuple(values[place] for place in keys), []).append(values)
    found, compared = [], 0
    for row in plain:
        wanted = tuple(_normal(value) for value in row)
        candidates = mine.get(tuple(wanted[place] for place in keys), [])
        compared += bool(candidates)
        if candidates and not any(_alike(one, wanted) for one in candidates):
            found.append(f"{candidates[0]} here, {wanted} there")
    if plain and not compared:
        found.append(f"nothing in common: {list(mine)[:3]} here, {list(plain)[:3]} there")
    return found


def _key_places(plan: Plan) -> list[int]:
    """Return which columns of the answer say what a row is about."""
    question = plan.question
    if question.after:
        return [place for place, field in enumerate(question.fields) if field.kind in (Kind.TEXT, Kind.DATE, Kind.TIME)]
    named = [{one.name for one in output.value.tree.find_all(exp.Column)} for output in question.outputs]
    return [place for place, names in enumerate(named) if not any(name.startswith("a") for name in names)]


def _normal(value: Any) -> Any:
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return value.date()
    return value


def _alike(mine: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return len(mine) == len(theirs) and all(map(_close, mine, theirs))


def _close(mine: Any, theirs: Any) -> bool:
    if theirs is None or mine == theirs:
        return True
    if mine is None or isinstance(mine, str | bool | date):
        return False
    return abs(float(mine) - float(theirs)) <= CLOSE * max(1.0, abs(float(mine)), abs(float(theirs)))
