"""Statistics release the noise that their cards state, and choose with the stated probabilities.

False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are fixed. Half of the
noise, and twice the epsilon of a choice, are refuted by the same checks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.units import Relation
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.statistic import StatisticPlan
from tests.statistical.evidence import Refuted, accept, chi_square_p

REACH = 60


def rows(**columns: Any) -> ArrayRows:
    return ArrayRows(*read_arrays({name: np.asarray(one) for name, one in columns.items()}), source=SeededSource(0))


def plan(ask: Any, values: Any, *, relation: Relation = Relation.ADD_REMOVE, **asked: Any) -> StatisticPlan:
    """Return the plan of a statistic."""
    answer: stats.Answer = ask(
        np.asarray(values), **asked, budget=tacit.Budget(epsilon=1000.0, delta=1e-3, relation=relation)
    )
    return answer.plan


def laplace_p(noise: np.ndarray, scale: float) -> float:
    """Return how likely whole noises are under the two-sided geometric law of a scale."""
    ratio = math.exp(-1 / scale)
    values = np.arange(-REACH, REACH + 1)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    law[[0, -1]] = ratio**REACH / (1 + ratio)
    return chi_square_p(np.bincount(np.clip(noise, -REACH, REACH) + REACH, minlength=len(values)), law)


@pytest.mark.parametrize(
    ("relation", "per_unit", "scale"),
    [(Relation.ADD_REMOVE, 1, 2.0), (Relation.REPLACE_ONE, 1, 4.0), (Relation.ADD_REMOVE, 3, 6.0)],
)
def test_counts_have_noise_for_the_rows_of_a_unit(relation: Relation, per_unit: int, scale: float) -> None:
    asked = {"bins": 10_000, "bounds": (0, 1), "epsilon": 0.5, "unit": [1], "rows_per_unit": per_unit}
    (noise,) = plan(stats.histogram, [0.5], relation=relation, **asked).measure(rows(value=[np.nan]), SeededSource(1))
    accept(laplace_p(np.asarray(noise), scale))


def test_half_the_noise_of_counts_is_noticed() -> None:
    (noise,) = plan(stats.histogram, [0.5], bins=10_000, bounds=(0, 1), epsilon=1.0).measure(
        rows(value=[np.nan]), SeededSource(2)
    )
    with pytest.raises(Refuted):
        accept(laplace_p(np.asarray(noise), 2.0))


def test_each_level_of_a_tree_has_its_share_of_the_budget() -> None:
    tree = plan(stats.cdf, [0.5], bins=10_000, bounds=(0, 1), epsilon=1.5)
    levels = tree.measure(rows(value=[np.nan]), SeededSource(3))
    assert [len(level) for level in levels] == [40, 625, 10_000]
    accept(laplace_p(np.concatenate([np.asarray(level) for level in levels]), 2.0))


def chosen(epsilon: float, q: float, seed: int) -> np.ndarray:
    """Return how often each of five cells is chosen for a quantile of fixed data."""
    source, data = SeededSource(seed), rows(value=DATA)
    quantile = plan(lambda values, **asked: stats.quantile(values, q, **asked), [1], bounds=(0, 4), epsilon=epsilon)
    return np.bincount([int(quantile.measure(data, source)[0][0, 0]) for _ in range(3000)], minlength=5)


DATA = [0, 0, 1, 1, 1, 3]


def law(epsilon: float, q: float) -> np.ndarray:
    """The exponential mechanism's probabilities, written out: three quarters of epsilon, a score of rows missed."""
    count = np.bincount(DATA, minlength=5)
    upto = np.cumsum(count)
    missed = np.maximum(0, np.maximum(q * 6 - upto, upto - count - q * 6))
    weights = np.exp(-(0.75 * epsilon) * missed / (2 * max(q, 1 - q)))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_quantiles_are_chosen_with_the_stated_probabilities(q: float) -> None:
    accept(chi_square_p(chosen(1.0, q, seed=4), law(1.0, q)))


def test_a_quantile_chosen_with_twice_the_epsilon_is_noticed() -> None:
    with pytest.raises(Refuted):
        accept(chi_square_p(chosen(2.0, 0.5, seed=5), law(1.0, 0.5)))


def modes(epsilon: float, seed: int) -> np.ndarray:
    """Return how often each of three values is chosen as the mode of fixed data."""
    source, data = SeededSource(seed), rows(value=["a", "a", "b", "c"])
    mode = plan(stats.mode, ["a"], keys=["a", "b", "c"], epsilon=epsilon)
    return np.bincount([int(mode.measure(data, source)[0][0]) for _ in range(4_000)], minlength=3)


def permute_and_flip(gap: float) -> np.ndarray:
    """Permute-and-flip over one best value and two that lie behind by `gap` nats, over all orders."""
    heads = math.exp(-gap)
    # The best is taken when it is reached: behind no, one or two others, each order equally likely.
    best = (1 + (1 - heads) + (1 - heads) ** 2) / 3
    return np.array([best, (1 - best) / 2, (1 - best) / 2])


def test_modes_are_chosen_with_the_stated_probabilities() -> None:
    accept(chi_square_p(modes(0.5, seed=6), permute_and_flip(0.5)))


def test_a_mode_chosen_with_twice_the_epsilon_is_noticed() -> None:
    with pytest.raises(Refuted):
        accept(chi_square_p(modes(1.0, seed=7), permute_and_flip(0.5)))
