"""Level and power of the hypothesis tests at 5 %, compared with scipy.

Values are normal, lognormal, or rare events (5 %), in bounds of 0 to 100; groups are equal and unequal. The goal allows
for chance: 5 % plus 2.33 standard deviations of what was counted. scipy's tests see the data without noise, at no
privacy, and are shown at the largest epsilon alone; where they reject true hypotheses too often, so would any test that
takes means for normal.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats as classical

from bench.results import Result
from tacit import Budget, stats
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.null_distributions import Hypothesis

LEVEL: Final = 0.05
DRAWS: Final = 199
EPSILONS: Final = (0.1, 1.0, 10.0)
SIZES: Final = (10, 30, 100)
MEANS: Final = {"normal": 40.0, "lognormal": 8.232, "rare": 5.0}

Columns = dict[str, NDArray[Any]]


def _drawn(shape: str, generator: np.random.Generator, rows: int) -> NDArray[np.float64]:
    match shape:
        case "normal":
            return np.asarray(np.clip(generator.normal(40, 12, rows), 0, 100))
        case "lognormal":
            return np.asarray(np.clip(5 * generator.lognormal(0, 1, rows), 0, 100))
    return np.asarray(np.where(generator.random(rows) < 0.05, 100.0, 0.0))


@dataclass(frozen=True)
class Case:
    """A test, its data by shape and size, and scipy's p-value for them."""

    ask: Callable[[str, dict[str, Any]], Any]
    draw: Callable[[str, np.random.Generator, int, float], Columns]
    classical: Callable[[str, Columns], float]
    effect: float
    """The effect for the power, at 300 rows of the normal shape."""


def _groups(shape: str, generator: np.random.Generator, rows: int, effect: float) -> Columns:
    many = 5 * rows
    values = np.concatenate([_drawn(shape, generator, rows) + effect, _drawn(shape, generator, many)])
    return {"value": values, "group": np.repeat(["a", "b"], [rows, many])}


def _pair(shape: str, generator: np.random.Generator, rows: int, effect: float) -> Columns:
    value, other = _drawn(shape, generator, rows), _drawn(shape, generator, rows)
    return {"value": value, "other": np.clip(other + effect * (value - value.mean()), 0, 100)}


def _labels(shape: str, generator: np.random.Generator, rows: int, effect: float) -> Columns:
    shares = {"normal": (0.5, 0.5), "lognormal": (0.7, 0.2, 0.1), "rare": (0.95, 0.05)}[shape]
    one, other = (generator.choice(len(shares), rows, p=shares) for _ in range(2))
    return {"value": one, "other": np.where(generator.random(rows) < effect, one, other)}


def _table(shape: str, columns: Columns) -> float:
    counts = np.histogram2d(columns["value"], columns["other"], bins=len(set(columns["value"])))[0]
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    return float(classical.chi2_contingency(counts, correction=False).pvalue) if min(counts.shape) > 1 else 1.0


def _keys(shape: str) -> list[int]:
    return list(range(3 if shape == "lognormal" else 2))


CASES: Final = {
    "one mean": Case(
        lambda shape, how: stats.t_test([1.0, 2.0], bounds=(0, 100), popmean=MEANS[shape], **how),
        lambda shape, generator, rows, effect: {"value": _drawn(shape, generator, rows) + effect},
        lambda shape, columns: float(classical.ttest_1samp(columns["value"], MEANS[shape]).pvalue),
        2.3,
    ),
    "two means": Case(
        lambda shape, how: stats.t_test([1.0, 2.0], bounds=(0, 100), by=["a", "b"], keys=["a", "b"], **how),
        _groups,
        lambda shape, columns: float(
            classical.ttest_ind(*(columns["value"][columns["group"] == one] for one in "ab"), equal_var=False).pvalue
        ),
        2.5,
    ),
    "correlation": Case(
        lambda shape, how: stats.correlation_test(
            [1.0, 2.0], [1.0, 2.0], bounds=(0, 100), other_bounds=(0, 100), **how
        ),
        _pair,
        lambda shape, columns: float(classical.pearsonr(columns["value"], columns["other"]).pvalue),
        0.2,
    ),
    "trend": Case(
        lambda shape, how: stats.trend_test([1.0, 2.0], [1.0, 2.0], bounds=(0, 100), time_bounds=(0, 100), **how),
        _pair,
        lambda shape, columns: float(classical.pearsonr(columns["other"], columns["value"]).pvalue),
        0.2,
    ),
    "table": Case(
        lambda shape, how: stats.chi_squared([0, 1], [0, 1], keys=_keys(shape), other_keys=_keys(shape), **how),
        _labels,
        _table,
        0.2,
    ),
}


def measured(repeats: int) -> Iterator[Result]:
    """Yield for each test and epsilon the rejection rate without an effect, and the power at 300 rows."""
    for place, (name, case) in enumerate(CASES.items()):
        for epsilon in EPSILONS:
            settings = [(shape, rows) for shape in MEANS for rows in SIZES]
            found = {one: _rejected(case, *one, epsilon, repeats, seed=place) for one in settings}
            peers: dict[str, float | None] = {}
            if epsilon == EPSILONS[-1]:
                peers = {"scipy, no noise": _share([_classical(case, *one, repeats, place) for one in settings])}
            trials = repeats * len(settings)
            goal = 100 * (LEVEL + 2.33 * math.sqrt(LEVEL * (1 - LEVEL) / trials))
            label = f"{name}, epsilon {epsilon:g}: true hypotheses rejected at 5 %"
            yield Result(label, _share(list(found.values())), "%", peers, goal=goal)
            worst = max(found, key=lambda one: found[one])
            yield Result(f"{label}, worst ({worst[0]}, {worst[1]} rows)", 100 * found[worst], "%")
        power = 100 * _rejected(case, "normal", 300, EPSILONS[-1], 3 * repeats, seed=place, effect=case.effect)
        theirs = 100 * _classical(case, "normal", 300, 3 * repeats, place, case.effect)
        label = f"{name}, epsilon {EPSILONS[-1]:g}, 300 rows: effects found"
        yield Result(label, power, "%", {"scipy, no noise": theirs})


def _share(rates: Sequence[float]) -> float:
    return 100 * float(np.mean(rates))


def _rejected(case: Case, shape: str, rows: int, epsilon: float, repeats: int, seed: int, effect: float = 0.0) -> float:
    """Return the rejection rate of a test over data sets, each with fresh noise."""
    plan = case.ask(shape, {"epsilon": epsilon, "budget": Budget(epsilon=2 * epsilon)}).plan
    assert isinstance(plan, Hypothesis)
    plan, generator = replace(plan, draws=DRAWS), np.random.default_rng([seed, rows])
    found = 0
    for repeat in range(repeats):
        columns = read_arrays(case.draw(shape, generator, rows, effect))[0]
        noise = SeededSource(hash((seed, rows, len(shape), round(10 * epsilon), repeat)) % 2**62)
        found += plan.outcome(plan.measure(ArrayRows(columns), noise)).pvalue <= LEVEL
    return found / repeats


def _classical(case: Case, shape: str, rows: int, repeats: int, seed: int, effect: float = 0.0) -> float:
    generator = np.random.default_rng([seed, rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns
        found = [case.classical(shape, case.draw(shape, generator, rows, effect)) for _ in range(repeats)]
    return float(np.mean([one <= LEVEL for one in found]))
