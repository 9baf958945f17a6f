"""Files and frames that would be read otherwise than they look are refused when they are registered or refreshed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli.app import run
from tacit.privacy.errors import InvalidInput, SourceMissing

OPEN = {
    "to the end": 'p,a\n1,x\n2,"y\n3,z\n4,w\n',
    "after texts over lines": 'p,a\n1,"x\ny"\n2,"y\n3,z\n',
    "two of them": 'p,a\n1,"x\ny"\n2,"y\n3,"z\n4,w\n',
    "an escaped end": 'p,a\n1,x\n2,"y""\n3,z\n',
    "only carriage returns": 'p,a\r1,x\r2,"y\r3,z\r',
    "a space after it": 'p,a,b\n1,"x\ny" ,2\n2,y,3\n',
    "a space before it": 'p,a,b\n1,"x\ny",2\n2, ",3\n3,z,4\n',
    "an empty text and more": 'p,a,b\n1,"x\ny",2\n2,""q"#,3\n3,z,4\n',
    "a quote after a text": 'p,a,b\n1,"x\ny",2\n2," "q"\n#,3\n3,z,4\n',
    "a quote within a field": 'p,a,b\n1,"x\ny",2\n2,5" pipe,3\n3,z,4\n',
    "an empty text and a text": 'p,a,b\n1,"x\ny",2\n2,"""q"x"\n"q""q",3\n3,z,4\n',
}
CLOSED = {
    "texts over lines": 'p,a\n1,"x\n\n""y"", z"\n2,"y"\n',
    "one after the other": 'p,a\n1,"x\ny"\n2,"y\nz"\n',
    "a quote within": 'p,a\n1,5" pipe\n2,y\n',
    "an empty text": 'p,a\n1,"x\ny"\n2,""\n',
    "a line of Windows": 'p,a\r\n1,"x\r\ny"\r\n2,"y"\r\n',
    "names in quotes after a mark of order": '\ufeff"p","a"\n1,"x\ny"\n2,"y"',
}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("text", OPEN.values(), ids=OPEN)
def test_a_quote_that_is_never_closed_is_refused_and_nothing_is_written(
    text: str, packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("t.csv.GZ" if packed else "t.csv")  # DuckDB unpacks it whatever the case
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    folder = tmp_path / "clinic"
    assert run(["init", str(folder)]) == 0
    before = (folder / "catalog.toml").read_text()
    assert run(["table", "add", "t", str(path), "--unit", "p", "--format", "csv", "--folder", str(folder)]) == 4
    assert f"T613 {path}, line " in capsys.readouterr().err
    assert (folder / "catalog.toml").read_text() == before
    assert not (folder / "versions.json").exists()


@pytest.mark.parametrize("text", CLOSED.values(), ids=CLOSED)
def test_texts_over_lines_whose_quotes_are_closed_are_accepted(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with tacit.Curator(tmp_path / "clinic") as curator:
        table = curator.add_table("t", tmp_path / "t.csv", unit="p")
        assert curator.engines.count_rows(table) == 2


def test_a_quote_that_is_not_closed_any_more_is_refused_by_the_refresh_and_by_no_question(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CLOSED["texts over lines"])
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", tmp_path / "t.csv", unit="p")
        curator.set_budget("t", epsilon=5)
        (tmp_path / "t.csv").write_text(OPEN["after texts over lines"])
        curator.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        with pytest.raises(SourceMissing, match="line 4: a text in quotes begins"):
            curator.refresh()
        assert curator.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).cost.epsilon == 0


def test_zstandard_is_refused_and_no_value_becomes_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zst"
    duckdb.sql(f"COPY (SELECT 'anna' AS person, 'flu' AS diagnosis) TO '{path}' (FORMAT csv, COMPRESSION zstd)")
    with tacit.Curator(tmp_path / "clinic") as curator:
        with pytest.raises(SourceMissing, match="Zstandard-compressed files are not supported; decompress"):
            curator.add_table("t", path, unit="person")
        assert not curator.catalog.tables


ROWS = pd.DataFrame([[1, 2, 3], [2, 3, 4]])


class Stream:
    """A frame of a library that nobody knows."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self._table.__arrow_c_stream__(schema)


def arrow(names: list[str]) -> Any:
    return pa.table([[1, 2], [2, 3], [3, 4]], names=names)


FRAMES: dict[str, Callable[[list[str]], Any]] = {
    "pandas": lambda names: ROWS.set_axis(names, axis=1),
    "arrow": arrow,
    "reader": lambda names: arrow(names).to_reader(),
    "stream": lambda names: Stream(arrow(names)),
}


@pytest.mark.parametrize("other", ["a", "A"])
@pytest.mark.parametrize("kind", [*FRAMES, "polars", "lazy", "csv", "parquet"])
def test_two_columns_of_one_name_are_refused_and_nothing_is_written(kind: str, other: str, tmp_path: Path) -> None:
    names = ["p", "a", other]
    data: Any = tmp_path / f"t.{kind}"
    if kind in FRAMES:
        data = FRAMES[kind](names)
    elif kind == "csv":
        ROWS.to_csv(data, index=False, header=names)
    elif kind == "parquet":
        pq.write_table(arrow(names), data)
    elif other == "a":
        pytest.skip("polars has no two columns of one name")
    else:
        frame = pl.DataFrame(ROWS.set_axis(names, axis=1))
        data = frame.lazy() if kind == "lazy" else frame
    with tacit.Curator(tmp_path / "clinic") as curator:
        with pytest.raises(InvalidInput, match="two columns") as caught:
            curator.add_table("t", data, unit="p")
        assert caught.value.code == "T100"
        assert not curator.catalog.tables
        assert not (curator.folder / "tables").exists()


def test_names_that_come_twice_later_are_refused_by_the_refresh(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("p,a\n1,2\n")
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", tmp_path / "t.csv", unit="p")
        (tmp_path / "t.csv").write_text("p,a,A\n1,2,3\n")
        with pytest.raises(InvalidInput, match="a and A"):
            curator.refresh()


def test_a_column_inside_of_another_may_have_its_name(tmp_path: Path) -> None:
    table = pa.table({"p": [1, 2], "s": [{"p": 1, "s": 2}] * 2, "l": [[1], [2]], "a": [3, 4]})
    pq.write_table(table, tmp_path / "t.parquet")
    with tacit.Curator(tmp_path / "clinic") as curator:
        assert [one.name for one in curator.add_table("t", tmp_path / "t.parquet", unit="p").columns] == ["p", "a"]
