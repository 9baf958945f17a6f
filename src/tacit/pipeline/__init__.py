"""The release pipeline: plan, price, reserve, run, commit, the same for every kind of release.

    plan.py        what a kind of release implements (`ReleasePlan`), and the options of one release (`ReleaseOptions`)
    release.py     `preview`, `find_released` and `release`: the only module that charges, runs and commits a plan
    steps.py       releases in several steps under one charge, each step anchored in the ledger
    notes.py       the written forms of notes on permits (failed runs, steps), and their reader
    interrupts.py  Ctrl-C during a release

Not here: what a plan releases (capabilities), where its rows are (engines), which plans there are (the curator).
"""

from tacit.pipeline.plan import CallerData, Data, Quote, Released, ReleaseOptions, ReleasePlan, UnstoredPlan, Work
from tacit.pipeline.release import (
    RUN_FAILED,
    STALE_PLAN,
    ZERO_COST,
    allow_runs,
    begin,
    find_released,
    holding_outcomes,
    preview,
    preview_steps,
    release,
)
from tacit.pipeline.steps import StepAnchor

__all__ = [
    "RUN_FAILED",
    "STALE_PLAN",
    "ZERO_COST",
    "CallerData",
    "Data",
    "Quote",
    "ReleaseOptions",
    "ReleasePlan",
    "Released",
    "StepAnchor",
    "UnstoredPlan",
    "Work",
    "allow_runs",
    "begin",
    "find_released",
    "holding_outcomes",
    "preview",
    "preview_steps",
    "release",
]
