"""The rows of a statistic, and the exact integer sums over them.

Every statistic is computed from sums: of ones (a count), of values in whole steps, of products of those, over all rows
or over the rows in each cell of a public partition. `Rows` returns such sums: over arrays in this process
(`array_sums`) or over a registered table in its engine (`table_sums`). Methods that need more than sums, such as
gradient descent, read the rows themselves, as integers (`Rows.matrix`).

Promise: at most `per_unit` rows of each unit are summed or read, chosen by that unit's own rows and fresh or secret
randomness alone, so that adding or removing a unit moves a sum by at most `per_unit` times the greatest term. Sums and
rows are exact and private: they are for mechanisms alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from itertools import product
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.measuring.moments import SATURATION, grid_step
from tacit.privacy.bounds import Bounds, Category
from tacit.privacy.errors import InvalidInput, NotBounded, OutOfRange, TooWide
from tacit.privacy.tables import Kind

REACH_MAX: Final = 2**40
"""The greatest term: 2^22 rows of that size, and millions of rows of the usual size, fit into 63 bits."""

CELLS_IN_ALL_MAX: Final = 1_000_000
EDGES_MAX: Final = 4096
"""The greatest number of edges that are compared one by one; more of them must be equally far apart."""

_BOUNDED_BELOW: Final = 2**50


@dataclass(frozen=True, slots=True)
class ColumnSteps:
    """A column as integers: value / step, rounded, less `shift`; values beyond the bounds are clamped.

    The step is a power of two, so that dividing by it is exact and the ends are those of the bounds.
    """

    column: str
    lower: float
    upper: float
    step: Fraction
    shift: int
    is_boolean: bool = field(default=False, repr=False, compare=False)

    @property
    def bounds(self) -> Bounds | None:
        """The bounds to which values are clamped; None for booleans."""
        return None if self.is_boolean else Bounds(self.lower, self.upper)

    @property
    def low(self) -> int:
        """The least integer."""
        return _half_away(Fraction(self.lower) / self.step) - self.shift

    @property
    def high(self) -> int:
        """The greatest integer."""
        return _half_away(Fraction(self.upper) / self.step) - self.shift

    @property
    def reach(self) -> int:
        """The greatest absolute integer."""
        return max(abs(self.low), abs(self.high))

    @property
    def centre(self) -> float:
        """The value that is counted as 0."""
        return float(self.shift * self.step)

    @classmethod
    def of(cls, column: str, bounds: Bounds, kind: Kind, steps: int, *, centred: bool = True) -> ColumnSteps:
        """Choose the step from the bounds alone, so that half their width has about `steps` of them.

        If `centred`, integers are counted from the middle of the bounds, which halves the noise; otherwise from 0.
        """
        if isinstance(bounds.lower, date) or isinstance(bounds.upper, date):
            raise NotBounded(f"{column} must be numeric, and its bounds are dates")
        lower, upper = float(bounds.lower), float(bounds.upper)
        if max(abs(lower), abs(upper)) >= _BOUNDED_BELOW:
            raise NotBounded(f"the bounds of {column} are so wide that the noise would exceed any answer")
        is_whole = kind is Kind.INTEGER
        step = grid_step(Fraction(lower), Fraction(upper), steps, is_whole=is_whole, centred=centred)
        low, high = _half_away(Fraction(lower) / step), _half_away(Fraction(upper) / step)
        return cls(column, lower, upper, step, (low + high) // 2 if centred else 0)


@dataclass(frozen=True, slots=True)
class Term:
    """The summand of a row: the product of its columns in steps, less `offset`; 1 without columns."""

    factors: tuple[ColumnSteps, ...] = ()
    offset: int = 0

    def __post_init__(self) -> None:
        if self.reach > REACH_MAX:
            raise OutOfRange("the bounds are too wide for exact sums", name="bounds")

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest summand."""
        if not self.factors:
            return 1 - self.offset, 1 - self.offset
        first = self.factors[0]
        low, high = first.low, first.high
        if len(self.factors) == 2 and self.factors[1] == first:
            least = 0 if low <= 0 <= high else min(low * low, high * high)
            return least - self.offset, max(low * low, high * high) - self.offset
        for factor in self.factors[1:]:
            ends = [low * factor.low, low * factor.high, high * factor.low, high * factor.high]
            low, high = min(ends), max(ends)
        return low - self.offset, high - self.offset

    @property
    def reach(self) -> int:
        """The greatest absolute summand, at least 1, because noise needs a scale."""
        return max(1, *map(abs, self.ends))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which a row needs a value to be summed."""
        return tuple(dict.fromkeys(factor.column for factor in self.factors))


@dataclass(frozen=True, slots=True)
class Cut:
    """A public partition of a column into cells: its listed `values`, or the bins between rising `edges`.

    A bin includes its left edge, the last one also its right edge; values beyond the outer edges are clamped to them. A
    value that is not listed is in no cell, and its row is not summed. None among `values` is the cell of missing ones.
    """

    column: str
    values: tuple[Category, ...] = ()
    edges: tuple[float | date, ...] = ()

    def __post_init__(self) -> None:
        if len(self.edges) > EDGES_MAX and not self.is_even:
            raise TooWide(
                f"more than {EDGES_MAX:,} edges must be numbers equally far apart, over a range that a double holds",
                accepted="fewer edges, or even ones",
            )

    @property
    def is_even(self) -> bool:
        """Whether the edges are numbers equally far apart, so that a bin is computed without overflow."""
        if any(isinstance(edge, date) for edge in self.edges[:1]):
            return False
        edges = np.array(self.edges, dtype=np.float64)
        with np.errstate(over="ignore"):
            gaps, span = np.diff(edges), edges[-1] - edges[0]
            is_computable = len(gaps) > 0 and np.isfinite(span) and np.isfinite(len(gaps) / span)
        return bool(is_computable and np.allclose(gaps, gaps[0], rtol=1e-9, atol=0))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.values) or len(self.edges) - 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, as that of a partition over several."""
        return (self.column,)

    @property
    def coverage(self) -> str:
        """Which rows are left out, and in which cells values beyond the edges are counted, in words."""
        name = self.column
        if self.edges:
            first, last = (edge.isoformat() if isinstance(edge, date) else f"{edge:g}" for edge in self._outer)
            return (
                f"values of {name} below {first} are counted in the first cell and those above {last} in the last one; "
                f"rows without a value of {name} are left out"
            )
        is_all = {False, True} <= {one for one in self.values if isinstance(one, bool)}
        left_out = [] if is_all else [f"with another {name} than the listed ones"]
        left_out += [] if None in self.values else [f"without a value of {name}"]
        return f"rows {' or '.join(left_out)} are left out" if left_out else ""

    @property
    def _outer(self) -> tuple[float | date, float | date]:
        return self.edges[0], self.edges[-1]


@dataclass(frozen=True, slots=True)
class Split:
    """A node of a decision tree: rows in the `cells` of a cut go to `inside`, all others to `outside`.

    Each of the two is another split or the number of a leaf. Cells of bins are the first few of them. A row whose value
    is not listed goes to `outside`.
    """

    cut: Cut
    cells: tuple[int, ...]
    inside: Split | int
    outside: Split | int

    def __post_init__(self) -> None:
        if not self.cells or (self.cut.edges and self.cells != tuple(range(len(self.cells)))):
            raise InvalidInput("a split takes at least one cell, of bins the first ones", name="cells")


@dataclass(frozen=True, slots=True)
class TreeCut:
    """A public partition of rows over several columns: the leaves of a decision tree, numbered from 0.

    A row that lacks a value in any column of the tree is in no leaf, unless None is a listed value there.
    """

    root: Split | int

    @property
    def cells(self) -> int:
        """The number of leaves."""
        return 1 + max(leaf for leaf, _ in self._nodes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all splits."""
        return tuple(dict.fromkeys(split.cut.column for _, split in self._nodes if split is not None))

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns in which a row needs a value to be in a leaf."""
        cuts = [split.cut for _, split in self._nodes if split is not None]
        return tuple(dict.fromkeys(cut.column for cut in cuts if None not in cut.values))

    @property
    def _nodes(self) -> list[tuple[int, Split | None]]:
        """The leaves by their number, and the splits with the number -1."""
        found: list[tuple[int, Split | None]] = []
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Split):
                found.append((-1, node))
                waiting += [node.inside, node.outside]
            else:
                found.append((node, None))
        return found


@dataclass(frozen=True, slots=True)
class NearestCut:
    """A public partition of rows over numeric columns: the nearest of `centres`, all in steps of the scales.

    Distances are Euclidean in whole steps, so they are exact; of equally near centres the first one counts. A row that
    lacks a value in any of the columns is in no cell.
    """

    scales: tuple[ColumnSteps, ...]
    centres: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.centres or any(len(one) != len(self.scales) for one in self.centres):
            raise InvalidInput("there is at least one centre, with a place on each scale", name="centres")
        reach = max(scale.reach for scale in self.scales)
        if max(reach, *(abs(place) for one in self.centres for place in one)) ** 2 * len(self.scales) > SATURATION // 8:
            raise OutOfRange("the bounds are too wide for exact distances", name="bounds")

    @property
    def cells(self) -> int:
        """The number of centres."""
        return len(self.centres)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the scales."""
        return tuple(dict.fromkeys(scale.column for scale in self.scales))


Partitioning: TypeAlias = Cut | TreeCut | NearestCut
"""A public partition of rows by one column or several."""


class Rows(Protocol):
    """Rows over which exact sums are computed."""

    @property
    def per_unit(self) -> int:
        """The greatest number of rows of a unit that are summed."""
        ...

    def sums(
        self, terms: Sequence[Term], by: Sequence[Partitioning] = (), needs: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Return the sum of each term in each cell: an array of shape (terms, cells of the first cut, ...).

        Rows without a value in a column of the terms or in `needs` are left out of all sums.
        """
        ...

    def units(self, column: str) -> Mapping[Any, int]:
        """Return the number of units with each value of a column that occurs.

        A unit is counted for `per_unit` values at most. For mechanisms that select which values are shown.
        """
        ...

    def matrix(self, scales: Sequence[ColumnSteps], cuts: Sequence[Cut], needs: Sequence[str] = ()) -> RowMatrix:
        """Return the rows themselves: columns in steps of scales, and the cells of columns in cuts.

        Rows without a value in a column of the scales or in `needs` are left out; the order of rows has no meaning.
        """
        ...


@dataclass(frozen=True, slots=True)
class RowMatrix:
    """Private rows as integers: `steps` of shape (rows, scales) and `cells` of shape (rows, cuts), -1 for no cell."""

    steps: NDArray[np.int64]
    cells: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.steps)


class NoRows:
    """Rows without any row, for rehearsals of a plan before the charge."""

    def __init__(self, per_unit: int = 1) -> None:
        self.per_unit: Final = per_unit

    def sums(
        self, terms: Sequence[Term], by: Sequence[Partitioning] = (), needs: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Return 0 for each term in each cell."""
        return np.zeros((len(terms), *(cut.cells for cut in by)), dtype=np.int64)

    def units(self, column: str) -> Mapping[Any, int]:
        """Return nothing."""
        return {}

    def matrix(self, scales: Sequence[ColumnSteps], cuts: Sequence[Cut], needs: Sequence[str] = ()) -> RowMatrix:
        """Return no rows."""
        return RowMatrix(np.zeros((0, len(scales)), dtype=np.int64), np.zeros((0, len(cuts)), dtype=np.int32))


def cell_count(by: Iterable[Partitioning]) -> int:
    """Return the number of cells of cuts together, without listing them."""
    return math.prod(cut.cells for cut in by)


def require_few_cells(by: Iterable[Partitioning]) -> None:
    """Raise TooWide where an answer by these cuts would have too many numbers."""
    if cell_count(by) > CELLS_IN_ALL_MAX:
        raise TooWide(f"the answer would have more than {CELLS_IN_ALL_MAX:,} numbers", accepted="fewer bins or keys")


def group_keys(by: Sequence[Cut]) -> list[tuple[Any, ...]] | None:
    """Return the key of each group, in the order of sums; None without groups."""
    return list(product(*(cut.values for cut in by))) if by else None


def saturate(sums: NDArray[Any]) -> NDArray[np.int64]:
    """Return sums clamped to the range in which noise is added."""
    found: NDArray[np.int64] = np.clip(sums, -SATURATION, SATURATION).astype(np.int64)
    return found


def _half_away(number: Fraction) -> int:
    size = (abs(number) + Fraction(1, 2)).__floor__()
    return size if number >= 0 else -size
