"""`tacit learn` of a folder: charged once, kept, predicted with, refused in one sentence."""

from __future__ import annotations

import csv as csv_files
import io
import json
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from tacit import Curator
from tacit.cli.app import run
from tacit.learn import from_document
from tacit.privacy import events
from tests.unit.cli.stats_commands import epsilon_spent
from tests.unit.cli.terminal import Typist

Capture = pytest.CaptureFixture[str]
TRAIN = (
    "learn train visits --estimator LinearRegression --features sex,age --target weight --set target_bounds='[0, 200]'"
)
GAUSSIAN = "learn train visits --estimator LogisticRegression --features age --target sex --set max_iter=50"
NEW = "name,age,sex\nx,30,F\ny,50,M\nz,200,unlisted\n"


def shown(capsys: Capture, words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(shlex.split(words))
    out, err = capsys.readouterr()
    return code, out, err


def found(capsys: Capture, words: str) -> dict[str, Any]:
    code, out, err = shown(capsys, f"{words} --json")
    assert code == 0, err
    return dict(json.loads(out))


@pytest.fixture
def new(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    path.write_text(NEW, encoding="utf-8")
    return path


def test_a_model_is_trained_listed_shown_exported_predicted_with_and_removed(
    clinic: str, new: Path, tmp_path: Path, capsys: Capture
) -> None:
    at = f"--folder {clinic}"
    quoted = found(capsys, f"{TRAIN} --epsilon 2 {at} --preview")
    assert epsilon_spent(capsys, clinic) == 0
    made = found(capsys, f"{TRAIN} --epsilon 2 {at} --purpose weights")
    assert made["cost"] == quoted["cost"]
    assert epsilon_spent(capsys, clinic) == pytest.approx(2)
    again = found(capsys, f"{TRAIN} --epsilon 2 {at}")
    assert (again["model"], again["cost"]["epsilon"]) == (made["model"], 0)
    listed = found(capsys, f"learn list {at}")["models"]
    assert [one["model"] for one in listed] == [made["model"]]
    assert found(capsys, f"learn show {made['model']} {at}")["card"] == made["card"]

    code, out, _ = shown(capsys, f"learn predict {made['model']} {new} {at}")
    (name,), *lines = csv_files.reader(io.StringIO(out))
    assert (code, name, len(lines)) == (0, "weight", 3)
    file = tmp_path / "model.json"
    assert shown(capsys, f"learn export {made['model']} {file} {at}")[0] == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = {"sex": ["F", "M", "unlisted"], "age": [30, 50, 200]}
    predicted = from_document(json.loads(file.read_text())).predict(rows).tolist()
    assert [float(line[0]) for line in lines] == predicted
    told = found(capsys, f"learn predict {made['model']} {new} {at}")
    assert [row["weight"] for row in told["rows"]] == predicted

    assert shown(capsys, f"table remove visits --yes {at}")[0] == 0
    assert shown(capsys, f"learn predict {made['model']} {new} {at}")[1] == out
    assert shown(capsys, f"learn remove {made['model']} --yes {at}")[0] == 0
    assert found(capsys, f"learn list {at}")["models"] == []


def test_probabilities_are_columns_by_class(clinic: str, new: Path, capsys: Capture) -> None:
    words = "learn train visits --estimator GaussianNB --features age --target sex --epsilon 1"
    made = found(capsys, f"{words} --folder {clinic}")["model"]
    _, out, _ = shown(capsys, f"learn predict {made} {new} --method predict_proba --folder {clinic}")
    assert out.splitlines()[0] == "F,M"
    assert len(out.splitlines()) == 4


def test_a_training_that_is_counted_at_less_delta_than_it_states_is_warned_of_once(
    clinic: str, capsys: Capture
) -> None:
    code, out, err = shown(capsys, f"{GAUSSIAN} --epsilon 0.5 --delta 0.001 --folder {clinic}")
    assert (code, "LogisticRegression" in out) == (0, True)
    assert err.count("tacit: warning: the budget counts this training at delta") == 1
    assert "a budget with a delta of at least 0.02 counts it as stated" in err


def test_a_refusal_says_the_epsilon_that_was_asked_for(clinic: str, capsys: Capture) -> None:
    code, _, err = shown(capsys, f"{GAUSSIAN} --epsilon 500 --delta 1e-9 --folder {clinic} --yes")
    assert (code, "asked for epsilon 500 at delta 1e-9, 60 is left" in err, "rho" in err) == (3, True, False)


def test_more_than_half_of_what_is_left_needs_a_confirmation(clinic: str, capsys: Capture) -> None:
    code, _, err = shown(capsys, f"{TRAIN} --epsilon 40 --folder {clinic}")
    assert (code, "more than half" in err, "--yes" in err) == (2, True, True)
    assert epsilon_spent(capsys, clinic) == 0
    code, out, err = shown(capsys, f"{TRAIN} --epsilon 40 --folder {clinic} --yes")
    assert (code, "LinearRegression" in out, "remaining: ε" in err) == (0, True, True)


def test_what_uses_up_the_delta_of_a_budget_needs_a_confirmation(clinic: str, capsys: Capture) -> None:
    """The plain sum of epsilons ends with its delta, and what is left is then less by far more than the cost."""
    with Curator(clinic) as curator:
        budget = curator.budget("visits")
        budget.charge(events.Approximate(1.0, budget.remaining().delta))
        left = budget.remaining().epsilon
    words = f"sql 'SELECT COUNT(*) AS n FROM visits' --rho 1e-4 --folder {clinic}"
    code, _, err = shown(capsys, words)
    assert (code, "and leaves ε" in err, "delta of the budget" in err) == (2, True, True)
    code, out, err = shown(capsys, words.replace("sql", "preview", 1))
    assert (code, "leaves" in out + err) == (0, True)
    assert shown(capsys, f"{words} --yes")[0] == 0
    with Curator(clinic) as curator:
        assert curator.budget("visits").remaining().epsilon < left / 2


def test_a_person_is_asked_on_a_terminal(clinic: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*shlex.split(TRAIN), "--epsilon", "40", "--folder", clinic]
    with monkeypatch.context() as patch:
        code, out = Typist(patch).runs(*words, types=["n"])
        assert (code, "continue?" in out) == (130, True)
    assert epsilon_spent(capsys, clinic) == 0


REFUSED = {
    "an unknown table": (
        "learn train nothing --estimator LinearRegression --features age --target sex --epsilon 1",
        "T",
    ),
    "an unknown estimator": (
        "learn train visits --estimator SVC --features age --target sex --epsilon 1",
        "no estimator SVC",
    ),
    "an unknown column": (f"{TRAIN.replace('age', 'height')} --epsilon 1", "height"),
    "no bounds": (TRAIN.partition(" --set")[0] + " --epsilon 1", "target_bounds"),
    "a budget": (f"{TRAIN} --epsilon 1 --set budget=3", "budget is no parameter"),
    "an unknown parameter": (f"{TRAIN} --epsilon 1 --set color=red", "no parameter 'color'"),
    "what is no JSON": (f"{TRAIN} --epsilon 1 --set bounds=0:120", "must be JSON"),
    "a parameter twice": (f"{TRAIN} --epsilon 1 --set rows_per_unit=1 --set rows_per_unit=2", "is set twice"),
    "no value": (f"{TRAIN} --epsilon 1 --set bounds", "write NAME=JSON, such as max_iter=20"),
    "no features": (
        "learn train visits --estimator LinearRegression --features , --target sex --epsilon 1",
        "features",
    ),
    "an unknown analyst": (f"{TRAIN} --epsilon 1 --analyst zoe", "zoe"),
    "an absent model": ("learn show 0123", "there is no model 0123"),
    "predictions of an absent model": ("learn predict ../x new.csv", "there is no model ../x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_one_sentence_with_a_code_and_charges_nothing(
    clinic: str, capsys: Capture, name: str
) -> None:
    words, reason = REFUSED[name]
    code, out, err = shown(capsys, f"{words} --folder {clinic}")
    assert code in (2, 3), err
    assert (out, err.startswith("tacit: T"), len(err.splitlines())) == ("", True, 1)
    assert reason in err
    assert "internal error" not in err
    assert epsilon_spent(capsys, clinic) == 0


WRONG = {
    "a missing column": ("age\n1\n", "has no column sex"),
    "no rows": ("age,sex\n", "has no rows"),
    "an empty file": ("", "has no column sex"),
    "a missing value": ("age,sex\n,F\n", "missing values"),
    "a text for a number": ("age,sex\n3,F\nold,F\n", "new.csv, line 3: age is 'old', which is no integer value"),
    "a short line": ("age,sex\n3\n", "line 2 of"),
    "a decimal comma": ("age,sex\n20,F\n20,5,F\n", "has 3 fields, and the header 2"),
    "a blank line": ("age,sex\n3,F\n\n4,F\n", "missing values"),
    "a doubled header": ("age,sex,age\n3,F,4\n", "two columns age"),
    "no number": ("age,sex\nnan,F\n", "line 2: age is 'nan'"),
    "what is no text": ("age,sex\n\x00,\udc80\n", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_cannot_be_read_are_one_sentence(clinic: str, new: Path, capsys: Capture, name: str) -> None:
    made = found(capsys, f"{TRAIN} --epsilon 1 --folder {clinic}")["model"]
    text, reason = WRONG[name]
    new.write_bytes(text.encode("utf-8", "surrogateescape"))
    code, out, err = shown(capsys, f"learn predict {made} {new} --folder {clinic}")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert reason in err
    assert "internal error" not in err


def test_blank_lines_keep_predictions_beside_their_rows(clinic: str, new: Path, capsys: Capture) -> None:
    """A single feature can be missing where null is listed; blank lines at the end are no rows."""
    listed = '--set categories=\'{"sex": ["F", "M", null]}\''
    made = found(
        capsys,
        f"learn train visits --estimator CategoricalNB --features sex --target ward {listed} --epsilon 1 "
        f'--set classes=\'["A", "B"]\' --folder {clinic}',
    )["model"]
    new.write_text("sex\nF\n\nM\n\n\n", encoding="utf-8")
    _, out, _ = shown(capsys, f"learn predict {made} {new} --folder {clinic}")
    assert len(out.splitlines()) == 1 + 3


@pytest.mark.parametrize("form", ["csv", "markdown"])
def test_predictions_are_written_before_the_last_rows_are_read(
    clinic: str, new: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    made = found(capsys, f"{TRAIN} --epsilon 1 --folder {clinic}")["model"]
    whole = shown(capsys, f"learn predict {made} {new} --format {form} --folder {clinic}")[1]
    monkeypatch.setattr("tacit.cli.feature_files.ROWS_AT_ONCE", 2)
    assert shown(capsys, f"learn predict {made} {new} --format {form} --folder {clinic}")[1] == whole
    new.write_text(f"{NEW},,\n", encoding="utf-8")
    code, out, err = shown(capsys, f"learn predict {made} {new} --format {form} --folder {clinic}")
    assert (code, "missing values" in err, len(err.splitlines())) == (2, True, 1)
    assert out == "".join(whole.splitlines(keepends=True)[:-1])


def test_a_table_shows_the_beginning_of_an_id_by_which_a_model_is_found(clinic: str, capsys: Capture) -> None:
    made = found(capsys, f"{TRAIN} --epsilon 1 --folder {clinic}")["model"]
    _, out, _ = shown(capsys, f"learn list --format table --folder {clinic}")
    (line,) = [line for line in out.splitlines() if made[:6] in line]
    assert line.split()[0] == made[:12]
    assert found(capsys, f"learn show {made[:12]} --folder {clinic}")["model"] == made
    assert found(capsys, f"learn show {made[:6]} --folder {clinic}")["model"] == made
    assert "there is no model" in shown(capsys, f"learn show {made[:5]} --folder {clinic}")[2]
    for path in (Path(clinic) / "models").glob("*.json"):
        twin = made[:6] + "0" * 18
        path.with_name(f"{twin}.json").write_text(path.read_text().replace(made, twin), encoding="utf-8")
    code, _, err = shown(capsys, f"learn remove {made[:6]} --yes --folder {clinic}")
    assert (code, f"several models begin with {made[:6]}" in err) == (2, True)


def test_a_file_is_never_overwritten(clinic: str, new: Path, capsys: Capture) -> None:
    made = found(capsys, f"{TRAIN} --epsilon 1 --folder {clinic}")["model"]
    code, _, err = shown(capsys, f"learn export {made} {new} --folder {clinic}")
    assert (code, "exists and is not overwritten" in err, new.read_text()) == (2, True, NEW)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--estimator LinearRegression --features sex --target weight", "--set target_bounds='[LOW, HIGH]'"),
        ("--estimator LinearRegression --features sex --target weight", "--set target_bounds=learn"),
        ("--estimator StandardScaler --features weight", "--set bounds='{\"COLUMN\": [LOW, HIGH]}'"),
        ("--estimator StandardScaler --features weight", "--set bounds=learn"),
        ("--estimator GaussianNB --features age --target age", "each column is a feature once"),
        ("--estimator GaussianNB --features sex --target age", '--set classes=\'["A", "B"]\''),
        ("--estimator GaussianNB --features sex --target age --set classes=F,M", '--set classes=\'["F", "M"]\''),
        (
            "--estimator LinearRegression --features sex",
            "LinearRegression needs a column that it predicts; state --target",
        ),
        ("--estimator StandardScaler --features age --target weight", "leave --target out"),
        ("--estimator PrivateSearch --features age --target weight", "by curator.train in Python"),
    ],
)
def test_hints_name_what_the_command_offers(words: str, hint: str, clinic: str, capsys: Capture) -> None:
    code, _, err = shown(capsys, f"learn train visits {words} --epsilon 1 --folder {clinic}")
    assert code in (2, 3)
    assert hint in err
    assert "--bounds" not in err


def test_hints_can_be_followed_as_they_are_printed(clinic: str, capsys: Capture) -> None:
    words = f"learn train visits --estimator StandardScaler --features weight --epsilon 1 --folder {clinic}"
    for setting in ("bounds='{\"weight\": [0, 200]}'", "bounds=learn"):
        assert shown(capsys, f"{words} --set {setting} --preview")[0] == 0
