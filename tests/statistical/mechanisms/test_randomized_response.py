"""Reports are true, and lies spread, with exactly the stated probabilities.

False alarms: each test calls `accept` at most `categories` times, so at most 5e-6 each over the choice of seeds, which
are fixed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.mechanisms import RandomizedResponse
from tacit.mechanisms.simulation import SeededSource, is_simulated
from tacit.privacy import events
from tests.statistical.evidence import Refuted, accept, binomial_p, chi_square_p
from tests.statistical.exact_laws import require_pure

PEOPLE = 100_000

cases = pytest.mark.parametrize(
    ("parameters", "categories", "truth"),
    [
        ({"epsilon": math.log(3)}, 2, 0.75),
        ({"truth": 0.75}, 2, 0.75),
        ({"truth": Fraction(2, 3)}, 2, 2 / 3),
        ({"epsilon": 0.1}, 2, 1 / (1 + math.exp(-0.1))),
        ({"epsilon": 1.0}, 5, math.e / (math.e + 4)),
        ({"truth": 0.4}, 5, 0.4),
        ({"epsilon": 0.2}, 3, math.exp(0.2) / (math.exp(0.2) + 2)),
    ],
)


def law_of(answer: int, categories: int, truth: float) -> np.ndarray[Any, Any]:
    law = np.full(categories, (1 - truth) / (categories - 1))
    law[answer] = truth
    return law


def check(mechanism: RandomizedResponse, truth: float, seed: int, people: int = PEOPLE) -> None:
    source = SeededSource(seed)
    for answer in range(mechanism.categories):
        reports = mechanism.release(np.full(people, answer), source=source)
        counts = np.bincount(reports, minlength=mechanism.categories)
        accept(chi_square_p(counts, law_of(answer, mechanism.categories, truth)), "randomized response")


@cases
def test_reports_follow_the_law_whatever_the_answer(parameters: dict[str, Any], categories: int, truth: float) -> None:
    check(RandomizedResponse(categories=categories, **parameters), truth, seed=1)


@cases
def test_the_stated_probabilities_are_those_of_the_law(
    parameters: dict[str, Any], categories: int, truth: float
) -> None:
    mechanism = RandomizedResponse(categories=categories, **parameters)
    assert mechanism.truth_probability == pytest.approx(truth, rel=1e-14)
    assert mechanism.lie_probability == pytest.approx((1 - truth) / (categories - 1), rel=1e-14)


@cases
def test_two_answers_of_one_person_give_laws_exactly_epsilon_apart(
    parameters: dict[str, Any], categories: int, truth: float
) -> None:
    event = RandomizedResponse(categories=categories, **parameters).event
    assert isinstance(event, events.RandomizedResponse)
    laws = [law_of(answer, categories, truth) for answer in range(2)]
    assert require_pure(laws[0], laws[1], event.epsilon) > event.epsilon * (1 - 1e-9)


@pytest.mark.parametrize("truth", [0.75, 0.5000001, 0.9, 1 - 2**-53, Fraction(2, 3), Fraction(10**30 - 1, 10**30)])
def test_the_recorded_epsilon_is_never_below_the_exact_one(truth: float | Fraction) -> None:
    event = RandomizedResponse(truth=truth).event
    assert isinstance(event, events.RandomizedResponse)
    with mpmath.workdps(60):
        odds = Fraction(truth) / (1 - Fraction(truth))
        exact = mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)
        assert exact <= mpmath.mpf(event.epsilon) <= exact + (1 + exact) * mpmath.mpf(2) ** -50


@pytest.mark.parametrize("by", ["truth", "epsilon"])
def test_one_part_in_seventy_too_much_truth_is_noticed(by: str) -> None:
    planted: dict[str, Any] = {"truth": 0.76} if by == "truth" else {"epsilon": math.log(0.76 / 0.24)}
    with pytest.raises(Refuted):
        check(RandomizedResponse(**planted), 0.75, seed=2)


class LiesToTheNextAnswer(RandomizedResponse):
    """Wrong: a lie is always the next answer, so that it tells which one is true."""

    def release(self, answers: Any, *, source: Any = None) -> Any:
        array = np.asarray(answers)
        return np.where(self._lies(array.size, source), (array + 1) % self.categories, array)


class LiesIncludeTheTruth(RandomizedResponse):
    """Wrong: a lie is drawn from all answers, so that it is true now and then (the other form's probabilities)."""

    def release(self, answers: Any, *, source: Any = None) -> Any:
        array = np.asarray(answers)
        anything = np.frombuffer(source.read(array.size), dtype=np.uint8) % self.categories
        return np.where(self._lies(array.size, source), anything, array)


@pytest.mark.parametrize("planted", [LiesToTheNextAnswer, LiesIncludeTheTruth])
def test_lies_that_are_not_spread_evenly_are_noticed(planted: type[RandomizedResponse]) -> None:
    with pytest.raises(Refuted):
        check(planted(1.0, 4), math.e / (math.e + 3), seed=3)


def test_single_answers_follow_the_law_as_well() -> None:
    mechanism, source = RandomizedResponse(truth=0.75), SeededSource(4)
    told = sum(mechanism.release(True, source=source) == 1 for _ in range(4_000))
    accept(binomial_p(told, 4_000, 0.75))


def test_one_person_more_or_less_in_the_array_does_not_change_anothers_law() -> None:
    mechanism, source = RandomizedResponse(1.0, 3), SeededSource(5)
    answers = np.tile([0, 1, 2, 2], 20_000)
    reports = mechanism.release(answers, source=source)
    for answer in range(3):
        counts = np.bincount(reports[answers == answer], minlength=3)
        accept(chi_square_p(counts, law_of(answer, 3, mechanism.truth_probability)))


@pytest.mark.parametrize(("categories", "shares"), [(2, [0.7, 0.3]), (4, [0.4, 0.3, 0.2, 0.1])])
def test_the_estimate_is_unbiased_and_lies_within_its_interval(categories: int, shares: list[float]) -> None:
    mechanism = RandomizedResponse(1.0, categories)
    answers = np.repeat(np.arange(categories), (np.array(shares) * 4_000).astype(int))
    truth = np.array(shares) if categories > 2 else shares[1]
    inside = 0
    errors = []
    for seed in range(100):
        reports = mechanism.release(answers, source=SeededSource(seed))
        low, high = mechanism.interval(0.9, reports)
        inside += int(np.all(np.ravel(low)[0] <= np.ravel(truth)[0] <= np.ravel(high)[0]))
        errors.append(np.ravel(mechanism.estimate(reports) - truth)[0])
    accept(binomial_p(min(inside, 90), 100, 0.9), "covered at the level")
    assert abs(np.mean(errors)) < 5 * np.std(errors) / math.sqrt(len(errors))


def test_what_a_report_tells_of_a_person_is_bayes_rule() -> None:
    mechanism = RandomizedResponse(truth=0.75)
    assert mechanism.posterior(0.5) == pytest.approx(0.75)
    assert mechanism.posterior(0.1) == pytest.approx(0.075 / (0.075 + 0.9 * 0.25))


@pytest.mark.parametrize("epsilon", [50, 800, 10**6])
def test_an_epsilon_beyond_the_reach_of_doubles_still_has_probabilities(epsilon: int) -> None:
    mechanism = RandomizedResponse(epsilon, 3)
    assert mechanism.truth_probability == 1.0
    assert 0 <= mechanism.lie_probability < 1e-20
    answers = np.array([0, 1, 2, 2])
    assert mechanism.release(answers, source=SeededSource(6)).tolist() == answers.tolist()
    assert mechanism.estimate(answers).tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_reports_are_of_the_kind_that_was_given() -> None:
    mechanism = RandomizedResponse(1.0)
    assert type(mechanism.release(True)) is bool
    assert type(mechanism.release(1)) is int
    assert mechanism.release(np.zeros((2, 3), dtype=bool)).dtype == np.bool_
    assert mechanism.release(np.zeros((2, 3), dtype=np.uint8)).shape == (2, 3)
    assert is_simulated(mechanism.release(np.zeros(3, dtype=int), source=SeededSource(7)))
