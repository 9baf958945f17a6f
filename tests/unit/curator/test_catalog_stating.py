"""Tables from what an engine found and an owner states; sources from paths."""

from datetime import date
from pathlib import Path

import pytest

from tacit.curator.registration import left_out, table_of
from tacit.curator.table_sources import source_of
from tacit.engines.protocol import Source, SourceColumn
from tacit.privacy import Bounds, Categories, ForeignKey, Unit
from tacit.privacy.errors import EmptyInput, InvalidInput, NotInCatalog, SourceMissing, TacitError, WrongType
from tacit.privacy.tables import Column, Kind, Limits

FOUND = [
    SourceColumn("Patient_ID", Kind.INTEGER, "BIGINT"),
    SourceColumn("age", Kind.INTEGER, "INTEGER"),
    SourceColumn("sex", Kind.TEXT, "VARCHAR"),
    SourceColumn("day", Kind.DATE, "DATE"),
    SourceColumn("scan", None, "BLOB"),
]


def test_names_and_kinds_are_found_and_all_the_rest_is_stated() -> None:
    table = table_of(
        "visits",
        FOUND,
        unit="patient_id",
        columns={
            "AGE": Bounds(0.0, 120.0),
            "sex": Column("sex", Kind.TEXT, Categories(["F", "M"]), nullable=False),
            "day": Bounds("2020-01-01", "2024-12-31"),
        },
        limits=Limits(rows_per_unit=5),
        identified_by=["PATIENT_ID", "day"],
        dataset="clinic",
    )
    assert table.columns == (
        Column("Patient_ID", Kind.INTEGER),
        Column("age", Kind.INTEGER, Bounds(0, 120)),
        Column("sex", Kind.TEXT, Categories(["F", "M"]), nullable=False),
        Column("day", Kind.DATE, Bounds(date(2020, 1, 1), date(2024, 12, 31))),
    )
    assert isinstance(table.column("age").facts.lower, int)  # type: ignore[union-attr]
    assert (table.unit, table.identified_by) == (Unit("Patient_ID"), ("Patient_ID", "day"))
    assert (table.limits, table.dataset) == (Limits(rows_per_unit=5), "clinic")


def test_columns_of_other_types_are_left_out_unless_they_get_a_kind() -> None:
    assert left_out(FOUND) == [FOUND[4]]
    assert left_out(FOUND, {"SCAN": Kind.TEXT}) == []
    table = table_of("visits", FOUND, unit=None, public=True, kinds={"SCAN": Kind.TEXT, "age": Kind.REAL})
    assert [column.kind for column in table.columns] == ["integer", "real", "text", "date", "text"]


def test_a_unit_can_lie_in_another_table() -> None:
    unit = Unit("person", (ForeignKey("patient_id", "patients", "id"),))
    table = table_of("visits", FOUND, unit=unit)
    assert table.unit == Unit("person", (ForeignKey("Patient_ID", "patients", "id"),))


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"unit": None}, InvalidInput, "who is protected in visits\\? state unit="),
        ({"unit": "age", "public": True}, InvalidInput, "not both"),
        ({"unit": "patient"}, NotInCatalog, "visits has no column patient; did you mean Patient_ID"),
        ({"unit": "scan"}, InvalidInput, "scan has the unsupported type BLOB; give it a kind"),
        ({"unit": 5}, WrongType, "a unit is the name of a column or a Unit, not 5"),
        ({"unit": "age", "columns": {"agee": Bounds(0, 1)}}, NotInCatalog, "no column agee; did you mean age"),
        ({"unit": "age", "columns": {"zzz": Bounds(0, 1)}}, NotInCatalog, "it has Patient_ID, age, sex, day, scan"),
        ({"unit": "age", "columns": {1: Bounds(0, 1)}}, WrongType, "a name in columns must be a text"),
        ({"unit": "age", "columns": {"scan": Categories(["a"])}}, InvalidInput, "BLOB"),
        ({"unit": "age", "columns": {"age": (0, 120)}}, WrongType, "the facts of age must be Bounds or Categories"),
        ({"unit": "age", "columns": {"age": Bounds(0, 1.5)}}, WrongType, "age is integer: its bounds are integers"),
        ({"unit": "age", "columns": {"sex": Bounds(0, 1)}}, WrongType, "sex is text and cannot have bounds"),
        ({"unit": "age", "columns": {"day": Bounds(0, 1)}}, WrongType, "day is date: its bounds are dates"),
        (
            {"unit": "age", "columns": {"age": Column("sex", Kind.TEXT)}},
            InvalidInput,
            "the Column for age is named sex",
        ),
        ({"unit": "age", "kinds": {"age": "number"}}, InvalidInput, "the kind of a column is one of"),
        ({"unit": "age", "kinds": {"ag": Kind.REAL}}, NotInCatalog, "did you mean age"),
        ({"unit": "age", "identified_by": "di"}, NotInCatalog, "no column di"),
        ({"unit": None, "public": True, "limits": Limits(5)}, InvalidInput, "public and has no units to limit"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, object], error: type[TacitError], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        table_of("visits", FOUND, **settings)  # type: ignore[arg-type]


def test_a_source_without_a_usable_column_is_refused() -> None:
    with pytest.raises(EmptyInput, match="no column of a supported type"):
        table_of("visits", FOUND[4:], unit=None, public=True)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.csv", "A.PARQUET", "a.tsv.gz", "b.db", "odd#name.duckdb", "notes.txt", "clinic/own.pq"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("data", "form", "place", "table"),
    [
        ("a.csv", "csv", "a.csv", ""),
        (Path("A.PARQUET"), "parquet", "A.PARQUET", ""),
        ("./a.tsv.gz", "csv", "a.tsv.gz", ""),
        ("*.csv", "csv", "*.csv", ""),
        ("own.pq", "parquet", "clinic/own.pq", ""),
        ("b.db#main.visits", "duckdb", "b.db", "main.visits"),
        ("odd#name.duckdb#visits", "duckdb", "odd#name.duckdb", "visits"),
    ],
)
def test_the_ending_of_a_name_says_what_a_file_holds(
    here: Path, data: str | Path, form: str, place: str, table: str
) -> None:
    assert source_of(data, folder=here / "clinic") == Source(form, str(here / place), table)


def test_a_format_and_a_table_may_be_stated(here: Path) -> None:
    assert source_of("notes.txt", folder=here, format="csv") == Source("csv", str(here / "notes.txt"))
    assert source_of("b.db", folder=here, table="visits") == Source("duckdb", str(here / "b.db"), "visits")


@pytest.mark.parametrize(
    ("data", "settings", "error", "sentence"),
    [
        ({"a": [1]}, {}, WrongType, "not a dict; write it to a file first"),
        ("", {}, EmptyInput, "a source is the path of a file"),
        ("s3://bucket/a.csv", {}, InvalidInput, "copy the rows to a file first"),
        ("notes.txt", {}, InvalidInput, "has no known suffix; state the format: csv, parquet or duckdb"),
        ("a.csv", {"format": "xlsx"}, InvalidInput, "a format is one of csv, parquet, duckdb"),
        ("a.csv", {"table": "visits"}, InvalidInput, "only a DuckDB file has tables in it"),
        ("b.db", {}, EmptyInput, "b.db may hold several tables; name one of them: b.db#visits"),
        ("b.db", {"table": "a#b"}, InvalidInput, "must not contain #"),
        ("missing.csv", {}, SourceMissing, "there is no file missing.csv here or in clinic"),
        ("missing.csvv", {}, SourceMissing, "there is no file missing.csvv here or in clinic"),
        ("*.pq", {}, SourceMissing, r"there is no file \*.pq here"),
        ("clinic", {"format": "csv"}, SourceMissing, r"is a folder; name its files, for example clinic/\*.parquet"),
    ],
)
@pytest.mark.usefixtures("here")
def test_anything_else_is_refused_with_a_sentence(
    data: object, settings: dict[str, str], error: type[TacitError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        source_of(data, folder=Path("clinic") if data != "*.pq" else ".", **settings)  # type: ignore[arg-type]
