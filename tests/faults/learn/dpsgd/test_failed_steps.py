"""Whatever fails in a training, no more noise is drawn for it than was charged, and refunds count what was seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

import tacit
import tacit.learn
from tacit.learn.dpsgd import checkpoints
from tacit.learn.dpsgd.private_training import PrivateTraining
from tacit.ledger import Ledger, LedgerBudget
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.pipeline.steps import StepAnchor
from tacit.privacy.errors import AlreadySettled, Exhausted, InvalidInput, StorageUnavailable
from tests.support.trainings import model, private, rows, train

STEPS = 4


@pytest.fixture
def budget(tmp_path: Path) -> Iterator[LedgerBudget]:
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.create_budget("visits", 30.0, 1e-2, filter="renyi", order=8.0)
        yield ledger.budget("visits")


@pytest.fixture
def draws() -> Iterator[list[float]]:
    """One entry for each time that noise was drawn."""
    found: list[float] = []
    plain = BulkGaussian.add

    def add(self: BulkGaussian, sums: Any, deviation: float, sensitivity: float) -> Any:
        found.append(deviation)
        return plain(self, sums, deviation, sensitivity)

    with patch.object(BulkGaussian, "add", add):
        yield found


def resumed(path: Path, budget: Any, **options: Any) -> PrivateTraining:
    return tacit.learn.resume(path, *parts(), rows(), budget=budget, **options)


def parts() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    net = model()
    return net, torch.optim.SGD(net.parameters(), 0.1)


def failing(*_: Any, **__: Any) -> Any:
    raise StorageUnavailable("the disk is full")


@contextmanager
def store_fails(_: PrivateTraining) -> Iterator[None]:
    with patch.object(checkpoints, "_replace", failing):
        yield


@contextmanager
def note_fails(_: PrivateTraining) -> Iterator[None]:
    with patch.object(StepAnchor, "advance", failing):
        yield


@contextmanager
def hook_fails(training: PrivateTraining) -> Iterator[None]:
    handle = training._parts.optimizer.register_step_post_hook(failing)
    yield
    handle.remove()


@contextmanager
def count_fails(training: PrivateTraining) -> Iterator[None]:
    with patch.object(training._parts.optimizer, "zero_grad", failing):
        yield


FAILURES: list[Callable[[PrivateTraining], Any]] = [store_fails, note_fails, hook_fails, count_fails]


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("fails", FAILURES)
def test_a_step_that_fails_after_its_noise_was_drawn_counts(
    tmp_path: Path, budget: LedgerBudget, draws: list[float], fails: Callable[[PrivateTraining], Any], every: int
) -> None:
    path, (net, own) = tmp_path / "state", parts()
    training = private(
        net, optimizer=own, budget=budget, checkpoint=path, checkpoint_every=every, steps=STEPS, batch_size=200
    )
    for _ in range(3 * STEPS):
        with fails(training), suppress(StorageUnavailable, Exhausted):
            train(training)
        with suppress(InvalidInput, Exhausted):  # the object itself does not run the step again
            train(training)
        training = resumed(path, budget, checkpoint_every=every)
    assert len(draws) <= STEPS
    assert training._progress.counted == STEPS
    assert training._progress.forfeited > 0 or (fails, every) == (note_fails, 1)  # which leaves a whole state


@pytest.mark.parametrize("fails", FAILURES)
@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_refund_counts_a_step_that_failed(
    tmp_path: Path, budget: LedgerBudget, fails: Callable[[PrivateTraining], Any], is_resumed: bool
) -> None:
    path, (net, own) = tmp_path / "state", parts()
    training = private(net, optimizer=own, budget=budget, checkpoint=path, steps=10, batch_size=200)
    with fails(training), pytest.raises(StorageUnavailable):
        train(training)
    ended = resumed(path, budget) if is_resumed else training
    ended.stop()
    (refund,) = [one for one in budget._ledger.history() if one.kind == "refunded"]
    assert refund.contents["ran"]["event"].get("count", 1) == 1  # of ten
    assert budget._ledger.reservations() == []


def test_without_a_checkpoint_a_failed_step_counts_and_the_rest_can_be_refunded(
    budget: LedgerBudget, draws: list[float]
) -> None:
    net, own = parts()
    training = private(net, optimizer=own, budget=budget, steps=10, batch_size=200)
    train(training, 2)
    with hook_fails(training), pytest.raises(StorageUnavailable):
        train(training)
    with pytest.raises(InvalidInput, match="cannot go on"):
        train(training)
    training.stop()
    (refund,) = [one for one in budget._ledger.history() if one.kind == "refunded"]
    assert refund.contents["ran"]["event"]["count"] == len(draws) == 3


def test_a_stop_that_cannot_be_stored_is_repeated(tmp_path: Path, budget: LedgerBudget) -> None:
    training = private(budget=budget, checkpoint=tmp_path / "state", steps=10)
    train(training, 2)
    with store_fails(training), pytest.raises(StorageUnavailable):
        training.stop()
    training.stop()
    (refund,) = [one for one in budget._ledger.history() if one.kind == "refunded"]
    assert refund.contents["ran"]["event"]["count"] == 2


@pytest.mark.parametrize("fails", [store_fails, note_fails])
@pytest.mark.parametrize("every", [0, 1, 3])
def test_of_a_state_that_could_not_be_noted_and_the_training_itself_one_goes_on(
    tmp_path: Path, draws: list[float], fails: Callable[[PrivateTraining], Any], every: int
) -> None:
    budget, path = tacit.Budget(30.0, 1e-3), tmp_path / "saved"
    options = {"checkpoint": tmp_path / "state", "checkpoint_every": every} if every else {}
    training = private(budget=budget, steps=10, batch_size=200, **options)
    train(training, 1)
    with fails(training), pytest.raises(StorageUnavailable):
        training.save(path)
    train(training, 7)
    if path.exists():
        with pytest.raises(AlreadySettled):
            resumed(path, budget)
    training.save(tmp_path / "again")
    train(resumed(tmp_path / "again", budget))
    assert len(draws) == 10


def test_a_state_that_could_not_be_noted_goes_on_instead_of_the_training(tmp_path: Path, draws: list[float]) -> None:
    budget, path = tacit.Budget(30.0, 1e-3), tmp_path / "saved"
    training = private(budget=budget, steps=10, batch_size=200)
    train(training, 1)
    with note_fails(training), pytest.raises(StorageUnavailable):
        training.save(path)
    train(resumed(path, budget))
    with pytest.raises(AlreadySettled):
        train(training)
    assert len(draws) == 10


def forge(path: Path, change: Callable[[dict[str, Any]], None], **tensors: torch.Tensor) -> None:
    """Change the header of a state as somebody who can write the file, but not the ledger, could."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["tacit"])
    change(header)
    stored = {**checkpoints.load_tensors(data), **tensors}
    path.write_bytes(checkpoints.save_tensors(stored, metadata={"tacit": json.dumps(header)}))


def less_noise(header: dict[str, Any]) -> None:
    header["settings"]["schedule"]["noise"] = [[1e-6, 10]]


def more_steps(header: dict[str, Any]) -> None:
    header["settings"]["schedule"]["steps"] = 1000
    header["settings"]["schedule"]["noise"] = [[1.0, 1000]]


def going_back(header: dict[str, Any]) -> None:
    header["progress"]["done"] = 0


def going_ahead_of_the_count(header: dict[str, Any]) -> None:
    header["progress"]["done"] -= 1
    header["progress"]["forfeited"] = 0.5


def stopped_without_a_note(header: dict[str, Any]) -> None:
    header["progress"] |= {"is_stopped": True, "done": 1}
    header["is_noted"] = False


def a_clip_of_nothing(header: dict[str, Any]) -> None:
    header["progress"]["clip"] = 0.0


@pytest.mark.parametrize("is_before_the_note", [False, True])
@pytest.mark.parametrize(
    "change", [less_noise, more_steps, going_back, going_ahead_of_the_count, stopped_without_a_note, a_clip_of_nothing]
)
def test_a_changed_file_gains_nothing_beyond_what_was_charged(
    tmp_path: Path, budget: LedgerBudget, change: Callable[[dict[str, Any]], None], is_before_the_note: bool
) -> None:
    path = tmp_path / "state"
    training = private(budget=budget, checkpoint=path, steps=10, batch_size=200)
    train(training, 2)
    if is_before_the_note:
        with note_fails(training), pytest.raises(StorageUnavailable):
            train(training, 1)
    before = budget.spent()

    def forged(header: dict[str, Any]) -> None:
        change(header)
        if not is_before_the_note:  # as a state that follows the one that was noted
            header["before"] = checkpoints.read_state(path).digest
            header["before_counted"] = 2

    forge(path, forged)
    with suppress(InvalidInput):
        resumed(path, budget)
    assert budget.spent() == before
    assert not [one for one in budget._ledger.history() if one.kind in {"refunded", "committed"}]
    if change is stopped_without_a_note:  # the file of a training that is over only shows what is in it
        with pytest.raises(Exhausted):
            iter(resumed(path, budget))
        return
    with pytest.raises(InvalidInput):
        resumed(path, budget)


def test_a_changed_model_in_a_state_that_is_not_noted_yet_gets_no_step_more(
    tmp_path: Path, budget: LedgerBudget, draws: list[float]
) -> None:
    path = tmp_path / "state"
    training = private(budget=budget, checkpoint=path, steps=10, batch_size=200)
    train(training, 2)
    with note_fails(training), pytest.raises(StorageUnavailable):
        train(training, 1)
    forge(path, lambda _: None, **{"model.bias": torch.tensor([9.0, 9.0])})
    train(resumed(path, budget))
    assert len(draws) == 10


def test_nobody_goes_on_with_refunded_steps_where_the_end_could_not_be_recorded(
    tmp_path: Path, budget: LedgerBudget
) -> None:
    training = private(budget=budget, steps=10, batch_size=200)
    train(training, 1)
    with note_fails(training), pytest.raises(StorageUnavailable):
        training.save(tmp_path / "saved")
    with patch.object(LedgerBudget, "commit", failing), pytest.raises(StorageUnavailable):
        training.stop()
    with pytest.raises(AlreadySettled):
        resumed(tmp_path / "saved", budget)
    training.stop()
    assert budget._ledger.reservations() == []


class Scaled(torch.nn.Module):
    """Cannot be run on a row alone, as gradients of single rows are."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) == 1:
            raise KeyError("a batch has more rows")
        return x @ self.weight


@pytest.mark.parametrize("kind", ["memory", "sum of epsilons", "renyi"])
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_training_of_which_no_noise_was_drawn_gives_everything_back(
    tmp_path: Path, budget: LedgerBudget, kind: str, has_checkpoint: bool
) -> None:
    budget._ledger.create_budget("others", 30.0, 1e-2)
    own = {"memory": tacit.Budget(30.0, 1e-3), "sum of epsilons": budget._ledger.budget("others"), "renyi": budget}[
        kind
    ]
    net, before = Scaled(), own.remaining()
    training = private(
        net, budget=own, rows_apart=True, checkpoint=tmp_path / "state" if has_checkpoint else None, batch_size=200
    )
    assert own.spent().epsilon > 0
    features, _ = next(iter(training))
    with pytest.raises(InvalidInput, match="single rows"):
        training.step(net(features).sum(1))
    training.stop()
    assert own.remaining() == before
    assert own.spent().epsilon == 0
    assert not own.events
    assert budget._ledger.reservations() == []
    if has_checkpoint:
        with pytest.raises((AlreadySettled, Exhausted)):
            iter(tacit.learn.resume(tmp_path / "state", net, training._parts.optimizer, rows(), budget=own))
    budget._ledger.verify()


def test_a_training_that_cannot_be_started_is_not_charged(tmp_path: Path, budget: LedgerBudget) -> None:
    before = budget.remaining()
    with patch.object(checkpoints, "_replace", failing), pytest.raises(StorageUnavailable):
        private(budget=budget, checkpoint=tmp_path / "state")
    assert budget.remaining() == before
    assert budget._ledger.reservations() == []


def test_a_refund_of_everything_in_memory_is_made_once() -> None:
    budget = tacit.Budget(30.0, 1e-3)
    private(budget=budget)
    second = private(budget=budget)
    charged = budget.spent()
    second.stop()
    left = budget.spent()
    second.stop()
    budget.refund(second.permit, None)
    assert budget.spent() == left
    assert 0 < left.epsilon < charged.epsilon


def test_other_data_of_as_many_units_are_refused(tmp_path: Path, budget: LedgerBudget) -> None:
    path, (features, labels) = tmp_path / "state", rows()
    train(
        private(
            *parts()[:1],
            data=(features, labels),
            units=[row // 2 for row in range(200)],
            budget=budget,
            checkpoint=path,
        ),
        2,
    )
    other: list[tuple[Any, Any]] = [
        ((features[:100], labels[:100]), None),
        ((features, labels.double()), [row // 2 for row in range(200)]),
        ((features[:, :3], labels), [row // 2 for row in range(200)]),
        (features, [row // 2 for row in range(200)]),
    ]
    for data, units in other:
        with pytest.raises(InvalidInput, match="another training"):
            tacit.learn.resume(path, *parts(), data, units=units, budget=budget)
