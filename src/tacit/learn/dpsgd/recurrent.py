"""LSTM and GRU as loops over time whose gate gradients are kept, so that their weights are linear layers.

The gates of a step are x_t W_ih^T + b_ih and h_{t-1} W_hh^T + b_hh. With the gradients of these two sums for all steps,
the gradients of the four parameters are those of linear layers that read x and the previous hidden states. `forward`
computes what `torch.nn.LSTM.forward` and `torch.nn.GRU.forward` return, and notes both linear layers with the edges of
the autograd graph where their gradients arrive. The loops write into preallocated arrays, and the backward loops have
one matrix product and a few element-wise operations a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.learn.dpsgd.layers import Linear, Rule
from tacit.privacy.errors import WrongType

Note = Callable[[Rule, Mapping[str, nn.Parameter], Any, Tensor], None]
"""Notes a use of a rule: its parameters by role, what it read, and its output in the autograd graph."""


class LSTMLoop(torch.autograd.Function):
    """The steps of an LSTM; gates are in the order input, forget, cell, output."""

    @staticmethod
    def forward(ctx: Any, inner: Tensor, hidden_bias: Tensor, weight: Tensor, first: Tensor, cell: Tensor) -> Any:
        """Return the hidden states, from the first to the last one, and the last cell state; time is axis 0."""
        steps, rows, _ = inner.shape
        size = weight.shape[1]
        gates = torch.add(inner, hidden_bias, out=inner.new_empty(inner.shape))  # what a step reads in one piece
        turned = weight.t().clone(memory_format=torch.contiguous_format)
        for part in (gates, turned):
            part[..., 2 * size : 3 * size] *= 2  # tanh(x) = 2 sigmoid(2 x) - 1: one function for all gates
        hidden, cells = inner.new_empty(steps + 1, rows, size), inner.new_empty(steps + 1, rows, size)
        squashed = inner.new_empty(steps, rows, size)
        hidden[0], cells[0] = first, cell
        i, f, g, o = (part.unbind() for part in gates.view(steps, rows, 4, size).unbind(2))
        sums, states, outputs, tanhs = gates.unbind(), cells.unbind(), hidden.unbind(), squashed.unbind()
        for step in range(steps):
            sums[step].addmm_(outputs[step], turned).sigmoid_()
            torch.mul(f[step], states[step], out=states[step + 1])
            states[step + 1].addcmul_(i[step], g[step].mul_(2).sub_(1))
            torch.mul(states[step + 1], 2, out=tanhs[step]).sigmoid_().mul_(2).sub_(1)
            torch.mul(o[step], tanhs[step], out=outputs[step + 1])
        ctx.save_for_backward(gates, cells, squashed, weight)
        return hidden, cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the gradients of the gates (twice, for input and hidden sums) and of the first states."""
        grad, grad_cell = grads
        gates, cells, squashed, weight = ctx.saved_tensors
        steps, rows, size = squashed.shape
        i, f, g, o = gates.view(steps, rows, 4, size).unbind(2)
        through_cell = torch.addcmul(o, o, squashed.square(), value=-1).unbind()
        deltas = torch.empty_like(gates)
        local = deltas.view(steps, rows, 4, size)  # derivatives first, multiplied in place by the loop
        torch.addcmul(i, i, i, value=-1, out=local[:, :, 0]).mul_(g)
        torch.addcmul(f, f, f, value=-1, out=local[:, :, 1]).mul_(cells[:-1])
        torch.addcmul(i, i, g.square(), value=-1, out=local[:, :, 2])
        torch.addcmul(o, o, o, value=-1, out=local[:, :, 3]).mul_(squashed)
        hidden, cell = grad[steps], grad_cell
        keeps, incoming, sums = f.unbind(), grad.unbind(), deltas.unbind()
        of_cell, of_output = local[:, :, :3].unbind(), local[:, :, 3].unbind()
        for step in range(steps - 1, -1, -1):
            cell = torch.addcmul(cell, hidden, through_cell[step])
            of_cell[step].mul_(cell.unsqueeze(1))
            of_output[step].mul_(hidden)
            hidden = torch.addmm(incoming[step], sums[step], weight)
            cell.mul_(keeps[step])
        by_row = deltas.transpose(0, 1).contiguous().transpose(0, 1)
        return by_row, by_row, None, hidden, cell


class GRULoop(torch.autograd.Function):
    """The steps of a GRU; gates are in the order reset, update, new."""

    @staticmethod
    def forward(ctx: Any, inner: Tensor, hidden_bias: Tensor, weight: Tensor, first: Tensor) -> Any:
        """Return the hidden states, from the first to the last one; time is axis 0."""
        steps, rows, _ = inner.shape
        size = weight.shape[1]
        gates = inner.clone(memory_format=torch.contiguous_format)
        hidden, news = inner.new_empty(steps + 1, rows, size), inner.new_empty(steps, rows, size)
        hidden[0] = first
        turned, bias = weight.t(), hidden_bias[0]
        for step in range(steps):
            sums = torch.addmm(bias, hidden[step], turned)
            news[step] = sums[:, 2 * size :]
            gate = gates[step]
            gate[:, : 2 * size].add_(sums[:, : 2 * size]).sigmoid_()
            new = gate[:, 2 * size :].addcmul_(gate[:, :size], news[step]).tanh_()
            torch.lerp(new, hidden[step], gate[:, size : 2 * size], out=hidden[step + 1])
        ctx.save_for_backward(gates, hidden, news, weight)
        return hidden

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the gradients of the input sums, of the hidden sums, and of the first state."""
        grad = grads[0]
        gates, states, news, weight = ctx.saved_tensors
        steps, rows, size = news.shape
        r, z, n = gates.view(steps, rows, 3, size).unbind(2)
        of_new = (1 - z) * (1 - n * n)
        deltas = torch.empty_like(gates)
        local = deltas.view(steps, rows, 3, size)  # derivatives first, multiplied in place by the loop
        torch.mul(of_new * news, r - r * r, out=local[:, :, 0])
        torch.mul(states[:-1] - n, z - z * z, out=local[:, :, 1])
        torch.mul(of_new, r, out=local[:, :, 2])
        hidden = grad[steps]
        for step in range(steps - 1, -1, -1):
            local[step].mul_(hidden.unsqueeze(1))
            of_new[step].mul_(hidden)
            hidden = torch.addmm(grad[step], deltas[step], weight).addcmul_(hidden, z[step])
        inner = torch.cat((deltas[:, :, : 2 * size], of_new), 2)
        return inner, deltas, None, hidden


def require_supported(module: nn.LSTM | nn.GRU) -> None:
    """Raise for options that the loops do not have."""
    if getattr(module, "proj_size", 0):
        raise WrongType("an LSTM with proj_size cannot be trained privately; use a Linear after it", name="model")


def forward(module: nn.LSTM | nn.GRU, note: Note, value: Any, states: Any = None) -> tuple[Tensor, Any]:
    """Return what the module's own forward returns, and note its linear layers."""
    if not isinstance(value, Tensor) or value.dim() != 3:
        raise WrongType("private training of LSTM and GRU needs padded batches of sequences (3 axes)", name="model")
    batch_first = value if module.batch_first else value.transpose(0, 1)
    directions = 2 if module.bidirectional else 1
    is_lstm = isinstance(module, nn.LSTM)
    if states is None:
        zero = value.new_zeros(module.num_layers * directions, len(batch_first), module.hidden_size)
        states = (zero, zero) if is_lstm else zero
    firsts = states if is_lstm else (states,)
    lasts: list[tuple[Tensor, ...]] = []
    for layer in range(module.num_layers):
        outputs = []
        for direction in range(directions):
            suffix = f"_l{layer}" + "_reverse" * direction
            read = batch_first.flip(1) if direction else batch_first
            output, *last = _layer(module, note, suffix, read, [part[len(lasts)] for part in firsts])
            outputs.append(output.flip(1) if direction else output)
            lasts.append(tuple(last))
        batch_first = torch.cat(outputs, 2) if directions == 2 else outputs[0]
        if module.dropout and layer < module.num_layers - 1:
            batch_first = functional.dropout(batch_first, module.dropout, module.training)
    stacked = tuple(torch.stack(part) for part in zip(*lasts, strict=True))
    return batch_first if module.batch_first else batch_first.transpose(0, 1), stacked if is_lstm else stacked[0]


def _layer(module: nn.LSTM | nn.GRU, note: Note, suffix: str, value: Tensor, firsts: list[Tensor]) -> list[Tensor]:
    """Return the outputs (batch first) and the last states of one layer in one direction."""
    own = {name: part for name, part in module.named_parameters(recurse=False) if name.endswith(suffix)}
    inner_roles, hidden_roles = ((f"weight_{kind}{suffix}", f"bias_{kind}{suffix}") for kind in ("ih", "hh"))
    inner = functional.linear(value, own[inner_roles[0]], own.get(inner_roles[1]))
    bias: Tensor = own[hidden_roles[1]] if module.bias else inner.new_zeros(inner.shape[2])
    if not bias.requires_grad:
        bias = bias.detach().requires_grad_()
    hidden_bias = bias.expand_as(inner)
    note(Linear(inner_roles[0], inner_roles[1:]), _named(own, inner_roles), value.detach(), inner)
    arguments = inner.transpose(0, 1), hidden_bias.transpose(0, 1), own[hidden_roles[0]].detach(), *firsts
    if isinstance(module, nn.LSTM):
        hidden, cell = LSTMLoop.apply(*arguments)  # type: ignore[no-untyped-call]
        last = [hidden[-1], cell]
    else:
        hidden = GRULoop.apply(*arguments)  # type: ignore[no-untyped-call]
        last = [hidden[-1]]
    read = hidden.detach()[:-1].transpose(0, 1).contiguous()
    note(Linear(hidden_roles[0], hidden_roles[1:]), _named(own, hidden_roles), read, hidden_bias)
    return [hidden[1:].transpose(0, 1), *last]


def _named(own: Mapping[str, nn.Parameter], roles: tuple[str, ...]) -> dict[str, nn.Parameter]:
    return {role: own[role] for role in roles if role in own}
