"""Random CSV files with quotes everywhere: no line takes another along, and what is accepted reads as RFC 4180 says."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tacit.cli.app import run
from tacit.engines.csv_format import CsvFormat
from tacit.engines.duckdb import csv_files, csv_quotes
from tacit.privacy.errors import SourceMissing

PIECES = ['"', '""', "x", " ", "\n", ",", '"q"', "\\", "\r\n", "\r", "#", ";", "\0", '\\"', ',"', '",', '"\n', '"a\nb"']
NAMES = ("id", "s", "z")
LINE_MAX = 2_000
LONG = ['l,""\n' * 300, 'l,""\n' * 400, 'l,""\n' * 900, *("q" * length for length in range(1_985, 1_997))]
SMALL = f"max_line_size = {LINE_MAX}, buffer_size = {2 * LINE_MAX}"


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A connection, with a longest line so small that random files have longer ones, and go over several buffers."""
    monkeypatch.setattr(csv_files, "LENIENT", csv_files.LENIENT.replace(csv_files.LONG, SMALL))
    monkeypatch.setattr(csv_quotes, "LINE_MAX", LINE_MAX)
    with duckdb.connect() as made:
        yield made


def form(*, escape: str = '"', comment: str = "", skipped: int = 0, over_lines: bool = True) -> CsvFormat:
    return CsvFormat(
        ",", '"', escape, comment, "\n", skipped, True, over_lines, "utf-8", NAMES, ("VARCHAR",) * 3, "", ""
    )


def rows(connection: Any, how: CsvFormat, path: Path) -> list[tuple[str, ...]]:
    found = connection.execute(f"SELECT * FROM {csv_files.scan_sql(how, [str(path)])}").fetchall()
    return [tuple(value or "" for value in row) for row in found]


def is_accepted(how: CsvFormat, path: Path) -> bool:
    try:
        csv_quotes.require_strict(how, str(path), str(path))
    except SourceMissing:
        return False
    return True


def odd_line(rng: random.Random) -> str:
    odd = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7)))
    return rng.choice(["50,{},y\n", "{},50,y\n", "50,y,{}\n", "{}\n"]).format(odd)


@pytest.mark.parametrize("escape", ['"', "\\"])
def test_every_file_that_is_accepted_has_the_rows_of_a_strict_reader(
    escape: str, connection: Any, tmp_path: Path
) -> None:
    rng, path, accepted = random.Random(5), tmp_path / "t.csv", 0
    for _ in range(600):
        begin = "".join(f'{number},"a\nb, {escape}"{number}",y\n' for number in range(3))
        text = "id,s,z\n" + begin + odd_line(rng) + "".join(f'{number},"t",y\n' for number in range(100, 110))
        path.write_text(text, newline="")
        if not is_accepted(form(escape=escape), path):
            continue
        accepted += 1
        way: dict[str, Any] = {} if escape == '"' else {"doublequote": False, "escapechar": escape}
        strict = csv.reader(io.StringIO(text, newline=""), strict=True, **way)
        wanted = [tuple([*row, "", "", ""][:3]) for row in strict if row][1:]
        assert rows(connection, form(escape=escape), path) == wanted, text
    assert 50 < accepted < 550


def test_long_texts_over_lines_and_buffers_are_read_whole_or_refused(connection: Any, tmp_path: Path) -> None:
    rng, path, refused = random.Random(6), tmp_path / "t.csv", 0
    for _ in range(150):
        texts = ['"' + rng.choice(["a", 'l,""\n', "1,2,y\n"]) * rng.randrange(40) + '"' for _ in range(200)]
        texts[rng.randrange(200)] = f'"{rng.choice(LONG)}"'
        records = "".join(f"{number},{text},y\n" for number, text in enumerate(texts))
        path.write_text("id,s,z\n" + records, newline="")
        if is_accepted(form(), path):
            assert rows(connection, form(), path) == list(map(tuple, csv.reader(io.StringIO(records, newline=""))))
        else:
            refused += 1
    assert 20 < refused < 130


@pytest.mark.parametrize("comment", ["", "#"])
@pytest.mark.parametrize("over_lines", [False, True])
def test_no_line_changes_the_rows_of_others(over_lines: bool, comment: str, connection: Any, tmp_path: Path) -> None:
    rng, path, read = random.Random(7), tmp_path / "t.csv", 0
    how = form(comment=comment, over_lines=over_lines)
    wanted = [(str(number), f'n"{number}', "end") for number in range(100, 140)]
    for _ in range(150):
        lines = [f'{number},"n""{number}",end\n' for number, _, _ in wanted]
        for _ in range(1 if over_lines else 5):
            long = rng.random() < 0.1
            lines.insert(rng.randrange(len(lines) + 1), '9,"' + "x" * 2_500 + "\n" if long else odd_line(rng))
        path.write_text("id,s,z\n" + "".join(lines), newline="")
        if is_accepted(how, path):
            read += 1
            assert [row for row in rows(connection, how, path) if row[2] == "end"] == wanted, lines
    assert 20 < read <= 150


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        ('50,#,"\n,"\n', False),
        ('50,C# dev,"\n,"\n', False),
        ("50,, #1\n", False),
        ("50,x,#\n", False),
        (" # x\n", False),
        ('# a "word"\n', False),
        ("# a word, and # another\n", True),
        ('50,"#1","C# dev"\n', True),
    ],
)
def test_a_comment_within_a_row_takes_no_other_row_along(
    line: str, accepted: bool, connection: Any, tmp_path: Path
) -> None:
    """DuckDB ends a row at a comment sign outside of quotes, and may join it with the next: such files are refused."""
    how, wanted = form(comment="#"), [(str(number), f"t{number}", "y") for number in range(100, 140)]
    text = 'id,s,z\n0,"two\nlines",y\n' + line + "".join(",".join(row) + "\n" for row in wanted)
    (tmp_path / "t.csv").write_text(text, newline="")
    assert is_accepted(how, tmp_path / "t.csv") == accepted
    if accepted:
        assert rows(connection, how, tmp_path / "t.csv")[-len(wanted) :] == wanted


@pytest.mark.parametrize(
    ("before", "accepted"),
    [
        ("by hand\n", True),
        ('"by, ""hand"""\n', True),
        ('"by hand\n', False),
        ('"by\nhand"\n', False),
        ('by "hand\n', False),
    ],
)
def test_lines_before_the_names_are_in_strict_form_and_texts_end_within_them(
    before: str, accepted: bool, connection: Any, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(before + 'id,s,z\n1,"a\nb",y\n2,c,y\n')
    how = form(skipped=before.count("\n"))
    assert is_accepted(how, tmp_path / "t.csv") == accepted
    if accepted:
        assert rows(connection, how, tmp_path / "t.csv") == [("1", "a\nb", "y"), ("2", "c", "y")]


@pytest.mark.parametrize("size", [csv_quotes._PIECE + shift for shift in (-9, -8, -7, -6, -5, -4, -3)])
@pytest.mark.parametrize(("end", "accepted"), [('""",y', True), ('"",y', False), ('" ,y', False), ('"', True)])
def test_a_line_is_looked_at_in_pieces(size: int, end: str, accepted: bool, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,s,z\n1,"a\nb",y\n2,"' + "x" * size + end + "\n")
    assert is_accepted(form(), tmp_path / "t.csv") == accepted


def test_files_that_are_not_registered_are_checked_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text('s,z\n"a\nb",1\n ",2\n' + "c,3\n" * 50)
    assert run(["stats", "count", str(tmp_path / "t.csv"), "z", "--each-row", "--epsilon", "1"]) == 4
    assert "line 4: a text in quotes" in capsys.readouterr().err
