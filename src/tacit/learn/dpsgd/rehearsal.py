"""Whether a model computes each row apart, tried on made-up rows before its first gradient is taken.

Promise: a module is refused where, on made-up rows, what a row gives to a layer with trainable parameters, the gradient
that comes back to the layer's output, or what the module returns for a row depends on the other rows; so is one that
leaves other numbers in buffers or parameters for other rows. The first two are all that the clipped gradient of a row
is made of. It is tried before private rows go through it, and no value of theirs decides: the rows here have the shapes
and dtypes of those that the module is called with, and random values.

How: the module runs on four made-up rows, and on two at a time in two divisions, with random weights, since a branch
that starts at 0 would hide what it mixes, and once more with missing values (NaN). Dropout drops nothing, or all, and
what torch's functions draw is one number, of which several are tried. Numbers are compared one by one, in double
precision where they differ in that of the module. A module that is random by other means, that cannot be run on
made-up rows, or whose outputs show nothing (none of them follows the batch, all rows are alike, or are no numbers), is
refused unless the caller states that its rows are apart.

Not found: what only some rows, sizes of batches, weights or later calls bring about, and what a training loop does
outside of calls of modules, also in other methods of the model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.func import functional_call
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from tacit.learn.dpsgd.made_up import (
    ROWS,
    DrawnAlike,
    bounded_loss,
    causal_mask,
    doubled,
    random_rows,
    tensors_of,
    untouched,
    weights_of,
    with_missing,
    without_dropout,
    without_values,
)
from tacit.privacy.errors import TacitError, WrongType

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
UNTRIED: Final = "so that nothing is known of its rows; state rows_apart=True if every layer treats rows apart"


@dataclass(frozen=True)
class Trace:
    """What one run shows: inputs of layers, gradients that come back to them, outputs, and the state afterwards."""

    inputs: list[Tensor]
    gradients: list[Tensor]
    outputs: list[Tensor]
    state: dict[str, Tensor]
    """Buffers and parameters afterwards."""
    along_rows: list[bool]
    """Which inputs must follow the batch: those of layers without a pass of ours."""


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
    rows: int
    """The number of rows that it was called with."""
    squares: frozenset[int]
    """The places of tensors of as many rows as columns that may be masks of positions."""

    @classmethod
    def of(cls, module: nn.Module, arguments: Any, rows: int | None, *, has_gradients: bool = True) -> Call:
        """Return a call with positional and named arguments, in a step of `rows` rows.

        Where none of its tensors has as many, the first axis of the first one is taken as the batch: the pass is of
        other rows, for example public ones.
        """
        leaves, spec = tree_flatten(arguments)
        tensors = {place: one for place, one in enumerate(leaves) if isinstance(one, Tensor) and one.ndim}
        is_known = any(rows in one.shape for one in tensors.values())
        size = rows if rows is not None and is_known else next((len(one) for one in tensors.values()), 0)
        axes = {place: list(one.shape).index(size) for place, one in tensors.items() if size in one.shape}
        shapes = [without_values(one, axes[at]) if at in axes else one for at, one in enumerate(leaves)]
        masks = [at for at in axes if tensors[at].dtype is torch.bool or tensors[at].dtype.is_floating_point]
        squares = frozenset(at for at in masks if tensors[at].shape == (size, size))
        return cls(module, shapes, spec, axes, has_gradients, size, squares)

    @property
    def _divided(self) -> list[Mapping[int, int]]:
        """The axes of the batch, and those without square tensors."""
        others = {at: axis for at, axis in self.axes.items() if at not in self.squares}
        return [self.axes] if len(others) in (0, len(self.axes)) else [self.axes, others]

    def require_rows_apart(self, layers: Mapping[nn.Module, bool]) -> None:
        """Raise WrongType unless the module was tried on made-up rows, and they were not seen to be combined.

        `layers` are those of the model that have trainable parameters, and whether their inputs must follow the batch.
        """
        why = "no tensor that it is given follows the batch"
        tries = itertools.product((True, False), WHOLE_NUMBERS, (False, True), self._divided if self.axes else ())
        for are_random, whole_numbers, is_positive, axes in tries:
            generator = torch.Generator().manual_seed(0)
            call = replace(self, axes=axes, leaves=self._with_masks(axes))
            made = [call._made_up(generator, whole_numbers, is_positive=is_positive) for _ in range(2)]
            weights = weights_of(self.module, generator if are_random else None)
            try:
                with torch.random.fork_rng(devices=[]), without_dropout(self.module):
                    call._try(made[0], made[1], weights, layers)
                return
            except WrongType:
                raise
            except Exception as error:
                why = str(error) if isinstance(error, _NothingShown) else f"{type(error).__name__}: {str(error)[:100]}"
        kind = type(self.module).__name__
        raise WrongType(f"{kind} cannot be tried on made-up rows ({why}), {UNTRIED}", name="model")

    def _try(
        self, first: list[Any], second: list[Any], weights: dict[str, Tensor], layers: Mapping[nn.Module, bool]
    ) -> None:
        """Compare runs without and with missing values."""
        self._compare_widely(first, second, weights, layers)
        missing = with_missing(first, self.axes)
        try:
            self._compare_widely(missing, second, weights, layers, has_missing=True)
        except WrongType:
            raise
        except Exception:  # of a module that takes no missing values
            return

    def _compare_widely(
        self, first: list[Any], second: list[Any], weights: dict[str, Tensor], *layers: Any, **options: Any
    ) -> None:
        """Compare runs, again in double precision where rounding could explain a difference."""
        try:
            self._compare(first, second, weights, *layers, **options)
        except WrongType:
            wide = [[doubled(one) for one in leaves] for leaves in (first, second)]
            with suppress(Exception):  # of a module that takes no doubles, or the same
                self._compare(
                    wide[0], wide[1], {name: doubled(one) for name, one in weights.items()}, *layers, **options
                )
                return
            raise

    def made_up_outputs(self) -> list[Tensor]:
        """Return the outputs that follow the batch for made-up rows, with the module's own weights."""
        generator = torch.Generator().manual_seed(1)
        for whole_numbers, is_positive in itertools.product(WHOLE_NUMBERS, (False, True)):
            leaves = self._made_up(generator, whole_numbers, is_positive=is_positive)
            arguments, keywords = tree_unflatten(leaves, self.spec)
            try:
                with (
                    torch.random.fork_rng(devices=[]),
                    without_dropout(self.module),
                    untouched(self.module, has_own_state=True),
                    DrawnAlike(DRAWN[0]),
                ):
                    return list(tensors_of(self.module(*arguments, **keywords)))
            except TacitError:
                raise
            except Exception:  # of numbers that it does not take
                continue
        return []

    def _compare(
        self,
        first: list[Any],
        second: list[Any],
        weights: dict[str, Tensor],
        layers: Mapping[nn.Module, bool],
        *,
        has_missing: bool = False,
    ) -> None:
        kind = type(self.module).__name__
        for drawn in DRAWN:
            mode = DrawnAlike(drawn)
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
            if changed := [name for name, one in together.state.items() if not _same(one, others.state[name])]:
                raise WrongType(
                    f"{kind} keeps numbers of the rows in {changed[0]}, which would leave without noise; remove it, or "
                    "keep its module in evaluation mode",
                    name="model",
                )
            if not _is_repeated(together, again):
                raise WrongType(f"{kind} draws numbers in a way that cannot be made constant, {UNTRIED}", name="model")
            for division in divisions:
                if not _are_apart(together, division):
                    raise WrongType(
                        f"what {kind} computes for a row depends on the other rows of the batch, as in batch "
                        "normalisation; every layer must treat rows apart",
                        name="model",
                    )
            _require_along_rows(together, divisions[0][0][1])
            if not has_missing and drawn == DRAWN[0]:
                _require_shown(together, divisions[0][0][1], following)
            if not mode.has_drawn:
                return

    def _following(self, leaves: list[Any], weights: dict[str, Tensor]) -> list[int]:
        """Return which outputs have an axis that follows the batch."""
        sizes = [self._run(some, weights, {}, [], seed=0) for some in (leaves, self._picked(leaves, (0, 1)))]
        pairs = zip(*(one.outputs for one in sizes), strict=True)
        return [at for at, pair in enumerate(pairs) if _batch_axis(*pair) is not None]

    def _run(
        self,
        leaves: list[Any],
        weights: dict[str, Tensor],
        layers: Mapping[nn.Module, bool],
        following: list[int],
        seed: int,
    ) -> Trace:
        """Run the module with its own copies of all state, and a loss of the outputs `following`."""
        arguments, keywords = tree_unflatten(leaves, self.spec)
        inputs: list[Tensor] = []
        along: list[bool] = []
        edges: list[Any] = []
        state: dict[str, Tensor] = {}

        def note(layer: nn.Module, given: Any, named: Any, output: Any) -> None:
            found = [one.detach().clone() for one in tensors_of((given, named))]
            inputs.extend(found)
            along.extend([layers[layer]] * len(found))
            edges.extend(get_gradient_edge(one) for one in tensors_of(output) if one.requires_grad)

        def leave(*_: Any) -> None:
            held = itertools.chain(self.module.named_buffers(), self.module.named_parameters())
            state.update({name: one.detach().clone() for name, one in held})

        handles = [one.register_forward_hook(note, with_kwargs=True) for one in self.module.modules() if one in layers]
        handles.append(self.module.register_forward_hook(leave))
        own = {name: one.detach().clone().requires_grad_(one.requires_grad) for name, one in weights.items()}
        torch.manual_seed(seed)
        try:
            with torch.set_grad_enabled(self.has_gradients), untouched(self.module):
                found = functional_call(self.module, own, arguments, keywords)
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
        return Trace(inputs, gradients, [one.detach() for one in outputs], state, along)

    def _with_masks(self, axes: Mapping[int, int]) -> list[Any]:
        """Return the arguments, with causal masks for square tensors that are not along the batch."""
        return [
            causal_mask(self.rows, one) if at in self.squares and at not in axes else one
            for at, one in enumerate(self.leaves)
        ]

    def _made_up(self, generator: torch.Generator, whole_numbers: tuple[int, int], *, is_positive: bool) -> list[Any]:
        """Return the arguments with random rows."""
        return [
            random_rows(one, self.axes[at], generator, whole_numbers, is_positive=is_positive)
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


def structure_of(arguments: Any) -> Any:
    """Return what tells calls apart but for their tensors and numbers."""
    leaves, spec = tree_flatten(arguments)
    return str(spec), tuple(one if isinstance(one, bool | str | None) else type(one).__name__ for one in leaves)


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


def _require_along_rows(together: Trace, part: Trace) -> None:
    """Raise if a layer is given a tensor that does not follow the batch: by its size it could be taken for rows."""
    pairs = zip(together.inputs, part.inputs, together.along_rows, strict=True)
    if any(is_needed and _batch_axis(one, other) != 0 for one, other, is_needed in pairs):
        raise WrongType(
            "a layer with parameters is given a tensor whose first axis is not the batch; expand it to all rows, or "
            "make it a buffer of the layer",
            name="model",
        )


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
