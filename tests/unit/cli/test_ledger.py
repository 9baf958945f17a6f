"""`tacit ledger`: what it shows is what the ledger holds, and damage is named with an exit code."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit import Budget, Curator
from tacit.cli.app import run
from tacit.privacy import events


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "clinic"
    with Curator(place) as curator:
        curator.set_budget("visits", epsilon=3.0, delta=1e-7)
        curator.add_analyst("ana", budgets={"visits": Budget(epsilon=1.0, delta=1e-8)})
        curator.budget("visits", "ana").charge(events.Laplace(0.25), purpose="by month")
        curator.ledger.reserve("visits", events.Gaussian(20), purpose="died")
        curator.ledger.file_request("ana", "visits", events.Laplace(1.0), "a second study")
    return place


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["ledger", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_show_lists_budgets_reservations_requests_and_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = answer(capsys, "show", "--folder", str(folder))
    budgets = {row["scope"]: row for row in facts["budgets"]}
    assert budgets["ana on visits"]["epsilon_spent"] == 0.25
    assert budgets["visits"]["epsilon"] == 3.0
    assert [row["purpose"] for row in facts["reservations"]] == ["died"]
    assert [row["reason"] for row in facts["requests"]] == ["a second study"]
    assert facts["records"][-1]["kind"] == "request-filed"
    charges = [row for row in facts["records"] if row["kind"] == "reserved"]
    assert [(row["analyst"], row["purpose"]) for row in charges] == [("ana", "by month"), (None, "died")]
    assert charges[0]["epsilon"] == 0.25
    assert {row["purpose"] for row in facts["records"] if row["kind"] != "reserved"} == {None}


@pytest.mark.parametrize("note", ["failed/T610/ana", "the run failed: T610 for ana"])
def test_show_has_notes_in_words(folder: Path, capsys: pytest.CaptureFixture[str], note: str) -> None:
    with Curator(folder) as curator:
        (left,) = curator.ledger.reservations()
        curator.ledger.annotate(left.permit, note)
    (shown,) = answer(capsys, "show", "--folder", str(folder))["reservations"]
    assert shown["note"] == "the run failed: T610 for ana"


def test_show_is_readable_without_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "show", "--folder", str(folder), "--records", "0"]) == 0
    assert "ana on visits" in capsys.readouterr().out


def test_show_writes_each_list_with_a_header_and_names_scopes_alike(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ledger", "show", "--folder", str(folder)]) == 0
    lists = [part.splitlines() for part in capsys.readouterr().out.split("\n\n")]
    assert [part[0].split(",")[0] for part in lists] == ["budget", "permit", "id", "number"]
    budgets, *_, records = lists
    assert [line.split(",")[0] for line in budgets[1:]] == ["visits", "ana on visits"]
    assert [line.split(",")[3] for line in records[1:3]] == ["visits", "ana on visits"]
    assert run(["ledger", "show", "--folder", str(folder), "--format", "markdown"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("| budget | epsilon_spent |")
    assert "\nlast records\n\n| number | at | kind | subject | analyst | epsilon | purpose |\n" in shown
    assert "| reserved | visits | ana | 0.25 | by month |\n" in shown
    assert "| committed | 3-" in shown


def test_verify_says_what_is_whole_and_the_head_can_be_held_against_it_later(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "verify", "--folder", str(folder), "--full")
    assert found["whole"] is True
    noted = f"{found['last']}:{found['hash']}"
    assert answer(capsys, "verify", "--folder", str(folder), "--noted", noted) == found
    assert run(["ledger", "verify", "--folder", str(folder), "--noted", f"{found['last']}:{'0' * 64}"]) == 4


def test_a_changed_record_is_found_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE journal SET body = replace(body, '0.25', '0.05') WHERE number = 3")
    assert run(["ledger", "verify", "--folder", str(folder), "--full"]) == 4
    assert "T500 the journal is damaged: record 3" in capsys.readouterr().err


def test_tables_that_were_edited_are_rebuilt_from_the_journal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--folder", str(folder))
    before = answer(capsys, "show", *where)["budgets"]
    with Curator(folder) as curator:
        permit = curator.ledger.reserve("visits", events.Laplace(0.5))
        curator.ledger.commit(permit, b"17", plan="SELECT 1", data_version="1")
    after = answer(capsys, "show", *where)["budgets"]
    assert after != before
    with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE scopes SET totals = replace(totals, '1', '0')")
        connection.execute("UPDATE contents SET bytes = x'00'")
    assert run(["ledger", "verify", *where]) == 4
    assert "tacit ledger rebuild" in capsys.readouterr().err
    said = ("rebuild", *where, "--by", "carl", "--reason", "somebody edited the tables")
    assert answer(capsys, *said)["dropped_answers"] == 1
    shown = answer(capsys, "show", *where)
    assert shown["budgets"] == after
    assert shown["records"][-1]["kind"] == "caches-rebuilt"
    assert answer(capsys, "verify", *where, "--full")["whole"] is True


def test_a_damaged_journal_is_not_rebuilt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE journal SET body = replace(body, '0.25', '0.05') WHERE number = 3")
    assert run(["ledger", "rebuild", "--folder", str(folder), "--by", "carl", "--reason", "hope"]) == 4
    assert "until a backup is restored" in capsys.readouterr().err


def test_an_export_fills_an_empty_ledger_and_no_other(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ledger.jsonl"
    written = answer(capsys, "export", "--folder", str(folder), str(file))
    assert answer(capsys, "import", "--folder", str(tmp_path / "other"), str(file))["records"] == written["records"]
    first, second = (
        answer(capsys, "show", "--folder", str(place))["budgets"] for place in (folder, tmp_path / "other")
    )
    assert first == second
    assert run(["ledger", "import", "--folder", str(folder), str(file)]) == 2


def test_an_export_to_standard_output_is_json_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "export", "--folder", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0])["format"] == "tacit-ledger"


def test_a_backup_can_be_opened(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "restored"
    other.mkdir()
    answer(capsys, "backup", "--folder", str(folder), str(other / "ledger.sqlite"))
    assert answer(capsys, "verify", "--folder", str(other), "--full")["whole"] is True


@pytest.mark.parametrize("copy", ["backup", "export"])
def test_a_copy_in_the_place_of_another_file_is_bad_use(
    folder: Path, tmp_path: Path, copy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("my thesis")
    for taken in (tmp_path / "thesis.txt", folder / "ledger.sqlite"):
        before = taken.read_bytes()
        assert run(["ledger", copy, "--folder", str(folder), str(taken)]) == 2
        assert "name a new file" in capsys.readouterr().err
        assert taken.read_bytes() == before
    assert run(["ledger", copy, "--folder", str(folder), str(tmp_path / "missing" / "copy")]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("verify",), ("show",), ("export",)])
def test_a_folder_without_a_ledger_is_bad_use_and_stays_as_it_is(
    tmp_path: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ledger", *arguments, "--folder", str(tmp_path)]) == 2
    assert "there is no ledger" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "noted", ["x", "²:HASH", "٣:HASH", f"{10**23}:HASH", f"{'9' * 5000}:HASH", "-1:HASH", ":HASH", "1:", "1:ab"]
)
def test_a_head_that_is_not_one_is_bad_use(folder: Path, noted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "verify", "--folder", str(folder), "--noted", noted.replace("HASH", "ab" * 32)]) == 2
    assert "NUMBER:HASH" in capsys.readouterr().err


def test_a_deleted_ledger_is_refused_until_a_backup_is_restored(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--folder", str(folder))
    answer(capsys, "backup", str(tmp_path / "copy"), *where)
    with Curator(folder) as curator:
        curator.ledger.reserve("visits", events.Laplace(0.1))
    (folder / "ledger.sqlite").unlink()
    assert run(["ledger", "show", *where]) == 4
    assert "T502" in capsys.readouterr().err
    said = ("restore", str(tmp_path / "copy"), "--by", "carl", "--reason", "the disk failed", *where)
    assert run(["ledger", *said]) == 2
    assert "--lost-records 1" in capsys.readouterr().err
    assert answer(capsys, *said, "--lost-records", "1") == {"last": 7, "lost": 1}
    assert answer(capsys, "show", *where)["records"][-1]["kind"] == "restored"
    assert run(["ledger", "restore", *said[2:]]) == 2
