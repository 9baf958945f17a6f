"""A table that changes between a plan and its run: never noise for old bounds over rows with new ones.

Each seed chooses what changes (bounds, limits, the unit, rows, or nothing) and when (after the plan, or during the
run). Either nothing leaves, by T134 before the charge or by the one failure after it; or what leaves was made for the
records and the rows that are there now, or that were there all the time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.privacy.errors import CatalogChanged, EngineFailed
from tacit.query import PlanSettings, QuerySpec, Target

pytestmark = pytest.mark.filterwarnings("ignore::tacit.curator.PrivacyWarning")  # answers with next to no noise
SUM = "SELECT SUM(age) AS n FROM t"
HIGHS = (10, 100)


class Changing:
    """A table of 40 people, each aged 1000 beyond any bound: a sum is 40 times the declared upper end."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.path, self.rng, self.people, self.high = folder / "t.csv", rng, 40, HIGHS[0]
        self.curator = tacit.Curator(folder / "clinic")
        self.write()
        self.register(replace=False)
        self.curator.set_budget("t", epsilon=1e6, epsilon_min=0)

    def write(self) -> None:
        self.path.write_text("uid,other,age\n" + "".join(f"{p},{p + 1},1000\n" for p in range(self.people)))

    def register(self, unit: str = "uid", limits: tacit.Limits | None = None, *, replace: bool = True) -> None:
        columns = {"age": tacit.Bounds(0, self.high)}
        self.curator.add_table("t", self.path, unit=unit, columns=columns, limits=limits, replace=replace)

    def bounds(self) -> None:
        self.high = HIGHS[1]
        self.register()

    def limits(self) -> None:
        self.register(limits=tacit.Limits(rows_per_unit=self.rng.choice([1, 3])))

    def unit(self) -> None:
        self.register("other")

    def rows(self) -> None:
        self.people = 80
        self.write()
        self.curator.refresh()

    def nothing(self) -> None:
        self.curator.refresh()


CHANGES: dict[str, Callable[[Changing], None]] = {
    "bounds": Changing.bounds,
    "limits": Changing.limits,
    "unit": Changing.unit,
    "rows": Changing.rows,
    "nothing": Changing.nothing,
}


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Changing]:
    made = Changing(tmp_path, random.Random(7))
    yield made
    made.curator.close()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", ["after the plan", "during the run"])
def test_no_answer_leaves_with_noise_for_other_bounds_than_its_rows_have(
    changing: Changing, monkeypatch: pytest.MonkeyPatch, change: str, moment: str
) -> None:
    curator, asked = changing.curator, QuerySpec(SUM, Target(epsilon=1e4), PlanSettings())
    service = curator.queries()
    plan = service.plan(asked)
    engine = service.bind(asked, plan).engine
    run, before = engine.run, changing.people * changing.high
    waiting = [lambda: CHANGES[change](changing)]

    def overtaken(*arguments: Any, **options: Any) -> Any:
        found = run(*arguments, **options)
        if waiting:
            waiting.pop()()
        return found

    if moment == "after the plan":
        waiting.pop()()
    else:
        monkeypatch.setattr(engine, "run", overtaken)
    try:
        answer = service.release(asked, plan).rows[0]["n"]
    except CatalogChanged:
        assert moment == "after the plan"
        assert change in ("bounds", "limits", "unit")
        assert curator.budget("t").spent().epsilon == 0
    except EngineFailed:
        assert moment == "during the run"
        assert change != "nothing"
        assert [one.note for one in curator.ledger.reservations()] == ["failed/T134"]
    else:
        assert plan.question.scope.tables == {"t"}
        assert curator.catalog.schema.table("t") == service.schema.table("t")
        now = changing.people * changing.high
        assert abs(answer - (now if moment == "after the plan" else before)) < changing.high
