"""Images of digits for benchmarks of DP-SGD: MNIST or generated ones, and fixed functions that make inputs of them.

None of these functions is learnt: each uses one image alone, so that whoever computes them on private images needs to
pay nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

import numpy as np
import torch
from scipy.fft import dctn
from torch.nn import functional

from bench.learning import datasets
from bench.learning.scattering import scattering

SIDE: Final = 28
GROUPS: Final = 27
"""Groups of scattering channels that are standardised together, as Tramer and Boneh do."""


@dataclass(frozen=True)
class Examples:
    """Images [n, 28, 28], or inputs made of them, and labels: rows to learn from, and rows to be scored."""

    x: Any
    y: Any
    scored_x: Any
    scored_y: Any

    @classmethod
    def mnist(cls) -> Self:
        """Read MNIST: 60,000 rows to learn from, 10,000 to be scored."""
        return cls(*_tensors("train"), *_tensors("t10k"))

    @classmethod
    def generated(cls, rows: int, scored: int, seed: int = 0) -> Self:
        """Draw images of ten smooth shapes, each shifted and noisy."""
        random = np.random.default_rng(seed)
        frequencies = np.zeros((10, SIDE, SIDE))
        frequencies[:, :5, :5] = np.random.default_rng(0).normal(size=(10, 5, 5))
        shapes = dctn(frequencies, type=3, axes=(1, 2)) > 0
        labels = random.integers(10, size=rows + scored)
        shifts = random.integers(-2, 3, size=(rows + scored, 2))
        pixels = np.stack([np.roll(shapes[label], shift, (0, 1)) for label, shift in zip(labels, shifts, strict=True)])
        noisy = np.clip(pixels * 0.7 + random.normal(0, 0.35, pixels.shape), 0, 1)
        x, y = torch.tensor(noisy, dtype=torch.float32), torch.tensor(labels)
        return cls(x[:rows], y[:rows], x[rows:], y[rows:])

    def held_out(self, scored: int = 10_000) -> Self:
        """Return some rows to learn from as rows to be scored, in place of those that are."""
        order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(0))
        learnt, held = order[scored:], order[:scored]
        return replace(self, x=self.x[learnt], y=self.y[learnt], scored_x=self.x[held], scored_y=self.y[held])

    def first(self, rows: int, scored: int) -> Self:
        """Return the first rows alone."""
        return replace(
            self, x=self.x[:rows], y=self.y[:rows], scored_x=self.scored_x[:scored], scored_y=self.scored_y[:scored]
        )

    def through(self, function: Any) -> Self:
        """Return the examples with a function of their images."""
        return replace(self, x=function(self.x), scored_x=function(self.scored_x))


def _tensors(part: Literal["train", "t10k"]) -> tuple[Any, Any]:
    pixels, labels = datasets.mnist(part)
    return torch.tensor(pixels / 255, dtype=torch.float32), torch.tensor(labels)


def cosines(count: int) -> Any:
    """Return the function that keeps the lowest frequencies of an image, count x count, with the norm `count`."""

    def inputs(images: Any) -> Any:
        kept = dctn(images.numpy(), axes=(1, 2), norm="ortho")[:, :count, :count].reshape(len(images), -1)
        return count * functional.normalize(torch.from_numpy(kept))

    return inputs


def scattered(images: Any) -> Any:
    """Return the scattering transforms of upright images, standardised by groups of channels, with the norm 30."""
    found = []
    for part in images.split(500):
        channels = functional.group_norm(scattering(upright(part)), GROUPS).flatten(1)
        found.append((SCALE * functional.normalize(channels)).half())
    return torch.cat(found)


SCALE: Final = 30.0


def upright(images: Any) -> Any:
    """Return images sheared so that their rows' centres are above each other on average, and moved to the middle."""
    offsets = torch.arange(SIDE) - (SIDE - 1) / 2
    mass = images.sum((1, 2)).clamp(min=1e-3)
    down, right = images.sum(2) @ offsets / mass, images.sum(1) @ offsets / mass
    below, beside = offsets - down[:, None], offsets - right[:, None]
    slope = torch.einsum("nij,ni,nj->n", images, below, beside) / torch.einsum("nij,ni->n", images, below**2).clamp(
        min=1e-3
    )
    matrix = torch.eye(2, 3).repeat(len(images), 1, 1)
    matrix[:, 0, 1] = slope.clamp(-1, 1)
    matrix[:, 0, 2], matrix[:, 1, 2] = 2 * right / SIDE, 2 * down / SIDE
    grid = functional.affine_grid(matrix, [len(images), 1, SIDE, SIDE], align_corners=False)
    return functional.grid_sample(images[:, None], grid, align_corners=False)[:, 0]
