"""Learning from randomised labels and from randomised rows, beside what protects rows, and without privacy.

Label DP protects labels alone, in place of others, without a delta; DP-SGD and LogisticRegression protect rows that are
added or removed, at a delta: equal epsilons are not equal promises. Mean and standard deviation (`spread`) of the runs;
without TACIT_DATA generated rows.

Adult: fitted on the training file, scored on the test file. Logistic regression of scikit-learn (defaults, 300 rounds)
on bounds and categories of the description. MNIST: a linear model of 392 gradient orientations (`digits`), scored on
the test images. Randomised labels: forward correction, AdamW, 5 passes in batches of 512, learning rate falling from
0.003 to 0, no weight decay. DP-SGD: 20 passes in batches of 4,096 on average, clip 1, SGD with learning rate 32 on rows
of length 1, at delta 1e-5. Learning rates, decay and passes were chosen on 5,000 of the training images; nothing was
tuned on scored rows. With --quick the first 8,000 test images are learned from, and the others scored.

Randomised rows of Adult have three columns and the target, of the 11: each value takes its share of epsilon. `not
debiased` is naive Bayes of the reports as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import linear_model
from torch.nn import functional

from bench.learning import datasets, digits
from bench.results import Result
from tacit import learn
from tacit.ledger import Budget
from tacit.privacy.units import Relation

LABEL_EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
ROW_EPSILONS: Final = (1.0, 4.0, 8.0)
SEEDS: Final = 3
DELTA: Final = 1e-5
SCALE: Final = 20.0
"""The length of rows for models without clipping."""
COLUMNS: Final = ("education_num", "age", "marital_status")
Scores: TypeAlias = dict[str, float]
Part: TypeAlias = tuple[torch.Tensor, NDArray[np.int64]]


def run(quick: bool) -> Iterator[Result]:
    """Measure generated rows, then Adult and MNIST."""
    seeds = range(1 if quick else SEEDS)
    yield from _table(ROW_EPSILONS, seeds, generated, "R squared")
    label_epsilons = (1.0,) if quick else LABEL_EPSILONS
    if (people := datasets.adult()) is not None:
        yield from _table(label_epsilons, seeds, lambda epsilon, _seed: adult_labels(*people, epsilon), "% correct")
        yield from _table(ROW_EPSILONS, seeds, lambda epsilon, _seed: adult_rows(*people, epsilon), "% correct")
    if datasets.has_mnist():
        images = mnist(quick)
        yield from _table(
            label_epsilons, seeds, lambda epsilon, seed: mnist_labels(*images, epsilon, seed), "% correct"
        )


def _table(
    epsilons: tuple[float, ...], seeds: range, measure: Callable[[float, int], Scores], unit: str
) -> Iterator[Result]:
    """Yield a row for each epsilon and method; names with a * are baselines, shown beside all others."""
    for epsilon in epsilons:
        runs = [measure(epsilon, seed) for seed in seeds]
        found = {name: [one[name] for one in runs] for name in runs[0]}
        beside = {name[1:]: float(np.mean(values)) for name, values in found.items() if name.startswith("*")}
        for name, values in found.items():
            if not name.startswith("*"):
                shown = {**({"spread": float(np.std(values))} if len(runs) > 1 else {}), **beside}
                yield Result(f"{name}, epsilon {epsilon:g}", float(np.mean(values)), unit, shown, better="higher")


def _budget(epsilon: float) -> Budget:
    return Budget(epsilon, relation=Relation.REPLACE_ONE)


def generated(epsilon: float, seed: int) -> Scores:
    """Return R squared of linear regression from randomised rows of two features and a target."""
    random = np.random.default_rng(seed)
    rows = np.clip(random.normal(0, 0.5, (2, 30_000, 2)), -1, 1)
    target = np.clip(rows @ [0.6, -0.3] + random.normal(0, 0.1, rows.shape[:2]), -1, 1)
    bounds, columns = (-1, 1), {"a": rows[0, :, 0], "b": rows[0, :, 1], "target": target[0]}
    reports = learn.randomize_features(columns, bounds=bounds, epsilon=epsilon, budget=_budget(epsilon))
    released = reports.columns
    inputs = np.stack([released["a"], released["b"]], axis=1)
    plain = linear_model.LinearRegression().fit(inputs, released["target"])
    model = learn.debiased_linear_regression(reports, "target")
    return {
        "linear regression of 3 randomised columns, debiased": model.score(rows[1], target[1]),
        "*not debiased": plain.score(rows[1], target[1]),
        "*without privacy": linear_model.LinearRegression().fit(rows[0], target[0]).score(rows[1], target[1]),
    }


def _encoded(frame: Any) -> NDArray[np.float64]:
    parts = []
    for name, (low, high) in datasets.BOUNDS.items():
        values = np.clip(frame[name].to_numpy(float), low, high)[:, None]
        parts += [(values - low) / (high - low), np.log1p(values) / np.log1p(high)]
    for name, listed in datasets.categories().items():
        parts.append((frame[name].to_numpy()[:, None] == np.array(listed)).astype(float))
    return np.concatenate(parts, axis=1)


def adult_labels(train: Any, test: Any, epsilon: float) -> Scores:
    """Return the accuracy of logistic regression on Adult, from randomised labels and from protected rows."""
    x, y, scored, truth = _encoded(train), datasets.incomes(train), _encoded(test), datasets.incomes(test)
    plain = linear_model.LogisticRegression(max_iter=300)
    found = {}
    for stages, name in ((1, "one stage"), (2, "two stages")):
        model = learn.LabelDPClassifier(
            plain, classes=datasets.CLASSES, epsilon=epsilon, budget=_budget(epsilon), stages=stages
        )
        found[f"Adult, randomised labels, {name}"] = 100 * model.fit(x, y).score(scored, truth)
    columns = [*datasets.BOUNDS, *datasets.NOMINAL]
    rows = learn.LogisticRegression(
        epsilon=epsilon,
        delta=DELTA,
        bounds=datasets.BOUNDS,
        categories=datasets.categories(),
        classes=datasets.CLASSES,
    ).fit(train[columns], y)
    return {
        **found,
        "*protects features too": 100 * rows.score(test[columns], truth),
        "*without privacy": 100 * plain.fit(x, y).score(scored, truth),
    }


def adult_rows(train: Any, test: Any, epsilon: float) -> Scores:
    """Return the accuracy of naive Bayes on Adult from randomised rows."""
    names = list(COLUMNS)
    bounds = {name: one for name, one in datasets.BOUNDS.items() if name in names}
    listed = {name: one for name, one in datasets.categories().items() if name in names}
    table = train[names].assign(income=datasets.incomes(train))
    stated: Mapping[str, Any] = {"bounds": bounds, "categories": {**listed, "income": datasets.CLASSES}}
    reports = learn.randomize_features(table, epsilon=epsilon, budget=_budget(epsilon), **stated)
    scored, truth = test[names], datasets.incomes(test)

    def bayes(columns: Any, labels: Any, spent: float) -> float:
        model = learn.GaussianNB(epsilon=spent, bounds=bounds, categories=listed, classes=datasets.CLASSES)
        return 100 * float(model.fit(columns, labels).score(scored, truth))

    released = reports.columns
    return {
        "Adult, naive Bayes of 4 randomised columns, debiased": 100
        * learn.debiased_naive_bayes(reports, "income").score(scored, truth),
        "*not debiased": bayes({name: released[name] for name in names}, released["income"], 1e5),
        "*rows kept by a curator": bayes(table[names], table["income"], epsilon),
        "*without privacy": bayes(table[names], table["income"], 1e5),
        "*more frequent class": 100 * float((truth == datasets.CLASSES[0]).mean()),
    }


def mnist(quick: bool) -> tuple[Part, Part]:
    """Return orientations and labels to learn from, and to be scored."""
    rows, labels = digits.load("t10k")
    test = torch.tensor(rows), labels
    if quick:
        return (test[0][:8000], test[1][:8000]), (test[0][8000:], test[1][8000:])
    rows, labels = digits.load("train")
    return (torch.tensor(rows), labels), test


def mnist_labels(train: Part, test: Part, epsilon: float, seed: int) -> Scores:
    """Return the accuracy of a linear model on MNIST, from randomised labels and by DP-SGD."""
    x, y = train
    stated: Mapping[str, Any] = {"classes": range(10), "epsilon": epsilon}

    def score(model: torch.nn.Module, scale: float = SCALE) -> float:
        with torch.no_grad():
            return 100 * float((model(test[0] * scale).argmax(dim=1).numpy() == test[1]).mean())

    def prior(first: Any, rows: Any, others: Any) -> Any:
        model = _train(x[rows], lambda logits, batch: learn.corrected_loss(logits, first, batch), seed)
        with torch.no_grad():
            return model(x[others] * SCALE).softmax(dim=1).double().numpy()

    one = learn.randomize_labels(y, **stated, budget=_budget(epsilon))
    two = learn.randomize_labels(y, **stated, budget=_budget(epsilon), prior=prior)
    true, reported = torch.tensor(y), torch.tensor(one.codes)
    losses: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
        "MNIST, randomised labels, one stage": lambda logits, batch: learn.corrected_loss(logits, one, batch),
        "MNIST, randomised labels, two stages": lambda logits, batch: learn.corrected_loss(logits, two, batch),
        "*not debiased": lambda logits, batch: functional.cross_entropy(logits, reported[batch], reduction="none"),
        "*without privacy": lambda logits, batch: functional.cross_entropy(logits, true[batch], reduction="none"),
    }
    found = {name: score(_train(x, loss, seed)) for name, loss in losses.items()}
    return {**found, "*protects features too": score(_dp_sgd(x, true, epsilon), 1.0)}


def _linear(width: int) -> torch.nn.Linear:
    model = torch.nn.Linear(width, 10)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    return model


def _train(
    x: torch.Tensor, loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], seed: int, passes: int = 5
) -> torch.nn.Module:
    """Return a linear model; `loss` is a function of logits and of the places of rows, one number for each."""
    torch.manual_seed(seed)
    model, steps = _linear(x.shape[1]), passes * len(x) // 512
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(steps):
        batch = torch.randint(len(x), (512,))
        optimizer.zero_grad()
        loss(model(x[batch] * SCALE), batch).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
    return model


def _dp_sgd(x: torch.Tensor, y: torch.Tensor, epsilon: float, passes: int = 20, lr: float = 32.0) -> torch.nn.Module:
    model = _linear(x.shape[1])
    private = learn.make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=lr),
        (x, y),
        epsilon=epsilon,
        delta=DELTA,
        clip=1.0,
        batch_size=min(4096, len(x) // 4),
        epochs=passes,
        budget=Budget(epsilon * 1.001, 20 * DELTA),
        audit=False,
    )
    for rows, labels in private:
        private.step(functional.cross_entropy(model(rows), labels, reduction="none"))
    return model
