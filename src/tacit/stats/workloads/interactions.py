"""Tables of counts as sums of interactions, in which everything about them is diagonal.

A table by the columns B is the sum, over all subsets R of B, of r_R / (cells of B without R), repeated along the
columns that R lacks. The interaction r_R is the table by R made to sum to 0 along each of its columns (each axis has
its mean taken off); r of no columns is the total. Interactions of different sets lie in orthogonal spaces, so that

- tables put together from one estimate of each interaction agree in all their margins;
- if the noise of r_R is that of independent cells with variance v_R, put through the same centring, a cell of t_B has
  the variance: sum over R of v_R p_R / (cells of B without R)^2, with p_R the product of (m - 1) / m over the sizes m;
- least squares on several noisy tables goes interaction by interaction: each table by A that has R says r_R with
  variance v_A (cells of A without R), and what they say is averaged by precision.

(The marginals strategies of McKenna et al. 2018 and the residual bases of Xiao, He, Zhang, Kifer 2023 are
these, in other words.) Axes and subsets are tuples of column numbers, in rising order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Set: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = tuple[int, ...]
"""How many cells each column has."""


def subsets(columns: Set) -> list[Set]:
    """Return all subsets of a set, itself among them, the smallest first."""
    return [one for size in range(len(columns) + 1) for one in combinations(columns, size)]


def closure(sets: Iterable[Set]) -> list[Set]:
    """Return all subsets of all sets, the smallest first."""
    found = {one for columns in sets for one in subsets(columns)}
    return sorted(found, key=lambda one: (len(one), one))


def cells(sizes: Sizes, columns: Iterable[int]) -> int:
    """Return how many cells the table by these columns has."""
    return math.prod(sizes[one] for one in columns)


def kept_share(sizes: Sizes, columns: Iterable[int]) -> float:
    """Return p: the squared length of what centring leaves of one row."""
    return math.prod((sizes[one] - 1) / sizes[one] for one in columns)


def centred(table: Numbers) -> Numbers:
    """Return a table with its mean taken off along each axis in turn."""
    return reduce(lambda left, axis: left - left.mean(axis=axis, keepdims=True), range(table.ndim), table)


def weight(sizes: Sizes, sets: Mapping[Set, float], columns: Set) -> float:
    """Return by how much one unit of v_R moves the weighted sum, over tables, of the mean variance of a cell."""
    inside = set(columns)
    p = kept_share(sizes, columns)
    return math.fsum(
        wanted * p / cells(sizes, (one for one in table if one not in inside)) ** 2
        for table, wanted in sets.items()
        if inside <= set(table)
    )


def cell_variance(sizes: Sizes, variances: Mapping[Set, float], table: Set) -> float:
    """Return the variance of a cell of a table, given v of each interaction."""
    return math.fsum(
        variances[one] * kept_share(sizes, one) / cells(sizes, (column for column in table if column not in one)) ** 2
        for one in subsets(table)
    )


def assembled(sizes: Sizes, interactions: Mapping[Set, Numbers], table: Set) -> Numbers:
    """Return a table from its interactions."""
    found = np.zeros([sizes[one] for one in table])
    for one in subsets(table):
        shape = [sizes[column] if column in one else 1 for column in table]
        rest = cells(sizes, (column for column in table if column not in one))
        found = found + interactions[one].reshape(shape) / rest
    return found


def estimated(
    sizes: Sizes, tables: Mapping[Set, NDArray[Any]], variances: Mapping[Set, float], wanted: Sequence[Set]
) -> dict[Set, Numbers]:
    """Return the interactions by generalised least squares from noisy tables with independent cells."""
    found = {one: np.zeros([sizes[column] for column in one]) for one in wanted}
    known = known_variances(sizes, variances, wanted)
    for table, noisy in tables.items():
        for one in subsets(table):
            if one in found:
                dropped = tuple(axis for axis, column in enumerate(table) if column not in one)
                rest = cells(sizes, (column for column in table if column not in one))
                summed = np.asarray(noisy, dtype=np.float64).sum(axis=dropped)
                found[one] = found[one] + centred(summed) * (known[one] / (variances[table] * rest))
    return found


def known_variances(sizes: Sizes, variances: Mapping[Set, float], wanted: Sequence[Set]) -> dict[Set, float]:
    """Return v of each interaction after least squares on tables whose cells have these variances."""
    found = {}
    for one in wanted:
        inside = set(one)
        precision = math.fsum(
            1 / (spread * cells(sizes, (column for column in table if column not in inside)))
            for table, spread in variances.items()
            if inside <= set(table)
        )
        found[one] = 1 / precision if precision else math.inf
    return found


def kurtosis(sizes: Sizes, variances: Mapping[Set, float], known: Mapping[Set, float], table: Set) -> float:
    """Return the excess kurtosis of a cell of `table` when the cells of the measured tables have Laplace noise.

    By symmetry it is that of every cell. The coefficient of a measured cell depends on nothing but on the columns in
    which it has the same value as the cell that is asked for.
    """
    total, second = 0.0, 0.0
    for measured, spread in variances.items():
        common = tuple(one for one in measured if one in table)
        times = cells(sizes, (one for one in measured if one not in table))
        for equal in subsets(common):
            count = times * math.prod(sizes[one] - 1 for one in common if one not in equal)
            share = math.fsum(
                known[one]
                / (spread * cells(sizes, (column for column in measured if column not in one)))
                / cells(sizes, (column for column in table if column not in one))
                * math.prod((column in equal) - 1 / sizes[column] for column in one)
                for one in subsets(common)
                if one in known
            )
            second += count * share**2 * spread
            total += count * share**4 * spread**2
    return 3 * total / second**2 if second else 0.0
