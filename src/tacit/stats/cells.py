"""Cells of a column: a public partition of its bounds, and quantiles from noisy counts in it.

Whole numbers and days of a short range have a cell each; anything else has equal parts of the bounds. The ruler is
chosen from the bounds and the kind of the column alone. Positions on it are counted in cells from its lower end:
position 2.5 is the middle of the third cell.

From noisy counts below the edges of cells to quantiles, and to the cells in which a quantile can lie.

All of this is computed from what was released. An interval is what a test accepts: at the left edge of the cell that
holds the quantile at most a share q of the rows lies below, at its right edge at least that share, and cells at whose
edges the noisy counts contradict this by more than the noise explains are left out. So the cell of the quantile is left
out with probability 1 - level at most, wherever it lies.
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
"""How many cells dates and times have at most: engines compare them with every edge."""

_DAY: Final = timedelta(days=1)
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Partition:
    """Equal cells from `lower` on; if `is_whole`, each is one whole number or one day."""

    column: str
    kind: Kind
    lower: float | date
    width: float
    """How wide a cell is; in days or microseconds for dates and times, whose edges are rounded to whole ones."""
    count: int
    is_whole: bool

    @classmethod
    def of(cls, column: str, kind: Kind, bounds: Bounds, most: int, *, even: bool = False) -> Partition:
        """Cut bounds into `most` cells at most; numbers into exactly so many if `even`."""
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
        """Return the day or the time so many days or microseconds after the lower end, or the last one there is."""
        assert isinstance(self.lower, date)
        unit, last = (_TICK, datetime.max) if isinstance(self.lower, datetime) else (_DAY, date.max)
        return self.lower + unit * min(units, (last - self.lower) // unit)

    def span(self, first: int, last: int) -> tuple[Any, Any]:
        """Return the least and the greatest value that the cells from `first` to `last` can hold."""
        return self.at(first), self.at(last if self.is_whole else last + 1)


def ends_of(column: str, kind: Kind, bounds: Bounds) -> tuple[float | date, float | date]:
    """Return bounds as what a column of a kind is compared with."""
    return edge_of(column, kind, bounds.lower), edge_of(column, kind, bounds.upper)


def edge_of(column: str, kind: Kind, edge: Any) -> float | date:
    """Return an edge or a bound as what a column of a kind is compared with: a number, a day, or a time in UTC."""
    is_time = kind in (Kind.DATE, Kind.TIME)
    if kind is Kind.TEXT or is_time != isinstance(edge, date):
        raise WrongKind(f"{column} holds {kind} values, which do not lie between {edge!r} and anything else")
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
        raise WrongType("edges are a list of rising numbers, dates or times", name="edges", value=stated)
    if isinstance(stated, np.ndarray) and stated.dtype.kind == "M":
        stated = stated.astype("datetime64[us]")
    listed = [one.item() if isinstance(one, np.generic) else one for one in stated]
    if len(listed) < 2:
        raise EmptyInput("a bin lies between two edges; list at least two", name="edges")
    if len(listed) > CELLS_MAX + 1:
        raise TooLarge(f"there are at most {CELLS_MAX:,} bins", name="edges")
    found = tuple(edge_of(column, kind, Bounds(one, one).lower) for one in listed)
    if any(one >= other for one, other in pairwise(found)):  # type: ignore[operator]
        raise OutOfRange("edges rise from one to the next", name="edges")
    return found


Numbers = NDArray[np.float64]


def rising(values: Numbers) -> Numbers:
    """Return the rising sequence nearest to values by least squares: neighbours that fall are pooled to their mean."""
    means: list[float] = []
    counts: list[int] = []
    for value in values.tolist():
        mean, count = value, 1
        while means and means[-1] > mean:
            other, size = means.pop(), counts.pop()
            mean, count = (mean * count + other * size) / (count + size), count + size
        means.append(mean)
        counts.append(count)
    return np.repeat(means, counts)


def crossing(below: Numbers, share: float) -> float:
    """Return the position, in cells, at which a share of the rows lies below."""
    steady = rising(below)
    wanted = share * steady[-1]
    if steady[-1] <= 0:
        return share * (len(below) - 1)
    after = int(np.clip(np.searchsorted(steady, wanted, side="left"), 1, len(steady) - 1))
    first, last = steady[after - 1], steady[after]
    within = (wanted - first) / (last - first) if last > first else 0.5
    return float(after - 1 + np.clip(within, 0.0, 1.0))


def widths(drawn: Numbers, share: float, level: float) -> Numbers:
    """Return within what the noise of below - share * total stays at each edge, from draws of the noise of below."""
    return np.asarray(np.quantile(np.abs(drawn - share * drawn[:, -1:]), level, axis=0))


def accepted(below: Numbers, width: Numbers, share: float) -> tuple[int, int]:
    """Return the first and the last cell in which the quantile can lie.

    `below` are noisy counts of the rows below each edge, `width` are their `widths`. Bounds that rise with the edges
    are put in the place of noisy ones: if noisy ones hold everywhere, so do their rising means.
    """
    surplus = below - share * below[-1]
    low, high = rising(surplus - width), rising(surplus + width)
    first = int(np.argmax(high[1:] >= 0)) if np.any(high[1:] >= 0) else len(below) - 2
    reached = np.flatnonzero(low[:-1] <= 0)
    last = int(reached[-1]) if len(reached) else 0
    return min(first, last), max(first, last)
