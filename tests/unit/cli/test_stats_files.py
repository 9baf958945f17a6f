"""`tacit stats` of files: charges are not recorded, each row may be a person, and no copy of rows is left behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tacit.cli.statistics.execution import interrupt_on_signals
from tacit.cli.statistics.registry import STATISTICS
from tests.unit.cli.stats_commands import CASES, run_stats, stats_object
from tests.unit.cli.terminal import Typist

TESTS = {one.name for one in STATISTICS if one.is_test}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", CASES)
def test_a_file_is_asked_and_nothing_remembers_it(csv: str, capsys: pytest.CaptureFixture[str], name: str) -> None:
    words, count = CASES[name]
    rows = "" if TESTS & {name} else "--rows-per-unit 3"
    answer = stats_object(capsys, f"{name} {csv} {words} --unit patient {rows} --epsilon 20")
    assert len(answer["rows"]) == count
    assert answer["cost"]["epsilon"] == pytest.approx(20)
    assert (answer["remembered"], answer["permit"], answer["remaining"]) == (False, None, {})


def test_a_question_about_a_file_is_paid_again_and_again_and_says_so(
    csv: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        code, out, err = run_stats(capsys, f"mean {csv} age --bounds 0:120 --each-row --epsilon 1 --card")
        assert (code, len(out.splitlines())) == (0, 2)
        assert "the charge is not recorded" in err
        assert "tacit table add visits" in err
        assert "It cost epsilon 1: every answer is at most 2.72 times as likely" in err


def test_each_row_of_a_file_is_a_person_whatever_its_form(
    csv: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import duckdb

    parquet, database = tmp_path / "rows.parquet", tmp_path / "rows.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT *, age AS row FROM read_csv('{csv}')")
        connection.execute(f"COPY visits TO '{parquet}' (FORMAT parquet)")
    for place in (csv, str(parquet), f"{database}#visits"):
        answer = stats_object(capsys, f"count {place} age --each-row --epsilon 50")
        assert answer["value"] == pytest.approx(1200, abs=2)
        assert answer["columns"] == ["age"]
        assert "Protects each row as one unit" in answer["card"]
    assert stats_object(capsys, f"mean {parquet} row --bounds 0:120 --each-row --epsilon 50")["value"] > 40


def test_of_a_person_in_a_file_only_so_many_rows_are_counted(csv: str, capsys: pytest.CaptureFixture[str]) -> None:
    for rows, expected in ((1, 400), (2, 800), (5, 1200)):
        answer = stats_object(capsys, f"count {csv} age --unit PATIENT --rows-per-unit {rows} --epsilon 200")
        assert answer["value"] == pytest.approx(expected, abs=3)


def test_a_file_takes_a_rho_with_a_delta(csv: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = stats_object(capsys, f"count {csv} age --each-row --rho 0.1 --delta 1e-6")
    assert answer["cost"]["rho"] == pytest.approx(0.1)
    assert answer["cost"]["delta"] <= 1e-6
    code, _, err = run_stats(capsys, f"count {csv} age --each-row --rho 0.1")
    assert code == 2
    assert "--delta" in err


def test_nothing_of_a_file_is_left_behind(
    csv: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.chdir(tmp_path)
    for whom in ("--each-row", "--unit patient --rows-per-unit 2"):
        stats_object(capsys, f"mean {csv} age --bounds 0:120 {whom} --epsilon 1")
        assert run_stats(capsys, f"mean {csv} age {whom} --epsilon 1")[0] == 3
    assert list(tmp_path.iterdir()) == [temporary]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_closed_terminal_ends_it_as_ctrl_c_does_so_that_copies_of_rows_go(name: str) -> None:
    if not hasattr(signal, name):
        pytest.skip(f"there is no {name} here")
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interrupt_on_signals():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_value_that_would_move_the_cursor_is_shown_as_an_escape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("word\n" + '"\x1b[2Jbad\tword"\n' * 500, encoding="utf-8")
    words = f"mode {path} word --each-row --epsilon 5 --delta 1e-6"
    _, out, _ = run_stats(capsys, words)
    assert out.splitlines()[1].startswith('"""\\u001B[2Jbad\\u0009word""",')
    _, shown = Typist(monkeypatch).runs("stats", *words.split())
    assert "\x1b" not in shown
    assert stats_object(capsys, words)["value"] == "\x1b[2Jbad\tword"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("age --unit patient --bounds 0:120", "--rows-per-unit 1"),
        ("age --unit pateint --bounds 0:120", "did you mean patient?"),
        ("aeg --each-row --bounds 0:120", "did you mean age?"),
        ("age --each-row --bounds 0:120 --rows-per-unit 2", "--rows-per-unit"),
        ("age --each-row --bounds 0:120 --analyst ana", "--analyst"),
        ("age --each-row --bounds 0:120 --purpose census", "--purpose"),
        ("age --each-row", "age has no declared bounds; give --bounds LOW:HIGH"),
    ],
)
def test_of_a_file_it_is_said_what_is_missing(
    csv: str, capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    code, out, err = run_stats(capsys, f"mean {csv} {words} --epsilon 1")
    assert code in (2, 3)
    assert out == ""
    assert says in err
