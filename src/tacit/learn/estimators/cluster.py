"""k-means from noisy counts and sums of clusters, in few rounds.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): a round assigns each row to the
nearest of centres that are public by then, and releases the noisy number of rows and the noisy sum of each column of
each cluster. A row is in one cluster, so a unit moves the counts by at most `rows_per_unit`, and the sums of a column
by that times its reach, in L1 and in L2. All rounds have the same noise and are composed (DPLloyd: Blum, Dwork,
McSherry, Nissim 2005; division of the budget over counts and sums: Su, Cao, Li, Bertino, Jin 2016).

Up to three columns, the rounds start from the clusters of noisy counts on a grid, each row being in one cell of it (the
hybrid of Su et al.): these are found from what is released, with as many starts as it takes, at no further cost. With
more columns, centres start far from one another and from the bounds (sphere packing, Su et al.), without data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state

from tacit.learn.estimators.base import PrivateEstimator
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.frames import BoundedRows
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, deviation, require_numbers
from tacit.learn.estimators.noises import least_noises
from tacit.measuring.allocation import Allocation, Noise
from tacit.measuring.moments import SQUARE_STEPS
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.errors import TooLarge
from tacit.privacy.events import Event, composed
from tacit.privacy.numbers import whole
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import ColumnSteps, Cut, NearestCut, Rows, Term, cell_count
from tacit.stats.statistic import Noisy, noise_in_words

CLUSTERS_MAX: Final = 256
ROUNDS_MAX: Final = 100
COMPARISONS_MAX: Final = 2**18
"""The greatest number of distances and comparisons that the statements of all rounds write for a registered table."""

SPREAD: Final = 0.225
"""The root mean square of a column within a cluster over half its bounds, as Su et al. assume it."""

TRIES: Final = 64
"""Points that are tried for each centre before the packing radius is reduced."""

GRID_CELLS: Final = 400
GRID_COLUMNS_MAX: Final = 3
"""The number of cells of the grid, about, and the greatest number of columns that has one."""

GRID_WEIGHT: Final = 1.5
"""The weight of the grid in the budget beside 1 for each round."""

CLEAR: Final = 2.0
"""Counts of the grid below this many standard deviations of their noise are taken as 0."""

STARTS: Final = 20
ROUNDS_OF_START: Final = 20
FINE: Final = 2**20
"""Steps of the widest bounds in which distances are computed."""


@dataclass(frozen=True)
class Lloyd(ModelPlan):
    """Rounds of noisy counts and sums by the nearest centre."""

    start: tuple[tuple[float, ...], ...]
    """Centres that are far from one another, in encoded columns."""
    grid: tuple[Cut, ...]
    """The cells of the counts from which rounds start; none with many columns."""
    noises: tuple[Noise, ...]
    """The noise of the grid, if there is one; then in each round that of the counts and of the sums of each column."""

    @classmethod
    def of(cls, features: Features, grid: tuple[Cut, ...], allocation: Allocation, start: Floats, rounds: int) -> Lloyd:
        """Return the grid and the rounds with their noise."""
        scales = require_numbers(features)
        each = [(4 * len(scales) * SPREAD**2) ** (1 / 3), *[1.0] * len(scales)]
        weights = [*([GRID_WEIGHT * sum(each)] if grid else []), *each * rounds]
        reaches = [*([1] if grid else []), *[1, *(max(1, scale.reach) for scale in scales)] * rounds]
        label = f"{len(start)} clusters of {', '.join(features.names)}"
        return cls(label, features, tuple(map(tuple, start.tolist())), grid, least_noises(allocation, reaches, weights))

    @property
    def noises_event(self) -> Event:
        return composed([noise.event for noise in self.noises])

    @property
    def _rounds(self) -> list[tuple[Noise, ...]]:
        """The noises of each round."""
        width, first = 1 + len(self.features.columns), bool(self.grid)
        return [self.noises[place : place + width] for place in range(first, len(self.noises), width)]

    @property
    def lines(self) -> tuple[str, ...]:
        rows, *others = self._rounds[0]
        sums = [
            f"sum of {scale.column} in each cluster: {noise_in_words(noise, float(scale.step))}"
            for scale, noise in zip(require_numbers(self.features), others, strict=True)
        ]
        cells = cell_count(self.grid)
        return (
            *([f"rows in {cells} cells, to start from: {noise_in_words(self.noises[0])}"] if self.grid else []),
            f"{len(self._rounds)} rounds of counts and sums, each of which is released",
            f"rows in each cluster: {noise_in_words(rows)}",
            *sums,
        )

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        terms = [Term(), *(Term((scale,)) for scale in require_numbers(self.features))]
        released = []
        if self.grid:
            (counts,) = rows.sums([Term()], self.grid, self.needs)
            released.append(self.noises[0].release(counts, source=source))
        centres = self._first(released)
        for noises in self._rounds:
            exact = rows.sums(terms, (self._nearest(centres),), self.needs)
            noisy = [noise.release(sums, source=source) for noise, sums in zip(noises, exact, strict=True)]
            centres = self._moved(centres, noisy)
            released += noisy
        return tuple(released)

    def value(self, noisy: Noisy) -> dict[str, Any]:
        centres, width, first = self._first(noisy), 1 + len(self.features.columns), bool(self.grid)
        for place in range(first, len(noisy), width):
            centres = self._moved(centres, noisy[place : place + width])
        counts = np.maximum(np.asarray(noisy[-width], dtype=np.float64), 0.0)
        return {
            "cluster_centers_": centres * self.features.units + self.features.origins,
            "cluster_counts_": counts,
            "n_iter_": len(self._rounds),
        }

    def _first(self, noisy: Any) -> Floats:
        """Return the centres of the first round: those of the cells of the grid that stand out from their noise."""
        packed = np.array(self.start)
        if not self.grid:
            return packed
        counts = np.asarray(noisy[0], dtype=np.float64)
        places = np.argwhere(counts > CLEAR * deviation(self.noises[0]))
        if len(places) < len(packed):
            return packed
        middles = [np.convolve(np.array(cut.edges, dtype=np.float64), [0.5, 0.5], "valid") for cut in self.grid]
        points = np.stack([axis[places[:, index]] for index, axis in enumerate(middles)], axis=1)
        found = best_clusters(points, counts[tuple(places.T)], len(packed))
        return (found - self.features.origins) / self.features.units

    def _moved(self, centres: Floats, noisy: Any) -> Floats:
        """Return the noisy mean of each cluster, encoded; a cluster that may be empty stays where it is."""
        counts, *sums = (np.asarray(one, dtype=np.float64) for one in noisy)
        reaches = np.array([max(1, scale.reach) for scale in require_numbers(self.features)])
        means = np.clip(np.array(sums).T / np.maximum(counts, 1.0)[:, None] / reaches, -1.0, 1.0)
        return np.where((counts > deviation(self._rounds[0][0]))[:, None], means, centres)

    def _nearest(self, centres: Floats) -> NearestCut:
        """Return the clusters of encoded centres: distances are in the units of the columns, in one fine step."""
        scales = require_numbers(self.features)
        step = max(scale.step for scale in scales) * Fraction(2 * SQUARE_STEPS, FINE)
        fine = tuple(_with_step(scale, step) for scale in scales)
        places = (centres * self.features.units + self.features.origins) / float(step)
        whole_steps = np.rint(places).astype(np.int64) - np.array([scale.shift for scale in fine])
        return NearestCut(fine, tuple(map(tuple, whole_steps.tolist())))


def _with_step(scale: ColumnSteps, step: Fraction) -> ColumnSteps:
    """Return the same bounds in another step."""
    made = replace(scale, step=step, shift=0)
    return replace(made, shift=(made.low + made.high) // 2)


def best_clusters(points: Floats, weights: Floats, count: int) -> Floats:
    """Return the best of several k-means of weighted points, from starts far apart (k-means++) with a fixed seed."""
    generator, best, least = check_random_state(0), points[:count], np.inf
    for _ in range(STARTS):
        centres = points[[generator.choice(len(points), p=weights / weights.sum())]]
        while len(centres) < count:
            nearest = np.square(points[:, None] - centres).sum(axis=2).min(axis=1) * weights
            shares = nearest / nearest.sum() if nearest.sum() > 0 else weights / weights.sum()
            centres = np.concatenate([centres, points[[generator.choice(len(points), p=shares)]]])
        for _ in range(ROUNDS_OF_START):
            distances = np.square(points[:, None] - centres).sum(axis=2)
            chosen = (np.argmin(distances, axis=1)[:, None] == np.arange(count)) * weights[:, None]
            total = chosen.sum(axis=0)[:, None]
            centres = np.where(total > 0, chosen.T @ points / np.maximum(total, 1e-12), centres)
        inertia = float((np.square(points[:, None] - centres).sum(axis=2).min(axis=1) * weights).sum())
        if inertia < least:
            best, least = centres, inertia
    return best


def packed_centres(count: int, width: int, seed: object) -> Floats:
    """Return points in the cube from -1 to 1 that are about as far from one another and from its faces as they can be.

    The radius of the spheres is reduced until that many of them fit (Su et al. 2016). Their seed is public: it decides
    where clusters start, and no noise.
    """
    generator = check_random_state(0 if seed is None else whole("random_state", seed, at_least=0) % 2**32)
    radius = 1.0
    while True:
        found: list[NDArray[np.float64]] = []
        for _ in range(count):
            tried = generator.uniform(radius - 1, 1 - radius, (TRIES, width))
            far = [np.linalg.norm(tried - one, axis=1) >= 2 * radius for one in found]
            fits = np.flatnonzero(np.all(far, axis=0)) if far else np.array([0])
            if not len(fits):
                break
            found.append(tried[fits[0]])
        if len(found) == count:
            return np.array(found)
        radius *= 0.9


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """k-means with `n_clusters` in `max_iter` rounds, all of which are paid for.

    Distances are Euclidean in the units of the columns. The clusters of the rows themselves are private, so there is no
    `labels_`: `predict` returns those of given rows. `random_state` is the public seed of centres that are packed
    without data.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        rows_per_unit: Any = None,
        max_iter: int = 3,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.rows_per_unit = rows_per_unit
        self.max_iter = max_iter
        self.random_state = random_state

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features = self._features(inputs, columns, SQUARE_STEPS)
        clusters = whole("n_clusters", self.n_clusters, at_most=CLUSTERS_MAX)
        rounds = whole("max_iter", self.max_iter, at_most=ROUNDS_MAX)
        size = len(columns.features)
        if inputs.is_registered and rounds * clusters * (size + clusters) > COMPARISONS_MAX:
            raise TooLarge(
                f"{rounds} rounds of {clusters} clusters of {size} columns take too long on a registered table; rounds "
                f"* clusters * (columns + clusters) may be {COMPARISONS_MAX:,} at most",
                name="n_clusters",
            )
        grid: tuple[Cut, ...] = ()
        if size <= GRID_COLUMNS_MAX:
            cells = max(2, round(GRID_CELLS ** (1 / size)))
            grid = tuple(
                Cut(scale.column, edges=tuple(np.linspace(scale.lower, scale.upper, cells + 1).tolist()))
                for scale in require_numbers(features)
            )
        start = packed_centres(clusters, size, self.random_state)
        return Lloyd.of(features, grid, inputs.allocation, start, rounds)

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> NDArray[np.int64]:
        """Fit, and return the cluster of each row; the clusters of private rows are as private as they are."""
        return self.fit(X, **options).predict(X)

    def transform(self, X: Any) -> Floats:
        """Return the distance of each row to each centre; values beyond bounds are clamped first."""
        values = self._clamped(X)
        distances = np.stack([np.linalg.norm(values - one, axis=1) for one in self.cluster_centers_], axis=1)
        farthest = np.abs(self.cluster_centers_ - self.features_.origins) + self.features_.units
        return BoundedRows.of(distances, [(0.0, float(np.linalg.norm(one))) for one in farthest])

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest centre of each row."""
        return np.asarray(np.argmin(self.transform(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their centres."""
        return -float(np.square(self.transform(X).min(axis=1)).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
