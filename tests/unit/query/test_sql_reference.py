"""The reference of SQL says what is true: what it shows is answered, and nothing that is answered is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from docs.sql_reference import AGGREGATES, CLAUSES, Clause, aggregate_names, sql_page
from tacit.curator.catalog import Catalog
from tacit.query import BudgetTerms, Target
from tacit.query.scalars import FUNCTION_NAMES
from tests.support.plans import plan_sql

SCHEMA: Final = Catalog.open(Path(__file__).parents[2] / "fixtures" / "query" / "clinic").schema


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.name)
def test_an_example_of_a_clause_is_answered(clause: Clause) -> None:
    plan = plan_sql(clause.example, SCHEMA, Target(epsilon=1), BudgetTerms(delta=1e-6))
    assert plan.statements


def test_every_aggregate_is_described() -> None:
    assert aggregate_names() == list(AGGREGATES)


@pytest.mark.parametrize("name", FUNCTION_NAMES)
def test_every_function_is_listed(name: str) -> None:
    assert f"`{name}`" in sql_page("")
