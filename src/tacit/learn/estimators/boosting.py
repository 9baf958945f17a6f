"""Gradient boosting of additive models: one score for each cell of each feature, fitted in rounds of noisy sums.

Promise (neighbours: one unit more or less, or one replaced, as the budget says): first the rows in each cell of each
feature are counted, then in each round and for each feature the gradients of the logistic loss are summed by cell. A
row is in one cell of a feature, and its gradient, a probability less a label, is a whole number of at most `RESIDUAL`
steps (of one class against the rest, L1 and L2 alike), so a unit moves each table by at most `rows_per_unit` times
that. All tables get the noise of `noises` for one charge. As in DP-EBM (Nori, Caruana, Bu, Shen, Kulkarni 2021),
the model is a sum over features, which shows what it learnt; here each cell has its own score and a round visits each
feature once.

Rows are read once, as cells (`Rows.matrix`); gradients come from integers alone (`exact_gradients`), so that those of
one row do not depend on others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tacit.learn.estimators.documents import require_fitted
from tacit.learn.estimators.exact_gradients import RESIDUAL, UNIT, WEIGHT, WEIGHT_MAX, residuals_of
from tacit.learn.estimators.fit_inputs import ModelColumns
from tacit.learn.estimators.model_plan import Features, Floats, ModelPlan, deviation
from tacit.learn.estimators.noises import Measurement, RoundNoises, RoundsPlan
from tacit.learn.estimators.trees import CellClassifier
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.privacy.errors import InvalidInput
from tacit.privacy.numbers import positive, whole
from tacit.stats.preparation import StatisticInputs
from tacit.stats.rows import Cut, Rows
from tacit.stats.statistic import Noisy, noise_in_words

COUNTS_SHARE: Final = 0.15
ROUNDS_MAX: Final = 200


@dataclass(frozen=True)
class AdditiveScores(RoundsPlan):
    """Scores by cell of each feature, for two classes."""

    target: Cut = field(kw_only=True)
    rounds: int
    rate: float

    @classmethod
    def of(cls, features: Features, target: Cut, rounds: int, rate: float, inputs: StatisticInputs) -> AdditiveScores:
        """Return the plan of a classifier; `features` are cells alone."""
        if target.cells != 2:
            raise InvalidInput("this classifier is for two classes; use a forest for more", name="classes")
        tables = len(features.columns)
        parts = [Measurement(COUNTS_SHARE, tables, 1), Measurement(1 - COUNTS_SHARE, tables * rounds, RESIDUAL)]
        noises = RoundNoises.of(inputs.allocation, parts, parts)
        return cls(f"additive model of {target.column}", features, noises, rounds, rate, target=target)

    @property
    def lines(self) -> tuple[str, ...]:
        counts, gradients = self.noises.noises
        return (
            f"rows by cell of each feature: {noise_in_words(counts)}",
            f"gradients by cell of each feature in {self.rounds} rounds: {noise_in_words(gradients, 1 / RESIDUAL)}",
        )

    @property
    def row_steps(self) -> int:
        """Five for each visit of a feature: at most 180 nanoseconds, as measured."""
        return 5 * self.rounds * len(self.features.columns)

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        cuts = [one for one in self.features.columns if isinstance(one, Cut)]
        read = rows.matrix((), (*cuts, self.target), self.needs)
        kept = read.cells[:, -1] >= 0
        cells, labels = read.cells[kept, :-1], read.cells[kept, -1]
        of_counts, of_gradients = self.noises.noises
        counts = [
            np.asarray(of_counts.release(_sums(cells[:, place], np.ones(len(cells)), cut.cells), source=source))
            for place, cut in enumerate(cuts)
        ]
        scores = [np.zeros(cut.cells) for cut in cuts]
        floors = [np.maximum(one, 2 * deviation(of_counts)).astype(np.float64) for one in counts]
        logits = np.zeros(len(cells))
        for _ in range(self.rounds):
            for place, cut in enumerate(cuts):
                residuals = residuals_of(logits[:, None], labels)[:, 0]
                exact = _sums(cells[:, place], residuals, cut.cells)
                noisy = np.asarray(of_gradients.release(exact, source=source), dtype=np.float64) / RESIDUAL
                curvature = floors[place] / 4 + 2 * deviation(of_gradients) / RESIDUAL  # noise is a ridge
                change = _whole_weights(scores[place] - self.rate * noisy / curvature) - _whole_weights(scores[place])
                logits += UNIT * np.append(change, 0.0)[cells[:, place]]  # -1 is none
                scores[place] = scores[place] + change / WEIGHT
        found = (np.concatenate(scores), np.concatenate(counts))
        return mark_simulated(found) if source.simulated else found

    def value(self, noisy: Noisy) -> dict[str, Any]:
        """Return the scores of each feature around their average, which is the intercept."""
        widths = np.cumsum(self.features.widths)[:-1]
        scores = np.split(np.asarray(noisy[0], dtype=np.float64), widths)
        counts = [np.maximum(one, 0.0) + 1e-9 for one in np.split(np.asarray(noisy[1], dtype=np.float64), widths)]
        means = [float(np.average(one, weights=weight)) for one, weight in zip(scores, counts, strict=True)]
        return {
            "term_scores_": [one - mean for one, mean in zip(scores, means, strict=True)],
            "unlisted_scores_": -np.array(means),
            "intercept_": float(sum(means)),
            "classes_": np.array(self.target.values),
            "n_iter_": self.rounds,
        }


def _whole_weights(scores: Floats) -> Floats:
    return np.asarray(np.rint(np.clip(scores, -WEIGHT_MAX, WEIGHT_MAX) * WEIGHT))


def _sums(cells: NDArray[np.int32], values: Floats, count: int) -> NDArray[np.int64]:
    """Return the sum of whole numbers in each cell."""
    return np.bincount(cells + 1, weights=values, minlength=count + 1)[1:].astype(np.int64)


class HistGradientBoostingClassifier(CellClassifier):
    """A boosted additive model of two classes: numbers in `n_bins` equal bins of their bounds, and categories.

    `term_scores_` are the scores of the cells of each feature in logits: the whole model. `max_iter` is the number of
    rounds over all features, each of which changes scores by `learning_rate` of a Newton step.

    Neighbours, sensitivity and theorem: this module's docstring.
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
        max_iter: int = 20,
        learning_rate: float = 0.3,
        n_bins: int = 32,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.rows_per_unit = rows_per_unit
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.n_bins = n_bins

    def _plan(self, inputs: StatisticInputs, columns: ModelColumns) -> ModelPlan:
        features, target = self._cells(inputs, columns), self._class_cut(inputs, columns)
        rounds, rate = (
            whole("max_iter", self.max_iter, at_most=ROUNDS_MAX),
            float(positive("learning_rate", self.learning_rate)),
        )
        return AdditiveScores.of(features, target, rounds, rate, inputs)

    def require_shapes(self) -> None:
        for scores, width in zip(self.term_scores_, self.features_.widths, strict=True):
            require_fitted("term_scores_", scores, (width,))
        require_fitted("unlisted_scores_", self.unlisted_scores_, (len(self.features_.columns),))

    def decision_function(self, X: Any) -> Floats:
        """Return the logit of the second class for each row."""
        cells = self._cells_in(X)
        found = np.full(len(cells), self.intercept_)
        for place, (scores, unlisted) in enumerate(zip(self.term_scores_, self.unlisted_scores_, strict=True)):
            found += np.append(scores, unlisted)[cells[:, place]]
        return found

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | x) for each row and class."""
        second = expit(self.decision_function(X))
        return np.column_stack([1 - second, second])
