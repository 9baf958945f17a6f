"""Randomised rows are charged for all their values, and models from them are debiased for the noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.learn import (
    LinearRegression,
    RandomizedRows,
    debiased_linear_regression,
    debiased_naive_bayes,
    from_document,
    randomize_features,
    randomize_labels,
)
from tacit.mechanisms import RandomizedResponse
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy import events
from tacit.privacy.errors import (
    BudgetExceeded,
    EmptyInput,
    InvalidInput,
    MixedRelations,
    NotBounded,
    NotFinite,
    OutOfRange,
    WrongKind,
    WrongType,
)
from tacit.privacy.units import Relation

RNG = np.random.default_rng(8)
COUNT = 20_000
AGE = RNG.uniform(18, 90, COUNT)
SEX = RNG.choice(["F", "M"], COUNT)
HOURS = 20 + 0.3 * AGE + 5 * (SEX == "M") + RNG.normal(0, 3, COUNT)
WORKS = np.where(RNG.random(COUNT) < 1 / (1 + np.exp((40 - HOURS) / 4)), "long", "short")
FRAME = pd.DataFrame({"age": AGE, "sex": SEX, "hours": HOURS, "works": WORKS})
BOUNDS = {"age": (18, 90), "hours": (0, 80)}
CATEGORIES = {"sex": ["F", "M"], "works": ["short", "long"]}


def budget(epsilon: float = 1e6) -> tacit.Budget:
    return tacit.Budget(epsilon, relation=Relation.REPLACE_ONE)


def randomized(*names: str, seed: int = 1, **changes: Any) -> RandomizedRows:
    """Return randomised columns of FRAME."""
    settings = {
        "X": FRAME[list(names)],
        "epsilon": 4.0,
        "budget": budget(),
        "bounds": {name: one for name, one in BOUNDS.items() if name in names},
        "categories": {name: one for name, one in CATEGORIES.items() if name in names},
        "_source": SeededSource(seed),
        **changes,
    }
    return randomize_features(settings.pop("X"), **settings)


def test_the_epsilon_of_a_row_is_divided_by_its_values_and_its_unit_and_charged_as_previewed() -> None:
    paid = budget(4.0)
    rows = randomized("age", "sex", "hours", "works", budget=paid, unit=np.arange(COUNT) // 2, rows_per_unit=2)
    assert rows.epsilon_of_value == 0.5
    assert rows.cost.epsilon == pytest.approx(4.0)
    (event,) = paid.events
    assert rows.cost == budget(4.0).preview(event)
    assert isinstance(event, events.Repeated)
    assert event.count == 2
    assert [type(one) for one in event.event.parts] == [
        events.DiscreteLaplace, events.RandomizedResponse, events.DiscreteLaplace, events.RandomizedResponse,
    ]  # fmt: skip
    assert {one.epsilon for one in event.event.parts} == {0.5}
    assert "Protects each unit, with all of its (at most 2) rows" in rows.card
    with pytest.raises(BudgetExceeded):
        randomized("age", budget=paid)


def test_a_report_depends_on_its_own_row_alone() -> None:
    changed = FRAME.copy()
    changed.loc[3, :] = [90.0, "M", 80.0, "short"]
    one, other = randomized(*FRAME, epsilon=1e3), randomized(*FRAME, X=changed, epsilon=1e3)
    for name, values in one.columns.items():
        assert np.array_equal(np.delete(values, 3), np.delete(other.columns[name], 3))


def test_encoded_reports_are_unbiased_for_every_value() -> None:
    """Exactly for categories; for numbers within six standard errors (false alarms below 1e-8 for each)."""
    rows = randomized("age", "sex", epsilon=3.0)
    law = rows.randomisers[1]
    assert isinstance(law, RandomizedResponse)
    assert np.allclose(rows.matrices["sex"] @ law.unbiased(np.arange(2)), np.eye(2), rtol=0, atol=1e-12)
    noise = rows.columns["age"] - AGE
    spread = math.sqrt(rows.noise_variances["age"])
    assert abs(noise.mean()) < 6 * spread / math.sqrt(COUNT)
    assert abs(noise.var() / spread**2 - 1) < 6 * math.sqrt(5 / COUNT)
    encoded = rows.features.encode({"age": AGE, "sex": SEX})
    errors = (rows.encoded - encoded).mean(axis=0) / (rows.encoded - encoded).std(axis=0) * math.sqrt(COUNT)
    assert abs(errors).max() < 6


def test_regression_from_randomised_rows_is_debiased() -> None:
    """The slopes are 0.3 and 5; seeds are fixed. Without the correction the first one would be 0.3 times 441 / 1593."""
    rows = randomized("age", "sex", "hours", epsilon=9.0)
    model = debiased_linear_regression(rows, "hours")
    assert isinstance(model, LinearRegression)
    assert model.coef_[0] == pytest.approx(0.3, abs=0.05)
    assert model.coef_[2] - model.coef_[1] == pytest.approx(5, abs=0.8)
    assert model.score(FRAME[["age", "sex"]], HOURS) > 0.8
    released = rows.columns
    naive = np.polyfit(released["age"], released["hours"], 1)[0]
    assert naive < 0.15
    copied = from_document(model.to_document())
    assert np.array_equal(copied.predict(FRAME[["age", "sex"]]), model.predict(FRAME[["age", "sex"]]))
    through = debiased_linear_regression(randomized("age", "hours", epsilon=50.0), "hours", fit_intercept=False)
    assert through.intercept_ == pytest.approx(0, abs=1e-9)
    assert through.coef_[0] == pytest.approx((AGE @ HOURS) / (AGE @ AGE), abs=0.02)


def test_without_noise_the_debiased_models_are_the_plain_ones() -> None:
    rows = randomized("age", "sex", "hours", "works", epsilon=1e5)
    model = debiased_linear_regression(rows.take(("age", "sex", "hours")), "hours")
    design = np.stack([np.ones(COUNT), AGE, SEX == "M"], axis=1).astype(float)
    exact = np.linalg.lstsq(design, np.clip(HOURS, 0, 80), rcond=None)[0]
    assert model.coef_[[0, 2]] == pytest.approx(exact[1:], abs=0.01)
    bayes = debiased_naive_bayes(rows, "works")
    for place, name in enumerate(bayes.classes_):
        assert bayes.theta_[place, 1] == pytest.approx(HOURS[name == WORKS].mean(), abs=0.05)
        assert bayes.var_[place, 1] == pytest.approx(HOURS[name == WORKS].var(), rel=0.02)
        shares = np.exp(bayes.feature_log_prob_[0][place])
        assert shares[1] == pytest.approx((SEX[name == WORKS] == "M").mean(), abs=0.01)


@pytest.mark.parametrize("target", ["column", "labels", "public"])
def test_naive_bayes_from_randomised_rows_is_debiased(target: str) -> None:
    paid, y = budget(50), WORKS
    names = ("sex", "hours", "works") if target == "column" else ("sex", "hours")
    rows = randomized(*names, epsilon=36.0, budget=paid, seed=3)
    if target == "labels":
        y = randomize_labels(WORKS, classes=["short", "long"], epsilon=3.0, budget=paid, _source=SeededSource(4))
    model = debiased_naive_bayes(rows, "works" if target == "column" else y)
    for place, name in enumerate(model.classes_):
        true = HOURS[name == WORKS]
        assert model.theta_[place, 0] == pytest.approx(true.mean(), abs=1.0)
        assert model.var_[place, 0] == pytest.approx(true.var(), rel=0.35)
        assert np.exp(model.feature_log_prob_[0][place, 1]) == pytest.approx(
            (SEX[name == WORKS] == "M").mean(), abs=0.03
        )
    assert model.cost_.epsilon == pytest.approx(39.0 if target == "labels" else 36.0)
    assert model.score(FRAME[["sex", "hours"]], WORKS) > 0.7
    assert "debiased" in model.card_


BAD: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"X": FRAME[["age"]].assign(age=np.nan)}, NotFinite),
    ({"X": {"age": ["x"] * 4}}, NotFinite),
    ({"X": FRAME[["age"]].head(0)}, EmptyInput),
    ({"bounds": None}, NotBounded),
    ({"bounds": "learn"}, NotBounded),
    ({"bounds": {"age": "learn"}}, NotBounded),
    ({"bounds": {"ages": (18, 90)}}, InvalidInput),
    ({"bounds": (1, 2, 3)}, WrongType),
    ({"categories": {"sex": ["F", "M"]}}, InvalidInput),
    ({"categories": ["F", "M"]}, WrongType),
    ({"X": FRAME[["sex"]], "bounds": None}, NotBounded),
    ({"X": FRAME[["sex"]], "bounds": None, "categories": {"sex": ["F"]}}, InvalidInput),
    ({"X": FRAME[["sex"]], "bounds": None, "categories": {"sex": ["F", "X"]}}, OutOfRange),
    ({"epsilon": 0}, InvalidInput),
    ({"epsilon": None}, WrongType),
    ({"unit": np.arange(COUNT)}, NotBounded),
    ({"unit": np.zeros(COUNT), "rows_per_unit": 5}, OutOfRange),
    ({"X": np.array([1.0, 2.0])}, WrongType),
]


@pytest.mark.parametrize(("changes", "error"), BAD)
def test_what_cannot_be_used_is_refused_before_the_charge(changes: dict[str, Any], error: type[Exception]) -> None:
    paid = budget()
    with pytest.raises(error):
        randomized("age", budget=paid, **changes)
    assert not paid.events


def test_a_budget_of_units_that_are_added_or_removed_is_refused() -> None:
    paid = tacit.Budget(100)
    with pytest.raises(MixedRelations):
        randomized("age", budget=paid)
    assert not paid.events


def test_models_of_other_columns_are_refused() -> None:
    rows = randomized("age", "sex")
    for wrong, error in (("hours", InvalidInput), ("sex", WrongKind)):
        with pytest.raises(error):
            debiased_linear_regression(rows, wrong)
    with pytest.raises(WrongKind):
        debiased_naive_bayes(rows, "age")
    with pytest.raises(WrongType):
        debiased_naive_bayes(rows, WORKS[:-1])
    with pytest.raises(WrongType):
        debiased_linear_regression(rows.take(("age",)), "age")
    with pytest.raises(WrongType):
        debiased_naive_bayes(FRAME, "sex")  # type: ignore[arg-type]


def test_released_values_are_on_public_grids_and_in_the_listed_categories() -> None:
    missing = FRAME[["sex"]].head(50).assign(flag=np.arange(50) % 2 == 0)
    missing.loc[3, "sex"] = None
    rows = randomized(X=missing, bounds=None, categories={"sex": ["F", "M", None]})
    assert set(rows.columns["sex"].tolist()) <= {"F", "M", None}
    assert rows.columns["flag"].dtype == bool
    ages = randomized("age").columns["age"]
    assert np.array_equal(ages * 2**7 % 1, np.zeros(COUNT))
    assert "simulation" in rows.card
    assert len(rows) == 50
