"""A restored backup: what is lost is stated, and no other ledger takes its place."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tacit.ledger import HEAD_FILE, Ledger, SqliteStore
from tacit.ledger.anchor import Anchor
from tacit.privacy import events
from tacit.privacy.errors import (
    InvalidInput,
    LedgerBusy,
    LedgerCorrupt,
    LedgerMoved,
    LedgerRolledBack,
    OutOfRange,
    TacitError,
)
from tests.faults.ledger.backups import TENTH, database
from tests.faults.ledger.simulator import Crash


def restored(folder: Path, backup: Path, **settings: int) -> Ledger:
    return Ledger.restore(folder, backup, by="carl", reason="the disk failed", **settings)


@pytest.mark.parametrize("damage", ["deleted", "older", "garbage", "whole"])
def test_a_backup_is_restored_if_it_is_said_what_is_lost(folder: Path, tmp_path: Path, damage: str) -> None:
    if damage == "deleted":
        database(folder).unlink()
    elif damage == "older":
        shutil.copyfile(tmp_path / "backup", database(folder))
    elif damage == "garbage":
        database(folder).write_bytes(b"garbage" * 1000)
    old = database(folder).read_bytes() if database(folder).exists() else None
    for lost in (0, 1, 3):
        with pytest.raises(OutOfRange, match=r"ends with record 4, so 2 records that were noted are lost"):
            restored(folder, tmp_path / "backup", lost_records=lost)
    assert (database(folder).read_bytes() if database(folder).exists() else None) == old, "nothing was changed"
    with restored(folder, tmp_path / "backup", lost_records=2) as ledger:
        ledger.verify(full=True)
        *_, record = ledger.history()
        assert (record.kind, record.number) == ("restored", 5)
        facts = record.contents
        assert (facts["by"], facts["reason"], facts["lost"], facts["noted"]) == ("carl", "the disk failed", 2, 6)
        ledger.reserve("visits", TENTH)
    assert (facts["aside"] is not None) == (old is not None)
    if damage == "garbage":
        assert (folder / facts["aside"]).read_bytes() == old
    elif facts["aside"] is not None:
        with closing(sqlite3.connect(folder / facts["aside"])) as aside:
            assert aside.execute("SELECT number FROM head").fetchall() == [(6 if damage == "whole" else 4,)]
    with Ledger.open(folder) as ledger:
        assert ledger.head().number == 6
        noted = Anchor(folder / HEAD_FILE).read()
        assert noted is not None
        assert noted.number == 6
    assert not [path for path in folder.iterdir() if path.name.startswith(".restoring")]


def test_a_backup_that_holds_everything_is_restored_without_loss(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(folder) as ledger:
        ledger.backup(tmp_path / "newest")
    database(folder).unlink()
    with pytest.raises(OutOfRange, match="0 records"):
        restored(folder, tmp_path / "newest", lost_records=1)
    with restored(folder, tmp_path / "newest") as ledger:
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.5)
        assert [record.contents["lost"] for record in ledger.history(7)] == [0]


def test_the_backup_of_another_ledger_is_not_restored(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other") as other:
        other.create_budget("visits", epsilon=1.0)
        other.backup(tmp_path / "others")
    database(folder).unlink()
    with pytest.raises(LedgerRolledBack, match="a different ledger"):
        restored(folder, tmp_path / "others", lost_records=5)


def test_a_backup_that_went_on_elsewhere_is_not_restored(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    shutil.copyfile(tmp_path / "backup", tmp_path / "copy" / "ledger.sqlite")
    with Ledger.open(tmp_path / "copy") as copy:
        for _ in range(4):
            copy.reserve("visits", events.Laplace(0.05))
        copy.backup(tmp_path / "elsewhere")
    with pytest.raises(LedgerRolledBack, match="was used elsewhere"):
        restored(folder, tmp_path / "elsewhere")


def test_a_damaged_backup_is_not_restored(folder: Path, tmp_path: Path) -> None:
    content = bytearray((tmp_path / "backup").read_bytes())
    place = content.index(b'"reserved"' if b'"reserved"' in content else b"reserved")
    content[place] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    before = database(folder).read_bytes()
    with pytest.raises(LedgerCorrupt):
        restored(folder, tmp_path / "damaged", lost_records=2)
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InvalidInput, match="is not a file"):
            restored(folder, path)
    assert database(folder).read_bytes() == before


def test_a_ledger_that_somebody_has_open_is_not_replaced(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(folder) as ledger:
        with pytest.raises(LedgerBusy, match="stop them"):
            restored(folder, tmp_path / "backup", lost_records=2)
        ledger.reserve("visits", TENTH)
        ledger.verify(full=True)


def test_records_beyond_the_noted_head_are_lost_too(folder: Path, tmp_path: Path) -> None:
    early = (folder / HEAD_FILE).read_bytes()
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", TENTH)
    (folder / HEAD_FILE).write_bytes(early)
    with pytest.raises(OutOfRange, match="3 records"):
        restored(folder, tmp_path / "backup", lost_records=2)
    restored(folder, tmp_path / "backup", lost_records=3).close()


@pytest.mark.parametrize("step", ["os.rename", "os.replace", "tacit.ledger.anchor.Anchor.reset"])
def test_a_restoration_that_was_interrupted_can_be_run_again_or_is_done(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def crash(*_: object) -> None:
        raise Crash(step)

    with monkeypatch.context() as patch:
        patch.setattr(step, crash)
        with pytest.raises(Crash):
            restored(folder, tmp_path / "backup", lost_records=2)
    with suppress(TacitError), Ledger.open(folder) as ledger:
        ledger.verify(full=True)
        if ledger.head().number == 5:
            return  # it was done, and says so itself
    with restored(folder, tmp_path / "backup", lost_records=2) as ledger:
        assert ledger.head().number == 5
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", TENTH)


def test_the_head_of_another_server_that_lies_in_what_was_lost_is_accepted(folder: Path, tmp_path: Path) -> None:
    """Several servers note the head of one database, each in its own folder."""
    other = tmp_path / "other" / HEAD_FILE
    other.parent.mkdir()
    lost = (folder / HEAD_FILE).read_bytes()
    other.write_bytes(lost)
    restored(folder, tmp_path / "backup", lost_records=2).close()
    with Ledger.open(SqliteStore(folder), anchor=other) as ledger:
        assert ledger.head().number == 5
    other.write_bytes(lost)
    with Ledger.open(folder) as ledger:
        for _ in range(3):
            ledger.reserve("visits", TENTH)
    with Ledger.open(SqliteStore(folder), anchor=other) as ledger:
        assert ledger.head().number == 8


def test_charges_after_a_restoration_are_not_among_those_it_lost(folder: Path, tmp_path: Path) -> None:
    restored(folder, tmp_path / "backup", lost_records=2).close()
    shutil.copyfile(database(folder), tmp_path / "after")
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", TENTH)  # record 6, and a record 6 was lost
    shutil.copyfile(tmp_path / "after", database(folder))
    with pytest.raises(LedgerRolledBack, match="records 6 to 6 are missing"):
        Ledger.open(folder)


def test_another_ledger_that_was_restored_is_not_taken_for_this_one(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with Ledger.open(other) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.backup(tmp_path / "others")
        for _ in range(9):
            ledger.reserve("visits", TENTH)
    Ledger.restore(other, tmp_path / "others", by="carl", reason="lost", lost_records=9).close()
    shutil.copyfile(database(other), database(folder))
    with pytest.raises(LedgerRolledBack, match="another ledger"):
        Ledger.open(folder)


@pytest.mark.parametrize("is_left", [True, False], ids=["the old file is left", "only the head is left"])
def test_a_ledger_that_was_moved_is_not_restored_where_it_was(folder: Path, tmp_path: Path, is_left: bool) -> None:
    with Ledger.open(folder) as ledger:
        ledger.export(tmp_path / "export")
    with Ledger.open(tmp_path / "new") as ledger:
        ledger.import_(tmp_path / "export")
    if not is_left:
        database(folder).unlink()
    for lost in range(5):
        with pytest.raises(LedgerMoved, match="was moved to another location"):
            restored(folder, tmp_path / "backup", lost_records=lost)


def test_a_restored_ledger_notes_its_head_in_both_lines(folder: Path, tmp_path: Path) -> None:
    restored(folder, tmp_path / "backup", lost_records=2).close()
    first, second = (folder / HEAD_FILE).read_text().splitlines()
    assert first == second


def test_a_ledger_is_no_backup_of_itself(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="is the ledger itself"):
        restored(folder, database(folder))


def test_a_restoration_declares_nothing_lost_that_was_noted_since_a_later_one(tmp_path: Path) -> None:
    folder = tmp_path / "clinic"

    def charge(times: int) -> None:
        with Ledger.open(folder) as ledger:
            for _ in range(times):
                ledger.reserve("visits", TENTH)

    with Ledger.open(folder) as ledger:
        ledger.create_budget("visits", epsilon=10.0)
        ledger.backup(tmp_path / "monday")
    charge(9)
    Ledger.restore(folder, tmp_path / "monday", by="eva", reason="disk", lost_records=9).close()
    charge(2)
    with Ledger.open(folder) as ledger:
        ledger.backup(tmp_path / "tuesday")
    charge(2)
    Ledger.restore(folder, tmp_path / "tuesday", by="eva", reason="disk again", lost_records=2).close()
    charge(3)
    shutil.copyfile(tmp_path / "tuesday", database(folder))
    with pytest.raises(LedgerRolledBack, match="records 5 to 8 are missing"):
        Ledger.open(folder)
