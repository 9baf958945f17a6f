"""A plan that was made before is used again only for the same question, catalog and budgets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import tacit
from tacit.curator import plans
from tacit.privacy.errors import NotInCatalog

SQL = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
FRAME = pd.DataFrame({"patient": range(400), "sex": ["F", "M"] * 200, "age": [row % 90 for row in range(400)]})


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path) as made:
        for name in ("visits", "secret"):
            made.add_table(name, FRAME, unit="patient", columns={"sex": tacit.Categories(["F", "M"])})
            made.set_budget(name, epsilon=8.0, delta=1e-6)
        yield made


def test_another_list_of_keys_is_another_plan(curator: tacit.Curator) -> None:
    ages = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    for values in ([1, 2], [1, 2, 3], (1, 2, 3, 4), range(5)):
        shown = [row["age"] for row in curator.sql(ages, epsilon=0.1, keys={"age": values}).rows]
        assert shown == list(values)


def test_a_changed_catalog_is_planned_for_anew(curator: tacit.Curator) -> None:
    assert [row["sex"] for row in curator.sql(SQL, epsilon=0.5).rows] == ["F", "M"]
    curator.add_table("visits", FRAME, unit="patient", columns={"sex": tacit.Categories(["F", "M", "X"])}, replace=True)
    assert [row["sex"] for row in curator.sql(SQL, epsilon=0.5).rows] == ["F", "M", "X"]


def test_who_may_not_ask_about_a_table_does_not_find_it_though_its_plan_is_known(curator: tacit.Curator) -> None:
    from tacit.curator.road import Asked
    from tacit.query import Settings, Target

    asked = Asked("SELECT COUNT(*) FROM secret", Target(epsilon=0.5), Settings())
    curator.road().plan(asked)
    for sql in (asked.sql, "SELECT COUNT(*) FROM secret WHERE nothing = 1", "SELECT COUNT(*) FROM elsewhere"):
        with pytest.raises(NotInCatalog) as caught:
            curator.road(among=["visits"]).plan(Asked(sql, asked.target, asked.settings))
        assert caught.value.message == f"no table is called {sql.split()[3]}; there is visits"


def test_room_for_plans_is_limited(curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "PLANS_MAX", 3)
    for number in range(10):
        curator.preview(f"SELECT COUNT(*) FROM visits WHERE age > {number}", epsilon=0.1)
    assert curator._plans is not None
    assert len(curator._plans._made) == 3
