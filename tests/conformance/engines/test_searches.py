"""Of a text that is searched for in another, the first 255 characters count, on every engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tacit.privacy.errors import EngineFailed
from tests.conformance.engines.conftest import PLACES, Place

X = "x" * 300
ROWS = [[1, X, X[:255]], [2, X, X], [3, "abc", "bc"], [4, None, X], [5, "abc", None], [6, X, X[:255] + "y"]]


@pytest.fixture(scope="module", params=["duckdb over parquet", "postgres", "spark"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = PLACES[request.param](tmp_path_factory.mktemp("searches"))
    made.show("t", {"id": "BIGINT", "s": "VARCHAR", "r": "VARCHAR"}, ROWS, unit="id")
    yield made
    made.engine.close()


def test_the_beginning_of_a_long_part_is_searched_for_and_null_stays_null(place: Place) -> None:
    found = [(1, 1, True), (2, 1, True), (3, 2, True), (4, None, None), (5, None, None), (6, 1, True)]
    assert place.rows("SELECT id, STRPOS(s, r) AS p, CONTAINS(s, r) AS c FROM tacit_data.t") == found
    long = "x" * 255 + "z"
    sql = f"SELECT id, STRPOS(s, '{long}') AS p, CONTAINS(s, '{long}') AS c FROM tacit_data.t WHERE id < 4"
    assert place.rows(sql) == [(1, 1, True), (2, 1, True), (3, 0, False)]


def test_long_parts_of_patterns_are_refused_before_anything_runs(place: Place) -> None:
    if "DuckDB" not in type(place.engine).__name__:
        with pytest.raises(EngineFailed, match="255 characters"):
            place.run(f"SELECT COUNT(*) AS c FROM tacit_data.t WHERE s LIKE '%{'x' * 256}%'")
    start = "x" * 290
    assert place.rows(f"SELECT COUNT(*) AS c FROM tacit_data.t WHERE s LIKE '{start}%'") == [(3,)]
    assert place.rows(f"SELECT COUNT(*) AS c FROM tacit_data.t WHERE s LIKE '%{start}'") == [(3,)]
