"""Brute force: one unit more moves the clipped sums by the clip at most, whatever its rows hold and whatever the layer.

Each case removes the one unit that has hostile rows from a batch and compares the sums of all parameters together.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tacit.learn.dpsgd.clipping import PerSampleClipper
from tacit.learn.dpsgd.rounding import sum_error

ROWS = 24


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(11, 6, padding_idx=0), nn.Linear(6, 11, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x):
        return self.out(torch.tanh(self.table(x)).mean(1))


class Twice(nn.Module):
    """A layer that is called with positions and without."""

    def __init__(self):
        super().__init__()
        self.shared, self.out = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.shared(self.shared(x).mean(1)))


class Scaled(nn.Module):
    """A parameter of the module's own."""

    def __init__(self):
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(3)), nn.Linear(6, 3)

    def forward(self, x):
        return self.inner(x) * self.scale


class Sequences(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.out = layer, nn.LazyLinear(3)

    def forward(self, x):
        made = self.layer(x, x.flip(1), x) if isinstance(self.layer, nn.MultiheadAttention) else self.layer(x)
        return self.out(made[0][:, -1])


def convolutions():
    first = nn.Conv2d(2, 4, 3, padding=1, groups=2)
    second = nn.Conv2d(4, 4, 2, stride=2, dilation=2, padding_mode="circular", padding=1)
    return nn.Sequential(first, nn.GroupNorm(2, 4), nn.ReLU(), second, nn.Flatten(), nn.LazyLinear(3))


MODELS = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 3)), (6,)),
    "Gram": (lambda: nn.Sequential(nn.Linear(64, 64), nn.Flatten(), nn.Linear(128, 3)), (2, 64)),
    "twice": (Twice, (4, 6)),
    "tied": (Tied, None),
    "scaled": (Scaled, (6,)),
    "convolutions": (convolutions, (2, 6, 6)),
    "vectorised": (lambda: nn.Sequential(nn.ConvTranspose1d(2, 4, 3), nn.Flatten(), nn.LazyLinear(3)), (2, 6)),
    "normalisation": (lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3), nn.RMSNorm(3)), (6,)),
    "attention": (lambda: Sequences(nn.MultiheadAttention(6, 2, batch_first=True)), (4, 6)),
    "LSTM": (lambda: Sequences(nn.LSTM(6, 5, bidirectional=True, batch_first=True)), (4, 6)),
}
HOSTILE = {
    "large losses": lambda x: x,
    "NaN": lambda x: x * torch.nan,
    "infinite": lambda x: x / 0,
    "1e38": lambda x: x.sign() * 1e38,
    "denormal": lambda x: x * 1e-42,
    "cancelling": lambda x: x.sign() * 1e12 + x,
}


@pytest.mark.parametrize("rows_of_unit", [1, 3])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_one_unit_more_moves_the_clipped_sums_by_the_clip_at_most(name, rows_of_unit):
    make, shape = MODELS[name]
    torch.manual_seed(0)
    tokens = torch.randint(0, 11, (ROWS, 5))
    labels = torch.randint(0, 3, (ROWS,))
    unit_of = torch.arange(ROWS) % (ROWS // rows_of_unit)
    is_hostile = unit_of == 0
    for kind, change in HOSTILE.items():
        if shape is None and kind != "large losses":
            continue
        x = tokens if shape is None else torch.randn(ROWS, *shape)
        model = make()
        model(x)
        factors = torch.ones(ROWS)
        if shape is not None:
            x[is_hostile] = change(x[is_hostile])
        if kind == "large losses":
            factors[is_hostile] = 1e6
        for clipping, clip in (("flat", 1.0), ("per-layer", 2.0**-20), ("automatic", 100.0)):
            with PerSampleClipper(model, clipping) as clipper:

                def sums(kept, clipper=clipper, x=x, factors=factors, model=model, clip=clip):
                    losses = functional.cross_entropy(model(x[kept]), labels[kept], reduction="none")
                    units = None if rows_of_unit == 1 else unit_of[kept]
                    found, _ = clipper.clipped_sums(losses * factors[kept], clip, units)
                    return torch.cat([one.double().flatten() for one in found.values()])

                moved = float((sums(torch.ones(ROWS, dtype=torch.bool)) - sums(~is_hostile)).norm())
            assert moved <= clip * (1 + sum_error(ROWS, ROWS)), (kind, clipping)
