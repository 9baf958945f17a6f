"""How far one unit moves a measure, by the two ways of bounding."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Limits
from tacit.privacy.units import Relation
from tacit.query import PlanSettings
from tacit.query.contribution import Bounding, root_up
from tacit.query.measures import How, Measure

COUNT = Measure(How.ROWS, "COUNT(*)")
UNITS = Measure(How.UNITS, "COUNT(DISTINCT unit)")
SUM = Measure(How.SUM, "SUM(x)", low=-3, high=10)


def test_a_limit_that_is_set_when_a_table_is_registered_is_refused_for_a_question() -> None:
    with pytest.raises(InvalidInput, match="when a table is registered"):
        PlanSettings(Limits(rows_per_unit=3))
    assert PlanSettings(Limits(groups_per_unit=3, rows_per_group=2)).limits.rows_per_unit is None


def test_parts_move_groups_times_contribution() -> None:
    bounding = Bounding(groups=4, rows=5)
    assert bounding.l1(COUNT) == 20
    assert bounding.l1(UNITS) == 4
    assert bounding.l1(SUM) == 4 * 5 * 10
    assert bounding.l2(COUNT) == 10


def test_groups_that_are_merged_into_one_add_up_in_the_euclidean_distance_too() -> None:
    """All groups of a unit may be merged into the one called other, so that its contributions meet there."""
    bounding = Bounding(groups=4, rows=5, merges_rest=True)
    assert bounding.l2(COUNT) == bounding.l1(COUNT) == 20


def test_whole_rows_move_their_number_wherever_they_are() -> None:
    bounding = Bounding(groups=7, rows=20, whole_rows=20, chooses_groups=False)
    assert bounding.l1(COUNT) == bounding.l2(COUNT) == 20
    assert bounding.l1(SUM) == 200
    assert bounding.l1(UNITS) == 7
    assert bounding.l2(UNITS) ** 2 >= 7


def test_different_values_of_whole_rows_may_be_new_in_every_group() -> None:
    values = Measure(How.VALUES, "COUNT(DISTINCT x)", most=2)
    assert Bounding(groups=5, rows=9, whole_rows=9).l1(values) == 9
    assert Bounding(groups=1, rows=9, whole_rows=9).l1(values) == 2
    assert Bounding(groups=5, rows=9).l1(values) == 5 * 2


def test_exchanging_a_unit_moves_twice_as_far() -> None:
    one, two = Bounding(3, 2), Bounding(3, 2, relation=Relation.REPLACE_ONE)
    assert two.l1(COUNT) == 2 * one.l1(COUNT)
    assert two.l2(COUNT) == 2 * one.l2(COUNT)
    assert two.groups_changed == 2 * one.groups_changed


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 10, 99, 10**6 + 1])
def test_roots_are_never_below_the_true_one(number: int) -> None:
    root = root_up(number)
    assert root**2 >= number
    assert (root - Fraction(1, 2**39)) ** 2 < number or number == 0
