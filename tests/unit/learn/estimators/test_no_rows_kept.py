"""Fitted models, and answers of statistics, hold released numbers alone and can be pickled."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import learn, stats
from tacit.stats.statistic import StatisticPlan
from tests.support.estimators import EXAMPLES, outputs
from tests.support.private_objects import ROWS, exact_arrays, private_parts
from tests.support.statistic_calls import AGE, CALLS, PATIENT, SEX

EPSILON = 0.05
"""Little enough that no released array is exact by chance."""
UNIT = np.array([f"person {number}" for number in range(ROWS)])


def fitted(made: Any, name: str) -> tuple[Any, Any]:
    """Return an estimator that is fitted on an example, and all that it read."""
    example = EXAMPLES[name]
    with exact_arrays() as exact:
        made.fit(example.X.head(ROWS), None if example.y is None else example.y[:ROWS], unit=UNIT)
    assert exact
    return made, exact


def estimator(name: str, bounds: str) -> Any:
    stated = {} if bounds == "stated" else {"bounds": "learn"}
    if stated and "bounds" not in EXAMPLES[name].stated:
        pytest.skip("it has no bounds")
    return EXAMPLES[name].estimator(epsilon=EPSILON, rows_per_unit=1, **stated)


def pickled(model: Any) -> Any:
    """Return a model after pickling."""
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("bounds", ["stated", "learn"])
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_no_row_is_reachable_from_a_fitted_model_and_it_can_be_pickled(name: str, bounds: str) -> None:
    model, exact = fitted(estimator(name, bounds), name)
    for released in (model, model.answer_, model.answer_.plan):
        assert private_parts(released, exact) == []
    again = pickled(model)
    for mine, its in zip(outputs(model, EXAMPLES[name].X), outputs(again, EXAMPLES[name].X), strict=True):
        assert np.array_equal(mine, its)
    assert (again.card, again.answer_.learned_bounds) == (model.card, model.answer_.learned_bounds)


@pytest.mark.parametrize("grid", [{"alpha": [1.0, 2.0]}, {"bounds": ["learn"]}])
def test_no_row_is_reachable_from_a_search(grid: Any) -> None:
    example = EXAMPLES["GaussianNB"]
    made = learn.PrivateSearch(example.make(**example.stated, rows_per_unit=1), grid, epsilon=EPSILON, mean_runs=2)
    model, exact = fitted(made, "GaussianNB")
    assert private_parts(model, exact) == []
    assert (pickled(model).predict(example.X) == model.predict(example.X)).all()


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"KBinsDiscretizer"}))  # whose answer has another plan
def test_exact_sums_on_a_plan_would_be_found(name: str, copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = estimator(name, "stated")
    plan = type(model.prepare(EXAMPLES[name].X, EXAMPLES[name].y, unit=np.arange(400)).plan)
    measure = plan.measure

    def keeping(self: Any, rows: Any, *given: Any) -> Any:
        with exact_arrays() as exact:
            found = measure(self, rows, *given)
        object.__setattr__(self, "exact", [one.copy() for one in exact] if copied else exact)
        return found

    monkeypatch.setattr(plan, "measure", keeping)
    kept, exact = fitted(model, name)
    assert private_parts(kept, exact)


def statistics() -> list[Any]:
    found = []
    for name in sorted(CALLS):
        learns = "bounds" in inspect.signature(getattr(stats, name)).parameters and not name.endswith("_test")
        found += [pytest.param(name, bounds, id=f"{name}-{bounds}") for bounds in ["stated", "learn"][: 1 + learns]]
    return found


@pytest.mark.parametrize(("name", "bounds"), statistics())
def test_no_row_is_reachable_from_a_statistic_and_it_can_be_pickled(name: str, bounds: str) -> None:
    random = np.random.default_rng(0)
    sexes = np.where(random.random(ROWS) < 0.5, "F", "M")
    columns = [(AGE, random.integers(0, 90, ROWS)), (SEX, sexes), (PATIENT, random.integers(0, 300, ROWS))]

    def given(one: Any) -> Any:
        if isinstance(one, dict) and "table" in one:
            return next(column for reference, column in columns if reference == one)
        return {key: given(value) for key, value in one.items()} if isinstance(one, dict) else one

    call, parameters = given(CALLS[name]), inspect.signature(getattr(stats, name)).parameters
    if "bounds" in parameters:
        call["bounds"] = (0, 90) if bounds == "stated" else bounds
    if "by" in call or call.get("values") is sexes:
        call.update({one: ["F", "M"] for one in ("keys", "other_keys") if one in parameters})
    if "levels" in call:
        (call["levels"],) = call["levels"]
    if "domain" in call:
        call["domain"] = {**call["domain"], "sex": ["F", "M"]}
    with exact_arrays() as exact:
        answer = getattr(stats, name)(**call, epsilon=0.5, rows_per_unit=1, unit=UNIT, budget=tacit.Budget(10.0, 1e-6))
    assert isinstance(answer.plan, StatisticPlan)
    assert private_parts(answer, exact) == []
    assert np.array_equal(pickled(answer).value, answer.value)
