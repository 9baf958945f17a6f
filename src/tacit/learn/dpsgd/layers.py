"""Per-layer rules: squared norms and weighted sums of per-sample gradients, from inputs and output gradients.

A `Use` is one call of a layer in a forward pass: the layer's parameters, what it read, and the place in the autograd
graph where the gradient of its output arrives. A `Rule` computes from a use and that gradient, for each group of rows
(`Rows`: a sample, or all rows of one unit):

    norms   the squared norms of the groups' gradients, and the gradients that had to be formed for them
    sums    the sum over the groups of factor times gradient

The gradient of a linear map for one sample is the sum over positions t of g_t a_t^T. Its squared norm is either that of
the formed matrix, at T d_in d_out operations, or sum over (s, t) of (a_s . a_t)(g_s . g_t) (the Gram form; Goodfellow
2015, Li et al. 2021), at T^2 (d_in + d_out); the cheaper one is taken for each use. Convolutions are linear maps of
their patches (Bu et al. 2022). Sums are one weighted product (book-keeping; Bu et al. 2023), so no second backward
pass is needed. All rules are exact up to the rounding of the parameters' dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge
from torch.func import functional_call, vjp, vmap
from torch.nn import functional

from tacit.privacy.errors import WrongType

Gradients = dict[str, Tensor]
"""Gradients by role: the parameter's name within its layer."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Which group each row of a batch belongs to; without `units` each row is a group of its own."""

    count: int
    units: Tensor | None = None

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

    def gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
        """Return the gradient of each parameter for each group."""
        ...

    def norms(self, use: Use, grad: Tensor, rows: Rows) -> tuple[Tensor, Gradients]:
        """Return the squared norms of the groups' gradients, and those gradients that were formed on the way."""
        ...

    def sums(self, use: Use, grad: Tensor, rows: Rows, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the sum over the groups of factor times gradient, for each parameter."""
        ...


def squared(gradients: Tensor) -> Tensor:
    """Return the squared norm of each group's gradient."""
    flat = gradients.reshape(len(gradients), -1)
    return torch.linalg.vector_norm(flat, dim=1).square_() if flat.shape[1] else flat.sum(1)


def weighted(factors: Tensor, gradients: Tensor) -> Tensor:
    """Return the sum over groups of factor times gradient."""
    return (factors @ gradients.reshape(len(gradients), -1)).view(gradients.shape[1:])


class Formed:
    """A rule that forms the gradient of every group; subclasses say how."""

    def gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
        """Return the gradient of each parameter for each group."""
        raise NotImplementedError

    def norms(self, use: Use, grad: Tensor, rows: Rows) -> tuple[Tensor, Gradients]:
        """Return the squared norms of the groups' gradients, and the gradients."""
        formed = self.gradients(use, grad, rows)
        return sum_of([squared(part) for part in formed.values()]), formed

    def sums(self, use: Use, grad: Tensor, rows: Rows, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the sum over the groups of factor times gradient, for each parameter."""
        return {role: weighted(factors, part) for role, part in formed.items()}


def sum_of(parts: list[Tensor]) -> Tensor:
    """Return the sum of at least one tensor."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def gram_is_cheaper(positions: int, d_in: int, d_out: int) -> bool:
    """Return whether the Gram form needs fewer operations than forming the gradient; both hold what they compute."""
    return 2 * positions * positions * (d_in + d_out) < positions * d_in * d_out


@dataclass(frozen=True, slots=True)
class Linear:
    """y = W a + b at each position; `weight` and `biases` are roles of the use, any of which may be absent."""

    weight: str = "weight"
    biases: tuple[str, ...] = ("bias",)

    def gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
        """Return the gradient of each parameter for each group."""
        formed = {}
        if self.weight in use.parameters:
            value, by_position = positions_of(use.value), positions_of(grad)
            formed[self.weight] = rows.total(by_position.transpose(1, 2) @ value)
        return formed | self._bias_gradients(use, grad, rows)

    def norms(self, use: Use, grad: Tensor, rows: Rows) -> tuple[Tensor, Gradients]:
        """Return the squared norms by the cheaper form."""
        if grad.dim() == 2:
            return self._vector_norms(use, grad, rows), {}
        formed = self._bias_gradients(use, grad, rows)
        parts = [squared(part) for part in formed.values()]
        if self.weight in use.parameters:
            value, by_position = positions_of(use.value), positions_of(grad)
            count, d_in, d_out = value.shape[1], value.shape[2], by_position.shape[2]
            if rows.units is None and gram_is_cheaper(count, d_in, d_out):
                gram = (value @ value.transpose(1, 2)).mul_(by_position @ by_position.transpose(1, 2))
                parts.append(gram.sum((1, 2)).clamp_(min=0))
            else:
                formed[self.weight] = rows.total(by_position.transpose(1, 2) @ value)
                parts.append(squared(formed[self.weight]))
        return sum_of(parts), formed

    def _vector_norms(self, use: Use, grad: Tensor, rows: Rows) -> Tensor:
        """Return the norms for one position a row: |g|^2 (|a|^2 + biases), or over pairs of rows of one unit."""
        biases = sum(role in use.parameters for role in self.biases)
        has_weight = self.weight in use.parameters
        if rows.units is None:
            squares: Tensor = torch.linalg.vector_norm(grad, dim=1).square_()
            read = torch.linalg.vector_norm(use.value, dim=1).square_() if has_weight else 0.0
            return squares * (read + biases)
        inner = use.value @ use.value.T + biases if has_weight else float(biases)
        pairs = (grad @ grad.T) * inner * (rows.units[:, None] == rows.units[None, :])
        return rows.total(pairs.sum(1)).clamp_(min=0)

    def sums(self, use: Use, grad: Tensor, rows: Rows, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the weighted sums, from formed gradients where they exist, and by one product elsewhere."""
        sums = {role: weighted(factors, part) for role, part in formed.items()}
        if sums.keys() == use.parameters.keys():
            return sums
        scaled = grad * rows.spread(factors).view(-1, *(1,) * (grad.dim() - 1))
        flat = scaled.flatten(0, -2)
        if self.weight in use.parameters and self.weight not in sums:
            sums[self.weight] = flat.T @ use.value.flatten(0, -2)
        for role in self.biases:
            if role in use.parameters and role not in sums:
                sums[role] = flat.sum(0)
        return sums

    def _bias_gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
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

    def gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
        """Return the gradient of each parameter for each group."""
        formed = self._bias_gradients(use, grad, rows)
        if "weight" in use.parameters:
            formed["weight"] = rows.total(self._weight_gradients(use, grad))
        return formed

    def norms(self, use: Use, grad: Tensor, rows: Rows) -> tuple[Tensor, Gradients]:
        """Return the squared norms by the cheaper form."""
        positions = math.prod(grad.shape[2:])
        weight = use.parameters.get("weight")
        if weight is None or rows.units is not None or not self._gram_is_cheaper(weight, positions):
            formed = self.gradients(use, grad, rows)
            return sum_of([squared(part) for part in formed.values()]), formed
        patches, by_group = self._patches(use.value), self._by_group(grad)
        gram = (patches.transpose(2, 3) @ patches).mul_(by_group.transpose(2, 3) @ by_group)
        formed = self._bias_gradients(use, grad, rows)
        parts = [squared(part) for part in formed.values()]
        return sum_of([*parts, gram.sum((1, 2, 3)).clamp_(min=0)]), formed

    def sums(self, use: Use, grad: Tensor, rows: Rows, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the weighted sums, from formed gradients where they exist, and by one product elsewhere."""
        sums = {role: weighted(factors, part) for role, part in formed.items()}
        if "weight" in use.parameters and "weight" not in sums:
            scaled = grad * rows.spread(factors).view(-1, *(1,) * (grad.dim() - 1))
            sums["weight"] = self._weight_gradients(use, scaled).sum(0)
        return sums

    def _gram_is_cheaper(self, weight: nn.Parameter, positions: int) -> bool:
        groups = int(self.layer.groups)  # type: ignore[arg-type]
        return gram_is_cheaper(positions, weight[0].numel(), weight.shape[0] // groups)

    def _weight_gradients(self, use: Use, grad: Tensor) -> Tensor:
        """Return the gradient of the weight for each row, a few rows at a time: their patches stay in the cache."""
        shape = use.parameters["weight"].shape
        by_group, view = self._by_group(grad), self._view(use.value)
        groups, positions = by_group.shape[1], by_group.shape[3]
        formed = grad.new_empty(len(grad), groups, shape[0] // groups, math.prod(shape[1:]))
        count = max(1, PATCHES_MAX // max(1, view[:1].numel()))
        for start in range(0, len(grad), count):
            rows = slice(start, start + count)
            patches = view[rows].reshape(-1, math.prod(shape[1:]), positions)
            target = formed[rows].flatten(0, 1)
            torch.bmm(by_group[rows].flatten(0, 1), patches.transpose(1, 2), out=target)
        return formed.view(len(grad), *shape)

    def _bias_gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
        return {"bias": rows.total(grad.flatten(2).sum(2))} if "bias" in use.parameters else {}

    def _by_group(self, grad: Tensor) -> Tensor:
        """Return output gradients as (rows, groups, channels, positions)."""
        return grad.reshape(len(grad), self.layer.groups, -1, math.prod(grad.shape[2:]))  # type: ignore[call-overload, no-any-return]

    def _patches(self, value: Tensor) -> Tensor:
        """Return the patches that the kernel reads, as (rows, groups, channels * kernel, positions)."""
        view = self._view(value)
        positions = math.prod(view.shape[2 + len(self.layer.kernel_size) :])  # type: ignore[arg-type]
        return view.reshape(len(view), self.layer.groups, -1, positions)  # type: ignore[call-overload, no-any-return]

    def _view(self, value: Tensor) -> Tensor:
        """Return the patches as a view of the padded input: (rows, channels, *kernel, *positions)."""
        layer: Any = self.layer
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        padded = functional.pad(value, layer._reversed_padding_repeated_twice, mode=mode)
        sizes, strides = list(padded.shape[:2]), list(padded.stride()[:2])
        kernel_strides, positions = [], []
        for axis, (size, kernel) in enumerate(zip(padded.shape[2:], layer.kernel_size, strict=True)):
            stride, dilation, step = layer.stride[axis], layer.dilation[axis], padded.stride(axis + 2)
            positions.append((size - dilation * (kernel - 1) - 1) // stride + 1)
            kernel_strides.append(dilation * step)
            strides.append(stride * step)
        shape = [*sizes, *layer.kernel_size, *positions]
        return padded.as_strided(shape, [*strides[:2], *kernel_strides, *strides[2:]])


@dataclass(frozen=True, slots=True)
class Embedding:
    """Rows of a table picked by number; the gradient of a group has as many rows as it has distinct numbers."""

    padding: int | None

    def gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
        """Return the gradient of the table for each group."""
        weight = use.parameters["weight"]
        keys, values = self._keys(use, grad, rows, len(weight))
        table = values.new_zeros(rows.count * len(weight), weight.shape[1]).index_add_(0, keys, values)
        return {"weight": table.view(rows.count, *weight.shape)}

    def norms(self, use: Use, grad: Tensor, rows: Rows) -> tuple[Tensor, Gradients]:
        """Return the squared norms of the sums over equal numbers within a group."""
        size = len(use.parameters["weight"])
        keys, values = self._keys(use, grad, rows, size)
        distinct, place = torch.unique(keys, return_inverse=True)
        sums = values.new_zeros(len(distinct), values.shape[1]).index_add_(0, place, values)
        norms = values.new_zeros(rows.count).index_add_(0, distinct // size, squared(sums))
        return norms, {}

    def sums(self, use: Use, grad: Tensor, rows: Rows, factors: Tensor, formed: Gradients) -> Gradients:
        """Return the weighted sum."""
        if formed:
            return {"weight": weighted(factors, formed["weight"])}
        scaled = grad * rows.spread(factors).view(-1, *(1,) * (grad.dim() - 1))
        numbers, values = use.value.flatten(), scaled.flatten(0, -2)
        table = values.new_zeros(use.parameters["weight"].shape).index_add_(0, numbers, values)
        if self.padding is not None:
            table[self.padding] = 0
        return {"weight": table}

    def _keys(self, use: Use, grad: Tensor, rows: Rows, size: int) -> tuple[Tensor, Tensor]:
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

    def gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
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

    The forward pass of the module is run again for that. A module that is random (dropout), or whose rows depend on one
    another, gives another output then, and is refused.
    """

    module: nn.Module

    def gradients(self, use: Use, grad: Tensor, rows: Rows) -> Gradients:
        """Return the gradient of each parameter for each group."""
        arguments, keywords, output = use.value
        own = {role: parameter.detach() for role, parameter in use.parameters.items()}

        def one(grad_row: Tensor, arguments_row: tuple[Any, ...], keywords_row: dict[str, Any]) -> Any:
            def forward(parameters: Gradients) -> Tensor:
                one_row = [part.unsqueeze(0) for part in arguments_row]
                one_named = {name: part.unsqueeze(0) for name, part in keywords_row.items()}
                return functional_call(self.module, parameters, tuple(one_row), one_named).squeeze(0)  # type: ignore[no-any-return]

            result, pull = vjp(forward, own)  # type: ignore[misc]
            return result, pull(grad_row)[0]

        try:
            again, formed = vmap(one)(grad, arguments, keywords)
        except RuntimeError as error:
            raise WrongType(
                f"per-sample gradients of {type(self.module).__name__} cannot be vectorised ({str(error)[:200]}); "
                "put its parameters into modules of torch.nn, or freeze them",
                name="model",
            ) from error
        if not torch.allclose(again, output, rtol=1e-3, atol=1e-4, equal_nan=True):
            raise WrongType(
                f"{type(self.module).__name__} gives another output when its rows are computed one by one: it mixes "
                "samples or is random; put its parameters into modules of torch.nn, or freeze them",
                name="model",
            )
        return {role: rows.total(part) for role, part in formed.items()}


CONVOLUTIONS: Final = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
INSTANCE_NORMS: Final = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def rule_for(module: nn.Module) -> Rule | None:
    """Return the rule of a layer of torch.nn, or None where only `Vectorised` applies.

    Subclasses may compute something else, so a rule is for exactly the classes named here.
    """
    kind = type(module)
    if kind is nn.Linear:
        return Linear()
    if kind in CONVOLUTIONS:
        return Convolution(module)
    if isinstance(module, nn.Embedding) and kind is nn.Embedding and _plain_embedding(module):
        return Embedding(module.padding_idx)
    return _normalization(module, kind)


def _plain_embedding(module: nn.Embedding) -> bool:
    return module.max_norm is None and not module.scale_grad_by_freq and not module.sparse


def _normalization(module: Any, kind: type[nn.Module]) -> Rule | None:
    shape = getattr(module, "normalized_shape", ())
    if kind is nn.LayerNorm:
        return Normalization(lambda value: functional.layer_norm(value, shape, eps=module.eps), len(shape))
    if kind is nn.RMSNorm:
        return Normalization(lambda value: functional.rms_norm(value, shape, eps=module.eps), len(shape))
    if kind is nn.GroupNorm:
        return Normalization(lambda value: functional.group_norm(value, module.num_groups, eps=module.eps))
    if kind in INSTANCE_NORMS:
        return Normalization(lambda value: functional.instance_norm(value, eps=module.eps))
    return None
