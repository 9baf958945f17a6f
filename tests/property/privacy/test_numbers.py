"""Numbers that decide privacy: exact, and rounded only in the stated direction."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy.errors import InvalidInput, NotFinite, NotPositive, OutOfRange, TooLarge, WrongType
from tacit.privacy.numbers import (
    MAGNITUDE_MAX,
    exact,
    inside_unit_interval,
    not_negative,
    positive,
    rounded_down,
    rounded_up,
    whole,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
reals = st.integers(-(2**999), 2**999) | finite | st.fractions()


@given(reals)
def test_a_number_is_taken_without_rounding(value: int | float | Fraction) -> None:
    assert exact("x", value) == Fraction(value)


@given(st.integers(-(2**63), 2**63 - 1), finite)
def test_numpy_scalars_are_taken_as_what_they_are(integer: int, number: float) -> None:
    assert exact("x", np.int64(integer)) == integer
    assert exact("x", np.float64(number)) == Fraction(number)


@given(st.fractions())
def test_rounding_up_and_down_brackets_the_number(number: Fraction) -> None:
    low, high = rounded_down(number), rounded_up(number)
    assert Fraction(low) <= number <= Fraction(high)
    assert low == high or math.nextafter(low, math.inf) == high


@given(finite)
def test_a_float_is_rounded_to_itself(number: float) -> None:
    assert rounded_up(Fraction(number)) == rounded_down(Fraction(number)) == number


@given(st.fractions(min_value=1, max_value=2), st.integers(1080, 2000))
def test_a_number_below_every_float_is_rounded_to_the_least_or_to_zero(number: Fraction, shift: int) -> None:
    tiny = number / 2**shift
    assert rounded_down(tiny) == 0
    assert rounded_up(tiny) == math.ulp(0)


def test_a_number_above_every_float_is_rounded_up_to_infinity_and_down_to_the_greatest_float() -> None:
    huge = Fraction(2**2000)
    assert (rounded_down(huge), rounded_up(huge)) == (sys.float_info.max, math.inf)
    assert (rounded_down(-huge), rounded_up(-huge)) == (-math.inf, -sys.float_info.max)


@given(reals)
def test_positive_takes_what_is_above_zero_and_nothing_else(value: int | float | Fraction) -> None:
    if value > 0:
        assert positive("x", value) == Fraction(value)
    else:
        with pytest.raises(NotPositive, match="x must be above 0"):
            positive("x", value)


@given(reals)
def test_not_negative_takes_zero_and_above(value: int | float | Fraction) -> None:
    if value >= 0:
        assert not_negative("x", value) == Fraction(value)
    else:
        with pytest.raises(OutOfRange, match="x must not be negative"):
            not_negative("x", value)


@given(reals)
def test_the_unit_interval_is_open(value: int | float | Fraction) -> None:
    if 0 < value < 1:
        assert inside_unit_interval("x", value) == Fraction(value)
    else:
        with pytest.raises(OutOfRange):
            inside_unit_interval("x", value)


@given(st.integers(-10, 10), st.integers(-10, 10))
def test_whole_takes_integers_from_the_least_allowed(value: int, least: int) -> None:
    if value >= least:
        assert whole("x", float(value), at_least=least) == value
    else:
        with pytest.raises(OutOfRange, match=f"at least {least}"):
            whole("x", value, at_least=least)


def test_whole_refuses_a_fraction() -> None:
    with pytest.raises(WrongType, match="whole number"):
        whole("x", 2.5)


@pytest.mark.parametrize("value", [True, "1", None, [1], b"1", 1j])
def test_what_is_no_number_is_refused_with_its_name(value: object) -> None:
    with pytest.raises(WrongType, match="epsilon must be a number") as refusal:
        exact("epsilon", value)
    assert refusal.value.name == "epsilon"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(NotFinite):
        exact("x", value)


@pytest.mark.parametrize("value", [MAGNITUDE_MAX, -MAGNITUDE_MAX, Fraction(MAGNITUDE_MAX * 3, 2)])
def test_an_integer_or_fraction_beyond_the_limit_is_refused(value: int | Fraction) -> None:
    with pytest.raises(TooLarge):
        exact("x", value)


@given(st.none() | st.booleans() | st.text() | st.binary() | st.floats() | st.integers() | st.lists(st.integers()))
def test_nothing_but_a_number_or_a_refusal_comes_back(value: object) -> None:
    try:
        number = exact("x", value)
    except InvalidInput:
        return
    assert isinstance(number, Fraction)
