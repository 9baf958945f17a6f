"""Models that private training refuses: those whose layers mix samples, change their weights, or are compiled already.

What mixes samples without being one of these layers is found by `rehearsal`.
"""

from __future__ import annotations

from typing import Any, Final

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from tacit.privacy.errors import WrongType

NORMS_OF_BATCHES: Final = (_BatchNorm, _InstanceNorm)
"""Layers that may keep statistics of the samples of a batch."""
GROUPS_MAX: Final = 32
"""The most groups of a GroupNorm that replaces a BatchNorm."""


def require_uncompiled(model: nn.Module) -> None:
    """Raise for a model in which torch.compile has replaced modules or their calls: hooks of layers come after that."""
    if any("_orig_mod" in one._modules or one._compiled_call_impl is not None for one in model.modules()):
        raise WrongType(
            "the model is compiled; give the one before torch.compile, and call torch.compile(model) in the loop",
            name="model",
        )


def require_separate_samples(model: nn.Module) -> None:
    """Raise for layers that mix the samples of a batch, or keep statistics of them, in training mode."""
    for name, module in model.named_modules():
        if module.training and isinstance(module, NORMS_OF_BATCHES):
            require_separate(module, (), f"module '{name}'" if name else "the model")


def require_separate(module: nn.Module, _: Any, name: str = "a layer") -> None:
    """Raise for a normalisation in training mode that is no function of single samples; also a hook of each pass."""
    if not module.training:
        return
    if isinstance(module, _BatchNorm):
        raise WrongType(
            f"{name} is a {type(module).__name__} in training mode, which mixes the samples of a batch; use "
            "tacit.learn.replace_batch_norm(model), which puts GroupNorm in its place, or keep it in "
            "evaluation mode: call eval() on it after train()",
            name="model",
        )
    if isinstance(module, _InstanceNorm) and module.track_running_stats:
        raise WrongType(f"{name} keeps statistics of the samples; set track_running_stats=False", name="model")


def require_plain(module: nn.Module, *, has_rule: bool) -> None:
    """Raise for a layer whose weights are not its parameters as they stand, or are changed by its forward pass."""
    own = {name: one for name, one in module.named_parameters(recurse=False) if one.requires_grad}
    kind, trainable = type(module).__name__, set(own)
    if any(one.is_complex() for one in own.values()):
        raise WrongType(f"a {kind} has complex parameters, which private training does not support", name="model")
    if has_rule and (computed := sorted(trainable - {"weight", "bias"})):
        raise WrongType(
            f"a hook computes the weights of a {kind} from {computed[0]}, as torch.nn.utils.weight_norm does; use "
            "torch.nn.utils.parametrizations, or freeze the parameter",
            name="model",
        )
    if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.max_norm is not None and trainable:
        raise WrongType(f"a {kind} with max_norm changes its weights by the rows it reads; leave it out", name="model")


def replace_batch_norm(model: nn.Module) -> nn.Module:
    """Return the model with a GroupNorm in the place of each BatchNorm; modules are replaced in place.

    The optimizer has to be made after that, with the new parameters.
    """
    if isinstance(model, _BatchNorm):
        groups = next(
            count for count in range(min(GROUPS_MAX, model.num_features), 0, -1) if not model.num_features % count
        )
        return nn.GroupNorm(groups, model.num_features, eps=model.eps, affine=model.affine).train(model.training)
    for name, child in model.named_children():
        setattr(model, name, replace_batch_norm(child))
    return model
