"""The catalog: what was stated is there again, whatever else the file holds stays, and bad changes change nothing."""

import os
import stat
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.curator.catalog import FILE_NAME, Catalog
from tacit.engines.protocol import Source
from tacit.privacy import Bounds, Categories, ForeignKey, Unit
from tacit.privacy.errors import CatalogInvalid, InvalidInput, NameTaken, NotInCatalog, StorageReadOnly
from tacit.privacy.tables import Column, Kind, Limits, Table

VISITS = Table(
    "visits",
    (
        Column("id", Kind.INTEGER, nullable=False),
        Column("patient_id", Kind.INTEGER, nullable=False),
        Column("age", Kind.INTEGER, Bounds(0, 120)),
        Column("weight", Kind.REAL, Bounds(0.5, 250)),
        Column("share", Kind.REAL, Bounds(Fraction(1, 3), Fraction(2, 3))),
        Column("sex", Kind.TEXT, Categories(["F", "M", None])),
        Column("grade", Kind.INTEGER, Categories([3, 1, 2])),
        Column("smokes", Kind.BOOLEAN, Categories([True, False])),
        Column("day", Kind.DATE, Bounds(date(2020, 1, 1), date(2024, 12, 31))),
        Column("seen", Kind.TIME, Bounds(datetime(2020, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 5))),
        Column("feast", Kind.DATE, Categories([date(2024, 12, 25)])),
        Column("note", Kind.TEXT),
    ),
    Unit("patient_id"),
    Limits(rows_per_unit=20, groups_per_unit=5, rows_per_group=4),
    ("id",),
    "clinic",
)
LINES = Table(
    "lines",
    (Column("visit_id", Kind.INTEGER), Column("price", Kind.REAL)),
    Unit("patient_id", (ForeignKey("visit_id", "visits", "id"),)),
    dataset="clinic",
)
REGIONS = Table("regions", (Column("code", Kind.TEXT),))


def rows(folder: Path, name: str = "visits") -> Source:
    return Source("parquet", str(folder / f"{name}.parquet"))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog.open(tmp_path)
    made.add(VISITS, rows(tmp_path))
    return made


def edit(catalog: Catalog, old: str, new: str) -> None:
    """Change the statements, below the comment at the top, as a person would."""
    head, statements = catalog.path.read_text().split("\n\n", 1)
    assert old in statements
    catalog.path.write_text(f"{head}\n\n{statements.replace(old, new, 1)}")


def test_every_statement_is_there_again(tmp_path: Path, catalog: Catalog) -> None:
    catalog.add(LINES, rows(tmp_path, "lines"))
    catalog.add(REGIONS, Source("duckdb", "/data/map.duckdb", "main.regions"))
    again = Catalog.open(tmp_path)
    assert list(again.tables.values()) == [VISITS, LINES, REGIONS] == list(catalog.tables.values())
    assert again.source("Visits") == rows(tmp_path)
    assert again.source("regions") == Source("duckdb", "/data/map.duckdb", "main.regions")
    assert again.schema.table("VISITS") == VISITS


def test_the_file_reads_as_it_was_meant(catalog: Catalog) -> None:
    statements = catalog.path.read_text().split("\n\n", 1)[1]
    assert statements == (
        "[tables.visits]\n"
        'source = "visits.parquet"\n'
        'format = "parquet"\n'
        'unit = "patient_id"\n'
        'dataset = "clinic"\n'
        "rows_per_unit = 20\n"
        "groups_per_unit = 5\n"
        "rows_per_group = 4\n"
        'identified_by = ["id"]\n'
        "\n"
        "[tables.visits.columns]\n"
        'id         = { kind = "integer", nullable = false }\n'
        'patient_id = { kind = "integer", nullable = false }\n'
        'age        = { kind = "integer", bounds = [0, 120] }\n'
        'weight     = { kind = "real", bounds = [0.5, 250] }\n'
        'share      = { kind = "real", bounds = ["1/3", "2/3"] }\n'
        'sex        = { kind = "text", categories = ["F", "M", { missing = true }] }\n'
        'grade      = { kind = "integer", categories = [3, 1, 2] }\n'
        'smokes     = { kind = "boolean", categories = [true, false] }\n'
        'day        = { kind = "date", bounds = [2020-01-01, 2024-12-31] }\n'
        'seen       = { kind = "time", bounds = [2020-01-01T00:00:00, 2024-12-31T23:59:59.000005] }\n'
        'feast      = { kind = "date", categories = [2024-12-25] }\n'
        'note       = { kind = "text" }\n'
    )


def test_the_example_in_the_comment_is_a_catalog(tmp_path: Path) -> None:
    lines = Catalog.create(tmp_path).text.splitlines()
    example = [line.removeprefix("#   ") for line in lines if line.startswith("#   ")]
    (tmp_path / FILE_NAME).write_text("\n".join(line for line in example if "through" not in line))
    visits = Catalog.open(tmp_path).schema.table("visits")
    assert (visits.dataset, visits.unit, visits.limits) == ("clinic", Unit("patient_id"), Limits(20))
    assert visits.column("sex").facts == Categories(["F", "M"])


def test_comments_and_the_order_of_lines_survive_a_change(tmp_path: Path, catalog: Catalog) -> None:
    catalog.add(REGIONS, rows(tmp_path, "regions"))
    edit(catalog, 'unit = "patient_id"', '# the register of 2019\nunit = "patient_id"   # never reused')
    edit(catalog, "age        =", "# in years\nage        =")
    edit(catalog, "bounds = [0, 120] }", "bounds = [0, 120] }  # of anybody")
    edit(catalog, "[tables.regions]", "# open data of the state\n[tables.regions]")
    before = catalog.path.read_text()
    columns = tuple(replace(one, facts=Bounds(0, 130)) if one.name == "age" else one for one in VISITS.columns)
    changed = replace(VISITS, columns=(*columns, Column("new", Kind.TEXT)), limits=Limits(rows_per_unit=9))
    catalog.add(changed, rows(tmp_path), replace=True)
    expected = (
        before.replace("bounds = [0, 120] }  #", "bounds = [0, 130] }  #")
        .replace("\nrows_per_unit = 20\ngroups_per_unit = 5\nrows_per_group = 4", "\nrows_per_unit = 9")
        .replace('note       = { kind = "text" }\n', 'note       = { kind = "text" }\nnew = { kind = "text" }\n')
    )
    assert catalog.path.read_text() == expected
    assert catalog.schema.table("visits") == changed


def test_a_removed_table_takes_its_comment_along_and_no_other(tmp_path: Path, catalog: Catalog) -> None:
    catalog.add(REGIONS, rows(tmp_path, "regions"))
    catalog.add(replace(REGIONS, name="towns"), rows(tmp_path, "towns"))
    edit(catalog, "[tables.regions]", "# open data\n# of the state\n[tables.regions]")
    edit(catalog, "[tables.towns]", "# of the census\n[tables.towns]")
    catalog.remove("Regions")
    text = catalog.path.read_text()
    assert "open data" not in text
    assert "# of the census\n[tables.towns]" in text
    assert list(Catalog.open(tmp_path).tables) == ["visits", "towns"]


@pytest.mark.parametrize(
    "text",
    [
        'tables = { a = { source = "a.csv", public = true, columns = { x = { kind = "text" } } } }\n',
        'tables.a.source = "a.csv"\ntables.a.public = true\ntables.a.columns.x.kind = "text"\n',
        '[tables]\na = { source = "a.csv", public = true, columns = { x = { kind = "text" } } }\n',
        '[tables.a]\nsource = "a.csv"\npublic = true\n[tables.a.columns.x]\nkind = "text"\n',
        '[tables.a.columns]\nx = { kind = "text" }\n[tables.a]\nsource = "a.csv"\npublic = true\n',
        '[tables.a]\r\nsource = "a.csv"\r\npublic = true\r\n[tables.a.columns]\r\nx = { kind = "text" }\r\n',
        '\ufeff[tables.a]\nsource = "a.csv"\npublic = true\n[tables.a.columns]\nx = { kind = "text" }',
    ],
)
def test_other_ways_to_write_a_table_are_read_and_changed_or_left_to_a_person(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(text.encode())
    catalog = Catalog.open(tmp_path)
    first = Table("a", (Column("x", Kind.TEXT),))
    assert list(catalog.tables.values()) == [first]
    changed = replace(first, columns=(Column("x", Kind.INTEGER),))
    for change, wanted in (
        (lambda: catalog.add(REGIONS, rows(tmp_path)), {"a": first, "regions": REGIONS}),
        (lambda: catalog.add(changed, rows(tmp_path, "a"), replace=True), {"a": changed}),
        (lambda: catalog.remove("a"), {}),
    ):
        (tmp_path / FILE_NAME).write_bytes(text.encode())
        catalog.reload()
        refusal = ""
        try:
            change()
        except CatalogInvalid as error:
            refusal = error.message
        if refusal:
            assert "edit the file itself" in refusal
            assert (tmp_path / FILE_NAME).read_bytes() == text.encode()
        else:
            assert Catalog.open(tmp_path).tables == wanted


def test_a_table_is_replaced_only_if_that_is_asked_for(tmp_path: Path, catalog: Catalog) -> None:
    before = catalog.path.read_bytes()
    with pytest.raises(NameTaken, match="visits"):
        catalog.add(replace(VISITS, name="VISITS"), rows(tmp_path))
    assert catalog.path.read_bytes() == before
    catalog.add(replace(VISITS, name="VISITS"), rows(tmp_path), replace=True)
    assert [table.name for table in Catalog.open(tmp_path).tables.values()] == ["VISITS"]


def test_the_same_statement_again_changes_no_byte(tmp_path: Path, catalog: Catalog) -> None:
    before = catalog.path.read_bytes()
    catalog.add(VISITS, rows(tmp_path), replace=True)
    assert catalog.path.read_bytes() == before


def test_facts_are_kept_in_the_form_of_their_kind(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path)
    columns = (
        Column("age", Kind.INTEGER, Bounds(0.0, 120.0)),
        Column("seen", Kind.TIME, Bounds("2024-01-01T02:00:00+02:00", "2024-01-02T00:00:00Z")),
        Column("left", Kind.TIME, Bounds("2024-01-01", "2024-12-31")),
    )
    catalog.add(Table("visits", columns), rows(tmp_path))
    age, seen, left = Catalog.open(tmp_path).schema.table("visits").columns
    assert "bounds = [0, 120]" in catalog.text
    assert (age.facts, seen.facts) == (Bounds(0, 120), Bounds(datetime(2024, 1, 1), datetime(2024, 1, 2)))
    assert left.facts == Bounds(datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 999999))


def test_a_way_to_the_unit_needs_its_tables(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "other").mkdir()
    other, without_id = Catalog.open(tmp_path / "other"), replace(VISITS, columns=VISITS.columns[1:], identified_by=())
    with pytest.raises(CatalogInvalid, match=r"in visits \(by a foreign key\), which is not in the catalog"):
        other.add(LINES, rows(tmp_path))
    catalog.add(LINES, rows(tmp_path, "lines"))
    with pytest.raises(InvalidInput, match="remove lines first"):
        catalog.remove("visits")
    with pytest.raises(NotInCatalog, match="no column id"):
        catalog.add(without_id, rows(tmp_path), replace=True)
    assert list(catalog.tables.values()) == [VISITS, LINES]


def test_tables_can_be_had_after_those_that_they_lead_through(tmp_path: Path, catalog: Catalog) -> None:
    catalog.add(LINES, rows(tmp_path, "lines"))
    edit(catalog, "[tables.visits]", "[tables.zzz]")
    edit(catalog, "[tables.visits.columns]", "[tables.zzz.columns]")
    edit(catalog, 'table = "visits"', 'table = "zzz"')
    statements = catalog.path.read_text().split("\n\n[tables.")
    catalog.path.write_text("\n\n[tables.".join([statements[0], *statements[3:], *statements[1:3]]) + "\n")
    assert catalog.reload()
    assert [table.name for table in catalog.tables.values()] == ["lines", "zzz"]
    assert [table.name for table in catalog.parents_first()] == ["zzz", "lines"]


def test_a_circle_of_ways_is_refused(tmp_path: Path, catalog: Catalog) -> None:
    catalog.add(LINES, rows(tmp_path, "lines"))
    circle = Unit("price", (ForeignKey("id", "lines", "visit_id"),))
    with pytest.raises(CatalogInvalid, match="cyclic foreign keys"):
        catalog.add(replace(VISITS, unit=circle), rows(tmp_path), replace=True)


def test_a_public_table_has_no_limits(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="public"):
        Catalog.open(tmp_path).add(replace(REGIONS, limits=Limits(3)), rows(tmp_path))


@pytest.mark.parametrize("name", ["a\nb", " a", "x" * 200, "\u202eabc"])
def test_a_name_that_would_deceive_the_reader_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="name of a table"):
        Catalog.open(tmp_path).add(replace(REGIONS, name=name, dataset="x"), rows(tmp_path))
    assert not (tmp_path / FILE_NAME).exists()


def test_a_change_of_the_file_is_noticed_and_an_invalid_one_changes_nothing_here(catalog: Catalog) -> None:
    assert not catalog.reload()
    edit(catalog, "bounds = [0, 120]", "bounds = [0, 110]")
    assert catalog.reload()
    assert catalog.schema.table("visits").column("age").facts == Bounds(0, 110)
    edit(catalog, "bounds = [0, 110]", "bound = [0, 110]")
    with pytest.raises(CatalogInvalid, match="did you mean bounds"):
        catalog.reload()
    assert catalog.schema.table("visits").column("age").facts == Bounds(0, 110)
    catalog.path.unlink()
    assert catalog.reload()
    assert catalog.tables == {}


def test_a_new_catalog_is_never_written_over_another(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(NameTaken, match="already"):
        Catalog.create(tmp_path)
    assert list(catalog.tables) == ["visits"]


def test_a_text_takes_the_files_place_only_if_it_is_valid_and_nobody_came_between(catalog: Catalog) -> None:
    since = catalog.text
    with pytest.raises(CatalogInvalid):
        Catalog.rewrite(catalog.folder, "tables = 1", since)
    catalog.path.write_text("broken")
    Catalog.rewrite(catalog.folder, since.replace("bounds = [0, 120] }\n", "bounds = [0, 99] }\n"), "broken")
    assert catalog.reload()
    assert catalog.schema.table("visits").column("age").facts == Bounds(0, 99)
    with pytest.raises(NameTaken, match="changed meanwhile"):
        Catalog.rewrite(catalog.folder, since, since)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_permissions_are_kept(tmp_path: Path, catalog: Catalog, mode: int) -> None:
    catalog.path.chmod(mode)
    catalog.add(REGIONS, rows(tmp_path))
    assert stat.S_IMODE(catalog.path.stat().st_mode) == mode


def test_a_link_to_the_file_stays_a_link(tmp_path: Path, catalog: Catalog) -> None:
    elsewhere = tmp_path / "kept" / "clinic.toml"
    elsewhere.parent.mkdir()
    catalog.path.rename(elsewhere)
    catalog.path.symlink_to(elsewhere)
    catalog.add(REGIONS, rows(tmp_path))
    assert catalog.path.is_symlink()
    assert "regions" in elsewhere.read_text()


def test_nothing_but_the_file_and_its_lock_is_left_in_the_folder(tmp_path: Path, catalog: Catalog) -> None:
    catalog.remove("visits")
    assert sorted(os.listdir(tmp_path)) == [".catalog.lock", "catalog.toml"]


def test_a_folder_without_a_catalog_has_no_tables_and_stays_as_it_is(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path)
    assert (catalog.tables, catalog.schema.tables) == ({}, {})
    with pytest.raises(NotInCatalog, match="there is none yet"):
        catalog.source("visits")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageReadOnly, match="permissions"):
        Catalog.open(tmp_path).add(REGIONS, rows(tmp_path))


def test_times_with_a_zone_are_kept_in_utc(tmp_path: Path) -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    catalog = Catalog.open(tmp_path)
    catalog.add(Table("visits", (Column("seen", Kind.TIME, Categories([moment])),)), rows(tmp_path))
    assert catalog.schema.table("visits").column("seen").facts == Categories([moment.replace(tzinfo=None)])
