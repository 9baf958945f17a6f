"""Searches, cross-validations and ensembles of scikit-learn around private estimators: paid fit by fit, or refused."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn import ensemble
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.experimental import (
    enable_halving_search_cv,  # noqa: F401
    enable_iterative_imputer,  # noqa: F401
)
from sklearn.impute import IterativeImputer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler as PublicScaler
from sklearn.utils.discovery import all_estimators

import tacit
from tacit.learn import DecisionTreeClassifier, GaussianNB, LinearRegression, StandardScaler
from tacit.learn.estimators.base import PrivateEstimator
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


AROUND = ("base_estimator", "estimator", "estimators", "regressor", "steps", "transformer_list", "transformers")
"""Parameters of scikit-learn that hold other estimators."""
OFTEN = {
    **{name: kind for name, kind in all_estimators() if set(AROUND) & set(inspect.signature(kind).parameters)},
    "HalvingGridSearchCV": HalvingGridSearchCV,
    "HalvingRandomSearchCV": HalvingRandomSearchCV,
    "IterativeImputer": IterativeImputer,
}
ONCE = {"ColumnTransformer", "FeatureUnion", "Pipeline", "TransformedTargetRegressor"}
ELSEWHERE = {"AdaBoostClassifier": "sample_weight", "FrozenEstimator": "not fitted"}
"""What is refused before it fits anything, for reasons of its own."""
OTHERS: dict[str, dict[str, Any]] = {
    "GridSearchCV": {"param_grid": {"alpha": [1.0, 2.0]}},
    "HalvingGridSearchCV": {"param_grid": {"alpha": [1.0, 2.0]}},
    "HalvingRandomSearchCV": {"param_distributions": {"alpha": [1.0, 2.0]}},
    "RandomizedSearchCV": {"param_distributions": {"alpha": [1.0, 2.0]}, "n_iter": 2},
    "RANSACRegressor": {"min_samples": 30},
}


@pytest.mark.parametrize("name", sorted(OFTEN))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_fits_an_estimator_without_a_budget_at_most_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits, release, kind = [], PrivateEstimator._take_prepared, OFTEN[name]

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        fits.append(self)
        return release(self, *given, **named)

    monkeypatch.setattr(PrivateEstimator, "_take_prepared", counted)
    random = np.random.default_rng(0)
    x = random.random((200, 3))
    costs, labels = x @ [1.0, 2.0, 3.0], (x[:, 0] > 0.5).astype(int)
    numbers: Any = {"epsilon": EPSILON, "bounds": (0, 1)}
    scaler, classifier = StandardScaler(**numbers), GaussianNB(**numbers, classes=[-1, 0, 1])
    regressor = LinearRegression(**numbers, target_bounds=(0, 6))
    parameter = next(one for one in inspect.signature(kind).parameters if one in AROUND)
    regresses = is_regressor(kind(**{parameter: regressor})) if "Regressor" in name else name == "IterativeImputer"
    given: Any = regressor if regresses else classifier
    if parameter in ("estimators", "steps"):
        given = [("one", given)]
    elif parameter in ("transformers", "transformer_list"):
        given = [("one", scaler, [0, 1, 2]) if parameter == "transformers" else ("one", scaler)]
    strict = {"error_score": "raise"} if "error_score" in inspect.signature(kind).parameters else {}
    made = kind(**{parameter: given}, **strict, **OTHERS.get(name, {}))
    y = costs if regresses else np.where(np.arange(200) < 100, labels, -1) if "SelfTraining" in name else labels
    if name == "IterativeImputer":
        x[::7, 0] = np.nan
    elif name.startswith(("MultiOutput", "RegressorChain", "ClassifierChain")):
        y = np.column_stack([y, y])
    if name in ONCE:
        made.fit(x, y)
        assert len(fits) == 1
    else:
        with pytest.raises((tacit.TacitError, ValueError), match=ELSEWHERE.get(name, "PrivateSearch")):
            made.fit(x, y)
        assert fits == []


def test_a_job_that_does_not_show_what_started_it_needs_a_budget() -> None:
    def union() -> Any:
        scaler = StandardScaler(epsilon=EPSILON, bounds=(-5, 5))
        return FeatureUnion([("one", clone(scaler)), ("two", clone(scaler))], n_jobs=2)

    x = NUMBERS.to_numpy()
    with joblib.parallel_backend("threading"):
        with pytest.raises(tacit.TacitError, match="PrivateSearch"):
            union().fit(x)
        budget = tacit.Budget(1.0)
        for _, each in (paid := union()).transformer_list:
            each.set_params(budget=budget)
        paid.fit(x)
    assert budget.spent().epsilon == pytest.approx(2 * EPSILON)


def test_a_column_transformer_and_a_clone_of_it_need_no_budget() -> None:
    parts = ColumnTransformer([("all", StandardScaler(epsilon=EPSILON, bounds=BOUNDS), ["a", "b"])], n_jobs=1)
    for made in (parts, clone(parts)):
        assert made.fit_transform(NUMBERS).shape == NUMBERS.shape


UNIONS: dict[str, Callable[..., Any]] = {
    "FeatureUnion": lambda *parts: FeatureUnion([(str(place), one) for place, one in enumerate(parts)]),
    "ColumnTransformer": lambda *parts: ColumnTransformer(
        [(str(place), one, [0, 1]) for place, one in enumerate(parts)]
    ),
}


@pytest.mark.parametrize("name", UNIONS)
def test_several_parts_of_a_union_need_a_budget_and_one_does_not(name: str) -> None:
    """Twenty fits of epsilon 1 in a union showed the mean of their noise, each at a cost of 1."""

    def scaler(budget: Any = None) -> Any:
        return StandardScaler(epsilon=EPSILON, bounds=(-5, 5), budget=budget)

    x, union, budget = NUMBERS.to_numpy(), UNIONS[name], tacit.Budget(1.0)
    for several in (
        union(scaler(), scaler()),
        union(scaler(), make_pipeline(scaler(), PublicScaler())),
        make_pipeline(union(scaler(), "passthrough", make_pipeline(scaler()))),
        union(union(scaler(), scaler())) if name == "FeatureUnion" else union(scaler(), scaler(), "drop"),
    ):
        with pytest.raises(tacit.TacitError, match=f"each part of a {name} would have a budget of its own"):
            several.fit(x)
    for single in (union(scaler()), union(scaler(), PublicScaler(), "passthrough"), union(scaler(), scaler(budget))):
        single.fit(x)
    union(scaler(budget)).fit(x)
    assert budget.spent().epsilon == pytest.approx(2 * EPSILON)
