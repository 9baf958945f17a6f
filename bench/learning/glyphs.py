"""Glyphs for PATE: generated characters of up to 150 classes, their teachers.

This is not the published set. A class is a skeleton of four random curves; half of the classes are variants of another
one, of which a single curve differs. An image draws the skeleton in a font of its own: control points, slant, rotation,
size, place and thickness vary, and pixels are noisy. 5 % of the private labels are drawn at random. A row is the pixels
of an image, less their mean, at length 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.learning.spreading import kernel_ridge, one_hot

SIDE: Final = 14
STROKES: Final = 4
JITTER: Final = 0.04
"""The standard deviation of control points between fonts, in sides of the image."""
MISLABELLED: Final = 0.05
VARIANTS: Final = 0.5
"""The share of classes that differ from another one in a single curve."""
_CURVE: Final = np.linspace(0, 1, 7)[:, None]

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Glyphs:
    """A set of generated glyphs with the skeletons of its classes."""

    skeletons: NDArray[np.float64]

    @classmethod
    def of(cls, classes: int, seed: int) -> Glyphs:
        """Draw the skeletons: for each class four curves of three control points."""
        random = np.random.default_rng(seed)
        found = random.uniform(0.1, 0.9, (classes, STROKES, 3, 2))
        plain = round(classes * (1 - VARIANTS))
        for label in range(plain, classes):
            stroke = random.integers(STROKES)
            kept = found[label, stroke].copy()
            found[label] = found[label - plain]
            found[label, stroke] = kept
        return cls(found)

    def draw(self, count: int, seed: int, *, mislabelled: float = 0.0) -> tuple[Floats, Labels]:
        """Return rows and labels, of which a share is replaced by classes drawn at random."""
        random = np.random.default_rng(seed)
        labels = random.integers(len(self.skeletons), size=count)
        rows = [self._rows(labels[start : start + 2000], random) for start in range(0, count, 2000)]
        wrong = random.random(count) < mislabelled
        return np.concatenate(rows), np.where(wrong, random.integers(len(self.skeletons), size=count), labels)

    def _rows(self, labels: Labels, random: np.random.Generator) -> Floats:
        count = len(labels)
        points = self.skeletons[labels] + random.normal(0, JITTER, (count, STROKES, 3, 2))
        start, middle, end = (points[:, :, None, index] for index in range(3))
        curve = (1 - _CURVE) ** 2 * start + 2 * _CURVE * (1 - _CURVE) * middle + _CURVE**2 * end
        centred = curve.reshape(count, -1, 2) - 0.5
        angle, slant = random.normal(0, 0.12, count), random.normal(0, 0.15, count)
        size = random.uniform(0.85, 1.1, (count, 2))
        turn = np.stack([np.cos(angle), slant - np.sin(angle), np.sin(angle), np.cos(angle)], axis=1)
        placed = np.einsum("npi,nij->npj", centred * size[:, None], turn.reshape(-1, 2, 2))
        placed += 0.5 + random.normal(0, 0.03, (count, 1, 2))
        grid = (np.arange(SIDE) + 0.5) / SIDE
        width = random.uniform(0.04, 0.08, count)[:, None, None]
        across, down = (np.exp(-((grid - placed[:, :, axis, None]) ** 2) / (2 * width**2)) for axis in (0, 1))
        images = np.minimum(np.einsum("npx,npy->nxy", across, down), 1.0).reshape(count, -1)
        noisy = np.clip(images + random.normal(0, 0.1, images.shape), 0, 1)
        centre = noisy - noisy.mean(axis=1, keepdims=True)
        return np.asarray(centre / np.linalg.norm(centre, axis=1, keepdims=True), dtype=np.float32)


def glyph_teacher(x: Floats, y: Labels) -> Any:
    """Train kernel ridge regression on the pixels, and return its predictions."""
    classes = np.unique(y)
    scores = kernel_ridge(x, one_hot(y, classes), gamma=3.0, ridge=0.1)
    return lambda queries: classes[scores(queries).argmax(axis=1)]
