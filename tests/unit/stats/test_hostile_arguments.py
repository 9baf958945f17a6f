"""Arguments that made a charged run fail, or planning take memory in proportion to them: refused or answered now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit import stats
from tacit.privacy.errors import TooLarge, TooWide
from tacit.stats.moments import Moments


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    rows = pd.DataFrame(
        {
            "id": range(2000),
            "ward": ["$salt" if index % 2 else "a" for index in range(2000)],
            "cost": [float("inf") if index % 2 else 1.5 for index in range(2000)],
        }
    )
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("visits", rows, unit="id")
        curator.add_table("limited", rows, unit="id", limits=tacit.Limits(rows_per_unit=1))
        for name in ("visits", "limited"):
            curator.set_budget(name, epsilon=10.0, delta=1e-6)
        yield curator


@pytest.mark.parametrize("ask", [stats.mode, stats.count, lambda column, **more: stats.top_k(column, 2, **more)])
def test_more_rows_of_a_unit_than_are_counted_anywhere_are_refused_before_the_charge(
    curator: tacit.Curator, ask: Callable[..., Any]
) -> None:
    with pytest.raises(TooLarge, match="at most 1,000,000"):
        ask(curator.table("visits")["ward"], rows_per_unit=10**39, epsilon=0.1)
    assert curator.budget("visits").spent().epsilon == 0.0


def test_a_key_that_reads_like_a_parameter_of_a_statement_is_a_key(curator: tacit.Curator) -> None:
    ward = curator.table("limited")["ward"]
    assert stats.mode(ward, keys=["a", "$salt"], epsilon=1).value in ("a", "$salt")
    counted = stats.histogram(ward, keys=["a", "$salt"], epsilon=1)
    assert [abs(number - 1000) < 50 for number in counted.value] == [True, True]
    assert {row["ward"] for row in stats.top_k(ward, 2, epsilon=1).rows} == {"a", "$salt"}


def test_infinity_is_a_value_that_can_be_frequent(curator: tacit.Curator) -> None:
    found = stats.top_k(curator.table("visits")["cost"], 2, rows_per_unit=1, epsilon=1)
    assert {row["cost"] for row in found.rows} == {1.5, float("inf")}


def test_a_mode_of_hardly_any_epsilon_is_planned_in_little_memory(curator: tacit.Curator) -> None:
    prepared = stats.prepare(stats.mode, curator.table("visits")["ward"], rows_per_unit=1, epsilon=1e-9)
    assert prepared.statistic.work.statements == 1


def test_groups_are_counted_without_being_listed(curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(_plan: Moments) -> None:
        raise AssertionError("the keys were listed")

    monkeypatch.setattr(Moments, "keys", property(listed))
    table = curator.table("visits")
    more: dict[str, Any] = {"by": [table["id"], table["ward"]], "rows_per_unit": 1, "epsilon": 0.1, "bounds": (0, 9)}
    lists = [list(range(1000)), [str(one) for one in range(1000)]]
    assert stats.prepare(stats.mean, table["cost"], keys=lists, **more).plan.numbers == 10**6
    with pytest.raises(TooWide, match="more than 1,000,000 numbers"):
        stats.prepare(stats.mean, table["cost"], keys=[*lists[:1], [*lists[1], "one more"]], **more)
