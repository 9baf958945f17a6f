"""Choices among neighbouring scores: exact output laws, held to epsilon in both directions.

The laws are worked out, not sampled (tests/statistical/exact_laws.py); tests/statistical holds the mechanisms to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.mechanisms import Exponential, PermuteAndFlip, ReportNoisyMax
from tacit.mechanisms.selection import ScoreGaps, Selection
from tests.statistical.evidence import Refuted
from tests.statistical.exact_laws import (
    exponential_law,
    neighbouring_scores,
    noisy_max_law,
    permute_and_flip_law,
    require_pure,
)

Law = Callable[[Sequence[int], float], NDArray[np.float64]]

LAWS: dict[type[Selection], Law] = {
    Exponential: exponential_law,
    PermuteAndFlip: permute_and_flip_law,
    ReportNoisyMax: lambda scores, factor: noisy_max_law(scores, 1 / factor),
}
FAR_APART = [0, 14, 14]
"""Scores of which one is unlikely to be chosen, where the promise is nearly used up."""

small_scores = st.lists(st.integers(-6, 6), min_size=2, max_size=4)
epsilons = st.sampled_from([0.1, 1.0, 3.0])
kinds = pytest.mark.parametrize("kind", list(LAWS))


def greatest_loss(law: Law, scores: Sequence[int], mechanism: Selection, *, monotonic: bool) -> float:
    here = law(scores, float(mechanism.factor))
    return max(
        require_pure(here, law(moved, float(mechanism.factor)), float(mechanism.epsilon))
        for moved in neighbouring_scores(scores, monotonic=monotonic)
    )


@kinds
@given(scores=small_scores, epsilon=epsilons)
@settings(max_examples=25)
def test_neighbouring_scores_give_laws_within_epsilon(kind: type[Selection], scores: list[int], epsilon: float) -> None:
    greatest_loss(LAWS[kind], scores, kind(1, epsilon), monotonic=False)


@kinds
@given(scores=small_scores, epsilon=epsilons)
@settings(max_examples=25)
def test_half_the_noise_is_enough_where_all_scores_move_in_one_direction(
    kind: type[Selection], scores: list[int], epsilon: float
) -> None:
    greatest_loss(LAWS[kind], scores, kind(1, epsilon, monotonic=True), monotonic=True)


@kinds
@pytest.mark.parametrize("monotonic", [False, True])
def test_the_promise_is_nearly_used_up_by_some_neighbours(kind: type[Selection], monotonic: bool) -> None:
    mechanism = kind(1, 1, monotonic)
    assert greatest_loss(LAWS[kind], FAR_APART, mechanism, monotonic=monotonic) > 0.6


@kinds
def test_half_the_noise_breaks_the_promise_where_scores_move_in_both_directions(kind: type[Selection]) -> None:
    with pytest.raises(Refuted):
        greatest_loss(LAWS[kind], FAR_APART, kind(1, 1, monotonic=True), monotonic=False)


@pytest.mark.parametrize("monotonic", [False, True])
@given(scores=small_scores, epsilon=epsilons)
@settings(max_examples=25)
def test_the_exponential_mechanism_keeps_all_log_ratios_in_one_interval_of_length_epsilon(
    monotonic: bool, scores: list[int], epsilon: float
) -> None:
    factor = float(Exponential(1, epsilon, monotonic).factor)
    here = np.log(exponential_law(scores, factor))
    for moved in neighbouring_scores(scores, monotonic=monotonic):
        assert np.ptp(np.log(exponential_law(moved, factor)) - here) <= epsilon * (1 + 1e-9)


def test_trying_candidates_in_their_given_order_breaks_the_promise() -> None:
    def law(scores: Sequence[int], factor: float) -> NDArray[np.float64]:
        heads = np.exp((np.asarray(scores) - max(scores)) * factor)
        reached = np.concatenate([[1.0], np.cumprod(1 - heads)[:-1]])
        return np.asarray(heads * reached)

    with pytest.raises(Refuted):
        greatest_loss(law, [1, 0], PermuteAndFlip(1, 1), monotonic=False)


@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    st.fractions(Fraction(1, 10**320), Fraction(10**6)),
)
@example([2**62, -(2**62)], Fraction(1, 2))
@example([1.5e308, -1.5e308], Fraction(1, 10**308))
def test_the_doubles_that_decide_most_draws_are_near_the_exact_exponents(
    scores: list[int] | list[float], factor: Fraction
) -> None:
    gaps = ScoreGaps(np.asarray(scores), factor)
    for double, exact in zip(gaps.doubles.tolist(), gaps.all_exact(), strict=True):
        assert double >= 0
        if exact > 1000:  # far beyond, both weights are nothing
            assert double > 900
        else:
            assert abs(Fraction(double) - exact) <= (1 + exact) * Fraction(1, 2**50)


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=4), st.integers(1, 3))
def test_the_laws_in_these_tests_are_laws(scores: list[int], scale: int) -> None:
    for law in LAWS.values():
        chances = law(scores, 1 / scale)
        assert abs(chances.sum() - 1) < 1e-12
        assert chances[np.argmax(scores)] >= chances.max() - 1e-12
