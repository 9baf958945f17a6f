"""Going on from a backup: nobody charges to the file that is replaced, and no lock or name is lost on the way."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import HEAD_FILE, Ledger, SqliteStore
from tacit.ledger import backup as backups
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, LedgerBusy, LedgerUnavailable, NotALedger, OutOfRange, TacitError
from tests.style.rules import ROOT

TENTH = events.Laplace(0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a closed ledger of two records, and a backup of it."""
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.reserve("visits", TENTH)
        ledger.backup(tmp_path / "backup")
    return tmp_path / "clinic"


def database(folder: Path) -> Path:
    return folder / "ledger.sqlite"


def restore(folder: Path, backup: Path, lost_records: int = 0, **settings: Any) -> Ledger:
    return Ledger.restore(folder, backup, by="eva", reason="disk", lost_records=lost_records, **settings)


def test_nobody_charges_to_the_old_file_from_when_its_end_was_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def charging(name: str) -> None:
        real: Callable[..., Any] = getattr(backups, name)

        def meanwhile(*arguments: Any) -> Any:
            before = real(*arguments)
            try:
                with Ledger.open(SqliteStore(folder, busy_timeout_s=0.05)) as other:
                    other.reserve("visits", events.Laplace(0.5))
                said.append("charged")
            except TacitError as error:
                said.append(error.code)
            return before

        monkeypatch.setattr(backups, name, meanwhile)

    for name in ("_latest", "_write", "_close_log", "touch_private"):
        charging(name)
    (folder / HEAD_FILE).unlink()
    restore(folder, tmp_path / "backup").close()
    monkeypatch.undo()
    assert said == [LedgerBusy.code] * 6
    with Ledger.open(folder) as ledger:
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.1)


def test_a_file_that_is_replaced_while_it_is_opened_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    def connect(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        connection = sqlite3.connect(*arguments, **settings)
        connection.execute("SELECT * FROM head").fetchall()
        if not (tmp_path / "old").exists():
            os.rename(database(folder), tmp_path / "old")
            os.rename(tmp_path / "backup", database(folder))
        return connection

    with pytest.raises(LedgerUnavailable, match="replaced while it was opened"):
        Ledger.open(SqliteStore(folder, connect=connect))
    Ledger.open(folder).close()


SPENDING = """
import sys
from tacit.ledger import Ledger
from tacit.privacy import events
with Ledger.open(sys.argv[1]) as ledger:
    ledger.reserve("visits", events.Laplace(0.1))
"""


def test_a_backup_that_this_process_has_open_keeps_its_locks(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(folder) as live:
        live.reserve("visits", TENTH)
        restore(tmp_path / "look", database(folder)).close()
        subprocess.run([sys.executable, "-c", SPENDING, str(folder)], check=True, cwd=ROOT, timeout=60)
        assert (folder / "ledger.sqlite-wal").exists(), "the other process took itself for the last one"
        live.reserve("visits", TENTH)
        assert live.budget("visits").spent().epsilon == pytest.approx(0.4)
    with Ledger.open(tmp_path / "look") as ledger:
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.2)


def test_the_head_that_was_noted_elsewhere_counts(tmp_path: Path) -> None:
    folder, anchor = tmp_path / "clinic", tmp_path / "elsewhere.head"
    with Ledger.open(folder, anchor=anchor) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.backup(tmp_path / "backup")
        for _ in range(5):
            ledger.reserve("visits", TENTH)
    database(folder).unlink()
    with pytest.raises(OutOfRange, match="5 records that were noted are lost"):
        restore(folder, tmp_path / "backup", anchor=anchor)
    with restore(folder, tmp_path / "backup", 5, anchor=anchor) as ledger:
        ledger.reserve("visits", TENTH)
    with Ledger.open(folder, anchor=anchor) as ledger:
        assert ledger.head().number == 3
    assert not (folder / HEAD_FILE).exists()


def test_what_is_restored_is_on_disk_before_it_is_named_and_its_name_before_it_is_noted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for module, name in ((backups, "sync"), (os, "rename"), (os, "replace"), (backups, "_reset")):
        real: Callable[..., Any] = getattr(module, name)

        def noting(*arguments: Any, name: str = name, real: Callable[..., Any] = real) -> Any:
            steps.append(f"{name} {Path(arguments[0]).name}" if name != "_reset" else name)
            return real(*arguments)

        monkeypatch.setattr(module, name, noting)
    restore(folder, tmp_path / "backup").close()
    assert steps == [
        "sync ledger.sqlite",
        "rename ledger.sqlite",
        "replace ledger.sqlite",
        "sync clinic",
        "_reset",
    ]


def test_a_link_to_the_file_is_followed_and_there_is_one_ledger(tmp_path: Path) -> None:
    disk, service = tmp_path / "disk", tmp_path / "service"
    with Ledger.open(disk) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.backup(tmp_path / "backup")
    service.mkdir()
    os.symlink(database(disk), database(service))
    with Ledger.open(service) as ledger:
        ledger.reserve("visits", TENTH)
    restore(service, tmp_path / "backup", 1).close()
    assert database(service).is_symlink()
    with Ledger.open(disk) as ledger:
        ledger.reserve("visits", events.Laplace(0.9))
    with Ledger.open(service) as ledger:
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.9)


def test_a_file_with_a_second_name_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    os.link(database(folder), database(tmp_path / "copy"))
    for place in (folder, tmp_path / "copy"):
        with pytest.raises(LedgerUnavailable, match=r"has 2 names \(hard links\)"):
            Ledger.open(place)
    database(tmp_path / "copy").unlink()
    Ledger.open(folder).close()


def test_the_name_under_which_a_file_was_made_does_not_count(folder: Path) -> None:
    os.link(database(folder), folder / ".ledger.sqlite.0123456789abcdef")  # as a crash while it was made leaves it
    Ledger.open(folder).close()
    assert not (folder / ".ledger.sqlite.0123456789abcdef").exists()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_what_is_no_backup_is_said(folder: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(NotALedger):
        restore(folder, tmp_path / "other")
    Ledger.open(folder).close()


def test_a_backup_with_a_log_beside_it_is_restored_with_what_the_log_holds(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", TENTH)
        for name in ("ledger.sqlite", "ledger.sqlite-wal"):
            (tmp_path / "copy" / name).write_bytes((folder / name).read_bytes())
    with restore(tmp_path / "new", database(tmp_path / "copy")) as ledger:
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.2)


def test_a_backup_in_use_is_waited_for_no_longer_than_the_limit(folder: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "backup", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerBusy, match="is being written"):
            restore(folder, tmp_path / "backup")


@pytest.mark.parametrize("backup", [None, 1, b"x", "", "x\0", "a" * 5000])
def test_what_is_no_path_is_no_backup(folder: Path, backup: Any) -> None:
    with pytest.raises(InvalidInput):
        restore(folder, backup)
