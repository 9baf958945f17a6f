"""A plan's digest is made once, and a changed copy of the plan has one of its own."""

from dataclasses import replace
from pathlib import Path

import tacit
from tests.unit.server import clinic


def test_a_changed_copy_of_a_plan_has_a_digest_of_its_own(tmp_path: Path) -> None:
    from tacit.query import PlanSettings, QuerySpec, Target

    with tacit.Curator(tmp_path) as curator:
        clinic.fill(curator)
        plan = curator.queries().plan(
            QuerySpec("SELECT COUNT(*) FROM visits", Target(1.0, None, None, None), PlanSettings())
        )
    assert plan.canonical is plan.canonical
    assert replace(plan).canonical == plan.canonical
    assert replace(plan, statements=()).canonical != plan.canonical
