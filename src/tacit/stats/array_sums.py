"""Exact sums over arrays: lists, numpy arrays, and columns of pandas, polars and Arrow (read by `column_reader`).

Without units every row is a unit. With them, `per_unit` rows of each unit are chosen uniformly at random, with the
operating system's randomness: each row draws a number of its own, and the unit's rows with the least numbers stay, so
that the choice does not depend on other units. Rows without a unit are left out.

Sums are exact: a term is at most 2^40 in size (`REACH_MAX`), so its halves of 20 bits add up without rounding for less
than 2^32 rows, and both together are clamped to 2^62, which moves no two neighbours further apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.moments import SATURATION
from tacit.mechanisms.randomness import SYSTEM, RandomSource, words
from tacit.privacy.errors import WrongKind, WrongType
from tacit.privacy.tables import Kind
from tacit.stats.column_reader import MODULES, cast_column, read_column, unit_codes
from tacit.stats.rows import ColumnSteps, Cut, NearestCut, Partitioning, RowMatrix, Split, Term, saturate

NAME_LENGTH_MAX: Final = 80
SPLIT: Final = 20
"""The bits of the lower half of a number while it is added up."""


class ArrayColumn:
    """A column in memory: its kind, its values, and where they are missing.

    The kind is `kind` where that is given, otherwise what the type of the column declares, otherwise `default`. Without
    any of them it is None, and only the missing values are known.
    """

    def __init__(self, name: str, values: Any, kind: Kind | None = None, *, default: Kind | None = None) -> None:
        self.name: Final = name
        column = read_column(name, values)
        self.kind: Final[Kind | None] = kind or column.kind or default
        values_read, missing = column.values, column.missing
        if self.kind is not None:
            values_read, missing = cast_column(name, column, self.kind)
        self.values: Final[NDArray[Any]] = values_read
        self.missing: Final[NDArray[np.bool_]] = missing

    def __len__(self) -> int:
        return len(self.values)

    def steps(self, scale: ColumnSteps) -> NDArray[np.int64]:
        """Return the values in whole steps of a scale, missing ones as 0."""
        if self.kind not in (Kind.INTEGER, Kind.REAL, Kind.BOOLEAN):
            raise WrongKind(f"{self.name} must be numeric, and holds {self.kind} values")
        numbers = np.where(self.missing, 0.0, self.values.astype(np.float64))
        scaled = np.clip(numbers, scale.lower, scale.upper) * float(1 / scale.step)
        counted = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64) - scale.shift
        return np.clip(counted, scale.low, scale.high)

    def cells(self, cut: Cut) -> NDArray[np.int64]:
        """Return the cell of each value, -1 for values in no cell."""
        if cut.values:
            return self._listed_cells(cut.values)
        values, edges = self.values, np.array(cut.edges)
        if self.kind in (Kind.DATE, Kind.TIME):
            edges = np.array(cut.edges, dtype="datetime64[us]")
        elif self.kind is Kind.TEXT:
            raise WrongKind(f"{self.name} holds texts, which have no edges; list its values instead: keys=[...]")
        else:
            values, edges = values.astype(np.float64), edges.astype(np.float64)
        found = np.searchsorted(edges, values, side="right") - 1
        return np.where(self.missing, -1, np.clip(found, 0, len(edges) - 2))

    def _listed_cells(self, values: Sequence[Any]) -> NDArray[np.int64]:
        places = {_plain(value): index for index, value in enumerate(values) if value is not None}
        empty = list(values).index(None) if None in values else -1
        if self.kind is Kind.TEXT:
            found = np.fromiter(
                (places.get(value, -1) for value in self.values), dtype=np.int64, count=len(self.values)
            )
        else:
            different, inverse = np.unique(self.values, return_inverse=True)
            known = [places.get(_plain(value), -1) for value in different.tolist()]
            found = np.array([*known, -1], dtype=np.int64)[inverse]
        return np.where(self.missing, empty, found)


class UnitColumn:
    """The unit of each row as a number, -1 for rows without a unit."""

    def __init__(self, values: Any) -> None:
        self.codes: Final[NDArray[np.int64]] = unit_codes(read_column("unit", values))

    def __len__(self) -> int:
        return len(self.codes)


class ArrayRows:
    """Columns of one length, and the unit of each row."""

    def __init__(
        self,
        columns: Mapping[str, ArrayColumn],
        unit: UnitColumn | None = None,
        per_unit: int = 1,
        *,
        source: RandomSource = SYSTEM,
    ) -> None:
        self._columns, self._unit, self._per_unit, self._source = columns, unit, per_unit, source
        self._length = len(next(iter(columns.values())))

    @property
    def per_unit(self) -> int:
        """How many rows of a unit are added up at most."""
        return self._per_unit

    def column(self, name: str) -> ArrayColumn:
        """Return a column with its exact, private values, for mechanisms that sort them."""
        return self._columns[name]

    def kept_rows(self, needs: Sequence[str]) -> NDArray[np.bool_]:
        """Return which rows are added up: those with all values, at most `per_unit` of each unit."""
        here = np.ones(self._length, dtype=bool)
        for name in needs:
            here &= ~self._columns[name].missing
        if self._unit is None:
            return here
        here &= self._unit.codes >= 0
        places = np.flatnonzero(here)
        owners = self._unit.codes[places]
        order = np.lexsort((words(self._source, len(places), 8), owners))
        ordered = owners[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.int64)
        rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
        chosen = np.zeros(self._length, dtype=bool)
        chosen[places[order[rank < self._per_unit]]] = True
        return chosen

    def sums(
        self, terms: Sequence[Term], by: Sequence[Partitioning] = (), needs: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Return the sum of each term in each cell."""
        wanted = dict.fromkeys([*needs, *(name for term in terms for name in term.columns)])
        kept = self.kept_rows(list(wanted))
        shape = tuple(cut.cells for cut in by)
        cell = np.zeros(self._length, dtype=np.int64)
        for cut in by:
            at = self._cells(cut)
            kept &= at >= 0
            cell = cell * cut.cells + at
        count = int(np.prod(shape, dtype=np.int64)) if shape else 1
        found = np.stack([_sum_by_cell(self._numbers(term)[kept], cell[kept], count) for term in terms])
        return found.reshape(len(terms), *shape)

    def units(self, column: str) -> Mapping[Any, int]:
        """Return the number of units with each value that occurs, a unit for `per_unit` values at most."""
        array, kept = self._columns[column], self.kept_rows([column])
        values = array.values[kept]
        listed = values.tolist()
        if self._unit is not None:
            listed = [value for _, value in set(zip(self._unit.codes[kept].tolist(), listed, strict=True))]
        counts: dict[Any, int] = {}
        for value in listed:
            counts[value] = counts.get(value, 0) + 1
        return counts

    def matrix(self, scales: Sequence[ColumnSteps], cuts: Sequence[Cut], needs: Sequence[str] = ()) -> RowMatrix:
        """Return the rows themselves."""
        kept = self.kept_rows(list(dict.fromkeys([*needs, *(scale.column for scale in scales)])))
        count = int(kept.sum())
        steps, cells = np.empty((count, len(scales)), dtype=np.int64), np.empty((count, len(cuts)), dtype=np.int32)
        for index, scale in enumerate(scales):
            steps[:, index] = self._columns[scale.column].steps(scale)[kept]
        for index, cut in enumerate(cuts):
            cells[:, index] = self._columns[cut.column].cells(cut)[kept]
        return RowMatrix(steps, cells)

    def _cells(self, cut: Partitioning) -> NDArray[np.int64]:
        """Return the cell of each row, -1 for rows in no cell."""
        if isinstance(cut, Cut):
            return self._columns[cut.column].cells(cut)
        if isinstance(cut, NearestCut):
            steps = np.stack([self._columns[scale.column].steps(scale) for scale in cut.scales], axis=1)
            centres = np.array(cut.centres, dtype=np.int64)
            scores = np.square(centres).sum(axis=1) - 2 * steps @ centres.T  # distances, less what all have in common
            missing = np.any([self._columns[name].missing for name in cut.columns], axis=0)
            return np.where(missing, -1, np.argmin(scores, axis=1))
        known: dict[Cut, NDArray[np.int64]] = {}  # a tree splits by the same cells many times

        def place(node: Split | int, rows: NDArray[np.int64]) -> None:
            if not isinstance(node, Split):
                found[rows] = node
                return
            if node.cut not in known:
                known[node.cut] = self._columns[node.cut.column].cells(node.cut)
            is_inside = np.isin(known[node.cut][rows], node.cells)
            place(node.inside, rows[is_inside])
            place(node.outside, rows[~is_inside])

        found = np.full(self._length, -1, dtype=np.int64)
        lacking = [self._columns[name].missing for name in cut.needs]
        place(cut.root, np.flatnonzero(~np.any([np.zeros(self._length, dtype=bool), *lacking], axis=0)))
        return found

    def _numbers(self, term: Term) -> NDArray[np.int64]:
        product = np.ones(self._length, dtype=np.int64)
        for factor in term.factors:
            product = product * self._columns[factor.column].steps(factor)
        return product - term.offset


def name_of(values: Any) -> str | None:
    """Return the name of a column of a frame; None for what has no name."""
    name = getattr(values, "name", None) if type(values).__module__.partition(".")[0] in MODULES else None
    return name[:NAME_LENGTH_MAX] if isinstance(name, str) and name.strip() else None


def read_arrays(
    columns: Mapping[str, Any],
    unit: Any = None,
    kinds: Mapping[str, Kind | None] | None = None,
    defaults: Mapping[str, Kind | None] | None = None,
) -> tuple[dict[str, ArrayColumn], UnitColumn | None]:
    """Read columns of one length and the column of units; `kinds` come before their types, `defaults` after them."""
    stated, others = kinds or {}, defaults or {}
    read = {
        name: ArrayColumn(name, values, stated.get(name), default=others.get(name)) for name, values in columns.items()
    }
    owner = None if unit is None else UnitColumn(unit)
    lengths = {*map(len, read.values()), *(() if owner is None else (len(owner),))}
    if len(lengths) > 1:
        raise WrongType("all columns of one statistic must have the same length", name="values")
    return read, owner


def _sum_by_cell(numbers: NDArray[np.int64], cells: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return exact, saturated sums by cell; in two halves, because doubles hold only 53 bits."""
    high, low = numbers >> SPLIT, numbers & (2**SPLIT - 1)
    if count == 1:
        highs, lows = np.array([high.sum(dtype=np.int64)]), np.array([low.sum(dtype=np.int64)])
    else:
        highs, lows = (
            np.bincount(cells, weights=half.astype(np.float64), minlength=count).astype(np.int64)
            for half in (high, low)
        )
    carried = highs + (lows >> SPLIT)
    ends = SATURATION >> SPLIT
    is_within = (carried >= -ends) & (carried < ends)
    whole = (np.clip(carried, -ends, ends) << SPLIT) + np.where(is_within, lows & (2**SPLIT - 1), 0)
    return saturate(whole)


def _plain(value: Any) -> Any:
    """Return a value in the type that `tolist` gives, so that equal values compare equal."""
    if isinstance(value, date):
        return np.datetime64(value, "us").item()
    return value
