"""Estimates from the released sums of a part of a workload: least squares, variances and rounded counts.

It is post-processing of released numbers, and costs nothing.

From unbiased estimates to counts that are integers, not negative, and consistent with one another.

It is post-processing of released numbers, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.intervals import LAPLACE_KURTOSIS, variance
from tacit.mechanisms import Laplace
from tacit.privacy.arrays import Numbers, Whole
from tacit.privacy.errors import InvalidInput
from tacit.stats.workloads import interactions
from tacit.stats.workloads.centred_gaussian import CentredGaussian
from tacit.stats.workloads.counts import CountTable, NoisyCount
from tacit.stats.workloads.interactions import ColumnSet
from tacit.stats.workloads.parts import ColumnPart, Crossed, Tables
from tacit.stats.workloads.query_sets import Level, labels_of
from tacit.stats.workloads.strategy_matrices import Matrix, Tree

MANY: Final = 256
"""The number of queries that are solved for at once."""
EXACT_MAX: Final = 4096
"""The greatest number of queries of which each kurtosis is computed; beyond it, that of a Laplace noise is taken."""
ROUNDING_BRANCH: Final = 4


class ColumnEstimates:
    """Estimates over the cells of one column."""

    def __init__(self, part: ColumnPart, released: Sequence[NDArray[Any]]) -> None:
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
        """The cells as integers of at least 0; every other count is a sum of them."""
        strategy, cells = self.part.strategy, self.part.cut.cells
        if isinstance(strategy, Matrix):
            sizes = [ROUNDING_BRANCH]
            while sizes[-1] * ROUNDING_BRANCH < cells:
                sizes.append(sizes[-1] * ROUNDING_BRANCH)
            strategy = Tree.balanced(cells, sizes)
        return round_cells(self.estimates, strategy)

    def variances(self, queries: Numbers) -> tuple[Numbers, Numbers]:
        """Return the variances and the excess kurtoses of the estimates of queries, one for each column."""
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
            levels = strategy.level_sums(solved) if self._laplace else []
            fourth = np.zeros(queries.shape[1])
            for level, precision in zip(levels, self._precisions, strict=False):
                fourth += precision**2 * np.sum(level**4, axis=0)
        return spread, LAPLACE_KURTOSIS * fourth / spread**2

    def count(self, first: int, last: int) -> NoisyCount:
        """Return the count of a range of cells."""
        query = np.zeros((self.part.cut.cells, 1))
        query[first:last] = 1.0
        spread, kurtosis = self.variances(query)
        value, estimate = int(self.values[first:last].sum()), float(self.estimates[first:last].sum())
        return NoisyCount(value, estimate, float(spread[0]), float(kurtosis[0]))

    def table(self, level: Level) -> CountTable:
        """Return the counts of the groups of a level."""
        groups, count = np.array(level.groups), len(level.labels)
        values = np.zeros(count, dtype=np.int64)
        np.add.at(values, groups, self.values)
        estimates = np.asarray(np.bincount(groups, weights=self.estimates, minlength=count), dtype=np.float64)
        spread, kurtosis = self._all_variances(groups, count, running=False)
        return CountTable((level.name,), (level.labels,), values, estimates, spread, kurtosis)

    def prefixes(self) -> CountTable:
        """Return the counts up to each cell."""
        cells = self.part.cut.cells
        spread, kurtosis = self._all_variances(np.arange(cells), cells, running=True)
        labels = labels_of(self.part.cut)
        values: Whole = np.cumsum(self.values)
        estimates = np.asarray(np.cumsum(self.estimates), dtype=np.float64)
        return CountTable((self.part.name,), (labels,), values, estimates, spread, kurtosis)

    def _all_variances(self, groups: NDArray[np.int64], count: int, *, running: bool) -> tuple[Numbers, Any]:
        """Return the variances and kurtoses of all groups, or of all prefixes."""
        if count > EXACT_MAX or self.part.cut.cells > EXACT_MAX * 16:
            return self._largest_variance(groups, count, running=running)
        spreads, tails = [], []
        for start in range(0, count, MANY):
            some = np.arange(start, min(count, start + MANY))
            chosen = groups[:, None] <= some if running else groups[:, None] == some
            spread, kurtosis = self.variances(chosen.astype(np.float64))
            spreads.append(spread)
            tails.append(kurtosis)
        return np.concatenate(spreads), np.concatenate(tails)

    def _largest_variance(self, groups: NDArray[np.int64], count: int, *, running: bool) -> tuple[Numbers, Any]:
        """Return the largest variance among some groups for all of them: those of the others are hardly larger."""
        some = np.unique(np.linspace(0, count - 1, MANY).astype(np.int64))
        chosen = groups[:, None] <= some if running else groups[:, None] == some
        spread, _ = self.variances(chosen.astype(np.float64))
        return np.full(count, spread.max()), LAPLACE_KURTOSIS if self._laplace else 0.0


class ProductEstimates:
    """Estimates over the cells of two columns."""

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
        """The cells as integers of at least 0: first along one column, then within each cell of it."""
        one, other = self.part.strategies
        totals = round_cells(self.estimates.sum(axis=1), one.tree)
        return np.stack(
            [round_cells(_shift_to_total(row, n), other.tree) for row, n in zip(self.estimates, totals, strict=True)]
        )

    def count(self, rows: slice, columns: slice) -> NoisyCount:
        """Return the count of a range of each column."""
        spreads, kurtosis = [], 1.0
        for strategy, chosen, precisions in zip(
            self.part.strategies, (rows, columns), (self._first, self._second), strict=True
        ):
            query = np.zeros((strategy.tree.cells, 1))
            query[chosen] = 1.0
            solved = strategy.tree.solve(query, precisions)
            spreads.append(float(np.sum(query * solved)))
            levels = strategy.tree.level_sums(solved)
            fourth = sum(float(c**2 * np.sum(level**4)) for c, level in zip(precisions, levels, strict=True))
            kurtosis *= fourth / spreads[-1] ** 2
        value, estimate = self.values[rows, columns].sum(), self.estimates[rows, columns].sum()
        tail = LAPLACE_KURTOSIS * kurtosis if self._laplace else 0.0
        return NoisyCount(int(value), float(estimate), spreads[0] * spreads[1], tail)

    def table(self) -> CountTable:
        """Return the counts of all cells."""
        one, other = (
            float(np.diag(strategy.tree.solve(np.eye(strategy.tree.cells), precisions)).max())
            for strategy, precisions in zip(self.part.strategies, (self._first, self._second), strict=True)
        )
        labels = (labels_of(self.part.cuts[0]), labels_of(self.part.cuts[1]))
        tail = LAPLACE_KURTOSIS if self._laplace else 0.0
        return CountTable(self.part.names, labels, self.values, self.estimates, one * other, tail)


class TableEstimates:
    """Estimates of tables by sets of columns, consistent with one another."""

    def __init__(self, part: Tables, released: Sequence[NDArray[Any]]) -> None:
        self.part: Final = part
        self.names: Final = part.names
        self._sets = interactions.closure(part.sets)
        sizes = part.sizes
        noises = dict(part.measured)
        arrays = dict(zip(noises, released, strict=True))
        self._spreads: dict[ColumnSet, float] = {}
        if part.is_centred:
            shapes = {one: [sizes[column] for column in one] for one in self._sets}
            self._known = dict.fromkeys(self._sets, 0.0)  # a column with one cell has no interaction
            self._found = {one: np.zeros(shape) for one, shape in shapes.items()}
            for one, noise in noises.items():
                if isinstance(noise, CentredGaussian):
                    self._known[one] = noise.variance
                    self._found[one] = noise.centred(arrays[one])
        else:
            self._spreads = {one: variance(noise) for one, noise in noises.items() if isinstance(noise, Laplace)}
            self._known = interactions.interaction_variances(sizes, self._spreads, self._sets)
            self._found = interactions.estimate_interactions(sizes, arrays, self._spreads, self._sets)

    @cached_property
    def values(self) -> dict[ColumnSet, Whole]:
        """All tables and their margins as integers of at least 0, consistent as `round_tables` says."""
        estimates = {one: self.estimate(one) for one in self._sets}
        return round_tables(estimates, self._sets)

    def estimate(self, columns: ColumnSet) -> Numbers:
        """Return a table by generalised least squares: unbiased, and consistent with the others in its margins."""
        return interactions.assemble_table(self.part.sizes, self._found, columns)

    def table(self, *names: str) -> CountTable:
        """Return the table by some columns, in the order in which they are named."""
        places = [self.names.index(name) if name in self.names else -1 for name in names]
        columns = tuple(sorted(places))
        if len(set(places)) != len(names) or columns not in self._known:
            listed = " and ".join(names) or "no column"
            raise InvalidInput(f"neither the table by {listed} nor a table that holds it was released", name="columns")
        order = [columns.index(place) for place in places]
        sizes = self.part.sizes
        tail = interactions.kurtosis(sizes, self._spreads, self._known, columns) if self._spreads else 0.0
        return CountTable(
            names,
            tuple(labels_of(self.part.cuts[place]) for place in places),
            np.transpose(self.values[columns], order),
            np.transpose(self.estimate(columns), order),
            interactions.cell_variance(sizes, self._known, columns),
            tail,
        )


def _shift_to_total(row: Numbers, total: int) -> Numbers:
    """Return estimates shifted evenly, so that they sum to a total."""
    return np.asarray(row + (float(total) - row.sum()) / len(row))


ROUNDS_MAX: Final = 300
_CLOSE: Final = 1e-2


def project_to_simplex(values: Numbers, total: float) -> Numbers:
    """Return the nearest numbers (L2) of at least 0 that add up to `total`."""
    if total <= 0:
        return np.zeros_like(values)
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    return np.asarray(np.maximum(values - over[last], 0.0))


def round_to_total(values: Numbers, total: int) -> Whole:
    """Return integers near numbers of at least 0, both with the sum `total`: the largest remainders are rounded up."""
    floor: Whole = np.floor(values + 1e-9).astype(np.int64)
    missing = total - int(floor.sum())
    order = np.argsort(-(values - floor), kind="stable")
    if missing >= 0:
        each, more = divmod(missing, len(values))
        floor += each
        floor[order[:more]] += 1
        return floor
    for place in order[::-1]:  # only for counts that doubles do not represent exactly
        taken = min(-missing, int(floor[place]))
        floor[place] -= taken
        missing += taken
    return floor


def round_cells(estimate: Numbers, tree: Tree) -> Whole:
    """Return cells as integers of at least 0, from the root of a tree downwards.

    The count of each node is divided over its children, as near to their estimates as possible, so that sums over nodes
    stay near their estimates; clamping cell by cell would raise all sums.
    """
    levels = tree.level_sums(estimate)
    total = max(0, round(float(levels[-1].sum())))
    above = round_to_total(project_to_simplex(levels[-1], total), total)
    for parents, values in zip(reversed(tree.parents), reversed(levels[:-1]), strict=True):
        parent = np.array(parents)
        order = np.argsort(parent, kind="stable")
        edges = np.searchsorted(parent[order], np.arange(len(above) + 1))
        below = np.zeros(len(values), dtype=np.int64)
        for node in range(len(above)):
            children = order[edges[node] : edges[node + 1]]
            below[children] = round_to_total(project_to_simplex(values[children], float(above[node])), int(above[node]))
        above = below
    return above


def round_tables(estimates: Mapping[tuple[int, ...], Numbers], order: Sequence[tuple[int, ...]]) -> dict[Any, Whole]:
    """Return tables as integers of at least 0; `order` is a closure, the smallest first.

    All tables have one total. A two-way table has the one-way tables as its margins. A table by three or more columns
    sums, over its last column, to the table by the others; its other margins agree up to noise only, because integer
    tables with all given margins need not exist.
    """
    found: dict[Any, Whole] = {}
    for columns in order:
        estimate = estimates[columns]
        if not columns:
            found[columns] = np.array(max(0, round(float(estimate))), dtype=np.int64)
        elif len(columns) == 2:
            found[columns] = round_with_margins(estimate, found[columns[:1]], found[columns[1:]])
        else:
            above = found[columns[:-1]].reshape(-1)
            flat = estimate.reshape(-1, estimate.shape[-1])
            rows = [
                round_to_total(project_to_simplex(row, float(n)), int(n)) for row, n in zip(flat, above, strict=True)
            ]
            found[columns] = np.array(rows, dtype=np.int64).reshape(estimate.shape)
    return found


def round_with_margins(estimate: Numbers, rows: Whole, columns: Whole) -> Whole:
    """Return a table of integers of at least 0 near an estimate, with given sums of its rows and columns."""
    near = _project_to_margins(estimate, rows.astype(np.float64), columns.astype(np.float64))
    floor: Whole = np.floor(near + 1e-9).astype(np.int64)
    for axis, wanted in ((1, rows), (0, columns)):  # rare: where the projection has not converged
        over = floor.sum(axis=axis) - wanted
        for place in np.flatnonzero(over > 0):
            line = floor[place] if axis == 1 else floor[:, place]
            line[:] = round_to_total(
                project_to_simplex(line.astype(np.float64), float(wanted[place])), int(wanted[place])
            )
    _fill_margins(floor, rows, columns, near - floor)
    return floor


def _project_to_margins(estimate: Numbers, rows: Numbers, columns: Numbers) -> Numbers:
    """Return a table of at least 0 with given margins, nearly the nearest: Dykstra's alternating projections."""
    height, width = estimate.shape
    total = rows.sum()
    table, held = estimate, np.zeros_like(estimate)
    for _ in range(ROUNDS_MAX):
        by_row, by_column = rows - table.sum(axis=1), columns - table.sum(axis=0)
        table = table + by_row[:, None] / width + by_column / height - (total - table.sum()) / (height * width)
        moved = table + held
        table = np.maximum(moved, 0.0)
        held = moved - table
        if max(np.abs(rows - table.sum(axis=1)).max(), np.abs(columns - table.sum(axis=0)).max()) < _CLOSE:
            break
    return table


def _fill_margins(floor: Whole, rows: Whole, columns: Whole, fractions: Numbers) -> None:
    """Add ones in place until the margins are met: by a maximum flow over cells with fractions, then anywhere."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    height, width = floor.shape
    needs, takes = rows - floor.sum(axis=1), columns - floor.sum(axis=0)
    if not needs.any():
        return
    open_cells = np.argwhere(fractions > 1e-9)
    source, sink = height + width, height + width + 1
    tails = np.r_[np.full(height, source), open_cells[:, 0], height + np.arange(width)]
    heads = np.r_[np.arange(height), height + open_cells[:, 1], np.full(width, sink)]
    room = np.minimum(np.r_[needs, np.ones(len(open_cells), dtype=np.int64), takes], 2**30).astype(np.int32)
    graph = csr_matrix((room, (tails, heads)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(graph, source, sink).flow.toarray()[:height, height : height + width]
    floor += np.maximum(flow, 0)
    needs, takes = rows - floor.sum(axis=1), columns - floor.sum(axis=0)
    while needs.any():
        row, column = int(np.argmax(needs)), int(np.argmax(takes))
        more = min(int(needs[row]), int(takes[column]))
        floor[row, column] += more
        needs[row] -= more
        takes[column] -= more
