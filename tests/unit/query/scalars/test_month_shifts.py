"""Shifts by months keep their values within the claimed range, also where several days come to the last of a month."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import combinations_with_replacement

import duckdb
import pytest

from tacit.privacy.tables import Column, Kind, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import ask
from tacit.query.expressions import position
from tacit.query.scalars import dates
from tacit.query.scalars.dates import months_later

TABLE = Table("v", (Column("uid", Kind.INTEGER), Column("t", Kind.TIME)), Unit("uid"))
DAYS = [
    datetime(2021, 1, 28),
    datetime(2021, 1, 30),
    datetime(2021, 1, 31),
    datetime(2020, 2, 28),
    datetime(2020, 2, 29),
]
MOMENTS = sorted(
    day + more
    for day in [*DAYS, datetime(2021, 2, 1), datetime(2021, 3, 31)]
    for more in (timedelta(0), timedelta(hours=12), timedelta(days=1, microseconds=-1))
)
SHIFTS = {"'1' MONTH": 1, "'1' YEAR": 12, "'1' QUARTER": 3}


def _claimed(lower: datetime, upper: datetime, shift: str, sign: str) -> dates.Range | None:
    held = f"LEAST(GREATEST(t, TIMESTAMP '{lower}'), TIMESTAMP '{upper}')"
    question = ask(f"SELECT MAX({held} {sign} INTERVAL {shift}) FROM v", Schema([TABLE]))
    return question.aggregates[0].arguments[0].range


@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_shifted_times_lie_within_their_claimed_range(shift: str, sign: str) -> None:
    months = SHIFTS[shift] * (1 if sign == "+" else -1)
    for lower, upper in combinations_with_replacement(MOMENTS, 2):
        if lower == upper:
            continue
        claimed = _claimed(lower, upper, shift, sign)
        assert claimed is not None
        inside = [one for one in MOMENTS if lower <= one <= upper]
        for moment in inside:
            moved = months_later(moment, months)
            assert moved is not None
            assert claimed.lower <= position(moved) <= claimed.upper, (lower, upper, moment, moved)


def test_ends_that_are_shifted_by_themselves_are_noticed() -> None:
    lower, upper, inside = datetime(2021, 1, 30, 23, 59), datetime(2021, 1, 31, 23, 59), datetime(2021, 1, 31)
    ends = [months_later(one, 1) for one in (lower, upper, inside)]
    assert ends[2] < ends[0] == ends[1]  # type: ignore[operator]
    claimed = _claimed(lower, upper, "'1' MONTH", "+")
    assert claimed is not None
    assert claimed.lower <= position(datetime(2021, 2, 28)) < position(datetime(2021, 2, 28, 23, 59)) <= claimed.upper


@pytest.mark.parametrize("months", [1, -1, 3, 12, -12])
def test_the_engine_shifts_as_the_ranges_are_computed(months: int) -> None:
    with duckdb.connect() as connection:
        for moment in MOMENTS:
            found = connection.execute(f"SELECT TIMESTAMP '{moment}' + INTERVAL ({months}) MONTH").fetchall()
            assert found == [(months_later(moment, months),)]
