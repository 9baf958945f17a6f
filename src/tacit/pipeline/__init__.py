"""The release pipeline: plan → price → reserve → run → commit, the same for every kind of release.

    plan.py        what a kind of release tells the pipeline (`ReleasePlan`), and how it is asked for (`Order`)
    release.py     `preview`, `find_released` and `release`: the only module that charges, runs and commits a plan
    steps.py       releases that leave in steps under one charge, each step anchored in the ledger
    interrupts.py  what Ctrl-C does while a release is under way

Not here: what a plan releases (capabilities), where its rows are (engines), which plans there are (the curator).
"""

from tacit.pipeline.plan import CallerData, Data, Order, Quote, Released, ReleasePlan, Work
from tacit.pipeline.release import (
    NOTHING,
    RUN_FAILED,
    STALE_PLAN,
    begin,
    find_released,
    holding_outcomes,
    preview,
    release,
)
from tacit.pipeline.steps import StepAnchor

__all__ = [
    "NOTHING",
    "RUN_FAILED",
    "STALE_PLAN",
    "CallerData",
    "Data",
    "Order",
    "Quote",
    "ReleasePlan",
    "Released",
    "StepAnchor",
    "Work",
    "begin",
    "find_released",
    "holding_outcomes",
    "preview",
    "release",
]
