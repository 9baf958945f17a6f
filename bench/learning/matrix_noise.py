"""DP-FTRL with banded matrix noise beside DP-SGD: errors of prefix sums, and accuracy.

The error is the root mean squared error of the prefix sums of gradients, over that of independent noise at the same
epsilon (delta 1e-5, 60,000 units, expected batches of 600): with Poisson samples for 20 epochs (one unit added or
removed), and without amplification for a loader of the same order in each of 1 and 4 passes (one row replaced).

Accuracy is that of multinomial regression on MNIST's pixels (10,000 generated rows of the same shape without
TACIT_DATA or with --quick), clip 1, batches of a hundredth of the rows, SGD without momentum from weights of 0.
Learning rates were found for MNIST by doubling or halving from 1 or 2 until the accuracy falls on 10,000 rows of the
training set, which are public and were left out for that. Test rows are scored once for each run; runs differ in
samples and noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from bench.learning.datasets import has_mnist, mnist
from bench.results import Result
from tacit.learn import make_private
from tacit.learn.dpsgd.matrix_noise import prefix_error
from tacit.learn.dpsgd.schedule import planned
from tacit.ledger import Budget
from tacit.privacy.units import Relation

UNITS: Final = 60_000
BATCH: Final = 600
DELTA: Final = 1e-5
BANDS: Final = (1, 2, 4, 8, 16, 32)
RUNS: Final = 3
Split = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Setting:
    """A training for which DP-SGD is compared with several bands."""

    name: str
    epsilon: float
    epochs: int
    is_loader: bool
    learning_rates: Mapping[int, float]
    """By the number of bands."""


SETTINGS: Final = (
    Setting("4 passes of a loader, epsilon 8", 8.0, 4, True, {1: 2.0, 32: 8.0}),
    Setting("5 epochs of Poisson samples, epsilon 8", 8.0, 5, False, {1: 8.0, 16: 16.0}),
)


def run(quick: bool) -> Iterator[Result]:
    """Measure errors, then accuracy; with --quick, fewer settings and small generated data."""
    per_pass = UNITS // BATCH
    for epsilon in (2.0,) if quick else (0.5, 2.0, 8.0):
        yield from _errors(f"20 epochs of Poisson samples, epsilon {epsilon:g}", epsilon, 20 * per_pass, None)
    for passes in (1, 4):
        name = f"{passes} {'pass' if passes == 1 else 'passes'} of a loader, epsilon 8"
        yield from _errors(name, 8.0, passes * per_pass, per_pass)
    is_real = has_mnist() and not quick
    train, test = (_pixels("train"), _pixels("t10k")) if is_real else _generated()
    data = "MNIST" if is_real else "generated rows"
    for setting in SETTINGS:
        yield from _accuracies(f"{data}, {setting.name}", setting, train, test, 1 if quick else RUNS)


def _errors(name: str, epsilon: float, steps: int, steps_per_pass: int | None) -> Iterator[Result]:
    """Yield the errors of several numbers of bands over that of one."""
    plain = _error(epsilon, steps, steps_per_pass, 1)
    for bands in BANDS[1:]:
        error = _error(epsilon, steps, steps_per_pass, bands) / plain
        yield Result(f"{name}: prefix error, {bands} bands", error, "x DP-SGD")


def _error(epsilon: float, steps: int, steps_per_pass: int | None, bands: int) -> float:
    schedule = planned(
        steps=steps,
        batch_size=BATCH,
        units=UNITS,
        epsilon=epsilon,
        noise_multiplier=None,
        clip=1.0,
        delta=DELTA,
        steps_per_pass=steps_per_pass,
        bands=bands,
    )
    return schedule.noise_at(0) * prefix_error(schedule.coefficients, steps)


def _accuracies(name: str, setting: Setting, train: Split, test: Split, runs: int) -> Iterator[Result]:
    """Yield mean and spread for each number of bands, the mean of DP-SGD beside."""
    found = {
        bands: [accuracy(trained(train, setting, bands), test) for _ in range(runs)] for bands in setting.learning_rates
    }
    for bands, each in found.items():
        beside = {} if bands == 1 else {"DP-SGD": float(np.mean(found[1]))}
        kind = "DP-SGD" if bands == 1 else f"{bands} bands"
        yield Result(f"{name}: accuracy, {kind}", float(np.mean(each)), "%", beside, better="higher")
        if runs > 1:
            yield Result(f"{name}: its spread over {runs} runs, {kind}", float(np.std(each, ddof=1)), "%")


def trained(train: Split, setting: Setting, bands: int) -> nn.Module:
    """Return a model that was trained in a setting."""
    model = nn.Linear(784, 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    data, size = TensorDataset(*train), len(train[0]) // 100
    relation = Relation.REPLACE_ONE if setting.is_loader else Relation.ADD_REMOVE
    private = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=setting.learning_rates[bands]),
        data,
        epsilon=setting.epsilon,
        delta=DELTA,
        batch_size=size,
        epochs=setting.epochs,
        bands=bands,
        loader=DataLoader(data, batch_size=size) if setting.is_loader else None,
        budget=Budget(2 * setting.epsilon, 100 * DELTA, relation=relation),
        audit=False,
    )
    for x, y in private:
        private.step(functional.cross_entropy(model(x), y, reduction="none"))
    return model


def accuracy(model: nn.Module, rows: Split) -> float:
    """Return the percentage of rows that a model classifies correctly."""
    with torch.no_grad():
        return 100 * float((model(rows[0]).argmax(1) == rows[1]).float().mean())


def _generated() -> tuple[Split, Split]:
    """Return rows around the centres of ten classes, 10,000 to train on and 2,000 to score."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (12_000,), generator=random)
    centres = torch.rand(10, 784, generator=random)
    rows = (centres[labels] + 2 * torch.randn(12_000, 784, generator=random)).clamp(0, 1)
    return (rows[:10_000], labels[:10_000]), (rows[10_000:], labels[10_000:])


def _pixels(part: Literal["train", "t10k"]) -> Split:
    images, labels = mnist(part)
    return torch.tensor(images.reshape(-1, 784) / 255, dtype=torch.float32), torch.tensor(labels)
