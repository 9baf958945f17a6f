"""Statistics that are made of sums: count, sum, mean, variance, standard deviation, covariance, correlation, trend.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): a unit has at most `rows_per_unit`
rows, each of which adds at most the reach of a term, so the L1 and the L2 sensitivity of each sum is their product
(twice that for a replaced unit). Sums are of whole numbers, exact in any order.

Moments are taken around the middle of the bounds: centred values are half as large as the interval, and so is their
noise (the bounded mean of Wilson et al. 2020). How statistics and their intervals follow from them is in
`measuring.moments`. The budget is divided in proportion to how much each sum matters; a mean needs no division
(`TwoSided`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from tacit.measuring import moments
from tacit.measuring.intervals import LAPLACE_KURTOSIS, half_widths, simulated_interval
from tacit.measuring.moments import draws, square_offset
from tacit.mechanisms import Laplace
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy.bounds import Category
from tacit.privacy.events import Event
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.privacy.tables import Kind
from tacit.stats.answer import Answer
from tacit.stats.column_reader import kind_of_bounds, kinds_of_groups
from tacit.stats.preparation import Asked, Survey, grouped
from tacit.stats.rows import ColumnSteps, Rows, Term
from tacit.stats.statistic import Noisy, NoisySums, StatisticPlan, composed, few_rows, measured

SUM_STEPS: Final = 2**20
MEAN_STEPS: Final = 2**20
SQUARE_STEPS: Final = 2**12
"""Into how many steps the greatest value is divided: for sums, for means, for squares and products."""

SPREAD_WEIGHTS: Final = (0.8, 0.9, 1.0)
"""How the budget of a variance is divided over rows, sum and squares: its error on normal, skewed, heavy-tailed and
whole numbers is 7 to 12 % smaller than with 0.5, 0.7 and 1, and that of evenly spread values 6 % larger."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Moments(StatisticPlan):
    """Noisy sums, and the function that makes the statistic of them."""

    function: str
    parts: tuple[NoisySums, ...]
    scales: tuple[ColumnSteps, ...] = ()

    @property
    def event(self) -> Event:
        return composed(self.parts)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(part.line for part in self.parts)

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        by = self.parts[0].by
        return list(product(*(cut.values for cut in by))) if by else None

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(cut.column for cut in self.parts[0].by)

    def measure(self, rows: Rows, source: Source = SYSTEM) -> Noisy:
        needs = dict.fromkeys(scale.column for scale in self.scales)
        return measured(self.parts, rows, list(needs), source)

    def value(self, noisy: Noisy) -> Any:
        if self.function == "count" or (self.function == "sum" and self.scales[0].step >= 1):
            worth = 1 if self.function == "count" else int(self.scales[0].step)
            found: Any = np.asarray(noisy[0])
            if worth > 1:  # beyond 63 bits; Python's numbers have no end
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
        found = simulated_interval([part.noise for part in self.parts], [*map(np.asarray, noisy)], level, self._drawn)
        if found is None or not self.parts[0].by:
            return found
        return Interval(np.asarray(found.low).ravel(), np.asarray(found.high).ravel())

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        if self.function in ("count", "sum"):
            return ()
        return few_rows(np.asarray(noisy[0]), float(self.parts[0].noise.interval(DEFAULT_LEVEL).high), self.keys)

    def compute(self, *sums: Numbers) -> Numbers:
        """Return the statistic from sums, whatever axes they have in common."""
        return FUNCTIONS[self.function](self.scales, self.centred(sums))

    def centred(self, sums: Sequence[Numbers]) -> Sequence[Numbers]:
        """Return sums as `measuring.moments` takes them: rows first, then values around their centres."""
        return sums

    def _drawn(self, sums: Sequence[Numbers], tail: float) -> Iterator[tuple[Numbers, Numbers]]:
        return draws(SQL_NAMES[self.function], self.scales, self.centred(sums), tail)


def count(values: Any, *, by: Any = None, keys: Any = None, **asked: Unpack[Asked]) -> Answer:
    """How many rows have a value."""
    survey = Survey({"value": values, **grouped(by)}, asked, kinds_of_groups(grouped(by), keys))
    cuts = survey.cuts(grouped(by), keys)
    (noise,) = survey.allocation.noises([1])
    name = survey.column("value")
    return survey.answered(
        CountOf(f"count of {survey.name('value')}", "count", (NoisySums(Term(), noise, cuts),), column=name)
    )


@dataclass(frozen=True)
class CountOf(Moments):
    """The number of rows that have a value in a column."""

    column: str = ""

    def measure(self, rows: Rows, source: Source = SYSTEM) -> Noisy:
        return measured(self.parts, rows, [self.column], source)


def sum(values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **asked: Unpack[Asked]) -> Answer:
    """The sum of values, each clamped to its bounds."""

    def plan(survey: Survey) -> StatisticPlan:
        scale = survey.scale("value", bounds, SUM_STEPS, centred=False)
        return _planned(survey, "sum", (scale,), [Term((scale,))], [1.0], by, keys)

    return Survey({"value": values, **grouped(by)}, asked, _kinds(bounds, by, keys)).answer(plan)


def mean(values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **asked: Unpack[Asked]) -> Answer:
    """The mean of values, each clamped to its bounds.

    With Laplace noise it comes from sums above the lower and below the upper bound, released together; with Gaussian
    noise it is a noisy sum around the middle of the bounds over a noisy count.
    """

    def plan(survey: Survey) -> StatisticPlan:
        scale = survey.scale("value", bounds, MEAN_STEPS)
        apart = _planned(survey, "mean", (scale,), [Term(), Term((scale,))], [0.5, 1.0], by, keys)
        return TwoSided.of(apart, survey) if isinstance(apart.parts[0].noise, Laplace) else apart

    return Survey({"value": values, **grouped(by)}, asked, _kinds(bounds, by, keys)).answer(plan)


@dataclass(frozen=True)
class TwoSided(Moments):
    """A mean by how far values lie above the lower and below the upper bound.

    Wherever its value lies, a row moves the two sums by the width of the bounds together, so that width is the L1
    sensitivity of both, and they are released with one epsilon (Kulesza, Suresh, Wang 2024). The number of rows is the
    distance of the sums over the width; hiding it costs nothing beside a mean for which it is public.
    """

    @classmethod
    def of(cls, plan: Moments, survey: Survey) -> TwoSided:
        """Return the same mean by two sums."""
        (scale,) = plan.scales
        ends = [replace(scale, shift=scale.shift + end) for end in (scale.low, scale.high)]
        terms = [Term((end,)) for end in ends]
        (noise,) = survey.allocation.without_delta().noises([max(term.reach for term in terms)])
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
        return few_rows(rows, float(half_widths(spread**2, LAPLACE_KURTOSIS / 2, DEFAULT_LEVEL)), self.keys)


def variance(values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **asked: Unpack[Asked]) -> Answer:
    """The variance of values (with n - 1), from noisy moments around the middle of the bounds."""
    return _spread("variance", values, bounds, by, keys, asked)


def std(values: Any, *, bounds: Any = None, by: Any = None, keys: Any = None, **asked: Unpack[Asked]) -> Answer:
    """The standard deviation of values: the root of their variance."""
    return _spread("standard deviation", values, bounds, by, keys, asked)


def covariance(
    values: Any,
    others: Any,
    *,
    bounds: Any = None,
    other_bounds: Any = None,
    by: Any = None,
    keys: Any = None,
    **asked: Unpack[Asked],
) -> Answer:
    """The covariance of two columns (with n - 1), over the rows that have both values."""

    def plan(survey: Survey) -> StatisticPlan:
        scales = _two(survey, bounds, other_bounds)
        terms = [Term(), Term((scales[0],)), Term((scales[1],)), Term(scales)]
        return _planned(survey, "covariance", scales, terms, [0.5, 0.7, 0.7, 1.0], by, keys)

    kinds = _kinds(bounds, by, keys, other_bounds)
    return Survey({"value": values, "other": others, **grouped(by)}, asked, kinds).answer(plan)


def correlation(
    values: Any,
    others: Any,
    *,
    bounds: Any = None,
    other_bounds: Any = None,
    by: Any = None,
    keys: Any = None,
    **asked: Unpack[Asked],
) -> Answer:
    """Pearson's correlation of two columns, over the rows that have both values."""

    def plan(survey: Survey) -> StatisticPlan:
        scales = _two(survey, bounds, other_bounds)
        return _planned(survey, "correlation", scales, second_moments(scales), SECOND_WEIGHTS, by, keys)

    kinds = _kinds(bounds, by, keys, other_bounds)
    return Survey({"value": values, "other": others, **grouped(by)}, asked, kinds).answer(plan)


def trend(
    values: Any,
    times: Any,
    *,
    bounds: Any = None,
    time_bounds: Any = None,
    by: Any = None,
    keys: Any = None,
    **asked: Unpack[Asked],
) -> Answer:
    """The slope of the straight line through values over times, by least squares."""

    def plan(survey: Survey) -> StatisticPlan:
        scales = _two(survey, bounds, time_bounds)
        terms = [Term(), Term((scales[0],)), Term((scales[1],)), Term(scales), square(scales[1])]
        return _planned(survey, "trend", scales, terms, [0.4, 0.6, 0.6, 1.0, 0.8], by, keys)

    kinds = _kinds(bounds, by, keys, time_bounds)
    return Survey({"value": values, "other": times, **grouped(by)}, asked, kinds).answer(plan)


def square(scale: ColumnSteps) -> Term:
    """The square of a scale, centred, so that its noise is half as large."""
    return Term((scale, scale), square_offset(scale))


def second_moments(scales: tuple[ColumnSteps, ColumnSteps]) -> list[Term]:
    """Count, both sums, products and both squares."""
    one, other = scales
    return [Term(), Term((one,)), Term((other,)), Term(scales), square(one), square(other)]


SECOND_WEIGHTS: Final = (0.5, 0.7, 0.7, 1.0, 1.0, 1.0)


def _spread(function: str, values: Any, bounds: Any, by: Any, keys: Any, asked: Asked) -> Answer:
    def plan(survey: Survey) -> StatisticPlan:
        scale = survey.scale("value", bounds, SQUARE_STEPS)
        terms = [Term(), Term((scale,)), square(scale)]
        return _planned(survey, function, (scale,), terms, SPREAD_WEIGHTS, by, keys)

    return Survey({"value": values, **grouped(by)}, asked, _kinds(bounds, by, keys)).answer(plan)


def _kinds(bounds: Any, by: Any, keys: Any, other_bounds: Any = None) -> dict[str, Kind | None]:
    """Return the kinds that bounds and keys state."""
    ends = {"value": kind_of_bounds(bounds), "other": kind_of_bounds(other_bounds)}
    return ends | kinds_of_groups(grouped(by), keys)


def _two(survey: Survey, bounds: Any, other_bounds: Any) -> tuple[ColumnSteps, ColumnSteps]:
    return (survey.scale("value", bounds, SQUARE_STEPS), survey.scale("other", other_bounds, SQUARE_STEPS))


def _planned(
    survey: Survey,
    function: str,
    scales: tuple[ColumnSteps, ...],
    terms: Sequence[Term],
    weights: Sequence[float],
    by: Any,
    keys: Sequence[Category] | Any,
) -> Moments:
    """Give each sum its noise."""
    cuts = survey.cuts(grouped(by), keys) if by is not None else ()
    noises = survey.allocation.noises([term.reach for term in terms], weights)
    parts = tuple(NoisySums(term, noise, cuts, label_of(term)) for term, noise in zip(terms, noises, strict=True))
    names = " and ".join(dict.fromkeys(survey.name(one) for one in ("value", "other")[: len(scales)]))
    return Moments(f"{function} of {names}", function, parts, scales)


def label_of(term: Term) -> str:
    """Return what a term adds up, for people."""
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
