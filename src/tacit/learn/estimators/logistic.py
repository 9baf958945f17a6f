"""Logistic regression by gradient descent on noisy sums of clipped gradients.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): first the number of rows and the first
two moments of numeric features are released, then one sum of gradients in each round, all with the noise of
`noises`. A row adds an integer vector of at most `clip` to each sum (`exact_gradients`), in L2 for Gaussian and in
L1 for Laplace noise; a unit has at most `rows_per_unit` rows. Weights are computed from noisy sums alone: those of each
round, at which the next gradients are taken, and the average of the second half of all rounds, which is released.

Full batches and many rounds: with Gaussian noise of a fixed total precision the average of the rounds is as precise for
any number of them. Laplace noise grows with the number of rounds, which is therefore small and falls with epsilon.
Rounds, step and clip were chosen on 26,000 rows of the training split of Adult, scored on its other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from tacit.learn.estimators.base import PrivateClassifier
from tacit.learn.estimators.exact_gradients import FEATURES_MAX, RESIDUAL, UNIT, WEIGHT_MAX, GradientRows
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, deviation
from tacit.learn.estimators.noises import Measurement, RoundNoises, RoundsPlan
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.privacy.errors import TooWide
from tacit.privacy.numbers import positive, whole
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import ColumnSteps, Cut, Rows
from tacit.stats.statistic import Noisy, noise_in_words

STEPS: Final = UNIT
"""The steps of half the bounds of a number."""
MOMENTS_SHARE: Final = 0.1
LEAST_VARIANCE: Final = 1e-3
ROUNDS_MAX: Final = 1000


@dataclass(frozen=True)
class Descent:
    """The public parameters of gradient descent with momentum, by the law of the noise.

    The step is `rate` over the number of features, which is stable for any rows, `clip_compensation` times that for
    each unit of length that the clip leaves out of as many features, and less where the noise of the average of all
    rounds is above `noise_max` for each row.
    """

    rounds: int
    clip: float
    rate: float
    momentum: float
    noise_max: float
    clip_compensation: float = 0.0


GAUSSIAN: Final = Descent(120, 1.0, 7.0, 0.9, 1.2e-3)


def laplace_descent(epsilon: float) -> Descent:
    """Return the descent with Laplace noise: fewer rounds for a smaller epsilon."""
    return Descent(min(60, max(4, round(24 * math.sqrt(epsilon)))), 4.0, 12.0, 0.5, 6e-3, 1.5)


@dataclass(frozen=True)
class NoisyDescent(RoundsPlan):
    """Logistic regression, for more than two classes multinomial."""

    target: Cut = field(kw_only=True)
    descent: Descent
    limit: int
    """The greatest length of a row's gradient, in steps."""

    @classmethod
    def of(
        cls,
        features: Features,
        target: Cut,
        inputs: StatisticInputs,
        rounds: int | None = None,
        clip: float | None = None,
    ) -> NoisyDescent:
        """Return the plan of a classifier; `rounds` and `clip` override the defaults of the chosen noise."""
        if sum(features.widths) >= FEATURES_MAX:
            raise TooWide(f"logistic regression is of fewer than {FEATURES_MAX:,} encoded features", accepted="fewer")
        numbers = sum(isinstance(one, ColumnSteps) for one in features.columns)
        allocation = inputs.allocation
        pure = laplace_descent(float(allocation.epsilon or 1))
        found: list[tuple[Descent, list[Measurement]]] = []
        for one, length in ((pure, 1.0 + 2 * numbers), (GAUSSIAN, math.sqrt(1 + 2 * numbers))):
            own = replace(one, rounds=rounds or one.rounds, clip=clip or one.clip)
            gradients = Measurement(1 - MOMENTS_SHARE, own.rounds, max(1, math.floor(own.clip * UNIT * RESIDUAL)))
            found.append((own, [Measurement(MOMENTS_SHARE, 1, math.ceil(length * UNIT)), gradients]))
        noises = RoundNoises.of(allocation, found[0][1], found[1][1])
        descent, measured = found[noises.order - 1]
        label = f"logistic regression of {target.column}"
        return cls(label, features, noises, descent, measured[1].length, target=target)

    @property
    def lines(self) -> tuple[str, ...]:
        moments, gradients = self.noises.noises
        return (
            f"rows and moments of numbers, as parts of their bounds: {noise_in_words(moments, 1 / UNIT)}",
            f"sums of gradients in {self.descent.rounds} rounds, each row's clipped to {self.descent.clip:g}: "
            f"{noise_in_words(gradients, 1 / (UNIT * RESIDUAL))}",
        )

    @property
    def row_steps(self) -> int:
        """One for each product of a feature and a logit in each round: at most 40 nanoseconds, as measured."""
        return self.descent.rounds * (len(self.features.columns) + 4) * self.outputs

    @property
    def outputs(self) -> int:
        """The number of logits: one for two classes."""
        return 1 if self.target.cells == 2 else self.target.cells

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        read = GradientRows(rows, self.features, self.target, self.needs)
        of_moments, of_gradients = self.noises.noises
        moments = of_moments.release(read.moments(), source=source)
        means, scales = self._standards(moments)
        count, order = max(1.0, float(moments[0]) / UNIT), self.noises.order
        weights = np.zeros((sum(self.features.widths) + 1, self.outputs))
        velocity, total, averaged = np.zeros_like(weights), np.zeros_like(weights), 0
        step = self._step(count)
        for place in range(self.descent.rounds):
            exact = read.gradient_sums(weights, means, scales, self.limit, order)
            noisy = np.asarray(of_gradients.release(exact, source=source), dtype=np.float64)
            velocity = self.descent.momentum * velocity + noisy / (UNIT * RESIDUAL * count)
            weights = np.clip(weights - step * velocity, -WEIGHT_MAX, WEIGHT_MAX)
            if 2 * place >= self.descent.rounds - 1:  # the average of the second half has less noise than the last
                total, averaged = total + weights, averaged + 1
        average = total / averaged
        return moments, mark_simulated(average) if source.simulated else average

    def _standards(self, moments: Any) -> tuple[Floats, Floats]:
        """Return mean and scale of each number, encoded as -1 to 1; a scale is not below the noise of its square."""
        sums = np.asarray(moments, dtype=np.float64) / UNIT
        count, (first, second) = max(1.0, float(sums[0])), sums[1:].reshape(2, -1) / max(1.0, float(sums[0]))
        means = np.clip(first, -1.0, 1.0)
        least = max(2 * deviation(self.noises.noises[0]) / (UNIT * count), LEAST_VARIANCE)
        return means, np.sqrt(np.clip(second - means**2, min(least, 1.0), 1.0))

    def _step(self, count: float) -> float:
        """Return the step of the descent, from the number of features and the noise for each row."""
        own, features = self.descent, 1 + len(self.features.columns)
        noise = deviation(self.noises.noises[1]) / (UNIT * RESIDUAL * count * math.sqrt(own.rounds))
        longer, shorter = max(1.0, own.clip_compensation * features / own.clip), min(1.0, own.noise_max / noise)
        return own.rate / features * longer * shorter

    def value(self, noisy: Noisy) -> dict[str, Any]:
        (means, scales), weights = self._standards(noisy[0]), np.asarray(noisy[1], dtype=np.float64)
        moved = weights[:-1].copy()
        places = [place for place, is_number in enumerate(self._are_numbers) if is_number]
        moved[places] /= scales[:, None]
        coefficients = (moved / self.features.units[:, None]).T
        return {
            "coef_": coefficients,
            "intercept_": weights[-1] - means @ moved[places] - coefficients @ self.features.origins,
            "classes_": np.array(self.target.values),
            "n_iter_": self.descent.rounds,
        }

    @property
    def _are_numbers(self) -> list[bool]:
        """Whether each encoded column is a number."""
        widths = zip(self.features.columns, self.features.widths, strict=True)
        return [isinstance(one, ColumnSteps) for one, width in widths for _ in range(width)]


class LogisticRegression(PrivateClassifier):
    """Logistic regression, multinomial for more than two classes, without penalty: noise ends the descent early.

    Neighbours, sensitivity and theorem: this module's docstring. `classes` are the labels, `max_iter` the number of
    rounds and `clip` the greatest length of a row's gradient, features being of unit variance; their defaults depend on
    the noise alone. `coef_` has the columns of `features_.encoded_names`.
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
        max_iter: int | None = None,
        clip: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.rows_per_unit = rows_per_unit
        self.max_iter = max_iter
        self.clip = clip

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features, target = self._features(inputs, columns, STEPS), self._class_cut(inputs, columns)
        rounds = None if self.max_iter is None else whole("max_iter", self.max_iter, at_most=ROUNDS_MAX)
        clip = None if self.clip is None else float(positive("clip", self.clip))
        return NoisyDescent.of(features, target, inputs, rounds, clip)

    def decision_function(self, X: Any) -> Floats:
        """Return the logit of each class, for two classes that of the second."""
        encoded, features = self._encoded(X), self.features_
        found = encoded @ (self.coef_ * features.units).T + (self.intercept_ + self.coef_ @ features.origins)
        return np.asarray(found[:, 0] if len(self.coef_) == 1 else found)

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | x) for each row and class."""
        logits = self.decision_function(X)
        if logits.ndim == 1:
            logits = np.column_stack([np.zeros_like(logits), logits])
        found: Floats = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        return found
