"""How answers are written in a pipe, and what is asked before most of a budget is spent."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

import tacit
from tacit.cli.app import run
from tests.unit.cli.terminal import Typist

BY_SEX = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
MEAN = ("stats", "mean", "visits", "age", "--by", "sex", "--rows-per-unit", "1")


@pytest.fixture
def clinic(tmp_path: Path) -> str:
    rows = "".join(f"{i},{20 + i % 60},{'FM'[i % 2]}\n" for i in range(400))
    (tmp_path / "visits.csv").write_text(f"patient,age,sex\n{rows}", encoding="utf-8")
    with tacit.Curator(tmp_path / "clinic") as curator:
        columns = {"age": tacit.Bounds(0, 120), "sex": tacit.Categories(["F", "M"])}
        curator.add_table("visits", tmp_path / "visits.csv", unit="patient", columns=columns)
        curator.set_budget("visits", epsilon=10)
        curator.add_analyst("ana", budgets={"visits": tacit.Budget(epsilon=1)})
    return str(tmp_path / "clinic")


def spent(folder: str) -> float:
    with tacit.Curator(folder) as curator:
        return curator.budget("visits").spent().epsilon


def written(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("question", [("sql", BY_SEX), MEAN], ids=["sql", "stats"])
def test_every_format_holds_the_same_numbers(
    question: tuple[str, ...], clinic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*question, "--epsilon", "1", "--folder", clinic)
    piped = written(capsys, *words)
    assert written(capsys, *words, "--format", "csv") == piped
    names, *rows = csv.reader(io.StringIO(piped))
    assert names == (["sex", "n", "n_low", "n_high"] if question[0] == "sql" else ["sex", "value", "low", "high"])
    assert [row[0] for row in rows] == ["F", "M"]
    document = json.loads(written(capsys, *words, "--format", "json"))
    assert document == json.loads(written(capsys, *words, "--json"))
    value = "n" if question[0] == "sql" else "value"
    assert [float(row[1]) for row in rows] == [row[value] for row in document["rows"]]
    assert all(float(row[2]) <= float(row[1]) <= float(row[3]) for row in rows)
    head, rule, *cells = written(capsys, *words, "--format", "markdown").splitlines()
    assert head.startswith("| sex | ")
    assert set(rule) == set("| -")
    assert [line.split(" | ")[0] for line in cells] == ["| F", "| M"]
    assert re.search(r"±| to ", cells[0])
    table = written(capsys, *words, "--format", "table")
    assert "─" in table
    assert re.search(r"±| to ", table)


def test_csv_at_a_terminal_is_csv_alone(clinic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist(monkeypatch)
    _, shown = typist.runs("sql", BY_SEX, "--epsilon", "1", "--folder", clinic, "--format", "csv")
    assert "sex,n,n_low,n_high" in shown


def test_texts_with_commas_and_quotes_are_one_field(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--keys", 'sex=["a,\\"b", "F"]', "--epsilon", "1", "--folder", clinic)
    rows = list(csv.reader(io.StringIO(written(capsys, "sql", BY_SEX, *words))))
    assert [row[0] for row in rows] == ["sex", 'a,"b', "F"]


def test_two_formats_and_errors_in_the_wanted_one(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", BY_SEX, "--epsilon", "1", "--folder", clinic, "--json", "--format", "csv"]) == 2
    capsys.readouterr()
    assert run(["sql", "SELECT", "--epsilon", "1", "--folder", clinic, "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"].startswith("T1")


@pytest.mark.parametrize("question", [("sql", BY_SEX), MEAN], ids=["sql", "stats"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["pipe", "json"])
def test_more_than_half_of_what_is_left_needs_a_yes_in_a_script(
    question: tuple[str, ...], form: tuple[str, ...], clinic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*question, "--epsilon", "6", "--folder", clinic, *form)
    capsys.readouterr()
    assert run(words) == 2
    said = capsys.readouterr()
    assert (said.out, spent(clinic)) == ("", 0)
    assert "this costs ε 6 of the remaining ε 10 on visits, which is more than half" in said.err
    assert "--yes" in said.err
    assert run([*words, "--yes"]) == 0
    assert spent(clinic) == pytest.approx(6)
    assert run(words) == 0  # released before: costs nothing, and is not asked about
    assert spent(clinic) == pytest.approx(6)


def test_half_of_what_is_left_is_not_asked_about_and_what_does_not_fit_is_refused(
    clinic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sql", BY_SEX, "--epsilon", "5", "--folder", clinic]) == 0
    assert run(["sql", BY_SEX, "--epsilon", "5.5", "--folder", clinic]) == 3
    assert run([*MEAN, "--epsilon", "5.5", "--folder", clinic]) == 3
    assert "would fit" in capsys.readouterr().err


def test_the_cap_of_an_analyst_is_what_is_left_to_her(clinic: str) -> None:
    for question in (("sql", BY_SEX), MEAN):
        assert run([*question, "--epsilon", "0.8", "--analyst", "ana", "--folder", clinic]) == 2
    assert spent(clinic) == 0


@pytest.mark.parametrize("question", [("sql", BY_SEX), MEAN], ids=["sql", "stats"])
def test_a_terminal_is_asked(question: tuple[str, ...], clinic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist(monkeypatch)
    words = (*question, "--epsilon", "6", "--folder", clinic)
    code, shown = typist.runs(*words, types=["n"])
    assert code != 0
    assert "continue?" in shown
    assert spent(clinic) == 0
    code, shown = typist.runs(*words, types=["y"])
    assert code == 0
    assert "±" in shown or re.search(r"\d to \d", shown), shown  # the interval of a mean may be skewed
    assert spent(clinic) == pytest.approx(6)
    code, shown = typist.runs(*words)
    assert code == 0
    assert "continue?" not in shown
