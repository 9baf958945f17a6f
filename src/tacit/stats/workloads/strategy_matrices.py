"""Strategies over the cells of one column: a matrix of integers, or sums over nested partitions (a tree).

A fitted matrix is multiplied by 2^16 and rounded. The rounded matrix is the strategy: its sensitivity is the exact
length of its longest column, and least squares inverts it, so rounding costs a little error and no privacy.

The first level of a tree are the cells; every level is measured as one vector, with independent noise of one variance.
Generalised least squares over a tree takes two passes (Hay, Rastogi, Miklau, Suciu 2010, here for any weights and any
number of children): upwards each node combines its own measurement with the sum of its children, downwards the
difference to the better estimate of the parent is shared among the children in proportion to their variances.

Families of counting queries over the cells of one column, in closed form.

With W the matrix of a family (a row for each query, 0 or 1 for each of n cells), the choice of a strategy needs no more
than V = W'W times a few vectors, and the energy: the sum over queries q and blocks B of equal size of q(B)^2.

    ranges    V[i, j] = (min(i, j) + 1) (n - max(i, j))
    prefixes  V[i, j] = n - max(i, j)
    groups    V[i, j] = 1 where i and j are in one group
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import NoiseFamily
from tacit.privacy.arrays import Numbers

STEPS: Final = 2**16
_SUM_MAX: Final = 2**62


class Matrix:
    """A strategy as rows of integers over cells, of full column rank."""

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.rows: Final = rows
        self.rows.setflags(write=False)

    @classmethod
    def of(cls, strategy: Numbers, law: NoiseFamily) -> Matrix:
        """Round a strategy whose columns have length 1; under Laplace noise rows of zeros are left out."""
        rows = np.rint(strategy * STEPS).astype(np.int64)
        return cls(rows[np.any(rows != 0, axis=1)] if law == "Laplace" else rows)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.rows.shape[1])

    def length(self, law: NoiseFamily) -> Fraction:
        """Return the sensitivity of the sums to one row of data: in L1 exactly, in L2 rounded up by 2^-32."""
        if law == "Laplace":
            return Fraction(int(np.abs(self.rows).sum(axis=0).max()))
        squared = int(np.sum(self.rows**2, axis=0).max())  # entries are at most 2^16, so that 2^30 of them fit
        return Fraction(math.isqrt(squared << 64) + 1, 1 << 32)

    def sums(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact sums; counts that could overflow 63 bits are clamped, which moves no neighbours apart."""
        most = _SUM_MAX // max(1, int(np.abs(self.rows).max())) // self.cells
        found: NDArray[np.int64] = self.rows @ np.clip(cells, -most, most)
        return found

    @cached_property
    def covariance(self) -> Numbers:
        """The covariance of the estimated cells for noise of variance 1 on each sum."""
        from scipy.linalg import cho_factor, cho_solve

        dense = self.rows.astype(np.float64)
        scale = float(np.abs(dense).max())
        factor = cho_factor((dense / scale).T @ (dense / scale))
        found: Numbers = cho_solve(factor, np.eye(self.cells)) / scale**2
        return found

    def estimate(self, noisy: NDArray[Any]) -> Numbers:
        """Return the cells by least squares."""
        found: Numbers = self.covariance @ (self.rows.T.astype(np.float64) @ np.asarray(noisy, dtype=np.float64))
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """A digest of the rows."""
        return hashlib.sha256(repr(self.rows.shape).encode() + self.rows.tobytes()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Matrix({self.rows.shape[0]}x{self.rows.shape[1]}, {self.digest})"


@dataclass(frozen=True, repr=False)
class Tree:
    """Nested partitions of cells: for each level above the cells, the parent of each node of the level below."""

    cells: int
    parents: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def balanced(cls, cells: int, sizes: Sequence[int]) -> Tree:
        """Return the tree whose nodes hold `sizes` neighbouring cells, each size a multiple of the one before."""
        parents, below, count = [], 1, cells
        for size in sizes:
            parents.append(tuple((np.arange(count) // (size // below)).tolist()))
            below, count = size, -(-cells // size)
        return cls(cells, tuple(parents))

    @property
    def sizes(self) -> list[int]:
        """The number of nodes of each level, the cells first."""
        return [self.cells, *(max(one) + 1 for one in self.parents)]

    @property
    def groups(self) -> list[NDArray[np.int64]]:
        """For each level, the node of each cell."""
        found = [np.arange(self.cells)]
        for one in self.parents:
            found.append(np.array(one, dtype=np.int64)[found[-1]])
        return found

    @cached_property
    def _incidences(self) -> list[Any]:
        from scipy.sparse import csr_matrix

        found = []
        for one in self.parents:
            rows, columns = np.array(one), np.arange(len(one))
            found.append(csr_matrix((np.ones(len(one)), (rows, columns)), shape=(max(one) + 1, len(one))))
        return found

    def sums(self, cells: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the exact sums of every level, along the first axis; counts stay below 2^62, so none overflows."""
        found = [np.asarray(cells, dtype=np.int64)]
        for one in self.parents:
            added = np.zeros((max(one) + 1, *cells.shape[1:]), dtype=np.int64)
            np.add.at(added, np.array(one), found[-1])
            found.append(added)
        return found

    def estimate(self, noisy: Sequence[NDArray[Any]], precisions: Sequence[float]) -> Numbers:
        """Return the cells by generalised least squares, a column for each column of `noisy`.

        `precisions` are 1 / variance for each level, that of the cells above 0; a level with precision 0 is not used.
        """
        first = np.asarray(noisy[0], dtype=np.float64)
        values, spreads = [first], [np.full(self.cells, 1 / precisions[0])]
        below: list[tuple[Numbers, Numbers]] = []
        for incidence, level, precision in zip(self._incidences, noisy[1:], precisions[1:], strict=True):
            value, spread = incidence @ values[-1], incidence @ spreads[-1]
            below.append((value, spread))
            if precision:
                joined = 1 / (1 / spread + precision)
                weighted = value * _rowwise(joined / spread, value) + np.asarray(level) * _rowwise(
                    joined * precision, value
                )
                value, spread = weighted, joined
            values.append(value)
            spreads.append(spread)
        final = values[-1]
        for index in reversed(range(len(self.parents))):
            parent = np.array(self.parents[index])
            value, spread = below[index]
            share = spreads[index] / spread[parent]
            final = values[index] + _rowwise(share, values[index]) * (final - value)[parent]
        return final

    def solve(self, queries: Numbers, precisions: Sequence[float]) -> Numbers:
        """Return C q for the covariance C of the estimated cells, one column for each query."""
        empty = [np.zeros((size, *queries.shape[1:])) for size in self.sizes[1:]]
        return self.estimate([queries / precisions[0], *empty], precisions)

    def level_sums(self, cells: Numbers) -> list[Numbers]:
        """Return the sums of every level for real numbers, a column for each column."""
        found = [cells]
        for incidence in self._incidences:
            found.append(incidence @ found[-1])
        return found

    def __repr__(self) -> str:
        digest = hashlib.sha256(repr((self.cells, self.parents)).encode()).hexdigest()[:16]
        return f"Tree({self.sizes}, {digest})"


def _rowwise(factors: Numbers, like: Numbers) -> Numbers:
    """Return one factor for each row, in a shape that multiplies `like`."""
    return factors if like.ndim == 1 else factors[:, None]


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
