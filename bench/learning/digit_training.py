"""DP-SGD with `tacit.learn.make_private` on digits, with accuracies by epoch; and the same without privacy.

The seed decides the initial weights and, without privacy, the order of rows. Poisson samples and noise are drawn from
the operating system, anew in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from bench.learning.images import Examples
from tacit import learn
from tacit.ledger import Budget

DELTA: Final = 1e-5
CLASSES: Final = 10
ROWS_AT_ONCE: Final = 2048


@dataclass(frozen=True)
class Recipe:
    """Hyper-parameters of a training; the learning rate falls linearly to `last_rate` times the first one."""

    learning_rate: float
    clip: float
    batch_size: int
    steps: int
    momentum: float = 0.0
    last_rate: float = 1.0
    hidden: int = 0
    """Hidden ReLU units; 0 for a linear model."""
    epsilon: float | None = None
    """Finds the noise; or the noise multiplier is stated."""
    noise: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What a training reached."""

    accuracies: list[float]
    """Percentages of the scored rows that are right, after every epoch; the last one is that of the end."""
    epsilon: float
    """What was charged."""
    noise: float
    """The noise multiplier."""

    @property
    def accuracy(self) -> float:
        """The percentage at the end."""
        return self.accuracies[-1]


def private(examples: Examples, recipe: Recipe, seed: int, *, by_epoch: bool = False) -> Outcome:
    """Train with a budget of its own, and score the last weights, or those after every epoch."""
    model = _model(examples, recipe, seed)
    optimizer, scheduler = _optimizer(model, recipe)
    training = learn.make_private(
        model,
        optimizer,
        (examples.x, examples.y),
        epsilon=recipe.epsilon,
        noise_multiplier=recipe.noise,
        delta=DELTA,
        clip=recipe.clip,
        batch_size=recipe.batch_size,
        steps=recipe.steps,
        physical_batch_size=ROWS_AT_ONCE,
        scheduler=scheduler,
        audit=False,
        budget=Budget(recipe.epsilon or 100.0, 20 * DELTA),
    )
    per_epoch, accuracies, scored = round(len(examples.x) / recipe.batch_size), [], 0
    for x, y in training:
        training.step(functional.cross_entropy(model(x.float()), y, reduction="none"))
        if by_epoch and training.steps >= scored + per_epoch:
            accuracies.append(score(model, examples))
            scored = training.steps
    if scored < training.steps:
        accuracies.append(score(model, examples))
    return Outcome(accuracies, training.cost.epsilon, training.schedule.noise_at(0))


def plain(examples: Examples, hidden: int, seed: int, *, epochs: int) -> float:
    """Return the accuracy of the same model without privacy, trained by Adam."""
    model = _model(examples, Recipe(0, 0, 1, 1, hidden=hidden), seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(examples.x)).split(256):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(examples.x[rows].float()), examples.y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        scheduler.step()
    return score(model, examples)


def score(model: Any, examples: Examples) -> float:
    """Return the percentage of the scored rows that a model gets right."""
    with torch.no_grad():
        found = torch.cat([model(part.float()).argmax(1) for part in examples.scored_x.split(ROWS_AT_ONCE)])
    return 100 * int((found == examples.scored_y).sum()) / len(found)


def _model(examples: Examples, recipe: Recipe, seed: int) -> Any:
    torch.manual_seed(seed)
    inputs = examples.x.shape[1]
    if not recipe.hidden:
        return nn.Linear(inputs, CLASSES)
    return nn.Sequential(nn.Linear(inputs, recipe.hidden), nn.ReLU(), nn.Linear(recipe.hidden, CLASSES))


def _optimizer(model: Any, recipe: Recipe) -> tuple[Any, Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.learning_rate, momentum=recipe.momentum)
    return optimizer, torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, recipe.last_rate, recipe.steps)
