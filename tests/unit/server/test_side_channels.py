"""What a caller sees of an answer beside its numbers does not depend on the rows.

Two clinics, one with 50 times as many rows: statuses, headers, forms and kinds of errors are equal, and the moment of
an answer is decided by its plan. The engine is made slow by hand, and classes are compared, not times on the wall.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tacit import stats
from tacit.privacy.errors import EngineFailed
from tacit.query import release_plan
from tacit.query.row_limits import STORED_ROWS
from tacit.server import jobs
from tacit.server.jobs import STEP_S, ResponseClock, class_of, doubled, padded_s
from tacit.stats.releases import StatisticRelease
from tests.support.statistic_calls import CALLS, PRICE
from tests.unit.server import clinic
from tests.unit.server.clinic import ROWS, Clinic

CLASS_S = 0.01
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1.0},
    {"sql": "SELECT sex, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY sex", "epsilon": 1.0},
    {"sql": "SELECT sex, SUM(value) AS s FROM labs WHERE value > 3 GROUP BY sex", "rho": 0.1},
    {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age > 1000", "epsilon": 0.5},
    {"sql": "SELECT age FROM visits", "epsilon": 0.5},
    {"sql": "SELECT COUNT(*) FROM secret", "epsilon": 0.5},
    {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 10_000.0},
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Clinic, Clinic]]:
    made = [
        clinic.make(tmp_path_factory.mktemp("clinic") / str(rows), timing_class_s=CLASS_S, rows=rows)
        for rows in (ROWS, 50 * ROWS)
    ]
    with made[0].client, made[1].client:
        yield made[0], made[1]
    for one in made:
        one.close()


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_the_form_of_an_answer_does_not_depend_on_the_rows(both: tuple[Clinic, Clinic], question: Any) -> None:
    seen = [form(place.call("analyst.visits", "POST", "/v1/queries", json=question)) for place in both]
    assert seen[0] == seen[1]


def form(response: Any) -> Any:
    """Return what is not a number of an answer: status, headers, shape, and the size without numbers and permits."""
    document = response.json()
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    size = len(re.sub(r"\d+-[0-9a-f]{16}|-?\d+(\.\d+)?(e[+-]?\d+)?", "0", response.text))
    if "error" in document:
        return response.status_code, headers, size, document["error"]["code"], document["error"]["message"]
    shape = [list(row) for row in document["rows"]]
    return response.status_code, headers, size, document["columns"], shape, document["card"], document["cost"]


@pytest.mark.parametrize("slow_s", [0.0, 0.004, 0.013, 0.03])
@pytest.mark.parametrize("fails", [False, True])
def test_an_answer_or_failure_comes_at_the_end_of_its_class(
    both: tuple[Clinic, Clinic], monkeypatch: pytest.MonkeyPatch, slow_s: float, fails: bool
) -> None:
    clocks = timed(monkeypatch)
    run = release_plan.run

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(slow_s)
        if fails:
            raise EngineFailed("the engine fails after the charge")
        return run(*arguments, **options)

    monkeypatch.setattr(release_plan, "run", slow)
    epsilon = (0.2 if fails else 0.1) + slow_s / 1000
    status = (
        both[0]
        .call("analyst.visits", "POST", "/v1/queries", json={"sql": "SELECT COUNT(*) FROM visits", "epsilon": epsilon})
        .status_code
    )
    assert status == (503 if fails else 200)
    ((clock, ended_s, given_s),) = clocks
    assert clock.class_s == CLASS_S
    assert ended_s - clock.started_s >= slow_s
    assert given_s - clock.started_s >= padded_s(ended_s - clock.started_s, CLASS_S) - 1e-3


def test_the_class_of_a_plan_is_the_same_whatever_the_rows(
    both: tuple[Clinic, Clinic], monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = timed(monkeypatch)
    for number, question in enumerate(QUESTIONS[:3]):
        for place in both:
            asked = {**question, "purpose": f"another {number}", "level": 0.9}
            asked |= {name: asked[name] + 0.01 for name in ("epsilon", "rho") if name in asked}
            assert place.call("analyst.visits", "POST", "/v1/queries", json=asked).status_code == 200
    classes = [clock.class_s for clock, *_ in clocks]
    assert classes[0::2] == classes[1::2]
    assert len(classes) == 6


STATISTICS = {"mean": 1, "top_k": 2, "marginals": 1}
"""Statistics, and how many statements their plans have."""


def test_the_class_of_a_statistic_follows_from_its_plan_whatever_the_rows(
    both: tuple[Clinic, Clinic], monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = timed(monkeypatch)
    for function, statements in STATISTICS.items():
        for place in both:
            asked = {"function": function, "arguments": {**CALLS[function], **PRICE}}
            assert place.call("analyst.visits", "POST", "/v1/statistics", json=asked).status_code == 200
        seen = {clock.class_s for clock, *_ in clocks}
        assert len(seen) == 1
        assert seen.pop() >= doubled(statements, CLASS_S)
        clocks.clear()


def test_the_class_of_a_statistic_has_room_for_the_work_of_one_unit(clinic_place: Clinic) -> None:
    """In a first class that is too short for what 64 rows of a unit can add, the class is doubled until it fits."""
    edges = [float(number) for number in range(4_000)]
    column = clinic_place.curator.table("visits")["age"]
    work = stats.prepare(stats.histogram, column, edges=edges, epsilon=0.5, rows_per_unit=1).statistic.work
    assert class_of(work, 10.0) == 10.0
    assert class_of(work, 1e-6) > 2 * STORED_ROWS * len(edges) * STEP_S


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("path", ["/v1/queries", "/v1/statistics"])
def test_until_the_end_of_its_class_nothing_shows_that_a_run_has_ended(
    both: tuple[Clinic, Clinic], monkeypatch: pytest.MonkeyPatch, path: str, fails: bool
) -> None:
    """Otherwise previews, repetitions, lists and the ledger would tell, to whoever polls, how long the run took."""
    place, epsilon = both[0], 0.31 if fails else 0.32
    place.curator.resume("visits")  # the failures of other tests
    if path == "/v1/queries":
        asked: dict[str, Any] = {"sql": "SELECT COUNT(*) FROM visits", "epsilon": epsilon}
    else:
        asked = {"function": "mean", "arguments": {**CALLS["mean"], **PRICE, "epsilon": epsilon}}
    if fails:
        monkeypatch.setattr(release_plan, "run", failing)
        monkeypatch.setattr(StatisticRelease, "run", failing)
    seen: list[Any] = []
    hold = jobs.ActiveRun.hold

    def looking(self: jobs.ActiveRun) -> None:
        records = list(place.curator.ledger.history())
        is_released = place.call("analyst.visits", "POST", preview_of(path), json=asked).json()["is_released"]
        shown = place.call("analyst.visits", "GET", "/v1/releases").json()
        seen.append((records[-1].kind, is_released, shown))
        hold(self)

    before = place.call("analyst.visits", "GET", "/v1/releases").json()
    monkeypatch.setattr(jobs.ActiveRun, "hold", looking)
    status = place.call("analyst.visits", "POST", path, json=asked).status_code
    assert status == (503 if fails else 200)
    ((kind, is_released, shown),) = seen
    assert (kind, is_released, shown) == ("reserved", False, before)
    assert list(place.curator.ledger.history())[-1].kind != "reserved"


def preview_of(path: str) -> str:
    return "/v1/preview" if path == "/v1/queries" else "/v1/statistics/preview"


def failing(*_: Any, **__: Any) -> Any:
    raise EngineFailed("the engine fails after the charge")


def timed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ResponseClock, float, float]]:
    """Note each clock, when its question had been answered, and when the outcome was committed."""
    found: list[tuple[ResponseClock, float, float]] = []
    hold = jobs.ActiveRun.hold

    def noted(self: jobs.ActiveRun) -> None:
        ended_s = time.monotonic()
        hold(self)
        assert self.clock is not None
        found.append((self.clock, ended_s, time.monotonic()))

    monkeypatch.setattr(jobs.ActiveRun, "hold", noted)
    return found


@pytest.mark.parametrize(
    ("elapsed_s", "ends_s"), [(0.0, 1), (0.5, 1), (1.0, 1), (1.01, 2), (2.0, 2), (2.1, 4), (9, 16)]
)
def test_a_run_is_answered_at_the_end_of_a_doubling(elapsed_s: float, ends_s: float) -> None:
    assert padded_s(elapsed_s, 1.0) == ends_s
