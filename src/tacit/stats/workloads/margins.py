"""Which tables are measured, and how precisely, for a set of tables that are asked: chosen without data.

The error is the mean variance of a cell, each asked table weighing the same. Under Gaussian noise each interaction is
measured by itself, with v_R proportional to sqrt(p_R / u_R), where u_R is its weight in the error: the least error is
(sum of sqrt(u_R p_R))^2 for a loss of 1, by the inequality of Cauchy and Schwarz, and no matrix mechanism with Gaussian
noise has less (Xiao, He, Zhang, Kifer 2023). Under Laplace noise whole tables are measured, the asked ones, their
margins and tables that hold several of them, with shares of epsilon fitted by L-BFGS from several starts (McKenna,
Miklau, Hay, Machanavajjhala 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.stats.workloads.interactions import (
    Set,
    Sizes,
    cells,
    closure,
    kept_share,
    known_variances,
    subsets,
    weight,
)

Numbers = NDArray[np.float64]
CANDIDATES_MAX: Final = 128
TABLE_MAX: Final = 2**16
"""Tables that nobody asked for are measured up to this many cells."""
SHARE_MIN: Final = 1e-3


@dataclass(frozen=True)
class Shares:
    """What is measured, with which share of the price, and the error for unit noise."""

    shares: tuple[tuple[Set, float], ...]
    error: float


@lru_cache(maxsize=64)
def interactions_for(sizes: Sizes, sets: tuple[Set, ...]) -> Shares:
    """Return the interactions to be measured under Gaussian noise, with their shares of rho."""
    wanted = dict.fromkeys(sets, 1 / len(sets))
    roots = {
        one: math.sqrt(kept_share(sizes, one) * weight(sizes, wanted, one))
        for one in closure(sets)
        if kept_share(sizes, one)
    }
    total = math.fsum(roots.values())
    return Shares(tuple((one, root / total) for one, root in roots.items()), total**2)


@lru_cache(maxsize=64)
def tables_for(sizes: Sizes, sets: tuple[Set, ...]) -> Shares:
    """Return the tables to be measured under Laplace noise, with their shares of epsilon."""
    wanted = closure(sets)
    asked = dict.fromkeys(sets, 1 / len(sets))
    weights = np.array([weight(sizes, asked, one) for one in wanted])
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
    found = [_fitted(weights, reach, [one in start for one in tables]) for start in starts]
    shares, error = min(found, key=lambda one: one[1])
    return Shares(tuple((table, share) for table, share in zip(tables, shares, strict=True) if share), error)


def _unions(sizes: Sizes, largest: Sequence[Set]) -> list[Set]:
    """Return tables that hold several of those asked for, as far as they are small and few."""
    everything = tuple(sorted({one for table in largest for one in table}))
    found = [everything]
    if len(largest) <= 12:
        found += [tuple(sorted({*one, *other})) for one in largest for other in largest if one < other]
    small = [one for one in dict.fromkeys(found) if cells(sizes, one) <= TABLE_MAX and len(one) <= 12]
    return [one for one in small if one not in largest][:CANDIDATES_MAX]


def _fitted(weights: Numbers, reach: Numbers, start: Sequence[bool]) -> tuple[list[float], float]:
    """Share epsilon among tables: v of an interaction is 1 / (reach shares^2), the error is weights v."""
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


def expected(sizes: Sizes, sets: Sequence[Set], shares: Shares) -> float:
    """Return the error of measured tables again, by least squares; for tests and reports."""
    variances = {one: 1 / share**2 for one, share in shares.shares}
    known = known_variances(sizes, variances, closure(sets))
    asked = dict.fromkeys(sets, 1 / len(sets))
    return math.fsum(weight(sizes, asked, one) * known[one] for one in known)
