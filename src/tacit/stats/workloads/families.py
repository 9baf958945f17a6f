"""Families of counting queries over the cells of one column, in closed form.

With W the matrix of a family (a row for each query, 0 or 1 for each of n cells), the choice of a strategy needs no more
than V = W'W times a few vectors, and the energy: the sum over queries q and blocks B of equal size of q(B)^2.

    ranges    V[i, j] = (min(i, j) + 1) (n - max(i, j))
    prefixes  V[i, j] = n - max(i, j)
    groups    V[i, j] = 1 where i and j are in one group
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Family(ABC):
    """A family of counting queries over n cells."""

    cells: int

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of queries."""

    @abstractmethod
    def times(self, matrix: Numbers) -> Numbers:
        """Return V times a matrix of n rows."""

    @property
    @abstractmethod
    def diagonal(self) -> Numbers:
        """The diagonal of V: the number of queries that hold each cell."""

    @abstractmethod
    def energy(self, size: int) -> float:
        """Return the sum, over queries and blocks of `size` neighbouring cells, of (cells in both)^2."""


@dataclass(frozen=True)
class AllRanges(Family):
    """All ranges of neighbouring cells."""

    @property
    def count(self) -> int:
        return self.cells * (self.cells + 1) // 2

    def times(self, matrix: Numbers) -> Numbers:
        place = np.arange(1, self.cells + 1, dtype=np.float64)[:, None]
        after = self.cells + 1 - place
        left = np.cumsum(place * matrix, axis=0)
        right = np.cumsum((after * matrix)[::-1], axis=0)[::-1]
        found: Numbers = after * left
        found[:-1] += place[:-1] * right[1:]
        return found

    @property
    def diagonal(self) -> Numbers:
        place = np.arange(1, self.cells + 1, dtype=np.float64)
        return place * (self.cells + 1 - place)

    def energy(self, size: int) -> float:
        starts, lengths = _blocks(self.cells, size)
        before, after = starts, self.cells - starts - lengths
        squares = lengths * (lengths + 1) * (2 * lengths + 1) / 6
        inside = lengths * (lengths + 1) ** 2 * (lengths + 2) / 12
        return float(np.sum(before * after * lengths**2 + (before + after) * squares + inside))


@dataclass(frozen=True)
class AllPrefixes(Family):
    """All cells up to each one."""

    @property
    def count(self) -> int:
        return self.cells

    def times(self, matrix: Numbers) -> Numbers:
        after = np.arange(self.cells, 0, -1, dtype=np.float64)[:, None]
        right = np.cumsum((after * matrix)[::-1], axis=0)[::-1]
        found: Numbers = after * np.cumsum(matrix, axis=0)
        found[:-1] += right[1:]
        return found

    @property
    def diagonal(self) -> Numbers:
        return np.arange(self.cells, 0, -1, dtype=np.float64)

    def energy(self, size: int) -> float:
        starts, lengths = _blocks(self.cells, size)
        squares = lengths * (lengths + 1) * (2 * lengths + 1) / 6
        return float(np.sum(squares + (self.cells - starts - lengths) * lengths**2))


@dataclass(frozen=True)
class Groups(Family):
    """The groups of one level of a hierarchy; `groups` has the group of each cell."""

    groups: tuple[int, ...]

    @property
    def count(self) -> int:
        return max(self.groups) + 1

    def times(self, matrix: Numbers) -> Numbers:
        index = np.array(self.groups)
        summed = np.zeros((self.count, matrix.shape[1]))
        np.add.at(summed, index, matrix)
        found: Numbers = summed[index]
        return found

    @property
    def diagonal(self) -> Numbers:
        return np.ones(self.cells)

    def energy(self, size: int) -> float:
        pairs = np.array(self.groups, dtype=np.int64) * self.cells + np.arange(self.cells) // size
        return float(np.sum(np.unique(pairs, return_counts=True)[1].astype(np.float64) ** 2))


def mean_times(families: tuple[Family, ...], matrix: Numbers) -> Numbers:
    """Return V times a matrix for several families, in which a query weighs 1 / (queries of its family)."""
    found = families[0].times(matrix) / families[0].count
    for family in families[1:]:
        found += family.times(matrix) / family.count
    return found


def mean_diagonal(families: tuple[Family, ...]) -> Numbers:
    """Return the diagonal of the same V."""
    return np.asarray(np.sum([family.diagonal / family.count for family in families], axis=0))


def mean_energy(families: tuple[Family, ...], size: int) -> float:
    """Return the energy of the same V."""
    return math.fsum(family.energy(size) / family.count for family in families)


def _blocks(cells: int, size: int) -> tuple[Numbers, Numbers]:
    starts = np.arange(0, cells, size, dtype=np.float64)
    return starts, np.minimum(size, cells - starts)
