"""A stored CSV format reads files with another end of line, and neither skips a row nor reads the header as one."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import tacit
from tacit.privacy.errors import SourceMissing
from tests.property.query.curated import check_removal

QUERIES = ["SELECT COUNT(DISTINCT uid) AS n FROM t", "SELECT COUNT(*) AS n FROM t"]
PEOPLE = [(1, 10)] * 2 + [(uid, 20 + uid) for uid in range(2, 10)]
ENDS = {"unix": "\n", "windows": "\r\n", "old": "\r"}


def _write(path: Path, rows: list[tuple[int, int]], end: str, before: str = "") -> None:
    lines = [before] * bool(before) + ["uid,age", *(f"{uid},{age}" for uid, age in rows)]
    path.write_bytes("".join(line + end for line in lines).encode())


@pytest.mark.parametrize("before", ["", "# made by hand"])
@pytest.mark.parametrize(("first", "later"), [pair for pair in product(ENDS, ENDS) if pair[0] != pair[1]])
def test_a_refreshed_file_may_have_another_end_of_line(first: str, later: str, before: str, tmp_path: Path) -> None:
    file, left = tmp_path / "t.csv", [row for row in PEOPLE if row[0] != 1]
    _write(file, PEOPLE, ENDS[first], before)
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", file, unit="uid", columns={"age": tacit.Bounds(0, 100)})
        _write(file, PEOPLE, ENDS[later], before)
        assert curator.refresh() == ["t"]

        def leave() -> None:
            _write(file, left, ENDS[later], before)
            curator.refresh()

        assert check_removal(curator, leave, range(0), QUERIES).tight == 1.0


def test_files_of_one_table_may_end_their_lines_differently(tmp_path: Path) -> None:
    _write(tmp_path / "a.csv", [(100, 30), (101, 40)], "\r\n")
    _write(tmp_path / "b.csv", PEOPLE, "\n")
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", str(tmp_path / "*.csv"), unit="uid", columns={"age": tacit.Bounds(0, 100)})

        def leave() -> None:
            _write(tmp_path / "b.csv", [row for row in PEOPLE if row[0] != 1], "\n")
            curator.refresh()

        assert check_removal(curator, leave, range(0), QUERIES).tight == 1.0


def test_lines_before_the_rows_that_end_differently_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    _write(file, PEOPLE, "\n", "# made by hand")
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", file, unit="uid", columns={"age": tacit.Bounds(0, 100)})
        file.write_bytes(file.read_bytes().replace(b"hand\n", b"hand\r\n"))
        with pytest.raises(SourceMissing, match="use one line terminator"):
            curator.refresh()
