"""The wizard of `tacit table add`, the parsers of its answers, and its hints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.table_draft import Draft, column_hint, likely_units, unit_hint
from tacit.cli.value_parsing import bounds_of, categories_of
from tacit.curator.catalog import Catalog
from tacit.engines.protocol import Source, SourceColumn
from tacit.privacy import Bounds, Categories, ForeignKey, Unit
from tacit.privacy.errors import InvalidInput, TacitError
from tacit.privacy.tables import Kind, Limits
from tests.unit.cli.table_commands import ADD, FULL, registered, run_table
from tests.unit.cli.terminal import CTRL_C, Typist


def wizard(monkeypatch: pytest.MonkeyPatch, *types: str, options: Sequence[str] = ()) -> tuple[int, str]:
    return Typist(monkeypatch).runs("table", *ADD, *options, "--folder", "clinic", types=list(types))


ANSWERS = ("patient_id", "", "0 to 120", "1900-01-01 2024-12-31", "F, M", "20", "y")


def test_the_wizard_asks_for_what_is_open_and_writes_what_it_showed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exit_code, shown = wizard(monkeypatch, *ANSWERS)
    assert exit_code == 0, shown
    visits = registered(folder)
    assert (visits.unit, visits.limits, visits.dataset) == (Unit("patient_id"), Limits(20), "visits")
    assert visits.column("id").facts is None
    assert visits.column("age").facts == Bounds(0, 120)
    assert visits.column("birth_date").facts == Bounds(date(1900, 1, 1), date(2024, 12, 31))
    assert visits.column("sex").facts == Categories(["F", "M"])
    statement = Catalog.open(folder).table_text("visits")
    unwrapped = "".join(shown.split())  # a terminal breaks long lines
    assert all("".join(line.split()) in unwrapped for line in statement.splitlines())
    questions = ["Who is protected?", "What are the bounds", "Which values can text columns have", "How many rows"]
    assert [shown.index(question) for question in questions] == sorted(shown.index(question) for question in questions)
    assert "left out (type BLOB)" in shown
    assert "hint: the column patient_id looks like it identifies people" in shown
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
    assert registered(folder).column("age").facts == Bounds(0, 120)
    assert registered(folder).limits == Limits(5)


def test_the_wizard_does_not_ask_for_what_options_state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("--categories", "smokes=yes,no", "--categories", "scan=a")
    exit_code, shown = wizard(monkeypatch, "patient_id", "y", options=("--bounds", "id=0:9", *FULL, *texts))
    assert exit_code == 0, shown
    assert not re.search("Between which|Which values|How many|Which budget", shown)
    assert registered(folder).dataset == "hospital"


def test_a_public_table_is_not_asked_about_people(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exit_code, shown = wizard(monkeypatch, "public", "", "", "", "", "", "y")
    assert exit_code == 0, shown
    assert "How many rows" not in shown
    assert not registered(folder).is_private


@pytest.mark.parametrize("answer", ["each row", "Each-Row", "--each-row"])
def test_each_row_can_be_a_person(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    code, shown = wizard(monkeypatch, answer, "", "", "0 to 120", "", "F, M", "y")
    assert code == 0
    assert "each row is one person" in shown
    assert "How many rows" not in shown
    visits = registered(folder)
    assert (visits.unit, visits.limits) == (Unit("row"), Limits(rows_per_unit=1))
    assert (visits.column("age").facts, visits.column("sex").facts) == (Bounds(0, 120), Categories(["F", "M"]))
    assert Catalog.open(folder).source("visits").place != str(folder.parent / "visits.parquet")  # a numbered copy


def test_rows_of_a_database_cannot_be_persons_by_themselves() -> None:
    with pytest.raises(InvalidInput, match="in files only"):
        Draft("visits", ()).protect_each_row(Source("postgres", "postgresql://db.clinic/care", "visits"))


def test_a_unit_that_numbers_rows_is_doubted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exit_code, shown = wizard(monkeypatch, "id", "n", "patient_id", "", "", "", "", "", "y")
    assert exit_code == 0, shown
    assert "hint: id looks like a row number" in shown
    assert registered(folder).unit == Unit("patient_id")


def test_the_wizard_knows_other_tables_and_budgets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_table("add", "patients", "lines.csv", "--unit", "patient_id", "--dataset", "hospital") == 0
    exit_code, shown = wizard(monkeypatch, "age=patients.id", "", "", "", "", "", "hospital", "y")
    assert exit_code == 0, shown
    assert registered(folder).unit == Unit("patient_id", (ForeignKey("age", "patients", "id"),))
    assert registered(folder).dataset == "hospital"


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
    assert "identifies people" in column_hint("home_address", Kind.TEXT)
    assert "date of birth" in column_hint("DOB", Kind.DATE)
    assert column_hint("birth_weight", Kind.REAL) == column_hint("age", Kind.INTEGER) == ""
    assert "row number" in unit_hint("visits", "visit_id")
    assert "row number" in unit_hint("anything", "ID")
    assert unit_hint("patients", "patient_id") == unit_hint("visits", "patient_id") == ""
