"""Which rule of `layers` computes the per-sample gradients of a layer of torch.nn."""

from __future__ import annotations

from typing import Any, Final

from torch import nn
from torch.nn import functional

from tacit.learn.dpsgd.layers import Convolution, Embedding, Linear, Normalization, Rule

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
