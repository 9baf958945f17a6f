"""Whole numbers beyond 64 bits: casts to HUGEINT, their sums and products are exact, and never NULL for being large."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.engines.conftest import PLACES, Place

BIG = 2**63 - 1
DECIMAL_MAX = 10**38 - 1


@pytest.fixture(scope="module", params=["postgres", "spark"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder: Path = tmp_path_factory.mktemp("huge")
    made = PLACES[request.param](folder)
    made.show("t", {"id": "BIGINT", "n": "BIGINT"}, [[1, BIG], [2, BIG], [3, -BIG], [4, BIG]], unit="id")
    return made


def one(place: Place, item: str) -> object:
    ((value,),) = place.rows(f"SELECT {item} AS x FROM tacit_data.t")
    return value


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("COUNT(*) * 4611686018427387904", 2**64),
        ("COUNT(*) * 4611686018427387904 - SUM(n)", 2**64 - 2 * BIG),
        ("SUM(n) - COUNT(n) * (-9223372036854775807)", 6 * BIG),
        ("CAST(COUNT(*) AS HUGEINT) * 9223372036854775807", 4 * BIG),
        ("CAST(COUNT(*) AS HUGEINT) * CAST(9223372036854775807 AS HUGEINT)", 4 * BIG),
        ("SUM(CAST(n AS HUGEINT) * CAST(n AS HUGEINT))", 4 * BIG**2),
        ("SUM(CAST(n AS HUGEINT) * n - 1)", 4 * BIG**2 - 4),
        ("MAX(CAST(n AS HUGEINT) * n)", BIG**2),
        ("CAST(MAX(n) AS HUGEINT) + MAX(n)", 2 * BIG),
        ("CAST(MAX(n) AS HUGEINT) // 3", BIG // 3),
        ("(CAST(MAX(n) AS HUGEINT) * 9000000000000000000) // 3", BIG * 9 * 10**18 // 3),
        ("(CAST(MIN(n) AS HUGEINT) * 9000000000000000000) // 7", -(BIG * 9 * 10**18 // 7)),
        ("CAST(MAX(CAST(n AS DOUBLE) / 1024) AS HUGEINT)", 2**53),
        ("CAST(MIN(n = 0) AS HUGEINT)", 0),
        ("-MAX(CAST(n AS HUGEINT) * n)", -(BIG**2)),
        ("ABS(MIN(CAST(n AS HUGEINT) * 9223372036854775807))", BIG**2),
        ("CAST(CAST(MAX(n) AS HUGEINT) * 2 AS BIGINT)", None),
    ],
)
def test_large_whole_numbers_are_exact(place: Place, item: str, value: int | None) -> None:
    if value is not None and abs(value) > DECIMAL_MAX and isinstance(place.engine, _spark()):
        value = DECIMAL_MAX if value > 0 else -DECIMAL_MAX
    if value is None and not isinstance(place.engine, _spark()):
        pytest.skip("PostgreSQL is not asked to cast what does not fit")
    assert one(place, item) == value


def test_what_spark_cannot_hold_is_the_nearest_number_and_not_null(place: Place) -> None:
    if not isinstance(place.engine, _spark()):
        pytest.skip("numbers of PostgreSQL have no such end")
    square = "CAST(n AS HUGEINT) * CAST(n AS HUGEINT)"
    assert one(place, f"SUM({square} * 4)") == DECIMAL_MAX
    assert one(place, f"SUM({square}) + MAX({square})") == DECIMAL_MAX
    assert one(place, f"-SUM({square}) - MAX({square})") == -DECIMAL_MAX
    assert one(place, f"MIN({square} * n)") == -DECIMAL_MAX
    # On the way to an exact sum it may pass that end, in either direction.
    assert one(place, f"SUM(CASE WHEN id <= 2 THEN {square} ELSE -({square}) END)") == 0
    assert one(place, "CAST(NULL AS HUGEINT) + MAX(n)") is None


def _spark() -> type:
    from tacit.engines import SparkEngine

    return SparkEngine
