"""The plan of a model: a statistic whose value is a set of named arrays, the fitted attributes.

Promise: `measure` reads rows through `Rows` alone, and what it releases is covered by `event`, which is fixed before
any row is read and does not depend on bounds, so that these can be learnt within the same charge. `value` is computed
from released arrays and public facts.

`Features` are the public facts of a model's columns: numbers lie within bounds and are encoded as -1 to 1, categories
are encoded one-hot.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.allocation import Noise
from tacit.mechanisms import Laplace
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import RandomSource
from tacit.privacy.bounds import clamping_in_words
from tacit.privacy.errors import NotFinite, WrongKind
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.learned_bounds import StatisticWithLearntBounds
from tacit.stats.rows import ColumnSteps, Cut, Rows
from tacit.stats.statistic import Noisy, NoisySums, StatisticPlan, release_sums

Floats: TypeAlias = NDArray[np.float64]

LINES_MAX: Final = 12
"""The greatest number of noisy sums that a card lists."""


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

    def read(self, columns: Mapping[str, Any]) -> list[ArrayColumn]:
        """Return columns of arrays as they are predicted from; raise NotFinite where a value is missing."""
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

    def encode(self, columns: Mapping[str, Any]) -> Floats:
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

    @abstractmethod
    def value(self, noisy: Noisy) -> dict[str, Any]:
        """Return the fitted attributes by their names, arrays or numbers, from released arrays alone."""

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return None

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns in which a row needs a value to be counted."""
        return self.features.needs

    @property
    def coverage(self) -> tuple[str, ...]:
        listed = [one.column for one in self.features.columns if isinstance(one, Cut) and one.values]
        return (
            *filter(None, [clamping_in_words(self.clamped.items()).partition(";")[0]]),
            *([f"values of {', '.join(listed)} that are not listed count as none of the categories"] if listed else []),
            *([f"rows without a value of {', '.join(self.needs)} are left out"] if self.needs else []),
        )


def plan_of(plan: StatisticPlan) -> ModelPlan:
    """Return the plan of the model itself, within bounds that were learnt, if any were."""
    found = plan.plan if isinstance(plan, StatisticWithLearntBounds) else plan
    assert isinstance(found, ModelPlan)
    return found


def release_parts(parts: Sequence[NoisySums], rows: Rows, needs: Sequence[str], source: RandomSource) -> Noisy:
    """Return noisy sums in the order of `parts`; those by the same cells that follow one another are one statement."""
    found: list[NDArray[Any]] = []
    for _, group in groupby(parts, key=lambda part: part.by):
        found += release_sums(list(group), rows, needs, source)
    return tuple(found)


def lines_of(parts: Sequence[NoisySums]) -> tuple[str, ...]:
    """Return noisy sums in words, the first few of many."""
    lines = tuple(part.line for part in parts)
    if len(lines) <= LINES_MAX:
        return lines
    return (*lines[:LINES_MAX], f"{len(lines) - LINES_MAX:,} more sums, of products or by other cells, likewise")


def deviation(noise: Noise) -> float:
    """Return the standard deviation of a noise, in steps."""
    return float(noise.scale) * (2**0.5 if isinstance(noise, Laplace) else 1.0)
