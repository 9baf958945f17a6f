"""From noisy counts below the edges of cells to quantiles, and to the cells in which a quantile can lie.

All of this is computed from what was released. An interval is what a test accepts: at the left edge of the cell that
holds the quantile at most a share q of the rows lies below, at its right edge at least that share, and cells at whose
edges the noisy counts contradict this by more than the noise explains are left out. So the cell of the quantile is left
out with probability 1 - level at most, wherever it lies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
