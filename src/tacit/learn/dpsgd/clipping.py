"""Sums of clipped per-sample gradients, with one backward pass.

Promise of `PerSampleClipper.clipped_sums`: the returned sum is that of one vector for each sample (or unit) that is a
function of this sample's rows alone and has an L2 norm of at most `clip`. Adding or removing a sample (unit) moves all
parameters' sums together by at most clip (1 + `sum_error`), rounding included (`rounding` has the theorem). With norms
that are bounds from above, by less than 2^-14 for ordinary rows, the factors are

    flat        min(1, clip / norm)                                     (Abadi et al. 2016)
    per-layer   min(1, clip / sqrt(layers) / norm of the layer's gradient), for each layer on its own
    automatic   clip / (norm + 0.01)                                    (Bu et al. 2022)

A sample whose loss or gradient is not finite (NaN, or beyond the range of its dtype) adds 0, so no value in a row can
stop a training or spoil its sums.

How: forward hooks note what each layer read and the edge of the autograd graph at its output, so later changes in place
do not matter; one backward pass for the sum of the losses fetches the gradients at those edges, and no gradient of a
parameter; `layers` has the rules that compute norms, and sums with the clip factors, from these. Passes are noted in
training mode with gradients enabled only. What is noted is held until the next `clipped_sums` or `forget`.

Not here: noise (`tacit.mechanisms.bulk_gaussian`), sampling, and who pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.nn.utils.parametrize import is_parametrized
from torch.utils._pytree import tree_map
from torch.utils.hooks import RemovableHandle

from tacit.learn.dpsgd import attention, recurrent
from tacit.learn.dpsgd.layer_rules import rule_for
from tacit.learn.dpsgd.layers import (
    Gradients,
    Linear,
    RowGroups,
    Rule,
    Scratch,
    Use,
    Vectorised,
    positions_of,
    squared,
    sum_of,
    weighted,
)
from tacit.learn.dpsgd.made_up import ROWS, bounded_loss
from tacit.learn.dpsgd.model_checks import (
    NORMS_OF_BATCHES,
    require_plain,
    require_separate,
    require_separate_samples,
    require_uncompiled,
)
from tacit.learn.dpsgd.rehearsal import UNTRIED, Call, structure_of
from tacit.learn.dpsgd.rounding import CLIP_MAX, CLIP_MIN, NORM_FLOOR, NORM_SLACK, products_are_reduced
from tacit.privacy.errors import InvalidInput, OutOfRange, WrongType

Clipping = Literal["flat", "per-layer", "automatic"]
CLIPPINGS: Final = ("flat", "per-layer", "automatic")
STABILITY: Final = 0.01
"""What automatic clipping adds to the norm."""
OWN_FORWARDS: Final[dict[type[nn.Module], Any]] = {
    nn.LSTM: recurrent,
    nn.GRU: recurrent,
    nn.MultiheadAttention: attention,
}
"""Modules whose passes are computed by other code while they are noted."""
WHOLE_GRADIENT: Final = 1e-2
"""The relative difference of a parameter's gradient from the sum over its layers' that rounding explains."""
CANCELLED: Final = 1e-4
"""What is left of a gradient that cancels to 0 by rounding, over the greatest gradient of a parameter."""


class PerSampleClipper:
    """Notes the layers' inputs in forward passes of `model`, and turns losses into sums of clipped gradients."""

    def __init__(self, model: nn.Module, clipping: Clipping = "flat", *, rows_apart: bool = False) -> None:
        if clipping not in CLIPPINGS:
            raise InvalidInput(f"clipping is one of {', '.join(CLIPPINGS)}", name="clipping", value=clipping)
        self.model: Final = model
        self.clipping: Final = clipping
        self._names = {parameter: name for name, parameter in model.named_parameters() if parameter.requires_grad}
        if not self._names:
            raise WrongType("the model has no trainable parameter; set requires_grad on some", name="model")
        self._uses: list[Use] = []
        self._scratch = Scratch()
        self._paused = False
        self._probed = False
        self._rows: int | None = None
        self._depth = 0
        self._rehearsed: set[Any] = set()
        self._handles: list[RemovableHandle] = []
        require_uncompiled(model)
        require_separate_samples(model)
        for module in model.modules():
            if isinstance(module, NORMS_OF_BATCHES):
                self._handles.append(module.register_forward_pre_hook(require_separate))
        self._replaced: dict[nn.Module, Callable[..., Any]] = {}
        self._layers = _modules_with_parameters(model)
        for module in self._layers:
            self._attach(module)
        self._rows_apart = rows_apart
        self._handles += [handle for one in model.modules() for handle in self._watch(one)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the hooks from the model."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for module, forward in self._replaced.items():
            if vars(module).get("forward") is forward:  # another training may have replaced it since
                del module.forward
        self._replaced.clear()
        self.forget()

    def forget(self, rows: int | None = None) -> None:
        """Drop what was noted of forward passes whose losses are not wanted; the next ones are of `rows` rows."""
        self._uses.clear()
        self._rows, self._depth = rows, 0

    def clipped_sums(
        self, losses: Tensor, clip: float, units: Tensor | None = None, *, is_precise: bool = False
    ) -> tuple[Gradients, Tensor]:
        """Return the sum of clipped gradients for each parameter by name, and bounds on the norms before clipping.

        Sums are float32 or float64; `is_precise` asks for sums over samples in float64 (`rounding.single_rows`).

        `losses` has one loss for each row. `units` numbers the unit of each row: the gradients of all rows of a unit
        are added before they are clipped, and norms are in the order of the units' sorted numbers. The norms are
        private: they are not to be shown.
        """
        uses, self._uses = self._uses, []
        if not CLIP_MIN <= clip <= CLIP_MAX:
            raise OutOfRange("the clip must be at least 2^-30 and at most 2^30", name="clip", value=clip)
        if losses.dim() != 1:
            raise WrongType('give one loss for each sample (reduction="none")', name="losses")
        if not len(losses):
            return self._with_zeros({}), losses.detach().new_zeros(0)
        require_separate_samples(self.model)
        rows = _rows_of(losses, units, self._scratch, is_precise=is_precise or products_are_reduced())
        if not (self._rows_apart or self._rehearsed):
            raise WrongType(f"no module of the model was seen to be called, {UNTRIED}", name="model")
        if not self._probed and len(losses) > 1:
            self._probe(losses, uses)
        reached = _reached(losses, uses)
        with torch.no_grad(), self._pause():
            sums, norms = self._combine(_blocks(reached), rows, clip)
        return self._with_zeros(sums), norms

    def _with_zeros(self, sums: Gradients) -> Gradients:
        """Return sums for all parameters in their order, 0 for those that were not used."""
        return {
            name: sums[name] if name in sums else torch.zeros_like(parameter) for parameter, name in self._names.items()
        }

    def _combine(self, blocks: list[Block], rows: RowGroups, clip: float) -> tuple[Gradients, Tensor]:
        """Return the clipped sums over all blocks of parameters."""
        sums: Gradients = {}
        if not blocks:
            return sums, torch.zeros(rows.count, dtype=torch.float64)
        norms, formed = zip(*(block.norms(rows) for block in blocks), strict=True)
        total = sum_of(list(norms))
        bad = ~torch.isfinite(total)
        if bad.any():
            if not bad.all():
                sums, total = self._combine([block.without(rows, bad) for block in blocks], rows, clip)
            return sums, total.masked_fill(bad, torch.inf)
        for block, block_norms, gradients in zip(blocks, norms, formed, strict=True):
            squares, bound = (block_norms, clip / len(blocks) ** 0.5) if self.clipping == "per-layer" else (total, clip)
            for parameter, part in block.sums(rows, self._factors(_from_above(squares), bound), gradients).items():
                sums[self._names[parameter]] = part
        return sums, _from_above(total)

    def _factors(self, norms: Tensor, clip: float) -> Tensor:
        """Return what each group's gradient is multiplied with; its norm is then at most `clip`."""
        if self.clipping == "automatic":
            return clip / (norms + STABILITY)
        return (clip / norms).clamp_(max=1)

    def _attach(self, module: nn.Module) -> None:
        """Note each call of a module that has trainable parameters of its own."""
        own_forward = OWN_FORWARDS.get(type(module))
        if own_forward is not None:
            own_forward.require_supported(module)
            self._replace_forward(module, own_forward.forward)
            return
        whole = is_parametrized(module)
        rule = rule_for(module) or Vectorised(module)
        require_plain(module, has_rule=not isinstance(rule, Vectorised))

        def note(_: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any], output: Any) -> None:
            if not self._notes() or not isinstance(output, Tensor):
                return
            own = dict(module.named_parameters(recurse=whole))
            if isinstance(rule, Vectorised):
                self._note(rule, own, (arguments, keywords), output)
            else:
                self._note(rule, own, (*arguments, *keywords.values())[0].detach(), output)

        self._handles.append(module.register_forward_hook(note, with_kwargs=True, prepend=True))

    def _watch(self, module: nn.Module) -> list[RemovableHandle]:
        """Rehearse calls of a module from outside of the model, before rows go through it."""

        def enter(_: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            if self._depth == 0 and self.model.training and not (self._paused or self._rows_apart):
                self._rehearse(module, (arguments, keywords))
            self._depth += 1

        def leave(*_: Any) -> None:
            self._depth = max(0, self._depth - 1)  # also of a call that was refused before it was entered

        return [
            module.register_forward_pre_hook(enter, with_kwargs=True),
            module.register_forward_hook(leave, always_call=True),
        ]

    def _replace_forward(self, module: nn.Module, own_forward: Callable[..., Any]) -> None:
        """Compute noted passes of a module by a forward method that notes the linear layers inside."""
        original = module.forward

        def forward(*arguments: Any, **keywords: Any) -> Any:
            if not self._notes():
                return original(*arguments, **keywords)
            return own_forward(module, self._note, *arguments, **keywords)

        module.forward = forward
        self._replaced[module] = forward

    def _notes(self) -> bool:
        return self.model.training and torch.is_grad_enabled() and not self._paused

    def _note(self, rule: Rule, parameters: Mapping[str, nn.Parameter], value: Any, output: Tensor) -> None:
        trainable = {role: part for role, part in parameters.items() if part in self._names}
        if trainable and torch.is_autocast_enabled(output.device.type):
            raise WrongType("private training under autocast is not supported; convert the model instead", name="model")
        if trainable and output.requires_grad:
            version = value._version if isinstance(value, Tensor) else 0
            self._uses.append(Use(rule, trainable, value, get_gradient_edge(output), version))

    @contextmanager
    def _pause(self) -> Iterator[None]:
        """Note nothing inside: rules may run modules again."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def _rehearse(self, module: nn.Module, arguments: Any) -> None:
        """Raise unless a module treats rows apart; again in other modes, or with other arguments than tensors."""
        learns = torch.is_grad_enabled()
        key = module, tuple(one.training for one in module.modules()), learns, structure_of(arguments)
        if key in self._rehearsed:
            return
        call = Call.of(module, arguments, self._rows, has_gradients=learns)
        with self._pause():
            call.require_rows_apart({layer: type(layer) not in OWN_FORWARDS for layer in self._layers})
        self._rehearsed.add(key)
        if learns:
            self._require_whole_gradients(call)

    def _require_whole_gradients(self, call: Call) -> None:
        """Raise unless the gradients of noted layers are all of those of their parameters, on made-up rows."""
        uses, self._uses = self._uses, []
        self._depth += 1
        try:
            outputs = [one for one in call.made_up_outputs() if one.requires_grad]
            noted = self._uses
        finally:
            self._uses = uses
            self._depth -= 1
        own = {parameter for module in self._replaced for parameter in module.parameters()}  # their passes are ours
        parameters = list({one: None for use in noted for one in use.parameters.values() if one not in own})
        if not outputs or not parameters:
            return
        total = torch.stack([bounded_loss(one).sum() for one in outputs]).sum()
        edges = [use.edge for use in noted]
        targets: Any = [*parameters, *edges]
        grads: list[Tensor | None] = list(torch.autograd.grad(total, targets, allow_unused=True))
        pairs = zip(noted, grads[len(parameters) :], strict=True)
        reached = [(use, grad) for use, grad in pairs if grad is not None]
        if any(len(grad) != ROWS for _, grad in reached):
            return  # refused where the private rows are learnt from
        rows, sums = RowGroups(ROWS, None, True, self._scratch), {}
        with torch.no_grad(), self._pause():
            for block in _blocks(reached):
                _, formed = block.norms(rows)
                sums.update(block.sums(rows, torch.ones(ROWS, dtype=torch.float64), formed))
        wholes = [
            torch.zeros_like(parameter) if grad is None else grad.to_dense()
            for parameter, grad in zip(parameters, grads, strict=False)
        ]
        cancelled = CANCELLED * max(float(one.norm()) for one in wholes)
        for parameter, whole in zip(parameters, wholes, strict=True):
            found = sums.get(parameter, torch.zeros_like(parameter))
            error = float((found.to(whole.dtype) - whole).norm())
            if error > WHOLE_GRADIENT * float(whole.norm()) + cancelled:
                raise WrongType(
                    f"{self._names[parameter]} is also used outside of its layer's forward method, or that method was "
                    "replaced; call the layer, or freeze the parameter",
                    name="model",
                )

    def _probe(self, losses: Tensor, uses: list[Use]) -> None:
        """Raise unless each loss depends on its own row alone, and parameters are used through noted layers alone.

        One more backward pass, for every second loss, in the first step: the gradients of the other rows must be 0. It
        does not see what rows tell one another without a gradient; the calls of modules are rehearsed for that.
        """
        parameters = list(self._names)
        targets: Any = [*(use.edge for use in uses), *parameters]
        grads = torch.autograd.grad(losses[::2].sum(), targets, retain_graph=True, allow_unused=True)
        found: list[Tensor | None] = list(grads)
        for use, grad in zip(uses, found, strict=False):
            if grad is not None and (grad[1::2].nan_to_num() != 0).any():
                raise WrongType(
                    f"the losses depend on other samples' rows in {', '.join(self._names_of(use))}; every layer must "
                    "have the batch as its first axis and treat samples apart",
                    name="model",
                )
        noted = {parameter for use in uses for parameter in use.parameters.values()}
        for parameter, grad in zip(parameters, found[len(uses) :], strict=True):
            if grad is not None and parameter not in noted:
                raise WrongType(
                    f"{self._names[parameter]} is used outside of the forward method of its module, or in one whose "
                    "output is no tensor; call the module, or freeze the parameter",
                    name="model",
                )
        self._probed = True

    def _names_of(self, use: Use) -> list[str]:
        return [self._names[parameter] for parameter in use.parameters.values()]


@dataclass(frozen=True, slots=True)
class Block:
    """The uses of parameters that are used together, with the gradients of the uses' outputs.

    A layer that is called once is a block of one use. Where a layer is called several times or layers share a
    parameter, the gradient of a group is the sum over the uses, and is formed, so that its norm is exact.
    """

    uses: list[Use]
    grads: list[Tensor]

    def norms(self, rows: RowGroups) -> tuple[Tensor, dict[Any, Tensor]]:
        """Return the squared norms of the groups' gradients, and those gradients that were formed on the way."""
        if len(self.uses) == 1:
            squares, formed = self.uses[0].rule.norms(self.uses[0], self.grads[0], rows)
            return squares, dict(formed)
        totals: dict[Any, Tensor] = {}
        for use, grad in zip(self.uses, self.grads, strict=True):
            for role, part in use.rule.gradients(use, grad, rows).items():
                parameter = use.parameters[role]
                totals[parameter] = totals[parameter] + part if parameter in totals else part
        return sum_of([squared(part) for part in totals.values()]), totals

    def sums(self, rows: RowGroups, factors: Tensor, formed: dict[Any, Tensor]) -> dict[nn.Parameter, Tensor]:
        """Return the sum over the groups of factor times gradient, for each parameter."""
        if len(self.uses) == 1:
            use = self.uses[0]
            sums = use.rule.sums(use, self.grads[0], rows, factors, formed)
            return {use.parameters[role]: part for role, part in sums.items()}
        return {parameter: weighted(factors, part, rows) for parameter, part in formed.items()}

    def without(self, rows: RowGroups, bad: Tensor) -> Block:
        """Return the block with other rows in place of those of the groups `bad`, and gradients of 0 for them."""
        out = bad if rows.units is None else bad[rows.units]
        index = torch.where(out, int((~out).nonzero()[0]), torch.arange(len(out), device=out.device))

        def picked(value: Any) -> Any:
            return tree_map(lambda one: one[index] if isinstance(one, Tensor) else one, value)

        uses = [replace(use, value=picked(use.value)) for use in self.uses]
        return Block(uses, [grad.masked_fill(out.view(-1, *(1,) * (grad.dim() - 1)), 0) for grad in self.grads])


def _from_above(squares: Tensor) -> Tensor:
    """Return norms from squares that are off by as much as `rounding` allows."""
    return squares.sqrt().mul_(1 + NORM_SLACK).add_(NORM_FLOOR)


def _reached(losses: Tensor, uses: list[Use]) -> list[tuple[Use, Tensor]]:
    """Return the uses that the losses depend on, with the gradients of their outputs, from one backward pass."""
    if not uses or not losses.requires_grad:
        raise WrongType("the losses come from no training pass of the model: call it in training mode", name="losses")
    edges = [use.edge for use in uses]
    grads: list[Tensor | None] = list(torch.autograd.grad(losses.sum(), edges, allow_unused=True))
    reached = [(use, grad) for use, grad in zip(uses, grads, strict=True) if grad is not None]
    for use, grad in reached:
        if len(grad) != len(losses):
            raise WrongType(
                f"a layer has {len(grad)} rows in its first axis for {len(losses)} losses; the first axis of every "
                "layer's input and output must be the batch",
                name="model",
            )
        if isinstance(use.value, Tensor) and use.value._version != use.version:
            raise WrongType("the input of a layer was changed in place after the layer had read it", name="model")
    return reached


def _blocks(reached: list[tuple[Use, Tensor]]) -> list[Block]:
    """Return the uses in blocks that have no parameter in common."""
    blocks: list[tuple[set[nn.Parameter], Block]] = []
    for use, grad in reached:
        parameters, block = set(use.parameters.values()), Block([use], [grad])
        apart = []
        for others, other in blocks:
            if parameters & others:
                parameters, block = parameters | others, Block(other.uses + block.uses, other.grads + block.grads)
            else:
                apart.append((others, other))
        blocks = [*apart, (parameters, block)]
    return [_merged(block) for _, block in blocks]


def _merged(block: Block) -> Block:
    """Return several uses of one linear layer as one use with all their positions."""
    first = block.uses[0]
    if len(block.uses) == 1 or any(
        use.rule != first.rule or dict(use.parameters) != dict(first.parameters) for use in block.uses
    ):
        return block
    if not isinstance(first.rule, Linear):
        return block
    value = torch.cat([positions_of(use.value) for use in block.uses], 1)
    return Block([replace(first, value=value)], [torch.cat([positions_of(grad) for grad in block.grads], 1)])


def _modules_with_parameters(model: nn.Module) -> list[nn.Module]:
    """Return the modules that use trainable parameters: their own, or those of their parametrizations."""
    modules = []
    inside: set[nn.Module] = set()
    for module in model.modules():
        if module in inside:
            continue
        whole = is_parametrized(module)
        if whole or type(module) is nn.MultiheadAttention:
            inside.update(module.modules())
        if any(parameter.requires_grad for parameter in module.parameters(recurse=whole or module in inside)):
            modules.append(module)
    return modules


def _rows_of(losses: Tensor, units: Tensor | None, scratch: Scratch, *, is_precise: bool) -> RowGroups:
    """Return the groups of rows; one row for each unit is the same as none named."""
    if units is None:
        return RowGroups(len(losses), None, is_precise, scratch)
    if units.shape != losses.shape or units.is_floating_point():
        raise WrongType("units has one whole number for each loss", name="units")
    distinct, numbers = torch.unique(units, return_inverse=True)
    return RowGroups(len(distinct), numbers, is_precise, scratch)
