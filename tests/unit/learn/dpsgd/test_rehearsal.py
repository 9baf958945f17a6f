"""Models that combine the rows of a batch are refused on made-up rows, and never for what a private row holds."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

import tacit
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
    with pytest.raises(WrongType, match=r"other rows of the batch|buffer"):
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
    Call.of(model, (torch.randn(6, 4, 8),), {}).require_rows_apart()
    assert float(model[0].calls) == 0.0
    assert (model[1].p, model[2].dropout) == (0.5, 0.25)
    torch.manual_seed(5)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_call_keeps_no_value_of_a_row():
    secret = torch.full((6, 8), 1234.5)
    call = Call.of(nn.Linear(8, 3), (secret,), {"mask": torch.ones(3, 3)})
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
