"""Propose-test-release answers as often as worked out, and not at all where the data does not pin the answer down.

False alarms: each test calls `accept` three times at most, so at most 3e-6 each over the choice of seeds, which are
fixed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import InterquartileRange, StableMode
from tacit.mechanisms.propose_test_release import StabilityTest
from tacit.mechanisms.simulation import SeededSource, is_simulated
from tacit.privacy import Relation
from tests.statistical.evidence import Refuted, accept, binomial_p
from tests.statistical.exact_laws import laplace_at_least

DRAWS = 5_000
EPSILON, DELTA = 0.5, 1e-3
THRESHOLD = StabilityTest(Fraction(EPSILON), Fraction(DELTA)).threshold


def check(lead: int, distance: int, relation: Relation, seed: int) -> None:
    mechanism, source = StableMode(EPSILON, DELTA, relation=relation), SeededSource(seed)
    values = ["a"] * (lead + 2) + ["b"] * 2 + ["c"]
    answers = [mechanism.release(values, source=source) for _ in range(DRAWS)]
    assert set(answers) <= {"a", None}
    chance = float(laplace_at_least(np.array(THRESHOLD - distance), 1 / EPSILON))
    accept(binomial_p(answers.count("a"), DRAWS, chance), "the stated test")


@pytest.mark.parametrize("distance", [THRESHOLD - 3, THRESHOLD, THRESHOLD + 2])
def test_the_mode_is_released_as_often_as_its_lead_allows(distance: int) -> None:
    check(distance, distance, Relation.ADD_REMOVE, seed=1)
    check(2 * distance, distance, Relation.REPLACE_ONE, seed=2)
    check(2 * distance - 1, distance, Relation.REPLACE_ONE, seed=3)


class HalfTheNoise(StabilityTest):
    """Wrong: noise of half the scale, at the same threshold."""

    def passes(self, distance: int, source: Any) -> bool:
        return StabilityTest(self.epsilon * 2, self.delta).passes(distance - self._too_low, source)

    @property
    def _too_low(self) -> int:
        return self.threshold - StabilityTest(self.epsilon * 2, self.delta).threshold


class NoNoise(StabilityTest):
    """Wrong: the distance is compared with the threshold as it is."""

    def passes(self, distance: int, source: Any) -> bool:
        return distance >= self.threshold


@pytest.mark.parametrize("planted", [HalfTheNoise, NoNoise])
def test_a_test_with_too_little_noise_is_noticed(planted: type[StabilityTest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.mechanisms.propose_test_release.StabilityTest", planted)
    with pytest.raises(Refuted):
        check(THRESHOLD + 2, THRESHOLD + 2, Relation.ADD_REMOVE, seed=4)


@pytest.mark.parametrize("values", [["a"], ["a", "b"], ["a", "a", "b"], []])
def test_a_small_lead_gives_no_answer(values: list[str]) -> None:
    mechanism, source = StableMode(1, 1e-9), SeededSource(5)
    assert all(mechanism.release(values, source=source) is None for _ in range(200))


def test_a_clear_lead_gives_the_answer() -> None:
    mechanism, source = StableMode(1, 1e-9), SeededSource(6)
    released = [mechanism.release([7] * 100 + [8] * 20, source=source) for _ in range(200)]
    assert released == [7] * 200
    assert is_simulated(released[0])


def test_the_interquartile_range_of_much_data_is_found_to_within_its_factor() -> None:
    values = np.random.default_rng(1).normal(0, 3, 2_000)
    spread = float(np.subtract(*np.quantile(values, [0.75, 0.25])))
    mechanism, source = InterquartileRange(1, 1e-6), SeededSource(7)
    for released in [mechanism.release(values, source=source) for _ in range(20)]:
        low, high = mechanism.interval(0.95, released)
        assert low * 0.999 <= spread <= high * 1.001
        assert is_simulated(released)


def test_a_range_next_to_a_mark_of_one_ruler_is_released_on_the_other() -> None:
    values = np.linspace(0, 4.002, 2_001)
    mechanism, source = InterquartileRange(2, 1e-6), SeededSource(8)
    assert mechanism.release(values, source=source) == pytest.approx(2.0)


def test_the_interquartile_range_of_little_data_is_not_released() -> None:
    mechanism, source = InterquartileRange(0.5, 1e-9), SeededSource(9)
    assert all(mechanism.release([1, 2, 3, 4, 5, 6, 7, 8], source=source) is None for _ in range(50))


def test_a_small_epsilon_asks_for_no_more_memory_than_the_data() -> None:
    assert InterquartileRange(1e-13, 1e-6).release(list(range(8)), source=SeededSource(10)) is None


def test_values_that_are_all_equal_have_a_range_of_zero() -> None:
    assert InterquartileRange(1, 1e-6).release(np.full(1_000, 3.0), source=SeededSource(11)) == 0
