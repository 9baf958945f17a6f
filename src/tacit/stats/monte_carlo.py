"""Draws of what noise and chance could have done, for p-values and for intervals that count both.

All that is drawn here is computed from numbers that were released already, and drawn with a seed made of them: it hides
nothing, costs nothing, makes the same answer have the same p-value, and different answers independent ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import Laplace
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.statistic import Noisy, NoisySums, to_bytes
from tacit.stats.truncation import off_above, uniform

GRID: Final = 128
HALVINGS: Final = 24
FEW: Final = 12.0
"""Poisson numbers with at most so many expected are counted up one by one; more are a corrected normal number."""

LEAST_CHANCE: Final = 1e-9

Numbers = NDArray[np.float64]


class Chance:
    """Independent draws, `draws` of everything along the first axis."""

    def __init__(self, draws: int, released: Noisy) -> None:
        self.draws: Final = draws
        self._source = SeededSource(int.from_bytes(hashlib.sha256(to_bytes(released)).digest()))

    def uniform(self, *shape: int) -> Numbers:
        """Return numbers between 0 and 1, neither of which is drawn."""
        return uniform(self._source, self.draws, *shape)

    def normal(self, *shape: int) -> Numbers:
        """Return standard normal numbers."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(*shape)), dtype=np.float64)

    def chi_squared(self, freedom: Numbers) -> Numbers:
        """Return chi-squared numbers, with their degrees of freedom for each draw."""
        from scipy.special import gammaincinv

        return np.asarray(2 * gammaincinv(freedom / 2, self.uniform(*freedom.shape[1:])), dtype=np.float64)

    def poisson(self, expected: Numbers) -> Numbers:
        """Return counts with what is expected of them for each draw, by inversion."""
        from scipy.special import ndtri

        level = self.uniform(*expected.shape[1:])
        normal = ndtri(level)
        many = np.maximum(expected, FEW)
        # the first terms of Cornish and Fisher: beyond FEW, the rounded number is hardly ever off, and then by one
        shape = (normal**2 - 1) / 6 + (normal - normal**3) / (72 * np.sqrt(many))
        found: Numbers = np.maximum(np.rint(many + np.sqrt(many) * normal + shape), 0.0)
        is_few = expected < FEW
        if is_few.any():
            found[is_few] = _counted_up(expected[is_few], level[is_few])
        return found

    def multinomial(self, expected: Numbers) -> Numbers:
        """Return counts that add up to what is expected in all, rounded: cell by cell, each of what is left."""
        cells = expected.reshape(len(expected), -1)
        left, share = np.rint(cells.sum(axis=1)), cells.sum(axis=1)
        found = np.empty_like(cells)
        for place in range(cells.shape[1] - 1):
            chance = np.divide(cells[:, place], share, out=np.zeros_like(share), where=share > 0)
            found[:, place] = _binomial(self.uniform(), left, chance)
            left, share = left - found[:, place], share - cells[:, place]
        found[:, -1] = left
        return found.reshape(expected.shape)

    def noise(self, part: NoisySums, *shape: int) -> Numbers:
        """Return noise of a measurement."""
        drawn = part.noise.release(np.zeros((self.draws, *shape), dtype=np.int64), source=self._source)
        return np.asarray(drawn, dtype=np.float64)

    def before(self, part: NoisySums, released: Any, at_least: float | None = None) -> Numbers:
        """Return what may have been there before the noise, all of it `at_least` something that is certain."""
        numbers = np.asarray(released, dtype=np.float64)
        if at_least is None:
            return numbers - self.noise(part, *numbers.shape)
        return off_above(at_least, numbers, part.noise, self.uniform(*numbers.shape))

    def before_each(self, part: NoisySums, released: Numbers, at_least: float) -> Numbers:
        """Return `before` for numbers that differ between the draws, along the first axis."""
        return off_above(at_least, released, part.noise, self.uniform(*released.shape[1:]))


def variance_of(part: NoisySums) -> float:
    """Return the variance of a measurement's noise."""
    return float(part.noise.scale) ** 2 * (2 if isinstance(part.noise, Laplace) else 1)


def share_beyond(drawn: Numbers, seen: float) -> float:
    """Return the p-value: the share of draws at least as large as what was seen, which counts as one of them."""
    return float((1 + np.count_nonzero(drawn >= seen)) / (len(drawn) + 1))


def where(holds: Callable[[float], bool], low: float, high: float, inside: float) -> tuple[float, float]:
    """Return the least interval between two ends that has all numbers, on a fine grid, for which something holds."""
    points = np.linspace(low, high, GRID + 1)
    kept = [point for point in [*points.tolist(), inside] if holds(point)]
    if not kept:
        return inside, inside
    step = (high - low) / GRID
    return _edge(holds, max(low, min(kept) - step), min(kept)), _edge(holds, min(high, max(kept) + step), max(kept))


def _edge(holds: Callable[[float], bool], beyond: float, within: float) -> float:
    """Return where something begins to hold between two numbers."""
    if holds(beyond):
        return beyond
    for _ in range(HALVINGS):
        middle = (beyond + within) / 2
        beyond, within = (beyond, middle) if holds(middle) else (middle, within)
    return within


def _binomial(level: Numbers, trials: Numbers, chance: Numbers) -> Numbers:
    """Return binomial numbers, by inversion."""
    from scipy.special import bdtrik

    inside = np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    found = np.nan_to_num(np.ceil(bdtrik(level, trials, inside) - LEAST_CHANCE))  # no number: below what 0 has alone
    return np.asarray(np.clip(found, 0.0, trials), dtype=np.float64)


def _counted_up(expected: Numbers, level: Numbers) -> Numbers:
    """Return Poisson numbers: how many terms of their law are passed by."""
    found = np.zeros_like(expected)
    term = np.exp(-expected)
    reached = term.copy()
    for count in range(1, int(FEW + 12 * np.sqrt(FEW))):
        above = level > reached
        if not above.any():
            break
        found += above
        term = term * expected / count
        reached += term
    return found
