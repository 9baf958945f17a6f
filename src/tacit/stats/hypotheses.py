"""Hypothesis tests whose p-values count the noise: means, tables, correlation, trend.

    test = tacit.stats.t_test(ages, bounds=(0, 120), popmean=40, epsilon=0.5, budget=budget)
    test.pvalue, test.statistic, test.estimate, test.interval(0.95)

If the null hypothesis is true, a p-value of at most 0.05 comes up in about one of twenty releases, or more seldom. The
interval is that of the estimate, and counts chance as well as noise: it is about the population, not about the data.
What is computed of the noisy sums stands in `null_distributions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Unpack

import numpy as np

from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import InvalidInput, OutOfRange, TooWide, WrongKind
from tacit.privacy.numbers import DEFAULT_LEVEL, exact
from tacit.privacy.tables import Kind
from tacit.stats.answer import Answer
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.moments import label_of, second_moments, square
from tacit.stats.null_distributions import DifferenceTest, Hypothesis, MeanTest, Outcome, RelationTest, TableTest
from tacit.stats.plots import Plot, plot_of
from tacit.stats.preparation import CommonOptions, StatisticInputs, TableColumn
from tacit.stats.rows import ColumnSteps, Cut, Term
from tacit.stats.stated_kinds import declared_kind, kind_of_bounds, kind_of_keys
from tacit.stats.statistic import NoisySums

STEPS: Final = 2**11
"""Into how many steps half the width of the bounds is divided at least: sums of cubes fit into 63 bits."""
CELLS_MAX: Final = 4_000
"""How many cells a table may have, so that it can be drawn often enough."""

MEAN_WEIGHTS: Final = (0.3, 1.0, 0.5, 0.5)
DIFFERENCE_WEIGHTS: Final = (0.5, 1.0, 0.4, 0.5)
RELATION_WEIGHTS: Final = (0.5, 0.7, 0.7, 1.0, 0.6, 0.6, 0.15, 0.15)
"""How the budget is divided: variances need not be known as well as what is tested."""
CUBES_EPSILON: Final = 5.0
"""Below this epsilon sums of cubes weigh in proportion to it: where noise is large, nothing can be read off them."""


class TestAnswer(Answer):
    """What was released of a test: `value` is the p-value, `interval` is that of `estimate`."""

    @cached_property
    def _outcome(self) -> Outcome:
        plan = self.plan
        assert isinstance(plan, Hypothesis)
        return plan.outcome(self.noisy)

    @cached_property
    def value(self) -> float:
        """The p-value."""
        return self._outcome.pvalue

    @property
    def pvalue(self) -> float:
        """How often data like these, or more extreme, come up if the null hypothesis is true, noise included."""
        return self._outcome.pvalue

    @property
    def statistic(self) -> float:
        """What was seen, in standard deviations of chance and noise together; for tables, the sum of their squares."""
        return self._outcome.statistic

    @property
    def estimate(self) -> float | None:
        """The mean, the difference of means, the correlation or the slope; None for tables."""
        return self._outcome.estimate

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval | None:
        """Return where the estimated number lies in the population, with probability `level`.

        Unlike the intervals of other statistics it covers the chance by which people came to be in the data as well as
        the noise. None for tables, of which no number is estimated.
        """
        return super().interval(level)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The test as one row: its p-value as `value`, the statistic, the estimate, and the ends of its interval."""
        low, high = self.interval() or (None, None)
        found = {"value": self.pvalue, "statistic": self.statistic, "estimate": self.estimate}
        return [{**found, "estimate_low": low, "estimate_high": high}]

    def plot(self) -> Plot:
        """Return the estimate with its interval as a plot; for tables, the p-value."""
        (row,) = self.rows
        seen = self.pvalue if self.estimate is None else self.estimate
        point = {"value": seen, "low": row["estimate_low"], "high": row["estimate_high"]}
        return plot_of(self.label, (), [point], self.card)


def t_test(
    values: Any,
    others: Any = None,
    *,
    bounds: Any = None,
    popmean: float | None = None,
    by: Any = None,
    keys: Any = None,
    **options: Unpack[CommonOptions],
) -> TestAnswer:
    """Whether a mean is `popmean`, or whether two groups have the same mean (Welch: variances may differ).

    Groups are the two values of the column `by`, which `keys` lists; or the arrays `values` and `others`, which are
    about different people. The estimate is the mean, or the mean of the first group less that of the second.
    """
    if (popmean is None) == (by is None and others is None):
        raise InvalidInput(
            "a t-test compares one mean with popmean=, or the means of two groups: by= with two keys, or a second array"
        )
    if by is None and popmean is not None:
        return _mean_test(values, bounds, popmean, options)
    if others is not None:
        values, by, keys, options = _stacked(values, others, by, keys, options)
    inputs = StatisticInputs(
        {"value": values, "group": by}, options, {"value": kind_of_bounds(bounds), "group": kind_of_keys(keys)}
    )
    scale = _scale(inputs, "value", bounds)
    cut = inputs.cut("group", keys)
    if cut.cells != 2:
        raise InvalidInput(f"a t-test compares two groups, not {cut.cells}; list two keys", name="keys")
    terms = [Term(), Term((scale,)), square(scale), _cube(scale)]
    parts = _parts(inputs, terms, DIFFERENCE_WEIGHTS, (cut,))
    one, other = cut.values
    name, group = inputs.name("value"), inputs.name("group")
    claim = f"the mean of {name} is the same for {one} and {other}"
    return _answered(inputs, DifferenceTest(f"t-test of {name} by {group}", claim, parts, _present(cut), scale))


def chi_squared(
    values: Any,
    others: Any = None,
    *,
    keys: Any = None,
    other_keys: Any = None,
    expected: Sequence[float] | Mapping[Any, float] | None = None,
    **options: Unpack[CommonOptions],
) -> TestAnswer:
    """Whether two columns are independent; or whether one column's values have the shares `expected`, or equal ones."""
    if others is not None and expected is not None:
        raise InvalidInput("shares are expected of one column; leave others= or expected= out", name="expected")
    kinds = {"value": kind_of_keys(keys), "other": kind_of_keys(other_keys)}
    inputs = StatisticInputs({"value": values, "other": others}, options, kinds)
    cuts: tuple[Cut, ...] = (inputs.cut("value", keys),)
    name = inputs.name("value")
    if others is not None:
        cuts = (*cuts, inputs.cut("other", other_keys, what="other_keys"))
        label, claim = f"{name} and {inputs.name('other')}", f"{name} and {inputs.name('other')} are independent"
    else:
        label, claim = name, f"the values of {name} have the {'same' if expected is None else 'expected'} shares"
    cells = int(np.prod([cut.cells for cut in cuts]))
    if any(cut.cells < 2 for cut in cuts):
        raise InvalidInput("a chi-squared test compares at least two keys of each column", name="keys")
    if cells > CELLS_MAX:
        raise TooWide(f"a table of {cells:,} cells cannot be drawn often enough", accepted=f"at most {CELLS_MAX:,}")
    shares = None if others is not None else _shares(cuts[0], expected)
    parts = _parts(inputs, [Term()], [1.0], cuts)
    return _answered(inputs, TableTest(f"chi-squared test of {label}", claim, parts, _present(*cuts), shares))


def correlation_test(
    values: Any, others: Any, *, bounds: Any = None, other_bounds: Any = None, **options: Unpack[CommonOptions]
) -> TestAnswer:
    """Whether two columns are independent, by Pearson's correlation, over the rows that have both values."""
    kinds = {"value": kind_of_bounds(bounds), "other": kind_of_bounds(other_bounds)}
    inputs = StatisticInputs({"value": values, "other": others}, options, kinds)
    scales = _scale(inputs, "value", bounds), _scale(inputs, "other", other_bounds)
    return _relation("correlation", inputs, scales)


def trend_test(
    values: Any, times: Any, *, bounds: Any = None, time_bounds: Any = None, **options: Unpack[CommonOptions]
) -> TestAnswer:
    """Whether values are independent of times, by the slope of the straight line through them."""
    kinds = {"value": kind_of_bounds(bounds), "other": kind_of_bounds(time_bounds)}
    inputs = StatisticInputs({"value": values, "other": times}, options, kinds)
    scales = _scale(inputs, "value", bounds), _scale(inputs, "other", time_bounds)
    return _relation("trend", inputs, scales)


def _relation(function: str, inputs: StatisticInputs, scales: tuple[ColumnSteps, ColumnSteps]) -> TestAnswer:
    parts = _parts(inputs, [*second_moments(scales), *map(_cube, scales)], RELATION_WEIGHTS)
    one, other = inputs.name("value"), inputs.name("other")
    needs = (scales[0].column, scales[1].column)
    label, claim = f"{function} test of {one} and {other}", f"{one} and {other} are independent"
    return _answered(inputs, RelationTest(label, claim, parts, needs, function, scales))


def _mean_test(values: Any, bounds: Any, popmean: object, options: CommonOptions) -> TestAnswer:
    inputs = StatisticInputs({"value": values}, options, {"value": kind_of_bounds(bounds)})
    around = _scale(inputs, "value", bounds)
    stated = exact("popmean", popmean)
    if not around.lower <= stated <= around.upper:
        raise OutOfRange("no mean of clamped values lies beyond their bounds", name="popmean", value=popmean)
    scale = replace(around, shift=round(stated / around.step))
    terms = [Term(), Term((scale,)), Term((scale, scale)), _cube(scale)]
    name = inputs.name("value")
    return _answered(
        inputs,
        MeanTest(
            f"t-test of {name}",
            f"the mean of {name} is {float(stated):g}",
            _parts(inputs, terms, MEAN_WEIGHTS),
            (scale.column,),
            scale,
            float(stated),
        ),
    )


def _stacked(
    values: Any, others: Any, by: Any, keys: Any, options: CommonOptions
) -> tuple[Any, Any, list[str], CommonOptions]:
    """Return two arrays as one with a column of groups, and what is asked without a kind that is then settled."""
    if by is not None or keys is not None:
        raise InvalidInput("groups are two arrays, or the two values of by=; leave one of them out", name="by")
    if isinstance(values, TableColumn) or isinstance(others, TableColumn) or "unit" in options:
        raise InvalidInput(
            "two arrays are rows of different people; with units, give one column and by=", name="others"
        )
    stated = options.get("kind")
    kind = None if stated is None else declared_kind(stated)
    both = [ArrayColumn("values", one, kind, default=Kind.REAL) for one in (values, others)]
    for one in both:
        if one.kind not in (Kind.INTEGER, Kind.REAL, Kind.BOOLEAN):
            raise WrongKind(f"values are computed with as numbers, and are {one.kind} values")
    numbers = np.concatenate([np.where(one.missing, np.nan, one.values.astype(np.float64)) for one in both])
    groups = np.repeat(["first", "second"], [len(one) for one in both])
    left: Any = {name: one for name, one in options.items() if name != "kind"}
    return numbers, groups, ["first", "second"], left


def _shares(cut: Cut, expected: Sequence[float] | Mapping[Any, float] | None) -> tuple[float, ...]:
    """Return the expected shares in the order of the keys."""
    if expected is None:
        return (1 / cut.cells,) * cut.cells
    if isinstance(expected, Mapping):
        if set(expected) != set(cut.values):
            raise InvalidInput("a share is expected for each key, and for nothing else", name="expected")
        expected = [expected[key] for key in cut.values]
    shares = [exact("expected", one) for one in expected]
    if len(shares) != cut.cells or any(one <= 0 for one in shares):
        raise OutOfRange("a share above 0 is expected for each key", name="expected", value=expected)
    return tuple(float(one / sum(shares)) for one in shares)


def _scale(inputs: StatisticInputs, column: str, bounds: Any) -> ColumnSteps:
    """Return a column as whole numbers; what is tested must be known before anything is learnt of the data."""
    if isinstance(bounds, str):
        raise InvalidInput(
            "a test is about values within stated bounds; learn them first: tacit.stats.bounds", name="bounds"
        )
    return inputs.scale(column, bounds, STEPS)


def _cube(scale: ColumnSteps) -> Term:
    return Term((scale, scale, scale))


def _present(*cuts: Cut) -> tuple[str, ...]:
    """Return the columns without a value in which a row is in no cell."""
    return tuple(cut.column for cut in cuts if None not in cut.values)


def _parts(
    inputs: StatisticInputs, terms: Sequence[Term], weights: Sequence[float], cuts: tuple[Cut, ...] = ()
) -> tuple[NoisySums, ...]:
    """Give each sum its noise."""
    if inputs.per_unit != 1:
        raise OutOfRange(
            "the rows of one unit are not independent of one another, which a p-value takes rows to be; "
            "test one row of each: rows_per_unit=1",
            name="rows_per_unit",
            value=inputs.per_unit,
        )
    of_cubes = min(1.0, float(inputs.allocation.choice_epsilon) / CUBES_EPSILON)
    shared = [one * of_cubes if len(term.factors) == 3 else one for one, term in zip(weights, terms, strict=True)]
    noises = inputs.allocation.noises([term.reach for term in terms], shared)
    return tuple(NoisySums(term, noise, cuts, label_of(term)) for term, noise in zip(terms, noises, strict=True))


def _answered(inputs: StatisticInputs, plan: Hypothesis) -> TestAnswer:
    return TestAnswer.of(inputs.release(plan))
