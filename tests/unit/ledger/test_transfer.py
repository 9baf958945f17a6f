"""Export, import, backup: what is written elsewhere is whole or refused."""

import io
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger, backup
from tacit.ledger.journal import next_record
from tacit.ledger.stores import SqliteStore
from tacit.privacy import events
from tacit.privacy.errors import (
    AlreadySettled,
    InvalidInput,
    LedgerCorrupt,
    LedgerMoved,
    LedgerTooNew,
    NameTaken,
    NotALedger,
)
from tacit.storage.files import sync


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=3.0, delta=1e-7)
        ledger.create_cap("visits", "ana", epsilon=1.0)
        ledger.commit(ledger.reserve("visits", events.Laplace(0.1), analyst="ana"), b"\x00\xff", "SELECT 1", "1")
        ledger.commit(ledger.reserve("visits", events.Laplace(0.1)), b"\x00\xff", "SELECT 2", "1")
        ledger.reserve("visits", events.Gaussian(50), key="k")
        ledger.file_request("ana", "visits", events.Laplace(0.5), "more")
        yield ledger


@pytest.fixture
def lines(ledger: Ledger) -> list[str]:
    stream = io.StringIO()
    ledger.export(stream)
    return stream.getvalue().splitlines(keepends=True)


def test_an_import_brings_everything_back_and_keeps_the_chain(ledger: Ledger, lines: list[str], tmp_path: Path) -> None:
    head = ledger.head()
    with Ledger.open(tmp_path / "copy") as copy:
        copy.import_(io.StringIO("".join(lines)))
        copy.verify(full=True, noted=(head.number, head.hash))
        assert copy.budget("visits").spent() == ledger.budget("visits").spent()
        assert copy.reservations() == ledger.reservations()
        assert copy.requests() == ledger.requests()
        assert copy.released("SELECT 2", "1") == b"\x00\xff"
        assert [record.kind for record in copy.history()][-1] == "imported"
        copy.reserve("visits", events.Gaussian(50), key="k")
        assert len(copy.reservations()) == 1


def test_an_export_for_auditors_holds_every_record_and_no_answer(ledger: Ledger, lines: list[str]) -> None:
    shown = [json.loads(line) for line in ledger.export_lines(answers=False)]
    whole = [json.loads(line) for line in lines]
    assert any("answer" in line for line in whole)
    assert [line for line in shown if "record" in line] == [line for line in whole if "record" in line]
    assert not any("answer" in line for line in shown)
    with pytest.raises(LedgerCorrupt, match="is missing"):
        backup.read_export(ledger.export_lines(answers=False))


def test_an_export_to_a_file_appears_complete_and_private(ledger: Ledger, lines: list[str], tmp_path: Path) -> None:
    ledger.export(tmp_path / "export.jsonl")
    assert (tmp_path / "export.jsonl").read_text() == "".join(lines)
    assert (tmp_path / "export.jsonl").stat().st_mode & 0o777 == 0o600
    with Ledger.open(tmp_path / "copy") as copy:
        copy.import_(tmp_path / "export.jsonl")


def test_an_import_goes_into_an_empty_ledger_only(ledger: Ledger, lines: list[str]) -> None:
    before = ledger.head()
    with pytest.raises(AlreadySettled, match="empty ledger"):
        ledger.import_(io.StringIO("".join(lines)))
    assert ledger.head() == before


@pytest.mark.parametrize("number", range(1, 12))
def test_a_changed_line_is_refused_and_nothing_is_imported(lines: list[str], tmp_path: Path, number: int) -> None:
    if number >= len(lines):
        pytest.skip("the export is shorter")
    changed = lines.copy()
    changed[number] = changed[number].replace("1", "2") if "1" in changed[number] else changed[number].replace("0", "1")
    with Ledger.open(tmp_path / "copy") as copy:
        with pytest.raises(LedgerCorrupt):
            copy.import_(io.StringIO("".join(changed)))
        assert copy.head().number == 0
        copy.create_budget("visits", epsilon=1.0)


@pytest.mark.parametrize("kept", [1, 2, 5, -1])
def test_an_export_that_was_cut_off_is_refused(lines: list[str], tmp_path: Path, kept: int) -> None:
    with Ledger.open(tmp_path / "copy") as copy, pytest.raises(LedgerCorrupt, match="export is damaged"):
        copy.import_(io.StringIO("".join(lines[:kept])))


def test_a_missing_or_doubled_record_is_named(lines: list[str], tmp_path: Path) -> None:
    last = json.loads(lines[-1])
    for damaged, records in ((lines[:3] + lines[4:-1], -1), (lines[:4] + lines[3:-1], 1)):
        end = json.dumps(last | {"records": last["records"] + records})
        with Ledger.open(tmp_path / "copy") as copy, pytest.raises(LedgerCorrupt, match=r"record [34]"):
            copy.import_(io.StringIO("".join([*damaged, end])))


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "copy") as copy:
        for text in ("", "{}\n", '{"format":"other"}\n'):
            with pytest.raises(InvalidInput, match="not the export"):
                copy.import_(io.StringIO(text))
        with pytest.raises(LedgerCorrupt, match="not JSON"):
            copy.import_(io.StringIO("not json\n"))
        with pytest.raises(LedgerTooNew):
            copy.import_(io.StringIO('{"format":"tacit-ledger","version":2}\n'))
        with pytest.raises(InvalidInput, match="cannot be read"):
            copy.import_(tmp_path / "missing.jsonl")


def kinds(ledger: Ledger) -> list[str]:
    return [record.kind for record in ledger.history()]


def is_closed(ledger: Ledger) -> bool:
    """Whether every change is refused, and everything can be read."""
    (first, *_) = ledger.reservations()
    changes: list[Callable[[], object]] = [
        lambda: ledger.reserve("visits", events.Laplace(0.1)),
        lambda: ledger.commit(first.permit),
        lambda: ledger.annotate(first.permit, "note"),
        lambda: ledger.create_budget("labs", epsilon=1.0),
        lambda: ledger.create_cap("visits", "bob", epsilon=1.0),
        lambda: ledger.file_request("ana", "visits", events.Laplace(0.1), "more"),
        lambda: ledger.decide(ledger.requests()[0], True, "carl"),
    ]
    for change in changes:
        with pytest.raises(LedgerMoved, match=r"was moved to .* on \d{4}-\d\d-\d\d; open it there"):
            change()
    ledger.verify(full=True)
    assert ledger.budget("visits").spent().epsilon > 0
    assert ledger.released("SELECT 1", "1") == b"\x00\xff"
    return True


def test_an_import_closes_the_ledger_that_was_exported(ledger: Ledger, lines: list[str], tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "copy") as copy:
        copy.import_(io.StringIO("".join(lines)))
        copy.reserve("visits", events.Laplace(0.1))
        assert copy.id == ledger.id
        *_, imported, _ = copy.history()
        assert imported.contents["source"] == str(tmp_path / "clinic")
    assert is_closed(ledger)
    ledger.close()
    with Ledger.open(tmp_path / "clinic") as again:
        assert is_closed(again)
        assert kinds(again)[-1] == "moved"
        with pytest.raises(LedgerMoved, match=f"was moved to {tmp_path / 'copy'}"):
            backup.read_export(again.export_lines())


@pytest.mark.parametrize("how", ["ledger", "store", "folder"])
def test_the_source_can_be_named(ledger: Ledger, tmp_path: Path, how: str) -> None:
    lines = list(ledger.export_lines())
    named = {"ledger": ledger, "store": SqliteStore(tmp_path / "clinic"), "folder": tmp_path / "clinic"}[how]
    with Ledger.open(tmp_path / "copy") as copy:
        with pytest.raises(InvalidInput, match="cannot be found; name its folder"):
            copy.import_(io.StringIO("\n".join(lines)))
        copy.import_(io.StringIO("\n".join(lines)), source=named)
    assert is_closed(ledger)


def test_an_export_after_which_the_ledger_went_on_is_refused(ledger: Ledger, lines: list[str], tmp_path: Path) -> None:
    ledger.reserve("visits", events.Laplace(0.1))
    with Ledger.open(tmp_path / "copy") as copy:
        with pytest.raises(InvalidInput, match="was changed since it was exported"):
            copy.import_(io.StringIO("".join(lines)))
        assert copy.head().number == 0
    ledger.reserve("visits", events.Laplace(0.1))


def test_another_ledger_is_not_closed_by_an_import(ledger: Ledger, lines: list[str], tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other") as other, Ledger.open(tmp_path / "copy") as copy:
        for _ in range(2):
            with pytest.raises(InvalidInput, match="not the one that was exported"):
                copy.import_(io.StringIO("".join(lines)), source=other)
            other.create_budget("visits", epsilon=1.0)
        assert kinds(other) == ["budget-created"]
        with pytest.raises(InvalidInput, match="onto itself"):
            copy.import_(io.StringIO("".join(lines)), source=copy)


def test_a_source_that_is_gone_needs_a_reason_that_is_kept(ledger: Ledger, lines: list[str], tmp_path: Path) -> None:
    ledger.close()
    shutil.rmtree(tmp_path / "clinic")
    with Ledger.open(tmp_path / "copy") as copy:
        with pytest.raises(InvalidInput, match=r"say why it is gone \(--source-lost REASON, source_lost=\)"):
            copy.import_(io.StringIO("".join(lines)))
        with pytest.raises(InvalidInput, match="must not be empty"):
            copy.import_(io.StringIO("".join(lines)), source_lost=" ")
        copy.import_(io.StringIO("".join(lines)), source_lost="the machine was stolen")
        *_, imported = copy.history()
        assert (imported.contents["source"], imported.contents["source_lost"]) == (None, "the machine was stolen")


def test_a_source_that_is_there_is_closed_even_if_it_is_said_to_be_lost(
    ledger: Ledger, lines: list[str], tmp_path: Path
) -> None:
    with Ledger.open(tmp_path / "copy") as copy:
        copy.import_(io.StringIO("".join(lines)), source_lost="nobody needs it")
    assert is_closed(ledger)


def test_a_damaged_source_needs_a_reason(ledger: Ledger, lines: list[str], tmp_path: Path) -> None:
    ledger.close()
    (tmp_path / "clinic" / "ledger.sqlite").write_bytes(b"x" * 5000)
    with Ledger.open(tmp_path / "copy") as copy:
        with pytest.raises(NotALedger):
            copy.import_(io.StringIO("".join(lines)))
        copy.import_(io.StringIO("".join(lines)), source_lost="the disk failed")


def test_an_import_that_was_interrupted_leaves_none_that_admits_and_can_be_run_again(
    ledger: Ledger, lines: list[str], tmp_path: Path
) -> None:
    class Interrupted(BaseException):
        pass

    class Failing:
        """A connection that fails when the import is to be written."""

        def __init__(self, real: sqlite3.Connection) -> None:
            self.real = real

        def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
            if statement == "COMMIT" and kinds(ledger)[-1] == "moved":
                raise Interrupted
            return self.real.execute(statement, values)

        @property
        def in_transaction(self) -> bool:
            return self.real.in_transaction

        def close(self) -> None:
            self.real.close()

    def connect(*arguments: Any, **settings: Any) -> Any:
        return Failing(sqlite3.connect(*arguments, **settings))

    with Ledger.open(SqliteStore(tmp_path / "copy", connect=connect)) as copy, pytest.raises(Interrupted):
        copy.import_(io.StringIO("".join(lines)))
    assert is_closed(ledger)
    with Ledger.open(tmp_path / "elsewhere") as other:
        with pytest.raises(LedgerMoved, match=str(tmp_path / "copy")):
            other.import_(io.StringIO("".join(lines)))
        assert other.head().number == 0
    with Ledger.open(tmp_path / "copy") as copy:
        assert copy.head().number == 0
        with pytest.raises(LedgerMoved, match="if an import was interrupted and the ledger is not used there, say so"):
            copy.import_(io.StringIO("".join(lines)))
        copy.import_(io.StringIO("".join(lines)), source_lost="the import was interrupted")
        copy.reserve("visits", events.Laplace(0.1))
        copy.verify(full=True)
        assert [record.contents["source_lost"] for record in copy.history() if record.kind == "imported"] == [
            "the import was interrupted"
        ]
    with Ledger.open(tmp_path / "third") as third, pytest.raises(LedgerMoved):
        third.import_(io.StringIO("".join(lines)))


def test_one_export_is_not_imported_twice_because_the_first_copy_was_renamed(
    ledger: Ledger, lines: list[str], tmp_path: Path
) -> None:
    with Ledger.open(tmp_path / "copy") as copy:
        copy.import_(io.StringIO("".join(lines)))
    os.rename(tmp_path / "copy", tmp_path / "renamed")
    with Ledger.open(tmp_path / "copy") as copy, pytest.raises(LedgerMoved):
        copy.import_(io.StringIO("".join(lines)))


def test_a_source_that_is_damaged_does_not_close_the_ledger_that_is_to_be_filled(
    ledger: Ledger, lines: list[str], tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "clinic" / "ledger.sqlite") as connection:
        connection.execute("UPDATE head SET hash = ?", ("0" * 64,))
    connection.close()
    with Ledger.open(tmp_path / "copy") as copy:
        with pytest.raises(InvalidInput, match="the ledger that was exported cannot be closed"):
            copy.import_(io.StringIO("".join(lines)), source=ledger)
        copy.create_budget("labs", epsilon=1.0)


def test_what_follows_after_a_ledger_was_moved_cannot_have_happened(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        with ledger._store.transaction() as rows:
            for kind, contents in (("moved", {"to": "elsewhere"}), ("annotated", {"note": "", "permit": "p"})):
                rows.append(next_record(rows.head(), kind, contents, 1))
        with pytest.raises(LedgerCorrupt, match="record 3 is impossible: the ledger was moved"):
            ledger.verify(full=True)


def test_a_backup_is_a_ledger_that_can_be_opened(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    ledger.backup(folder / "ledger.sqlite")
    ledger.reserve("visits", events.Laplace(0.1))
    with Ledger.open(folder, create=False) as copy:
        copy.verify(full=True)
        assert copy.head().number == ledger.head().number - 1
        copy.reserve("visits", events.Laplace(0.1))
    assert (folder / "ledger.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("copy", ["backup", "export"])
def test_a_copy_is_a_new_file_and_never_takes_the_place_of_another(ledger: Ledger, tmp_path: Path, copy: str) -> None:
    write, live = getattr(ledger, copy), tmp_path / "clinic" / "ledger.sqlite"
    write(tmp_path / "first")
    (tmp_path / "thesis.txt").write_text("my thesis")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "link").hardlink_to(live)
    before = {path: path.read_bytes() for path in (tmp_path / "first", tmp_path / "thesis.txt", live)}
    roundabout = tmp_path / "clinic" / ".." / "clinic" / "ledger.sqlite"
    for taken in (*before, roundabout, tmp_path, tmp_path / "nowhere", tmp_path / "link"):
        for written in (taken, str(taken)):
            with pytest.raises(NameTaken, match="name a new file"):
                write(written)
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(os.listdir(tmp_path)) == ["clinic", "first", "link", "nowhere", "thesis.txt"]
    ledger.verify(full=True)


@pytest.mark.parametrize("copy", ["backup", "export"])
def test_a_copy_does_not_replace_a_file_that_appears_meanwhile(
    ledger: Ledger, tmp_path: Path, copy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy"

    def late(path: Path) -> None:
        sync(path)
        if not target.exists():
            target.write_text("somebody else's")

    monkeypatch.setattr("tacit.storage.files.sync", late)
    with pytest.raises(NameTaken, match="name a new file"):
        getattr(ledger, copy)(target)
    assert target.read_text() == "somebody else's"
    assert sorted(os.listdir(tmp_path)) == ["clinic", "copy"]


@pytest.mark.parametrize("copy", ["backup", "export"])
def test_a_copy_into_a_folder_that_is_missing_says_so(ledger: Ledger, tmp_path: Path, copy: str) -> None:
    for missing in (tmp_path / "missing", tmp_path / "clinic" / "ledger.sqlite"):
        with pytest.raises(InvalidInput, match=f"there is no folder {missing}"):
            getattr(ledger, copy)(missing / "copy")
    with pytest.raises(InvalidInput, match="file systems can have"):
        getattr(ledger, copy)(tmp_path / ("x" * 300))
    assert os.listdir(tmp_path) == ["clinic"]
    ledger.reserve("visits", events.Laplace(0.1))


def test_a_store_can_be_given_instead_of_a_folder(tmp_path: Path) -> None:
    with Ledger.open(SqliteStore(tmp_path / "clinic")) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
    with Ledger.open(tmp_path / "clinic", create=False) as again:
        assert again.budget("visits").cap.epsilon == 1.0
