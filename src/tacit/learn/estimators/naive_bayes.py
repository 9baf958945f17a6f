"""Naive Bayes from noisy counts, sums and squares by class.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): a row is in one class, and in one cell
of a class and a category, so a unit moves a table of counts by at most `rows_per_unit`, and a table of sums by that
times the reach of the summand, in L1 and in L2. The tables are the parts of the allocation: one of classes, two for
each number (sums, squares), one for each categorical feature. Probabilities are computed from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.learn.estimators.base import PrivateClassifier
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, SumsPlan, deviation, unit_of
from tacit.learn.estimators.noises import least_noises
from tacit.measuring.allocation import Allocation
from tacit.measuring.moments import SQUARE_STEPS
from tacit.privacy.numbers import positive
from tacit.stats.moments import label_of, square
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import ColumnSteps, Cut, Term, require_few_cells
from tacit.stats.statistic import Noisy, NoisySums


@dataclass(frozen=True)
class ClassTables(SumsPlan):
    """Tables by class: counts, and for each feature sums and squares, or counts of its categories."""

    target: Cut = field(kw_only=True)
    alpha: float
    """Rows that each category has in each class beside those counted (Laplace smoothing)."""

    @classmethod
    def of(cls, features: Features, target: Cut, allocation: Allocation, alpha: float) -> ClassTables:
        """Return the tables with their noise."""
        made: list[tuple[Term, tuple[Cut, ...]]] = [(Term(), (target,))]
        for one in features.columns:
            if isinstance(one, Cut):
                made.append((Term(), (target, one)))
            else:
                made += [(Term((one,)), (target,)), (square(one), (target,))]
        for _, by in made:
            require_few_cells(by)
        made.sort(key=lambda item: len(item[1]))  # tables by class alone are one statement
        noises = least_noises(allocation, [term.reach for term, _ in made])
        parts = tuple(
            NoisySums(term, noise, by, f"{label_of(term)} by {' and '.join(cut.column for cut in by)}")
            for (term, by), noise in zip(made, noises, strict=True)
        )
        return cls(f"naive Bayes model of {target.column}", features, parts, alpha, target=target)

    @property
    def coverage(self) -> tuple[str, ...]:
        return (*super().coverage, *filter(None, [self.target.coverage]))

    def value(self, noisy: Noisy) -> dict[str, Any]:
        counts = np.asarray(noisy[0], dtype=np.float64)
        rows = np.maximum(counts, 1.0)
        tables = iter(zip(self.parts[1:], noisy[1:], strict=True))
        numbers = [one for one in self.features.columns if isinstance(one, ColumnSteps)]
        moments = []
        for one in numbers:
            (_, sums), (part, squares) = next(tables), next(tables)
            whole = np.asarray(squares, dtype=np.float64) + part.term.offset * rows
            moments.append(moments_by_class(one, rows, np.asarray(sums), whole, deviation(part.noise)))
        shares = [log_shares(np.asarray(found), self.alpha) for _, found in tables]
        return naive_bayes_of(np.array(self.target.values), counts, moments, shares)


def naive_bayes_of(
    classes: NDArray[Any], counts: Floats, moments: list[tuple[Floats, Floats]], shares: list[Floats]
) -> dict[str, Any]:
    """Return the fitted attributes from tables by class: of rows, of each number, and of each categorical feature."""
    rows = np.maximum(counts, 1.0)
    return {
        "classes_": classes,
        "class_count_": np.maximum(counts, 0.0),
        "class_prior_": rows / rows.sum(),
        "theta_": np.array([mean for mean, _ in moments]).reshape(len(moments), len(rows)).T,
        "var_": np.array([variance for _, variance in moments]).reshape(len(moments), len(rows)).T,
        "feature_log_prob_": shares,
    }


def moments_by_class(
    scale: ColumnSteps, rows: Floats, sums: NDArray[Any], squares: Floats, noise: Floats | float
) -> tuple[Floats, Floats]:
    """Return mean and variance in each class; a variance is at least the noise of its squares, at most the greatest.

    Sums and squares are in steps of the scale, `noise` the deviation of the noise of sums of squares.
    """
    step = float(scale.step)
    means = np.clip(np.asarray(sums, dtype=np.float64) / rows, scale.low, scale.high)
    second = squares / rows
    least = np.maximum(noise / rows, 1 / 12)  # rounding to steps
    greatest = float(max(1, scale.reach)) ** 2
    variances = np.clip(second - means**2, np.minimum(least, greatest), greatest)
    return means * step + scale.centre, variances * step**2


def log_shares(counts: NDArray[Any], alpha: float) -> Floats:
    """Return the logarithms of the shares of categories in each class, smoothed by `alpha` rows."""
    smoothed = np.maximum(counts.astype(np.float64), 0.0) + alpha
    found: Floats = np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True))
    return found


class _NaiveBayes(PrivateClassifier):
    """What both classifiers share: the joint likelihood of classes and features."""

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return log P(x, class) for each row and class."""
        encoded = self._encoded(X)
        features = self.features_
        found = np.tile(np.log(self.class_prior_), (len(encoded), 1))
        numbers, listed, start = iter(zip(self.theta_.T, self.var_.T, strict=True)), iter(self.feature_log_prob_), 0
        for one, width in zip(features.columns, features.widths, strict=True):
            part = encoded[:, start : start + width]
            start += width
            if isinstance(one, Cut):
                found += part @ next(listed).T  # a value that is not listed tells nothing
            else:
                mean, variance = next(numbers)
                values = part * unit_of(one) + one.centre
                found -= 0.5 * (np.log(2 * np.pi * variance) + (values - mean) ** 2 / variance)
        return np.asarray(found)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return log P(class | x) for each row and class."""
        joint = self.predict_joint_log_proba(X)
        found: Floats = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
        return found

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | x) for each row and class."""
        return np.exp(self.predict_log_proba(X))


class GaussianNB(_NaiveBayes):
    """Naive Bayes with a normal law for each number in each class, and shares for each category (`alpha`).

    `theta_` and `var_` are those of numeric features in their order, `feature_log_prob_` those of categorical ones.
    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        rows_per_unit: Any = None,
        alpha: float = 1.0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.rows_per_unit = rows_per_unit
        self.alpha = alpha

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features = self._features(inputs, columns, SQUARE_STEPS)
        alpha = float(positive("alpha", self.alpha))
        return ClassTables.of(features, self._class_cut(inputs, columns), inputs.allocation, alpha)


class CategoricalNB(_NaiveBayes):
    """Naive Bayes over categories: each feature is a boolean, or has listed `categories`; `alpha` smooths shares."""

    def __init__(
        self,
        *,
        epsilon: Any = None,
        delta: Any = None,
        budget: Any = None,
        categories: Any = None,
        classes: Any = None,
        rows_per_unit: Any = None,
        alpha: float = 1.0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.categories = categories
        self.classes = classes
        self.rows_per_unit = rows_per_unit
        self.alpha = alpha

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        cuts = tuple(inputs.cut(name, self._listed(name), what="categories") for name in columns.features)
        features = Features(cuts, tuple(map(inputs.kind, columns.features)))
        alpha = float(positive("alpha", self.alpha))
        return ClassTables.of(features, self._class_cut(inputs, columns), inputs.allocation, alpha)
