"""`tacit init`: a folder with a catalog and a ledger, and never over what is there."""

import json
from pathlib import Path

import pytest

from tacit.cli.app import run
from tacit.curator.catalog import Catalog
from tacit.ledger import Ledger


def test_a_folder_is_made_with_an_empty_catalog_and_an_empty_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "clinic"
    assert run(["init", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert f"tacit table add visits visits.csv --unit COLUMN --folder {folder}" in shown
    assert f"tacit budget set visits --epsilon 1 --delta 1e-7 --folder {folder}" in shown
    assert Catalog.open(folder).tables == {}
    assert "[tables.visits]" in (folder / "catalog.toml").read_text()
    with Ledger.open(folder, create=False) as ledger:
        assert ledger.scopes() == []


def test_without_a_name_it_is_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["next"][0] == "tacit table add visits visits.csv --unit COLUMN"
    assert {facts["catalog"], facts["ledger"]} == {"catalog.toml", "ledger.sqlite"}
    assert (tmp_path / "catalog.toml").exists()


@pytest.mark.parametrize("name", ["catalog.toml", "ledger.sqlite"])
def test_what_is_there_is_never_written_over(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text("mine")
    assert run(["init", str(tmp_path)]) == 2
    assert "already exists; nothing was changed" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert run(["init", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err
    assert run(["init", str(tmp_path / "file" / "below")]) == 2
    assert "cannot be created" in capsys.readouterr().err
