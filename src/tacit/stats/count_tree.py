"""Noisy counts of cells and of ever larger runs of cells, a tree in which few noisy numbers make up any range.

Promise: each row is counted in one node of every level. A unit with at most `per_unit` rows moves each level by
`per_unit` in L1 and in L2, so each level is released with noise for that (twice it where a unit is replaced), and the
budget is divided evenly over the levels (hierarchical counts: Hay, Rastogi, Miklau, Suciu 2010; runs of 16: Qardaji,
Yang, Li 2013).

Post-processing: the counts of cells that fit all levels best by least squares (Hay et al., section 4; here for nodes
with any number of children). They are linear in the noise, whose law at any edge therefore depends on public facts
alone, and is found by simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import Allocation, Noise
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.arrays import Numbers
from tacit.privacy.events import Event, composed
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.stats.cells import Partition
from tacit.stats.cumulative_counts import cumulative_counts, noise_widths
from tacit.stats.rows import Cut, Rows, Term, group_keys
from tacit.stats.statistic import Noisy, few_rows_warning, noise_in_words

FAN: Final = 16
TOP_MAX: Final = 64
"""The number of children of a node, and the greatest number of cells without a level above them."""

DRAWN_MAX: Final = 4_000_000
DRAWS_MAX: Final = 2000


@dataclass(frozen=True)
class NoisyTree:
    """Noisy counts of all levels, in each of the groups `by`."""

    cells: Partition
    noises: tuple[Noise, ...]
    by: tuple[Cut, ...] = ()

    @classmethod
    def of(cls, cells: Partition, allocation: Allocation, by: tuple[Cut, ...] = ()) -> NoisyTree:
        """Return a tree with noise for each level."""
        return cls(cells, allocation.noises([1] * len(level_sizes(cells.count))), by)

    @property
    def event(self) -> Event:
        """The event of all levels."""
        return composed([noise.event for noise in self.noises])

    @property
    def line(self) -> str:
        """The counts and their noise in words."""
        levels = "" if len(self.noises) == 1 else f" on {len(self.noises)} levels"
        return f"rows in {self.cells.count:,} cells{levels}: {noise_in_words(self.noises[0])}"

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        """Return the noisy counts of each level, the smallest level first."""
        (leaves,) = rows.sums([Term()], (*self.by, self.cells.cut), [self.cells.column])
        levels = level_counts(leaves)
        return tuple(noise.release(level, source=source) for noise, level in zip(self.noises, levels, strict=True))

    def below(self, noisy: Noisy) -> Numbers:
        """Return the number of rows below each edge, and of all rows at the last one: an array (groups, edges)."""
        levels = [np.asarray(level, dtype=np.float64).reshape(-1, level.shape[-1]) for level in noisy]
        return cumulative_counts(consistent_cells(levels))

    @cached_property
    def drawn(self) -> Numbers:
        """Draws of the noise of `below`, from a fixed seed, for intervals."""
        each = level_sizes(self.cells.count)
        draws = min(DRAWS_MAX, DRAWN_MAX // sum(each))
        source = SeededSource(1)
        levels = [
            np.asarray(noise.release(np.zeros((draws, size), dtype=np.int64), source=source), dtype=np.float64)
            for noise, size in zip(self.noises, each, strict=True)
        ]
        return cumulative_counts(consistent_cells(levels))

    def widths(self, share: float, level: float) -> Numbers:
        """Return the half-width of the noise of below - share * total at each edge; computed once."""
        if (share, level) not in self._widths:
            self._widths[share, level] = noise_widths(self.drawn, share, level)
        return self._widths[share, level]

    def warnings(self, noisy: Noisy) -> tuple[str, ...]:
        """Return a warning for groups whose number of rows may be 0."""
        width = float(np.quantile(np.abs(self.drawn[:, -1]), DEFAULT_LEVEL))
        return few_rows_warning(self.below(noisy)[:, -1], width, group_keys(self.by))

    @cached_property
    def _widths(self) -> dict[tuple[float, float], Numbers]:
        return {}


def level_sizes(count: int) -> tuple[int, ...]:
    """Return the number of nodes of each level, the smallest level first and the cells last."""
    levels = [count]
    while levels[0] > TOP_MAX:
        levels.insert(0, -(-levels[0] // FAN))
    return tuple(levels)


def level_counts(leaves: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the counts of each level from those of the cells, which are on the last axis.

    There are fewer than 2^62 rows, so no sum overflows.
    """
    levels = [np.asarray(leaves)]
    for size in level_sizes(leaves.shape[-1])[-2::-1]:
        levels.insert(0, _by_parent(levels[0], size).sum(axis=-1))
    return levels


def consistent_cells(levels: Sequence[Numbers]) -> Numbers:
    """Return the counts of cells that fit all levels best, each level having the same noise.

    Upwards each node takes the weighted mean of its own count and the sum of its children; downwards the difference to
    the estimate of the parent is shared among the children in proportion to their variances.
    """
    upwards: list[tuple[Numbers, Numbers]] = [(levels[-1], np.ones(levels[-1].shape[-1]))]
    for own in levels[-2::-1]:
        counts, variances = upwards[0]
        size = own.shape[-1]
        together, spread = _by_parent(counts, size).sum(axis=-1), _by_parent(variances, size).sum(axis=-1)
        weight = spread / (spread + 1)
        upwards.insert(0, (weight * own + (1 - weight) * together, weight))
    settled = upwards[0][0]
    for counts, variances in upwards[1:]:
        size, count = settled.shape[-1], counts.shape[-1]
        left = settled - _by_parent(counts, size).sum(axis=-1)
        shares = _by_parent(variances, size) / _by_parent(variances, size).sum(axis=-1, keepdims=True)
        spread_out = (left[..., None] * shares).reshape(*left.shape[:-1], size * FAN)
        settled = counts + spread_out[..., :count]
    return settled


def _by_parent(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return values by their parents: (..., parents, FAN), with zeros where the last parent has fewer children."""
    lacking = size * FAN - values.shape[-1]
    if lacking:
        values = np.concatenate([values, np.zeros((*values.shape[:-1], lacking), dtype=values.dtype)], axis=-1)
    return values.reshape(*values.shape[:-1], size, FAN)
