"""Membership inference against defences without a guarantee, and against DP-SGD, on a small over-fitting network.

Rows: in each seed 4,000 images of the first 50,000 of MNIST's training file, of which 200 get a wrong label drawn at
random (canaries); in each training every image is used by a fair coin, so about 2,000 are. Early stopping reads 500
other images of the training file; accuracy is that on MNIST's test file. Without TACIT_DATA rows are generated: sets of
purchases of people of 10 kinds. The network has 128 hidden units and is trained by AdamW, learning rate 2e-3, batches
of 100, 40 epochs; that of DP-SGD is the same, with tanh, momentum 0.9 and clip 1. Strengths of defences and settings of
DP-SGD were chosen on the last 10,000 images of the training file, which are not scored (with ReLU units); the defences
have one strength each, which was not varied.

Attack: the likelihood ratio of Carlini et al. 2022 (LiRA). Of the trainings of a seed each is attacked in turn; the
others are its shadow models, which show for each image the margin of its label without it and the shift by its use.
With few shadow models the shift is drawn towards the mean of all images, and one variance serves all. Beside it the
margin of the label alone (Yeom et al. 2018). `area` is that under the curve, `spread` the standard deviation over
seeds. The audit is that of the attack kit (`canary_audit`, 95 % confidence), about all images of the first training of
a seed; the mean over seeds is shown, which is no bound itself. If all guesses are right the audit shows 3.85, its most.

The ceiling is the greatest true-positive rate that epsilon at delta 1e-5 allows at one percent of false positives, and
for the audit epsilon; a measured rate is a share of some hundred canaries, and may exceed a low ceiling by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor, nn
from torch.nn import functional

from bench.learning.datasets import has_mnist, mnist
from bench.results import Result
from tacit import attack, learn
from tacit.ledger import Budget

DELTA: Final = 1e-5
CLASSES: Final = 10
FALSE_POSITIVES: Final = 0.01
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Size:
    """How much is trained: seeds, trainings in each, candidates, canaries among them, and epochs."""

    seeds: int = 3
    trainings: int = 8
    candidates: int = 4_000
    canaries: int = 200
    epochs: int = 40

    @property
    def one_seed(self) -> Size:
        """The same with a single seed."""
        return replace(self, seeds=1)


FULL: Final = Size()
QUICK: Final = Size(seeds=1, trainings=4, candidates=600, canaries=60, epochs=15)


@dataclass(frozen=True)
class Defence:
    """A training without privacy, with the defences that are not 0."""

    dropout: float = 0.0
    batch_norm: bool = False
    weight_decay: float = 0.0
    patience: int = 0
    max_norm: float = 0.0
    min_count: int = 0
    share: float = 1.0


@dataclass(frozen=True)
class Private:
    """A training by DP-SGD."""

    epsilon: float
    learning_rate: float
    batch_size: int
    steps: int


NONE: Final = "no defence"
DEFENCES: Final[dict[str, Defence | Private]] = {
    NONE: Defence(),
    "dropout 0.5": Defence(dropout=0.5),
    "batch normalisation": Defence(batch_norm=True),
    "weight decay 1": Defence(weight_decay=1.0),
    "early stopping": Defence(patience=3),
    "weights of norm 1": Defence(max_norm=1.0),
    "rare features dropped": Defence(min_count=20),
    "a tenth of gradients": Defence(share=0.1),
    "all seven": Defence(0.5, True, 1.0, 3, 1.0, 20, 0.1),
    "DP-SGD, epsilon 8": Private(8.0, 0.1, 400, 150),
    "DP-SGD, epsilon 2": Private(2.0, 0.2, 800, 60),
    "DP-SGD, epsilon 0.5": Private(0.5, 0.1, 800, 60),
}


@dataclass(frozen=True)
class Rows:
    """Candidates, the first of which are mislabelled, and rows for early stopping and for scores."""

    candidates: tuple[Tensor, Tensor]
    held_out: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Leak:
    """What an attack tells about one kind of candidates: one value for each seed."""

    guessed: Floats
    """The share of right guesses, by the sign of the likelihood ratio."""
    area: Floats
    found: Floats
    """True-positive rate at FALSE_POSITIVES."""
    found_by_margin: Floats


@dataclass(frozen=True)
class Measured:
    """What one defence leaves: accuracy in percent, leaks, and the least compatible epsilon."""

    accuracy: Floats
    train_accuracy: Floats
    others: Leak
    canaries: Leak
    epsilon: Floats
    is_refuted: bool
    ceiling: float | None


def run(quick: bool) -> Iterator[Result]:
    """Measure every defence."""
    size = QUICK if quick else FULL
    for name, claimed in DEFENCES.items():
        found = measured(name, size)
        spread = {"spread": float(found.accuracy.std()), "on training rows": float(found.train_accuracy.mean())}
        yield Result(f"{name}: accuracy", float(found.accuracy.mean()), "% correct", spread)
        for kind, leak in (("other", found.others), ("mislabelled", found.canaries)):
            shown = {
                "spread": 100 * float(leak.found.std()),
                "by margin": 100 * float(leak.found_by_margin.mean()),
                "area": float(leak.area.mean()),
                "guessed right": 100 * float(leak.guessed.mean()),
                "ceiling": None if found.ceiling is None else 100 * found.ceiling,
            }
            yield Result(f"{name}: {kind} rows found", 100 * float(leak.found.mean()), "% at 1 % false", shown)
        audit = {
            "spread": float(found.epsilon.std()),
            "ceiling": claimed.epsilon if isinstance(claimed, Private) else None,
        }
        yield Result(f"{name}: shown by the audit", float(found.epsilon.mean()), "epsilon at least", audit)


def measured(name: str, size: Size) -> Measured:
    """Train and attack one defence."""
    runs = [_seed(name, size, seed) for seed in range(size.seeds)]
    claimed = DEFENCES[name]
    ceiling = None
    if isinstance(claimed, Private):
        ceiling = attack.Claim(epsilon=claimed.epsilon, delta=DELTA).true_positive_rate(FALSE_POSITIVES)

    def leak(kind: str) -> Leak:
        figures = ("guessed", "area", "found", "margin")
        return Leak(*(np.array([one[f"{kind} {figure}"] for one in runs]) for figure in figures))

    accuracy, trained, epsilon = (np.array([one[figure] for one in runs]) for figure in ("test", "train", "epsilon"))
    is_refuted = any(one["refuted"] for one in runs)
    return Measured(accuracy, trained, leak("others"), leak("canaries"), epsilon, is_refuted, ceiling)


def _seed(name: str, size: Size, seed: int) -> dict[str, float]:
    """Return the figures of all trainings on the candidates of one seed."""
    rows = data(size, seed)
    x, y = rows.candidates
    coins = np.random.default_rng(2_000 + seed).integers(0, 2, (size.trainings, len(x))).astype(bool)
    margins, right, right_trained = [], [], []
    defence = DEFENCES[name]
    for place, used in enumerate(coins):
        torch.manual_seed(100 * seed + place)
        inside = torch.from_numpy(used)
        own = replace(rows, candidates=(x[inside], y[inside]))
        predict = _private(own, defence) if isinstance(defence, Private) else _plain(own, defence, size.epochs)
        margins.append(_margins(predict(x), y))
        right.append(_accuracy(predict(rows.test[0]), rows.test[1]))
        right_trained.append(_accuracy(predict(own.candidates[0]), own.candidates[1]))
    shown = np.array(margins)
    scores = likelihood_ratios(shown, coins)
    promise = (defence.epsilon, DELTA) if isinstance(defence, Private) else None
    finding = attack.run("canary_audit", attack.Model(scores[0], coins[0]), promise=promise, seed=seed)
    found = {"test": float(np.mean(right)), "train": float(np.mean(right_trained)), "refuted": finding.is_violation}
    for kind, part in (("canaries", slice(size.canaries)), ("others", slice(size.canaries, None))):
        inside_part = coins[:, part]
        area, rate = curve(scores[:, part], inside_part)
        found |= {f"{kind} area": area, f"{kind} found": rate, f"{kind} margin": curve(shown[:, part], inside_part)[1]}
        found[f"{kind} guessed"] = float(((scores[:, part] > 0) == inside_part).mean())
    return found | {"epsilon": finding.lower_bound or 0.0}


def _plain(rows: Rows, defence: Defence, epochs: int) -> Any:
    """Train without privacy, and return the function from features to logits."""
    (x, y), (held, truth) = rows.candidates, rows.held_out
    kept: Any = slice(None)
    if defence.min_count:
        kept = torch.from_numpy(learn.drop_rare_features(x, defence.min_count)[1])
        x, held = x[:, kept], held[:, kept]
    batch_norm = [nn.BatchNorm1d(128)] if defence.batch_norm else []
    model = nn.Sequential(
        nn.Linear(x.shape[1], 128), *batch_norm, nn.ReLU(), nn.Dropout(defence.dropout), nn.Linear(128, CLASSES)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=defence.weight_decay)
    if defence.max_norm:
        optimizer.register_step_post_hook(lambda *_: learn.normalize_weights(model, defence.max_norm))
    stopping = learn.EarlyStopping(defence.patience or epochs)
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(x)).tensor_split(max(1, len(x) // 100)):
            optimizer.zero_grad()
            functional.cross_entropy(model(x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call]
            if defence.share < 1:
                gradients = [one.grad for one in model.parameters() if one.grad is not None]
                for gradient, shared in zip(gradients, learn.share_largest(gradients, defence.share), strict=True):
                    gradient.copy_(shared)
            optimizer.step()
        model.eval()
        if defence.patience:
            with torch.no_grad():
                loss = functional.cross_entropy(model(held), truth)
            if stopping.check(loss, model):
                break
    if defence.patience:
        stopping.restore(model)
    return torch.no_grad()(lambda features: model(features[:, kept]))


def _private(rows: Rows, defence: Private) -> Any:
    """Train by DP-SGD, and return the function from features to logits."""
    x, y = rows.candidates
    model = nn.Sequential(nn.Linear(x.shape[1], 128), nn.Tanh(), nn.Linear(128, CLASSES))
    private = learn.make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=defence.learning_rate, momentum=0.9),
        (x, y),
        epsilon=defence.epsilon,
        delta=DELTA,
        clip=1.0,
        batch_size=min(defence.batch_size, len(x) // 2),
        steps=defence.steps,
        budget=Budget(defence.epsilon, 20 * DELTA),
        audit=False,
    )
    for features, labels in private:
        private.step(functional.cross_entropy(model(features), labels, reduction="none"))
    return torch.no_grad()(model)


def _accuracy(logits: Tensor, labels: Tensor) -> float:
    return 100 * float((logits.argmax(dim=1) == labels).double().mean())


def _margins(logits: Tensor, labels: Tensor) -> Floats:
    """Return the log odds of each label."""
    own = labels[:, None]
    others = logits.double().scatter(1, own, -torch.inf).logsumexp(dim=1)
    return np.asarray((logits.double().gather(1, own)[:, 0] - others).numpy())


def likelihood_ratios(margins: Floats, used: Mask) -> Floats:
    """Return the log likelihood ratio of "used" for each training and candidate, from the other trainings.

    A margin is normal around m + d where the candidate was used, and around m where it was not. In the
    estimate of d the mean shift of all candidates counts as two trainings with the candidate and two without.
    """
    found = np.empty_like(margins)
    for place in range(len(margins)):
        others = np.arange(len(margins)) != place
        shown, inside = margins[others], used[others]
        counts = np.stack([(~inside).sum(axis=0), inside.sum(axis=0)])
        sums = np.stack([(shown * ~inside).sum(axis=0), (shown * inside).sum(axis=0)])
        without, within = sums / np.maximum(counts, 1)
        weight = np.where(counts.all(axis=0), counts.prod(axis=0) / counts.sum(axis=0), 0.0)
        shift = within - without
        mean = float((weight * shift).sum() / weight.sum())
        shift = (weight * shift + mean) / (weight + 1)
        centre = (shown - inside * shift).mean(axis=0)
        variance = float(np.square(shown - centre - inside * shift).mean())
        found[place] = ((margins[place] - centre) * shift - shift**2 / 2) / variance
    return found


def curve(scores: Floats, used: Mask) -> tuple[float, float]:
    """Return the area under the curve, and the true-positive rate at FALSE_POSITIVES."""
    inside, outside = scores[used], scores[~used]
    ranks = stats.rankdata(np.concatenate([inside, outside]))[: len(inside)].sum()
    area = (ranks - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside))
    threshold = np.quantile(outside, 1 - FALSE_POSITIVES, method="higher")
    return float(area), float((inside > threshold).mean())


def data(size: Size, seed: int) -> Rows:
    """Return the rows of one seed: images of MNIST, or generated ones without TACIT_DATA."""
    random = np.random.default_rng(1_000 + seed)
    count = size.candidates + 500
    if not has_mnist():
        x, y = purchases(count + 2_000, random)
        test = (x[count:], y[count:])
    else:
        pixels, digits = mnist("train")
        chosen = random.choice(50_000, count, replace=False)
        x, y = _shares(pixels[chosen]), digits[chosen]
        scored, truth = mnist("t10k")
        test = (_shares(scored), truth)
    y[: size.canaries] = (y[: size.canaries] + random.integers(1, CLASSES, size.canaries)) % CLASSES
    parts = ((x[: size.candidates], y[: size.candidates]), (x[size.candidates : count], y[size.candidates : count]))
    return Rows(*((torch.from_numpy(one.copy()), torch.from_numpy(labels.copy())) for one, labels in (*parts, test)))


def purchases(count: int, random: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return which of 300 things, most of them rare, people bought, and of which of 10 kinds they are."""
    shares = np.random.default_rng(0).beta(0.15, 1.5, (CLASSES, 300))
    kinds = random.integers(0, CLASSES, count)
    bought = random.random((count, 300)) < shares[kinds] * 0.6 + 0.02
    return bought.astype(np.float32), kinds


def _shares(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return images as rows of numbers between 0 and 1."""
    return pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(255)
