"""The check that generated questions about generated worlds give the same numbers as in DuckDB."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from sqlglot import exp

from tacit.engines.protocol import SCHEMA
from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.query import Plan
from tacit.query.expressions import Range
from tests.conformance.engines.conftest import Place
from tests.conformance.query.engines import by_key, opened, run, show
from tests.property.query.parts import database
from tests.property.query.questions import question
from tests.property.query.worlds import quoted, world
from tests.support.plans import plan_sql

SEEDS = (1, 2, 7)
QUESTIONS = 25
"""How many questions are asked in one world."""

LEARNED = Range(Fraction(-40), Fraction(60))


@cache
def shown(engine: str, seed: int) -> Place:
    """Return an engine that holds a world: rows as they were declared, and not one too many of any unit."""
    there, held, connection = opened(engine), world(seed), database()
    held.load(connection)
    tables = sorted(held.schema.tables.values(), key=lambda one: len(one.unit.through) if one.unit else 0)
    for table in tables:
        names = ", ".join(quoted(column.name) for column in table.columns)
        rows = connection.execute(f"SELECT {names} FROM {SCHEMA}.{quoted(table.name)}").fetchall()
        show(there, table, rows, held.schema)
    return there


def is_settled(plan: Plan) -> bool:
    """Whether it does not matter in which order rows stand that are alike in all columns: two windows may have two."""
    ordered = (exp.Lag, exp.Lead, exp.RowNumber)
    selects = [
        select
        for statement in (*plan.learning, *plan.statements)
        for select in statement.tree.find_all(exp.Select)
        if not select.find(exp.Subquery)
    ]
    return all(len(list(select.find_all(*ordered))) < 2 for select in selects)


def check_generated_questions_give_the_same_numbers(seed: int, engine: str) -> None:
    schema, compared = world(seed).schema, 0
    for number in range(QUESTIONS):
        asked = question(seed * 1_000 + number, schema)
        try:
            plan = plan_sql(asked.sql, schema, asked.target, asked.terms, asked.settings)
        except (QueryRefused, InvalidInput):
            continue
        if not is_settled(plan):
            continue
        ranged = plan.ranged([LEARNED] * len(plan.missing)) if plan.missing else plan
        for statement in (*plan.learning, *ranged.statements):
            mine, theirs = (run(shown(name, seed), statement.tree) for name in ("duckdb", engine))
            keys = [name for name in mine if name[0] == "k" or name == "cell"]
            assert by_key(mine, keys) == by_key(theirs, keys), asked.sql
        compared += 1
    assert compared > QUESTIONS / 3
