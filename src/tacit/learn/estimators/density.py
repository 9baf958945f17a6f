"""Kernel density estimation from noisy counts on a grid.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): a row is counted in one cell of a
public grid, so a unit moves all counts together by at most `rows_per_unit` in L1 and in L2 (Dwork, McSherry, Nissim,
Smith 2006 for Laplace noise; Bun, Steinke 2016 for Gaussian noise). Density and samples are computed from the counts.

Counts that are within the noise of 0 are taken as 0: else the many empty cells of a grid would hold much of the mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tacit.learn.estimators.base import PrivateEstimator
from tacit.learn.estimators.documents import require_fitted
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, SumsPlan, deviation, require_numbers
from tacit.learn.estimators.noises import least_noises
from tacit.measuring.allocation import Allocation
from tacit.measuring.moments import SQUARE_STEPS
from tacit.privacy.errors import InvalidInput, TooWide
from tacit.privacy.numbers import positive, whole
from tacit.stats.cells import Partition
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import Term
from tacit.stats.statistic import Noisy, NoisySums

GRID_CELLS: Final = 1024
"""The number of cells of a grid, about, where `bins` does not state it."""

GRID_MAX: Final = 65_536
CHUNK: Final = 2**20
"""Distances of rows to cells in a column that are in memory at once, about."""

CLEAR: Final = 2.0
"""Counts below this many standard deviations of their noise are taken as 0."""


@dataclass(frozen=True)
class GridCounts(SumsPlan):
    """Noisy counts of the cells of a grid, and the bandwidth with which they are smoothed."""

    grid: tuple[Partition, ...]
    bandwidth: float | None

    @classmethod
    def of(
        cls, features: Features, grid: tuple[Partition, ...], allocation: Allocation, bandwidth: float | None
    ) -> GridCounts:
        """Return the counts with their noise."""
        (noise,) = least_noises(allocation, [1])
        part = NoisySums(Term(), noise, tuple(one.cut for one in grid), "rows in each cell of the grid")
        return cls(f"density of {', '.join(features.names)}", features, (part,), grid, bandwidth)

    def value(self, noisy: Noisy) -> dict[str, Any]:
        counts = np.asarray(noisy[0], dtype=np.float64)
        clear = np.where(counts > CLEAR * deviation(self.parts[0].noise), counts, 0.0)
        if not clear.any():
            clear = np.ones_like(counts)  # nothing stands out: the uniform density
        centres = [(one.numbers[:-1] + one.numbers[1:]) / 2 for one in self.grid]
        places = np.argwhere(clear > 0)
        weights = clear[clear > 0] / clear.sum()
        points = np.stack([axis[places[:, index]] for index, axis in enumerate(centres)], axis=1)
        return {
            "centres_": points,
            "weights_": weights,
            "bandwidth_": self._bandwidths(points, weights, float(clear.sum())),
        }

    def _bandwidths(self, points: Floats, weights: Floats, rows: float) -> Floats:
        """Return the bandwidth of each column: the stated one, or Scott's rule (1992); at least half a cell."""
        widths = np.array([one.width for one in self.grid])
        if self.bandwidth is not None:
            return np.full(len(widths), self.bandwidth)
        spread = np.sqrt(np.maximum(weights @ (points - weights @ points) ** 2, 0.0))
        return np.asarray(np.maximum(spread * max(rows, 1.0) ** (-1 / (len(widths) + 4)), widths / 2))


class KernelDensity(DensityMixin, PrivateEstimator):  # type: ignore[misc]
    """Density of few numeric columns: normal kernels around the cells of a grid of `bins` for each column.

    `bandwidth` is one number for all columns, or None for Scott's rule. Values beyond bounds are clamped to them.
    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        rows_per_unit: Any = None,
        bandwidth: float | None = None,
        bins: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.rows_per_unit = rows_per_unit
        self.bandwidth = bandwidth
        self.bins = bins

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features = self._features(inputs, columns, SQUARE_STEPS)
        require_numbers(features)
        size = len(columns.features)
        bins = max(2, round(GRID_CELLS ** (1 / size))) if self.bins is None else whole("bins", self.bins)
        if bins**size > GRID_MAX:
            raise TooWide(
                f"a grid of {bins} cells for each of {size} columns has more than {GRID_MAX:,} cells",
                accepted="fewer bins, or fewer columns",
            )
        grid = tuple(
            Partition.of(
                inputs.name(name),
                inputs.kind(name),
                inputs.bounds(name, self._stated_bounds_of(inputs, name)),
                bins,
                even=True,
            )
            for name in columns.features
        )
        bandwidth = None if self.bandwidth is None else float(positive("bandwidth", self.bandwidth))
        return GridCounts.of(features, grid, inputs.allocation, bandwidth)

    def require_shapes(self) -> None:
        cells, width = len(self.weights_), len(self.features_.columns)
        require_fitted("centres_", self.centres_, (cells, width))
        require_fitted("weights_", self.weights_, (cells,))
        require_fitted("bandwidth_", self.bandwidth_, (width,))
        if (self.weights_ < 0).any() or not math.isclose(self.weights_.sum(), 1.0, abs_tol=1e-6):
            raise InvalidInput("the weights are no shares", name="document")
        if (self.bandwidth_ <= 0).any():
            raise InvalidInput("a bandwidth is not above 0", name="document")

    def score_samples(self, X: Any) -> Floats:
        """Return the logarithm of the density at each row."""
        values = self._clamped(X)
        constant = np.log(self.bandwidth_).sum() + len(self.bandwidth_) / 2 * math.log(2 * math.pi)
        weights, found = np.log(self.weights_), np.empty(len(values))
        rows = max(1, CHUNK // self.centres_.size)
        for start in range(0, len(values), rows):
            here = slice(start, start + rows)
            distances = (values[here, None, :] - self.centres_[None]) / self.bandwidth_
            found[here] = np.logaddexp.reduce(weights - 0.5 * np.square(distances).sum(axis=2), axis=1)
        return np.asarray(found - constant)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the logarithm of the density of all rows together."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Return rows drawn from the density; they cost nothing."""
        check_is_fitted(self)
        generator = check_random_state(random_state)
        chosen = generator.choice(len(self.weights_), size=whole("n_samples", n_samples), p=self.weights_)
        return np.asarray(generator.normal(self.centres_[chosen], self.bandwidth_))
