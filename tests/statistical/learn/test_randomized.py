"""Reports follow the laws that were charged; the law of twice the epsilon is noticed.

False alarms: each `accept` at most 1e-6 over the choice of seeds, which are fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tacit
from tacit.learn import RandomizedLabels, randomize_features, randomize_labels
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import Refuted, accept, chi_square_p

EACH = 10_000
CLASSES = 4
Y = np.repeat(np.arange(CLASSES), EACH)
PRIORS = {
    "none": None,
    "likeliest two": [0.45, 0.45, 0.05, 0.05],
    "by row": np.tile([[0.1, 0.4, 0.4, 0.1], [0.3, 0.3, 0.3, 0.1]], (len(Y) // 2, 1)),
    "two stages": lambda _, rows, others: [0.45, 0.45, 0.05, 0.05],
}


def budget() -> tacit.Budget:
    return tacit.Budget(1e3, relation="replace-one")


def labels(prior: Any, epsilon: float, seed: int) -> RandomizedLabels:
    source = SeededSource(seed)
    return randomize_labels(Y, classes=range(CLASSES), epsilon=epsilon, budget=budget(), prior=prior, _source=source)


def check_labels(prior: Any, drawn: float, stated: float, seed: int) -> None:
    """Accept the reports at epsilon `drawn` by the likelihoods of `stated`."""
    found, claimed = labels(prior, drawn, seed), labels(prior, stated, seed)
    kinds, kind = np.unique(np.broadcast_to(claimed.kept, (len(Y), CLASSES)), axis=0, return_inverse=True)
    p = []
    for place in range(len(kinds)):
        rows = np.flatnonzero(kind.ravel() == place)
        matrix = claimed.take(rows[:1]).matrix
        for label in range(CLASSES):
            reports = found.codes[rows][Y[rows] == label]
            p.append(chi_square_p(np.bincount(reports, minlength=CLASSES), matrix[label]))
    accept(min(1.0, min(p) * len(p)))


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_labels_are_reported_by_the_matrix_of_their_prior(name: str, epsilon: float) -> None:
    check_labels(PRIORS[name], epsilon, epsilon, seed=1)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_twice_the_epsilon_of_labels_is_noticed(name: str, epsilon: float) -> None:
    with pytest.raises(Refuted):
        check_labels(PRIORS[name], 2 * epsilon, epsilon, seed=2)


def test_every_unit_is_as_likely_in_either_half() -> None:
    seen, y = np.zeros(6), np.zeros(6, dtype=np.int64)

    def prior(first: Any, rows: Any, others: Any) -> Any:
        seen[rows] += 1
        return [0.5, 0.5]

    for seed in range(400):
        source = SeededSource(seed)
        randomize_labels(y, classes=[0, 1], epsilon=1, budget=budget(), prior=prior, _source=source)
    assert seen.sum() == 1200
    accept(chi_square_p(seen, np.full(6, 1 / 6)))  # conservative: three of six are drawn without replacement


def check_rows(drawn: float, stated: float, seed: int) -> None:
    """Accept reports of a number and of a category, each at half of `drawn`, by the laws of half of `stated`."""
    table = {"number": np.full(EACH, 3), "listed": ["b"] * EACH}
    rows = randomize_features(
        table, bounds={"number": (0, 5)}, categories={"listed": ["a", "b", "c"]}, epsilon=drawn, budget=budget(),
        _source=SeededSource(seed),
    )  # fmt: skip
    share, width = stated / 2, 5
    noise = np.round((rows.columns["number"] - 3) * 2).astype(int)  # in steps of one half
    assert float(np.abs(rows.columns["number"] * 2 % 1).max()) == 0
    steps = np.arange(-200, 201)
    rate = np.exp(-share / (2 * width))
    law = (1 - rate) / (1 + rate) * rate ** np.abs(steps)
    law[[0, -1]] = (rate**200) / (1 + rate)
    first = chi_square_p(np.bincount(np.clip(noise, -200, 200) + 200, minlength=401), law)
    true, lie = np.exp(share) / (np.exp(share) + 2), 1 / (np.exp(share) + 2)
    reports = [np.count_nonzero(rows.columns["listed"] == one) for one in "abc"]
    accept(min(1.0, 2 * first), "the noise of the number")
    accept(min(1.0, 2 * chi_square_p(reports, [lie, true, lie])), "the law of the category")


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_values_are_randomised_by_the_laws_of_their_share(epsilon: float) -> None:
    check_rows(epsilon, epsilon, seed=4)


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_half_the_noise_of_values_is_noticed(epsilon: float) -> None:
    with pytest.raises(Refuted):
        check_rows(2 * epsilon, epsilon, seed=5)
