"""`tacit table`: what options and answers state is in the catalog, and nothing else is ever decided."""

import json
import re
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tacit.cli.app import run
from tacit.cli.table_draft import column_hint, likely_units, unit_hint
from tacit.cli.value_parsing import bounds_of, categories_of
from tacit.curator import Curator
from tacit.curator.catalog import Catalog
from tacit.engines.protocol import SourceColumn, Source
from tacit.privacy import Bounds, Categories, ForeignKey, Unit
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Kind, Limits, Table
from tests.unit.cli.terminal import CTRL_C, Typist

FOUND = [
    SourceColumn("id", Kind.INTEGER, "BIGINT"),
    SourceColumn("patient_id", Kind.INTEGER, "BIGINT"),
    SourceColumn("age", Kind.INTEGER, "INTEGER"),
    SourceColumn("sex", Kind.TEXT, "VARCHAR"),
    SourceColumn("birth_date", Kind.DATE, "DATE"),
    SourceColumn("smokes", Kind.BOOLEAN, "BOOLEAN"),
    SourceColumn("scan", None, "BLOB"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder that was set up, with files of which an engine would find these columns."""

    def describe(_source: Source) -> Sequence[SourceColumn]:
        return FOUND

    monkeypatch.setattr("tacit.curator.table_sources.describe", describe)
    monkeypatch.chdir(tmp_path)
    assert run(["init", "clinic"]) == 0
    rows = (
        "SELECT i AS id, i AS patient_id, 40::INTEGER AS age, 'F' AS sex, DATE '1980-01-01' AS birth_date, "
        "true AS smokes, 'x'::BLOB AS scan FROM range(3) AS r(i)"
    )
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS {rows}")
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'visits.parquet'}'")
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'lines.csv'}'")
    capsys.readouterr()
    return tmp_path / "clinic"


def table(*arguments: str) -> int:
    return run(["table", *arguments, "--folder", "clinic"])


def stated(folder: Path, name: str = "visits") -> Table:
    return Catalog.open(folder).schema.table(name)


ADD = ("add", "visits", "visits.parquet")
FULL = (
    *("--bounds", "AGE=0:120", "--bounds", "birth_date=1900-01-01:2024-12-31", "--categories", 'sex=F, M,"a, b"'),
    *("--kind", "smokes=text", "--kind", "scan=text", "--never-missing", "Patient_ID", "--identified-by", "id"),
    *("--rows-per-unit", "20", "--groups-per-unit", "5", "--rows-per-group", "4", "--dataset", "hospital"),
)


def test_options_state_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert table(*ADD, "--unit", "PATIENT_ID", *FULL) == 0
    out, err = capsys.readouterr()
    assert out == "added visits: 7 columns; protects each patient_id\n"
    assert err == "hint: give it a budget: tacit budget set hospital --epsilon 1 --delta 1e-7 --folder clinic\n"
    visits = stated(folder)
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
    assert table(*ADD, "--unit", "patient_id", "--bounds", "age=0:120", "--json") == 0
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
    assert table("show", "visits", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert {**facts, **shown} == facts


def test_a_unit_in_another_table_is_found_through_keys(folder: Path) -> None:
    assert table(*ADD, "--unit", "patient_id") == 0
    assert table("add", "lines", "lines.csv", "--through", "age=visits.id") == 0
    assert stated(folder, "lines").unit == Unit("patient_id", (ForeignKey("age", "visits", "id"),))
    assert table("add", "parts", "lines.csv", "--through", "id=lines.id") == 0
    keys = (ForeignKey("id", "lines", "id"), ForeignKey("age", "visits", "id"))
    assert stated(folder, "parts").unit == Unit("patient_id", keys)
    assert table("add", "regions", "lines.csv", "--public") == 0
    assert table("add", "more", "lines.csv", "--through", "id=regions.id") == 2
    assert table("add", "more", "lines.csv", "--through", "id=regions.id", "--unit", "patient_id") == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "who is protected in visits? give --unit COLUMN"),
        ([], "--each-row, if every row is a person"),
        (["--unit", "patient_id", "--public"], "--public or --unit, not both"),
        (["--unit", "patient"], "visits has no column patient; did you mean patient_id?"),
        (["--unit", "scan"], "scan is of the type BLOB"),
        (["--unit", "id", "--bounds", "agee=0:1"], "no column agee; did you mean age?"),
        (["--unit", "id", "--bounds", "age"], "write COLUMN=VALUE, such as age=0:120, not 'age'"),
        (["--unit", "id", "--bounds", "age="], "write COLUMN=VALUE"),
        (["--unit", "id", "--bounds", "age=young:old"], "bounds of age are written 0:120, not 'young:old'"),
        (["--unit", "id", "--bounds", "age=120:0"], "120 > 0"),
        (["--unit", "id", "--bounds", "age=0:1.5"], "age is integer: its bounds are whole numbers"),
        (["--unit", "id", "--bounds", "sex=0:1"], "sex is text and cannot have bounds"),
        (["--unit", "id", "--bounds", "scan=0:1"], "scan is of the type BLOB; give it a kind first"),
        (["--unit", "id", "--categories", "age=a,b"], "age is integer, and 'a' is not; give it another kind"),
        (["--unit", "id", "--categories", "sex=F,F"], "'F' stands twice"),
        (["--unit", "id", "--kind", "age=number"], "the kind of age is one of boolean, integer"),
        (["--unit", "id", "--rows-per-unit", "0"], "0 is not in the range"),
        (["--public", "--rows-per-unit", "5"], "public: no unit in it can be limited"),
        (["--through", "id=visits"], "a step to the unit is COLUMN=TABLE.COLUMN"),
        (["--through", "id=nowhere.id"], "no table is called nowhere"),
    ],
)
def test_what_cannot_be_stated_is_bad_use_and_nothing_is_written(
    folder: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "catalog.toml").read_bytes()
    assert table(*ADD, *options) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert (folder / "catalog.toml").read_bytes() == before


@pytest.mark.parametrize(("source", "exit_code"), [("nowhere.csv", 4), ("adult.csvv", 4), ("other.duckdb", 2)])
def test_a_source_that_cannot_be_used_is_named(
    folder: Path, source: str, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table("add", "visits", source, "--public") == exit_code
    assert source in capsys.readouterr().err
    assert Catalog.open(folder).tables == {}


def test_a_table_is_replaced_only_if_that_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert table(*ADD, "--unit", "patient_id") == 0
    assert table(*ADD, "--public") == 2
    assert "--replace" in capsys.readouterr().err
    assert table(*ADD, "--public", "--replace") == 0
    assert not stated(folder).is_private
    assert "visits is public, and patient_id looks like it is about people" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_what_names_suggest_is_said_and_not_decided(capsys: pytest.CaptureFixture[str]) -> None:
    assert table(*ADD, "--unit", "id") == 0
    assert "hint: id looks like it numbers rows" in capsys.readouterr().err


def test_show_is_toml_in_a_pipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert table(*ADD, "--unit", "patient_id", *FULL) == 0
    assert table("add", "regions", "lines.csv", "--public") == 0
    capsys.readouterr()
    assert table("show") == 0
    text = capsys.readouterr().out
    assert (folder / "catalog.toml").read_text().endswith(text)
    assert table("show", "VISITS") == 0
    assert text.startswith(capsys.readouterr().out)
    assert table("show", "--json") == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["tables"]] == ["visits", "regions"]
    assert table("show", "visit") == 2


@pytest.mark.usefixtures("folder")
def test_show_is_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist(monkeypatch)
    assert typist.runs("table", "show", "--folder", "clinic")[1] == "no table was added yet\n"
    assert table(*ADD, "--unit", "patient_id", *FULL) == 0
    assert table("add", "lines", "lines.csv", "--through", "age=visits.id") == 0
    exit_code, shown = typist.runs("table", "show", "visits", "--folder", "clinic")
    assert exit_code == 0
    assert re.search(r"protects\s+each patient_id", shown)
    assert "20 rows of each unit, 5 groups of an answer, 4 rows in each group" in shown
    assert re.search(r"age\s+integer\s+0 to 120", shown)
    assert re.search(r"patient_id\s+integer\s+never missing", shown)
    _, listed = typist.runs("table", "show", "--folder", "clinic")
    assert re.search(r"lines\s+each patient_id, through", listed)


def test_single_facts_are_changed_by_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert table(*ADD, "--unit", "patient_id", *FULL) == 0
    before = (folder / "catalog.toml").read_text()
    assert table("edit", "visits", "--bounds", "age=0:110") == 0
    assert (folder / "catalog.toml").read_text() == before.replace("[0, 120] }\n", "[0, 110] }\n")
    assert "changed visits" in capsys.readouterr().out
    changes = ("--forget", "sex", "--kind", "smokes=boolean", "--rows-per-unit", "7", "--dataset", "clinic")
    assert table("edit", "visits", *changes, "--source", "lines.csv") == 0
    visits = stated(folder)
    assert visits.column("sex").facts is None
    assert (visits.column("smokes").kind, visits.limits, visits.dataset) == (Kind.BOOLEAN, Limits(7, 5, 4), "clinic")
    assert Catalog.open(folder).source("visits").form == "csv"
    assert table("edit", "visits", "--public") == 0
    assert (stated(folder).unit, stated(folder).limits) == (None, Limits())
    assert table("edit", "visits", "--unit", "id", "--format", "parquet") == 4  # its rows are not Parquet
    assert (stated(folder).unit, Catalog.open(folder).source("visits").form) == (None, "csv")
    assert table("edit", "visits", "--unit", "id", "--source", "visits.parquet") == 0
    assert (stated(folder).unit, Catalog.open(folder).source("visits").form) == (Unit("id"), "parquet")


def test_a_change_that_does_not_fit_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert table(*ADD, "--unit", "patient_id", *FULL) == 0
    before = (folder / "catalog.toml").read_bytes()
    assert table("edit", "visits", "--kind", "sex=integer") == 2
    assert table("edit", "visits", "--unit", "nobody") == 2
    assert table("edit", "nowhere", "--public") == 2
    assert table("edit", "--public") == 2
    assert table("edit", "visits") == 2
    assert "an editor needs a terminal" in capsys.readouterr().err
    assert (folder / "catalog.toml").read_bytes() == before


def test_a_new_source_needs_the_columns_that_are_stated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table(*ADD, "--unit", "patient_id") == 0
    monkeypatch.setattr("tacit.curator.table_sources.describe", lambda _source: FOUND[1:])
    assert table("edit", "visits", "--source", "lines.csv") == 2
    assert "the new source of visits has no column id" in capsys.readouterr().err
    assert Catalog.open(folder).source("visits").form == "parquet"


def test_a_refresh_tells_the_owner_how_many_rows_can_be_asked_about(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refresh(*rows: str) -> tuple[str, str]:
        (folder.parent / "stays.csv").write_text("\n".join(["id,patient_id,age", *rows, ""]))
        assert table("refresh") == 0
        return capsys.readouterr()

    path = folder.parent / "stays.csv"
    path.write_text("id,patient_id,age\n1,1,40\n2,2,50\n")
    with Curator(folder) as curator:
        curator.add_table("stays", path, unit="patient_id", columns={"age": Bounds(0, 120)})
        unit = Unit("patient_id", (ForeignKey("id", "stays", "id"),))
        curator.add_table("lines", path, unit=unit)
    capsys.readouterr()
    rows = "can be asked about\n"
    out, err = refresh("1,1,40", "2,2,50", "3,3,60", "4,,60")
    assert out == f"the rows of stays, lines have changed\nstays: 3 rows {rows}lines: 3 rows {rows}"
    assert err == ""
    out, err = refresh("1,1,", "2,2,")
    assert f"stays: 2 rows {rows}" in out
    assert "warning: stays has no value in any row of age\n" in err
    out, err = refresh("1,x1,40", "2,x2,50")
    assert out.endswith(f"stays: 0 rows {rows}lines: 0 rows {rows}")
    assert "warning: stays has no row that can be asked about: a row without a readable patient_id is left out\n" in err
    assert table("refresh", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"changed": [], "rows": {}, "warnings": []}


def test_a_table_is_removed(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(*ADD, "--unit", "patient_id") == 0
    typist = Typist(monkeypatch)
    assert typist.runs("table", "remove", "visits", "--folder", "clinic", types=["n"])[0] == 130
    assert table("remove", "nowhere") == 2
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
    assert "make them with: tacit init" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


EDITOR = """\
import sys
from pathlib import Path
file, turns = Path(sys.argv[1]), Path("turns")
texts = turns.read_text().split("\\0")
text = file.read_text()
old, new = texts[0].split("\\1")
assert old in text
file.write_text(text.replace(old, new))
turns.write_text("\\0".join(texts[1:]))
"""


@pytest.fixture
def editor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that prepares what the editor replaces, turn by turn."""
    import sys

    (folder.parent / "editor.py").write_text(EDITOR)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {folder.parent / 'editor.py'}")
    monkeypatch.delenv("VISUAL", raising=False)
    assert table(*ADD, "--unit", "patient_id", "--bounds", "age=0:119") == 0

    def prepare(*turns: tuple[str, str]) -> None:
        (folder.parent / "turns").write_text("\0".join("\1".join(turn) for turn in turns))

    return prepare


def test_what_is_saved_in_an_editor_replaces_the_file(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(("[0, 119]", "[0, 110]"))
    exit_code, shown = Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic")
    assert (exit_code, shown) == (0, "changed clinic/catalog.toml: 1 table\n")
    assert stated(folder).column("age").facts == Bounds(0, 110)


def test_an_edited_data_set_does_not_hide_what_was_spent(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["budget", "set", "visits", "--epsilon", "1", "--folder", "clinic"]) == 0
    assert run(["sql", "SELECT COUNT(*) FROM visits", "--epsilon", "0.5", "--folder", "clinic"]) == 0
    editor(("\nunit = ", '\ndataset = "other"\nunit = '))
    exit_code, _ = Typist(monkeypatch).runs("table", "edit", "--folder", "clinic")
    assert exit_code == 0
    assert "visits: what was spent from the budget of visits (epsilon 0.5," in capsys.readouterr().err


def test_what_cannot_be_read_is_edited_again(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    editor(("[0, 119]", "[119, 0]"), ("[119, 0]", "[1, 119]"))
    exit_code, _ = Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic", types=["y"])
    assert exit_code == 0
    assert "119 > 0" in capsys.readouterr().err
    assert stated(folder).column("age").facts == Bounds(1, 119)


def test_what_cannot_be_read_is_discarded_on_demand(folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(("[0, 119]", "[119, 0]"))
    exit_code, _ = Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic", types=["n"])
    assert exit_code == 2
    assert stated(folder).column("age").facts == Bounds(0, 119)


def test_a_broken_catalog_can_be_mended_in_an_editor(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "catalog.toml"
    path.write_text(path.read_text().replace("[0, 119]", "[0, 119"))
    editor(("[0, 119", "[0, 119]"))
    assert Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic")[0] == 0
    assert "this is not TOML" in capsys.readouterr().err
    assert stated(folder).column("age").facts == Bounds(0, 119)


def test_an_editor_that_changes_nothing_changes_nothing(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / "catalog.toml").read_bytes()
    editor(("[0, 119]", "[0, 119]"))
    _, shown = Typist(monkeypatch).runs("table", "edit", "--folder", "clinic")
    assert shown == "nothing was changed\n"
    assert (folder / "catalog.toml").read_bytes() == before


def wizard(monkeypatch: pytest.MonkeyPatch, *types: str, options: Sequence[str] = ()) -> tuple[int, str]:
    return Typist(monkeypatch).runs("table", *ADD, *options, "--folder", "clinic", types=list(types))


ANSWERS = ("patient_id", "", "0 to 120", "1900-01-01 2024-12-31", "F, M", "20", "y")


def test_the_wizard_asks_for_what_is_open_and_writes_what_it_showed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exit_code, shown = wizard(monkeypatch, *ANSWERS)
    assert exit_code == 0, shown
    visits = stated(folder)
    assert (visits.unit, visits.limits, visits.dataset) == (Unit("patient_id"), Limits(20), "visits")
    assert visits.column("id").facts is None
    assert visits.column("age").facts == Bounds(0, 120)
    assert visits.column("birth_date").facts == Bounds(date(1900, 1, 1), date(2024, 12, 31))
    assert visits.column("sex").facts == Categories(["F", "M"])
    statement = Catalog.open(folder).statement("visits")
    unwrapped = "".join(shown.split())  # a terminal breaks long lines
    assert all("".join(line.split()) in unwrapped for line in statement.splitlines())
    questions = ["Who is protected?", "Between which values", "Which values can texts", "How many rows"]
    assert [shown.index(question) for question in questions] == sorted(shown.index(question) for question in questions)
    assert "left out: BLOB" in shown
    assert "hint: patient_id looks like it" in shown
    assert "hint: birth_date looks like a date of birth" in shown


@pytest.mark.parametrize(
    ("answered", "ending"),
    [
        *((answered, ending) for answered in range(len(ANSWERS)) for ending in ([CTRL_C], [])),
        (len(ANSWERS) - 1, ["n"]),
    ],
)
def test_whoever_ends_the_wizard_early_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answered: int, ending: list[str]
) -> None:
    before = (folder / "catalog.toml").read_bytes()
    exit_code, shown = wizard(monkeypatch, *ANSWERS[:answered], *ending)
    assert exit_code == 130
    assert shown.endswith("nothing was written\n")
    assert (folder / "catalog.toml").read_bytes() == before


def test_an_answer_that_cannot_be_read_is_asked_for_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = ("", "patient", "scan", "x=y", "age=nowhere.id", "patient_id")
    rest = ("", "old", "120 to 0", "0-120", "0..120", "", "F, F", "F, M", "0", "many", "5", "maybe", "yes")
    exit_code, shown = wizard(monkeypatch, *unit, *rest)
    assert exit_code == 0, shown
    for sentence in (
        "did you mean patient_id?",
        "BLOB",
        "COLUMN=TABLE.COLUMN",
        "no table is called nowhere",
        "120 > 0",
    ):
        assert sentence in " ".join(shown.split())
    assert stated(folder).column("age").facts == Bounds(0, 120)
    assert stated(folder).limits == Limits(5)


def test_the_wizard_does_not_ask_for_what_options_state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("--categories", "smokes=yes,no", "--categories", "scan=a")
    exit_code, shown = wizard(monkeypatch, "patient_id", "y", options=("--bounds", "id=0:9", *FULL, *texts))
    assert exit_code == 0, shown
    assert not re.search("Between which|Which values|How many|Which budget", shown)
    assert stated(folder).dataset == "hospital"


def test_a_public_table_is_not_asked_about_people(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exit_code, shown = wizard(monkeypatch, "public", "", "", "", "", "", "y")
    assert exit_code == 0, shown
    assert "How many rows" not in shown
    assert not stated(folder).is_private


def test_a_unit_that_numbers_rows_is_doubted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exit_code, shown = wizard(monkeypatch, "id", "n", "patient_id", "", "", "", "", "", "y")
    assert exit_code == 0, shown
    assert "hint: id looks like it numbers rows" in shown
    assert stated(folder).unit == Unit("patient_id")


def test_the_wizard_knows_other_tables_and_budgets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert table("add", "patients", "lines.csv", "--unit", "patient_id", "--dataset", "hospital") == 0
    exit_code, shown = wizard(monkeypatch, "age=patients.id", "", "", "", "", "", "hospital", "y")
    assert exit_code == 0, shown
    assert stated(folder).unit == Unit("patient_id", (ForeignKey("age", "patients", "id"),))
    assert stated(folder).dataset == "hospital"


@pytest.mark.usefixtures("folder")
def test_a_program_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wizard(monkeypatch, *ANSWERS, options=("--json",))[0] == 2


@pytest.mark.parametrize(
    ("kind", "text", "bounds"),
    [
        (Kind.INTEGER, "0:120", Bounds(0, 120)),
        (Kind.INTEGER, "-5 to 1_000", Bounds(-5, 1000)),
        (Kind.INTEGER, "-5..-1", Bounds(-5, -1)),
        (Kind.REAL, "-0.5, 1e3", Bounds(-0.5, 1000)),
        (Kind.DATE, "2020-01-01:2024-12-31", Bounds("2020-01-01", "2024-12-31")),
        (Kind.TIME, "2020-01-01T10:00:2024-12-31T23:59:59", Bounds("2020-01-01T10:00", "2024-12-31T23:59:59")),
        (Kind.TIME, "2020-01-01 10:00 to 2024-12-31 11:30", Bounds("2020-01-01T10:00", "2024-12-31T11:30")),
        (Kind.TIME, "2020-01-01 to 2024-12-31", Bounds("2020-01-01", "2024-12-31")),
    ],
)
def test_bounds_may_be_typed_in_any_usual_way(kind: Kind, text: str, bounds: Bounds) -> None:
    assert bounds_of("x", kind, text) == bounds


@pytest.mark.parametrize(
    "text", ["", ":", "1", "1:", ":1", "a:b", "1:b", "nan:1", "0:inf", "_:_", "1__:_2", "--1:2", "٣:٤"]
)
def test_other_texts_are_no_bounds(text: str) -> None:
    with pytest.raises(TacitError):
        bounds_of("x", Kind.REAL, text)


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        (Kind.TEXT, "F,M", ["F", "M"]),
        (Kind.TEXT, ' a , "b, c", "d""e" ,', ["a", "b, c", 'd"e']),
        (Kind.INTEGER, "1, 2,3", [1, 2, 3]),
        (Kind.BOOLEAN, "true,No", [True, False]),
        (Kind.DATE, "2024-12-25", [date(2024, 12, 25)]),
        (Kind.TIME, "2024-12-25T10:00", [datetime(2024, 12, 25, 10)]),
    ],
)
def test_categories_are_read_by_kind(kind: Kind, text: str, values: list[Any]) -> None:
    assert categories_of("x", kind, text) == Categories(values)


def test_hints_look_at_names_alone() -> None:
    names = ["id", "PatientID", "user", "customer_no", "household", "age", "visits"]
    assert likely_units([SourceColumn(name, Kind.TEXT, "") for name in names]) == [
        *("PatientID", "user", "customer_no", "household")
    ]
    assert "names people" in column_hint("home_address", Kind.TEXT)
    assert "date of birth" in column_hint("DOB", Kind.DATE)
    assert column_hint("birth_weight", Kind.REAL) == column_hint("age", Kind.INTEGER) == ""
    assert "numbers rows" in unit_hint("visits", "visit_id")
    assert "numbers rows" in unit_hint("anything", "ID")
    assert unit_hint("patients", "patient_id") == unit_hint("visits", "patient_id") == ""
