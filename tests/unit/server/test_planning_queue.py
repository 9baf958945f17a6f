"""Planning has few threads of its own: one person's previews neither fill them nor those of light requests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tacit.curator.query_service import QueryService
from tacit.privacy.errors import NotAllowed
from tacit.server.settings import ServerLimits
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

FLOOD = 60
"""More than the threads that light requests have."""
WHO = "analyst.visits"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    limits = ServerLimits(planning=2, planning_each=1, waiting_each=10)
    made = clinic.make(tmp_path_factory.mktemp("clinic"), limits=limits)
    with made.client:
        yield made
    made.close()


@pytest.mark.parametrize("path", ["/v1/preview", "/v1/explain", "/v1/queries"])
def test_a_flood_of_large_questions_leaves_others_their_threads(
    place: Clinic, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    gate, running, most = threading.Event(), Counter[str](), Counter[str]()
    lock, plan = threading.Lock(), QueryService.plan

    def slow(self: QueryService, asked: Any) -> Any:
        who = asked.release_options.purpose
        with lock:
            running[who] += 1
            most[who] = max(most[who], running[who])
        try:
            if who == WHO:
                gate.wait(20)
                raise NotAllowed("it took long", accepted="ask for less")
            return plan(self, asked)
        finally:
            with lock:
                running[who] -= 1

    monkeypatch.setattr(QueryService, "plan", slow)

    def ask(name: str) -> int:
        body = {"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.1, "purpose": name}
        return place.call(name, "POST", path, json=body).status_code

    place.call(WHO, "GET", "/v1/me")
    with ThreadPoolExecutor(FLOOD + 3) as threads:
        flood = [threads.submit(ask, WHO) for _ in range(FLOOD)]
        try:
            light = threads.submit(place.call, "analyst", "GET", "/v1/me")
            assert light.result(10).status_code == 200
            assert threads.submit(place.call, "analyst", "GET", "/v1/budgets").result(10).status_code == 200
            assert threads.submit(ask, "analyst").result(10) == 200, "another's question waits for the flood"
        finally:
            gate.set()
        statuses = Counter(one.result(30) for one in flood)
    assert set(statuses) == {422, 429}
    assert statuses[422] <= 11, "more were planned than may wait"
    assert most[WHO] == 1
