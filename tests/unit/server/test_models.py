"""Models over REST: trained, listed, downloaded, predicted with and deleted; hostile input gets one clear error."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any, Final

import pytest

from tacit import learn
from tacit.curator import models
from tacit.curator.models import NOT_STATED
from tacit.learn import from_document
from tacit.privacy.errors import TooLarge
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

WHO: Final = "analyst.visits"
_EPSILON: Final = count(1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = clinic.make(tmp_path_factory.mktemp("clinic"))
    with made.client:
        yield made
    made.close()


def training(**other: Any) -> dict[str, Any]:
    """Return a training that was not made before."""
    return {
        "table": "visits",
        "estimator": "LinearRegression",
        "parameters": {"rows_per_unit": 2, "target_bounds": [0, 90]},
        "features": ["sex"],
        "target": "age",
        "epsilon": 1 + next(_EPSILON) * 1e-3,
        **other,
    }


@pytest.fixture(scope="module")
def model(place: Clinic) -> str:
    response = place.call(WHO, "POST", "/v1/models", json=training())
    assert response.status_code == 200, response.text
    return str(response.json()["model"]["id"])


def spent(place: Clinic) -> float:
    return place.curator.budget("visits", WHO).spent().epsilon


def test_a_preview_is_what_the_training_is_charged_and_again_it_costs_nothing(place: Clinic) -> None:
    asked = training(purpose="ages")
    quoted = place.call(WHO, "POST", "/v1/models/preview", json=asked).json()
    first = place.call(WHO, "POST", "/v1/models", json=asked).json()
    again = place.call(WHO, "POST", "/v1/models", json=asked).json()
    assert (quoted["is_released"], quoted["fits"], quoted["analyst"]) == (False, True, WHO)
    assert first["cost"] == quoted["cost"] == first["model"]["cost"]
    assert first["model"]["permit"] == first["permit"] is not None
    assert (again["cost"]["epsilon"], again["permit"], again["model"]) == (0, None, first["model"])
    assert place.call(WHO, "POST", "/v1/models/preview", json=asked).json()["is_released"]


def test_a_lost_response_is_asked_for_again_by_its_key_and_charged_once(place: Clinic) -> None:
    asked, before = training(), spent(place)
    found = [place.call(WHO, "POST", "/v1/models", json=asked, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert len({one.json()["model"]["id"] for one in found}) == 1
    assert spent(place) - before == pytest.approx(asked["epsilon"], rel=0.2)
    other = place.call(WHO, "POST", "/v1/models", json=training(), headers={"Idempotency-Key": "k"})
    assert other.status_code == 409


def test_a_training_that_takes_longer_is_a_job_with_the_model_in_it(place: Clinic) -> None:
    accepted = place.call(WHO, "POST", "/v1/models", json=training(wait_s=0))
    assert accepted.status_code == 202
    path = f"/v1/jobs/{accepted.json()['job']}"
    while (job := place.call(WHO, "GET", path).json())["state"] == "running":
        time.sleep(0.01)
    assert place.call(WHO, "GET", f"/v1/models/{job['release']['model']['id']}").status_code == 200


def test_a_downloaded_model_predicts_what_the_server_predicts(place: Clinic, model: str) -> None:
    rows = {"sex": ["F", "M", "F", "unlisted"]}
    said = place.call(WHO, "POST", f"/v1/models/{model}/predictions", json={"columns": rows}).json()
    found = place.call(WHO, "GET", f"/v1/models/{model}").json()
    assert from_document(found["document"]).predict(rows).tolist() == said["values"]
    assert (said["method"], said["names"], len(said["values"])) == ("predict", [], 4)
    assert found["features"] == [{"name": "sex", "kind": "text"}]
    listed = place.call(WHO, "GET", "/v1/models?dataset=visits").json()
    assert model in [one["id"] for one in listed]
    assert {one["document"] for one in listed} == {None}
    assert place.call(WHO, "GET", "/v1/models?dataset=secret").json() == []


def test_the_same_training_of_another_analyst_is_a_model_of_their_own(place: Clinic) -> None:
    asked = training()
    first = place.call(WHO, "POST", "/v1/models", json=asked).json()["model"]
    second = place.call("analyst", "POST", "/v1/models", json=asked).json()
    assert second["cost"]["epsilon"] == 0
    assert second["model"]["id"] != first["id"]
    assert place.call("analyst", "GET", f"/v1/models/{first['id']}").status_code == 404
    assert place.call("analyst", "GET", f"/v1/models/{second['model']['id']}").json()["analyst"] == "analyst"


def test_the_file_of_a_hidden_model_is_not_read(place: Clinic, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    contents = models._contents

    def recorded(path: Path) -> Any:
        read.append(path.stem)
        return contents(path)

    monkeypatch.setattr(models, "_contents", recorded)
    place.call("analyst", "GET", "/v1/models")  # from now on the facts of all models are known
    for method, path, options in (
        ("GET", "/v1/models/{}", {}),
        ("DELETE", "/v1/models/{}", {}),
        ("POST", "/v1/models/{}/predictions", {"json": {"columns": {"sex": ["F"]}}}),
    ):
        work = []
        for name in (model, "0" * len(model)):
            read.clear()
            assert place.call("analyst", method, path.format(name), **options).status_code == 404
            work.append(len(read))
        assert work == [0, 0]
    assert place.call(WHO, "GET", f"/v1/models/{model}").status_code == 200
    assert read == [model]


def test_a_training_takes_the_delta_that_is_stated(place: Clinic) -> None:
    stated = {"parameters": {"rows_per_unit": 2, "max_iter": 50, "classes": ["F", "M"]}, "features": ["age"]}
    asked = training(estimator="LogisticRegression", target="sex", **stated)
    quote = place.call(WHO, "POST", "/v1/models/preview", json={**asked, "delta": 1e-9}).json()
    assert quote["cost"]["delta"] == 1e-9
    assert "Gaussian" in quote["lines"][0]["text"]
    wrong = place.call(WHO, "POST", "/v1/models/preview", json={**asked, "delta": 2})
    assert (wrong.status_code, "delta" in wrong.json()["error"]["message"]) == (400, True)


def test_a_deleted_model_is_gone_and_the_deletion_is_on_record(place: Clinic) -> None:
    made = place.call(WHO, "POST", "/v1/models", json=training()).json()["model"]["id"]
    assert place.call(WHO, "DELETE", f"/v1/models/{made}").status_code == 403
    assert place.call("curator.visits", "DELETE", f"/v1/models/{made}").status_code == 204
    assert place.call(WHO, "GET", f"/v1/models/{made}").status_code == 404
    assert place.access.audit.records(1, 1000)[-2].action == "model.remove"


REFUSED: Final[dict[str, tuple[dict[str, Any], int, str]]] = {
    "an unknown estimator": ({"estimator": "SVC"}, 404, "there is no estimator SVC"),
    "what is no estimator": ({"estimator": "PATE"}, 404, "there is no estimator PATE"),
    "an unknown parameter": ({"parameters": {"fit_intercep": True}}, 400, "did you mean fit_intercept?"),
    "a budget": ({"parameters": {"budget": 3}}, 400, "budget is no parameter"),
    "a delta": ({"parameters": {"delta": 0.5}}, 400, "delta is no parameter"),
    "an epsilon of the estimator": ({"parameters": {"epsilon": 9}}, 400, "epsilon is no parameter"),
    "a search": ({"estimator": "PrivateSearch"}, 404, "PrivateSearch is trained in the curator's process alone"),
    "a huge number": ({"estimator": "KMeans", "parameters": {"n_clusters": 10**30}}, 400, "1,000 at most"),
    "an unknown column": ({"features": ["height"]}, 404, "height"),
    "a column twice": ({"features": ["sex", "sex"]}, 400, "once"),
    "the target as a feature": ({"features": ["age"]}, 400, "target"),
    "no target": ({"target": None}, 400, "target"),
    "no features": ({"features": []}, 400, "features"),
    "no bounds": ({"parameters": {"target_bounds": [5, 1], "rows_per_unit": 2}}, 400, "bound"),
    "epsilon 0": ({"epsilon": 0}, 400, "epsilon"),
    "more than is left": ({"epsilon": 500.0}, 402, "left"),
    "an unknown field": ({"seed": 1}, 400, "seed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_training_that_cannot_be_is_refused_with_a_reason_and_charges_nothing(place: Clinic, name: str) -> None:
    other, status, reason = REFUSED[name]
    before = spent(place)
    response = place.call(WHO, "POST", "/v1/models", json=training(**other))
    assert response.status_code == status, response.text
    assert reason in response.json()["error"]["message"]
    assert spent(place) == before


ODD: Final[tuple[Any, ...]] = (
    *(True, -1, 0, 10**30, 1e308, "x", "learn", [], {}, [1, "a"], [[1]], {"a": 1}, [None], [1, 0], {"sex": []}),
    *({"date": "2024-01-01"}, {"sex": {"sex": 1}}, {"sex": "learn"}, ["F", "F"], {"age": [0, 1]}),
)


@pytest.mark.parametrize("name", [one for one in learn.ESTIMATORS if one != "PrivateSearch"])
def test_whatever_a_parameter_is_there_is_no_defect_and_no_long_planning(place: Clinic, name: str) -> None:
    kind = getattr(learn, name)
    facts: dict[str, Any] = {"estimator": name, "features": ["age"], "target": "sex" if kind.needs_target else None}
    if name == "LinearRegression":
        facts |= {"table": "labs", "features": ["sex"], "target": "value"}
    own = [one for one in inspect.signature(kind).parameters if one not in NOT_STATED]
    for turn, (parameter, odd) in enumerate(product(own, ODD)):
        if turn % 3:
            continue
        asked = training(parameters={"rows_per_unit": 2, parameter: odd}, **facts)
        begun = time.monotonic()
        response = place.call(WHO, "POST", "/v1/models/preview", json=asked)
        assert response.status_code < 500, (parameter, odd, response.text)
        assert time.monotonic() - begun < 5.0, (parameter, odd)


HOSTILE: Final[dict[str, tuple[str, str]]] = {
    "no columns": ('{"columns": {}}', "no column sex"),
    "another column": ('{"columns": {"sex": ["F"], "age": [3]}}', "no feature 'age'"),
    "no list": ('{"columns": {"sex": "F"}}', "columns.sex"),
    "numbers for texts": ('{"columns": {"sex": [1, 2]}}', "sex has missing values"),
    "null": ('{"columns": {"sex": [null]}}', "sex has missing values"),
    "lists": ('{"columns": {"sex": [["F"]]}}', "sex has missing values"),
    "NaN": ('{"columns": {"sex": [NaN]}}', ""),
    "infinity": ('{"columns": {"sex": [1e400]}}', "sex has missing values"),
    "an unknown method": ('{"columns": {"sex": ["F"]}, "method": "fit"}', "no method 'fit'; use predict"),
    "a private method": ('{"columns": {"sex": ["F"]}, "method": "__class__"}', "no method '__class__'"),
    "an unknown field": ('{"columns": {"sex": ["F"]}, "rows": 1}', "rows"),
    "too many rows": (json.dumps({"columns": {"sex": ["F"] * 100_001}}), "100,001 rows"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rows_get_one_clear_error(place: Clinic, model: str, name: str) -> None:
    text, reason = HOSTILE[name]
    headers = {"Content-Type": "application/json"}
    response = place.call(WHO, "POST", f"/v1/models/{model}/predictions", content=text, headers=headers)
    assert response.status_code == 400, response.text
    assert reason in response.json()["error"]["message"]


def test_a_request_for_predictions_that_take_too_long_names_the_rows_that_do_not(
    place: Clinic, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = place.curator.models.get(model).estimator.numbers_for_a_row
    monkeypatch.setattr("tacit.server.routes.models.NUMBERS_MAX", 3 * numbers + 1)
    path = f"/v1/models/{model}/predictions"
    response = place.call(WHO, "POST", path, json={"columns": {"sex": ["F"] * 4}})
    assert (response.status_code, response.json()["error"]["code"]) == (400, TooLarge.code)
    assert "at most 3 rows at once, or download the model" in response.json()["error"]["message"]
    assert place.call(WHO, "POST", path, json={"columns": {"sex": ["F"] * 3}}).status_code == 200


def test_clusters_that_would_write_long_statements_are_refused(place: Clinic) -> None:
    facts: dict[str, Any] = {"estimator": "KMeans", "features": ["age"], "target": None}
    for parameters, status in (({"n_clusters": 256, "max_iter": 100}, 400), ({"n_clusters": 4, "max_iter": 100}, 200)):
        asked = training(parameters={"rows_per_unit": 2, **parameters}, **facts)
        before = time.process_time()
        response = place.call(WHO, "POST", "/v1/models/preview", json=asked)
        assert response.status_code == status, response.text
        assert time.process_time() - before < 5.0


@pytest.mark.parametrize("name", ["..", "0" * 24, "catalog", "%2e%2e%2fcatalog", "A" * 24, "0" * 23 + "\u00e9"])
def test_no_name_of_a_model_reaches_other_files(place: Clinic, name: str) -> None:
    assert place.call("owner", "GET", f"/v1/models/{name}").status_code in (404, 307)
    assert place.call("owner", "DELETE", f"/v1/models/{name}").status_code in (404, 405)
