"""Data of four shapes, the statistics of the benchmark, and their values without noise.

All numbers are clamped to public bounds beforehand, so that all that is measured is noise and what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit import Budget, stats
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import Partitioning, Term
from tacit.stats.statistic import StatisticPlan

SHAPES: Final = ("normal", "skewed", "heavy-tailed", "whole numbers")
BINS: Final = 20
DELTA: Final = 1e-6


@dataclass(frozen=True)
class Data:
    """Two columns with public bounds; the second one depends on the first."""

    shape: str
    values: NDArray[Any]
    others: NDArray[Any]
    bounds: tuple[int, int]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def spread(self) -> float:
        """Standard deviation of the values, the unit of errors."""
        return float(self.values.std())


def made(shape: str, rows: int) -> Data:
    """Return data of a shape, the same in every run."""
    generator = np.random.default_rng([SHAPES.index(shape), rows])
    values, bounds = _drawn(shape, rows, generator)
    noise = generator.normal(0, 0.15 * (bounds[1] - bounds[0]), rows)
    others = np.clip(0.5 * values + 0.2 * bounds[1] + noise, *bounds)
    return Data(shape, values, np.rint(others).astype(np.int64) if values.dtype == np.int64 else others, bounds)


def _drawn(shape: str, rows: int, generator: np.random.Generator) -> tuple[NDArray[Any], tuple[int, int]]:
    match shape:
        case "normal":
            return np.clip(generator.normal(45, 15, rows), 0, 100), (0, 100)
        case "skewed":
            return np.clip(generator.lognormal(3, 0.8, rows), 0, 200), (0, 200)
        case "heavy-tailed":
            return np.clip(20 * (1 + generator.pareto(1.5, rows)), 0, 1_000), (0, 1_000)
        case _:
            return np.clip(generator.poisson(generator.gamma(4, 10, rows)), 0, 120).astype(np.int64), (0, 120)


Ask = Callable[..., Any]

ASKED: Final[Mapping[str, Callable[[Data, Mapping[str, Any]], Any]]] = {
    "count": lambda data, how: stats.count(data.values, **how),
    "sum": lambda data, how: stats.sum(data.values, bounds=data.bounds, **how),
    "mean": lambda data, how: stats.mean(data.values, bounds=data.bounds, **how),
    "variance": lambda data, how: stats.variance(data.values, bounds=data.bounds, **how),
    "standard deviation": lambda data, how: stats.std(data.values, bounds=data.bounds, **how),
    "median": lambda data, how: stats.median(data.values, bounds=data.bounds, **how),
    "quantile 0.9": lambda data, how: stats.quantile(data.values, 0.9, bounds=data.bounds, **how),
    "histogram": lambda data, how: stats.histogram(data.values, edges=_edges(data), **how),
    "covariance": lambda data, how: stats.covariance(data.values, data.others, **_two(data), **how),
    "correlation": lambda data, how: stats.correlation(data.values, data.others, **_two(data), **how),
    "trend": lambda data, how: stats.trend(
        data.others, data.values, bounds=data.bounds, time_bounds=data.bounds, **how
    ),
}

TRUE: Final[Mapping[str, Callable[[Data], Any]]] = {
    "count": lambda data: data.rows,
    "sum": lambda data: data.values.sum(),
    "mean": lambda data: data.values.mean(),
    "variance": lambda data: data.values.var(ddof=1),
    "standard deviation": lambda data: data.values.std(ddof=1),
    "median": lambda data: np.quantile(data.values, 0.5, method="inverted_cdf"),
    "quantile 0.9": lambda data: np.quantile(data.values, 0.9, method="inverted_cdf"),
    "histogram": lambda data: np.histogram(data.values, _edges(data))[0],
    "covariance": lambda data: np.cov(data.values, data.others)[0, 1],
    "correlation": lambda data: np.corrcoef(data.values, data.others)[0, 1],
    "trend": lambda data: np.cov(data.values, data.others)[0, 1] / data.values.var(ddof=1),
}


def _edges(data: Data) -> list[float]:
    return [float(edge) for edge in np.linspace(*data.bounds, BINS + 1)]


def _two(data: Data) -> dict[str, Any]:
    return {"bounds": data.bounds, "other_bounds": data.bounds}


class Added(ArrayRows):
    """Rows whose sums are cached, because repetitions differ in their noise only."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        super().__init__(read_arrays(columns)[0])
        self._known: dict[str, NDArray[np.int64]] = {}

    def sums(
        self, terms: Sequence[Term], by: Sequence[Partitioning] = (), needs: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Return each term added up in each cell."""
        key = f"{terms!r} {by!r} {needs!r}"
        if key not in self._known:
            self._known[key] = super().sums(terms, by, needs)
        return self._known[key].copy()


def planned(statistic: str, data: Data, epsilon: float, *, delta: float = 0.0, **more: Any) -> StatisticPlan:
    """Return the plan that is made for a statistic of such data; it depends on public facts alone."""
    budget = Budget(epsilon=2 * epsilon, delta=delta) if delta else Budget(epsilon=2 * epsilon)
    few = Data(data.shape, data.values[:3], data.others[:3], data.bounds)
    plan: StatisticPlan = ASKED[statistic](few, {"epsilon": epsilon, "budget": budget, **more}).plan
    return plan


def rows_of(statistic: str, data: Data) -> Added:
    """Return rows under the names that plans of arrays use."""
    if statistic == "trend":
        return Added({"value": data.others, "other": data.values})
    return Added({"value": data.values, "other": data.others})
