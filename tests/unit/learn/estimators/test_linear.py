"""LinearRegression without noise is scikit-learn's, from arrays, frames and tables; bad input costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import linear_model
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tacit
from tacit.learn import LinearRegression
from tacit.privacy.errors import BudgetExceeded, InvalidInput, NotBounded, NotFinite, TooWide, WrongType

EXACT = 1e6
SIZE = 600
RANDOM = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "person": np.arange(SIZE),
        "age": RANDOM.integers(18, 91, SIZE),
        "height": RANDOM.normal(170, 10, SIZE).clip(140, 200),
        "smokes": RANDOM.random(SIZE) > 0.6,
        "ward": RANDOM.choice(["a", "b", "c"], SIZE),
        "sex": RANDOM.choice(["F", "M"], SIZE),
    }
)
FRAME["cost"] = (
    3 * FRAME["age"]
    - FRAME["height"]
    + 40 * FRAME["smokes"]
    + FRAME["ward"].map({"a": 0.0, "b": 25.0, "c": -10.0})
    + FRAME["sex"].map({"F": 7.0, "M": 0.0})
    + RANDOM.normal(0, 20, SIZE)
).clip(-200, 400)
FEATURES = ["age", "height", "smokes", "ward", "sex"]
BOUNDS = {"age": (18, 90), "height": (140, 200)}
CATEGORIES = {"ward": ["a", "b", "c"], "sex": ["F", "M"]}
NUMBERS = FRAME[["age", "height"]].to_numpy(dtype=float)
COST = FRAME["cost"].to_numpy()


def estimator(**changed: Any) -> LinearRegression:
    stated = {"epsilon": EXACT, "bounds": BOUNDS, "categories": CATEGORIES, "target_bounds": (-200, 400)}
    return LinearRegression(**{**stated, **changed})


def numeric(**changed: Any) -> LinearRegression:
    stated = {"epsilon": EXACT, "bounds": {"x0": (18, 90), "x1": (140, 200)}, "target_bounds": (-200, 400)}
    return LinearRegression(**{**stated, **changed})


def exact_predictions(frame: pd.DataFrame) -> Any:
    encoded = pd.get_dummies(frame[FEATURES]).astype(float)
    return linear_model.LinearRegression().fit(encoded, frame["cost"]).predict(encoded)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_the_coefficients_are_those_of_scikit_learn(fit_intercept: bool) -> None:
    ours = numeric(fit_intercept=fit_intercept).fit(NUMBERS, COST)
    theirs = linear_model.LinearRegression(fit_intercept=fit_intercept).fit(NUMBERS, COST)
    assert ours.coef_ == pytest.approx(theirs.coef_, rel=0.01)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=0.02, abs=1e-9)
    assert ours.predict(NUMBERS) == pytest.approx(theirs.predict(NUMBERS), abs=0.5)
    assert ours.score(NUMBERS, COST) == pytest.approx(theirs.score(NUMBERS, COST), abs=1e-3)


@pytest.mark.parametrize("form", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_with_categories_and_booleans(form: Any) -> None:
    frame = form(FRAME[FEATURES])
    model = estimator().fit(frame, FRAME["cost"])
    assert model.predict(frame) == pytest.approx(exact_predictions(FRAME), abs=0.5)
    assert list(model.feature_names_in_) == FEATURES
    assert "ward=b" in model.features_.encoded_names


def test_values_beyond_bounds_are_clamped_and_unlisted_categories_are_none() -> None:
    model = estimator().fit(FRAME[FEATURES], FRAME["cost"])
    strange = FRAME[FEATURES].head(2).copy()
    within = strange.copy()
    strange["age"], within["age"] = 1000, 90
    assert model.predict(strange) == pytest.approx(model.predict(within))
    strange["ward"] = "nowhere"
    encoded = model.features_.encode({name: strange[name] for name in FEATURES})
    assert encoded[:, 3:6].sum() == 0


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("registered")
    FRAME.to_parquet(place / "visits.parquet")
    with tacit.Curator(place / "clinic") as curator:
        columns = {
            "age": tacit.Bounds(18, 90),
            "height": tacit.Bounds(140, 200),
            "ward": tacit.Categories(["a", "b", "c"]),
            "sex": tacit.Categories(["F", "M"]),
            "cost": tacit.Bounds(-200, 400),
        }
        curator.add_table("visits", Path(place / "visits.parquet"), unit="person", columns=columns)
        with pytest.warns(UserWarning, match="epsilon"):
            curator.set_budget("visits", epsilon=1.04e6, delta=9e-4)
        yield curator.table("visits")


def test_a_registered_table_is_fitted_with_its_declared_facts_and_paid_once(table: Any) -> None:
    model = LinearRegression(epsilon=EXACT, rows_per_unit=1).fit_table(table, FEATURES, "cost")
    assert model.predict(FRAME[FEATURES]) == pytest.approx(exact_predictions(FRAME), abs=0.5)
    assert model.cost.epsilon > 0
    again = LinearRegression(epsilon=EXACT, rows_per_unit=1).fit_table(table, FEATURES, "cost")
    assert again.cost.epsilon == 0
    assert np.array_equal(again.coef_, model.coef_)


def test_bounds_are_learnt_within_the_same_charge(table: Any) -> None:
    budget = tacit.Budget(EXACT)
    model = numeric(bounds="learn", target_bounds=None, budget=budget).fit(NUMBERS, COST)
    assert budget.spent().epsilon <= EXACT
    assert model.cost.epsilon == pytest.approx(EXACT)
    assert set(model.answer_.learned_bounds) == {"x0", "x1", "target"}
    theirs = linear_model.LinearRegression().fit(NUMBERS, COST)
    assert model.coef_ == pytest.approx(theirs.coef_, rel=0.02)


def test_only_as_many_rows_of_a_unit_are_counted_as_stated() -> None:
    rows, costs = np.tile([[20.0, 150.0]], (50, 1)), np.full(50, 300.0)
    x, y = np.vstack([NUMBERS, rows]), np.concatenate([COST, costs])
    unit = np.concatenate([np.arange(SIZE), np.full(50, SIZE)])
    many = numeric(rows_per_unit=1).fit(x, y, unit=unit)
    assert many.answer_.noisy[0] == SIZE + 1


def test_rows_without_a_value_are_left_out_and_the_card_says_so() -> None:
    x = NUMBERS.copy()
    x[:100, 0] = np.nan
    model = numeric().fit(x, COST)
    assert model.answer_.noisy[0] == SIZE - 100
    assert "rows without a value of x0, x1, target are left out" in model.card.lower()


def test_a_clone_shares_the_budget_and_a_fit_beyond_it_is_refused() -> None:
    budget = tacit.Budget(1.0)
    model = make_pipeline(FunctionTransformer(), numeric(epsilon=0.6, budget=budget))
    first = clone(model).fit(NUMBERS, COST)
    assert first[-1].budget is budget
    with pytest.raises(BudgetExceeded):
        clone(model).fit(NUMBERS, COST)
    assert budget.spent().epsilon == pytest.approx(0.6)


def test_without_a_budget_the_card_says_that_no_budget_adds_up_fits() -> None:
    assert "budget of this fit alone" in numeric(epsilon=1.0).fit(NUMBERS, COST).card
    assert "alone" not in numeric(epsilon=1.0, budget=tacit.Budget(1.0)).fit(NUMBERS, COST).card


def test_a_preview_is_what_is_charged() -> None:
    budget = tacit.Budget(2.0, 1e-5)
    prepared = numeric(epsilon=1.0, budget=budget).prepare(NUMBERS, COST)
    quote = prepared.preview()
    assert budget.spent().epsilon == 0
    assert prepared.release().cost == quote


BAD: dict[str, tuple[dict[str, Any], Any, Any, type[Exception]]] = {
    "one-dimensional rows": ({}, NUMBERS[:, 0], COST, WrongType),
    "no rows": ({}, NUMBERS[:0], COST[:0], WrongType),
    "no features": ({}, NUMBERS[:, :0], COST, WrongType),
    "no target": ({}, NUMBERS, None, WrongType),
    "another length": ({}, NUMBERS, COST[1:], WrongType),
    "missing target": ({}, NUMBERS, np.where(COST > 100, np.nan, COST), NotFinite),
    "no bounds": ({"bounds": None}, NUMBERS, COST, NotBounded),
    "bounds of some": ({"bounds": {"x0": (18, 90)}}, NUMBERS, COST, NotBounded),
    "no bounds of the target": ({"target_bounds": None}, NUMBERS, COST, NotBounded),
    "unknown name in bounds": ({"bounds": {"age": (18, 90)}}, NUMBERS, COST, InvalidInput),
    "unknown name in categories": ({"categories": {"ward": ["a"]}}, NUMBERS, COST, InvalidInput),
    "categories as a list": ({"categories": ["ward"]}, NUMBERS, COST, WrongType),
    "epsilon of 0": ({"epsilon": 0}, NUMBERS, COST, InvalidInput),
    "a delta of 2": ({"delta": 2}, NUMBERS, COST, InvalidInput),
    "texts": ({"bounds": (0, 1)}, np.array([["a"], ["b"]]), [1.0, 2.0], NotBounded),
    "masked rows": ({"bounds": (0, 1)}, np.ma.masked_array([[1.0], [2.0]], [[True], [False]]), [1, 2], InvalidInput),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_costs_nothing(name: str) -> None:
    changed, x, y, error = BAD[name]
    budget = tacit.Budget(1.04e6, 1e-5)
    with pytest.raises(error) as raised:
        numeric(**{"budget": budget, **changed}).fit(x, y)
    assert raised.value.code  # type: ignore[attr-defined]
    assert budget.spent().epsilon == 0


def test_a_model_that_is_not_fitted_says_so_and_other_features_are_refused() -> None:
    with pytest.raises(NotFittedError):
        numeric().predict(NUMBERS)
    with pytest.raises(NotFittedError):
        _ = numeric().cost
    model = numeric().fit(NUMBERS, COST)
    for x in (NUMBERS[:, :1], NUMBERS[0], np.where(NUMBERS > 0, np.nan, NUMBERS)):
        with pytest.raises(InvalidInput):
            model.predict(x)


def test_more_encoded_columns_than_can_be_decomposed_are_refused_before_the_charge() -> None:
    budget = tacit.Budget(1.0)
    rows = {"place": ["p0", "p1"] * 20}
    model = LinearRegression(
        epsilon=1.0, budget=budget, categories={"place": [f"p{one}" for one in range(1024)]}, target_bounds=(0, 1)
    )
    with pytest.raises(TooWide, match="1,025"):
        model.fit(rows, [0.5] * 40)
    assert budget.spent().epsilon == 0
