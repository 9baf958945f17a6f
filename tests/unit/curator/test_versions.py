"""Data versions and table records: what previews and questions may not find out, and what a plan runs against."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit.privacy.errors import (
    AlreadySettled,
    CatalogChanged,
    CatalogInvalid,
    EngineFailed,
    InvalidInput,
    NotAllowed,
    SourceMissing,
)
from tacit.query import PlanSettings, QuerySpec, Target

pytestmark = pytest.mark.filterwarnings("ignore::tacit.curator.PrivacyWarning")  # some want answers without noise
COUNT = "SELECT COUNT(*) AS n FROM visits"


def write(path: Path, patients: int = 300, last: int = 1) -> None:
    rows = [{"id": p, "patient": p, "age": 20 + p % 60} for p in range(patients - 1)]
    pd.DataFrame([*rows, {"id": patients - 1, "patient": patients - 1, "age": last}]).to_csv(path, index=False)


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    write(tmp_path / "visits.csv")
    with tacit.Curator(tmp_path / "clinic") as made:
        made.add_table(
            "visits",
            tmp_path / "visits.csv",
            unit="patient",
            columns={"age": tacit.Bounds(0, 100)},
        )
        made.set_budget("visits", epsilon=1e5, epsilon_min=0)
        yield made


def test_a_preview_does_not_tell_that_a_value_was_changed_or_changed_back(
    curator: tacit.Curator, tmp_path: Path
) -> None:
    curator.sql(COUNT, epsilon=0.5)
    seen = []
    for last in (1, 99, 1):
        write(tmp_path / "visits.csv", last=last)
        seen.append(curator.preview(COUNT, epsilon=0.5).is_released)
    assert seen == [True, True, True]
    for last in (99, 1):  # the owner says so: each is a version of its own
        write(tmp_path / "visits.csv", last=last)
        assert curator.refresh() == ["visits"]
        assert not curator.preview(COUNT, epsilon=0.5).is_released
        curator.sql(COUNT, epsilon=0.5)


def test_questions_are_about_the_rows_of_the_last_refresh(curator: tacit.Curator, tmp_path: Path) -> None:
    write(tmp_path / "visits.csv", patients=900)
    assert abs(curator.sql(COUNT, epsilon=100.0).rows[0]["n"] - 300) < 5
    assert curator.refresh("VISITS") == ["visits"]
    assert curator.refresh("visits") == []
    assert abs(curator.sql(COUNT, epsilon=100.0).rows[0]["n"] - 900) < 5


def test_another_process_asks_about_the_same_version(curator: tacit.Curator, tmp_path: Path) -> None:
    curator.sql(COUNT, epsilon=0.5)
    write(tmp_path / "visits.csv", patients=900)
    with tacit.Curator(tmp_path / "clinic") as other:
        assert other.preview(COUNT, epsilon=0.5).is_released
        assert abs(other.sql(COUNT, epsilon=100.0).rows[0]["n"] - 300) < 5
        assert other.refresh() == ["visits"]
    assert not curator.preview(COUNT, epsilon=0.5).is_released
    assert abs(curator.sql(COUNT, epsilon=90.0).rows[0]["n"] - 900) < 5


def test_a_source_that_is_gone_does_not_end_questions_about_stored_rows(curator: tacit.Curator, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").unlink()
    assert abs(curator.sql(COUNT, epsilon=100.0).rows[0]["n"] - 300) < 5
    with pytest.raises(EngineFailed):
        curator.refresh()
    assert abs(curator.sql(COUNT, epsilon=90.0).rows[0]["n"] - 300) < 5


def test_neither_previews_nor_questions_look_at_sources(
    curator: tacit.Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = curator.engines.engine(("duckdb", ""))

    def look(*_: Any) -> str:
        pytest.fail("the source was looked at")

    monkeypatch.setattr(engine, "refresh", look)
    monkeypatch.setattr("tacit.engines.duckdb.engine.fingerprint", look)
    monkeypatch.setattr("tacit.engines.duckdb.engine.inspect_source", look)
    curator.preview(COUNT, epsilon=0.5)
    curator.sql(COUNT, epsilon=0.5)
    tacit.stats.mean(curator.table("visits")["age"], rows_per_unit=1, epsilon=0.5)


@pytest.fixture
def labs(curator: tacit.Curator, tmp_path: Path) -> tacit.Curator:
    pd.DataFrame({"visit": [1, 1, 2], "value": [1.0, 2.0, 3.0]}).to_csv(tmp_path / "labs.csv", index=False)
    unit = tacit.Unit("patient", (tacit.ForeignKey("visit", "visits", "id"),))
    curator.add_table("labs", tmp_path / "labs.csv", unit=unit, columns={"value": tacit.Bounds(0, 10)})
    return curator


def test_a_person_whose_visit_id_is_taken_makes_no_question_fail(labs: tacit.Curator, tmp_path: Path) -> None:
    """Failing for that would tell, at no charge, that the person is there."""
    question = "SELECT COUNT(*) AS n FROM labs"
    rows = pd.read_csv(tmp_path / "visits.csv")
    more = pd.DataFrame([{"id": 1, "patient": 10_000, "age": 50}])
    pd.concat([rows, more]).to_csv(tmp_path / "visits.csv", index=False)
    labs.preview(question, epsilon=0.5)
    before = json.loads((labs.folder / "versions.json").read_text())
    with pytest.raises(InvalidInput, match="not unique"):
        labs.refresh()
    assert json.loads((labs.folder / "versions.json").read_text()) == before
    assert abs(labs.sql(question, epsilon=1000.0).rows[0]["n"] - 3) < 1
    assert abs(labs.sql(COUNT, epsilon=1000.0).rows[0]["n"] - 300) < 1
    with tacit.Curator(labs.folder) as other:
        assert abs(other.sql(question, epsilon=2000.0).rows[0]["n"] - 3) < 1


def test_a_refreshed_parent_moves_its_children(labs: tacit.Curator, tmp_path: Path) -> None:
    question = "SELECT COUNT(*) AS n FROM labs"
    labs.sql(question, epsilon=0.5)
    write(tmp_path / "visits.csv", patients=2)
    assert labs.refresh("visits") == ["visits"]
    assert not labs.preview(question, epsilon=0.5).is_released
    assert abs(labs.sql(question, epsilon=1000.0).rows[0]["n"] - 2) < 1


def test_a_plan_made_before_a_table_was_registered_anew_is_refused_and_costs_nothing(
    curator: tacit.Curator, tmp_path: Path
) -> None:
    """The noise of the old plan is for values up to 100, and the rows now have some up to 10,000."""
    asked = QuerySpec("SELECT SUM(age) AS s FROM visits", Target(epsilon=0.5), PlanSettings())
    service = curator.queries()
    plan = service.plan(asked)
    handle = curator.table("visits")
    columns = {"age": tacit.Bounds(0, 10_000)}
    curator.add_table("visits", tmp_path / "visits.csv", unit="patient", columns=columns, replace=True)
    for attempt in (
        lambda: service.release(asked, plan),
        lambda: service.preview(asked, plan),
        lambda: service.release(asked),
        lambda: tacit.stats.mean(handle["age"], rows_per_unit=1, epsilon=0.5),
    ):
        with pytest.raises(CatalogChanged, match="repeat the query"):
            attempt()
    assert curator.budget("visits").spent().epsilon == 0
    assert curator.queries().release(asked).cost.epsilon == pytest.approx(0.5)


@pytest.mark.parametrize("way", ["sql", "stats"])
def test_an_answer_made_while_a_table_was_registered_anew_does_not_leave(
    curator: tacit.Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    engine = curator.engines.engine(("duckdb", ""))
    run = engine.run
    columns = {"age": tacit.Bounds(0, 10_000)}

    def overtaken(*arguments: Any, **options: Any) -> Any:
        curator.add_table("visits", tmp_path / "visits.csv", unit="patient", columns=columns, replace=True)
        curator.sql(COUNT, epsilon=0.25)  # shows the table anew
        return run(*arguments, **options)

    table = curator.table("visits")
    ask = {
        "sql": lambda: curator.sql("SELECT SUM(age) AS s FROM visits", epsilon=0.5),
        "stats": lambda: tacit.stats.mean(table["age"], rows_per_unit=1, epsilon=0.5),
    }[way]
    with monkeypatch.context() as patch:
        calls = iter([overtaken])
        patch.setattr(engine, "run", lambda *a, **o: next(calls, run)(*a, **o))
        with pytest.raises(EngineFailed, match="stays charged"):
            ask()
    assert curator.budget("visits").spent().epsilon == pytest.approx(0.75)
    (left,) = curator.ledger.reservations()
    assert left.note == "failed/T134"


def test_tables_of_several_data_sets_are_not_asked_about_together(curator: tacit.Curator, tmp_path: Path) -> None:
    """A unit that left one of them alone would move its rows from one group to another: twice what the noise is for."""
    curator.add_table("others", tmp_path / "visits.csv", unit="patient", columns={"age": tacit.Bounds(0, 100)})
    curator.set_budget("others", epsilon=1.0)
    for sql in (
        "SELECT COUNT(*) FROM visits LEFT JOIN others USING (patient)",
        "SELECT COUNT(*) FROM visits WHERE patient NOT IN (SELECT patient FROM others)",
        "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM others) AS both",
    ):
        with pytest.raises(NotAllowed, match="one data set"):
            curator.preview(sql, epsilon=0.5)


def test_a_table_that_leads_to_its_unit_through_another_shares_its_budget(labs: tacit.Curator, tmp_path: Path) -> None:
    labs.sql("SELECT COUNT(*) FROM labs", epsilon=0.5)
    assert labs.budget("visits").spent().epsilon == pytest.approx(0.5)
    unit = tacit.Unit("patient", (tacit.ForeignKey("visit", "visits", "id"),))
    with pytest.raises(CatalogInvalid, match='dataset = "visits"'):
        labs.add_table("more", tmp_path / "labs.csv", unit=unit, dataset="other")


def test_a_damaged_file_of_versions_is_said_to_be(curator: tacit.Curator) -> None:
    (curator.folder / "versions.json").write_text('{"visits": {"id": "x", "fingerprint": 1}}')
    with pytest.raises(CatalogInvalid, match="tacit table refresh"):
        curator.preview(COUNT, epsilon=0.5)


def test_one_row_of_a_later_version_does_not_change_how_a_csv_file_is_read(tmp_path: Path) -> None:
    """The form is found at registration, stands in the catalog, and reads every later version."""
    days = [f"{1 + p % 28:02}/{1 + p % 12:02}/2020" for p in range(300)]
    lines = ["patient,day,name", *(f"{p},{day},x" for p, day in enumerate(days))]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join([*lines, "300,25/12/2020,x"]) + "\n")
    july = "SELECT COUNT(*) AS n FROM visits WHERE MONTH(day) = 7"
    with tacit.Curator(tmp_path / "clinic") as curator:
        columns = {"day": tacit.Bounds("2020-01-01", "2020-12-31")}
        curator.add_table("visits", path, unit="patient", columns=columns)
        curator.set_budget("visits", epsilon=1e5)
        assert 'date_pattern = "%d/%m/%Y"' in curator.catalog.text
        counts = []
        for more in (b"", b"301,12/25/2020,x\n", "302,01/01/2020,é\n".encode("latin-1"), b'303;"01;x\n', b"#,,\n"):
            path.write_bytes("\n".join([*lines[:-1], lines[-1]]).encode() + b"\n" + more)
            curator.refresh()
            counts.append(round(curator.sql(july, epsilon=1000.0).rows[0]["n"]))
        assert counts == [25] * 5


def test_a_table_that_is_registered_anew_is_checked_anew(tmp_path: Path) -> None:
    """Its source is the same, so that nothing but the statement about it has changed."""
    with tacit.Curator(tmp_path / "clinic") as curator:
        keys = pd.DataFrame({"k": [1, 1, 2], "name": ["a", "b", "c"]})
        curator.add_table("keys", keys, public=True)
        with pytest.raises(InvalidInput, match="identify"):
            curator.add_table("keys", keys, public=True, identified_by="k", replace=True)
        assert not curator.catalog.schema.table("keys").identified_by
        visits = pd.DataFrame({"id": [1, 1, 2], "patient": [1, 2, 3]})
        curator.add_table("visits", visits, unit="patient")
        labs = pd.DataFrame({"visit": [1, 2], "patient": [1, 3]})
        curator.add_table("labs", labs, unit="patient", dataset="visits")
        unit = tacit.Unit("patient", (tacit.ForeignKey("visit", "visits", "id"),))
        for _ in range(2):
            with pytest.raises(InvalidInput, match="not unique"):
                curator.add_table("labs", labs, unit=unit, replace=True)
        assert curator.catalog.schema.table("labs").unit == tacit.Unit("patient")
        curator.set_budget("visits", epsilon=1e5)
        assert abs(curator.sql("SELECT COUNT(*) AS n FROM labs", epsilon=1000.0).rows[0]["n"] - 2) < 1


def test_what_was_written_into_the_catalog_by_hand_is_asked_about_after_a_refresh_only(
    curator: tacit.Curator, tmp_path: Path
) -> None:
    """A question would otherwise read rows, and tell of them by what it does."""
    write(tmp_path / "visits.csv", patients=900)
    path = curator.catalog.path
    path.write_text(path.read_text().replace("bounds = [0, 100]", "bounds = [0, 1000]"))
    for ask in (curator.preview, curator.sql):
        with pytest.raises(CatalogChanged, match="tacit table refresh visits"):
            ask(COUNT, epsilon=0.5)
    assert curator.budget("visits").spent().epsilon == 0
    assert curator.refresh() == ["visits"]
    assert abs(curator.sql(COUNT, epsilon=1000.0).rows[0]["n"] - 900) < 1


def test_units_of_one_data_set_have_one_kind_and_lead_to_one_person(curator: tacit.Curator, tmp_path: Path) -> None:
    """Compared as one of two kinds, "1" and "01" are one person in one table and two in the other."""
    rows = pd.DataFrame({"patient": ["1", "01"], "visit": [1, 2], "doctor": [7, 8]})
    with pytest.raises(CatalogInvalid, match="in visits some are integer, others text"):  # and no table is named
        curator.add_table("texts", rows, unit="patient", dataset="visits")
    other = tacit.Unit("age", (tacit.ForeignKey("visit", "visits", "id"),))
    with pytest.raises(CatalogInvalid, match="not the unit of visits"):
        curator.add_table("doctors", rows, unit=other)


@pytest.mark.parametrize("error", [EngineFailed("no disk"), tacit.privacy.errors.Cancelled("stopped")])
def test_a_key_whose_run_failed_buys_no_second_run(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, error: EngineFailed
) -> None:
    """Runs that are cancelled again and again at one charge would be a clock at no price."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(curator.engines.engine(("duckdb", "")), "run", fail)
        with pytest.raises(type(error)):
            curator.sql(COUNT, epsilon=0.5, key="k")
    with pytest.raises(AlreadySettled, match="take a new key"):
        curator.sql(COUNT, epsilon=0.5, key="k")
    assert curator.sql(COUNT, epsilon=0.5, key="other").cost.epsilon == pytest.approx(0.5)
    assert curator.budget("visits").spent().epsilon == pytest.approx(1.0)


def test_a_frame_that_is_refused_leaves_the_rows_that_were_registered(tmp_path: Path) -> None:
    keys = pd.DataFrame({"k": [1, 2, 3]})
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("keys", keys, public=True, identified_by="k")
        with pytest.raises(InvalidInput, match="identify"):
            curator.add_table("keys", pd.DataFrame({"k": [1] * 500}), public=True, identified_by="k", replace=True)
        assert curator.catalog.schema.table("keys").rows == 3
        assert len(list((curator.folder / "tables").iterdir())) == 1
        assert curator.refresh() == []
        curator.add_table("keys", pd.DataFrame({"k": [1, 2]}), public=True, identified_by="k", replace=True)
        assert len(list((curator.folder / "tables").iterdir())) == 1


def test_rows_of_a_public_table_are_those_of_the_last_refresh(curator: tacit.Curator, tmp_path: Path) -> None:
    """That a key identifies them was checked then, and the noise rests on it."""
    path = tmp_path / "keys.parquet"
    pd.DataFrame({"age": [20, 21], "name": ["a", "b"]}).to_parquet(path)
    curator.add_table("keys", path, public=True, identified_by="age")
    joined = "SELECT COUNT(*) AS n FROM visits JOIN keys USING (age)"
    before = curator.sql(joined, epsilon=1000.0).rows[0]["n"]
    pd.DataFrame({"age": [20] * 500, "name": ["a"] * 500}).to_parquet(path)
    assert abs(curator.sql(joined, epsilon=2000.0).rows[0]["n"] - before) < 1
    with pytest.raises(InvalidInput, match="identify"):
        curator.refresh()
    assert abs(curator.sql(joined, epsilon=3000.0).rows[0]["n"] - before) < 1


def test_a_refresh_of_a_parent_checks_the_tables_that_lead_through_it(labs: tacit.Curator, tmp_path: Path) -> None:
    rows = pd.read_csv(tmp_path / "visits.csv")
    pd.concat([rows, rows.assign(patient=rows["patient"] + 1000)]).to_csv(tmp_path / "visits.csv", index=False)
    with pytest.raises(InvalidInput, match="is not unique"):
        labs.refresh("visits")
    assert abs(labs.sql("SELECT COUNT(*) AS n FROM labs", epsilon=1000.0).rows[0]["n"] - 3) < 1


def test_a_version_does_not_come_back_with_the_file_that_it_was_made_of(curator: tacit.Curator, tmp_path: Path) -> None:
    path, aside = tmp_path / "visits.csv", tmp_path / "aside.csv"

    def version() -> str:
        return str(json.loads((curator.folder / "versions.json").read_text())["visits"]["id"])

    curator.sql(COUNT, epsilon=0.5)
    seen = [version()]
    path.rename(aside)  # keeps the size and the times that a fingerprint is made of
    write(path, last=99)
    curator.refresh()
    seen.append(version())
    aside.rename(path)
    curator.refresh()
    seen.append(version())
    assert len(set(seen)) == 3
    assert not curator.preview(COUNT, epsilon=0.5).is_released


def test_stored_rows_that_are_gone_are_made_again_from_unchanged_files_only(
    labs: tacit.Curator, tmp_path: Path
) -> None:
    """A folder that was cleaned up, or restored without its stored rows, shows no other rows under an old version."""
    labs.close()
    stored = labs.folder / "prepared"
    shutil.rmtree(stored)
    with tacit.Curator(labs.folder) as again:
        assert abs(again.sql("SELECT COUNT(*) AS n FROM labs", epsilon=1000.0).rows[0]["n"] - 3) < 1
    shutil.rmtree(stored)
    rows = pd.read_csv(tmp_path / "visits.csv")
    pd.concat([rows, rows.assign(patient=rows["patient"] + 1000)]).to_csv(tmp_path / "visits.csv", index=False)
    with tacit.Curator(labs.folder) as again:
        spent = again.budget("visits").spent()
        for question in (COUNT, "SELECT COUNT(*) AS n FROM labs"):
            with pytest.raises(SourceMissing, match="tacit table refresh visits"):
                again.sql(question, epsilon=2000.0)
        assert again.budget("visits").spent() == spent
        with pytest.raises(InvalidInput, match="is not unique"):
            again.refresh()


def test_a_refresh_states_how_files_are_written_where_the_catalog_does_not(
    curator: tacit.Curator, tmp_path: Path
) -> None:
    file = curator.folder / "catalog.toml"
    kept = file.read_text()
    file.write_text("\n".join(line for line in kept.splitlines() if not line.startswith("csv =")) + "\n")
    curator.refresh()
    curator.sql(COUNT, epsilon=0.5)
    assert [line for line in file.read_text().splitlines() if line.startswith("csv =")] == [
        line for line in kept.splitlines() if line.startswith("csv =")
    ]
    (tmp_path / "visits.csv").write_text((tmp_path / "visits.csv").read_text().replace(",", ";"))
    with pytest.raises(SourceMissing):  # read by the form that was kept, not by one that fits
        curator.refresh()


def test_a_file_that_was_written_again_with_the_same_rows_keeps_its_version(
    curator: tacit.Curator, tmp_path: Path
) -> None:
    curator.sql(COUNT, epsilon=0.5)
    for _ in range(2):  # another time and another inode; then registered anew with the same statements
        copied = tmp_path / "copy.csv"
        copied.write_bytes((tmp_path / "visits.csv").read_bytes())
        copied.replace(tmp_path / "visits.csv")
        assert curator.refresh() == []
        assert curator.sql(COUNT, epsilon=0.5).cost.epsilon == 0
        curator.add_table(
            "visits", tmp_path / "visits.csv", unit="patient", columns={"age": tacit.Bounds(0, 100)}, replace=True
        )
        assert curator.sql(COUNT, epsilon=0.5).cost.epsilon == 0
    with tacit.Curator(curator.folder) as other:
        assert other.refresh() == []
        assert other.sql(COUNT, epsilon=0.5).cost.epsilon == 0


def test_rows_of_the_same_size_and_time_are_seen_to_have_changed(curator: tacit.Curator, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"299,299,1\n", b"299,299,9\n"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_ino) == (before.st_size, before.st_ino)
    assert curator.refresh() == ["visits"]


def test_a_table_that_was_stated_otherwise_and_back_has_a_version_of_its_own(
    curator: tacit.Curator, tmp_path: Path
) -> None:
    curator.sql(COUNT, epsilon=0.5)
    for high in (90, 100):
        curator.add_table(
            "visits", tmp_path / "visits.csv", unit="patient", columns={"age": tacit.Bounds(0, high)}, replace=True
        )
    assert curator.sql(COUNT, epsilon=0.5).cost.epsilon == 0.5


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_frame_that_is_added_again_with_the_same_rows_keeps_its_version(kind: str, tmp_path: Path) -> None:
    def frame(ages: list[int]) -> Any:
        rows = pd.DataFrame({"patient": range(len(ages)), "age": ages})
        return {"pandas": rows.copy, "polars": lambda: pl.from_pandas(rows), "arrow": lambda: pa.table(rows)}[kind]()

    def add(ages: list[int]) -> None:
        curator.add_table("t", frame(ages), unit="patient", columns={"age": tacit.Bounds(0, 100)}, replace=True)

    question = "SELECT COUNT(*) AS n FROM t"
    with tacit.Curator(tmp_path / "clinic") as curator:
        same, other = [*range(50)] * 3000, [*range(50)] * 2999 + [1] * 50
        add(same)
        curator.set_budget("t", epsilon=10)
        curator.sql(question, epsilon=0.5)
        add(same)
        assert curator.sql(question, epsilon=0.5).cost.epsilon == 0
        assert len(list((curator.folder / "tables").iterdir())) == 1
        for ages in (other, same):  # changed, and changed back
            add(ages)
            assert curator.sql(question, epsilon=0.5).cost.epsilon == 0.5
