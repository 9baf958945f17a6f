"""Columns as they are read from rows that keep to nothing, and numbers counted in steps."""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import OutOfRange, WrongKind
from tacit.privacy.tables import Column, Kind
from tacit.query.expressions import Expression, Range
from tacit.query.scalars import read, steps
from tests.unit.query.scalars.clinic import of

TYPES = {Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE", Kind.TEXT: "VARCHAR", Kind.DATE: "DATE", Kind.TIME: "TIMESTAMP"}


def values(expression: Expression | exp.Expression, name: str, kind: Kind, raw: list[str]) -> list[Any]:
    """Return what an expression gives for each value of one column."""
    tree = expression if isinstance(expression, exp.Expression) else expression.tree
    rows = ", ".join(f"({number}, CAST({value} AS {TYPES[kind]}))" for number, value in enumerate(raw))
    query = f"SELECT {tree.sql(dialect='duckdb')} FROM (VALUES {rows}) AS t(place, {name}) ORDER BY place"
    return [row[0] for row in duckdb.sql(query).fetchall()]


def test_values_beyond_the_bounds_are_moved_to_them() -> None:
    integers = read(Column("v", Kind.INTEGER, Bounds(0.5, 7)), exp.column("v"))
    assert values(integers, "v", Kind.INTEGER, ["-9", "0", "3", "8", "NULL"]) == [1, 1, 3, 7, None]
    assert integers.range == Range.of(1, 7)
    days = read(Column("v", Kind.DATE, Bounds(date(2020, 1, 1), date(2020, 1, 9))), exp.column("v"))
    raw = ["'infinity'", "'0001-01-01 (BC)'", "'2020-01-05'", "NULL"]
    assert values(days, "v", Kind.DATE, raw) == [date(2020, 1, 9), date(2020, 1, 1), date(2020, 1, 5), None]


def test_reals_are_clamped_with_nan_as_null() -> None:
    reals = read(Column("v", Kind.REAL, Bounds(0, 7)), exp.column("v"))
    assert values(reals, "v", Kind.REAL, ["'nan'", "'inf'", "'-inf'", "3.5", "NULL"]) == [None, 7, 0, 3.5, None]
    assert reals.nullable
    free = read(Column("v", Kind.REAL, nullable=False), exp.column("v"))
    assert values(free, "v", Kind.REAL, ["'nan'", "'inf'", "1"]) == [None, math.inf, 1]
    assert free.nullable


def test_bounds_that_no_double_meets_are_kept_from_inside() -> None:
    reals = read(Column("v", Kind.REAL, Bounds(Fraction(1, 3), Fraction(2, 3))), exp.column("v"))
    assert reals.range is not None
    assert Fraction(1, 3) <= reals.range.lower < reals.range.upper <= Fraction(2, 3)


def test_dates_and_times_lie_within_the_years_that_people_write() -> None:
    days = read(Column("v", Kind.DATE), exp.column("v"))
    assert values(days, "v", Kind.DATE, ["'5881580-07-10'", "'-infinity'"]) == [date(9999, 12, 31), date(1, 1, 1)]
    times = read(Column("v", Kind.TIME), exp.column("v"))
    assert values(times, "v", Kind.TIME, ["'infinity'"]) == [datetime.max]
    assert days.range is None


def test_days_as_bounds_of_times_last_until_midnight() -> None:
    times = read(Column("v", Kind.TIME, Bounds(date(2020, 1, 1), date(2020, 1, 2))), exp.column("v"))
    assert times.range == Range.of(datetime(2020, 1, 1), datetime(2020, 1, 2, 23, 59, 59, 999_999))


def test_what_is_no_category_is_null() -> None:
    listed = read(Column("v", Kind.TEXT, Categories(["b", "a", None])), exp.column("v"))
    assert values(listed, "v", Kind.TEXT, ["'a'", "'A'", "''", "NULL", "'b'"]) == ["a", None, None, None, "b"]
    assert listed.domain == ("b", "a")
    assert listed.nullable


@pytest.mark.parametrize(
    "column",
    [
        Column("v", Kind.INTEGER, Categories(["a"])),
        Column("v", Kind.TEXT, Categories([1])),
        Column("v", Kind.INTEGER, Categories([True])),
        Column("v", Kind.DATE, Categories([datetime(2020, 1, 1)])),
        Column("v", Kind.INTEGER, Bounds(date(2020, 1, 1), date(2020, 1, 2))),
        Column("v", Kind.DATE, Bounds(0, 1)),
    ],
)
def test_facts_of_another_kind_are_refused(column: Column) -> None:
    with pytest.raises(WrongKind, match="and its"):
        read(column, exp.column("v"))


STEPS = [
    ("age", Fraction(1), Fraction(0)),
    ("age", Fraction(1), Fraction(60)),
    ("age", Fraction(7), Fraction(3)),
    ("age", Fraction(4), Fraction(2)),
    ("age", Fraction(1, 3), Fraction(1, 7)),
    ("age", Fraction(10**6), Fraction(0)),
]


@pytest.mark.parametrize(("name", "step", "centre"), STEPS)
def test_whole_numbers_are_counted_to_the_nearest_step(name: str, step: Fraction, centre: Fraction) -> None:
    raw = [*range(-5, 130), None]
    counted = values(
        steps(of(name), step, centre), name, Kind.INTEGER, ["NULL" if one is None else str(one) for one in raw]
    )
    assert counted.pop() is None
    least, most = round((0 - centre) / step), round((120 - centre) / step)
    for value, found in zip(raw, counted, strict=False):
        place = (min(max(value or 0, 0), 120) - centre) / step
        assert abs(found - place) <= Fraction(1, 2) or found in (least, most)
        assert least <= found <= most


def test_whole_steps_use_no_doubles() -> None:
    assert "DOUBLE" not in steps(of("age"), Fraction(7), Fraction(3)).sql(dialect="duckdb")
    assert steps(of("age"), Fraction(1), Fraction(0)).sql(dialect="duckdb") == of("age").text


def test_steps_of_reals_are_rounded_and_clamped() -> None:
    tree = steps(of("kg"), Fraction(1, 10), Fraction(1, 2))
    assert values(tree, "kg", Kind.REAL, ["0.5", "0.56", "1e9", "-1e9", "'nan'", "NULL"]) == [0, 1, 2995, 0, None, None]


def test_steps_need_a_range_and_fit_in_64_bits() -> None:
    with pytest.raises(WrongKind, match="have bounds"):
        steps(of("n"), Fraction(1), Fraction(0))
    with pytest.raises(OutOfRange, match="64 bits"):
        steps(of("age"), Fraction(1, 2**62), Fraction(0))
