"""What is computed from the released sums of a part: estimates by least squares, whole numbers, variances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import Laplace
from tacit.privacy.errors import InvalidInput
from tacit.stats.workloads import interactions
from tacit.stats.workloads.cells import Level, labels_of
from tacit.stats.workloads.centred_noise import CentredGaussian
from tacit.stats.workloads.counted import Counted, Table
from tacit.stats.workloads.interactions import Set
from tacit.stats.workloads.matrices import Matrix
from tacit.stats.workloads.parts import Crossed, Line, Tables
from tacit.stats.workloads.purse import variance
from tacit.stats.workloads.quantiles import LAPLACE_KURTOSIS
from tacit.stats.workloads.trees import Tree
from tacit.stats.workloads.whole import whole_cells, whole_tables

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]
MANY: Final = 256
"""How many queries are solved for at once."""
EXACT_MAX: Final = 4096
"""Up to how many queries the kurtosis of each is computed; beyond, that of a single Laplace noise is taken."""
ROUNDING_BRANCH: Final = 4


class LineAnswer:
    """Counts over the cells of one column."""

    def __init__(self, part: Line, released: Sequence[NDArray[Any]]) -> None:
        self.part: Final = part
        self._released = released
        self._precisions = [1 / variance(noise) for noise in part.noises]
        self._laplace = isinstance(part.noises[0], Laplace)

    @cached_property
    def estimates(self) -> Numbers:
        """The cells by generalised least squares: unbiased, and possibly below 0."""
        strategy = self.part.strategy
        if isinstance(strategy, Matrix):
            return strategy.estimate(self._released[0])
        return strategy.estimate(self._released, self._precisions)

    @cached_property
    def values(self) -> Whole:
        """The cells as whole numbers of at least 0; every other count is a sum of them."""
        strategy, cells = self.part.strategy, self.part.cut.cells
        if isinstance(strategy, Matrix):
            sizes = [ROUNDING_BRANCH]
            while sizes[-1] * ROUNDING_BRANCH < cells:
                sizes.append(sizes[-1] * ROUNDING_BRANCH)
            strategy = Tree.balanced(cells, sizes)
        return whole_cells(self.estimates, strategy)

    def spreads(self, queries: Numbers) -> tuple[Numbers, Numbers]:
        """Return the variance and the excess kurtosis of the estimates of queries, one a column."""
        strategy = self.part.strategy
        if isinstance(strategy, Matrix):
            each = variance(self.part.noises[0])
            solved = strategy.covariance @ queries
            spread = np.sum(queries * solved, axis=0) * each
            weights = strategy.rows @ solved if self._laplace else np.zeros((1, queries.shape[1]))
            fourth = np.sum(weights**4, axis=0) * each**2
        else:
            solved = strategy.solve(queries, self._precisions)
            spread = np.sum(queries * solved, axis=0)
            levels = strategy.levels_of(solved) if self._laplace else []
            fourth = np.zeros(queries.shape[1])
            for level, precision in zip(levels, self._precisions, strict=False):
                fourth += precision**2 * np.sum(level**4, axis=0)
        return spread, LAPLACE_KURTOSIS * fourth / spread**2

    def counted(self, first: int, last: int) -> Counted:
        """Return the count of a range of cells."""
        query = np.zeros((self.part.cut.cells, 1))
        query[first:last] = 1.0
        spread, kurtosis = self.spreads(query)
        value, estimate = int(self.values[first:last].sum()), float(self.estimates[first:last].sum())
        return Counted(value, estimate, float(spread[0]), float(kurtosis[0]))

    def table(self, level: Level) -> Table:
        """Return the counts of the groups of a level."""
        groups, count = np.array(level.groups), len(level.labels)
        values = np.zeros(count, dtype=np.int64)
        np.add.at(values, groups, self.values)
        estimates = np.asarray(np.bincount(groups, weights=self.estimates, minlength=count), dtype=np.float64)
        spread, kurtosis = self._all(groups, count, running=False)
        return Table((level.name,), (level.labels,), values, estimates, spread, kurtosis)

    def prefixes(self) -> Table:
        """Return the counts up to each cell."""
        cells = self.part.cut.cells
        spread, kurtosis = self._all(np.arange(cells), cells, running=True)
        labels = labels_of(self.part.cut)
        values: Whole = np.cumsum(self.values)
        estimates = np.asarray(np.cumsum(self.estimates), dtype=np.float64)
        return Table((self.part.name,), (labels,), values, estimates, spread, kurtosis)

    def _all(self, groups: NDArray[np.int64], count: int, *, running: bool) -> tuple[Numbers, Any]:
        """Return the variances and kurtoses of all groups, or of all prefixes."""
        if count > EXACT_MAX or self.part.cut.cells > EXACT_MAX * 16:
            return self._bounds(groups, count, running=running)
        spreads, tails = [], []
        for start in range(0, count, MANY):
            some = np.arange(start, min(count, start + MANY))
            chosen = groups[:, None] <= some if running else groups[:, None] == some
            spread, kurtosis = self.spreads(chosen.astype(np.float64))
            spreads.append(spread)
            tails.append(kurtosis)
        return np.concatenate(spreads), np.concatenate(tails)

    def _bounds(self, groups: NDArray[np.int64], count: int, *, running: bool) -> tuple[Numbers, Any]:
        """Return the variances of some groups, between which those of the others lie, nearly, and no less."""
        some = np.unique(np.linspace(0, count - 1, MANY).astype(np.int64))
        chosen = groups[:, None] <= some if running else groups[:, None] == some
        spread, _ = self.spreads(chosen.astype(np.float64))
        return np.full(count, spread.max()), LAPLACE_KURTOSIS if self._laplace else 0.0


class CrossedAnswer:
    """Counts over the cells of two columns."""

    def __init__(self, part: Crossed, released: Sequence[NDArray[Any]]) -> None:
        self.part: Final = part
        self._released = released
        self._laplace = isinstance(part.noises[0][0], Laplace)
        one, other = part.strategies
        base = variance(part.noises[0][0]) * self._power(one.shares[0] * other.shares[0])
        self._first = [self._power(share) / base for share in one.shares]
        self._second = [self._power(share) for share in other.shares]

    def _power(self, share: float) -> float:
        return share**2 if self._laplace else share

    @cached_property
    def estimates(self) -> Numbers:
        """The cells by generalised least squares, along one column and then the other."""
        one, other = self.part.strategies
        width = len(other.shares)
        along = []
        for index in range(len(one.shares)):
            levels = [np.asarray(level, dtype=np.float64).T for level in self._released[index * width :][:width]]
            along.append(other.tree.estimate(levels, self._second).T)
        return one.tree.estimate(along, self._first)

    @cached_property
    def values(self) -> Whole:
        """The cells as whole numbers of at least 0: first along one column, then within each cell of it."""
        one, other = self.part.strategies
        totals = whole_cells(self.estimates.sum(axis=1), one.tree)
        return np.stack(
            [whole_cells(_moved(row, n), other.tree) for row, n in zip(self.estimates, totals, strict=True)]
        )

    def counted(self, rows: slice, columns: slice) -> Counted:
        """Return the count of a range of each column."""
        spreads, kurtosis = [], 1.0
        for strategy, chosen, precisions in zip(
            self.part.strategies, (rows, columns), (self._first, self._second), strict=True
        ):
            query = np.zeros((strategy.tree.cells, 1))
            query[chosen] = 1.0
            solved = strategy.tree.solve(query, precisions)
            spreads.append(float(np.sum(query * solved)))
            levels = strategy.tree.levels_of(solved)
            fourth = sum(float(c**2 * np.sum(level**4)) for c, level in zip(precisions, levels, strict=True))
            kurtosis *= fourth / spreads[-1] ** 2
        value, estimate = self.values[rows, columns].sum(), self.estimates[rows, columns].sum()
        tail = LAPLACE_KURTOSIS * kurtosis if self._laplace else 0.0
        return Counted(int(value), float(estimate), spreads[0] * spreads[1], tail)

    def table(self) -> Table:
        """Return the counts of all cells."""
        spreads = [
            np.array([float(np.diag(strategy.tree.solve(np.eye(strategy.tree.cells), precisions)).max())])
            for strategy, precisions in zip(self.part.strategies, (self._first, self._second), strict=True)
        ]
        labels = (labels_of(self.part.cuts[0]), labels_of(self.part.cuts[1]))
        spread = float(spreads[0][0] * spreads[1][0])
        tail = LAPLACE_KURTOSIS if self._laplace else 0.0
        return Table(self.part.names, labels, self.values, self.estimates, spread, tail)


class TablesAnswer:
    """Counts in tables by sets of columns, which agree with one another."""

    def __init__(self, part: Tables, released: Sequence[NDArray[Any]]) -> None:
        self.part: Final = part
        self.names: Final = part.names
        self._sets = interactions.closure(part.sets)
        sizes = part.sizes
        noises = dict(part.measured)
        arrays = dict(zip(noises, released, strict=True))
        self._spreads: dict[Set, float] = {}
        if part.is_centred:
            shapes = {one: [sizes[column] for column in one] for one in self._sets}
            self._known = dict.fromkeys(self._sets, 0.0)  # a column with one cell has no interaction, and no noise
            self._found = {one: np.zeros(shape) for one, shape in shapes.items()}
            for one, noise in noises.items():
                if isinstance(noise, CentredGaussian):
                    self._known[one] = noise.variance
                    self._found[one] = noise.centred(arrays[one])
        else:
            self._spreads = {one: variance(noise) for one, noise in noises.items() if isinstance(noise, Laplace)}
            self._known = interactions.known_variances(sizes, self._spreads, self._sets)
            self._found = interactions.estimated(sizes, arrays, self._spreads, self._sets)

    @cached_property
    def values(self) -> dict[Set, Whole]:
        """All tables and their margins as whole numbers of at least 0; what is promised of them: `whole_tables`."""
        estimates = {one: self.estimate(one) for one in self._sets}
        return whole_tables(estimates, self._sets)

    def estimate(self, columns: Set) -> Numbers:
        """Return a table by generalised least squares: unbiased, and all of them agree in their margins."""
        return interactions.assembled(self.part.sizes, self._found, columns)

    def table(self, *names: str) -> Table:
        """Return the table by some columns, in the order in which they are named."""
        places = [self.names.index(name) if name in self.names else -1 for name in names]
        columns = tuple(sorted(places))
        if len(set(places)) != len(names) or columns not in self._known:
            listed = " and ".join(names) or "no column"
            raise InvalidInput(f"the table by {listed} was not asked for, nor any that holds it", name="columns")
        order = [columns.index(place) for place in places]
        sizes = self.part.sizes
        tail = interactions.kurtosis(sizes, self._spreads, self._known, columns) if self._spreads else 0.0
        return Table(
            names,
            tuple(labels_of(self.part.cuts[place]) for place in places),
            np.transpose(self.values[columns], order),
            np.transpose(self.estimate(columns), order),
            interactions.cell_variance(sizes, self._known, columns),
            tail,
        )


def _moved(row: Numbers, total: int) -> Numbers:
    """Return estimates moved evenly, so that they add up to a total."""
    return np.asarray(row + (float(total) - row.sum()) / len(row))
