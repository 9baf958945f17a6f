"""Noisy counts with their intervals: a single one, or a table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.intervals import whole_half_widths
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of
from tacit.stats.answer import distinct_names, html_table


def interval_ends(
    value: Any, estimate: Any, variance: Any, kurtosis: Any, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of intervals around estimates, at least 0, each holding the value that is shown."""
    width = whole_half_widths(variance, kurtosis, level_of(level))
    low = np.minimum(np.maximum(np.asarray(estimate) - width, 0.0), value)
    return low, np.maximum(np.asarray(estimate) + width, value)


@dataclass(frozen=True)
class NoisyCount:
    """One count: the integer that is shown, the estimate that it was rounded from, and its variance."""

    value: int
    estimate: float
    variance: float
    kurtosis: float = 0.0

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return the interval that holds the count without noise with probability `level`."""
        low, high = interval_ends(self.value, self.estimate, self.variance, self.kurtosis, level)
        return Interval(float(low), float(high))


@dataclass(frozen=True, eq=False)
class CountTable:
    """A table of counts by columns: integers, estimates, and intervals of each cell."""

    columns: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    """The cells of each column, in order."""
    values: NDArray[np.int64]
    estimates: NDArray[np.float64]
    """The estimates of least squares before rounding: unbiased, and possibly below 0."""
    variance: Any
    """The variance of each estimate: one number for all cells, or an array."""
    kurtosis: Any = 0.0

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return the interval that holds each count without noise with probability `level`, cell by cell."""
        return Interval(*interval_ends(self.values, self.estimates, self.variance, self.kurtosis, level))

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The key of each count, in the order of `values.ravel()`."""
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
        return html_table(self.rows, [*distinct_names(self.columns), "value", "low", "high"])
