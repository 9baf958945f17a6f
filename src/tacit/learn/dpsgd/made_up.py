"""Made-up rows and weights on which a model is tried, and passes that change nothing of it (`rehearsal`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

ROWS: Final = 4
CHANCE: Final = frozenset(
    (
        *("bernoulli", "bernoulli_", "exponential_", "normal", "normal_", "poisson", "rand", "rand_like"),
        *("randint", "randint_like", "randn", "randn_like", "random_", "uniform_"),
    )
)
"""The functions of torch that draw numbers."""


def bounded_loss(output: Tensor) -> Tensor:
    """Return a loss of each number, whose slope is small where it is large: masks do not hide other numbers."""
    real = torch.view_as_real(output) if output.is_complex() else output
    return torch.log1p(real.float().nan_to_num(0.0, 0.0, 0.0).clamp(-1e6, 1e6).square())


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Return the tensors of an output or of arguments, also those inside of mappings, sequences and plain objects."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_of(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors_of(one)
    elif is_dataclass(value) or (hasattr(value, "__dict__") and not isinstance(value, type | nn.Module)):
        for one in vars(value).values():
            if isinstance(one, Tensor | Mapping | list | tuple):
                yield from tensors_of(one)


def without_values(tensor: Tensor, axis: int) -> Tensor:
    """Return a tensor of ROWS rows of the same shape, dtype and device, without values of its own."""
    shape = [ROWS if at == axis else size for at, size in enumerate(tensor.shape)]
    return torch.zeros((), dtype=tensor.dtype, device=tensor.device).expand(shape)


def causal_mask(positions: int, like: Tensor) -> Tensor:
    """Return the mask of later positions, of the dtype of a tensor."""
    later = torch.ones(positions, positions, dtype=torch.bool, device=like.device).triu(1)
    if like.dtype.is_floating_point:
        return torch.zeros(positions, positions, dtype=like.dtype, device=like.device).masked_fill(later, -torch.inf)
    return later.to(like.dtype)


def random_rows(
    like: Tensor, axis: int, generator: torch.Generator, whole_numbers: tuple[int, int], *, is_positive: bool
) -> Tensor:
    """Return random rows of a shape and dtype that are unlike one another: each of another size, around another number.

    Statistics of rows that were all alike would hardly depend on which rows they are of.
    """
    shape = like.movedim(axis, 0).shape
    if like.dtype.is_floating_point or like.is_complex():
        sizes = torch.tensor([0.1, 1.0, 10.0, 100.0]).view(-1, *(1,) * (like.ndim - 1))
        made = (torch.randn(shape, generator=generator) + 0.5) * sizes
        made = made.abs() if is_positive else made
    elif like.dtype is torch.bool:  # a mask of everything leaves nothing to show
        made = torch.randint(0, 2, shape, generator=generator) * (whole_numbers[0] == 0)
    else:
        made = torch.randint(whole_numbers[0], whole_numbers[1] + 1, shape, generator=generator)
    return made.to(like).movedim(0, axis)


def weights_of(module: nn.Module, generator: torch.Generator | None) -> dict[str, Tensor]:
    """Return copies of the state: with a generator, weights of about their own size, or that of a fresh layer."""
    found = {name: one.detach().clone() for name, one in module.named_buffers()}
    for name, one in module.named_parameters():
        own = one.detach().clone()
        if generator is not None and own.dtype.is_floating_point:
            size = max(float(own.std()) if own.numel() > 1 else 0.0, own[0].numel() ** -0.5 if own.ndim > 1 else 0.5)
            own += torch.randn(own.shape, generator=generator).to(own) * size
        found[name] = own.requires_grad_(one.requires_grad)
    return found


@contextmanager
def untouched(module: nn.Module, *, has_own_state: bool = False) -> Iterator[None]:
    """Give back, at the end, the attributes that a pass has set; inside they are copies where they are tensors.

    With `has_own_state`, so are buffers and parameters that are not trained.
    """
    before = {one: dict(vars(one)) for one in module.modules()}
    kept = [(one, dict(one._buffers), dict(one._parameters)) for one in before]
    for one in before:
        copies = {name: value.detach().clone() for name, value in vars(one).items() if isinstance(value, Tensor)}
        vars(one).update(copies)
        if has_own_state:
            one._buffers.update(
                {name: None if value is None else value.clone() for name, value in one._buffers.items()}
            )
            frozen = {
                name: value for name, value in one._parameters.items() if value is not None and not value.requires_grad
            }
            one._parameters.update({name: nn.Parameter(value.clone(), False) for name, value in frozen.items()})
    try:
        yield
    finally:
        for one, attributes in before.items():
            vars(one).clear()
            vars(one).update(attributes)
        for one, buffers, parameters in kept:
            one._buffers.update(buffers)
            one._parameters.update(parameters)


def doubled(value: Any) -> Any:
    """Return numbers of few digits in double precision."""
    is_short = isinstance(value, Tensor) and value.dtype.is_floating_point
    return value.detach().double().requires_grad_(value.requires_grad) if is_short else value


def with_missing(leaves: list[Any], axes: Mapping[int, int]) -> list[Any]:
    """Return rows of numbers in which the first number of every second row is missing."""
    found = list(leaves)
    for at, axis in axes.items():
        if found[at].dtype.is_floating_point:
            rows = found[at].movedim(axis, 0).clone(memory_format=torch.contiguous_format)
            rows.view(ROWS, -1)[::2, :1] = torch.nan
            found[at] = rows.movedim(0, axis)
    return found


class DrawnAlike(TorchFunctionMode):
    """Makes what torch's functions draw one number; dropout drops all where that is 0, and else nothing."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self._drawn = drawn
        self.has_drawn = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(func, "__name__", ""), dict(kwargs or {})
        if "dropout" in name:
            self.has_drawn = True
            given = args[0] if args else named["input"]
            return given if self._drawn else given * 0
        if "dropout_p" in named:
            named["dropout_p"] = 0.0
        made = func(*args, **named)
        if name not in CHANCE or not isinstance(made, Tensor):
            return made
        self.has_drawn = True
        return made.fill_(self._drawn)


@contextmanager
def without_dropout(module: nn.Module) -> Iterator[None]:
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
