"""CSV files in every shape that people bring."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.engines import DuckDBEngine, Source
from tacit.privacy.errors import SourceMissing
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Table
from tacit.privacy.units import Unit

BOTH = {"id": Kind.INTEGER, "v": Kind.TEXT}


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(None, salt=1, threads=2)
    yield made
    made.close()


def shown(engine: DuckDBEngine, place: Path | str, kinds: dict[str, Kind]) -> list[tuple[Any, ...]]:
    """Register files with declared kinds, the first column as the unit, and return the rows."""
    table = Table("t", tuple(Column(name, kind) for name, kind in kinds.items()), Unit(next(iter(kinds))))
    engine.register(table, Source("csv", str(place)), {})
    names = ", ".join(f'"{name}"' for name in kinds)
    columns = engine.run(f"SELECT {names} FROM tacit_data.t ORDER BY ALL")
    return list(zip(*(list(column) for column in columns.values()), strict=True))


SHAPES: list[tuple[str, str | bytes, list[tuple[Any, ...]]]] = [
    ("plain", "id,v\n1,x\n2,y\n", [(1, "x"), (2, "y")]),
    ("without an end", "id,v\n1,x\n2,y", [(1, "x"), (2, "y")]),
    ("windows", "id,v\r\n1,x\r\n2,y\r\n", [(1, "x"), (2, "y")]),
    ("mixed ends", "id,v\n1,x\r\n2,y\n3,z\n", [(1, "x"), (2, "y"), (3, "z")]),
    ("semicolons", "id;v\n1;2,5\n2;3,5\n", [(1, "2,5"), (2, "3,5")]),
    ("tabs", "id\tv\n1\tx\n2\ty\n", [(1, "x"), (2, "y")]),
    ("quotes", 'id,v\n1,"a, b"\n2,"say ""hi"""\n', [(1, "a, b"), (2, 'say "hi"')]),
    ("apostrophes", "id,v\n1,it's\n2,'quoted'\n", [(1, "it's"), (2, "'quoted'")]),
    ("several lines", 'id,v\n1,"a\nb"\n2,c\n', [(1, "a\nb"), (2, "c")]),
    ("gaps", "id,v\n1,\n2,y\n", [(1, None), (2, "y")]),
    ("short lines", "id,v\n1,x\n2\n3,z\n", [(1, "x"), (2, None), (3, "z")]),
    ("long lines", "id,v\n1,x\n2,y,z\n3,w\n", [(1, "x"), (2, "y"), (3, "w")]),
    ("no unit", "id,v\n1,x\n,y\nabc,z\n4,w\n", [(1, "x"), (4, "w")]),
    ("a comment", "# of somebody\nid,v\n1,x\n2,y\n", [(1, "x"), (2, "y")]),
    ("a mark of order", "\ufeffid,v\n1,é\n", [(1, "é")]),
    ("latin-1", "id,v\n1,caf\xe9\n".encode("latin-1"), [(1, "café")]),
    ("utf-16", "id,v\n1,café\n".encode("utf-16"), [(1, "café")]),
    ("a zero byte", "id,v\n1,a\0b\n", [(1, "a\0b")]),
    ("other case", "ID,V\n1,x\n", [(1, "x")]),
    ("spaces", "id,v\n 1 ,x\n", [(1, "x")]),
    ("nothing but names", "id,v\n", []),
]


@pytest.mark.parametrize(("data", "rows"), [one[1:] for one in SHAPES], ids=[one[0] for one in SHAPES])
def test_a_file_of_any_shape_is_read(
    engine: DuckDBEngine, tmp_path: Path, data: str | bytes, rows: list[tuple[Any, ...]]
) -> None:
    path = tmp_path / "it's a file.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    assert shown(engine, path, BOTH) == rows


def test_bad_lines_far_from_the_beginning_lose_nothing_but_themselves(engine: DuckDBEngine, tmp_path: Path) -> None:
    good = "".join(f"{number},x\n" for number in range(30_000))
    path = tmp_path / "late.csv"
    path.write_bytes(f"id,v\n{good}".encode() + b'-1\n-2,caf\xe9\n-3,x,y,z\nword,x\n-4,"closed"\n-5,x\n')
    found = dict(shown(engine, path, BOTH))
    assert set(range(30_000)) | {-1, -3, -4, -5} <= found.keys()
    assert found[-1] is None
    assert found[-3] == "x"


def test_a_bad_value_far_from_the_beginning_is_missing(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("id,n\n" + "1,5\n" * 30_000 + "2,n/a\n3,1e400\n")
    table = Table("t", (Column("id", Kind.INTEGER), Column("n", Kind.INTEGER)), Unit("id"))
    engine.register(table, Source("csv", str(path)), {})
    assert engine.run("SELECT id, n FROM tacit_data.t WHERE id > 1 ORDER BY id") == {
        "id": pytest.approx([2, 3]),
        "n": [None, None],
    }


def test_a_line_of_megabytes_is_read(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(f"id,v\n1,{'a' * 3_000_000}\n2,b\n")
    assert [len(value) for _, value in shown(engine, path, BOTH)] == [TEXT_LENGTH_MAX, 1]


def test_packed_files_are_read(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "packed.csv.gz"
    path.write_bytes(gzip.compress(b"id,v\n1,x\n"))
    assert shown(engine, path, BOTH) == [(1, "x")]


def test_dates_are_read_as_the_file_writes_them(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("id,d,t\n1,31/12/2020,2020-06-01T12:00:00+02:00\n2,01/02/2021,2020-06-01T12:00:00Z\n3,,\n")
    kinds = {"id": Kind.INTEGER, "d": Kind.DATE, "t": Kind.TIME}
    described = engine.describe(Source("csv", str(path)))
    assert {one.name: one.kind for one in described} == kinds
    assert shown(engine, path, kinds) == [
        (1, date(2020, 12, 31), datetime(2020, 6, 1, 10)),
        (2, date(2021, 2, 1), datetime(2020, 6, 1, 12)),
        (3, None, None),
    ]


def test_files_of_a_glob_may_differ_in_the_order_of_their_columns(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,v\n1,x\n")
    (tmp_path / "2.csv").write_text("v;more;id\ny;0;2\n")
    assert shown(engine, tmp_path / "*.csv", BOTH) == [(1, "x"), (2, "y")]


def test_kinds_that_differ_between_files_are_widened(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,n,d\n1,1,2020-01-01\n")
    (tmp_path / "2.csv").write_text("id,n,d\n2,1.5,never\n")
    found = {one.name: one.kind for one in engine.describe(Source("csv", str(tmp_path / "*.csv")))}
    assert found == {"id": Kind.INTEGER, "n": Kind.REAL, "d": Kind.TEXT}


@pytest.mark.parametrize("data", [b"", bytes(range(256)) * 40], ids=["empty", "not text"])
def test_what_is_no_csv_is_said_to_be_none(engine: DuckDBEngine, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(data)
    with pytest.raises(SourceMissing, match=r"bad\.csv"):
        shown(engine, path, BOTH)


def test_a_packed_file_that_is_cut_off_is_said_to_be_incomplete(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(b"id,v\n1,x\n" * 10_000)[:60])
    with pytest.raises(SourceMissing, match="complete"):
        engine.describe(Source("csv", str(path)))
