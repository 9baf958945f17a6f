"""Identical releases that run at the same time are charged once, and one outcome leaves for one charge.

Barriers hold the runs until all of them have their permit, so that no test depends on the speed of the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.privacy.errors import AlreadySettled, Cancelled, EngineFailed
from tacit.query import release_plan
from tacit.stats import releases

SQL = "SELECT COUNT(*) AS n FROM visits"
WAIT_S = 10.0
Ask = Callable[..., Any]


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path / "clinic") as curator:
        rows = pd.DataFrame({"patient": range(400), "age": [20 + one % 60 for one in range(400)]})
        limits, bounds = tacit.Limits(rows_per_unit=1), {"age": tacit.Bounds(0, 120)}
        curator.add_table("visits", rows, unit="patient", limits=limits, columns=bounds)
        curator.set_budget("visits", epsilon=3.0, delta=1e-7)
        for name in ("ana", "bob"):
            curator.add_analyst(name, {"visits": tacit.Budget(1.5, 1e-8)})
        yield curator
        curator.ledger.verify(full=True)


def question(curator: tacit.Curator, **named: Any) -> float:
    return float(curator.sql(SQL, epsilon=0.5, **named).rows[0]["n"])


def statistic(curator: tacit.Curator, **named: Any) -> float:
    return float(tacit.stats.mean(curator.table("visits")["age"], epsilon=0.5, **named).value)


BOTH = pytest.mark.parametrize("ask", [question, statistic])


def spent(curator: tacit.Curator, analyst: str | None = None) -> float:
    return curator.budget("visits", analyst).spent().epsilon


class Runs:
    """The runs of plans: each waits until `together` of them are charged, and then does what `then` says of it."""

    def __init__(self, together: int) -> None:
        self.barrier = threading.Barrier(together)
        self.together, self.count, self.lock = together, 0, threading.Lock()
        self.then: dict[int, Callable[[], None]] = {}

    def begin(self) -> None:
        with self.lock:
            number = self.count
            self.count += 1
        if number < self.together:
            self.barrier.wait(WAIT_S)
        self.then.get(number, lambda: None)()


def held(monkeypatch: pytest.MonkeyPatch, together: int) -> Runs:
    """Hold the runs of SQL and of statistics."""
    runs, run, to_bytes = Runs(together), release_plan.run, releases.to_bytes

    def slow_run(*arguments: Any, **named: Any) -> Any:
        runs.begin()
        return run(*arguments, **named)

    def slow_bytes(noisy: Any) -> bytes:
        runs.begin()
        return to_bytes(noisy)

    monkeypatch.setattr(release_plan, "run", slow_run)
    monkeypatch.setattr(releases, "to_bytes", slow_bytes)
    return runs


def at_once(*calls: Callable[[], float]) -> list[Future[float]]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return [threads.submit(call) for call in calls]


@BOTH
def test_threads_that_ask_the_same_are_charged_once(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    held(monkeypatch, 3)
    found = at_once(*[lambda: ask(curator, analyst="ana")] * 3)
    assert len({one.result() for one in found}) == 1
    assert spent(curator) == spent(curator, "ana") == pytest.approx(0.5)
    assert [record.kind for record in curator.ledger.history()].count("answer-released") == 1


@BOTH
def test_each_payer_is_charged_for_what_nobody_has_released_yet(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    held(monkeypatch, 3)
    for one in at_once(*[lambda who=who: ask(curator, analyst=who) for who in ("ana", "bob", None)]):
        one.result()
    assert spent(curator) == pytest.approx(1.5)
    assert spent(curator, "ana") == spent(curator, "bob") == pytest.approx(0.5)
    assert ask(curator, analyst="bob") == ask(curator, analyst="ana")
    assert spent(curator) == pytest.approx(1.5)


@BOTH
def test_a_budget_for_one_answer_answers_all_who_ask_it_at_once(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    curator.sql("SELECT SUM(age) AS s FROM visits", epsilon=0.9, analyst="ana")
    held(monkeypatch, 2)
    one, other = at_once(*[lambda: ask(curator, analyst="ana")] * 2)
    assert one.result() == other.result()


def fail() -> None:
    raise EngineFailed("the engine fails")


@BOTH
def test_a_run_whose_twin_failed_first_is_charged_by_itself(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """A failure that was told, and an answer, are two outcomes: both are paid for."""
    runs, failed = held(monkeypatch, 2), threading.Event()
    annotate = curator.ledger.annotate

    def told(*arguments: Any, **named: Any) -> None:
        annotate(*arguments, **named)
        failed.set()

    monkeypatch.setattr(curator.ledger, "annotate", told)
    runs.then = {0: fail, 1: lambda: failed.wait(WAIT_S) and None}
    found = at_once(*[lambda: ask(curator)] * 2)
    errors = [one.exception() for one in found]
    assert sorted(type(one).__name__ for one in errors) == ["EngineFailed", "NoneType"]
    assert spent(curator) == pytest.approx(1.0)


@BOTH
def test_a_run_that_fails_after_its_twin_was_answered_shows_that_answer(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    runs, answered = held(monkeypatch, 2), threading.Event()
    commit = curator.ledger.commit

    def told(*arguments: Any, **named: Any) -> None:
        commit(*arguments, **named)
        answered.set()

    def late() -> None:
        answered.wait(WAIT_S)
        fail()

    monkeypatch.setattr(curator.ledger, "commit", told)
    runs.then = {0: late}
    one, other = at_once(*[lambda: ask(curator)] * 2)
    assert one.result() == other.result()
    assert spent(curator) == pytest.approx(0.5)


@BOTH
@pytest.mark.parametrize("error", [EngineFailed, Cancelled, MemoryError])
def test_a_failed_run_is_charged_and_the_next_one_anew(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask, error: type[Exception]
) -> None:
    runs = held(monkeypatch, 1)

    def stop() -> None:
        raise error("stopped")

    runs.then = {0: stop, 1: stop}
    for count in (1, 2):
        with pytest.raises(EngineFailed):
            ask(curator)
        assert spent(curator) == pytest.approx(0.5 * count)
    ask(curator)
    assert spent(curator) == pytest.approx(1.5)
    ask(curator)
    assert spent(curator) == pytest.approx(1.5)


@BOTH
def test_each_failure_that_is_told_was_paid_for(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    held(monkeypatch, 2).then = dict.fromkeys(range(9), fail)
    found = [one.exception() for one in at_once(*[lambda: ask(curator)] * 2)]
    assert [type(one).__name__ for one in found] == ["EngineFailed"] * 2
    assert spent(curator) == pytest.approx(1.0)


@BOTH
def test_cancelling_one_of_two_lets_the_other_be_answered(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    runs, failed = held(monkeypatch, 2), threading.Event()

    def cancelled() -> None:
        failed.set()
        raise Cancelled("cancelled")

    runs.then = {0: cancelled, 1: lambda: failed.wait(WAIT_S) and None}
    found = [one.exception() for one in at_once(*[lambda: ask(curator)] * 2)]
    assert sorted(type(one).__name__ for one in found) == ["Cancelled", "NoneType"]


@BOTH
def test_a_run_that_died_is_finished_under_its_charge(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """As an explicit key always allowed: nothing of the first run left."""

    def die() -> None:
        raise KeyboardInterrupt  # nothing is noted, as when the process is killed

    held(monkeypatch, 1).then = {0: die}
    with pytest.raises(KeyboardInterrupt):
        ask(curator)
    ask(curator)
    assert spent(curator) == pytest.approx(0.5)


def test_a_key_whose_twin_failed_is_refused_at_its_commit(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, failed = held(monkeypatch, 2), threading.Event()
    annotate = curator.ledger.annotate
    monkeypatch.setattr(curator.ledger, "annotate", lambda *some, **named: (annotate(*some, **named), failed.set())[0])
    runs.then = {0: fail, 1: lambda: failed.wait(WAIT_S) and None}
    found = [one.exception() for one in at_once(*[lambda: question(curator, key="k")] * 2)]
    assert {type(one) for one in found} == {EngineFailed, AlreadySettled}
    assert spent(curator) == pytest.approx(0.5)


def test_processes_that_ask_the_same_are_charged_once(curator: tacit.Curator, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    command = [sys.executable, "-m", "tests.faults.curator.processes", str(curator.folder), str(gate)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    gate.touch()
    said = {json.dumps(json.loads(one.communicate(timeout=60)[0])) for one in running}
    assert len(said) == 1
    assert spent(curator) == spent(curator, "ana") == pytest.approx(1.0)


def test_a_child_that_was_forked_during_a_run_is_charged_with_its_parent(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child asks the same in the ledger that it opens anew, while the parent's run is under way."""
    told: list[int] = []

    def forked() -> None:
        command = [sys.executable, "-c", CHILD, str(curator.folder)]
        told.append(subprocess.run(command, check=True, capture_output=True).returncode)

    held(monkeypatch, 1).then = {0: forked}
    question(curator)
    assert told == [0]
    assert spent(curator) == pytest.approx(0.5)


CHILD = f"""
import os, sys, tacit
curator = tacit.Curator(sys.argv[1])
curator.budget("visits").spent()
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
curator.sql({SQL!r}, epsilon=0.5)
os._exit(0)
"""


def test_a_statistic_of_a_table_takes_a_key(curator: tacit.Curator) -> None:
    first = statistic(curator, key="k")
    assert statistic(curator, key="k") == first
    assert spent(curator) == pytest.approx(0.5)
    with pytest.raises(tacit.InvalidInput, match="another request"):
        tacit.stats.median(curator.table("visits")["age"], epsilon=0.5, key="k")
    assert spent(curator) == pytest.approx(0.5)


def test_a_key_for_arrays_is_refused_because_nothing_would_keep_the_answer() -> None:
    budget = tacit.Budget(1.0)
    with pytest.raises(tacit.InvalidInput, match="registered table"):
        tacit.stats.mean([1.0, 2.0], bounds=(0, 3), epsilon=0.5, budget=budget, key="k")
    assert budget.spent().epsilon == 0.0
