"""Models that combine the rows of a batch are refused on made-up rows, and never for what a private row holds."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

import tacit
from tacit.learn.dpsgd import rehearsal
from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.rehearsal import Call
from tacit.privacy.errors import WrongType


class InputStatistics(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0, unbiased=False) + 1e-3)


class FunctionalBatchNorm(nn.Module):
    def forward(self, x):
        return functional.batch_norm(x, None, None, training=True)


class DetachedStatistics(nn.Module):
    def forward(self, x):
        return x - x.mean(0).detach()


class WeakStatistics(nn.Module):
    """Moves rows of equal sizes by a twentieth of their mean, which is small beside each of them."""

    def __init__(self):
        super().__init__()
        self.equal = nn.LayerNorm(8, elementwise_affine=False)

    def forward(self, x):
        rows = self.equal(x)
        return rows + rows.mean(0).detach() / 20


class RunningStatistics(nn.Module):
    def __init__(self, *, in_place: bool):
        super().__init__()
        self.in_place = in_place
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        with torch.no_grad():
            moved = 0.9 * self.mean + 0.1 * x.mean(0)
            if self.in_place:
                self.mean.copy_(moved)
            else:
                self.mean = moved
        return x


class CountingCalls(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x


class FunctionalDropout(nn.Module):
    def forward(self, x):
        return functional.dropout(x, 0.5, self.training)


class Scale(nn.Module):
    """A layer that has no rule of its own."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 8) * 0.1)

    def forward(self, x):
        return x @ self.w


def standardised(x):
    return (x - x.mean(0)) / (x.std(0) + 1e-3)


def head(size=3):
    return nn.Linear(8, size)


class Mixing(nn.Module):
    """A model that standardises its rows by the batch, in a way that `hide` makes hard to see."""

    def __init__(self, hide):
        super().__init__()
        self.fc, self.hide = head(), hide

    def forward(self, x):
        return self.hide(self.fc, x)


@dataclass
class Scores:
    logits: torch.Tensor


def zeroed(layer):
    for one in layer.parameters():
        nn.init.zeros_(one)
    return layer


class ZeroBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.branch = head(), zeroed(head())

    def forward(self, x):
        return self.fc(x) + self.branch(standardised(x))


class ZeroFactor(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor, self.fc = nn.Parameter(torch.zeros(())), head()

    def forward(self, x):
        return self.fc(x) + self.factor * standardised(x)[:, :3]


class GradientOverItsLength(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x.clone()

    @staticmethod
    def backward(_, grad):
        return 20 * grad / grad.norm()


class MixedBackward(nn.Module):
    def __init__(self, *, is_hook):
        super().__init__()
        self.first, self.fc, self.is_hook = nn.Linear(8, 8), head(), is_hook

    def forward(self, x):
        inner = self.first(x).tanh()
        if not self.is_hook:
            return self.fc(GradientOverItsLength.apply(inner))
        inner.register_hook(lambda grad: grad / grad.abs().max())
        return self.fc(inner)


def gate(fc, x):
    return fc(standardised(x) if torch.rand(()) < 0.5 else x)


def in_pairs(fc, x):
    return fc(x - x.view(-1, 2, 8).mean(1).repeat_interleave(2, 0)) if len(x) % 2 == 0 else fc(x)


HIDDEN = {
    "in an object": lambda fc, x: Scores(fc(standardised(x))),
    "flattened positions": lambda fc, x: fc(standardised(x))[:, None].expand(-1, 5, -1).flatten(0, 1),
    "time-major output": lambda fc, x: fc(standardised(x)).expand(5, -1, -1),
    "of a logarithm": lambda fc, x: fc(standardised(torch.log(x))),
    "beside a masked number": lambda fc, x: fc(standardised(x)) + torch.tensor([0.0, 0.0, -1e9]),
    "beside large numbers": lambda fc, x: torch.cat([fc(standardised(x)), 1e6 + 1e5 * x], 1),
    "taken by chance": gate,
    "in pairs": in_pairs,
    "as scores": lambda fc, x: torch.softmax(fc(x - x.mean(0)), 1),
}


def refusal(model, *arguments, rows=6):
    with pytest.raises(WrongType) as found:
        Call.of(model, (arguments, {}), rows).require_rows_apart(layers_of(model))
    return str(found.value)


def layers_of(model):
    return {one: True for one in model.modules() if any(True for _ in one.parameters(recurse=False))}


@pytest.mark.parametrize("hide", HIDDEN)
def test_mixed_rows_are_seen_wherever_they_show(hide):
    assert "other rows of the batch" in refusal(Mixing(HIDDEN[hide]), torch.rand(6, 8))


HIDDEN_INSIDE = {
    "a branch of zeros": ZeroBranch(),
    "a factor of 0": ZeroFactor(),
    "a head of zeros": zeroed(Mixing(lambda fc, x: fc(standardised(x)))),
    "a hook of a gradient": MixedBackward(is_hook=True),
    "an own backward pass": MixedBackward(is_hook=False),
}


@pytest.mark.parametrize("model", HIDDEN_INSIDE.values(), ids=HIDDEN_INSIDE)
def test_mixed_rows_are_seen_in_inputs_and_gradients_of_layers(model):
    assert "other rows of the batch" in refusal(model, torch.rand(6, 8))


def test_the_batch_is_the_axis_of_the_losses():
    class Conditional(nn.Module):
        def forward(self, t, x):
            return standardised(x) * t.sum()

    assert "other rows of the batch" in refusal(Conditional(), torch.ones(3), torch.rand(6, 8))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda x: x.square().mean(), "none of its outputs follows the batch"),
        (lambda x: torch.ones_like(x), "the same for all rows"),
        (lambda x: x * torch.nan, "no numbers"),
        (lambda _: (_ for _ in ()).throw(ValueError("odd")), "odd"),
    ],
)
def test_a_model_that_shows_nothing_is_refused_unless_its_rows_are_stated_to_be_apart(answer, why):
    class Answering(nn.Module):
        def forward(self, x):
            return answer(x)

    assert why in refusal(Answering(), torch.rand(6, 8))
    assert "rows_apart=True" in refusal(Answering(), torch.rand(6, 8))


class Shifted(nn.Module):
    """A layer without a rule, with arguments that are not of the rows."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 3))

    def forward(self, x, shift, scale=1.0, mask=None):
        return scale * (x - shift) @ self.w if mask is None else x


def test_a_statistic_of_the_batch_that_a_layer_is_given_is_refused():
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.own = Shifted()

        def forward(self, x):
            return self.own(x, x.mean(0).detach())

    assert "other rows of the batch" in refusal(Centred(), torch.rand(6, 8))


def test_numbers_and_nothing_are_accepted_as_arguments_of_a_layer():
    model, x = Shifted(), torch.rand(6, 8)
    with PerSampleClipper(model) as clipper:
        sums, _ = clipper.clipped_sums(model(x, x / 2, scale=2.0, mask=None).sum(1), 2.0**30)
    assert torch.allclose(sums["w"], x.sum(0)[:, None].expand(8, 3), rtol=1e-5)


@pytest.mark.parametrize("rows", [5, 8])
def test_a_tensor_that_is_not_along_the_batch_is_refused_whatever_its_size(rows):
    """With eight rows it has as many entries, and each row would get another one."""

    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.own = Shifted()

        def forward(self, x):
            return self.own(x, torch.arange(8.0))

    with PerSampleClipper(Positions()) as clipper:
        clipper.forget(rows)
        with pytest.raises(WrongType, match="first axis is not the batch"):
            clipped(clipper, torch.rand(rows, 8))


class StatefulOnce(nn.Module):
    """Initialises itself from the first batch, as ActNorm does."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.shift = kind, nn.Parameter(torch.zeros(8), requires_grad=kind == "trained")
        self.register_buffer("largest", torch.zeros(8))
        self.ready = False

    def forward(self, x):
        if self.kind == "largest":
            self.largest = torch.maximum(self.largest, x.detach().amax(0))
        elif not self.ready:
            self.shift.data = -x.detach().mean(0)
            self.ready = True
        return x + self.shift


@pytest.mark.parametrize("kind", ["trained", "frozen", "largest"])
def test_state_that_the_first_batch_sets_is_found_before_it_is_set(kind):
    model = nn.Sequential(StatefulOnce(kind), head())
    with PerSampleClipper(model) as clipper, pytest.raises(WrongType, match="keeps numbers"):
        clipped(clipper, 1e5 * torch.rand(6, 8))
    assert not model[0].ready
    assert not model[0].shift.any()
    assert not model[0].largest.any()


def test_the_mode_of_the_pass_counts_and_not_that_of_the_step():
    class Switched(nn.Module):
        def forward(self, x):
            return standardised(x) if self.training else x

    model = nn.Sequential(Switched(), head())
    with PerSampleClipper(model) as clipper:
        with pytest.raises(WrongType, match="other rows of the batch"):
            model(torch.rand(6, 8))
        model[0].eval()
        clipped(clipper, torch.rand(6, 8))


@pytest.mark.parametrize("fill", [lambda x: x.nanmean(0), lambda x: torch.zeros(8)], ids=["of the batch", "constant"])
def test_missing_values_that_others_fill_are_found(fill):
    class Imputed(nn.Module):
        def forward(self, x):
            return torch.where(x.isnan(), fill(x), x)

    model = nn.Sequential(Imputed(), head())
    with PerSampleClipper(model) as clipper:
        if fill(torch.ones(2, 8)).any():
            with pytest.raises(WrongType, match="other rows of the batch"):
                clipped(clipper, torch.rand(6, 8))
        else:
            clipped(clipper, torch.rand(6, 8))


@pytest.mark.parametrize(("shape", "rows"), [((6,), 6), ((5, 6, 8), 6)], ids=["numbers", "time-major"])
def test_missing_values_are_tried_whatever_the_axes(shape, rows):
    class Imputed(nn.Module):
        def forward(self, x):
            return torch.where(x.isnan(), x.nanmean(), x)

    assert "other rows of the batch" in refusal(Imputed(), torch.rand(shape), rows=rows)


def test_a_model_that_asserts_what_it_is_given_is_tried_with_other_numbers():
    class Asserting(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = head()

        def forward(self, x):
            assert (x >= 0).all(), "of positive numbers"
            return self.fc(x)

    with PerSampleClipper(Asserting()) as clipper:
        clipped(clipper, torch.rand(6, 8))


def test_rows_that_dropout_drops_are_tried():
    class Filled(nn.Module):
        def forward(self, x):
            kept = functional.dropout(torch.ones(len(x), 1), 0.5, self.training)
            return torch.where(kept > 0, x, x.mean(0))

    model = nn.Sequential(Filled(), head())
    with PerSampleClipper(model) as clipper, pytest.raises(WrongType, match="other rows of the batch"):
        clipped(clipper, torch.rand(6, 8))


def test_an_argument_that_switches_mixing_on_is_tried_again():
    class Asked(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = head()

        def forward(self, x, *, mixes=False):
            return self.fc(standardised(x) if mixes else x)

    model = Asked()
    with PerSampleClipper(model) as clipper:
        clipped(clipper, torch.rand(6, 8))
        with pytest.raises(WrongType, match="other rows of the batch"):
            model(torch.rand(6, 8), mixes=True)


@pytest.mark.parametrize("rows", [4, 7, 8, 9])
def test_a_mask_of_as_many_positions_as_rows_is_no_mask_of_rows(rows):
    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.fc = nn.MultiheadAttention(8, 2, batch_first=True), head()

        def forward(self, x, mask):
            return self.fc(self.attention(x, x, x, attn_mask=mask)[0].mean(1))

    model = Causal()
    mask = torch.ones(8, 8, dtype=torch.bool).triu(1)
    with PerSampleClipper(model) as clipper:
        clipper.forget(rows)
        losses = model(torch.rand(rows, 8, 8), mask).sum(1)
        clipper.clipped_sums(losses, 1.0)


def test_sensitive_models_are_compared_in_double_precision():
    class Waves(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 64), head()
            self.middle = nn.Linear(64, 8)

        def forward(self, x):
            return self.last(self.middle(torch.sin(30 * self.first(torch.sin(30 * x)))))

    with PerSampleClipper(Waves()) as clipper:
        clipped(clipper, torch.rand(6, 8))


class Rows:
    def __init__(self, x):
        self.x = x


def test_rows_inside_of_an_object_cannot_be_tried():
    class Inside(nn.Module):
        def forward(self, rows):
            return standardised(rows.x)

    assert "no tensor that it is given follows the batch" in refusal(Inside(), Rows(torch.rand(6, 8)))


@pytest.mark.parametrize("decay", [0.9, 0.9999])
@pytest.mark.parametrize("is_in_place", [True, False])
@pytest.mark.parametrize("rows", [1, 6])
def test_a_buffer_that_hardly_depends_on_the_rows_is_found(decay, is_in_place, rows):
    class Centre(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("centre", torch.ones(8))

        def forward(self, x):
            moved = decay * self.centre + (1 - decay) * functional.normalize(x, dim=1).mean(0).detach()
            if is_in_place:
                self.centre.copy_(moved)
            else:
                self.centre = moved
            return x

    model = Centre()
    assert "keeps numbers of the rows in centre" in refusal(model, torch.rand(rows, 8), rows=rows)
    assert torch.equal(model.centre, torch.ones(8))


def clipped(clipper, x, scores=None):
    losses = (clipper.model(x) if scores is None else scores(x)).sum(1)
    return clipper.clipped_sums(losses, 1.0)


def test_a_chunk_of_one_row_is_rehearsed_too():
    model = nn.Sequential(RunningStatistics(in_place=True), head())
    with PerSampleClipper(model) as clipper, pytest.raises(WrongType, match="keeps numbers"):
        clipped(clipper, torch.rand(1, 8))


def test_a_part_that_runs_without_gradients_is_rehearsed():
    model = nn.Sequential(InputStatistics(), head())

    def scores(x):
        with torch.no_grad():
            inner = model[0](x)
        return model[1](inner)

    with PerSampleClipper(model) as clipper, pytest.raises(WrongType, match="other rows of the batch"):
        clipped(clipper, torch.rand(6, 8), scores)


def test_a_module_that_is_switched_to_training_later_is_rehearsed_again():
    class Switched(nn.Module):
        def forward(self, x):
            return standardised(x) if self.training else x

    model = nn.Sequential(Switched(), head())
    with PerSampleClipper(model) as clipper:
        model[0].eval()
        clipped(clipper, torch.rand(6, 8))
        model.train()
        with pytest.raises(WrongType, match="other rows of the batch"):
            model(torch.rand(6, 8))


class TiedByFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return functional.linear(self.fc(x), self.fc.weight)


def replaced():
    model = nn.Sequential(head())
    forward = model[0].forward
    model[0].forward = lambda x: 5 * forward(x)
    return model


@pytest.mark.parametrize("made", [TiedByFunction, replaced])
def test_a_parameter_whose_gradient_is_not_that_of_its_layer_is_refused(made):
    with PerSampleClipper(made()) as clipper, pytest.raises(WrongType, match="also used outside"):
        clipped(clipper, torch.rand(6, 8))


def test_complex_parameters_are_refused():
    with pytest.raises(WrongType, match="complex"):
        PerSampleClipper(nn.Linear(8, 3, dtype=torch.cfloat))


class Tokens(nn.Module):
    """An encoder of padded sequences, with a mask of its own making and positions in half of the layers."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, 8, padding_idx=0), nn.Embedding(12, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.fc = head()

    def forward(self, ids):
        found = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]).expand(ids.shape))
        found = self.layer(found, src_key_padding_mask=ids == 0)
        return self.fc(found.mean(1))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(4, 8)

    def forward(self, x):
        mean, log_variance = self.first(x).chunk(2, 1)
        drawn = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.last(drawn), mean, log_variance


class Cropped(nn.Module):
    """Reads no more positions than the longest row of the batch has."""

    def __init__(self):
        super().__init__()
        self.tokens, self.fc = nn.Embedding(50, 8), head()

    def forward(self, ids, lengths):
        ids = ids[:, : int(lengths.max())]
        inside = torch.arange(ids.shape[1])[None] < lengths[:, None]
        return self.fc((self.tokens(ids) * inside[..., None]).sum(1) / lengths[:, None].clamp(min=1))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.fc = nn.MultiheadAttention(8, 2, batch_first=True), head()

    def forward(self, x, mask):
        return self.fc(self.attention(x, x, x, key_padding_mask=mask)[0].mean(1))


CONVOLUTIONS = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(144, 3))
USUAL = {
    "tokens": (Tokens(), torch.randint(0, 50, (6, 5))),
    "autoencoder": (Autoencoder(), torch.randn(6, 8)),
    "cropped": (Cropped(), torch.randint(0, 50, (6, 5)), torch.randint(1, 6, (6,))),
    "masked": (Masked(), torch.randn(6, 5, 8), torch.zeros(6, 5, dtype=torch.bool)),
    "bfloat16": (CONVOLUTIONS.bfloat16(), torch.randn(6, 1, 8, 8).bfloat16()),
    "parametrized": (nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), torch.randn(6, 8)),
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_models_treat_rows_apart(name):
    model, arguments = USUAL[name][0], USUAL[name][1:]
    Call.of(model, (arguments, {}), 6).require_rows_apart(layers_of(model))


def train(model, rows=40, x=None):
    x = torch.randn(rows, 8) if x is None else x
    y = torch.randint(0, 3, (len(x),))
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.01)
    private = tacit.learn.make_private(
        model,
        optimizer,
        (x, y),
        noise_multiplier=10.0,
        delta=1e-5,
        batch_size=len(x) - 1,
        steps=2,
        budget=tacit.Budget(100, 1e-3),
        audit=False,
    )
    for a, b in private:
        private.step(functional.cross_entropy(model(a), b, reduction="none"))
    return private


@pytest.mark.parametrize(
    "mixing",
    [
        InputStatistics(),
        FunctionalBatchNorm(),
        DetachedStatistics(),
        WeakStatistics(),
        RunningStatistics(in_place=True),
        RunningStatistics(in_place=False),
    ],
)
@pytest.mark.parametrize("is_deep", [False, True])
def test_rows_that_tell_one_another_something_without_a_gradient_are_refused(mixing, is_deep):
    layers = [nn.Linear(8, 8), mixing, nn.ReLU()] if is_deep else [mixing]
    with pytest.raises(WrongType, match=r"other rows of the batch|keeps numbers"):
        train(nn.Sequential(*layers, nn.Linear(8, 3)))


@pytest.mark.parametrize(
    "apart",
    [
        CountingCalls(),
        FunctionalDropout(),
        nn.Dropout(0.5),
        nn.LayerNorm(8),
        Scale(),
        nn.Sequential(nn.Unflatten(1, (2, 4)), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Flatten()),
    ],
)
def test_modules_that_treat_rows_apart_are_accepted_with_dropout_and_buffers_of_their_own(apart):
    assert train(nn.Sequential(apart, nn.Linear(8, 3))).steps == 2


def test_a_rehearsal_leaves_buffers_dropout_and_the_generator_as_they_were():
    model = nn.Sequential(CountingCalls(), nn.Dropout(0.5), nn.LSTM(8, 8, 2, dropout=0.25, batch_first=True))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    Call.of(model, ((torch.randn(6, 4, 8),), {}), 6).require_rows_apart({})
    assert float(model[0].calls) == 0.0
    assert (model[1].p, model[2].dropout) == (0.5, 0.25)
    torch.manual_seed(5)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_call_keeps_no_value_of_a_row():
    secret = torch.full((6, 8), 1234.5)
    call = Call.of(nn.Linear(8, 3), ((secret,), {"mask": torch.ones(3, 3)}), 6)
    assert not any((one == 1234.5).any() for one in call.leaves)


class Product(nn.Module):
    """A layer without a rule, whose outputs for a row can cancel."""

    def __init__(self):
        super().__init__()
        self.map = nn.Bilinear(20, 20, 3)

    def forward(self, x):
        return self.map(x[:, :20], x[:, 20:])


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_row_whose_products_cancel_does_not_stop_a_training():
    torch.manual_seed(0)
    model, x = Product(), torch.randn(40, 40)
    twin, row = Product().double(), (torch.randn(40) * 1e8).double()
    twin.load_state_dict(model.state_dict())
    for _ in range(3):  # a row whose outputs are near 0, from parts that are large
        row = row.detach().requires_grad_()
        out = twin(row[None])[0]
        slopes = torch.stack([torch.autograd.grad(one, row, retain_graph=True)[0] for one in out])
        row = row - torch.linalg.pinv(slopes) @ out
    x[0] = row.detach().float()
    assert train(model, x=x).steps == 2


@pytest.mark.parametrize(
    "made",
    [
        lambda: nn.utils.weight_norm(nn.Linear(8, 3)),
        lambda: nn.utils.spectral_norm(nn.Linear(8, 3)),
        lambda: prune.l1_unstructured(nn.Linear(8, 3), "weight", amount=0.1),
    ],
)
@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated")
def test_weights_that_a_hook_computes_are_refused_before_the_charge(made):
    with pytest.raises(WrongType, match="hook computes the weights"):
        PerSampleClipper(made())


def test_an_embedding_that_changes_its_weights_by_what_it_reads_is_refused_before_the_charge():
    with pytest.raises(WrongType, match="max_norm"):
        PerSampleClipper(nn.Embedding(20, 4, max_norm=1.0))


@pytest.mark.parametrize("hide", [name for name in HIDDEN if name != "as scores"])
def test_mixed_rows_are_seen_in_outputs_alone(hide):
    model = Mixing(HIDDEN[hide])
    with pytest.raises(WrongType, match="other rows of the batch"):
        Call.of(model, ((torch.rand(6, 8),), {}), 6).require_rows_apart({})


@pytest.mark.parametrize("kind", ["inputs", "gradients", "outputs"])
def test_each_kind_of_numbers_is_compared(kind):
    rows = torch.rand(4, 3)
    same = {"inputs": [rows], "gradients": [rows], "outputs": [rows]}

    def division(changed):
        for pair in ((0, 1), (2, 3)):
            found = {name: [one[list(pair)] for one in tensors] for name, tensors in same.items()}
            found[kind] = [found[kind][0] + changed]
            yield pair, rehearsal.Trace(**found, state={}, along_rows=[])

    together = rehearsal.Trace(**same, state={}, along_rows=[])
    assert rehearsal._are_apart(together, list(division(0.0)))
    assert not rehearsal._are_apart(together, list(division(0.01)))


def test_a_small_number_is_not_hidden_by_large_ones_of_its_row_or_type():
    whole = torch.tensor([[1.0, -1e9], [2.0, -1e9]])
    moved = whole + torch.tensor([0.01, 0.0])
    assert not rehearsal._alike(whole, moved, whole.abs().amax(0))
    assert rehearsal._alike(whole, whole * (1 + 1e-5), whole.abs().amax(0))
