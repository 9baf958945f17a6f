"""Of copies of a running total's state one goes on: the noise of a step is used once, and no step is told twice.

A state that was copied, or restored from a backup, holds the noise of steps that were released already. Told other
numbers, it would release totals whose difference has no noise in it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock, patch

import pytest

import tacit
from tacit.ledger import Ledger, LedgerBudget
from tacit.pipeline import notes
from tacit.pipeline.steps import StepAnchor, start_digest, step_digest
from tacit.privacy.errors import AlreadySettled, InvalidInput, LedgerBusy, UnknownName
from tacit.stats import RunningCount, RunningSum
from tacit.stats.stream_files import decode_state

COSTS: dict[str, Any] = {"tree": {"epsilon": 0.5}, "root": {"rho": 0.01}}
costs = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Callable[[], LedgerBudget]]:
    """Return a way to find the budget as another process does."""
    with ExitStack() as stack:
        stack.enter_context(Ledger.open(tmp_path / "ledger")).create_budget("visits", 1.0, 1e-6)
        yield lambda: stack.enter_context(Ledger.open(tmp_path / "ledger")).budget("visits")


@pytest.fixture
def budget(found: Callable[[], LedgerBudget]) -> LedgerBudget:
    return found()


Found = Callable[[], LedgerBudget]
killed = patch.multiple(RunningCount, _recover=DEFAULT)
"""Does nothing after a failure, as a process that is killed."""


def killed_while_noting(running: RunningCount, value: int) -> None:
    """Store a step, and note nothing."""
    with killed, patch.object(StepAnchor, "advance", side_effect=SystemExit), pytest.raises(SystemExit):
        running.add(value)
    running.close()


@costs
def test_a_restored_state_is_refused(cost: Any, tmp_path: Path, budget: LedgerBudget, found: Found) -> None:
    path, old = tmp_path / "state", tmp_path / "old"
    with RunningCount(8, budget=budget, path=path, **cost) as running:
        running.add(5)
        shutil.copy(path, old)
        running.add(10)
    shutil.copy(old, path)
    for place in (path, old):
        with pytest.raises(AlreadySettled, match=r"has 1 steps.*step 2.*start a new release"):
            RunningCount.open(place, budget=found())
        with pytest.raises(AlreadySettled, match="has 1 steps"):
            RunningCount.from_bytes(place.read_bytes(), budget=budget)


@costs
def test_of_two_open_copies_the_one_that_is_first_goes_on(
    cost: Any, tmp_path: Path, budget: LedgerBudget, found: Found
) -> None:
    path, copied = tmp_path / "state", tmp_path / "copy"
    with RunningCount(8, budget=budget, path=path, **cost) as running:
        running.add(5)
    shutil.copy(path, copied)
    one = RunningCount.open(path, budget=budget)
    other = RunningCount.open(copied, budget=found())
    assert other.add(10).step == 2
    for _ in range(2):
        with pytest.raises((AlreadySettled, InvalidInput)):
            one.add(1010)
    one.close()
    with pytest.raises(AlreadySettled):
        RunningCount.open(path, budget=budget)
    assert other.add(7).step == 3


def test_a_copy_that_was_told_other_steps_is_refused_although_it_has_as_many(
    tmp_path: Path, budget: LedgerBudget
) -> None:
    """The step of the copy was stored when the process was killed, before it was noted."""
    path, copied = tmp_path / "state", tmp_path / "copy"
    with RunningCount(8, budget=budget, path=path, epsilon=0.5) as running:
        running.add(5)
    shutil.copy(path, copied)
    one = RunningCount.open(path, budget=budget)
    killed_while_noting(one, 1010)
    with RunningCount.open(copied, budget=budget) as other:
        other.add(10)
    with pytest.raises(AlreadySettled, match="has 2 steps"):
        RunningCount.open(path, budget=budget)


@costs
def test_a_step_that_was_stored_and_not_noted_is_noted_before_it_is_shown(
    cost: Any, tmp_path: Path, budget: LedgerBudget, found: Found
) -> None:
    path = tmp_path / "state"
    one = RunningCount(8, budget=budget, path=path, **cost)
    killed_while_noting(one, 5)
    state = path.read_bytes()
    with RunningCount.open(path, budget=found()) as opened:
        assert opened.steps == 1
        assert opened.add(99, step=0) == opened.last
        assert path.read_bytes() == state
    with pytest.raises(AlreadySettled):
        RunningCount.from_bytes(state[: -len(one._records[0])], budget=budget)


@costs
def test_a_step_that_could_not_be_noted_was_not_told(
    cost: Any, tmp_path: Path, budget: LedgerBudget, found: Found
) -> None:
    path = tmp_path / "state"
    running = RunningCount(8, budget=budget, path=path, **cost)
    running.add(5)
    state = path.read_bytes()
    with patch.object(Ledger, "annotate", side_effect=LedgerBusy("others write")), pytest.raises(LedgerBusy):
        running.add(6)
    assert running.steps == 1
    assert path.read_bytes() == state
    assert running.add(7).step == 2
    running.close()
    with RunningCount.open(path, budget=found()) as opened:
        assert opened.steps == 2


def test_nothing_goes_on_where_it_is_not_known_what_was_noted(tmp_path: Path, budget: LedgerBudget) -> None:
    running = RunningCount(8, budget=budget, path=tmp_path / "state", epsilon=0.5)
    busy = LedgerBusy("others write")
    unknown = patch.multiple(Ledger, annotate=Mock(side_effect=busy), note=Mock(side_effect=busy))
    with unknown, pytest.raises(LedgerBusy):
        running.add(6)
    with pytest.raises(InvalidInput, match="open this running total again"):
        running.add(6)
    running.close()
    with RunningCount.open(tmp_path / "state", budget=budget) as opened:
        assert opened.steps == 1


def test_copies_in_two_processes_release_each_step_once(tmp_path: Path, budget: LedgerBudget) -> None:
    with RunningCount(40, budget=budget, path=tmp_path / "state0", epsilon=0.5):
        pass
    shutil.copy(tmp_path / "state0", tmp_path / "state1")
    program = """
import sys
from pathlib import Path
from tacit.ledger import Ledger
from tacit.privacy.errors import TacitError
from tacit.stats import RunningCount
folder, number = Path(sys.argv[1]), sys.argv[2]
try:
    running = RunningCount.open(folder / f"state{number}", budget=Ledger.open(folder / "ledger").budget("visits"))
    for _ in range(40):
        print(running.add(int(number)).step, flush=True)
except TacitError as error:
    print(error.code, flush=True)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    both = [subprocess.Popen([*command, number], stdout=subprocess.PIPE, text=True) for number in "01"]
    told = [child.communicate()[0].split() for child in both]
    steps = [line for lines in told for line in lines if line != "T123"]
    assert sorted(map(int, steps)) == list(range(1, len(steps) + 1))
    assert any(lines[-1] == "T123" for lines in told)


def test_in_memory_too_one_copy_goes_on() -> None:
    budget = tacit.Budget(1.0)
    running = RunningSum(8, bounds=(0, 10), epsilon=0.5, budget=budget)
    running.add([1, 2])
    state = running.to_bytes()
    other = RunningSum.from_bytes(state, budget=budget)
    running.add([3])
    with pytest.raises(AlreadySettled):
        other.add([4])
    with pytest.raises(AlreadySettled):
        RunningSum.from_bytes(state, budget=budget)
    with pytest.raises(UnknownName):
        RunningSum.from_bytes(running.to_bytes(), budget=tacit.Budget(1.0))


def test_the_permit_is_open_until_the_last_step_and_its_note_holds_nothing_private(
    tmp_path: Path, budget: LedgerBudget
) -> None:
    ledger = budget._ledger
    running = RunningCount(2, epsilon=0.5, budget=budget)
    running.add(5)
    (open_permit,) = ledger.reservations()
    assert open_permit.note.startswith("step/1/2/")
    running.add(5)
    assert ledger.reservations() == []
    assert RunningCount.from_bytes(running.to_bytes(), budget=budget).steps == 2
    assert len(decode_state(running.to_bytes()).header["secret"]) == 64  # so that no step can be guessed from a digest


def test_a_state_whose_step_was_noted_as_a_sentence_continues_and_its_copy_does_not(budget: LedgerBudget) -> None:
    """As in ledgers that were written before notes had a form of their own."""
    running = RunningCount(3, epsilon=0.5, budget=budget)
    running.add(5)
    (open_permit,) = budget._ledger.reservations()
    noted = notes.read(open_permit.note)
    assert isinstance(noted, notes.StepNote)
    budget.annotate(open_permit.permit, noted.sentence, before=open_permit.note)
    state = running.to_bytes()
    one, copy = (RunningCount.from_bytes(state, budget=budget) for _ in range(2))
    one.add(5)
    with pytest.raises(AlreadySettled):
        copy.add(6)


def test_a_note_depends_on_the_secret_at_every_step() -> None:
    """Otherwise whoever reads notes could guess a step and its noise, and compare."""
    first, second = (start_digest(secret) for secret in (b"one", b"other"))
    for record in (b"step 1", b"step 2"):
        first, second = step_digest(first, record), step_digest(second, record)
        assert first != second
        assert first not in (start_digest(record), step_digest("", record))


@pytest.mark.parametrize("kind", [RunningCount, RunningSum])
@pytest.mark.parametrize("failure", ["a copy", "a ledger that is busy"])
def test_a_step_that_was_not_recorded_is_not_shown(kind: Any, failure: str, budget: LedgerBudget) -> None:
    """The attack: the unrecorded step has the noise of the one that goes on, and it cancels in their difference."""
    facts = {"bounds": (0, 2000)} if kind is RunningSum else {"per_step": 1}
    running = kind(8, budget=budget, epsilon=0.5, **facts)
    with_values = (lambda one: [one]) if kind is RunningSum else int
    running.add(with_values(3))
    doubtful = kind.from_bytes(running.to_bytes(), budget=budget)
    if failure == "a copy":
        running.add(with_values(1000))
        with pytest.raises(AlreadySettled):
            doubtful.add(with_values(0))
    else:
        busy = LedgerBusy("busy")
        with (
            patch.object(StepAnchor, "advance", side_effect=busy),
            patch.object(StepAnchor, "is_at", side_effect=busy),
            pytest.raises(LedgerBusy),
        ):
            doubtful.add(with_values(1000))
        running.add(with_values(0))
    shown: list[Callable[[], Any]] = [lambda: doubtful.last, lambda: doubtful.rows]
    shown += [lambda step=step: doubtful.add(with_values(0), step=step) for step in (0, 1, 2)]
    for show in shown:
        with pytest.raises(InvalidInput, match="open this running total again"):
            show()
