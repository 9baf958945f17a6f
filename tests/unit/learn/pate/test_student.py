"""PATE charges before it answers, learns from answers alone, and shows the sanitised data-dependent epsilon only."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import tacit
from tacit.learn import (
    PATE,
    ConfidentGNMax,
    GNMax,
    InteractiveGNMax,
    LNMax,
    PrivatePrediction,
    SanitisedReport,
)
from tacit.learn.pate import answers
from tacit.learn.pate import student as module
from tacit.learn.pate.sanitised_epsilon import SanitisedEpsilon
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import BudgetExceeded, Exhausted, InvalidInput, NotFinite, OutOfRange, WrongType
from tacit.privacy.events import Converted

RNG = np.random.default_rng(3)
CENTRES = np.array([[0, 0], [6, 0], [0, 6]])
LABELS = np.array(["a", "b", "c"])


def rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    which = RNG.integers(3, size=count)
    return CENTRES[which] + RNG.normal(size=(count, 2)), LABELS[which]


X, Y = rows(1200)
PUBLIC, TRUE = rows(400)
CONFIDENT = ConfidentGNMax(8, threshold=30, test_sigma=20)
INTERACTIVE = InteractiveGNMax(8, 30, 20, certainty=0.9)
REPORT = SanitisedReport(order=4, sigma=6, beta=0.05)


def pate(budget: tacit.Budget | None = None, **changes: Any) -> PATE:
    settings = {
        "teachers": 50, "classes": ["c", "a", "b"], "aggregator": CONFIDENT, "student": GaussianNB(), "delta": 1e-6,
        "queries": 60, "answers": 40, "budget": budget or tacit.Budget(20, 1e-4), **changes,
    }  # fmt: skip
    model = PATE(GaussianNB(), **settings)
    model._source = SeededSource(5)
    return model


@pytest.mark.parametrize("aggregator", [CONFIDENT, GNMax(8), LNMax(4), InteractiveGNMax(8, 30, 20, certainty=0.9)])
def test_a_student_learns_what_the_teachers_know(aggregator: Any) -> None:
    answers = 40 if aggregator.test_event is not None else None
    model = pate(tacit.Budget(60, 1e-4), aggregator=aggregator, answers=answers).fit(X, Y, public=PUBLIC)
    assert model.score(PUBLIC, TRUE) > 0.95
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert (model.labels_ == TRUE[model.answered_]).mean() > 0.8
    assert "50 teachers" in model.card_
    assert "reproducible" in model.card_


@pytest.mark.parametrize("semi_supervised", ["self-training", "none"])
def test_the_budget_is_charged_what_the_preview_says_and_counted_at_delta(semi_supervised: str) -> None:
    budget = tacit.Budget(20, 1e-4)
    model = pate(budget, semi_supervised=semi_supervised)
    quote = model.preview()
    assert budget.spent().epsilon == 0
    model.fit(X, Y, public=PUBLIC)
    assert quote == model.cost_
    assert list(budget.events) == [Converted(CONFIDENT.plan(60, 40), 1e-6)]
    assert len(model.answered_) <= 40


def test_no_label_leaves_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    budget, seen = tacit.Budget(20, 1e-4), []

    def watched(*arguments: Any) -> Any:
        seen.append(budget.spent().epsilon)
        return ask(*arguments)

    ask = answers.ask
    monkeypatch.setattr(answers, "ask", watched)
    pate(budget).fit(X, Y, public=PUBLIC)
    assert len(seen) > 0
    assert min(seen) > 0


def test_a_report_is_charged_and_is_the_only_figure_that_depends_on_the_votes() -> None:
    budget = tacit.Budget(20, 1e-4)
    model = pate(budget, report=REPORT).fit(X, Y, public=PUBLIC)
    plain = pate(tacit.Budget(20, 1e-4)).fit(X, Y, public=PUBLIC)
    assert model.cost_.epsilon > plain.cost_.epsilon
    assert model.sanitised_.delta == 1e-6
    assert plain.sanitised_ is None
    assert "sanitised" in model.card_


def test_no_report_is_above_what_was_charged() -> None:
    for seed in range(4):
        model = pate(tacit.Budget(60, 1e-4), report=SanitisedReport(order=2, sigma=20, beta=0.05))
        model._source = SeededSource(seed)
        model.set_params(teacher=undecided, aggregator=GNMax(8), answers=None).fit(X, Y, public=PUBLIC)
        assert model.sanitised_.estimate <= model.sanitised_.epsilon <= model.cost_.epsilon


def test_neither_votes_nor_raw_bounds_are_kept_in_a_fitted_model(monkeypatch: pytest.MonkeyPatch) -> None:
    raw: list[float] = []
    compute = tacit.learn.pate.sanitised_epsilon.data_dependent

    def watched(*arguments: Any) -> Any:
        found = compute(*arguments)
        raw.append(found[0])
        return found

    monkeypatch.setattr("tacit.learn.pate.sanitised_epsilon.data_dependent", watched)
    model = pate(report=REPORT).fit(X, Y, public=PUBLIC)
    assert len(raw) == 1
    kept = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert set(kept) == {
        "classes_", "answered_", "labels_", "sanitised_", "n_features_in_", "student_", "cost_", "permit_", "card_",
    }  # fmt: skip
    figures = [value for value in vars(model.sanitised_).values() if isinstance(value, float)]
    bounds = [
        tacit.learn.pate.sanitised_epsilon.epsilon_of_renyi(4, raw[0] + own, 1e-6) for own in (0, REPORT.renyi(4))
    ]
    assert all(abs(figure - bound) > 1e-12 for figure in figures for bound in (*raw, *bounds))
    assert isinstance(model.sanitised_, SanitisedEpsilon)


@pytest.mark.parametrize("aggregator", [LNMax(4), InteractiveGNMax(8, 30, 20, certainty=0.9)])
def test_a_report_without_an_analysis_is_refused_before_the_charge(aggregator: Any) -> None:
    budget = tacit.Budget(60, 1e-4)
    answers = 40 if aggregator.test_event is not None else None
    with pytest.raises(WrongType, match="no smooth sensitivity"):
        pate(budget, aggregator=aggregator, answers=answers, report=REPORT).fit(X, Y, public=PUBLIC)
    assert not budget.events


def test_a_report_whose_conditions_fail_is_refused_before_the_charge() -> None:
    budget = tacit.Budget(60, 1e-4)
    report = SanitisedReport(order=60, sigma=6, beta=0.005)
    with pytest.raises(OutOfRange):
        pate(budget, report=report, aggregator=ConfidentGNMax(2, 30, 20)).fit(X, Y, public=PUBLIC)
    assert not budget.events


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"order": 1.0, "sigma": 6, "beta": 0.02}, OutOfRange),
        ({"order": 65, "sigma": 6, "beta": 0.001}, OutOfRange),
        ({"order": 14, "sigma": 6, "beta": 0.05}, OutOfRange),
        ({"order": 14, "sigma": 0, "beta": 0.01}, InvalidInput),
    ],
)
def test_a_report_with_parameters_without_a_bound_is_refused(parameters: dict[str, float], error: Any) -> None:
    with pytest.raises(error):
        SanitisedReport(**parameters)


BAD: list[tuple[dict[str, Any], dict[str, Any], type[Exception]]] = [
    ({"y": np.where(Y == "a", "z", Y)}, {}, InvalidInput),
    ({"y": Y[:-1]}, {}, WrongType),
    ({"y": Y.astype(object)}, {"classes": [0, 1, 2]}, WrongType),
    ({}, {"classes": [0, 1, 2]}, InvalidInput),
    ({"y": np.unique(Y, return_inverse=True)[1].astype(object)}, {}, WrongType),
    ({}, {"classes": np.array(["a", None], dtype=object)}, WrongType),
    ({"X": np.where(np.isclose(X, X[3, 1]), np.nan, X)}, {}, NotFinite),
    ({"X": X[:, 0]}, {}, WrongType),
    ({"units": np.zeros(7)}, {}, WrongType),
    ({"public": PUBLIC[:, :1]}, {}, WrongType),
    ({"public": PUBLIC[:10]}, {}, OutOfRange),
    ({}, {"classes": ["a", "a", "b"]}, InvalidInput),
    ({}, {"classes": ["a"]}, InvalidInput),
    ({}, {"aggregator": "gnmax"}, WrongType),
    ({}, {"queries": 0}, OutOfRange),
    ({}, {"answers": 61}, OutOfRange),
    ({}, {"aggregator": GNMax(8)}, InvalidInput),
    ({}, {"delta": 2.0}, OutOfRange),
    ({}, {"student": None}, WrongType),
    ({}, {"teacher": "forest"}, WrongType),
    ({}, {"teachers": 1}, OutOfRange),
    ({}, {"confidence": 2.0}, OutOfRange),
    ({}, {"semi_supervised": "gan"}, InvalidInput),
    ({}, {"student": LinearSVC()}, WrongType),
    ({}, {"student": LinearSVC(), "semi_supervised": "none", "aggregator": INTERACTIVE}, WrongType),
]


@pytest.mark.parametrize(("arguments", "settings", "error"), BAD)
def test_bad_input_is_refused_before_the_charge(
    arguments: dict[str, Any], settings: dict[str, Any], error: type[Exception]
) -> None:
    budget = tacit.Budget(20, 1e-4)
    given = {"X": X, "y": Y, "public": PUBLIC, **arguments}
    with pytest.raises(error):
        pate(budget).set_params(**settings).fit(given.pop("X"), given.pop("y"), **given)
    assert not budget.events


@pytest.mark.parametrize("count", [1, 49, 50])
def test_the_number_of_units_shows_in_no_refusal_and_in_no_charge(count: int) -> None:
    budget, asked = tacit.Budget(60, 1e-4), tacit.Budget(60, 1e-4)
    model = pate(budget, aggregator=GNMax(8), answers=None).fit(X[:count], Y[:count], public=PUBLIC)
    assert list(budget.events) == [Converted(GNMax(8).plan(60, 60), 1e-6)]
    assert len(model.labels_) == 60
    few = PrivatePrediction(GaussianNB(), teachers=50, classes=LABELS, aggregator=GNMax(8), budget=asked, delta=1e-6)
    assert len(few.fit(X[:count], Y[:count]).predict(PUBLIC[:2])) == 2
    assert len(asked.events) == 1


def test_too_small_a_budget_is_refused_before_teachers_are_trained() -> None:
    def never(x: Any, y: Any) -> Any:
        assert len(x) <= 64, "trained on private rows"
        return lambda queries: np.zeros(len(queries))

    with pytest.raises(BudgetExceeded):
        pate(tacit.Budget(0.1, 1e-4)).set_params(teacher=never).fit(X, Y, public=PUBLIC)


def undecided(x: Any, y: Any) -> Any:
    return lambda queries: np.full(len(queries), int(1e6 * abs(x[0, 0])) % 3)


SELECTIVE = ConfidentGNMax(8, threshold=50, test_sigma=4)


def test_without_answers_the_student_predicts_one_class_and_the_card_says_so() -> None:
    model = pate(tacit.Budget(60, 1e-4), aggregator=SELECTIVE, answers=10).set_params(teacher=undecided)
    model.fit(X, Y, public=PUBLIC)
    assert len(model.answered_) == 0
    assert set(model.predict(PUBLIC)) == {"a"}
    assert "answered 0 of 60 queries (at most 10)" in model.card_
    assert "predicts a for every row" in model.card_


def test_a_student_of_one_label_predicts_it_and_the_card_says_so() -> None:
    model = pate(answers=1).fit(X, Y, public=PUBLIC)
    assert set(model.predict(PUBLIC)) == set(model.labels_)
    assert "answered 1 of 60 queries (at most 1)" in model.card_
    assert f"predicts {model.labels_[0]} for every row" in model.card_


@pytest.mark.parametrize("kind", [PATE, PrivatePrediction])
@pytest.mark.parametrize(
    "aggregator",
    [ConfidentGNMax(8, threshold=51, test_sigma=20), InteractiveGNMax(8, 50.5, 20, certainty=0.9)],
    ids=lambda one: type(one).__name__,
)
def test_a_threshold_above_the_number_of_teachers_is_refused_before_the_charge(kind: Any, aggregator: Any) -> None:
    budget = tacit.Budget(60, 1e-4)
    settings = {"teachers": 50, "classes": LABELS, "aggregator": aggregator, "budget": budget, "delta": 1e-6}
    given = {"public": PUBLIC} if kind is PATE else {}
    model = kind(GaussianNB(), queries=60, **settings)
    if kind is PATE:
        model.set_params(student=GaussianNB())
    with pytest.raises(OutOfRange, match=r"threshold of 5\d(.5)? votes is above the number of teachers, 50"):
        model.fit(X, Y, **given)
    assert not budget.events
    with pytest.raises(OutOfRange, match="above the number of teachers"):
        pate(budget, aggregator=aggregator).preview()


def test_the_card_says_in_words_what_was_done() -> None:
    model = pate(report=REPORT).fit(X, Y, public=PUBLIC)
    answered = f"answered {len(model.answered_)} of 60 queries (at most 40) by "
    assert f"{answered}ConfidentGNMax(sigma 8, threshold 30, test_sigma 20)." in model.card_
    assert "Relation" not in model.card_
    assert model.card_.count("this data set") == 1
    assert "every row" not in model.card_
    assert "which answer at most 20 of 20 queries by GNMax(sigma 6)." in prediction(tacit.Budget(30, 1e-4)).card_


def test_parameters_are_those_of_scikit_learn() -> None:
    model = pate()
    assert clone(model).get_params()["teachers"] == 50
    assert clone(model).budget is model.budget
    assert model.set_params(queries=70).queries == 70


class Imprecise(GaussianNB):
    """Its probabilities do not add up to 1, or are no numbers."""

    def fit(self, x: Any, y: Any) -> Any:
        return super().fit(x[y >= 0], y[y >= 0])

    def predict_proba(self, x: Any) -> Any:
        return np.where(np.arange(len(x))[:, None] % 2, 1.001, np.nan) * super().predict_proba(x)


def test_a_student_with_imprecise_probabilities_does_not_lose_what_was_charged() -> None:
    model = pate(tacit.Budget(60, 1e-4), aggregator=INTERACTIVE, answers=25, student=Imprecise())
    model.set_params(semi_supervised="student").fit(X, Y, public=PUBLIC)
    assert len(model.answered_) > 0


class Failing(GaussianNB):
    def fit(self, x: Any, y: Any) -> Any:
        raise RuntimeError("no convergence")


def test_a_student_that_fails_leaves_the_labels_and_their_cost() -> None:
    model = pate(tacit.Budget(60, 1e-4), aggregator=GNMax(8), answers=None, student=Failing())
    with pytest.raises(RuntimeError, match="no convergence"):
        model.set_params(semi_supervised="student").fit(X, Y, public=PUBLIC)
    assert len(model.labels_) == 60
    assert model.cost_.epsilon > 0


def prediction(budget: tacit.Budget, **changes: Any) -> PrivatePrediction:
    settings = {
        "teachers": 50, "classes": LABELS, "aggregator": GNMax(6), "budget": budget, "delta": 1e-6, "queries": 20,
        **changes,
    }  # fmt: skip
    model = PrivatePrediction(LogisticRegression(), **settings)
    model._source = SeededSource(6)
    return model.fit(X[:600], Y[:600])


def test_private_predictions_are_charged_once_for_all_queries() -> None:
    budget = tacit.Budget(30, 1e-4)
    model = prediction(budget)
    spent = budget.spent().epsilon
    found = model.predict(PUBLIC[:15])
    assert (found == TRUE[:15]).mean() > 0.8
    assert 0 < budget.spent().epsilon == spent <= model.cost_.epsilon
    with pytest.raises(Exhausted, match="5 "):
        model.predict(PUBLIC[:6])
    model.predict(PUBLIC[:5])
    with pytest.raises(Exhausted):
        model.predict(PUBLIC[:1])


def test_private_predictions_end_with_the_charged_answers() -> None:
    sure = ConfidentGNMax(6, threshold=-1000, test_sigma=20)
    model = prediction(tacit.Budget(30, 1e-4), aggregator=sure, answers=3)
    found = model.predict(PUBLIC[:10])
    assert found.mask.tolist() == [False] * 3 + [True] * 7
    with pytest.raises(Exhausted):
        model.predict(PUBLIC[:1])


def test_threads_give_no_more_answers_than_were_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    both, ask = threading.Barrier(2, timeout=0.5), module.ask

    def late(*arguments: Any) -> Any:
        found = ask(*arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            time.sleep(0.1 * both.wait())
        return found

    sure = ConfidentGNMax(6, threshold=-1000, test_sigma=20)
    model, given = prediction(tacit.Budget(30, 1e-4), aggregator=sure, answers=1), []
    monkeypatch.setattr(module, "ask", late)

    def asking() -> None:
        try:
            given.append(model.predict(PUBLIC[:1]).count())
        except Exhausted:
            given.append(0)

    threads = [threading.Thread(target=asking) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(given) == [0, 1]


@pytest.mark.parametrize("teacher", ["forest", GaussianNB])
def test_private_prediction_refuses_what_is_no_teacher_before_the_charge(teacher: Any) -> None:
    budget = tacit.Budget(30, 1e-4)
    model = PrivatePrediction(teacher, teachers=50, classes=LABELS, aggregator=GNMax(6), budget=budget, delta=1e-6)
    with pytest.raises(WrongType, match="a teacher is"):
        model.fit(X, Y)
    with pytest.raises(InvalidInput, match="made-up labels"):
        model.set_params(teacher=Failing()).fit(X, Y, public=PUBLIC)
    assert not budget.events


def test_a_forked_process_gets_no_answers() -> None:
    model = prediction(tacit.Budget(30, 1e-4))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, bytes(model.predict(PUBLIC[:1]).filled().tolist()[0], "ascii"))
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert "InvalidInput: these teachers are those of another process" in said.read()
    assert model.asked_ == 0
    assert len(model.predict(PUBLIC[:2])) == 2


def test_predictions_before_fit_raise_the_error_of_scikit_learn() -> None:
    unfitted = PrivatePrediction(GaussianNB(), teachers=50, classes=LABELS, aggregator=GNMax(6))
    for model in (pate(), unfitted):
        with pytest.raises(NotFittedError):
            model.predict(PUBLIC)
    failed = pate(tacit.Budget(60, 1e-4), aggregator=GNMax(8), answers=None, student=Failing())
    with pytest.raises(RuntimeError, match="no convergence"):
        failed.set_params(semi_supervised="student").fit(X, Y, public=PUBLIC)
    with pytest.raises(NotFittedError):
        failed.predict(PUBLIC)


def test_private_teachers_cannot_be_copied() -> None:
    model = prediction(tacit.Budget(30, 1e-4))
    for copying in (pickle.dumps, copy.deepcopy):
        with pytest.raises(WrongType, match="cannot be copied"):
            copying(model)
    with pytest.raises(WrongType, match="shape"):
        model.predict(PUBLIC[:, :1])
