"""Accuracy of private models by sex and race on Adult, beside models without privacy; mean of runs.

Those are logistic regression of scikit-learn (L2 penalty, C = 1) and the same network trained by Adam, so that a part
of a difference is that of the algorithms: for small groups it can be as large as that of the noise. Intervals and
warnings are about the rows, not about other draws of the noise.

Adult (TACIT_DATA/adult) is fitted on its training file and scored on its test file, with features, bounds and
categories of its description (`datasets`). The network of DP-SGD has 16 hidden units (tanh), clip 1, momentum
0.9, learning rate 0.3, batches of 1,024 and 15 epochs; without privacy it is trained by Adam, learning rate 1e-3,
batches of 128, 15 epochs. None of these was tuned. Delta is 1e-5. Recall is the share of people with the higher income
who are found.
Without TACIT_DATA people are generated, of whom a small group depends on a feature of its own.

`spread` is the standard deviation over runs; `warned` in how many of the runs `tacit.learn.subgroup_report` warns about
the group's accuracy or recall.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn import linear_model
from torch import nn
from torch.nn import functional

from bench.learning import datasets
from bench.results import Result
from tacit import learn
from tacit.learn import SubgroupReport, SubgroupWarning, subgroup_report
from tacit.ledger import Budget

EPSILONS: Final = (0.5, 1.0, 4.0)
SEEDS: Final = 3
DELTA: Final = 1e-5
GOAL: Final = 84.0
"""Percent correct on Adult at epsilon 1."""
MODELS: Final = ("LogisticRegression", "DP-SGD")
BATCH_SIZE, EPOCHS, LEARNING_RATE = 1024, 15, 0.3


@dataclass(frozen=True)
class People:
    """Rows with their labels, and the public facts about them."""

    name: str
    train: pd.DataFrame
    train_labels: NDArray[Any]
    test: pd.DataFrame
    labels: NDArray[Any]
    attributes: tuple[str, ...]
    """The columns that form groups."""
    bounds: Mapping[str, tuple[float, float]]
    categories: Mapping[str, list[str]]
    classes: list[str]


@dataclass(frozen=True)
class Reports:
    """Of one run: the report about all people, and that about the people of the second class, whose loss is recall."""

    all: SubgroupReport
    positive: SubgroupReport

    @property
    def accuracy(self) -> float:
        """The share of all people who are predicted right."""
        first = [one for one in self.all.subgroups if one.attribute == self.all.subgroups[0].attribute]
        return sum(one.rows * one.accuracy for one in first) / self.all.rows


def run(quick: bool) -> Iterator[Result]:
    """Measure both models at every epsilon; with --quick at epsilon 1, once."""
    people = persons()
    for model in MODELS:
        for epsilon in (1.0,) if quick else EPSILONS:
            found = [reports(people, model, epsilon, seed) for seed in range(1 if quick else SEEDS)]
            yield from _results(f"{people.name} {model}, epsilon {epsilon:g}", found, epsilon)


def _results(title: str, found: list[Reports], epsilon: float) -> Iterator[Result]:
    totals = [100 * one.accuracy for one in found]
    goal = GOAL if title.startswith("Adult LogisticRegression") and epsilon == 1 else None
    yield Result(title, float(np.mean(totals)), "% correct", {"spread": float(np.std(totals))}, goal, "higher")
    recalls = [{part.name: part for part in one.positive.subgroups} for one in found]
    for parts in zip(*(one.all.subgroups for one in found), strict=True):
        values, first = [100 * one.accuracy for one in parts], parts[0]
        shown = {
            "spread": float(np.std(values)),
            "non-private": 100 * float(np.mean([one.baseline for one in parts])),
            "recall": 100 * float(np.mean([one[first.name].accuracy for one in recalls])),
            "non-private recall": 100 * float(np.mean([one[first.name].baseline for one in recalls])),
            "rows": float(first.rows),
            "warned": float(sum(a.is_warned or b[a.name].is_warned for a, b in zip(parts, recalls, strict=True))),
        }
        yield Result(f"{title}, {first.name}", float(np.mean(values)), "% correct", shown)


def reports(people: People, model: str, epsilon: float, seed: int) -> Reports:
    """Train a model with and without privacy, and compare them on the test rows."""
    torch.manual_seed(seed)
    private, plain = PAIRS[model](people, epsilon)
    positive = people.labels == people.classes[1]
    groups = people.test[list(people.attributes)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubgroupWarning)  # they are counted
        return Reports(
            subgroup_report(private, plain, people.test, people.labels, groups),
            subgroup_report(private, plain, people.test[positive], people.labels[positive], groups[positive]),
        )


def _logistic(people: People, epsilon: float) -> tuple[Any, Any]:
    stated: dict[str, Any] = {"bounds": people.bounds, "categories": people.categories, "classes": people.classes}
    model = learn.LogisticRegression(epsilon=epsilon, delta=DELTA, **stated)
    private = model.fit(people.train, people.train_labels)
    plain = linear_model.LogisticRegression(max_iter=1000).fit(_encoded(people, people.train), people.train_labels)
    return private, lambda rows: plain.predict(_encoded(people, rows))


def _network(people: People, epsilon: float) -> tuple[Any, Any]:
    x = torch.from_numpy(_encoded(people, people.train))
    y = torch.from_numpy((people.train_labels == people.classes[1]).astype(np.int64))
    models = [nn.Sequential(nn.Linear(x.shape[1], 16), nn.Tanh(), nn.Linear(16, 2)) for _ in range(2)]
    private = learn.make_private(
        models[0],
        torch.optim.SGD(models[0].parameters(), lr=LEARNING_RATE, momentum=0.9),
        (x, y),
        epsilon=epsilon,
        delta=DELTA,
        batch_size=BATCH_SIZE,
        epochs=EPOCHS,
        budget=Budget(epsilon, 20 * DELTA),
        audit=False,
    )
    for features, labels in private:
        private.step(functional.cross_entropy(models[0](features), labels, reduction="none"))
    optimizer = torch.optim.Adam(models[1].parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(128):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            functional.cross_entropy(models[1](x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def predicts(model: nn.Module) -> Any:
        def predict(rows: pd.DataFrame) -> NDArray[Any]:
            with torch.no_grad():
                found = model(torch.from_numpy(_encoded(people, rows))).argmax(dim=1).numpy()
            return np.asarray(np.asarray(people.classes)[found])

        return predict

    return predicts(models[0]), predicts(models[1])


PAIRS: Final = {"LogisticRegression": _logistic, "DP-SGD": _network}


def _encoded(people: People, rows: pd.DataFrame) -> NDArray[np.float32]:
    """Return numbers between -1 and 1 by their bounds, and categories as cells."""
    numbers = [(2 * rows[name] - low - high) / (high - low) for name, (low, high) in people.bounds.items()]
    cells = [rows[name] == one for name, listed in people.categories.items() for one in listed]
    return np.stack([one.to_numpy(np.float32) for one in (*numbers, *cells)], axis=1)


def persons() -> People:
    """Return the people of Adult, or generated ones without TACIT_DATA."""
    found = datasets.adult()
    if found is None:
        return generated()
    train, test = found
    columns = [*datasets.BOUNDS, *datasets.NOMINAL]
    labels = datasets.incomes(train), datasets.incomes(test)
    return People(
        "Adult",
        train[columns],
        labels[0],
        test[columns],
        labels[1],
        ("sex", "race"),
        bounds=datasets.BOUNDS,
        categories=datasets.categories(),
        classes=datasets.CLASSES,
    )


def generated(count: int = 8_000) -> People:
    """Return people of three groups; the label of the smallest depends on a feature that is 0 for the others."""
    random, names = np.random.default_rng(5), ["many", "some", "few"]
    group = random.choice(names, 2 * count, p=[0.6, 0.38, 0.02])
    few, numbers = group == "few", random.uniform(-1, 1, (2 * count, 2))
    first, second = np.where(few, 0.0, numbers[:, 0]), np.where(few, numbers[:, 1], 0.0)
    labels = np.where(first + second + random.normal(0, 0.2, 2 * count) > 0, "high", "low")
    frame = pd.DataFrame({"first": first, "second": second, "group": group})
    parts = frame[:count], labels[:count], frame[count:], labels[count:]
    bounds = {"first": (-1.0, 1.0), "second": (-1.0, 1.0)}
    return People("generated", *parts, ("group",), bounds, {"group": names}, ["low", "high"])
