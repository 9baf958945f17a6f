"""`tacit table` on real files: names and types are found, and what cannot be read is one sentence."""

import gzip
import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli.app import run
from tacit.curator.catalog import Catalog
from tacit.curator.table_sources import describe
from tacit.engines.protocol import Source
from tacit.privacy import Bounds, Categories
from tacit.privacy.tables import Kind

ROWS = "patient_id,age,sex,day\n1,30,F,2020-01-01\n2,4137,M,2021-01-01\n"
SECRET = "4137"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text(ROWS)
    Path("visits.tsv").write_text(ROWS.replace(",", "\t"))
    Path("visits.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    with duckdb.connect("clinic.duckdb") as connection:
        connection.execute("CREATE TABLE visits AS FROM 'visits.csv'")
        connection.execute("COPY visits TO 'visits.parquet'")
        connection.execute("COPY visits TO 'part-1.parquet'")
        connection.execute("COPY visits TO 'part-2.parquet'")
    assert run(["init", "clinic"]) == 0
    capsys.readouterr()
    return tmp_path / "clinic"


@pytest.mark.parametrize(
    "source", ["visits.csv", "visits.tsv", "visits.csv.gz", "visits.parquet", "part-*.parquet", "clinic.duckdb#visits"]
)
def test_every_kind_of_file_becomes_a_table(folder: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--unit", "patient_id", "--bounds", "age=0:120", "--categories", "sex=F,M", "--folder", "clinic"]
    assert run(["table", "add", "visits", source, *options]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert SECRET not in out + err + (folder / "catalog.toml").read_text()
    visits = Catalog.open(folder).schema.table("visits")
    assert [column.kind for column in visits.columns] == [Kind.INTEGER, Kind.INTEGER, Kind.TEXT, Kind.DATE]
    assert (visits.column("age").facts, visits.column("sex").facts) == (Bounds(0, 120), Categories(["F", "M"]))


def test_odd_names_and_types_are_found_as_they_are(tmp_path: Path) -> None:
    names = ['a "b".c', "Größe", "x\ny", "tags"]
    columns = [pa.array([1]), pa.array([1.5]), pa.array(["a"]), pa.array([["a"]])]
    pq.write_table(pa.table(columns, names=names), tmp_path / "odd.parquet")
    found = describe(Source("parquet", str(tmp_path / "odd.parquet")))
    assert [one.name for one in found] == names
    assert [one.kind for one in found] == [Kind.INTEGER, Kind.REAL, Kind.TEXT, None]


@pytest.mark.parametrize(
    ("source", "content"),
    [("bad.parquet", b"no parquet"), ("bad.duckdb#visits", b"no database"), ("clinic.duckdb#nowhere", None)],
)
def test_a_file_that_cannot_be_read_is_one_sentence_and_leaves_nothing_behind(
    folder: Path, source: str, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        Path(source.partition("#")[0]).write_bytes(content)
    assert run(["table", "add", "visits", source, "--public", "--folder", "clinic"]) in (2, 4)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "internal error" not in err
    assert Catalog.open(folder).tables == {}


def test_three_commands_lead_to_a_private_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["patient,age", *(f"{row},{row % 90}" for row in range(500))]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    assert run(["init", "clinic"]) == 0
    stated = ["--unit", "patient", "--bounds", "age=0:120", "--epsilon", "3", "--delta", "1e-7"]
    assert run(["table", "add", "visits", "visits.csv", *stated, "--folder", "clinic"]) == 0
    capsys.readouterr()
    sql = "SELECT COUNT(*) AS n FROM visits"
    assert run(["sql", sql, "--epsilon", "2", "--rows-per-group", "1", "--folder", "clinic", "--json", "--yes"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert abs(found["rows"][0]["n"] - 500) < 40
    assert found["remaining"]["visits"]["epsilon"] == pytest.approx(1.0)


@pytest.mark.parametrize("wrong", [["--epsilon", "-1"], ["--epsilon", "1", "--delta", "2"], ["--epsilon", "nan"]])
def test_a_budget_that_cannot_be_set_leaves_no_table_behind(
    wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("patient,age\n1,2\n")
    assert run(["init", "clinic"]) == 0
    assert run(["table", "add", "visits", "visits.csv", "--unit", "patient", *wrong, "--folder", "clinic"]) == 2
    assert not Catalog.open(tmp_path / "clinic").tables


def test_a_second_budget_is_refused_before_the_table_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("patient,age\n1,2\n")
    assert run(["init", "clinic"]) == 0
    add = ["table", "add", "visits", "visits.csv", "--unit", "patient", "--epsilon", "1", "--folder", "clinic"]
    assert run(add) == 0
    before = Catalog.open(tmp_path / "clinic").text
    assert run([*add, "--replace", "--bounds", "age=0:9"]) == 2
    assert "T121" in capsys.readouterr().err
    assert Catalog.open(tmp_path / "clinic").text == before


def test_a_new_table_is_shown_with_its_rows_and_columns_without_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("names.csv").write_text("patient_id,age\n")
    Path("texts.csv").write_text("patient_id,age\n1,young\n2,old\n")
    for name, rows, doubt in (
        ("visits", "visits: 2 usable rows\n", ""),
        ("names", "names: 0 usable rows\n", "tacit: warning: names has no usable rows"),
        ("texts", "texts: 2 usable rows\n", "tacit: warning: texts has no values in age\n"),
    ):
        words = [name, f"{name}.csv", "--unit", "patient_id", "--kind", "age=integer", "--folder", "clinic"]
        assert run(["table", "add", *words]) == 0
        out, err = capsys.readouterr()
        assert rows in out
        assert doubt in err
        assert ("warning" in err) == bool(doubt)
    assert run(["table", "add", *words, "--replace", "--json"]) == 0
    added = json.loads(capsys.readouterr().out)
    assert (added["rows"], added["warnings"]) == ({"texts": 2}, ["texts has no values in age"])


def test_a_binary_file_that_is_named_csv_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (Path("visits.parquet").read_bytes(), gzip.compress(ROWS.encode()), bytes(range(256)) * 40):
        Path("binary.csv").write_bytes(content)
        assert run(["table", "add", "binary", "binary.csv", "--each-row", "--folder", "clinic"]) == 4
        assert "binary.csv is not a text file; if it is Parquet, use --format parquet\n" in capsys.readouterr().err
    Path("utf16.csv").write_text(ROWS, encoding="utf-16")
    assert run(["table", "add", "utf16", "utf16.csv", "--each-row", "--folder", "clinic"]) == 0
