"""Exponentials enclosed by integers, held against mpmath at a higher precision."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms.exact_sampling import Enclosure, exp_negative


@given(
    exponent=st.fractions(min_value=0, max_value=400, max_denominator=10**9),
    bits=st.integers(min_value=8, max_value=700),
)
def test_the_exponential_lies_between_the_two_integers_and_they_are_close(exponent: Fraction, bits: int) -> None:
    with mpmath.workprec(bits + 200):
        truth = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** bits
        enclosure = exp_negative(exponent, bits)
        assert enclosure.low <= truth <= enclosure.high
    assert enclosure.high - enclosure.low <= 3


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 10**30), Fraction(10**6), Fraction(10**40)])
def test_extreme_exponents_are_enclosed_within_zero_and_one(exponent: Fraction) -> None:
    enclosure = exp_negative(exponent, 128)
    assert 0 <= enclosure.low <= enclosure.high <= 2**128
    assert enclosure.high - enclosure.low <= 3


def test_a_product_of_enclosures_encloses_the_product() -> None:
    product = Enclosure(3, 5).times(Enclosure(7, 9), 2)
    assert product == Enclosure(3 * 7 // 4, -(-5 * 9 // 4))
