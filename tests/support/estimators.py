"""An example of every private estimator: how it is made with public facts, and generated rows to fit it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tacit import learn

SIZE = 400
EXACT = 1e6
"""An epsilon without noise."""

_RANDOM = np.random.default_rng(11)
LABELS = _RANDOM.choice(["low", "high"], SIZE, p=[0.6, 0.4])
_SHIFT = np.where(LABELS == "high", 1.5, -1.0)
ROWS = pd.DataFrame(
    {
        "a": np.clip(_RANDOM.normal(_SHIFT, 1.0), -5, 5),
        "b": np.clip(_RANDOM.normal(_SHIFT * 0.5, 1.5), -5, 5),
        "group": np.where(_RANDOM.random(SIZE) < 0.3 + 0.4 * (LABELS == "high"), "x", _RANDOM.choice(["y", "z"], SIZE)),
    }
)
NUMBERS = ROWS[["a", "b"]]
COSTS = np.clip(2 * ROWS["a"] - ROWS["b"] + _RANDOM.normal(0, 0.5, SIZE), -20, 20).to_numpy()
BOUNDS = {"a": (-5, 5), "b": (-5, 5)}
GROUPS = {"group": ["x", "y", "z"]}
CLASSES = ["high", "low"]


@dataclass(frozen=True)
class Example:
    """An estimator and rows for it."""

    make: Callable[..., Any]
    stated: dict[str, Any]
    """Public facts that an array needs; a table is registered with them."""
    X: pd.DataFrame = field(default_factory=lambda: NUMBERS)
    y: Any = None

    def estimator(self, epsilon: float = EXACT, **changed: Any) -> Any:
        """Return the estimator, not fitted."""
        return self.make(epsilon=epsilon, **{**self.stated, **changed})


_LISTED: dict[str, Any] = {"bounds": BOUNDS, "categories": GROUPS, "classes": CLASSES}
EXAMPLES: dict[str, Example] = {
    "LinearRegression": Example(
        learn.LinearRegression, {"bounds": BOUNDS, "categories": GROUPS, "target_bounds": (-20, 20)}, ROWS, COSTS
    ),
    "GaussianNB": Example(learn.GaussianNB, {"bounds": BOUNDS, "categories": GROUPS, "classes": CLASSES}, ROWS, LABELS),
    "CategoricalNB": Example(learn.CategoricalNB, {"categories": GROUPS, "classes": CLASSES}, ROWS[["group"]], LABELS),
    "LogisticRegression": Example(learn.LogisticRegression, _LISTED, ROWS, LABELS),
    "DecisionTreeClassifier": Example(partial(learn.DecisionTreeClassifier, max_depth=2), _LISTED, ROWS, LABELS),
    "RandomForestClassifier": Example(partial(learn.RandomForestClassifier, max_depth=2), _LISTED, ROWS, LABELS),
    "HistGradientBoostingClassifier": Example(
        partial(learn.HistGradientBoostingClassifier, max_iter=3), _LISTED, ROWS, LABELS
    ),
    "StandardScaler": Example(learn.StandardScaler, {"bounds": BOUNDS}),
    "KBinsDiscretizer": Example(learn.KBinsDiscretizer, {"bounds": BOUNDS}),
    "PCA": Example(learn.PCA, {"bounds": BOUNDS}),
    "KMeans": Example(partial(learn.KMeans, 2), {"bounds": BOUNDS}),
    "KernelDensity": Example(learn.KernelDensity, {"bounds": BOUNDS}),
}


def outputs(model: Any, rows: Any) -> list[np.ndarray]:
    """Return what a fitted model says about rows."""
    asked = ("predict", "predict_proba", "transform", "score_samples")
    return [np.asarray(getattr(model, name)(rows)) for name in asked if hasattr(model, name)]
