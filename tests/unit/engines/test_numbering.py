"""Rows that get a random number each: all of them, once, and no number twice."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tacit.engines.duckdb import prepared
from tacit.engines.duckdb.prepared import write_numbered
from tacit.engines.protocol import Source
from tacit.privacy.errors import EngineFailed, InvalidInput, SourceMissing
from tacit.privacy.tables import Column, Kind, Table

ROWS = 300_000
"""More than one batch of DuckDB, so that several threads write."""

COLUMNS = Table("rows", (Column("age", Kind.INTEGER), Column("name", Kind.TEXT)))


def written(tmp_path: Path, form: str) -> Source:
    made = f"SELECT i % 90 AS age, 'n' || i AS name, i AS unused FROM range({ROWS}) AS t(i)"
    path = tmp_path / f"rows.{form}"
    with duckdb.connect(str(path) if form == "duckdb" else ":memory:") as connection:
        if form == "duckdb":
            connection.execute(f"CREATE TABLE rows AS {made}")
        else:
            connection.execute(f"COPY ({made}) TO '{path}' (FORMAT {form})")
    return Source(form, str(path), "rows" if form == "duckdb" else "")


def fetched(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:  # not the one that all tests of a process share
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("form", ["csv", "parquet", "duckdb"])
def test_every_row_is_there_once_under_a_number_of_its_own(tmp_path: Path, form: str) -> None:
    found = write_numbered(written(tmp_path, form), COLUMNS, "row", tmp_path / "numbered.parquet")
    counted = fetched(
        f"SELECT COUNT(*), COUNT(DISTINCT row), COUNT(row), COUNT(DISTINCT name), SUM(age) FROM '{found.place}'"
    )
    assert counted == [(ROWS, ROWS, ROWS, ROWS, sum(i % 90 for i in range(ROWS)))]
    assert [row[0] for row in fetched(f"DESCRIBE SELECT * FROM '{found.place}'")] == ["row", "age", "name"]


def test_rows_that_get_no_distinct_numbers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.csv").write_text("age,name\n" + "7,a\n" * 300)
    monkeypatch.setattr(prepared, "NUMBER_DIGITS", 2)
    with pytest.raises(InvalidInput, match="too many rows for distinct random numbers"):
        write_numbered(Source("csv", str(tmp_path / "rows.csv")), COLUMNS, "row", tmp_path / "numbered.parquet")


def test_numbers_tell_nothing_about_positions(tmp_path: Path) -> None:
    """The attack: with positions, COUNT(*) WHERE row % 2 = 0 AND v moves by 150,000 if the first row is left out.

    False alarm: each share is that of 150,000 fair coins, and 1 % is 7.7 deviations off.
    """
    (tmp_path / "rows.csv").write_text("age,name\n" + "7,even\n8,odd\n" * (ROWS // 2))
    source, path = Source("csv", str(tmp_path / "rows.csv")), tmp_path / "numbered.parquet"
    firsts = set()
    for _ in range(2):
        write_numbered(source, COLUMNS, "row", path)
        shares = fetched(f"SELECT AVG(row % 2) FROM '{path}' GROUP BY name")
        assert all(abs(share - 0.5) < 0.01 for (share,) in shares)
        firsts |= set(fetched(f"SELECT MIN(row) FROM '{path}'"))
    assert len(firsts) == 2, "another file has other numbers"


def test_texts_over_several_lines_are_rows_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age,name\n" + '7,"one\ntwo"\n' * 50_000, encoding="utf-8")
    found = write_numbered(Source("csv", str(path)), COLUMNS, "row", tmp_path / "numbered.parquet")
    assert fetched(f"SELECT COUNT(DISTINCT row), MIN(name) FROM '{found.place}'") == [(50_000, "one\ntwo")]


def test_what_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing):
        write_numbered(Source("parquet", str(tmp_path / "none.parquet")), COLUMNS, "row", tmp_path / "numbered.parquet")
    with pytest.raises(EngineFailed, match="could not be numbered"):
        write_numbered(written(tmp_path, "parquet"), COLUMNS, "row", tmp_path / "nowhere" / "numbered.parquet")
