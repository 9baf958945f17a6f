"""Choices are made with exactly the stated probabilities.

False alarms: each test calls `accept` once per run, so at most 1e-6 each over the choice of seeds, which are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.mechanisms import Exponential, PermuteAndFlip, ReportNoisyMax, TopK
from tacit.mechanisms.exact_sampling import exponential_coin
from tacit.mechanisms.randomness import RandomSource
from tacit.mechanisms.selection import ScoreGaps, Selection
from tacit.mechanisms.simulation import SeededSource, is_simulated
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p
from tests.statistical.exact_laws import exponential_law, noisy_max_law, permute_and_flip_law

DRAWS = 3_000
SCORES = [3, 5, 5, 4]
EPSILON = 1.5
FACTOR = EPSILON / 2

Law = Callable[[list[Any], float], NDArray[np.float64]]
LAWS: dict[type[Selection], Law] = {
    Exponential: exponential_law,
    PermuteAndFlip: permute_and_flip_law,
    ReportNoisyMax: lambda scores, factor: noisy_max_law(scores, 1 / factor),
}
kinds = pytest.mark.parametrize("kind", list(LAWS))


def check(mechanism: Selection, scores: list[Any], law: NDArray[np.float64], seed: int) -> None:
    source = SeededSource(seed)
    counts = np.zeros(len(scores))
    for _ in range(DRAWS):
        counts[mechanism.release(scores, source=source)] += 1
    accept(chi_square_p(counts, law), "the law of this choice")


@kinds
def test_integers_are_chosen_with_the_stated_probabilities(kind: type[Selection]) -> None:
    check(kind(1, EPSILON), SCORES, LAWS[kind](SCORES, FACTOR), seed=1)


@kinds
def test_the_sensitivity_scales_the_scores(kind: type[Selection]) -> None:
    scores = [3 * score for score in SCORES]
    check(kind(3, EPSILON), scores, LAWS[kind](scores, FACTOR / 3), seed=2)


@kinds
def test_scores_that_move_in_one_direction_need_half_the_noise(kind: type[Selection]) -> None:
    check(kind(1, EPSILON, monotonic=True), SCORES, LAWS[kind](SCORES, EPSILON), seed=3)


@kinds
def test_a_choice_with_twice_the_epsilon_is_noticed(kind: type[Selection]) -> None:
    with pytest.raises(Refuted):
        check(kind(1, 2 * EPSILON), SCORES, LAWS[kind](SCORES, FACTOR), seed=4)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_floats_are_chosen_by_the_numbers_that_they_are(kind: type[Selection]) -> None:
    scores = [0.1, 1.7, 1.3, -0.4]
    check(kind(0.7, EPSILON), scores, LAWS[kind](scores, FACTOR / 0.7), seed=5)


def test_the_noisy_maximum_of_floats_is_taken_on_the_public_grid() -> None:
    steps_apart = 2**12 + 1  # one sensitivity, and one step more for rounding
    steps = [2**12 * score // 2 for score in SCORES]
    law = noisy_max_law(steps, Fraction(2 * steps_apart) / Fraction(EPSILON))
    check(ReportNoisyMax(2.0, EPSILON), [float(score) for score in SCORES], law, seed=6)


def test_the_first_of_equal_noisy_maxima_is_reported() -> None:
    scores = [0, 0, 0]
    law = noisy_max_law(scores, 0.5)
    assert law[0] > 1.5 * law[2]
    check(ReportNoisyMax(1, 4), scores, law, seed=7)


class TriesInTheGivenOrder(PermuteAndFlip):
    """Wrong: the first candidate that shows heads, without a random order."""

    def _choose(self, scores: NDArray[Any], source: RandomSource) -> int:
        gaps = ScoreGaps(scores, self.factor)
        for index, gap in enumerate(gaps.doubles.tolist()):
            if exponential_coin(gap, lambda index=index: gaps.exact(index), source):  # type: ignore[misc]
                return index
        raise AssertionError("the best candidate always shows heads")


def test_permute_and_flip_without_the_permutation_is_noticed() -> None:
    with pytest.raises(Refuted):
        check(TriesInTheGivenOrder(1, EPSILON), SCORES, permute_and_flip_law(SCORES, FACTOR), seed=8)


class SharesOneNoise(ReportNoisyMax):
    """Wrong: every score gets the same noise, so the greatest is always reported."""

    def _choose(self, scores: NDArray[Any], source: RandomSource) -> int:
        return int(np.argmax(scores))


def test_a_noisy_maximum_without_noise_is_noticed() -> None:
    with pytest.raises(Refuted):
        check(SharesOneNoise(1, EPSILON), SCORES, noisy_max_law(SCORES, 1 / FACTOR), seed=9)


def check_pairs(mechanism: TopK, epsilon_each: float, seed: int) -> None:
    source = SeededSource(seed)
    pairs = list(permutations(range(len(SCORES)), 2))
    counts = dict.fromkeys(pairs, 0)
    for _ in range(DRAWS):
        first, second = mechanism.release(SCORES, source=source).tolist()
        counts[first, second] += 1
    law = []
    for first, second in pairs:
        left = [score for index, score in enumerate(SCORES) if index != first]
        one = exponential_law(SCORES, epsilon_each / 2)[first]
        law.append(one * exponential_law(left, epsilon_each / 2)[second - (second > first)])
    accept(chi_square_p([counts[pair] for pair in pairs], law), "choosing one after another")


def test_the_best_two_are_chosen_one_after_another_at_half_of_epsilon_each() -> None:
    check_pairs(TopK(1, 2.0, k=2), 1.0, seed=10)


def test_a_top_two_that_pays_epsilon_for_each_is_noticed() -> None:
    with pytest.raises(Refuted):
        check_pairs(TopK(1, 4.0, k=2), 1.0, seed=11)


def test_the_top_of_all_candidates_is_an_order_of_them() -> None:
    chosen = TopK(1, 1.0, k=4).release(SCORES, source=SeededSource(12))
    assert sorted(chosen.tolist()) == [0, 1, 2, 3]


@kinds
def test_the_shortfall_stays_within_its_interval(kind: type[Selection]) -> None:
    scores = np.arange(20)
    mechanism, source = kind(1, 1), SeededSource(13)
    low, high = mechanism.interval(0.9, len(scores))
    shortfalls = np.array([mechanism.release(scores, source=source) for _ in range(2_000)]) - scores.max()
    assert high == 0
    inside = int(np.count_nonzero(shortfalls >= low))
    accept(binomial_p(min(inside, 1_800), 2_000, 0.9), "covered at the level")


@kinds
def test_a_hopeless_candidate_is_never_taken_and_a_lone_one_always(kind: type[Selection]) -> None:
    source = SeededSource(14)
    assert all(kind(1, 1).release([0, 10**6], source=source) == 1 for _ in range(200))
    assert all(kind(1.0, 1).release([7.5], source=source) == 0 for _ in range(20))


@kinds
def test_the_widest_gaps_that_scores_can_have_are_told_apart(kind: type[Selection]) -> None:
    assert kind(1, 1).release([-(2**62), 2**62], source=SeededSource(15)) == 1
    if kind is not ReportNoisyMax:  # which refuses floats beyond its grid
        assert kind(1, 1).release([-1.5e308, 1.5e308], source=SeededSource(16)) == 1


def test_what_is_chosen_with_replayable_noise_says_so_and_can_be_replayed() -> None:
    one, two = (Exponential(1, 1).release(SCORES, source=SeededSource(17)) for _ in range(2))
    assert is_simulated(one)
    assert one == two
    assert not is_simulated(Exponential(1, 1).release(SCORES))
