"""Questions that outlast their request: shown, finished, cancelled, and lost with their process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.privacy.errors import Cancelled
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Clinic]:
    made = clinic.make(tmp_path)
    with made.client:
        yield made
    made.close()


@pytest.fixture
def slow(place: Clinic, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    """A place whose engine takes its time, and can be stopped."""
    engine = place.curator.engines.engine(("duckdb", ""))
    run, stopped = engine.run, set()
    cancel = place.curator.cancel

    def slowly(*arguments: Any, **settings: Any) -> Any:
        until_s = time.monotonic() + 3.0
        while time.monotonic() < until_s:
            if threading.get_ident() in stopped:
                raise Cancelled("stopped")
            time.sleep(0.02)
        return run(*arguments, **settings)

    def stop(thread: int | None = None) -> None:
        stopped.add(thread)
        cancel(thread)

    monkeypatch.setattr(engine, "run", slowly)
    monkeypatch.setattr(place.app.state.server.jobs, "_stop", stop)
    return place


def begin(place: Clinic, who: str = "analyst.visits", epsilon: float = 0.5) -> str:
    question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": epsilon, "wait_s": 0}
    found = place.call(who, "POST", "/v1/queries", json=question)
    assert found.status_code == 202
    assert found.headers["Location"] == f"/v1/jobs/{found.json()['job']}"
    return str(found.json()["job"])


def followed(place: Clinic, job: str, who: str = "analyst.visits") -> dict[str, Any]:
    for _ in range(1200):
        found: dict[str, Any] = place.call(who, "GET", f"/v1/jobs/{job}").json()
        if found["state"] != "running":
            return found
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def test_a_job_ends_with_the_answer_that_asking_again_gives(place: Clinic) -> None:
    found = followed(place, begin(place))
    assert found["state"] == "done"
    question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5}
    again = place.call("analyst.visits", "POST", "/v1/queries", json=question).json()
    assert again["rows"] == found["release"]["rows"]
    assert again["cost"]["epsilon"] == 0
    kept = place.call("analyst.visits", "GET", f"/v1/releases/{found['release']['permit']}").json()
    assert kept["rows"] == again["rows"]


def test_a_job_that_fails_says_why(place: Clinic) -> None:
    job = begin(place, epsilon=90.0)
    followed(place, job)
    found = followed(place, begin(place, epsilon=91.0))
    assert (found["state"], found["error"]["code"]) == ("failed", "T300")


def test_a_job_is_cancelled_and_its_charge_stands(slow: Clinic) -> None:
    before = slow.curator.budget("visits").spent().epsilon
    job = begin(slow)
    time.sleep(0.3)
    assert slow.call("analyst.visits", "GET", f"/v1/jobs/{job}").json()["state"] == "running"
    assert slow.call("analyst.visits", "DELETE", f"/v1/jobs/{job}").status_code == 202
    assert followed(slow, job)["state"] == "cancelled"
    assert slow.curator.budget("visits").spent().epsilon == pytest.approx(before + 0.5)


MEAN = {
    "function": "mean",
    "arguments": {"values": {"table": "visits", "column": "age"}, "epsilon": 0.5, "rows_per_unit": 2},
}


@pytest.mark.parametrize(
    ("path", "asked"),
    [("/v1/queries", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5}), ("/v1/statistics", MEAN)],
)
@pytest.mark.parametrize("keys", [(None, None), ("k1", "k2"), (None, "k2")])
def test_asking_again_while_the_first_runs_as_a_job_is_not_charged_again(
    slow: Clinic, path: str, asked: dict[str, Any], keys: tuple[str | None, str | None]
) -> None:
    first, second = ({} if key is None else {"Idempotency-Key": key} for key in keys)
    job = slow.call("analyst.visits", "POST", path, json=asked | {"wait_s": 0}, headers=first).json()["job"]
    assert slow.call("analyst.visits", "POST", path, json=asked | {"wait_s": 0}, headers=second).json()["job"] == job
    again = slow.call("analyst.visits", "POST", path, json=asked, headers=second).json()
    found = followed(slow, job)["release"]
    assert again == found
    for analyst in (None, "analyst.visits"):
        assert slow.curator.budget("visits", analyst).spent().epsilon == pytest.approx(0.5)


def test_a_request_joins_no_run_of_older_rows_nor_one_that_is_being_cancelled(
    slow: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5, "wait_s": 0}

    def begun() -> str:
        return str(slow.call("analyst.visits", "POST", "/v1/queries", json=asked).json()["job"])

    first = begun()
    assert begun() == first
    versions = slow.curator.engines.versions()
    with monkeypatch.context() as patched:
        patched.setattr(type(slow.curator.engines), "versions", lambda _self: {**versions, "visits": "newer"})
        assert begun() != first
    slow.call("analyst.visits", "DELETE", f"/v1/jobs/{first}")
    time.sleep(1.2)  # the flag is read twice a second
    assert begun() != first
    for job in slow.call("analyst.visits", "GET", "/v1/jobs").json():
        followed(slow, job["id"])


def test_a_statistic_with_a_key_is_charged_once_and_its_key_buys_nothing_else(place: Clinic) -> None:
    def ask(who: str, column: str = "age") -> Any:
        arguments = MEAN["arguments"] | {"values": {"table": "visits", "column": column}, "bounds": [0, 91]}  # type: ignore[operator]
        asked = {"function": "mean", "arguments": arguments}
        return place.call(who, "POST", "/v1/statistics", json=asked, headers={"Idempotency-Key": "k"})

    first, second = (ask("analyst.visits") for _ in range(2))
    assert first.json()["value"] == second.json()["value"]
    assert place.curator.budget("visits").spent().epsilon == pytest.approx(0.5)
    reused = ask("analyst.visits", "patient_id")
    assert (reused.status_code, reused.json()["error"]["code"]) == (409, "T122")
    assert ask("analyst", "patient_id").status_code == 200


def test_a_job_that_waits_for_its_turn_is_cancelled_at_no_charge(slow: Clinic) -> None:
    each = slow.settings.limits.running_each
    running = [begin(slow, epsilon=0.1 + number / 100) for number in range(each)]
    waiting = begin(slow, epsilon=0.7)
    slow.call("analyst.visits", "DELETE", f"/v1/jobs/{waiting}")
    assert followed(slow, waiting)["state"] == "cancelled"
    for job in running:
        assert followed(slow, job)["state"] == "done"
    expected = sum(0.1 + number / 100 for number in range(each))
    assert slow.curator.budget("visits").spent().epsilon == pytest.approx(expected)


def test_jobs_of_others_are_not_there(place: Clinic) -> None:
    job = begin(place)
    missing = place.call("analyst", "GET", "/v1/jobs/0000").json()["error"]
    hidden = place.call("analyst", "GET", f"/v1/jobs/{job}").json()["error"]
    assert hidden["message"].replace(job, "0000") == missing["message"]
    assert place.call("analyst", "DELETE", f"/v1/jobs/{job}").status_code == 404
    assert place.call("analyst", "GET", "/v1/jobs").json() == []
    assert [one["id"] for one in place.call("owner", "GET", "/v1/jobs").json()] == [job]


def test_a_job_whose_process_died_is_lost(place: Clinic) -> None:
    job = begin(place)
    followed(place, job)
    long_ago_us = time.time_ns() // 1000 - 60_000_000
    place.access.database.write(
        ("UPDATE jobs SET state = 'running', changed_at_us = ? WHERE id = ?", (long_ago_us, job))
    )
    assert place.call("analyst.visits", "GET", f"/v1/jobs/{job}").json()["state"] == "lost"
