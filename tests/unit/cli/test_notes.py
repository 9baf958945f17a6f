"""What commands say beside their answers, and how they end where something stops them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.cli import app
from tacit.cli.app import EXIT_INTERRUPTED, run
from tacit.cli.rendering import remaining_facts
from tests.unit.cli.stats_commands import epsilon_spent, run_stats
from tests.unit.cli.terminal import Typist

CLAMPED = "counted: values of age below 0 or above 120 count as 0 or 120; intervals do not include the effect of this"
TACIT = (sys.executable, "-m", "tacit")


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert run(list(words)) == code
    return capsys.readouterr()


def test_a_statistic_in_a_pipe_says_what_is_counted_and_clamped(
    capsys: pytest.CaptureFixture[str], clinic: str
) -> None:
    _, _, err = run_stats(capsys, f"sum visits age --rows-per-unit 2 --epsilon 0.5 --folder {clinic}")
    lines = err.splitlines()
    assert lines[0].startswith("counted: at most 2 rows of each patient; rows beyond that are left out")
    assert lines[1] == CLAMPED
    assert lines[2:] == ["cost: ε 0.5", "remaining: ε 59.5 on visits"]


def test_a_query_says_it_on_preview_and_below_the_answer(capsys: pytest.CaptureFixture[str], clinic: str) -> None:
    asked = ("SELECT AVG(age) AS a FROM visits", "--epsilon", "0.5", "--folder", clinic)
    out, _ = said(capsys, "preview", *asked)
    sentence = CLAMPED.removeprefix("counted: ")
    assert f"clamped,{sentence}\n" in out
    assert "interval of a,width depends on the data\n" in out
    labels = [line.split(",")[0] for line in out.splitlines()]
    assert len(labels) == len(set(labels))
    _, err = said(capsys, "sql", *asked)
    assert f"clamped: {sentence}" in err.splitlines()


def test_top_k_says_that_rare_values_are_left_out(capsys: pytest.CaptureFixture[str], clinic: str) -> None:
    code, _, err = run_stats(capsys, f"top-k visits ward -k 9 --epsilon 0.5 --folder {clinic}")
    assert code == 0
    assert re.search(r"^counted: values that fewer than about \d+ units have are left out", err, re.MULTILINE)


def test_the_remaining_budget_of_an_analyst_is_said_to_be_hers(capsys: pytest.CaptureFixture[str], clinic: str) -> None:
    said(capsys, "budget", "analyst", "ana", "visits", "--epsilon", "1", "--folder", clinic)
    words = ("SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.3", "--analyst", "ana", "--folder", clinic)
    _, err = said(capsys, "sql", *words)
    assert "remaining: ε 0.7 for ana on visits" in err
    _, _, err = run_stats(capsys, f"count visits age --epsilon 0.3 --analyst ana --folder {clinic}")
    assert "remaining: ε 0.4 for ana on visits" in err


def test_what_is_left_is_rounded_as_in_refusals() -> None:
    from tacit import Cost

    assert remaining_facts({"t": Cost(0.09999999999999998, 0, 0)})[0].text == "ε 0.1 on t"


def test_a_test_names_its_p_value(capsys: pytest.CaptureFixture[str], clinic: str) -> None:
    code, out, _ = run_stats(capsys, f"t-test visits age --by sex --keys F,M --epsilon 1 --folder {clinic}")
    assert code == 0
    assert out.splitlines()[0].startswith("p_value,statistic,")


def test_an_added_table_says_its_kinds_its_rule_and_how_rows_are_read_again(
    capsys: pytest.CaptureFixture[str], clinic: str, csv: str
) -> None:
    out, _ = said(capsys, "table", "add", "more", csv, "--unit", "patient", "--folder", clinic)
    assert "columns: patient integer, age integer, sex text, ward text, weight real, day date" in out
    assert "rows without a value of patient are left out; its rows were read now" in out
    assert f"tacit table refresh more --folder {clinic}" in out
    out, _ = said(capsys, "table", "add", "each", csv, "--each-row", "--folder", clinic)
    assert "are left out" not in out


def test_text_with_bounds_names_the_kind_that_takes_them(
    capsys: pytest.CaptureFixture[str], clinic: str, csv: str
) -> None:
    words = ("table", "add", "more", csv, "--unit", "patient", "--bounds", "ward=0:9", "--folder", clinic)
    _, err = said(capsys, *words, code=2)
    assert "--kind ward=integer" in err
    assert "become missing" in err


def test_a_large_delta_is_warned_of(capsys: pytest.CaptureFixture[str], clinic: str, csv: str) -> None:
    _, err = said(capsys, "budget", "set", "x", "--epsilon", "1", "--delta", "0.01", "--folder", clinic)
    assert "warning: delta 0.01" in err
    words = ("table", "add", "y", csv, "--unit", "patient", "--epsilon", "1", "--delta", "0.01", "--folder", clinic)
    _, err = said(capsys, *words)
    assert "warning: delta 0.01" in err


def test_a_request_is_filed_listed_and_decided_by_another_person(
    capsys: pytest.CaptureFixture[str], clinic: str
) -> None:
    at = ("--folder", clinic)
    said(capsys, "budget", "analyst", "ana", "visits", "--epsilon", "1", *at)
    _, err = said(
        capsys, "sql", "SELECT COUNT(*) FROM visits", "--epsilon", "2", "--analyst", "ana", "--yes", *at, code=3
    )
    assert f"to ask for more: tacit budget request --folder {clinic} visits --epsilon E --reason TEXT" in err
    asked = ("budget", "request", "visits", "--epsilon", "0.5", "--reason", "more")
    said(capsys, *asked, *at, code=2)
    out, _ = said(capsys, *asked, "--analyst", "ana", "--json", *at)
    request = json.loads(out)["id"]
    out, _ = said(capsys, "budget", "requests", *at)
    assert out.splitlines()[0] == "request,analyst,data set,requested,reason,state"
    assert json.loads(said(capsys, "budget", "requests", "--format", "json", *at)[0])["requests"][0]["id"] == request
    _, err = said(capsys, "budget", "decide", request, "--grant", "--by", "ana", *at, code=3)
    assert "no one may decide their own" in err
    said(capsys, "access", "people", "add", "olga", "--no-password", *at)
    _, err = said(capsys, "budget", "decide", request, "--grant", "--by", "nobody", *at, code=2)
    assert "people are olga" in err
    out, _ = said(capsys, "budget", "decide", request, "--grant", "--by", "olga", *at)
    assert "ana may now spend ε 1.5" in out


def test_budgets_say_why_spent_and_left_do_not_add_up(capsys: pytest.CaptureFixture[str], clinic: str) -> None:
    _, err = said(capsys, "budget", "show", "--folder", clinic)
    assert err == ""
    said(capsys, "sql", "SELECT COUNT(*) FROM visits", "--epsilon", "0.5", "--folder", clinic)
    for form in ("csv", "json"):
        out, err = said(capsys, "budget", "show", "--format", form, "--folder", clinic)
        assert "the better of two composition bounds" in err
        assert "composition bounds" not in out


def test_the_examples_of_statistics_run_on_the_demo(capsys: pytest.CaptureFixture[str], clinic: str) -> None:
    for words in (["stats", "--help"], ["stats", "mean", "--help"]):
        out, _ = said(capsys, *words)
        (example,) = re.findall(r"tacit (stats mean visits .*)", out)
        assert "--rows-per-unit 3" in example
        said(capsys, *example.split(), "--folder", clinic)


def test_the_demo_refuses_an_existing_folder_before_the_tour(capsys: pytest.CaptureFixture[str], clinic: str) -> None:
    out, err = said(capsys, "demo", "--no-serve", "--folder", clinic, code=2)
    assert out == ""
    assert "already exists" in err


def test_one_error_is_shown_by_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "errors", "t300")
    assert len(out.splitlines()) == 2
    assert out.startswith("code,error,exit code,meaning\nT300,BudgetExceeded,")
    said(capsys, "errors", "T999", code=2)


def test_mistakes_in_a_query_name_the_way_out(
    capsys: pytest.CaptureFixture[str], clinic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TACIT_TOKEN", raising=False)
    for words, code, sentence in (
        (("@nofile.sql", "--folder", clinic), 2, "there is no file nofile.sql"),
        (('SELECT COUNT(*) FROM visits WHERE sex = "Male"', "--folder", clinic), 2, "a text takes single quotes"),
        (("SELECT HISTOGRAM(age) FROM visits", "--folder", clinic), 3, "T202 at 1:8: HISTOGRAM is not supported"),
        (("SELECT COUNT(*) FROM visits", "--server", "http://127.0.0.1:1"), 2, "--token-file FILE or the environment"),
    ):
        _, err = said(capsys, "sql", *words, "--epsilon", "0.1", code=code)
        assert sentence in err


def test_declining_the_cost_says_that_nothing_was_charged(
    clinic: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sql", "SELECT COUNT(*) FROM visits", "--epsilon", "50", "--folder", clinic)
    code, _ = Typist(monkeypatch).runs(*words, types=["n"])
    assert code == EXIT_INTERRUPTED
    assert capsys.readouterr().err.endswith("tacit: nothing was charged\n")
    assert epsilon_spent(capsys, clinic) == 0


def test_an_interrupt_that_duckdb_swallowed_ends_without_a_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_arguments: list[str]) -> int:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(app, "_invoke", interrupted)
    assert said(capsys, "table", code=EXIT_INTERRUPTED) == ("", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_an_answer_that_cannot_be_written_is_one_sentence(tmp_path: Path, new_clinic: str) -> None:
    folder = shutil.copytree(new_clinic, str(tmp_path / "clinic"))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TACIT, "sql", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1", "--folder", folder],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.startswith("tacit: T522 the answer could not be written (")
    assert line.endswith("; it was charged, and repeating the query costs nothing")
