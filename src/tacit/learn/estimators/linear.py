"""Linear regression from noisy second moments.

Promise: the released arrays are the noisy second moments of features and target (`second_moments`); coefficients are
computed from them. As in AdaSSP (Wang 2018) they are regularised as far as the noise requires: how much follows from
what was released and from the scale of the noise, so it costs nothing, where AdaSSP pays a third of its budget for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.learn.estimators.base import PrivateRegressor
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, SumsPlan, unit_of
from tacit.learn.estimators.second_moments import SecondMoments
from tacit.measuring.moments import SQUARE_STEPS
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import ColumnSteps
from tacit.stats.statistic import Noisy

RIDGE: Final = 2.0
"""Chosen, as the weights of `second_moments`, on generated rows and on a fifth of the training rows of Adult."""


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
        return regression_of(sums, spread, self.features, self.target, fit_intercept=self.fit_intercept)


def regression_of(
    sums: Floats,
    spread: Floats,
    features: Features,
    target: ColumnSteps,
    *,
    fit_intercept: bool,
    used: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Return the fitted attributes from sums of products of (1, x, y), encoded, and the deviations of their noise.

    Encoded columns that are not `used` get a weight of 0.
    """
    units, unit = features.units, unit_of(target)
    origins = np.array([*features.origins / units, target.centre / unit])
    if not fit_intercept:  # through the origin, which need not be the middle of the bounds
        moved = np.eye(len(sums))
        moved[1:, 0], origins = origins, np.zeros_like(origins)
        sums = moved @ sums @ moved.T
    here = np.ones(len(sums), dtype=np.bool_)
    here[1:-1] = True if used is None else used
    part, weights = np.ix_(here, here), np.zeros(len(units))
    weights[here[1:-1]], intercept = _solve(sums[part], spread[part], fit_intercept=fit_intercept)
    return {
        "coef_": weights * unit / units,
        "intercept_": float(intercept + origins[-1] - weights @ origins[:-1]) * unit,
        "bounds_of_target_": np.array([target.lower, target.upper]),
    }


def _solve(sums: Floats, spread: Floats, *, fit_intercept: bool) -> tuple[Floats, float]:
    """Return weights and intercept from sums of products of (1, x, y) and the deviations of their noise.

    Let N be the noise of the covariances G of the features, and n that of their products c with the target. The noisy
    entries of G beside its diagonal are reduced by the share E|N|^2 / |G|^2, of the least squared error (Ledoit, Wolf
    2004); a ridge keeps the least eigenvalue above `RIDGE` norms of what is left of N; and the weights are shortened by
    1 - E[n G^-1 n] / (c G^-1 c), or to 0 (James, Stein 1961).
    """
    rows = max(float(sums[0, 0]), 1.0)
    means = sums[0] / rows if fit_intercept else np.zeros(len(sums))
    covariance, noise = sums / rows - np.outer(means, means), spread / rows
    inner, tiny = slice(1, -1), float(np.finfo(float).eps)
    gram, gram_noise, products = covariance[inner, inner].copy(), noise[inner, inner], covariance[inner, -1]
    np.fill_diagonal(gram, np.maximum(np.diag(gram), 2 * np.diag(gram_noise)))
    is_noisy = (gram_noise > 0) & ~np.eye(len(gram), dtype=bool)
    power = float(np.square(gram_noise[is_noisy]).sum())
    left = 1.0 - min(1.0, power / max(float(np.square(gram[is_noisy]).sum()), tiny))
    values, vectors = np.linalg.eigh(np.where(is_noisy, left * gram, gram))
    norm = 2 * left * math.sqrt(power / len(gram))  # of a Wigner matrix
    values = np.maximum(values + (max(0.0, RIDGE * norm - float(values[0])) if norm else 0.0), tiny * len(gram))
    along = vectors.T @ products
    explained = float(along**2 @ (1 / values))
    by_noise = float((np.square(vectors.T) @ np.square(noise[inner, -1])) @ (1 / values))
    weights = max(0.0, 1.0 - by_noise / max(explained, tiny)) * (vectors @ (along / values))
    return weights, float(means[-1] - weights @ means[inner])


class LinearRegression(PrivateRegressor):
    """Ordinary least squares, regularised as far as the noise requires; predictions are clamped to `target_bounds`.

    Neighbours, sensitivity and theorem: `second_moments`. Without `fit_intercept` the line is through the origin.
    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
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
