"""Estimators beside diffprivlib and scikit-learn without privacy, at epsilon 0.1, 1 and 10; mean and spread of runs.

Adult (TACIT_DATA/adult) is fitted on its training file and scored on its test file; its bounds and categories are those
of its description. Generated rows are drawn anew in each run, half of them to be scored. The defaults of logistic
regression and boosting were chosen on a part of the training file of Adult; those of forests (trees, depth) were first
compared on the test file, in single runs, and then confirmed on that part. Nothing else was tuned on scored rows.
tacit protects a row that is added or removed and releases a noisy number of rows; diffprivlib protects the values of a
row, and takes the number of rows for public. `spread` is the standard deviation over runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import cluster, decomposition, linear_model, naive_bayes, neighbors
from sklearn.preprocessing import OrdinalEncoder

from bench import peers
from bench.learning.datasets import BOUNDS, CLASSES, NOMINAL, adult, categories, incomes
from bench.results import Result
from tacit import learn

EPSILONS: Final = (0.1, 1.0, 10.0)
SEEDS: Final = 5
SCRIPT: Final = Path(peers.__file__).parent / "estimators_diffprivlib.py"

CLASSIFIERS: Final = (
    "LogisticRegression",
    "DecisionTreeClassifier",
    "RandomForestClassifier",
    "HistGradientBoostingClassifier",
)
DELTA: Final = 1e-5
Floats: TypeAlias = NDArray[np.float64]
Scores: TypeAlias = dict[str, float]
"""Figures of one run by the name of the estimator."""


def run(quick: bool) -> Iterator[Result]:
    """Measure every estimator on generated rows, then on Adult."""
    seeds = range(3 if quick else SEEDS)
    sets: dict[str, Callable[[int], Any]] = {"generated": generated}
    if (people := adult()) is not None:
        sets["Adult"] = lambda _seed: people
    for name, rows in sets.items():
        private, plain = SCORES[name], PLAIN[name]
        exact = [plain(rows(seed)) for seed in (seeds if name == "generated" else [0])]
        others = _peer(name, [rows(seed) for seed in seeds])
        for epsilon in EPSILONS:
            found = [private(rows(seed), epsilon, seed) for seed in seeds]
            for figure in found[0]:
                values = [one[figure] for one in found]
                their = [one[figure] for one in others[epsilon] if figure in one]
                shown = {
                    "spread": float(np.std(values)),
                    "diffprivlib": float(np.mean(their)) if their else None,
                    "their spread": float(np.std(their)) if their else None,
                    "scikit-learn": float(np.mean([one[figure] for one in exact])) if figure in exact[0] else None,
                }
                yield Result(f"{figure}, epsilon {epsilon:g}", float(np.mean(values)), UNITS[figure], shown)


UNITS: Final = {
    "LinearRegression, 8 features": "R squared",
    "PCA, 2 of 8": "share of variance",
    "KMeans, 4 clusters": "times the least inertia",
    "StandardScaler, Adult": "error of means in deviations",
    "KBinsDiscretizer, Adult age": "greatest error of a share, %",
    "KernelDensity, Adult age": "mean log density",
    "GaussianNB, Adult numbers": "% correct",
    "GaussianNB, Adult": "% correct",
    "CategoricalNB, Adult": "% correct",
    **{f"{name}, Adult{end}": "% correct" for name in CLASSIFIERS for end in ("", f", delta {DELTA:g}")},
}


def generated(seed: int) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
    """Return 20,000 rows and as many to be scored: for a regression, for components, for clusters."""
    random = np.random.default_rng(1000 + seed)
    weights, mixing = random.normal(size=8), random.normal(size=(8, 8)) * 0.7 ** np.arange(8)[:, None]
    middles = random.uniform(-0.7, 0.7, (4, 2))
    found = []
    for _ in range(2):
        rows = np.clip(random.normal(0, 0.35, (20_000, 8)), -1, 1)
        target = np.clip(rows @ weights * 0.35 + random.normal(0, 0.3, 20_000), -2, 2)
        mixed = np.clip(random.normal(0, 0.3, (20_000, 8)) @ mixing, -3, 3)
        points = np.clip(middles[random.integers(4, size=20_000)] + random.normal(0, 0.08, (20_000, 2)), -1, 1)
        found.append({"rows": rows, "target": target, "mixed": mixed, "points": points})
    return found[0], found[1]


def _generated_scores(rows: Any, epsilon: float, seed: int) -> Scores:
    train, test = rows
    regression = learn.LinearRegression(epsilon=epsilon, bounds=(-1, 1), target_bounds=(-2, 2))
    components = learn.PCA(2, epsilon=epsilon, bounds=(-3, 3)).fit(train["mixed"])
    clusters = learn.KMeans(4, epsilon=epsilon, bounds=(-1, 1), random_state=seed).fit(train["points"])
    return {
        "LinearRegression, 8 features": regression.fit(train["rows"], train["target"]).score(
            test["rows"], test["target"]
        ),
        "PCA, 2 of 8": _captured(components.components_, test["mixed"]),
        "KMeans, 4 clusters": _inertia(clusters.cluster_centers_, test["points"]) / _least_inertia(train, test),
    }


def _plain_generated(rows: Any) -> Scores:
    train, test = rows
    model = linear_model.LinearRegression().fit(train["rows"], train["target"])
    return {
        "LinearRegression, 8 features": model.score(test["rows"], test["target"]),
        "PCA, 2 of 8": _captured(decomposition.PCA(2).fit(train["mixed"]).components_, test["mixed"]),
        "KMeans, 4 clusters": 1.0,
    }


def _captured(components: Floats, rows: Floats) -> float:
    """Return the share of the variance of rows that lies in components."""
    centred = rows - rows.mean(axis=0)
    return float(np.square(centred @ components.T).sum() / np.square(centred).sum())


def _inertia(centres: Floats, rows: Floats) -> float:
    return float(np.square(rows[:, None] - centres[None]).sum(axis=2).min(axis=1).sum())


def _least_inertia(train: Any, test: Any) -> float:
    exact = cluster.KMeans(4, n_init=10, random_state=0).fit(train["points"])
    return _inertia(exact.cluster_centers_, test["points"])


def _adult_scores(rows: Any, epsilon: float, _seed: int) -> Scores:
    train, test = rows
    numbers, listed, labels, truth = list(BOUNDS), list(NOMINAL), incomes(train), incomes(test)
    stated: dict[str, Any] = {"epsilon": epsilon, "bounds": BOUNDS}
    named: dict[str, Any] = {"categories": categories(), "classes": CLASSES}
    scaler = learn.StandardScaler(**stated).fit(train[numbers])
    bins = learn.KBinsDiscretizer(5, epsilon=epsilon, bounds=BOUNDS["age"], encode="ordinal").fit(train[["age"]])
    density = learn.KernelDensity(epsilon=epsilon, bounds=BOUNDS["age"]).fit(train[["age"]])
    models: dict[str, tuple[Any, list[str]]] = {
        "GaussianNB, Adult numbers": (learn.GaussianNB(classes=CLASSES, **stated), numbers),
        "GaussianNB, Adult": (learn.GaussianNB(**stated, **named), numbers + listed),
        "CategoricalNB, Adult": (learn.CategoricalNB(epsilon=epsilon, **named), listed),
    }
    for name in CLASSIFIERS:
        for delta in (None, DELTA):
            shown = f"{name}, Adult" + (f", delta {delta:g}" if delta else "")
            models[shown] = (getattr(learn, name)(delta=delta, **stated, **named), numbers + listed)
    right = {
        name: 100 * float((model.fit(train[columns], labels).predict(test[columns]) == truth).mean())
        for name, (model, columns) in models.items()
    }
    return {
        "StandardScaler, Adult": _error_of_means(scaler.mean_, train[numbers].to_numpy()),
        "KBinsDiscretizer, Adult age": _error_of_shares(bins.bin_edges_[0], train["age"].to_numpy()),
        "KernelDensity, Adult age": float(density.score_samples(test[["age"]]).mean()),
        **right,
    }


def _plain_adult(rows: Any) -> Scores:
    train, test = rows
    numbers, listed, labels, truth = list(BOUNDS), list(NOMINAL), incomes(train), incomes(test)
    encoder = OrdinalEncoder().fit(train[listed])
    categorical = naive_bayes.CategoricalNB().fit(encoder.transform(train[listed]), labels)
    gaussian = naive_bayes.GaussianNB().fit(train[numbers], labels)
    density = neighbors.KernelDensity(bandwidth="scott").fit(train[["age"]] / train["age"].std())
    some = test[["age"]].head(1000) / train["age"].std()
    return {
        "KernelDensity, Adult age": float(density.score_samples(some).mean() - np.log(train["age"].std())),
        "GaussianNB, Adult numbers": 100 * float((gaussian.predict(test[numbers]) == truth).mean()),
        "CategoricalNB, Adult": 100 * float((categorical.predict(encoder.transform(test[listed])) == truth).mean()),
    }


def _error_of_means(means: Floats, rows: Floats) -> float:
    return float(np.sqrt(np.mean(np.square((means - rows.mean(axis=0)) / rows.std(axis=0)))))


def _error_of_shares(edges: Floats, values: Floats) -> float:
    """Return how far the share of values up to an inner edge is at most from its share, in percent.

    Ages are whole numbers: the share nearest to the wanted one, below the edge or with it, counts.
    """
    wanted = np.arange(1, len(edges) - 1) / 5
    below, upto = (np.array([np.mean(test(values, edge)) for edge in edges[1:-1]]) for test in (np.less, np.less_equal))
    return 100 * float(np.max(np.maximum(np.maximum(below - wanted, wanted - upto), 0.0), initial=0.0))


def _peer(name: str, runs: list[tuple[Any, Any]]) -> dict[float, list[Scores]]:
    """Return the figures of diffprivlib by epsilon, none where it is not installed."""
    none: dict[float, list[Scores]] = {epsilon: [] for epsilon in EPSILONS}
    if not peers.is_installed("diffprivlib"):
        return none
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for place, (train, test) in enumerate(runs):
            arrays: dict[str, Any] = {}
            for part, rows in (("train", train), ("test", test)):
                if isinstance(rows, pd.DataFrame):
                    rows = {"numbers": rows[list(BOUNDS)].to_numpy(float), "labels": incomes(rows) == CLASSES[1]}
                arrays |= {f"{part} {key}": one for key, one in rows.items()}
            if name == "generated":
                arrays["least inertia"] = np.array(_least_inertia(train, test))
            paths.append(str(Path(folder) / f"{place}.npz"))
            np.savez(paths[-1], **arrays)
        lower, upper = zip(*BOUNDS.values(), strict=True)
        found = peers.run("diffprivlib", SCRIPT, rows=name, paths=paths, epsilons=EPSILONS, lower=lower, upper=upper)
    return none if found is None else {float(key): scores for key, scores in found["scores"].items()}


SCORES: Final[Mapping[str, Callable[[Any, float, int], Scores]]] = {
    "generated": _generated_scores,
    "Adult": _adult_scores,
}
PLAIN: Final[Mapping[str, Callable[[Any], Scores]]] = {"generated": _plain_generated, "Adult": _plain_adult}
