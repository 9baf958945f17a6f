"""The parts of a workload's plan, each with its noise: one column, the product of two columns, or tables.

Promise: a row is in one cell of each partition. So it moves each level of a tree by 1 in one node, a fitted matrix by
one of its columns, a table by 1 in one cell, and a unit with `per_unit` rows moves them by `per_unit` times as much (L1
and L2, by the triangle inequality); replacing a unit moves them by twice that. `events` are those of this noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.measuring.allocation import Allocation, Noise, NoiseFamily
from tacit.mechanisms import Laplace
from tacit.mechanisms.randomness import RandomSource
from tacit.privacy.events import Event, Gaussian
from tacit.privacy.units import Relation
from tacit.stats.rows import Cut, Rows, Term
from tacit.stats.workloads.centred_gaussian import CentredGaussian, sigma_of
from tacit.stats.workloads.interactions import ColumnSet, MeasuredShares, Sizes, choose_interactions, choose_tables
from tacit.stats.workloads.query_sets import Level
from tacit.stats.workloads.strategies import MatrixStrategy, Strategy, TreeStrategy, best_strategy, best_tree
from tacit.stats.workloads.strategy_matrices import Family, Matrix, Tree


@dataclass(frozen=True)
class Part(ABC):
    """A part of a plan."""

    @property
    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """The events of the released sums."""

    @property
    @abstractmethod
    def line(self) -> str:
        """What is measured and its noise, in words."""

    @property
    @abstractmethod
    def arrays(self) -> int:
        """The number of released arrays."""

    @abstractmethod
    def measure(self, rows: Rows, needs: Sequence[str], source: RandomSource) -> list[Any]:
        """Return noisy sums of the rows with a value in the columns `needs`."""


@dataclass(frozen=True)
class ColumnPart(Part):
    """Sums over the cells of one column."""

    name: str
    cut: Cut
    levels: tuple[Level, ...]
    """The shown groups of cells, level by level; none if only prefixes are shown."""
    families: tuple[Family, ...]
    strategy: Tree | Matrix
    noises: tuple[Noise, ...]
    """One for each level of a tree, one for a matrix."""
    how: str
    error: float
    """The expected mean squared error of a query."""

    @classmethod
    def of(
        cls, name: str, cut: Cut, levels: tuple[Level, ...], families: tuple[Family, ...], allocation: Allocation
    ) -> ColumnPart:
        """Choose the strategy, and its noise."""
        chosen = best_strategy(families, allocation.law)
        noises = noises_of(chosen, allocation)
        strategy = chosen.matrix if isinstance(chosen, MatrixStrategy) else chosen.tree
        return cls(name, cut, levels, families, strategy, noises, chosen.name, chosen.error * allocation.variance)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(noise.event for noise in self.noises)

    @property
    def line(self) -> str:
        return f"{self.name}: measured by {self.how}, with {law_of(self.noises[0])} noise"

    @property
    def arrays(self) -> int:
        return len(self.noises)

    def measure(self, rows: Rows, needs: Sequence[str], source: RandomSource) -> list[Any]:
        exact = rows.sums([Term()], (self.cut,), needs)[0]
        sums = [self.strategy.sums(exact)] if isinstance(self.strategy, Matrix) else self.strategy.sums(exact)
        return [noise.release(one, source=source) for noise, one in zip(self.noises, sums, strict=True)]


@dataclass(frozen=True)
class Crossed(Part):
    """Sums over the cells of two columns.

    The strategy is the Kronecker product of two strategies, so the length of a column is the product of their lengths.
    """

    names: tuple[str, str]
    cuts: tuple[Cut, Cut]
    families: tuple[tuple[Family, ...], tuple[Family, ...]]
    strategies: tuple[TreeStrategy, TreeStrategy]
    noises: tuple[tuple[Noise, ...], ...]
    """One for each level of the first strategy and each level of the second."""
    error: float

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        cuts: tuple[Cut, Cut],
        families: tuple[tuple[Family, ...], tuple[Family, ...]],
        allocation: Allocation,
    ) -> Crossed:
        """Choose both strategies, and their noise."""
        one, other = (best_tree(family, allocation.law) for family in families)
        shares = [a * b for a in one.shares for b in other.shares]
        flat = tuple(part.noise() for part in allocation.divided(*shares))
        width = len(other.shares)
        noises = tuple(flat[at : at + width] for at in range(0, len(flat), width))
        return cls(names, cuts, families, (one, other), noises, one.error * other.error * allocation.variance)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(noise.event for row in self.noises for noise in row)

    @property
    def line(self) -> str:
        how = ", ".join(f"{name} by {one.name}" for name, one in zip(self.names, self.strategies, strict=True))
        return f"{' and '.join(self.names)}: measured {how}, with {law_of(self.noises[0][0])} noise"

    @property
    def arrays(self) -> int:
        return len(self.events)

    def measure(self, rows: Rows, needs: Sequence[str], source: RandomSource) -> list[Any]:
        exact = rows.sums([Term()], self.cuts, needs)[0]
        found = []
        for first, noises in zip(self.strategies[0].tree.sums(exact), self.noises, strict=True):
            seconds = self.strategies[1].tree.sums(first.T)
            found += [noise.release(one.T, source=source) for noise, one in zip(noises, seconds, strict=True)]
        return found


@dataclass(frozen=True)
class Tables(Part):
    """Tables of counts by sets of columns."""

    names: tuple[str, ...]
    cuts: tuple[Cut, ...]
    sets: tuple[ColumnSet, ...]
    measured: tuple[tuple[ColumnSet, Laplace | CentredGaussian], ...]
    """What is measured: tables with Laplace noise, or interactions with Gaussian noise."""
    moved: int
    relation: Relation
    error: float
    """The expected mean squared error of a cell."""

    @classmethod
    def of(
        cls, names: tuple[str, ...], cuts: tuple[Cut, ...], sets: tuple[ColumnSet, ...], allocation: Allocation
    ) -> Tables:
        """Choose what is measured, and divide the budget over it."""
        shares = cls.shares(cuts, sets, allocation.law)
        parts = allocation.divided(*(share for _, share in shares.shares))
        measured: list[tuple[ColumnSet, Laplace | CentredGaussian]] = []
        for (columns, _), part in zip(shares.shares, parts, strict=True):
            shape = tuple(cuts[one].cells for one in columns)
            if allocation.law == "Laplace":
                noise = part.noise()
                assert isinstance(noise, Laplace)
                measured.append((columns, noise))
            else:
                kept = float(CentredGaussian(shape, 1.0).loss)
                measured.append((columns, CentredGaussian(shape, float((part.variance * kept) ** 0.5))))
        error = shares.error * allocation.variance
        return cls(names, cuts, sets, tuple(measured), allocation.row_sensitivity, allocation.relation, error)

    @staticmethod
    def shares(cuts: tuple[Cut, ...], sets: tuple[ColumnSet, ...], law: NoiseFamily) -> MeasuredShares:
        """Return what is measured under a law of noise, with its shares of the budget."""
        sizes = tuple(cut.cells for cut in cuts)
        return choose_tables(sizes, sets) if law == "Laplace" else choose_interactions(sizes, sets)

    @property
    def sizes(self) -> Sizes:
        """The number of cells of each column."""
        return tuple(cut.cells for cut in self.cuts)

    @property
    def is_centred(self) -> bool:
        """Whether interactions are measured rather than tables."""
        return isinstance(self.measured[0][1], CentredGaussian)

    @property
    def events(self) -> tuple[Event, ...]:
        noises = [noise for _, noise in self.measured]
        centred = [noise.loss for noise in noises if isinstance(noise, CentredGaussian)]
        if centred:
            return (Gaussian(sigma=sigma_of(sum(centred, Fraction(0)) * self.moved**2), under=self.relation),)
        return tuple(noise.event for noise in noises if isinstance(noise, Laplace))

    @property
    def line(self) -> str:
        what, law = ("interactions", "Gaussian") if self.is_centred else ("tables", "Laplace")
        return f"{len(self.sets)} tables: made of {len(self.measured)} measured {what}, with {law} noise"

    @property
    def arrays(self) -> int:
        return len(self.measured)

    def measure(self, rows: Rows, needs: Sequence[str], source: RandomSource) -> list[Any]:
        found = []
        for columns, noise in self.measured:
            exact = rows.sums([Term()], tuple(self.cuts[one] for one in columns), needs)[0]
            found.append(noise.release(exact, source=source))
        return found


def law_of(noise: Noise) -> str:
    """Return the name of the law of a noise."""
    return "Laplace" if isinstance(noise, Laplace) else "Gaussian"


def noises_of(strategy: Strategy, allocation: Allocation) -> tuple[Noise, ...]:
    """Return the noise of a matrix, or of each level of a tree."""
    if isinstance(strategy, MatrixStrategy):
        return (allocation.noise(strategy.matrix.length(allocation.law)),)
    return tuple(part.noise() for part in allocation.divided(*strategy.shares))
