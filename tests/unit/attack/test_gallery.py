"""The gallery: each script, in its small form, shows what it says, and all of them are run and described."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gallery.__main__ import exhibit, main, names
from gallery.common import Exhibit, Row, adult, married, show
from tests.style.rules import ROOT


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)


def shown(name: str) -> Exhibit:
    return exhibit(name, small=True)


def test_every_script_is_run_by_make_and_has_its_line_and_its_story() -> None:
    page = (ROOT / "gallery/README.md").read_text(encoding="utf-8")
    assert len(names()) >= 7
    for name in names():
        assert f"[{name}]({name}.py)" in page
        story = (ROOT / f"gallery/{name}.py").read_text(encoding="utf-8").split('"""')[1]
        assert 5 <= len(story.strip().splitlines()) <= 12
    outcome = subprocess.run(["make", "gallery", "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "-m gallery" in outcome.stdout


def test_one_database_fits_the_block_and_many_fit_the_noisy_one(tmp_path: Path) -> None:
    pytest.importorskip("ortools")
    found = shown("census_block")
    assert found["databases that fit all statistics"] == 1
    assert found["databases that fit without 4A"] == 2
    assert found["databases that fit without 2A and 2B"] == 8
    assert found["certain records, without 2A and 2B"] == 4
    assert found["databases without ages that fit, exact counts by two columns"] == 1
    assert found["databases without ages that fit, tacit at epsilon 1"] != 1
    show(found, tmp_path / "plots")
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"census_block.png", "census_block.svg"}


def test_the_figures_of_a_small_run_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Exhibit("a title", [Row("a figure", 1.0, published="2")])
    show(made, tmp_path, is_small=True)
    assert "small run, not to be compared with the published figures" in capsys.readouterr().out
    show(made, tmp_path)
    assert "small run" not in capsys.readouterr().out


def test_voters_like_the_governor_are_few_and_most_links_are_right() -> None:
    found = shown("governors_record")
    assert found["voters with his birth date, men in the ZIP code, mean of 3 lists"] < 3
    assert found["links that are right"] > 0.7
    assert found["unique by ZIP, birth date, sex, ZIP codes of one size"] == pytest.approx(0.86, abs=0.02)
    by_median = [
        found[f"unique by ZIP, birth date, sex, median ZIP code {median}, assumed"]
        for median in ("2,000", "2,800", "4,000")
    ]
    assert by_median == sorted(by_median)


def test_two_exact_counts_tell_a_secret() -> None:
    assert shown("differencing")["secrets guessed right, exact counts of at least 10 people"] == 1


def test_bounded_noise_averages_out_and_what_is_spent_in_all_is_said() -> None:
    found = shown("averaging")
    assert found["from 200 answers"] >= 0.9
    (row,) = (
        row for row in found.rows if row.figure == "tacit, epsilon 1 for each of 30 guesses, 30 in all: 2 answers"
    )
    assert row.published == ""
    assert row.theory == "at most 0.731"
    assert row.bounds is not None
    assert row.bounds[0] < row.here < row.bounds[1]


def test_all_counts_leave_at_most_four_times_their_error_wrong() -> None:
    found = shown("dinur_nissim_exhaustive")
    assert found["runs with more secrets wrong than 4 E"] == 0
    assert found["secrets of 6 wrong at most, random noise within 3"] <= 1


def test_random_counts_are_decoded_as_predicted() -> None:
    found = shown("dinur_nissim_decoding")
    assert found["bits recovered of 200, noise 0.25 sqrt(n)"] >= 0.97
    assert found["tacit: noise over sqrt(n)"] > 5


def test_sticky_noise_is_decoded_through_arithmetic_on_ids() -> None:
    found = shown("diffix_query")
    assert found["secrets recovered of 60, sticky noise of 2"] >= 0.9
    assert found["tacit: noise over sqrt(n)"] > 5


def test_rows_learnt_by_heart_are_found_through_weak_defences_and_hardly_through_dp_sgd() -> None:
    pytest.importorskip("torch")
    found = shown("weak_defences")
    assert found["mislabelled rows found, no defence"] > 0.2
    assert found["mislabelled rows found, DP-SGD, epsilon 0.5"] < 0.15
    (row,) = (row for row in found.rows if row.figure == "mislabelled rows found, DP-SGD, epsilon 0.5")
    assert row.theory == "at most 0.0165"
    (few,) = (row for row in found.rows if row.figure == "recall lost at epsilon 0.5, group: few")
    assert few.bounds is not None
    assert few.bounds[0] <= few.here <= few.bounds[1]
    assert few.bounds[1] > -0.2, "noise helps the few far beyond chance"
    assert set(found.plots) == {"weak_defences", "weak_defences_groups"}


def test_a_network_learns_from_digits_with_little_noise_and_not_with_much(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    found = shown("dp_sgd_epsilon")
    accuracies = {
        row.figure.split(",")[1].strip(): row.here for row in found.rows if row.figure.startswith("network, noise")
    }
    assert accuracies["noise 2"] > 30 > accuracies["noise 8"]
    assert len([row for row in found.rows if row.figure.endswith("range, points")]) == 6
    show(found, tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {"dp_sgd_epsilon", "dp_sgd_epochs", "dp_sgd_sweeps"}


def test_people_of_adult_are_attacked_where_the_environment_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert married(2) is None
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    assert adult() is None
    (tmp_path / "adult").mkdir()
    rows = "\n".join(f"{age},Married-civ-spouse" if age % 2 else f"{age},Divorced" for age in range(30, 42))
    (tmp_path / "adult/train.csv").write_text(f"age,marital_status\n{rows}\n", encoding="utf-8")
    secrets = married(4)
    assert secrets is not None
    assert secrets.tolist() == [False, True, False, True]
    assert shown("differencing")["secrets guessed right, exact counts of at least 10 people"] == 1


def test_votes_of_teachers_cost_less_in_simulation_than_is_charged() -> None:
    pytest.importorskip("sklearn")
    found = shown("pate_table")
    dependent = found["  data-dependent epsilon, simulated (not private)"]
    assert 0 < found["  of it, selecting alone"] < dependent < found["  data-independent epsilon"]
    assert 0 < found["Confident, threshold 80 % of teachers: answered of 100 (expected)"] < 100
    assert {"pate_accuracy", "pate_costs", "pate_answered"} == set(found.plots)


def test_a_script_shows_its_story_as_help() -> None:
    command = [sys.executable, "-m", "gallery.census_block", "--help"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Garfinkel" in outcome.stdout


def test_an_unknown_exhibit_is_refused(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(main, ["census_blok", "--folder", str(tmp_path)])
    assert outcome.exit_code == 2
    assert "census_block" in outcome.output
    assert list(tmp_path.iterdir()) == []
