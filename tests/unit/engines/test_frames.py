"""Frames become files that outlive the process."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tacit.engines import DuckDBEngine, frame_source, is_frame
from tacit.privacy.errors import EngineFailed, WrongType
from tacit.privacy.tables import Kind

DATA: dict[str, list[Any]] = {"id": [1, 2, 3], "s": ["a", None, "ü"], "d": [date(2020, 1, 1), None, date(2021, 1, 1)]}


class Stream:
    """Anything that speaks Arrow's stream protocol."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


FRAMES = {
    "pandas": lambda: pd.DataFrame(DATA).astype({"d": "datetime64[s]"}),
    "polars": lambda: pl.DataFrame(DATA),
    "lazy": lambda: pl.LazyFrame(DATA),
    "arrow": lambda: pa.table(DATA),
    "batch": lambda: pa.table(DATA).to_batches()[0],
    "stream": lambda: Stream(pa.table(DATA)),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_written_and_described(tmp_path: Path, frame: Any) -> None:
    made = frame()
    assert is_frame(made)
    source = frame_source(made, tmp_path, "visits")
    assert source.place == str(tmp_path / "tables" / "visits.parquet")
    engine = DuckDBEngine(tmp_path, salt=1)
    found = {one.name: one.kind for one in engine.describe(source)}
    engine.close()
    assert list(found.items())[:2] == [("id", Kind.INTEGER), ("s", Kind.TEXT)]
    assert found["d"] in (Kind.DATE, Kind.TIME)
    assert pd.read_parquet(source.place)["id"].tolist() == [1, 2, 3]


def test_a_frame_of_the_same_name_replaces_the_file_and_leaves_nothing_aside(tmp_path: Path) -> None:
    frame_source(pl.DataFrame({"a": [1]}), tmp_path, "t")
    source = frame_source(pl.DataFrame({"a": [1, 2]}), tmp_path, "t")
    assert pl.read_parquet(source.place).height == 2
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("name", ["../out", "a/b", "with space", "it's", "naïve", "."])
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    source = frame_source(pl.DataFrame({"a": [1]}), tmp_path / "here", name)
    assert Path(source.place).parent == tmp_path / "here" / "tables"
    assert Path(source.place).exists()


@pytest.mark.parametrize("data", [{"a": [1]}, [1], 7, None, pd.Series([1]), pl.Series([1]), pl.DataFrame, "x.csv"])
def test_what_is_no_frame_is_refused(tmp_path: Path, data: object) -> None:
    assert not is_frame(data)
    with pytest.raises(WrongType):
        frame_source(data, tmp_path, "t")


def test_a_frame_that_cannot_be_written_is_refused_without_its_values(tmp_path: Path) -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise OverflowError("swordfish")

    with pytest.raises(WrongType) as caught:
        frame_source(Broken(), tmp_path, "t")
    assert "swordfish" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file where the folder should be")
    with pytest.raises(EngineFailed, match="tables"):
        frame_source(pl.DataFrame({"a": [1]}), tmp_path, "t")
