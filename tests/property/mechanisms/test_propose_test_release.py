"""Propose-test-release on data small enough to try everything: distances, and the exact (epsilon, delta) of releases.

A mechanism's own distance is read where it meets the noise (`StabilityTest.passes`); from it the probability of a
release is worked out exactly, and all neighbours are held to the promise, in both directions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.mechanisms import InterquartileRange, StableMode
from tacit.mechanisms.propose_test_release import StabilityTest, _cell, _spread, changes_to_leave
from tacit.privacy import Relation
from tests.statistical.evidence import Refuted
from tests.statistical.exact_laws import laplace_at_least, require_approximate

EPSILON, DELTA = 1.0, 0.02
VALUES = (0.0, 0.5, 1.0, 2.0, 3.5, 8.0)
relations = pytest.mark.parametrize("relation", list(Relation))
shifts = pytest.mark.parametrize("shift", [0.0, 0.5])


def cell_on(shift: float) -> Any:
    return lambda spread: _cell(spread, math.log(2), shift)


def data_sets(count: int) -> list[tuple[float, ...]]:
    return list(combinations_with_replacement(VALUES, count))


def replacements(sets: Sequence[tuple[float, ...]]) -> NDArray[np.int64]:
    """Return between each two data sets how many values must be replaced to get from one to the other."""
    counts = np.array([[one.count(value) for value in VALUES] for one in sets])
    return np.asarray(len(sets[0]) - np.minimum(counts[:, None, :], counts[None, :, :]).sum(axis=2))


def require_sound(distance: Callable[[NDArray[np.float64]], int], count: int, shift: float) -> float:
    """Hold a distance to what its promise needs, on every data set; return how often it is the true one."""
    sets = data_sets(count)
    apart = replacements(sets)
    cells = np.array([cell_on(shift)(_spread(np.array(one))) for one in sets])
    distances = np.array([distance(np.array(one)) for one in sets])
    elsewhere = cells[:, None] != cells[None, :]
    needed = np.where(elsewhere, apart, count + 1).min(axis=1)
    if np.any(distances > needed):
        raise Refuted("fewer replacements leave the cell than the distance says")
    one, two = np.nonzero((apart == 1) & ~elsewhere)
    if np.abs(distances[one] - distances[two]).max() > 1:
        raise Refuted("neighbours in one cell have distances that differ by more than 1")
    one, two = np.nonzero((apart == 1) & elsewhere)
    if max(distances[one].max(), distances[two].max()) > 1:
        raise Refuted("neighbours in two cells have distances above 1")
    return float(np.mean(distances == needed))


@shifts
@pytest.mark.parametrize("count", [4, 5, 6])
def test_distances_never_exceed_what_leaves_the_cell_and_move_by_one_between_neighbours(
    count: int, shift: float
) -> None:
    exact = require_sound(lambda ordered: changes_to_leave(ordered, cell_on(shift), 50), count, shift)
    assert exact > 0.5, "a distance of 1 everywhere would be sound, and of no use"


def test_a_distance_that_forgets_how_ranges_become_narrower_is_noticed() -> None:
    def wider_only(spread: float) -> float:
        return max(float(cell_on(0.0)(spread)), 0.0)

    with pytest.raises(Refuted):
        require_sound(lambda ordered: changes_to_leave(ordered, wider_only, 50), 5, 0.0)


def test_a_distance_that_is_one_too_large_is_noticed() -> None:
    with pytest.raises(Refuted):
        require_sound(lambda ordered: 1 + changes_to_leave(ordered, cell_on(0.5), 50), 4, 0.5)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=20), st.integers(0), st.floats(-1e6, 1e6), st.integers(2, 30)
)
def test_a_limit_on_the_distance_keeps_neighbours_within_one(
    values: list[float], place: int, other: float, most: int
) -> None:
    neighbour = [*values[: place % len(values)], other, *values[place % len(values) + 1 :]]
    data = [np.sort(np.array(one)) for one in (values, neighbour)]
    one, two = (changes_to_leave(ordered, cell_on(0.5), most) for ordered in data)
    if len({cell_on(0.5)(_spread(ordered)) for ordered in data}) == 1:
        assert abs(one - two) <= 1
    else:
        assert max(one, two) <= 1
    assert max(one, two) <= most


@given(st.lists(st.sampled_from([-1.7e308, -1.0, 0.0, 5e-324, 1.0, 1.7e308]), min_size=4, max_size=9))
def test_ranges_at_the_ends_of_a_doubles_range_give_no_error_and_no_warning(values: list[float]) -> None:
    released = InterquartileRange(1, 0.1).release(values)
    assert released is None or 0 <= released < math.inf


@pytest.mark.parametrize("delta", [0.4, 0.02, 1e-6, 1e-300, Fraction(1, 10**400)])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 8])
def test_the_threshold_is_the_least_that_delta_allows(epsilon: float, delta: float | Fraction) -> None:
    test = StabilityTest(Fraction(epsilon), Fraction(delta))
    with mpmath.workdps(60):
        ratio = mpmath.exp(-mpmath.mpf(epsilon))
        allowed = mpmath.mpf(Fraction(delta).numerator) / Fraction(delta).denominator
        assert ratio ** (test.threshold - 1) / (1 + ratio) <= allowed
        if test.threshold > 2:
            assert ratio ** (test.threshold - 3) / (1 + ratio) > allowed


def distance_of(mechanism: StableMode, values: Sequence[Hashable]) -> int:
    with patch.object(StabilityTest, "passes", autospec=True, return_value=False) as passes:
        mechanism.release(values)
    return int(passes.call_args.args[1])


def mode_of(mechanism: StableMode, values: Sequence[Hashable]) -> Any:
    with patch.object(StabilityTest, "passes", autospec=True, return_value=True):
        return mechanism.release(values)


def release_probability(test: StabilityTest, distance: int) -> float:
    return float(laplace_at_least(np.array(test.threshold - distance), 1 / test.epsilon))


def hold_to_promise(left: tuple[Hashable, float], right: tuple[Hashable, float]) -> float:
    """Hold two neighbours, each an answer and the probability of its release, to (EPSILON, DELTA)."""
    outcomes = [*sorted({repr(left[0]), repr(right[0])}), "refused"]

    def law(answer: Hashable, released: float) -> NDArray[np.float64]:
        chances = dict.fromkeys(outcomes, 0.0)
        chances["refused"] += 1 - released
        chances[repr(answer)] += released
        return np.array([chances[outcome] for outcome in outcomes])

    return require_approximate(law(*left), law(*right), EPSILON, DELTA)


def neighbours_of(values: tuple[str, ...], relation: Relation) -> Iterator[tuple[str, ...]]:
    for place in range(len(values)):
        without = values[:place] + values[place + 1 :]
        if relation is Relation.ADD_REMOVE:
            yield without
        else:
            yield from ((*without, other) for other in "abcd")
    if relation is Relation.ADD_REMOVE:
        yield from ((other, *values) for other in "abcd")


LEADS = [("a",) * first + ("b",) * second + ("c",) * third for first in range(14) for second, third in [(0, 0), (2, 1)]]


def delta_needed(relation: Relation, released: Callable[[StabilityTest, int], float]) -> float:
    """Hold all neighbours to the promise, if a distance leads to a release as often as `released` says."""
    mechanism = StableMode(EPSILON, DELTA, relation=relation)
    test = StabilityTest(Fraction(EPSILON), Fraction(DELTA))

    def answer(values: tuple[str, ...]) -> tuple[Hashable, float]:
        mode = mode_of(mechanism, values)
        return mode, 0.0 if mode is None else released(test, distance_of(mechanism, values))

    return max(
        hold_to_promise(answer(values), answer(neighbour))
        for values in LEADS
        if values or relation is Relation.ADD_REMOVE
        for neighbour in set(neighbours_of(values, relation))
    )


@relations
def test_the_mode_of_neighbours_is_released_within_epsilon_and_delta(relation: Relation) -> None:
    assert delta_needed(relation, release_probability) > DELTA / 20, "some neighbours come near to delta"


@relations
def test_a_test_without_noise_breaks_the_promise(relation: Relation) -> None:
    with pytest.raises(Refuted):
        delta_needed(relation, lambda test, distance: float(distance >= test.threshold))


@relations
@given(values=st.lists(st.sampled_from("abc"), max_size=9))
def test_no_data_makes_the_mode_raise_under_add_remove(relation: Relation, values: list[str]) -> None:
    if values or relation is Relation.ADD_REMOVE:
        mode = mode_of(StableMode(EPSILON, DELTA, relation=relation), values)
        assert mode is None if not values else Counter(values)[mode] == max(Counter(values).values())


@pytest.mark.parametrize(("odd", "usual"), [(True, 1), (1.0, 1), (-0.0, 0.0), (Fraction(2), 2)])
def test_one_equal_value_written_otherwise_does_not_change_how_the_mode_is_written(odd: Any, usual: Any) -> None:
    mechanism = StableMode(1, 1e-6)
    modes = [mode_of(mechanism, [first] + [usual] * 100) for first in (odd, usual)]
    assert [repr(mode) for mode in modes] == [repr(usual)] * 2


def test_the_range_is_released_at_half_the_price_on_each_ruler() -> None:
    mechanism = InterquartileRange(1, 0.02)
    seen: list[StabilityTest] = []

    def passes(self: StabilityTest, distance: int, source: object) -> bool:
        seen.append(self)
        return False

    with patch.object(StabilityTest, "passes", passes):
        assert mechanism.release(list(range(20))) is None
    assert seen == [StabilityTest(Fraction(1, 2), Fraction(0.02) / 2)] * 2
