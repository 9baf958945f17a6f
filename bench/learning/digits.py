"""MNIST for PATE: features of upright digits, teachers by kernel ridge regression, and the choice of queries.

A row is a histogram of gradient orientations of an image that is centred, made upright by its moments and brought to
one height and width: a fixed function of the image alone.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from bench.learning.datasets import mnist
from bench.learning.spreading import kernel_ridge, one_hot

CELL: Final = 4
BINS: Final = 8
HEIGHT: Final = 5.8
"""The standard deviation of the ink of an upright digit, in pixels, downwards."""
WIDTH: Final = 4.2

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


def load(part: Literal["train", "t10k"], count: int | None = None) -> tuple[Floats, Labels]:
    """Return rows and labels of a part of MNIST, or of its first images."""
    pixels, labels = mnist(part, count)
    rows = [_orientations(_upright(pixels[start : start + 2000])) for start in range(0, len(pixels), 2000)]
    return np.concatenate(rows), labels


def _upright(images: NDArray[np.uint8]) -> Floats:
    """Return images whose ink is centred, without slant, and of one height and width, within limits."""
    import torch
    from torch.nn import functional

    ink = torch.tensor(images / 255, dtype=torch.float32)
    place, total = torch.arange(28.0) - 13.5, ink.sum((1, 2)).clamp(min=1e-6)
    across, down = (ink.sum(1) * place).sum(1) / total, (ink.sum(2) * place).sum(1) / total
    x, y = place[None, None] - across[:, None, None], place[None, :, None] - down[:, None, None]
    variance_y, covariance = (ink * y * y).sum((1, 2)) / total, (ink * x * y).sum((1, 2)) / total
    slant = covariance / variance_y.clamp(min=1e-3)
    variance_x = ((ink * x * x).sum((1, 2)) / total - slant**2 * variance_y).clamp(min=0.5)
    matrix = torch.zeros(len(ink), 2, 3)
    matrix[:, 0, 0] = (variance_x.sqrt() / WIDTH).clamp(0.7, 1.3)
    matrix[:, 1, 1] = (variance_y.sqrt() / HEIGHT).clamp(0.8, 1.25)
    matrix[:, 0, 1] = slant * matrix[:, 1, 1]
    matrix[:, 0, 2], matrix[:, 1, 2] = across / 14, down / 14
    grid = functional.affine_grid(matrix, [len(ink), 1, 28, 28], align_corners=False)
    return np.asarray(functional.grid_sample(ink[:, None], grid, align_corners=False)[:, 0].numpy())


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


def digit_teacher(x: Floats, y: Labels) -> Any:
    """Train kernel ridge regression, and return its predictions."""
    classes = np.unique(y)
    scores = kernel_ridge(x, one_hot(y, classes), gamma=1.0, ridge=0.02)
    return lambda queries: classes[scores(queries).argmax(axis=1)]


def representatives(rows: Floats, count: int, seed: int) -> Labels:
    """Return the row nearest to each of `count` cluster centres: the public rows that are worth asking about."""
    reduced = PCA(min(50, *rows.shape), random_state=seed).fit_transform(rows)
    distances = KMeans(count, n_init=1, max_iter=30, random_state=seed).fit(reduced).transform(reduced)
    nearest = np.unique(distances.argmin(axis=0))
    random = np.random.default_rng(seed)
    others = random.permutation(np.setdiff1d(np.arange(len(rows)), nearest))
    return np.concatenate([random.permutation(nearest), others])
