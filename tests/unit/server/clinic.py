"""A small place to put the server on trial: two data sets, everybody from an owner to a stranger, a cheap hasher.

`visits` holds the tables visits and labs, `secret` the table secret. People are called by what they are and where:
`curator` everywhere, `curator.visits` on the data set, `curator.labs` on one table of it, `known` without any grant.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import pandas as pd

import tacit
from tacit.curator import PrivacyWarning
from tacit.server.access import Access, Grant, Hasher, Role
from tacit.server.database import open_database
from tacit.server.process import create_app
from tacit.server.settings import ServerLimits, Settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # it would rather have another library than httpx
    from starlette.testclient import TestClient

ROWS: Final = 600
EPSILON: Final = 1000.0
CAP: Final = 100.0
PASSWORD: Final = "correct horse battery"
PLACES: Final[Mapping[str, tuple[str | None, str | None]]] = {
    "": (None, None),
    ".visits": ("visits", None),
    ".secret": ("secret", None),
    ".labs": ("visits", "labs"),
}
PEOPLE: Final[Mapping[str, Grant | None]] = {
    "owner": Grant(Role.OWNER),
    **{
        f"{role}{ending}": Grant(role, *place)
        for role in (Role.CURATOR, Role.ANALYST, Role.AUDITOR)
        for ending, place in PLACES.items()
    },
    "known": None,
}
NOBODY: Final = "nobody"


@dataclass
class Clinic:
    """A folder, its curator, who may do what, and a client of the application in this process."""

    folder: Path
    curator: tacit.Curator
    access: Access
    settings: Settings
    tokens: dict[str, str]
    client: TestClient = field(init=False)

    def __post_init__(self) -> None:
        self.app = create_app(self.curator, self.access, self.settings)
        self.client = TestClient(self.app, client=("192.0.2.1", 50_000), raise_server_exceptions=False)

    def headers(self, name: str) -> dict[str, str]:
        return {} if name == NOBODY else {"Authorization": f"Bearer {self.tokens[name]}"}

    def call(self, name: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Make a request as somebody."""
        headers = {**self.headers(name), **options.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **options)

    def close(self) -> None:
        self.curator.close()
        self.access.close()


def make(
    folder: Path, *, limits: ServerLimits | None = None, timing_class_s: float = 0.001, rows: int = ROWS
) -> Clinic:
    """Make a folder with its people, and the application over it; its client is entered with `with`."""
    folder.mkdir(parents=True, exist_ok=True)
    curator = tacit.Curator(folder)
    fill(curator, rows)
    database = open_database(folder)
    access = Access(database, hasher=Hasher(is_cheap=True))
    settings = Settings(
        folder=folder, timing_class_s=timing_class_s, limits=limits or ServerLimits(), hosts=("testserver",)
    )
    return Clinic(folder, curator, access, settings, let_in(access))


def fill(curator: tacit.Curator, rows: int = ROWS) -> None:
    """Register the tables, with their budgets and the caps of analysts."""
    number = np.arange(rows)
    patient, sex = number // 2, np.where(number % 2, "F", "M")
    facts = {"sex": tacit.Categories(["F", "M"])}
    visits = pd.DataFrame({"patient_id": patient, "age": number % 90, "sex": sex})
    curator.add_table("visits", visits, unit="patient_id", columns={"age": tacit.Bounds(0, 90), **facts})
    labs = pd.DataFrame({"patient_id": patient, "value": number % 10, "sex": sex})
    curator.add_table(
        "labs", labs, unit="patient_id", columns={"value": tacit.Bounds(0, 10), **facts}, dataset="visits"
    )
    secret = pd.DataFrame({"person": patient, "score": number % 7, "sex": sex})
    curator.add_table("secret", secret, unit="person", columns={"score": tacit.Bounds(0, 7), **facts})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # it is a large budget, so that tests do not exhaust it
        for dataset in ("visits", "secret"):
            curator.set_budget(dataset, EPSILON, 1e-6, epsilon_min=0)
    for name in PEOPLE:  # a cap lets nobody do anything; it is what those who may ask are charged
        curator.add_analyst(name, {one: tacit.Budget(CAP, 1e-7) for one in ("visits", "secret")})


def let_in(access: Access) -> dict[str, str]:
    """Make everybody known, and return a token of each."""
    for name, grant in PEOPLE.items():
        access.people.add(name, PASSWORD)
        if grant is not None:
            access.people.grant(name, grant)
    return {name: access.tokens.create(name, label="first").text for name in PEOPLE}
