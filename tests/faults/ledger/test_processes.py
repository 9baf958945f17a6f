"""Processes that die, and processes that race: what was acknowledged stands, and the cap is kept to the last drop."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger
from tacit.privacy import events
from tests.style.rules import ROOT

KILLS = 220


def run(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.faults.ledger.processes", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_writers_killed_at_random_leave_every_charge_and_no_answer_without_one(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1000.0, epsilon_min=0)
        ledger.create_cap("visits", "ana", epsilon=1000.0)
    said = run("kill", tmp_path, 1, KILLS)
    assert len(said["killed"]) == KILLS
    assert len(said["reserved"]) > KILLS / 8, "children should live long enough to do something"
    with Ledger.open(tmp_path) as ledger:
        ledger.verify(full=True)
        kinds = Counter(record.kind for record in ledger.history())
        reserved = {record.contents["permit"] for record in ledger.history() if record.kind == "reserved"}
        committed = {record.contents["permit"] for record in ledger.history() if record.kind == "committed"}
        assert set(said["reserved"]) <= reserved, "no charge is lost"
        assert len(reserved) - len(said["reserved"]) <= KILLS, "each child had one reservation under way at most"
        assert set(said["committed"]) <= committed <= reserved
        assert kinds["answer-released"] == len(committed)
        assert {one.permit.id for one in ledger.reservations()} == reserved - committed
        row = ledger.budget("visits")._read()[1]
        price = ledger.reserve("visits", events.Laplace(0.001)).charged[ledger.budget("visits").scope]
        assert row[0] is not None
        assert price[0] is not None
        assert row[0][0] == len(reserved) * price[0][0]


@pytest.mark.parametrize(("count", "cap"), [(150, "data set"), (90, "analyst")])
def test_eight_processes_spend_one_budget_to_its_last_drop(tmp_path: Path, count: int, cap: str) -> None:
    epsilon = 1 / count
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0 if cap == "data set" else 2.0)
        ledger.create_cap("visits", "ana", epsilon=1.0)
    said = run("spend", tmp_path, 8, epsilon)
    assert said["statuses"] == [0] * 8
    assert sum(said["counts"]) == count
    with Ledger.open(tmp_path) as ledger:
        ledger.verify(full=True)
        assert ledger.budget("visits", analyst="ana").spent().epsilon == 1.0
        assert ledger.budget("visits", analyst="ana").remaining().epsilon < epsilon / 1e6
