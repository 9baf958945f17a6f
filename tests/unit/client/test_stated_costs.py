"""What a training costs is stated once: an estimator and its training that differ are refused wherever it starts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tacit.cli.app import run
from tacit.learn import LinearRegression
from tacit.privacy.errors import InvalidInput
from tests.unit.client.serving import Place, served

ESTIMATOR_STATES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"epsilon": 0.1}, {"epsilon": 1.5}),
    ({"epsilon": 1.5}, {"epsilon": 0.1}),
    ({"epsilon": 1.0, "delta": 1e-12}, {"delta": 1e-9}),
    ({"delta": 1e-12}, {"epsilon": 1.0, "delta": 1e-9}),
]
"""What the estimator states, and what its training does."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("server") / "clinic") as found:
        yield found


STARTS: dict[str, Callable[[Place, Any, dict[str, Any]], Any]] = {
    "curator.train": lambda place, given, cost: place.curator.train("visits", given, ["sex"], "age", **cost),
    "curator.prepare_training": lambda place, given, cost: place.curator.prepare_training(
        "visits", given, ["sex"], "age", **cost
    ),
    "client.train": lambda place, given, cost: place.client("ana").train("visits", given, ["sex"], "age", **cost),
    "client.training_preview": lambda place, given, cost: place.client("ana").training_preview(
        "visits", given, ["sex"], "age", **cost
    ),
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("own", "stated"), ESTIMATOR_STATES)
def test_an_estimator_and_its_training_that_differ_are_refused(
    place: Place, start: str, own: dict[str, Any], stated: dict[str, Any]
) -> None:
    before = place.curator.budget("visits").spent()
    with pytest.raises(InvalidInput, match="state one of them"):
        STARTS[start](place, LinearRegression(**own), stated)
    assert place.curator.budget("visits").spent() == before


@pytest.mark.parametrize("stated", [{"epsilon": 1.5}, {"rho": 0.1}])
@pytest.mark.parametrize("own", [{"epsilon": 0.1}, {"epsilon": 0.1, "delta": 1e-9}, {"delta": 1e-9}])
def test_a_fit_on_a_table_states_its_cost_once(place: Place, own: dict[str, Any], stated: dict[str, Any]) -> None:
    if "epsilon" in stated and "epsilon" not in own:
        pytest.skip("these two go together")
    with pytest.raises(InvalidInput, match="state one of them"):
        LinearRegression(**own).fit_table(place.curator.table("visits"), ["sex"], "age", **stated)


@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_a_command_has_one_place_for_a_cost(place: Place, capsys: pytest.CaptureFixture[str], name: str) -> None:
    asked = (
        f"learn train visits --estimator LinearRegression --features sex --target age --epsilon 1.5 --set {name}=0.1"
    )
    assert run(shlex.split(f"{asked} --yes --folder {place.folder}")) == 2
    assert f"{name} is no parameter of an estimator" in capsys.readouterr().err


@pytest.mark.parametrize("start", ["curator.prepare_training", "client.training_preview"])
@pytest.mark.parametrize("alike", [1, 1.0, np.float64(1), np.array(1.0), Decimal(1)])
def test_the_same_number_in_another_type_is_no_difference(place: Place, start: str, alike: Any) -> None:
    STARTS[start](place, LinearRegression(epsilon=1.0), {"epsilon": alike})
