"""Numbers that decide privacy: exact, and rounded only in the stated direction."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms import Laplace
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


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**300), max_value=10**300, places=40))
def test_a_decimal_is_taken_as_the_fraction_that_it_is(value: Decimal) -> None:
    """The double nearest to a decimal may lie below it, and a sensitivity that is too small protects too little."""
    assert exact("x", value) == Fraction(value)
    assert Laplace(Decimal("0.3"), 1).sensitivity == Fraction(3, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [1 + 2j, np.complex128(1), np.array(1j), np.str_("3"), np.bool_(True), np.ma.masked], ids=repr
)
def test_what_a_float_would_be_made_of_by_leaving_something_out_is_refused(value: Any) -> None:
    with pytest.raises(WrongType):
        exact("x", value)


def test_arrays_and_tensors_of_one_number_are_taken_without_rounding() -> None:
    assert exact("x", np.array(2**60 + 1)) == 2**60 + 1
    assert exact("x", np.float32(0.1)) == Fraction(float(np.float32(0.1)))
    wide = np.longdouble(1) + np.finfo(np.longdouble).eps
    assert exact("x", wide) == 1 + Fraction(*np.finfo(np.longdouble).eps.as_integer_ratio())


@pytest.mark.parametrize(
    "value",
    [
        *(Decimal("1e401"), Decimal("1e-999999999"), Decimal("1e999999999"), Decimal(10**500)),
        *(MAGNITUDE_MAX, -MAGNITUDE_MAX, Fraction(MAGNITUDE_MAX * 3, 2)),
    ],
    ids=lambda value: f"{value!s:.20}",
)
def test_a_number_that_is_too_long_as_a_fraction_is_refused_at_once(value: Decimal | int | Fraction) -> None:
    with pytest.raises(TooLarge):
        exact("x", value)


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, np.float64("nan")),
        *(Decimal("NaN"), Decimal("-Infinity"), np.float32("inf"), np.longdouble("nan")),
    ],
    ids=repr,
)
def test_numbers_of_any_type_that_are_not_finite_are_refused(value: Any) -> None:
    with pytest.raises(NotFinite):
        exact("x", value)


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


@given(st.none() | st.booleans() | st.text() | st.binary() | st.floats() | st.integers() | st.lists(st.integers()))
def test_nothing_but_a_number_or_a_refusal_comes_back(value: object) -> None:
    try:
        number = exact("x", value)
    except InvalidInput:
        return
    assert isinstance(number, Fraction)
