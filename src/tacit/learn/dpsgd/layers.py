"""Per-layer rules: squared norms and weighted sums of per-sample gradients, from inputs and output gradients.

A `Use` is one call of a layer in a forward pass: the layer's parameters, what it read, and the place in the autograd
graph where the gradient of its output arrives. A `Rule` computes from a use and that gradient, for each group of rows
(`RowGroups`: a sample, or all rows of one unit):

    norms   the squared norms of the groups' gradients, and the gradients that had to be formed for them
    sums    the sum over the groups of factor times gradient

The gradient of a linear map for one sample is the sum over positions t of g_t a_t^T. Its squared norm is either that of
the formed matrix, at T d_in d_out operations, or sum over (s, t) of (a_s . a_t)(g_s . g_t) (the Gram form; Goodfellow
2015, Li et al. 2021), at T^2 (d_in + d_out); the cheaper one is taken for each use. Convolutions are linear maps of
their patches (Bu et al. 2022). Sums are one weighted product (book-keeping; Bu et al. 2023), so no second backward
pass is needed.

Squared norms are float64, and bounds from above but for a relative 2^-15; sums are as exact as `rounding` states, which
has the theorem. Both hold for any content of the rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge
from torch.func import functional_call, vjp, vmap
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_unflatten

from tacit.learn.dpsgd.rounding import BLOCK, CANCELLATION, GRAM_ERROR, TERMS, TERMS_DOUBLE, TERMS_MAX, VALUE_MAX
from tacit.privacy.errors import TooLarge, WrongType

Gradients = dict[str, Tensor]
"""Gradients by role: the parameter's name within its layer."""


class Scratch:
    """Memory that is used again in each step, for what does not outlive the step."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def empty(self, owner: str, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return an array with any content; another one for each owner."""
        held, count = self._held.get(owner), math.prod(shape)
        if held is None or held.numel() < count or (held.dtype, held.device) != (like.dtype, like.device):
            held = self._held[owner] = like.new_empty(count)
        return held[:count].view(*shape)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Which group each row of a batch belongs to; without `units` each row is a group of its own."""

    count: int
    units: Tensor | None = None
    is_precise: bool = False
    """Whether all sums over groups are computed in float64."""
    scratch: Scratch = field(default_factory=Scratch)

    def total(self, gradients: Tensor) -> Tensor:
        """Return the sums over each group of one gradient for each row."""
        if self.units is None:
            return gradients
        return gradients.new_zeros(self.count, *gradients.shape[1:]).index_add_(0, self.units, gradients)

    def spread(self, factors: Tensor) -> Tensor:
        """Return the factor of its group for each row."""
        return factors if self.units is None else factors[self.units]


@dataclass(frozen=True, slots=True)
class Use:
    """One call of a layer: its parameters by role, its rule, its input, and where its output gradient arrives."""

    rule: Rule
    parameters: Mapping[str, nn.Parameter]
    value: Any
    edge: GradientEdge
    version: int = 0


class Rule(Protocol):
    """How a kind of layer turns input and output gradient into norms and sums."""

    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of each parameter for each group."""
        ...

    def norms(self, use: Use, grad: Tensor, rows: RowGroups) -> tuple[Tensor, Gradients]:
        """Return the squared norms of the groups' gradients, and those gradients that were formed on the way."""
        ...

    def sums(self, use: Use, grad: Tensor, rows: RowGroups, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the sum over the groups of factor times gradient, for each parameter."""
        ...


def squared(gradients: Tensor) -> Tensor:
    """Return the squared norm of each group's gradient, in blocks whose rounding is bounded."""
    flat = gradients.reshape(len(gradients), -1)
    if flat.dtype not in (torch.float32, torch.float64):
        flat = flat.float()
    size = flat.shape[1]
    if size <= BLOCK:
        return torch.linalg.vector_norm(flat, dim=1).double().square_() if size else flat.double().sum(1)
    whole = size - size % BLOCK
    blocks: Tensor = torch.linalg.vector_norm(flat[:, :whole].reshape(len(flat), whole // BLOCK, BLOCK), dim=2)
    return blocks.double().square_().sum(1) + squared(flat[:, whole:])


def gram_squared(value: Tensor, grad: Tensor) -> Tensor:
    """Return bounds on |sum_t g_t a_t^T|^2 from (rows, positions, width) of a and g, which hold after cancellation."""
    read, grads = value.double(), grad.double()
    gram = (read @ read.transpose(1, 2)).mul_(grads @ grads.transpose(1, 2)).sum(2).sum(1)
    lengths = torch.linalg.vector_norm(read, dim=2) * torch.linalg.vector_norm(grads, dim=2)
    return not_below_spread(gram, lengths.sum(1))


def not_below_spread(squares: Tensor, spread: Tensor) -> Tensor:
    """Return squared norms of sums of terms whose norms have the sum `spread`, with the bounds of `rounding`."""
    most = spread.square()
    return torch.maximum(squares + GRAM_ERROR * most, most / CANCELLATION**2)


def summed(left: Tensor, right: Tensor, rows: RowGroups) -> Tensor:
    """Return left^T right over rows, a few at a time; in float64 where the rows ask for it."""
    is_single = right.dtype == torch.float32 and not rows.is_precise
    return _summed(left, right, TERMS, torch.float32 if is_single else torch.float64, rows.scratch)


def summed_in_double(left: Tensor, right: Tensor, scratch: Scratch) -> Tensor:
    """Return left^T right over rows in float64."""
    if len(left) > TERMS_MAX:
        raise TooLarge("a chunk has too many positions; use a smaller physical_batch_size", name="physical_batch_size")
    return _summed(left, right, TERMS_DOUBLE, torch.float64, scratch)


def _summed(left: Tensor, right: Tensor, terms: int, dtype: torch.dtype, scratch: Scratch) -> Tensor:
    """Return left^T right; each product of `terms` rows is complete before it is added to the total."""
    total = left[:terms].to(dtype).T @ right[:terms].to(dtype)
    if len(left) > terms:
        product = scratch.empty("product", total.shape, total)
        for start in range(terms, len(left), terms):
            part = slice(start, start + terms)
            total += torch.mm(left[part].to(dtype).T, right[part].to(dtype), out=product)
    return total


def weighted(factors: Tensor, gradients: Tensor, rows: RowGroups) -> Tensor:
    """Return the sum over groups of factor times gradient."""
    flat = gradients.reshape(len(gradients), -1)
    return summed(factors.unsqueeze(1), flat, rows).view(gradients.shape[1:])


class Formed(ABC):
    """A rule that forms the gradient of every group; subclasses say how."""

    @abstractmethod
    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of each parameter for each group."""

    def norms(self, use: Use, grad: Tensor, rows: RowGroups) -> tuple[Tensor, Gradients]:
        """Return the squared norms of the groups' gradients, and the gradients."""
        formed = self.gradients(use, grad, rows)
        return sum_of([squared(part) for part in formed.values()]), formed

    def sums(self, use: Use, grad: Tensor, rows: RowGroups, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the sum over the groups of factor times gradient, for each parameter."""
        return {role: weighted(factors, part, rows) for role, part in formed.items()}


def sum_of(parts: list[Tensor]) -> Tensor:
    """Return the sum of at least one tensor."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def gram_is_cheaper(positions: int, d_in: int, d_out: int) -> bool:
    """Return whether the Gram form, in float64, needs fewer operations than forming the gradient."""
    return 4 * positions * (d_in + d_out) < d_in * d_out


@dataclass(frozen=True, slots=True)
class Linear:
    """y = W a + b at each position; `weight` and `biases` are roles of the use, any of which may be absent."""

    weight: str = "weight"
    biases: tuple[str, ...] = ("bias",)

    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of each parameter for each group."""
        formed = {}
        if self.weight in use.parameters:
            value, by_position = positions_of(use.value), positions_of(grad)
            formed[self.weight] = rows.total(by_position.transpose(1, 2) @ value)
        return formed | self._bias_gradients(use, grad, rows)

    def norms(self, use: Use, grad: Tensor, rows: RowGroups) -> tuple[Tensor, Gradients]:
        """Return the squared norms by the cheaper form."""
        if grad.dim() == 2:
            return self._vector_norms(use, grad, rows), {}
        formed = self._bias_gradients(use, grad, rows)
        parts = [squared(part) for part in formed.values()]
        if self.weight in use.parameters:
            value, by_position = positions_of(use.value), positions_of(grad)
            count, d_in, d_out = value.shape[1], value.shape[2], by_position.shape[2]
            if rows.units is None and gram_is_cheaper(count, d_in, d_out):
                parts.append(gram_squared(value, by_position))
            else:
                formed[self.weight] = rows.total(by_position.transpose(1, 2) @ value)
                parts.append(squared(formed[self.weight]))
        return sum_of(parts), formed

    def _vector_norms(self, use: Use, grad: Tensor, rows: RowGroups) -> Tensor:
        """Return the norms for one position a row: |g|^2 (|a|^2 + biases), or over pairs of rows of one unit."""
        biases = sum(role in use.parameters for role in self.biases)
        has_weight = self.weight in use.parameters
        read = squared(use.value.double()) if has_weight else grad.new_zeros(len(grad), dtype=torch.float64)
        lengths = (squared(grad.double()) * (read + biases)).masked_fill_(read > VALUE_MAX**2, torch.inf)
        if rows.units is None:
            return lengths
        value, grads = use.value.double(), grad.double()
        inner = value @ value.T + biases if has_weight else float(biases)
        same = rows.units[:, None] == rows.units[None, :]
        pairs = ((grads @ grads.T) * inner).masked_fill_(~same, 0.0)  # not times 0: the row of another may be NaN
        return not_below_spread(rows.total(pairs.sum(1)), rows.total(lengths.sqrt()))

    def sums(self, use: Use, grad: Tensor, rows: RowGroups, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the weighted sums, from formed gradients where they exist, and by one product elsewhere."""
        sums = {role: weighted(factors, part, rows) for role, part in formed.items()}
        if sums.keys() == use.parameters.keys():
            return sums
        by_row = rows.spread(factors).view(-1, *(1,) * (grad.dim() - 1))
        has_one_term = grad.dim() == 2 and rows.units is None and grad.dtype == torch.float32
        flat = (grad * by_row.to(grad.dtype) if has_one_term else grad.double() * by_row).flatten(0, -2)
        if self.weight in use.parameters and self.weight not in sums:
            value = use.value.flatten(0, -2)
            sums[self.weight] = (
                summed(flat, value, rows) if has_one_term else summed_in_double(flat, value, rows.scratch)
            )
        for role in self.biases:
            if role in use.parameters and role not in sums:
                ones = flat.new_ones(len(flat), 1)
                sums[role] = summed(flat, ones, rows).squeeze(1) if has_one_term else flat.sum(0, dtype=torch.float64)
        return sums

    def _bias_gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        present = [role for role in self.biases if role in use.parameters]
        if not present:
            return {}
        bias = rows.total(positions_of(grad).sum(1))
        return dict.fromkeys(present, bias)


def positions_of(values: Tensor) -> Tensor:
    """Return rows of vectors as (rows, positions, width)."""
    return values.unsqueeze(1) if values.dim() == 2 else values.flatten(1, -2)


PATCHES_MAX: Final = 1 << 18
"""The most numbers of the patches that are held at a time while gradients of convolutions are formed."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of 1 to 3 dimensions, as a linear map of its patches for each group of channels."""

    layer: nn.Module

    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of each parameter for each group."""
        formed = self._bias_gradients(use, grad, rows)
        if "weight" in use.parameters:
            weight = use.parameters["weight"]
            formed["weight"] = self._in_order(rows.total(self._weight_gradients(use, grad, rows)), weight, grad)
        return formed

    def norms(self, use: Use, grad: Tensor, rows: RowGroups) -> tuple[Tensor, Gradients]:
        """Return the squared norms by the cheaper form."""
        positions = math.prod(grad.shape[2:])
        weight = use.parameters.get("weight")
        if weight is None or rows.units is not None or not self._gram_is_cheaper(weight, positions):
            formed = self._bias_gradients(use, grad, rows)
            if weight is not None:
                formed["weight"] = rows.total(self._weight_gradients(use, grad, rows))
            return sum_of([squared(part) for part in formed.values()]), formed
        patches, by_group = (
            part.transpose(2, 3).flatten(0, 1) for part in (self._patches(use.value), self._by_group(grad))
        )
        gram = gram_squared(patches, by_group).view(len(grad), -1).sum(1)
        formed = self._bias_gradients(use, grad, rows)
        return sum_of([*(squared(part) for part in formed.values()), gram]), formed

    def sums(self, use: Use, grad: Tensor, rows: RowGroups, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the weighted sums, from formed gradients where they exist, and by one product elsewhere."""
        sums = {role: weighted(factors, part, rows) for role, part in formed.items()}
        if "weight" in sums:
            sums["weight"] = self._in_order(sums["weight"].unsqueeze(0), use.parameters["weight"], grad).squeeze(0)
        elif "weight" in use.parameters:
            scaled = grad.double() * rows.spread(factors).view(-1, *(1,) * (grad.dim() - 1))
            patches, by_group = self._patches(use.value), self._by_group(scaled)
            products = [
                summed_in_double(
                    by_group[:, group].transpose(1, 2).flatten(0, 1),
                    patches[:, group].transpose(1, 2).flatten(0, 1),
                    rows.scratch,
                )
                for group in range(by_group.shape[1])
            ]
            sums["weight"] = torch.cat(products).view(use.parameters["weight"].shape)
        return sums

    def _gram_is_cheaper(self, weight: nn.Parameter, positions: int) -> bool:
        groups = int(self.layer.groups)  # type: ignore[arg-type]
        return gram_is_cheaper(positions, weight[0].numel(), weight.shape[0] // groups)

    def _weight_gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Tensor:
        """Return the gradient of the weight for each row and group, as matrices that `_in_order` can read.

        A few rows at a time, so that their patches stay in the cache.
        """
        weight, by_group = use.parameters["weight"], self._by_group(grad)
        groups, outputs, positions = by_group.shape[1:]
        size, is_last = weight[0].numel(), _has_channels_last(weight, grad)
        view = self._view(use.value, channels_last=is_last)
        formed = grad.new_empty(len(grad), groups, *((outputs, size) if is_last else (size, outputs)))
        count = max(1, PATCHES_MAX // max(1, view[:1].numel()))
        for start in range(0, len(grad), count):
            part = slice(start, start + count)
            patches = rows.scratch.empty("patches", view[part].shape, view).copy_(view[part])
            own, out = by_group[part].flatten(0, 1), formed[part].flatten(0, 1)
            if is_last:
                torch.bmm(own, patches.view(-1, positions, size), out=out)
            else:
                torch.bmm(patches.view(-1, size, positions), own.transpose(1, 2), out=out)
        return formed

    def _in_order(self, formed: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
        """Return gradients of the weight, as they are formed, in the order of the weight."""
        channels, *kernel = weight.shape[1:]
        if _has_channels_last(weight, grad):
            return formed.reshape(-1, len(weight), *kernel, channels).movedim(-1, 2).contiguous()
        return formed.transpose(2, 3).reshape(-1, *weight.shape)

    def _bias_gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        return {"bias": rows.total(grad.flatten(2).sum(2))} if "bias" in use.parameters else {}

    def _by_group(self, grad: Tensor) -> Tensor:
        """Return output gradients as (rows, groups, channels, positions)."""
        return grad.reshape(len(grad), self.layer.groups, -1, math.prod(grad.shape[2:]))  # type: ignore[call-overload, no-any-return]

    def _patches(self, value: Tensor) -> Tensor:
        """Return the patches that the kernel reads, as (rows, groups, channels * kernel, positions)."""
        view = self._view(value)
        positions = math.prod(view.shape[2 + len(self.layer.kernel_size) :])  # type: ignore[arg-type]
        return view.reshape(len(view), self.layer.groups, -1, positions)  # type: ignore[call-overload, no-any-return]

    def _view(self, value: Tensor, *, channels_last: bool = False) -> Tensor:
        """Return the patches as a view of the padded input: (rows, channels, *kernel, *positions).

        With `channels_last` they are (rows, groups, *positions, *kernel, channels), of an input in that order.
        """
        layer: Any = self.layer
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        padded = functional.pad(value, layer._reversed_padding_repeated_twice, mode=mode)
        if channels_last:
            padded = padded.movedim(1, -1).contiguous().movedim(-1, 1)
        sizes, strides = list(padded.shape[:2]), list(padded.stride()[:2])
        kernel_strides, positions = [], []
        for axis, (size, kernel) in enumerate(zip(padded.shape[2:], layer.kernel_size, strict=True)):
            stride, dilation, step = layer.stride[axis], layer.dilation[axis], padded.stride(axis + 2)
            positions.append((size - dilation * (kernel - 1) - 1) // stride + 1)
            kernel_strides.append(dilation * step)
            strides.append(stride * step)
        shape = [*sizes, *layer.kernel_size, *positions]
        view = padded.as_strided(shape, [*strides[:2], *kernel_strides, *strides[2:]])
        if not channels_last:
            return view
        axes = len(positions)
        order = 0, 1, *range(3 + axes, 3 + 2 * axes), *range(3, 3 + axes), 2
        return torch.unflatten(view, 1, (layer.groups, -1)).permute(order)


def _has_channels_last(weight: Tensor, grad: Tensor) -> bool:
    """Return whether patches are copied with their channels last: where the pieces in one run are longer so."""
    return weight.shape[1] * weight.shape[-1] > grad.shape[-1]


@dataclass(frozen=True, slots=True)
class Embedding:
    """Rows of a table picked by number; the gradient of a group has as many rows as it has distinct numbers."""

    padding: int | None

    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of the table for each group."""
        weight = use.parameters["weight"]
        keys, values = self._keys(use, grad, rows, len(weight))
        table = values.new_zeros(rows.count * len(weight), weight.shape[1]).index_add_(0, keys, values)
        return {"weight": table.view(rows.count, *weight.shape)}

    def norms(self, use: Use, grad: Tensor, rows: RowGroups) -> tuple[Tensor, Gradients]:
        """Return the squared norms, and the sums over equal numbers within a group with their keys."""
        size = len(use.parameters["weight"])
        keys, values = self._keys(use, grad, rows, size)
        distinct, place = torch.unique(keys, return_inverse=True)
        sums = values.new_zeros(len(distinct), values.shape[1]).index_add_(0, place, values)
        squares = squared(sums)
        norms = squares.new_zeros(rows.count).index_add_(0, distinct // size, squares)
        return norms, {"keys": distinct, "sums": sums}

    def sums(self, use: Use, grad: Tensor, rows: RowGroups, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the weighted sum, in float64: any number of groups may have the same number."""
        weight, keys = use.parameters["weight"], formed["keys"]
        values = formed["sums"] * factors[keys // len(weight)].unsqueeze(1)
        return {"weight": values.new_zeros(weight.shape).index_add_(0, keys % len(weight), values)}

    def _keys(self, use: Use, grad: Tensor, rows: RowGroups, size: int) -> tuple[Tensor, Tensor]:
        """Return group * size + number for each picked row, and its gradient; the padding row has gradient 0."""
        numbers = use.value.reshape(len(use.value), -1)
        group = torch.arange(len(numbers), device=numbers.device) if rows.units is None else rows.units
        keys = (group[:, None] * size + numbers).flatten()
        values = grad.flatten(0, -2)
        if self.padding is not None:
            values = values * (numbers.flatten() != self.padding).unsqueeze(1)
        return keys, values


@dataclass(frozen=True, slots=True)
class Normalization(Formed):
    """y = weight * x + bias with x the normalised input.

    The parameters have the last `trailing` axes of the input, or its channels (axis 1) where that is None.
    """

    normalize: Callable[[Tensor], Tensor]
    trailing: int | None = None

    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of each parameter for each group."""
        formed = {}
        if "weight" in use.parameters:
            formed["weight"] = rows.total(self._reduced(grad * self.normalize(use.value)))
        if "bias" in use.parameters:
            formed["bias"] = rows.total(self._reduced(grad))
        return formed

    def _reduced(self, values: Tensor) -> Tensor:
        last = values.dim() if self.trailing is None else values.dim() - self.trailing
        axes = tuple(range(2 if self.trailing is None else 1, last))
        return values.sum(axes) if axes else values


@dataclass(frozen=True, slots=True)
class Vectorised(Formed):
    """Any module: torch.func forms the gradients of its own parameters, one row at a time in one vectorised call.

    The forward pass of the module is run again for that. A module that is random (dropout) is refused; one whose rows
    depend on one another is found by `rehearsal`.
    """

    module: nn.Module

    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of each parameter for each group."""
        leaves, spec = tree_flatten(use.value)
        axes = [0 if isinstance(leaf, Tensor) else None for leaf in leaves]
        if any(leaf.shape[:1] != grad.shape[:1] for leaf in leaves if isinstance(leaf, Tensor)):
            kind = type(self.module).__name__
            raise WrongType(f"{kind} is given a tensor whose first axis is not the batch; expand it", name="model")
        own = {role: parameter.detach() for role, parameter in use.parameters.items()}

        def one(grad_row: Tensor, *row: Any) -> Any:
            given = [part if axis is None else part.unsqueeze(0) for part, axis in zip(row, axes, strict=True)]
            arguments, keywords = tree_unflatten(given, spec)

            def forward(parameters: Gradients) -> Tensor:
                return functional_call(self.module, parameters, arguments, keywords).squeeze(0)  # type: ignore[no-any-return]

            return vjp(forward, own)[1](grad_row)[0]

        try:
            formed = vmap(one, in_dims=(0, *axes))(grad, *leaves)
        except RuntimeError as error:
            raise WrongType(
                f"per-sample gradients of {type(self.module).__name__} cannot be vectorised ({str(error)[:200]}); "
                "put its parameters into modules of torch.nn, or freeze them",
                name="model",
            ) from error
        return {role: rows.total(part) for role, part in formed.items()}
