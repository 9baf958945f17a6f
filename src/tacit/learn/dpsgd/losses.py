"""Checks of what a step of a training takes: the losses of its rows, and a loss on public data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn

from tacit.privacy.errors import InvalidInput, TacitError, WrongType

_OF_THE_MODEL: Final = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def require_losses(losses: Any, rows: int) -> None:
    """Raise unless there is one loss with a gradient for each row."""
    if not isinstance(losses, Tensor) or losses.ndim != 1 or len(losses) != rows:
        raise WrongType(
            f'losses must be a tensor with one loss for each of the {rows:,} rows (reduction="none")', name="losses"
        )
    if not losses.requires_grad:
        raise InvalidInput("the losses have no gradient; compute them from the model, with gradients", name="losses")


def require_public_loss(public_loss: Any, processes: int) -> None:
    """Raise unless there is none, or a function, in one process."""
    if public_loss is not None and (not callable(public_loss) or processes > 1):
        raise WrongType(
            "public_loss must be a function that returns a loss, in a training of one process", name="public_loss"
        )


def public_gradients(public_loss: Any, parameters: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    """Return the gradients of a loss on public data, by parameter."""
    loss = public_loss()
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        raise WrongType("public_loss must return one loss with a gradient", name="public_loss")
    found = torch.autograd.grad(loss.sum(), list(parameters.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(parameters, found, strict=True))


@contextmanager
def coded_errors() -> Iterator[None]:
    """Raise WrongType for what a model's own code raises where gradients of single rows are computed."""
    try:
        yield
    except (TacitError, torch.OutOfMemoryError):
        raise
    except _OF_THE_MODEL as error:
        raise WrongType(
            f"the gradients of single rows cannot be computed for this model ({type(error).__name__}, shown above); "
            "modules with weights of their own must run on one row at a time, and take tensors alone. No step was run: "
            "call step again with other losses, or stop() to end the training",
            name="model",
        ) from error
