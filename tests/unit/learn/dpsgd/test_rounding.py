"""Rounding: what a sample adds to a sum is within the clip and its public widening, for samples made to break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tacit.learn.dpsgd import clipping, layers
from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.rounding import BATCH_SIZE_SINGLE, single_rows, sum_error
from tacit.privacy.errors import WrongType

CLIP = 0.25
POSITIONS = 2


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class First(nn.Module):
    """A module that returns several tensors, as one that returns the first, (rows, positions, width)."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        arguments = (x, x, x) if isinstance(self.layer, nn.MultiheadAttention) else (x,)
        return self.layer(*arguments)[0]  # type: ignore[no-any-return]


class Patches(nn.Module):
    """A convolution with its positions as axis 1."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]


def small(layer: nn.Module) -> nn.Module:
    """Return a layer with one trainable weight, whose gates or scores are far from their limits for inputs of 10^4."""
    for name, parameter in layer.named_parameters():
        if name == "in_proj_weight":
            parameter.data[: len(parameter) * 2 // 3] *= 1e-2
        elif not name.startswith("out_proj"):
            parameter.data *= 1e-9 if name.startswith("weight_ih") else 0
        parameter.requires_grad_(name in ("out_proj.weight", "weight_ih_l0"))
    return First(layer)


def constant(*shape: int) -> Tensor:
    """Return one row of large values that are nearly the same at all positions."""
    return 1e4 * (1 + 3e-4 * torch.randn(1, *shape))


ADVERSARIAL: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(40, 50, bias=False), (POSITIONS, 40)),
    "convolution": (lambda: Patches(nn.Conv2d(40, 40, 3, bias=False)), (40, 3, 4)),
    "attention": (lambda: small(nn.MultiheadAttention(64, 2, bias=False, batch_first=True)), (POSITIONS, 64)),
    "LSTM": (lambda: small(nn.LSTM(96, 64, batch_first=True)), (POSITIONS, 96)),
    "GRU": (lambda: small(nn.GRU(96, 64, batch_first=True)), (POSITIONS, 96)),
}


def flat(sums: dict[str, Tensor]) -> Tensor:
    return torch.cat([part.double().flatten() for part in sums.values()])


def summed(model: nn.Module, x: Tensor, weights: Tensor, clip: float = CLIP, **options: bool) -> Tensor:
    """Return the clipped sum for losses that are weighted sums of outputs."""
    with PerSampleClipper(model) as clipper:
        sums, _ = clipper.clipped_sums((model(x) * weights).flatten(1).sum(1), clip, **options)
    return flat(sums)


def cancelling(model: nn.Module, x: Tensor) -> Tensor:
    """Return loss weights of two positions whose gradients nearly cancel, with a gradient of 8 times the clip left.

    The gradient is linear in the weights: those of the first position are fitted to those of the second one.
    """
    model.double()
    output, trainable = model(x.double()), [part for part in model.parameters() if part.requires_grad]
    width = output.shape[2]

    def gradient(weights: Tensor) -> Tensor:
        parts = torch.autograd.grad((output * weights).sum(), trainable, retain_graph=True)
        return torch.cat([part.flatten() for part in parts])

    weights = torch.zeros(width, *output.shape, dtype=torch.float64)
    weights[torch.arange(width), 0, 0, torch.arange(width)] = 1
    second = torch.zeros_like(output)
    second[0, 1] = torch.randn(width)
    columns = torch.stack([gradient(one) for one in weights], 1)
    first = torch.linalg.lstsq(columns, -gradient(second).unsqueeze(1), driver="gelsd").solution.squeeze(1)
    second[0, 0] = first
    scale = 8 * CLIP / gradient(second).norm()
    model.float()
    return (second * scale).float().detach()


def worst(name: str) -> float:
    """Return the greatest contribution of a cancelling sample over the clip, alone and beside another one."""
    make, shape = ADVERSARIAL[name]
    ratios = []
    for seed in range(8):
        torch.manual_seed(seed)
        model, x = make(), constant(*shape)
        weights = cancelling(model, x)
        other = torch.randn_like(x), torch.randn_like(weights)
        both = summed(model, torch.cat((x, other[0])), torch.cat((weights, other[1])))
        ratios += [summed(model, x, weights).norm() / CLIP, (both - summed(model, *other)).norm() / CLIP]
    return float(max(ratios))


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_a_sample_whose_values_cancel_adds_no_more_than_the_clip(name: str) -> None:
    assert worst(name) <= 1 + sum_error(2, 2)


def _in_single_precision(value: Tensor, grad: Tensor) -> Tensor:
    gram = (value @ value.transpose(1, 2)) * (grad @ grad.transpose(1, 2))
    return gram.sum((1, 2)).clamp_(min=0).double()


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_gram_forms_in_single_precision_are_noticed(name: str) -> None:
    with patch.object(layers, "gram_squared", _in_single_precision):
        assert worst(name) > 1.01


def removal(model: nn.Module, x: Tensor, weights: Tensor, clip: float) -> float:
    """Return how far the sum moves at most when one row is removed, over the clip."""
    whole = summed(model, x, weights, clip)
    everybody = torch.arange(len(x))
    kept = [everybody[everybody != row] for row in everybody]
    return float(max((whole - summed(model, x[rows], weights[rows], clip)).norm() for rows in kept)) / clip


EXTREME: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[int, ...]]] = {
    "vector": (lambda: nn.Linear(300, 3), (300,), (3,)),
    "Gram": (lambda: nn.Linear(40, 50), (2, 40), (2, 50)),
    "formed": (lambda: nn.Linear(4, 3), (9, 4), (9, 3)),
    "convolution": (lambda: Patches(nn.Conv1d(3, 5, 2)), (3, 6), (5, 5)),
    "normalisation": (lambda: nn.LayerNorm(6), (3, 6), (3, 6)),
    "LSTM": (lambda: First(nn.LSTM(3, 4, batch_first=True)), (4, 3), (4, 4)),
}


@pytest.mark.parametrize("name", EXTREME)
@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    exponents=st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), min_size=2, max_size=5),
    clip=st.sampled_from([1e-8, 0.1, 1.0, 1e8]),
)
def test_no_row_moves_a_sum_by_more_than_the_clip(
    name: str, seed: int, exponents: list[tuple[int, int]], clip: float
) -> None:
    make, shape, output = EXTREME[name]
    generator = torch.Generator().manual_seed(seed)
    scales = torch.tensor(exponents).float()
    x = torch.randn(len(scales), *shape, generator=generator) * 10 ** scales[:, :1].view(-1, *(1,) * len(shape))
    weights = torch.randn(len(x), *output, generator=generator) * 10 ** scales[:, 1:].view(-1, *(1,) * len(output))
    torch.manual_seed(seed)
    assert removal(make(), x, weights, clip) <= 1 + sum_error(len(x), len(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clipped_gradients_are_those_in_double_precision_and_never_longer(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Linear(40, 50).to(dtype)
    x, weights = torch.randn(1, 2, 40, dtype=dtype), torch.randn(1, 2, 50, dtype=dtype)
    got = summed(model, x, weights)
    model.double()
    losses = (model(x.double()) * weights.double()).sum()
    exact = torch.cat([part.flatten() for part in torch.autograd.grad(losses, list(model.parameters()))])
    wanted = exact * (CLIP / exact.norm())
    assert got.norm() <= CLIP
    assert (got - wanted).norm() <= 1e-4 * CLIP


@pytest.mark.parametrize("is_precise", [False, True])
def test_sums_of_many_rows_are_off_by_less_than_half_of_the_bound(is_precise: bool) -> None:
    rows, wide = single_rows(256), {"is_precise": True}
    torch.manual_seed(0)
    model = nn.Linear(30, 20)
    x, weights = torch.randn(rows, 30), torch.randn(rows, 20)
    parts = torch.stack([summed(model, x[row : row + 1], weights[row : row + 1], **wide) for row in range(rows)]).sum(0)
    error = float((summed(model, x, weights, is_precise=is_precise) - parts).norm()) / CLIP
    assert error <= sum_error(256, 10_000) / 2
    assert error <= 1e-9 * rows or not is_precise


def test_the_widening_is_below_one_percent_for_public_sizes() -> None:
    assert max(sum_error(size, 60_000) for size in range(1, 2 * BATCH_SIZE_SINGLE)) < 0.007
    assert sum_error(256, 60_000) < 0.005
    assert sum_error(8192, 10**7) < 0.01


def test_products_with_fewer_bits_are_not_used_for_sums() -> None:
    torch.manual_seed(0)
    model, x, weights = nn.Linear(30, 20), torch.randn(9, 30), torch.randn(9, 20)
    wanted = summed(model, x, weights, is_precise=True)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        assert torch.equal(summed(model, x, weights), wanted)
    finally:
        torch.set_float32_matmul_precision(before)


def test_autocast_is_refused_and_bfloat16_models_stay_within_the_clip() -> None:
    torch.manual_seed(0)
    model, x, weights = nn.Linear(30, 20), torch.randn(9, 30), torch.randn(9, 20)
    with torch.autocast("cpu", torch.bfloat16), PerSampleClipper(model), pytest.raises(WrongType, match="autocast"):
        model(x)
    model, x, weights = model.bfloat16(), x.bfloat16(), weights.bfloat16()
    assert removal(model, x, weights, 0.01) <= 1 + 1e-4
    model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)).bfloat16()
    assert removal(model, torch.randn(5, 4, 3).bfloat16(), torch.randn(5, 4, 2).bfloat16(), 0.01) <= 1 + 1e-4


def test_norms_that_are_too_small_are_noticed() -> None:
    torch.manual_seed(0)
    model, x, weights = nn.Linear(30, 20), torch.randn(3, 30), torch.randn(3, 20)
    assert removal(model, x, weights, CLIP) <= 1
    with patch.object(clipping, "NORM_SLACK", -0.01):
        assert removal(model, x, weights, CLIP) > 1 + sum_error(3, 3)


def bound(roundings: int, unit: Fraction) -> Fraction:
    """Return the relative error of so many roundings in a row."""
    return roundings * unit / (1 - roundings * unit)


@pytest.mark.parametrize(
    ("batch_size", "units", "rows", "value"),
    [(256, 60_000, 256 + 6 * 17, 3.1012e-3), (256, 300, 300, None), (8192, 10**6, 0, 4.7480e-4)],
)
def test_the_widening_is_that_of_the_theorem_for_two_sums_of_all_units(
    batch_size: int, units: int, rows: int, value: float | None
) -> None:
    single, double = Fraction(1, 2**24), Fraction(1, 2**53)
    of_samples = rows * bound(64 + rows // 64 + 3, single)
    of_positions = units * 64 * bound(2**15 + 3, double)
    of_chunks = units * bound(2**15, double)
    of_underflow = units * Fraction(2**16 * 2**40 * 2**30, 2**126)  # of 2^32 parameters, over the smallest clip
    wanted = float(2 * (of_samples + of_positions + of_chunks + of_underflow))
    assert sum_error(batch_size, units) == pytest.approx(wanted, rel=1e-12)
    assert value is None or wanted == pytest.approx(value, rel=1e-4)


def exact_square(value: Tensor, grad: Tensor) -> Fraction:
    """Return the squared norm of the sum over positions of the products of two vectors."""
    read, grads = ([[Fraction(one) for one in position] for position in part.tolist()] for part in (value, grad))
    entries = [
        sum(a[column] * g[row] for a, g in zip(read, grads, strict=True))
        for row in range(len(grads[0]))
        for column in range(len(read[0]))
    ]
    return Fraction(sum(one * one for one in entries))


def test_bounds_on_cancelling_gradients_are_above_the_exact_norms() -> None:
    """Terms that are together nearly 64 times as long as their sum: beyond that the sum of their norms is the bound."""
    generator = torch.Generator().manual_seed(0)
    first, grad = (torch.randn(40, 1, width, generator=generator, dtype=torch.float64) for width in (3, 2))
    second = first * (1 + 1e-3 * torch.randn(first.shape, generator=generator, dtype=torch.float64))
    value, grads = torch.cat((first, second), 1), torch.cat((grad, -0.965 * grad), 1)
    exact = [exact_square(*one) for one in zip(value, grads, strict=True)]
    spread = (value.norm(dim=2) * grads.norm(dim=2)).sum(1)
    assert all(40 < float(most) / float(one) ** 0.5 < 64 for most, one in zip(spread, exact, strict=True))
    found = layers.gram_squared(value, grads).tolist()
    assert all(Fraction(most) >= one for most, one in zip(found, exact, strict=True))


def test_norms_whose_squares_underflow_are_still_bounds() -> None:
    model, x = nn.Linear(3, 2, bias=False), torch.ones(2, 3)
    weights = torch.tensor([[1e-24], [1e-30]]).expand(2, 2)
    with PerSampleClipper(model) as clipper:
        _, norms = clipper.clipped_sums((model(x) * weights).sum(1), CLIP)
    exact = weights.double().norm(dim=1) * x.double().norm(dim=1)
    assert (exact > 0).all()
    assert (norms >= exact).all()


@pytest.mark.parametrize(
    ("inputs", "outputs", "value", "weight", "clip"),
    [(300, 3, 2.6e-23, 1e18, 1e-8), (10_000, 2_560, 2.6e-23, 1e18, 0.1), (1, 5_000, 1e12, 2.6e-23, 2.0**-30)],
)
def test_a_factor_whose_squares_underflow_makes_no_norm_too_small(
    inputs: int, outputs: int, value: float, weight: float, clip: float
) -> None:
    model = nn.Linear(inputs, outputs, bias=False)
    with PerSampleClipper(model) as clipper:
        losses = (model(torch.full((1, inputs), value)) * torch.full((1, outputs), weight)).sum(1)
        sums, _ = clipper.clipped_sums(losses, clip)
    assert float(sums["weight"].double().norm()) <= clip * (1 + sum_error(1, 1))
