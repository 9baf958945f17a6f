"""Whether a model computes each row apart, tried on made-up rows before its first gradient is taken.

Promise: a module that combines the rows of a batch, or keeps numbers of them in a buffer, in a way that shows on
made-up rows is refused, and no value of a private row decides about that: the rows here have the shapes and dtypes of
those that the module was called with, and random values.

Compared are the outputs for all made-up rows together and for two at a time. Dropout is off meanwhile, and what torch's
functions draw is constant. A module that is random by other means, or cannot be run on made-up rows, is refused unless
the caller states that its rows are apart. What only some rows or sizes of batches bring about (a branch for rare
values), and what a training loop does outside of the modules, is not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

from tacit.privacy.errors import WrongType

ROWS: Final = 4
WHOLE_MAX: Final = (15, 1)
"""The greatest whole number in made-up rows, and what is tried where that cannot be run."""
TOLERANCE: Final = 1e-2
"""The difference of two rows of output, over the largest number in them, above which rows are taken to be combined."""
CHANCE: Final = frozenset(
    (
        *("bernoulli", "bernoulli_", "exponential_", "normal", "normal_", "poisson", "rand", "rand_like"),
        *("randint", "randint_like", "randn", "randn_like", "random_", "uniform_"),
    )
)
"""The functions of torch that draw numbers."""
UNTRIED: Final = "so that nothing is known of its rows; state rows_apart=True if every layer treats rows apart"


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
        """Raise WrongType unless the module was tried on made-up rows, and they were not seen to be combined."""
        if not self.batch:
            return
        kind, why = type(self.module).__name__, ""
        for whole_max in WHOLE_MAX:  # a table may have few rows
            generator = torch.Generator().manual_seed(0)
            first, second = (
                [_made_up(one, generator, whole_max) if at in self.batch else one for at, one in enumerate(self.leaves)]
                for _ in range(2)
            )
            try:
                self._compare(first, second)
                return
            except WrongType:
                raise
            except Exception as error:
                why = f"{type(error).__name__}: {str(error)[:100]}"
        raise WrongType(f"{kind} cannot be run on made-up rows ({why}), {UNTRIED}", name="model")

    def _compare(self, first: list[Any], second: list[Any]) -> None:
        kind = type(self.module).__name__
        with torch.no_grad(), torch.random.fork_rng(devices=[]), _without_dropout(self.module), _WithoutChance():
            together, buffers = self._run(first, seed=0)
            again, _ = self._run(first, seed=1)
            _, others = self._run(second, seed=0)
            if changed := [name for name, one in buffers.items() if not _alike([one], [others[name]])]:
                raise WrongType(
                    f"{kind} keeps numbers of the rows in its buffer {changed[0]}, which would leave without noise; "
                    "remove it, or keep its module in evaluation mode",
                    name="model",
                )
            if not _alike(together, again):
                raise WrongType(f"{kind} is random by other means than torch's functions, {UNTRIED}", name="model")
            apart = []
            for start in range(0, ROWS, 2):  # one row alone is refused by some layers that normalise batches
                pair = [one[start : start + 2] if place in self.batch else one for place, one in enumerate(first)]
                apart.append(self._run(pair, seed=0)[0])
        of_rows = [place for place, one in enumerate(together) if one.ndim and len(one) == ROWS]
        joined = [torch.cat([part[place] for part in apart]) for place in of_rows]
        pairs = [
            pair for place, one in zip(of_rows, joined, strict=True) for pair in zip(together[place], one, strict=True)
        ]
        if not all(_alike([one], [other]) for one, other in pairs):
            raise WrongType(
                f"what {kind} computes for a row depends on the other rows of the batch, as in batch normalisation; "
                "every layer must treat rows apart",
                name="model",
            )

    def _run(self, leaves: list[Any], seed: int) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return the tensors of an output, and what the buffers would be after the call."""
        arguments, keywords = tree_unflatten(leaves, self.spec)
        buffers = {name: one.clone() for name, one in self.module.named_buffers()}
        torch.manual_seed(seed)
        found = functional_call(self.module, buffers, arguments, keywords)
        return [one for one in tree_leaves(found) if isinstance(one, Tensor)], buffers


def _without_values(tensor: Tensor) -> Tensor:
    """Return a tensor of ROWS rows of the same shape, dtype and device, without values of its own."""
    return torch.zeros(1, dtype=tensor.dtype, device=tensor.device).expand(ROWS, *tensor.shape[1:])


def _made_up(like: Tensor, generator: torch.Generator, whole_max: int) -> Tensor:
    """Return random rows of a shape and dtype that are unlike one another: each of another size, around another number.

    Statistics of rows that were all alike would hardly depend on which rows they are of.
    """
    if like.dtype.is_floating_point:
        sizes = torch.tensor([0.1, 1.0, 10.0, 100.0]).view(-1, *(1,) * (like.ndim - 1))
        return ((torch.randn(like.shape, generator=generator) + 0.5) * sizes).to(like)
    return torch.randint(0, whole_max + 1, like.shape, generator=generator).to(like)


class _WithoutChance(TorchFunctionMode):
    """Makes what torch's functions draw constant, and dropout nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(func, "__name__", ""), dict(kwargs or {})
        if "dropout" in name:
            return args[0] if args else named["input"]
        if "dropout_p" in named:
            named["dropout_p"] = 0.0
        made = func(*args, **named)
        return made.fill_(1) if name in CHANCE and isinstance(made, Tensor) else made


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
    """Switch the dropout off that modules of torch do inside."""
    changed: list[Any] = [one for one in module.modules() if isinstance(one, nn.MultiheadAttention | nn.RNNBase)]
    rates = [one.dropout for one in changed]
    try:
        for one in changed:
            one.dropout = 0.0
        yield
    finally:
        for one, rate in zip(changed, rates, strict=True):
            one.dropout = rate
