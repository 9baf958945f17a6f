"""Private selection: the law of the number of runs, one charge for all of them, and scikit-learn's own searches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, cross_val_score

import tacit
from tacit.learn import DecisionTreeClassifier, PrivateSearch
from tacit.learn.estimators.selection import below, draw_runs, stop_for
from tacit.ledger.refusals import BudgetExceeded
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.events import Selected
from tests.statistical.evidence import Refuted, accept, chi_square_p

TREE: Any = {"bounds": (0, 1), "classes": [0, 1]}


def made(rows: int = 4000) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows of which a tree of two levels knows the class, and one of one level does not."""
    random = np.random.default_rng(0)
    x = random.uniform(size=(rows, 2))
    return x, ((x[:, 0] > 0.5) & (x[:, 1] > 0.5)).astype(int)


def test_the_number_of_runs_has_the_logarithmic_law_and_another_is_noticed() -> None:
    """The false-alarm rate is 1e-6 (`evidence`); the seed is fixed."""
    stop, source = stop_for(4.0), SeededSource(2)
    drawn = np.bincount([min(draw_runs(stop, source), 40) for _ in range(5000)], minlength=41)[1:]
    law = np.array([(1 - 1 / stop) ** k / k for k in range(1, 2000)]) / math.log(stop)
    shares = np.append(law[:39], 1 - law[:39].sum())
    accept(chi_square_p(drawn, shares), "the logarithmic law")
    geometric = np.array([(1 - 1 / stop) ** (k - 1) / stop for k in range(1, 40)])
    with pytest.raises(Refuted):
        accept(chi_square_p(drawn, np.append(geometric, 1 - geometric.sum())), "the geometric law")
    assert {below(3, source) for _ in range(50)} == {0, 1, 2}


def test_a_search_finds_the_better_setting_for_one_charge() -> None:
    budget = tacit.Budget(4.0)
    x, y = made()
    search = PrivateSearch(
        DecisionTreeClassifier(**TREE), {"max_depth": [1, 2]}, epsilon=4.0, budget=budget, mean_runs=30
    )._fit(x, y, None, SeededSource(3))
    assert search.best_params_ == {"max_depth": 2}
    assert search.score(x, y) > 0.95
    assert abs(search.best_score_ - (search.predict(x) == y).sum()) < 100  # noise of scale 5
    assert search.cost.epsilon == pytest.approx(4.0)
    assert budget.spent().epsilon <= 4.0
    (event,) = budget.events
    assert isinstance(event, Selected)
    with pytest.raises(BudgetExceeded):
        PrivateSearch(DecisionTreeClassifier(**TREE), {"max_depth": [1]}, epsilon=0.1, budget=budget).fit(x, y)


def test_the_runs_of_a_search_cost_half_of_it_each() -> None:
    x, y = made(500)
    search = PrivateSearch(DecisionTreeClassifier(**TREE), {"max_depth": [1, 2]}, epsilon=1.0).fit(x, y)
    paid = search.best_estimator_.budget
    assert 0.49 < paid.spent().epsilon <= 0.5
    assert paid.epsilon <= 0.5


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"candidates": {"epsilon": [1, 2]}}, "epsilon is no parameter"),
        ({"candidates": {"depth": [1]}}, "depth is no parameter"),
        ({"candidates": {"max_depth": [1, 99]}}, "max_depth"),
        ({"candidates": []}, "at least one"),
        ({"candidates": 3}, "mapping"),
        ({"epsilon": 0}, "epsilon"),
        ({"score_share": 1.5}, "score_share"),
        ({"mean_runs": 10**9}, "expected runs"),
        ({"estimator": DecisionTreeClassifier(budget=tacit.Budget(1.0), **TREE)}, "search pays"),
    ],
)
def test_bad_arguments_charge_nothing(stated: dict[str, Any], words: str) -> None:
    budget = tacit.Budget(2.0)
    asked: Any = {"estimator": DecisionTreeClassifier(**TREE), "candidates": {"max_depth": [1]}, "budget": budget}
    with pytest.raises(tacit.TacitError, match=words):
        PrivateSearch(**{**asked, **stated}).fit(*made(50))
    assert budget.spent().epsilon == 0


def test_missing_values_are_refused_before_the_charge() -> None:
    budget, (x, y) = tacit.Budget(2.0), made(50)
    x[3, 0] = np.nan
    with pytest.raises(tacit.TacitError, match="missing values"):
        PrivateSearch(DecisionTreeClassifier(**TREE), {"max_depth": [1]}, budget=budget).fit(x, y)
    assert budget.spent().epsilon == 0


def test_a_search_of_scikit_learn_pays_for_every_fit_and_is_refused_without_a_budget() -> None:
    x, y = made(300)
    budget = tacit.Budget(10.0)
    grid: Any = {"max_depth": [1, 2]}
    GridSearchCV(DecisionTreeClassifier(epsilon=0.5, budget=budget, **TREE), grid, cv=3).fit(x, y)
    assert budget.spent().epsilon == pytest.approx(7 * 0.5)  # two candidates in three folds, and the last fit
    with pytest.raises(ValueError, match="PrivateSearch"):
        GridSearchCV(DecisionTreeClassifier(epsilon=0.5, **TREE), grid, cv=3).fit(x, y)
    with pytest.raises(ValueError, match="PrivateSearch"):
        cross_val_score(DecisionTreeClassifier(epsilon=0.5, **TREE), x, y)
