"""The exponential mechanism: bounded range holds against every two-outcome mechanism, also one chosen on the way."""

from itertools import product

import mpmath
import numpy as np
import pytest

from tacit.accounting import epsilon
from tacit.accounting.pairs import BoundedRangePair
from tacit.privacy import events
from tests.unit.accounting import checker, truth


def envelope(size: float, at: float) -> mpmath.mpf:
    """Return the most that any split gives away at an epsilon, by going through many."""
    return max(max(law.delta(at) for law in truth.splits(size, 400)), 1 - mpmath.exp(at))


@pytest.mark.parametrize("size", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("share", [-0.9, -0.3, 0.0, 0.2, 0.8])
def test_the_pair_is_the_envelope_of_all_splits(size: float, share: float) -> None:
    at = share * size
    p, q = (float(masses[0]) for masses in BoundedRangePair(size).cells(np.array([at, size])))
    found = p - np.exp(at) * q
    exact = float(envelope(size, at))
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-3)


@pytest.mark.parametrize("at", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("size", [0.1, 1.0])
def test_two_choices_cost_no_less_than_the_worst_pair_of_splits(size: float, at: float) -> None:
    laws = [truth.all_together(two) for two in product(truth.splits(size, 10), repeat=2)]
    event = events.Repeated(events.Exponential(size), 2)
    checker.check(checker.Case(event, [law.delta for law in laws]), at)


@pytest.mark.parametrize("at", [1e-2, 1e-4])
def test_a_second_choice_that_depends_on_the_first_is_paid_for(at: float) -> None:
    """After each outcome the second mechanism is the worst for what is left of epsilon."""
    size = 1.0

    def adaptive(epsilon: truth.Real) -> mpmath.mpf:
        worst = mpmath.mpf(0)
        for law in truth.splits(size, 40):
            worst = max(worst, law.mean(lambda loss: closed(epsilon - loss)))
        return worst

    def closed(epsilon: truth.Real) -> mpmath.mpf:
        if epsilon >= size or epsilon <= -size:
            return max(mpmath.mpf(0), 1 - mpmath.exp(epsilon))
        return (mpmath.exp(mpmath.mpf(size) / 2) - mpmath.exp(epsilon / 2)) ** 2 / (mpmath.exp(size) - 1)

    event = events.Repeated(events.Exponential(size), 2)
    bound = epsilon(event, at)
    checker.check_epsilon(checker.Case(event, [adaptive]), bound, at)


@pytest.mark.parametrize("size", [1e-3, 0.3, 4.0])
def test_choices_cost_less_than_anything_that_is_as_private(size: float) -> None:
    for times in (10, 300):
        choices = epsilon(events.Repeated(events.Exponential(size), times), 1e-6)
        answers = epsilon(events.Repeated(events.Pure(size), times), 1e-6)
        assert choices.upper <= answers.upper * (1 + 1e-6)
        assert choices.lower <= answers.upper


def least_epsilon(size: float, count: int, at: float, cells: int = 60) -> float:
    """Return an epsilon at which `count` choices, each of a split that suits what is left, give away more than `at`.

    Splits at multiples of a step lead from points of the grid to points of the grid, so that nothing is rounded; what
    lies outside of the grid reaches no epsilon above 0.
    """
    step = size / cells
    grid = np.arange(-(count + 1) * cells, (count + 1) * cells + 1) * step
    curve = np.maximum(-np.expm1(grid), 0.0)
    for _ in range(count):
        worst = np.zeros_like(curve)
        for up in range(0, cells + 1, 2):
            p_high = (np.exp(size) - np.exp(up * step)) / np.expm1(size)
            after_high = np.concatenate([np.ones(up), curve[: len(curve) - up]])
            after_low = np.concatenate([curve[cells - up :], np.zeros(cells - up)])
            worst = np.maximum(worst, p_high * after_high + (1 - p_high) * after_low)
        curve = worst
    return float(grid[curve > at][-1])


@pytest.mark.parametrize("at", [1e-3, 1e-6])
@pytest.mark.parametrize(("size", "count"), [(1.0, 2), (1.0, 5), (0.5, 10), (0.1, 30)])
def test_many_choices_cost_little_more_than_the_least_that_holds(size: float, count: int, at: float) -> None:
    least = least_epsilon(size, count, at)
    found = epsilon(events.Repeated(events.Exponential(size), count), at).upper
    assert least <= found <= 1.15 * least
