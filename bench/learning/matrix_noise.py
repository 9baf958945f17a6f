"""DP-FTRL with banded matrix noise beside DP-SGD: errors of prefix sums, and accuracy.

The error is the root mean squared error of the prefix sums of gradients, over that of independent noise at the same
epsilon (delta 1e-5, 60,000 units, expected batches of 600): with Poisson samples for 20 epochs (one unit added or
removed), and without amplification for a loader of the same order in each of 1 and 4 passes (one row replaced).

Accuracy is that of multinomial regression on MNIST's pixels (generated rows of the same shape without TACIT_DATA or
with --quick), clip 1, batches of 600, SGD without momentum. Learning rates are the best of 0.125, 0.25, ..., 8 by the
accuracy on the last 10,000 training rows after training on the others (seed 100); test rows are scored once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from bench.learning import digits
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
SEEDS: Final = 3
Split = tuple[Tensor, Tensor]


def run(quick: bool) -> Iterator[Result]:
    """Measure errors, then accuracy; with --quick, fewer settings and small generated data."""
    per_pass = UNITS // BATCH
    for epsilon in (2.0,) if quick else (0.5, 2.0, 8.0):
        yield from _errors(f"20 epochs of Poisson samples, epsilon {epsilon:g}", epsilon, 20 * per_pass, None)
    for passes in (1, 4):
        name = f"{passes} {'pass' if passes == 1 else 'passes'} of a loader, epsilon 8"
        yield from _errors(name, 8.0, passes * per_pass, per_pass)
    folder = os.environ.get("TACIT_DATA")
    found = None if quick or folder is None else Path(folder) / "mnist"
    train, test = _generated() if found is None else (_pixels(found, "train"), _pixels(found, "t10k"))
    data = "generated rows" if found is None else "MNIST"
    for setting in ():
        yield from _accuracies(data, setting, train, test, 1 if quick else SEEDS)


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


def trained(train: Split, *, bands: int, rate: float, epsilon: float, epochs: int, is_loader: bool) -> nn.Module:
    """Return a model that was trained at a learning rate."""
    torch.manual_seed(0)
    model = nn.Linear(784, 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    data, options = TensorDataset(*train), {"batch_size": BATCH}
    if is_loader:
        options = {"loader": DataLoader(data, batch_size=BATCH)}
    relation = Relation.REPLACE_ONE if is_loader else Relation.ADD_REMOVE
    private = make_private(
        model,
        optimizer,
        data,
        epsilon=epsilon,
        delta=DELTA,
        epochs=epochs,
        bands=bands,
        budget=Budget(2 * epsilon, 100 * DELTA, relation=relation),
        audit=False,
        **options,
    )
    for x, y in private:
        private.step(functional.cross_entropy(model(x), y, reduction="none"))
    return model


def accuracy(model: nn.Module, rows: Split) -> float:
    """Return the percentage of rows that a model classifies correctly."""
    with torch.no_grad():
        return 100 * float((model(rows[0]).argmax(1) == rows[1]).float().mean())


def _pixels(folder: Path, name: str) -> Split:
    rows, labels = digits.load(folder, name)
    return torch.from_numpy(rows[:, : digits.PIXELS].copy()), torch.from_numpy(labels)
