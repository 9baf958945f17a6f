"""Files that are no catalog: each is refused with the line, and a sentence that says what to write."""

from pathlib import Path

import pytest

from tacit.curator.catalog import FILE_NAME, Catalog
from tacit.curator.catalog_reader import line_of, sections
from tacit.curator.locked_file import FILE_BYTES_MAX
from tacit.privacy.errors import CatalogInvalid, StorageUnavailable

START = '[tables.visits]\nsource = "visits.parquet"\nunit = "id"\n'
COLUMNS = '[tables.visits.columns]\nid = { kind = "integer" }\n'
GOOD = START + COLUMNS


def refusal(folder: Path, text: str | bytes) -> str:
    (folder / FILE_NAME).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CatalogInvalid) as caught:
        Catalog.open(folder)
    message = caught.value.message
    assert message.startswith(str(folder / FILE_NAME))
    assert "\n" not in message
    return message.removeprefix(str(folder / FILE_NAME))


def test_what_the_bad_ones_start_from_is_good(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(GOOD)
    assert list(Catalog.open(tmp_path).tables) == ["visits"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tables.visits", ": this is not valid TOML"),
        (
            "[tables.visits]\nunit = patient_id\n",
            ", line 2: this is not valid TOML: invalid value; write texts in quot",
        ),
        ("[tables.visits]\nmy column = 1\n", ", line 2: this is not valid TOML"),
        ("[tables.visits]\nunit = 1\nunit = 2\n", ", line 3: this is not valid TOML: cannot overwrite a value"),
        ("a = " + "[" * 100_000, ": this cannot be read: a value is too large, or brackets"),
        ("a = " + "9" * 5000, ": this cannot be read: a value is too large"),
        ("table = 1\n", ", line 1: unknown key 'table'; did you mean tables?"),
        ("tables = 1\n", ", line 1: tables must be a table; write [tables] above its keys"),
        ("[tables]\nvisits = 1\n", ", line 2: visits must be a table; write [tables.visits] above"),
        ('[tables."  "]\nx = 1\n', ", line 1: the name of a table must not begin or end with a space"),
        ('[tables.""]\nx = 1\n', ", line 1: the name of a table must not be empty"),
        (GOOD + GOOD.replace("visits", "Visits"), ", line 6: duplicate table name Visits (case is ignored)"),
    ],
)
def test_a_file_that_is_no_catalog_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    assert refusal(tmp_path, text).startswith(sentence)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('untt = "id"', ", line 4: unknown key 'untt'; did you mean unit?"),
        ("zzz = 1", ", line 4: unknown key 'zzz'; the keys are source, format, csv, unit, public"),
        (
            "public = true",
            ', line 4: write unit = "COLUMN" for the column whose values visits protects, or public = true',
        ),
        ("public = 1", ", line 4: public must be true or false"),
        ("rows_per_unit = 0", ", line 1: rows_per_unit must be at least 1, and is 0"),
        ("rows_per_unit = 10000000", ", line 1: rows_per_unit is at most 1,000,000"),
        ("rows_per_unit = true", ", line 4: rows_per_unit must be an integer"),
        ("rows_per_unit = 2.5", ", line 4: rows_per_unit must be an integer"),
        ("dataset = 1", ", line 4: dataset must be a text in quotation marks"),
        ('dataset = " x"', ", line 4: the name of a dataset must not begin or end with a space"),
        ('identified_by = "id"', ', line 4: identified_by must be a list: names, such as ["id"]'),
        ("identified_by = [1]", ", line 4: identified_by is a list of column names"),
        ('identified_by = ["ix"]', ", line 1: visits has no column ix; it has id"),
        ('format = "xlsx"', ", line 4: a format is one of csv, parquet, duckdb, postgres, spark, not 'xlsx'"),
        ("format = 1", ", line 4: format must be a text in quotation marks"),
    ],
)
def test_a_statement_about_a_table_that_means_nothing_is_refused(tmp_path: Path, line: str, sentence: str) -> None:
    assert refusal(tmp_path, f"{START}{line}\n{COLUMNS}").startswith(sentence)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('unit = "id"', "", ', line 1: write unit = "COLUMN" for the column whose values visits protects'),
        ('unit = "id"', "public = false", ', line 1: write unit = "COLUMN" for the column whose values visits'),
        ('unit = "id"', "public = true\nrows_per_unit = 1", ", line 4: visits is public and has no units to limit"),
        ('unit = "id"', 'unit = ""', ", line 3: the column that identifies whom"),
        ('unit = "id"', "unit = 1", ', line 3: unit is a column, such as "patient_id"'),
        ('unit = "id"', 'unit = "ix"', ", line 1: visits has no column ix"),
        ('unit = "id"', "unit = { colum = 1 }", ", line 3: unknown key 'colum'; did you mean column?"),
        ('unit = "id"', 'unit = { column = "p", through = 1 }', ", line 3: through must be a list: the foreign keys"),
        ('unit = "id"', 'unit = { column = "p", through = [1] }', ", line 3: a step of through is { column ="),
        ('unit = "id"', 'unit = { column = "p", through = [{ tabel = "v" }] }', ", line 3: unknown key 'tabel'"),
        (
            'unit = "id"',
            'unit = { column = "p", through = [{ table = "v" }] }',
            ", line 3: the column of a foreign key must not",
        ),
        (
            'unit = "id"',
            'unit = { column = "p", through = [{ column = "id", table = "v", target = "x" }] }',
            ", line 3: visits has its unit in v (by a foreign key), which is not in the catalog; add that table first",
        ),
        ('source = "visits.parquet"', "", ', line 1: visits has no source; write source = "FILE"'),
        ('source = "visits.parquet"', "source = 1", ", line 2: source must be a text in quotation marks"),
        ('source = "visits.parquet"', 'source = "visits.xlsx"', ", line 2: the name visits.xlsx has no known suffix"),
        ('source = "visits.parquet"', 'source = "a.duckdb"', ", line 2: a.duckdb may hold several tables; name one"),
        (COLUMNS, "", ", line 1: visits has no columns; write them below [tables.visits.columns]"),
        (COLUMNS, "columns = 1\n", ", line 4: visits has no columns"),
        ('id = { kind = "integer" }', "", ", line 4: visits has no columns"),
        ('id = { kind = "integer" }', 'id = "integer"', ", line 5: id must be a table"),
    ],
)
def test_what_is_missing_or_of_another_form_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(tmp_path, GOOD.replace(old, new, 1)).startswith(sentence)


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("", "the kind of a column is one of boolean, integer, real, text, date, time: x = {"),
        ('kind = "int"', "the kind of a column is one of"),
        ("kind = [1]", "the kind of a column is one of"),
        ('kind = "text", boundz = 1', "unknown key 'boundz'; did you mean bounds?"),
        ('kind = "text", nullable = 0', "nullable must be true or false"),
        ('kind = "text", bounds = ["a", "b"]', "a bound is a number, a date or a time, not the text 'a'"),
        ('kind = "text", bounds = [0, 1]', "x is text and cannot have bounds; state its categories, or give it"),
        ('kind = "boolean", bounds = [0, 1]', "x is boolean and cannot have bounds"),
        ('kind = "integer", bounds = 120', "bounds are two integers, such as 0 and 120, as [lower, upper]"),
        ('kind = "integer", bounds = [0]', "bounds are two integers"),
        ('kind = "integer", bounds = [120, 0]', "the lower bound must not lie above the upper bound, and 120 > 0"),
        (
            'kind = "integer", bounds = [0.5, 2]',
            "x is integer: its bounds are integers, such as 0 and",
        ),
        ('kind = "integer", bounds = [0, 2020-01-01]', "both bounds must be of one kind"),
        ('kind = "integer", bounds = [2020-01-01, 2020-01-02]', "x is integer: its bounds are integers"),
        ('kind = "integer", bounds = [0, 9223372036854775808]', "x holds integers of 64 bits"),
        ('kind = "integer", bounds = [true, true]', "bounds of x are two numbers, dates or times"),
        ('kind = "real", bounds = [nan, 1]', "bounds must be finite"),
        ('kind = "real", bounds = [0, inf]', "bounds must be finite"),
        ('kind = "real", bounds = ["1/0", 1]', "a bound is a number"),
        ('kind = "real", bounds = ["a", 1]', "a bound is a number"),
        ('kind = "date", bounds = [0, 1]', "x is date: its bounds are dates, such as 2020-01-01 and 2024-12-31, not 0"),
        ('kind = "date", bounds = [2020-01-01T00:00:00, 2020-01-01T00:00:00]', "x is date: its bounds are dates"),
        ('kind = "time", bounds = [2020-01-01T00:00:00, 2020-01-01T00:00:00Z]', "both bounds must be of one kind"),
        ('kind = "time", bounds = [12:00:00, 13:00:00]', "bounds of x are two numbers, dates or times"),
        ('kind = "text", categories = "F"', 'categories must be a list: texts, such as "F" and "M", in [ ]'),
        ('kind = "text", categories = []', "categories must list at least one value"),
        ('kind = "text", categories = ["F", "F"]', "duplicate category 'F'"),
        ('kind = "text", categories = [1]', 'x is text: its categories are texts, such as "F" and "M", not 1; or give'),
        ('kind = "integer", categories = ["1"]', "x is integer: its categories are integers"),
        ('kind = "integer", categories = [true]', "x is integer: its categories are integers"),
        (
            'kind = "integer", categories = [0.5]',
            "categories of x are texts, integers, dates or {",
        ),
        ('kind = "boolean", categories = [1]', "x is boolean: its categories are true or false"),
        ('kind = "date", categories = [2020-01-01T00:00:00]', "x is date: its categories are dates"),
        ('kind = "text", categories = [{ missing = 1.5 }]', "categories of x are texts"),
        ('kind = "text", bounds = [0, 1], categories = ["a"]', "x has bounds or categories, not both"),
    ],
)
def test_a_statement_about_a_column_that_means_nothing_is_refused(tmp_path: Path, column: str, sentence: str) -> None:
    message = refusal(tmp_path, f"# a comment\n{GOOD}\nx = {{ {column} }}\n")
    assert message.startswith(f", line 8: {sentence}")


def test_two_columns_that_differ_in_case_are_refused(tmp_path: Path) -> None:
    assert "two columns called ID" in refusal(tmp_path, GOOD + 'ID = { kind = "text" }\n')


def test_a_column_without_a_name_is_refused(tmp_path: Path) -> None:
    assert "the name of a column must not be empty" in refusal(tmp_path, GOOD + '"" = { kind = "text" }\n')


def test_a_file_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, GOOD.encode() + b"# caf\xe9\n") == ", line 6: save the file as UTF-8"


def test_a_file_beyond_all_measure_is_refused(tmp_path: Path) -> None:
    with (tmp_path / FILE_NAME).open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    with pytest.raises(CatalogInvalid, match="larger than"):
        Catalog.open(tmp_path)


def test_something_else_by_the_name_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StorageUnavailable, match="cannot be used"):
        Catalog.open(tmp_path)


LAID_OUT = """\
# a comment
top = 1

# about a
[ a . "b c" ]  # here
x = [
  1,
]
"y.z" = 2

# about a.b c.d
['a'."b c".d]
k.l = 3
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("a",), 5),
        (("a", "b c"), 5),
        (("a", "b c", "x"), 6),
        (("a", "b c", "y.z"), 9),
        (("a", "b c", "d"), 12),
        (("a", "b c", "d", "k", "l"), 13),
        (("a", "b c", "d", "k", "other"), 12),
        (("a", "b c", "not there"), 5),
        (("nowhere",), None),
    ],
)
def test_a_statement_is_found_by_its_line(path: tuple[str, ...], line: int | None) -> None:
    assert line_of(LAID_OUT, path) == line


def test_sections_with_their_comments_make_up_the_file() -> None:
    parts = sections(LAID_OUT)
    assert "".join(part.text for part in parts) == LAID_OUT
    assert [(part.path, part.text.split("\n")[0]) for part in parts] == [
        ((), "# a comment"),
        (("a", "b c"), "# about a"),
        (("a", "b c", "d"), "# about a.b c.d"),
    ]
