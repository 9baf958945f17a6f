"""Uniform integers and permutations: every value, and every order, is equally likely.

False alarms: each test calls `accept` twice at most, so at most 2e-6 each over the choice of seeds, which are fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from tacit.mechanisms.exact_sampling import integers_below, permutation
from tacit.mechanisms.simulation import SeededSource
from tests.statistical.evidence import Refuted, accept, chi_square_p
from tests.statistical.scripted import Scripted

DRAWS = 100_000


def check_evenly(counts: list[int]) -> None:
    accept(chi_square_p(counts, np.full(len(counts), 1 / len(counts))), "uniform")


@pytest.mark.parametrize("bound", [1, 2, 3, 6, 1000])
def test_integers_below_a_bound_are_equally_likely(bound: int) -> None:
    drawn = integers_below(bound, DRAWS, SeededSource(1))
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() < bound
    check_evenly(np.bincount(drawn, minlength=bound).tolist())


@pytest.mark.parametrize("bound", [2**40 + 1, 3 * 2**61, 2**63 - 1, 2**63])
def test_integers_below_a_large_bound_are_even_in_their_low_and_high_parts(bound: int) -> None:
    drawn = [int(number) for number in integers_below(bound, DRAWS, SeededSource(2))]
    assert 0 <= min(drawn) <= max(drawn) < bound
    low = Counter(number % 7 for number in drawn)
    high = Counter(number * 13 // bound for number in drawn)
    check_evenly([low[part] for part in range(7)])
    check_evenly([high[part] for part in range(13)])


def test_the_remainder_of_random_bytes_is_noticed_not_to_be_uniform() -> None:
    drawn = np.frombuffer(SeededSource(5).read(DRAWS), dtype=np.uint8) % 100
    with pytest.raises(Refuted):
        check_evenly(np.bincount(drawn).tolist())


def test_what_does_not_fit_is_drawn_again_and_nothing_else() -> None:
    source = Scripted([[0, 2**64 - 1, 1 << 62, 3 << 62], [2 << 62, 3 << 62], [1 << 62]])
    assert integers_below(3, 4, source).tolist() == [0, 2, 1, 1]
    assert source.used_up


def check_orders(draw: Callable[[], list[int]]) -> None:
    counts = Counter(tuple(draw()) for _ in range(12_000))
    orders = list(permutations(range(4)))
    assert set(counts) <= set(orders)
    check_evenly([counts[order] for order in orders])


def test_all_orders_of_four_are_equally_likely() -> None:
    source = SeededSource(6)
    check_orders(lambda: permutation(4, source).tolist())


def test_a_careless_shuffle_is_noticed() -> None:
    source = SeededSource(7)

    def swaps_with_any() -> list[int]:
        """Wrong: every place is exchanged with any other, which favours some orders."""
        order = list(range(4))
        for place in range(4):
            other = int(integers_below(4, 1, source)[0])
            order[place], order[other] = order[other], order[place]
        return order

    with pytest.raises(Refuted):
        check_orders(swaps_with_any)


def test_keys_that_are_equal_are_drawn_again() -> None:
    source = Scripted([[5, 9, 5], [7, 7, 7], [3, 1, 2]])
    assert permutation(3, source).tolist() == [1, 2, 0]
    assert source.used_up


def test_orders_of_none_and_of_one_are_themselves() -> None:
    assert permutation(0, SeededSource(8)).tolist() == []
    assert permutation(1, SeededSource(9)).tolist() == [0]
