"""Hypothesis tests with p-values that account for the noise: means, tables, correlation, trend.

    test = tacit.stats.t_test(ages, bounds=(0, 120), popmean=40, epsilon=0.5, budget=budget)
    test.pvalue, test.statistic, test.estimate, test.interval(0.95)

If the null hypothesis is true, at most about one of twenty releases has a p-value of 0.05 or less. The interval is that
of the estimate, and covers sampling error as well as noise: it is about the population, not about the data. Those of
correlations and slopes hold as often as stated for nearly bivariate normal values.
`null_distributions` computes p-values and intervals from the noisy sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
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
"""The least number of steps of half the width of the bounds, so that sums of cubes fit into 63 bits."""
CELLS_MAX: Final = 4_000
"""The greatest number of cells of a table, so that enough draws of it fit into memory."""

MEAN_WEIGHTS: Final = (0.3, 1.0, 0.5, 0.5)
DIFFERENCE_WEIGHTS: Final = (0.5, 1.0, 0.4, 0.5)
RELATION_WEIGHTS: Final = (0.5, 0.7, 0.7, 1.0, 0.6, 0.6, 0.15, 0.15)
"""The weights of the sums in the budget: variances may have more noise than what is tested."""
CUBES_EPSILON: Final = 5.0
"""Below this epsilon sums of cubes weigh in proportion to it: with much noise they carry no information."""


class TestAnswer(Answer):
    """The answer of a test: `value` is the p-value, `interval` is that of `estimate`."""

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
        """The probability of data at least as extreme if the null hypothesis is true, noise included."""
        return self._outcome.pvalue

    @property
    def statistic(self) -> float:
        """The test statistic in standard deviations of sampling error and noise; for tables, a sum of their squares."""
        return self._outcome.statistic

    @property
    def estimate(self) -> float | None:
        """The mean, the difference of means, the correlation or the slope; None for tables."""
        return self._outcome.estimate

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval | None:
        """Return the interval that holds the estimated number of the population with probability `level`.

        Unlike the intervals of other statistics it covers sampling error as well as the noise. For correlations and
        slopes the probability is that for nearly bivariate normal values, and lower for skewed ones or where the spread
        of one column depends on the other. None for tables, which have no estimate.
        """
        return super().interval(level)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The test as one row: its p-value as `value`, the statistic, the estimate, and the ends of its interval."""
        low, high = self.interval() or (None, None)
        found = {"value": self.pvalue, "statistic": self.statistic, "estimate": self.estimate}
        return [{**found, "estimate_low": low, "estimate_high": high}]

    def plot(self, path: Path | str | None = None) -> Plot:
        """Return the estimate with its interval as a plot; for tables, the p-value. `path` writes it to a file."""
        (row,) = self.rows
        seen = self.pvalue if self.estimate is None else self.estimate
        point = {"value": seen, "low": row["estimate_low"], "high": row["estimate_high"]}
        return plot_of(self.label, (), [point], self.card).saved(path)


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
    """Test whether a mean is `popmean`, or whether two groups have the same mean (Welch: variances may differ).

    Groups are the two values of the column `by`, which `keys` lists; or the arrays `values` and `others`, which are
    of different people. The estimate is the mean, or the mean of the first group less that of the second.
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
    return _release_test(inputs, DifferenceTest(f"t-test of {name} by {group}", claim, parts, _present(cut), scale))


def chi_squared(
    values: Any,
    others: Any = None,
    *,
    keys: Any = None,
    other_keys: Any = None,
    expected: Sequence[float] | Mapping[Any, float] | None = None,
    **options: Unpack[CommonOptions],
) -> TestAnswer:
    """Test whether two columns are independent, or whether the values of one have `expected` or equal shares."""
    if others is not None and expected is not None:
        raise InvalidInput("expected= is for one column; leave others= or expected= out", name="expected")
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
        raise TooWide(f"a table of {cells:,} cells is too large for a test", accepted=f"at most {CELLS_MAX:,}")
    shares = None if others is not None else _shares(cuts[0], expected)
    parts = _parts(inputs, [Term()], [1.0], cuts)
    return _release_test(inputs, TableTest(f"chi-squared test of {label}", claim, parts, _present(*cuts), shares))


def correlation_test(
    values: Any, others: Any, *, bounds: Any = None, other_bounds: Any = None, **options: Unpack[CommonOptions]
) -> TestAnswer:
    """Test whether two columns are independent, by Pearson's correlation, over the rows that have both values.

    The p-value holds for values of any shape, the interval of the correlation for nearly bivariate normal ones.
    """
    return _relation_test("correlation", values, others, bounds, other_bounds, options)


def trend_test(
    values: Any, times: Any, *, bounds: Any = None, time_bounds: Any = None, **options: Unpack[CommonOptions]
) -> TestAnswer:
    """Test whether values are independent of times, by the slope of the straight line through them.

    The p-value holds for values of any shape, the interval of the slope for nearly bivariate normal ones.
    """
    return _relation_test("trend", values, times, bounds, time_bounds, options)


def _relation_test(
    function: str, values: Any, others: Any, bounds: Any, other_bounds: Any, options: CommonOptions
) -> TestAnswer:
    kinds = {"value": kind_of_bounds(bounds), "other": kind_of_bounds(other_bounds)}
    inputs = StatisticInputs({"value": values, "other": others}, options, kinds)
    scales = _scale(inputs, "value", bounds), _scale(inputs, "other", other_bounds)
    parts = _parts(inputs, [*second_moments(scales), *map(_cube, scales)], RELATION_WEIGHTS)
    one, other = inputs.name("value"), inputs.name("other")
    needs = (scales[0].column, scales[1].column)
    label, claim = f"{function} test of {one} and {other}", f"{one} and {other} are independent"
    return _release_test(inputs, RelationTest(label, claim, parts, needs, function, scales))


def _mean_test(values: Any, bounds: Any, popmean: object, options: CommonOptions) -> TestAnswer:
    inputs = StatisticInputs({"value": values}, options, {"value": kind_of_bounds(bounds)})
    around = _scale(inputs, "value", bounds)
    stated = exact("popmean", popmean)
    if not around.lower <= stated <= around.upper:
        raise OutOfRange(
            "popmean must lie within the bounds, as every mean of clamped values does", name="popmean", value=popmean
        )
    scale = replace(around, shift=round(stated / around.step))
    terms = [Term(), Term((scale,)), Term((scale, scale)), _cube(scale)]
    name = inputs.name("value")
    return _release_test(
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
    """Return two arrays as one with a column of groups and its keys, and the options without `kind`."""
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
            raise WrongKind(f"values must be numeric, and are {one.kind} values")
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
            raise InvalidInput("expected must have a share for each key, and for nothing else", name="expected")
        expected = [expected[key] for key in cut.values]
    shares = [exact("expected", one) for one in expected]
    if len(shares) != cut.cells or any(one <= 0 for one in shares):
        raise OutOfRange("expected must have a share above 0 for each key", name="expected", value=expected)
    return tuple(float(one / sum(shares)) for one in shares)


def _scale(inputs: StatisticInputs, column: str, bounds: Any) -> ColumnSteps:
    """Return a column in steps; the hypothesis must be fixed before anything is learnt from the data."""
    if isinstance(bounds, str):
        raise InvalidInput(
            "a test is about values within stated bounds; learn them first: tacit.stats.bounds", name="bounds"
        )
    return inputs.scale(column, bounds, STEPS)


def _cube(scale: ColumnSteps) -> Term:
    return Term((scale, scale, scale))


def _present(*cuts: Cut) -> tuple[str, ...]:
    """Return the columns in which a row needs a value to be in a cell."""
    return tuple(cut.column for cut in cuts if None not in cut.values)


def _parts(
    inputs: StatisticInputs, terms: Sequence[Term], weights: Sequence[float], cuts: tuple[Cut, ...] = ()
) -> tuple[NoisySums, ...]:
    """Return the sums with their noise."""
    if inputs.per_unit != 1:
        raise OutOfRange(
            "the rows of one unit are not independent, as a p-value requires; "
            "test one row of each unit: rows_per_unit=1",
            name="rows_per_unit",
            value=inputs.per_unit,
        )
    of_cubes = min(1.0, float(inputs.allocation.choice_epsilon) / CUBES_EPSILON)
    shared = [one * of_cubes if len(term.factors) == 3 else one for one, term in zip(weights, terms, strict=True)]
    noises = inputs.allocation.noises([term.reach for term in terms], shared)
    return tuple(NoisySums(term, noise, cuts, label_of(term)) for term, noise in zip(terms, noises, strict=True))


def _release_test(inputs: StatisticInputs, plan: Hypothesis) -> TestAnswer:
    return TestAnswer.of(inputs.release(plan))
