"""A job is shown, listed and cancelled only by those who may do so on all of its data sets at that time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.server.access import Grant, Role
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

EPSILONS = itertools.count(100)
MEAN = {
    "function": "mean",
    "arguments": {"values": {"table": "secret", "column": "score"}, "epsilon": 0.5, "rows_per_unit": 1},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Ana has both data sets, and a token that is limited to visits; so has the owner."""
    made = clinic.make(tmp_path_factory.mktemp("clinic"), timing_class_s=0.3)
    made.access.people.add("ana", clinic.PASSWORD)
    for dataset in ("visits", "secret"):
        made.access.people.grant("ana", Grant(Role.ANALYST, dataset))
    made.curator.add_analyst("ana", {one: tacit.Budget(50.0, 1e-7) for one in ("visits", "secret")})
    made.tokens["ana"] = made.access.tokens.create("ana", label="full").text
    for name in ("ana", "owner", "analyst"):
        made.tokens[f"{name} limited"] = made.access.tokens.create(name, label="limited", dataset="visits").text
    with made.client:
        yield made
    made.close()


@pytest.fixture
def withdrawing(place: Clinic) -> Iterator[Clinic]:
    yield place
    place.access.people.grant("ana", Grant(Role.ANALYST, "secret"))


def begin(place: Clinic, who: str, table: str) -> str:
    """Ask a question that was not released before, and return its job."""
    asked = {"sql": f"SELECT COUNT(*) AS n FROM {table}", "epsilon": next(EPSILONS) / 1000, "wait_s": 0}
    found = place.call(who, "POST", "/v1/queries", json=asked)
    assert found.status_code == 202, found.text
    return str(found.json()["job"])


def ended(place: Clinic, who: str, job: str) -> dict[str, Any]:
    for _ in range(200):
        found: dict[str, Any] = place.call(who, "GET", f"/v1/jobs/{job}").json()
        if found["state"] != "running":
            return found
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def assert_absent(place: Clinic, who: str, job: str) -> None:
    """Check that a job is answered as one that does not exist, and is not listed."""
    for method in ("GET", "DELETE"):
        hidden, missing = (place.call(who, method, f"/v1/jobs/{one}") for one in (job, "0" * len(job)))
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text.replace(job, "") == missing.text.replace("0" * len(job), "")
    assert job not in [one["id"] for one in place.call(who, "GET", "/v1/jobs").json()]


@pytest.mark.parametrize("who", ["ana", "owner", "analyst"])
def test_a_token_limited_to_one_data_set_sees_no_job_on_another(place: Clinic, who: str) -> None:
    secret, visits = begin(place, who, "secret"), begin(place, who, "visits")
    limited = f"{who} limited"
    assert_absent(place, limited, secret)
    assert ended(place, who, secret)["state"] == "done", "the limited token has not cancelled it"
    assert_absent(place, limited, secret)
    assert ended(place, limited, visits)["release"]["rows"]
    assert visits in [one["id"] for one in place.call(limited, "GET", "/v1/jobs").json()]
    assert {secret, visits} <= {one["id"] for one in place.call(who, "GET", "/v1/jobs").json()}


def test_a_limited_token_follows_and_cancels_the_jobs_that_it_began(place: Clinic) -> None:
    for who in ("ana limited", "owner limited", "analyst limited"):
        job = begin(place, who, "visits")
        assert place.call(who, "DELETE", f"/v1/jobs/{job}").status_code == 202
        assert ended(place, who, job)["state"] in ("cancelled", "done")


@pytest.mark.parametrize("is_statistic", [False, True])
def test_a_job_is_absent_once_the_grant_is_withdrawn(withdrawing: Clinic, is_statistic: bool) -> None:
    place = withdrawing
    if is_statistic:
        job = place.call("ana", "POST", "/v1/statistics", json={**MEAN, "wait_s": 0}).json()["job"]
    else:
        job = begin(place, "ana", "secret")
    assert place.call("ana", "GET", f"/v1/jobs/{job}").status_code == 200
    place.access.people.withdraw("ana", Grant(Role.ANALYST, "secret"))
    assert_absent(place, "ana", job)
    assert ended(place, "owner", job)["state"] == "done"
    assert_absent(place, "ana", job)


def test_a_job_whose_data_sets_are_unknown_is_shown_where_a_grant_covers_everything(place: Clinic) -> None:
    for who in ("ana", "analyst"):
        job = begin(place, who, "visits")
        ended(place, who, job)
        place.access.database.write(("UPDATE jobs SET datasets = '[]' WHERE id = ?", (job,)))
        assert place.call("owner", "GET", f"/v1/jobs/{job}").status_code == 200
        if who == "ana":
            assert_absent(place, "ana", job)
        else:
            assert place.call(who, "GET", f"/v1/jobs/{job}").status_code == 200
            assert_absent(place, "analyst limited", job)


def test_the_jobs_of_hidden_data_sets_do_not_push_others_out_of_the_list(tmp_path: Path) -> None:
    made = clinic.make(tmp_path)
    with made.client:
        job = begin(made, "analyst.visits", "visits")
        ended(made, "analyst.visits", job)
        made.access.database.write(
            *(
                (
                    "INSERT INTO jobs (id, person, process, state, asked_at_us, changed_at_us, expected_s, "
                    "is_cancelled, document, datasets) SELECT ?, person, process, state, asked_at_us + ?, "
                    "changed_at_us, expected_s, 0, document, '[\"secret\"]' FROM jobs WHERE id = ?",
                    (f"hidden{number}", number + 1, job),
                )
                for number in range(300)
            )
        )
        assert [one["id"] for one in made.call("analyst.visits", "GET", "/v1/jobs").json()] == [job]
    made.close()
