"""The same files under two budgets: said loudly and kept, however the files are named and whenever it was."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from tacit.cli.app import run
from tacit.curator import Curator, PrivacyWarning
from tacit.curator.source_history import SourceHistory, share_rows
from tacit.curator.table_sources import parse_source
from tacit.engines import Source
from tacit.engines.spark.sources import check_source
from tacit.privacy.errors import CatalogInvalid, InvalidInput

ROWS = pd.DataFrame({"person": range(50), "age": 40})


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    """A data set whose budget is exhausted."""
    for name in ("visits.csv", "part-1.csv", "part-2.csv", "other.csv"):
        ROWS.to_csv(tmp_path / name, index=False)
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS person; CREATE TABLE u AS SELECT 1 AS person")
    with Curator(tmp_path / "clinic") as made:
        made.add_table("visits", tmp_path / "visits.csv", unit="person", dataset="spent")
        made.add_table("parts", tmp_path / "part-*.csv", unit="person", dataset="spent")
        made.add_table("inner", f"{tmp_path}/rows.duckdb#t", unit="person", dataset="spent")
        made.set_budget("spent", epsilon=0.5)
        made.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
        yield made


def disguised(folder: Path, name: str) -> str:
    if name == "hard link":
        (folder / "new.csv").hardlink_to(folder / "visits.csv")
    elif name == "symbolic link":
        (folder / "new.csv").symlink_to(folder / "visits.csv")
    elif name == "folder":
        (folder / "elsewhere").symlink_to(folder)
        return str(folder / "elsewhere" / "visits.csv")
    elif name == "moved":
        (folder / "visits.csv").rename(folder / "new.csv")
    else:
        return str(folder / name)
    return str(folder / "new.csv")


NAMES = ("visits.csv", "vis*.csv", "part-2.csv", "hard link", "symbolic link", "folder", "rows.duckdb#main.T")


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("name", [*NAMES, "moved"])
def test_files_of_an_exhausted_budget_are_known_again(
    curator: Curator, tmp_path: Path, name: str, is_removed: bool
) -> None:
    if is_removed:
        for table in ("visits", "parts", "inner"):
            curator.remove_table(table)
    place = disguised(tmp_path, name)
    expected = r"new: what was spent from the budget of spent \(epsilon 0\.5.* does not count against the budget of new"
    with pytest.warns(PrivacyWarning, match=expected) as found:
        curator.add_table("new", place, unit="person")
    assert len(found) == 1
    last = SourceHistory(curator.folder).all()[-1]
    assert (last.table, last.dataset, last.shared_with) == ("new", "new", ("spent",))


@pytest.mark.parametrize("place", ["other.csv", "rows.duckdb#u"])
def test_other_files_and_the_same_data_set_are_nothing_to_speak_of(
    curator: Curator, tmp_path: Path, place: str
) -> None:
    curator.add_table("new", f"{tmp_path}/{place}", unit="person")
    curator.add_table("again", tmp_path / "visits.csv", unit="person", dataset="spent")
    curator.add_table("visits", tmp_path / "visits.csv", unit="person", dataset="spent", replace=True)


def test_a_file_that_took_the_place_of_a_removed_one_on_the_disk_is_another(curator: Curator, tmp_path: Path) -> None:
    """File systems give the inode of a file that is gone to the next one."""
    curator.remove_table("visits")
    inode = (tmp_path / "visits.csv").stat().st_ino
    (tmp_path / "visits.csv").unlink()
    for number in range(200):
        fresh = tmp_path / f"fresh-{number}.csv"
        ROWS.head(9).to_csv(fresh, index=False)
        if fresh.stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system gives no inode again so soon")
    curator.add_table("new", fresh, unit="person")


def test_rows_that_are_private_and_public_are_said_loudly(curator: Curator, tmp_path: Path) -> None:
    with pytest.warns(PrivacyWarning, match="open is public, .* visits in the data set spent"):
        curator.add_table("open", tmp_path / "visits.csv", public=True)
    curator.add_table("free", tmp_path / "other.csv", public=True)
    curator.remove_table("free")
    with pytest.warns(PrivacyWarning, match="closed is private, .* public as free"):
        curator.add_table("closed", tmp_path / "other.csv", unit="person")


def test_two_budgets_that_nothing_was_spent_from_yet_are_said_while_both_can_be(
    curator: Curator, tmp_path: Path
) -> None:
    curator.add_table("first", tmp_path / "other.csv", unit="person")
    with pytest.warns(PrivacyWarning, match="second: what is spent from the budget of first does not count"):
        curator.add_table("second", tmp_path / "other.csv", unit="person")
    curator.remove_table("first")
    curator.remove_table("second")
    curator.add_table("third", tmp_path / "other.csv", unit="person")


def test_a_table_that_was_written_into_the_file_by_hand_is_noticed_when_its_rows_are_looked_at(
    curator: Curator, tmp_path: Path
) -> None:
    text = curator.catalog.table_text("visits").replace("tables.visits", "tables.new").replace('"spent"', '"new"')
    path = curator.folder / "catalog.toml"
    path.write_text(f"{path.read_text()}\n{text}")
    with pytest.warns(PrivacyWarning, match="new: what was spent from the budget of spent"):
        curator.refresh("new")
    ROWS.head(9).to_csv(tmp_path / "visits.csv", index=False)
    assert curator.refresh("new") == ["new"]


def test_the_command_line_says_it_and_remembers_what_it_removed(
    curator: Curator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ["--folder", str(curator.folder)]
    assert run(["table", "remove", "visits", "--yes", *folder]) == 0
    assert run(["table", "add", "new", f"{tmp_path}/visits.csv", "--unit", "person", *folder]) == 0
    assert "tacit: warning: new: what was spent from the budget of spent" in capsys.readouterr().err


def test_a_listener_gets_the_sentences_instead_of_warnings(curator: Curator, tmp_path: Path) -> None:
    heard: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curator.add_table("new", tmp_path / "visits.csv", unit="person", warn=heard.append)
    assert len(heard) == 1


def test_a_history_that_is_not_ours_is_refused_by_name(curator: Curator, tmp_path: Path) -> None:
    (curator.folder / "sources.json").write_text('[{"table": 1}]')
    with pytest.raises(CatalogInvalid, match=r"sources\.json"):
        curator.add_table("new", tmp_path / "other.csv", unit="person")
    assert "new" not in curator.catalog.tables


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("postgresql://ana@db.clinic/care#visits", "postgresql://bob@DB.clinic:5432/care#public.visits", True),
        ("postgresql://ana@db.clinic/care#visits", "postgresql://ana@db.clinic/care#labs", False),
        ("postgresql://ana@db.clinic/care#visits", "postgresql://ana@db.clinic/other#visits", False),
        ("env:CLINIC#public.visits", "env:CLINIC#visits", True),
        ("sc://spark.clinic:15002#care.visits", "sc://spark.clinic:15002#Care.Visits", True),
        ("spark:local#parquet:{here}/visits.csv", "visits.csv", True),
        ("spark:local#parquet:{here}/visits.csv", "spark:local#care.visits", False),
    ],
)
def test_tables_of_servers_are_compared_by_where_they_are(
    one: str, other: str, is_shared: bool, tmp_path: Path
) -> None:
    (tmp_path / "visits.csv").write_text("a\n1\n")
    first, second = (parse_source(text.format(here=tmp_path), None, tmp_path) for text in (one, other))
    assert share_rows(first, second) == share_rows(second, first) == is_shared


SPELLINGS = (
    *("{}/people.parquet", "file:{}/people.parquet", "file://{}/people.parquet", "file:////{}/people.parquet"),
    *("FILE:{}/people.parquet", "File://{}/people.parquet", "file://localhost{}/people.parquet"),
    *("{}//./people.parquet", "{}/people.parquet/", "{}/people.parq?et", "{}/p*", "{}/[a-q]eople.parquet", "{}"),
    *("{}/link/../people.parquet", "{}/odd/../people.parquet", "{}/peopl[e].parquet"),
)


@pytest.mark.parametrize("written", SPELLINGS)
def test_a_file_of_spark_is_known_under_every_spelling_of_its_path(written: str, tmp_path: Path) -> None:
    """Spark takes .. off before it follows links, and reads a glob also where a file has its very name."""
    folder, elsewhere = tmp_path / "rows", tmp_path / "elsewhere"
    for one in (folder / "odd", elsewhere / "deep"):
        one.mkdir(parents=True)
    for one in (folder / "people.parquet", folder / "peopl[e].parquet", elsewhere / "people.parquet"):
        one.write_bytes(b"x")
    (folder / "link").symlink_to(elsewhere / "deep")
    hidden = Source("spark", "local", f"parquet:{written.format(folder)}")
    plain = parse_source(str(folder / "people.parquet"), None, tmp_path)
    assert share_rows(hidden, plain)
    assert share_rows(plain, hidden)


def test_a_percent_sign_in_a_path_of_spark_stands_for_itself(tmp_path: Path) -> None:
    for name in ("a b.parquet", "a%20b.parquet"):
        (tmp_path / name).write_bytes(name.encode())
    hidden = Source("spark", "local", f"parquet:file:{tmp_path}/a%20b.parquet")
    for name, is_shared in (("a b.parquet", False), ("a%20b.parquet", True)):
        assert share_rows(hidden, parse_source(str(tmp_path / name), None, tmp_path)) == is_shared


@pytest.mark.parametrize(
    "written",
    [
        *("{}/{{people,others}}.parquet", "{}/[^a]eople.parquet", "{}/peopl\\e.parquet", "people.parquet"),
        *("file:people.parquet", "file://host{}/people.parquet", "/{}/people.parquet", "jar:{}/people.parquet"),
    ],
)
def test_a_path_of_spark_that_cannot_be_compared_is_refused_and_not_quoted(written: str, tmp_path: Path) -> None:
    plain = parse_source(str(tmp_path / "people.parquet"), None, tmp_path)
    source = Source("spark", "local", f"parquet:{written.format(tmp_path)}")
    with pytest.raises(InvalidInput) as caught:
        share_rows(plain, source)
    assert "people" not in str(caught.value)
    with pytest.raises(InvalidInput):
        check_source(source)


def test_files_of_a_store_are_compared_by_their_address(tmp_path: Path) -> None:
    one = Source("spark", "local", "parquet:s3a://bucket/rows//a.parquet")
    assert share_rows(one, Source("spark", "sc://host", "parquet:s3://bucket/rows/a.parquet"))
    assert not share_rows(one, Source("spark", "local", "parquet:s3a://bucket/rows/b.parquet"))
    assert not share_rows(one, Source("spark", "local", "parquet:/bucket/rows/a.parquet"))


def test_a_folder_of_files_is_known_by_the_files_in_it(tmp_path: Path) -> None:
    for name in ("part-0.parquet", ".hidden.parquet"):
        path = tmp_path / "whole" / "month=1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" + name.encode())
    folder = tmp_path / "clinic"
    for place in (f"spark:local#parquet:{tmp_path}/whole", f"spark:local#parquet:{tmp_path}/whole/*"):
        whole = parse_source(place, None, folder)
        for name in ("part-0.parquet", ".hidden.parquet"):
            part = parse_source(str(tmp_path / "whole" / "month=1" / name), "parquet", folder)
            assert share_rows(whole, part)
            assert share_rows(part, whole)


@pytest.mark.parametrize("names", [("mine",), ()])
def test_a_link_that_leads_to_the_rows_of_another_data_set_is_refused_at_a_refresh(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    for name in ("mine.csv", "secret.csv"):
        ROWS.to_csv(tmp_path / name, index=False)
    with Curator(tmp_path / "clinic") as curator:
        curator.add_table("mine", tmp_path / "mine.csv", unit="person", dataset="visits")
        curator.add_table("hidden", tmp_path / "secret.csv", unit="person", dataset="secret")
        curator.refresh()
        (tmp_path / "mine.csv").unlink()
        (tmp_path / "mine.csv").symlink_to(tmp_path / "secret.csv")
        with pytest.raises(InvalidInput, match="register it again to confirm"):
            curator.refresh(*names)
        with pytest.warns(PrivacyWarning):
            curator.add_table("mine", tmp_path / "mine.csv", unit="person", dataset="visits", replace=True)
        curator.refresh()
