"""The client and the server of this repository, together: what is embedded and what is remote are one thing."""

from __future__ import annotations

import inspect
import json
import math
import threading
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import tacit
from tacit.client import Client
from tacit.client.transport import Transport
from tacit.engines.duckdb.engine import DuckDBEngine
from tacit.privacy import errors
from tacit.privacy.errors import (
    BudgetExceeded,
    Cancelled,
    InvalidInput,
    KeyReused,
    NameTaken,
    NotInCatalog,
    NotKnown,
    NotPermitted,
    NotSQL,
    ShowsUnits,
    TacitError,
    UnknownName,
    WrongKind,
    WrongType,
)
from tacit.privacy.events import Laplace
from tacit.privacy.tables import Column, Kind
from tests.unit.client.serving import URL, Place, served
from tests.unit.server.cases import finding_of

BY_SEX = "SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY sex ORDER BY sex"
BY_DAY = "SELECT day, COUNT(*) AS n FROM visits WHERE day < DATE '2024-01-04' GROUP BY day ORDER BY day"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("server") / "clinic") as found:
        yield found


@pytest.fixture(scope="module")
def ana(place: Place) -> Client:
    return place.client("ana")


@pytest.fixture(scope="module")
def olga(place: Place) -> Client:
    return place.client("olga")


@pytest.mark.parametrize("sql", [BY_SEX, BY_DAY])
def test_the_embedded_curator_and_the_client_show_the_same_released_answer(place: Place, ana: Client, sql: str) -> None:
    keys = {"day": [date(2024, 1, 1), date(2024, 1, 2)]} if "day" in sql else None
    remote = ana.sql(sql, 0.5, keys=keys)
    local = place.curator.sql(sql, 0.5, keys=keys)
    assert (local.cost.epsilon, remote.cost.epsilon) == (0, pytest.approx(0.5))
    again = ana.sql(sql, 0.5, keys=keys)
    assert again.rows == remote.rows == local.rows
    assert (again.cost, again.permit, again.card) == (local.cost, None, local.card)
    assert (again.columns, again.datasets, again.counted) == (local.columns, local.datasets, local.counted)
    for level in (0.95, 0.5, 0.99):
        assert again.intervals(level) == remote.intervals(level) == local.intervals(level)
    assert again._repr_html_() == local._repr_html_()
    assert [{name: type(one) for name, one in row.items()} for row in remote] == [
        {name: type(one) for name, one in row.items()} for row in local
    ]
    assert again.to_pandas().equals(local.to_pandas())


def test_an_answer_that_was_released_here_costs_nothing_there(place: Place, ana: Client) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits WHERE age < 30"
    local = place.curator.sql(sql, 0.25)
    remote = ana.sql(sql, 0.25)
    assert remote.rows == local.rows
    assert remote.cost == tacit.Cost(0.0, 0.0, 0.0)


@pytest.mark.parametrize("price", [{"epsilon": 0.125}, {"rho": 0.01}, {"error": 40}])
def test_a_preview_is_exactly_what_is_charged(place: Place, ana: Client, price: dict[str, Any]) -> None:
    sql = "SELECT sex, SUM(age) AS total FROM visits GROUP BY sex"
    preview = ana.preview(sql, **price)
    assert preview == place.curator.preview(sql, **price, analyst="ana")
    assert preview.lines == place.curator.preview(sql, **price).lines
    assert list(preview.lines) == ana.explain(sql, **price) == place.curator.explain(sql, **price)
    before = place.curator.budget("visits", "ana").spent().rho
    release = ana.sql(sql, **price)
    assert release.cost == preview
    assert math.isclose(place.curator.budget("visits", "ana").spent().rho - before, preview.rho, rel_tol=1e-6)
    assert ana.preview(sql, **price).is_released
    assert release.remaining["visits"] == place.curator.budget("visits", "ana").remaining()


def test_a_budget_shows_what_the_ledger_holds_at_that_moment(place: Place, ana: Client, olga: Client) -> None:
    for client, analyst in ((ana, "ana"), (olga, None), (olga, "ben")):
        local, remote = place.curator.budget("visits", analyst), client.budget("visits", analyst)
        assert (remote.cap, remote.name, remote.is_enforced) == (local.cap, local.name, local.is_enforced)
        assert remote.epsilon_min == local.epsilon_min
        assert (remote.spent(), remote.remaining()) == (local.spent(), local.remaining())
    remote = ana.budget("visits", "ana")
    before = remote.spent().epsilon
    ana.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 77", 0.5)
    assert remote.spent().epsilon > before
    assert str(olga.budget("visits").report()) == str(place.curator.budget("visits").report())


def test_a_lost_response_is_asked_for_again_and_charged_once(
    place: Place, ana: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, real, lost = "SELECT COUNT(*) AS n FROM visits WHERE age > 33", place.http.send, []

    def losing(request: httpx.Request, **settings: Any) -> httpx.Response:
        response = real(request, **settings)
        if request.url.path == "/v1/queries" and len(lost) < 2:
            lost.append(response.status_code)
            raise httpx.ReadError("the answer is lost")
        return response

    charged = len(reserved(place))
    monkeypatch.setattr(place.http, "send", losing)
    release = place.client("ana", sleep=lambda _: None).sql(sql, 0.5)
    assert len(lost) == 2
    assert set(lost) <= {200, 202}  # on a busy machine the answer may become a job
    assert len(reserved(place)) == charged + 1
    assert release.rows == place.curator.sql(sql, 0.5).rows


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_question_that_failed_after_its_charge_is_not_run_again_with_its_key_and_charged_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    sql = f"SELECT COUNT(*) AS n FROM visits WHERE age > {34 + is_lost}"
    run, send, failures, charged = DuckDBEngine.run, place.http.send, [], len(reserved(place))

    def dies(*arguments: Any, **settings: Any) -> Any:
        monkeypatch.setattr(DuckDBEngine, "run", run)
        raise errors.EngineFailed("the engine failed to complete the query")

    def losing(request: httpx.Request, **settings: Any) -> httpx.Response:
        response = send(request, **settings)
        if response.status_code == 503:
            failures.append(response.status_code)
            if is_lost:
                raise httpx.ReadError("the answer is lost")
        return response

    monkeypatch.setattr(DuckDBEngine, "run", dies)
    monkeypatch.setattr(place.http, "send", losing)
    ana = place.client("ana", sleep=lambda _: None)
    with pytest.raises(errors.AlreadySettled if is_lost else errors.EngineFailed):  # sent again by itself if it is lost
        ana.sql(sql, 0.5, key=f"friday {is_lost}")
    with pytest.raises(errors.AlreadySettled, match="take a new key"):
        ana.sql(sql, 0.5, key=f"friday {is_lost}")
    assert failures == [503]
    assert len(reserved(place)) == charged + 1
    assert ana.sql(sql, 0.5).rows


def reserved(place: Place) -> list[Any]:
    return [one for one in place.curator.ledger.history() if one.kind == "reserved"]


def test_a_long_question_becomes_a_job_that_is_followed(
    place: Place, ana: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DuckDBEngine.run

    def slow(*arguments: Any, **settings: Any) -> Any:
        time.sleep(0.4)
        return real(*arguments, **settings)

    monkeypatch.setattr(DuckDBEngine, "run", slow)
    monkeypatch.setattr("tacit.client.queries.WAIT_S", 0.05)
    release = ana.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 37", 0.5)
    assert release.cost.epsilon == pytest.approx(0.5)
    assert [job.state for job in ana.jobs()][:1] == ["done"]
    assert release.permit is not None
    assert ana.release(release.permit).rows == release.rows
    assert ana.releases("visits", limit=1)[0]["permit"] == release.permit.id


def test_ctrl_c_cancels_the_job_at_the_server(place: Place, ana: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()

    def endless(*_: Any, **__: Any) -> Any:
        assert stopped.wait(10)
        raise Cancelled("the question was cancelled; what was charged stays charged")

    monkeypatch.setattr(DuckDBEngine, "run", endless)
    monkeypatch.setattr(DuckDBEngine, "cancel", lambda self, thread=None: stopped.set())
    monkeypatch.setattr("tacit.client.queries.WAIT_S", 0.05)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.client("ana", sleep=interrupted).sql("SELECT COUNT(*) AS n FROM visits WHERE age > 36", 0.5)
    assert stopped.wait(10)
    until_s = time.monotonic() + 10
    while ana.jobs()[0].state == "running" and time.monotonic() < until_s:
        time.sleep(0.05)
    assert ana.jobs()[0].state == "cancelled"


TREE = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, TacitError) and kind is not TacitError
]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_that_the_curator_raises_is_raised_by_the_client(
    place: Place, kind: type[TacitError], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "name": "order",
        "asked": tacit.Cost(0.5, 0.0, math.inf),
        "remaining": tacit.Cost(0.2, 1e-9, 0.02),
        "scope": "visits",
        "accepted": "ask less",
        "place": errors.Place(1, 8),
        "retry_after_s": 70.0,
    }
    taken = inspect.signature(kind.__init__).parameters
    raised = kind("it does not work", **{name: one for name, one in given.items() if name in taken})

    def failing(*_: Any, **__: Any) -> Any:
        raise raised

    monkeypatch.setattr(place.curator, "budget", failing)
    with pytest.raises(kind) as caught:
        place.client("olga").budget("visits")
    assert type(caught.value) is kind
    assert caught.value.message == raised.message
    for name in given:
        assert getattr(caught.value, name, None) == getattr(raised, name, None)


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        (NotSQL, "SELEC 1"),
        (NotInCatalog, "SELECT COUNT(*) FROM nowhere"),
        (ShowsUnits, "SELECT patient, COUNT(*) FROM visits GROUP BY patient"),
        (ShowsUnits, "SELECT age FROM visits"),
        (WrongKind, "SELECT SUM(ward) FROM visits"),
    ],
)
def test_a_question_that_is_refused_is_refused_with_the_same_words(
    place: Place, ana: Client, kind: type[TacitError], sql: str
) -> None:
    with pytest.raises(kind) as remote:
        ana.sql(sql, 0.5)
    with pytest.raises(kind) as local:
        place.curator.sql(sql, 0.5)
    if kind is not NotInCatalog:
        assert str(remote.value) == str(local.value)
        assert getattr(remote.value, "place", None) == getattr(local.value, "place", None)


def test_who_may_not_is_told_so(place: Place, ana: Client) -> None:
    with pytest.raises(NotPermitted):
        ana.set_budget("others", 1.0)
    with pytest.raises(NotPermitted):
        ana.people.all()
    with pytest.raises(NotKnown):
        Client(URL, "tacit_000000000000_" + "x" * 43, http=place.http).me()
    with pytest.raises(UnknownName):
        ana.budget("nothing")


def test_what_was_refused_is_on_record_for_the_auditor(place: Place, ana: Client) -> None:
    with pytest.raises(NotPermitted):
        ana.audit()
    found = [one for one in place.client("aude").audit(limit=1000) if one["actor"] == "ana"]
    assert found[-1]["code"] == "T400"


def test_a_budget_that_is_exceeded_says_what_would_fit(place: Place) -> None:
    ben = place.client("ben")
    with pytest.raises(BudgetExceeded) as caught:
        ben.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 40", 2.0)
    error = caught.value
    assert error.scope == "ben on visits"
    assert error.asked is not None
    assert error.remaining is not None
    assert error.asked.epsilon == pytest.approx(2.0)
    assert error.remaining.epsilon <= 0.5
    request = ben.file_request("visits", tacit.Budget(1.0), "for the yearly report")
    assert (request.analyst, request.cost.epsilon, request.state) == ("ben", 1.0, "filed")
    with pytest.raises(NotPermitted):
        ben.decide(request, True)
    olga = place.client("olga")
    assert [one.id for one in olga.requests(only_open=True)] == [request.id]
    assert olga.decide(request, True, "go on").state == "granted"
    assert olga.requests(only_open=True) == []
    assert ben.budget("visits", "ben").epsilon == 1.5


def test_findings_are_the_same_here_and_there_and_no_person_is_sent(
    place: Place, olga: Client, ana: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = olga.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 43", 0.5)
    found = finding_of(str(release.permit), worst=({"person": "person-7731"},), details={"who": "person-7731", "n": 1})
    sent: list[Any] = []
    monkeypatch.setattr(olga._transport, "_send", lambda one: sent.append(one) or Transport._send(olga._transport, one))
    kept = olga.keep_finding(found)
    assert b"averaging" in sent[0].content
    assert b"person-7731" not in sent[0].content
    assert kept.finding == found.without_people()
    assert (kept.permit, kept.dataset, kept.by) == (str(release.permit), "visits", "olga")
    more = [place.curator.keep_finding(found, by="aude"), olga.keep_finding(finding_of(), "visits")]
    aude = place.client("aude")
    monkeypatch.setattr(aude._transport, "get_list", two_at_once(aude))
    assert aude.findings() == aude.findings("visits") == place.curator.findings() == [kept, *more]
    assert aude.findings(permit=release.permit) == [kept, more[0]]
    refusals = []
    for source in (aude, place.curator):
        with pytest.raises(UnknownName) as refused_name:
            source.findings("nowhere")
        refusals.append(refused_name.value.message)
    assert refusals[0] == refusals[1]
    for refused in (ana.findings, lambda: ana.keep_finding(found)):
        with pytest.raises(NotPermitted):
            refused()
    with pytest.raises(WrongType, match="a Finding"):
        olga.keep_finding(found.to_dict(), "visits")  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        olga.keep_finding(finding_of("9-nowhere"))


def two_at_once(client: Client) -> Any:
    """Return the method of a transport that reads a list, in pages of two."""
    whole = client._transport.get_list
    return lambda model, *path, query: whole(model, *path, query={**query, "limit": 2})


def test_a_key_stands_for_one_question(ana: Client) -> None:
    ana.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 41", 0.5, key="monday")
    with pytest.raises(KeyReused):
        ana.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 42", 0.25, key="monday")


def test_what_is_public_of_a_table_is_the_same_here_and_there(place: Place, ana: Client) -> None:
    assert [one.table for one in ana.tables()] == [place.curator.catalog.schema.table("visits")]
    visits = ana.table("visits")
    assert visits["AGE"].declared.facts == tacit.Bounds(0, 120)
    assert visits["day"].declared.facts == tacit.Bounds(date(2024, 1, 1), date(2024, 12, 31))
    with pytest.raises(NotInCatalog):
        visits["nothing"]


def test_a_table_is_registered_from_where_the_server_can_read_it(place: Place, olga: Client) -> None:
    (place.folder / "cases.csv").write_text("id,patient\n1,1\n2,1\n", encoding="utf-8")
    (place.folder / "stays.csv").write_text("stay,case_id,nights,ended\n1,1,3,2024-02-01\n", encoding="utf-8")
    assert (
        olga.add_table("cases", "cases.csv", unit="patient", identified_by=["id"], dataset="visits")["ID"].name == "id"
    )
    made = olga.add_table(
        "stays",
        "stays.csv",
        unit=tacit.Unit("patient", (tacit.ForeignKey("case_id", "cases", "id"),)),
        columns={"nights": tacit.Bounds(0, 30), "ended": tacit.Bounds(date(2024, 1, 1), date(2024, 12, 31))},
        limits=tacit.Limits(rows_per_unit=2),
        identified_by="stay",
        dataset="visits",
        kinds={"stay": tacit.privacy.tables.Kind.INTEGER},
    )
    assert made.table == place.curator.catalog.schema.table("stays")
    with pytest.raises(NameTaken):
        olga.add_table("stays", "stays.csv", unit="case_id")
    with pytest.raises(WrongType, match="frame"):
        olga.add_table("frames", np.zeros(3), unit="patient")  # type: ignore[arg-type]
    olga.remove_table("stays")
    olga.remove_table("cases")
    assert [one.name for one in olga.tables()] == ["visits"]


def test_that_no_value_is_missing_is_stated_over_the_wire_as_here(place: Place, olga: Client) -> None:
    columns = {"age": Column("age", Kind.INTEGER, tacit.Bounds(0, 120), nullable=False)}
    table = olga.add_table("whole", "visits.csv", unit="patient", columns=columns, dataset="visits")
    assert not table["age"].declared.nullable
    assert not place.curator.catalog.schema.table("whole").column("age").nullable
    assert table["day"].declared.nullable
    olga.remove_table("whole")


def test_budgets_are_made_and_doubtful_ones_are_warned_of(olga: Client, place: Place) -> None:
    from tacit.curator import PrivacyWarning

    with pytest.warns(PrivacyWarning, match="epsilon 20"):
        budget = olga.set_budget("others", 20.0)
    assert (budget.name, budget.epsilon, budget.remaining().epsilon) == ("others", 20.0, 20.0)
    olga.add_analyst("ana", {"others": tacit.Budget(1.0)})
    assert olga.budget("others", "ana").epsilon == 1.0
    assert {one.name for one in olga.budgets()} >= {"visits", "ana on visits", "others", "ana on others"}
    assert olga.set_budget("others", 2.0).epsilon == 2.0
    place.curator.budget("others").charge(Laplace(0.1))
    with pytest.raises(NameTaken):
        olga.set_budget("others", 1.0)
    with pytest.raises(InvalidInput):
        olga.add_analyst("ana", {})


def test_a_budget_says_what_a_release_costs_at_least(olga: Client, place: Place) -> None:
    assert olga.set_budget("usual", 3.0).epsilon_min == pytest.approx(0.0003)
    budget = olga.set_budget("dear", 3.0, epsilon_min=0.5)
    assert budget.epsilon_min == olga.budget("dear").state().epsilon_min == 0.5
    assert place.curator.budget("dear").epsilon_min == 0.5
    assert "a release costs at least epsilon 0.5" in str(olga.budget("dear").report())
    for wrong in (-1.0, 4.0):
        with pytest.raises(InvalidInput):
            olga.set_budget("wrong", 3.0, epsilon_min=wrong)


def test_the_ledger_is_read_verified_and_copied(place: Place, tmp_path: Path) -> None:
    aude, ana, olga = place.client("aude"), place.client("ana"), place.client("olga")
    assert aude.ledger.records(limit=2)[0]["kind"] == "budget-created"
    head = place.curator.ledger.head()
    assert [one["number"] for one in aude.ledger.history()] == list(range(1, head.number + 1))
    assert aude.ledger.verify(full=True)["hash"] == head.hash
    assert isinstance(aude.ledger.reservations(), list)
    lines = aude.ledger.export(tmp_path / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[-1])["records"] == head.number
    with pytest.raises(NotPermitted):
        ana.ledger.export(tmp_path / "mine.jsonl")
    with pytest.raises(NotPermitted):
        aude.ledger.export(tmp_path / "mine.jsonl", answers=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.jsonl"]
    with tacit.ledger.Ledger.open(tmp_path / "copy") as copy:
        export = olga.ledger.export(tmp_path / "all.jsonl", answers=True)  # it does not tell where the server keeps it
        copy.import_(export, source_lost="a copy to be looked at")


def test_people_are_made_and_their_tokens_work_until_they_are_revoked(place: Place, olga: Client) -> None:
    olga.people.add("cleo")
    olga.people.grant("cleo", "analyst", dataset="visits")
    made = olga.people.create_token("cleo", label="notebook", days=3)
    assert made.text not in repr(made)
    cleo = Client(URL, made.text, http=place.http)
    assert cleo.me()["grants"] == [{"role": "analyst", "dataset": "visits", "table": None}]
    assert [one["id"] for one in cleo.people.tokens()] == [made.id]
    olga.people.withdraw("cleo", "analyst", dataset="visits")
    assert cleo.tables() == []
    olga.people.revoke_token(made.id)
    with pytest.raises(NotKnown):
        cleo.me()
    olga.people.remove("cleo")
    assert {one["name"] for one in olga.people.all() if one["is_active"]} == {"olga", "ana", "ben", "aude"}


STATISTICS: list[tuple[str, dict[str, Any]]] = [
    ("count", {}),
    ("mean", {"bounds": (0, 120)}),
    ("mean", {"by": "sex"}),
    ("sum", {"by": ["sex", "ward"], "keys": [["F", "M"], ["a", "b"]]}),
    ("median", {}),
    ("quantiles", {"qs": [0.1, 0.9]}),
    ("histogram", {"bins": 4}),
    ("cdf", {"bins": 8}),
    ("box_plot", {}),
    ("variance", {}),
]


@pytest.mark.parametrize(("name", "stated"), STATISTICS)
def test_a_statistic_has_the_same_answer_here_and_there(
    place: Place, ana: Client, name: str, stated: dict[str, Any]
) -> None:
    answers = []
    for stats, visits in ((ana.stats, ana.table("visits")), (tacit.stats, place.curator.table("visits"))):
        given = dict(stated)
        if "by" in given:
            by = given["by"]
            given["by"] = visits[by] if isinstance(by, str) else [visits[one] for one in by]
        answers.append(getattr(stats, name)(visits["age"], **given, epsilon=0.5))
    remote, local = answers
    assert remote.cost.epsilon == pytest.approx(0.5)
    assert local.cost.epsilon == 0
    np.testing.assert_array_equal(remote.value, local.value)
    assert type(remote.value) is type(local.value)
    assert (remote.label, remote.keys, remote.key_names) == (local.label, local.keys, local.key_names)
    np.testing.assert_allclose(np.asarray(remote.interval()), np.asarray(local.interval()))
    assert [list(row) for row in remote.rows] == [list(row) for row in local.rows]
    assert remote.plot().spec["title"] == local.plot().spec["title"]
    assert remote.card.replace("It cost nothing: the same answer was released before.", "") != ""
    again = getattr(ana.stats, name)
    assert again.__doc__ == getattr(tacit.stats, name).__doc__


def test_dates_among_the_answers_of_statistics_are_dates(place: Place, ana: Client) -> None:
    visits = ana.table("visits")
    edges = [date(2024, 1, 1), date(2024, 7, 1), date(2025, 1, 1)]
    answer = ana.stats.histogram(visits["day"], edges=edges, epsilon=0.5)
    assert answer.keys == [(date(2024, 1, 1), date(2024, 7, 1)), (date(2024, 7, 1), date(2025, 1, 1))]
    local = tacit.stats.histogram(place.curator.table("visits")["day"], edges=edges, epsilon=0.5)
    assert (answer.keys, answer.rows) == (local.keys, local.rows)


def test_another_level_of_a_statistic_is_not_asked_for_behind_the_callers_back(ana: Client) -> None:
    age = ana.table("visits")["age"]
    answer = ana.stats.mean(age, epsilon=0.5, rows_per_unit=2)
    with pytest.raises(InvalidInput, match="level="):
        answer.interval(0.5)
    narrower = ana.stats.mean(age, epsilon=0.5, rows_per_unit=2, level=0.5)
    assert narrower.cost.epsilon == 0
    low, high = narrower.interval(0.5)  # type: ignore[misc]
    assert answer.interval().low < low < high < answer.interval(0.95).high  # type: ignore[union-attr]


def test_arrays_stay_on_this_machine(ana: Client) -> None:
    for values in (np.array([41, 52]), [41, 52], "age", {"age": [41]}):
        with pytest.raises(WrongType, match="arrays are not sent"):
            ana.stats.mean(values, bounds=(0, 120), epsilon=0.5)
    with pytest.raises(InvalidInput, match="budget"):
        ana.stats.mean(ana.table("visits")["age"], epsilon=0.5, budget=tacit.Budget(1.0))
    with pytest.raises(AttributeError):
        _ = ana.stats.RunningCount
    assert "mean" in dir(ana.stats)


def test_threads_share_a_client(ana: Client) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits WHERE age > 50"
    expected, found = ana.sql(sql, 0.5).rows, []
    threads = [threading.Thread(target=lambda: found.append(ana.sql(sql, 0.5).rows)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8
