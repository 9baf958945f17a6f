"""Workloads over a registered table: its budget pays, its bounds and categories say the cells, answers are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tacit
from tacit.stats import marginals, ranges
from tacit.stats.preparation import RegisteredTable

PEOPLE = 600


@pytest.fixture
def delta() -> float:
    return 0.0


@pytest.fixture
def visits(tmp_path: Path, delta: float) -> Iterator[RegisteredTable]:
    lines = ["pid,age,sex"] + [f"{i % 300},{i % 90},{'FM'[i % 2]}" for i in range(PEOPLE)]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    with tacit.Curator(tmp_path / "clinic") as curator:
        facts = {"age": tacit.Bounds(0, 90), "sex": tacit.Categories(["F", "M"])}
        curator.add_table("visits", tmp_path / "visits.csv", unit="pid", columns=facts)
        curator.set_budget("visits", epsilon=9.0, delta=delta)
        yield curator.table("visits")


def test_tables_and_ranges_are_paid_from_the_table_and_answered_once(visits: RegisteredTable) -> None:
    columns = {"age": visits["age"], "sex": visits["sex"]}
    answer = marginals(columns, domain={"age": 3}, epsilon=4.0, rows_per_unit=2)
    assert abs(int(answer.value[:3].sum()) - PEOPLE) < 60
    assert answer.table("age", "sex").values.shape == (3, 2)
    assert visits.budget.spent().epsilon == pytest.approx(4.0)
    again = marginals(columns, domain={"age": 3}, epsilon=4.0, rows_per_unit=2)
    assert again.cost.epsilon == 0
    assert again.value.tolist() == answer.value.tolist()
    found = ranges(visits["age"], edges=9, epsilon=4.0, rows_per_unit=2)
    assert abs(found.range(0.0, 90.0).value - PEOPLE) < 60
    assert visits.budget.spent().epsilon == pytest.approx(8.0)


@pytest.mark.parametrize("delta", [1e-6])
def test_tables_with_gaussian_noise_are_kept_and_repeated(visits: RegisteredTable) -> None:
    columns = {"age": visits["age"], "sex": visits["sex"]}
    first, again = (marginals(columns, domain={"age": 3}, rho=0.5, rows_per_unit=2) for _ in range(2))
    assert "Gaussian" in first.card
    assert again.cost.epsilon == 0
    assert again.value.tolist() == first.value.tolist()
