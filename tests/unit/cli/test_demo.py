"""`tacit demo`: the tour says what is true, costs what it says, and looks the same in every run."""

import contextlib
import io
import json
import re
from typing import Any

import pytest

from tacit.cli.app import run
from tacit.cli.tour.clinic import PATIENTS, STAY_DAYS_MAX, WEIGHT_KG_MAX, invented_patients
from tacit.cli.tour.stops import STOPS

PEOPLE = invented_patients()


def shown(*options: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as place:
        assert run(["demo", *options]) == 0
    return place.getvalue()


@pytest.fixture(scope="module")
def text() -> str:
    return shown()


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(shown("--json", "--no-serve"))
    return answer


def stop(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return next(stop for stop in facts["stops"] if stop["name"] == name)


def test_the_tour_goes_from_the_protected_over_the_first_answer_to_python(text: str) -> None:
    stations = [
        "   protected", "How many patients have diabetes?", "   private answer", "   true value", "   cost",
        "left of ε 3", "1,000 times over", "from tacit.mechanisms import",
    ]  # fmt: skip
    places = [text.index(words) for words in stations]
    assert places == sorted(places)


def test_true_values_are_shown_with_the_reason_why_they_may_be(text: str) -> None:
    labelled = [line for line in text.splitlines() if line.strip().startswith("true value")]
    assert len(labelled) == len(STOPS) + 1
    assert all("shown because these people are invented" in line for line in labelled)


def test_the_tour_fits_80_columns_without_trailing_spaces(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r" $", text, re.MULTILINE)


def test_two_tours_have_equally_many_lines_and_other_answers(text: str) -> None:
    again = shown()
    assert len(again.splitlines()) == len(text.splitlines())
    assert again != text


def test_what_was_spent_and_what_is_left_make_up_the_budget(facts: dict[str, Any]) -> None:
    budget = facts["budget"]
    assert budget["spent"] == pytest.approx(sum(stop["epsilon"] for stop in facts["stops"]))
    assert budget["spent"] + budget["left"] == pytest.approx(budget["epsilon"]) == 3
    assert budget["left"] >= 0
    assert budget["composition"] == "plain sum"


def test_the_true_values_are_those_of_the_clinic(facts: dict[str, Any]) -> None:
    with_diabetes = sum(patient.diagnosis == "diabetes" for patient in PEOPLE)
    assert stop(facts, "count")["answers"][0]["truth"] == facts["averaging"]["truth"] == with_diabetes
    assert sum(answer["truth"] for answer in stop(facts, "histogram")["answers"]) == facts["patients"] == PATIENTS
    mean_kg = sum(patient.weight_kg for patient in PEOPLE) / PATIENTS
    assert stop(facts, "mean")["answers"][0]["truth"] == pytest.approx(mean_kg)


@pytest.mark.parametrize("name", ["count", "mean", "histogram", "randomized_response"])
def test_an_interval_encloses_its_answer(name: str, facts: dict[str, Any]) -> None:
    assert all(one["low"] < one["answer"] < one["high"] for one in stop(facts, name)["answers"])


def test_answers_lie_near_the_truth(facts: dict[str, Any]) -> None:
    """Each bound is passed with a probability below 10^-9: ten or more times the noise's scale."""
    count, mean = stop(facts, "count")["answers"][0], stop(facts, "mean")["answers"][0]
    assert abs(count["answer"] - count["truth"]) <= 50
    assert abs(mean["answer"] - mean["truth"]) <= 10
    share = stop(facts, "randomized_response")["answers"][0]
    assert abs(share["answer"] - share["truth"]) <= 15


def test_averaging_finds_the_truth_at_a_price_beyond_the_budget(facts: dict[str, Any]) -> None:
    """The average of 1,000 has a standard deviation of 0.09; it strays by 0.6 less often than once in 10^9 runs."""
    attack = facts["averaging"]
    assert attack["average"] == pytest.approx(attack["truth"], abs=0.6)
    assert attack["epsilon_total"] == 500 > facts["budget"]["epsilon"]
    assert attack["within_budget"] == 6


def test_two_coins_lift_two_percent_to_no_more_than_six(text: str) -> None:
    assert "2 % likely of somebody thinks 5.8 %" in " ".join(text.split())


def test_the_python_that_is_shown_runs(facts: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    exec(facts["python"], {})
    assert "DiscreteLaplace" in capsys.readouterr().out


def test_everybody_is_protected_under_one_relation(facts: dict[str, Any]) -> None:
    assert facts["relation"] == "replace-one"
    assert facts["invented"] is True


def test_the_clinic_is_the_same_in_every_run() -> None:
    assert invented_patients() == PEOPLE


def test_every_patient_keeps_the_bounds_that_the_noise_was_made_for() -> None:
    assert all(0 <= patient.weight_kg <= WEIGHT_KG_MAX for patient in PEOPLE)
    assert all(0 <= patient.stay_days <= STAY_DAYS_MAX for patient in PEOPLE)
    assert all(0 <= patient.age < 100 for patient in PEOPLE)


def test_sums_of_weights_are_exact() -> None:
    assert all((4 * patient.weight_kg).is_integer() for patient in PEOPLE)
