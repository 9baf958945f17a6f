"""Who else can read a folder: nobody, whatever the umask was when its files were made."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import tacit
from tacit.cli.app import run
from tacit.curator import Curator, PrivacyWarning
from tacit.server.access import Access, Grant, Hasher, Role
from tacit.server.database import open_database
from tacit.server.settings import Settings
from tests.unit.server.clinic import PASSWORD, Clinic

PEOPLE = pd.DataFrame({"person": range(200), "age": range(200)})


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def readable_by_others(folder: Path) -> dict[str, str]:
    found = {str(path.relative_to(folder.parent)): path.lstat().st_mode for path in (folder, *folder.rglob("*"))}
    return {name: oct(mode) for name, mode in found.items() if mode & 0o077 and not stat.S_ISLNK(mode)}


def toured(folder: Path) -> None:
    """Do with a folder what its owner, its analysts and its server do; it is open while this looks on."""
    rows, place = folder.parent / "visits.csv", ["--folder", str(folder)]
    PEOPLE.to_csv(rows, index=False)
    assert run(["init", str(folder)]) == 0
    assert run(["table", "add", "visits", str(rows), "--unit", "person", "--bounds", "age=0:100", *place]) == 0
    assert run(["budget", "set", "visits", "--epsilon", "5", *place]) == 0
    assert run(["sql", "SELECT COUNT(*) FROM visits", "--epsilon", "0.5", *place]) == 0
    with Curator(folder) as curator:
        curator.add_table("frame", PEOPLE, unit="person", columns={"age": tacit.Bounds(0, 100)}, dataset="visits")
        curator.sql("SELECT COUNT(*) FROM frame", epsilon=0.5)
        tacit.stats.mean(curator.table("visits")["age"], epsilon=0.5, rows_per_unit=1)
        served(curator)
        (folder / "kept").mkdir(mode=0o700)
        curator.ledger.backup(folder / "kept" / "copy.sqlite")
        curator.ledger.export(folder / "kept" / "export.jsonl")
        curator.refresh()
        assert readable_by_others(folder) == {}


def served(curator: Curator) -> None:
    access = Access(open_database(curator.folder), hasher=Hasher(is_cheap=True))
    access.people.add("owner", PASSWORD)
    access.people.grant("owner", Grant(Role.OWNER))
    token = access.tokens.create("owner").text
    settings = Settings(folder=curator.folder, hosts=("testserver",))
    clinic = Clinic(curator.folder, curator, access, settings, {"owner": token})
    with clinic.client:
        assert clinic.call("owner", "POST", "/v1/login", json={"name": "owner", "password": PASSWORD}).is_success
        body = {"sql": "SELECT COUNT(*) FROM visits WHERE age < 9", "epsilon": 0.5}
        assert clinic.call("owner", "POST", "/v1/queries", json=body).is_success
        assert readable_by_others(curator.folder) == {}
    access.database.close()


def test_nothing_of_a_folder_can_be_read_by_others(tmp_path: Path) -> None:
    toured(tmp_path / "clinic")
    assert readable_by_others(tmp_path / "clinic") == {}


def test_nothing_of_a_folder_that_python_made_can_be_read_by_others(tmp_path: Path) -> None:
    with Curator(tmp_path / "clinic") as curator:
        curator.add_table("frame", PEOPLE, unit="person")
    assert readable_by_others(tmp_path / "clinic") == {}


def test_nothing_of_a_demo_that_is_kept_can_be_read_by_others(tmp_path: Path) -> None:
    assert run(["demo", "--no-serve", "--folder", str(tmp_path / "demo")]) == 0
    assert readable_by_others(tmp_path / "demo") == {}


def test_an_open_folder_is_said_once_and_left_as_its_owner_set_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "it's open"
    Curator(folder).close()
    folder.chmod(0o750)
    with pytest.warns(PrivacyWarning, match=r"chmod 700 '.*it'\"'\"'s open'"):
        Curator(folder).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Curator(folder).close()
    assert folder.stat().st_mode & 0o777 == 0o750


def test_the_command_line_says_that_a_folder_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    assert run(["init", str(tmp_path / "open")]) == 0
    assert f"chmod 700 {tmp_path}/open" in capsys.readouterr().err
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o755
