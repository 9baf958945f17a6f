"""Frames become files that outlive the process."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tacit.engines import DuckDBEngine, frame_source, is_frame
from tacit.engines.frames import remove_unused
from tacit.privacy.errors import EngineFailed, WrongType
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit

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
    assert Path(source.place).parent == tmp_path / "tables"
    assert Path(source.place).name.startswith("visits-")
    engine = DuckDBEngine(tmp_path, salt=1)
    found = {one.name: one.kind for one in engine.describe(source)}
    engine.close()
    assert list(found.items())[:2] == [("id", Kind.INTEGER), ("s", Kind.TEXT)]
    assert found["d"] in (Kind.DATE, Kind.TIME)
    assert pd.read_parquet(source.place)["id"].tolist() == [1, 2, 3]


WIDE = list(range(2**53 + 1, 2**53 + 1_001))
"""Ids that doubles do not tell apart."""

TEXTS = [str(number) for number in WIDE]
EXACT: dict[str, Callable[[], Any]] = {
    "objects that are texts": lambda: pd.DataFrame({"id": pd.Series([*TEXTS, None], dtype=object)}),
    "pandas Int64": lambda: pd.DataFrame({"id": pd.Series([*WIDE, pd.NA], dtype="Int64")}),
    "pandas UInt64": lambda: pd.DataFrame({"id": pd.Series([2**63 + one for one in WIDE] + [pd.NA], dtype="UInt64")}),
    "pandas string": lambda: pd.DataFrame({"id": pd.Series([*TEXTS, pd.NA], dtype="string")}),
    "pandas str": lambda: pd.DataFrame({"id": pd.Series([*TEXTS, None], dtype="str")}),
    "categories of integers": lambda: pd.DataFrame({"id": pd.Categorical([*WIDE, None])}),
    "categories of texts": lambda: pd.DataFrame({"id": pd.Categorical([*TEXTS, None])}),
    "pandas over Arrow": lambda: pd.DataFrame({"id": pd.Series([*WIDE, None], dtype="int64[pyarrow]")}),
    "nanoseconds": lambda: pd.DataFrame({"id": pd.to_datetime(range(1_000), unit="ns")}),
    "nanoseconds with a zone": lambda: pd.DataFrame({"id": pd.to_datetime(range(1_000), unit="ns", utc=True)}),
    "polars Decimal": lambda: pl.DataFrame({"id": pl.Series(list(map(Decimal, WIDE)), dtype=pl.Decimal(38, 0))}),
    "polars UInt64": lambda: pl.DataFrame({"id": pl.Series([2**63 + one for one in WIDE], dtype=pl.UInt64)}),
    "polars Categorical": lambda: pl.DataFrame({"id": pl.Series([*TEXTS, None], dtype=pl.Categorical)}),
    "Arrow decimal": lambda: pa.table({"id": pa.array(list(map(Decimal, WIDE)), pa.decimal128(38, 0))}),
    "Arrow uint64": lambda: pa.table({"id": pa.array([2**63 + one for one in WIDE], pa.uint64())}),
    "Arrow dictionary": lambda: pa.table({"id": pa.array([*TEXTS, None]).dictionary_encode()}),
    "Arrow large_string": lambda: pa.table({"id": pa.array([*TEXTS, None], pa.large_string())}),
}


@pytest.mark.parametrize("frame", EXACT.values(), ids=EXACT)
def test_every_id_of_a_frame_is_a_unit(tmp_path: Path, frame: Callable[[], Any]) -> None:
    source = frame_source(frame(), tmp_path, "t")
    engine = DuckDBEngine(tmp_path, salt=1)
    engine.register(Table("t", (Column("id", Kind.TEXT),), Unit("id")), source, {})
    found = engine.run("SELECT COUNT(DISTINCT _unit) AS n FROM tacit_data.t")["n"][0]
    engine.close()
    assert found == 1_000


MIXED: dict[str, list[Any]] = {
    "a number of twenty digits": [*WIDE, 10**20],
    "a fraction": [*WIDE, 0.5],
    "None": [*WIDE, None],
    "NA": [*WIDE, pd.NA],
    "a text": [*WIDE, "x"],
    "integers": WIDE,
    "texts and a number": [*TEXTS, 7],
    "texts and a number far down": [*TEXTS * 20, 7],
    "fixed-point numbers": [*map(Decimal, WIDE), Decimal("1e-30")],
    "lists": [[1], [2]],
}


@pytest.mark.parametrize("values", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("as_categories", [False, True])
def test_objects_of_no_one_type_are_refused(tmp_path: Path, values: list[Any], as_categories: bool) -> None:
    series = pd.Series(values, dtype=object)
    if as_categories:
        if isinstance(values[0], list):
            return
        series = series.astype(pd.CategoricalDtype(pd.Index(dict.fromkeys(series.dropna()), dtype=object)))
    with pytest.raises(WrongType, match=r"the column id .*astype") as caught:
        frame_source(pd.DataFrame({"id": series}), tmp_path, "t")
    assert "900719925" not in str(caught.value)
    assert list((tmp_path / "tables").iterdir()) == []


def test_a_polars_column_of_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongType):
        frame_source(pl.DataFrame({"id": pl.Series([1, "a", 2.5], dtype=pl.Object)}), tmp_path, "t")


def test_objects_that_are_dates_or_truths_or_nothing_keep_their_kinds(tmp_path: Path) -> None:
    columns = {"d": [None, date(2020, 1, 1)], "b": [True, None], "n": [None, None], "s": ["a", float("nan")]}
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    source, before = frame_source(frame, tmp_path, "t"), frame.dtypes.tolist()
    engine = DuckDBEngine(tmp_path, salt=1)
    found = {one.name: one.kind for one in engine.describe(source)}
    engine.close()
    assert found == {"d": Kind.DATE, "b": Kind.BOOLEAN, "n": Kind.TEXT, "s": Kind.TEXT}
    assert frame.dtypes.tolist() == before


def test_missing_texts_and_truths_of_pandas_are_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3],
            "s": pd.Series(["a", pd.NA, "c"], dtype="string"),
            "b": pd.Series([True, False, pd.NA], dtype="boolean"),
            "n": pd.Series([pd.NA, 5, 6], dtype="Int64"),
        }
    )
    columns = (Column("id", Kind.INTEGER), Column("s", Kind.TEXT), Column("b", Kind.BOOLEAN), Column("n", Kind.INTEGER))
    engine = DuckDBEngine(tmp_path, salt=1)
    engine.register(Table("t", columns, Unit("id")), frame_source(frame, tmp_path, "t"), {})
    found = engine.run("SELECT s, b, n FROM tacit_data.t ORDER BY id")
    engine.close()
    assert found == {"s": ["a", None, "c"], "b": [True, False, None], "n": [None, 5, 6]}


def test_rows_are_kept_where_only_their_owner_can_read_them(tmp_path: Path) -> None:
    old = os.umask(0o002)
    try:
        (tmp_path / "tables").mkdir(mode=0o755)
        source = frame_source(pd.DataFrame({"id": [1, 2]}), tmp_path, "t")
        engine = DuckDBEngine(tmp_path, salt=1)
        engine.register(Table("t", (Column("id", Kind.INTEGER),), Unit("id")), source, {})
        engine.run("SELECT id FROM tacit_data.t")
        found = {path.relative_to(tmp_path): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
        engine.close()
    finally:
        os.umask(old)
    assert {str(path.parts[0]) for path in found} >= {"tables", "prepared"}
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}


def test_a_frame_of_the_same_name_has_a_file_of_its_own_and_leaves_nothing_aside(tmp_path: Path) -> None:
    first = frame_source(pl.DataFrame({"a": [1]}), tmp_path, "t")
    source = frame_source(pl.DataFrame({"a": [1, 2]}), tmp_path, "t")
    assert (pl.read_parquet(first.place).height, pl.read_parquet(source.place).height) == (1, 2)
    remove_unused(tmp_path, "t", [first.place, source.place], [source.place])
    assert [str(path) for path in (tmp_path / "tables").iterdir()] == [source.place]


def test_what_a_process_that_died_has_left_is_removed_a_day_later(tmp_path: Path) -> None:
    left, recent, other, used = (Path(frame_source(pl.DataFrame({"a": [1]}), tmp_path, n).place) for n in "ttut")
    for path in (left, other, used):
        os.utime(path, (0, 0))
    remove_unused(tmp_path, "t", (), [str(used)])
    assert set((tmp_path / "tables").iterdir()) == {recent, other, used}


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
