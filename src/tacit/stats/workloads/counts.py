"""Counts with their intervals, one by one or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.intervals import whole_half_widths
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of
from tacit.stats.answer import distinct_names

ROWS_SHOWN = 50


def spans(
    value: Any, estimate: Any, variance: Any, kurtosis: Any, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of intervals around estimates; none ends below 0, and each holds the value that is shown."""
    width = whole_half_widths(variance, kurtosis, level_of(level))
    low = np.minimum(np.maximum(np.asarray(estimate) - width, 0.0), value)
    return low, np.maximum(np.asarray(estimate) + width, value)


@dataclass(frozen=True)
class Counted:
    """One count: the whole number that is shown, the estimate that it was rounded from, and its variance."""

    value: int
    estimate: float
    variance: float
    kurtosis: float = 0.0

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return where the count without noise lies with probability `level`."""
        low, high = spans(self.value, self.estimate, self.variance, self.kurtosis, level)
        return Interval(float(low), float(high))


@dataclass(frozen=True, eq=False)
class CountTable:
    """A table of counts by columns: whole numbers, estimates, and intervals cell by cell."""

    columns: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    """The cells of each column, in order."""
    values: NDArray[np.int64]
    estimates: NDArray[np.float64]
    """What least squares gives, before it is made whole: unbiased, and possibly below 0."""
    variance: Any
    """The variance of each estimate: one number for all cells, or an array."""
    kurtosis: Any = 0.0

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return where each count without noise lies with probability `level`, each by itself."""
        return Interval(*spans(self.values, self.estimates, self.variance, self.kurtosis, level))

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """For what each count stands, in the order of `values.ravel()`."""
        return list(product(*self.labels))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table as rows: its columns, `value`, and the ends `low` and `high` of its 95 % interval."""
        span = self.interval()
        numbers = zip(self.values.ravel().tolist(), *(np.ravel(end).tolist() for end in span), strict=True)
        names = distinct_names(self.columns)
        return [
            {**dict(zip(names, key, strict=True)), "value": value, "low": low, "high": high}
            for key, (value, low, high) in zip(self.keys, numbers, strict=True)
        ]

    def _repr_html_(self) -> str:
        """The table."""
        return html_of(self.rows, [*distinct_names(self.columns), "value", "low", "high"])


def html_of(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Return rows as an HTML table, the first ones."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(row[name]))}</td>" for name in names) + "</tr>"
        for row in rows[:ROWS_SHOWN]
    )
    more = f"<p>… {len(rows) - ROWS_SHOWN:,} more rows</p>" if len(rows) > ROWS_SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
