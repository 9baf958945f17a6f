"""Errors of the estimators by size and epsilon, and the loss of tacit's choice against the best.

Means: Laplace or Gaussian noise (with a delta of 10^-6), or bounds that are learnt first instead of the public ones.
Medians: chosen by the exponential mechanism, read from a tree, or with noise fitted to the data (for which a row is
replaced, so that the number of rows is public). The rule is to state bounds where they are known, so learnt bounds are
shown beside it and are none of its choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from bench.results import Result
from bench.statistics.data import DELTA, SHAPES, Data, made, rows_of
from bench.statistics.errors import error_of
from tacit import Budget, stats
from tacit.accounting.conversions import rho_for

NEAR: Final = 1.1
"""Tolerance within which two estimators count as equally good."""
REGRET_GOAL: Final = 1.25

Estimators = Mapping[str, Callable[[Data, float], Any]]


def _budget(epsilon: float, **more: Any) -> Budget:
    return Budget(epsilon=4 * epsilon, **more)


MEANS: Final[Estimators] = {
    "Laplace": lambda data, epsilon: stats.mean(
        data.values[:3], bounds=data.bounds, epsilon=epsilon, budget=_budget(epsilon)
    ),
    "Gaussian": lambda data, epsilon: stats.mean(
        data.values[:3], bounds=data.bounds, rho=rho_for(epsilon, DELTA), budget=_budget(epsilon, delta=4 * DELTA)
    ),
    "rule": lambda data, epsilon: stats.mean(
        data.values[:3], bounds=data.bounds, epsilon=epsilon, budget=_budget(epsilon, delta=4 * DELTA)
    ),
}
MEDIANS: Final[Estimators] = {
    "exponential": lambda data, epsilon: _median(data, epsilon, "exponential"),
    "tree": lambda data, epsilon: _median(data, epsilon, "tree"),
    "smooth": lambda data, epsilon: _median(data, epsilon, "smooth", relation="replace-one"),
    "rule": lambda data, epsilon: _median(data, epsilon, "auto"),
}


def _median(data: Data, epsilon: float, method: str, **more: Any) -> Any:
    budget = _budget(epsilon, **more)
    return stats.median(data.values[:3], bounds=data.bounds, method=method, epsilon=epsilon, budget=budget)


def measured(sizes: Sequence[int], epsilons: Sequence[float], repeats: int) -> Iterator[Result]:
    """Yield the errors of all estimators by size and epsilon, and the loss of the rule against the best."""
    for statistic, estimators in (("mean", MEANS), ("median", MEDIANS)):
        regrets = []
        for rows in sizes:
            for epsilon in epsilons:
                found = {name: _error(statistic, rows, epsilon, make, repeats) for name, make in estimators.items()}
                rule = found.pop("rule")
                regrets.append(rule / min(found.values()))
                label = f"{statistic} of {rows:,} rows, epsilon {epsilon:g}"
                yield Result(f"{label}: error of the rule", rule, "spreads")
                for name, one in found.items():
                    yield Result(f"{label}: {name}, over the rule", one / rule, "×")
        near = float(np.mean([regret <= NEAR for regret in regrets]))
        yield Result(f"{statistic}: where the rule is as good as the best", 100 * near, "%")
        typical = float(np.exp(np.mean(np.log(regrets))))
        yield Result(f"{statistic}: error of the rule over the best", typical, "×", goal=REGRET_GOAL)
    yield from _learned(sizes, epsilons, repeats)


def _learned(sizes: Sequence[int], epsilons: Sequence[float], repeats: int) -> Iterator[Result]:
    """Yield the error of a mean with learnt bounds, compared with given bounds that are ten times too wide."""
    for rows in sizes:
        for epsilon in epsilons:
            errors: dict[str, list[float]] = {"learnt": [], "stated": [], "ten times as wide": []}
            for shape in SHAPES:
                data = made(shape, rows)
                wide = (-5 * data.bounds[1], 5 * data.bounds[1])
                for name, bounds in (("learnt", "learn"), ("stated", data.bounds), ("ten times as wide", wide)):
                    errors[name].append(_learned_error(data, bounds, epsilon, max(20, repeats // 4)))
            typical = {name: float(np.exp(np.mean(np.log(found)))) for name, found in errors.items()}
            label = f"mean of {rows:,} rows, epsilon {epsilon:g}: learnt bounds"
            for name in ("stated", "ten times as wide"):
                yield Result(f"{label}, over bounds {name}", typical["learnt"] / typical[name], "×")


def _learned_error(data: Data, bounds: Any, epsilon: float, repeats: int) -> float:
    asked = {"bounds": bounds, "epsilon": epsilon}
    rows = rows_of("mean", data)
    if bounds != "learn":
        plan = stats.mean(data.values[:3], **asked, budget=_budget(epsilon)).plan
        return error_of("mean", data, [plan.value(plan.measure(rows)) for _ in range(repeats)])
    answers = [stats.mean(data.values, **asked, budget=_budget(epsilon)).value for _ in range(repeats)]
    return error_of("mean", data, answers)


def _error(statistic: str, rows: int, epsilon: float, make: Callable[[Data, float], Any], repeats: int) -> float:
    """Return the typical error over data of all shapes."""
    errors = []
    for shape in SHAPES:
        data = made(shape, rows)
        plan, counted = make(data, epsilon).plan, rows_of(statistic, data)
        errors.append(error_of(statistic, data, [plan.value(plan.measure(counted)) for _ in range(repeats)]))
    return float(np.exp(np.mean(np.log(errors))))
