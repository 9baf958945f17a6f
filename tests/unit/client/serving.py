"""A real server in this process, with a clinic in it, for tests of the client and of the command line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import httpx

import tacit
from tacit.client import Client
from tacit.server.access import Access, Grant, Hasher, Role
from tacit.server.database import open_database
from tacit.server.process import create_app
from tacit.server.settings import Settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have another library than httpx
    from starlette.testclient import TestClient

URL: Final = "http://127.0.0.1:8321"
PEOPLE: Final = {
    "olga": Grant(Role.OWNER),
    "ana": Grant(Role.ANALYST, "visits"),
    "ben": Grant(Role.ANALYST, "visits"),
    "aude": Grant(Role.AUDITOR),
}


@dataclass
class Place:
    """A folder, its embedded curator, and clients of the server that serves the same folder."""

    folder: Path
    curator: tacit.Curator
    http: TestClient
    tokens: dict[str, str]
    pauses: list[float] = field(default_factory=list)

    def client(self, name: str, **settings: Any) -> Client:
        """Return a client of somebody."""
        http: httpx.Client = settings.pop("http", self.http)
        return Client(URL, self.tokens[name], http=http, **settings)


@contextmanager
def served(folder: Path, **settings: Any) -> Iterator[Place]:
    """Serve a folder with a table of visits, a budget, and four people."""
    folder.mkdir()
    write_visits(folder / "visits.csv")
    database = open_database(folder)
    access = Access(database, hasher=Hasher(is_cheap=True))
    for name, grant in PEOPLE.items():
        access.people.add(name)
        access.people.grant(name, grant)
    tokens = {name: access.tokens.create(name).text for name in PEOPLE}
    with tacit.Curator(folder) as curator:
        curator.add_table(
            "visits",
            "visits.csv",
            unit="patient",
            columns={
                "age": tacit.Bounds(0, 120),
                "sex": tacit.Categories(["F", "M"]),
                "day": tacit.Bounds("2024-01-01", "2024-12-31"),
            },
            limits=tacit.Limits(rows_per_unit=3),
        )
        curator.ledger.create_budget("visits", 100.0, 1e-6)  # without the warning that so much is unwise
        curator.add_analyst("ana", {"visits": tacit.Budget(50.0, 1e-7)})
        curator.add_analyst("ben", {"visits": tacit.Budget(0.5, 1e-7)})
        app = create_app(curator, access, Settings(folder=folder, timing_class_s=0.01, **settings))
        with TestClient(app, base_url=URL, raise_server_exceptions=False) as http:
            yield Place(folder, curator, http, tokens)
    database.close()


def write_visits(path: Path) -> None:
    """Write rows of 400 patients."""
    first = date(2024, 1, 1)
    rows = "".join(
        f"{i % 400},{20 + i % 60},{'FM'[i % 2]},{'abc'[i % 3]},{first + timedelta(days=i % 366)}\n" for i in range(1200)
    )
    path.write_text(f"patient,age,sex,ward,day\n{rows}", encoding="utf-8")
