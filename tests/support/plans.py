"""Plans of queries in one call."""

from tacit.privacy.tables import Schema
from tacit.query import Plan, PlanSettings, Target, Tariff, ask, plan_of


def plan_sql(sql: str, schema: Schema, target: Target, tariff: Tariff, settings: PlanSettings | None = None) -> Plan:
    """Return the priced plan of a query, without touching data."""
    return plan_of(ask(sql, schema), schema, target, tariff, settings or PlanSettings())
