"""A training that is killed at any moment goes on with exact accounting and fresh noise; copies do not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch.optim import lr_scheduler as schedules
from torch.optim.lr_scheduler import LRScheduler

import tacit
import tacit.learn
from tacit.ledger import Ledger, LedgerBudget
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.mechanisms.simulation import SeededSource
from tacit.pipeline.steps import StepAnchor
from tacit.privacy.errors import AlreadySettled, InvalidInput, NameTaken, UnknownName
from tests.support.trainings import model, optimizer, private, rows, train

UNDER_WAY = {
    "before the noise",
    "after the noise",
    "after the weights are changed",
    "before the state is written",
    "before it gets its name",
}
"""Points after a step is noted as under way and before its state has its name: what may have been seen is lost."""
PROGRAM = Path(__file__).with_name("killed_trainings.py")


@pytest.fixture
def budget(tmp_path: Path) -> Iterator[LedgerBudget]:
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.create_budget("visits", 30.0, 1e-3)
        yield ledger.budget("visits")


def resumed(path: Path, budget: Any, net: torch.nn.Module | None = None, data: Any = None, **options: Any) -> Any:
    own = model(seed=3) if net is None else net
    return tacit.learn.resume(path, own, optimizer(own), rows() if data is None else data, budget=budget, **options)


@pytest.mark.parametrize(
    "arguments",
    ["1 1 0", *(pytest.param(one, marks=pytest.mark.soak) for one in ("1 1", "1 2", "3 1"))],
    ids=lambda arguments: arguments.replace(" ", "-"),
)
def test_killed_between_any_two_operations_only_a_step_under_way_is_lost_and_none_is_run_twice(
    tmp_path: Path, arguments: str
) -> None:
    every, kills, *_ = map(int, arguments.split())
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), *arguments.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
    )
    assert ran.returncode == 0, ran.stderr
    for point, outcome in json.loads(ran.stdout).items():
        assert outcome["killed"] == [signal.SIGKILL] * kills, (point, ran.stderr)
        assert outcome["last"] == 0, ran.stderr
        assert outcome["counted"] == 6, point
        lost = kills * (point in UNDER_WAY)
        assert outcome["steps"] == 6 - lost if every == 1 else 2 <= outcome["steps"] <= 6, point
        assert (outcome["charges"], outcome["left"]) == (1, 0), point


SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], LRScheduler]] = {
    "step": lambda own: schedules.StepLR(own, 2, 0.5),
    "milestones": lambda own: schedules.MultiStepLR(own, [2, 4]),
    "cosine": lambda own: schedules.CosineAnnealingWarmRestarts(own, 3),
    "one cycle": lambda own: schedules.OneCycleLR(own, 1.0, total_steps=20),
    "sequential": lambda own: schedules.SequentialLR(
        own, [schedules.LinearLR(own), schedules.LambdaLR(own, lambda step: 0.9**step)], [3]
    ),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_learning_rates_go_on_where_the_checkpoint_was(tmp_path: Path, budget: LedgerBudget, name: str) -> None:
    alone, path = optimizer(model()), tmp_path / "state"
    plan, wanted = SCHEDULERS[name](alone), []
    for _ in range(7):
        wanted.append(alone.param_groups[0]["lr"])
        alone.step()
        plan.step()
    rates: list[float] = []
    for start in (0, 3):
        net = model(seed=start)
        own = optimizer(net)
        given = {"optimizer": own, "scheduler": SCHEDULERS[name](own)}
        if start:
            training = tacit.learn.resume(path, net, data=rows(), budget=budget, **given)
        else:
            training = private(net, budget=budget, checkpoint=path, steps=7, batch_size=200, **given)
        train(training, 3 if not start else None, see=lambda _, own=own: rates.append(own.param_groups[0]["lr"]))
    assert rates == pytest.approx(wanted)


def test_a_checkpoint_with_another_scheduler_is_refused(tmp_path: Path, budget: LedgerBudget) -> None:
    net, path = model(), tmp_path / "state"
    own = optimizer(net)
    with pytest.raises(InvalidInput, match="not a loss"):
        private(net, optimizer=own, budget=budget, scheduler=schedules.ReduceLROnPlateau(own))
    with pytest.raises(InvalidInput, match="another optimizer"):
        private(net, optimizer=own, budget=budget, scheduler=schedules.StepLR(optimizer(net), 2))
    train(private(net, optimizer=own, budget=budget, checkpoint=path, scheduler=schedules.StepLR(own, 2)), 2)
    with pytest.raises(InvalidInput, match="SGD with StepLR, not SGD"):
        resumed(path, budget)


def test_a_refused_checkpoint_leaves_model_and_budgets_as_they_were(tmp_path: Path, budget: LedgerBudget) -> None:
    path, other, net = tmp_path / "state", tacit.Budget(30.0, 1e-3), model(seed=9)
    train(private(budget=budget, checkpoint=path), 2)
    before, charged = net.weight.detach().clone(), budget.spent()
    with pytest.raises(UnknownName):
        resumed(path, other, net)
    assert torch.equal(before, net.weight)
    assert not net._forward_hooks
    assert other.spent().epsilon == 0
    train(resumed(path, budget))
    assert budget.spent() == charged


def test_a_training_that_goes_on_has_the_state_of_the_checkpoint(tmp_path: Path, budget: LedgerBudget) -> None:
    path = tmp_path / "state"
    first = private(budget=budget, checkpoint=path, average=0.9, steps=6, audit=True)
    train(first, 3)
    net = model(seed=3)
    second = resumed(path, budget, net)
    assert second.steps == 3
    for one, other in zip(first._parts.model.parameters(), net.parameters(), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(first.averaged["weight"], second.averaged["weight"])
    momenta = [one._parts.optimizer.state_dict()["state"][0]["momentum_buffer"] for one in (first, second)]
    assert torch.equal(*momenta)
    train(second)
    assert second.steps == 6
    assert second.cost == first.cost
    assert second.finding is not None
    with pytest.raises(AlreadySettled, match="copied or restored"):
        train(first)
    with pytest.raises(InvalidInput, match="resume"):
        train(first)


def test_an_older_copy_is_refused(tmp_path: Path, budget: LedgerBudget) -> None:
    path, old = tmp_path / "state", tmp_path / "old"
    training = private(budget=budget, checkpoint=path, steps=6)
    train(training, 2)
    shutil.copy(path, old)
    train(training, 1)
    with pytest.raises(AlreadySettled, match="copied or restored"):
        resumed(old, budget)
    shutil.copy(path, old)
    resumed(path, budget)
    with pytest.raises(AlreadySettled, match="copied or restored"):
        resumed(old, budget)


def test_other_models_data_budgets_and_files_are_refused(tmp_path: Path, budget: LedgerBudget) -> None:
    path = tmp_path / "state"
    training = private(budget=budget, checkpoint=path)
    train(training, 2)
    with pytest.raises(InvalidInput, match="another model"):
        resumed(path, budget, torch.nn.Linear(4, 3))
    with pytest.raises(InvalidInput, match="another training: units"):
        resumed(path, budget, data=rows(150))
    net = model()
    with pytest.raises(InvalidInput, match="another training: optimizer"):
        tacit.learn.resume(path, net, torch.optim.Adam(net.parameters()), rows(), budget=budget)
    with pytest.raises(UnknownName):
        resumed(path, tacit.Budget(30.0, 1e-3))
    for wrong in (b"", b"not a state", path.read_bytes()[:-10], path.read_bytes()[:50]):
        (tmp_path / "wrong").write_bytes(wrong)
        with pytest.raises(InvalidInput):
            resumed(tmp_path / "wrong", budget)
    changed = bytearray(path.read_bytes())
    changed[-1] ^= 1
    (tmp_path / "wrong").write_bytes(bytes(changed))
    with pytest.raises(AlreadySettled):
        resumed(tmp_path / "wrong", budget)
    with pytest.raises(InvalidInput, match="no checkpoint"):
        resumed(tmp_path / "missing", budget)
    with pytest.raises(NameTaken):
        private(budget=budget, checkpoint=path)
    assert len([one for one in budget._ledger.history() if one.kind == "reserved"]) == 1
    train(resumed(path, budget))


def test_steps_that_may_have_been_seen_count_when_states_are_rare(tmp_path: Path, budget: LedgerBudget) -> None:
    path = tmp_path / "state"
    train(private(budget=budget, checkpoint=path, checkpoint_every=3, steps=10), 5)  # 3 are stored
    second = resumed(path, budget)
    assert (second.steps, second._progress.forfeited) == (3, 2)
    train(second)
    assert second.steps == 8
    assert "2 steps were lost" in second.card


def test_a_saved_training_goes_on_in_one_place_and_in_memory_too(tmp_path: Path) -> None:
    memory = tacit.Budget(30.0, 1e-3)
    training = private(budget=memory, steps=4)
    train(training, 2)
    training.save(tmp_path / "state")
    with pytest.raises(InvalidInput, match="it was saved"):
        train(training)
    second = resumed(tmp_path / "state", memory)
    train(second)
    assert second.steps == 4
    second.save(tmp_path / "end")
    over = resumed(tmp_path / "end", memory)
    assert over.steps == 4
    assert len(memory.events) == 1


@pytest.mark.parametrize("is_planted", [False, True])
def test_noise_is_fresh_after_a_step_was_lost(tmp_path: Path, budget: LedgerBudget, is_planted: bool) -> None:
    path, seen, plain = tmp_path / "state", [], BulkGaussian.add

    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        own = BulkGaussian(SeededSource(1)) if is_planted else self
        zero = {name: torch.zeros_like(one) for name, one in sums.items()}
        noise = plain(own, zero, deviation, sensitivity)
        seen.append(noise["weight"])
        return {name: one + noise[name] for name, one in sums.items()}

    with patch.object(BulkGaussian, "add", add):
        training = private(budget=budget, checkpoint=path)
        with patch.object(StepAnchor, "advance", side_effect=SystemExit), pytest.raises(SystemExit):
            train(training, 1)
        train(resumed(path, budget), 1)
    assert torch.equal(seen[0], seen[1]) == is_planted  # the check notices noise that is drawn again


def test_an_interrupt_during_a_step_comes_after_it() -> None:
    training, plain = private(steps=3), BulkGaussian.add

    def add(self: BulkGaussian, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return plain(self, *arguments)

    with patch.object(BulkGaussian, "add", add), pytest.raises(KeyboardInterrupt):
        train(training)
    assert training.steps == 1
    train(training)
    assert training.steps == 3
