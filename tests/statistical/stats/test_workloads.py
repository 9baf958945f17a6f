"""The errors and intervals of workloads are the stated ones, and the noise is the one that was charged for.

False alarms: one in a million for each check (evidence.FALSE_ALARM); seeds are fixed. Half the noise must be noticed in
the same check.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tacit
from tacit.measuring.allocation import Allocation
from tacit.measuring.intervals import half_widths
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import Cut
from tacit.stats.workloads import Hierarchy, Marginals, Prefixes, Ranges, Workload
from tacit.stats.workloads.centred_gaussian import CentredGaussian
from tacit.stats.workloads.parts import ColumnPart, Tables
from tacit.stats.workloads.workload_plan import WorkloadEstimates, WorkloadPlan, flatten, plan_workload
from tests.statistical.evidence import FALSE_ALARM, Refuted, accept, binomial_p

CELLS = 32
REPEATS = 300
CUTS = {
    "x": Cut("x", edges=tuple(float(edge) for edge in range(CELLS + 1))),
    "a": Cut("a", values=(0, 1, 2)),
    "b": Cut("b", values=(0, 1, 2, 3)),
    "c": Cut("c", values=(0, 1)),
}
GENERATOR = np.random.default_rng(5)
ROWS = 20_000
DATA = {name: GENERATOR.integers(0, cut.cells, ROWS) for name, cut in CUTS.items()}
EPSILON = 0.2


def plan_of(asked: Workload, delta: float) -> WorkloadPlan:
    budget = tacit.Budget(1.0, delta)
    allocation = Allocation.of(budget, rho=0.002) if delta else Allocation.of(budget, EPSILON)
    return plan_workload(flatten([asked]), CUTS, allocation)


def found(plan: WorkloadPlan, repeats: int = REPEATS, *, seed: int = 1) -> list[WorkloadEstimates]:
    rows = ArrayRows(read_arrays(DATA)[0])
    source = SeededSource(seed)
    exact = {}

    class Kept:
        """The same exact sums again and again."""

        per_unit = 1

        def sums(self, terms: Any, by: Any = (), needs: Any = ()) -> Any:
            if by not in exact:
                exact[by] = rows.sums(terms, by, needs)
            return exact[by]

    return [WorkloadEstimates(plan, plan.measure(Kept(), source)) for _ in range(repeats)]  # type: ignore[arg-type]


def counts(name: str) -> Any:
    return np.bincount(DATA[name], minlength=CUTS[name].cells)


def halved(plan: WorkloadPlan) -> WorkloadPlan:
    """The same plan with half the noise, which still states the whole."""
    parts: list[Any] = []
    for part in plan.parts:
        if isinstance(part, ColumnPart):
            noises = tuple(replace(noise, sensitivity=Fraction(noise.sensitivity) / 2) for noise in part.noises)
            parts.append(replace(part, noises=noises))
        elif isinstance(part, Tables):
            less = [
                (one, replace(noise, deviation=noise.deviation / 2))
                if isinstance(noise, CentredGaussian)
                else (one, replace(noise, sensitivity=Fraction(noise.sensitivity) / 2))
                for one, noise in part.measured
            ]
            parts.append(replace(part, measured=tuple(less)))
    return replace(plan, parts=tuple(parts))


def errors_of(plan: WorkloadPlan, asked: Workload, seed: int = 1) -> Any:
    """The mean squared error of each release over all queries that were asked."""
    means = []
    for one in found(plan, seed=seed):
        if isinstance(asked, Marginals):
            tables = one.tables[0]
            each = []
            for chosen in tables.part.sets:
                names = [tables.names[column] for column in chosen]
                shape = [CUTS[name].cells for name in names]
                flat = np.ravel_multi_index([DATA[name] for name in names], shape)
                true = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
                each.append(float(np.mean((tables.estimate(chosen) - true) ** 2)))
            means.append(np.mean(each))
        else:
            off = np.r_[0.0, np.cumsum(one.columns["x"].estimates - counts("x"))]
            if isinstance(asked, Prefixes):
                means.append(np.mean(off[1:] ** 2))
            else:
                low, high = np.triu_indices(CELLS + 1, 1)
                means.append(np.mean((off[high] - off[low]) ** 2))
    return np.array(means)


def check_error(expected: float, errors: Any) -> None:
    """Compare a mean with what is expected, by the law of large numbers with the variance that was seen."""
    distance = (errors.mean() - expected) / (errors.std(ddof=1) / math.sqrt(len(errors)))
    accept(
        2 * float(stats.norm.sf(abs(distance))), f"a mean squared error of {expected:.4g}, and not {errors.mean():.4g}"
    )


WORKLOADS: list[Workload] = [Ranges("x"), Prefixes("x"), Marginals(("a", "b", "c"), (1, 2))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("asked", WORKLOADS, ids=lambda one: type(one).__name__)
def test_the_error_is_the_one_that_was_expected(asked: Workload, delta: float) -> None:
    plan = plan_of(asked, delta)
    check_error(plan.error, errors_of(plan, asked))
    with pytest.raises(Refuted):
        check_error(plan.error, errors_of(halved(plan), asked))


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_ranges_and_tables_hold_the_truth_as_often_as_they_say(delta: float, level: float) -> None:
    """Coverage is allowed to be off by a hundredth: the quantile of sums of Laplace noises is not exact."""
    true = counts("x")
    hits, trials = 0, 0
    for low, high in ((0, 32), (3, 4), (5, 17), (16, 32)):
        counted = found(plan_of(Ranges("x"), delta), 1)[0].columns["x"].count(low, high)
        width = float(half_widths(counted.variance, counted.kurtosis, level))
        for one in found(plan_of(Ranges("x"), delta), 250):
            hits += abs(one.columns["x"].estimates[low:high].sum() - true[low:high].sum()) <= width
            trials += 1
    near(hits, trials, level)
    table = np.histogram2d(DATA["a"], DATA["b"], bins=[range(4), range(5)])[0]
    hits = trials = 0
    plan = plan_of(Marginals(("a", "b", "c"), (1, 2)), delta)
    shown = found(plan, 1)[0].tables[0].table("a", "b")
    for one in found(plan, 300):
        estimates = one.tables[0].estimate((0, 1))
        hits += bool(np.abs(estimates - table)[0, 0] <= half_widths(shown.variance, shown.kurtosis, level))
        trials += 1
    near(hits, trials, level)


def near(hits: int, trials: int, level: float) -> None:
    p = max(binomial_p(hits, trials, level + shift) for shift in np.linspace(-0.01, 0.01, 9))
    accept(p, f"a coverage of {level}, and not {hits / trials:.3f}")


def test_narrow_intervals_would_be_noticed() -> None:
    with pytest.raises(Refuted):
        near(850, 1000, 0.95)


def test_the_interval_that_is_shown_holds_the_truth_at_least_as_often() -> None:
    asked = Hierarchy("a", {0: "few", 1: "few", 2: "many"})
    hits = trials = 0
    for one in found(plan_of(asked, 0.0), 300):
        table = one.columns["a"].table(one.columns["a"].part.levels[0])
        low, high = table.interval(0.9)
        inside = (low <= [counts("a")[:2].sum(), counts("a")[2]]) & (high >= [counts("a")[:2].sum(), counts("a")[2]])
        hits += int(inside[0])
        trials += 1
    assert binomial_p(hits, trials, 0.9) >= FALSE_ALARM or hits / trials > 0.9


@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 5.0])
@pytest.mark.parametrize("name", ["marginals", "hierarchy"])
def test_intervals_hold_as_often_where_noise_has_few_values(name: str, epsilon: float) -> None:
    """Of each release one number is looked at, in turn, so that trials are independent; 2.6 deviations are allowed."""
    asked: Workload = Marginals(("a", "b", "c"), (1, 2))
    if name == "hierarchy":
        asked = Hierarchy("a", {0: "few", 1: "few", 2: "many"})
    quiet, plan = (
        plan_workload(flatten([asked]), CUTS, Allocation.of(tacit.Budget(1e5), one)) for one in (10_000.0, epsilon)
    )
    true = np.concatenate([table.values.ravel() for _, table in found(quiet, 1)[0].shown])
    held = 0
    for at, one in enumerate(found(plan, 600, seed=2)):
        low, high = one.interval(0.95)
        held += low[at % len(true)] <= true[at % len(true)] <= high[at % len(true)]
    accept(float(stats.binom.cdf(held, 600, 0.95)), "a coverage of at least 0.95")
    assert held > 0.935 * 600


SHAPES = [(), (2,), (5,), (3, 4), (2, 3, 2)]


def quadratic(noise: CentredGaussian, deviation: float, seed: int) -> float:
    """The p-value of the squared length of centred noise, which is chi-squared with prod(m - 1) degrees of freedom."""
    table = np.zeros((600, *noise.shape), dtype=np.int64)
    source = SeededSource(seed)
    lengths = [float(np.sum(noise.centred(noise.release(one, source)) ** 2)) for one in table]
    freedom = math.prod(size - 1 for size in noise.shape) * len(lengths)
    total = sum(lengths) / deviation**2
    return 2 * min(float(stats.chi2.sf(total, freedom)), float(stats.chi2.cdf(total, freedom)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_centred_noise_has_the_stated_variance_in_every_direction(shape: tuple[int, ...]) -> None:
    noise = CentredGaussian(shape, 3.7)
    deviation = math.sqrt(noise.variance)
    accept(quadratic(noise, deviation, 3))
    with pytest.raises(Refuted):
        accept(quadratic(CentredGaussian(shape, 3.7 / 2), deviation, 3))


@pytest.mark.parametrize("shape", [(5,), (3, 4)], ids=str)
def test_nothing_but_the_centred_table_is_released(shape: tuple[int, ...]) -> None:
    """A change that centring takes away leaves the very same release."""
    noise = CentredGaussian(shape, 2.0)
    table = np.arange(math.prod(shape)).reshape(shape) ** 2
    moved = table + 1000 if len(shape) == 1 else table + np.arange(shape[0])[:, None] * 7 + np.arange(shape[1]) * 3
    one, other = (np.asarray(noise.release(each, SeededSource(9))) for each in (table, moved))
    np.testing.assert_array_equal(one, other)
    for axis in range(len(shape)):
        np.testing.assert_array_equal(one.sum(axis=axis), 0)
