"""Multi-head attention as linear layers around a product without parameters.

`forward` computes what `torch.nn.MultiheadAttention.forward` returns, and notes its projections as uses of linear
layers: one for all three inputs of self-attention, and one for each input otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.learn.dpsgd.layers import Formed, Gradients, Linear, RowGroups, Use
from tacit.learn.dpsgd.recurrent import Note
from tacit.privacy.errors import WrongType


@dataclass(frozen=True, slots=True)
class Sliced(Formed):
    """A linear layer whose parameters are the rows from `start` of the noted ones."""

    start: int
    weight: str = "in_proj_weight"
    biases: tuple[str, ...] = ("in_proj_bias",)

    def gradients(self, use: Use, grad: Tensor, rows: RowGroups) -> Gradients:
        """Return the gradient of each whole parameter for each group, 0 outside of the slice."""
        formed = {}
        for role, part in Linear(self.weight, self.biases).gradients(use, grad, rows).items():
            whole = part.new_zeros(rows.count, *use.parameters[role].shape)
            whole[:, self.start : self.start + part.shape[1]] = part
            formed[role] = whole
        return formed


def require_supported(module: nn.MultiheadAttention) -> None:
    """Raise for options that `forward` does not have."""
    if module.bias_k is not None or module.add_zero_attn:
        raise WrongType("attention with add_bias_kv or add_zero_attn cannot be trained privately", name="model")


def forward(
    module: nn.MultiheadAttention,
    note: Note,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return what the module's own forward returns, and note its linear layers."""
    if query.dim() != 3:
        raise WrongType("private training of attention needs batches of sequences (3 axes)", name="model")
    if is_causal and attn_mask is None:
        raise WrongType("is_causal is a hint beside a mask: pass attn_mask, as torch requires", name="model")
    same = query is key and key is value
    inputs = (query, key, value) if module.batch_first else tuple(part.transpose(0, 1) for part in (query, key, value))
    projected = _projected(module, note, *inputs, same=same)
    rows, heads = len(projected[0]), module.num_heads
    q, k, v = (part.view(rows, part.shape[1], heads, -1).transpose(1, 2) for part in projected)
    mask = _mask(module, attn_mask, key_padding_mask, rows, q.dtype)
    dropout = module.dropout if module.training else 0.0
    weights = None
    if need_weights:
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        weights = torch.softmax(scores if mask is None else scores + mask, 3)
        weights = functional.dropout(weights, dropout)
        mixed = weights @ v
    else:
        mixed = functional.scaled_dot_product_attention(q, k, v, mask, dropout)
    joined = mixed.transpose(1, 2).flatten(2)
    final = module.out_proj
    output = functional.linear(joined, final.weight, final.bias)
    note(Linear(), dict(final.named_parameters()), joined.detach(), output)
    output = output if module.batch_first else output.transpose(0, 1)
    return output, weights.mean(1) if weights is not None and average_attn_weights else weights


def _projected(
    module: nn.MultiheadAttention, note: Note, query: Tensor, key: Tensor, value: Tensor, *, same: bool
) -> tuple[Tensor, ...]:
    """Return the projections of query, key and value."""
    own = dict(module.named_parameters(recurse=False))
    bias, packed = own.get("in_proj_bias"), own.get("in_proj_weight")
    if same and packed is not None:
        output = functional.linear(query, packed, bias)
        note(Linear("in_proj_weight", ("in_proj_bias",)), own, query.detach(), output)
        return output.chunk(3, 2)
    outputs = []
    for index, (name, part) in enumerate((("q", query), ("k", key), ("v", value))):
        rows = slice(index * module.embed_dim, (index + 1) * module.embed_dim)
        weight = own[f"{name}_proj_weight"] if packed is None else packed[rows]
        output = functional.linear(part, weight, None if bias is None else bias[rows])
        shared = {role: parameter for role, parameter in own.items() if role.startswith("in_proj")}
        note(Sliced(rows.start), shared, part.detach(), output)
        if packed is None:
            note(
                Linear(f"{name}_proj_weight", ()),
                {f"{name}_proj_weight": own[f"{name}_proj_weight"]},
                part.detach(),
                output,
            )
        outputs.append(output)
    return tuple(outputs)


def _mask(
    module: nn.MultiheadAttention, attention: Tensor | None, padding: Tensor | None, rows: int, dtype: torch.dtype
) -> Tensor | None:
    """Return both masks as one that is added to the scores, broadcast to (rows, heads, queries, keys)."""
    total = None
    if attention is not None:
        shaped = attention if attention.dim() == 2 else attention.view(rows, module.num_heads, *attention.shape[1:])
        total = _additive(shaped, dtype)
    if padding is not None:
        columns = _additive(padding, dtype)[:, None, None, :]
        total = columns if total is None else total + columns
    return total


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -torch.inf)
