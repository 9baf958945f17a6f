"""Which rows a table of the server may be made of: nobody reads by a table of hers what she may not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

ROWS = "person,score\n1,2\n2,3\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clinic]:
    for folder in (
        tmp_path / "home",
        tmp_path / "elsewhere",
        tmp_path / "meant",
        tmp_path / "meant" / "deep",
        tmp_path / "clinic",
    ):
        folder.mkdir(parents=True)
        (folder / "rows.csv").write_text(ROWS)
    (tmp_path / "clinic" / "secret.csv").write_text(ROWS)
    (tmp_path / "clinic" / "link.csv").symlink_to(tmp_path / "elsewhere" / "rows.csv")
    (tmp_path / "clinic" / "inner").mkdir()
    (tmp_path / "clinic" / "inner" / "rows.csv").write_text(ROWS)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    made = clinic.make(tmp_path / "clinic")
    object.__setattr__(
        made.app.state.server, "settings", made.settings.model_copy(update={"sources": (tmp_path / "meant",)})
    )
    made.curator.add_table("hidden", tmp_path / "clinic" / "secret.csv", unit="person", dataset="secret")
    with made.client:
        yield made
    made.close()


def add(place: Clinic, who: str, source: str, **more: str) -> int:
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
def test_everything_else_is_refused_on_record_and_registers_nothing(source: str, place: Clinic, tmp_path: Path) -> None:
    status = add(place, "curator.visits", source.format(tmp=tmp_path))
    assert status in (400, 403)
    assert "new" not in place.curator.catalog.tables
    assert status == 400 or ("catalog.write", "T400") in {(one.action, one.code) for one in place.access.audit()}


def test_a_format_does_not_make_rows_of_what_is_none(place: Clinic) -> None:
    for name in ("server.sqlite", "ledger.sqlite", "catalog.toml"):
        assert add(place, "curator.visits", name, format="csv") in (400, 403)


def test_rows_in_the_folder_and_not_where_the_server_was_started(place: Clinic, tmp_path: Path) -> None:
    assert add(place, "curator.visits", "rows.csv") == 201
    assert Path(place.curator.catalog.source("new").place) == tmp_path / "clinic" / "rows.csv"


def test_an_owner_names_any_file(place: Clinic, tmp_path: Path) -> None:
    assert add(place, "owner", f"{tmp_path}/elsewhere/rows.csv") == 201
