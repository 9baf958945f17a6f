"""Which rows a table of the server may be made of: nobody reads by a table of hers what she may not read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tacit
from tests.support.spark_session import PLACE, spark_engine
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

ROWS = "person,score\n1,2\n2,3\n"


@contextmanager
def opened(folder: Path) -> Iterator[Clinic]:
    """A clinic beside folders of rows, of which one is meant for it, started from another one."""
    for name in ("home", "elsewhere", "meant", "meant/deep", "clinic", "clinic/inner"):
        (folder / name).mkdir(parents=True)
        (folder / name / "rows.csv").write_text(ROWS)
    (folder / "clinic" / "secret.csv").write_text(ROWS)
    (folder / "clinic" / "link.csv").symlink_to(folder / "elsewhere" / "rows.csv")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(folder / "home"))
        patched.chdir(folder / "elsewhere")
        made = clinic.make(folder / "clinic")
        settings = made.settings.model_copy(update={"sources": (folder / "meant",)})
        object.__setattr__(made.app.state.server, "settings", settings)
        made.curator.add_table("hidden", folder / "clinic" / "secret.csv", unit="person", dataset="secret")
        with made.client:
            yield made
        made.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Clinic]:
    with opened(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic for requests that are refused."""
    with opened(tmp_path_factory.mktemp("sources")) as made:
        yield made


def refusals(place: Clinic) -> int:
    """Return how many changes of the catalog were refused on record; equal ones within a minute are counted in one."""
    return sum(one.count for one in place.access.audit.records() if (one.action, one.code) == ("catalog.write", "T400"))


def add(place: Clinic, who: str, source: str, **more: Any) -> int:
    body = {"name": "new", "source": source, "unit": "person", "dataset": "visits", "replace": True, **more}
    return place.call(who, "POST", "/v1/tables", json=body).status_code


@pytest.mark.parametrize(
    "source", ["rows.csv", "{tmp}/clinic/rows.csv", "{tmp}/meant/rows.csv", "{tmp}/meant/deep/rows.csv"]
)
def test_files_that_are_meant_for_it_are_registered(source: str, place: Clinic, tmp_path: Path) -> None:
    assert add(place, "curator.visits", source.format(tmp=tmp_path)) == 201


@pytest.mark.parametrize(
    "source",
    [
        "~/rows.csv",
        "{tmp}/elsewhere/rows.csv",
        "../elsewhere/rows.csv",
        "link.csv",
        "inner/rows.csv",
        "*.csv",
        "secret.cs?",
        "ledger.sqlite",
        "server.sqlite",
        "salt",
        "rows.csv#x",
        "clinic.duckdb",
        "postgresql://localhost/x#public.t",
        "env:SECRET#public.t",
        "secret.csv",
    ],
)
def test_everything_else_is_refused_on_record_and_registers_nothing(source: str, unchanged: Clinic) -> None:
    before = refusals(unchanged)
    status = add(unchanged, "curator.visits", source.format(tmp=unchanged.folder.parent))
    assert status in (400, 403)
    assert "new" not in unchanged.curator.catalog.tables
    assert status == 400 or refusals(unchanged) == before + 1


def test_a_format_does_not_make_rows_of_what_is_none(place: Clinic) -> None:
    for name in ("server.sqlite", "ledger.sqlite", "catalog.toml"):
        assert add(place, "curator.visits", name, format="csv") in (400, 403)


def test_rows_in_the_folder_and_not_where_the_server_was_started(place: Clinic, tmp_path: Path) -> None:
    assert add(place, "curator.visits", "rows.csv") == 201
    assert Path(place.curator.catalog.source("new").place) == tmp_path / "clinic" / "rows.csv"


def test_rows_that_were_copied_into_another_table_stay_those_of_that_table(place: Clinic) -> None:
    owned = {"name": "people", "source": str(place.folder / "rows.csv"), "each_row": True}
    assert place.call("owner", "POST", "/v1/tables", json=owned).status_code == 201
    assert place.curator.catalog.schema.table("people").unit == tacit.Unit("row")
    assert add(place, "curator.visits", "rows.csv") == 403


def test_an_owner_names_any_file(place: Clinic, tmp_path: Path) -> None:
    assert add(place, "owner", f"{tmp_path}/elsewhere/rows.csv") == 201


OWN = ("salt", "ledger.sqlite", "ledger.head", "server.sqlite", "versions.json", "sources.json", "catalog.toml")


def disguised(place: Clinic, tmp_path: Path, disguise: str) -> str:
    """Make rows that are another data set's, or the folder's own, look like rows that anybody may register."""
    folder = tmp_path / "clinic"
    kind, _, what = disguise.partition(" ")
    if kind == "part":
        for number in (1, 2):
            (folder / f"part-{number}.csv").write_text(ROWS)
        place.curator.add_table("parts", folder / "part-*.csv", unit="person", dataset="secret")
        return "part-1.csv"
    if kind == "database":
        with duckdb.connect(tmp_path / "rows.duckdb") as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS person")
        place.curator.add_table("inner", f"{tmp_path}/rows.duckdb#t", unit="person", dataset="secret")
        (folder / "new.csv").hardlink_to(tmp_path / "rows.duckdb")
        return "new.csv"
    if kind == "frame":
        stored = Path(place.curator.catalog.source("secret").place)
        if what != "linked":
            return str(stored)
        (folder / "new.parquet").hardlink_to(stored)
        return "new.parquet"
    if kind == "prepared":
        (folder / "new.parquet").hardlink_to(next(one for one in (folder / "prepared").iterdir() if one.is_file()))
        return "new.parquet"
    target = folder / what
    if kind == "linked":
        (folder / "new.csv").symlink_to(target)
    else:
        (folder / "new.csv").hardlink_to(target)
    return "new.csv"


@pytest.mark.parametrize(
    "disguise",
    [
        *("part", "database", "frame", "frame linked", "prepared", "linked secret.csv", "hard secret.csv"),
        *(f"hard {name}" for name in OWN),
    ],
)
def test_rows_of_others_are_refused_under_every_name_they_have(disguise: str, place: Clinic, tmp_path: Path) -> None:
    settings = place.app.state.server.settings.model_copy(update={"sources": (tmp_path,)})
    object.__setattr__(place.app.state.server, "settings", settings)
    source = disguised(place, tmp_path, disguise)
    for body in ({"unit": None, "public": True}, {}):
        assert add(place, "curator.visits", source, **body) == 403
    assert "new" not in place.curator.catalog.tables
    assert ("catalog.write", "T400") in {(one.action, one.code) for one in place.access.audit.records()}


def test_a_file_that_spark_reads_for_others_is_refused_under_every_spelling(place: Clinic, tmp_path: Path) -> None:
    path = tmp_path / "meant" / "people.parquet"
    duckdb.sql(f"COPY (SELECT i AS person FROM range(20) AS r(i)) TO '{path}' (FORMAT parquet)")
    spark_engine().close()  # starts a small Spark
    for written in (str(path), f"file:{path}", f"file://{path}", f"{tmp_path}/meant/../meant//people.parq?et"):
        source = f"spark:{PLACE}#parquet:{written}"
        place.curator.add_table("people", source, unit="person", dataset="secret", replace=True)
        (place.folder / "sources.json").unlink()  # the present source alone decides
        assert add(place, "curator.visits", str(path)) == 403, written
    assert "new" not in place.curator.catalog.tables


def test_rows_of_ones_own_may_be_registered_twice(place: Clinic) -> None:
    assert add(place, "curator.visits", "rows.csv") == 201
    assert add(place, "curator.visits", "rows.csv", name="twin") == 201


def test_a_file_that_became_somebody_elses_is_not_read_again(place: Clinic, tmp_path: Path) -> None:
    folder = tmp_path / "clinic"
    assert add(place, "curator.visits", "rows.csv") == 201
    (folder / "rows.csv").unlink()
    (folder / "rows.csv").hardlink_to(folder / "secret.csv")
    assert place.call("curator.visits", "POST", "/v1/tables/new/refresh").status_code == 403
    refused = place.call("owner", "POST", "/v1/tables/new/refresh")
    assert (refused.status_code, "register it again" in refused.text) == (400, True)
    assert add(place, "owner", str(folder / "rows.csv")) == 201
    assert place.call("owner", "POST", "/v1/tables/new/refresh").status_code == 200


def way(table: str) -> dict[str, Any]:
    return {
        "column": "person",
        "through": [{"column": "score", "target_table": table, "target_column": "score"}],
    }


def test_no_way_to_a_unit_leads_through_a_table_of_somebody_else(place: Clinic) -> None:
    text = place.curator.catalog.text
    for dataset in ("", "visits", "secret"):
        for table in ("secret", "SECRET", "hidden"):
            body = {"name": "visits", "dataset": dataset, "unit": way(table)}
            answer = place.call(
                "curator.visits", "POST", "/v1/tables", json={**body, "source": "rows.csv", "replace": True}
            )
            assert answer.status_code in (403, 404), answer.text
            assert "secret" not in answer.text.lower() or dataset == "secret" or table != "hidden"
    assert place.curator.catalog.text == text


def test_a_table_that_others_depend_on_is_changed_only_by_who_may_change_them_too(
    place: Clinic, tmp_path: Path
) -> None:
    rows = tmp_path / "clinic" / "labs.csv"
    rows.write_text("id,patient_id\n1,1\n2,2\n")
    (tmp_path / "clinic" / "lines.csv").write_text("lab\n1\n2\n")
    place.curator.add_table("labs", rows, unit="patient_id", dataset="visits", replace=True)
    unit = tacit.Unit("patient_id", (tacit.ForeignKey("lab", "labs", "id"),))
    place.curator.add_table("lines", tmp_path / "clinic" / "lines.csv", unit=unit, dataset="visits")
    text = place.curator.catalog.text
    body = {"name": "labs", "source": "labs.csv", "unit": "patient_id", "dataset": "visits", "replace": True}
    for who, status in (("curator.labs", 403), ("curator.visits", 201)):
        answers = [
            place.call(who, "POST", "/v1/tables", json=body),
            place.call(who, "POST", "/v1/tables/labs/refresh"),
        ]
        assert [one.status_code for one in answers] == [status, 200 if status == 201 else 403]
        assert status == 201 or not any("lines" in one.text for one in answers)
    removed = place.call("curator.labs", "DELETE", "/v1/tables/labs")
    assert removed.status_code == 403
    assert "lines" not in removed.text
    assert place.curator.catalog.text == text
    assert place.call("curator.visits", "DELETE", "/v1/tables/labs").status_code == 400


def test_rows_stay_those_of_a_data_set_when_their_table_is_removed(place: Clinic) -> None:
    place.curator.remove_table("hidden")
    assert add(place, "curator.visits", "secret.csv") == 403
    assert add(place, "owner", str(place.folder / "secret.csv")) == 201


def test_budgets_that_do_not_know_of_one_another_are_named_in_the_answer(place: Clinic) -> None:
    """As a warning in Python: for rows under another data set, and for a table that moves to one."""
    place.curator.sql("SELECT COUNT(*) FROM hidden", epsilon=0.5)
    body = {"name": "new", "source": str(place.folder / "secret.csv"), "unit": "person"}
    for more in ({}, {"name": "hidden", "dataset": "visits", "replace": True}):
        said = place.call("owner", "POST", "/v1/tables", json={**body, **more}).json()["warnings"]
        assert any("what was spent from the budget of secret (epsilon" in one for one in said)


@pytest.mark.parametrize("name", ["hidden", "HIDDEN"])
def test_a_table_of_somebody_else_is_not_replaced_under_its_name_in_any_case(place: Clinic, name: str) -> None:
    text = place.curator.catalog.text
    body = {"name": name, "source": "rows.csv", "unit": "person", "dataset": "visits", "replace": True}
    answer = place.call("curator.visits", "POST", "/v1/tables", json=body)
    assert answer.status_code == 403
    assert "secret" not in answer.text
    assert place.curator.catalog.text == text
