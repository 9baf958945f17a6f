"""Quantiles, extremes and modes: private choices among public candidates, one in each group.

The values of a group are counted in public cells (the whole numbers of a short range, otherwise equal parts of the
declared interval); the engine returns the cells that are not empty. A unit with more rows in a group than the limit R
has each of them counted with weight R / rows, in fractions of 1/1024, so that it brings R at most.

A cell stands for the ranks of its own rows: from `below`, the weight of the rows before it, to `upto`, that of the rows
up to its end. The score of a cell is minus the distance of the rank that is asked for to these, so that a cell which
holds it has a score of 0, however many rows share the value. Scores, and how far one unit moves them that brings R at
most:

    quantile q   -max(0, q n - upto, below - q n), n being the weight of all rows      max(q, 1 - q) R
    min          -max(0, t - upto, below - t), t so many rows that choosing beyond the data is unlikely   R
    max          the same from the other end: the rows after a cell, and from its start on                R
    mode         the weight of a candidate                                                                R

Proof: a unit adds a weight w_c >= 0 to each cell c, of sum w <= R; cutting off the weights of cells makes none of the
w_c greater. It moves `below` and `upto` by b and u with 0 <= b <= u <= w. So below - q n moves by b - q w, which lies
between -q w and (1 - q) w; q n - upto by q w - u, between -(1 - q) w and q w; and below - t and t - upto by w at most.
The maximum of 0 and two numbers moves by no more than the one that moves further. A unit that is removed moves them
back, and one that is replaced does both: twice as far at most (`Bounding.per_group`). How t is found is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from tacit.mechanisms import Exponential
from tacit.mechanisms.randomness import RandomSource
from tacit.privacy.errors import NotBounded
from tacit.privacy.figures import grouped
from tacit.privacy.tables import Kind
from tacit.query.aggregates import Aggregate
from tacit.query.expressions import Constant, Expression, require_range
from tacit.query.keys import public_values
from tacit.query.scalars import grid_steps

CELLS_MAX: Final = 1024
WEIGHT: Final = 2**10
"""The weight of one row; a unit's rows beyond the limit weigh less each. Bins of learnt bounds are weighed so, too."""

COUNT_MAX: Final = 2**40
"""Where a cell's weight is cut off, so that 1,024 of them times 4,096 fit into 64 bits; cutting moves none further."""

MARGIN_MAX: Final = 2**61
"""The greatest number of rows that MIN and MAX keep away from the ends, so that scores fit into 64 bits."""

BEYOND: Final = 20
"""MIN and MAX choose a value beyond all rows with a probability of 1 / 20 at most, if a group has rows enough."""

SHARE_STEPS: Final = 2**12
"""Quantiles are asked for in multiples of 1 / 4096, so that scores are whole numbers."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a choice: `count` cells of `width` from `lower` on, or listed values."""

    lower: Fraction
    width: Fraction
    count: int
    kind: Kind
    values: tuple[Constant, ...] = ()

    @property
    def half_width(self) -> str:
        """How far the ends of a cell lie from the value that stands for it, in words; empty where cells are values."""
        if self.values or (self.width <= 1 and self.kind in (Kind.INTEGER, Kind.DATE)):
            return ""
        half = float(self.width) / 2
        if self.kind is Kind.TIME:
            return f"{grouped(half / 1e6, 4)} s"
        return f"{grouped(half, 4)}{' days' if self.kind is Kind.DATE else ''}"

    def value_at(self, index: int) -> Any:
        """Return the value that stands for a cell."""
        if self.values:
            return self.values[index]
        if self.kind is Kind.INTEGER and self.width == 1:
            return int(self.lower) + index
        middle = self.lower + self.width * index + (self.width / 2 if self.width != 1 else 0)
        if self.kind is Kind.DATE:
            return date(1970, 1, 1) + timedelta(days=math.floor(middle))
        if self.kind is Kind.TIME:
            return datetime(1970, 1, 1) + timedelta(microseconds=math.floor(middle))
        return round(middle) if self.kind is Kind.INTEGER else float(middle)


@dataclass(frozen=True, slots=True)
class PrivateChoice:
    """One private choice in every group: its function, the value, the rows, and the candidates."""

    function: str
    value: Expression
    condition: Expression | None
    share: Fraction
    cells: Candidates
    label: str

    @property
    def key(self) -> str:
        """The choice as text, equal for equal ones."""
        where = self.condition.text if self.condition else ""
        return f"{self.function} | {self.value.text} | {where} | {self.share} | {self.cells.count}"

    def sensitivity(self, rows: int) -> int:
        """Return how far one unit with `rows` rows in a group moves a score there."""
        if self.function == "quantile":
            return rows * WEIGHT * max(self._numerator, SHARE_STEPS - self._numerator)
        return rows * WEIGHT

    def rows_missed(self, mechanism: Exponential, level: float, candidates: int | None = None) -> int:
        """Return by how many rows the choice misses at most with probability `level`: in rank, or for a mode in count.

        The greatest score of a group is 0 (of an empty one, too), so that is how far the chosen score lies below it; of
        MIN and MAX the rows are counted that may lie beyond the chosen value. With fewer rows the value is arbitrary.
        """
        count = candidates or self.cells.count
        short = -float(mechanism.interval(level, count).low)
        if self.function in ("min", "max"):
            short += self._margin(mechanism, count)
        steps = SHARE_STEPS if self.function == "quantile" else 1
        return math.ceil(short / (WEIGHT * steps))

    @staticmethod
    def _margin(mechanism: Exponential, candidates: int) -> float:
        """Return the rank that MIN and MAX ask for, in weight from their end."""
        return 2 * float(mechanism.sensitivity) / float(mechanism.epsilon) * math.log(BEYOND * candidates)

    @property
    def _numerator(self) -> int:
        return round(self.share * SHARE_STEPS)

    @property
    def cell_tree(self) -> exp.Expression:
        """The engine's tree for the cell of a row: its number, or the value itself where candidates are listed."""
        if self.cells.values:
            return self.value.tree.copy()
        centre = self.cells.lower + (self.cells.width / 2 if self.cells.width != 1 else 0)
        number = grid_steps(_as_number(self.value), self.cells.width, centre)
        last = exp.Literal.number(self.cells.count - 1)
        clamp = exp.Case().when(exp.LT(this=number.copy(), expression=exp.Literal.number(0)), exp.Literal.number(0))
        return clamp.when(exp.GT(this=number.copy(), expression=last.copy()), last).else_(number)

    def choose(
        self, cells: Sequence[Any], weights: NDArray[np.int64], mechanism: Exponential, source: RandomSource
    ) -> Any:
        """Choose one candidate, given the cells of one group that are not empty and their weights."""
        counts = np.zeros(self.cells.count, dtype=np.int64)
        if self.cells.values:
            place = {value: index for index, value in enumerate(self.cells.values)}
            for cell, weight in zip(cells, weights, strict=True):
                if cell in place:
                    counts[place[cell]] = weight
        else:
            counts[np.asarray(cells, dtype=np.int64)] = weights
        scores = self._scores(np.minimum(counts, COUNT_MAX), mechanism)
        return self.cells.value_at(int(mechanism.release(scores, source=source)))

    def _scores(self, counts: NDArray[np.int64], mechanism: Exponential) -> NDArray[np.int64]:
        if self.function == "mode":
            return counts
        upto = np.cumsum(counts)
        below, total = upto - counts, upto[-1]
        if self.function == "quantile":
            return _rank_scores(SHARE_STEPS * below, SHARE_STEPS * upto, self._numerator * total)
        rank = min(round(self._margin(mechanism, self.cells.count)), MARGIN_MAX)
        if self.function == "min":
            return _rank_scores(below, upto, rank)
        return _rank_scores(total - upto, total - below, rank)


def _rank_scores(first: NDArray[np.int64], last: NDArray[np.int64], rank: int) -> NDArray[np.int64]:
    """Return minus the distance of a rank to the ranks from `first` to `last` of each cell's own rows."""
    return np.asarray(-np.maximum(np.maximum(rank - last, first - rank), 0))


def private_choice(aggregate: Aggregate) -> PrivateChoice:
    """Return the private choice of an aggregate; raise NotBounded if its candidates are not public."""
    value = aggregate.arguments[0]
    if aggregate.function == "mode":
        values = tuple(one for one in public_values(value) or () if one is not None)
        if not 0 < len(values) <= CELLS_MAX:
            raise NotBounded(
                f"the candidates of {aggregate.label} are not public",
                accepted=f"declare up to {CELLS_MAX:,} categories, or bounds of a short range",
            )
        cells = Candidates(Fraction(0), Fraction(1), len(values), value.kind, values)
    else:
        range_ = require_range(value, aggregate.label)
        whole = value.kind in (Kind.INTEGER, Kind.DATE)
        if whole and range_.upper - range_.lower < CELLS_MAX:
            cells = Candidates(range_.lower, Fraction(1), int(range_.upper - range_.lower) + 1, value.kind)
        else:
            width = Fraction(float((range_.upper - range_.lower) / CELLS_MAX)) or Fraction(1, 2**20)
            cells = Candidates(range_.lower, width, CELLS_MAX, value.kind)
    share = aggregate.share if aggregate.share is not None else Fraction(0)
    return PrivateChoice(aggregate.function, value, aggregate.condition, share, cells, aggregate.label)


def _as_number(value: Expression) -> Expression:
    """Return dates as days and times as microseconds since 1970, numbers as they are."""
    if value.kind.is_number:
        return value
    unit = "DAY" if value.kind is Kind.DATE else "MICROSECOND"
    start = exp.cast(exp.Literal.string("1970-01-01"), "DATE" if value.kind is Kind.DATE else "TIMESTAMP")
    tree = exp.DateDiff(this=value.tree.copy(), expression=start, unit=exp.var(unit))
    return Expression(exp.cast(tree, "BIGINT"), Kind.INTEGER, value.range, nullable=value.nullable)
