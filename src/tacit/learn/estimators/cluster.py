"""k-means from noisy counts and sums of clusters, in few rounds.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): a round assigns each row to the
nearest of centres that are public by then, and releases the noisy number of rows and the noisy sum of each column of
each cluster. A row is in one cluster, so a unit moves the counts by at most `rows_per_unit`, and the sums of a column
by that times its reach, in L1 and in L2. All rounds have the same noise and are composed (DPLloyd: Blum, Dwork,
McSherry, Nissim 2005; division of the budget over counts and sums: Su, Cao, Li, Bertino, Jin 2016).

Centres start far from one another and from the bounds (sphere packing, Su et al.), chosen without data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from tacit.learn.estimators.base import ModelColumns, PrivateEstimator
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, deviation, require_numbers
from tacit.measuring.allocation import Allocation, Noise, noises
from tacit.measuring.moments import SQUARE_STEPS
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.errors import TooLarge
from tacit.privacy.events import Event, composed
from tacit.privacy.numbers import whole
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import ColumnSteps, NearestCut, Rows, Term
from tacit.stats.statistic import Noisy, noise_in_words

CLUSTERS_MAX: Final = 256
ROUNDS_MAX: Final = 100
SPREAD: Final = 0.225
"""The root mean square of a column within a cluster over half its bounds, as Su et al. assume it."""

TRIES: Final = 64
"""Points that are tried for each centre before the packing radius is reduced."""

FINE: Final = 2**20
"""Steps of the widest bounds in which distances are computed."""


@dataclass(frozen=True)
class Lloyd(ModelPlan):
    """Rounds of noisy counts and sums by the nearest centre."""

    start: tuple[tuple[float, ...], ...]
    """The first centres, in encoded columns."""
    rounds: int
    noises: tuple[Noise, ...]
    """The noise of the counts, and of the sums of each column, in every round."""

    @classmethod
    def of(cls, features: Features, allocation: Allocation, start: Floats, rounds: int) -> Lloyd:
        """Return the rounds with their noise."""
        scales = require_numbers(features)
        weights = [(4 * len(scales) * SPREAD**2) ** (1 / 3), *[1.0] * len(scales)]
        moved = [allocation.row_sensitivity * reach for reach in (1, *(max(1, scale.reach) for scale in scales))]
        made = noises(allocation.divided(*weights), weights, [(one, one) for one in moved], times=rounds)
        label = f"{len(start)} clusters of {', '.join(features.names)}"
        return cls(label, features, tuple(map(tuple, start.tolist())), rounds, made)

    @property
    def event(self) -> Event:
        return composed([noise.event for noise in self.noises for _ in range(self.rounds)])

    @property
    def lines(self) -> tuple[str, ...]:
        scales = require_numbers(self.features)
        sums = [
            f"sum of {scale.column} in each cluster: {noise_in_words(noise, float(scale.step))}"
            for scale, noise in zip(scales, self.noises[1:], strict=True)
        ]
        rows = f"rows in each cluster: {noise_in_words(self.noises[0])}"
        return (f"{self.rounds} rounds of counts and sums, each of which is released", rows, *sums)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        terms = [Term(), *(Term((scale,)) for scale in require_numbers(self.features))]
        centres, released = np.array(self.start), []
        for _ in range(self.rounds):
            exact = rows.sums(terms, (self._nearest(centres),), self.needs)
            noisy = [noise.release(sums, source=source) for noise, sums in zip(self.noises, exact, strict=True)]
            centres = self._moved(centres, noisy)
            released += noisy
        return tuple(released)

    def value(self, noisy: Noisy) -> dict[str, Any]:
        centres, width = np.array(self.start), len(self.noises)
        for place in range(self.rounds):
            centres = self._moved(centres, noisy[place * width : (place + 1) * width])
        counts = np.maximum(np.asarray(noisy[-width], dtype=np.float64), 0.0)
        return {
            "cluster_centers_": centres * self.features.units + self.features.origins,
            "cluster_counts_": counts,
            "n_iter_": self.rounds,
        }

    def _moved(self, centres: Floats, noisy: Any) -> Floats:
        """Return the noisy mean of each cluster, encoded; a cluster that may be empty stays where it is."""
        counts, *sums = (np.asarray(one, dtype=np.float64) for one in noisy)
        reaches = np.array([max(1, scale.reach) for scale in require_numbers(self.features)])
        means = np.clip(np.array(sums).T / np.maximum(counts, 1.0)[:, None] / reaches, -1.0, 1.0)
        return np.where((counts > deviation(self.noises[0]))[:, None], means, centres)

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


def packed_centres(count: int, width: int, seed: object) -> Floats:
    """Return points in the cube from -1 to 1 that are about as far from one another and from its faces as they can be.

    The radius of the spheres is halved in steps until that many of them fit (Su et al. 2016).
    """
    random = np.random.default_rng(0 if seed is None else whole("random_state", seed, at_least=0))
    radius = 1.0
    while True:
        found: list[NDArray[np.float64]] = []
        for _ in range(count):
            tried = random.uniform(radius - 1, 1 - radius, (TRIES, width))
            far = [np.linalg.norm(tried - one, axis=1) >= 2 * radius for one in found]
            fits = np.flatnonzero(np.all(far, axis=0)) if far else np.array([0])
            if not len(fits):
                break
            found.append(tried[fits[0]])
        if len(found) == count:
            return np.array(found)
        radius *= 0.9


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """k-means in `max_iter` rounds, all of which are paid for; distances are Euclidean in the units of the columns.

    The clusters of the rows themselves are private, so there is no `labels_`: `predict` returns those of given rows.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Any = 1.0,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        rows_per_unit: Any = None,
        max_iter: int = 5,
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
        clusters, rounds = whole("n_clusters", self.n_clusters), whole("max_iter", self.max_iter)
        if clusters > CLUSTERS_MAX or rounds > ROUNDS_MAX:
            raise TooLarge(f"there are at most {CLUSTERS_MAX} clusters and {ROUNDS_MAX} rounds", name="n_clusters")
        start = packed_centres(clusters, len(columns.features), self.random_state)
        return Lloyd.of(features, inputs.allocation, start, rounds)

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> NDArray[np.int64]:
        """Fit, and return the cluster of each row; the clusters of private rows are as private as they are."""
        return self.fit(X, **options).predict(X)

    def transform(self, X: Any) -> Floats:
        """Return the distance of each row to each centre; values beyond bounds are clamped first."""
        values = self._encoded(X) * self.features_.units + self.features_.origins
        return np.stack([np.linalg.norm(values - centre, axis=1) for centre in self.cluster_centers_], axis=1)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest centre of each row."""
        return np.argmin(self.transform(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their centres."""
        return -float(np.square(self.transform(X).min(axis=1)).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
