"""Private SQL: a question becomes a priced plan, and after the ledger's permit an answer with noise.

    plan = compile_(sql, schema, Target(epsilon=0.5), Tariff())   # no data touched
    noisy = run(plan, engine, salt)                               # only with a permit for plan.event
    Release(plan, noisy, cost, permits).rows

The passes are one file each, in the order that `plan` names. Not here: who pays (the curator and the ledger), where the
rows are (engines).
"""

from tacit.query.allocation import Target, Tariff
from tacit.query.options import PlanOptions, QueryOptions, QuerySpec, RunOptions
from tacit.query.plan import Plan, PlanSettings, compile_, plan_of
from tacit.query.question import Question, ask
from tacit.query.release import Preview, Release
from tacit.query.release_plan import QueryRelease
from tacit.query.run import Noisy, run

__all__ = [
    "Noisy",
    "Plan",
    "PlanOptions",
    "PlanSettings",
    "Preview",
    "QueryOptions",
    "QueryRelease",
    "QuerySpec",
    "Question",
    "Release",
    "RunOptions",
    "Target",
    "Tariff",
    "ask",
    "compile_",
    "plan_of",
    "run",
]
