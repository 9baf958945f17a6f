"""The plan of a model: a statistic whose value is a set of named arrays, the fitted attributes.

Promise: `measure` reads rows through `Rows` alone, and what it releases is covered by `event`, which is fixed before
any row is read and does not depend on bounds, so that these can be learnt within the same charge. `value` is computed
from released arrays and public facts. Gaussian noises are fixed before the run, so that all of them together are
counted at one delta by their exact curve (`Converted`).

`Features` are the public facts of a model's columns: numbers lie within bounds and are encoded as -1 to 1, categories
are encoded one-hot.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.closed_forms import pure_epsilon
from tacit.measuring.allocation import Allocation, Noise
from tacit.mechanisms import Laplace
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.bounds import clamping_in_words
from tacit.privacy.errors import NotFinite, WrongKind
from tacit.privacy.events import Converted, Event, composed
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.rows import ColumnSteps, Cut, RowMatrix, Rows
from tacit.stats.statistic import Noisy, NoisySums, StatisticPlan, release_sums

Floats: TypeAlias = NDArray[np.float64]

LINES_MAX: Final = 12
"""The greatest number of noisy sums that a card lists."""


class MatrixColumn:
    """A column of private rows, as numbers or as the cells of the cut that it was read by (`Rows.matrix`)."""

    def __init__(self, values: Any = None, cells: Any = None) -> None:
        self.values, self._cells = values, cells

    def cells(self, _cut: Cut) -> Any:
        """Return the cells."""
        return self._cells


@dataclass(frozen=True)
class Features:
    """The columns of X in their order: numbers in steps within bounds, or cells (categories, bins)."""

    columns: tuple[ColumnSteps | Cut, ...]
    kinds: tuple[Kind, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(one.column for one in self.columns)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns in which a row needs a value to be counted: all but those with a cell of missing values."""
        return tuple(one.column for one in self.columns if isinstance(one, ColumnSteps) or None not in one.values)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of encoded columns of each column."""
        return tuple(one.cells if isinstance(one, Cut) else 1 for one in self.columns)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """The names of encoded columns: `age`, `sex=F`."""
        names: list[str] = []
        for one in self.columns:
            if isinstance(one, ColumnSteps):
                names.append(one.column)
            else:
                names += [f"{one.column}={label}" for label in one.values or range(one.cells)]
        return tuple(names)

    @property
    def origins(self) -> Floats:
        """The value of each encoded column that is encoded as 0."""
        return np.concatenate([_per_cell(one, "centre") for one in self.columns])

    @property
    def units(self) -> Floats:
        """What 1 in each encoded column is worth: half the width of bounds, 1 for a category."""
        return np.concatenate([_per_cell(one, "unit") for one in self.columns])

    def read(self, columns: Mapping[str, Any] | RowMatrix) -> Sequence[ArrayColumn | MatrixColumn]:
        """Return columns as they are predicted from; raise NotFinite where a value of an array is missing."""
        if isinstance(columns, RowMatrix):
            steps, cells = iter(columns.steps.T), iter(columns.cells.T)
            return [
                MatrixColumn(cells=next(cells))
                if isinstance(one, Cut)
                else MatrixColumn(values=next(steps) * float(one.step) + one.centre)
                for one in self.columns
            ]
        found = []
        for one, kind in zip(self.columns, self.kinds, strict=True):
            column = ArrayColumn(one.column, columns[one.column], kind)
            if one.column in self.needs and column.missing.any():
                raise NotFinite(
                    f"{one.column} has missing values (NaN), or values of another kind than {kind}, and every row that "
                    "is predicted needs one",
                    name=one.column,
                )
            found.append(column)
        return found

    def encode(self, columns: Mapping[str, Any] | RowMatrix) -> Floats:
        """Return rows as numbers: clamped to bounds and scaled to -1 to 1; categories one-hot, unlisted ones as 0."""
        parts: list[Floats] = []
        for one, column in zip(self.columns, self.read(columns), strict=True):
            if isinstance(one, Cut):
                parts.append((column.cells(one)[:, None] == np.arange(one.cells)).astype(np.float64))
            else:
                values = np.clip(column.values.astype(np.float64), one.lower, one.upper)
                parts.append(((values - one.centre) / unit_of(one))[:, None])
        return np.concatenate(parts, axis=1)


def unit_of(scale: ColumnSteps) -> float:
    """Return the value of the greatest distance from the centre of a scale."""
    return max(1, scale.reach) * float(scale.step)


def require_numbers(features: Features) -> tuple[ColumnSteps, ...]:
    """Return the columns of features that must all be numbers, or raise WrongKind."""
    found = tuple(one for one in features.columns if isinstance(one, ColumnSteps))
    if len(found) < len(features.columns):
        listed = ", ".join(one.column for one in features.columns if isinstance(one, Cut))
        raise WrongKind(f"this estimator is of numbers, and {listed} has categories")
    return found


def _per_cell(one: ColumnSteps | Cut, what: str) -> Floats:
    if isinstance(one, Cut):
        return np.full(one.cells, 0.0 if what == "centre" else 1.0)
    return np.array([one.centre if what == "centre" else unit_of(one)])


@dataclass(frozen=True)
class ModelPlan(StatisticPlan):
    """The plan of a model; subclasses add their public parameters and noises as fields."""

    features: Features
    target: Cut | ColumnSteps | None = field(default=None, kw_only=True)
    """The classes, or the target of a regression; estimators of features alone have none."""
    delta: float | None = field(default=None, kw_only=True)
    """The delta at which Gaussian noises are counted; None for Laplace noise, and for a rho."""

    @property
    @abstractmethod
    def noises_event(self) -> Event:
        """The event of all noises."""

    @property
    def event(self) -> Event:
        return self.noises_event if self.delta is None else Converted(self.noises_event, self.delta)

    def counted(self, allocation: Allocation) -> Self:
        """Return the plan with the delta of the allocation that its noises were made from, where they need one."""
        if allocation.epsilon is None or math.isfinite(pure_epsilon(self.noises_event)):
            return self
        return replace(self, delta=allocation.delta)

    @abstractmethod
    def value(self, noisy: Noisy) -> dict[str, Any]:
        """Return the fitted attributes by their names, arrays or numbers, from released arrays alone."""

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return None

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns in which a row needs a value to be counted."""
        return (*self.features.needs, *([] if self.target is None else [self.target.column]))

    @property
    def coverage(self) -> tuple[str, ...]:
        listed = [one.column for one in self.features.columns if isinstance(one, Cut) and one.values]
        return (
            *filter(None, [clamping_in_words(self.clamped.items()).partition(";")[0]]),
            *([f"values of {', '.join(listed)} that are not listed count as none of the categories"] if listed else []),
            *([f"rows without a value of {', '.join(self.needs)} are left out"] if self.needs else []),
        )


@dataclass(frozen=True)
class SumsPlan(ModelPlan):
    """The plan of a model that is computed from noisy sums, none of which depends on another."""

    parts: tuple[NoisySums, ...]

    @property
    def noises_event(self) -> Event:
        return composed([part.noise.event for part in self.parts])

    @property
    def lines(self) -> tuple[str, ...]:
        """Return noisy sums in words, the first few of many."""
        lines = tuple(part.line for part in self.parts)
        if len(lines) <= LINES_MAX:
            return lines
        return (*lines[:LINES_MAX], f"{len(lines) - LINES_MAX:,} more sums, of products or by other cells, likewise")

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        """Return noisy sums in the order of `parts`; those by equal cells that follow one another are one statement."""
        found: list[NDArray[Any]] = []
        for _, group in groupby(self.parts, key=lambda part: part.by):
            found += release_sums(list(group), rows, self.needs, source)
        return tuple(found)


def plan_of(plan: StatisticPlan) -> ModelPlan:
    """Return the plan of the model itself, within bounds that were learnt and of what was selected, if any were."""
    found: Any = plan
    while not isinstance(found, ModelPlan):
        found = found.plan  # of learnt bounds, or of a search
    return found


def deviation(noise: Noise) -> float:
    """Return the standard deviation of a noise, in steps."""
    return float(noise.scale) * (2**0.5 if isinstance(noise, Laplace) else 1.0)
