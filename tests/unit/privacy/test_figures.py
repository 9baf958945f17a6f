"""Figures for people: few digits, and never a claim that the number does not hold."""

import math

import pytest

from tacit.privacy.figures import at_least, at_most, exactly, grouped, in_one_cell, nearby_decimal, strictly_at_most


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        (0.0, "0", "0"),
        (1.0, "1", "1"),
        (0.1, "0.1", "0.1"),
        (1e-5, "1e-5", "1e-5"),
        (1.8282527934754849, "1.8282", "1.8283"),
        (1.00000000001, "1", "1.0001"),
        (0.9999999999, "0.99999", "1"),
        (123456.7, "123450", "123460"),
        (12345678.9, "1.2345e7", "1.2346e7"),
        (0.00012345678, "0.00012345", "0.00012346"),
        (1.2345678e-7, "1.2345e-7", "1.2346e-7"),
        (9.999999e-9, "9.9999e-9", "1e-8"),
        (5e-324, "5e-324", "5e-324"),
        (math.inf, "∞", "∞"),
    ],
)
def test_a_figure_is_rounded_to_the_side_that_claims_less(number: float, low: str, high: str) -> None:
    assert (at_least(number), at_most(number)) == (low, high)


def test_what_a_double_exceeds_a_decimal_by_is_not_rounded_up() -> None:
    total = 0.5 + 0.5 + 0.1 + 0.1
    assert total > 1.2
    assert (at_most(total), at_most(total, 4), nearby_decimal(total)) == ("1.2", "1.2", 1.2)
    assert (at_most(1.2 * (1 + 2**-39)), nearby_decimal(1.2 * (1 + 2**-39))) == ("1.2001", 1.2 * (1 + 2**-39))
    assert strictly_at_most(total) == "1.2001"
    assert nearby_decimal(0.12345678901) == 0.12345678901


def test_fewer_digits_can_be_asked_for() -> None:
    assert (at_least(1.2345, 2), at_most(1.2345, 2)) == ("1.2", "1.3")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.1, "0.1"), (2.0, "2"), (1e-7, "1e-7"), (1e22, "1e22"), (1.0000000000000009, "1.0000000000000009"), (0.0, "0")],
)
def test_an_exact_figure_has_the_fewest_digits_that_name_the_number(number: float, text: str) -> None:
    assert exactly(number) == text
    assert float(text) == number


def test_what_is_not_a_number_is_called_so() -> None:
    assert exactly(math.nan) == "not a number"
    assert exactly(-math.inf) == "-∞"


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (19_968, 18_770.0, 21_166.0, "19,968 ± 1,198"),
        (26_037_867, 14_000_000, 38_075_734, "26,037,867 ± 12,037,867"),
        (26_037_867.4, 14_000_000.1, 38_075_734.7, "26,037,867 ± 12,037,867"),
        (0.125, 0.1, 0.15, "0.125 ± 0.025"),
        (100, 90, 110, "100 ± 10"),
        (100.9, 90.0, 110.0, "101 (90 to 110)"),
        (34.3, 17.0, 45.4, "34 (17 to 45)"),
        (2, 0, 16, "2 (0 to 16)"),
        (1.0, 0.0, 1.0, "1.00 (0.00 to 1.00)"),
        (5, 5, 5, "5 (5 to 5)"),
        (1e20, -math.inf, math.inf, "1e+20 (-inf to inf)"),
        (None, 0.0, 9.5, "None (0 to 9.5)"),
    ],
)
def test_a_noisy_number_has_its_half_width_or_its_ends_without_an_exponent(
    value: float | None, low: float, high: float, shown: str
) -> None:
    assert in_one_cell(value, low, high) == shown


@pytest.mark.parametrize(
    ("number", "digits", "shown"),
    [
        (12_345_678, 4, "12,345,678"),
        (12_345_678.9, 6, "12,345,679"),
        (12345.6, 4, "12,346"),
        (0.000123456, 4, "0.0001235"),
    ],
)
def test_digits_before_the_point_are_all_shown(number: float, digits: int, shown: str) -> None:
    assert grouped(number, digits) == shown
