"""Stored answers have a quota, which is asked before the charge; copies of them are pruned, the oldest first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.privacy.errors import AnswersFull
from tacit.server.database import Database, open_database
from tacit.server.quotas import GRACE_S, PRUNED_PART, AnswerQuota, Pruning, Usage
from tacit.server.settings import ServerLimits
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

MIB = 2**20
LIMITS = ServerLimits(answer_bytes_each=MIB, answer_bytes=4 * MIB)
WHO = "analyst.visits"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Clinic]:
    made = clinic.make(tmp_path / "clinic", limits=LIMITS)
    with made.client:
        yield made
    made.close()


def ask(place: Clinic, number: int, who: str = WHO, **options: Any) -> httpx.Response:
    """Ask for an answer of some 200 kB, each time another."""
    keys = {"s": [f"{number} {one} {'x' * 3_500}" for one in range(60)]}
    sql = "SELECT sex || '' AS s, COUNT(*) AS n FROM visits GROUP BY sex || ''"
    body = {"sql": sql, "epsilon": 1e-6, "keys": keys, **options}
    return place.call(who, "POST", "/v1/queries", json=body)


def stored(place: Clinic, who: str = WHO) -> int:
    usage = place.app.state.server.quota.usage()
    return usage[who].bytes if who in usage else 0


def fill(place: Clinic, who: str = WHO) -> int:
    """Ask until the quota refuses, and return how many answers fitted."""
    for number in range(100):
        response = ask(place, number, who)
        if response.status_code != 200:
            assert (response.status_code, response.json()["error"]["code"]) == (507, "T713"), response.text
            return number
    raise AssertionError("no quota refuses")


def test_answers_fill_a_persons_quota_and_no_more(place: Clinic) -> None:
    fitted = fill(place)
    assert fitted >= 2
    assert 0 < stored(place) <= MIB
    head = place.curator.ledger.head().number
    spent = place.curator.budget("visits", WHO).spent()
    assert ask(place, 500).status_code == 507
    assert place.curator.ledger.head().number == head, "something was charged"
    assert place.curator.budget("visits", WHO).spent() == spent
    assert ask(place, 0).status_code == 200, "what was released before is refused"
    assert ask(place, 0, "analyst").status_code == 200, "and to another, at no cost"
    assert ask(place, 600, "analyst").status_code == 200, "another has a quota of her own"
    small = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01}
    assert place.call(WHO, "POST", "/v1/queries", json=small).status_code == 200, "a small answer still fits"


def test_statistics_count_too(place: Clinic) -> None:
    fill(place)
    before = stored(place)
    column = {"table": "visits", "column": "age"}
    arguments = {"values": column, "epsilon": 0.01, "rows_per_unit": 1}
    answer = place.call(WHO, "POST", "/v1/statistics", json={"function": "mean", "arguments": arguments})
    assert answer.status_code == 200, answer.text
    assert stored(place) > before
    arguments = {"values": column, "epsilon": 0.01, "rows_per_unit": 1, "bins": 10_000}
    large = place.call(WHO, "POST", "/v1/statistics", json={"function": "histogram", "arguments": arguments})
    assert (large.status_code, large.json()["error"]["code"]) == (507, "T713"), large.text


def test_everybody_together_has_a_quota(place: Clinic) -> None:
    quota = place.app.state.server.quota
    for name in (None, None, "ana", "bo"):
        quota.settle(quota.reserve(name, MIB - 1), MIB - 1)
    for name in (None, "cy"):
        with pytest.raises(AnswersFull, match=r"limits\.answer_bytes$"):
            quota.reserve(name, 5)
    assert quota.usage()[""].bytes > MIB, "who keeps budgets has the quota of all"
    page = place.call("owner", "GET", "/metrics").text
    (line,) = [one for one in page.splitlines() if one.startswith("tacit_answer_bytes ")]
    assert float(line.split()[1]) == 4 * (MIB - 1)
    assert ask(place, 0, "owner").status_code == 507


def test_a_run_that_fails_or_is_refused_gives_its_bytes_back(place: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("tacit.query.release_plan.run", lambda *values, **named: 1 / 0)
        assert ask(place, 1).status_code == 503
    assert ask(place, 2, epsilon=1e9).status_code == 402
    assert stored(place) == 0
    assert place.access.database.read("SELECT * FROM answer_reservations") == []


def test_threads_together_stay_below_the_quota(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    quota = AnswerQuota(database, LIMITS)

    def one(_number: int) -> int:
        try:
            place = quota.reserve("ana", MIB // 5)
        except AnswersFull:
            return 0
        quota.settle(place, MIB // 6)
        return 1

    with ThreadPoolExecutor(8) as threads:
        fitted = sum(threads.map(one, range(40)))
    assert quota.usage()["ana"].bytes == fitted * (MIB // 6)
    assert 4 <= fitted <= 5
    database.close()


def test_what_a_dead_process_reserved_is_free_again_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(tmp_path)
    quota = AnswerQuota(database, LIMITS)
    quota.reserve("ana", MIB)
    with pytest.raises(AnswersFull):
        quota.reserve("ana", 1)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + int((LIMITS.question_s + GRACE_S + 1) * 1e9))
    quota.settle(quota.reserve("ana", MIB), MIB)
    assert quota.usage()["ana"].bytes == MIB
    database.close()


def test_documents_are_pruned_the_oldest_first(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    pruning, size = Pruning("releases", LIMITS), MIB // 10
    for number in range(100):
        person = f"person{number % 8}"
        with database.transaction() as execute:
            execute(
                "INSERT INTO releases (permit, person, datasets, asked_at_us, document, bytes) VALUES (?,?,?,?,?,?)",
                (f"p{number:03}", person, "[]", number, "{}", size),
            )
            pruning.prune(execute, person, size)
    kept = [row[0] for row in database.read("SELECT permit FROM releases ORDER BY asked_at_us")]
    assert kept == [f"p{number:03}" for number in range(100 - len(kept), 100)]
    assert 30 <= len(kept) <= 40
    database.close()


def put_job(database: Database, pruning: Pruning, person: str, number: int, size: int, state: str = "done") -> None:
    with database.transaction() as execute:
        execute(
            "INSERT INTO jobs (id, person, process, state, asked_at_us, changed_at_us, expected_s, is_cancelled, "
            "document, bytes) VALUES (?, ?, 'p', ?, ?, ?, 1, 0, '{}', ?)",
            (f"{person}{number}", person, state, number, number, size),
        )
        pruning.prune(execute, person, size)


def test_each_person_keeps_documents_of_her_own_limit_and_no_running_job_is_pruned(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    limits = ServerLimits(answer_bytes_each=MIB, answer_bytes=100 * MIB)
    pruning, size = Pruning("jobs", limits), MIB // 200
    put_job(database, pruning, "a", 0, 0, "running")
    for number in range(1, 601):
        put_job(database, pruning, "a", number, size)
        if number % 3 == 0:
            put_job(database, pruning, "b", number, 4 * size)
    taken = dict(database.read("SELECT person, SUM(bytes) FROM jobs GROUP BY person"))
    assert all(0.9 * MIB < one < 1.1 * MIB for one in taken.values()), taken
    assert database.read("SELECT id FROM jobs WHERE state = 'running'") == [("a0",)]
    database.close()


def test_a_pruned_release_is_said_to_cost_nothing_to_ask_again(place: Clinic) -> None:
    permit = ask(place, 0).json()["permit"]
    place.access.database.write(("DELETE FROM releases WHERE permit = ?", (permit,)))
    gone = place.call(WHO, "GET", f"/v1/releases/{permit}")
    assert gone.status_code == 404
    assert "costs nothing" in gone.json()["error"]["message"]


def test_what_is_set_apart_counts_until_its_question_has_timed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(tmp_path)
    quota, now = AnswerQuota(database, LIMITS), time.time_ns()
    quota.reserve("ana", MIB)
    monkeypatch.setattr(time, "time_ns", lambda: now + int((LIMITS.question_s + GRACE_S - 5) * 1e9))
    with pytest.raises(AnswersFull):
        quota.reserve("ana", 1)
    database.close()


def test_a_quota_is_full_to_the_byte_and_counts_what_was_stored(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    quota = AnswerQuota(database, LIMITS)
    for name in ("ana", "bo", "cy"):
        quota.settle(quota.reserve(name, MIB), MIB)
    last = quota.reserve(None, MIB)
    with pytest.raises(AnswersFull):
        quota.reserve(None, 1)
    quota.settle(last, 7)
    quota.settle(last, 9)  # a reservation that is settled, or was dropped, counts nothing more
    quota.settle(quota.reserve(None, 5), 5)
    quota.settle(quota.reserve(None, 5), 0)
    assert quota.usage()[""] == Usage(12, 2)
    assert quota.usage()["ana"] == Usage(MIB, 1)
    database.close()


def test_documents_are_looked_through_when_a_part_of_the_limit_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, looked = open_database(tmp_path), list[str]()
    pruning = Pruning("releases", LIMITS)
    monkeypatch.setattr(Pruning, "_remove", lambda _self, _execute, where, *_: looked.append(where))
    part = MIB // PRUNED_PART
    with database.transaction() as execute:
        for person, size in (("ana", 1), ("ana", part), ("ana", 1), ("ana", part), ("bo", 1), ("bo", 1)):
            pruning.prune(execute, person, size)
            looked.append("|")
    # whoever is seen first, then nothing until more than the part was written since
    assert looked == [
        *(" AND person = ?", "", "|"),
        "|",
        *(" AND person = ?", "", "|"),
        "|",
        *(" AND person = ?", "", "|"),
        "|",
    ]
    monkeypatch.setattr("tacit.server.quotas.COUNTED_MAX", 2)
    with database.transaction() as execute:
        pruning.prune(execute, "cy", 1)
    assert set(pruning._added) == {"cy"}, "people who were seen are remembered without end"
    database.close()


def test_documents_that_fill_their_limit_to_the_byte_are_kept(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    pruning = Pruning("jobs", LIMITS)
    for number in range(3):
        put_job(database, pruning, "ana", number, MIB // 2)
    assert database.read("SELECT id FROM jobs ORDER BY id") == [("ana1",), ("ana2",)]
    database.close()
