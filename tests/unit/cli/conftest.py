"""Folders for tests of commands: a clinic with a budget, and a catalog without tables."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

from tacit.cli.app import run
from tacit.engines.protocol import Source, SourceColumn
from tests.unit.cli.stats_commands import make_clinic
from tests.unit.cli.table_commands import FOUND


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = "".join(
        f"{i % 400},{20 + i % 60},{'FM'[i % 2]},{'abc'[i % 3]},{50 + i % 60 / 2},2024-{1 + i % 12:02d}-01\n"
        for i in range(1200)
    )
    path = tmp_path_factory.mktemp("rows") / "visits.csv"
    path.write_text(f"patient,age,sex,ward,weight,day\n{rows}", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def new_clinic(tmp_path_factory: pytest.TempPathFactory, csv: str) -> str:
    """A folder whose budget nobody has touched, and nobody may."""
    return make_clinic(tmp_path_factory.mktemp("new") / "clinic", csv)


@pytest.fixture
def clinic(tmp_path: Path, new_clinic: str) -> str:
    return shutil.copytree(new_clinic, str(tmp_path / "clinic"))


@pytest.fixture(scope="module")
def rich_clinic(tmp_path_factory: pytest.TempPathFactory, csv: str) -> str:
    return make_clinic(tmp_path_factory.mktemp("rich") / "clinic", csv, "2000")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder that was set up, with files of which an engine would find these columns."""

    def describe(_source: Source) -> Sequence[SourceColumn]:
        return FOUND

    monkeypatch.setattr("tacit.curator.table_sources.describe", describe)
    monkeypatch.chdir(tmp_path)
    assert run(["init", "clinic"]) == 0
    rows = (
        "SELECT i AS id, i AS patient_id, 40::INTEGER AS age, 'F' AS sex, DATE '1980-01-01' AS birth_date, "
        "true AS smokes, 'x'::BLOB AS scan FROM range(3) AS r(i)"
    )
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS {rows}")
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'visits.parquet'}'")
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'lines.csv'}'")
    capsys.readouterr()
    return tmp_path / "clinic"
