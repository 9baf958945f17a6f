"""What is hidden from a caller is refused with the same work, and in the same time, as what does not exist."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tacit.server.context import Caller
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

WHO = "analyst.visits"
ROUNDS = 25


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = clinic.make(tmp_path_factory.mktemp("clinic"))
    with made.client:
        made.call(WHO, "GET", "/v1/me")  # the first use of a token is noted, and takes a write of its own
        yield made
    made.close()


def asked(sql: str) -> dict[str, Any]:
    return {"json": {"sql": sql, "epsilon": 0.01}}


def column(table: str) -> dict[str, Any]:
    arguments = {"values": {"table": table, "column": "score"}, "epsilon": 0.1}
    return {"json": {"function": "mean", "arguments": arguments}}


def trained(table: str) -> dict[str, Any]:
    facts = {"estimator": "LinearRegression", "features": ["sex"], "target": "score", "epsilon": 0.1}
    return {"json": {"table": table, **facts}}


REQUESTS: dict[str, tuple[str, str, Callable[[str], dict[str, Any]]]] = {
    "table": ("GET", "/v1/tables/{name}", lambda name: {}),
    "refresh": ("POST", "/v1/tables/{name}/refresh", lambda name: {}),
    "preview": ("POST", "/v1/preview", lambda name: asked(f"SELECT COUNT(*) FROM {name}")),
    "explain": ("POST", "/v1/explain", lambda name: asked(f"SELECT COUNT(*) FROM {name}")),
    "query": ("POST", "/v1/queries", lambda name: asked(f"SELECT COUNT(*) FROM {name}")),
    "join": ("POST", "/v1/preview", lambda name: asked(f"SELECT COUNT(*) FROM visits CROSS JOIN {name}")),
    "statistic": ("POST", "/v1/statistics", column),
    "statistic preview": ("POST", "/v1/statistics/preview", column),
    "training": ("POST", "/v1/models", trained),
    "training preview": ("POST", "/v1/models/preview", trained),
    "budget": ("GET", "/v1/budgets/{name}", lambda name: {}),
}


def send(place: Clinic, request: str, name: str) -> int:
    method, path, options = REQUESTS[request]
    return place.call(WHO, method, path.format(name=name), **options(name)).status_code


def work(place: Clinic, monkeypatch: pytest.MonkeyPatch, request: str, name: str) -> tuple[int, int, int]:
    """Return the status of a request, and how often it read and wrote the server's database."""
    counts = {"read": 0, "transaction": 0}
    database = type(place.access.database)
    with monkeypatch.context() as patched:
        for what in counts:
            original = getattr(database, what)

            def counted(*values: Any, _what: str = what, _original: Any = original, **named: Any) -> Any:
                counts[_what] += 1
                return _original(*values, **named)

            patched.setattr(database, what, counted)
        status = send(place, request, name)
    return status, counts["read"], counts["transaction"]


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_hidden_and_the_absent_take_the_same_reads_and_writes(
    place: Clinic, monkeypatch: pytest.MonkeyPatch, request_name: str
) -> None:
    place.call("analyst.secret", "POST", "/v1/preview", **asked("SELECT COUNT(*) FROM secret"))  # its plan is known
    hidden = work(place, monkeypatch, request_name, "secret")
    absent = work(place, monkeypatch, request_name, "absent")
    assert hidden == absent
    assert hidden[0] == 404
    assert hidden[2] >= 1, "the refusal is not on record"


@pytest.mark.parametrize("path", ["/v1/jobs/{}", "/v1/releases/{}"])
def test_jobs_and_answers_of_others_take_the_same_reads_and_writes(
    place: Clinic, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    question = asked("SELECT COUNT(*) AS n FROM secret")["json"]
    made = place.call("analyst.secret", "POST", "/v1/queries", json={**question, "wait_s": 0})
    if path.startswith("/v1/jobs"):
        name = made.json()["job"]
        while place.call("analyst.secret", "GET", f"/v1/jobs/{name}").json()["state"] == "running":
            time.sleep(0.01)  # a job that runs writes that it is alive
    else:
        name = place.call("analyst.secret", "POST", "/v1/queries", json={**question, "epsilon": 0.02}).json()["permit"]
    monkeypatch.setitem(REQUESTS, "other", ("GET", path.replace("{}", "{name}"), lambda one: {}))
    assert work(place, monkeypatch, "other", name) == work(place, monkeypatch, "other", "0" * len(name))


def test_a_question_with_thousands_of_absent_names_is_recorded_in_few_writes(
    place: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ", ".join(f"absent{number}" for number in range(300))
    monkeypatch.setitem(
        REQUESTS, "many", ("POST", "/v1/preview", lambda name: asked(f"SELECT COUNT(*) FROM {names}, {name}"))
    )
    _, _, writes = work(place, monkeypatch, "many", "secret")
    assert writes <= 11
    assert "secret" in {one.resource.table for one in place.access.audit.records(1, 1000)}


SHADOWED = (
    "SELECT COUNT(*) FROM {} WHERE 1 IN (WITH {} AS (SELECT age AS x FROM visits) SELECT x FROM {})",
    "SELECT COUNT(absent) FROM {} JOIN (WITH {} AS (SELECT age AS x FROM visits) SELECT x FROM {}) AS y ON 1 = 1",
    "WITH a AS (SELECT absent FROM {}), {} AS (SELECT age FROM visits) SELECT COUNT(*) FROM a",
    "WITH a AS (SELECT score FROM {}), {} AS (SELECT age FROM visits) SELECT COUNT(*) FROM a",
)


@pytest.mark.parametrize("sql", SHADOWED, ids=range(len(SHADOWED)))
def test_a_hidden_table_is_not_found_behind_a_subquery_of_its_name(place: Clinic, sql: str) -> None:
    def refusal(name: str) -> tuple[int, str]:
        response = place.call(WHO, "POST", "/v1/preview", **asked(sql.replace("{}", name)))
        return response.status_code, response.json()["error"]["message"].replace(name, "NAME")

    place.call("owner", "POST", "/v1/preview", **asked(sql.replace("{}", "secret")))  # a plan of it may be known
    assert refusal("secret") == refusal("hidden")
    assert refusal("secret")[0] == 404
    assert "score" not in refusal("secret")[1]


def ratio(place: Clinic, request: str) -> tuple[float, float]:
    """Return the median time of a hidden name over that of an absent one, asked for in turns, and the latter."""
    taken: dict[str, list[float]] = {"secret": [], "absent": []}
    for number in range(ROUNDS):
        for name in ("secret", "absent") if number % 2 else ("absent", "secret"):
            begun = time.perf_counter()
            send(place, request, name)
            taken[name].append(time.perf_counter() - begun)
    absent_s = statistics.median(taken["absent"])
    return statistics.median(taken["secret"]) / absent_s, absent_s


@pytest.mark.parametrize("request_name", ["table", "query"])
def test_times_do_not_tell_the_hidden_from_the_absent(
    place: Clinic, monkeypatch: pytest.MonkeyPatch, request_name: str
) -> None:
    # medians of alternating requests drift together; beyond the bounds three times means other work
    found = [ratio(place, request_name) for _ in range(3)]
    assert any(0.7 < one < 1.4 for one, _ in found), found
    note, delay_s = Caller.record, 2 * max(absent_s for _, absent_s in found)

    def slow(self: Caller, action: Any, resource: Any) -> None:
        if resource.dataset is not None:
            time.sleep(delay_s)
        note(self, action, resource)

    monkeypatch.setattr(Caller, "record", slow)
    slower = [ratio(place, request_name)[0] for _ in range(3)]
    assert not any(0.7 < one < 1.4 for one in slower), "a slower refusal of the hidden was not seen"


def test_refusals_of_access_are_recorded_and_those_for_budget_and_sql_are_not(place: Clinic) -> None:
    def recorded(sql: str, epsilon: float) -> tuple[str, int]:
        before = sum(one.count for one in place.access.audit.records(1, 1000))
        response = place.call(WHO, "POST", "/v1/queries", json={"sql": sql, "epsilon": epsilon})
        after = sum(one.count for one in place.access.audit.records(1, 1000))
        return response.json()["error"]["code"], after - before

    assert recorded("SELECT * FROM visits", 0.01) == ("T203", 0)
    assert recorded("SELECT COUNT(*) FROM visits", 1e6) == ("T300", 0)
    assert recorded("SELECT COUNT(*) FROM secret", 0.01) == ("T131", 1)
