"""Principal components from noisy second moments.

Promise: the released arrays are the noisy second moments of the columns (`second_moments`), from which the covariance
around the noisy mean and its eigenvectors are computed (Analyze Gauss: Dwork, Talwar, Thakurta, Zhang 2014).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from tacit.learn.estimators.base import PrivateEstimator
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.frames import BoundedRows
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, SumsPlan, require_numbers
from tacit.learn.estimators.second_moments import SecondMoments
from tacit.measuring.allocation import Allocation
from tacit.measuring.moments import SQUARE_STEPS
from tacit.privacy.errors import OutOfRange
from tacit.privacy.numbers import whole
from tacit.stats.preparation import StatisticInputs
from tacit.stats.statistic import Noisy


@dataclass(frozen=True)
class Components(SumsPlan):
    """Eigenvectors of a noisy covariance."""

    moments: SecondMoments = field(repr=False)
    kept: int

    @classmethod
    def of(cls, features: Features, allocation: Allocation, kept: int) -> Components:
        """Return the plan for the first components of numeric columns."""
        moments = SecondMoments.of(require_numbers(features), allocation)
        return cls(
            f"{kept} principal components of {', '.join(features.names)}", features, moments.parts, moments, kept
        )

    def value(self, noisy: Noisy) -> dict[str, Any]:
        sums, units = self.moments.matrix(noisy), self.features.units
        rows = max(float(sums[0, 0]), 2.0)
        means = np.clip(sums[0, 1:] / rows, -1.0, 1.0)
        covariance = (sums[1:, 1:] / rows - np.outer(means, means)) * rows / (rows - 1) * np.outer(units, units)
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
        signs = np.sign(vectors[np.arange(len(vectors)), np.argmax(np.abs(vectors), axis=1)])
        total = float(values.sum()) or 1.0
        rest = values[self.kept :]
        return {
            "components_": (vectors * signs[:, None])[: self.kept],
            "mean_": means * units + self.features.origins,
            "explained_variance_": values[: self.kept],
            "explained_variance_ratio_": values[: self.kept] / total,
            "singular_values_": np.sqrt(values[: self.kept] * (rows - 1)),
            "noise_variance_": float(rest.mean()) if len(rest) else 0.0,
            "n_components_": self.kept,
        }


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components of numeric columns; `n_components` of them, all without it.

    `output_bounds_` are the bounds of the components, which the next step of a pipeline takes.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        rows_per_unit: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.rows_per_unit = rows_per_unit

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features = self._features(inputs, columns, SQUARE_STEPS)
        most = len(columns.features)
        kept = most if self.n_components is None else whole("n_components", self.n_components)
        if kept > most:
            raise OutOfRange(f"there are {most} columns, and so at most {most} components", name="n_components")
        return Components.of(features, inputs.allocation, kept)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def output_bounds_(self) -> dict[str, tuple[float, float]]:
        """The bounds of each component, public facts that follow from those of the rows and the release."""
        centres = (self.features_.origins - self.mean_) @ self.components_.T
        reaches = self.features_.units @ np.abs(self.components_.T)
        ends = zip((centres - reaches).tolist(), (centres + reaches).tolist(), strict=True)
        return dict(zip(self.get_feature_names_out().tolist(), ends, strict=True))

    def transform(self, X: Any) -> Floats:
        """Return the coordinates of rows in the components; values beyond bounds are clamped first."""
        values = self._clamped(X)
        return BoundedRows.of((values - self.mean_) @ self.components_.T, self.output_bounds_.values())

    def inverse_transform(self, X: Any) -> Floats:
        """Return rows from their coordinates in the components."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)
