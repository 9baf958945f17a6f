"""Intervals of randomized response cover the true share at the level, by enumerating the law of the reports.

Of n people, m hold an answer; how many reports name it is Binomial(m, truth) plus Binomial(n - m, lie). For every count
of reports the interval is asked for, and the probability of the counts whose interval holds m / n is added up. Nothing
is sampled, so nothing can be a false alarm.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.mechanisms import Interval, RandomizedResponse

LEVELS = (0.5, 0.9, 0.99)
PEOPLE = (1, 5, 20, 200)
USES: dict[str, RandomizedResponse] = {
    "two answers by truth": RandomizedResponse(truth=0.75),
    "two answers by epsilon": RandomizedResponse(0.1),
    "two answers, hardly any lies": RandomizedResponse(8),
    "two answers, no lies that a double could hold": RandomizedResponse(900),
    "three answers by epsilon": RandomizedResponse(0.5, 3),
    "ten answers by truth": RandomizedResponse(categories=10, truth=0.4),
    "ten answers, hardly any lies": RandomizedResponse(6.0, 10),
}


@lru_cache(maxsize=256)
def reported(people: int, holders: int, truth: float, lie: float) -> list[mpmath.mpf]:
    """Return the law of how many reports name the answer that so many people hold."""
    return list(np.convolve(binomial(holders, truth), binomial(people - holders, lie)))


def binomial(trials: int, chance: float) -> np.ndarray[Any, Any]:
    p = mpmath.mpf(chance)
    return np.array([math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)])


def reports_with(count: int, people: int) -> np.ndarray[Any, Any]:
    """Return reports of which `count` name the answer 1 and the others the answer 0."""
    return np.repeat([1, 0], [count, people - count])


def share_of_ones(mechanism: RandomizedResponse, interval: Interval) -> Interval:
    return interval if mechanism.categories == 2 else Interval(interval.low[1], interval.high[1])


@pytest.mark.sampled(12, each="use")
@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("use", USES)
def test_the_true_share_is_covered_at_the_level_whatever_it_is(use: str, people: int) -> None:
    mechanism = USES[use]
    candidates = {0, 1, 2, people // 10, people // 3, people // 2, people - 2, people - 1, people}
    holders = sorted(candidates & set(range(people + 1)))
    for level in LEVELS:
        intervals = [
            share_of_ones(mechanism, mechanism.interval(level, reports_with(count, people)))
            for count in range(people + 1)
        ]
        assert all(0 <= low <= high <= 1 for low, high in intervals)
        for held in holders:
            law = reported(people, held, mechanism.truth_probability, mechanism.lie_probability)
            covered = sum(
                mass for mass, (low, high) in zip(law, intervals, strict=True) if low <= held / people <= high
            )
            assert covered >= level, (use, people, held, level, float(covered))


@pytest.mark.sampled(7, each="use")
@pytest.mark.parametrize("people", [20, 200])
@pytest.mark.parametrize("use", USES)
def test_no_share_is_kept_that_the_reports_refute(use: str, people: int) -> None:
    """The ends are sharp: one person beyond an end has a tail below half of what may be missed."""
    mechanism, level = USES[use], 0.9
    for count in range(0, people + 1, people // 20):
        low, high = share_of_ones(mechanism, mechanism.interval(level, reports_with(count, people)))
        first, last = round(low * people), round(high * people)
        if 0 < first < people:
            law = reported(people, first - 1, mechanism.truth_probability, mechanism.lie_probability)
            assert sum(law[count:]) < (1 - level) / 2 + 1e-9
        if 0 < last < people:
            law = reported(people, last + 1, mechanism.truth_probability, mechanism.lie_probability)
            assert sum(law[: count + 1]) < (1 - level) / 2 + 1e-9


def test_answers_in_every_container_have_the_interval_of_their_counts() -> None:
    mechanism = RandomizedResponse(truth=0.75)
    reports = reports_with(7, 20)
    expected = mechanism.interval(0.9, reports)
    for same in (reports.tolist(), reports.astype(bool), reports.reshape(4, 5), reports.astype(np.uint8)):
        assert mechanism.interval(0.9, same) == expected
    assert mechanism.interval(0.9, True) == mechanism.interval(0.9, [1]) == mechanism.interval(0.9, np.array(1))


def test_every_answer_has_an_interval_of_its_own_count() -> None:
    mechanism = RandomizedResponse(1.0, 4)
    low, high = mechanism.interval(0.9, [0, 0, 0, 1, 1, 3])
    for answer, count in enumerate([3, 2, 0, 1]):
        one = mechanism.interval(0.9, reports_with(count, 6))
        assert (low[answer], high[answer]) == (one.low[1], one.high[1])


@pytest.mark.parametrize("people", [10**4, 10**6, 10**8])
def test_the_interval_of_many_reports_is_close_to_that_of_the_normal_law(people: int) -> None:
    mechanism = RandomizedResponse(truth=0.75)
    low, high = mechanism._limits(np.array([4 * people // 10]), people, 0.95)
    deviation = math.sqrt(0.75 * 0.25 / people) / 0.5
    assert low[0] == pytest.approx(0.3 - 1.96 * deviation, abs=0.02 * deviation + 2 / people)
    assert high[0] == pytest.approx(0.3 + 1.96 * deviation, abs=0.02 * deviation + 2 / people)
