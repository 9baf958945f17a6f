"""Per-sample clipping against gradients computed one by one with autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from tacit.learn.dpsgd import layers
from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.model_checks import replace_batch_norm
from tacit.privacy.errors import InvalidInput, OutOfRange, WrongType

ROWS = 5
TOLERANCE = 1e-4

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")  # of torch.func, for weight_norm


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    yield
    torch.set_num_threads(threads)


class Sequence(nn.Module):
    """Token numbers, an embedding, and `middle`."""

    def __init__(self, middle: nn.Module, width: int = 6, padding: int | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, width, padding_idx=padding)
        self.middle = middle

    def forward(self, tokens: Tensor) -> Tensor:
        output = self.middle(self.embedding(tokens))
        return output[0] if isinstance(output, tuple) else output


class Attention(nn.Module):
    """Self- or cross-attention, with masks."""

    def __init__(self, *, cross: bool = False, batch_first: bool = True, **options: int) -> None:
        super().__init__()
        self.cross, self.batch_first = cross, batch_first
        self.attention = nn.MultiheadAttention(8, 2, batch_first=batch_first, **options)
        self.source = nn.Linear(8, options.get("kdim", 8))

    def forward(self, x: Tensor) -> Tensor:
        other = self.source(x)
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        query, key = (x, other) if self.cross else (other, other)
        if not self.batch_first:
            query, key = (query.transpose(0, 1), key.transpose(0, 1)) if self.cross else [other.transpose(0, 1)] * 2
        output, _ = self.attention(query, key, key, attn_mask=mask, need_weights=self.cross)
        return output if self.batch_first else output.transpose(0, 1)


class Recurrent(nn.Module):
    """A recurrent layer whose outputs and last states both reach the loss."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        if not self.layer.batch_first:
            x = x.transpose(0, 1)
        output, last = self.layer(x)
        if not self.layer.batch_first:
            output = output.transpose(0, 1)
        states = last if isinstance(last, tuple) else (last,)
        return torch.cat([output.flatten(1), *(state.transpose(0, 1).flatten(1) for state in states)], 1)


class Twice(nn.Module):
    """One layer that is called twice, and a table that is also an output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.layer = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)
        self.output = nn.Linear(6, 11, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.norm(torch.tanh(self.layer(self.embedding(tokens))))
        return self.output(self.norm(torch.tanh(self.layer(x))))


class LowRank(nn.Module):
    """A frozen layer with a trainable low-rank update, and a scale of the module's own."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(6, 4).requires_grad_(False)
        self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 4, bias=False)
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.shift = nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        return (self.base(x) + self.scale * self.up(self.down(x))) * self.shift.exp()


def images(*size: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(ROWS, *size)


def tokens() -> Tensor:
    return torch.randint(0, 5, (ROWS, 7))


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4, bias=False)), images(6)),
    "linear, Gram": (lambda: nn.Linear(40, 50), images(2, 40)),
    "linear, formed": (lambda: nn.Linear(3, 2), images(9, 3)),
    "linear, two axes": (lambda: nn.Linear(6, 5), images(3, 4, 6)),
    "in-place": (lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(inplace=True), nn.Linear(9, 4)), images(6)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), images(4, 9)),
    "conv2d": (lambda: nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), nn.Conv2d(3, 4, 2, 2)), images(2, 6, 6)),
    "conv2d, dilation": (lambda: nn.Conv2d(2, 4, (3, 2), (1, 2), (2, 1), (2, 1), bias=False), images(2, 9, 8)),
    "conv2d, same": (lambda: nn.Conv2d(2, 4, 3, padding="same", padding_mode="reflect"), images(2, 5, 5)),
    "conv2d, depthwise": (lambda: nn.Conv2d(4, 8, 3, padding=1, groups=4), images(4, 5, 5)),
    "conv2d, Gram": (lambda: nn.Conv2d(40, 40, 3), images(40, 4, 4)),
    "conv3d": (lambda: nn.Conv3d(2, 3, (1, 2, 3), stride=(1, 2, 1), padding=(0, 1, 1)), images(2, 3, 4, 5)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(2, 3, 3), images(2, 4, 4)),
    "embedding": (lambda: Sequence(nn.Linear(6, 3)), tokens),
    "embedding, padding": (lambda: Sequence(nn.Linear(6, 3), padding=2), tokens),
    "layer norm": (lambda: nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh()), images(4, 6)),
    "layer norm, two axes": (lambda: nn.LayerNorm((4, 6)), images(3, 4, 6)),
    "rms norm": (lambda: nn.Sequential(nn.Linear(6, 8), nn.RMSNorm(8), nn.Tanh()), images(6)),
    "group norm": (lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6), nn.Tanh()), images(2, 5, 5)),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), images(3, 4, 4)),
    "attention": (lambda: Sequence(Attention(), 8), tokens),
    "attention, cross": (lambda: Sequence(Attention(cross=True), 8), tokens),
    "attention, other widths": (lambda: Sequence(Attention(cross=True, kdim=5, vdim=5), 8), tokens),
    "attention, time first": (lambda: Sequence(Attention(batch_first=False), 8), tokens),
    "transformer": (
        lambda: Sequence(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2), 8),
        tokens,
    ),
    "LSTM": (lambda: Sequence(Recurrent(nn.LSTM(6, 5, batch_first=True))), tokens),
    "LSTM, deep": (lambda: Sequence(Recurrent(nn.LSTM(6, 5, num_layers=2, bidirectional=True))), tokens),
    "LSTM, no bias": (lambda: Recurrent(nn.LSTM(6, 5, bias=False, batch_first=True)), images(4, 6)),
    "GRU": (lambda: Sequence(Recurrent(nn.GRU(6, 5, batch_first=True))), tokens),
    "GRU, deep": (lambda: Recurrent(nn.GRU(6, 5, num_layers=2, bidirectional=True)), images(4, 6)),
    "low rank": (lambda: nn.Sequential(LowRank(), nn.Tanh(), nn.Linear(4, 3)), images(6)),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 3)), images(6)),
    "shared": (Twice, tokens),
}


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    output = model(x).flatten(1)
    return (output * torch.linspace(-1, 2, output.shape[1]) + output.square()).sum(1)


def one_by_one(model: nn.Module, x: Tensor, units: Tensor | None = None) -> list[dict[str, Tensor]]:
    parameters = {name: part for name, part in model.named_parameters() if part.requires_grad}
    grads = []
    for unit in range(len(x)) if units is None else units.unique():
        rows = x[unit : unit + 1] if units is None else x[units == unit]
        values = torch.autograd.grad(loss_of(model, rows).sum(), list(parameters.values()))
        grads.append(dict(zip(parameters, values, strict=True)))
    return grads


def norm_of(grads: dict[str, Tensor]) -> Tensor:
    return torch.stack([part.square().sum() for part in grads.values()]).sum().sqrt()


def expected(grads: list[dict[str, Tensor]], clip: float) -> dict[str, Tensor]:
    factors = [(clip / norm_of(one)).clamp(max=1) for one in grads]
    return {
        name: torch.stack([factor * one[name] for factor, one in zip(factors, grads, strict=True)]).sum(0)
        for name in grads[0]
    }


def assert_close(got: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert got.keys() == wanted.keys()
    scale = max(float(part.abs().max()) for part in wanted.values())
    for name, part in wanted.items():
        assert float((got[name] - part).abs().max()) < TOLERANCE * scale, name


def check(model: nn.Module, x: Tensor, units: Tensor | None = None) -> None:
    grads = one_by_one(model, x, units)
    norms = torch.stack([norm_of(one) for one in grads]).double()
    clip = float(norms.median())
    with PerSampleClipper(model) as clipper:
        sums, got = clipper.clipped_sums(loss_of(model, x), clip, units)
    assert torch.allclose(got.double(), norms, rtol=TOLERANCE)
    assert_close(sums, expected(grads, clip))


@pytest.mark.parametrize("name", CASES)
def test_clipped_sums_are_those_of_gradients_computed_one_by_one(name: str) -> None:
    make, data = CASES[name]
    check(make(), data())


@pytest.mark.parametrize("name", CASES)
def test_rows_of_one_unit_are_added_before_they_are_clipped(name: str) -> None:
    make, data = CASES[name]
    check(make(), data(), torch.tensor([4, 0, 4, 9, 0]))


@pytest.mark.parametrize("name", ["LSTM, deep", "GRU, deep", "attention, cross", "transformer", "LSTM"])
def test_replaced_forward_methods_return_what_the_module_returns(name: str) -> None:
    make, data = CASES[name]
    model, x = make(), data()
    plain = model(x)
    with PerSampleClipper(model):
        assert torch.allclose(model(x), plain, atol=1e-6)
    grads = torch.autograd.grad(loss_of(model, x).sum(), list(model.parameters()))
    assert all(torch.isfinite(part).all() for part in grads)


def test_per_layer_clipping_bounds_each_layer() -> None:
    model, x = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)), torch.randn(ROWS, 6)
    grads = one_by_one(model, x)
    with PerSampleClipper(model, "per-layer") as clipper:
        sums, _ = clipper.clipped_sums(loss_of(model, x), 0.5)
    for layer in ("0.", "2."):
        part = [{name: value for name, value in one.items() if name.startswith(layer)} for one in grads]
        assert_close({name: sums[name] for name in part[0]}, expected(part, 0.5 / 2**0.5))


def test_automatic_clipping_normalises_every_gradient() -> None:
    model, x = nn.Linear(6, 4), torch.randn(ROWS, 6)
    grads = one_by_one(model, x)
    with PerSampleClipper(model, "automatic") as clipper:
        sums, norms = clipper.clipped_sums(loss_of(model, x), 0.5)
    wanted = {
        name: torch.stack([0.5 / (norm + 0.01) * one[name] for norm, one in zip(norms, grads, strict=True)]).sum(0)
        for name in grads[0]
    }
    assert_close(sums, wanted)


def test_frozen_parameters_have_no_sum_and_are_not_noted() -> None:
    model, x = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)), torch.randn(ROWS, 6)
    model[0].requires_grad_(False)
    check(model, x)
    with PerSampleClipper(model) as clipper:
        loss_of(model, x)
        assert len(clipper._uses) == 1


def test_passes_for_evaluation_are_not_noted() -> None:
    model, x = nn.Sequential(nn.Linear(6, 4), Recurrent(nn.LSTM(4, 3, batch_first=True))), torch.randn(ROWS, 2, 6)
    with PerSampleClipper(model) as clipper:
        with torch.no_grad():
            model(x)
        model.eval()
        model(x)
        assert not clipper._uses
        model.train()
        model(x)
        assert clipper._uses
        clipper.forget()
        assert not clipper._uses


def test_a_pass_whose_losses_are_not_given_does_not_count() -> None:
    model, x = nn.Linear(6, 4), torch.randn(ROWS, 6)
    with PerSampleClipper(model) as clipper:
        model(torch.randn(3, 6))
        _, norms = clipper.clipped_sums(loss_of(model, x), 1.0)
    assert torch.allclose(norms, torch.stack([norm_of(one) for one in one_by_one(model, x)]).double(), rtol=TOLERANCE)


def test_closing_removes_every_hook() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.LSTM(4, 3, batch_first=True))
    with PerSampleClipper(model):
        assert model[0]._forward_hooks
        assert "forward" in vars(model[1])
    assert not model[0]._forward_hooks
    assert "forward" not in vars(model[1])


def test_an_empty_batch_gives_zeros() -> None:
    model = nn.Linear(6, 4)
    with PerSampleClipper(model) as clipper:
        sums, norms = clipper.clipped_sums(loss_of(model, torch.randn(0, 6)), 1.0)
    assert sums.keys() == {"weight", "bias"}
    assert all(not part.any() for part in sums.values())
    assert norms.shape == (0,)


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, 1e30])
@pytest.mark.parametrize("name", ["linear", "conv2d", "layer norm", "low rank", "LSTM, no bias", "linear, Gram"])
def test_a_sample_that_is_not_finite_adds_nothing(name: str, poison: float) -> None:
    make, data = CASES[name]
    model, x = make(), data()
    wanted = expected(one_by_one(model, torch.cat((x[:2], x[3:]))), 1.0)
    x[2] = poison
    with PerSampleClipper(model) as clipper:
        sums, norms = clipper.clipped_sums(loss_of(model, x), 1.0)
    if torch.isfinite(norms).all():  # bounded layers turn large inputs into finite gradients
        assert poison == 1e30
        return
    assert torch.isinf(norms).tolist() == [False, False, True, False, False]
    assert_close(sums, wanted)


def test_a_batch_without_a_finite_sample_gives_zeros() -> None:
    model, x = nn.Linear(6, 4), torch.full((ROWS, 6), torch.nan)
    with PerSampleClipper(model) as clipper:
        sums, norms = clipper.clipped_sums(loss_of(model, x), 1.0)
    assert all(not part.any() for part in sums.values())
    assert torch.isinf(norms).all()


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.SyncBatchNorm])
def test_batch_norm_is_refused_and_can_be_replaced(kind: type[nn.Module]) -> None:
    model = nn.Sequential(nn.Conv1d(2, 6, 3), kind(6), nn.Tanh())
    with pytest.raises(WrongType, match="replace_batch_norm"):
        PerSampleClipper(model)
    check(replace_batch_norm(model), torch.randn(ROWS, 2, 5))


def test_batch_norm_that_is_switched_to_training_mode_later_is_refused_in_every_pass() -> None:
    norm = nn.BatchNorm1d(4)
    model, x = nn.Sequential(nn.Linear(6, 4), norm), torch.randn(ROWS, 6)
    with PerSampleClipper(model.eval()) as clipper:
        model.train()
        with pytest.raises(WrongType, match="mixes the samples"):
            model(x)
        with torch.no_grad(), pytest.raises(WrongType, match="mixes the samples"):
            model(x)  # would keep statistics of the rows
        norm.eval()
        losses = loss_of(model, x)
        norm.train()
        with pytest.raises(WrongType, match="mixes the samples"):
            clipper.clipped_sums(losses, 1.0)
        norm.eval()
        clipper.clipped_sums(loss_of(model, x), 1.0)
        model.add_module("later", nn.BatchNorm1d(4, affine=False))
        with pytest.raises(WrongType, match=r"mixes the samples|keeps numbers"):
            clipper.clipped_sums(loss_of(model, x), 1.0)
    assert not norm.num_batches_tracked


@pytest.mark.parametrize("compiled", ["whole", "layer", "in place"])
def test_a_compiled_model_is_refused(compiled: str) -> None:
    model: nn.Module = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
    if compiled == "whole":
        model = torch.compile(model, backend="eager")
    elif compiled == "layer":
        model.add_module("0", torch.compile(model[0], backend="eager"))
    else:
        model.compile(backend="eager")
    with pytest.raises(WrongType, match="before torch"):
        PerSampleClipper(model)


@pytest.mark.soak
@pytest.mark.filterwarnings("default")
def test_a_model_that_is_compiled_later_has_the_same_sums() -> None:
    model, x = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)), torch.randn(ROWS, 6)
    with PerSampleClipper(model) as clipper:
        plain, _ = clipper.clipped_sums(loss_of(model, x), 0.1)
        compiled, _ = clipper.clipped_sums(loss_of(torch.compile(model, backend="aot_eager"), x), 0.1)
    assert plain.keys() == compiled.keys()
    for name, one in plain.items():
        assert torch.allclose(one, compiled[name], atol=1e-7), name


def test_causal_attention_without_a_mask_is_refused() -> None:
    model, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(ROWS, 4, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    with PerSampleClipper(model):
        with pytest.raises(WrongType, match="attn_mask"):
            model(x, x, x, is_causal=True)
        found, _ = model(x, x, x, attn_mask=mask, is_causal=True)
    torch.testing.assert_close(found, model(x, x, x, attn_mask=mask, is_causal=True)[0])


def test_statistics_of_instance_norm_are_refused_in_every_pass() -> None:
    model = nn.InstanceNorm1d(3, affine=True, track_running_stats=True).eval()
    with PerSampleClipper(model):
        with pytest.raises(WrongType, match="keeps statistics"):
            model.train()(torch.randn(ROWS, 3, 4))
        model.eval()(torch.randn(ROWS, 3, 4))


class Mixing(nn.Module):
    """Subtracts the mean of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


class Outside(nn.Module):
    """Uses a layer's weight without calling the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.read = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.called(x) @ self.read.weight


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (nn.Sequential(nn.Linear(6, 4), Mixing()), torch.ones(ROWS, 6)),
        (Outside(), torch.ones(ROWS, 6)),
        (nn.Sequential(nn.Unflatten(1, (3, 2)), nn.Flatten(0, 1), nn.Linear(2, 4), nn.Unflatten(0, (-1, 3))), None),
    ],
    ids=["mixing", "outside", "batch not first"],
)
def test_models_that_mix_samples_or_hide_parameters_are_refused(model: nn.Module, x: Tensor | None) -> None:
    with PerSampleClipper(model) as clipper, pytest.raises(WrongType):
        clipper.clipped_sums(loss_of(model, torch.ones(ROWS, 6) if x is None else x), 1.0)


def test_bad_arguments_are_refused() -> None:
    model, x = nn.Linear(6, 4), torch.randn(ROWS, 6)
    with pytest.raises(InvalidInput):
        PerSampleClipper(model, "other")  # type: ignore[arg-type]
    with pytest.raises(WrongType, match="no trainable"):
        PerSampleClipper(nn.Linear(6, 4).requires_grad_(False))
    with PerSampleClipper(model) as clipper:
        with pytest.raises(OutOfRange):
            clipper.clipped_sums(loss_of(model, x), 0.0)
        with pytest.raises(WrongType, match="one loss for each"):
            clipper.clipped_sums(loss_of(model, x).mean(), 1.0)
        with pytest.raises(WrongType, match="units"):
            clipper.clipped_sums(loss_of(model, x), 1.0, torch.zeros(3, dtype=torch.long))


WRONG_NORMS = {
    layers.Linear: ("linear", "linear, Gram", "linear, formed", "LSTM", "GRU", "attention"),
    layers.Convolution: ("conv1d", "conv2d", "conv2d, Gram"),
    layers.Embedding: ("embedding",),
    layers.Formed: ("layer norm", "group norm", "instance norm", "rms norm", "low rank"),
}


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, names in WRONG_NORMS.items() for name in names])
def test_a_wrong_norm_of_any_layer_is_noticed(monkeypatch: pytest.MonkeyPatch, rule: type, name: str) -> None:
    healthy = rule.norms

    def wrong(self: layers.Rule, use: layers.Use, grad: Tensor, rows: layers.Rows) -> tuple[Tensor, layers.Gradients]:
        squares, formed = healthy(self, use, grad, rows)
        return 0.9 * squares, formed

    make, data = CASES[name]
    model, x = make(), data()
    monkeypatch.setattr(rule, "norms", wrong)
    with pytest.raises(AssertionError):
        check(model, x)


def _forgets_the_bias(rule: layers.Linear, use: layers.Use, grad: Tensor, rows: layers.Rows) -> Tensor:
    return grad.square().sum(1) * use.value.square().sum(1)


def _clips_the_batch(self: PerSampleClipper, norms: Tensor, clip: float) -> Tensor:
    return (clip / norms.sum()).clamp(max=1).expand_as(norms)


@pytest.mark.parametrize(
    ("target", "name", "bug"),
    [
        (layers.Linear, "_vector_norms", _forgets_the_bias),
        (layers.Linear, "_vector_norms", lambda *_: torch.ones(ROWS)),
        (PerSampleClipper, "_factors", _clips_the_batch),
        (PerSampleClipper, "_factors", lambda _, norms, clip: torch.ones_like(norms)),
    ],
    ids=["norm without bias", "constant norm", "clip per batch", "no clip"],
)
def test_planted_bugs_are_noticed(monkeypatch: pytest.MonkeyPatch, target: type, name: str, bug: object) -> None:
    monkeypatch.setattr(target, name, bug)
    with pytest.raises(AssertionError):
        check(nn.Linear(6, 4), torch.randn(ROWS, 6))
