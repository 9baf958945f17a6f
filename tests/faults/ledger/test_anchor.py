"""The head noted beside a ledger: a ledger that was deleted, cut off or replaced is noticed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tacit.curator import Curator
from tacit.ledger import HEAD_FILE, Ledger
from tacit.ledger.anchor import LINE_BYTES, Anchor
from tacit.privacy import events
from tacit.privacy.errors import (
    LedgerCorrupt,
    LedgerReadOnly,
    LedgerRolledBack,
    LedgerUnavailable,
)
from tests.faults.ledger.backups import TENTH, database
from tests.faults.ledger.simulator import Disk, begin, check
from tests.style.rules import ROOT


def test_a_deleted_ledger_is_not_made_anew(folder: Path) -> None:
    database(folder).unlink()
    before = sorted(os.listdir(folder))
    for opening in (Ledger.open, Curator, lambda where: Ledger.open(where, create=False)):
        with pytest.raises(
            LedgerRolledBack, match=r"is missing, and .*ledger\.head noted a ledger here up to record 6"
        ) as found:
            opening(folder)
        assert (found.value.code, found.value.exit_code) == ("T502", 4)
        assert "tacit ledger restore" in found.value.message
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("content", [b"", b"torn", bytes(2 * LINE_BYTES)])
def test_a_deleted_ledger_is_not_made_anew_because_its_head_cannot_be_read(folder: Path, content: bytes) -> None:
    database(folder).unlink()
    (folder / HEAD_FILE).write_bytes(content)
    with pytest.raises(LedgerRolledBack, match="is missing"):
        Ledger.open(folder)


def test_an_older_copy_put_in_its_place_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copyfile(tmp_path / "backup", database(folder))
    for _ in range(2):
        with pytest.raises(LedgerRolledBack, match="records 5 to 6 are missing") as found:
            Ledger.open(folder)
        assert found.value.record == 6
    with pytest.raises(LedgerRolledBack, match="records 5 to 6 are missing"):
        Ledger.rebuild(folder, by="carl", reason="hope")


def test_an_empty_ledger_put_in_its_place_is_refused(folder: Path, tmp_path: Path) -> None:
    Ledger.open(tmp_path / "empty").close()
    shutil.copyfile(database(tmp_path / "empty"), database(folder))
    with pytest.raises(LedgerRolledBack, match="records 1 to 6 were noted"):
        Ledger.open(folder)


def test_another_ledger_put_in_its_place_is_refused(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other") as other:
        other.create_budget("visits", epsilon=1.0)
        for _ in range(9):
            other.reserve("visits", TENTH)
    shutil.copyfile(database(tmp_path / "other"), database(folder))
    with pytest.raises(LedgerRolledBack, match="record 6 is not the one that was noted"):
        Ledger.open(folder)


KILLED = """
import os, signal, sys
from tacit.ledger import Ledger
from tacit.privacy import events
ledger = Ledger.open(sys.argv[1])
ledger.create_budget("visits", epsilon=1.0)
for _ in range(5):
    ledger.reserve("visits", events.Laplace(0.1))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_loses_nothing_and_a_file_without_its_log_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "clinic")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    shutil.copytree(tmp_path / "clinic", tmp_path / "cut")
    (tmp_path / "cut" / "ledger.sqlite-wal").unlink()
    with pytest.raises(LedgerRolledBack, match="records 1 to 6 were noted"):
        Ledger.open(tmp_path / "cut")
    with Ledger.open(tmp_path / "clinic") as ledger:
        assert ledger.verify(full=True).head.number == 6


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_moment_never_leaves_a_head_that_leads(tmp_path: Path, seed: int) -> None:
    images = 0

    def look(statement: str) -> None:
        nonlocal images
        images += 1
        image = disk.image(tmp_path / f"image-{images}", with_head=True)
        with Ledger.open(Disk(image).store()) as recovered:
            check(recovered, client)

    disk = Disk(tmp_path / "ledger", look)
    client = begin(disk.store(), seed)
    disk.is_watched = True
    client.work(8)
    disk.is_watched = False
    client.ledger.close()
    assert images > 50


@pytest.mark.parametrize("seed", range(2))
def test_a_log_that_was_torn_off_is_noticed(tmp_path: Path, seed: int) -> None:
    disk = Disk(tmp_path / "ledger")
    client = begin(disk.store(), seed)
    client.work(8)
    last, log = client.ledger.head().number, (tmp_path / "ledger" / "ledger.sqlite-wal").read_bytes()
    for part in range(10):
        torn = disk.image(tmp_path / f"torn-{part}", with_head=True)
        (torn / "ledger.sqlite-wal").write_bytes(log[: len(log) * part // 10])
        with pytest.raises(LedgerRolledBack, match=str(last)):
            Ledger.open(torn)
    client.ledger.close()


def test_a_line_that_was_torn_locks_nobody_out(folder: Path) -> None:
    right = (folder / HEAD_FILE).read_bytes()
    assert len(right) == 2 * LINE_BYTES
    assert right.decode("ascii").count("\n") == 2
    damaged = [right[:cut] for cut in range(0, len(right), 37)]
    damaged += [right[:place] + bytes([right[place] ^ 1]) + right[place + 1 :] for place in range(0, len(right), 41)]
    damaged += [b"", b"\xff" * 2 * LINE_BYTES, right[:LINE_BYTES] + bytes(LINE_BYTES), b"x" * 10_000]
    for content in damaged:
        (folder / HEAD_FILE).write_bytes(content)
        with Ledger.open(folder) as ledger:
            assert ledger.head().number == 6
        noted = Anchor(folder / HEAD_FILE).read()
        assert noted is not None
        assert noted.number == 6


def test_one_torn_line_leaves_the_other_to_be_held_against(folder: Path, tmp_path: Path) -> None:
    right = (folder / HEAD_FILE).read_bytes()
    shutil.copyfile(tmp_path / "backup", database(folder))
    for place in (5, LINE_BYTES + 5):
        (folder / HEAD_FILE).write_bytes(right[:place] + b"?" + right[place + 1 :])
        with pytest.raises(LedgerRolledBack, match=r"record(s 5 to)? \d"):
            Ledger.open(folder)


def test_a_head_that_lags_is_brought_up_to_date(folder: Path, tmp_path: Path) -> None:
    early = (folder / HEAD_FILE).read_bytes()
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", TENTH)
        ledger.reserve("visits", TENTH)
    (folder / HEAD_FILE).write_bytes(early)
    with Ledger.open(folder) as ledger:
        noted = Anchor(folder / HEAD_FILE).read()
        assert noted is not None
        assert (noted.number, noted.hash) == (ledger.head().number, ledger.head().hash)
        assert noted.ledger == next(ledger.history()).hash


def test_a_copy_without_a_head_opens_and_notes_its_own(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    shutil.copyfile(tmp_path / "backup", tmp_path / "copy" / "ledger.sqlite")
    with Ledger.open(tmp_path / "copy"):
        noted = Anchor(tmp_path / "copy" / HEAD_FILE).read()
    assert noted is not None
    assert noted.number == 4


def test_the_head_is_private_and_a_ledger_without_records_has_none(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        assert not (tmp_path / HEAD_FILE).exists()
        ledger.create_budget("visits", epsilon=1.0)
        assert (tmp_path / HEAD_FILE).stat().st_mode & 0o777 == 0o600


def test_where_the_head_cannot_be_noted_a_ledger_can_be_read_and_is_not_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def denied(path: object, *arguments: int, **settings: int) -> int:
        if str(path).endswith(HEAD_FILE):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr("os.open", denied)
    with Ledger.open(folder) as ledger:
        with pytest.raises(LedgerReadOnly, match="nothing was charged; make it writable"):
            ledger.reserve("visits", TENTH)
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.5)
        monkeypatch.undo()
        ledger.reserve("visits", TENTH)


def test_what_is_in_the_place_of_the_head_and_no_file_stops_every_change(folder: Path) -> None:
    (folder / HEAD_FILE).unlink()
    (folder / HEAD_FILE).mkdir()
    with Ledger.open(folder) as ledger, pytest.raises(LedgerReadOnly):
        ledger.reserve("visits", TENTH)


def test_a_ledger_that_is_put_back_while_it_is_open_admits_nothing(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", TENTH)
        with closing(sqlite3.connect(tmp_path / "backup")) as old, closing(sqlite3.connect(database(folder))) as live:
            old.backup(live)  # the same file, with an older content
        with pytest.raises(LedgerRolledBack, match="replaced while it was open"):
            ledger.reserve("visits", TENTH)
        with pytest.raises(LedgerRolledBack):
            ledger.budget("visits").spent()


def test_what_others_append_is_no_sign_that_a_ledger_was_put_back(folder: Path) -> None:
    with Ledger.open(folder) as one, Ledger.open(folder) as other:
        for ledger in (one, other, other, one):
            ledger.reserve("visits", TENTH)
        assert one.head().number == 10


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_what_was_removed_or_replaced_while_it_is_open_is_not_written_to(folder: Path, change: str) -> None:
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", TENTH)
        copied = folder.with_name("copy")
        shutil.copyfile(database(folder), copied)
        database(folder).unlink()
        if change == "replaced":
            os.replace(copied, database(folder))
        with pytest.raises(LedgerUnavailable, match="was removed or replaced since it was opened: nothing was charged"):
            ledger.reserve("visits", TENTH)


def test_a_pipe_in_the_place_of_the_head_blocks_nobody(folder: Path) -> None:
    (folder / HEAD_FILE).unlink()
    os.mkfifo(folder / HEAD_FILE)
    with Ledger.open(folder) as ledger:
        assert ledger.head().number == 6
        with pytest.raises(LedgerReadOnly):
            ledger.reserve("visits", TENTH)


def test_a_ledger_that_is_put_back_while_it_is_open_does_not_verify(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(folder) as ledger:
        with closing(sqlite3.connect(tmp_path / "backup")) as older, closing(sqlite3.connect(database(folder))) as live:
            older.backup(live)
        os.unlink(folder / HEAD_FILE)
        with pytest.raises(LedgerRolledBack, match="replaced while it was open: record 6"):
            ledger.verify()


def test_verify_notes_where_the_journal_ends_and_lowers_the_note_only_for_a_restored_ledger(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("note", "reset"):
        real = getattr(Anchor, name)
        monkeypatch.setattr(
            Anchor, name, lambda self, head, name=name, real=real: (calls.append(name), real(self, head))
        )
    with Ledger.open(folder) as ledger:
        ledger.verify()
    assert calls == ["note", "note"]
    noted = Anchor(folder / HEAD_FILE).read()
    Ledger.restore(folder, tmp_path / "backup", by="eva", reason="disk", lost_records=2).close()
    assert noted is not None
    Anchor(folder / HEAD_FILE).reset(noted)  # as if the restoration had crashed before it noted its own head
    calls.clear()
    with Ledger.open(folder) as ledger:
        assert calls == ["reset"]
        assert [noted.number for noted in [Anchor(folder / HEAD_FILE).read()] if noted] == [ledger.head().number] == [5]


def test_verify_remembers_where_the_journal_ends(folder: Path) -> None:
    with Ledger.open(folder) as ledger, Ledger.open(folder) as other:
        other.reserve("visits", TENTH)
        ledger.verify()
        assert ledger._seen is not None
        assert (ledger._seen.number, ledger._seen.hash) == (other.head().number, other.head().hash)


def test_the_record_that_was_noted_is_checked_to_be_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.ledger.transactions.CHECKPOINT_EVERY", 4)
    with Ledger.open(folder) as ledger:
        noted = Anchor(folder / HEAD_FILE).read()
        for _ in range(4):
            ledger.reserve("visits", events.Laplace(0.01))
        assert ledger.head().checkpoint > 6
    assert noted is not None
    Anchor(folder / HEAD_FILE).reset(noted)
    with closing(sqlite3.connect(database(folder))) as connection, connection:
        connection.execute("UPDATE journal SET body = replace(body, 'laplace', 'Laplace') WHERE number = 6")
    with pytest.raises(LedgerCorrupt, match="record 6 does not have the hash"):
        Ledger.open(folder)


def test_a_lowered_note_is_on_disk_before_the_ledger_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync
    monkeypatch.setattr(
        "tacit.ledger.anchor.os.fsync", lambda one: (synced.append(os.readlink(f"/proc/self/fd/{one}")), real(one))
    )
    anchor = Anchor(folder / HEAD_FILE)
    noted = anchor.read()
    assert noted is not None
    anchor.note(noted)
    assert synced == []
    anchor.reset(noted)
    assert synced == [str(folder / HEAD_FILE)] * 2
