"""Sums over nested partitions of the cells of a column, and what least squares makes of them.

A tree has levels, the first being the cells themselves; every level is measured as one vector, with independent noise
of one variance a level. Generalised least squares over a tree takes two passes (Hay, Rastogi, Miklau, Suciu 2010, here
for any weights and any number of children): upwards each node joins its own measurement with what its children say,
downwards what the parent knows better is shared among the children in proportion to their variances.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Tree:
    """Nested partitions: for each level above the cells, in which node each node of the level below it lies."""

    cells: int
    parents: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def balanced(cls, cells: int, sizes: Sequence[int]) -> Tree:
        """Return the tree whose nodes hold so many neighbouring cells, each size a multiple of the one before."""
        parents, below, count = [], 1, cells
        for size in sizes:
            parents.append(tuple((np.arange(count) // (size // below)).tolist()))
            below, count = size, -(-cells // size)
        return cls(cells, tuple(parents))

    @property
    def sizes(self) -> list[int]:
        """How many nodes each level has, the cells first."""
        return [self.cells, *(max(one) + 1 for one in self.parents)]

    @property
    def groups(self) -> list[NDArray[np.int64]]:
        """For each level, in which node each cell lies."""
        found = [np.arange(self.cells)]
        for one in self.parents:
            found.append(np.array(one, dtype=np.int64)[found[-1]])
        return found

    @cached_property
    def _steps(self) -> list[Any]:
        from scipy.sparse import csr_matrix

        found = []
        for one in self.parents:
            rows, columns = np.array(one), np.arange(len(one))
            found.append(csr_matrix((np.ones(len(one)), (rows, columns)), shape=(max(one) + 1, len(one))))
        return found

    def sums(self, cells: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the exact sums of every level, along the first axis; of counts of rows, which do not reach 2^62."""
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
        for step, level, precision in zip(self._steps, noisy[1:], precisions[1:], strict=True):
            value, spread = step @ values[-1], step @ spreads[-1]
            below.append((value, spread))
            if precision:
                joined = 1 / (1 / spread + precision)
                weighted = value * _as(joined / spread, value) + np.asarray(level) * _as(joined * precision, value)
                value, spread = weighted, joined
            values.append(value)
            spreads.append(spread)
        final = values[-1]
        for index in reversed(range(len(self.parents))):
            parent = np.array(self.parents[index])
            value, spread = below[index]
            share = spreads[index] / spread[parent]
            final = values[index] + _as(share, values[index]) * (final - value)[parent]
        return final

    def solve(self, queries: Numbers, precisions: Sequence[float]) -> Numbers:
        """Return C q for the covariance C of the estimated cells, one column for each query."""
        empty = [np.zeros((size, *queries.shape[1:])) for size in self.sizes[1:]]
        return self.estimate([queries / precisions[0], *empty], precisions)

    def levels_of(self, cells: Numbers) -> list[Numbers]:
        """Return sums of every level, a column for each column."""
        found = [cells]
        for step in self._steps:
            found.append(step @ found[-1])
        return found

    def __repr__(self) -> str:
        digest = hashlib.sha256(repr((self.cells, self.parents)).encode()).hexdigest()[:16]
        return f"Tree({self.sizes}, {digest})"


def _as(factors: Numbers, like: Numbers) -> Numbers:
    return factors if like.ndim == 1 else factors[:, None]
