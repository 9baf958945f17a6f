"""Randomised labels are private for every prior, are charged before a label is read, and can be debiased exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import tacit
from tacit.learn import RandomizedLabels, randomize_labels
from tacit.learn.randomized import labels as module
from tacit.learn.randomized.labels import likeliest, nearest_probabilities
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy import events
from tacit.privacy.errors import (
    BudgetExceeded,
    EmptyInput,
    InvalidInput,
    MixedRelations,
    NotBounded,
    NotFinite,
    NotPositive,
    OutOfRange,
    TooLarge,
    WrongKind,
    WrongType,
)
from tacit.privacy.units import Relation

RNG = np.random.default_rng(2)
CLASSES = ["a", "b", "c", "d"]
Y = RNG.choice(CLASSES, 200)
PRIORS = [
    None,
    [0.25] * 4,
    [0.7, 0.1, 0.1, 0.1],
    [1.0, 0.0, 0.0, 0.0],
    [0.4, 0.4, 0.2, 0.0],
    *RNG.dirichlet([0.4] * 4, 6).tolist(),
]
EPSILONS = [0.05, 0.5, 1.0, 2.0, 4.0, 12.0]


def budget(epsilon: float = 20.0) -> tacit.Budget:
    return tacit.Budget(epsilon, relation=Relation.REPLACE_ONE)


def released(**changes: Any) -> RandomizedLabels:
    settings = {"classes": CLASSES, "epsilon": 1.0, "budget": budget(), "_source": SeededSource(1), **changes}
    return randomize_labels(settings.pop("y", Y), **settings)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior", PRIORS)
def test_no_report_is_more_than_e_to_the_epsilon_likelier_under_another_label(epsilon: float, prior: Any) -> None:
    matrix = released(epsilon=epsilon, prior=prior).matrix
    assert matrix.shape == (4, 4)
    assert np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (matrix >= 0).all()
    most, least = matrix.max(axis=0), matrix.min(axis=0)
    assert ((least > 0) == (most > 0)).all()
    assert (most <= least * math.exp(epsilon) * (1 + 1e-12)).all()


@pytest.mark.parametrize("epsilon", EPSILONS[1:5])
@pytest.mark.parametrize("prior", PRIORS[1:])
def test_no_private_randomiser_tells_the_truth_more_often_under_the_prior(epsilon: float, prior: list[float]) -> None:
    matrix = released(epsilon=epsilon, prior=prior).matrix
    size = len(prior)
    ratios = []
    for report in range(size):
        for one in range(size):
            for other in range(size):
                row = np.zeros((size, size))
                row[one, report] += 1
                row[other, report] -= math.exp(epsilon)
                ratios.append(row.ravel())
    sums = np.kron(np.eye(size), np.ones(size))
    best = linprog(-np.diag(prior).ravel(), A_ub=ratios, b_ub=np.zeros(len(ratios)), A_eq=sums, b_eq=np.ones(size))
    assert best.status == 0
    assert np.dot(prior, np.diag(matrix)) == pytest.approx(-best.fun, abs=1e-9)


def test_likelihoods_are_the_columns_of_the_matrices() -> None:
    for prior in (None, PRIORS[4], RNG.dirichlet([0.4] * 4, len(Y)), lambda _, rows, others: PRIORS[4]):
        found = released(prior=prior)
        matrices = np.broadcast_to(found.matrix, (len(Y), 4, 4))
        expected = np.take_along_axis(matrices, found.codes[:, None, None], axis=2)[:, :, 0]
        assert np.allclose(found.likelihoods, expected, rtol=0, atol=1e-12)
        assert (found.likelihoods > 0).all()
        some = [5, 3, 3]
        assert np.array_equal(found.take(some).likelihoods, found.likelihoods[some])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_weights_are_unbiased(epsilon: float) -> None:
    found = released(epsilon=epsilon)
    weights = np.zeros((4, 4))
    weights[found.codes] = found.unbiased_weights
    assert np.allclose(found.matrix @ weights, np.eye(4), rtol=0, atol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilities_of_reports_become_those_of_labels(epsilon: float) -> None:
    found, true = released(epsilon=epsilon), RNG.dirichlet([0.5] * 4, 50)
    assert np.allclose(found.debiased(true @ found.matrix), true, rtol=0, atol=1e-9)


def test_weights_are_projected_to_the_nearest_probabilities() -> None:
    weights = RNG.normal(0, 1, (60, 4))
    found = nearest_probabilities(weights)
    assert (found >= 0).all()
    assert np.allclose(found.sum(axis=1), 1)
    others = RNG.dirichlet([0.3] * 4, 3000)
    distances = np.square(others[None] - weights[:, None]).sum(axis=2).min(axis=1)
    assert (np.square(found - weights).sum(axis=1) <= distances + 1e-12).all()


def test_the_release_is_charged_exactly_what_the_event_costs() -> None:
    for prior, sizes in ((None, 4), (PRIORS[2], 2), (lambda _, rows, others: PRIORS[2], 2)):
        paid = budget()
        expected = events.RandomizedResponse(1.0, sizes, under=Relation.REPLACE_ONE)
        quote = paid.preview(expected)
        found = released(budget=paid, prior=prior)
        assert dict(paid.events) == {expected: 1}
        assert found.cost == paid.spent() == quote
        assert found.cost.epsilon == found.epsilon == found.epsilon_of_label == 1.0


def test_the_rows_of_a_unit_share_its_epsilon() -> None:
    paid, owners = budget(1.0), np.arange(len(Y)) // 3
    found = released(budget=paid, unit=owners, rows_per_unit=3)
    (event,) = paid.events
    assert isinstance(event, events.Repeated)
    assert event.count == 3
    assert found.epsilon == 1.0
    assert found.cost.epsilon == pytest.approx(1.0)
    assert found.epsilon_of_label == pytest.approx(1 / 3)
    ratio = found.matrix.max(axis=0) / found.matrix.min(axis=0)
    assert (ratio**3 <= math.e * (1 + 1e-12)).all()
    assert "3) rows" in found.card


def test_no_label_is_randomised_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    paid, seen = budget(), []
    draw = module._reports

    def watched(*arguments: Any) -> Any:
        seen.append(paid.spent().epsilon)
        return draw(*arguments)

    monkeypatch.setattr(module, "_reports", watched)
    released(budget=paid, prior=lambda _, rows, others: PRIORS[2])
    assert seen == [1.0, 1.0]
    with pytest.raises(BudgetExceeded):
        released(budget=budget(0.5))
    assert len(seen) == 2


BAD: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"y": [*Y[:-1], "e"]}, OutOfRange),
    ({"y": [*Y[:-1], None]}, NotFinite),
    ({"y": [*Y[:-1], math.nan]}, NotFinite),
    ({"y": [*Y[:-1], 3]}, NotFinite),
    ({"y": np.arange(4.0)}, WrongKind),
    ({"y": []}, EmptyInput),
    ({"y": "abc"}, WrongType),
    ({"y": Y[:, None]}, WrongType),
    ({"classes": ["a"]}, InvalidInput),
    ({"classes": ["a", "a", "b", "c", "d"]}, InvalidInput),
    ({"classes": "abcd"}, InvalidInput),
    ({"classes": None}, InvalidInput),
    ({"epsilon": 0}, NotPositive),
    ({"epsilon": math.nan}, NotFinite),
    ({"epsilon": None}, WrongType),
    ({"prior": [0.5, 0.5]}, WrongType),
    ({"prior": np.full((len(Y) - 1, 4), 0.25)}, WrongType),
    ({"prior": [0.5, 0.5, 0.5, -0.5]}, OutOfRange),
    ({"prior": [0.25, 0.25, 0.25, 0.2]}, OutOfRange),
    ({"prior": [0.25, 0.25, 0.5, math.nan]}, NotFinite),
    ({"prior": "uniform"}, WrongType),
    ({"unit": np.arange(len(Y))}, NotBounded),
    ({"rows_per_unit": 2}, InvalidInput),
    ({"unit": np.arange(len(Y) - 1), "rows_per_unit": 1}, WrongType),
    ({"unit": np.arange(len(Y)) // 3, "rows_per_unit": 2}, OutOfRange),
    ({"unit": [None, *range(1, len(Y))], "rows_per_unit": 1}, InvalidInput),
]


@pytest.mark.parametrize(("changes", "error"), BAD)
def test_what_cannot_be_used_is_refused_before_the_charge(changes: dict[str, Any], error: type[Exception]) -> None:
    paid = budget()
    with pytest.raises(error):
        released(budget=paid, **changes)
    assert not paid.events


def test_a_budget_of_units_that_are_added_or_removed_is_refused() -> None:
    paid = tacit.Budget(5)
    with pytest.raises(MixedRelations, match="added or removed"):
        released(budget=paid)
    with pytest.raises(WrongType):
        released(budget=None)
    assert not paid.events


@pytest.mark.parametrize("kind", ["integers", "booleans", "texts", "series"])
def test_labels_keep_their_type(kind: str) -> None:
    import pandas as pd

    y, classes = {
        "integers": (np.array([3, 5, 3]), [3, 5]),
        "booleans": (np.array([True, False]), [False, True]),
        "texts": (["no", "yes"], np.array(["yes", "no"])),
        "series": (pd.Series(["no", "yes"]), ["yes", "no"]),
    }[kind]
    found = released(y=y, classes=classes, epsilon=19.0)
    assert found.labels.dtype == np.asarray(classes).dtype
    assert set(found.labels.tolist()) <= set(np.asarray(classes).tolist())
    assert np.array_equal(found.classes[found.codes], found.labels)


def test_two_stages_read_each_unit_in_one_half_and_show_the_function_reports_alone() -> None:
    owners, calls = np.repeat(np.arange(len(Y) // 2), 2), []

    def prior(first: RandomizedLabels, rows: Any, others: Any) -> Any:
        calls.append((first.codes, rows, others))
        return np.full((len(others), 4), 0.25)

    def run(y: Any) -> RandomizedLabels:
        return released(y=y, prior=prior, unit=owners, rows_per_unit=2)

    run(Y)
    codes, rows, others = calls[0]
    assert sorted([*rows, *others]) == list(range(len(Y)))
    assert set(owners[rows]).isdisjoint(owners[others])
    assert abs(len(rows) - len(others)) <= 2
    changed = Y.copy()
    changed[others] = "d"
    run(changed)
    assert np.array_equal(calls[1][0], codes)  # the same randomness, other labels in the other half
    assert len(set(map(len, (codes, rows)))) == 1


@pytest.mark.parametrize(
    "prior",
    [lambda *_: 1 / 0, lambda *_: [0.5, 0.5], lambda *_: [math.nan] * 4, lambda *_: [0.9] * 4, lambda *_: None],
)
def test_labels_are_not_lost_when_a_function_makes_no_prior(prior: Any) -> None:
    paid = budget()
    with pytest.warns(RuntimeWarning, match="randomised without a prior"):
        found = released(budget=paid, prior=prior)
    assert len(found) == len(Y)
    assert found.keeps_all
    assert paid.spent().epsilon == 1.0


def test_with_a_prior_there_are_no_unbiased_weights() -> None:
    found = released(prior=PRIORS[2])
    for wrong in (lambda: found.unbiased_weights, lambda: found.debiased(np.full((1, 4), 0.25))):
        with pytest.raises(InvalidInput, match="forward"):
            wrong()
    assert "likeliest" in found.card


def test_wrong_rows_and_too_many_matrices_are_refused() -> None:
    found = released(prior=RNG.dirichlet([0.4] * 4, len(Y)))
    for rows in ([len(Y)], [-1]):
        with pytest.raises(OutOfRange):
            found.take(rows)
    with pytest.raises(WrongType):
        found.take([True])
    with pytest.raises(WrongType):
        released().debiased([0.5, 0.5])
    many = released(y=np.arange(300), classes=range(300), prior=np.full((300, 300), 1 / 300))
    with pytest.raises(TooLarge):
        _ = many.matrix


def test_the_likeliest_classes_are_those_of_the_published_rule() -> None:
    prior = np.array([[0.5, 0.3, 0.15, 0.05], [0.25, 0.25, 0.25, 0.25], [0.05, 0.9, 0.03, 0.02]])
    for epsilon, sizes in ((0.1, (1, 1, 1)), (1.0, (2, 4, 1)), (2.0, (3, 4, 1)), (8.0, (4, 4, 4))):
        factor = math.exp(epsilon)
        ranked = np.cumsum(-np.sort(-prior, axis=1), axis=1)
        scores = ranked * factor / (factor + np.arange(4))
        kept = likeliest(prior, epsilon).sum(axis=1)
        assert all(one[size - 1] == pytest.approx(max(one)) for one, size in zip(scores, kept, strict=True))
        assert kept[0] == sizes[0]
        assert kept[2] == sizes[2]


def test_the_card_says_who_is_protected_and_that_features_are_not() -> None:
    card = released(_source=SeededSource(3)).card
    for words in ("200 labels of 4 classes", "features are taken as public", "It cost epsilon 1", "simulation"):
        assert words in card
    assert "simulation" not in randomize_labels(Y, classes=CLASSES, epsilon=1.0, budget=budget()).card
