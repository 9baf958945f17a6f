"""Monte Carlo draws of noise and sampling error, for p-values and intervals that cover both.

All draws follow from released numbers, with a seed made of them: it is post-processing, the same answer has the same
p-value, and different answers have independent ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tacit.measuring.allocation import Noise
from tacit.mechanisms import Laplace
from tacit.mechanisms.randomness import words
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.arrays import Numbers
from tacit.stats.statistic import Noisy, NoisySums, to_bytes

GRID: Final = 128
HALVINGS: Final = 24
FEW: Final = 12.0
"""Poisson numbers with a smaller mean are found by summing probabilities; others by a corrected normal number."""

PROBABILITY_MIN: Final = 1e-9
TAIL_MIN: Final = 1e-300
_BITS: Final = 53


class MonteCarlo:
    """Independent draws, `draws` of everything along the first axis."""

    def __init__(self, draws: int, released: Noisy) -> None:
        self.draws: Final = draws
        self._source = SeededSource(int.from_bytes(hashlib.sha256(to_bytes(released)).digest()))

    def uniform(self, *shape: int) -> Numbers:
        """Return uniforms in (0, 1)."""
        count = int(np.prod((self.draws, *shape), dtype=np.int64))
        drawn = words(self._source, count, 8) >> np.uint64(64 - _BITS)
        return ((drawn.astype(np.float64) + 0.5) * 2.0**-_BITS).reshape(self.draws, *shape)

    def normal(self, *shape: int) -> Numbers:
        """Return standard normal numbers."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(*shape)), dtype=np.float64)

    def chi_squared(self, freedom: Numbers) -> Numbers:
        """Return chi-squared numbers, with degrees of freedom for each draw."""
        from scipy.special import gammaincinv

        return np.asarray(2 * gammaincinv(freedom / 2, self.uniform(*freedom.shape[1:])), dtype=np.float64)

    def poisson(self, expected: Numbers) -> Numbers:
        """Return Poisson numbers, with means for each draw, by inversion."""
        from scipy.special import ndtri

        level = self.uniform(*expected.shape[1:])
        normal = ndtri(level)
        many = np.maximum(expected, FEW)
        # the first terms of Cornish and Fisher: beyond FEW, the rounded number is rarely off, and then by one
        shape = (normal**2 - 1) / 6 + (normal - normal**3) / (72 * np.sqrt(many))
        found: Numbers = np.maximum(np.rint(many + np.sqrt(many) * normal + shape), 0.0)
        is_few = expected < FEW
        if is_few.any():
            found[is_few] = _small_poisson(expected[is_few], level[is_few])
        return found

    def multinomial(self, expected: Numbers) -> Numbers:
        """Return counts that sum to the rounded sum of their means: binomial numbers of the rest, cell by cell."""
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
        """Return noise of a noisy sum."""
        drawn = part.noise.release(np.zeros((self.draws, *shape), dtype=np.int64), source=self._source)
        return np.asarray(drawn, dtype=np.float64)

    def before_noise(self, part: NoisySums, released: Any, at_least: float | None = None) -> Numbers:
        """Return draws of sums before the noise, given what was released and that they are `at_least` a number."""
        numbers = np.asarray(released, dtype=np.float64)
        if at_least is None:
            return numbers - self.noise(part, *numbers.shape)
        return _sample_above(at_least, numbers, part.noise, self.uniform(*numbers.shape))

    def before_noise_each(self, part: NoisySums, released: Numbers, at_least: float) -> Numbers:
        """Return `before_noise` for released numbers that differ between the draws, along the first axis."""
        return _sample_above(at_least, released, part.noise, self.uniform(*released.shape[1:]))


def _sample_above(least: float, released: Numbers, noise: Noise, levels: Numbers) -> Numbers:
    """Return samples of `released` less noise, given that they are above `least`, by inverting the tail at `levels`.

    The law of the noise is taken for continuous, which its steps are fine enough for.
    """
    from scipy.special import ndtr, ndtri

    scale = float(noise.scale)
    gap = (least - released) / scale
    if not isinstance(noise, Laplace):
        share = np.maximum(ndtr(-gap), TAIL_MIN) * levels
        return np.asarray(np.maximum(released - scale * ndtri(share), least))
    tail = np.where(gap < 0, 1 - 0.5 * np.exp(np.minimum(gap, 0)), 0.5 * np.exp(-np.maximum(gap, 0)))
    share = tail * levels
    # a share below 1/2 lies on the upper side; the logarithm of the tail itself is used where it would underflow
    upper = -np.where(gap > 0, np.log(0.5) - gap + np.log(levels), np.log(np.maximum(share, TAIL_MIN))) + np.log(0.5)
    lower = np.log(np.maximum(2 * (1 - share), TAIL_MIN))
    return np.asarray(np.maximum(released + scale * np.where(share <= 0.5, upper, lower), least))


def noise_variance(part: NoisySums) -> float:
    """Return the variance of the noise of a sum, in a continuous approximation."""
    return float(part.noise.scale) ** 2 * (2 if isinstance(part.noise, Laplace) else 1)


def p_value(drawn: Numbers, observed: float) -> float:
    """Return the share of draws at least as large as what was observed, which counts as one of them."""
    return float((1 + np.count_nonzero(drawn >= observed)) / (len(drawn) + 1))


def interval_where(holds: Callable[[float], bool], low: float, high: float, inside: float) -> tuple[float, float]:
    """Return the smallest interval within two ends with all points of a fine grid for which `holds` is true."""
    points = np.linspace(low, high, GRID + 1)
    kept = [point for point in [*points.tolist(), inside] if holds(point)]
    if not kept:
        return inside, inside
    step = (high - low) / GRID
    return _edge(holds, max(low, min(kept) - step), min(kept)), _edge(holds, min(high, max(kept) + step), max(kept))


def _edge(holds: Callable[[float], bool], beyond: float, within: float) -> float:
    """Return where `holds` becomes true between two numbers."""
    if holds(beyond):
        return beyond
    for _ in range(HALVINGS):
        middle = (beyond + within) / 2
        beyond, within = (beyond, middle) if holds(middle) else (middle, within)
    return within


def _binomial(level: Numbers, trials: Numbers, chance: Numbers) -> Numbers:
    """Return binomial numbers, by inversion."""
    from scipy.special import bdtrik

    inside = np.clip(chance, PROBABILITY_MIN, 1 - PROBABILITY_MIN)
    found = np.nan_to_num(np.ceil(bdtrik(level, trials, inside) - PROBABILITY_MIN))  # NaN: below the probability of 0
    return np.asarray(np.clip(found, 0.0, trials), dtype=np.float64)


def _small_poisson(expected: Numbers, level: Numbers) -> Numbers:
    """Return Poisson numbers by inversion: the number of probabilities below the level."""
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
