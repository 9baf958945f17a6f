"""Statistics computed from sums: count, sum, mean, variance, standard deviation, covariance, correlation, trend.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): a unit has at most `rows_per_unit`
rows, each of which adds at most the reach of a term, so the L1 and the L2 sensitivity of each sum is their product
(twice that for a replaced unit). Sums are of whole numbers, exact in any order.

Moments are taken around the middle of the bounds: centred values are half as large as the interval, and so is their
noise (the bounded mean of Wilson et al. 2020). `measuring.moments` computes statistics and intervals from them. The
budget is divided over the sums by fixed weights (`SUMS`); a mean with Laplace noise needs no division (`TwoSided`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from tacit.measuring import moments
from tacit.measuring.intervals import LAPLACE_KURTOSIS, half_widths, simulated_interval
from tacit.measuring.moments import MEAN_STEPS, SQUARE_STEPS, SUM_STEPS, draws, square_offset
from tacit.mechanisms import Laplace
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.arrays import Numbers
from tacit.privacy.events import Event, composed
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.stats.answer import Answer
from tacit.stats.preparation import CommonOptions, StatisticInputs
from tacit.stats.rows import ColumnSteps, Rows, Term, cell_count, group_keys
from tacit.stats.stated_kinds import kind_of_bounds
from tacit.stats.statistic import (
    Noisy,
    NoisySums,
    StatisticPlan,
    few_rows_warning,
    groups_in_words,
    release_sums,
)

SPREAD_WEIGHTS: Final = (0.8, 0.9, 1.0)
"""The weights of rows, sum and squares in the budget of a variance: its error on normal, skewed, heavy-tailed and whole
numbers is 7 to 12 % smaller than with 0.5, 0.7 and 1, and that of evenly spread values 6 % larger."""


@dataclass(frozen=True)
class Moments(StatisticPlan):
    """Noisy sums, and the function that computes the statistic from them."""

    function: str
    parts: tuple[NoisySums, ...]
    scales: tuple[ColumnSteps, ...] = ()

    @property
    def event(self) -> Event:
        return composed([part.noise.event for part in self.parts])

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(part.line for part in self.parts)

    @property
    def numbers(self) -> int:
        return cell_count(self.parts[0].by)

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        return group_keys(self.parts[0].by)

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(cut.column for cut in self.parts[0].by)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        needs = dict.fromkeys(scale.column for scale in self.scales)
        return release_sums(self.parts, rows, list(needs), source)

    def value(self, noisy: Noisy) -> Any:
        if self.function == "count" or (self.function == "sum" and self.scales[0].step >= 1):
            worth = 1 if self.function == "count" else int(self.scales[0].step)
            found: Any = np.asarray(noisy[0])
            if worth > 1:  # may pass 63 bits, so as Python's integers
                found = np.asarray(found.astype(object) * worth, dtype=object)
        else:
            found = self.compute(*(np.asarray(one, dtype=np.float64) for one in noisy))
        return found.ravel() if self.parts[0].by else found.item()

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        if len(self.parts) == 1:
            part = self.parts[0]
            span = part.noise.interval(level, np.asarray(noisy[0]))
            low, high = (np.asarray(end) * part.worth for end in span)
            return Interval(*((low.ravel(), high.ravel()) if part.by else (low.item(), high.item())))
        found = simulated_interval([part.noise for part in self.parts], [*map(np.asarray, noisy)], level, self._draws)
        if found is None or not self.parts[0].by:
            return found
        return Interval(np.asarray(found.low).ravel(), np.asarray(found.high).ravel())

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        if self.function in ("count", "sum"):
            return ()
        width = float(self.parts[0].noise.interval(DEFAULT_LEVEL).high)
        few = few_rows_warning(np.asarray(noisy[0]), width, self.keys)
        return (*few, *self._small_spread_warnings(noisy, np.ravel(noisy[0]) > width))

    def _small_spread_warnings(self, noisy: Noisy, asked: NDArray[np.bool_]) -> Iterator[str]:
        """Yield a warning for each column by whose variance is divided, and whose variance may be 0 in asked groups.

        The quotient may then have any size: the variance is at least one squared step in it (`measuring.moments`).
        """
        for column, squares in DIVISORS.get(self.function, ()):
            scale, places = self.scales[column], (0, 1 + column, squares)
            noises, sums = [self.parts[one].noise for one in places], [np.asarray(noisy[one]) for one in places]
            span = simulated_interval(noises, sums, DEFAULT_LEVEL, partial(draws, "var_pop", (scale,)))
            small = asked & (span is not None and np.ravel(span.low) <= float(scale.step) ** 2)
            if small.any():
                yield (
                    f"all values of {scale.column} may be equal{groups_in_words(small, self.keys)}: their variance is "
                    f"within its noise of 0, and the {self.function} may be noise alone, however large it is"
                )

    def compute(self, *sums: Numbers) -> Numbers:
        """Return the statistic from sums of any common shape."""
        return FUNCTIONS[self.function](self.scales, self.centred(sums))

    def centred(self, sums: Sequence[Numbers]) -> Sequence[Numbers]:
        """Return the sums that `measuring.moments` takes: rows first, then values around their centres."""
        return sums

    def _draws(self, sums: Sequence[Numbers], tail: float) -> Iterator[tuple[Numbers, Numbers]]:
        return draws(SQL_NAMES[self.function], self.scales, self.centred(sums), tail)


@dataclass(frozen=True)
class CountOf(Moments):
    """The number of rows that have a value in a column."""

    column: str = ""

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        return release_sums(self.parts, rows, [self.column], source)


@dataclass(frozen=True)
class TwoSided(Moments):
    """A mean from the sums of how far values lie above the lower and below the upper bound.

    Wherever its value lies, a row moves the two sums by the width of the bounds together, so that width is the L1
    sensitivity of both, and they are released with one epsilon (Kulesza, Suresh, Wang 2024). The number of rows is the
    difference of the sums over the width; a mean with a public number of rows would cost the same.
    """

    @classmethod
    def of(cls, plan: Moments, inputs: StatisticInputs) -> TwoSided:
        """Return the same mean from two sums."""
        (scale,) = plan.scales
        ends = [replace(scale, shift=scale.shift + end) for end in (scale.low, scale.high)]
        terms = [Term((end,)) for end in ends]
        (noise,) = inputs.allocation.without_delta().noises([max(term.reach for term in terms)])
        parts = tuple(NoisySums(term, noise, plan.parts[0].by, label_of(term)) for term in terms)
        return cls(plan.label, "mean of two sides", parts, (scale,))

    @property
    def event(self) -> Event:
        return self.parts[0].noise.event

    def centred(self, sums: Sequence[Numbers]) -> Sequence[Numbers]:
        (above, below), (scale,) = sums, self.scales
        rows = (above - below) / max(1, scale.high - scale.low)
        return rows, above + scale.low * np.maximum(rows, 1.0)

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        (scale,) = self.scales
        width = max(1, scale.high - scale.low)
        rows, _ = self.centred([np.asarray(one, dtype=np.float64) for one in noisy])
        spread = 2 * float(self.parts[0].noise.scale) / width  # the deviation of the difference of two Laplace noises
        half_width = float(half_widths(spread**2, LAPLACE_KURTOSIS / 2, DEFAULT_LEVEL))
        return few_rows_warning(rows, half_width, self.keys)


def count(values: Any, *, by: Any = None, keys: Any = None, **options: Unpack[CommonOptions]) -> Answer:
    """Return the number of rows that have a value."""
    groups_of = {} if by is None else by  # keys without by= are refused
    inputs = StatisticInputs({"value": values}, options, by=groups_of, keys=keys)
    groups = inputs.groups()
    (noise,) = inputs.allocation.noises([1])
    name = inputs.name("value")
    return inputs.release(CountOf(f"count of {name}", "count", (NoisySums(Term(), noise, groups),), column=name))


def sum(
    values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **options: Unpack[CommonOptions]
) -> Answer:
    """Return the sum of values, each clamped to its bounds."""
    return _answer("sum", {"value": (values, bounds)}, by, keys, options)


def mean(
    values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **options: Unpack[CommonOptions]
) -> Answer:
    """Return the mean of values, each clamped to its bounds.

    With Laplace noise it comes from sums above the lower and below the upper bound, released together; with Gaussian
    noise it is a noisy sum around the middle of the bounds over a noisy count.
    """
    return _answer("mean", {"value": (values, bounds)}, by, keys, options)


def variance(
    values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **options: Unpack[CommonOptions]
) -> Answer:
    """Return the variance of values (with n - 1), from noisy moments around the middle of the bounds."""
    return _answer("variance", {"value": (values, bounds)}, by, keys, options)


def std(
    values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **options: Unpack[CommonOptions]
) -> Answer:
    """Return the standard deviation of values: the square root of their variance."""
    return _answer("standard deviation", {"value": (values, bounds)}, by, keys, options)


def covariance(
    values: Any,
    others: Any,
    *,
    bounds: Any = None,
    other_bounds: Any = None,
    by: Any = None,
    keys: Any = None,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return the covariance of two columns (with n - 1), over the rows that have both values."""
    return _answer("covariance", {"value": (values, bounds), "other": (others, other_bounds)}, by, keys, options)


def correlation(
    values: Any,
    others: Any,
    *,
    bounds: Any = None,
    other_bounds: Any = None,
    by: Any = None,
    keys: Any = None,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return Pearson's correlation of two columns, over the rows that have both values."""
    return _answer("correlation", {"value": (values, bounds), "other": (others, other_bounds)}, by, keys, options)


def trend(
    values: Any,
    times: Any,
    *,
    bounds: Any = None,
    time_bounds: Any = None,
    by: Any = None,
    keys: Any = None,
    **options: Unpack[CommonOptions],
) -> Answer:
    """Return the slope of the straight line through values over times, by least squares."""
    return _answer("trend", {"value": (values, bounds), "other": (times, time_bounds)}, by, keys, options)


def square(scale: ColumnSteps) -> Term:
    """Return the square of a column, centred, which halves its noise."""
    return Term((scale, scale), square_offset(scale))


def second_moments(scales: tuple[ColumnSteps, ...]) -> list[Term]:
    """Return the terms of the count, both sums, the products and both squares of two columns."""
    one, other = scales
    return [Term(), Term((one,)), Term((other,)), Term(scales), square(one), square(other)]


@dataclass(frozen=True)
class RequiredSums:
    """The sums that a statistic is computed from, with their weights in the budget."""

    terms: Callable[[tuple[ColumnSteps, ...]], list[Term]]
    weights: tuple[float, ...]
    steps: int = SQUARE_STEPS
    centred: bool = True


_SPREAD: Final = RequiredSums(lambda scales: [Term(), Term(scales), square(scales[0])], SPREAD_WEIGHTS)

SUMS: Final[Mapping[str, RequiredSums]] = {
    "sum": RequiredSums(lambda scales: [Term(scales)], (1.0,), SUM_STEPS, centred=False),
    "mean": RequiredSums(lambda scales: [Term(), Term(scales)], (0.5, 1.0), MEAN_STEPS),
    "variance": _SPREAD,
    "standard deviation": _SPREAD,
    "covariance": RequiredSums(lambda scales: second_moments(scales)[:4], (0.5, 0.7, 0.7, 1.0)),
    "correlation": RequiredSums(second_moments, (0.5, 0.7, 0.7, 1.0, 1.0, 1.0)),
    "trend": RequiredSums(lambda scales: [*second_moments(scales)[:4], square(scales[1])], (0.4, 0.6, 0.6, 1.0, 0.8)),
}

DIVISORS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {"correlation": ((0, 4), (1, 5)), "trend": ((1, 4),)}
"""The columns by whose variance a statistic is divided, and the places of their squares among its sums."""


def _answer(
    function: str, columns: Mapping[str, tuple[Any, Any]], by: Any, keys: Any, options: CommonOptions
) -> Answer:
    """Release a statistic of columns, each given with its stated bounds."""
    required = SUMS[function]

    def plan(inputs: StatisticInputs) -> StatisticPlan:
        scales = tuple(
            inputs.scale(column, bounds, required.steps, centred=required.centred)
            for column, (_, bounds) in columns.items()
        )
        terms, groups = required.terms(scales), inputs.groups()
        noises = inputs.allocation.noises([term.reach for term in terms], required.weights)
        parts = tuple(NoisySums(term, noise, groups, label_of(term)) for term, noise in zip(terms, noises, strict=True))
        names = " and ".join(dict.fromkeys(map(inputs.name, columns)))
        found = Moments(f"{function} of {names}", function, parts, scales)
        return TwoSided.of(found, inputs) if function == "mean" and isinstance(parts[0].noise, Laplace) else found

    values = {column: one for column, (one, _) in columns.items()}
    kinds = {column: kind_of_bounds(bounds) for column, (_, bounds) in columns.items()}
    return StatisticInputs(values, options, kinds, by=by, keys=keys).answer(plan)


def label_of(term: Term) -> str:
    """Return what a term sums, in words."""
    columns = [factor.column for factor in term.factors]
    if not columns:
        return "rows"
    if len(columns) == 1:
        centre = term.factors[0].centre
        return f"sum of {columns[0]}" + (f" around {centre:g}" if centre else "")
    if len(columns) == 3:
        return f"cubes of {columns[0]}"
    return f"squares of {columns[0]}" if columns[0] == columns[1] else f"products of {' and '.join(columns)}"


SQL_NAMES: Final = {
    "mean": "avg",
    "mean of two sides": "avg",
    "variance": "var_samp",
    "standard deviation": "stddev_samp",
    "covariance": "covar_samp",
    "correlation": "corr",
    "trend": "regr_slope",
}

FUNCTIONS: Final[Mapping[str, Callable[[Sequence[ColumnSteps], Sequence[Numbers]], Numbers]]] = {
    "count": lambda _, sums: sums[0],
    "sum": lambda scales, sums: sums[0] * float(scales[0].step),
    **{name: moments.FUNCTIONS[function] for name, function in SQL_NAMES.items()},
}
