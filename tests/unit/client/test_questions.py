"""Questions over the wire: their documents, their jobs, Ctrl-C, and answers that are asked for again."""

from __future__ import annotations

import functools
import inspect
import json
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import httpx
import numpy as np
import pytest

import tacit
from tacit.pipeline.interrupts import latest_charge
from tacit.privacy.errors import (
    BudgetExceeded,
    Cancelled,
    InvalidInput,
    NotATacitServer,
    QueryRefused,
    ServerFailed,
    ShowsUnits,
    TimedOut,
    TooLarge,
)
from tacit.wire.values import DEPTH_MAX
from tests.unit.client.contract import ME, NOTHING, PREVIEW, RELEASE, STATISTIC, Served, fine, in_order, refused

SQL = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"


def job(state: str, **more: Any) -> dict[str, Any]:
    known = {"id": "j1", "asked_at": "2024-01-31T12:00:00+00:00", "elapsed_s": 3.0, "expected_s": 12.0}
    return {**known, "state": state, "release": None, "error": None, **more}


def test_a_question_is_sent_with_what_was_said_of_it_and_with_nothing_else() -> None:
    served = Served(in_order(fine(RELEASE)))
    served.client.sql(SQL, 0.5)
    assert served.bodies("/v1/queries") == [{"sql": SQL, "epsilon": 0.5, "level": 0.95, "wait_s": 2.0}]


def test_every_argument_of_a_question_reaches_the_server() -> None:
    served = Served(in_order(fine(RELEASE)), timeout_s=1)
    when = datetime(2024, 1, 31, 13, tzinfo=timezone(timedelta(hours=1)))
    served.client.sql(
        SQL,
        rho=Fraction(1, 4),
        delta=np.float64(1e-9),
        purpose="monday's report",
        limits=tacit.Limits(groups_per_unit=2, rows_per_group=3, rows_per_unit=4),
        keys={"day": [date(2024, 1, 31), None], "at": [when], "sex": ("F", "M"), "floor": [np.int64(3), True]},
        other=True,
        timeout_s=30,
        level=0.9,
    )
    assert served.bodies("/v1/queries") == [
        {
            "sql": SQL,
            "rho": 0.25,
            "delta": 1e-9,
            "purpose": "monday's report",
            "limits": {"groups_per_unit": 2, "rows_per_group": 3, "rows_per_unit": 4},
            "keys": {
                "day": [{"date": "2024-01-31"}, None],
                "at": [{"time": "2024-01-31T12:00:00"}],
                "sex": ["F", "M"],
                "floor": [3, True],
            },
            "other": True,
            "level": 0.9,
            "wait_s": 0.5,
        }
    ]


def test_who_asks_is_said_by_the_token_alone() -> None:
    served = Served(in_order(fine(RELEASE)))
    with pytest.raises(InvalidInput, match="token"):
        served.client.sql(SQL, 0.5, analyst="ben")
    assert served.requests == []


def test_the_surface_of_sql_preview_and_explain_is_that_of_the_curator() -> None:
    for name in ("sql", "preview", "explain", "budget", "set_budget", "add_analyst", "add_table", "remove_table"):
        theirs = inspect.signature(getattr(tacit.Curator, name)).parameters
        ours = inspect.signature(getattr(tacit.client.Client, name)).parameters
        assert list(theirs) == [one for one in ours if one != "level"], name
        assert [(one, theirs[one].kind, theirs[one].default) for one in theirs] == [
            (one, ours[one].kind, ours[one].default) for one in theirs
        ], name


def test_an_answer_has_the_surface_of_an_embedded_one() -> None:
    release = Served(in_order(fine(RELEASE))).client.sql(SQL, 0.5)
    assert release.columns == ["sex", "day", "at", "n", "mean"]
    assert release.rows[0] == {
        "sex": "F",
        "day": date(2024, 1, 31),
        "at": datetime(2024, 1, 31, 12),
        "n": 601,
        "mean": 3.0,
    }
    assert isinstance(release.rows[0]["mean"], float)
    assert release.intervals()[0] == {"n": (594, 608), "mean": (2.5, 3.5)}
    assert release.intervals(0.95)[0]["n"].high == 608  # type: ignore[union-attr]
    assert release.intervals()[1]["mean"] is None
    assert release.cost == tacit.Cost(0.5, 0.0, float("inf"))
    assert release.permit is not None
    assert (release.permit.id, [str(one) for one in release.permits]) == ("7-abc", ["7-abc"])
    assert release.datasets == ("visits",)
    assert release.warnings == ("bounds are a guess",)
    assert release.remaining["visits"].epsilon == 2.5
    assert (len(release), [row["n"] for row in release]) == (2, [601, 600])
    assert repr(release) == "<Release of 2 rows for epsilon 0.5: sex, day, at, n, mean>"
    assert "&lt;b&gt;" in release._repr_html_()
    assert "601 ± 7" in release._repr_html_()
    assert list(release.to_pandas()["n"]) == [601, 600]
    assert release.to_polars()["day"][0] == date(2024, 1, 31)
    assert release.to_arrow().column("n").to_pylist() == [601, 600]
    assert release.plot().spec["description"] == release.card
    with pytest.raises(InvalidInput):
        release.plot("nothing")


@pytest.mark.parametrize("missing", [name for name in RELEASE if name not in ("permit", "warnings")])
def test_an_answer_that_lacks_something_is_not_taken_for_one(missing: str) -> None:
    document = {name: one for name, one in RELEASE.items() if name != missing}
    with pytest.raises(NotATacitServer):
        Served(in_order(fine(document))).client.sql(SQL, 0.5)


def newer(document: Any) -> Any:
    """Return a document as a newer server might write it: with a field more in every object that has fixed fields."""
    if isinstance(document, list):
        return [newer(one) for one in document]
    if not isinstance(document, dict):
        return document
    named = {"rows", "intervals", "widths", "remaining", "leaves", "limits"}  # objects whose fields are not fixed
    found = {name: one if name in named else newer(one) for name, one in document.items()}
    return {**found, "from_the_future": {"x": 1}}


def test_a_newer_server_may_answer_with_more_fields() -> None:
    served = Served(lambda request: fine(newer(PREVIEW if request.url.path == "/v1/preview" else RELEASE)))
    assert served.client.sql(SQL, 0.5).rows[0]["n"] == 601
    assert served.client.preview(SQL, epsilon=0.5).more_like_this == 6
    assert Served(in_order(fine([newer(job("running"))]))).client.jobs()[0].is_running
    assert "from_the_future" not in Served(in_order(fine(newer(ME)))).client.me()


@pytest.mark.parametrize("state", ["waiting", "unheard of"])
def test_a_job_in_a_state_that_no_server_sends_is_not_waited_for(state: str) -> None:
    with pytest.raises(NotATacitServer):
        Served(job_server(job(state))).client.sql(SQL, 0.5)


@pytest.mark.parametrize("name", ["epsilom", "analist", "limit", "purposes"])
def test_an_argument_that_does_not_exist_is_refused_before_anything_is_sent(name: str) -> None:
    served = Served(in_order(fine(RELEASE)))
    for ask in (served.client.sql, served.client.preview, served.client.explain):
        with pytest.raises(InvalidInput, match=name):
            ask(SQL, 0.5, **{name: 1})
    assert served.requests == []


@pytest.mark.parametrize("given", [{"epsilon": -1}, {"epsilon": 1e13}, {"epsilon": 1, "delta": float("nan")}])
def test_what_the_server_would_refuse_for_its_form_is_refused_before_it_is_sent(given: dict[str, Any]) -> None:
    served = Served(in_order(fine(RELEASE)))
    with pytest.raises(InvalidInput):
        served.client.sql(SQL, **given)
    assert served.requests == []


def test_a_value_that_is_nested_deeper_than_a_server_reads_is_refused_before_it_is_sent() -> None:
    served, deep = Served(in_order(fine(RELEASE))), functools.reduce(lambda inner, _: [inner], range(DEPTH_MAX + 1), 1)
    with pytest.raises(TooLarge):
        served.client.sql(SQL, 0.5, keys={"sex": deep})
    assert served.requests == []


def test_a_preview_equals_the_cost_that_is_then_charged() -> None:
    served = Served(lambda request: fine(PREVIEW if request.url.path == "/v1/preview" else RELEASE))
    preview = served.client.preview(SQL, epsilon=0.5)
    assert preview == served.client.sql(SQL, epsilon=0.5).cost
    assert (preview.widths, preview.is_released) == ({"n": 7.0, "mean": None}, False)
    assert preview.lines[0].label == "units"
    assert preview.remaining["visits"].epsilon == 3.0


def test_an_explanation_is_the_lines_of_a_plan() -> None:
    served = Served(in_order(fine([{"label": "noise", "text": "n: Laplace"}])))
    assert [str(line) for line in served.client.explain(SQL, epsilon=0.5)] == ["noise   n: Laplace"]


def level_server(released: bool, rows: list[dict[str, Any]] = RELEASE["rows"]) -> Callable[[httpx.Request], Any]:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/preview":
            return fine({**PREVIEW, "is_released": released, "cost": NOTHING if released else PREVIEW["cost"]})
        level = json.loads(request.content)["level"]
        if level == 0.95:
            return fine(RELEASE)
        return fine({**RELEASE, "level": level, "rows": rows, "intervals": [{"n": [600, 602]}, {"n": None}]})

    return handler


def test_another_level_is_asked_for_once_and_only_while_it_is_free() -> None:
    served = Served(level_server(released=True))
    release = served.client.sql(SQL, 0.5, purpose="report")
    assert release.intervals(0.5)[0]["n"] == (600, 602)
    assert release.intervals(0.5)[0]["n"] == (600, 602)
    assert [request.url.path for request in served.requests] == ["/v1/queries", "/v1/preview", "/v1/queries"]
    first, second = (one for one in served.requests if one.url.path == "/v1/queries")
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


def test_another_level_is_refused_when_it_would_be_charged() -> None:
    served = Served(level_server(released=False))
    release = served.client.sql(SQL, 0.5)
    with pytest.raises(QueryRefused, match="would be charged"):
        release.intervals(0.5)
    assert len(served.bodies("/v1/queries")) == 1


def test_intervals_of_another_answer_are_not_shown_beside_this_one() -> None:
    other = [dict(row, n=1) for row in RELEASE["rows"]]
    release = Served(level_server(released=True, rows=other)).client.sql(SQL, 0.5)
    with pytest.raises(QueryRefused, match="another answer"):
        release.intervals(0.5)


@pytest.mark.parametrize("level", [0, 1, -1, float("nan"), "x"])
def test_a_level_is_between_0_and_1(level: Any) -> None:
    served = Served(level_server(released=True))
    with pytest.raises(InvalidInput):
        served.client.sql(SQL, 0.5).intervals(level)
    with pytest.raises(InvalidInput):
        served.client.sql(SQL, 0.5, level=level)


def job_server(*states: dict[str, Any] | BaseException) -> Callable[[httpx.Request], httpx.Response]:
    left = list(states)

    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            return fine(job("running"), 202)
        if request.url.path == "/v1/queries":
            return fine({"job": "j1"}, 202)
        answer = left.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return fine(answer)

    return handler


def test_a_job_is_followed_until_it_is_done() -> None:
    served = Served(job_server(*[job("running")] * 3, job("done", release=RELEASE)))
    shares: list[float] = []
    assert served.client.sql(SQL, 0.5, progress=shares.append).rows[0]["n"] == 601
    assert [request.url.path for request in served.requests] == ["/v1/queries", *["/v1/jobs/j1"] * 4]
    assert len(served.pauses) == 3
    assert served.pauses == sorted(served.pauses)
    assert shares == [0.25] * 3 + [1.0]


def test_progress_ends_at_1_also_for_an_answer_that_needs_no_job() -> None:
    shares: list[float] = []
    Served(lambda _request: fine(RELEASE)).client.sql(SQL, 0.5, progress=shares.append)
    assert shares == [1.0]


@pytest.mark.parametrize("error", [TypeError, KeyError, ZeroDivisionError])
def test_a_progress_function_that_fails_does_not_lose_the_answer(error: type[Exception]) -> None:
    def fail(_share: float) -> None:
        raise error

    served = Served(job_server(job("running"), job("done", release=RELEASE)))
    assert served.client.sql(SQL, 0.5, progress=fail).rows[0]["n"] == 601


def test_a_question_that_is_waited_for_no_longer_says_the_key_by_which_it_is_charged_once() -> None:
    served = Served(job_server(job("running"), job("running")))
    with pytest.raises(TimedOut, match="repeat it with key='mine'"):
        served.client.sql(SQL, 0.5, key="mine", timeout_s=1e-6)


def test_a_job_that_failed_raises_what_it_failed_with() -> None:
    error = json.loads(refused("T203", 422, {"accepted": "others"}).content)["error"]
    with pytest.raises(ShowsUnits) as caught:
        Served(job_server(job("failed", error=error))).client.sql(SQL, 0.5)
    assert caught.value.accepted == "others"
    with pytest.raises(Cancelled):
        Served(job_server(job("cancelled"))).client.sql(SQL, 0.5)
    with pytest.raises(ServerFailed):
        Served(job_server(job("failed"))).client.sql(SQL, 0.5)


def test_a_job_whose_process_died_is_asked_again_with_the_same_key_and_not_forever() -> None:
    served = Served(job_server(job("lost"), job("done", release=RELEASE)))
    assert served.client.sql(SQL, 0.5).rows
    keys = {one.headers["Idempotency-Key"] for one in served.requests if one.method == "POST"}
    assert len(keys) == 1
    served = Served(job_server(*[job("lost")] * 10))
    with pytest.raises(ServerFailed, match="key="):
        served.client.sql(SQL, 0.5)
    assert len(served.bodies("/v1/queries")) == 3


def test_a_statistic_whose_answer_was_lost_is_asked_again_with_the_same_key() -> None:
    served = Served(in_order(httpx.ReadError("cut off"), fine(STATISTIC)))
    arguments = {"values": {"table": "visits", "column": "age"}, "epsilon": 0.5}
    assert served.client._queries.statistic("mean", arguments, 0.95).value == 41.0
    keys = [one.headers["Idempotency-Key"] for one in served.requests]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    served.client._queries.statistic("mean", arguments, 0.95)
    assert served.requests[-1].headers["Idempotency-Key"] != keys[0]
    served.client._queries.statistic("mean", arguments, 0.95, key="mine")
    assert served.requests[-1].headers["Idempotency-Key"] == "mine"


def test_ctrl_c_cancels_the_job_and_is_raised() -> None:
    served = Served(job_server(job("running"), KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        served.client.sql(SQL, 0.5)
    assert (served.requests[-1].method, served.requests[-1].url.path) == ("DELETE", "/v1/jobs/j1")


def test_ctrl_c_while_the_job_is_waited_for_cancels_it_too() -> None:
    served = Served(job_server(job("running"), job("running")))

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    served.client._queries._sleep = interrupted
    with pytest.raises(KeyboardInterrupt):
        served.client.sql(SQL, 0.5)
    assert served.requests[-1].method == "DELETE"


def test_a_charge_is_noted_before_a_question_is_sent_and_not_by_a_preview() -> None:
    served = Served(in_order(fine(PREVIEW), KeyboardInterrupt()))
    before = latest_charge()
    served.client.preview(SQL, 0.5)
    assert latest_charge() is before
    with pytest.raises(KeyboardInterrupt):
        served.client.sql(SQL, 0.5)
    assert latest_charge() is not before


def test_jobs_are_listed_and_cancelled() -> None:
    served = Served(lambda request: fine([job("running"), job("done", id="j2")] if request.method == "GET" else {}))
    first, second = served.client.jobs()
    assert (first.id, first.is_running, first.asked_at) == ("j1", True, datetime(2024, 1, 31, 12, tzinfo=UTC))
    assert not second.is_running
    served.client.cancel(first)
    served.client.cancel("j9")
    assert [request.url.path for request in served.requests[1:]] == ["/v1/jobs/j1", "/v1/jobs/j9"]


def test_cancelling_all_stops_the_questions_of_this_client_and_of_nobody_else() -> None:
    """An owner sees the jobs of others: they go on."""
    served = Served(lambda request: fine([job("running", id="of somebody else")]))
    served.client.cancel()
    served.client.cancel(1)
    assert served.requests == []


@pytest.mark.parametrize("by_thread", [True, False])
def test_another_thread_stops_the_question_that_one_waits_for(by_thread: bool) -> None:
    served = Served(job_server(job("running"), job("running"), job("cancelled"), job("done", release=RELEASE)))
    here = threading.get_ident()
    served.client._queries._sleep = lambda _: threaded(lambda: served.client.cancel(here if by_thread else None))
    with pytest.raises(Cancelled):
        served.client.sql(SQL, 0.5)
    assert [request.method for request in served.requests].count("DELETE") == 1
    served = Served(job_server(job("running"), job("done", release=RELEASE)))
    served.client._queries._sleep = lambda _: threaded(lambda: served.client.cancel(here + 1))
    assert served.client.sql(SQL, 0.5).rows
    assert "DELETE" not in [request.method for request in served.requests], "another thread's question goes on"


def threaded(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_budget_that_is_exceeded_says_what_was_asked_what_is_left_and_what_fits() -> None:
    details = {
        "asked": {"epsilon": 0.5, "delta": 0.0, "rho": None},
        "remaining": {"epsilon": 0.2, "delta": 0.0, "rho": 0.0},
        "fits": {"epsilon": 0.2, "delta": 0.0, "rho": None},
        "scope": "ana on visits",
    }
    with pytest.raises(BudgetExceeded) as caught:
        Served(in_order(refused("T300", 402, details))).client.sql(SQL, 0.5)
    assert caught.value.fits == tacit.Cost(0.2, 0.0, float("inf"))
    assert (caught.value.asked.epsilon, caught.value.scope) == (0.5, "ana on visits")  # type: ignore[union-attr]
