"""MNIST for PATE: features, teachers by kernel ridge regression, and a student that spreads labels and trains a CNN.

A row is an image's 784 pixels followed by 392 gradient-orientation features, a fixed function of the image.
"""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.semi_supervised import LabelSpreading

PIXELS, CELL, BINS = 784, 4, 8
Floats = NDArray[np.float32]


def load(folder: Path, name: str) -> tuple[Floats, NDArray[np.int64]]:
    """Return rows and labels of a part of MNIST: `train` or `t10k`."""
    images = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / f"{name}-labels-idx1-ubyte.gz").read_bytes())
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
    rows = [_row(pixels[start : start + 2000]) for start in range(0, len(pixels), 2000)]
    return np.concatenate(rows), np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)


def _row(images: NDArray[np.uint8]) -> Floats:
    pixels = (images / 255).astype(np.float32)
    return np.concatenate([pixels.reshape(len(pixels), -1), _orientations(pixels)], axis=1)


def _orientations(pixels: Floats) -> Floats:
    """Return histograms of gradient orientations over overlapping cells, normalised by their surroundings."""
    framed = np.pad(pixels, ((0, 0), (1, 1), (1, 1)))
    right, down = framed[:, 1:-1, 2:] - framed[:, 1:-1, :-2], framed[:, 2:, 1:-1] - framed[:, :-2, 1:-1]
    angle = (np.arctan2(down, right) % (2 * np.pi)) * BINS / (2 * np.pi)
    low, share, strength = np.floor(angle).astype(int) % BINS, angle - np.floor(angle), np.hypot(right, down)
    maps = np.zeros((len(pixels), BINS, 28, 28), np.float32)
    at = np.ogrid[: len(pixels), :28, :28]
    maps[at[0], low, at[1], at[2]] += strength * (1 - share)
    maps[at[0], (low + 1) % BINS, at[1], at[2]] += strength * share
    cells = _pooled(_pooled(maps, 2), 3)
    energy = np.pad((cells**2).sum(axis=1, keepdims=True), ((0, 0), (0, 0), (1, 1), (1, 1)))
    around = sum(energy[:, :, row : row + 7, column : column + 7] for row in range(3) for column in range(3))
    found = np.sqrt(cells / (np.sqrt(around) + 0.3)).reshape(len(pixels), -1)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True).clip(1e-6), dtype=np.float32)


def _pooled(maps: Floats, axis: int) -> Floats:
    weights = np.concatenate([np.arange(1, CELL + 1), np.arange(CELL - 1, 0, -1)]) / CELL
    frame = [(0, 0)] * maps.ndim
    frame[axis] = (CELL // 2, CELL + CELL // 2)
    framed, starts = np.pad(maps, frame), np.arange(0, 28, CELL)
    taken = [weight * np.take(framed, starts + step, axis=axis) for step, weight in enumerate(weights)]
    return np.asarray(np.sum(taken, axis=0), dtype=np.float32)


def kernel_teacher(x: Floats, y: NDArray[np.int64]) -> Any:
    """Train kernel ridge regression on the orientations, and return its predictions."""
    known = x[:, PIXELS:].astype(np.float64)
    weights = np.linalg.solve(_kernel(known, known) + 0.02 * np.eye(len(known)), np.eye(10)[y] - 0.1)
    return lambda queries: (_kernel(queries[:, PIXELS:], known) @ weights).argmax(axis=1)


def _kernel(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    distances = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    return np.asarray(np.exp(-0.5 * distances))


def representatives(features: NDArray[Any], count: int, seed: int) -> NDArray[np.int64]:
    """Return the row nearest to each of `count` cluster centres: the public rows that are worth asking about."""
    reduced = PCA(min(50, features.shape[1]), random_state=seed).fit_transform(features)
    distances = KMeans(count, n_init=1, max_iter=30, random_state=seed).fit(reduced).transform(reduced)
    nearest = np.unique(distances.argmin(axis=0))
    others = np.setdiff1d(np.arange(len(features)), nearest)
    return np.concatenate([np.random.default_rng(seed).permutation(nearest), others])


class DigitStudent(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Spreads the labels over the nearest neighbours, and trains a CNN on the sure ones, then on its own."""

    def __init__(self, steps: int = 900, rounds: int = 3, seed: int = 0) -> None:
        self.steps, self.rounds, self.seed = steps, rounds, seed

    def fit(self, x: Floats, y: NDArray[np.int64]) -> DigitStudent:
        """Learn from rows of which those without a label have -1."""
        self.classes_ = np.unique(y[y >= 0])
        reduced = PCA(50, random_state=self.seed).fit_transform(x[:, PIXELS:])
        spread = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.8, max_iter=200).fit(reduced, y)
        labels, sure = spread.transduction_.astype(np.int64), spread.label_distributions_.max(axis=1)
        for number in range(self.rounds):
            use = sure > np.quantile(sure, 0.12 if number == 0 else 0.04)
            self._train(x[use], labels[use], self.seed + number)
            found = self.predict_proba(x)
            labels, sure = np.where(y >= 0, y, found.argmax(axis=1)), found.max(axis=1)
        return self

    def _train(self, x: Floats, y: NDArray[np.int64], seed: int) -> None:
        import torch
        from torch.nn import functional

        torch.manual_seed(seed)
        model, images, labels = _network(), _images(x), torch.tensor(y)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
        for step in range(self.steps):
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 * min(1, step / 50) * (1 + math.cos(math.pi * step / self.steps))
            batch = torch.randint(len(images), (96,))
            loss = functional.cross_entropy(model(_distorted(images[batch], 0.8)), labels[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        self.model_ = model.eval()

    def predict_proba(self, x: Floats) -> NDArray[np.float64]:
        """Return the mean probabilities over four views of each image."""
        import torch

        torch.manual_seed(self.seed)
        images = _images(x)
        with torch.no_grad():
            views = [self.model_(_distorted(images, 0.3) if view else images).softmax(1) for view in range(4)]
        return np.asarray(sum(views).numpy() / 4)

    def predict(self, x: Floats) -> NDArray[np.int64]:
        """Return the most likely labels."""
        return np.asarray(self.predict_proba(x).argmax(axis=1))


def _images(x: Floats) -> Any:
    import torch

    return torch.tensor(x[:, :PIXELS]).reshape(-1, 1, 28, 28)


def _network() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 24, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3),
        nn.Linear(64 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def _distorted(images: Any, amount: float) -> Any:
    """Return images under random rotations, scales, shears and shifts."""
    import torch
    from torch.nn import functional

    def spread(limit: float) -> Any:
        return (torch.rand(len(images)) * 2 - 1) * limit * amount

    angle, shear, matrix = spread(0.25), spread(0.25), torch.zeros(len(images), 2, 3)
    matrix[:, 0, 0], matrix[:, 0, 1] = (1 + spread(0.15)) * torch.cos(angle), shear - torch.sin(angle)
    matrix[:, 1, 0], matrix[:, 1, 1] = torch.sin(angle), (1 + spread(0.15)) * torch.cos(angle)
    matrix[:, 0, 2], matrix[:, 1, 2] = spread(0.14), spread(0.14)
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)
