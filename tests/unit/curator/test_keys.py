"""Idempotency keys: one key buys one run of one question on one version of the data, and no second run learns more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.privacy.errors import KeyReused

TRIES = 50
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age < {}"


def visits(secret: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"patient": range(400), "age": [20 + p % 60 for p in range(400)], "hiv": [secret] * 400})


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path) as curator:
        add(curator, visits())
        curator.set_budget("visits", epsilon=2.0)
        yield curator


def add(curator: tacit.Curator, data: pd.DataFrame) -> None:
    bounds = {"age": tacit.Bounds(0, 120), "hiv": tacit.Bounds(0, 1)}
    one_row = tacit.Limits(rows_per_unit=1)
    curator.add_table("visits", data, unit="patient", limits=one_row, columns=bounds, replace=True)


@pytest.fixture
def runs(curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the engine was asked to run."""
    engine, found = curator.engines.engine(("duckdb", "")), []
    run = engine.run

    def noted(*arguments: Any, **settings: Any) -> Any:
        found.append(arguments)
        return run(*arguments, **settings)

    monkeypatch.setattr(engine, "run", noted)
    return found


def test_a_key_does_not_buy_runs_of_other_questions_with_the_same_event(
    curator: tacit.Curator, runs: list[Any]
) -> None:
    """Whether fresh noise on another question meets a known answer would tell, by many tries, what the answer is."""
    curator.sql(COUNT.format(0), epsilon=2.0, key="k")
    assert curator.budget("visits").remaining().epsilon == 0.0
    runs.clear()
    said = set()
    for number in range(TRIES):
        with pytest.raises(KeyReused) as refused:
            curator.sql(COUNT.format(1_000 + number) + " AND hiv = 1", epsilon=2.0, key="k")
        said.add(refused.value.message)
    assert not runs
    assert len(said) == 1


def test_a_key_does_not_buy_a_run_on_changed_data(curator: tacit.Curator, runs: list[Any]) -> None:
    curator.sql(COUNT.format(50), epsilon=2.0, key="k")
    add(curator, visits(secret=1))
    runs.clear()
    for _ in range(3):
        with pytest.raises(KeyReused, match="take a new key"):
            curator.sql(COUNT.format(50), epsilon=2.0, key="k")
    assert not runs


def test_a_run_that_ends_second_shows_the_answer_of_the_first_though_both_are_equal(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which answer leaves depends on who came first, never on what the second run found."""
    asked = COUNT.format(50)
    commit = curator.ledger.commit
    first: list[bytes] = []

    def overtaken(permit: Any, answer: bytes, *rest: Any, **named: Any) -> None:
        if not first:
            first.append(answer)
            commit(permit, answer, *rest, **named)
        commit(permit, answer, *rest, **named)

    monkeypatch.setattr(curator.ledger, "commit", overtaken)
    release = curator.sql(asked, epsilon=1.0, key="k")
    assert release.rows == curator.sql(asked, epsilon=1.0).rows
    assert [record.kind for record in curator.ledger.history()].count("committed") == 1


def test_a_key_that_was_settled_meanwhile_gives_the_kept_answer(
    curator: tacit.Curator, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody with the same key answers between the look at what was released and the reservation."""
    asked, reserve = COUNT.format(50), curator.ledger.reserve
    found: list[Any] = []

    def overtaken(*arguments: Any, **named: Any) -> Any:
        if not found:
            found.append(None)
            found.append(curator.sql(asked, epsilon=1.0, key="k").rows)
        return reserve(*arguments, **named)

    monkeypatch.setattr(curator.ledger, "reserve", overtaken)
    release = curator.sql(asked, epsilon=1.0, key="k")
    assert (release.rows, release.cost.epsilon) == (found[1], 0.0)
    assert len(runs) == 1
