"""Whether a model computes each row apart, tried on made-up rows before its first gradient is taken.

Promise: a module is refused where, on made-up rows, what a row gives to a layer with trainable parameters, the gradient
that comes back to the layer's output, or what the module returns for a row depends on the other rows; so is one that
leaves other numbers in a buffer for other rows. The first two are all that the clipped gradient of a row is made of.
No value of a private row decides about that: the rows here have the shapes and dtypes of those that the module was
called with, and random values.

How: the module runs on four made-up rows, and on two at a time in two divisions, with random weights, since a branch
that starts at 0 would hide what it mixes. Dropout is off, and what torch's functions draw is one number, of which
several are tried. Numbers are compared one by one. A module that is random by other means, that cannot be run on
made-up rows, or whose outputs show nothing (none of them follows the batch, all rows are alike, or are no numbers), is
refused unless the caller states that its rows are apart.

Not found: what only some rows, sizes of batches, weights or later calls bring about, and what a training loop does
outside of the modules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.func import functional_call
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from tacit.privacy.errors import WrongType

ROWS: Final = 4
DIVISIONS: Final = (((0, 1), (2, 3)), ((0, 2), (1, 3)))
"""Rows that run together; one row alone is refused by some layers that normalise batches."""
WHOLE_NUMBERS: Final = ((0, 15), (1, 2), (0, 1))
"""Ranges of whole numbers in made-up rows: a table may have few rows, and a length is not 0."""
DRAWN: Final = (1.0, 0.0, 0.37)
"""What torch's functions draw in one run after another: for branches that are taken by chance."""
TOLERANCE: Final = 1e-3
"""The relative difference of two numbers above which rows are taken to be combined."""
ROUNDING: Final = 1024
"""The difference that rounding of long sums explains, in units of the last place of a position's greatest number."""
ROUNDING_MAX: Final = 0.05
"""The same over that number, for types of few digits."""
CHANCE: Final = frozenset(
    (
        *("bernoulli", "bernoulli_", "exponential_", "normal", "normal_", "poisson", "rand", "rand_like"),
        *("randint", "randint_like", "randn", "randn_like", "random_", "uniform_"),
    )
)
"""The functions of torch that draw numbers."""
UNTRIED: Final = "so that nothing is known of its rows; state rows_apart=True if every layer treats rows apart"


@dataclass(frozen=True)
class Trace:
    """What one run shows: inputs of layers, gradients that come back to them, outputs, and buffers afterwards."""

    inputs: list[Tensor]
    gradients: list[Tensor]
    outputs: list[Tensor]
    buffers: dict[str, Tensor]


class _NothingShown(Exception):
    """The outputs of a run cannot show whether rows are apart."""


@dataclass(frozen=True)
class Call:
    """A call of a module: tensors along the batch have ROWS rows, and no values."""

    module: nn.Module
    leaves: list[Any]
    spec: TreeSpec
    axes: Mapping[int, int]
    """The place of each tensor along the batch, and which of its axes that is."""
    has_gradients: bool

    @classmethod
    def of(cls, module: nn.Module, arguments: Any, rows: int, *, has_gradients: bool = True) -> Call:
        """Return a call with positional and named arguments, in a step of `rows` rows.

        Where none of its tensors has as many, the first axis of the first one is taken as the batch: the pass is of
        other rows, for example public ones.
        """
        leaves, spec = tree_flatten(arguments)
        tensors = {place: one for place, one in enumerate(leaves) if isinstance(one, Tensor) and one.ndim}
        if not any(rows in one.shape for one in tensors.values()):
            rows = next((len(one) for one in tensors.values()), rows)
        axes = {place: list(one.shape).index(rows) for place, one in tensors.items() if rows in one.shape}
        shapes = [_without_values(one, axes[at]) if at in axes else one for at, one in enumerate(leaves)]
        return cls(module, shapes, spec, axes, has_gradients)

    def require_rows_apart(self, layers: list[nn.Module]) -> None:
        """Raise WrongType unless the module was tried on made-up rows, and they were not seen to be combined.

        `layers` are those of the model that have trainable parameters.
        """
        why = "no tensor that it is given follows the batch"
        for are_random, whole_numbers, is_positive in itertools.product(
            (True, False), WHOLE_NUMBERS, (False, True) if self.axes else ()
        ):
            generator = torch.Generator().manual_seed(0)
            made = [self._made_up(generator, whole_numbers, is_positive=is_positive) for _ in range(2)]
            weights = _random_weights(self.module, generator) if are_random else {}
            try:
                with torch.random.fork_rng(devices=[]), _without_dropout(self.module):
                    self._compare(made[0], made[1], weights, set(layers))
                return
            except WrongType:
                raise
            except Exception as error:
                why = str(error) if isinstance(error, _NothingShown) else f"{type(error).__name__}: {str(error)[:100]}"
        kind = type(self.module).__name__
        raise WrongType(f"{kind} cannot be tried on made-up rows ({why}), {UNTRIED}", name="model")

    def made_up_outputs(self) -> list[Tensor]:
        """Return the outputs that follow the batch for made-up rows, with the module's own weights."""
        generator = torch.Generator().manual_seed(1)
        for whole_numbers, is_positive in itertools.product(WHOLE_NUMBERS, (False, True)):
            leaves = self._made_up(generator, whole_numbers, is_positive=is_positive)
            arguments, keywords = tree_unflatten(leaves, self.spec)
            try:
                with torch.random.fork_rng(devices=[]), _without_dropout(self.module), _DrawnAlike(DRAWN[0]):
                    return list(tensors_of(self.module(*arguments, **keywords)))
            except (RuntimeError, ValueError, IndexError):  # of numbers that it does not take
                continue
        return []

    def _compare(self, first: list[Any], second: list[Any], weights: Mapping[str, Tensor], layers: set[Any]) -> None:
        kind = type(self.module).__name__
        for drawn in DRAWN:
            mode = _DrawnAlike(drawn)
            with mode:
                following = self._following(first, weights)
                together, again = (self._run(first, weights, layers, following, seed=seed) for seed in (0, 1))
                others = self._run(second, weights, layers, following, seed=0)
                divisions = [
                    [
                        (rows, self._run(self._picked(first, rows), weights, layers, following, seed=0))
                        for rows in division
                    ]
                    for division in DIVISIONS
                ]
            if changed := [name for name, one in together.buffers.items() if not _same(one, others.buffers[name])]:
                raise WrongType(
                    f"{kind} keeps numbers of the rows in its buffer {changed[0]}, which would leave without noise; "
                    "remove it, or keep its module in evaluation mode",
                    name="model",
                )
            if not _is_repeated(together, again):
                raise WrongType(f"{kind} is random by other means than torch's functions, {UNTRIED}", name="model")
            for division in divisions:
                if not _are_apart(together, division):
                    raise WrongType(
                        f"what {kind} computes for a row depends on the other rows of the batch, as in batch "
                        "normalisation; every layer must treat rows apart",
                        name="model",
                    )
            _require_shown(together, divisions[0][0][1], following)
            if not mode.has_drawn:
                return

    def _following(self, leaves: list[Any], weights: Mapping[str, Tensor]) -> list[int]:
        """Return which outputs have an axis that follows the batch."""
        sizes = [self._run(some, weights, set(), [], seed=0) for some in (leaves, self._picked(leaves, (0, 1)))]
        pairs = zip(*(one.outputs for one in sizes), strict=True)
        return [at for at, pair in enumerate(pairs) if _batch_axis(*pair) is not None]

    def _run(
        self, leaves: list[Any], weights: Mapping[str, Tensor], layers: set[Any], following: list[int], seed: int
    ) -> Trace:
        """Run the module with some weights and its own copies of buffers, and a loss of the outputs `following`."""
        arguments, keywords = tree_unflatten(leaves, self.spec)
        inputs: list[Tensor] = []
        edges: list[Any] = []
        buffers: dict[str, Tensor] = {}

        def note(_: nn.Module, given: Any, named: Any, output: Any) -> None:
            inputs.extend(one.detach().clone() for one in tensors_of((given, named)))
            edges.extend(get_gradient_edge(one) for one in tensors_of(output) if one.requires_grad)

        def leave(*_: Any) -> None:
            buffers.update({name: one.detach().clone() for name, one in self.module.named_buffers()})

        handles = [one.register_forward_hook(note, with_kwargs=True) for one in self.module.modules() if one in layers]
        handles.append(self.module.register_forward_hook(leave))
        own = {name: one.clone() for name, one in self.module.named_buffers()}
        torch.manual_seed(seed)
        try:
            with torch.set_grad_enabled(self.has_gradients):
                found = functional_call(self.module, {**own, **weights}, arguments, keywords)
        finally:
            for handle in handles:
                handle.remove()
        outputs = list(tensors_of(found))
        learning = [outputs[at] for at in following if outputs[at].requires_grad]
        gradients: list[Tensor] = []
        if learning and edges:
            total = torch.stack([bounded_loss(one).sum() for one in learning]).sum()
            found_gradients: list[Tensor | None] = list(torch.autograd.grad(total, edges, allow_unused=True))
            gradients = [total.new_zeros(()) if one is None else one for one in found_gradients]
        return Trace(inputs, gradients, [one.detach() for one in outputs], buffers)

    def _made_up(self, generator: torch.Generator, whole_numbers: tuple[int, int], *, is_positive: bool) -> list[Any]:
        """Return the arguments with random rows."""
        return [
            _random_rows(one, self.axes[at], generator, whole_numbers, is_positive=is_positive)
            if at in self.axes
            else one
            for at, one in enumerate(self.leaves)
        ]

    def _picked(self, leaves: list[Any], rows: tuple[int, ...]) -> list[Any]:
        """Return the arguments for some rows."""
        return [
            one.index_select(self.axes[at], torch.tensor(rows, device=one.device)) if at in self.axes else one
            for at, one in enumerate(leaves)
        ]


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


def _without_values(tensor: Tensor, axis: int) -> Tensor:
    """Return a tensor of ROWS rows of the same shape, dtype and device, without values of its own."""
    shape = [ROWS if at == axis else size for at, size in enumerate(tensor.shape)]
    return torch.zeros((), dtype=tensor.dtype, device=tensor.device).expand(shape)


def _random_rows(
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


def _random_weights(module: nn.Module, generator: torch.Generator) -> dict[str, Tensor]:
    """Return weights of about their own size, or that of a fresh layer where they are all alike."""
    found = {}
    for name, one in module.named_parameters():
        if one.dtype.is_floating_point:
            size = max(
                float(one.detach().std()) if one.numel() > 1 else 0.0, one[0].numel() ** -0.5 if one.ndim > 1 else 0.5
            )
            noise = torch.randn(one.shape, generator=generator).to(one) * size
            found[name] = (one.detach() + noise).requires_grad_(one.requires_grad)
    return found


class _DrawnAlike(TorchFunctionMode):
    """Makes what torch's functions draw one number, and dropout nothing."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self._drawn = drawn
        self.has_drawn = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(func, "__name__", ""), dict(kwargs or {})
        if "dropout" in name:
            return args[0] if args else named["input"]
        if "dropout_p" in named:
            named["dropout_p"] = 0.0
        made = func(*args, **named)
        if name not in CHANCE or not isinstance(made, Tensor):
            return made
        self.has_drawn = True
        return made.fill_(self._drawn)


def _is_repeated(one: Trace, other: Trace) -> bool:
    pairs = zip((*one.inputs, *one.outputs), (*other.inputs, *other.outputs), strict=False)
    return all(left.shape == right.shape and _alike(left, right, _sizes(left)) for left, right in pairs)


def _are_apart(together: Trace, division: Sequence[tuple[tuple[int, ...], Trace]]) -> bool:
    """Whether each row has the same numbers together with all others and in its part of a division."""
    for kind in ("inputs", "gradients", "outputs"):
        whole, parts = getattr(together, kind), [(rows, getattr(trace, kind)) for rows, trace in division]
        if any(len(part) != len(whole) for _, part in parts):
            return False
        for at, one in enumerate(whole):
            if not _rows_are_alike(one, [(rows, part[at]) for rows, part in parts], also_shared=kind == "inputs"):
                return False
    return True


def _rows_are_alike(whole: Tensor, parts: list[tuple[tuple[int, ...], Tensor]], *, also_shared: bool) -> bool:
    """Whether the rows of a tensor are those of its parts.

    One that does not follow the batch has no rows; where it is given to a layer, it must be the same for all of them.
    """
    axis = _batch_axis(whole, parts[0][1])
    if axis is None:
        one, other = _cropped(whole, parts[0][1])
        return not also_shared or _alike(one[None], other[None], _sizes(one[None]))
    by_row = [_by_row(whole, axis, ROWS), *(_by_row(part, axis, len(rows)) for rows, part in parts)]
    return any(
        all(
            _alike(*_cropped(one[0][list(rows)], part), _sizes(one[0]))
            for (rows, _), part in zip(parts, one[1:], strict=True)
        )
        for one in zip(*by_row, strict=True)
    )


def _batch_axis(whole: Tensor, part: Tensor) -> int | None:
    """Return the first axis that is half as long for half as many rows, or None."""
    sizes = zip(whole.shape, part.shape, strict=False)
    return next((at for at, (all_rows, two) in enumerate(sizes) if all_rows == 2 * two and all_rows), None)


def _by_row(tensor: Tensor, axis: int, rows: int) -> list[Tensor]:
    """Return the tensor with the row as its first axis; where rows and positions share an axis, in either order."""
    moved = tensor.movedim(axis, 0)
    positions, rest = len(moved) // rows, moved.shape[1:]
    if positions == 1:
        return [moved]
    return [moved.reshape(rows, positions, *rest), moved.reshape(positions, rows, *rest).transpose(0, 1)]


def _cropped(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return the part that both have: a batch may be as wide as its longest row."""
    common = tuple(slice(min(sizes)) for sizes in zip(one.shape, other.shape, strict=True))
    return one[common], other[common]


def _sizes(rows: Tensor) -> Tensor:
    """Return the greatest number of all rows in each position."""
    if not rows.ndim or not (rows.dtype.is_floating_point or rows.is_complex()):
        return rows.new_zeros(())
    return rows.abs().nan_to_num(0.0, 0.0, 0.0).amax(0)


def _alike(one: Tensor, other: Tensor, sizes: Tensor) -> bool:
    """Whether numbers are equal up to rounding; `sizes` has the greatest one of each position, or more positions."""
    if not (one.dtype.is_floating_point or one.is_complex()):
        return torch.equal(one, other)
    if not one.numel():
        return True
    unit = torch.finfo(one.dtype).eps
    positions = sizes[tuple(slice(size) for size in one.shape[1:])] if one.ndim > 1 else sizes
    rounding = min(ROUNDING * unit, ROUNDING_MAX) * positions.double()
    slack = rounding + max(TOLERANCE, 4 * unit) * torch.maximum(one.abs(), other.abs()).double()
    wide = (torch.complex128 if one.is_complex() else torch.float64,)
    near = (one.to(*wide) - other.to(*wide)).abs() <= slack
    return bool((near | (one == other) | (one.isnan() & other.isnan())).all())


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True)


def _require_shown(together: Trace, part: Trace, following: list[int]) -> None:
    """Raise unless some output follows the batch with rows that differ, and layers read numbers."""
    if not following:
        raise _NothingShown("none of its outputs follows the batch")
    if any(one.isnan().any() for one in together.inputs):
        raise _NothingShown("a layer is given what is no number")
    for one, other in ((together.outputs[at], part.outputs[at]) for at in following):
        axis = _batch_axis(one, other)
        assert axis is not None
        rows = _by_row(one, axis, ROWS)[0].reshape(ROWS, -1)
        usable = torch.isfinite(rows) if rows.dtype.is_floating_point else torch.ones_like(rows, dtype=torch.bool)
        if bool((usable.all(0) & (rows != rows[:1]).any(0)).any()):
            return
    raise _NothingShown("its outputs are the same for all rows, or no numbers")


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
