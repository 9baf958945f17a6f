"""Methods for logistic and linear regression beside one another: which one the estimators use, and why.

    tacit                    LogisticRegression: noisy gradient descent; LinearRegression: sufficient statistics
    objective perturbation   a random linear term and a ridge in the loss (Chaudhuri, Monteleoni, Sarwate 2011; Kifer,
                             Smith, Thakurta 2012; as solved in practice by Iyengar et al. 2019)
    DP-SGD                   `make_private` around one linear layer
    sufficient statistics    of logistic regression: the loss to second order around 0, whose minimum follows from
                             second moments (functional mechanism: Zhang, Zhang, Xiao, Yang, Winslett 2012)

All protect a row that is added or removed. Objective perturbation and DP-SGD read features that are standardized by a
private StandardScaler, for a tenth of the budget, and cut to a greatest length; their hyper-parameters are the best of
those listed here on a fifth of the training rows, chosen without privacy and without charge, in their favour. tacit's
are its defaults, which were chosen on a part of the training file of Adult. Figures are means of runs on the test file
of Adult, or on generated rows of which half are scored, and `spread` is the standard deviation over runs: rows are the
same in each of them, noise is not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from bench.learning.datasets import BOUNDS, CLASSES, NOMINAL, adult, categories
from bench.learning.estimators import DELTA, EPSILONS, SEEDS, generated
from bench.results import Result
from tacit import learn

Floats: TypeAlias = NDArray[np.float64]
SCALER_SHARE: Final = 0.1
TARGET: Final = "hours_per_week"


@dataclass(frozen=True)
class Rows:
    """Rows of features with a target: labels of 0 and 1, or numbers within bounds."""

    x: pd.DataFrame
    y: Floats
    bounds: Mapping[str, tuple[float, float]]
    listed: Mapping[str, list[str]]
    target: tuple[float, float]
    is_logistic: bool

    def part(self, chosen: NDArray[np.bool_]) -> Rows:
        """Return some of the rows."""
        return Rows(self.x[chosen], self.y[chosen], self.bounds, self.listed, self.target, self.is_logistic)

    def score(self, predicted: Floats) -> float:
        """Return the percentage of right labels, or R squared."""
        if self.is_logistic:
            return 100 * float(((predicted > 0.5) == self.y).mean())
        return 1 - float(np.square(predicted - self.y).sum() / np.square(self.y - self.y.mean()).sum())


@dataclass(frozen=True)
class Encoder:
    """Standardized numbers, one-hot categories and a constant, cut to a greatest length of 1."""

    scaler: Any
    length: float

    @classmethod
    def of(cls, rows: Rows, epsilon: float, delta: float | None, length: float) -> Encoder:
        """Fit a private scaler."""
        scaler = learn.StandardScaler(epsilon=epsilon, delta=delta, bounds=dict(rows.bounds))
        return cls(scaler.fit(rows.x[list(rows.bounds)]), length)

    def rows(self, rows: Rows) -> Floats:
        """Return encoded rows."""
        numbers = self.scaler.transform(rows.x[list(rows.bounds)])
        cells = [(rows.x[name].to_numpy()[:, None] == np.array(values)) for name, values in rows.listed.items()]
        found = np.hstack([numbers, *cells, np.ones((len(numbers), 1))]) / self.length
        return np.asarray(found / np.maximum(1.0, np.linalg.norm(found, axis=1, keepdims=True)))


def objective_perturbation(
    train: Rows, test: Rows, epsilon: float, delta: float | None, seed: int, *, length: float, share: float
) -> float:
    """Return the score of a minimum of sum(loss) + ridge / 2 |w|^2 + b w, for one row added or removed.

    The loss is of w x alone, with a derivative of at most L = 1 (logistic, or Huber's at 1) and a curvature of at most
    B, for rows x no longer than 1. The row moves the Jacobian of w -> b by a matrix of rank one and so its determinant
    by a factor of at most 1 + B / ridge, which `share` of epsilon pays for, and b by s x with |s| <= 1. For normal b
    the rest of the loss is at most |Z| L / sigma + L^2 / (2 sigma^2), Z standard normal: above epsilon with
    probability 2 Q(t) = delta. For b of density ~ exp(-e |b|) it is at most e. The minimum is taken to be exact.
    """
    own, small = epsilon * (1 - SCALER_SHARE), None if delta is None else delta * (1 - SCALER_SHARE)
    encoder = Encoder.of(train, epsilon * SCALER_SHARE, None if delta is None else delta * SCALER_SHARE, length)
    x, y, random = encoder.rows(train), _standard(train), np.random.default_rng(seed)
    ridge = (0.25 if train.is_logistic else 1.0) / math.expm1(share * own)
    rest = (1 - share) * own
    if small is None:
        direction = random.normal(size=x.shape[1])
        b = direction / float(np.linalg.norm(direction)) * random.gamma(x.shape[1], 1 / rest)
    else:
        tail = float(norm.isf(small / 2))
        b = random.normal(size=x.shape[1]) / (math.sqrt(tail**2 + 2 * rest) - tail)
    weights = np.zeros(x.shape[1])
    for _ in range(60):  # Newton's method, with steps that are halved until the gradient shrinks
        slopes, curvatures = _derivatives(x @ weights, y, is_logistic=train.is_logistic)
        gradient = x.T @ slopes + ridge * weights + b
        step = np.linalg.solve((x.T * (curvatures + 1e-6)) @ x + ridge * np.eye(x.shape[1]), gradient)
        size = 1.0
        while size > 1e-6:
            tried = weights - size * step
            moved = x.T @ _derivatives(x @ tried, y, is_logistic=train.is_logistic)[0] + ridge * tried + b
            if np.linalg.norm(moved) < np.linalg.norm(gradient):
                break
            size /= 2
        weights = tried
        if np.linalg.norm(moved) < 1e-6:
            break
    return test.score(_predicted(train, encoder.rows(test) @ weights))


def _derivatives(z: Floats, y: Floats, *, is_logistic: bool) -> tuple[Floats, Floats]:
    if is_logistic:
        p = expit(z)
        return p - y, p * (1 - p)
    return np.clip(z - y, -1.0, 1.0), (np.abs(z - y) < 1).astype(np.float64)


def dp_sgd(
    train: Rows, test: Rows, epsilon: float, delta: float | None, _seed: int, *, length: float, rate: float, steps: int
) -> float:
    """Return the score of a linear layer that was trained by DP-SGD with batches of an eighth of the rows."""
    import torch
    from torch.nn import functional

    import tacit

    assert delta is not None, "DP-SGD has Gaussian noise"
    encoder = Encoder.of(train, epsilon * SCALER_SHARE, delta * SCALER_SHARE, length)
    x, y = torch.tensor(encoder.rows(train)), torch.tensor(_standard(train))
    model = torch.nn.Linear(x.shape[1], 1, bias=False).double()
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    private = learn.make_private(
        *(model, optimizer, (x, y)),
        epsilon=epsilon * (1 - SCALER_SHARE),
        delta=delta * (1 - SCALER_SHARE),
        clip=1.0,
        batch_size=len(x) // 8,
        steps=steps,
        budget=tacit.Budget(epsilon, 20 * delta),
        audit=False,
        average=0.9,
    )
    for part, labels in private:
        z = model(part)[:, 0]
        if train.is_logistic:
            private.step(functional.binary_cross_entropy_with_logits(z, labels, reduction="none"))
        else:
            private.step(functional.huber_loss(z, labels, reduction="none"))
    weights = private.averaged["weight"].numpy()[0]
    return test.score(_predicted(train, encoder.rows(test) @ weights))


def _standard(rows: Rows) -> Floats:
    """Return the target as the losses take it: labels, or numbers as -1 to 1 within their bounds."""
    low, high = rows.target
    return rows.y if rows.is_logistic else np.clip((rows.y - low) / (high - low) * 2 - 1, -1, 1)


def _predicted(rows: Rows, z: Floats) -> Floats:
    low, high = rows.target
    return expit(z) if rows.is_logistic else np.clip(low + (z + 1) / 2 * (high - low), low, high)


def ours(train: Rows, test: Rows, epsilon: float, delta: float | None, _seed: int) -> float:
    """Return the score of tacit's estimator with its defaults."""
    if not train.is_logistic:
        return sufficient_statistics(train, test, epsilon, delta, _seed)
    stated: dict[str, Any] = {"bounds": dict(train.bounds), "categories": dict(train.listed), "classes": [0, 1]}
    model = learn.LogisticRegression(epsilon=epsilon, delta=delta, **stated)
    return test.score(model.fit(train.x, train.y.astype(int)).predict_proba(test.x)[:, 1])


def sufficient_statistics(train: Rows, test: Rows, epsilon: float, delta: float | None, _seed: int) -> float:
    """Return the score of LinearRegression; of labels, its minimum is that of the logistic loss to second order."""
    stated: dict[str, Any] = {"bounds": dict(train.bounds), "categories": dict(train.listed)}
    model = learn.LinearRegression(epsilon=epsilon, delta=delta, target_bounds=train.target, **stated)
    return test.score(model.fit(train.x, train.y).predict(test.x))


Method: TypeAlias = tuple[Callable[..., float], Sequence[Mapping[str, Any]]]
"""A method and the hyper-parameters that it is tuned over."""


def _grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


LENGTHS: Final = (1.0, 3.0)
OBJECTIVE: Final[Method] = (objective_perturbation, _grid(length=LENGTHS, share=[0.1, 0.5]))
SGD: Final[Method] = (dp_sgd, _grid(length=LENGTHS, rate=[1.0, 4.0], steps=[40, 160]))
STATISTICS: Final[Method] = (sufficient_statistics, [{}])


def run(quick: bool) -> Iterator[Result]:
    """Measure every method on generated rows, then on Adult."""
    for name, rows in _sets(quick):
        is_logistic = rows[0].is_logistic
        for epsilon, delta in itertools.product([1.0] if quick else EPSILONS, (DELTA, None)):
            others = {"objective perturbation": OBJECTIVE}
            others |= {"DP-SGD": SGD} if delta else {}
            others |= {"sufficient statistics": STATISTICS} if is_logistic else {}
            seeds = range(1 if quick else SEEDS)
            mine = [ours(*rows, epsilon, delta, seed) for seed in seeds]
            shown: dict[str, float | None] = {"spread": float(np.std(mine))}
            for method, (score, grid) in others.items():
                chosen = grid[0] if quick else _best(score, grid, rows[0], epsilon, delta)
                found = [score(*rows, epsilon, delta, seed, **chosen) for seed in seeds]
                shown |= {method: float(np.mean(found)), f"{method}: spread": float(np.std(found))}
            at = f", delta {delta:g}" if delta else ""
            unit = "% correct" if is_logistic else "R squared"
            yield Result(f"{name}, epsilon {epsilon:g}{at}", float(np.mean(mine)), unit, shown)


def _best(
    score: Callable[..., float], grid: Sequence[Mapping[str, Any]], train: Rows, epsilon: float, delta: float | None
) -> Mapping[str, Any]:
    """Return the hyper-parameters with the best score on a fifth of the training rows."""
    if len(grid) == 1:
        return grid[0]
    held = np.random.default_rng(99).random(len(train.y)) < 0.2
    parts = train.part(~held), train.part(held)
    return max(grid, key=lambda one: sum(score(*parts, epsilon, delta, seed, **one) for seed in (7, 8)))


def _sets(quick: bool) -> Iterator[tuple[str, tuple[Rows, Rows]]]:
    """Yield rows to train on and rows to score, by the name of what is fitted."""
    found = [(f"{what}, generated", _of_generated(is_logistic=what == "logistic")) for what in ("logistic", "linear")]
    yield from found
    people = None if quick else adult()
    if people is None:
        return
    train, test = people
    for name, is_logistic in (("logistic, Adult", True), ("linear, Adult hours", False)):
        yield name, (_of_adult(train, is_logistic=is_logistic), _of_adult(test, is_logistic=is_logistic))


def _of_generated(*, is_logistic: bool) -> tuple[Rows, Rows]:
    random, found = np.random.default_rng(0), []
    for part in generated(0):
        x = pd.DataFrame(part["rows"], columns=[f"x{place}" for place in range(part["rows"].shape[1])])
        y = part["target"]
        if is_logistic:
            y = (random.random(len(y)) < expit(6 * y)).astype(np.float64)
        bounds: dict[str, tuple[float, float]] = dict.fromkeys(x.columns, (-1.0, 1.0))
        found.append(Rows(x, y, bounds, {}, (0.0, 1.0) if is_logistic else (-2.0, 2.0), is_logistic))
    return found[0], found[1]


def _of_adult(frame: pd.DataFrame, *, is_logistic: bool) -> Rows:
    numbers = {name: one for name, one in BOUNDS.items() if is_logistic or name != TARGET}
    y = frame["income"].str.rstrip(".").to_numpy() == CLASSES[1] if is_logistic else frame[TARGET].to_numpy()
    x = frame[[*numbers, *NOMINAL]]
    return Rows(
        x, y.astype(np.float64), numbers, categories(), (0.0, 1.0) if is_logistic else BOUNDS[TARGET], is_logistic
    )
