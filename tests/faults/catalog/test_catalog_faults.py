"""A catalog under stress: writers that race or die, full disks, editors that save in between."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tacit.curator import locked_file
from tacit.curator.catalog import FILE_NAME, Catalog
from tacit.curator.locked_file import LockedFile
from tacit.engines.protocol import Source
from tacit.privacy.errors import StorageBusy, StorageFull, StorageReadOnly, StorageUnavailable, TacitError
from tacit.privacy.tables import Column, Kind, Table
from tests.style.rules import ROOT

ROWS = Source("csv", "/rows.csv")
ASIDE_NAME = f".{FILE_NAME}.new"


def table(name: str) -> Table:
    return Table(name, (Column("x", Kind.TEXT),))


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog.open(tmp_path)
    made.add(table("first"), ROWS)
    return made


def test_processes_that_add_tables_at_once_lose_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.catalog.processes", str(tmp_path)]
    started = [subprocess.Popen([*command, name, "8"], cwd=ROOT) for name in ("a", "b", "c")]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert set(Catalog.open(tmp_path).tables) == {f"{name}{number}" for name in "abc" for number in range(8)}


def test_threads_that_share_a_catalog_lose_no_table(catalog: Catalog) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: catalog.add(table(f"t{number}"), ROWS), range(12)))
    assert len(Catalog.open(catalog.folder).tables) == len(catalog.tables) == 13


@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_one_who_dies_before_the_rename_leaves_the_old_file(
    catalog: Catalog, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = catalog.path.read_bytes(), getattr(os, call)

    def die(*arguments: Any, **settings: Any) -> Any:
        if call == "open" and not str(arguments[0]).endswith(ASIDE_NAME):
            return real(*arguments, **settings)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(locked_file.os, call, die)
        with pytest.raises(Died):
            catalog.add(table("second"), ROWS)
    assert catalog.path.read_bytes() == before
    assert list(catalog.tables) == ["first"]
    later = Catalog.open(catalog.folder)
    later.add(table("third"), ROWS)
    assert list(Catalog.open(catalog.folder).tables) == ["first", "third"]
    assert not (catalog.folder / ASIDE_NAME).exists()


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EROFS, StorageReadOnly),
        (errno.EACCES, StorageReadOnly),
        (errno.EIO, StorageUnavailable),
    ],
)
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_file_and_is_named(
    catalog: Catalog, call: str, number: int, error: type[TacitError], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = catalog.path.read_bytes()

    def fail(*_arguments: Any, **_settings: Any) -> NoReturn:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(locked_file.os, call, fail)
        with pytest.raises(error, match=str(catalog.folder)) as raised:
            catalog.add(table("second"), ROWS)
    assert raised.type is error, "the ledger's errors would be about another file"
    assert catalog.path.read_bytes() == before


def test_whoever_waits_too_long_for_the_others_is_told(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked_file, "LOCK_TIMEOUT_S", 0.05)
    with LockedFile(catalog.folder, FILE_NAME).locked(), pytest.raises(StorageBusy, match="try again"):
        catalog.add(table("second"), ROWS)
    catalog.add(table("second"), ROWS)


def test_an_editor_that_saves_in_between_is_noticed(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    real = locked_file._write

    def write_while_an_editor_saves(*arguments: Any, **settings: Any) -> None:
        real(*arguments, **settings)
        catalog.path.write_text(catalog.text + "# by hand\n")

    with monkeypatch.context() as patch:
        patch.setattr(locked_file, "_write", write_while_an_editor_saves)
        with pytest.raises(StorageBusy, match="changed by another program"):
            catalog.add(table("second"), ROWS)
    assert catalog.path.read_text().endswith("# by hand\n")
    assert not (catalog.folder / ASIDE_NAME).exists()
    catalog.add(table("second"), ROWS)
    assert "# by hand\n" in catalog.path.read_text()
