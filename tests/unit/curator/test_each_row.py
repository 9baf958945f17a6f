"""`add_table(..., each_row=True)`: every row is a unit, numbered in a copy that the folder keeps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.curator import PrivacyWarning
from tacit.privacy.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore:epsilon 1000")

ROWS = pd.DataFrame({"age": [20, 30, 40, 50] * 50, "row": ["a"] * 200})


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    ROWS.to_csv(tmp_path / "people.csv", index=False)
    ROWS.to_parquet(tmp_path / "people.parquet")
    with tacit.Curator(tmp_path / "clinic") as made:
        made.set_budget("people", epsilon=1000.0)
        yield made


def stored(curator: tacit.Curator) -> list[Path]:
    return sorted((curator.folder / "tables").iterdir())


@pytest.mark.parametrize("form", ["csv", "parquet", "frame"])
def test_every_row_is_counted_once_and_is_a_unit(curator: tacit.Curator, tmp_path: Path, form: str) -> None:
    data: Any = ROWS if form == "frame" else tmp_path / f"people.{form}"
    table = curator.add_table("people", data, each_row=True, columns={"age": tacit.Bounds(0, 120)})
    assert table.unit == tacit.Unit("row_"), "a column called row is there already"
    assert table.limits == tacit.Limits(rows_per_unit=1)
    counted = curator.sql("SELECT COUNT(*) AS n, AVG(age) AS mean FROM people", epsilon=500.0).rows[0]
    assert counted["n"] == pytest.approx(200, abs=2)
    assert counted["mean"] == pytest.approx(35, abs=1)
    assert stored(curator) == [Path(curator.catalog.source("people").place)], "nothing but the numbered copy is kept"


def test_a_replaced_copy_is_removed(curator: tacit.Curator, tmp_path: Path) -> None:
    curator.add_table("people", tmp_path / "people.csv", each_row=True)
    first = stored(curator)
    curator.add_table("people", tmp_path / "people.csv", each_row=True, replace=True)
    assert len(stored(curator)) == 1
    assert stored(curator) != first


def test_a_column_of_an_unusual_type_is_in_the_copy_if_it_has_a_kind(curator: tacit.Curator, tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "sizes.parquet"
    duckdb.sql(f"COPY (SELECT i AS age, INTERVAL (i) DAY AS stay FROM range(10) t(i)) TO '{path}' (FORMAT parquet)")
    table = curator.add_table("people", path, each_row=True, kinds={"stay": tacit.Kind.TEXT})
    assert [column.name for column in table.columns] == ["row", "age", "stay"]
    assert curator.engines.count_values(table, ["stay"]) == [10, 10]


@pytest.mark.parametrize(
    "stated",
    [{"unit": "age"}, {"public": True}, {"limits": tacit.Limits(rows_per_unit=2)}, {"unit": "age", "public": True}],
)
def test_what_contradicts_it_is_refused_and_leaves_no_copy(
    curator: tacit.Curator, tmp_path: Path, stated: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="leave out unit="):
        curator.add_table("people", tmp_path / "people.csv", each_row=True, **stated)
    with pytest.raises(InvalidInput, match="each_row"):
        curator.add_table("people", tmp_path / "people.csv", each_row="yes")  # type: ignore[arg-type]
    assert not (curator.folder / "tables").exists() or not stored(curator)


def test_rows_that_are_refused_leave_no_copy(curator: tacit.Curator, tmp_path: Path) -> None:
    curator.add_table("people", tmp_path / "people.csv", each_row=True)
    kept = stored(curator)
    with pytest.raises(InvalidInput):
        curator.add_table("people", tmp_path / "people.parquet", each_row=True)  # without replace=True
    assert stored(curator) == kept


def test_another_budget_over_the_rows_that_were_copied_is_warned_of(curator: tacit.Curator, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    curator.add_table("people", path, each_row=True)
    with pytest.warns(PrivacyWarning, match="does not count against the budget of first"):
        curator.add_table("first", path, unit="age")
    curator.remove_table("people")
    with pytest.warns(PrivacyWarning, match="does not count against the budget of second"):
        curator.add_table("second", path, each_row=True)
