"""The passes over a loader: as many as were charged, each visiting a row at most once, whatever its reads do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import tacit
import tacit.learn
from tacit.learn.dpsgd.private_training import PrivateTraining
from tacit.privacy.errors import InvalidInput
from tests.support.trainings import model, optimizer, private

ROWS, PASSES = 40, 5


class Images(Dataset[Any]):
    """Rows that hold their own number, of which some cannot be read."""

    def __init__(self, damaged: set[int], *, is_mapping: bool = False) -> None:
        self.damaged, self.count, self.is_mapping = damaged, ROWS, is_mapping

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> Any:
        if row in self.damaged:
            raise OSError(f"image {row} is damaged")
        features = torch.full((4,), float(row))
        return {"name": str(row), "features": features} if self.is_mapping else (features, row % 2)


def over(data: Images, *, shuffle: bool = False, budget: Any = None, **options: Any) -> PrivateTraining:
    own = tacit.Budget(1e4, 1e-3, relation=tacit.Relation.REPLACE_ONE) if budget is None else budget
    loader = DataLoader(data, 4, shuffle=shuffle)
    return private(data=data, loader=loader, epochs=PASSES, noise_multiplier=5.0, budget=own, **options)


def visits(training: PrivateTraining, steps: int | None = None, tries: int = 500) -> Counter[int]:
    """Return how often each row entered a step; a read that fails is tried again."""
    seen: Counter[int] = Counter()
    for _ in range(tries):
        try:
            features, _ = next(training)
        except OSError:
            continue
        except StopIteration:
            break
        seen.update(features[:, 0].int().tolist())
        training.step(training._parts.model(features).sum(1))
        if training.steps == steps:
            break
    return seen


@pytest.mark.parametrize(
    ("damaged", "shuffle"), [({13}, False), (set(range(4, 40, 4)), False), ({13}, True), ({38}, True)]
)
def test_a_read_that_fails_begins_no_pass_that_was_not_charged(damaged: set[int], shuffle: bool) -> None:
    training = over(Images(damaged), shuffle=shuffle)
    seen = visits(training)
    assert max(seen.values()) <= PASSES
    assert training._progress.forfeited > 0


def test_a_first_read_that_fails_loses_nothing() -> None:
    data = Images({0})
    training = over(data)
    with pytest.raises(OSError, match="damaged"):
        next(training)
    data.damaged = set()
    assert set(visits(training).values()) == {PASSES}


@pytest.mark.parametrize("count", [ROWS - 8, ROWS + 20])
def test_a_pass_of_another_length_than_the_loader_had_begins_no_pass_that_was_not_charged(count: int) -> None:
    data = Images(set())
    training = over(data)
    data.count = count
    seen = visits(training)
    assert max(seen.values()) == PASSES
    assert training._progress.counted == training.schedule.steps
    assert training._progress.forfeited == (2 * PASSES if count < ROWS else 0)


def test_a_loader_that_gives_nothing_is_an_error_instead_of_a_pass() -> None:
    data = Images(set())
    training = over(data)
    data.count = 0
    with pytest.raises(InvalidInput, match="no batch"):
        next(training)


def test_a_begun_pass_is_not_continued_after_the_training_is_resumed(tmp_path: Path) -> None:
    budget = tacit.Budget(1e4, 1e-3, relation=tacit.Relation.REPLACE_ONE)
    data = Images(set())
    seen = visits(over(data, shuffle=True, budget=budget, checkpoint=tmp_path / "state"), 13)
    net = model()
    training = tacit.learn.resume(
        tmp_path / "state", net, optimizer(net), data, loader=DataLoader(data, 4, shuffle=True), budget=budget
    )
    assert training._progress.counted == 20
    seen += visits(training)
    assert max(seen.values()) <= PASSES


def test_the_order_and_the_augmentations_of_a_loader_are_drawn_in_secret() -> None:
    """Two trainings with the same seed of the caller have different orders, and the caller's generators go on."""

    class Noisy(Images):
        def __getitem__(self, row: int) -> Any:
            return torch.tensor([float(row), torch.rand(1), np.random.rand(), 0.0]), row % 2

    orders = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        training = over(Noisy(set()), shuffle=True)
        torch.manual_seed(0)
        np.random.seed(0)
        features, _ = next(training)
        orders.append(features)
    for column in range(3):
        assert not torch.equal(orders[0][:, column], orders[1][:, column])


def test_a_loader_of_mappings_counts_rows() -> None:
    training = over(Images(set(), is_mapping=True))
    net = training._parts.model
    for batch in training:
        training.step(net(batch["features"]).sum(1))
    assert training.steps == training.schedule.steps
