"""Caps and epochs that REST sets, and the list of answers that were paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

DOCUMENT = '{"cost": {"epsilon": 1.0, "delta": 0.0, "rho": null}, "card": ""}'


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Clinic]:
    made = clinic.make(tmp_path / "clinic")
    with made.client:
        yield made
    made.close()


def test_a_person_sees_the_newest_answers_however_many_others_were_given_since(place: Clinic) -> None:
    database = place.access.database
    for number in range(60):
        dataset = '["labs"]' if number == 0 else '["visits"]'
        database.write(
            (
                "INSERT INTO releases (permit, person, datasets, asked_at_us, document, bytes) VALUES (?,?,?,?,?,?)",
                (f"p{number}", "somebody", dataset, number, DOCUMENT, 50),
            )
        )
    listed = place.call("owner", "GET", "/v1/releases", params={"limit": 2}).json()
    assert [one["permit"] for one in listed] == ["p59", "p58"]
    listed = place.call("owner", "GET", "/v1/releases", params={"limit": 2, "dataset": "labs"}).json()
    assert [one["permit"] for one in listed] == ["p0"]


def test_a_cap_has_the_filter_and_the_delta_of_its_data_set(place: Clinic) -> None:
    place.curator.set_budget("study", 3.0, 1e-6, filter="gdp")
    made = place.call("owner", "POST", "/v1/budgets/study/analysts", json={"name": "ana", "epsilon": 1.0})
    assert made.status_code == 201
    cap = place.curator.budget("study", "ana").cap
    assert (cap.filter, cap.delta) == ("gdp", 1e-6)


def test_a_data_set_with_tables_gets_no_epochs(place: Clinic) -> None:
    """Queries about its tables could not be charged any more."""
    refused = place.call("owner", "POST", "/v1/budgets/visits/epochs", json={"name": "2024", "epsilon": 0.1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "T100")
    assert "has tables" in refused.json()["error"]["message"]
    body = {"dataset": "visits", "epsilon": 1.0, "per_epoch": True}
    assert "has tables" in place.call("owner", "POST", "/v1/budgets", json=body).json()["error"]["message"]
    place.curator.set_budget("study", 3.0, 1e-6)
    assert place.call("owner", "POST", "/v1/budgets/study/epochs", json={"name": "2024"}).status_code == 201
