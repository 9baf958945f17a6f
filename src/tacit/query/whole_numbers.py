"""Whole numbers that neither overflow in an engine nor wrap in this process.

Engine: a row's number is a BIGINT. Sums, counts that are multiplied, and products of sums are HUGEINTs (127 bits;
`numeric` in PostgreSQL, DECIMAL(38, 0) in Spark, which holds 126). `require_exact` proves for every measure of a plan
that no intermediate passes that type, from public facts alone: the range of a row's number, the limit on rows, and
`ROWS_MAX` rows in all. What cannot be proven is refused at planning, so no error can depend on the data.

This process: measures are held as int64 and saturate at ±2^62, as in the engine. Saturation after each addition is a
clamp of the exact sum, and moves no two neighbours further apart. Post-processing that leaves 64 bits (a sum in units
of its column, a total) continues with Python's integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.moments import SATURATION
from tacit.privacy.errors import TooWide
from tacit.query.contribution import Bounding
from tacit.query.measures import How, Measure

ROW_MAX: Final = 2**62
"""The greatest number of one row, so that it is a BIGINT with a bit to spare."""

ROWS_MAX: Final = 2**56
"""How many rows a statement goes through at most; one a nanosecond would take two years."""

HUGE_MAX: Final = 2**125
"""The greatest intermediate, below the ends of HUGEINT (2^127) and of DECIMAL(38, 0) (10^38 > 2^126)."""

_HALF: Final = 31
_LOW: Final = 2**_HALF - 1


def require_exact(measures: Sequence[Measure], bounding: Bounding) -> None:
    """Raise TooWide unless no intermediate of a plan's statements can overflow.

    With |v| <= V for a row's number and |s| for its shift, the statements compute SUM(v), COUNT * s, their difference,
    that times the limit on rows, and sums over units of no more than the difference itself.
    """
    for measure in measures:
        if measure.how not in (How.SUM, How.MEAN):
            continue  # counts of at most 2^56 rows
        reach = max(abs(measure.low + measure.shift), abs(measure.high + measure.shift), 1)
        total = ROWS_MAX * (reach + abs(measure.shift))
        if reach > ROW_MAX or total * max(bounding.rows, 1) > HUGE_MAX:
            raise TooWide(
                f"{measure.label} cannot be added up exactly: its numbers are too large",
                accepted="declare narrower bounds, clamp it with LEAST and GREATEST, or count fewer rows a group",
            )


def group_sums(groups: int, at: NDArray[np.int64], values: Sequence[Any]) -> NDArray[np.int64]:
    """Return the saturated sum of the values of each group; `at` is the group of each, -1 for none."""
    kept = at >= 0
    numbers = np.asarray(values, dtype=np.int64)[kept]
    high, low = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    np.add.at(high, at[kept], numbers >> _HALF)
    np.add.at(low, at[kept], numbers & _LOW)
    return _combine_halves(high, low)


def axis_sums(values: NDArray[np.int64], axes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return saturated sums over some axes of an array."""
    clipped = np.clip(values, -SATURATION, SATURATION)
    return _combine_halves(np.asarray((clipped >> _HALF).sum(axis=axes)), np.asarray((clipped & _LOW).sum(axis=axes)))


def scale_exact(values: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return whole numbers times a factor; Python's integers where 64 bits may not hold them."""
    held = values if _fits(_size(values) * abs(factor)) else values.astype(object)
    return np.asarray(held * factor)


def add_exact(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of two arrays of whole numbers; Python's integers where 64 bits may not hold them."""
    if _fits(_size(one) + _size(other)):
        return np.asarray(one + other)
    return np.asarray(one.astype(object) + other.astype(object))


def _combine_halves(high: NDArray[np.int64], low: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return high * 2^31 + low, saturated; each was summed over fewer than 2^31 numbers, so neither has wrapped."""
    carried = high + (low >> _HALF)
    top = SATURATION >> _HALF
    rest = np.where((-top <= carried) & (carried < top), low & _LOW, 0)
    return np.asarray(np.clip(carried, -top, top) * (_LOW + 1) + rest)


def _size(values: NDArray[Any]) -> int:
    """Return the greatest absolute value."""
    return max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0)))) if values.size else 0


def _fits(size: int) -> bool:
    return size < 2**63
