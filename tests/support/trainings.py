"""Small private trainings for tests: generated rows, a linear model, and the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

import tacit.learn
from tacit.learn.dpsgd.private_training import PrivateTraining

torch.set_num_threads(1)


def rows(count: int = 200, width: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return features and labels of two classes that a line separates."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, width, generator=generator)
    return features, (features.sum(1) > 0).long()


def model(width: int = 4, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Linear(width, 2)


def optimizer(of: torch.nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(of.parameters(), **{"lr": 0.5, "momentum": 0.5, **options})


def private(
    net: torch.nn.Module | None = None, data: Any = None, budget: Any = None, **options: Any
) -> PrivateTraining:
    """Return a private training of a small model; options are those of `make_private`."""
    own = model() if net is None else net
    stated: dict[str, Any] = {"noise_multiplier": 1.0, "delta": 1e-5, "batch_size": 20, "steps": 5, "audit": False}
    if "epsilon" in options:
        del stated["noise_multiplier"]
    if "epochs" in options or "loader" in options:
        del stated["steps"]
    if "loader" in options:
        del stated["batch_size"]
    made = tacit.learn.make_private(
        own,
        options.pop("optimizer", None) or optimizer(own),
        rows() if data is None else data,
        budget=tacit.Budget(50.0, 1e-3) if budget is None else budget,
        **{**stated, **options},
    )
    made.net = own  # type: ignore[attr-defined]
    return made


def train(training: PrivateTraining, steps: int | None = None, see: Callable[[int], None] | None = None) -> None:
    """Run the loop, to its end or for so many batches; `see` is called with the number of rows of each."""
    net = training._parts.model
    for number, (features, labels) in enumerate(training, 1):
        if see is not None:
            see(len(features))
        training.step(F.cross_entropy(net(features), labels, reduction="none"))
        if number == steps:
            break
