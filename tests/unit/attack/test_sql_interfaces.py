"""Attacks through SQL: a plain database leaks by each of them, and a curator by none within its epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import attack
from tacit.privacy.errors import InvalidInput

PEOPLE = 60
SECRETS = np.random.default_rng(4).integers(0, 2, PEOPLE).astype(bool)
ROWS = pd.DataFrame({"id": range(PEOPLE), "ill": SECRETS})


def interface(ask: Any, epsilon: float | None = None) -> attack.QueryInterface:
    return attack.QueryInterface(
        ask, table="visits", unit="id", secret="ill", ids=range(PEOPLE), truth=SECRETS, epsilon=epsilon
    )


@pytest.fixture
def database() -> Iterator[Any]:
    connection = duckdb.connect()
    connection.register("visits", ROWS)
    yield lambda sql: connection.execute(sql).fetchone()[0]  # type: ignore[index]
    connection.close()


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("visits", ROWS, unit="id")
        curator.set_budget("visits", epsilon=1.0, epsilon_min=1e-4)
        yield curator


@pytest.mark.parametrize("name", ["reconstruction", "differencing", "averaging", "linear_sql", "errors"])
def test_a_plain_database_gives_its_secrets_away(database: Any, name: str) -> None:
    assert attack.run(name, interface(database), 1.0, seed=1).verdict == "violates"


@pytest.mark.parametrize("name", ["reconstruction", "differencing", "averaging", "errors"])
def test_a_curator_gives_away_no_more_than_its_budget(curator: tacit.Curator, name: str) -> None:
    found = attack.run(name, interface(curator, 1.0), 1.0, seed=1)
    assert found.verdict in ("consistent", "underpowered")
    assert curator.budget("visits").spent().epsilon <= 1.0 + 1e-9


def test_equivalent_questions_have_one_answer_of_a_curator(curator: tacit.Curator) -> None:
    found = attack.run("consistency", interface(curator, 1.0), seed=1)
    assert found.details["answers"]
    assert found.verdict == "not applicable"


def test_times_of_a_database_are_measured(database: Any) -> None:
    assert attack.run("timing", interface(database), 8.0, seed=1).verdict in ("consistent", "underpowered")


def test_a_table_of_a_few_records_says_nothing_about_a_claim_of_much_risk() -> None:
    few = attack.Table({"a": [1, 2, 3]}, quasi_identifiers=["a"])
    assert attack.run("linkage", few, attack.Claim(risk=0.9)).verdict == "underpowered"


def test_an_interface_of_sql_without_its_unit_or_secret_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs table, unit and secret"):
        attack.QueryInterface(lambda sql: 0, table="visits", truth=[True])
