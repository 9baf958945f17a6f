"""Logistic regression: equal to scikit-learn's without noise, exact clipped gradients, refusals that charge nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as PlainRegression

import tacit
from tacit.learn import LogisticRegression
from tacit.learn.estimators import exact_gradients
from tacit.learn.estimators.exact_gradients import RESIDUAL, UNIT, GradientRows
from tacit.learn.estimators.model_plan import Features
from tacit.privacy.bounds import Bounds
from tacit.privacy.events import Converted
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import ColumnSteps, Cut

AGE = ColumnSteps.of("age", Bounds(0, 100), Kind.REAL, UNIT)
SEX, CLASSES = Cut("sex", ("f", "m")), Cut("y", ("a", "b", "c"))
FEATURES = Features((AGE, SEX), (Kind.REAL, Kind.TEXT))


def made(rows: int = 3000, classes: int = 2, seed: int = 0) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return two numbers and a category, and labels that depend on all of them."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (rows, 2))
    sex = random.integers(0, 2, rows)
    logits = np.column_stack([np.zeros(rows), 2 * x[:, 0] + sex - 0.5, 2 * x[:, 1] - sex][:classes])
    labels = np.argmax(logits + random.gumbel(size=logits.shape), axis=1)
    return pd.DataFrame({"u": 10 * x[:, 0], "v": x[:, 1], "sex": np.array(["f", "m"])[sex]}), np.array(list("abc"))[
        labels
    ]


STATED: Any = {"bounds": {"u": (-10, 10), "v": (-1, 1)}, "categories": {"sex": ["f", "m"]}}


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_it_is_the_regression_of_scikit_learn(classes: int) -> None:
    frame, labels = made(classes=classes)
    model = LogisticRegression(
        epsilon=1e5, delta=1e-6, **STATED, classes=list("abc")[:classes], max_iter=800, clip=8.0
    ).fit(frame, labels)
    encoded = np.column_stack([frame["u"], frame["v"], frame["sex"] == "f", frame["sex"] == "m"])
    plain = PlainRegression(C=1e5, max_iter=5000).fit(encoded, labels)
    assert np.abs(model.predict_proba(frame) - plain.predict_proba(encoded)).max() < 0.02
    assert model.coef_.shape == plain.coef_.shape
    np.testing.assert_allclose(model.coef_[:, :2] - model.coef_[:1, :2] * (classes > 2),
                               plain.coef_[:, :2] - plain.coef_[:1, :2] * (classes > 2), atol=0.1)  # fmt: skip
    assert list(model.classes_) == list("abc")[:classes]


@pytest.mark.parametrize(("delta", "law"), [(1e-6, Converted), (None, object)])
def test_a_fit_learns_and_costs_what_was_asked(delta: float | None, law: type) -> None:
    frame, labels = made(8000)
    model = LogisticRegression(epsilon=1.0, delta=delta, **STATED, classes=["a", "b"]).fit(frame, labels)
    assert model.score(frame, labels) > 0.7  # 0.75 without noise, 0.55 by the larger class
    assert 0.99 < model.cost.epsilon <= 1
    assert model.cost.delta <= (delta or 0)
    assert isinstance(model.answer_.plan.event, law)
    assert model.predict_proba(frame).sum(axis=1) == pytest.approx(1)


def test_learnt_bounds_are_part_of_the_charge() -> None:
    frame, labels = made(8000)
    budget = tacit.Budget(1.0, 1e-5)
    model = LogisticRegression(
        epsilon=1.0, budget=budget, bounds="learn", categories={"sex": ["f", "m"]}, classes=["a", "b"]
    ).fit(frame, labels)
    assert model.score(frame, labels) > 0.65
    assert budget.spent().epsilon <= 1
    assert clone(model).budget is budget


def test_a_table_is_fitted_as_arrays_are(tmp_path: Path) -> None:
    frame, labels = made(1500)
    frame["y"], frame["who"] = labels, np.arange(len(frame))
    frame.to_parquet(tmp_path / "people.parquet")
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("people", tmp_path / "people.parquet", unit="who", columns={})
        with pytest.warns(UserWarning, match="epsilon"):
            curator.set_budget("people", epsilon=1e5, delta=9e-4)
        asked: Any = {"epsilon": 5e4, "classes": ["a", "b"], "rows_per_unit": 1, **STATED}
        theirs = LogisticRegression(**asked).fit_table(curator.table("people"), ["u", "v", "sex"], "y")
    ours = LogisticRegression(delta=9e-4, **asked).fit(frame[["u", "v", "sex"]], labels)
    np.testing.assert_allclose(theirs.coef_, ours.coef_, atol=0.1)
    assert (theirs.predict(frame[["u", "v", "sex"]]) == ours.predict(frame[["u", "v", "sex"]])).mean() > 0.99


def rows_of(ages: list[Any], sexes: list[Any], labels: list[Any], units: list[int], per_unit: int = 1) -> GradientRows:
    """Return rows for gradients of three classes."""
    kinds = {"age": Kind.REAL, "sex": Kind.TEXT, "y": Kind.TEXT}
    read, unit = read_arrays({"age": ages, "sex": sexes, "y": labels}, units, kinds)
    return GradientRows(ArrayRows(read, unit, per_unit), FEATURES, CLASSES, ("age", "sex", "y"))


def furthest(order: Any, limit: int, units: int = 40, rows_of_last: int = 1, per_unit: int = 1) -> float:
    """Return how far the last unit moves sums of gradients at most, in units of the limit, over random worlds."""
    random, found = np.random.default_rng(7), 0.0
    for _ in range(30):
        owners = [*range(units - 1), *[units - 1] * rows_of_last]
        ages = random.uniform(-20, 120, len(owners)).tolist()
        sexes, labels = random.choice(["f", "m", "x"], len(owners)).tolist(), random.choice(list("abc"), len(owners))
        ages[-rows_of_last:], sexes[-rows_of_last:] = [100.0] * rows_of_last, ["f"] * rows_of_last
        labels[-rows_of_last:] = "a"
        weights = random.normal(0, 3, (4, 3))
        whole = rows_of(ages, sexes, labels.tolist(), owners, per_unit)
        less = rows_of(*(list(one)[: units - 1] for one in (ages, sexes, labels.tolist(), owners)), per_unit)
        standard: Any = (weights, np.array([0.1]), np.array([0.2]), limit, order)
        moved = (whole.gradient_sums(*standard) - less.gradient_sums(*standard)).astype(np.float64).ravel()
        found = max(found, float(np.linalg.norm(moved, order)) / limit)
    return found


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("clip", [0.01, 0.5, 2.0])
def test_a_row_moves_a_sum_of_gradients_by_no_more_than_the_clip(order: Any, clip: float) -> None:
    moved = furthest(order, int(clip * UNIT * RESIDUAL))
    assert 0.5 < moved <= 1


def test_a_unit_moves_a_sum_by_no_more_than_its_counted_rows() -> None:
    limit = UNIT * RESIDUAL // 2
    assert 0.5 < furthest(2, limit, rows_of_last=5) <= 1
    assert 1 < furthest(2, limit, rows_of_last=5, per_unit=3) <= 3


def test_a_forgotten_clip_a_clip_of_the_batch_and_uncounted_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = UNIT * RESIDUAL // 2
    clip = exact_gradients.clipped
    with monkeypatch.context() as planted:
        planted.setattr(exact_gradients, "clipped", lambda residuals, *rest: residuals)
        assert furthest(2, limit) > 1
    with monkeypatch.context() as planted:
        planted.setattr(exact_gradients, "clipped", lambda residuals, lengths, limit, order: clip(
            residuals, np.full_like(lengths, lengths.mean()), limit, order))  # fmt: skip
        assert furthest(2, limit) > 1
    with monkeypatch.context() as planted:
        planted.setattr(ArrayRows, "kept_rows", lambda self, needs: np.ones(self._length, dtype=bool))
        assert furthest(2, limit, rows_of_last=5) > 1


def test_other_rows_and_their_order_do_not_change_the_gradient_of_a_row() -> None:
    random = np.random.default_rng(1)
    ages, sexes = random.uniform(0, 100, 1000).tolist(), random.choice(["f", "m"], 1000).tolist()
    labels, order = random.choice(list("abc"), 1000).tolist(), random.permutation(1000)
    standard: Any = (random.normal(0, 3, (4, 3)), np.array([0.1]), np.array([0.2]), UNIT * RESIDUAL, 2)
    whole = rows_of(ages, sexes, labels, list(range(1000))).gradient_sums(*standard)
    turned = rows_of(*([one[place] for place in order] for one in (ages, sexes, labels)), list(range(1000)))
    assert (turned.gradient_sums(*standard) == whole).all()
    parts = [rows_of([ages[i]], [sexes[i]], [labels[i]], [0]).gradient_sums(*standard) for i in range(1000)]
    assert (sum(parts) == whole).all()


def test_rows_whose_label_is_not_listed_add_nothing() -> None:
    ages, sexes, labels = [10.0, 20.0, 90.0, 50.0, 70.0], ["f", "m", "f", "m", "f"], ["a", "z", "b", None, "c"]
    whole = rows_of(ages, sexes, labels, list(range(5)))
    listed = rows_of(ages[::2], sexes[::2], labels[::2], [0, 2, 4])
    assert (whole.moments() == listed.moments()).all()
    weights = np.random.default_rng(2).normal(0, 3, (4, 3))
    standard: Any = (weights, np.array([0.1]), np.array([0.2]), UNIT * RESIDUAL, 2)
    assert (whole.gradient_sums(*standard) == listed.gradient_sums(*standard)).all()


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no classes": ({"classes": None}, "listed without looking"),
    "a label that is no class": ({"classes": ["a", "z"]}, "not among the classes"),
    "no bounds": ({"bounds": None}, "bounds"),
    "unknown name in bounds": ({"bounds": {"w": (0, 1)}}, "no such feature"),
    "no rounds": ({"max_iter": 0}, "max_iter"),
    "too many rounds": ({"max_iter": 10**6}, "max_iter"),
    "no clip": ({"clip": 0.0}, "clip"),
    "no epsilon": ({"epsilon": 0}, "epsilon"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_arguments_charge_nothing(name: str) -> None:
    frame, labels = made(50)
    budget = tacit.Budget(2.0, 1e-5)
    stated, words = WRONG[name]
    with pytest.raises(tacit.TacitError, match=words):
        LogisticRegression(**{"epsilon": 1.0, "budget": budget, "classes": ["a", "b"], **STATED, **stated}).fit(
            frame, labels
        )
    assert budget.spent().epsilon == 0
