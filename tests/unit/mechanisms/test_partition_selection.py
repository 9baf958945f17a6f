"""The selection of groups: its promise read off the law itself, with sixty digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from random import Random

import numpy as np
import pytest

from tacit.mechanisms import KeySelection
from tacit.privacy import Relation
from tacit.privacy.errors import InvalidInput, TooLarge
from tacit.privacy.events import Approximate, Repeated
from tests.statistical.exact_laws import require_approximate

EPSILONS = [0.001, 0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 10.0, 30.0]
DELTAS = [1e-15, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9]


def mass(epsilon: float, reach: int, place: int) -> Decimal:
    """Return P(noise = place) of two-sided geometric noise that is cut off beyond a reach."""
    ratio = (-Decimal(epsilon)).exp()
    total = 1 + 2 * (ratio - ratio ** (reach + 1)) / (1 - ratio)
    return ratio ** abs(place) / total


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_outermost_noise_has_no_more_than_delta_and_the_next_nearer_one_would_have(
    epsilon: float, delta: float
) -> None:
    with localcontext() as context:
        context.prec = 60
        reach = KeySelection(epsilon, delta).reach
        assert reach >= 1
        assert mass(epsilon, reach, reach) <= Decimal(delta)
        assert mass(epsilon, reach - 1, reach - 1) > Decimal(delta)


@pytest.mark.parametrize("exponent", range(-15, 1))
def test_the_outermost_noise_has_no_more_than_delta_also_where_delta_is_barely_what_a_reach_has(exponent: int) -> None:
    """Both sides are nearly equal here: doubles cannot tell them apart, and sixty digits can."""
    random = Random(exponent)
    with localcontext() as context:
        context.prec = 60
        for _ in range(40):
            epsilon = 10 ** (exponent - random.random())
            place = random.randrange(1, 10 ** random.randrange(1, 6))
            delta = float(mass(epsilon, place, place)) * (1 - random.choice([0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4]))
            if delta < 1e-200:
                continue
            reach = KeySelection(epsilon, delta).reach
            assert mass(epsilon, reach, reach) <= Decimal(delta) < mass(epsilon, reach - 1, reach - 1)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 0.01), (1e-9, 0.5), (1e-15, 1e-12), (1e-12, 1e-15)])
def test_small_costs_are_drawn_and_their_chances_worked_out_at_once(epsilon: float, delta: float) -> None:
    selection = KeySelection(epsilon, delta)
    certain = 2 * selection.reach + 1
    assert selection.release([0, certain, certain + 1]).tolist() == [False, True, True]
    assert 0 < selection.chance(1) <= delta
    assert selection.chance(selection.reach) + selection.chance(selection.reach + 1) == pytest.approx(1)
    assert selection.chance(certain) == 1.0
    low, high = selection.interval(0.9)
    assert selection.chance(low) <= 0.1 < selection.chance(low + 1)
    assert selection.chance(high - 1) < 0.9 <= selection.chance(high)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-300, 1e-300), (2.0**-52, 1e-18), (1e-30, 1e-25)])
def test_noise_that_is_too_wide_to_draw_is_refused_before_any_data_is_seen(epsilon: float, delta: float) -> None:
    with pytest.raises(TooLarge, match="greater epsilon or delta"):
        KeySelection(epsilon, delta)


def test_chances_are_those_of_the_masses_summed_one_by_one() -> None:
    for epsilon, delta in ((0.5, 1e-4), (3.0, 0.2), (1e-6, 0.01)):
        selection = KeySelection(epsilon, delta)
        reach = selection.reach
        weights = np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
        for count in range(2 * reach + 3):
            shown = weights[max(0, 2 * reach + 1 - count) :].sum() if count else 0.0
            assert selection.chance(count) == pytest.approx(shown / weights.sum(), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3, 0.1, 0.5])
def test_one_unit_more_changes_what_is_shown_by_no_more_than_promised(epsilon: float, delta: float) -> None:
    selection = KeySelection(epsilon, delta)
    for count in range(2 * selection.reach + 3):
        laws = [np.array([chance, 1 - chance]) for chance in map(selection.chance, (count, count + 1))]
        require_approximate(laws[0], laws[1], epsilon, delta)


def test_a_group_of_one_is_shown_with_probability_delta_at_most_and_nearly_so() -> None:
    for delta in (1e-9, 1e-6, 1e-4):
        assert KeySelection(1.0, delta).chance(1) <= delta
        assert KeySelection(0.01, delta).chance(1) > 0.98 * delta


def test_a_group_without_units_is_never_shown_and_a_large_one_always() -> None:
    selection = KeySelection(0.5, 0.3)
    assert selection.chance(0) == 0.0
    assert not selection.release(np.zeros(10_000, dtype=np.int64)).any()
    assert selection.chance(2 * selection.reach + 1) == 1.0
    assert selection.release(np.full(10_000, 2 * selection.reach + 1)).all()
    assert selection.release([2**62, 0]).tolist() == [True, False]


def test_chances_grow_with_the_number_of_units() -> None:
    selection = KeySelection(0.7, 1e-4)
    chances = [selection.chance(count) for count in range(2 * selection.reach + 3)]
    assert chances == sorted(chances)


@pytest.mark.parametrize("counts", [[1.5], [-1], [[1, 2]], "many", [None], [float("nan")]])
def test_what_is_no_list_of_counts_is_refused(counts: object) -> None:
    with pytest.raises(InvalidInput):
        KeySelection(1.0, 1e-6).release(counts)


def test_no_groups_are_shown_as_none() -> None:
    for none in ([], np.zeros(0), np.zeros(0, dtype=np.int64)):
        shown = KeySelection(1.0, 1e-6).release(none)
        assert (shown.dtype, shown.shape) == (np.bool_, (0,))


@pytest.mark.parametrize("relation", list(Relation))
def test_a_replaced_unit_is_charged_for_both_groups(relation: Relation) -> None:
    one = Approximate(0.5, 1e-6, under=relation)
    event = KeySelection(0.5, 1e-6, relation=relation).event
    assert event == (one if relation is Relation.ADD_REMOVE else Repeated(one, 2))


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (-1, 0.1), (1, 0), (1, 1), (1, -0.1), (float("nan"), 0.1)])
def test_a_promise_that_is_none_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidInput):
        KeySelection(epsilon, delta)
