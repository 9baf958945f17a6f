"""Whether a model computes each row apart, tried on made-up rows before its first gradient is taken.

Promise: a module that combines the rows of a batch, or keeps numbers of them in a buffer, in a way that shows on
made-up rows is refused, and no value of a private row decides about that: the rows here have the shapes and dtypes of
those that the module was called with, and random values.

Compared are the outputs for all made-up rows together and for two at a time. Dropout is off meanwhile; a module
that is random by other means, or cannot be run on made-up rows, is not compared. What only some values of rows bring
about (a branch for rare values), and what a training loop does outside of the modules, is not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.dropout import _DropoutNd
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

from tacit.privacy.errors import WrongType

ROWS: Final = 4
TOLERANCE: Final = 1e-2
"""The difference of two outputs, over the largest number in them, above which rows are taken to be combined."""


@dataclass(frozen=True)
class Call:
    """A call of a module; of tensors that have as many rows as the first one, the shapes alone are kept."""

    module: nn.Module
    leaves: list[Any]
    spec: TreeSpec
    batch: frozenset[int]
    """The places of the tensors whose first axis is the batch."""

    @classmethod
    def of(cls, module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Call:
        """Return a call."""
        leaves, spec = tree_flatten((arguments, keywords))
        sizes = {place: len(one) for place, one in enumerate(leaves) if isinstance(one, Tensor) and one.ndim}
        rows = next(iter(sizes.values()), 0)
        batch = frozenset(place for place, size in sizes.items() if size == rows)
        return cls(module, [_without_values(one) if at in batch else one for at, one in enumerate(leaves)], spec, batch)

    def require_rows_apart(self) -> None:
        """Raise WrongType if made-up rows are seen to be combined."""
        if not self.batch:
            return
        generator = torch.Generator().manual_seed(0)
        first, second = (
            [_made_up(one, generator) if place in self.batch else one for place, one in enumerate(self.leaves)]
            for _ in range(2)
        )
        try:
            self._compare(first, second)
        except WrongType:
            raise
        except Exception:
            return

    def _compare(self, first: list[Any], second: list[Any]) -> None:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), _without_dropout(self.module):
            together, buffers = self._run(first, seed=0)
            again, _ = self._run(first, seed=1)
            _, others = self._run(second, seed=0)
            if changed := [name for name, one in buffers.items() if not _alike([one], [others[name]])]:
                raise WrongType(
                    f"{type(self.module).__name__} keeps numbers of the rows in its buffer {changed[0]}, which would "
                    "leave without noise; remove it, or keep its module in evaluation mode",
                    name="model",
                )
            if not _alike(together, again):
                return
            apart = []
            for start in range(0, ROWS, 2):  # one row alone is refused by some layers that normalise batches
                pair = [one[start : start + 2] if place in self.batch else one for place, one in enumerate(first)]
                apart.append(self._run(pair, seed=0)[0])
        joined = [torch.cat(parts) for parts in zip(*apart, strict=True)]
        if not _alike(together, joined):
            raise WrongType(
                f"what {type(self.module).__name__} computes for a row depends on the other rows of the batch, as in "
                "batch normalisation; every layer must treat rows apart",
                name="model",
            )

    def _run(self, leaves: list[Any], seed: int) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return the tensors of an output that have as many rows, and what the buffers would be after the call."""
        arguments, keywords = tree_unflatten(leaves, self.spec)
        rows = len(leaves[min(self.batch)])
        buffers = {name: one.clone() for name, one in self.module.named_buffers()}
        torch.manual_seed(seed)
        found = functional_call(self.module, buffers, arguments, keywords)
        outputs = [one for one in tree_leaves(found) if isinstance(one, Tensor) and one.ndim and len(one) == rows]
        return outputs, buffers


def _without_values(tensor: Tensor) -> Tensor:
    """Return a tensor of ROWS rows of the same shape, dtype and device, without values of its own."""
    return torch.zeros(1, dtype=tensor.dtype, device=tensor.device).expand(ROWS, *tensor.shape[1:])


def _made_up(like: Tensor, generator: torch.Generator) -> Tensor:
    """Return random numbers of a shape and dtype: normal ones, and 0 or 1 where they are whole."""
    if like.dtype.is_floating_point:
        return torch.randn(like.shape, generator=generator).to(like)
    return torch.randint(0, 2, like.shape, generator=generator).to(like)


def _alike(left: list[Tensor], right: list[Tensor]) -> bool:
    """Whether tensors are equal up to rounding."""
    for one, other in zip(left, right, strict=True):
        if one.dtype.is_floating_point:
            size = float(one.abs().nan_to_num(0.0, 0.0, 0.0).amax()) if one.numel() else 0.0
            if not torch.allclose(one, other, rtol=0.0, atol=TOLERANCE * size, equal_nan=True):
                return False
        elif not torch.equal(one, other):
            return False
    return True


@contextmanager
def _without_dropout(module: nn.Module) -> Iterator[None]:
    """Switch the dropout of modules of torch off."""
    changed: list[tuple[Any, str, float]] = []
    for one in module.modules():
        if isinstance(one, _DropoutNd):
            changed.append((one, "p", one.p))
        elif isinstance(one, nn.MultiheadAttention | nn.RNNBase):
            changed.append((one, "dropout", one.dropout))
    try:
        for holder, name, _ in changed:
            setattr(holder, name, 0.0)
        yield
    finally:
        for holder, name, rate in changed:
            setattr(holder, name, rate)
