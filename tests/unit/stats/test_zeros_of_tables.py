"""Which of two equal zeros the engine keeps of a group is nothing that an answer shows."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

import tacit


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_the_mode_of_reals_shows_the_same_zero_whichever_is_stored_first(tmp_path: Path, first: float) -> None:
    rows = pd.DataFrame({"who": range(400), "x": [first, *([0.0, -0.0] * 200)][:400]})
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", rows, unit="who", limits=tacit.Limits(rows_per_unit=1))
        curator.set_budget("t", epsilon=8.0, delta=1e-4)
        column = curator.table("t")["x"]
        found = [
            tacit.stats.mode(column, epsilon=2.0).value,
            *(row["x"] for row in tacit.stats.top_k(column, 1, epsilon=2.0).rows),
            *(row["x"] for row in curator.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", epsilon=2.0).rows),
        ]
    assert found == [0.0] * len(found)
    assert len(found) >= 2
    assert all(math.copysign(1, one) == 1 for one in found)
