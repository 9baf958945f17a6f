"""Means, variances, covariances and correlations from noisy sums: post-processing, so nothing here costs or protects.

Sums are of whole steps of a public grid around a centre, products and squares included, in the order: rows, the sum of
each column, products, squares (less `square_offset` for each row). A mean divides a sum by a number of rows of at
least 1 and is clamped to its bounds; variances are clamped between 0 and the greatest possible, correlations between
-1 and 1.

Intervals are made of draws, that is, of sums less fresh noise (`draws`). P(total' <= t rows') over draws is an exact
test of the mean t, as total - t rows is linear in the sums; so the draws of a mean have the right quantiles, clamped to
its limits or not, as long as their rows are positive. Draws of fewer rows than one count at both limits of the
statistic, which leaves out nothing. A variance is no ratio of two sums: the noise of the total is squared in it, and
its draws lie too low twice, once for the noise and once for the draw. The mean square around a fixed number c is such a
ratio, and is the variance where c is the mean. So draws of variances are made around fixed numbers, the middle of the
mean's interval and halfway to either end, and the interval is that of all three. It covers 95 to 100 % of variances of
any shape at the level 0.95, where draws of the variance itself cover 8 to 95 %; where the noise is small (rows times
epsilon of 100) it is 1 to 7 % wider than these, and around the middle alone it would cover 94 %.

The public grid on which values are added up: whole steps of a size that follows from declared bounds alone.

Steps are powers of two, so that dividing by one is exact in doubles. The number of steps that a statistic gives to its
greatest value trades the error of rounding, which is far below the noise, against the size of sums of squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from tacit.mechanisms.grid import Grid
from tacit.privacy.arrays import Numbers

SUM_STEPS: Final = 2**20
MEAN_STEPS: Final = 2**20
SQUARE_STEPS: Final = 2**12
"""The number of steps of the greatest value: for sums, for means, for squares and products."""

SATURATION: Final = 2**62
"""The greatest sum; clamping moves no two neighbours further apart."""

TINY: Final = Fraction(1, 2**60)
HALVES_BELOW: Final = 16
"""Up to here a short range of whole numbers is counted in halves where its middle is not a whole number."""


def grid_step(lower: Fraction, upper: Fraction, steps: int, *, is_whole: bool, centred: bool) -> Fraction:
    """Return the step for values between two bounds, so that the greatest distance to their origin has `steps`.

    The origin is the middle of the bounds if `centred`, otherwise 0. Whole numbers get whole steps, and halves where
    their middle lies between two of few.
    """
    size = half = max(abs(lower), abs(upper))
    if centred:
        half = max((upper - lower) / 2, size / 2**20)
    if not is_whole:
        return Grid.below(max(half, TINY) / steps).step
    if half > steps:
        return 2 * Grid.below(half / steps).step
    is_half = centred and half <= HALVES_BELOW and half.denominator == 2
    return Fraction(1, 2) if is_half else Fraction(1)


PLACES: Final = (-0.5, 0.0, 0.5)
"""Positions in the interval of the mean, whose ends are -1 and 1, around which draws of variances are made."""

SPREADS: Final = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


class Scale(Protocol):
    """A column as whole numbers between `low` and `high`: value / step, rounded, less `shift`."""

    @property
    def low(self) -> int:
        """The least number."""

    @property
    def high(self) -> int:
        """The greatest number."""

    @property
    def reach(self) -> int:
        """The greatest absolute number."""

    @property
    def step(self) -> Fraction:
        """The size of one step."""

    @property
    def shift(self) -> int:
        """The number of steps that counts as 0."""

    @property
    def lower(self) -> float:
        """The lower bound of the column."""

    @property
    def upper(self) -> float:
        """The upper bound of the column."""


def square_offset(scale: Scale) -> int:
    """Return the offset that is subtracted from each square of steps to centre it, which halves its noise."""
    return scale.reach**2 // 2


def limits(function: str, scales: Sequence[Scale]) -> tuple[float, float]:
    """Return the range of a statistic, whatever the rows are; a sample has at least two rows."""
    if function == "avg":
        return scales[0].lower, scales[0].upper
    if function == "corr":
        return -1.0, 1.0
    first, last = (float(scale.reach * scale.step) for scale in (scales[0], scales[-1]))
    greatest = (2 if function.endswith("samp") else 1) * first * last
    if function.startswith("covar"):
        return -greatest, greatest
    return 0.0, greatest**0.5 if function.startswith("stddev") else greatest


def draws(
    function: str, scales: Sequence[Scale], sums: Sequence[Numbers], tail: float
) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the least and the greatest value of the statistic for draws of sums along the first axis.

    Once, or for variances once around each of `PLACES`; `tail` is the probability beyond either end of an interval.
    """
    if function not in SPREADS:
        values = FUNCTIONS[function](scales, sums)
        if function == "regr_slope":  # without limits
            yield values, values
            return
        low, high = limits(function, scales)
        yield np.where(sums[0] < 1, low, values), np.where(sums[0] < 1, high, values)
        return
    (count, total, squares), (scale,) = sums, scales
    no_rows, (low, high), greatest = count < 1, limits(function, scales), float(scale.reach) ** 2
    rows, worth = np.maximum(count, 1.0), float(scale.step) ** 2
    means = np.clip(total / rows, scale.low, scale.high)
    first, last = (
        np.quantile(np.where(no_rows, limit, means), share, axis=0)
        for limit, share in ((scale.low, tail), (scale.high, 1 - tail))
    )
    fewest = np.quantile(count, tail, axis=0)
    root = np.sqrt if function.startswith("stddev") else np.asarray
    for place in PLACES:
        centre = (first + last) / 2 + place * (last - first) / 2
        around = squares / rows + square_offset(scale) - 2 * centre * (total / rows) + centre**2
        inside = np.clip(around, 0.0, greatest) * worth
        least = inside * _correction(function, count)
        # the greatest possible variance is that of any number of rows
        most = np.where(around < greatest, least, inside * _correction(function, fewest))
        yield np.where(no_rows, low, root(least)), np.where(no_rows, high, root(most))


def _correction(function: str, count: Numbers) -> Numbers:
    """Return n / (n - 1) for the variance of a sample, which has at least two rows; 1 for that of a population."""
    rows = np.maximum(count, 2.0)
    return np.asarray(rows / (rows - 1) if function.endswith("samp") else np.ones_like(rows))


def _mean(scales: Sequence[Scale], sums: Sequence[Numbers]) -> Numbers:
    (scale,), (count, total) = scales, sums
    mean = float(scale.shift * scale.step) + float(scale.step) * total / np.maximum(count, 1.0)
    return np.clip(mean, scale.lower, scale.upper)


def _variance_in_steps(scale: Scale, count: Numbers, total: Numbers, squares: Numbers) -> Numbers:
    rows = np.maximum(count, 1.0)
    return np.clip(squares / rows + square_offset(scale) - (total / rows) ** 2, 0.0, float(scale.reach) ** 2)


def _covariance_in_steps(scales: Sequence[Scale], sums: Sequence[Numbers]) -> Numbers:
    rows, reach = np.maximum(sums[0], 1.0), float(scales[0].reach * scales[1].reach)
    return np.clip(sums[3] / rows - (sums[1] / rows) * (sums[2] / rows), -reach, reach)


def _variance(function: str) -> Callable[[Sequence[Scale], Sequence[Numbers]], Numbers]:
    def compute(scales: Sequence[Scale], sums: Sequence[Numbers]) -> Numbers:
        (scale,) = scales
        found = _variance_in_steps(scale, *sums) * float(scale.step) ** 2 * _correction(function, sums[0])
        return np.asarray(np.sqrt(found) if function.startswith("stddev") else found)

    return compute


def _covariance(function: str) -> Callable[[Sequence[Scale], Sequence[Numbers]], Numbers]:
    def compute(scales: Sequence[Scale], sums: Sequence[Numbers]) -> Numbers:
        worth = float(scales[0].step * scales[1].step)
        return np.asarray(_covariance_in_steps(scales, sums) * worth * _correction(function, sums[0]))

    return compute


def _correlation(scales: Sequence[Scale], sums: Sequence[Numbers]) -> Numbers:
    count, *totals = sums[:3]
    spreads = [
        np.sqrt(np.maximum(_variance_in_steps(scale, count, total, squares), 1.0))
        for scale, total, squares in zip(scales, totals, sums[4:], strict=True)
    ]
    return np.asarray(np.clip(_covariance_in_steps(scales, sums) / (spreads[0] * spreads[1]), -1.0, 1.0))


def _slope(scales: Sequence[Scale], sums: Sequence[Numbers]) -> Numbers:
    """Return the slope of the first column over the second; only the squares of the second are needed.

    It may have any size where the variance of the second is within its noise of 0, of which statistics warn.
    """
    spread = np.maximum(_variance_in_steps(scales[1], sums[0], sums[2], sums[4]), 1.0)
    return np.asarray(_covariance_in_steps(scales, sums) / spread * float(scales[0].step / scales[1].step))


FUNCTIONS: Final[Mapping[str, Callable[[Sequence[Scale], Sequence[Numbers]], Numbers]]] = {
    "avg": _mean,
    **{name: _variance(name) for name in SPREADS},
    **{name: _covariance(name) for name in ("covar_pop", "covar_samp")},
    "corr": _correlation,
    "regr_slope": _slope,
}
"""The statistics by their SQL names, from sums of one common shape."""
