"""Texts that no file system, engine or terminal can have: refused with a code wherever they are given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import tacit
from tacit.cli.app import run
from tacit.curator.catalog import Catalog
from tacit.privacy.errors import InvalidInput, TacitError
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

ODD = {
    "nul": "a\0b",
    "escape": "a\x1b[2Jb",
    "line": "a\nb",
    "surrogate": "a\udc80b",
    "long": "x" * 1_900,
    "deep": "d/" * 950,
}
UNWRITABLE = ("nul", "escape", "line", "surrogate")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = clinic.make(tmp_path_factory.mktemp("odd") / "clinic", rows=40)
    (made.folder / "rows.csv").write_text("person,score\n1,2\n")
    with made.client:
        yield made
    made.close()


def bodies(odd: str) -> list[dict[str, Any]]:
    base = {"name": "new", "source": "rows.csv", "unit": "person", "dataset": "visits"}
    step = {"column": "score", "target_table": "visits", "target_column": odd}
    return [
        *({**base, "source": source} for source in (odd, f"{odd}.csv", f"/{odd}.csv", f"{odd}*.csv", f"~{odd}/x.csv")),
        *({**base, "source": source} for source in (f"x.duckdb#{odd}", f"{odd}.duckdb#t", f"env:{odd}#t")),
        *({**base, name: odd} for name in ("name", "unit", "dataset")),
        {**base, "columns": {odd: {"kind": "text"}}},
        {**base, "identified_by": [odd]},
        {**base, "unit": {"column": odd, "through": [{**step, "target_table": odd, "column": odd}]}},
        {**base, "unit": {"column": "patient_id", "through": [step]}},
    ]


@pytest.mark.parametrize("who", ["owner", "curator.visits"])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_server_refuses_them_by_a_code(place: Clinic, who: str, odd: str) -> None:
    text = place.curator.catalog.text
    for body in bodies(odd):
        sent = place.call(
            who, "POST", "/v1/tables", content=json.dumps(body), headers={"Content-Type": "application/json"}
        )
        assert 400 <= sent.status_code < 500, (body, sent.text)
        assert sent.json()["error"]["code"] != "T000"
    name = quote(odd.encode("utf-8", "surrogatepass"), safe="")
    for method, path in (("GET", ""), ("POST", "/refresh"), ("DELETE", "")):
        assert 400 <= place.call(who, method, f"/v1/tables/{name}{path}").status_code < 500
    assert place.curator.catalog.text == text


def calls(curator: tacit.Curator, rows: Path, odd: str) -> list[Callable[[], object]]:
    def add(name: str = "new", data: Any = rows, **more: Any) -> Callable[[], object]:
        return lambda: curator.add_table(name, data, **{"unit": "person", **more})

    return [
        add(odd),
        *(add(data=source) for source in (odd, f"{odd}.csv", Path(f"{odd}.csv"), f"{odd}*.csv", f"~{odd}/x.csv")),
        *(add(data=source) for source in (f"x.duckdb#{odd}", f"env:{odd}#t", f"file:{odd}#t")),
        *(add(**{name: odd}) for name in ("unit", "dataset", "format", "identified_by")),
        add(columns={odd: tacit.Bounds(0, 1)}),
        add(unit=tacit.Unit(odd, (tacit.ForeignKey(odd, odd, odd),)) if odd.isprintable() else odd),
        *(lambda method=method: method(odd) for method in (curator.remove_table, curator.refresh, curator.table)),
    ]


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_python_refuses_them_by_a_code(place: Clinic, odd: str) -> None:
    text = place.curator.catalog.text
    for number, call in enumerate(calls(place.curator, place.folder / "rows.csv", odd)):
        with pytest.raises(TacitError) as refused:
            call()
        assert refused.value.code != "T000", number
    assert place.curator.catalog.text == text


@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_path_that_cannot_be_written_is_invalid_rather_than_missing(place: Clinic, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="control characters"):
        place.curator.add_table("new", f"{ODD[name]}.csv", unit="person")
    with pytest.raises(InvalidInput, match="control characters"):
        tacit.Curator(tmp_path / ODD[name])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_longer_than_any_is_refused_by_a_code(tmp_path: Path) -> None:
    for odd in ("x" * 300, "d/" * 3_000):
        with pytest.raises(InvalidInput, match="file systems"):
            tacit.Curator(tmp_path / odd)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_the_command_line_refuses_them_by_a_code(
    place: Clinic, odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, folder = str(place.folder / "rows.csv"), ["--folder", str(place.folder)]
    add = ["table", "add", "new", rows, "--unit", "person"]
    commands = [
        ["table", "add", odd, rows, "--unit", "person", *folder],
        ["table", "add", "new", f"{odd}.csv", "--unit", "person", *folder],
        *([*add, option, odd, *folder] for option in ("--dataset", "--bounds", "--categories", "--kind", "--through")),
        *([*add, option, odd, *folder] for option in ("--identified-by", "--never-missing")),
        [*add, "--kind", "score=text", "--categories", f"score=a,{odd}" if odd == ODD["line"] else "x", *folder],
        *(["table", *words, *folder] for words in (["show", odd], ["refresh", odd], ["remove", odd, "--yes"])),
        ["table", "edit", "visits", "--source", odd, *folder],
        ["table", "show", "--folder", str(tmp_path / odd)],
        ["serve", str(tmp_path / odd)],
    ]
    if odd != ODD["deep"]:  # which is a folder that can be made
        commands += [["init", str(tmp_path / odd)], ["demo", "--no-serve", "--folder", str(tmp_path / odd)]]
    for command in commands:
        assert run(command) in (2, 3, 4), command
        err = capsys.readouterr().err
        assert "T000" not in err, (command, err)
        assert "\0" not in err
        assert "\x1b[2J" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_catalog_that_names_such_a_path_says_in_which_line(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(
        '[tables.t]\nsource = "a\\u0000b.csv"\npublic = true\n[tables.t.columns]\na = { kind = "text" }\n'
    )
    with pytest.raises(TacitError, match="line 2"):
        Catalog.open(tmp_path)
