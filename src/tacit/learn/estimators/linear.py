"""Linear regression from noisy second moments.

Promise: the released arrays are the noisy second moments of features and target (`second_moments`); coefficients are
computed from them. As in AdaSSP (Wang 2018), a ridge is added so that the least eigenvalue of the covariance is not
below the size of its noise; both are known from what was released and from the scale of the noise, so the ridge costs
nothing, where AdaSSP pays a third of its budget for the eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tacit.learn.estimators.base import ModelColumns, PrivateRegressor
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, SumsPlan, unit_of
from tacit.learn.estimators.second_moments import SecondMoments
from tacit.measuring.moments import SQUARE_STEPS
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import ColumnSteps
from tacit.stats.statistic import Noisy

RIDGE: Final = 3.0
"""The least eigenvalue in spectral norms of the noise of the covariance. On generated rows (20,000 of 8 columns, other
seeds than the benchmark's) R squared at epsilon 0.3 is 0.24, beside -0.14 with 1, and the same from epsilon 1 on."""


@dataclass(frozen=True)
class LeastSquares(SumsPlan):
    """Coefficients from noisy second moments."""

    target: ColumnSteps = field(kw_only=True)
    moments: SecondMoments = field(repr=False)
    fit_intercept: bool

    @classmethod
    def of(cls, features: Features, target: ColumnSteps, inputs: StatisticInputs, fit_intercept: bool) -> LeastSquares:
        """Return the plan of a regression of a target on features."""
        moments = SecondMoments.of((*features.columns, target), inputs.allocation, target=True)
        label = f"linear regression of {target.column}"
        return cls(label, features, moments.parts, moments, fit_intercept, target=target)

    def value(self, noisy: Noisy) -> dict[str, Any]:
        sums, spread = self.moments.matrix(noisy), self.moments.deviations
        units, unit = self.features.units, unit_of(self.target)
        origins = np.array([*self.features.origins / units, self.target.centre / unit])
        if not self.fit_intercept:  # through the origin, which need not be the middle of the bounds
            moved = np.eye(len(sums))
            moved[1:, 0], origins = origins, np.zeros_like(origins)
            sums = moved @ sums @ moved.T
        weights, intercept = _solve(sums, spread, fit_intercept=self.fit_intercept)
        return {
            "coef_": weights * unit / units,
            "intercept_": float(intercept + origins[-1] - weights @ origins[:-1]) * unit,
            "bounds_of_target_": np.array([self.target.lower, self.target.upper]),
        }


def _solve(sums: Floats, spread: Floats, *, fit_intercept: bool) -> tuple[Floats, float]:
    """Return weights and intercept from sums of products of (1, x, y) and the deviations of their noise."""
    rows = max(float(sums[0, 0]), 1.0)
    means = sums[0] / rows if fit_intercept else np.zeros(len(sums))
    covariance = sums / rows - np.outer(means, means)
    inner = slice(1, -1)
    gram, products = covariance[inner, inner], covariance[inner, -1]
    width = len(gram)
    noise = float(np.sqrt(np.mean(np.square(spread[inner, inner])) * width)) * 2 / rows  # of a Wigner matrix
    values, vectors = np.linalg.eigh(gram)
    ridge = max(0.0, RIDGE * noise - float(values[0])) if noise else 0.0
    values = np.maximum(values + ridge, np.finfo(float).eps * width)
    weights = vectors @ ((vectors.T @ products) / values)
    return weights, float(means[-1] - weights @ means[inner])


class LinearRegression(PrivateRegressor):
    """Ordinary least squares, regularised as far as the noise requires; predictions are clamped to `target_bounds`.

    Neighbours, sensitivity and theorem: `second_moments`. `target_bounds` are the bounds of y, chosen without looking
    at the data, or "learn".
    """

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        target_bounds: Any = None,
        categories: Any = None,
        rows_per_unit: Any = None,
        fit_intercept: bool = True,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.categories = categories
        self.rows_per_unit = rows_per_unit
        self.fit_intercept = fit_intercept

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features = self._features(inputs, columns, SQUARE_STEPS)
        target = self._target_scale(inputs, columns, SQUARE_STEPS)
        return LeastSquares.of(features, target, inputs, bool(self.fit_intercept))

    def predict(self, X: Any) -> Floats:
        """Return the predicted target of each row; values beyond bounds are clamped, as in the training."""
        encoded = self._encoded(X)
        features = self.features_
        found = encoded @ (self.coef_ * features.units) + (self.intercept_ + self.coef_ @ features.origins)
        return np.asarray(np.clip(found, *self.bounds_of_target_))
