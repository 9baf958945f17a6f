"""An access over each kind of database, with `ana`, an owner, and `bob`, an analyst of visits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.server.access import Access, Grant, Role
from tests.unit.server.access.places import PASSWORD, Clock, Place, postgres_place, sqlite_place


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives a power cut is tested for the ledger, whose file is made of the same parts."""
    monkeypatch.setattr("tacit.storage.sqlite.PRAGMAS", ("journal_mode = WAL", "synchronous = OFF"))
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = sqlite_place(tmp_path) if request.param == "sqlite" else postgres_place()
    yield made
    made.close()


@pytest.fixture
def access(place: Place) -> Access:
    made = place.access()
    made.people.add("ana", PASSWORD)
    made.people.grant("ana", Grant(Role.OWNER))
    made.people.add("bob", PASSWORD)
    made.people.grant("bob", Grant(Role.ANALYST, "visits"))
    return made


@pytest.fixture
def clock(place: Place) -> Clock:
    return place.clock
