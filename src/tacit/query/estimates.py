"""From noisy measures to the aggregates that were asked for; post-processing, so nothing here costs or protects.

A mean divides a noisy sum around the middle of the interval by a noisy count of at least 1, and is put back into the
interval; variances are kept between 0 and the greatest possible, correlations between -1 and 1. Counts and sums are
shown as they come, also below 0: they are unbiased, and so are their totals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.tables import Kind
from tacit.query.measures import Estimate, Steps
from tacit.query.whole_numbers import added, scaled

Numbers = NDArray[Any]


def estimated(estimate: Estimate, measures: Sequence[Numbers], kind: Kind) -> Numbers:
    """Return an aggregate for each group (or for each simulated draw), from arrays of its measures."""
    chosen = [measures[place] for place in estimate.measures]
    if estimate.function in ("count", "units", "distinct"):
        return chosen[0]
    if estimate.function == "sum":
        grid, total = estimate.grids[0], chosen[-1]
        if len(chosen) == 2:  # shared with a mean: the sum around the centre, and the rows, each of them a centre more
            total = added(total, scaled(chosen[0], grid.shift))
        if kind is Kind.INTEGER:
            return scaled(total, int(grid.step)) if grid.step >= 1 else _halved(total)
        return np.asarray(total * float(grid.step), dtype=np.float64)
    return _MOMENTS[estimate.function](estimate, [one.astype(np.float64) for one in chosen])


def _halved(total: Numbers) -> Numbers:
    """Return a sum that was counted in halves as whole numbers, what lies between two as the even one."""
    half = total >> 1
    return np.asarray(half + (total & half & 1))


def _mean(estimate: Estimate, measures: Sequence[Numbers]) -> Numbers:
    count, total = measures
    grid = estimate.grids[0]
    mean = float(grid.centre) + float(grid.step) * total / np.maximum(count, 1.0)
    return _inside(mean, grid)


def _variance(estimate: Estimate, measures: Sequence[Numbers]) -> Numbers:
    """The population's variance in the units of the value."""
    rows, total, squares = np.maximum(measures[0], 1.0), measures[1], measures[2]
    grid, shift = estimate.grids[0], estimate.square[0]
    in_steps = squares / rows + shift - (total / rows) ** 2
    return np.asarray(np.clip(in_steps, 0.0, float(grid.reach) ** 2) * float(grid.step) ** 2)


def _sample(count: Numbers) -> Numbers:
    """n / (n - 1), for at least two rows."""
    rows: Numbers = np.maximum(count, 2.0)
    return np.asarray(rows / (rows - 1))


def _covariance(estimate: Estimate, measures: Sequence[Numbers]) -> Numbers:
    rows, one, other, product = np.maximum(measures[0], 1.0), *measures[1:4]
    first, second = estimate.grids
    reach = float(first.reach * second.reach)
    in_steps = np.clip(product / rows - (one / rows) * (other / rows), -reach, reach)
    return in_steps * float(first.step * second.step)


def _correlation(estimate: Estimate, measures: Sequence[Numbers]) -> Numbers:
    rows = np.maximum(measures[0], 1.0)
    spreads = []
    for total, squares, shift, grid in zip(measures[1:3], measures[4:6], estimate.square, estimate.grids, strict=True):
        in_steps = squares / rows + shift - (total / rows) ** 2
        spreads.append(np.sqrt(np.maximum(in_steps, 1.0)) * float(grid.step))
    return np.clip(_covariance(estimate, measures[:4]) / (spreads[0] * spreads[1]), -1.0, 1.0)


def _inside(values: Numbers, grid: Steps) -> Numbers:
    range_ = grid.value.range
    return np.clip(values, float(range_.lower), float(range_.upper)) if range_ is not None else values


_MOMENTS: Final[Mapping[str, Callable[[Estimate, Sequence[Numbers]], Numbers]]] = {
    "avg": _mean,
    "var_pop": _variance,
    "var_samp": lambda estimate, measures: _variance(estimate, measures) * _sample(measures[0]),
    "stddev_pop": lambda estimate, measures: np.sqrt(_variance(estimate, measures)),
    "stddev_samp": lambda estimate, measures: np.sqrt(_variance(estimate, measures) * _sample(measures[0])),
    "covar_pop": _covariance,
    "covar_samp": lambda estimate, measures: _covariance(estimate, measures) * _sample(measures[0]),
    "corr": _correlation,
}
