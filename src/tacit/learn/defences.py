"""Defences without a guarantee: they make a model remember less, and promise nothing about any row.

None of them is differentially private, alone or together, and `bench/learning/defences.py` shows what membership
inference still gets through them. What they compute from rows is no more private than the rows: which features are
rare, when a held-out loss rises, which gradients are large. They are options of a plain loop of PyTorch; dropout, batch
normalisation and weight decay are in PyTorch itself (`nn.Dropout`, `nn.BatchNorm1d`, `weight_decay` of an optimizer).

Beside a guarantee (`tacit.learn.make_private`), which they neither weaken nor strengthen:

    dropout, weight decay    as they are: part of the model, and of the optimizer
    batch normalisation      refused, because it mixes the rows of a batch
    normalised weights       from a hook of the optimizer (`normalize_weights`); in the loop they are refused
    early stopping           on public rows alone: `PrivateTraining.stop`, then `EarlyStopping.restore`
    rare features            dropped if public rows say which they are
    selective sharing        not available: which gradients are large depends on the rows before noise is added
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.privacy.arguments import instance
from tacit.privacy.errors import EmptyInput, InvalidInput, NotFinite, OutOfRange, WrongType
from tacit.privacy.numbers import exact, not_negative, positive, whole


class EarlyStopping:
    """Say when the loss on held-out rows has not fallen for `patience` checks, and keep the best weights; no guarantee.

        stopping = EarlyStopping(patience=5)
        for epoch in range(epochs):
            ...
            if stopping.check(loss_of_held_out_rows, model):
                break
        stopping.restore(model)

    When it stops, and which weights it keeps, depends on the held-out rows, which are not protected.
    """

    def __init__(self, patience: int = 5, min_delta: float = 0.0) -> None:
        self.patience, self.min_delta = whole("patience", patience), float(not_negative("min_delta", min_delta))
        self.best_loss = math.inf
        """The least loss so far; those of later checks must be below it by more than `min_delta`."""
        self.checks_since = 0
        self._best: dict[str, Tensor] | None = None

    def check(self, loss: Any, model: nn.Module) -> bool:
        """Return whether to stop; keep the weights of the model if no loss was lower. A loss of NaN is no gain."""
        try:
            found = float(exact("loss", loss))
        except NotFinite:
            found = math.inf
        if found < self.best_loss - self.min_delta:
            self.best_loss, self.checks_since = found, 0
            self._best = {name: one.detach().clone() for name, one in _module(model).state_dict().items()}
        else:
            self.checks_since += 1
        return self.checks_since >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Give the model the weights and buffers that had the least loss."""
        if self._best is None:
            raise InvalidInput("no finite loss was checked yet, so there are no weights to restore", name="model")
        _module(model).load_state_dict(self._best)


@torch.no_grad()
def normalize_weights(model: nn.Module, max_norm: float) -> None:
    """Scale the weights into each unit down to an L2 norm of at most `max_norm`; no guarantee.

    In place, for every trainable parameter of two dimensions or more; a unit is an entry of its first dimension (a row
    of a linear layer, a filter of a convolution). Call it after each step of the optimizer, or once for all with

        optimizer.register_step_post_hook(lambda *_: normalize_weights(model, max_norm))

    which a private training admits too: there it is post-processing of what the step released. Hooks are not part of a
    checkpoint: register them again before `tacit.learn.resume`.
    """
    most = float(positive("max_norm", max_norm))
    for parameter in _module(model).parameters():
        if parameter.requires_grad and parameter.ndim > 1:
            parameter.renorm_(2, 0, most)


def drop_rare_features(X: Any, min_count: int) -> tuple[Any, NDArray[np.bool_]]:  # noqa: N803
    """Return X without the columns that are 0 in all but fewer than `min_count` rows, and which columns are kept.

    X is an array, a tensor, a sparse matrix or a frame. For rows to be predicted: `X[:, kept]`. No guarantee: which
    columns are kept tells of the rows, and a column that one row more would keep tells of that row.
    """
    least = whole("min_count", min_count)
    if len(getattr(X, "shape", ())) != 2:
        raise WrongType("X must be a matrix with a row for each record", name="X")
    kept = np.asarray((X != 0).sum(axis=0)).ravel() >= least
    if not kept.any():
        raise OutOfRange(f"no feature is other than 0 in {least:,} rows; use a lower min_count", name="min_count")
    return (X.loc[:, kept] if hasattr(X, "loc") else X[:, kept]), kept


def share_largest(gradients: Iterable[Tensor], share: float) -> list[Tensor]:
    """Return gradients of which only the largest `share` of all entries, by absolute value, are not 0; no guarantee.

    Selective sharing after Shokri and Shmatikov 2015, without their noise: what is shared is exact, and which entries
    are shared tells of the rows as well. At least one entry is kept.
    """
    given = list(gradients)
    if not all(isinstance(one, Tensor) for one in given):
        raise WrongType("gradients must be tensors; leave out parameters without a gradient", name="gradients")
    if not sum(one.numel() for one in given):
        raise EmptyInput("there are no gradients", name="gradients")
    part = float(positive("share", share))
    if part > 1:
        raise OutOfRange(f"share must be at most 1, and is {part:g}", name="share", value=share)
    flat = torch.cat([one.detach().flatten() for one in given])
    largest = flat.abs().topk(math.ceil(part * len(flat)), sorted=False).indices
    shared = torch.zeros_like(flat)
    shared[largest] = flat[largest]
    pieces = torch.split(shared, [one.numel() for one in given])
    return [piece.reshape(one.shape) for piece, one in zip(pieces, given, strict=True)]


def _module(model: Any) -> nn.Module:
    """Return `model` if it is a module of PyTorch, or raise WrongType."""
    return instance("model", model, nn.Module, "a torch.nn.Module")
