"""Questions over REST: previews are charges, the same question costs nothing, forms agree, keys are charged once."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.privacy.tables import Kind
from tacit.server.releases import as_csv
from tacit.wire.responses import ColumnResponse, ReleaseResponse
from tests.unit.server.clinic import Clinic

SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY sex"


def spent(place: Clinic, analyst: str | None = None) -> float:
    return place.curator.budget("visits", analyst).spent().epsilon


def ask(place: Clinic, who: str = "analyst.visits", headers: dict[str, str] | None = None, **question: Any) -> Any:
    return place.call(who, "POST", "/v1/queries", json={"sql": SQL, **question}, headers=headers or {})


def test_a_preview_is_the_charge_and_the_second_answer_is_free(clinic_place: Clinic) -> None:
    before = spent(clinic_place), spent(clinic_place, "analyst.visits")
    seen = clinic_place.call("analyst.visits", "POST", "/v1/preview", json={"sql": SQL, "epsilon": 0.25}).json()
    assert not seen["is_released"]
    assert (spent(clinic_place), spent(clinic_place, "analyst.visits")) == before
    first = ask(clinic_place, epsilon=0.25).json()
    assert first["cost"] == seen["cost"]
    assert spent(clinic_place) - before[0] == pytest.approx(0.25)
    assert spent(clinic_place, "analyst.visits") - before[1] == pytest.approx(0.25)
    again = ask(clinic_place, epsilon=0.25).json()
    assert again["cost"]["epsilon"] == 0
    assert (again["rows"], again["intervals"]) == (first["rows"], first["intervals"])
    assert spent(clinic_place) - before[0] == pytest.approx(0.25)
    later = clinic_place.call("analyst.visits", "POST", "/v1/preview", json={"sql": SQL, "epsilon": 0.25}).json()
    assert later["is_released"]


def test_who_keeps_the_budget_pays_from_no_cap_of_her_own(clinic_place: Clinic) -> None:
    before = spent(clinic_place, "curator.visits")
    assert ask(clinic_place, "curator.visits", epsilon=0.26).status_code == 200
    assert spent(clinic_place, "curator.visits") == before


def test_csv_and_arrow_hold_the_rows_of_json(clinic_place: Clinic) -> None:
    rows = ask(clinic_place, epsilon=0.27).json()["rows"]
    text = ask(clinic_place, epsilon=0.27, headers={"Accept": "text/csv"})
    assert text.headers["content-type"].startswith("text/csv")
    listed = list(csv.DictReader(io.StringIO(text.text)))
    assert [(one["sex"], int(one["n"]), float(one["age"])) for one in listed] == [tuple(one.values()) for one in rows]
    assert float(listed[0]["n_low"]) <= rows[0]["n"] <= float(listed[0]["n_high"])
    packed = ask(clinic_place, epsilon=0.27, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert pa.ipc.open_stream(packed.content).read_all().to_pylist() == rows


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "plain", "1-1", ""]


def test_texts_in_csv_are_no_formulas_and_numbers_stay_numbers() -> None:
    rows = [{"=name": text, "n": -3, "m": -0.5, "yes": True, "none": None} for text in FORMULAS]
    columns = [ColumnResponse(name=name, kind=Kind.TEXT) for name in rows[0]]
    spans = [{"n": [-4, -2]} for _ in rows]
    text = as_csv(ReleaseResponse.model_construct(columns=columns, rows=rows, intervals=spans)).decode()
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head == ["'=name", "n", "m", "yes", "none", "n_low", "n_high"]
    for found, cell in zip(lines, FORMULAS, strict=True):
        assert found[0] == (f"'{cell}" if cell[:1] in tuple("=+-@\t\r\n") else cell)
        assert found[1:] == ["-3", "-0.5", "True", "", "-4", "-2"]


def test_a_category_that_is_a_formula_leaves_the_server_as_a_text(clinic_place: Clinic) -> None:
    keys = {"keys": {"sex": ["=cmd|' /C calc'!A0", "F"]}}
    asked = {"sql": 'SELECT sex, COUNT(*) AS "=n" FROM visits GROUP BY sex', **keys, "epsilon": 0.5}
    found = ask(clinic_place, **asked, headers={"Accept": "text/csv"})
    head, *lines = csv.reader(io.StringIO(found.text))
    assert head[:2] == ["sex", "'=n"]
    assert {line[0] for line in lines} == {"'=cmd|' /C calc'!A0", "F"}


def test_arrow_that_cannot_be_made_is_refused_before_anything_is_charged(
    clinic_place: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.server.releases.find_spec", lambda _name: None)
    before = spent(clinic_place)
    refused = ask(clinic_place, epsilon=0.275, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (501, "T600")
    assert spent(clinic_place) == before


def test_a_key_is_charged_once_and_belongs_to_one_person(clinic_place: Clinic) -> None:
    before = spent(clinic_place)
    answers = [ask(clinic_place, epsilon=0.28, headers={"Idempotency-Key": "k1"}).json() for _ in range(3)]
    assert spent(clinic_place) - before == pytest.approx(0.28)
    assert answers[0]["rows"] == answers[1]["rows"] == answers[2]["rows"]
    reused = ask(clinic_place, epsilon=0.29, headers={"Idempotency-Key": "k1"})
    assert (reused.status_code, reused.json()["error"]["code"]) == (409, "T122")
    assert ask(clinic_place, "analyst", epsilon=0.29, headers={"Idempotency-Key": "k1"}).status_code == 200


def test_a_key_does_not_pay_for_another_question_with_the_same_event(clinic_place: Clinic) -> None:
    key = {"Idempotency-Key": "k2"}
    sql = "SELECT COUNT(*) AS n FROM visits WHERE age < {}"
    assert ask(clinic_place, sql=sql.format(31), epsilon=0.281, headers=key).status_code == 200
    before = spent(clinic_place)
    for age in range(32, 37):
        refused = ask(clinic_place, sql=sql.format(age), epsilon=0.281, headers=key)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "T122")
    assert spent(clinic_place) == before


def test_more_than_what_is_left_is_refused_with_what_would_fit(clinic_place: Clinic) -> None:
    before = spent(clinic_place)
    refused = ask(clinic_place, epsilon=400)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (402, "T300")
    assert 0 < error["details"]["fits"]["epsilon"] < 100
    assert spent(clinic_place) == before


@pytest.mark.parametrize(
    ("question", "status", "code"),
    [
        ({}, 400, "T100"),
        ({"epsilon": 1, "rho": 1}, 400, "T100"),
        ({"epsilon": -1}, 400, "T100"),
        ({"epsilon": "1"}, 400, "T100"),
        ({"epsilon": 1, "epsilom": 2}, 400, "T100"),
        ({"epsilon": 1, "level": 0.9991}, 400, "T100"),
        ({"epsilon": 1, "level": 0}, 400, "T100"),
        ({"epsilon": 1, "sql": "SELEC"}, 400, "T130"),
        ({"epsilon": 1, "sql": "SELECT COUNT(*) FROM visits; DROP TABLE visits"}, 400, "T130"),
        ({"epsilon": 1, "sql": "SELECT * FROM visits"}, 422, "T203"),
        ({"epsilon": 1, "sql": "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id"}, 422, "T203"),
        ({"epsilon": 1, "sql": "SELECT COUNT(*) FROM secret"}, 404, "T131"),
        ({"epsilon": 1, "sql": "SELECT COUNT(*) FROM nowhere"}, 404, "T131"),
        ({"epsilon": 1, "sql": "SELECT COUNT(nothing) FROM visits"}, 404, "T131"),
        ({"epsilon": 1, "keys": {"nothing": [1]}}, 404, "T131"),
        ({"epsilon": 1, "keys": {"sex": [{"date": "never"}]}}, 400, "T100"),
    ],
)
def test_bad_questions_are_refused_and_cost_nothing(
    question: dict[str, Any], status: int, code: str, clinic_place: Clinic
) -> None:
    before = spent(clinic_place)
    refused = ask(clinic_place, **question)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
    assert spent(clinic_place) == before


def test_a_statistic_is_that_of_the_curator(clinic_place: Clinic) -> None:
    asked = {"values": {"table": "visits", "column": "age"}, "epsilon": 0.3, "rows_per_unit": 2}
    before = spent(clinic_place)
    first = clinic_place.call(
        "analyst.visits", "POST", "/v1/statistics", json={"function": "mean", "arguments": asked}
    ).json()
    assert spent(clinic_place) - before == pytest.approx(0.3)
    assert first["interval"][0] <= first["value"] <= first["interval"][1]
    ours = tacit.stats.mean(clinic_place.curator.table("visits")["age"], epsilon=0.3, rows_per_unit=2)
    assert (ours.value, ours.cost.epsilon) == (first["value"], 0)


@pytest.mark.parametrize(
    ("function", "arguments", "status"),
    [
        ("mean", {"values": {"table": "secret", "column": "score"}, "epsilon": 1}, 404),
        ("mean", {"values": {"table": "visits", "column": "nothing"}, "epsilon": 1}, 404),
        ("mean", {"values": [1, 2, 3], "epsilon": 1}, 400),
        ("mean", {"epsilon": 1}, 400),
        ("mean", {"values": {"table": "visits", "column": "age"}, "epsilon": 1, "budget": 1}, 400),
        ("mean", {"values": {"table": "visits", "column": "age"}, "epsilon": 1, "analyst": "owner"}, 400),
        ("__import__", {"values": {"table": "visits", "column": "age"}, "epsilon": 1}, 400),
        ("RunningCount", {"values": {"table": "visits", "column": "age"}, "epsilon": 1}, 400),
    ],
)
def test_bad_statistics_are_refused_and_cost_nothing(
    function: str, arguments: dict[str, Any], status: int, clinic_place: Clinic
) -> None:
    before = spent(clinic_place)
    refused = clinic_place.call(
        "analyst.visits", "POST", "/v1/statistics", json={"function": function, "arguments": arguments}
    )
    assert refused.status_code == status
    assert refused.json()["error"]["message"]
    assert spent(clinic_place) == before
