"""A plan that was made before is used again only for the same question, catalog and budgets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import tacit
from tacit.curator import query_service
from tacit.privacy.errors import CatalogChanged, NotInCatalog
from tacit.query import PlanSettings, QuerySpec, Target

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


def test_a_plan_for_other_bounds_is_refused_by_every_service_and_nothing_is_charged(curator: tacit.Curator) -> None:
    """Its noise is for the bounds that it was made for: with wider ones it would be too little."""
    asked = QuerySpec.of("SELECT SUM(age) FROM visits", 0.5, {})
    for upper in (90, 9000):
        columns = {"age": tacit.Bounds(0, upper)}
        curator.add_table("visits", FRAME, unit="patient", columns=columns, replace=True)
        if upper == 90:
            service, plan = curator.queries(), curator.queries().plan(asked)
    for one in (service, curator.queries()):
        with pytest.raises(CatalogChanged):
            one.release(asked, plan)
    assert curator.budget("visits").spent().epsilon == 0


def test_who_may_not_ask_about_a_table_does_not_find_it_though_its_plan_is_known(curator: tacit.Curator) -> None:
    asked = QuerySpec("SELECT COUNT(*) FROM secret", Target(epsilon=0.5), PlanSettings())
    curator.queries().plan(asked)
    for sql in (asked.sql, "SELECT COUNT(*) FROM secret WHERE nothing = 1", "SELECT COUNT(*) FROM elsewhere"):
        with pytest.raises(NotInCatalog) as caught:
            curator.queries(visible=["visits"]).plan(QuerySpec(sql, asked.target, asked.settings))
        assert caught.value.message == f"no table is called {sql.split()[3]}; there is visits"


def test_room_for_plans_is_limited(curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_service, "PLANS_MAX", 3)
    for number in range(10):
        curator.preview(f"SELECT COUNT(*) FROM visits WHERE age > {number}", epsilon=0.1)
    assert curator._plans is not None
    assert len(curator._plans._made) == 3


@pytest.mark.parametrize("is_long", [False, True])
def test_plans_are_kept_up_to_a_size(curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, is_long: bool) -> None:
    monkeypatch.setattr(query_service, "PLAN_BYTES_MAX", 1_500_000)
    condition = f"age IN ({', '.join(map(str, range(500)))})" if is_long else "age > 3"
    for number in range(5):
        curator.preview(f"SELECT COUNT(*) FROM visits WHERE {condition} AND age < {number}", epsilon=0.1)
    assert curator._plans is not None
    assert sum(size for _, size in curator._plans._made.values()) <= query_service.PLAN_BYTES_MAX
    assert len(curator._plans._made) == 5 if not is_long else 1 <= len(curator._plans._made) < 5


def test_a_plan_that_is_larger_than_the_room_for_all_is_not_kept_and_pushes_none_out(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_service, "PLAN_BYTES_MAX", 200_000)
    curator.preview("SELECT COUNT(*) FROM visits", epsilon=0.1)
    curator.preview(f"SELECT COUNT(*) FROM visits WHERE age IN ({', '.join(map(str, range(500)))})", epsilon=0.1)
    assert curator._plans is not None
    assert [key[0] for key in curator._plans._made] == ["SELECT COUNT(*) FROM visits"]
