"""Subqueries in conditions: the tables that they read are paid for, prepared and watched like those in FROM."""

from __future__ import annotations

from typing import Final

import pytest

from tacit.curator.catalog import Catalog
from tacit.query import BudgetTerms, Target, ask
from tests.support.plans import plan_sql
from tests.unit.query.fixtures import FOLDER

BANK: Final = Catalog.open(FOLDER / "bank").schema
PAID: Final = "SELECT customer_id FROM payments WHERE amount > 10"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM customers WHERE customer_id IN ({PAID})",
        f"SELECT COUNT(*) FROM customers WHERE customer_id NOT IN ({PAID})",
        "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM payments p WHERE p.customer_id = c.customer_id)",
        "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM payments p "
        "WHERE p.customer_id = c.customer_id AND p.amount > c.income)",
        f"SELECT COUNT(*) FILTER (WHERE customer_id IN ({PAID})) FROM customers",
        f"SELECT COUNT(*) FROM (SELECT * FROM customers WHERE customer_id IN ({PAID}))",
        f"SELECT AVG(n) FROM (SELECT customer_id, LEAST(COUNT(*) FILTER (WHERE customer_id IN ({PAID})), 5) AS n "
        "FROM customers GROUP BY customer_id)",
    ],
)
def test_every_budget_that_a_condition_reads_pays(sql: str) -> None:
    assert ask(sql, BANK).datasets == {"accounts", "cards"}
    plan = plan_sql(sql, BANK, Target(epsilon=1), BudgetTerms())
    assert plan.datasets == ("accounts", "cards")
    assert plan.tables == ("customers", "payments")


def test_a_public_table_in_a_condition_is_made_ready_and_pays_nothing() -> None:
    plan = plan_sql(
        "SELECT COUNT(*) FROM payments WHERE currency IN (SELECT currency FROM rates)",
        BANK,
        Target(epsilon=1),
        BudgetTerms(),
    )
    assert plan.tables == ("payments", "rates")
    assert plan.datasets == ("cards",)


def test_a_common_table_expression_that_nothing_uses_costs_nothing() -> None:
    question = ask(f"WITH paid AS ({PAID}) SELECT COUNT(*) FROM customers", BANK)
    assert [table.name for table in question.records] == ["customers"]
    assert question.datasets == {"accounts"}
