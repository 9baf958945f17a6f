"""What the pipeline promises about releases in several steps, held against every kind of them.

A new kind is one more line in KINDS: how it starts, makes a step, counts its steps, and continues from its file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import tacit
import tacit.learn
from tacit.ledger import Budget, Ledger, LedgerBudget
from tacit.pipeline.steps import StepAnchor
from tacit.privacy.errors import AlreadySettled, BudgetExceeded, Exhausted, InvalidInput, NameTaken, UnknownName
from tests.support.trainings import model, optimizer, private, rows, train

HORIZON = 4


@dataclass(frozen=True)
class StepwiseKind:
    """A kind of release in HORIZON steps, with its state in a file."""

    start: Callable[[Budget, Path], Any]
    reopen: Callable[[Budget, Path], Any]
    step: Callable[[Any], object]
    close: Callable[[Any], object] = lambda _: None


def _started(made: type[Any], **arguments: Any) -> Callable[[Budget, Path], Any]:
    return lambda budget, path: made(HORIZON, epsilon=1.0, budget=budget, path=path, **arguments)


def _resumed(budget: Budget, path: Path) -> Any:
    net = model(seed=3)
    return tacit.learn.resume(path, net, optimizer(net), rows(), budget=budget)


KINDS = {
    "running count": StepwiseKind(
        _started(tacit.stats.RunningCount),
        lambda budget, path: tacit.stats.RunningCount.open(path, budget=budget),
        lambda one: one.add(5),
        lambda one: one.close(),
    ),
    "running sum": StepwiseKind(
        _started(tacit.stats.RunningSum, bounds=(0, 10)),
        lambda budget, path: tacit.stats.RunningSum.open(path, budget=budget),
        lambda one: one.add([5]),
        lambda one: one.close(),
    ),
    "training": StepwiseKind(
        lambda budget, path: private(budget=budget, checkpoint=path, steps=HORIZON),
        _resumed,
        lambda one: train(one, 1),
    ),
    "training with banded noise": StepwiseKind(
        lambda budget, path: private(budget=budget, checkpoint=path, steps=HORIZON, bands=3, audit=20),
        _resumed,
        lambda one: train(one, 1),
    ),
}
pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.create_budget("visits", 30.0, 1e-3)
        ledger.create_budget("little", 1e-3, 1e-12)
        yield ledger
        ledger.verify(full=True)


@pytest.fixture
def budget(ledger: Ledger) -> LedgerBudget:
    return ledger.budget("visits")


def charges(ledger: Ledger) -> int:
    return sum(one.kind == "reserved" for one in ledger.history())


def test_all_steps_are_charged_at_the_start_and_settled_at_the_end(
    ledger: Ledger, budget: LedgerBudget, tmp_path: Path, kind: str
) -> None:
    one = KINDS[kind].start(budget, tmp_path / "state")
    spent = budget.spent()
    assert spent.epsilon > 0
    for number in range(HORIZON):
        assert len(ledger.reservations()) == 1
        KINDS[kind].step(one)
        assert one.steps == number + 1
    assert (charges(ledger), len(ledger.reservations())) == (1, 0)
    assert budget.spent() == spent
    with pytest.raises((Exhausted, InvalidInput)):
        KINDS[kind].step(one)
    assert (one.steps, budget.spent()) == (HORIZON, spent)


def test_what_was_left_between_steps_continues_without_a_charge(
    ledger: Ledger, budget: LedgerBudget, tmp_path: Path, kind: str
) -> None:
    one = KINDS[kind].start(budget, tmp_path / "state")
    for number in range(HORIZON):
        KINDS[kind].step(one)
        KINDS[kind].close(one)
        one = KINDS[kind].reopen(budget, tmp_path / "state")
        assert one.steps == number + 1
    assert (charges(ledger), len(ledger.reservations())) == (1, 0)


def test_a_step_that_was_stored_and_not_noted_is_noted_before_the_next(
    ledger: Ledger, budget: LedgerBudget, tmp_path: Path, kind: str
) -> None:
    """As if the process was killed in between: no handler of the kind runs."""
    one, state, killed = KINDS[kind].start(budget, tmp_path / "state"), tmp_path / "state", tmp_path / "killed"
    KINDS[kind].step(one)

    def kill(*_: object, **__: object) -> None:
        shutil.copy(state, killed)
        raise SystemExit

    with patch.object(StepAnchor, "advance", kill), pytest.raises(SystemExit):
        KINDS[kind].step(one)
    KINDS[kind].close(one)
    state.unlink()
    shutil.move(killed, state)
    again = KINDS[kind].reopen(budget, state)
    assert again.steps == 2
    KINDS[kind].step(again)
    assert (again.steps, charges(ledger)) == (3, 1)


def test_only_one_copy_of_a_state_continues(budget: LedgerBudget, tmp_path: Path, kind: str) -> None:
    one, state, copy = KINDS[kind].start(budget, tmp_path / "state"), tmp_path / "state", tmp_path / "copy"
    KINDS[kind].step(one)
    shutil.copy(state, copy)
    KINDS[kind].step(one)
    with pytest.raises(AlreadySettled, match="copied or restored"):
        KINDS[kind].reopen(budget, copy)
    KINDS[kind].step(one)
    assert one.steps == 3


def test_a_note_that_is_not_compared_lets_a_copy_continue(budget: LedgerBudget, tmp_path: Path, kind: str) -> None:
    """The planted bug: without the comparison, the test above could not pass."""
    one, state, copy = KINDS[kind].start(budget, tmp_path / "state"), tmp_path / "state", tmp_path / "copy"
    KINDS[kind].step(one)
    shutil.copy(state, copy)
    KINDS[kind].step(one)
    with patch.multiple(StepAnchor, is_at=lambda *_: True, advance=lambda *_, **__: None, move=lambda *_: None):
        assert KINDS[kind].reopen(budget, copy).steps == 1


def test_what_the_budget_cannot_pay_is_not_started(ledger: Ledger, tmp_path: Path, kind: str) -> None:
    with pytest.raises(BudgetExceeded):
        KINDS[kind].start(ledger.budget("little"), tmp_path / "state")
    assert (charges(ledger), (tmp_path / "state").exists()) == (0, False)


def test_another_budget_and_a_file_that_exists_are_refused(
    ledger: Ledger, budget: LedgerBudget, tmp_path: Path, kind: str
) -> None:
    KINDS[kind].close(KINDS[kind].start(budget, tmp_path / "state"))
    for other in (ledger.budget("little"), tacit.Budget(30.0, 1e-3)):
        with pytest.raises(UnknownName):
            KINDS[kind].reopen(other, tmp_path / "state")
    with pytest.raises(NameTaken):
        KINDS[kind].start(budget, tmp_path / "state")
    assert charges(ledger) == 1
    KINDS[kind].step(KINDS[kind].reopen(budget, tmp_path / "state"))


def test_a_start_that_is_interrupted_says_what_stays_charged(
    ledger: Ledger, budget: LedgerBudget, tmp_path: Path, kind: str
) -> None:
    with patch.object(StepAnchor, "begin", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        KINDS[kind].start(budget, tmp_path / "state")
    assert len(ledger.reservations()) == charges(ledger) == 1
    assert budget.spent().epsilon > 0
