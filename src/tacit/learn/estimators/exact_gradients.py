"""Sums of clipped gradients of the logistic loss over private rows, exact in whole numbers.

Promise: `gradient_sums` adds up one vector of integers for each row, of a length of at most `limit` in L2 (L1 for
Laplace noise), that depends on this row and on public weights alone. So adding or removing a row moves the sum by at
most `limit`, whatever the other rows are: no rounding depends on them. Logits, products and sums are of integers below
2^53, which doubles hold exactly in any order, whatever a BLAS does; probabilities come from a table of integers and
whole division; the clip is made of single operations that IEEE 754 rounds alike everywhere, towards a shorter vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.learn.estimators.model_plan import Features, Floats
from tacit.stats.rows import ColumnSteps, Cut, Rows

UNIT: Final = 2**10
"""The integer that stands for 1 in an encoded feature."""
RESIDUAL: Final = 2**10
"""The integer that stands for 1 in a residual, the difference of a probability and a label."""
WEIGHT: Final = 2**14
WEIGHT_MAX: Final = 2**10
"""The integer that stands for 1 in a weight, and the greatest weight."""
FEATURE_MAX: Final = 2**6
"""The greatest standardized feature; below 2^11 features the sum of their products with weights is exact."""
FEATURES_MAX: Final = 2**11

CHUNK_ROWS: Final = 2**18
_SHIFT: Final = (UNIT * WEIGHT // 2**9).bit_length() - 1  # logits in steps of 2^-9
_EXPONENTIALS: Final[NDArray[np.int64]] = np.rint(2.0**40 * np.exp(-np.arange(2**13 + 1) / 2**9)).astype(np.int64)

Order = Literal[1, 2]


class GradientRows:
    """Private rows with their label, as integers."""

    def __init__(self, rows: Rows, features: Features, target: Cut, needs: tuple[str, ...]) -> None:
        scales = [one for one in features.columns if isinstance(one, ColumnSteps)]
        cuts = [one for one in features.columns if isinstance(one, Cut)]
        read = rows.matrix(scales, (*cuts, target), needs)
        kept = read.cells[:, -1] >= 0
        reaches = np.array([max(1, scale.reach) for scale in scales], dtype=np.int64)
        self._numbers = (read.steps[kept] * UNIT // reaches).astype(np.int32)
        self._cells, self._labels = read.cells[kept, :-1], read.cells[kept, -1]
        starts = np.cumsum([0, *features.widths]).tolist()
        placed = list(zip(starts, features.columns, strict=False))
        self._number_places = [start for start, one in placed if isinstance(one, ColumnSteps)]
        self._cell_places = [(start, one.cells) for start, one in placed if isinstance(one, Cut)]
        self._width = starts[-1]

    def moments(self) -> NDArray[np.int64]:
        """Return UNIT for each row, and the sums of numbers and of their squares over UNIT.

        A row adds numbers of at most UNIT.
        """
        numbers = self._numbers.astype(np.int64)
        squares = numbers * numbers // UNIT
        return np.array([UNIT * len(numbers), *numbers.sum(axis=0), *squares.sum(axis=0)], dtype=np.int64)

    def gradient_sums(
        self, weights: Floats, means: Floats, scales: Floats, limit: int, order: Order
    ) -> NDArray[np.int64]:
        """Return the sum of clipped gradients by the weights of encoded columns and the intercept, the last row.

        Numbers are standardized by public `means` and `scales`. `weights` has a column for each class, one for two.
        """
        held = np.rint(np.clip(weights, -WEIGHT_MAX, WEIGHT_MAX) * WEIGHT)
        total = np.zeros(weights.shape, dtype=np.int64)
        for numbers, cells, labels in self._chunks():
            standard = np.clip(np.rint((numbers - means * UNIT) / scales), -FEATURE_MAX * UNIT, FEATURE_MAX * UNIT)
            logits = standard @ held[self._number_places] + UNIT * held[-1]
            for column, (start, count) in enumerate(self._cell_places):
                listed = np.vstack([held[start : start + count], np.zeros((1, weights.shape[1]))])  # -1 is none
                logits += UNIT * listed[cells[:, column]]
            residuals = residuals_of(logits, labels)
            lengths = _lengths(standard, UNIT * (1 + (cells >= 0).sum(axis=1)), order)
            total += self._products(standard, cells, clipped(residuals, lengths, limit, order))
        return total

    def _products(self, standard: Floats, cells: NDArray[np.int32], residuals: Floats) -> NDArray[np.int64]:
        """Return the sum over rows of the outer products of features and residuals."""
        found = np.zeros((self._width + 1, residuals.shape[1]))
        found[self._number_places] = standard.T @ residuals
        for column, (start, count) in enumerate(self._cell_places):
            for output in range(residuals.shape[1]):
                sums = np.bincount(cells[:, column] + 1, weights=residuals[:, output], minlength=count + 1)
                found[start : start + count, output] = UNIT * sums[1:]
        found[-1] = UNIT * residuals.sum(axis=0)
        return found.astype(np.int64)

    def _chunks(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]]:
        for start in range(0, len(self._labels), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            yield self._numbers[part], self._cells[part], self._labels[part]


def residuals_of(logits: Floats, labels: NDArray[np.int32]) -> Floats:
    """Return probabilities less labels, as integers of RESIDUAL; for two classes those of the second."""
    is_binary = logits.shape[1] == 1
    exact = logits.astype(np.int64)
    if is_binary:
        exact = np.hstack([np.zeros_like(exact), exact])
    below = (exact.max(axis=1, keepdims=True) - exact) >> _SHIFT
    weights = _EXPONENTIALS[np.minimum(below, len(_EXPONENTIALS) - 1)]
    shares = weights * RESIDUAL // weights.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= RESIDUAL
    return np.asarray(shares[:, 1:] if is_binary else shares, dtype=np.float64)


def _lengths(standard: Floats, ones: NDArray[np.int64], order: Order) -> Floats:
    """Return the length of each row of features: numbers, and `ones` categories and intercept in units."""
    if order == 1:
        return np.asarray(np.abs(standard).sum(axis=1) + ones)
    return np.asarray(np.ceil(np.sqrt((standard * standard).sum(axis=1) + ones * float(UNIT))))


def clipped(residuals: Floats, lengths: Floats, limit: int, order: Order) -> Floats:
    """Return residuals, shortened to integers so that their outer product with features is at most `limit` long."""
    own = np.abs(residuals).sum(axis=1) if order == 1 else np.ceil(np.sqrt((residuals * residuals).sum(axis=1)))
    factors = np.minimum(1.0, limit * (1 - 2.0**-40) / np.maximum(own * lengths, 1.0))
    return np.asarray(np.trunc(residuals * factors[:, None]))
