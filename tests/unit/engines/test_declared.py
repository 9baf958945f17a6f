"""What an engine shows of a column's values: the ends that its bounds stand for."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import pytest

from tacit.engines.relations import Endpoint, value_range
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind


@pytest.mark.parametrize(
    ("kind", "bounds", "expected"),
    [
        (Kind.INTEGER, Bounds(0.5, 7), (1, 7)),
        (Kind.INTEGER, Bounds(-(10**30), 10**30), (1 - 2**63, 2**63 - 1)),
        (Kind.DATE, Bounds("2020-01-01", "2020-01-09"), (date(2020, 1, 1), date(2020, 1, 9))),
        (
            Kind.TIME,
            Bounds("2020-01-01", "2020-01-02"),
            (datetime(2020, 1, 1), datetime(2020, 1, 2, 23, 59, 59, 999_999)),
        ),
    ],
)
def test_bounds_are_values_of_the_kind_and_a_last_day_lasts_until_midnight(
    kind: Kind, bounds: Bounds, expected: tuple[Endpoint, Endpoint]
) -> None:
    assert value_range(Column("v", kind, bounds)) == expected


def test_bounds_that_no_double_meets_are_kept_from_inside() -> None:
    found = value_range(Column("v", Kind.REAL, Bounds(Fraction(1, 3), Fraction(2, 3))))
    assert found is not None
    low, high = found
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert Fraction(1, 3) <= Fraction(low) < Fraction(high) <= Fraction(2, 3)


def test_dates_without_bounds_lie_within_the_years_that_people_write() -> None:
    assert value_range(Column("v", Kind.DATE)) == (date.min, date.max)
    assert value_range(Column("v", Kind.TEXT, Categories(["a"]))) is None
