"""`tacit table`: options state what is in the catalog, and nothing else is decided."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

from tacit.cli.app import run
from tacit.curator import Curator
from tacit.curator.catalog import Catalog
from tacit.engines.protocol import Source
from tacit.privacy import Bounds, Categories, ForeignKey, Unit
from tacit.privacy.tables import Kind, Limits
from tests.unit.cli.table_commands import ADD, FOUND, FULL, registered, run_table
from tests.unit.cli.terminal import Typist


def test_options_state_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(*ADD, "--unit", "PATIENT_ID", *FULL) == 0
    out, err = capsys.readouterr()
    assert out.startswith("added visits: 7 columns; protected: each patient_id\ncolumns: id integer, ")
    assert err == "hint: set its budget: tacit budget set hospital --epsilon 1 --delta 1e-7 --folder clinic\n"
    visits = registered(folder)
    assert (visits.unit, visits.dataset, visits.identified_by) == (Unit("patient_id"), "hospital", ("id",))
    assert visits.limits == Limits(20, 5, 4)
    assert [column.kind.value for column in visits.columns] == [
        *("integer", "integer", "integer", "text", "date", "text", "text")
    ]
    assert visits.column("age").facts == Bounds(0, 120)
    assert visits.column("birth_date").facts == Bounds(date(1900, 1, 1), date(2024, 12, 31))
    assert visits.column("sex").facts == Categories(["F", "M", "a, b"])
    assert [column.name for column in visits.columns if not column.nullable] == ["patient_id"]
    assert Catalog.open(folder).source("visits") == Source("parquet", str(folder.parent / "visits.parquet"))


def test_the_answer_for_programs_holds_everything(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(*ADD, "--unit", "patient_id", "--bounds", "age=0:120", "--json") == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert err == ""
    assert (facts["name"], facts["unit"], facts["public"], facts["left_out"]) == (
        "visits",
        "patient_id",
        False,
        ["scan"],
    )
    assert facts["columns"][2] == {"name": "age", "kind": "integer", "bounds": [0, 120], "nullable": True}
    assert any("scan (BLOB)" in hint for hint in facts["hints"])
    assert run_table("show", "visits", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert {**facts, **shown} == facts


def test_a_unit_in_another_table_is_found_through_keys(folder: Path) -> None:
    assert run_table(*ADD, "--unit", "patient_id") == 0
    assert run_table("add", "lines", "lines.csv", "--through", "age=visits.id") == 0
    assert registered(folder, "lines").unit == Unit("patient_id", (ForeignKey("age", "visits", "id"),))
    assert run_table("add", "parts", "lines.csv", "--through", "id=lines.id") == 0
    keys = (ForeignKey("id", "lines", "id"), ForeignKey("age", "visits", "id"))
    assert registered(folder, "parts").unit == Unit("patient_id", keys)
    assert run_table("add", "regions", "lines.csv", "--public") == 0
    assert run_table("add", "more", "lines.csv", "--through", "id=regions.id") == 2
    assert run_table("add", "more", "lines.csv", "--through", "id=regions.id", "--unit", "patient_id") == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "who is protected in visits? give --unit COLUMN"),
        ([], "--each-row, if each row is one person"),
        (["--unit", "patient_id", "--public"], "--public or --unit, not both"),
        (["--unit", "patient"], "visits has no column patient; did you mean patient_id?"),
        (["--unit", "scan"], "scan has the unsupported type BLOB"),
        (["--unit", "id", "--bounds", "agee=0:1"], "no column agee; did you mean age?"),
        (["--unit", "id", "--bounds", "age"], "write COLUMN=VALUE, such as age=0:120, not 'age'"),
        (["--unit", "id", "--bounds", "age="], "write COLUMN=VALUE"),
        (["--unit", "id", "--bounds", "age=young:old"], "bounds of age are written 0:120, not 'young:old'"),
        (["--unit", "id", "--bounds", "age=120:0"], "120 > 0"),
        (["--unit", "id", "--bounds", "age=0:1.5"], "age is integer: its bounds are integers"),
        (["--unit", "id", "--bounds", "sex=0:1"], "sex is text and cannot have bounds"),
        (["--unit", "id", "--bounds", "scan=0:1"], "scan has the unsupported type BLOB; give it a kind"),
        (["--unit", "id", "--categories", "age=a,b"], "'a' is not a value of age, whose kind is integer"),
        (["--unit", "id", "--categories", "sex=F,F"], "duplicate category 'F'"),
        (["--unit", "id", "--kind", "age=number"], "the kind of age must be one of boolean, integer"),
        (["--unit", "id", "--rows-per-unit", "0"], "0 is not in the range"),
        (["--public", "--rows-per-unit", "5"], "is public and has no units to limit"),
        (["--through", "id=visits"], "write a foreign key as COLUMN=TABLE.COLUMN"),
        (["--through", "id=nowhere.id"], "no table is called nowhere"),
    ],
)
def test_what_cannot_be_stated_is_bad_use_and_nothing_is_written(
    folder: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "catalog.toml").read_bytes()
    assert run_table(*ADD, *options) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert (folder / "catalog.toml").read_bytes() == before


@pytest.mark.parametrize(("source", "exit_code"), [("nowhere.csv", 4), ("adult.csvv", 4), ("other.duckdb", 2)])
def test_a_source_that_cannot_be_used_is_named(
    folder: Path, source: str, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_table("add", "visits", source, "--public") == exit_code
    assert source in capsys.readouterr().err
    assert Catalog.open(folder).tables == {}


def test_a_table_is_replaced_only_if_that_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(*ADD, "--unit", "patient_id") == 0
    assert run_table(*ADD, "--public") == 2
    assert "--replace" in capsys.readouterr().err
    assert run_table(*ADD, "--public", "--replace") == 0
    assert not registered(folder).is_private
    assert "visits is public, but patient_id looks like it identifies people" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_what_names_suggest_is_said_and_not_decided(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(*ADD, "--unit", "id") == 0
    assert "hint: id looks like a row number" in capsys.readouterr().err


def test_show_is_toml_in_a_pipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(*ADD, "--unit", "patient_id", *FULL) == 0
    assert run_table("add", "regions", "lines.csv", "--public") == 0
    capsys.readouterr()
    assert run_table("show") == 0
    text = capsys.readouterr().out
    assert (folder / "catalog.toml").read_text().endswith(text)
    assert run_table("show", "VISITS") == 0
    assert text.startswith(capsys.readouterr().out)
    assert run_table("show", "--json") == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["tables"]] == ["visits", "regions"]
    assert run_table("show", "visit") == 2


@pytest.mark.usefixtures("folder")
def test_show_is_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist(monkeypatch)
    assert (
        typist.runs("table", "show", "--folder", "clinic")[1]
        == "no tables yet; add one with: tacit table add NAME SOURCE --unit COLUMN\n"
    )
    assert run_table(*ADD, "--unit", "patient_id", *FULL) == 0
    assert run_table("add", "lines", "lines.csv", "--through", "age=visits.id") == 0
    exit_code, shown = typist.runs("table", "show", "visits", "--folder", "clinic")
    assert exit_code == 0
    assert re.search(r"protected\s+each patient_id", shown)
    assert "20 rows per unit, 5 groups per unit, 4 rows per group" in shown
    assert re.search(r"age\s+integer\s+0 to 120", shown)
    assert re.search(r"patient_id\s+integer\s+never", shown)
    _, listed = typist.runs("table", "show", "--folder", "clinic")
    assert re.search(r"lines\s+each patient_id, through", listed)


def test_single_facts_are_changed_by_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(*ADD, "--unit", "patient_id", *FULL) == 0
    before = (folder / "catalog.toml").read_text()
    assert run_table("edit", "visits", "--bounds", "age=0:110") == 0
    assert (folder / "catalog.toml").read_text() == before.replace("[0, 120] }\n", "[0, 110] }\n")
    assert "changed visits" in capsys.readouterr().out
    changes = ("--forget", "sex", "--kind", "smokes=boolean", "--rows-per-unit", "7", "--dataset", "clinic")
    assert run_table("edit", "visits", *changes, "--source", "lines.csv") == 0
    visits = registered(folder)
    assert visits.column("sex").facts is None
    assert (visits.column("smokes").kind, visits.limits, visits.dataset) == (Kind.BOOLEAN, Limits(7, 5, 4), "clinic")
    assert Catalog.open(folder).source("visits").form == "csv"
    assert run_table("edit", "visits", "--public") == 0
    assert (registered(folder).unit, registered(folder).limits) == (None, Limits())
    assert run_table("edit", "visits", "--unit", "id", "--format", "parquet") == 4  # its rows are not Parquet
    assert (registered(folder).unit, Catalog.open(folder).source("visits").form) == (None, "csv")
    assert run_table("edit", "visits", "--unit", "id", "--source", "visits.parquet") == 0
    assert (registered(folder).unit, Catalog.open(folder).source("visits").form) == (Unit("id"), "parquet")


def test_a_change_that_does_not_fit_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(*ADD, "--unit", "patient_id", *FULL) == 0
    before = (folder / "catalog.toml").read_bytes()
    assert run_table("edit", "visits", "--kind", "sex=integer") == 2
    assert run_table("edit", "visits", "--unit", "nobody") == 2
    assert run_table("edit", "nowhere", "--public") == 2
    assert run_table("edit", "--public") == 2
    assert run_table("edit", "visits") == 2
    assert "run in a terminal to open an editor" in capsys.readouterr().err
    assert (folder / "catalog.toml").read_bytes() == before


def test_a_new_source_needs_the_columns_that_are_stated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_table(*ADD, "--unit", "patient_id") == 0
    monkeypatch.setattr("tacit.curator.table_sources.describe", lambda _source: FOUND[1:])
    assert run_table("edit", "visits", "--source", "lines.csv") == 2
    assert "the new source of visits has no column id" in capsys.readouterr().err
    assert Catalog.open(folder).source("visits").form == "parquet"


def test_a_refresh_tells_the_owner_how_many_rows_can_be_asked_about(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refresh(*rows: str) -> tuple[str, str]:
        (folder.parent / "stays.csv").write_text("\n".join(["id,patient_id,age", *rows, ""]))
        assert run_table("refresh") == 0
        return capsys.readouterr()

    path = folder.parent / "stays.csv"
    path.write_text("id,patient_id,age\n1,1,40\n2,2,50\n")
    with Curator(folder) as curator:
        curator.add_table("stays", path, unit="patient_id", columns={"age": Bounds(0, 120)})
        unit = Unit("patient_id", (ForeignKey("id", "stays", "id"),))
        curator.add_table("lines", path, unit=unit)
    capsys.readouterr()
    out, err = refresh("1,1,40", "2,2,50", "3,3,60", "4,,60")
    assert out == "refreshed; the rows of stays, lines have changed\nstays: 3 usable rows\nlines: 3 usable rows\n"
    assert err == ""
    out, err = refresh("1,1,", "2,2,")
    assert "stays: 2 usable rows\n" in out
    assert "warning: stays has no values in age\n" in err
    out, err = refresh("1,x1,40", "2,x2,50")
    assert out.endswith("stays: 0 usable rows\nlines: 0 usable rows\n")
    assert "warning: stays has no usable rows: rows without a readable patient_id are left out\n" in err
    assert run_table("refresh", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"changed": [], "rows": {}, "warnings": []}


def test_an_edit_says_what_changed_and_that_answers_are_charged_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_table(*ADD, "--unit", "patient_id", "--bounds", "age=0:120", "--epsilon", "3") == 0

    def edit(*words: str) -> tuple[list[str], str]:
        capsys.readouterr()
        assert run_table("edit", "visits", *words) == 0
        out, err = capsys.readouterr()
        return out.splitlines(), err

    out, err = edit("--bounds", "age=0:110", "--never-missing", "age", "--categories", "sex=F,M")
    assert out[0].startswith("changed visits: ")
    assert out[1:] == [
        "age: 0 to 120 → 0 to 110",
        "age: may be missing → never missing",
        "sex: no bounds or categories → F, M",
    ]
    assert "charged again" not in err  # nothing was released yet
    assert run(["sql", "SELECT COUNT(*) FROM visits", "--epsilon", "0.5", "--folder", "clinic"]) == 0
    out, err = edit("--kind", "sex=text", "--rows-per-unit", "5", "--forget", "sex", "--source", "lines.csv")
    assert out[1:3] == ["limits: none → at most 5 rows per unit", "sex: F, M → no bounds or categories"]
    assert out[3].startswith("source: ")
    assert "answers released before this change are charged again if they are repeated\n" in err
    out, err = edit("--bounds", "age=0:110")
    assert out[0].startswith("nothing differs from before in visits: ")
    assert (out[1:], "charged again" in err) == ([], False)
    assert run_table("edit", "visits", "--bounds", "age=0:100", "--json") == 0
    assert json.loads(capsys.readouterr().out)["changes"] == ["age: 0 to 110 → 0 to 100"]


def test_a_table_is_removed(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_table(*ADD, "--unit", "patient_id") == 0
    typist = Typist(monkeypatch)
    assert typist.runs("table", "remove", "visits", "--folder", "clinic", types=["n"])[0] == 130
    assert typist.runs("table", "remove", "visits", "--folder", "clinic", types=[""])[0] == 130
    assert run_table("remove", "nowhere") == 2
    capsys.readouterr()
    for words in ((), ("--json",)):  # without a terminal to ask at
        assert run_table("remove", "visits", *words) == 2
        out, err = capsys.readouterr()
        assert (out, "T100" in err) == ("", True)
        assert "this would remove visits from the catalog; nothing was changed; add --yes to confirm" in err
    assert list(Catalog.open(folder).tables) == ["visits"]
    assert typist.runs("table", "remove", "visits", "--folder", "clinic", "--yes")[0] == 0
    assert Catalog.open(folder).tables == {}
    assert (folder.parent / "visits.parquet").exists()
    capsys.readouterr()


@pytest.mark.parametrize(
    "arguments", [("show",), ("edit",), ("remove", "x"), ("add", "x", "visits.parquet", "--public")]
)
def test_a_folder_that_nobody_has_set_up_is_bad_use_and_stays_as_it_is(
    tmp_path: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", *arguments, "--folder", str(tmp_path)]) == 2
    assert "create them with: tacit init" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
