"""The public bounds of what a fitted transformer returns are known to the next step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from tacit import learn
from tacit.learn.estimators.base import PrivateEstimator
from tacit.ledger import Budget
from tacit.privacy.errors import NotBounded
from tests.support.estimators import BOUNDS, CLASSES, EXACT, LABELS, NUMBERS

TRANSFORMERS = {
    "scaler": learn.StandardScaler(epsilon=EXACT, bounds=BOUNDS),
    "components": learn.PCA(epsilon=EXACT, bounds=BOUNDS),
    "bins": learn.KBinsDiscretizer(3, epsilon=EXACT, bounds=BOUNDS),
    "ordinal bins": learn.KBinsDiscretizer(3, epsilon=EXACT, bounds=BOUNDS, encode="ordinal"),
    "distances": learn.KMeans(2, epsilon=EXACT, bounds=BOUNDS),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize("as_frame", [True, False], ids=["frame", "array"])
def test_a_classifier_after_a_private_transformer_needs_no_bounds_of_its_own(name: str, as_frame: bool) -> None:
    rows = NUMBERS if as_frame else NUMBERS.to_numpy()
    bounds = BOUNDS if as_frame else {"x0": BOUNDS["a"], "x1": BOUNDS["b"]}
    model = make_pipeline(
        clone(TRANSFORMERS[name]).set_params(bounds=bounds), learn.GaussianNB(epsilon=EXACT, classes=CLASSES)
    )
    assert model.fit(rows, LABELS).score(rows, LABELS) > 0.6
    known = np.array([(one.lower, one.upper) for one in model[-1].features_.columns])
    assert known == pytest.approx(np.array(model[0].transform(rows).bounds))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformed_rows_lie_within_their_bounds_whatever_the_rows(name: str) -> None:
    fitted = clone(TRANSFORMERS[name]).fit(NUMBERS)
    corners = np.array([(a, b) for a in (-1e9, *BOUNDS["a"], 1e9) for b in (-1e9, *BOUNDS["b"], 1e9)])
    found = fitted.transform(corners)
    low, high = np.array(found.bounds).T
    assert found.shape[1] == len(low) == len(fitted.get_feature_names_out())
    assert (found >= low - 1e-9).all()
    assert (found <= high + 1e-9).all()


def test_stated_bounds_come_before_those_of_the_transformer() -> None:
    scaled = learn.StandardScaler(epsilon=EXACT, bounds=BOUNDS).fit_transform(NUMBERS)
    model = learn.GaussianNB(epsilon=EXACT, classes=CLASSES, bounds={"x0": (0.0, 0.5)}).fit(scaled, LABELS)
    first, second = model.features_.columns
    assert (first.lower, first.upper) == (0.0, 0.5)
    assert (second.lower, second.upper) == pytest.approx(scaled.bounds[1])


@pytest.mark.parametrize(
    "change", [lambda x: x[:50], lambda x: x + 1, np.array, lambda x: x[:, ::-1]], ids=["rows", "sums", "copy", "order"]
)
def test_arrays_that_are_computed_from_transformed_rows_have_no_bounds(change: Any) -> None:
    changed = change(learn.StandardScaler(epsilon=EXACT, bounds=BOUNDS).fit_transform(NUMBERS))
    with pytest.raises(NotBounded, match="give bounds"):
        learn.GaussianNB(epsilon=EXACT, classes=CLASSES).fit(changed, LABELS[: len(changed)])


def test_both_steps_are_charged_and_a_search_can_be_the_last_one() -> None:
    budget = Budget(3.0)
    tree: PrivateEstimator = learn.DecisionTreeClassifier(classes=CLASSES)
    search = learn.PrivateSearch(tree, {"max_depth": [1, 2]}, epsilon=1.0, budget=budget)
    make_pipeline(learn.StandardScaler(epsilon=1.0, bounds=BOUNDS, budget=budget), search).fit(NUMBERS, LABELS)
    assert budget.spent().epsilon == pytest.approx(2.0)
