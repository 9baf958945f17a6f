"""Linear regression and naive Bayes from randomised rows, debiased for the noise: post-processing, which costs nothing.

    rows = tacit.learn.randomize_features(frame, epsilon=4.0, ...)          # with the target among the columns
    model = tacit.learn.debiased_linear_regression(rows, "hours")           # a fitted tacit.learn.LinearRegression
    model = tacit.learn.debiased_naive_bayes(rows, "income")                # a fitted tacit.learn.GaussianNB

Noise that is independent between the columns of a row leaves sums of products of two columns unbiased, and adds its
variance to sums of squares. Both are corrected by public facts alone: squares of numbers by the variance of the noise
(errors in variables; Fuller 1987), counts of categories by the inverse of the matrix of randomised response.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.conversions import Cost
from tacit.learn.estimators.base import PrivateEstimator
from tacit.learn.estimators.linear import LinearRegression, regression_of
from tacit.learn.estimators.model_plan import Floats
from tacit.learn.estimators.naive_bayes import GaussianNB, log_shares, moments_by_class, naive_bayes_of
from tacit.learn.randomized.features import RandomizedRows, variance_of
from tacit.learn.randomized.labels import RandomizedLabels
from tacit.mechanisms import Geometric, RandomizedResponse
from tacit.privacy.arguments import instance
from tacit.privacy.errors import WrongKind, WrongType
from tacit.privacy.numbers import positive
from tacit.stats.rows import ColumnSteps, Cut


def debiased_linear_regression(rows: RandomizedRows, target: str, *, fit_intercept: bool = True) -> LinearRegression:
    """Return least squares of a randomised numeric column on all others, with a ridge where the noise requires it.

    The noise of moments and the ridge: as in `LinearRegression`, with deviations that are estimated from the reports.
    """
    instance("rows", rows, RandomizedRows, "randomised rows: tacit.learn.randomize_features(...)")
    inner, outer = _split(rows, target)
    of_target = outer.features.columns[0]
    if not isinstance(of_target, ColumnSteps):
        raise WrongKind(f"{target} must be numeric")
    encoded = np.concatenate([np.ones((len(rows), 1)), inner.encoded, outer.encoded], axis=1)
    raw = encoded.T @ encoded
    sums = raw.copy()
    used, start = np.ones(encoded.shape[1] - 2, dtype=np.bool_), 0
    for one, width, law in zip(inner.features.columns, inner.features.widths, inner.randomisers, strict=True):
        here = slice(start + 1, start + 1 + width)
        if isinstance(one, Cut):
            sums[here, here] = np.diag(raw[0, here])
            used[start] = False  # the first category is that of the intercept
        elif isinstance(law, Geometric):
            sums[here, here] -= len(rows) * variance_of(law) / max(1, one.reach) ** 2
        start += width
    squares = np.maximum(np.diag(sums), 0.0) / len(rows)
    noise = np.maximum(np.diag(raw) / len(rows) - squares, 0.0)
    products = np.outer(squares, noise)
    spread = np.sqrt(len(rows) * (products + products.T + np.outer(noise, noise)))
    value = regression_of(sums, spread, inner.features, of_target, fit_intercept=fit_intercept, used=used)
    model = LinearRegression(epsilon=rows.epsilon, fit_intercept=fit_intercept)
    _set_fitted(model, inner, value, rows.cost)
    return model


def debiased_naive_bayes(rows: RandomizedRows, target: Any, *, alpha: float = 1.0) -> GaussianNB:
    """Return naive Bayes from randomised rows.

    `target` is a randomised categorical column, randomised labels of these rows, or a list of public labels. Randomised
    labels are a release of their own, whose epsilon adds to that of the rows.
    """
    instance("rows", rows, RandomizedRows, "randomised rows: tacit.learn.randomize_features(...)")
    inner, weights, classes, cost = _classes(rows, target)
    counts = weights.sum(axis=0)
    found = np.maximum(counts, 1.0)
    moments: list[tuple[Floats, Floats]] = []
    shares: list[Floats] = []
    for one, law, values in zip(inner.features.columns, inner.randomisers, inner.reports, strict=True):
        if isinstance(law, RandomizedResponse):
            shares.append(log_shares(_by_class(weights, law.unbiased(values)), float(positive("alpha", alpha))))
        elif isinstance(one, ColumnSteps):
            steps = values.astype(np.float64)[:, None]
            squares = steps**2 - variance_of(law)
            deviations = np.sqrt(weights.T**2 @ np.square(squares - squares.mean()))
            tables = [_by_class(weights, steps), _by_class(weights, squares), deviations]
            moments.append(moments_by_class(one, found, *(table[:, 0] for table in tables)))
    value = naive_bayes_of(classes, counts, moments, shares)
    model = GaussianNB(epsilon=rows.epsilon, alpha=alpha)
    _set_fitted(model, inner, value, cost)
    return model


def _by_class(weights: Floats, values: Floats) -> Floats:
    """Return sums by class, drawn towards those of all classes as far as noise explains their difference.

    That is the positive part of James and Stein's estimator (1961): what noise hides is left out of the model.
    """
    means = values.mean(axis=0)
    apart = weights.T @ (values - means)
    noise, size = float((np.square(weights).T @ np.square(values - means)).sum()), float(np.square(apart).sum())
    found: Floats = np.outer(weights.sum(axis=0), means) + apart * max(0.0, 1 - noise / size if size else 0.0)
    return found


def _split(rows: RandomizedRows, target: str) -> tuple[RandomizedRows, RandomizedRows]:
    """Return the features and the target."""
    if len(rows.features.names) < 2:
        raise WrongType("a model needs a randomised column beside its target", name="rows")
    outer = rows.take((target,))
    return rows.take(tuple(name for name in rows.features.names if name != target)), outer


def _classes(rows: RandomizedRows, target: Any) -> tuple[RandomizedRows, Floats, NDArray[Any], Cost]:
    """Return the features, a weight of each class for each row that is 1 for its own in expectation, and the cost."""
    if isinstance(target, str):
        inner, outer = _split(rows, target)
        one, law = outer.features.columns[0], outer.randomisers[0]
        if not isinstance(one, Cut) or not isinstance(law, RandomizedResponse):
            raise WrongKind(f"{target} must have categories, which are the classes")
        return inner, law.unbiased(outer.reports[0]), np.array(one.values), rows.cost
    cost = rows.cost
    if isinstance(target, RandomizedLabels):
        labels, weights, paid = target.classes, target.unbiased_weights, target.cost
        cost = Cost(cost.epsilon + paid.epsilon, cost.delta + paid.delta, cost.rho + paid.rho)
    else:
        labels, codes = np.unique(np.asarray(target), return_inverse=True)
        weights = np.eye(len(labels))[codes]
    if len(weights) != len(rows):
        raise WrongType(f"there are {len(rows):,} randomised rows and {len(weights):,} labels", name="target")
    return rows, weights, labels, cost


def _set_fitted(model: PrivateEstimator, rows: RandomizedRows, value: dict[str, Any], cost: Cost) -> None:
    """Set the fitted attributes of a model, which predicts for rows without noise."""
    model._set_fitted(rows.features, value, rows.features.names)
    model.cost_, model.card_ = cost, f"{type(model).__name__}, debiased, from randomised rows. {rows.card}"
