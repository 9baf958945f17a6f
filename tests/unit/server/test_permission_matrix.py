"""Every request by everybody: the verdict is the matrix's, every refusal is on record, and nothing changed by it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import httpx
import pytest

from tacit.server import context
from tacit.server.access import Action, Role, roles
from tests.unit.server import matrix
from tests.unit.server.cases import ABSENT, Call, World
from tests.unit.server.clinic import NOBODY, PEOPLE, Clinic

EVERYBODY = (*PEOPLE, NOBODY)
ROWS = matrix.rows()
REFUSED = {"401", "403", "404"}
BLIND = ("/v1/people", "/v1/budgets", "/v1/findings", "/v1/releases/", "/v1/jobs/")
"""Where 403 is said before anything is looked up, so that it must not tell either what is there."""
CHANGES_BY_READING = {"audit", "failures"}


@pytest.fixture(scope="module")
def world(clinic_place: Clinic) -> World:
    cap = clinic_place.curator.budget("visits", "known").cap
    clinic_place.curator.ledger.create_caps("somebody", {"visits": cap})
    return World(clinic_place)


@pytest.mark.parametrize("request_", ROWS)
def test_everybody_gets_what_the_matrix_says(world: World, request_: str) -> None:
    assert list(differences(world, request_)) == []


def test_the_matrix_has_every_request_of_the_application(clinic_place: Clinic) -> None:
    stated = {tuple(request.split(" ")[:2]) for request in ROWS}
    assert set(endpoints(clinic_place.app.routes)) - stated == set()


def test_the_matrix_has_a_cell_for_everybody() -> None:
    assert {len(cells) for cells in ROWS.values()} == {len(EVERYBODY)}


def test_a_door_left_open_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context.Caller, "require", lambda *_: None)
    for request in ("GET /v1/audit", "POST /v1/budgets/{dataset}/analysts secret", "POST /v1/queries secret"):
        assert any(differences(world, request)), request


def test_an_auditor_who_reads_answers_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = roles.RULES[Action.RELEASE_READ]
    wider = roles.PermissionRule(rule.kind, {**rule.reach, Role.AUDITOR: roles.Reach.ALL}, rule.of_part)
    monkeypatch.setattr(roles, "RULES", {**roles.RULES, Action.RELEASE_READ: wider})
    assert any(differences(world, "GET /v1/releases/{permit} another's"))


def test_an_analyst_who_reads_findings_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = roles.RULES[Action.FINDING_READ]
    wider = roles.PermissionRule(rule.kind, {**rule.reach, Role.ANALYST: roles.Reach.ALL}, rule.of_part)
    monkeypatch.setattr(roles, "RULES", {**roles.RULES, Action.FINDING_READ: wider})
    assert any(differences(world, "GET /v1/findings/{finding} visits"))


def test_a_refusal_without_record_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context.Caller, "record", lambda *_: None)
    assert any(differences(world, "GET /v1/jobs/{job} another's"))


def differences(world: World, request: str) -> Iterator[str]:
    """Yield what is not as the matrix says."""
    for who, cell in zip(EVERYBODY, ROWS[request], strict=True):
        call = world.call(request, who)
        before, noted = state(world), recorded(world)
        response = send(world, who, call)
        if str(response.status_code) != cell.replace(matrix.MISSING, "404"):
            yield f"{who}: {response.status_code} instead of {cell}: {response.text[:200]}"
        elif cell in REFUSED:
            if recorded(world) == noted:
                yield f"{who}: not on record"
            if state(world) != before:
                yield f"{who}: something changed"
            if call.target and (cell == "404" or (cell == "403" and call.path.startswith(BLIND))):
                yield from told(world, who, call, response)


def told(world: World, who: str, call: Call, response: httpx.Response) -> Iterator[str]:
    """Yield what a refusal tells about the thing beside a request about nothing."""
    other = send(world, who, call.about_nothing())
    texts = [masked(found.text, who, name) for found, name in ((response, call.target), (other, ABSENT))]
    if (response.status_code, texts[0]) != (other.status_code, texts[1]) or headers(response) != headers(other):
        yield f"{who}: tells that it is there: {texts[0]} but {other.status_code} {texts[1]}"


def masked(text: str, who: str, target: str) -> str:
    """Return an answer without the caller's name and without the name that she asked for."""
    for name in (who, target):
        text = re.sub(rf"\b{re.escape(name)}\b", "it", text)
    return text


def headers(response: httpx.Response) -> Mapping[str, str]:
    return {name: value for name, value in response.headers.items() if name != "content-length"}


def send(world: World, who: str, call: Call) -> httpx.Response:
    world.clinic.client.cookies.clear()
    return world.clinic.call(who, call.method, call.path, json=call.body)


def recorded(world: World) -> int:
    """How many refusals are on record."""
    return int(world.server.database.read("SELECT COALESCE(SUM(count), 0) FROM audit WHERE code <> 'done'")[0][0])


def state(world: World) -> tuple[Any, ...]:
    """Whatever a request could have changed."""
    database = world.server.database
    names = [row[0] for row in database.read("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {}
    for name in (one for one in names if one not in CHANGES_BY_READING and not one.startswith("sqlite")):
        columns = [row[0] for row in database.read(f"SELECT name FROM pragma_table_info('{name}')")]
        kept = ", ".join(one for one in columns if one != "used_at_us")
        rows[name] = database.read(f"SELECT {kept} FROM {name}")
    return world.clinic.curator.ledger.head(), world.clinic.curator.catalog.text, rows


def endpoints(routes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield the method and path of every route, those of included routers, too."""
    for route in routes:
        if (included := getattr(route, "original_router", None)) is not None:
            yield from endpoints(included.routes)
        else:
            yield from ((method, route.path) for method in route.methods - {"HEAD"})
