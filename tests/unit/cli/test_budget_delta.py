"""A budget or cap without a delta is no dead end: it is said, and can be replaced until something is charged."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import tacit
from tacit.cli.app import run
from tacit.ledger import Ledger
from tacit.privacy.errors import NameTaken, OutOfRange

BY_WARD = ("sql", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--epsilon", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text("patient,ward\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(600)))
    assert run(["init", "clinic"]) == 0
    return "clinic"


def added(folder: str, *words: str) -> None:
    assert run(["table", "add", "visits", "visits.csv", "--unit", "patient", *words, "--folder", folder]) == 0


def pasted(text: str) -> int:
    found = re.search(r"tacit (budget (?:set|analyst) [^;\n]*)", text)
    assert found is not None, text
    return run(shlex.split(found[1]))


def test_the_delta_that_was_chosen_at_registration_is_said_and_can_be_changed(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    added(folder, "--epsilon", "3")
    out = capsys.readouterr().out
    assert "budget ε 3, δ 1e-07; this δ is the default" in out
    with tacit.Curator(folder) as curator:
        assert curator.budget("visits").cap.delta == 1e-7
    assert pasted(out) == 0
    with tacit.Curator(folder) as curator:
        assert curator.budget("visits").cap.delta == 1e-8


def test_a_stated_delta_is_taken_as_it_is(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    added(folder, "--epsilon", "3", "--delta", "0")
    assert "budget ε 3, δ 0\n" in capsys.readouterr().out


def test_the_refusal_of_selected_keys_names_the_command_that_gives_a_delta(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    added(folder, "--epsilon", "3", "--delta", "0")
    words = [*BY_WARD, "--folder", folder]
    capsys.readouterr()
    assert run(words) == 3
    assert pasted(capsys.readouterr().err) == 0
    assert run(words) == 0


def test_once_something_is_charged_the_refusal_says_that_the_delta_does_not_change(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    added(folder, "--epsilon", "3", "--delta", "0")
    assert run(["sql", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1", "--folder", folder]) == 0
    capsys.readouterr()
    assert run([*BY_WARD, "--folder", folder]) == 3
    assert "cannot change any more, since something is charged to it" in capsys.readouterr().err
    assert run(["budget", "set", "visits", "--epsilon", "3", "--delta", "1e-7", "--folder", folder]) == 2


def test_the_cap_of_an_analyst_has_the_delta_of_the_data_set_unless_it_is_stated(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    added(folder, "--epsilon", "9")
    assert run(["budget", "analyst", "ana", "visits", "--epsilon", "3", "--folder", folder]) == 0
    assert "ana may spend ε 3, δ 1e-07 on visits; δ is that of visits" in capsys.readouterr().out
    assert run([*BY_WARD, "--analyst", "ana", "--folder", folder]) == 0
    assert run(["budget", "analyst", "bob", "visits", "--epsilon", "3", "--delta", "0", "--folder", folder]) == 0
    capsys.readouterr()
    words = [*BY_WARD, "--delta", "1e-9", "--analyst", "bob", "--folder", folder]
    assert run(words) == 3
    assert pasted(capsys.readouterr().err) == 0
    assert run(words) == 0


def test_a_budget_without_a_delta_is_said_to_be_one(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", "set", "visits", "--epsilon", "3", "--delta", "0", "--folder", folder]) == 0
    assert pasted(capsys.readouterr().err) == 0
    with tacit.Curator(folder) as curator:
        assert curator.budget("visits").cap.delta == 1e-7


def test_the_budget_of_python_stays_pure(tmp_path: Path) -> None:
    with tacit.Curator(tmp_path / "c") as curator:
        assert curator.set_budget("visits", epsilon=3.0).cap.delta == 0


def test_only_what_nothing_was_charged_to_is_replaced(tmp_path: Path) -> None:
    event = tacit.privacy.events.Laplace(0.5)
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", 3.0)
        ledger.create_cap("visits", "ana", 2.0)
        with pytest.raises(OutOfRange, match="the cap of ana on visits must lie within"):
            ledger.create_budget("visits", 1.0)
        ledger.create_cap("visits", "ana", 1.0)
        ledger.create_budget("visits", 1.0, 1e-6)
        ledger.create_cap("visits", "ana", 1.0, 1e-7)
        assert ledger.budget("visits").cap.delta == 1e-6
        ledger.reserve("visits", event)
        with pytest.raises(NameTaken, match="since record 4; a budget cannot be changed once something has been"):
            ledger.create_budget("visits", 5.0, 1e-6)
        ledger.create_cap("visits", "ana", 0.5, 1e-7)  # she has spent nothing
        ledger.reserve("visits", event, analyst="ana")
        with pytest.raises(NameTaken, match="since record 7; a cap cannot be changed once something has been charged"):
            ledger.create_cap("visits", "ana", 1.0, 1e-7)
        ledger.verify(full=True)
    with Ledger.open(tmp_path) as again:
        assert again.budget("visits", analyst="ana").cap.epsilon == 0.5
        assert again.verify(full=True).head.number == again.verify().head.number


def test_a_budget_with_epochs_is_not_replaced(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", 3.0)
        ledger.add_epoch("visits", "2024")
        with pytest.raises(NameTaken):
            ledger.create_budget("visits", 3.0, 1e-7)
