"""MEDIAN and COUNT(DISTINCT ...) over the rows of a unit have the same values in every engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.engines.conftest import PLACES, Place

TYPES = {"id": "BIGINT", "g": "VARCHAR", "n": "BIGINT", "r": "DOUBLE", "s": "VARCHAR"}
ITEMS = [
    "MEDIAN(CAST(n AS DOUBLE)) OVER (PARTITION BY _unit)",
    "MEDIAN(r) OVER (PARTITION BY _unit, g)",
    "MEDIAN(r) FILTER (WHERE n > 2) OVER (PARTITION BY _unit)",
    "1 + MEDIAN(r) OVER (PARTITION BY _unit) - MEDIAN(CAST(n AS DOUBLE)) OVER (PARTITION BY _unit, g)",
    "COUNT(DISTINCT n) OVER (PARTITION BY _unit)",
    "COUNT(DISTINCT s) OVER (PARTITION BY _unit, g)",
    "COUNT(DISTINCT r) FILTER (WHERE n > 2) OVER (PARTITION BY _unit)",
]


def rows() -> list[list[object]]:
    chosen = random.Random(7)
    return [
        [
            chosen.randrange(12),
            chosen.choice(["x", "y", None]),
            chosen.choice([None, *range(9)]),
            chosen.choice([None, 0.1, 0.25, -3.0, 0.0, -0.0, 1e300, 7.0]),
            chosen.choice([None, "a", "A", "é", ""]),
        ]
        for _ in range(120)
    ]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = PLACES["duckdb over parquet"](tmp_path_factory.mktemp("windows"))
    made.show("t", TYPES, rows(), unit="id")
    yield made
    made.engine.close()


@pytest.fixture(scope="module", params=["postgres", "spark"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("windows")
    made = PLACES[request.param](folder)
    made.show("t", TYPES, rows(), unit="id")
    yield made
    made.engine.close()


@pytest.mark.parametrize("item", ITEMS)
def test_windows_over_a_unit_have_the_same_values(place: Place, expected: Place, item: str) -> None:
    sql = f"SELECT t0.id AS c0, t0.g AS c1, t0.n AS c2, {item} AS c3 FROM tacit_data.t AS t0 WHERE t0.id < 10"
    found = place.rows(sql)
    assert found == expected.rows(sql)
    assert len(found) > 50
