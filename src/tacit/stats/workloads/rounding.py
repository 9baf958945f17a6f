"""From unbiased estimates to counts that are integers, not negative, and consistent with one another.

It is post-processing of released numbers, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.stats.workloads.strategy_matrices import Tree

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]
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
