"""Every change of the catalog is on record: who, what, from where, and what was there before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.cli.app import run
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

ROWS = "person,score\n1,2\n2,3\n"
MARK = re.compile(r"(catalog\.\w+) (\w+)>(\w+)")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Clinic]:
    made = clinic.make(tmp_path / "clinic", rows=40)
    (made.folder / "rows.csv").write_text(ROWS)
    with made.client:
        yield made
    made.close()


def recorded(place: Clinic, first: int) -> list[tuple[str, str, str, str, str, str]]:
    """What is on record of changes from a number on, without digests."""
    return [
        (one.actor, one.action.split()[0], str(one.resource), one.code, one.address, "" if one.count == 1 else "many")
        for one in place.access.audit.records(first)
        if one.action.startswith("catalog.")
    ]


def chain(place: Clinic, first: int) -> list[tuple[str, str]]:
    found = [MARK.fullmatch(one.action) for one in place.access.audit.records(first)]
    return [(match[2], match[3]) for match in found if match]


def changed(place: Clinic, who: str, method: str, path: str, **body: object) -> None:
    answer = place.call(who, method, path, json=body) if body else place.call(who, method, path)
    assert answer.is_success, answer.text


def test_changes_over_rest_are_on_record(place: Clinic) -> None:
    first = place.access.audit.last() + 1
    body = {"name": "new", "source": str(place.folder / "rows.csv"), "unit": "person", "dataset": "visits"}
    changed(place, "owner", "POST", "/v1/tables", **body)
    changed(
        place,
        "curator.visits",
        "POST",
        "/v1/tables",
        **{**body, "source": "rows.csv", "replace": True, "unit": "score"},
    )
    (place.folder / "rows.csv").write_text(f"{ROWS}9,9\n")
    changed(place, "curator.visits", "POST", "/v1/tables/new/refresh")
    changed(place, "curator.visits", "POST", "/v1/tables/new/refresh")  # no rows have changed
    changed(place, "owner", "POST", "/v1/tables", **{**body, "dataset": "secret", "replace": True})
    changed(place, "owner", "DELETE", "/v1/tables/new")
    assert recorded(place, first) == [
        (who, action, where, "done", "192.0.2.1", "")
        for who, action, where in [
            ("owner", "catalog.add", "visits.new"),
            ("curator.visits", "catalog.replace", "visits.new"),
            ("curator.visits", "catalog.refresh", "visits.new"),
            ("owner", "catalog.move", "secret.new"),
            ("owner", "catalog.remove", "secret.new"),
        ]
    ]
    marks = chain(place, first)
    assert marks[0][0] == marks[-1][1] == "none"
    assert [one for _, one in marks[:-1]] == [one for one, _ in marks[1:]]
    assert len({one for one, _ in marks}) == len(marks)


def test_a_warning_of_other_budgets_is_on_record(place: Clinic) -> None:
    (place.folder / "secret.csv").write_text(ROWS)
    place.curator.add_table("hidden", place.folder / "secret.csv", unit="person", dataset="secret")
    first = place.access.audit.last() + 1
    body = {"name": "new", "source": str(place.folder / "secret.csv"), "unit": "person", "dataset": "visits"}
    changed(place, "owner", "POST", "/v1/tables", **body)
    assert [one[1] for one in recorded(place, first)] == ["catalog.add", "catalog.warn"]


def test_what_is_refused_leaves_no_record_of_a_change(place: Clinic) -> None:
    first = place.access.audit.last() + 1
    body = {"name": "new", "source": "rows.csv", "unit": "nobody", "dataset": "visits"}
    assert place.call("curator.visits", "POST", "/v1/tables", json=body).status_code >= 400
    assert place.call("curator.labs", "DELETE", "/v1/tables/visits").status_code >= 400
    assert all(one[3] != "done" for one in recorded(place, first))


def test_changes_at_the_command_line_are_on_record_where_a_server_keeps_one(place: Clinic) -> None:
    first, folder = place.access.audit.last() + 1, ["--folder", str(place.folder)]
    rows = place.folder / "rows.csv"
    assert run(["table", "add", "new", str(rows), "--unit", "person", *folder]) == 0
    assert run(["table", "edit", "new", "--bounds", "score=0:9", *folder]) == 0
    assert run(["table", "edit", "new", "--dataset", "visits", *folder]) == 0
    rows.write_text(f"{ROWS}9,9\n")
    assert run(["table", "refresh", "new", *folder]) == 0
    assert run(["table", "remove", "new", "--yes", *folder]) == 0
    found = recorded(place, first)
    actions = ["catalog.add", "catalog.replace", "catalog.move", "catalog.refresh", "catalog.remove"]
    assert [one[1] for one in found] == actions
    assert {(one[0], one[3]) for one in found} == {("", "done")}
    assert all(one[4].startswith("local user ") for one in found)


def test_a_folder_without_a_server_gets_none_by_a_change(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    assert run(["init", str(tmp_path / "own")]) == 0
    folder = ["--folder", str(tmp_path / "own")]
    assert run(["table", "add", "new", str(tmp_path / "rows.csv"), "--unit", "person", *folder]) == 0
    assert not (tmp_path / "own" / "server.sqlite").exists()
