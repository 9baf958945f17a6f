"""Plans of queries in one call."""

from tacit.privacy.tables import Schema
from tacit.query import BudgetTerms, Plan, PlanSettings, Target, ask, plan_of


def plan_sql(
    sql: str, schema: Schema, target: Target, terms: BudgetTerms, settings: PlanSettings | None = None
) -> Plan:
    """Return the priced plan of a query, without touching data."""
    return plan_of(ask(sql, schema), schema, target, terms, settings or PlanSettings())
