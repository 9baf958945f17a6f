"""A process that forks while its ledger is open: no charge of parent or child is lost."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger
from tests.style.rules import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=10_000.0)
    return tmp_path


def run(name: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.faults.ledger.forks", name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def spent(folder: Path) -> float:
    with Ledger.open(folder) as ledger:
        ledger.verify(full=True)
        return ledger.budget("visits").spent().epsilon


def test_what_a_child_charges_after_its_parent_has_closed_the_ledger_is_kept(folder: Path) -> None:
    assert run("closes-first", folder) == {"parent": 1.0, "child": 2.0, "child again": 3.0, "third": 4.0}
    assert spent(folder) == 4.0


def test_a_child_forked_inside_a_transaction_is_refused_and_its_parent_goes_on(folder: Path) -> None:
    said = run("inside", folder)
    for refusal in (said["same"], said["opened"]):
        assert refusal[0] == "T510"
        assert "spawn" in refusal[1]
    assert said["parent"] == spent(folder) == 1.0


def test_children_forked_while_a_thread_charges_lose_no_charge(folder: Path) -> None:
    said = run("beside", folder)
    assert said["children"] == 20
    assert said["thread"] > 0
    assert said["spent"] == spent(folder) == said["thread"] + said["children"]


def test_a_child_forked_while_a_thread_prices_an_event_can_charge(folder: Path) -> None:
    assert run("beside-price", folder) == {"child": 1.0, "parent": 2.0}


def test_threads_of_a_child_make_its_first_changes_at_once(folder: Path) -> None:
    assert run("threads", folder) == {"ended": 80, "spent": 80.0}
