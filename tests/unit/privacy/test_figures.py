"""Figures for people: few digits, and never a claim that the number does not hold."""

import math

import pytest

from tacit.privacy.figures import at_least, at_most, exactly


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        (0.0, "0", "0"),
        (1.0, "1", "1"),
        (0.1, "0.1", "0.1"),
        (1e-5, "1e-5", "1e-5"),
        (1.8282527934754849, "1.8282", "1.8283"),
        (1.0000000000000009, "1", "1.0001"),
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
