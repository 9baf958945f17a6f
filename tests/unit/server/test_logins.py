"""Browsers: a login, its cookie, the proof that its own page made a request, and a provider of identities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.server import clinic
from tests.unit.server.clinic import PASSWORD, Clinic

QUESTION = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Clinic]:
    made = clinic.make(tmp_path)
    with made.client:
        yield made
    made.close()


def login(place: Clinic, name: str = "analyst.visits") -> str:
    found = place.client.post("/v1/login", json={"name": name, "password": PASSWORD})
    assert found.status_code == 200
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    return str(found.json()["csrf"])


def test_a_browser_asks_with_its_cookie_and_the_proof_of_its_page(place: Clinic) -> None:
    csrf = login(place)
    me = place.client.get("/v1/me").json()
    assert (me["name"], me["csrf"]) == ("analyst.visits", csrf)
    for headers in ({}, {"X-Tacit-CSRF": "x"}):
        forged = place.client.post("/v1/queries", json=QUESTION, headers=headers)
        assert (forged.status_code, forged.json()["error"]["code"]) == (403, "T403")
    assert place.curator.budget("visits").spent().epsilon == 0
    assert place.client.post("/v1/queries", json=QUESTION, headers={"X-Tacit-CSRF": csrf}).status_code == 200
    assert "T403" in {one.code for one in place.access.audit.records()}


def test_the_proof_of_another_login_is_no_proof(place: Clinic) -> None:
    other = login(place, "owner")
    place.client.cookies.clear()
    login(place)
    assert place.client.post("/v1/queries", json=QUESTION, headers={"X-Tacit-CSRF": other}).status_code == 403


def test_a_logout_ends_the_session_everywhere(place: Clinic) -> None:
    csrf = login(place)
    cookie = place.client.cookies["tacit_session"]
    assert place.client.post("/v1/logout", headers={"X-Tacit-CSRF": csrf}).status_code == 204
    assert place.client.get("/v1/me", headers={"Cookie": f"tacit_session={cookie}"}).status_code == 401


def test_wrong_passwords_wait_longer_and_longer(place: Clinic) -> None:
    for _ in range(5):
        found = place.client.post("/v1/login", json={"name": "owner", "password": "wrong"})
        assert (found.status_code, found.json()["error"]["code"]) == (401, "T401")
    found = place.client.post("/v1/login", json={"name": "owner", "password": PASSWORD})
    assert (found.status_code, found.json()["error"]["code"]) == (429, "T402")
    assert int(found.headers["Retry-After"]) >= 1


def test_without_a_provider_there_is_no_other_login(place: Clinic) -> None:
    for path in ("start", "callback"):
        assert place.client.get(f"/v1/oidc/{path}").status_code == 501


def test_a_provider_sends_people_here_by_a_page_of_our_own(place: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(query: dict[str, str], state: str) -> str:
        assert (query["code"], state) == ("c", "kept")
        return "analyst.visits"

    service: Any = SimpleNamespace(
        start=lambda: ("https://login.example/?x", "kept"),
        finish=finish,
        settings=SimpleNamespace(creates_people=False),
    )
    object.__setattr__(place.app.state.server, "oidc", service)
    away = place.client.get("/v1/oidc/start", follow_redirects=False)
    assert (away.status_code, away.headers["location"]) == (307, "https://login.example/?x")
    back = place.client.get("/v1/oidc/callback?code=c", headers={"Cookie": "tacit_oidc=kept"})
    assert back.status_code == 200
    assert 'content="0;url=/"' in back.text
    assert place.client.get("/v1/me").json()["name"] == "analyst.visits"
