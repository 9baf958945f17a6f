"""Numbers that may be noise alone are said to be so, on the answer and on its card, from what was released."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tacit import Bounds, Categories, Curator, Limits

ROWS = {"person": list(range(900)), "ward": ["a", "b", "c"] * 300, "cost": [90.0] * 900}


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    with Curator(tmp_path) as made:
        columns = {"ward": Categories(["a", "b", "c", "nobody"]), "cost": Bounds(0, 1000)}
        made.add_table("visits", pa.table(ROWS), unit="person", columns=columns, limits=Limits(rows_per_unit=1))
        made.set_budget("visits", 8.0)
        yield made


@pytest.mark.parametrize("function", ["AVG", "STDDEV", "VAR_POP"])
def test_a_group_that_may_be_empty_is_named(curator: Curator, function: str) -> None:
    """At epsilon 1.5 the noisy number of 300 rows is never near 0; that of none passes its 95 % in one of 40 runs."""
    sql = f"SELECT ward, {function}(cost) FROM visits GROUP BY ward"
    found = [curator.sql(sql, 1.5 + number / 100) for number in range(5)]
    named = [one for one in found if one.warnings]
    assert len(named) >= 2  # fewer in 5e-6 of all runs
    for one in named:
        assert "there may be no rows at all for nobody," in one.warnings[0]
        assert one.warnings[0] in one.card


def test_answers_with_rows_enough_and_counts_are_not_warned_of(curator: Curator) -> None:
    for sql in (
        "SELECT AVG(cost), STDDEV(cost) FROM visits",
        "SELECT ward, COUNT(*), SUM(cost) FROM visits GROUP BY ward",
    ):
        assert curator.sql(sql, 3.0).warnings == ()


def test_many_groups_are_not_all_named(curator: Curator) -> None:
    keys = {"ward": [f"w{number}" for number in range(40)]}
    (warning,) = curator.sql("SELECT ward, AVG(cost) FROM visits GROUP BY ward", 1.0, keys=keys).warnings
    assert "w1;" in warning or "w2;" in warning
    assert " more, as their noisy number" in warning
