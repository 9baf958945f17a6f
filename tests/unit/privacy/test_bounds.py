"""Bounds and categories: what an owner may state about a column, and what is refused."""

import re
from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from tacit.privacy import Bounds, Categories
from tacit.privacy.bounds import CATEGORIES_MAX
from tacit.privacy.errors import EmptyInput, NotFinite, OutOfRange, TooLarge, WrongType

NOON = datetime(2024, 1, 1, 12)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (0, 120),
        (-0.5, 0.5),
        (Fraction(1, 3), 1),
        (7, 7),
        (date(2020, 1, 1), date(2024, 12, 31)),
        (NOON, NOON),
    ],
)
def test_two_numbers_dates_or_times_in_order_are_bounds(lower: object, upper: object) -> None:
    bounds = Bounds(lower, upper)  # type: ignore[arg-type]
    assert (bounds.lower, bounds.upper) == (lower, upper)


@pytest.mark.parametrize(
    ("lower", "upper", "read"),
    [
        ("2020-01-01", "2024-12-31", Bounds(date(2020, 1, 1), date(2024, 12, 31))),
        ("2024-01-01T12:00:00", NOON, Bounds(NOON, NOON)),
        ("2024-01-01 12:00:00Z", "2024-01-01T14:00+02:00", Bounds(NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC))),
    ],
)
def test_dates_and_times_may_be_written_in_iso_form(lower: str, upper: object, read: Bounds) -> None:
    assert Bounds(lower, upper) == read  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["2024", "2024-02-30", "20240101", "2024-W01-1", "12:00", "2024-01-01Tnoon", ""])
def test_a_text_that_is_no_date_in_iso_form_is_refused_and_shown(text: str) -> None:
    with pytest.raises(WrongType, match=re.escape(repr(text))):
        Bounds(text, "2024-12-31")


def test_a_lower_bound_above_the_upper_one_is_refused() -> None:
    with pytest.raises(OutOfRange, match="120 > 0") as refusal:
        Bounds(120, 0)
    assert refusal.value.value == (120, 0)


@pytest.mark.parametrize("unbounded", [float("nan"), float("inf"), float("-inf")])
def test_bounds_that_are_not_finite_are_refused(unbounded: float) -> None:
    with pytest.raises(NotFinite, match="bounds must be finite"):
        Bounds(0, unbounded)
    with pytest.raises(NotFinite, match="bounds must be finite"):
        Bounds(unbounded, 0)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (0, date(2024, 1, 1)),
        (date(2024, 1, 1), NOON),
        (NOON, NOON.replace(tzinfo=UTC)),
        ("0", "9"),
        (False, True),
        (None, 1),
    ],
)
def test_bounds_of_two_kinds_or_of_no_order_are_refused(lower: object, upper: object) -> None:
    with pytest.raises(WrongType):
        Bounds(lower, upper)  # type: ignore[arg-type]


def test_categories_keep_the_order_in_which_they_were_listed() -> None:
    assert Categories(iter(["M", "F", None])).values == ("M", "F", None)


def test_true_and_one_are_two_categories() -> None:
    assert Categories([True, 1]).values == (True, 1)


def test_a_category_that_stands_twice_is_refused() -> None:
    with pytest.raises(OutOfRange, match="duplicate category 'F'"):
        Categories(["F", "M", "F"])


def test_one_text_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(WrongType, match="not one text"):
        Categories("FM")


def test_no_categories_are_refused() -> None:
    with pytest.raises(EmptyInput):
        Categories([])


@pytest.mark.parametrize("value", [1.5, b"F", ("F",)])
def test_a_category_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(WrongType, match=type(value).__name__):
        Categories([value])  # type: ignore[list-item]


def test_more_categories_than_the_limit_are_refused() -> None:
    with pytest.raises(TooLarge, match="1,000,000"):
        Categories(range(CATEGORIES_MAX + 1))
