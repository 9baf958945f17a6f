"""Statements of statistics are written for their engine before the charge; what cannot be written charges nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlglot import exp

import tacit
from tacit import stats
from tacit.engines import DuckDBEngine
from tacit.privacy.errors import EngineFailed, InvalidInput
from tests.support import postgres_server

FRAME = pd.DataFrame({"patient": range(60), "age": [float(one % 50) for one in range(60)], "sex": ["F", "M"] * 30})
ASKED: dict[str, Any] = {"epsilon": 0.5, "rows_per_unit": 1}

STATISTICS: dict[str, tuple[Callable[[Any], stats.Answer], int]] = {
    "mean": (lambda t: stats.mean(t["age"], bounds=(0, 50), **ASKED), 1),
    "learnt bounds": (lambda t: stats.mean(t["age"], bounds="learn", **ASKED), 2),
    "histogram": (lambda t: stats.histogram(t["sex"], keys=["F", "M"], **ASKED), 1),
    "mode": (lambda t: stats.mode(t["sex"], **ASKED), 1),
}


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path / "clinic") as made:
        made.set_budget("visits", 5.0, 1e-6)
        made.add_table("visits", FRAME, unit="patient")
        yield made


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statement_that_cannot_be_written_is_refused_uncharged(
    name: str, curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, statements = STATISTICS[name]
    table, write = curator.table("visits"), DuckDBEngine.write
    for place in range(statements):
        written: list[exp.Query] = []

        def refuse(self: DuckDBEngine, tree: exp.Query, place: int = place, written: list[exp.Query] = written) -> str:
            written.append(tree)
            if len(written) == place + 1:
                raise EngineFailed("not supported; leave it out")
            return write(self, tree)

        monkeypatch.setattr(DuckDBEngine, "write", refuse)
        with pytest.raises(EngineFailed, match="leave it out"):
            ask(table)
        assert curator.budget("visits").spent().epsilon == 0.0
    monkeypatch.undo()
    ask(table)


@pytest.fixture
def source() -> str:
    postgres_server.execute(
        "DROP TABLE IF EXISTS zero_bounds",
        "CREATE TABLE zero_bounds (patient int8, real float8, whole int8)",
        "INSERT INTO zero_bounds SELECT g, g, g FROM generate_series(1, 50) g",
    )
    return f"{postgres_server.place()}#public.zero_bounds"


@pytest.mark.parametrize("ends", [(0, 0), (-0.0, 0.0), (0, 5e-324), (-5, 0)])
def test_bounds_that_end_at_zero_are_answered_on_postgres(
    ends: tuple[float, float], source: str, tmp_path: Path
) -> None:
    functions = (stats.sum, stats.mean, stats.variance, stats.median)
    asked = [(function, column) for function in functions for column in ("real", "whole")]
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.set_budget("visits", 5.0, 1e-6)
        curator.add_table("visits", source, unit="patient")
        for function, column in asked:
            ask: Callable[..., stats.Answer] = function
            with suppress(InvalidInput):  # some statistics refuse bounds that leave one value; others answer
                ask(curator.table("visits")[column], bounds=ends, **ASKED)
        assert 0 < curator.budget("visits").spent().epsilon <= len(asked) * ASKED["epsilon"]


def test_declared_bounds_of_0_to_0_are_registered_on_postgres(source: str, tmp_path: Path) -> None:
    zero = tacit.Bounds(0, 0)
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.set_budget("visits", 5.0, 1e-6)
        curator.add_table("visits", source, unit="patient", columns={"real": zero, "whole": zero})
        answer = curator.sql("SELECT SUM(real) AS r, SUM(whole) AS w, SUM(real * whole) AS p FROM visits", epsilon=1.0)
        assert len(answer.rows) == 1
