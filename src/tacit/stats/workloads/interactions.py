"""Marginal tables as sums of interactions, and the choice of what is measured for a set of tables.

A table by the columns B is the sum, over all subsets R of B, of r_R / (cells of B without R), repeated along the
columns that R lacks. The interaction r_R is the table by R made to sum to 0 along each of its columns (the mean of each
axis is subtracted); r of no columns is the total. Interactions of different sets lie in orthogonal spaces, so that

- tables assembled from one estimate of each interaction agree in all their margins;
- if the noise of r_R is that of independent cells with variance v_R, put through the same centring, a cell of t_B has
  the variance: sum over R of v_R p_R / (cells of B without R)^2, with p_R the product of (m - 1) / m over the sizes m;
- least squares on several noisy tables goes interaction by interaction: each table by A that has R gives r_R with
  variance v_A (cells of A without R), and these estimates are averaged by precision.

(The marginals strategies of McKenna et al. 2018 and the residual bases of Xiao, He, Zhang, Kifer 2023 are the same.)
Axes and subsets are tuples of column numbers, in rising order.

What is measured is chosen without data. The error is the mean variance of a cell, each table of the workload weighing
the same. Under Gaussian noise each interaction is measured by itself (`centred_gaussian`), with v_R proportional to
sqrt(p_R / u_R), where u_R is its weight in the error: the least error is (sum of sqrt(u_R p_R))^2 for a loss of 1, by
the inequality of Cauchy and Schwarz, and no matrix mechanism with Gaussian noise has less (Xiao, He, Zhang, Kifer
2023). Under Laplace noise whole tables are measured: those of the workload, their margins and tables that hold several
of them, with shares of epsilon fitted by L-BFGS from several starts (McKenna, Miklau, Hay, Machanavajjhala 2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.arrays import Numbers

ColumnSet: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = tuple[int, ...]
"""The number of cells of each column."""

CANDIDATES_MAX: Final = 128
TABLE_MAX: Final = 2**16
"""The greatest size of a measured table that is not in the workload."""
SHARE_MIN: Final = 1e-3


def subsets(columns: ColumnSet) -> list[ColumnSet]:
    """Return all subsets of a set, with itself, the smallest first."""
    return [one for size in range(len(columns) + 1) for one in combinations(columns, size)]


def closure(sets: Iterable[ColumnSet]) -> list[ColumnSet]:
    """Return all subsets of all sets, the smallest first."""
    found = {one for columns in sets for one in subsets(columns)}
    return sorted(found, key=lambda one: (len(one), one))


def cells(sizes: Sizes, columns: Iterable[int]) -> int:
    """Return the number of cells of the table by these columns."""
    return math.prod(sizes[one] for one in columns)


def kept_share(sizes: Sizes, columns: Iterable[int]) -> float:
    """Return p, the squared length that centring leaves of one row."""
    return math.prod((sizes[one] - 1) / sizes[one] for one in columns)


def centre(table: Numbers) -> Numbers:
    """Return a table with its mean subtracted along each axis in turn."""
    return reduce(lambda left, axis: left - left.mean(axis=axis, keepdims=True), range(table.ndim), table)


def interaction_weight(sizes: Sizes, sets: Mapping[ColumnSet, float], columns: ColumnSet) -> float:
    """Return the weight u_R of v_R in the sum, weighted over tables, of the mean variance of a cell."""
    inside = set(columns)
    p = kept_share(sizes, columns)
    return math.fsum(
        wanted * p / cells(sizes, (one for one in table if one not in inside)) ** 2
        for table, wanted in sets.items()
        if inside <= set(table)
    )


def cell_variance(sizes: Sizes, variances: Mapping[ColumnSet, float], table: ColumnSet) -> float:
    """Return the variance of a cell of a table, from v of each interaction."""
    return math.fsum(
        variances[one] * kept_share(sizes, one) / cells(sizes, (column for column in table if column not in one)) ** 2
        for one in subsets(table)
    )


def assemble_table(sizes: Sizes, interactions: Mapping[ColumnSet, Numbers], table: ColumnSet) -> Numbers:
    """Return a table from its interactions."""
    found = np.zeros([sizes[one] for one in table])
    for one in subsets(table):
        shape = [sizes[column] if column in one else 1 for column in table]
        rest = cells(sizes, (column for column in table if column not in one))
        found = found + interactions[one].reshape(shape) / rest
    return found


def estimate_interactions(
    sizes: Sizes,
    tables: Mapping[ColumnSet, NDArray[Any]],
    variances: Mapping[ColumnSet, float],
    wanted: Sequence[ColumnSet],
) -> dict[ColumnSet, Numbers]:
    """Return the interactions by generalised least squares from noisy tables with independent cells."""
    found = {one: np.zeros([sizes[column] for column in one]) for one in wanted}
    known = interaction_variances(sizes, variances, wanted)
    for table, noisy in tables.items():
        for one in subsets(table):
            if one in found:
                dropped = tuple(axis for axis, column in enumerate(table) if column not in one)
                rest = cells(sizes, (column for column in table if column not in one))
                summed = np.asarray(noisy, dtype=np.float64).sum(axis=dropped)
                found[one] = found[one] + centre(summed) * (known[one] / (variances[table] * rest))
    return found


def interaction_variances(
    sizes: Sizes, variances: Mapping[ColumnSet, float], wanted: Sequence[ColumnSet]
) -> dict[ColumnSet, float]:
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


def kurtosis(
    sizes: Sizes, variances: Mapping[ColumnSet, float], known: Mapping[ColumnSet, float], table: ColumnSet
) -> float:
    """Return the excess kurtosis of a cell of `table` when the cells of the measured tables have Laplace noise.

    By symmetry it is the same for every cell. The coefficient of a measured cell depends only on the columns in which
    it has the same value as the estimated cell.
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


@dataclass(frozen=True)
class MeasuredShares:
    """What is measured, with its share of the budget, and the error for unit noise."""

    shares: tuple[tuple[ColumnSet, float], ...]
    error: float


@lru_cache(maxsize=64)
def choose_interactions(sizes: Sizes, sets: tuple[ColumnSet, ...]) -> MeasuredShares:
    """Return the interactions to be measured under Gaussian noise, with their shares of rho."""
    wanted = dict.fromkeys(sets, 1 / len(sets))
    roots = {
        one: math.sqrt(kept_share(sizes, one) * interaction_weight(sizes, wanted, one))
        for one in closure(sets)
        if kept_share(sizes, one)
    }
    total = math.fsum(roots.values())
    return MeasuredShares(tuple((one, root / total) for one, root in roots.items()), total**2)


@lru_cache(maxsize=64)
def choose_tables(sizes: Sizes, sets: tuple[ColumnSet, ...]) -> MeasuredShares:
    """Return the tables to be measured under Laplace noise, with their shares of epsilon."""
    wanted = closure(sets)
    asked = dict.fromkeys(sets, 1 / len(sets))
    weights = np.array([interaction_weight(sizes, asked, one) for one in wanted])
    largest = [one for one in sets if not any(set(one) < set(other) for other in sets)]
    extra = _unions(sizes, largest)
    tables = list(dict.fromkeys([*wanted, *extra]))
    place = {one: index for index, one in enumerate(wanted)}
    reach = np.zeros((len(wanted), len(tables)))
    for column, table in enumerate(tables):
        for one in subsets(table):
            if one in place:
                reach[place[one], column] = 1 / cells(sizes, (each for each in table if each not in one))
    starts = [largest, *([one] for one in extra if all(set(each) <= set(one) for each in largest))]
    found = [_fit_shares(weights, reach, [one in start for one in tables]) for start in starts]
    shares, error = min(found, key=lambda one: one[1])
    return MeasuredShares(tuple((table, share) for table, share in zip(tables, shares, strict=True) if share), error)


def _unions(sizes: Sizes, largest: Sequence[ColumnSet]) -> list[ColumnSet]:
    """Return candidate tables that hold several tables of the workload, limited in size and number."""
    everything = tuple(sorted({one for table in largest for one in table}))
    found = [everything]
    if len(largest) <= 12:
        found += [tuple(sorted({*one, *other})) for one in largest for other in largest if one < other]
    small = [one for one in dict.fromkeys(found) if cells(sizes, one) <= TABLE_MAX and len(one) <= 12]
    return [one for one in small if one not in largest][:CANDIDATES_MAX]


def _fit_shares(weights: Numbers, reach: Numbers, start: Sequence[bool]) -> tuple[list[float], float]:
    """Return shares of epsilon and their error: v of an interaction is 1 / (reach shares^2), the error is weights v."""
    from scipy.optimize import minimize

    logits = np.where(np.array(start), 0.0, -3.0)
    kept = np.ones(len(logits), dtype=bool)

    def objective(free: Numbers) -> tuple[float, Numbers]:
        shares = np.exp(free - free.max())
        shares /= shares.sum()
        precision = reach[:, kept] @ shares**2
        error = float(np.sum(weights / precision))
        slopes = -2 * shares * ((weights / precision**2) @ reach[:, kept])
        return math.log(error), shares * (slopes - float(np.sum(slopes * shares))) / error

    while True:
        found = minimize(objective, logits[kept], jac=True, method="L-BFGS-B")
        shares = np.exp(found.x - found.x.max())
        shares /= shares.sum()
        logits[kept] = found.x
        weak = shares < SHARE_MIN / np.count_nonzero(kept)
        if not np.any(weak):
            break
        kept[np.flatnonzero(kept)[weak]] = False
    everywhere = np.zeros(len(logits))
    everywhere[kept] = shares
    return everywhere.tolist(), math.exp(found.fun)
