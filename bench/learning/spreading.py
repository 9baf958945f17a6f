"""Semi-supervised learning for students of PATE: labels spread over nearest neighbours, and kernel ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors

Floats = NDArray[Any]
Labels = NDArray[np.int64]


def spread_labels(x: NDArray[Any], y: Labels, *, neighbours: int = 6, alpha: float = 0.99, steps: int = 150) -> Floats:
    """Return class probabilities of all rows from the labels of some; -1 marks the others (Zhou et al. 2003).

    Distances are scaled by those of the fourth neighbours of both rows, and classes are weighted to equal mass.
    """
    distances, indices = NearestNeighbors(n_neighbors=neighbours + 1, algorithm="brute").fit(x).kneighbors(x)
    distances, indices = distances[:, 1:], indices[:, 1:]
    scale = distances[:, min(3, neighbours - 1)].clip(1e-9)
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[indices]))
    starts = np.repeat(np.arange(len(x)), neighbours)
    one_way = sparse.csr_matrix((weights.ravel(), (starts, indices.ravel())), shape=(len(x), len(x)))
    graph = one_way.maximum(one_way.T)
    degree = sparse.diags(1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel().clip(1e-12)))
    walk = degree @ graph @ degree
    known = (y[:, None] == np.unique(y[y >= 0])).astype(np.float64)
    found = known.copy()
    for _ in range(steps):
        found = alpha * (walk @ found) + (1 - alpha) * known
    found = found / found.sum(axis=0) + 1e-12
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def kernel_ridge(x: Floats, targets: Floats, *, gamma: float, ridge: float) -> Callable[[Floats], Floats]:
    """Train regression with Gaussian kernels on unit vectors, and return its function from rows to scores."""
    matrix = _kernel(x, x, gamma)
    matrix[np.diag_indices(len(x))] += ridge
    weights = linalg.solve(matrix, targets, assume_a="pos", overwrite_a=True)
    return lambda rows: np.asarray(_kernel(rows, x, gamma) @ weights)


def sampled_ridge(
    x: Floats, targets: Floats, *, gamma: float, ridge: float, centres: int, seed: int
) -> Callable[[Floats], Floats]:
    """Train the same regression on many rows, with kernels at some of them (Nystroem)."""
    at = x[np.random.default_rng(seed).choice(len(x), min(centres, len(x)), replace=False)]
    matrix, right = ridge * _kernel(at, at, gamma).astype(np.float64), np.zeros((len(at), targets.shape[1]))
    for start in range(0, len(x), 5000):
        some = _kernel(x[start : start + 5000], at, gamma)
        matrix += some.T @ some
        right += some.T @ targets[start : start + 5000]
    matrix[np.diag_indices(len(at))] += 3e-7 * np.trace(matrix)  # covers the rounding of products of 32 bits
    weights = linalg.solve(matrix, right, assume_a="pos", overwrite_a=True)
    return lambda rows: np.asarray(_kernel(rows, at, gamma) @ weights.astype(np.float32))


def one_hot(y: Labels, classes: Labels) -> Floats:
    """Return targets of regression: the class of each row, less the share of one class."""
    return np.asarray((y[:, None] == classes) - 1 / len(classes), dtype=np.float32)


def _kernel(first: Floats, second: Floats, gamma: float) -> Floats:
    products = first @ second.T  # of unit vectors
    return np.asarray(np.exp(2 * gamma * (products - 1)), dtype=np.float32)


class SpreadingStudent(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Spreads labels over the nearest neighbours, and trains kernel ridge regression on what comes out."""

    def __init__(self, gamma: float = 1.0, ridge: float = 0.1, sharpness: float = 8.0) -> None:
        self.gamma, self.ridge, self.sharpness = gamma, ridge, sharpness

    def fit(self, x: Floats, y: Labels) -> SpreadingStudent:
        """Learn from rows of which those without a label have -1."""
        self.classes_ = np.unique(y[y >= 0])
        found = self.classes_[spread_labels(x, y).argmax(axis=1)]
        targets = one_hot(np.where(y >= 0, y, found), self.classes_)
        self.scores_ = kernel_ridge(x, targets, gamma=self.gamma, ridge=self.ridge)
        return self

    def predict_proba(self, x: Floats) -> Floats:
        """Return probabilities from the scores of the regression."""
        powers = np.exp(self.sharpness * self.scores_(x).astype(np.float64))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def predict(self, x: Floats) -> Labels:
        """Return the most likely labels."""
        return np.asarray(self.classes_[self.scores_(x).argmax(axis=1)])
