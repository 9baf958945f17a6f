"""Amounts: exact, rounded against the spender, and read back only as they were written."""

import math
from fractions import Fraction

import pytest

from tacit.ledger.amounts import (
    UNIT_BITS,
    Amounts,
    add_amounts,
    amounts_from_json,
    amounts_to_json,
    ceil_float,
    ceil_square_units,
    ceil_units,
    covers,
    floor_float,
    floor_units,
    is_within,
    multiply_amounts,
    subtract_amounts,
)
from tacit.privacy.errors import LedgerCorrupt

UNIT = Fraction(1, 2**UNIT_BITS)


@pytest.mark.parametrize("number", [0.0, 0.1, 1.0, 1 / 3, 2.0**-119, 5e-324, 1e-30, 12345.678])
def test_a_cost_is_rounded_up_by_less_than_one_unit(number: float) -> None:
    units = ceil_units(number)
    assert units is not None
    assert 0 <= units * UNIT - Fraction(number) < UNIT


@pytest.mark.parametrize("number", [0.0, 0.1, 1.0, 1 / 3, 2.0**-119, 12345.678])
def test_a_cap_is_rounded_down_by_less_than_one_unit(number: float) -> None:
    assert 0 <= Fraction(number) - floor_units(Fraction(number)) * UNIT < UNIT


def test_a_cap_that_is_no_whole_number_of_units_is_rounded_down() -> None:
    assert floor_units(Fraction(1, 3)) == 2**UNIT_BITS // 3
    assert floor_units(UNIT * Fraction(9, 10)) == 0


@pytest.mark.parametrize("number", [0.0, 0.1, 1 / 3, 1e-20, 41.5])
def test_a_square_is_exact_before_it_is_rounded_up(number: float) -> None:
    units = ceil_square_units(number)
    assert units is not None
    assert 0 <= units * UNIT - Fraction(number) ** 2 < UNIT


@pytest.mark.parametrize("number", [math.inf, 2.0**65, math.nan, -1e-16, -5e-324, -80.0, -math.inf])
def test_what_has_no_bound_or_is_no_cost_is_not_a_number_of_units(number: float) -> None:
    assert ceil_units(number) is None
    assert ceil_square_units(number) is None


def test_a_zero_has_no_sign() -> None:
    assert ceil_units(-0.0) == ceil_square_units(-0.0) == 0


def test_floats_enclose_the_units_that_they_stand_for() -> None:
    units = 2**UNIT_BITS // 3
    assert Fraction(floor_float(units)) < units * UNIT < Fraction(ceil_float(units))
    assert math.nextafter(floor_float(units), math.inf) == ceil_float(units)


def test_nothing_left_is_written_as_plain_zero() -> None:
    assert math.copysign(1, floor_float(0)) == 1


def test_infinity_stays_in_every_sum_and_is_never_returned() -> None:
    assert add_amounts(((1, 2), None), ((3, 4), (5,))) == ((4, 6), None)
    assert subtract_amounts(((4, 6), None), ((3, 4), (5,))) == ((1, 2), None)
    assert multiply_amounts(((1, 2), None), 3) == ((3, 6), None)
    assert not is_within(None, (1,))


@pytest.mark.parametrize(
    ("one", "other", "is_covered"),
    [
        (((4, 6), (1,)), ((4, 6), (1,)), True),
        (((4, 6), None), ((3, 0), (9,)), True),
        ((None,), (None,), True),
        (((4, 6),), ((4, 7),), False),
        (((4, 6),), ((5, 6),), False),
        (((4, 6),), (None,), False),
        (((4, 6),), ((4,),), False),
        (((4, 6),), ((4, 6), (0,)), False),
    ],
)
def test_amounts_are_covered_by_those_from_which_they_can_be_taken(
    one: Amounts, other: Amounts, is_covered: bool
) -> None:
    assert covers(one, other) is is_covered


def test_amounts_are_read_back_as_they_were_written() -> None:
    amounts = ((2**130 + 1, 0), None, (7,))
    assert amounts_from_json(amounts_to_json(amounts)) == amounts


@pytest.mark.parametrize(
    "record",
    [
        None,
        3,
        "1",
        [["1", 2]],
        [["-1"]],
        [["01"]],
        [["1.0"]],
        [[" 1"]],
        [["٣"]],
        [["1" * 5000]],
        ["1"],
        [[""]],
        [[None]],
    ],
)
def test_what_the_ledger_did_not_write_is_damage(record: object) -> None:
    with pytest.raises(LedgerCorrupt, match="not an amount"):
        amounts_from_json(record)
