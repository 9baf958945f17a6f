"""`tacit budget`: what is set is what the ledger holds, and what is shown never claims too little spent."""

import json
import shlex
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit import Curator
from tacit.cli.app import run
from tacit.pipeline.release import suspension
from tacit.privacy import events
from tacit.privacy.errors import TooCheap
from tests.unit.cli.terminal import Typist


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["init", str(tmp_path)]) == 0
    capsys.readouterr()
    return tmp_path


def budget(folder: Path, *arguments: str) -> int:
    return run(["budget", *arguments, "--folder", str(folder)])


def answer(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert budget(folder, *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_budget_is_set_until_it_is_charged_and_caps_of_analysts_lie_within_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = answer(folder, capsys, "set", "clinic", "--epsilon", "3", "--delta", "1e-7", "--filter", "gdp")
    assert (made["epsilon"], made["delta"], made["filter"], made["epsilon_spent"]) == (3.0, 1e-7, "gdp", 0.0)
    cap = answer(folder, capsys, "analyst", "ana", "clinic", "--epsilon", "1", "--delta", "1e-8")
    assert (cap["name"], cap["epsilon"], cap["filter"]) == ("ana", 1.0, "gdp")
    with Curator(folder) as curator:
        curator.budget("clinic").charge(events.Gaussian(9.0))
    assert budget(folder, "set", "clinic", "--epsilon", "4", "--delta", "1e-7") == 2
    assert budget(folder, "analyst", "bob", "clinic", "--epsilon", "5") == 2
    assert budget(folder, "analyst", "bob", "nowhere", "--epsilon", "1") == 2
    err = capsys.readouterr().err
    assert "(gdp) since record 1; a budget cannot be changed once something has been charged to it" in err
    assert "must lie within its budget" in err
    assert f"nowhere has no budget; create one: tacit budget set --folder {folder} nowhere --epsilon" in err
    with Curator(folder) as curator:
        assert curator.budget("clinic", "ana").cap.filter == "gdp"


def test_runs_are_allowed_again_after_failures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(folder, capsys, "set", "clinic", "--epsilon", "3", "--delta", "1e-7")
    with Curator(folder) as curator:
        paid = curator.budget("clinic")
        for note in ["failed/T610"] * 5 + ["the run failed: T610"] * 5:  # sentences are of older ledgers
            paid.annotate(paid.reserve(events.Laplace(0.1)), note, before="")
        assert suspension(paid) is not None
    assert answer(folder, capsys, "resume", "clinic") == {"seen": 10}
    assert budget(folder, "resume", "nowhere") == 2
    with Curator(folder) as curator:
        assert suspension(curator.budget("clinic")) is None
        assert {one.note for one in curator.ledger.reservations()} == {"seen/T610"}


def test_every_setting_reaches_the_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--delta", "1e-6", "--filter", "renyi", "--order", "16", "--relation", "replace-one", "--per-epoch"]
    made = answer(folder, capsys, "set", "clinic", "--epsilon", "2", *options)
    assert (made["filter"], made["relation"]) == ("renyi", "replace-one")
    cap = answer(folder, capsys, "analyst", "ana", "clinic", "--epsilon", "1", "--delta", "1e-7")
    assert (cap["filter"], cap["relation"]) == ("renyi", "replace-one")
    with Curator(folder) as curator:
        assert curator.budget("clinic").cap.order == 16
        assert not curator.budget("clinic").is_enforced


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "missing option '--epsilon'"),
        (["--epsilon", "0"], "epsilon must be above 0"),
        (["--epsilon", "nan"], "epsilon must be a finite number"),
        (["--epsilon", "1", "--delta", "2"], "delta must be below 1"),
        (["--epsilon", "1", "--delta", "0", "--filter", "zcdp"], "needs the filter pure"),
        (["--epsilon", "1", "--delta", "1e-6", "--filter", "renyi"], "needs its order"),
        (["--epsilon", "x"], "'x' is not a valid float"),
    ],
)
def test_a_budget_that_means_nothing_is_bad_use(
    folder: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert budget(folder, "set", "clinic", *options) == 2
    assert sentence in capsys.readouterr().err


def test_what_promises_little_is_said_loudly_and_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert budget(folder, "set", "clinic", "--epsilon", "100", "--delta", "1e-3", "--units", "1000") == 0
    out, err = capsys.readouterr()
    assert out == "clinic has a budget of ε 100, δ 0.001 (zcdp); each answer costs at least ε 0.01\n"
    assert err.count("tacit: warning: ") == 2


def test_a_name_that_no_table_pays_by_is_noticed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = folder / "catalog.toml"
    table = '[tables.visits]\nsource = "a.csv"\nunit = "x"\n[tables.visits.columns]\nx = { kind = "text" }\n'
    catalog.write_text(table)
    assert budget(folder, "set", "clinic", "--epsilon", "1") == 0
    assert "no table uses the budget clinic yet; tables use visits" in capsys.readouterr().err
    assert budget(folder, "set", "visit", "--epsilon", "3") == 0
    assert "no table uses the budget visit yet; did you mean visits?\n" in capsys.readouterr().err
    assert run(["budget", "--help"]) == 0
    assert "it cannot be removed" in " ".join(capsys.readouterr().out.split())
    assert budget(folder, "set", "visits", "--epsilon", "1", "--delta", "1e-7") == 0
    assert capsys.readouterr().err == ""
    catalog.write_text("broken")
    assert budget(folder, "set", "other", "--epsilon", "1") == 0
    assert "this is not valid TOML" in capsys.readouterr().err


def test_what_an_answer_costs_at_least_is_set_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget(folder, "set", "visits", "--epsilon", "3", "--epsilon-min", "0.1") == 0
    assert "each answer costs at least ε 0.1" in capsys.readouterr().out
    (row,) = answer(folder, capsys, "show")["budgets"]
    assert row["epsilon_min"] == 0.1
    assert budget(folder, "set", "labs", "--epsilon", "3", "--epsilon-min", "4") == 2
    assert "at most the budget's epsilon 3" in capsys.readouterr().err
    with Curator(folder) as curator, pytest.raises(TooCheap, match=r"ask for epsilon=0\.1 or more"):
        curator.budget("visits").charge(events.Laplace(0.01))


@pytest.fixture
def spent(folder: Path) -> Path:
    with Curator(folder) as curator:
        curator.set_budget("visits", 3.0, 1e-7)
        curator.set_budget("births", 1.0)
        curator.ledger.create_cap("visits", "ana", 1.0, 1e-8)
        curator.budget("visits", "ana").charge(events.Laplace(0.7))
        curator.budget("births").charge(events.Laplace(1.0))
        curator.ledger.file_request("ana", "visits", events.Laplace(0.5), "a second study")
    return folder


def test_show_lists_what_is_spent_and_left(spent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["scope"]: row for row in answer(spent, capsys, "show")["budgets"]}
    assert list(rows) == ["births", "visits", "ana on visits"]
    assert rows["births"]["epsilon_left"] == 0
    assert (rows["ana on visits"]["epsilon_spent"], rows["ana on visits"]["epsilon_left"]) == (0.7, pytest.approx(0.3))
    assert [row["scope"] for row in answer(spent, capsys, "show", "births")["budgets"]] == ["births"]
    assert budget(spent, "show", "births") == 0
    assert capsys.readouterr().out == (
        "budget,epsilon_spent,epsilon_left,epsilon,epsilon_min,delta,filter\nbirths,1,0,1,0.0001,0,pure\n"
    )
    assert budget(spent, "show", "nowhere") == 2


def test_on_a_terminal_bars_show_what_is_spent(spent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exit_code, shown = Typist(monkeypatch).runs("budget", "show", "--folder", str(spent))
    assert exit_code == 0
    lines = {line.split()[0]: line for line in shown.splitlines() if "█" in line or "░" in line}
    assert lines["births"].count("█") == 16
    assert (lines["ana"].count("█"), lines["ana"].count("░")) == (12, 4)
    assert "ε min" in shown
    assert "0.0003" in lines["ana"], "what an answer from visits costs at least"
    assert max(map(len, shown.splitlines()[:-1])) <= 80, "the note below may wrap"


def test_a_budget_with_anything_left_is_not_shown_as_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Curator(folder) as curator:
        curator.set_budget("visits", 1.0)
        curator.budget("visits").charge(events.Laplace(0.999))
    _, shown = Typist(monkeypatch).runs("budget", "show", "--folder", str(folder))
    assert shown.count("█") == 15


def test_an_empty_ledger_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget(folder, "show") == 0
    assert budget(folder, "requests") == 0
    shown = capsys.readouterr()
    assert shown.err == "no budgets yet; set one with: tacit budget set DATASET --epsilon 1\nno open requests\n"
    assert [line.split(",")[0] for line in shown.out.splitlines()] == ["budget", "request"]
    assert budget(folder, "requests", "--format", "table") == 0
    assert capsys.readouterr().out == "no open requests\n"


def test_a_request_says_who_decides_it_by_which_command(spent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("request", "visits", "--epsilon", "0.25", "--reason", "more", "--analyst", "ana")
    assert budget(spent, *words) == 0
    said = capsys.readouterr().out
    assert "; owners and curators decide it: tacit budget decide " in said
    command = said.partition(": tacit ")[2].replace("NAME", "carla")
    assert run(shlex.split(command)) == 0
    assert "granted: ana may now spend" in capsys.readouterr().out


def test_requests_are_listed_and_decided(spent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (request,) = answer(spent, capsys, "requests")["requests"]
    assert (request["analyst"], request["reason"], request["state"]) == ("ana", "a second study", "filed")
    assert budget(spent, "requests") == 0
    assert "a second study" in capsys.readouterr().out
    assert budget(spent, "decide", request["id"], "--by", "carla") == 2
    assert budget(spent, "decide", request["id"], "--grant", "--by", "carla", "--note", "fine") == 0
    assert "granted: ana may now spend ε 1.5" in capsys.readouterr().out
    assert budget(spent, "decide", request["id"], "--decline", "--by", "carla") == 2
    assert answer(spent, capsys, "requests")["requests"] == []
    (decided,) = answer(spent, capsys, "requests", "--all")["requests"]
    assert (decided["state"], decided["decided_by"], decided["note"]) == ("granted", "carla", "fine")


@pytest.mark.parametrize(
    "arguments",
    [("show",), ("requests",), ("set", "visits", "--epsilon", "1"), ("analyst", "ana", "visits", "--epsilon", "1")],
)
def test_a_folder_that_nobody_has_set_up_is_bad_use_and_stays_as_it_is(
    tmp_path: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert budget(tmp_path, *arguments) == 2
    assert "create them with: tacit init" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_spent_epsilon_is_shown_as_the_decimal_that_was_charged_and_exact_in_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(folder, capsys, "set", "clinic", "--epsilon", "3", "--delta", "1e-7")
    with Curator(folder) as curator:
        for epsilon in (0.5, 0.5, 0.1, 0.1):
            curator.budget("clinic").charge(events.Laplace(epsilon))
    (shown,) = answer(folder, capsys, "show")["budgets"]
    charged = sum(map(Fraction, (0.5, 0.5, 0.1, 0.1)))
    assert 0 <= Fraction(shown["epsilon_spent"]) - charged < Fraction(1, 2**50)
    assert (shown["epsilon_left"], shown["delta_left"]) == (1.8, 1e-8)
    assert budget(folder, "show") == 0
    assert "clinic,1.2,1.8,3," in capsys.readouterr().out
