"""Quantiles from noisy counts of the rows below the edges of cells, and the cells in which a quantile can lie.

It is post-processing of released counts. An interval holds the cells that a test accepts: at the left edge of the cell
of a quantile at most a share q of the rows lies below, at its right edge at least that share, and cells are rejected
where the noisy counts contradict this by more than the noise explains. So the cell of the quantile is rejected with
probability 1 - level at most, wherever it lies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.arrays import Numbers


def cumulative_counts(counts: NDArray[Any]) -> Numbers:
    """Return the counts below each edge from counts of cells: 0 first, the total last."""
    upto = np.cumsum(counts, axis=-1, dtype=np.float64)
    return np.concatenate([np.zeros((*upto.shape[:-1], 1)), upto], axis=-1)


def isotonic(values: Numbers) -> Numbers:
    """Return the nearest rising sequence by least squares: adjacent values that fall are pooled to their mean."""
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


def quantile_position(below: Numbers, share: float) -> float:
    """Return the position, in cells, below which a share of the rows lies."""
    fitted = isotonic(below)
    wanted = share * fitted[-1]
    if fitted[-1] <= 0:
        return share * (len(below) - 1)
    after = int(np.clip(np.searchsorted(fitted, wanted, side="left"), 1, len(fitted) - 1))
    first, last = fitted[after - 1], fitted[after]
    within = (wanted - first) / (last - first) if last > first else 0.5
    return float(after - 1 + np.clip(within, 0.0, 1.0))


def noise_widths(drawn: Numbers, share: float, level: float) -> Numbers:
    """Return the half-width of the noise of below - share * total at each edge, from draws of the noise of below."""
    return np.asarray(np.quantile(np.abs(drawn - share * drawn[:, -1:]), level, axis=0))


def quantile_cells(below: Numbers, width: Numbers, share: float) -> tuple[int, int]:
    """Return the first and the last cell in which the quantile can lie.

    `below` are noisy counts of the rows below each edge, `width` their `noise_widths`. The bounds are made to rise with
    the edges: if the noisy bounds hold at all edges, so do their isotonic means.
    """
    surplus = below - share * below[-1]
    low, high = isotonic(surplus - width), isotonic(surplus + width)
    first = int(np.argmax(high[1:] >= 0)) if np.any(high[1:] >= 0) else len(below) - 2
    reached = np.flatnonzero(low[:-1] <= 0)
    last = int(reached[-1]) if len(reached) else 0
    return min(first, last), max(first, last)
