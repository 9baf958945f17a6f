"""Models over the client: what the embedded curator trains and predicts, a server does alike."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
from sklearn import linear_model

import tacit
from tacit.cli.app import run
from tacit.client import Client
from tacit.learn import GaussianNB, LabelDPClassifier, LinearRegression, PrivateSearch
from tacit.privacy.errors import BudgetExceeded, InvalidInput, NotPermitted, UnknownName, WrongType
from tests.unit.client.serving import Place, served

ROWS = {"sex": ["F", "M", "F"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("server") / "clinic") as found:
        yield found


@pytest.fixture(scope="module")
def ana(place: Place) -> Client:
    return place.client("ana")


def test_an_estimator_is_trained_alike_here_and_there(place: Place, ana: Client) -> None:
    local = place.curator.train("visits", LinearRegression(), ["sex"], "age", 1.0, analyst="ana")
    remote = ana.train("visits", LinearRegression(), ["sex"], "age", 1.0)
    assert (remote.id, remote.cost.epsilon) == (local.model_id, 0)
    assert remote.remaining["visits"] == place.curator.budget("visits", "ana").remaining()
    assert remote.predict(ROWS).values == remote.estimator.predict(ROWS).tolist() == local.predict(ROWS).tolist()
    assert remote.predict(pd.DataFrame(ROWS)).values == remote.predict(ROWS).values
    kept = place.curator.models.get(remote.id)
    assert (remote.features, remote.kinds, remote.card) == (kept.features, kept.kinds, kept.card)
    assert (remote.price, remote.price.epsilon) == (kept.price, pytest.approx(1.0))


def test_a_preview_is_what_is_charged_and_a_name_with_parameters_is_an_estimator(place: Place, ana: Client) -> None:
    parameters = {"target_bounds": tacit.Bounds(0, 100), "fit_intercept": False}
    quote = ana.training_preview("visits", "LinearRegression", ["sex"], "age", 0.5, parameters=parameters)
    made = ana.train("visits", "LinearRegression", ["sex"], "age", 0.5, parameters=parameters, purpose="ages")
    assert made.cost.epsilon == quote.epsilon == pytest.approx(0.5)
    same = LinearRegression(target_bounds=(0, 100), fit_intercept=False, epsilon=0.5)
    assert ana.training_preview("visits", same, ["sex"], "age").is_released
    assert place.curator.models.get(made.id).permit == made.permit


def test_models_are_listed_read_and_removed(place: Place, ana: Client) -> None:
    made = ana.train("visits", GaussianNB(epsilon=0.25), ["age"], "sex")
    assert ana.model(made.id) == made
    assert made in ana.models("visits")
    assert ana.models("nothing") == []
    likely = made.predict({"age": [20, 70]}, "predict_proba")
    assert (likely.names, len(likely.values)) == (["F", "M"], 2)
    with pytest.raises(NotPermitted):
        ana.remove_model(made.id)
    with pytest.raises(UnknownName):
        place.client("ben").model(made.id)
    place.client("olga").remove_model(made.id)
    with pytest.raises(UnknownName, match="there is no model"):
        ana.model(made.id)


def test_a_search_and_estimators_of_others_are_refused_by_what_is_possible(ana: Client) -> None:
    search = PrivateSearch(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, epsilon=1.0)
    with pytest.raises(WrongType, match=r"a server trains no PrivateSearch.*curator\.train"):
        ana.train("visits", search, ["age"], "sex")
    for foreign in (linear_model.LogisticRegression(), LabelDPClassifier(linear_model.LogisticRegression())):
        with pytest.raises(WrongType, match=rf"estimators of tacit.learn alone.*{type(foreign).__name__}"):
            ana.train("visits", foreign, ["age"], "sex", 1.0)


def test_errors_are_those_of_the_curator(ana: Client, place: Place) -> None:
    with pytest.raises(BudgetExceeded):
        place.client("ben").train("visits", "LinearRegression", ["sex"], "age", 3.0)
    with pytest.raises(UnknownName, match="there is no estimator"):
        ana.train("visits", "SVC", ["sex"], "age", 1.0)
    with pytest.raises(WrongType):
        ana.train("visits", "LinearRegression", "sex", "age", 1.0)
    with pytest.raises(WrongType):
        ana.train("visits", 7, ["sex"], "age", 1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="budget"):
        ana.train("visits", LinearRegression(budget=tacit.Budget(1.0)), ["sex"], "age", 1.0)
    made = ana.train("visits", LinearRegression(), ["sex"], "age", 1.0)
    for rows in ({}, {"sex": ["F"], "age": [1]}, {"sex": [None]}, {"sex": [float("nan")]}):
        with pytest.raises(InvalidInput):
            made.predict(rows)


@pytest.mark.filterwarnings("default::tacit.curator.models.UnreadableModelWarning")
def test_a_damaged_file_stops_nobody_and_a_command_removes_it(
    place: Place, ana: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ana.train("visits", GaussianNB(epsilon=0.5), ["age"], "sex")
    damaged = place.folder / "models" / f"{'1' * 24}.json"
    damaged.write_text("{")
    assert made in ana.models()
    assert made.predict({"age": [20]}).values
    assert ana.train("visits", GaussianNB(epsilon=0.75), ["age"], "sex").id != made.id
    assert run(["learn", "list", "--folder", str(place.folder)]) == 0
    assert f"warning: {damaged}" in capsys.readouterr().err
    assert run(["learn", "remove", damaged.stem, "--folder", str(place.folder)]) == 2
    assert "which cannot be read" in capsys.readouterr().err
    assert run(["learn", "remove", damaged.stem, "--folder", str(place.folder), "--yes"]) == 0
    assert not damaged.exists()
