"""Samples of exactly `size` units: every data set of a toy, every neighbour, both relations, worked out whole."""

from itertools import product

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.special import ndtr

from tacit.accounting import epsilon
from tacit.privacy import Relation, events
from tests.unit.accounting import checker, truth

POPULATION, SIZE = 4, 2


def hypergeometric(population: int, ones: int) -> list[mpf]:
    """Return how likely a sample holds 0, 1, … ones."""
    ways = mpmath.binomial(population, SIZE)
    return [
        mpmath.binomial(ones, k) * mpmath.binomial(population - ones, SIZE - k) / ways if k <= ones else mpf(0)
        for k in range(SIZE + 1)
    ]


def exchanged() -> list[tuple[list[mpf], list[mpf]]]:
    """Return the laws of the number of ones in a sample, for all data sets of bits that differ in one bit."""
    pairs = []
    for ones in range(POPULATION):
        two = hypergeometric(POPULATION, ones), hypergeometric(POPULATION, ones + 1)
        pairs += [two, two[::-1]]
    return pairs


def removed() -> list[tuple[list[mpf], list[mpf]]]:
    """Return the same for data sets of which one has a unit more."""
    pairs = []
    for ones in range(POPULATION + 1):
        for left in {max(ones - 1, 0), min(ones, POPULATION - 1)}:
            two = hypergeometric(POPULATION, ones), hypergeometric(POPULATION - 1, left)
            pairs += [two, two[::-1]]
    return pairs


def responses(size: float, times: int) -> list[truth.Finite]:
    """Return randomized response to every yes-or-no question about a sample, asked `times` over."""
    likely = 1 / (1 + mpmath.exp(-mpf(size)))
    laws = []
    for (one, other), question in product(exchanged(), product((0, 1), repeat=SIZE + 1)):
        chances = [likely if yes else 1 - likely for yes in question]
        p, q = (sum(chance * mass for chance, mass in zip(chances, law, strict=True)) for law in (one, other))
        if p != q:
            laws.append(truth.two_point_fold(p, q, times))
    return laws


@pytest.mark.parametrize("at", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("times", [1, 2, 5, 12])
def test_responses_about_a_sample_are_enclosed_under_replace_one(times: int, at: float) -> None:
    inner = events.RandomizedResponse(1.0, under=Relation.REPLACE_ONE)
    event = events.Repeated(events.SampledWithoutReplacement(SIZE, POPULATION, inner), times)
    checker.check(checker.Case(event, [law.delta for law in responses(1.0, times)]), at)


def adaptive_epsilon(size: float, rate: float, times: int, at: float) -> float:
    """Return the epsilon of randomized response to the worst questions, each chosen by the answers so far."""
    likely = 1 / (1 + np.exp(-size))
    grid = np.linspace(-14, 14, 14_001)
    most = np.maximum(0, -np.expm1(grid))
    for _ in range(times):
        best = np.zeros_like(grid)
        for share in np.linspace(0, 1 - rate, 5):
            low, high = ((1 - likely) + (2 * likely - 1) * one for one in (share, share + rate))
            for p, q in ((low, high), (high, low)):
                left = [(p, grid - np.log(p / q)), (1 - p, grid - np.log((1 - p) / (1 - q)))]
                found = sum(mass * np.where(e < grid[0], -np.expm1(e), np.interp(e, grid, most)) for mass, e in left)
                best = np.maximum(best, found)
        most = best
    return float(grid[np.argmax(most <= at)])


@pytest.mark.parametrize("times", [1, 5, 10, 20])
def test_the_lower_end_is_reached_by_questions_chosen_on_the_way(times: int) -> None:
    """The dominating pair is reached in one direction or the other, never in both; its curve is no lower bound."""
    inner = events.RandomizedResponse(1.0, under=Relation.REPLACE_ONE)
    event = events.Repeated(events.SampledWithoutReplacement(1, 2, inner), times)
    bound = epsilon(event, 1e-3)
    truly = adaptive_epsilon(1.0, 0.5, times, 1e-3)
    assert bound.lower <= truly
    assert truly <= bound.upper + 0.01


def mixture_delta(p: list[mpf], q: list[mpf], sigma: float, at: float, apart: int) -> float:
    """Return the most that P has above e^at Q on either side of a point; the ratio of the two is monotone."""
    points = np.linspace(-12 * sigma, 12 * sigma + apart * SIZE, 20_001)
    best = 0.0
    for side in (1, -1):
        over = np.array([ndtr(side * (points - apart * k) / sigma) for k in range(SIZE + 1)])
        found = np.array(p, dtype=np.float64) @ over - np.exp(at) * np.array(q, dtype=np.float64) @ over
        best = max(best, float(found.max()))
    return best


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("at", [0.05, 1e-4])
def test_gaussian_sums_over_a_sample_are_paid_for_under_both_relations(relation: Relation, at: float) -> None:
    """Bits 0 and 1 move a sum by 1 when exchanged; values -1 and 1 by 1 when removed, and by 2 when exchanged."""
    sigma = 1.5
    inner = events.Gaussian(sigma, under=relation)
    bound = epsilon(events.SampledWithoutReplacement(SIZE, POPULATION, inner), at)
    pairs, apart = (exchanged(), 1) if relation is Relation.REPLACE_ONE else (removed(), 2)
    assert max(mixture_delta(p, q, sigma, bound.upper, apart) for p, q in pairs) <= at
    base = truth.Gaussian(apart / sigma)
    reached = [truth.Sampled(base, SIZE / POPULATION, addition).delta(bound.lower) for addition in (False, True)]
    assert max(reached) >= at
    assert bound.upper <= bound.lower * 1.02


def test_a_sample_of_everybody_is_no_sample() -> None:
    inner = events.Gaussian(1.5, under=Relation.REPLACE_ONE)
    whole = epsilon(events.SampledWithoutReplacement(7, 7, inner), 1e-5)
    assert whole.upper == pytest.approx(epsilon(inner, 1e-5).upper, rel=1e-3)


def test_a_smaller_sample_of_more_units_costs_less() -> None:
    inner = events.Gaussian(1.0, under=Relation.REPLACE_ONE)
    found = [epsilon(events.SampledWithoutReplacement(size, 1000, inner), 1e-6).upper for size in (1, 10, 100, 999)]
    assert found == sorted(found)
    assert found[-1] <= epsilon(inner, 1e-6).upper * 1.001
