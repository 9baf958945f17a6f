# mypy: ignore-errors
"""diffprivlib's estimators in its own environment, on the arrays and with the bounds of `bench.learning.datasets`."""

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import PCA, GaussianNB, KMeans, LinearRegression, StandardScaler

warnings.simplefilter("ignore")
arguments = json.loads(sys.argv[1])


def generated(rows, epsilon, seed):
    """Return the figures of one run on generated rows."""
    regression = LinearRegression(
        epsilon=epsilon, bounds_X=([-1.0] * 8, [1.0] * 8), bounds_y=(-2.0, 2.0), random_state=seed
    ).fit(rows["train rows"], rows["train target"])
    components = PCA(2, epsilon=epsilon, bounds=([-3.0] * 8, [3.0] * 8), data_norm=3 * 8**0.5, random_state=seed).fit(
        rows["train mixed"]
    )
    clusters = KMeans(4, epsilon=epsilon, bounds=([-1.0] * 2, [1.0] * 2), random_state=seed).fit(rows["train points"])
    mixed = rows["test mixed"] - rows["test mixed"].mean(axis=0)
    distances = np.square(rows["test points"][:, None] - clusters.cluster_centers_[None]).sum(axis=2)
    return {
        "LinearRegression, 8 features": regression.score(rows["test rows"], rows["test target"]),
        "PCA, 2 of 8": float(np.square(mixed @ components.components_.T).sum() / np.square(mixed).sum()),
        "KMeans, 4 clusters": float(distances.min(axis=1).sum() / rows["least inertia"]),
    }


def adult(rows, epsilon, seed):
    """Return the figures of one run on Adult's numbers."""
    bounds = (arguments["lower"], arguments["upper"])
    numbers, labels = rows["train numbers"], rows["train labels"]
    bayes = GaussianNB(epsilon=epsilon, bounds=bounds, random_state=seed).fit(numbers, labels)
    scaler = StandardScaler(epsilon=epsilon, bounds=bounds, random_state=seed).fit(numbers)
    error = (scaler.mean_ - numbers.mean(axis=0)) / numbers.std(axis=0)
    return {
        "GaussianNB, Adult numbers": 100 * float((bayes.predict(rows["test numbers"]) == rows["test labels"]).mean()),
        "StandardScaler, Adult": float(np.sqrt(np.mean(np.square(error)))),
    }


score = {"generated": generated, "Adult": adult}[arguments["rows"]]
scores = {epsilon: [] for epsilon in arguments["epsilons"]}
for seed, path in enumerate(arguments["paths"]):
    rows = dict(np.load(path))
    for epsilon, found in scores.items():
        found.append(score(rows, epsilon, seed))
print(json.dumps({"scores": scores}))
