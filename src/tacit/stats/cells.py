"""A public partition of the bounds of a column into cells, and edges as values of the column's kind.

Integers and days of a short range have a cell each; other columns have equal parts of the bounds. The partition depends
on the bounds and the kind of the column alone. Positions are counted in cells from the lower end: position 2.5 is the
middle of the third cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import EmptyInput, OutOfRange, TooLarge, WrongKind, WrongType
from tacit.privacy.tables import Kind
from tacit.stats.rows import Cut

CELLS_MAX: Final = 10_000
DATES_MAX: Final = 2047
"""The greatest number of cells of dates and times: engines compare them with every edge."""

_DAY: Final = timedelta(days=1)
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Partition:
    """Equal cells from `lower` on; if `is_whole`, each is one integer or one day."""

    column: str
    kind: Kind
    lower: float | date
    width: float
    """The width of a cell; in days or microseconds for dates and times, whose edges are rounded to whole ones."""
    count: int
    is_whole: bool

    @classmethod
    def of(cls, column: str, kind: Kind, bounds: Bounds, most: int, *, even: bool = False) -> Partition:
        """Divide bounds into `most` cells at most; numbers into exactly `most` if `even`."""
        lower, upper = ends_of(column, kind, bounds)
        if kind is Kind.BOOLEAN:
            return cls(column, kind, 0.0, 1.0, 2, is_whole=True)
        span: Any = upper - lower  # type: ignore[operator]
        if kind in (Kind.DATE, Kind.TIME):
            unit, most = _DAY if kind is Kind.DATE else _TICK, min(most, DATES_MAX)
            held = span // unit + 1
            if held <= most:
                return cls(column, kind, lower, 1.0, held, is_whole=True)
            return cls(column, kind, lower, held / most, most, is_whole=False)
        is_short = kind is Kind.INTEGER and not even and span < most
        if is_short and float(lower).is_integer() and float(upper).is_integer():  # type: ignore[arg-type]
            return cls(column, kind, lower, 1.0, int(span) + 1, is_whole=True)
        made = cls(column, kind, lower, span / most, most, is_whole=False)
        if not span > 0 or not np.all(np.diff(made.numbers) > 0):
            raise OutOfRange("the bounds must leave a range between them", name="bounds", value=(lower, upper))
        return made

    @property
    def bounds(self) -> Bounds | None:
        """The bounds to which values are clamped; None for booleans."""
        return None if self.kind is Kind.BOOLEAN else Bounds(*self.span(0, self.count - 1))

    @property
    def edges(self) -> tuple[Any, ...]:
        """The edges of the cells, one more than there are cells."""
        if isinstance(self.lower, date):
            return tuple(self._time(round(place * self.width)) for place in range(self.count + 1))
        return tuple(self.numbers.tolist())

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The edges as numbers; those of dates and times are counted in cells."""
        if isinstance(self.lower, date):
            return np.arange(self.count + 1, dtype=np.float64)
        return np.asarray(self.lower + self.width * np.arange(self.count + 1), dtype=np.float64)

    @property
    def cut(self) -> Cut:
        """The cells as a partition of the column."""
        if self.kind is Kind.BOOLEAN:
            return Cut(self.column, (False, True))
        return Cut(self.column, edges=self.edges)

    def at(self, position: float) -> Any:
        """Return the value at a position: a number, a date or a time."""
        place = min(max(float(position), 0.0), float(self.count))
        if self.is_whole:
            place = min(math.floor(place), self.count - 1)
        if isinstance(self.lower, date):
            return self._time(min(math.floor(place * self.width), round(self.count * self.width) - 1))
        value = float(self.lower) + self.width * place
        return round(value) if self.kind is not Kind.REAL else value

    def _time(self, units: int) -> date:
        """Return the date or time `units` days or microseconds after the lower end, or the last one that exists."""
        assert isinstance(self.lower, date)
        unit, last = (_TICK, datetime.max) if isinstance(self.lower, datetime) else (_DAY, date.max)
        return self.lower + unit * min(units, (last - self.lower) // unit)

    def span(self, first: int, last: int) -> tuple[Any, Any]:
        """Return the least and the greatest value that the cells from `first` to `last` can hold."""
        return self.at(first), self.at(last if self.is_whole else last + 1)


def ends_of(column: str, kind: Kind, bounds: Bounds) -> tuple[float | date, float | date]:
    """Return bounds in the type that a column of a kind is compared with."""
    return edge_of(column, kind, bounds.lower), edge_of(column, kind, bounds.upper)


def edge_of(column: str, kind: Kind, edge: Any) -> float | date:
    """Return an edge or a bound in the type of a kind: a number, a date, or a time in UTC."""
    is_time = kind in (Kind.DATE, Kind.TIME)
    if kind is Kind.TEXT or is_time != isinstance(edge, date):
        raise WrongKind(f"{column} holds {kind} values, which cannot be compared with the edge {edge!r}")
    if not isinstance(edge, date):
        return float(edge)
    if kind is Kind.DATE:
        return edge.date() if isinstance(edge, datetime) else edge
    if not isinstance(edge, datetime):
        return datetime(edge.year, edge.month, edge.day)
    return edge if edge.tzinfo is None else edge.astimezone(UTC).replace(tzinfo=None)


def edges_of(column: str, kind: Kind, stated: object) -> tuple[Any, ...]:
    """Return stated edges of bins: numbers, dates or times that rise."""
    if isinstance(stated, str | Mapping) or not isinstance(stated, Sized) or not isinstance(stated, Iterable):
        raise WrongType("edges must be a list of rising numbers, dates or times", name="edges", value=stated)
    if isinstance(stated, np.ndarray) and stated.dtype.kind == "M":
        stated = stated.astype("datetime64[us]")
    listed = [one.item() if isinstance(one, np.generic) else one for one in stated]
    if len(listed) < 2:
        raise EmptyInput("edges must be at least two: a bin lies between two of them", name="edges")
    if len(listed) > CELLS_MAX + 1:
        raise TooLarge(f"edges must leave at most {CELLS_MAX:,} bins", name="edges")
    found = tuple(edge_of(column, kind, Bounds(one, one).lower) for one in listed)
    if any(one >= other for one, other in pairwise(found)):  # type: ignore[operator]
        raise OutOfRange("edges must rise from each to the next", name="edges")
    return found
