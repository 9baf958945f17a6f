"""What analysts see of one another: totals of the data sets they may ask about, and nothing of who asked what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tacit
from tacit.server.access import Grant, Role
from tests.unit.server import clinic
from tests.unit.server.cases import finding_of
from tests.unit.server.clinic import Clinic

NAME, PURPOSE, REASON, LABEL = "zelda", "why zelda asks", "what zelda needs", "zeldas laptop"
CURIOUS = {"analyst": 12, "analyst.visits": 12, "analyst.labs": 11, "known": 6}
"""Who reads, and how many addresses are at least open to them."""
EPSILON = 0.123456
ARGUMENTS = {"values": {"table": "visits", "column": "age"}, "epsilon": EPSILON, "rows_per_unit": 1, "purpose": PURPOSE}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Clinic, dict[str, str]]]:
    place = clinic.make(tmp_path_factory.mktemp("clinic"))
    place.access.people.add(NAME, clinic.PASSWORD)
    place.access.people.grant(NAME, Grant(Role.ANALYST, "visits"))
    place.curator.add_analyst(NAME, {"visits": tacit.Budget(1.0, 1e-8)})
    made = place.access.tokens.create(NAME, label=LABEL)
    place.tokens[NAME] = made.text
    with place.client:
        sql = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": EPSILON, "purpose": PURPOSE}
        paid = place.call(NAME, "POST", "/v1/queries", json=sql).json()
        place.call(NAME, "POST", "/v1/statistics", json={"function": "mean", "arguments": ARGUMENTS})
        later = {**sql, "sql": "SELECT SUM(age) AS s FROM visits", "wait_s": 0}
        job = place.call(NAME, "POST", "/v1/queries", json=later).json()["job"]
        more = {"dataset": "visits", "epsilon": 1.0, "reason": REASON}
        request = place.call(NAME, "POST", "/v1/requests", json=more).json()["id"]
        kept = place.curator.keep_finding(finding_of(paid["permit"], assumptions=(PURPOSE,)), by=NAME)
        stated = {"rows_per_unit": 1, "target_bounds": [0, 90]}
        columns = {"table": "visits", "features": ["sex"], "target": "age"}
        learnt = {**columns, "estimator": "LinearRegression", "parameters": stated, "purpose": PURPOSE}
        learnt["epsilon"] = EPSILON
        model = place.call(NAME, "POST", "/v1/models", json=learnt).json()["model"]["id"]
        known = {"permit": paid["permit"], "job": job, "request": request, "token_id": made.id, "finding": kept.id}
        known["model"] = model
        yield place, known
    place.close()


def paths(place: Clinic, known: dict[str, str]) -> Iterator[str]:
    """Yield every address that can be read, about what the other person did where it is about one thing."""
    given = {**known, "dataset": "visits", "name": "visits", "first": "1"}
    for path, methods in place.app.openapi()["paths"].items():
        if "get" in methods and "oidc" not in path:
            whole = path
            for name, value in given.items():
                whole = whole.replace(f"{{{name}}}", value)
            assert "{" not in whole, path
            yield whole
    yield f"/v1/budgets/visits?analyst={NAME}"
    yield f"/v1/budgets/visits/report?analyst={NAME}"


@pytest.mark.parametrize("who", CURIOUS)
def test_nothing_that_an_analyst_can_read_tells_who_else_asked_what(
    seen: tuple[Clinic, dict[str, str]], who: str
) -> None:
    place, known = seen
    read = 0
    for path in paths(place, known):
        found = place.call(who, "GET", path)
        read += found.status_code == 200
        for secret in (PURPOSE, REASON, LABEL, str(EPSILON), *([NAME] if found.status_code == 200 else [])):
            assert secret not in found.text, (path, found.text)  # a refusal repeats the name that was asked for
    assert read >= CURIOUS[who]


def test_a_report_lists_the_events_of_all_to_those_who_keep_the_budget_alone(
    seen: tuple[Clinic, dict[str, str]],
) -> None:
    place, _ = seen

    def report(who: str, query: str = "") -> dict[str, Any]:
        found: dict[str, Any] = place.call(who, "GET", f"/v1/budgets/visits/report{query}").json()
        return found

    for who in ("owner", "curator.visits", "auditor.visits"):
        assert any(str(EPSILON)[:6] in one["event"] for one in report(who)["events"])
    hidden = report("analyst.visits")
    assert (hidden["events"], hidden["unlisted"], hidden["bound"], hidden["meaning"]) == ([], 0, None, None)
    assert hidden["spent"] == report("owner")["spent"]
    assert report(NAME, f"?analyst={NAME}")["events"]


@pytest.mark.parametrize("epsilon", [200.0, 5_000.0])
def test_a_refusal_for_budget_names_nobody_else(seen: tuple[Clinic, dict[str, str]], epsilon: float) -> None:
    place, _ = seen
    asked = {"sql": "SELECT SUM(age) AS s FROM visits", "epsilon": epsilon}
    refused = place.call("analyst.visits", "POST", "/v1/queries", json=asked)
    assert refused.status_code == 402
    assert NAME not in refused.text
