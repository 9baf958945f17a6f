"""The choice of a strategy for queries over one column: which sums are measured, and how precisely, without data.

A strategy A answers queries W with mean squared error tr(V (A'A)^-1) times the noise, V = W'W, if no column of A is
longer than 1: in L1 for Laplace noise, in L2 for Gaussian noise (the matrix mechanism: Li, Miklau, Hay, McGregor,
Rastogi 2015). `error` is that figure, the mean over queries. Candidates:

- the cells alone, and balanced trees of many branching factors (Qardaji, Yang, Li 2013) with fitted weights for levels:
  A'A is diagonal in the basis of differences between levels, so the error is a sum over levels, in closed form for any
  number of cells;
- the levels of the hierarchy of the workload, with fitted weights;
- for Laplace noise a p-identity strategy (McKenna, Miklau, Hay, Machanavajjhala 2018): the cells and p fitted rows,
  started at the best tree and improved by L-BFGS;
- for Gaussian noise the optimal strategy: X = A'A minimises tr(V X^-1) among all X with a diagonal of ones, and
  is found by the fixed point of Denisov, McMahan, Rush, Smith, Thakurta 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import NoiseFamily
from tacit.privacy.arrays import Numbers
from tacit.stats.workloads.strategy_matrices import Family, Groups, Matrix, Tree, mean_diagonal, mean_energy, mean_times

FITTED_MAX: Final = 1024
"""The greatest number of cells for which a matrix is fitted."""
BRANCHES: Final = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64, 96, 128)
SHARE_MIN: Final = 1e-3
STEPS_MAX: Final = 60
ROUNDS_MAX: Final = 4
_CLOSE: Final = 1e-4


@dataclass(frozen=True)
class TreeStrategy:
    """A tree, the share of the budget of each level, and the error."""

    tree: Tree
    shares: tuple[float, ...]
    error: float
    name: str


@dataclass(frozen=True)
class MatrixStrategy:
    """A matrix of integers, and the error."""

    matrix: Matrix
    error: float
    name: str


Strategy = TreeStrategy | MatrixStrategy


@lru_cache(maxsize=64)
def best_strategy(families: tuple[Family, ...], law: NoiseFamily) -> Strategy:
    """Return the strategy of least expected error."""
    start = best_tree(families, law)
    least: Strategy = start
    cells = families[0].cells
    if 2 <= cells <= FITTED_MAX:
        fitted = _p_identity(families, start) if law == "Laplace" else _optimal_gaussian(families)
        if fitted.error < least.error * (1 - 1e-6):
            least = fitted
    return least


@lru_cache(maxsize=64)
def best_tree(families: tuple[Family, ...], law: NoiseFamily) -> TreeStrategy:
    """Return the tree of least expected error."""
    return min([*_balanced_trees(families, law), *_hierarchy_trees(families, law)], key=lambda one: one.error)


def _balanced_trees(families: tuple[Family, ...], law: NoiseFamily) -> list[TreeStrategy]:
    cells = families[0].cells
    found = []
    for branch in BRANCHES:
        if branch > max(2, cells):
            break
        sizes = [1]
        while sizes[-1] * branch < cells:
            sizes.append(sizes[-1] * branch)
        energies = [mean_energy(families, size) / size for size in sizes] + [0.0]
        drops = np.maximum(-np.diff(energies), 0.0)
        reach = np.array(sizes, dtype=np.float64)

        def error(precisions: Numbers, drops: Numbers = drops, reach: Numbers = reach) -> tuple[float, Numbers]:
            known = np.cumsum(precisions * reach)
            slopes = -np.cumsum((drops / known**2)[::-1])[::-1] * reach
            return float(np.sum(drops / known)), slopes

        kept, shares, least = _fit_shares(len(sizes), law, error)
        chosen = [sizes[index] for index in kept]
        name = "the cells" if len(chosen) == 1 else f"a tree with blocks of {', '.join(map(str, chosen))} cells"
        found.append(TreeStrategy(Tree.balanced(cells, chosen[1:]), shares, least, name))
        if cells == 1:
            break
    return found


def _hierarchy_trees(families: tuple[Family, ...], law: NoiseFamily) -> list[TreeStrategy]:
    """Return the tree of the levels of the workload, if it consists of levels alone."""
    levels = [family for family in families if isinstance(family, Groups)]
    if len(levels) != len(families):
        return []
    cells = families[0].cells
    order = sorted({one.groups for one in levels}, key=lambda groups: -max(groups))
    if max(order[0]) + 1 != cells:
        order.insert(0, tuple(range(cells)))
    tree = _nested(order)
    weights = [math.fsum(1 / one.count for one in levels if one.groups == groups) for groups in order]

    def error(precisions: Numbers) -> tuple[float, Numbers]:
        return _hierarchy_error(tree, weights, precisions)

    kept, shares, least = _fit_shares(len(order), law, error)
    name = f"{len(kept)} levels of the hierarchy"
    return [TreeStrategy(_nested([order[index] for index in kept]), shares, least, name)]


def _nested(order: Sequence[tuple[int, ...]]) -> Tree:
    """Return the tree of partitions, the finest first, given by the group of each cell."""
    parents = []
    for below, above in pairwise(order):
        found = np.zeros(max(below) + 1, dtype=np.int64)
        found[list(below)] = above
        parents.append(tuple(found.tolist()))
    return Tree(len(order[0]), tuple(parents))


def _hierarchy_error(tree: Tree, weights: Sequence[float], precisions: Numbers) -> tuple[float, Numbers]:
    """Return the weighted variances of all nodes, with slopes by finite differences."""

    def total(given: Numbers) -> float:
        variances = node_variances(tree, given.tolist())
        return float(sum(weight * one.sum() for weight, one in zip(weights, variances, strict=True)))

    value = total(precisions)
    slopes = np.zeros(len(precisions))
    for index in np.flatnonzero(precisions):
        step = precisions[index] * 1e-6
        moved = precisions.copy()
        moved[index] += step
        slopes[index] = (total(moved) - value) / step
    return value, slopes


def node_variances(tree: Tree, precisions: Sequence[float]) -> list[Numbers]:
    """Return the variance of every node of a tree after least squares, level by level, the cells first."""
    own = [np.full(tree.cells, 1 / precisions[0])]
    below = []
    for parent, precision in zip(tree.parents, precisions[1:], strict=True):
        spread = np.bincount(np.array(parent), weights=own[-1])
        below.append(spread)
        own.append(1 / (1 / spread + precision))
    final = [own[-1]]
    for index in reversed(range(len(tree.parents))):
        above = np.array(tree.parents[index])
        share = own[index] / below[index][above]
        final.insert(0, own[index] * (1 - share) + share**2 * final[0][above])
    return final


def _fit_shares(
    levels: int, law: NoiseFamily, error: Callable[[Numbers], tuple[float, Numbers]]
) -> tuple[list[int], tuple[float, ...], float]:
    """Return the levels that are kept, their shares of a budget of 1 for the least error, and this error.

    A level with the share s has precision s^2 under Laplace noise, s under Gaussian noise. Levels with next to no
    share are left out.
    """
    from scipy.optimize import minimize

    power = 2.0 if law == "Laplace" else 1.0
    kept = list(range(levels))
    while True:
        places = np.array(kept)

        def objective(logits: Numbers, places: NDArray[np.int64] = places) -> tuple[float, Numbers]:
            shares = np.exp(logits - logits.max())
            shares /= shares.sum()
            precisions = np.zeros(levels)
            precisions[places] = shares**power
            value, slopes = error(precisions)
            gradient = slopes[places] * power * shares ** (power - 1)
            return float(np.log(value)), shares * (gradient - np.sum(gradient * shares)) / value

        found = minimize(objective, np.zeros(len(kept)), jac=True, method="L-BFGS-B")
        shares = np.exp(found.x - found.x.max())
        shares /= shares.sum()
        weak = [place for place, share in zip(kept, shares, strict=True) if share < SHARE_MIN and place]
        if not weak:
            return kept, tuple(shares.tolist()), float(np.exp(found.fun))
        kept = [place for place in kept if place not in weak]


def _p_identity(families: tuple[Family, ...], start: TreeStrategy) -> MatrixStrategy:
    """Return the best tree improved: rows for its nodes are fitted freely, and the cells fill up each column."""
    from scipy.optimize import minimize

    cells = families[0].cells
    rows = _p_identity_rows(start)
    count = len(rows)

    def objective(flat: Numbers) -> tuple[float, Numbers]:
        value, slopes = p_identity_error(families, flat.reshape(count, cells))
        return float(np.log(value)), slopes.ravel() / value

    bounds = [(0.0, None)] * (count * cells)
    found = minimize(
        objective, rows.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS_MAX}
    )
    theta = np.maximum(found.x.reshape(count, cells), 0.0)
    strategy = np.vstack([np.eye(cells), theta]) / (1 + theta.sum(axis=0))
    matrix = Matrix.of(strategy, "Laplace")
    return MatrixStrategy(matrix, _matrix_error(families, matrix, "Laplace"), f"the cells and {count} fitted sums")


def _p_identity_rows(start: TreeStrategy) -> Numbers:
    """Return the rows of a tree as those of a p-identity strategy, with a small amount added to all entries."""
    groups, first = start.tree.groups, start.shares[0]
    rows = [
        (index == node) * (share / first)
        for index, share in zip(groups[1:], start.shares[1:], strict=True)
        for node in range(int(index.max()) + 1)
    ]
    if not rows:
        rows = [np.full(start.tree.cells, 0.1)]
    return np.array(rows, dtype=np.float64) + 1e-3 / start.tree.cells


def p_identity_error(families: tuple[Family, ...], theta: Numbers) -> tuple[float, Numbers]:
    """Return tr(V (A'A)^-1) for A = [I; theta] D, where D makes every column sum to 1, and its slopes in theta.

    With d = 1 + column sums and M = (I + theta' theta)^-1 = I - theta' K theta, K = (I + theta theta')^-1, the error is
    tr(diag(d) V diag(d) M), which takes V times p vectors.
    """
    scale = 1 + theta.sum(axis=0)
    inner = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    through = inner @ theta
    weighed = mean_times(families, (through * scale).T).T
    diagonal = mean_diagonal(families)
    on_diagonal = diagonal * scale - np.sum(weighed * theta, axis=0)
    value = float(np.sum(on_diagonal * scale))
    spread = weighed * scale
    slopes = -2 * (spread - (spread @ theta.T) @ through) + 2 * on_diagonal
    return value, slopes


def _optimal_gaussian(families: tuple[Family, ...]) -> MatrixStrategy:
    """Return the strategy of least error under Gaussian noise."""
    gram = mean_times(families, np.eye(families[0].cells))
    weights = np.sqrt(np.diag(gram))
    for _ in range(ROUNDS_MAX):
        root = np.sqrt(weights)
        middle = _matrix_root(root[:, None] * gram * root)
        following = np.diag(middle).copy()
        done = np.max(np.abs(following / weights - 1)) < _CLOSE
        weights = following
        if done:
            break
    root = np.sqrt(weights)
    best_gram = _matrix_root(root[:, None] * gram * root) / root[:, None] / root
    length = np.sqrt(np.diag(best_gram))
    strategy = _matrix_root(best_gram / length[:, None] / length)
    matrix = Matrix.of(strategy, "Gaussian")
    return MatrixStrategy(matrix, _matrix_error(families, matrix, "Gaussian"), "the best sums for Gaussian noise")


def _matrix_root(symmetric: Numbers) -> Numbers:
    values, vectors = np.linalg.eigh(symmetric)
    found: Numbers = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return found


def _matrix_error(families: tuple[Family, ...], matrix: Matrix, law: NoiseFamily) -> float:
    """Return the error of a matrix after rounding."""
    return float(np.trace(mean_times(families, matrix.covariance))) * float(matrix.length(law)) ** 2
