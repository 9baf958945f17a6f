"""Private selection: the law of the number of runs, one charge for all of them, and scikit-learn's own searches."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from tacit import accounting
from tacit.curator.models import estimator_of
from tacit.learn import PCA, DecisionTreeClassifier, LinearRegression, LogisticRegression, PrivateSearch
from tacit.learn.estimators.base import PrivateEstimator
from tacit.learn.estimators.selection import SCORE, BestOfRuns, below, draw_runs, stop_for
from tacit.ledger.refusals import BudgetExceeded
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import UnknownName
from tacit.privacy.events import Composed, Pure, Selected, ZeroConcentrated
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows, read_arrays
from tests.statistical.evidence import Refuted, accept, chi_square_p
from tests.support.transcripts import charged

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


def searched(search: PrivateSearch, x: Any, y: Any, seed: int, **given: Any) -> PrivateSearch:
    """Fit a search with randomness from a seed."""
    prepared = search.prepare(x, y, **given)
    options = replace(prepared.options, source=SeededSource(seed))
    return search._take_prepared(replace(prepared, options=options), None, is_alone=False)


def test_a_search_finds_the_better_setting_for_one_charge() -> None:
    budget = tacit.Budget(4.0)
    x, y = made()
    search = PrivateSearch(
        DecisionTreeClassifier(**TREE), {"max_depth": [1, 2]}, epsilon=4.0, budget=budget, mean_runs=30
    )
    assert search.prepare(x, y).preview().epsilon == pytest.approx(4.0)
    assert budget.spent().epsilon == 0
    searched(search, x, y, 3)
    assert search.best_params_ == {"max_depth": 2}
    assert search.score(x, y) > 0.95
    assert abs(search.best_score_ - (search.predict(x) == y).sum()) < 100  # noise of scale 5
    assert search.cost.epsilon == pytest.approx(4.0)
    assert budget.spent().epsilon <= 4.0
    (event,) = budget.events
    assert isinstance(event, Selected)
    assert isinstance(event.event, Pure)
    assert 1.999 < event.event.epsilon <= 2.0
    for word in ("one of 2 candidates", "number of runs stays secret", "Laplace noise", "cost epsilon 4"):
        assert word in search.card
    with pytest.raises(BudgetExceeded):
        PrivateSearch(DecisionTreeClassifier(**TREE), {"max_depth": [1]}, epsilon=0.1, budget=budget).fit(x, y)


@pytest.mark.parametrize("delta", [None, 1e-5])
@pytest.mark.parametrize("relation", list(Relation))
def test_each_run_costs_no_more_than_its_part(delta: float | None, relation: Relation) -> None:
    """All noises of any run, fit and score, within the event that the search is charged for."""
    budget = tacit.Budget(4.0, 1e-3, relation=relation)
    x, y = made(50)
    asked: Any = {"epsilon": 2.0, "delta": delta, "budget": budget}
    estimator = LogisticRegression(bounds="learn", classes=[0, 1], rows_per_unit=2)
    prepared = PrivateSearch(estimator, {"max_iter": [1, 4], "bounds": ["learn", (0, 1)]}, **asked).prepare(
        x, y, unit=np.arange(50)
    )
    plan, quote = prepared.plan, prepared.preview()
    assert isinstance(plan, BestOfRuns)
    assert 1.99 < quote.epsilon <= 2.0
    assert quote.delta == (delta or 0.0)
    (part,) = (one for one in charged(plan))
    runs = [Composed((one.event, plan.noise.event)) for one in plan.plans]
    if delta is None:
        assert isinstance(part, Pure)
        assert all(0.99 * part.epsilon < accounting.measures.pure_epsilon(one) <= part.epsilon for one in runs)
    else:
        assert isinstance(part, ZeroConcentrated)
        costs = [accounting.measures.approximate_zcdp(one) for one in runs]
        assert all(0.9 * part.rho < rho <= part.rho and none == 0 for rho, none in costs)


def test_a_run_that_costs_more_than_its_part_is_noticed_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    budget, fit = tacit.Budget(4.0), PrivateEstimator._prepare

    def twice(self: Any, columns: Any, target: Any, options: Any, delta: Any) -> Any:
        return fit(self, columns, target, {**options, "epsilon": 2 * options["epsilon"]}, delta)

    monkeypatch.setattr(PrivateEstimator, "_prepare", twice)
    with pytest.raises(AssertionError, match="its part"):
        PrivateSearch(DecisionTreeClassifier(**TREE), {"max_depth": [1]}, epsilon=1.0, budget=budget).fit(*made(50))
    assert budget.spent().epsilon == 0


def test_searches_that_depend_on_earlier_ones_are_refused_at_the_cap() -> None:
    """Each search asks for what won before, at another epsilon, until the budget refuses; nothing else stops it."""
    budget, (x, y) = tacit.Budget(1.0, 1e-4), made(200)
    candidates, spent, epsilon = [{"max_depth": 1}, {"max_depth": 2}], [0.0], 0.05

    def search() -> PrivateSearch:
        asked: Any = {"epsilon": epsilon, "budget": budget, "mean_runs": 2}
        return PrivateSearch(DecisionTreeClassifier(**TREE), candidates, **asked)

    while search().prepare(x, y).preview().fits:
        found = search().fit(x, y)
        spent.append(spent[-1] + found.cost.epsilon)
        candidates = [found.best_params_, {"max_depth": 1 + int(found.best_score_) % 3}]
        epsilon = min(0.5, epsilon * (1.5 if found.best_params_["max_depth"] == 2 else 1.2))
    with pytest.raises(BudgetExceeded):
        search().fit(x, y)
    assert spent[-1] <= 1.0 + 1e-9
    assert sum(budget.events.values()) == len(spent) - 1


def test_a_regressor_is_selected_by_its_clipped_errors() -> None:
    random = np.random.default_rng(1)
    x = random.uniform(0, 1, (3000, 1))
    y = 2 + x[:, 0] + random.normal(0, 0.05, 3000)
    estimator = LinearRegression(bounds=(0, 1), target_bounds=(0, 4))
    search = PrivateSearch(estimator, {"fit_intercept": [True, False]}, epsilon=4.0, delta=1e-5, mean_runs=20)
    searched(search, x, y, 5)
    assert search.best_params_ == {"fit_intercept": True}
    errors = np.abs(search.predict(x) - y) / 2
    assert search.best_score_ == pytest.approx((1 - errors).sum(), abs=150)


def test_the_score_of_one_row_is_between_0_and_1() -> None:
    """Also of targets beyond their bounds, and of rows that no class or category holds."""
    estimator = LinearRegression(bounds=(0, 1), target_bounds=(0, 4))
    x, y = np.array([[0.0], [1.0], [9.0]]), np.array([1e9, -1e9, 2.0])
    plan = PrivateSearch(estimator, [{}], epsilon=1.0).prepare(x, y).plan
    assert isinstance(plan, BestOfRuns)
    for place in range(3):
        rows = ArrayRows(*read_arrays({"x0": x[place], "target": y[place : place + 1]}))
        noisy = plan.plans[0].measure(rows, SeededSource(place))
        assert 0 <= plan.exact_score(0, noisy, rows) <= SCORE


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("delta", [None, 1e-5])
def test_the_noise_of_the_score_is_made_for_the_rows_of_a_unit(relation: Relation, delta: float | None) -> None:
    """One unit's three rows, all predicted rightly, or instead of that all wrongly, move the score by all of theirs."""
    budget = tacit.Budget(4.0, 1e-3, relation=relation)
    estimator = DecisionTreeClassifier(max_depth=1, rows_per_unit=3, **TREE)
    x, y, unit = np.full((3, 2), 0.2), np.array([0, 0, 0]), np.zeros(3, dtype=int)
    plan = PrivateSearch(estimator, [{}], epsilon=2.0, delta=delta, budget=budget).prepare(x, y, unit=unit).plan
    assert isinstance(plan, BestOfRuns)
    noisy = plan.plans[0].measure(ArrayRows(*read_arrays({"x0": x[:, 0], "x1": x[:, 1], "target": y})), SeededSource(0))
    scores = [
        plan.exact_score(0, noisy, ArrayRows(*read_arrays({"x0": x[:, 0], "x1": x[:, 1], "target": labels}, unit), 3))
        for labels in (y, 1 - y)
    ]
    assert abs(scores[0] - scores[1]) == 3 * SCORE
    assert float(plan.noise.sensitivity) >= 3 * SCORE


def test_a_table_is_searched_and_the_best_model_kept(tmp_path: Path) -> None:
    x, y = made(2000)
    rows = pd.DataFrame({"who": np.arange(2000), "a": x[:, 0], "b": x[:, 1], "y": y.astype(bool)})
    bounds: Any = {"a": tacit.Bounds(0, 1), "b": tacit.Bounds(0, 1)}
    search = PrivateSearch(DecisionTreeClassifier(), {"max_depth": [1, 2]}, mean_runs=4)
    with tacit.Curator(tmp_path) as curator:
        curator.add_table("t", rows, unit="who", limits=tacit.Limits(rows_per_unit=1), columns=bounds)
        curator.set_budget("t", epsilon=5.0, delta=1e-4)
        fitted = curator.train("t", search, ["a", "b"], "y", epsilon=4.0, delta=1e-6, purpose="depth")
        assert fitted.cost.epsilon == pytest.approx(4.0)
        assert fitted.cost.delta == 1e-6
        again = curator.train("t", search, ["a", "b"], "y", epsilon=4.0, delta=1e-6)
        assert (again.cost.epsilon, again.best_params_, again.model_id) == (0, fitted.best_params_, fitted.model_id)
        kept = curator.models.get(str(fitted.model_id))
        assert (kept.estimator_name, kept.cost) == ("DecisionTreeClassifier", fitted.cost)
        assert kept.estimator.max_depth == fitted.best_params_["max_depth"]
        assert (
            kept.predict({"a": [0.9, 0.1], "b": [0.9, 0.9]}).values
            == fitted.predict(pd.DataFrame({"a": [0.9, 0.1], "b": [0.9, 0.9]})).tolist()
        )
    with pytest.raises(UnknownName, match="running time has to stay secret"):
        estimator_of("PrivateSearch", {})


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"candidates": {"epsilon": [1, 2]}}, "epsilon is no parameter"),
        ({"candidates": {"depth": [1]}}, "depth is no parameter"),
        ({"candidates": {"max_depth": [1, 99]}}, "max_depth"),
        ({"candidates": []}, "at least one"),
        ({"candidates": 3}, "mapping"),
        ({"candidates": {"max_depth": []}}, "an empty list for max_depth"),
        ({"candidates": {"max_depth": 3}}, "no list of values for max_depth"),
        ({"candidates": {"max_depth": "3"}}, "no list of values for max_depth"),
        ({"candidates": {"max_depth": np.ones((2, 2))}}, "no list of values for max_depth"),
        ({"candidates": {"max_depth": [1], 3: [1]}}, "no list of values for 3"),
        ({"candidates": {"max_depth": range(1001)}}, "at most 1,000 candidates"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": None}, "state what the fit costs"),
        ({"estimator": DecisionTreeClassifier(epsilon=2.0, **TREE)}, "search pays; leave epsilon="),
        ({"score_share": 1.5}, "score_share"),
        ({"mean_runs": 10**9}, "expected runs"),
        ({"delta": 2.0}, "delta"),
        ({"epsilon": 1e-3, "delta": 1e-6}, "so many runs"),
        ({"delta": 1e-3}, "delta"),
        ({"candidates": {"classes": [[0, 1]]}}, "classes is no parameter"),
        ({"estimator": PCA(bounds=(0, 1))}, "classifier or regressor"),
        ({"estimator": 3}, "classifier or regressor"),
        ({"estimator": DecisionTreeClassifier(budget=tacit.Budget(1.0), **TREE)}, "search pays"),
    ],
)
def test_bad_arguments_charge_nothing(stated: dict[str, Any], words: str) -> None:
    budget = tacit.Budget(2.0)
    tree, candidates = DecisionTreeClassifier(**TREE), {"max_depth": [1]}
    asked: Any = {"estimator": tree, "candidates": candidates, "epsilon": 1.0, "budget": budget}
    with pytest.raises(tacit.TacitError, match=words):
        PrivateSearch(**{**asked, **stated}).fit(*made(50))
    assert budget.spent().epsilon == 0
