"""`tacit demo`: the tour says what is true, costs what it says, and looks the same in every run."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tacit.cli.app import run
from tacit.cli.tour import clinic, display, scenario
from tacit.cli.tour.clinic import invented_patients
from tacit.curator import Curator
from tacit.mechanisms.simulation import SeededSource
from tacit.query import PlanSettings, QuerySpec, Target

PEOPLE = invented_patients()


def shown(*options: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as place:
        assert run(["demo", "--no-serve", *options]) == 0
    return place.getvalue()


@pytest.fixture(scope="module")
def text() -> str:
    return shown()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "clinic"


@pytest.fixture(scope="module")
def facts(kept: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(shown("--json", "--folder", str(kept)))
    return answer


def test_the_tour_goes_from_the_protected_over_the_answer_and_the_attack_to_the_code(text: str) -> None:
    stations = [
        "Who is protected", "SELECT ward", "private answer", "95 % interval", "because these people are invented",
        "COUNT(DISTINCT patient_id)    ε 0.20", "remaining (ana)", "The same query again", "cost            ε 0\n",
        "A differencing attack", "exact answers", "bound at ε 0.5", "refused         T300", "import tacit", "curl -s http://127.0.0.1",
    ]  # fmt: skip
    places = [text.index(words) for words in stations]
    assert places == sorted(places)


def test_the_tour_fits_80_columns_without_trailing_spaces(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r" $", text, re.MULTILINE)


def test_a_pipe_gets_no_colour(text: str) -> None:
    assert "\x1b" not in text


def test_two_tours_have_equally_many_lines_and_other_answers(text: str) -> None:
    again = shown()
    assert len(again.splitlines()) == len(text.splitlines())
    assert again != text


def test_the_true_values_are_those_of_the_clinic(facts: dict[str, Any]) -> None:
    rows = facts["query"]["rows"]
    assert {ward: cells["patients"]["truth"] for ward, cells in rows.items()} == Counter(one.ward for one in PEOPLE)
    costs = [cost for one in PEOPLE if one.ward == "heart" for cost, _ in one.visits]
    assert rows["heart"]["mean_cost"]["truth"] == pytest.approx(sum(costs) / len(costs))
    assert facts["patients"] == len(PEOPLE)
    assert facts["visits"] == sum(len(one.visits) for one in PEOPLE)


def test_answers_lie_in_their_intervals_and_near_the_truth(facts: dict[str, Any]) -> None:
    """The noise of a count has scale 5, so that 110 is passed less often than once in 10^9 runs."""
    for cells in facts["query"]["rows"].values():
        assert all(one["low"] < one["answer"] < one["high"] for one in cells.values())
        assert abs(cells["patients"]["answer"] - cells["patients"]["truth"]) <= 110


def test_the_items_make_up_the_price_that_was_previewed_and_charged(facts: dict[str, Any]) -> None:
    question = facts["query"]
    assert sum(item["epsilon"] for item in question["items"]) == pytest.approx(0.5)
    assert question["previewed"] == question["epsilon"] == 0.5
    assert [item["noise"].split()[0] for item in question["items"]] == ["Laplace"] * 3


def test_what_was_spent_is_what_the_ledger_says(facts: dict[str, Any], kept: Path) -> None:
    with Curator(kept) as curator:
        spent = curator.budget("visits", "ana").spent().epsilon
        assert spent == pytest.approx(facts["query"]["epsilon"] + facts["attack"]["epsilon"]) == 1.0
        assert facts["budget"]["epsilon"] - facts["budget"]["left"] == pytest.approx(spent)


def test_the_same_question_again_has_the_same_answer_at_no_cost(facts: dict[str, Any]) -> None:
    assert facts["again"] == {"is_same": True, "epsilon": 0.0, "left": facts["query"]["left"]}


def test_the_refusal_says_what_would_fit(facts: dict[str, Any]) -> None:
    refused = facts["refused"]
    assert refused["code"] == "T300"
    assert refused["fits"] == pytest.approx(refused["left"]) == pytest.approx(0.5)
    assert "epsilon=0.5 would fit" in refused["message"]


def test_the_attack_knows_all_from_exact_answers_and_stays_below_its_bound_with_private_ones(
    facts: dict[str, Any],
) -> None:
    found = facts["attack"]
    assert found["exact_rate"] == 1.0
    assert 0.5 < found["private_rate"] < found["bound"] == pytest.approx(math.exp(0.5) / (1 + math.exp(0.5)))
    assert found["is_simulated"] is True
    assert found["epsilon_simulated"] == pytest.approx(found["attacks"] * 0.5)
    assert found["attacks"] >= 2_000


def test_half_of_the_targets_have_the_diagnosis_and_each_is_alone() -> None:
    chosen = scenario.targets(PEOPLE)
    assert len(chosen) >= 200
    assert sum(map(scenario.has_it, chosen)) * 2 == len(chosen)
    alike = Counter((one.age, one.sex, one.town) for one in PEOPLE)
    assert {alike[one.age, one.sex, one.town] for one in chosen} == {1}


@pytest.mark.parametrize("seed", range(4))
def test_a_simulated_answer_is_what_the_curators_own_road_releases(
    facts: dict[str, Any], kept: Path, seed: int
) -> None:
    victim = scenario.targets(PEOPLE)[seed]
    but_one = sum(map(scenario.has_it, PEOPLE)) - scenario.has_it(victim)
    with Curator(kept) as curator:
        asked = QuerySpec(scenario.everybody_but(victim), Target(epsilon=scenario.EPSILON_EACH), PlanSettings())
        released = curator.queries().release(asked, source=SeededSource(seed)).rows[0]["n"]
        plan = scenario.plan_of(curator, scenario.EVERYBODY, scenario.EPSILON_EACH)
    assert plan.price.noises[0].release([but_one], source=SeededSource(seed))[0] == released


def test_an_attack_on_answers_without_noise_would_be_seen(facts: dict[str, Any], kept: Path) -> None:
    """With a hundred times the epsilon there is hardly any noise, and the same simulation shows it."""
    with Curator(kept) as curator:
        plan = scenario.plan_of(curator, scenario.EVERYBODY, 100 * scenario.EPSILON_EACH)
    assert plan.price.noises[0].release([300] * 3, source=SeededSource(1)).tolist() == [300] * 3


def test_the_python_that_is_shown_runs(
    facts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program: dict[str, Any] = {}
    exec(facts["python"], program)
    program["curator"].close()
    assert "'ward': 'eyes'" in capsys.readouterr().out
    with Curator(tmp_path / "my-clinic") as curator:
        assert curator.budget("visits", "ana").spent().epsilon == 0.5


def test_without_a_folder_the_python_says_how_to_get_one(text: str) -> None:
    assert display.FIRST_DEMO in text
    assert '"clinic/visits.csv"' in text


def test_the_next_step_serves_the_folder_that_was_kept_and_says_what_was_written(text: str) -> None:
    console = Console(file=io.StringIO(), width=80)
    display.show_end(console, "my demo")
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "Next: tacit serve 'my demo'\n" in shown
    assert "my demo/visits.csv has the invented visits" in shown
    assert "first: tacit serve demo, which" in display.curl("http://127.0.0.1:8321", None, "demo")
    assert "Next: run tacit demo to serve the clinic" in text


def test_nothing_is_left_of_a_clinic_that_nobody_asked_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shown("--json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["catalog.toml", "ledger.sqlite", "visits.csv"])
def test_a_folder_with_something_in_it_is_refused_and_left_alone(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    assert run(["demo", "--no-serve", "--folder", str(tmp_path)]) == 2
    assert "T121" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_the_clinic_is_the_same_in_every_run(tmp_path: Path) -> None:
    assert invented_patients() == PEOPLE
    clinic.write_visits(PEOPLE, tmp_path / "first.csv")
    clinic.write_visits(invented_patients(), tmp_path / "second.csv")
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()


def test_every_patient_keeps_what_the_catalog_says() -> None:
    assert all(0 <= one.age <= clinic.AGE_MAX for one in PEOPLE)
    assert all(1 <= len(one.visits) <= clinic.VISITS_MAX for one in PEOPLE)
    assert all(0 <= cost <= clinic.COST_MAX for one in PEOPLE for cost, _ in one.visits)
    assert {one.ward for one in PEOPLE} == set(clinic.WARDS)
    assert {one.diagnosis for one in PEOPLE} == set(clinic.DIAGNOSES)


def test_the_budget_promises_enough_for_so_many_patients(recwarn: pytest.WarningsRecorder, tmp_path: Path) -> None:
    clinic.create_clinic(tmp_path / "clinic", PEOPLE).close()
    assert list(recwarn) == []
