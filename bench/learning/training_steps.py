# mypy: ignore-errors
"""A process that makes training steps of one kind, for `throughput`; runs in tacit's environment and in Opacus's."""

import json
import resource
import statistics
import sys
import time
import warnings

import torch
from torch import nn
from torch.nn import functional

BLOCK = 4
DRAIN_S = 0.05
"""Steps are timed in blocks after one that is not counted, and after the noise thread of other steps has ended: what it
uses for the next step of its own kind is counted, and never as the time of plain steps."""
WORDS, LENGTH, WIDTH, HEADS = 5000, 64, 64, 4


class Block(nn.Module):
    """A transformer block before its norms' outputs are added."""

    def __init__(self):
        super().__init__()
        self.norm, self.norm_after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        """Return attention and a two-layer network, each added to its input."""
        rows, length, width = x.shape
        shaped = self.project(self.norm(x)).view(rows, length, 3, HEADS, width // HEADS)
        query, key, value = shaped.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(-1, -2) / (width // HEADS) ** 0.5, -1)
        x = x + self.merge((weights @ value).transpose(1, 2).reshape(rows, length, width))
        return x + self.narrow(functional.relu(self.widen(self.norm_after(x))))


class Transformer(nn.Module):
    """Two blocks over an embedding, averaged."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.output = nn.Linear(WIDTH, 2)

    def forward(self, tokens):
        """Return the logits of two classes."""
        return self.output(self.blocks(self.embedding(tokens)).mean(1))


class Recurrent(nn.Module):
    """An LSTM over an embedding."""

    def __init__(self, lstm):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.lstm = lstm(WIDTH, 128, batch_first=True)
        self.output = nn.Linear(128, 2)

    def forward(self, tokens):
        """Return the logits of two classes."""
        return self.output(self.lstm(self.embedding(tokens))[0][:, -1])


def make_model(name, lstm=nn.LSTM):
    """Return a model by the name that `throughput` has for it."""
    torch.manual_seed(0)
    if name.startswith("MLP"):
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 10))
    if name.startswith("CNN 26k"):
        convolutions = [nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)]
        convolutions += [nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1)]
        return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10))
    if name.startswith("CNN"):
        convolutions = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        convolutions += [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(3136, 150), nn.ReLU(), nn.Linear(150, 10))
    return Transformer() if name.startswith("transformer") else Recurrent(lstm)


def make_batch(name):
    """Return a batch of generated data, of the size in the model's name."""
    rows = int(name.rsplit(" ", 1)[1])
    if name.startswith(("transformer", "LSTM")):
        return torch.randint(0, WORDS, (rows, LENGTH)), torch.randint(0, 2, (rows,))
    return torch.rand(rows, 1, 28, 28), torch.randint(0, 10, (rows,))


def plain_step(name, x, y):
    """Return a step of plain torch."""
    model = make_model(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def private_step(name, x, y):
    """Return a step of tacit."""
    from tacit.learn.dpsgd.clipping import PerSampleClipper
    from tacit.mechanisms.bulk_gaussian import BulkGaussian

    model = make_model(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clipper, noise, parameters = PerSampleClipper(model), BulkGaussian(in_place=True), dict(model.named_parameters())

    def step():
        optimizer.zero_grad()
        sums, _ = clipper.clipped_sums(functional.cross_entropy(model(x), y, reduction="none"), 1.0)
        for key, noisy in noise.add(sums, 1.0, 1.0).items():
            parameters[key].grad = noisy.div_(len(x)).to(parameters[key].dtype)
        optimizer.step()

    return step


def opacus_step(name, x, y, mode):
    """Return a step of Opacus; it replaces the LSTM with its own."""
    from opacus import PrivacyEngine
    from opacus.layers import DPLSTM

    model = make_model(name, DPLSTM)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    options = {"criterion": nn.CrossEntropyLoss()} if mode == "ghost" else {}
    made = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
        poisson_sampling=False,
        **options,
    )
    model, optimizer, loss = made[0], made[1], made[2] if mode == "ghost" else functional.cross_entropy

    def step():
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def main():
    """Write the ratio of the plain step's processor time to that of the measured one, and the peak memory in MiB."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    arguments = json.loads(sys.argv[1])
    name, mode = arguments["model"], arguments["mode"]
    x, y = make_batch(name)
    if mode.startswith("opacus"):
        measured = opacus_step(name, x, y, mode.removeprefix("opacus_"))
    else:
        measured = (plain_step if mode == "plain" else private_step)(name, x, y)
    steps = [measured] if arguments["alone"] else [plain_step(name, x, y), measured]
    taken_s = [[] for _ in steps]
    for _ in range(arguments["repeats"]):
        for step, times in zip(steps, taken_s, strict=True):
            time.sleep(DRAIN_S)
            step()
            started_s = time.process_time()
            for _ in range(BLOCK):
                step()
            times.append((time.process_time() - started_s) / BLOCK)
    medians_s = [statistics.median(times) for times in taken_s]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"ratio": medians_s[0] / medians_s[-1], "peak": peak, "ms": [1000 * part for part in medians_s]}))


if __name__ == "__main__":
    main()
