"""Private SQL: a question becomes a priced plan, and with the ledger's permit an answer with noise.

    question = ask(sql, schema)                                   # no data touched
    plan = plan_of(question, schema, Target(epsilon=0.5), BudgetTerms(), PlanSettings())
    noisy = run(plan, engine, salt)                               # only with a permit for plan.event
    Release(plan, noisy, cost, permits).rows

The passes are one file each, and `planner` calls them in their order. Payment is left to the curator and the ledger,
rows to the engines.
"""

from tacit.measuring.allocation import BudgetTerms
from tacit.query.allocation import Target
from tacit.query.options import PlanOptions, QueryOptions, QuerySpec, RunOptions
from tacit.query.plan import Plan, PlanSettings
from tacit.query.planner import ask, plan_of
from tacit.query.question import Question
from tacit.query.release import Preview, Release
from tacit.query.release_plan import QueryRelease
from tacit.query.run import Noisy, run

__all__ = [
    "BudgetTerms",
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
    "ask",
    "plan_of",
    "run",
]
