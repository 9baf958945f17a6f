"""LabelDPClassifier learns from reports alone, debiased, and is a scikit-learn classifier."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit.learn import LabelDPClassifier
from tacit.learn.randomized.labels import LabelPlan
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, InvalidInput, MixedRelations, NotFinite, OutOfRange, WrongType

RNG = np.random.default_rng(5)
CLASSES = ["no", "yes"]


def rows(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels and P(yes | row)."""
    x = RNG.normal(size=(count, 2))
    chance = 1 / (1 + np.exp(-3 * x[:, 0]))
    return x, np.where(RNG.random(count) < chance, "yes", "no"), chance


X, Y, _ = rows(6000)
NEW, LABELS, CHANCE = rows(3000)


def budget(epsilon: float = 20.0) -> tacit.Budget:
    return tacit.Budget(epsilon, relation="replace-one")


def classifier(estimator: Any = None, **changes: Any) -> LabelDPClassifier:
    settings = {"classes": CLASSES, "epsilon": 1.0, "budget": budget(), **changes}
    model = LabelDPClassifier(LogisticRegression() if estimator is None else estimator, **settings)
    model._source = SeededSource(11)
    return model


@pytest.mark.parametrize("changes", [{}, {"rounds": 0}, {"stages": 2}, {"stages": 2, "rounds": 4}])
@pytest.mark.parametrize("estimator", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_probabilities_are_those_of_labels_and_not_of_reports(estimator: Any, changes: dict[str, int]) -> None:
    model = classifier(estimator, **changes).fit(X, Y)
    assert abs(model.predict_proba(NEW)[:, 1] - CHANCE).mean() < (0.06 if model.rounds else 0.09)
    assert abs(model.predict_proba(NEW).sum(axis=1) - 1).max() < 1e-9
    reports = clone(estimator).fit(X, model.released_.labels)
    assert abs(reports.predict_proba(NEW)[:, 1] - CHANCE).mean() > (0.06 if "stages" in changes else 0.12)
    assert model.score(NEW, LABELS) > ((CHANCE > 0.5) == (LABELS == "yes")).mean() - 0.02
    assert (model.released_.labels != Y).mean() > 0.15


def test_nothing_but_reports_is_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = classifier().fit(X, Y).released_
    monkeypatch.setattr(LabelPlan, "release", lambda *_: fixed)
    one, other = classifier().fit(X, Y), classifier().fit(X, Y[::-1])
    assert np.array_equal(one.predict_proba(NEW), other.predict_proba(NEW))
    flipped = replace(fixed, codes=1 - fixed.codes)
    monkeypatch.setattr(LabelPlan, "release", lambda *_: flipped)
    assert classifier().fit(X, Y).score(NEW, LABELS) < 0.3


def test_rounds_end_where_the_likelihood_of_the_reports_is_greatest() -> None:
    """Its gradient in the weights, the mean of (posterior less prediction) times the features, falls to 0."""

    def gradient(rounds: int) -> float:
        model = classifier(LogisticRegression(C=1e6), rounds=rounds).fit(X, Y)
        predicted = model.predict_proba(X)
        posterior = predicted * model.released_.likelihoods
        posterior /= posterior.sum(axis=1, keepdims=True)
        surplus = (posterior - predicted)[:, 1]
        return float(np.abs(np.append(surplus @ X, surplus.sum())).max()) / len(X)

    assert gradient(1) > 5 * gradient(16)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_fit_is_charged_what_the_preview_says(stages: int) -> None:
    paid, owners = budget(), np.arange(len(Y)) // 2
    model = classifier(budget=paid, stages=stages, rows_per_unit=2)
    quote = model.preview(X, Y, unit=owners)
    assert not paid.events
    model.fit(X, Y, unit=owners)
    assert quote == model.cost_
    assert paid.spent().epsilon == pytest.approx(1.0)
    (event,) = paid.events
    assert event == events.Repeated(events.RandomizedResponse(0.5, 2, under=paid.cap.relation), 2)


def test_clones_share_the_budget_and_each_fit_is_charged() -> None:
    paid = budget(3.5)
    model = classifier(KNeighborsClassifier(), budget=paid, rounds=0)
    assert clone(model).get_params()["budget"] is paid
    assert clone(model).get_params()["estimator__n_neighbors"] == 5
    model.set_params(estimator__n_neighbors=9)
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X[:600], Y[:600], cv=3)
    assert scores.min() > 0.5
    assert paid.spent().epsilon == pytest.approx(3)
    with pytest.raises(BudgetExceeded):
        clone(model).fit(X, Y)


def test_frames_and_names_are_passed_to_the_estimator() -> None:
    frame = pd.DataFrame(X[:500], columns=["first", "second"])
    model = classifier(stages=2).fit(frame, pd.Series(Y[:500]))
    assert model.feature_names_in_.tolist() == ["first", "second"]
    assert model.n_features_in_ == 2
    assert set(model.predict(frame)) <= set(CLASSES)
    assert pickle.loads(pickle.dumps(model.estimator_)).predict(frame).shape == (500,)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"estimator": RidgeClassifier()}, WrongType),
        ({"estimator": KNeighborsClassifier()}, InvalidInput),
        ({"stages": 3}, InvalidInput),
        ({"stages": 2, "rounds": 0}, InvalidInput),
        ({"rounds": -1}, OutOfRange),
        ({"classes": ["no", "maybe"]}, OutOfRange),
        ({"classes": None}, InvalidInput),
        ({"epsilon": None}, WrongType),
        ({"budget": tacit.Budget(5)}, MixedRelations),
        ({"x": X[:-1]}, ValueError),
        ({"x": np.where(np.arange(len(X))[:, None] < 3, np.nan, X)}, ValueError),
        ({"y": None}, ValueError),
        ({"y": [None, *Y[1:]]}, NotFinite),
        ({"y": np.stack([Y, Y], axis=1)}, ValueError),
    ],
)
def test_what_cannot_be_learned_from_is_refused_before_the_charge(changes: Any, error: type[Exception]) -> None:
    paid, given = budget(), {"x": X, "y": Y}
    model = classifier(**{"budget": paid, **{key: one for key, one in changes.items() if key not in given}})
    given |= {key: one for key, one in changes.items() if key in given}
    with pytest.raises(error):
        model.fit(given["x"], given["y"])
    assert not paid.events


def test_released_labels_are_kept_when_the_estimator_fails_later() -> None:
    broken = X.copy()
    broken[-1] = np.nan  # beyond the rows of the rehearsal
    model = classifier()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(broken, Y)
    assert len(model.released_) == len(Y)


def test_scikit_learn_finds_no_other_fault() -> None:
    noise, error = "noise is fresh in every fit", "the target is refused by an error of tacit, with its code"
    stated = "classes are public and stated, and the labels of the check are others"
    may_fail = {
        "check_fit_idempotent": noise,
        "check_dtype_object": stated,
        "check_estimator_sparse_array": stated,
        "check_estimator_sparse_matrix": stated,
        "check_classifiers_classes": stated,
        "check_classifiers_train": stated,
        "check_classifiers_regression_target": error,
        "check_supervised_y_no_nan": error,
        "check_estimators_overwrite_params": "a budget is not pickled",
        "check_estimators_pickle": "a budget is not pickled",
    }
    model = LabelDPClassifier(GaussianNB(), classes=[0, 1, 2], epsilon=40.0, budget=budget(1e6))
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert len(results) > 40
    assert {check: str(why) for check, why in failed.items() if check not in may_fail} == {}
