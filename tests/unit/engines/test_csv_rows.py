"""With a form that is kept, what one row of a CSV file holds changes nothing about the others."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tacit.engines import DuckDBEngine, Source
from tacit.engines.csv_format import CsvFormat
from tacit.engines.duckdb.csv_files import Utf8Copies
from tacit.privacy.errors import InvalidInput, SourceMissing
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit

PEOPLE = 300
NAMES = ["José", "Ann", 'say ""hi""', "a, b", "O'Brien", "5 # 6", "Zoë"]
HEADER = "id,v,d"
GOOD = [f'{number},"{NAMES[number % 7]}",25/12/{1950 + number % 60}' for number in range(PEOPLE)]
TABLE = Table("t", (Column("id", Kind.INTEGER), Column("v", Kind.TEXT), Column("d", Kind.DATE)), Unit("id"))
ROWS = {(number, NAMES[number % 7].replace('""', '"'), date(1950 + number % 60, 12, 25)) for number in range(PEOPLE)}

ATTACKS: dict[str, str | bytes] = {
    "a byte of Latin-1": b"9999,caf\xe9,25/12/2020",
    "bytes that are no text": b"9999,\xff\xfe\xc3\x28\xf0\x9f,25/12/2020",
    "another order of dates": "9999,x,12/25/2020",
    "a quote that is not closed": '9999,"x,25/12/2020',
    "an open quote at the beginning": '"9999,x,25/12/2020',
    "an open quote at the end": '9999,x,25/12/2020"',
    "a quote within": '9999,5" pipe,25/12/2020',
    "text after a quote": '9999,"x"y"z,25/12/2020',
    "three quotes": '9999,""",25/12/2020',
    "only quotes": '"""""""',
    "two open quotes": '9999,a"b,"c',
    "a text over two lines": '9999,"x\n9998,y",25/12/2020',
    "a zero byte": "9999,a\0b,25/12/2020",
    "zero bytes": "\0\0\0",
    "a comment": "#9999,x,25/12/2020",
    "fields too many": "9999,x,25/12/2020" + ",more" * 50,
    "fields too few": "9999",
    "nothing": "",
    "other delimiters": "9999;x;25/12/2020;;;;|||\t\t",
    "a carriage return": "9999,x\r9998,y,25/12/2020",
    "an end of Windows": "9999,x,25/12/2020\r",
    "a mark of order": "\ufeff9999,x,25/12/2020",
    "the end of a file of old": "9999,\x1a,25/12/2020",
    "separators of units": "9999,\x1e\x1f\x1e\x1f\x1f,25/12/2020",
    "a backslash": '9999,"a\\",25/12/2020',
    "a very long line": f"9999,{'x' * (17 << 20)},25/12/2020",
    "a very long line in quotes": f'9999,"{"x" * (17 << 20)}',
    "the names again": HEADER,
}


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(None, salt=1, threads=2)
    yield made
    made.close()


def written(path: Path, lines: list[str | bytes], end: bytes = b"\n") -> Source:
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + end for line in lines))
    return Source("csv", str(path))


def shown(engine: DuckDBEngine) -> set[tuple[Any, ...]]:
    engine.refresh("t")
    columns = engine.run("SELECT id, v, d FROM tacit_data.t")
    return set(zip(*(list(column) for column in columns.values()), strict=True))


@pytest.fixture(scope="module", params=[b"\n", b"\r\n", b"\r"], ids=["unix", "windows", "old"])
def ended(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DuckDBEngine, Path, bytes]]:
    """An engine with a registered file of good rows, and how its lines end; a refresh reads the file again."""
    path, end = tmp_path_factory.mktemp("csv") / "t.csv", request.param
    engine = DuckDBEngine(None, salt=1, threads=2)
    engine.register(TABLE, engine.with_csv_formats(written(path, [HEADER, *GOOD], end)), {})
    assert shown(engine) == ROWS
    yield engine, path, end
    engine.close()


@pytest.mark.sampled(36, each="attack")
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_row_changes_nothing_about_the_others(ended: tuple[DuckDBEngine, Path, bytes], attack: str | bytes) -> None:
    engine, path, end = ended
    for place in (0, PEOPLE // 2, PEOPLE):
        written(path, [HEADER, *GOOD[:place], attack, *GOOD[place:]], end)
        found = shown(engine)
        assert found >= ROWS
        assert {row[0] for row in found - ROWS} <= {9998, 9999}


OTHER_ENCODINGS = {
    "latin-1": [bytes([byte]) for byte in (*range(0x80, 0xA0), 0xFF)] + [b"\xe2\x82\xac\xc3"],
    "utf-16": [b"\x00\xd8", b"\x00\xdc", b"\x00\xdc\x00\xd8", b"\xff\xff", b"\xfe\xff", b"\x00\x00"],
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("encoding", OTHER_ENCODINGS)
def test_a_byte_of_another_encoding_changes_its_own_row_alone(tmp_path: Path, encoding: str, packed: bool) -> None:
    path, engine = tmp_path / ("t.csv.gz" if packed else "t.csv"), DuckDBEngine(tmp_path / "kept", salt=1, threads=2)
    letters = "latin-1" if encoding == "latin-1" else "utf-16-le"

    def put(*attacks: bytes) -> Source:
        start, end = (",".encode(letters), ",25/12/2020".encode(letters))
        more = [f"{9000 + place}".encode(letters) + start + one + end for place, one in enumerate(attacks)]
        lines = [HEADER.encode(letters), *(line.encode(letters) for line in GOOD[:99]), *more]
        lines += [line.encode(letters) for line in GOOD[99:]]
        data = ("" if encoding == "latin-1" else "\ufeff").encode(letters)
        data += b"".join(line + "\n".encode(letters) for line in lines)
        path.write_bytes(gzip.compress(data) if packed else data)
        return Source("csv", str(path))

    source = engine.with_csv_formats(put())
    assert [form.encoding for form in source.csv] == [encoding]
    engine.register(TABLE, source, {})
    assert shown(engine) == ROWS
    for attack in OTHER_ENCODINGS[encoding][::4]:
        put(attack)
        found = shown(engine)
        assert found >= ROWS
        assert {row[0] for row in found - ROWS} <= {9000}
    put(*OTHER_ENCODINGS[encoding])
    assert shown(engine) >= ROWS
    assert engine.with_csv_formats(put(*OTHER_ENCODINGS[encoding])).csv == source.csv
    assert not list((tmp_path / "kept").rglob("*.csv"))  # nothing of the copies is left
    engine.close()


def test_copies_in_another_encoding_are_for_their_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    clear = Utf8Copies.clear

    def looked(recoder: Utf8Copies) -> None:
        modes.extend(one.stat().st_mode & 0o777 for one in (tmp_path / "kept" / "spill").rglob("*csv*"))
        clear(recoder)

    monkeypatch.setattr(Utf8Copies, "clear", looked)
    engine = DuckDBEngine(tmp_path / "kept", salt=1, threads=2)
    engine.describe(written(tmp_path / "t.csv", [HEADER, *(b"%d,caf\xe9,25/12/2020" % one for one in range(9))]))
    engine.close()
    assert modes == [0o700, 0o600]


def test_a_file_whose_texts_go_over_lines_keeps_them(engine: DuckDBEngine, tmp_path: Path) -> None:
    source = engine.with_csv_formats(written(tmp_path / "t.csv", [HEADER, '1,"a\nb",25/12/2020', "2,c,25/12/2020"]))
    assert [form.quoted_newlines for form in source.csv] == [True]
    engine.register(TABLE, source, {})
    assert {row[1] for row in shown(engine)} == {"a\nb", "c"}


def test_the_form_that_is_kept_is_that_of_the_registered_file(engine: DuckDBEngine, tmp_path: Path) -> None:
    source = engine.with_csv_formats(written(tmp_path / "t.csv", ["id;v;d", "1;a;03/04/2020", "2;b;31/12/2020"]))
    engine.register(TABLE, source, {})
    written(tmp_path / "t.csv", ["d;id;v", "03/04/2020;1;a", "12/31/2020;2;b", "05/06/2020;3;c"])
    assert shown(engine) == {(1, "a", date(2020, 4, 3)), (2, "b", None), (3, "c", date(2020, 6, 5))}
    written(tmp_path / "t.csv", ["id,v,d", "1,a,03/04/2020"])
    with pytest.raises(SourceMissing, match="line of names"):
        engine.refresh("t")


def test_files_of_a_glob_are_read_by_the_form_that_their_names_fit(engine: DuckDBEngine, tmp_path: Path) -> None:
    written(tmp_path / "1.csv", ["id,v,d", "1,a,2020-12-25"])
    written(tmp_path / "2.csv", ["d;v;id", "25/12/2020;b;2"])
    source = engine.with_csv_formats(Source("csv", str(tmp_path / "*.csv")))
    assert len(source.csv) == 2
    engine.register(TABLE, source, {})
    written(tmp_path / "3.csv", ["v;d;id", "c;26/12/2020;3"])
    assert {row[0]: row[2].day for row in shown(engine)} == {1: 25, 2: 25, 3: 26}


def test_a_file_without_names_is_read_by_its_form(engine: DuckDBEngine, tmp_path: Path) -> None:
    source = engine.with_csv_formats(written(tmp_path / "t.csv", ["1,5", "2,6"]))
    names = [one.name for one in engine.describe(source)]
    table = Table("t", tuple(Column(name, Kind.INTEGER) for name in names), Unit(names[0]))
    engine.register(table, source, {})
    written(tmp_path / "t.csv", ["word,word", "1,5", "2,6", "3,7"])
    engine.refresh("t")
    assert sorted(engine.run(f"SELECT {names[1]} AS n FROM tacit_data.t")["n"]) == [5, 6, 7]


def test_one_line_of_another_encoding_does_not_decide_it(engine: DuckDBEngine, tmp_path: Path) -> None:
    (form,) = engine.with_csv_formats(written(tmp_path / "t.csv", [HEADER, *GOOD, b"9999,caf\xe9,25/12/2020"])).csv
    assert form.encoding == "utf-8"


FORM = CsvFormat(",", '"', '"', "", "\n", 0, True, False, "utf-8", ("id", "v"), ("BIGINT", "VARCHAR"), "%d/%m/%Y", "")


def test_a_form_is_kept_as_json() -> None:
    assert CsvFormat.from_dict(json.loads(json.dumps(FORM.to_dict()))) == FORM
    assert hash(Source("csv", "t.csv", csv=(FORM,))) == hash(Source("csv", "t.csv", csv=(replace(FORM),)))


@pytest.mark.parametrize(
    "change",
    [
        {"delimiter": ""},
        {"delimiter": ",,"},
        {"delimiter": "\n"},
        {"delimiter": '"'},
        {"quote": ""},
        {"quote": None},
        {"comment": ","},
        {"encoding": "utf-7"},
        {"newline": ""},
        {"skipped": -1},
        {"skipped": True},
        {"has_header": 1},
        {"quoted_newlines": "no"},
        {"names": []},
        {"names": ["a", "A"]},
        {"names": "id"},
        {"types": ["BIGINT"]},
        {"date_pattern": 7},
        {"more": 1},
    ],
)
def test_anything_else_is_no_form(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        CsvFormat.from_dict({**FORM.to_dict(), **change})
    with pytest.raises(InvalidInput):
        CsvFormat.from_dict([change])
