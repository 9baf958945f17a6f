"""Searches, cross-validations and ensembles of scikit-learn around private estimators: paid fit by fit, or refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn import ensemble
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import tacit
from tacit.learn import DecisionTreeClassifier, StandardScaler
from tests.support.estimators import BOUNDS, EXAMPLES, LABELS, NUMBERS

EPSILON = 0.5
CHOICES: Any = {"rows_per_unit": [1, 2]}


def nothing(_model: Any, _x: Any, _y: Any = None) -> float:
    """Return the score of any model."""
    return 0.0


STRICT: Any = {"cv": 2, "scoring": nothing, "error_score": "raise"}
SEARCHES: dict[str, Callable[[Any, Any, Any, int], Any]] = {
    "GridSearchCV": lambda model, x, y, jobs: GridSearchCV(model, CHOICES, n_jobs=jobs, **STRICT).fit(x, y),
    "RandomizedSearchCV": lambda model, x, y, jobs: RandomizedSearchCV(
        model, CHOICES, n_iter=2, n_jobs=jobs, **STRICT
    ).fit(x, y),
    "HalvingGridSearchCV": lambda model, x, y, jobs: HalvingGridSearchCV(model, CHOICES, n_jobs=jobs, **STRICT).fit(
        x, y
    ),
    "cross_val_score": lambda model, x, y, jobs: cross_val_score(model, x, y, n_jobs=jobs, **STRICT),
}
FITS = {"GridSearchCV": 5, "RandomizedSearchCV": 5, "HalvingGridSearchCV": 5, "cross_val_score": 2}
"""Two settings in two folds, and the last fit; or two folds."""


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("name", "search"),
    [
        *((name, "cross_val_score") for name in sorted(EXAMPLES)),
        *(("DecisionTreeClassifier", search) for search in FITS if search != "cross_val_score"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_every_fit_is_paid_from_the_budget_and_refused_without_one(name: str, search: str, jobs: int) -> None:
    example, budget = EXAMPLES[name], tacit.Budget(FITS[search] * EPSILON)
    y = LABELS if example.y is None else example.y
    with joblib.parallel_backend("threading"):
        SEARCHES[search](example.estimator(epsilon=EPSILON, budget=budget), example.X, y, jobs)
        assert budget.spent().epsilon == pytest.approx(FITS[search] * EPSILON)
        with pytest.raises(tacit.BudgetExceeded):
            SEARCHES[search](example.estimator(epsilon=EPSILON, budget=budget), example.X, y, jobs)
        with pytest.raises(tacit.TacitError, match="PrivateSearch"):
            SEARCHES[search](example.estimator(epsilon=EPSILON), example.X, y, jobs)


def test_a_budget_in_memory_is_not_copied_to_other_processes() -> None:
    with pytest.raises(tacit.TacitError, match="cannot be pickled"):
        pickle.dumps(EXAMPLES["PCA"].estimator(budget=tacit.Budget(1.0)))


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_other_processes_cannot_spend_a_budget_in_memory_and_need_one() -> None:
    """A copy of the budget in each process would be charged in the place of this one."""
    budget, example = tacit.Budget(10.0), EXAMPLES["DecisionTreeClassifier"]
    with pytest.raises(Exception, match="pickle"):
        SEARCHES["GridSearchCV"](example.estimator(epsilon=EPSILON, budget=budget), example.X, example.y, 2)
    assert budget.spent().epsilon == 0
    with pytest.raises(tacit.TacitError, match="PrivateSearch"):
        SEARCHES["GridSearchCV"](example.estimator(epsilon=EPSILON), example.X, example.y, 2)


def test_an_ensemble_needs_a_budget_and_a_pipeline_does_not() -> None:
    example, x = EXAMPLES["DecisionTreeClassifier"], NUMBERS.to_numpy()
    tree: Any = {"bounds": (-5, 5), "classes": example.stated["classes"], "epsilon": EPSILON}
    with pytest.raises(tacit.TacitError, match="PrivateSearch"):
        ensemble.VotingClassifier(
            [("one", DecisionTreeClassifier(**tree)), ("two", DecisionTreeClassifier(**tree))]
        ).fit(x, LABELS)
    pipeline = make_pipeline(StandardScaler(epsilon=EPSILON, bounds=BOUNDS), DecisionTreeClassifier(**tree))
    assert np.isin(pipeline.fit(NUMBERS, LABELS).predict(NUMBERS), LABELS).all()
