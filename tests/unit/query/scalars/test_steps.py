"""Columns as they are read from rows that keep to nothing, and numbers counted in steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from tacit.privacy.errors import OutOfRange, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression
from tacit.query.scalars import grid_steps
from tests.unit.query.scalars.clinic import of

TYPES = {Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE", Kind.TEXT: "VARCHAR", Kind.DATE: "DATE", Kind.TIME: "TIMESTAMP"}


def values(expression: Expression | exp.Expression, name: str, kind: Kind, raw: list[str]) -> list[Any]:
    """Return what an expression gives for each value of one column."""
    tree = expression if isinstance(expression, exp.Expression) else expression.tree
    rows = ", ".join(f"({number}, CAST({value} AS {TYPES[kind]}))" for number, value in enumerate(raw))
    query = f"SELECT {tree.sql(dialect='duckdb')} FROM (VALUES {rows}) AS t(place, {name}) ORDER BY place"
    with duckdb.connect() as connection:
        return [row[0] for row in connection.sql(query).fetchall()]


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
        grid_steps(of(name), step, centre), name, Kind.INTEGER, ["NULL" if one is None else str(one) for one in raw]
    )
    assert counted.pop() is None
    least, most = round((0 - centre) / step), round((120 - centre) / step)
    for value, found in zip(raw, counted, strict=False):
        place = (min(max(value or 0, 0), 120) - centre) / step
        assert abs(found - place) <= Fraction(1, 2) or found in (least, most)
        assert least <= found <= most


def test_whole_steps_use_no_doubles() -> None:
    assert "DOUBLE" not in grid_steps(of("age"), Fraction(7), Fraction(3)).sql(dialect="duckdb")
    assert grid_steps(of("age"), Fraction(1), Fraction(0)).sql(dialect="duckdb") == of("age").text


def test_steps_of_reals_are_rounded_and_clamped() -> None:
    tree = grid_steps(of("kg"), Fraction(1, 10), Fraction(1, 2))
    assert values(tree, "kg", Kind.REAL, ["0.5", "0.56", "1e9", "-1e9", "'nan'", "NULL"]) == [0, 1, 2995, 0, None, None]


def test_steps_need_a_range_and_fit_in_64_bits() -> None:
    with pytest.raises(WrongKind, match="have bounds"):
        grid_steps(of("n"), Fraction(1), Fraction(0))
    with pytest.raises(OutOfRange, match="64 bits"):
        grid_steps(of("age"), Fraction(1, 2**62), Fraction(0))
