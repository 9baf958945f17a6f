"""What is charged is shown: answers with more numbers or rows than a server shows are refused before their charge."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit import stats
from tacit.ledger import answer_storage
from tacit.server.routes.statistics import FUNCTIONS
from tacit.server.settings import ServerLimits
from tests.support.statistic_calls import AGE, CALLS, PRICE, SEX
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

ROWS = 6


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = clinic.make(tmp_path_factory.mktemp("clinic"), limits=ServerLimits(rows=ROWS))
    notes = pd.DataFrame({"patient_id": range(400), "word": [f"word {number % 10}" for number in range(400)]})
    made.curator.add_table("notes", notes, unit="patient_id", dataset="visits")
    with made.client:
        yield made
    made.close()


def spent(place: Clinic) -> float:
    return place.curator.budget("visits").spent().epsilon


def statistic(place: Clinic, function: str, **arguments: Any) -> Any:
    asked = {"function": function, "arguments": {**PRICE, **arguments}}
    return place.call("analyst.visits", "POST", "/v1/statistics", json=asked)


TENTHS = list(range(0, 100, 10))
LEVEL = {f"{number} to {number + 1}": "low" if number < 2 else "high" for number in range(5)}
WIDE: tuple[dict[str, Any], ...] = (
    {"function": "histogram", "values": AGE, "edges": TENTHS},
    {"function": "cdf", "values": AGE, "bins": 8},
    {"function": "cdf", "values": AGE, "bins": 8, "bounds": "learn"},
    {"function": "mean", "values": AGE, "by": AGE, "keys": TENTHS},
    {"function": "mean", "values": AGE, "by": AGE, "keys": TENTHS, "bounds": "learn"},
    {"function": "top_k", "values": AGE, "k": 7},
    {"function": "top_k", "values": AGE, "k": 7, "keys": TENTHS},
    {"function": "quantiles", "values": AGE, "qs": [number / 8 for number in range(1, 8)]},
    {"function": "contingency", "values": AGE, "others": SEX, "keys": [1, 2, 3, 4]},
    {"function": "prefixes", "values": AGE, "edges": TENTHS},
    {"function": "ranges", "values": AGE, "edges": TENTHS},
    {"function": "hierarchy", "values": AGE, "edges": [0, 1, 2, 3, 4, 5], "levels": [LEVEL]},
    {"function": "marginals", "columns": {"sex": SEX, "age": AGE}, "domain": {"age": [0, 40, 80]}},
)


@pytest.mark.parametrize("asked", WIDE, ids=lambda one: "-".join(map(str, one.values()))[:30].replace(" ", ""))
def test_a_statistic_with_too_many_numbers_is_refused_before_its_charge(small: Clinic, asked: dict[str, Any]) -> None:
    before = spent(small)
    for _ in range(2):
        refused = statistic(small, **asked)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "T207"), refused.text
    assert spent(small) == before


def test_a_statistic_whose_keys_take_too_many_bytes_is_refused_before_its_charge(
    small: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_storage, "ANSWER_BYTES_MAX", answer_storage.FRAME_BYTES + 9_000)
    before = spent(small)
    long = [letter * 3_000 for letter in "FM"]
    for asked in (
        {"function": "count", "values": SEX, "by": SEX, "keys": [*long, "x" * 4_000]},
        {"function": "marginals", "columns": {"x": SEX, "y": SEX}, "domain": {"x": long}, "ways": [2]},
    ):
        refused = statistic(small, **asked)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "T207"), refused.text
    assert spent(small) == before


@pytest.mark.sampled(13)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_answer_has_the_numbers_and_statements_that_its_plan_says(
    clinic_place: Clinic, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    curator = clinic_place.curator
    asked, ran = {**PRICE, **CALLS[function]}, []
    run = curator.engines.engine(("duckdb", "")).run
    monkeypatch.setattr(
        curator.engines.engine(("duckdb", "")), "run", lambda *some, **named: (ran.append(some), run(*some, **named))[1]
    )
    learns = "bounds" in inspect.signature(FUNCTIONS[function]).parameters and not function.endswith("_test")
    for more in ({"epsilon": 10}, {"epsilon": 11, **({"bounds": "learn"} if learns else {})}):
        ran.clear()
        planned = stats.prepare(FUNCTIONS[function], **_columns(curator, asked | more))
        statements = planned.statistic.work.statements
        assert not ran
        answer = planned.release()
        keys = answer.keys
        assert planned.plan.numbers == (1 if keys is None else len(keys))
        assert statements == len(ran)


def _columns(curator: tacit.Curator, value: Any) -> Any:
    """Return arguments with columns in the place of their names."""
    if isinstance(value, dict) and set(value) == {"table", "column"}:
        return curator.table(value["table"])[value["column"]]
    if isinstance(value, dict):
        return {name: _columns(curator, one) for name, one in value.items()}
    return value


AGES = {"keys": {"age": list(range(90))}, "epsilon": 20.0}
BY_AGE = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
BY_WORD = "SELECT word, COUNT(*) AS n FROM notes GROUP BY word"
"""A key whose values are not public."""


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/preview"])
def test_a_question_with_too_many_public_rows_is_refused_before_its_charge(small: Clinic, path: str) -> None:
    before = spent(small)
    for sql in (BY_AGE, f"{BY_AGE} LIMIT 7", f"{BY_AGE} LIMIT 89 OFFSET 80", f"{BY_AGE} ORDER BY n DESC"):
        refused = small.call("analyst.visits", "POST", path, json={"sql": sql, **AGES})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "T207"), sql
    assert spent(small) == before
    for sql in (f"{BY_AGE} LIMIT {ROWS}", f"{BY_AGE} LIMIT 89 OFFSET 84", f"{BY_AGE} ORDER BY n DESC LIMIT 3"):
        assert small.call("analyst.visits", "POST", path, json={"sql": sql, **AGES}).status_code == 200, sql


def test_rows_whose_number_is_not_public_are_cut_and_the_others_cost_nothing(small: Clinic) -> None:
    whole = {"keys": AGES["keys"], "epsilon": 21.0}
    hidden = {"epsilon": 21.0, "limits": {"groups_per_unit": 1}}
    for sql, asked in ((f"{BY_AGE} HAVING n > -1000", whole), (f"{BY_WORD} ORDER BY word", hidden)):
        found = small.call("analyst.visits", "POST", "/v1/queries", json={"sql": sql, **asked}).json()
        assert "error" not in found, found
        before = spent(small)
        assert len(found["rows"]) == len(found["intervals"]) == ROWS
        assert f"shows {ROWS} of" in found["card"]
        for offset in (3, ROWS):
            more = small.call(
                "analyst.visits", "POST", "/v1/queries", json={"sql": f"{sql} LIMIT {ROWS} OFFSET {offset}", **asked}
            ).json()
            assert more["cost"]["epsilon"] == 0
            assert found["rows"][offset:] == more["rows"][: ROWS - offset]
        assert spent(small) == before
