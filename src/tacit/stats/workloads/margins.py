"""Marginals as sums of interactions: which are measured, how precisely, and their noise.

Tables of counts as sums of interactions, in which everything about them is diagonal.

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

Which tables are measured, and how precisely, for a set of tables that are asked: chosen without data.

The error is the mean variance of a cell, each asked table weighing the same. Under Gaussian noise each interaction is
measured by itself, with v_R proportional to sqrt(p_R / u_R), where u_R is its weight in the error: the least error is
(sum of sqrt(u_R p_R))^2 for a loss of 1, by the inequality of Cauchy and Schwarz, and no matrix mechanism with Gaussian
noise has less (Xiao, He, Zhang, Kifer 2023). Under Laplace noise whole tables are measured, the asked ones, their
margins and tables that hold several of them, with shares of epsilon fitted by L-BFGS from several starts (McKenna,
Miklau, Hay, Machanavajjhala 2018).

Gaussian noise on an interaction: a table of counts of which nothing but the centred part is released.

Promise: let the table by some columns be moved by at most `moved` rows between neighbours, each in one cell. What
`release` returns is a function of the centred table with Gaussian noise, whose standard deviation over its L2
sensitivity is `sigma` = deviation / (moved sqrt(p)), p the product of (m - 1) / m over the sizes m of the columns: so
much of a row is left by centring (Xiao, He, Zhang, Kifer 2023: this is why tables that share their margins cost less
together than alone).

Why whole numbers cost nothing. Let H be the tensor product of m I - J (J all ones): it maps tables to integers, and has
the kernel of centring. Released is H (2^k t + z), z discrete Gaussian of variance s^2 + r^2, s = 2^k deviation. As in
`mechanisms.gaussian`, z is made from Y = N(0, s^2) by drawing a lattice point with weight e^(-|z - Y|^2 / (2 r^2)), up
to a factor that no accountant sees. Given Y, the weight of H z = h is a Gaussian sum over a shifted copy of the lattice
of integer tables in the kernel, and the same for all shifts up to 1 ± e where r sqrt(2 pi) is above the lattice's
smoothing parameter (Micciancio and Regev 2007, lemmas 3.3 and 4.4). So H z is made from H Y alone. That lattice has a
basis of vectors with ones along a single axis, by induction over the axes, each of length at most sqrt(m): with
r^2 = 16 m for the largest m, e is at most 2 N e^(-315) for N cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.additive import Noise
from tacit.mechanisms.gaussian import SMOOTHING_VARIANCE
from tacit.mechanisms.laws import GaussianLaw
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.simulation import mark_simulated
from tacit.privacy.errors import TooLarge
from tacit.privacy.numbers import positive, rounded_down

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


FINE: Final = 2**10
"""By how much the noise's variance is at least above what makes it smooth."""
_RELEASED_MAX: Final = 2**62


@dataclass(frozen=True)
class CentredGaussian:
    """Noise of a standard deviation, in rows, on the centred table of a shape."""

    shape: tuple[int, ...]
    deviation: float

    def __post_init__(self) -> None:
        positive("deviation", self.deviation)
        if self.clamp < 2**20:
            raise TooLarge(
                "this table has more cells than can be counted exactly; ask for a smaller one", name="columns"
            )

    @property
    def bits(self) -> int:
        """How much finer than rows the lattice is."""
        needed = FINE * self._smoothing / Fraction(self.deviation) ** 2
        return max(0, math.ceil(math.log2(float(needed)) / 2)) if needed > 1 else 0

    @property
    def variance(self) -> float:
        """The variance of a cell's noise before centring, in rows."""
        return float(Fraction(self.deviation) ** 2 + Fraction(self._smoothing, 4**self.bits))

    @property
    def loss(self) -> Fraction:
        """The squared L2 distance that one row moves the centred table, over the squared deviation."""
        kept = math.prod((Fraction(size - 1, size) for size in self.shape), start=Fraction(1))
        return kept / Fraction(self.deviation) ** 2

    @property
    def clamp(self) -> int:
        """Where counts end, so that no sum leaves 62 bits; clamping moves no neighbours apart."""
        return int(_RELEASED_MAX // (2**self.bits * math.prod(2 * size for size in self.shape)) // 2)

    def release(self, table: NDArray[np.int64], source: Source = SYSTEM) -> NDArray[np.int64]:
        """Return the centred table with noise, in steps of 1 / (2^bits * cells)."""
        law = GaussianLaw(Fraction(self.deviation) ** 2 * 4**self.bits + self._smoothing)
        exact = np.clip(np.asarray(table, dtype=np.int64), -self.clamp, self.clamp).reshape(self.shape) << self.bits
        drawn = Noise(law).draw(exact.size, source).reshape(self.shape)
        found: Any = reduce(self._scaled, range(len(self.shape)), exact + drawn)
        released: NDArray[np.int64] = mark_simulated(found) if source.simulated else found
        return released

    def centred(self, released: NDArray[Any]) -> Numbers:
        """Return what was released, in rows."""
        return np.asarray(released, dtype=np.float64).reshape(self.shape) / (2.0**self.bits * math.prod(self.shape))

    @property
    def _smoothing(self) -> int:
        return SMOOTHING_VARIANCE * max((1, *self.shape))

    @staticmethod
    def _scaled(table: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        found: NDArray[np.int64] = table * table.shape[axis] - table.sum(axis=axis, keepdims=True)
        return found


def sigma_of(loss: Fraction) -> float:
    """Return the greatest sigma of one Gaussian event that loses at least `loss` = 1 / sigma^2."""
    near = 1 / math.sqrt(float(loss))
    while Fraction(near) ** 2 * loss > 1:
        near = math.nextafter(near, 0.0)
    return rounded_down(Fraction(near))
